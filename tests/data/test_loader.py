"""The data loader, in this process and with workers."""

import os
import random
import signal
import sys
import time

import numpy as np
import pytest

from library import IS_GRADIRON, T

if IS_GRADIRON:
    import gradiron.utils.data as D
else:
    import torch.utils.data as D

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create", "ignore:.*multi-threaded, use of fork")
WORKERS = [0, 1, 2]


class Squares(D.Dataset):
    def __init__(self, n=10):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return i * i


class Count(D.IterableDataset):
    def __init__(self, n=7, length=None):
        self.n, self.length = n, length

    def __iter__(self):
        info = D.get_worker_info()
        return iter(range(self.n) if info is None else range(info.id, self.n, info.num_workers))

    def __len__(self):
        if self.length is None:
            raise TypeError("endless")
        return self.length


def batches(*args, **options):
    return [b.tolist() if isinstance(b, T.Tensor) else b for b in D.DataLoader(*args, **options)]


@pytest.mark.parametrize("workers", WORKERS)
def test_batches(workers):
    assert batches(Squares(5), 2, num_workers=workers) == [[0, 1], [4, 9], [16]]
    assert batches(Squares(5), 2, drop_last=True, num_workers=workers) == [[0, 1], [4, 9]]
    assert batches(Squares(3), None, num_workers=workers) == [0, 1, 4]
    assert batches(Squares(5), sampler=[3, 1], num_workers=workers) == [[9], [1]]
    assert batches(Squares(5), batch_sampler=[[3, 1], [0]], num_workers=workers) == [[9, 1], [0]]
    assert batches(Squares(3), 2, collate_fn=sum, num_workers=workers) == [1, 4]
    assert len(D.DataLoader(Squares(5), 2)) == 3 and len(D.DataLoader(Squares(5), 2, drop_last=True)) == 2


def test_the_order_does_not_depend_on_workers():
    found = []
    for workers in WORKERS:
        T.manual_seed(3)
        loader = D.DataLoader(Squares(), 3, shuffle=True, num_workers=workers)
        found.append([[b.tolist() for b in loader] for _ in range(2)])
    assert found[0] == found[1] == found[2] and found[0][0] != found[0][1]


class Rows(D.Dataset):
    """It takes lists of indices only."""

    def __len__(self):
        return 10

    def __getitem__(self, indices):
        return T.as_tensor(indices) if isinstance(indices, list) else None


class Parted(D.IterableDataset):
    def __init__(self, *sizes):
        self.sizes = sizes

    def __iter__(self):
        return iter(range(self.sizes[D.get_worker_info().id]))

    def __len__(self):
        return sum(self.sizes)


@pytest.mark.parametrize("workers", [0, 2])
def test_samplers_of_lists_without_batches(workers):
    sampler = [[0, 3], [1], [9, 8, 7]]
    assert batches(Rows(), None, sampler=sampler, num_workers=workers) == sampler


@pytest.mark.parametrize("prefetch", [2, 4])
def test_workers_whose_parts_differ(prefetch):
    options = {"num_workers": 3, "prefetch_factor": prefetch}
    assert sorted(batches(Parted(0, 2, 7), None, **options)) == [0, 0, 1, 1, 2, 3, 4, 5, 6]
    found = sorted(batches(Parted(0, 2, 7), 3, **options))
    assert found == [[0, 1], [0, 1, 2], [3, 4, 5], [6]]
    assert sorted(batches(Parted(0, 2, 7), 3, drop_last=True, **options)) == [[0, 1, 2], [3, 4, 5]]
    assert len(D.DataLoader(Parted(0, 2, 7), None, **options)) == 9


def test_more_than_was_told_is_warned_of_once_it_was_asked_for():
    loader = D.DataLoader(Parted(4, 4), None, num_workers=2)
    loader.dataset.__class__ = type("Lying", (Parted,), {"__len__": lambda self: 4})
    assert len(list(loader)) == 8
    assert len(loader) == 4
    walk = iter(loader)
    assert len([next(walk) for _ in range(4)]) == 4
    with pytest.warns(UserWarning, match="but 5 samples have been fetched. For multiprocessing data-loading, this"):
        next(walk)


@pytest.mark.parametrize(("size", "drop", "count"), [(1, True, 10), (2, False, 5), (3, False, 4), (3, True, 3)])
def test_how_many_batches_an_iterable_dataset_has(size, drop, count):
    assert (
        len(D.DataLoader(Count(10, 10), size, drop_last=drop))
        == len(list(D.DataLoader(Count(10), size, drop_last=drop)))
        == count
    )


