"""MPI's own start, without `mpiexec`: each process serves PMI to itself, from the store."""

import os
import signal
import subprocess
import sys
import time

import pytest

from library import IS_GRADIRON

pytestmark = pytest.mark.gradiron
if IS_GRADIRON:
    from gradiron._core import _distributed as core

PROGRAM = """
import array, os, sys, time
from gradiron._core import _distributed as core
port, job, rank, size, timeout = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
watch = core.Watch("127.0.0.1", port, job, rank, size)
descriptor = core.serve_pmi("127.0.0.1", port, job, rank, size, f"(vector,(0,1,{size}))", timeout)
os.environ.update(PMI_FD=str(descriptor), PMI_RANK=str(rank), PMI_SIZE=str(size))
import mpi4py
mpi4py.rc.initialize = mpi4py.rc.finalize = False
from mpi4py import MPI
watch.begin_start(timeout)
begin = time.monotonic()
level = MPI.Init_thread(MPI.THREAD_MULTIPLE)
took = time.monotonic() - begin
watch.end_start()
numbers, total = array.array("d", [rank + 1.0] * 4), array.array("d", [0.0] * 4)
MPI.COMM_WORLD.Allreduce(numbers, total)
shared = sorted(line.split("/")[-1].strip() for line in open("/proc/self/maps") if "mpich_shm" in line)
print(MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size(), total[0], level == MPI.THREAD_MULTIPLE, took, *shared[:1])
MPI.Finalize()
watch.goodbye()
"""


@pytest.fixture(autouse=True)
def mpich():
    pytest.importorskip("mpi4py")
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; print(MPI.Get_library_version())",
        ],
        capture_output=True,
        text=True,
    )
    if not any(name in found.stdout for name in ("MPICH", "Intel")):
        pytest.skip("no MPI that speaks PMI-1")


@pytest.fixture
def server():
    server = core.StoreServer("127.0.0.1", 0)
    yield server
    server.stop()


def start(server, job, ranks, size, timeout=60):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "OMPI"))}
    return [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(server.port), job, str(rank), str(size), str(timeout)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=clean,
        )
        for rank in ranks
    ]


def finish(processes):
    lines = []
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        lines.append(out.split())
    return lines


def shared_files(process):
    with open(f"/proc/{process.pid}/maps") as maps:
        return {line.split()[-1] for line in maps if "mpich_shm" in line}


@pytest.fixture
def waiting(server):
    """Rank 0 of 2, in the middle of MPI's start. What MPI leaves behind when it is cut off is removed."""
    (process,) = start(server, "job", [0], 2, timeout=3)
    deadline = time.monotonic() + 20
    while not (files := shared_files(process)) and time.monotonic() < deadline:
        time.sleep(0.02)
    yield process
    process.kill()
    process.communicate()
    for file in files:
        os.remove(file)


@pytest.mark.parametrize("size", [2, 4])
def test_ranks_of_one_machine_share_memory(server, size):
    lines = finish(start(server, "job", range(size), size))
    total = str(size * (size + 1) / 2)
    assert [line[:4] for line in lines] == [[str(rank), str(size), total, "True"] for rank in range(size)]
    shared = {line[5] for line in lines}
    assert len(shared) == 1
    assert max(float(line[4]) for line in lines) < 5


def test_two_jobs_at_once_share_nothing(server):
    one, two = start(server, "one", range(2), 2), start(server, "two", range(2), 2)
    lines = finish(one + two)
    assert len({line[5] for line in lines}) == 2


def test_a_rank_that_dies_ends_the_start_of_the_others(server, waiting):
    other = core.Watch("127.0.0.1", server.port, "job", 1, 2)
    other.fail("no room")
    begin = time.monotonic()
    _, err = waiting.communicate(timeout=20)
    assert time.monotonic() - begin < 2
    assert waiting.returncode == -signal.SIGABRT
    assert "gradiron: MPI could not start: rank 1: no room" in err


def test_a_rank_that_never_comes(waiting):
    _, err = waiting.communicate(timeout=30)
    assert waiting.returncode == -signal.SIGABRT
    assert "gradiron: MPI could not start: not all ranks came in time" in err


def test_the_end_of_the_store_ends_the_start(server, waiting):
    server.stop()
    _, err = waiting.communicate(timeout=20)
    assert waiting.returncode == -signal.SIGABRT
    assert f"gradiron: MPI could not start: the store at 127.0.0.1:{server.port} ended" in err


def test_lines_that_are_no_pmi(server):
    """What MPI asks besides: answers, not silence."""
    import socket

    with socket.socket(fileno=core.serve_pmi("127.0.0.1", server.port, "job", 0, 1, "(vector,(0,1,1))")) as own:
        own.settimeout(10)
        lines = own.makefile("rw")

        def ask(text):
            lines.write(text + "\n")
            lines.flush()
            return lines.readline().strip()

        assert ask("cmd=init pmi_version=1 pmi_subversion=1") == "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
        assert ask("cmd=get_maxes").startswith("cmd=maxes kvsname_max=256 keylen_max=")
        assert ask("cmd=get_universe_size") == "cmd=universe_size size=1 rc=0"
        name = ask("cmd=get_my_kvsname").split()[1].partition("=")[2]
        assert name.startswith("gradiron_")
        assert ask(f"cmd=put kvsname={name} key=a value=b") == "cmd=put_result rc=0 msg=success"
        assert ask(f"cmd=get kvsname={name} key=a") == "cmd=get_result rc=0 msg=success value=b"
        assert ask(f"cmd=get kvsname={name} key=c") == "cmd=get_result rc=-1 msg=key_c_not_found value=unknown"
        assert ask("cmd=barrier_in") == "cmd=barrier_out rc=0"
        assert ask("cmd=publish_name service=x port=y") == "cmd=publish_result rc=-1 msg=not_supported"
        assert ask("nonsense\x00 =\n\ncmd=get_appnum") == "cmd=appnum appnum=0 rc=0"
        assert ask("mcmd=spawn\nnprocs=1\nendcmd\ncmd=get_appnum") == "cmd=appnum appnum=0 rc=0"
        assert ask("cmd=finalize") == "cmd=finalize_ack rc=0"
        assert lines.readline() == ""
