"""`gradiron-run`: variables, outputs, failures, restarts; nothing stays behind."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from pool import free_port
from worlds import orphans, stay_after

import library

pytestmark = pytest.mark.gradiron

RUN = [sys.executable, "-m", f"{library.NAME}.distributed.run"]


@pytest.fixture
def script(tmp_path):
    def write(text):
        path = tmp_path / "train.py"
        path.write_text(textwrap.dedent(text))
        return str(path)

    return write


@pytest.fixture(autouse=True)
def nothing_stays(tmp_path):
    """No process of the test's folder, and no shared memory."""
    before = orphans()
    yield
    deadline = time.monotonic() + 20
    while processes_of(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not processes_of(tmp_path)
    assert not stay_after(before)


def processes_of(folder):
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = pathlib.Path(f"/proc/{number}/cmdline").read_bytes()
            state = pathlib.Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if str(folder).encode() in words and state != "Z":
            found.append(int(number))
    return found


def run(*words, seconds=60, **environment):
    own = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    return subprocess.run([*RUN, *words], capture_output=True, text=True, timeout=seconds, env={**own, **environment})


def test_variables(script):
    path = script(
        """
        import json, os, sys, torch
        names = ("RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE ROLE_RANK ROLE_WORLD_SIZE ROLE_NAME "
                 "TORCHELASTIC_RESTART_COUNT TORCHELASTIC_MAX_RESTARTS TORCHELASTIC_RUN_ID OMP_NUM_THREADS").split()
        told = {name: os.environ[name] for name in names}
        assert torch.__name__ == "torch" and os.environ["MASTER_ADDR"] and int(os.environ["MASTER_PORT"])
        assert torch.distributed.is_torchelastic_launched()
        sys.stdout.write(json.dumps([told, sys.argv[1:]]) + "\\n")
        """
    )
    done = run("--nproc-per-node", "2", "--rdzv-id", "job7", "--max-restarts=3", path, "--epochs", "3", "-x")
    assert done.returncode == 0, done.stderr
    told = sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda pair: pair[0]["RANK"])
    assert [own["RANK"] for own, _ in told] == ["0", "1"]
    own, arguments = told[1]
    assert arguments == ["--epochs", "3", "-x"]
    threads = str(max(1, len(os.sched_getaffinity(0)) // 2))
    assert own == {
        "RANK": "1",
        "LOCAL_RANK": "1",
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "ROLE_RANK": "1",
        "ROLE_WORLD_SIZE": "2",
        "ROLE_NAME": "default",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "3",
        "TORCHELASTIC_RUN_ID": "job7",
        "OMP_NUM_THREADS": threads,
    }


REDUCE = """
import torch, torch.distributed as dist
dist.init_process_group()
x = torch.ones(3)
dist.all_reduce(x)
assert x.tolist() == [dist.get_world_size()] * 3
"""


@pytest.mark.parametrize("start", ["run", "script", "launcher"])
def test_collectives(script, start):
    path = script(REDUCE + "import sys\nsys.stdout.write('fine\\n')")
    command = {
        "run": [*RUN, "--standalone", "--nproc_per_node=2", path],
        "script": [str(pathlib.Path(sys.executable).parent / "gradiron-run"), "--nproc-per-node", "2", path],
        "launcher": [sys.executable, "-m", library.NAME, "-m", "torch.distributed.run", "--nproc-per-node", "2", path],
    }[start]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("fine") == 2


def test_a_module_and_a_command(script, tmp_path):
    script("import sys, os\nsys.stdout.write(f\"{os.environ['RANK']} {sys.argv[1]}\\n\")")
    done = run("--nproc-per-node", "2", "-m", "train", "hello", PYTHONPATH=str(tmp_path))
    assert sorted(done.stdout.split("\n")[:2]) == ["0 hello", "1 hello"], done.stderr
    done = run("--nproc-per-node", "2", "--no-python", "echo", "hello")
    assert done.stdout == "hello\nhello\n"


def test_a_failure_is_told_in_a_table(script):
    path = script(
        """
        import os, time
        from torch.distributed.elastic.multiprocessing.errors import record
        @record
        def main():
            if os.environ["RANK"] == "1":
                raise ValueError("out of ideas")
            time.sleep(60)
        main()
        """
    )
    begin = time.monotonic()
    done = run("--nproc-per-node", "2", path)
    assert time.monotonic() - begin < 30
    assert done.returncode == 1
    table = done.stderr[done.stderr.index("FAILED") :]
    root = table[table.index("Root Cause (first observed failure):") :]
    assert "rank      : 1 (local_rank: 1)" in root and "exitcode  : 1" in root
    assert "ValueError: out of ideas" in root
    assert "Signal 15 (SIGTERM)" in table


def test_a_rank_that_raises_names_itself(script):
    path = script(REDUCE + "if dist.get_rank() == 1: raise ValueError('enough')\ndist.barrier()")
    done = run("--nproc-per-node", "2", path)
    assert done.returncode == 1
    assert "[rank1]: ValueError: enough" in done.stderr


def test_restarts(script, tmp_path):
    path = script(
        REDUCE
        + f"""
import os, pathlib
attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
pathlib.Path({str(tmp_path)!r}, f"was{{attempt}}-{{dist.get_rank()}}").touch()
if attempt != "2" and dist.get_rank() == 0:
    os._exit(3)
dist.barrier()
"""
    )
    done = run("--nproc-per-node", "2", "--max-restarts", "2", path)
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in tmp_path.glob("was*-0")) == ["was0-0", "was1-0", "was2-0"]


def test_logs(script, tmp_path):
    path = script("import os, sys\nsys.stdout.write('out' + os.environ['RANK'] + '\\n')\nsys.stderr.write('err\\n')")
    done = run("--nproc-per-node", "2", "--log-dir", str(tmp_path / "logs"), "-r", "2", "-t", "1", "--rdzv-id", "job", path)
    assert sorted(done.stdout.split("\n")[:2]) == ["[default0]:out0", "[default1]:out1"], done
    (logs,) = (tmp_path / "logs").glob("job*")
    assert (logs / "attempt_0" / "1" / "stdout.log").read_text() == "out1\n"
    assert (logs / "attempt_0" / "0" / "stderr.log").read_text() == "err\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_launcher_ends(script, number):
    path = script(REDUCE + "import sys, time\nsys.stdout.write('runs\\n')\nsys.stdout.flush()\ntime.sleep(60)")
    launcher = subprocess.Popen(
        [*RUN, "--nproc-per-node", "2", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert launcher.stdout.readline() == "runs\n"
    launcher.send_signal(number)
    begin = time.monotonic()
    launcher.wait(30)
    assert time.monotonic() - begin < 30
    assert launcher.returncode != 0
    launcher.stdout.close()
    launcher.stderr.close()


def test_two_launchers(script):
    path = script(
        REDUCE
        + "import os, sys\nsys.stdout.write(f\"{os.environ['GROUP_RANK']} {dist.get_rank()} {dist.get_world_size()}\\n\")"
    )
    port = str(free_port())
    words = ["--nnodes", "2", "--nproc-per-node", "2", "--master-addr", "127.0.0.1", "--master-port", port]
    launchers = [
        subprocess.Popen(
            [*RUN, *words, "--node-rank", str(node), path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for node in (0, 1)
    ]
    outs = [launcher.communicate(timeout=60) for launcher in launchers]
    assert all(launcher.returncode == 0 for launcher in launchers), outs
    lines = sorted("".join(out for out, _ in outs).splitlines())
    assert lines == ["0 0 4", "0 1 4", "1 2 4", "1 3 4"]


def test_a_failure_on_another_machine_ends_this_one(script):
    path = script("import os, sys, time\nif os.environ['RANK'] == '1': sys.exit(3)\ntime.sleep(60)")
    endpoint = f"127.0.0.1:{free_port()}"
    words = ["--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint]
    launchers = [
        subprocess.Popen([*RUN, *words, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in (0, 1)
    ]
    outs = [launcher.communicate(timeout=30) for launcher in launchers]
    assert [launcher.returncode for launcher in launchers] == [1, 1], outs


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--nnodes", "1:4"], "a number of machines that changes"),
        (["--rdzv-backend", "etcd"], "--rdzv-backend etcd"),
        (["--nproc-per-node", "many"], "Unsupported nproc_per_node value: many"),
        (["--nproc-per-node", "0"], "must be at least 1"),
        (["-r", "9"], "does not match"),
    ],
)
def test_options_that_cannot_be(words, says, script):
    done = run(*words, script("pass"))
    assert done.returncode != 0 and says in done.stderr


def test_a_port_that_is_taken(script):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run("--master-port", str(taken.getsockname()[1]), script("pass"))
    assert done.returncode != 0
    assert "port" in done.stderr


def test_functions():
    code = f"""
from {library.NAME}.distributed.launcher.api import LaunchConfig, elastic_launch
import os
def work(x):
    return int(os.environ["RANK"]) * x
if __name__ == "__main__":
    config = LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=2, start_method="fork")
    assert elastic_launch(config, work)(10) == {{0: 0, 1: 10}}
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_spawn(script):
    """`torch.multiprocessing.spawn` starts ranks, too."""
    path = script(
        f"""
        import torch, torch.distributed as dist
        def work(rank, size):
            dist.init_process_group("gloo", init_method="tcp://127.0.0.1:{free_port()}", rank=rank, world_size=size)
            x = torch.ones(2)
            dist.all_reduce(x)
            assert x.tolist() == [2, 2]
            dist.destroy_process_group()
        if __name__ == "__main__":
            torch.multiprocessing.spawn(work, (2,), nprocs=2)
        """
    )
    done = subprocess.run([sys.executable, "-m", library.NAME, path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