def test_loaders_side_by_side():
    one, two = iter(D.DataLoader(Squares(), num_workers=1)), iter(D.DataLoader(Squares(), num_workers=2))
    assert [next(walk).item() for walk in (one, one, two, two, one, two)] == [0, 1, 0, 1, 4, 4]


def test_iterable_datasets():
    assert batches(Count(), 3) == [[0, 1, 2], [3, 4, 5], [6]]
    assert batches(Count(), 3, drop_last=True) == [[0, 1, 2], [3, 4, 5]]
    assert batches(Count(), 2, num_workers=2) == [[0, 2], [1, 3], [4, 6], [5]]
    assert len(D.DataLoader(Count(length=7), 3)) == 3
    loader = D.DataLoader(Count(length=5), None)
    assert len(loader) == 5
    with pytest.warns(UserWarning, match="Length of IterableDataset .* was reported to be 5"):
        assert len(list(loader)) == 7


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"num_workers": -1}, ValueError, "num_workers option should be non-negative"),
        ({"timeout": -1}, ValueError, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, ValueError, "prefetch_factor option could only be specified in multiprocessing"),
        ({"persistent_workers": True}, ValueError, "persistent_workers option needs num_workers > 0"),
        ({"sampler": [0], "shuffle": True}, ValueError, "sampler option is mutually exclusive with shuffle"),
        (
            {"sampler": [0], "batch_sampler": [[0]], "shuffle": 3},
            ValueError,
            "sampler option is mutually exclusive with shuffle",
        ),
        ({"batch_sampler": [[0]], "shuffle": True}, ValueError, "batch_sampler option is mutually exclusive with batch_size"),
        ({"batch_sampler": [[0]], "drop_last": 3}, ValueError, "batch_sampler option is mutually exclusive with batch_size"),
        ({"batch_size": 0}, ValueError, "batch_size should be a positive integer value, but got batch_size=0"),
        ({"batch_sampler": [[0]], "batch_size": 2}, ValueError, "batch_sampler option is mutually exclusive with batch_size"),
        ({"batch_size": None, "drop_last": True}, ValueError, "batch_size=None option disables auto-batching"),
        (
            {"multiprocessing_context": "fork"},
            ValueError,
            "multiprocessing_context can only be used with multi-process loading",
        ),
        ({"multiprocessing_context": "no", "num_workers": 1}, ValueError, "should specify a valid start method in"),
        ({"multiprocessing_context": 5, "num_workers": 1}, TypeError, "should be a valid context object or a string"),
    ],
)
def test_what_is_refused(options, kind, message):
    with pytest.raises(kind, match=message):
        D.DataLoader(Squares(), **options)


@pytest.mark.parametrize("options", [{"shuffle": True}, {"sampler": [0]}, {"batch_sampler": [[0]]}])
def test_iterable_datasets_have_an_order(options):
    with pytest.raises(ValueError, match=f"expected unspecified {next(iter(options))} option"):
        D.DataLoader(Count(), **options)


@pytest.mark.parametrize("name", ["batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"])
def test_what_may_not_be_set_later(name):
    loader = D.DataLoader(Squares())
    with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader is initialized"):
        setattr(loader, name, {})
    loader.timeout = 3


def test_datasets_that_grow():
    data = [0, 1, 2]
    plain, shuffled = D.DataLoader(data), D.DataLoader(data, shuffle=True)
    data.append(3)
    assert len(plain) == len(shuffled) == 4
    assert sorted(b.item() for b in shuffled) == [b.item() for b in plain] == data


def test_many_workers_are_warned_of():
    with pytest.warns(UserWarning, match="This DataLoader will create 9999 worker processes in total"):
        D.DataLoader(Squares(), num_workers=9999)


