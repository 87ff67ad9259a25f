"""Each rank hears of the death of another, whatever it dies of."""

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

ENDED = "rank 1 ended (exit or signal)"


@pytest.fixture
def server():
    server = core.StoreServer("127.0.0.1", 0)
    yield server
    server.stop()


def watch(server, rank, size=2, job="job"):
    return core.Watch("127.0.0.1", server.port, job, rank, size)


def until(look, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not look() and time.monotonic() < deadline:
        time.sleep(0.005)
    return look()


def process(server, program, rank=1, size=2):
    """Another rank, which says `ready` when it watches."""
    text = f"""
import os, signal, sys, time
from gradiron._core import _distributed as core
watch = core.Watch("127.0.0.1", {server.port}, "job", {rank}, {size})
print("ready", flush=True)
sys.stdin.readline()
{program}
"""
    child = subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    return child


def go(child):
    child.stdin.write("\n")
    child.stdin.flush()


def test_all_live(server):
    first, second = watch(server, 0), watch(server, 1)
    time.sleep(0.3)
    assert first.failure() is None and second.failure() is None
    assert until(lambda: server.ranks() == 2)


def test_kill(server):
    ours = watch(server, 0)
    child = process(server, "time.sleep(60)")
    os.kill(child.pid, signal.SIGKILL)
    begin = time.monotonic()
    assert until(ours.failure) == ENDED
    assert time.monotonic() - begin < 1
    child.communicate()


@pytest.mark.parametrize(
    "program", ["sys.exit(0)", "os._exit(3)", "raise ValueError('no')", "del watch; time.sleep(60)", "os.abort()"]
)
def test_ends_without_goodbye(server, program):
    ours = watch(server, 0)
    child = process(server, program)
    go(child)
    assert until(ours.failure) == ENDED
    child.kill()
    child.communicate()


def test_goodbye_is_no_death(server):
    ours = watch(server, 0)
    child = process(server, "watch.goodbye()")
    go(child)
    child.communicate(timeout=20)
    assert until(ours.left) == [1]
    time.sleep(0.2)
    assert ours.failure() is None
    assert server.ranks() == 1
    ours.goodbye()
    assert ours.failure() is None
    assert until(lambda: server.ranks() == 0)
    ours.goodbye()


def test_a_reason(server):
    first, second, third = (watch(server, rank, 3) for rank in range(3))
    second.fail("ValueError: no")
    assert until(first.failure) == until(third.failure) == "rank 1: ValueError: no"
    # Only the first failure counts: the others may follow from it.
    third.fail("me, too")
    del second
    time.sleep(0.2)
    assert first.failure() == "rank 1: ValueError: no"


def test_a_long_reason(server):
    first, second = watch(server, 0), watch(server, 1)
    second.fail("é" * 100_000)
    assert until(first.failure).startswith("rank 1: éé")


def test_one_who_comes_late_hears_of_it(server):
    first, second = watch(server, 0, 3), watch(server, 1, 3)
    second.goodbye()
    first.fail("early")
    late = watch(server, 2, 3)
    assert until(late.failure) == "rank 0: early"
    assert until(late.left) == [1]


def test_the_end_of_the_server(server):
    ours = watch(server, 0)
    server.stop()
    assert until(ours.failure) == f"the store at 127.0.0.1:{server.port} ended"


def test_the_death_of_the_server():
    text = """
import sys
from gradiron._core import _distributed as core
server = core.StoreServer("127.0.0.1", 0)
print(server.port, flush=True)
sys.stdin.readline()
"""
    child = subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    port = int(child.stdout.readline())
    ours = core.Watch("127.0.0.1", port, "job", 0, 1)
    child.kill()
    assert until(ours.failure) == f"the store at 127.0.0.1:{port} ended"
    child.communicate()


def test_notes(server):
    first, second = watch(server, 0, 3), watch(server, 1, 3)
    assert first.notes() == [None, None, None]
    first.note("all_reduce #41 of group 0")
    assert first.notes() == ["all_reduce #41 of group 0", None, None]
    second.note("")
    second.note("barrier #3 of group 1")
    assert until(lambda: first.notes()[1]) == "barrier #3 of group 1"
    begin = time.perf_counter()
    for number in range(10_000):
        first.note(f"all_reduce #{number} of group 0")
    assert time.perf_counter() - begin < 0.5
    assert first.notes()[0] == "all_reduce #9999 of group 0"


def test_jobs_and_reuse(server):
    first, second = watch(server, 0), watch(server, 1)
    other = watch(server, 0, job="other")
    first.goodbye()
    second.goodbye()
    again = watch(server, 0), watch(server, 1)
    time.sleep(0.2)
    assert [w.failure() for w in again] == [None, None]
    assert again[0].left() == []
    again[0].fail("now")
    assert until(again[1].failure) == "rank 0: now"
    assert other.failure() is None


def test_a_stopped_process_is_no_death_at_once(server):
    ours = watch(server, 0)
    child = process(server, "watch.goodbye()")
    os.kill(child.pid, signal.SIGSTOP)
    time.sleep(2.5)
    assert ours.failure() is None
    os.kill(child.pid, signal.SIGCONT)
    go(child)
    child.communicate(timeout=20)
    assert until(ours.left) == [1]


def test_bad_ranks(server):
    for rank, size in ((2, 2), (-1, 2), (0, 0)):
        with pytest.raises(ValueError, match=f"rank {rank} is not in a world of size {size}"):
            watch(server, rank, size)


def test_no_server():
    with pytest.raises(TimeoutError, match=r"trying to connect to \(127.0.0.1, 1\)"):
        core.Watch("127.0.0.1", 1, "job", 0, 1, timeout=0.2)


FORK = """
ready, told = os.pipe()
child = os.fork()
if child == 0:
    {child}
    os.write(told, b"1")
    time.sleep(60)
    os._exit(0)
os.read(ready, 1)
print(child, flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_a_forked_child_that_outlives_its_rank(server, end):
    ours = watch(server, 0)
    child = process(server, FORK.format(child="watch.abandon(); watch.abandon()") + end)
    go(child)
    grandchild = int(child.stdout.readline())
    try:
        assert until(ours.failure) == ENDED
        child.wait(10)
    finally:
        os.kill(grandchild, signal.SIGKILL)
        child.communicate()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("used", ["watch.abandon(); del watch", "del watch", "watch.goodbye(); watch.fail('x')"])
def test_the_end_of_a_forked_child_is_no_death(server, used):
    ours = watch(server, 0)
    text = (
        FORK.format(child=used).replace("time.sleep(60)", "sys.exit(0)")
        + "os.waitpid(child, 0); time.sleep(0.3); watch.goodbye()"
    )
    child = process(server, text)
    go(child)
    child.communicate(timeout=20)
    assert until(ours.left) == [1]
    assert ours.failure() is None
