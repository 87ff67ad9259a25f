"""What goes wrong on one rank is an error on the others, soon; nothing hangs, nothing is left behind."""

import os
import signal
import time

import pytest
from worlds import World, orphans, run, stay_after

import library

pytestmark = pytest.mark.gradiron

BEGIN = """
dist.init_process_group(timeout=datetime.timedelta(seconds=60))
x = torch.ones(4)
dist.all_reduce(x)
"""


@pytest.fixture(autouse=True)
def nothing_stays():
    """No process, no shared memory."""
    before = orphans()
    yield
    assert not stay_after(before)


def survivor(program, what, **environment):
    """Runs two ranks of which rank 1 goes wrong; how rank 0 ends, and how long after."""
    world = World(BEGIN, program, **environment)
    assert world.read_line(1) == "now"
    begin = time.monotonic()
    world.ranks[0].wait(20)
    took = time.monotonic() - begin
    (code, _, error), _ = world.finish()
    assert code == 1, error
    assert what in error, error
    return took, error


def test_a_rank_that_raises(tmp_path):
    took, error = survivor(
        """
        if rank == 1:
            print("now", flush=True)
            raise ValueError("out of ideas")
        dist.all_reduce(x)
        """,
        "rank 1: ValueError: out of ideas during all_reduce #2",
    )
    assert took < 10
    assert all(line.startswith("[rank0]: ") for line in error.splitlines())


def test_a_rank_that_is_killed():
    took, _ = survivor(
        """
        if rank == 1:
            print("now", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(x)
        """,
        "rank 1 ended (exit or signal) during all_reduce #2",
    )
    assert took < 10


def test_a_rank_that_leaves_early():
    took, _ = survivor(
        """
        if rank == 1:
            print("now", flush=True)
            sys.exit(0)
        dist.all_reduce(x)
        """,
        "rank 1 ended during all_reduce #2",
    )
    assert took < 10


def test_a_rank_that_exits_at_once():
    took, _ = survivor(
        """
        if rank == 1:
            print("now", flush=True)
            os._exit(0)
        dist.barrier()
        """,
        "rank 1 ended (exit or signal) during barrier #2",
    )
    assert took < 10


def test_after_an_error_every_call_raises_it_again():
    world = World(
        BEGIN,
        """
        if rank == 1:
            os._exit(3)
        said = []
        for _ in range(3):
            try:
                dist.all_reduce(x)
            except RuntimeError as error:
                said.append(str(error))
        print(said[0] == said[1] == said[2], said[0])
        """,
    )
    (code, out, error), _ = world.finish()
    assert code == 0, error
    assert out.startswith("True rank 1 ended (exit or signal)")


def test_a_collective_that_nobody_joins_times_out():
    world = World(
        """
        dist.init_process_group(timeout=datetime.timedelta(seconds=1.5))
        x = torch.ones(4)
        dist.all_reduce(x)
        if rank == 0:
            dist.all_reduce(x)
        else:
            time.sleep(6)
        """
    )
    (code, _, error), _ = world.finish()
    assert code == 1
    assert "all_reduce #2 of group default_pg: Timed out after 1.5 s" in error
    assert "rank 1 (last in all_reduce #1)" in error


def test_asynchronous_work_fails_too():
    survivor(
        """
        work = dist.all_reduce(x, async_op=True) if rank == 0 else None
        if rank == 1:
            print("now", flush=True)
            os._exit(1)
        time.sleep(1)
        work.wait()
        """,
        "rank 1 ended (exit or signal) during all_reduce #2",
    )


def test_interrupt():
    world = World(
        BEGIN,
        """
        if rank == 0:
            print("waits", flush=True)
            dist.all_reduce(x)
        else:
            time.sleep(20)
        """,
    )
    assert world.read_line(0) == "waits"
    time.sleep(0.5)
    begin = time.monotonic()
    for process in world.ranks:
        process.send_signal(signal.SIGINT)
    (code, _, error), _ = world.finish()
    assert time.monotonic() - begin < 10
    assert "KeyboardInterrupt" in error and code != 0