class Draws(D.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        info = D.get_worker_info()
        numbers = T.randint(0, 1000, (1,)).item(), random.randrange(1000), int(np.random.randint(1000))
        return info.id, info.num_workers, info.seed, T.get_num_threads(), *numbers


def test_seeds_of_workers_are_pytorchs():
    assert D.get_worker_info() is None
    T.manual_seed(7)
    found = list(map(tuple, D.DataLoader(Draws(), None, num_workers=2)))
    seed = found[0][2]
    assert [row[:4] for row in found] == [(0, 2, seed, 1), (1, 2, seed + 1, 1)] * 2
    drawn = [(293, 951, 828), (610, 570, 739), (235, 952, 156), (403, 601, 565)]
    assert [row[4:] for row in found] == drawn


class Seeds(Squares):
    def __getitem__(self, i):
        return T.initial_seed()


class Changed(Squares):
    """What a worker makes of its own copy."""

    def __getitem__(self, i):
        return self.value


def prepare(worker_id):
    info = D.get_worker_info()
    told = [worker_id == info.id, info.num_workers == 2, info.seed == T.initial_seed(), not hasattr(info.dataset, "value")]
    told += [f"{name}=" in repr(info) for name in ("id", "num_workers", "seed", "dataset")]
    try:
        info.id = 7
    except Exception as error:
        told.append("assign" in str(error))
    T.manual_seed(99)
    info.dataset.value = [worker_id, all(told), len(told), T.initial_seed()]


def test_what_workers_know_and_change():
    data = Changed(4)
    found = list(D.DataLoader(data, None, num_workers=2, worker_init_fn=prepare))
    assert found == [[0, True, 9, 99], [1, True, 9, 99]] * 2
    assert not hasattr(data, "value") and D.get_worker_info() is None


def test_generators_give_the_same_again():
    for workers in (0, 2):
        found = []
        for _ in range(2):
            loader = D.DataLoader(Squares(), 3, shuffle=True, num_workers=workers, generator=T.Generator().manual_seed(42))
            found.append([b.tolist() for b in loader])
        assert found[0] == found[1]
    seeds = [list(D.DataLoader(Seeds(2), None, num_workers=2, generator=T.Generator().manual_seed(5))) for _ in range(2)]
    assert seeds[0] == seeds[1] and len(set(seeds[0])) == 2


class Memory(D.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, i):
        base = T.arange(100_000.0) + i
        return {"base": base, "part": base[10:20], "turned": base.view(1000, 100).t(), "array": np.arange(5000) + i, "s": "w"}


def test_tensors_come_through_shared_memory():
    for i, got in enumerate(D.DataLoader(Memory(), None, num_workers=1)):
        assert got["base"].is_shared() and got["base"][0] == i
        assert got["turned"].shape == (100, 1000) and got["turned"].stride() == (1, 100)
        assert np.asarray(got["array"])[-1] == 4999 + i and got["s"] == "w"
        got["base"][12] = -1
        assert got["part"][2] == -1


class Parts(D.Dataset):
    """Small parts of much."""

    def __init__(self):
        self.all = T.arange(1 << 20)

    def __len__(self):
        return 3

    def __getitem__(self, i):
        return self.all[i * 1000 : i * 1000 + 2000 : 2]


@pytest.mark.gradiron
def test_of_large_tensors_only_the_parts_are_sent():
    for i, part in enumerate(D.DataLoader(Parts(), None, num_workers=1)):
        assert part.tolist() == list(range(i * 1000, i * 1000 + 2000, 2))
        assert part.untyped_storage().nbytes() < 20_000 and part.stride() == (2,)


class Pairs(D.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        return {"x": T.full((40, 500), float(i)), "y": T.full((30_000,), i), "small": T.tensor(i), "n": np.full(9000, i)}


def test_large_batches():
    """They are stacked to where the loader sees them; what comes is the same."""
    kept = list(D.DataLoader(Pairs(), 2, num_workers=2))
    for i, got in enumerate(kept):
        for name, shape in (("x", (2, 40, 500)), ("y", (2, 30_000)), ("small", (2,)), ("n", (2, 9000))):
            assert got[name].shape == shape and got[name].reshape(2, -1)[:, -1].tolist() == [2 * i, 2 * i + 1]
            assert name == "small" or got[name].is_shared()
        got["x"].zero_()
    assert [got["y"][0, 0].item() for got in kept] == [0, 2, 4]


class Numbered(Squares):
    def __getitem__(self, i):
        return T.full((20_000,), float(i))


def test_batches_that_are_kept_stay_what_they_are():
    """Memory is used again when nobody holds it, and not before; also by a view, an array, or a process that was forked."""
    kept = []
    for i, got in enumerate(D.DataLoader(Numbered(80), 2, num_workers=2)):
        assert got[:, -1].tolist() == [2 * i, 2 * i + 1]
        if i % 4 == 0:
            kept.append((i, got))
        elif i % 4 == 1:
            kept.append((i, got[:, 5:7]))
        elif i % 4 == 2:
            kept.append((i, np.asarray(got)))
        del got
    for i, held in kept:
        assert held[:, 0].tolist() == held[:, -1].tolist() == [2 * i, 2 * i + 1]


@pytest.mark.gradiron
def test_memory_is_used_again(monkeypatch):
    from gradiron.multiprocessing import _memory

    made, make = [], _memory.Segment.__init__
    monkeypatch.setattr(_memory.Segment, "__init__", lambda self, *args: (made.append(args), make(self, *args))[1])
    for i, got in enumerate(D.DataLoader(Numbered(60), 2, num_workers=1)):
        assert got[:, 0].tolist() == [2 * i, 2 * i + 1]
        del got
    assert 0 < len(made) < 10


class Sizes(Squares):
    def __getitem__(self, i):
        return T.full((20_000 + 100 * i,), float(i))


@pytest.mark.gradiron
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_of_memory_that_nobody_uses_little_is_kept():
    most = 0
    for i, got in enumerate(D.DataLoader(Sizes(60), 1, num_workers=1)):
        assert got[0, -1] == i
        del got
        with open("/proc/self/maps") as maps:
            most = max(most, sum("memfd:gradiron" in line for line in maps))
    assert most < 20


cache = []


def caching(batch):
    made = D.default_collate(batch)
    cache.append((made[0, 0].item(), made))
    assert all((x == value).all() for value, x in cache)
    return made


@pytest.mark.gradiron
def test_what_a_worker_keeps_is_not_written_over():
    for i, got in enumerate(D.DataLoader(Numbered(40), 1, num_workers=1, collate_fn=caching)):
        assert got[0, 0] == i
        del got


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fork_goes_on_seeing_what_it_saw():
    loader = iter(D.DataLoader(Numbered(60), 1, num_workers=1))
    got, (read, write) = next(loader), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0 if (got == 0).all() else 1)
    os.close(read)
    del got
    assert len(list(loader)) == 59
    os.write(write, b"x")
    os.close(write)
    assert os.waitpid(child, 0)[1] == 0


class Twice(Squares):
    def __getitem__(self, i):
        return T.full((20_000,), float(i))


def both(batch):
    x = D.default_collate(batch)
    return [x, x, x[0], x.t()]


def test_parts_of_large_batches_share_memory():
    for got in D.DataLoader(Twice(4), 2, num_workers=1, collate_fn=both):
        got[0][0, 5] = -1
        assert got[1][0, 5] == got[2][5] == got[3][5, 0] == -1


class Lacking(D.Dataset):
    def __len__(self):
        return 7


class Unwilling(D.IterableDataset):
    def __iter__(self):
        raise RuntimeError("not today")


@pytest.mark.parametrize("workers", [0, 2])
def test_every_batch_tells_its_own_error(workers):
    walk, errors = iter(D.DataLoader(Lacking(), 2, shuffle=True, num_workers=workers)), 0
    while True:
        try:
            next(walk)
        except NotImplementedError:
            errors += 1
        except StopIteration:
            break
    assert errors == 4
    with pytest.raises(RuntimeError, match="not today"):
        list(D.DataLoader(Unwilling(), num_workers=workers))


class Failing(Squares):
    def __getitem__(self, i):
        if i == 5:
            raise KeyError("five")
        return i


def test_exceptions_arrive_with_their_traceback():
    loader = iter(D.DataLoader(Failing(8), num_workers=2))
    assert [next(loader).item() for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(KeyError) as caught:
        next(loader)
    text = str(caught.value)
    assert text.startswith("Caught KeyError in DataLoader worker process 1.\nOriginal Traceback") and "__getitem__" in text
    # The others go on.
    assert [b.item() for b in loader] == [6, 7]


class Odd(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


class Oddly(Squares):
    def __getitem__(self, i):
        raise Odd(1, 2)


def fail(worker_id):
    raise ValueError(f"not {worker_id}")


def test_other_exceptions():
    with pytest.raises(RuntimeError, match="Caught Odd in DataLoader worker process 0"):
        batches(Oddly(), num_workers=1)
    with pytest.raises(ValueError, match="Caught ValueError in DataLoader worker process 0"):
        batches(Squares(), num_workers=1, worker_init_fn=fail)


class Unpicklable(Squares):
    def __getitem__(self, i):
        return lambda: i


@pytest.mark.gradiron
def test_what_cannot_be_sent_is_an_error():
    with pytest.raises((RuntimeError, AttributeError), match="in DataLoader worker process 0"):
        batches(Unpicklable(), None, num_workers=1)

    class WithHistory(Squares):
        def __getitem__(self, i):
            return T.ones(1, requires_grad=True) * 2

    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        batches(WithHistory(), None, num_workers=1, multiprocessing_context="fork")


class Dying(Squares):
    def __init__(self, how):
        super().__init__(8)
        self.how = how

    def __getitem__(self, i):
        if i == 3:
            self.how()
        return i


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def gone():
    os._exit(7)


@pytest.mark.parametrize(("how", "why"), [(killed, "is killed by signal: Killed"), (gone, "exited unexpectedly")])
def test_a_worker_that_dies_is_an_error_at_once(how, why):
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly") as caught:
        batches(Dying(how), num_workers=2)
    assert time.monotonic() - start < 5
    if IS_GRADIRON:
        assert why in str(caught.value.__cause__)


@pytest.mark.gradiron
def test_a_dead_worker_is_told_of_once():
    loader = iter(D.DataLoader(Dying(killed), num_workers=1, prefetch_factor=8))
    loader._workers[0].process.join(20)  # Its pipe and its process have both ended before anybody looks.
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly"):
        list(loader)


def wait():
    time.sleep(30)


def test_timeouts():
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.3 seconds"):
        loader = iter(D.DataLoader(Dying(wait), num_workers=1, timeout=0.3))
        [next(loader) for _ in range(4)]
    for worker in loader._workers:
        worker.kill()


class Who(Squares):
    def __getitem__(self, i):
        return os.getpid()


def test_persistent_workers():
    loader = D.DataLoader(Who(4), None, num_workers=2, persistent_workers=True)
    first = list(loader)
    assert list(loader) == first and len(set(first)) == 2
    # An epoch that is given up leaves nothing behind.
    loader = D.DataLoader(Squares(20), None, num_workers=2, persistent_workers=True)
    for _ in range(3):
        assert [next(iter(loader))] == [0]
        assert list(loader) == [i * i for i in range(20)]
    loader = D.DataLoader(Count(), None, num_workers=2, persistent_workers=True)
    assert sorted(loader) == sorted(loader) == list(range(7))


class Slow(Squares):
    def __getitem__(self, i):
        time.sleep(0.5 if i == 0 else 0)
        return i


def test_out_of_order():
    found = list(D.DataLoader(Slow(6), None, num_workers=2, in_order=False))
    assert sorted(found) == list(range(6)) and found[0] != 0
    assert list(D.DataLoader(Slow(6), None, num_workers=2)) == list(range(6))


def test_a_dataset_that_changes_is_seen_by_new_workers():
    data = Changed(2)
    data.value = 1
    kept, new = D.DataLoader(data, None, num_workers=2, persistent_workers=True), D.DataLoader(data, None, num_workers=1)
    assert list(kept) == list(new) == [1, 1]
    data.value = 2
    assert list(kept) == [1, 1] and list(new) == [2, 2]


class Whose(Squares):
    """Which worker had which index."""

    worker = None

    def begin(self, worker_id):
        self.worker = worker_id
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])

    def __getitem__(self, i):
        cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else {0}
        return self.worker, i, T.nn.functional.conv1d(T.ones(1, 1, 2400), T.ones(1, 1, 2)).shape[-1], len(cores)


def test_workers_take_turns():
    """After a fork, with what their function has set, and with kernels that use threads."""
    data = Whose(16)
    assert data[0][2] == 2399
    context = __import__("multiprocessing").get_context("fork")
    loader = D.DataLoader(data, 4, num_workers=2, worker_init_fn=data.begin, timeout=30, multiprocessing_context=context)
    for turn, (workers, indices, lengths, cores) in enumerate(loader):
        assert workers.tolist() == [turn % 2] * 4 and indices.tolist() == list(range(4 * turn, 4 * turn + 4))
        assert lengths.tolist() == [2399] * 4 and cores.tolist() == [1] * 4
    walk = iter(loader)
    next(walk)
    pids = [worker.pid for worker in walk._workers]
    assert all(worker.is_alive() for worker in walk._workers) and len(set(pids)) == 2


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_start_methods(method):
    assert batches(Squares(3), num_workers=1, multiprocessing_context=method) == [[0], [1], [4]]


def test_long_lists_of_indices():
    sampler = [list(range(5000)) for _ in range(40)]
    found = batches(Squares(5000), batch_sampler=sampler, num_workers=1, prefetch_factor=30, collate_fn=len)
    assert found == [5000] * 40


def test_pinned_memory_is_accepted():
    class Own:
        def pin_memory(self):
            return "pinned"

    import warnings

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "'pin_memory' argument is set as true but no accelerator")
        found = next(iter(D.DataLoader([1], collate_fn=lambda batch: [Own(), T.ones(1)], pin_memory=True)))
    if T.cuda.is_available():
        assert found[0] == "pinned"
    assert found[1].tolist() == [1.0]


@pytest.mark.gradiron
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_batches_keep_no_files_open():
    before = len(os.listdir("/proc/self/fd"))
    kept = list(D.DataLoader(Memory(), None, num_workers=1)) + list(D.DataLoader(Memory(), None, num_workers=1))
    assert len(kept) == 4 and len(os.listdir("/proc/self/fd")) <= before + 1
