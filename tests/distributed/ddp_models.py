"""Models, batches and training loops for the tests of `DistributedDataParallel`."""

import contextlib

import library

T = library.T
dist = T.distributed
nn = T.nn
BATCH = 8

_groups = {}


def first_ranks(size):
    """The group of the first ranks of the world; None on the others."""
    if size not in _groups:
        _groups[size] = dist.new_group(list(range(size)))
    return _groups[size] if dist.get_rank() < size else None


def part_of(values, rank, size):
    """A rank's part of a batch."""
    each = len(values) // size
    return values[rank * each : (rank + 1) * each]


class Net(nn.Module):
    """Layers of several kinds, and parameters of no dimension and of no element."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3)
        self.norm = nn.GroupNorm(1, 3)
        self.scale = nn.Parameter(T.ones(()))
        self.hidden = nn.Linear(12, 5)
        self.empty = nn.Parameter(T.ones(0))
        self.out = nn.Linear(5, 2)

    def forward(self, x):
        x = T.tanh(self.norm(self.conv(x)) * self.scale).flatten(1)
        return self.out(T.tanh(self.hidden(x))) + self.empty.sum()


def batches(steps, dtype=None):
    generator = T.Generator().manual_seed(1)
    for _ in range(steps):
        yield T.randn(BATCH, 2, 4, 4, generator=generator, dtype=dtype), T.randn(BATCH, 2, generator=generator, dtype=dtype)


def make(kind=Net, dtype=T.float64, seed=0, **options):
    T.manual_seed(seed)
    return kind(**options).to(dtype)


def train(model, rank, size, *, steps=4, dtype=T.float64, set_to_none=True, accumulate=1):
    """Trains a model, and returns its parameters' gradients after each step, and the losses."""
    optimizer = T.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    seen, losses = [], []
    for x, y in batches(steps, dtype):
        optimizer.zero_grad(set_to_none=set_to_none)
        x, y = part_of(x, rank, size), part_of(y, rank, size)
        total = 0.0
        for at in range(accumulate):
            context = model.no_sync() if at + 1 < accumulate and hasattr(model, "no_sync") else contextlib.nullcontext()
            with context:
                loss = nn.functional.mse_loss(model(part_of(x, at, accumulate)), part_of(y, at, accumulate)) / accumulate
                loss.backward()
            total += loss.item()
        seen.append([None if p.grad is None else p.grad.tolist() for p in model.parameters()])
        losses.append(total)
        optimizer.step()
    return seen, losses


def assert_close(got, expected, tolerance=1e-12, path=""):
    """Nested lists of numbers, and None, that agree."""
    if isinstance(expected, list):
        assert len(got) == len(expected), path
        for at, (a, b) in enumerate(zip(got, expected, strict=True)):
            assert_close(a, b, tolerance, f"{path}[{at}]")
    elif expected is None:
        assert got is None, path
    else:
        assert abs(got - expected) <= tolerance * max(1.0, abs(expected)), f"{path}: {got} != {expected}"
