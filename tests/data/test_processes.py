"""What is left behind: no process, no shared memory. Tensors that processes share."""

import os
import signal
import subprocess
import sys
import time

import pytest

from library import IS_GRADIRON, NAME, T

if IS_GRADIRON:
    import gradiron.multiprocessing as mp
else:
    import torch.multiprocessing as mp

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc and /dev/shm")

# Each worker tells its number, and is in the middle of a batch when the parent is hit.
PROGRAM = f"""
import importlib, os, sys, time
T = importlib.import_module({NAME!r})
D = importlib.import_module({NAME!r} + ".utils.data")
class Data(D.Dataset):
    def __len__(self): return 100
    def __getitem__(self, i):
        time.sleep(0.02)
        return os.getpid(), T.full((50_000,), float(i))
loader = D.DataLoader(Data(), 2, num_workers=2, persistent_workers=PERSISTENT)
for i, (pids, x) in enumerate(loader):
    print(*pids.tolist(), flush=True)
    if i == 5: print("ready", flush=True)
    if i == 5 and LEAVE: break
"""


def start(persistent=False, leave=False):
    code = PROGRAM.replace("PERSISTENT", str(persistent)).replace("LEAVE", str(leave))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    child = subprocess.Popen([sys.executable, "-W", "ignore", "-c", code], start_new_session=True, **pipes)
    pids = set()
    while (line := child.stdout.readline().strip()) not in ("ready", ""):
        pids.update(map(int, line.split()))
    return child, pids


def there(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def left_after(pids, seconds):
    until = time.monotonic() + seconds
    while any(map(there, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    return [pid for pid in pids if there(pid)]


@linux
@pytest.mark.gradiron
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("how", ["group", "parent", "term", "kill", "leave"])
def test_nothing_is_left_behind(how, persistent):
    shared = set(os.listdir("/dev/shm"))
    child, pids = start(persistent, how == "leave")
    assert len(pids) == 2
    numbers = {"group": signal.SIGINT, "parent": signal.SIGINT, "term": signal.SIGTERM, "kill": signal.SIGKILL}
    if how == "group":  # As the terminal does at Ctrl-C.
        os.killpg(child.pid, numbers[how])
    elif how != "leave":
        child.send_signal(numbers[how])
    _, errors = child.communicate(timeout=30)
    assert left_after(pids, 15) == []
    assert (child.returncode == 0) == (how == "leave")
    if how in ("group", "parent"):
        assert "KeyboardInterrupt" in errors and "in DataLoader worker" not in errors and errors.count("Traceback") == 1
    # Names there are none of ours; others may come and go.
    assert not any("gradiron" in name or "torch" in name for name in set(os.listdir("/dev/shm")) - shared)


@linux
@pytest.mark.gradiron
def test_many_epochs_leave_no_process_and_no_file():
    code = f"""
import importlib, os, gc
T = importlib.import_module({NAME!r})
D = importlib.import_module({NAME!r} + ".utils.data")
def state():
    gc.collect()
    return len(os.listdir("/proc/self/fd")), sum("memfd" in line for line in open("/proc/self/maps"))
data = D.TensorDataset(T.arange(40_000).reshape(40, 1000))
list(D.DataLoader(data, 4, num_workers=2))
first = state()
for i in range(5):
    for j, batch in enumerate(D.DataLoader(data, 4, num_workers=2)):
        if j == i: break
del batch
import multiprocessing
print(state() == first, state()[1], multiprocessing.active_children())
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["True", "0", "[]"]


def test_moving_to_shared_memory_keeps_views_together():
    x = T.arange(6.0)
    part, flat = x[2:4], x.view(2, 3)
    assert not x.is_shared()
    assert x.share_memory_() is x
    assert x.is_shared() and part.is_shared() and flat.is_shared() and not x.clone().is_shared()
    x[2] = 100
    assert part.tolist() == [100.0, 3.0] and flat.tolist() == [[0.0, 1.0, 100.0], [3.0, 4.0, 5.0]]
    where = x.data_ptr()
    assert x.share_memory_().data_ptr() == where
    assert T.empty(0).share_memory_().tolist() == []


@pytest.mark.gradiron
def test_moved_memory_may_grow_and_is_saved_for_derivatives():
    w = T.arange(3.0).requires_grad_()
    x = T.ones(3)
    y = (w * x).sum()
    x.share_memory_()
    y.backward()
    assert w.grad.tolist() == [1.0, 1.0, 1.0]
    x.resize_(1000)
    assert x[:3].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.gradiron
def test_memory_of_others_can_be_moved():
    import numpy as np

    array = np.arange(4.0)
    x = T.from_numpy(array)
    y = x[1:]
    x.share_memory_()
    y[0] = 50
    assert x.tolist() == [0.0, 50.0, 2.0, 3.0] and array.tolist() == [0.0, 1.0, 2.0, 3.0]


def add_one(x, done):
    x += 1
    done.set()


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_write_to_the_same_memory(method):
    context = mp.get_context(method)
    x, done = T.zeros(3).share_memory_(), context.Event()
    process = context.Process(target=add_one, args=(x, done))
    process.start()
    process.join(30)
    assert done.is_set() and x.tolist() == [1.0, 1.0, 1.0]


def give(queue, taken):
    x = T.arange(4.0)
    queue.put({"x": x, "part": x[1:3], "p": T.nn.Parameter(T.ones(2))})
    taken.wait(30)  # Its end of the memory is asked for when the message is read.


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork")
def test_queues():
    context = mp.get_context("fork")
    queue, taken = context.Queue(), context.Event()
    process = context.Process(target=give, args=(queue, taken))
    process.start()
    got = queue.get(timeout=30)
    taken.set()
    process.join(30)
    assert got["x"].tolist() == [0.0, 1.0, 2.0, 3.0] and got["x"].is_shared()
    got["x"][1] = 9
    assert got["part"].tolist() == [9.0, 2.0]
    assert isinstance(got["p"], T.nn.Parameter) and got["p"].requires_grad


def test_histories_are_not_sent():
    from multiprocessing.reduction import ForkingPickler

    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        ForkingPickler.dumps(T.ones(1, requires_grad=True) * 2)


def test_strategies():
    assert "file_descriptor" in mp.get_all_sharing_strategies()
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() == "file_system"
    mp.set_sharing_strategy(before)
    with pytest.raises(AssertionError):
        mp.set_sharing_strategy("carrier pigeon")


def fine(i, x):
    x[i] = i + 1


def raising(i, x):
    if i == 1:
        raise ValueError("not this one")
    time.sleep(20)


def dying(i, x):
    os.kill(os.getpid(), signal.SIGKILL)


def leaving(i, x):
    sys.exit(3)


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork")
def test_functions_in_several_processes():
    x = T.zeros(2).share_memory_()
    mp.start_processes(fine, (x,), 2, start_method="fork")
    assert x.tolist() == [1.0, 2.0]
    start = time.monotonic()
    with pytest.raises(mp.ProcessRaisedException, match="Process 1 terminated with the following error:(?s:.*)not this one"):
        mp.start_processes(raising, (x,), 2, start_method="fork")
    assert time.monotonic() - start < 10
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with signal SIGKILL") as caught:
        mp.start_processes(dying, (x,), 1, start_method="fork")
    assert caught.value.signal_name == "SIGKILL" and caught.value.exit_code == -9
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with exit code 3"):
        mp.start_processes(leaving, (x,), 1, start_method="fork")


def test_modules_in_shared_memory():
    module = T.nn.Linear(2, 3).share_memory()
    assert all(p.is_shared() for p in module.parameters())