def test_a_rank_that_never_comes():
    program = """
    try:
        dist.init_process_group(init_method=f"tcp://127.0.0.1:{os.environ['MASTER_PORT']}", rank=rank, world_size=3,
                                timeout=datetime.timedelta(seconds=2))
    except Exception as error:
        print(type(error).__name__, error)
    """
    world = World(program)
    ends = world.finish()
    assert any("2" in out and "DistStoreError" in out for _, out, _ in ends), ends


def test_a_forked_child_is_refused():
    outs = run(
        BEGIN,
        """
        if rank == 0:
            child = os.fork()
            if child == 0:
                try:
                    dist.all_reduce(x)
                except RuntimeError as error:
                    print(error, flush=True)
                os._exit(0)
            os.waitpid(child, 0)
        dist.all_reduce(x)
        dist.destroy_process_group()
        """,
    )
    assert "this process was forked after init_process_group" in outs[0]


def test_workers_of_a_loader_may_be_forked():
    run(
        BEGIN,
        """
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.arange(16)), num_workers=2, batch_size=4)
        for epoch in range(2):
            for (part,) in loader:
                total = part.sum().reshape(1)
                dist.all_reduce(total)
        dist.destroy_process_group()
        """,
    )


def test_programs_need_no_destroy():
    run(BEGIN, "assert x.tolist() == [2] * 4")


def test_a_second_start_of_the_same_ranks():
    run(
        """
        for at in range(3):
            dist.init_process_group()
            x = torch.ones(2)
            dist.all_reduce(x)
            assert x.tolist() == [2, 2]
            dist.barrier()
            dist.destroy_process_group()
            assert not dist.is_initialized()
            time.sleep(0.2)
        """
    )


def test_messages_sent_last_arrive():
    run(
        """
        dist.init_process_group()
        if rank == 0:
            dist.send(torch.ones(100_000), 1)
        else:
            time.sleep(0.5)
            x = torch.zeros(100_000)
            dist.recv(x, 0)
            assert x.sum() == 100_000
        """
    )


def test_monitored_barrier_names_who_is_missing():
    world = World(
        BEGIN,
        """
        if rank == 0:
            try:
                dist.monitored_barrier(timeout=datetime.timedelta(seconds=1))
            except RuntimeError as error:
                print(error, flush=True)
        else:
            time.sleep(2)
        """,
    )
    (_, out, _), _ = world.finish()
    assert "Rank 1 failed to pass monitoredBarrier in 1000 ms" in out


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("dist.all_reduce(x) if rank else dist.broadcast(x, 0)", "Op type: BROADCASTvs ALLREDUCE"),
        ("dist.all_reduce(torch.ones(2 + rank))", "Tensor Tensor shapes: [(2,)]vs [(3,)]"),
        ("dist.all_reduce(torch.ones(2, dtype=torch.float64 if rank else torch.float32))", "Tensor Tensor dtypes"),
    ],
)
def test_detail_finds_what_differs(call, says):
    world = World(BEGIN, call, TORCH_DISTRIBUTED_DEBUG="DETAIL")
    (code, _, error), _ = world.finish()
    assert code == 1
    assert "Detected mismatch between collectives on ranks. Rank 0 is running collective: CollectiveFingerPrint(" in error
    assert says in error, error


def test_without_mpi4py_the_extra_is_named(tmp_path):
    (tmp_path / "mpi4py.py").write_text("raise ImportError('No module named mpi4py')")
    world = World("dist.init_process_group()", PYTHONPATH=f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    for code, _, error in world.finish():
        assert code == 1
        assert "pip install gradiron[mpi]" in error


def test_the_library_is_the_one_under_test():
    assert library.IS_GRADIRON
