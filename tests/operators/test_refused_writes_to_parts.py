"""A write to one part of a split that is refused has changed nothing: neither the parts, nor their base, nor the arguments."""

import random
import warnings

import pytest

from library import T

# PyTorch leaves some of these half done.
pytestmark = pytest.mark.gradiron

BASES = {
    "plain": lambda: T.arange(12.0).reshape(4, 3),
    "leaf": lambda: T.arange(12.0).reshape(4, 3).requires_grad_(),
    "recorded": lambda: T.arange(12.0).reshape(4, 3).requires_grad_() * 2,
    "whole numbers": lambda: T.arange(12).reshape(4, 3),
    "transposed": lambda: T.arange(12.0).reshape(3, 4).t(),
}
SPLITS = {
    "split": lambda x: x.split(2),
    "split with sizes": lambda x: x.split([1, 3]),
    "unsafe_split": lambda x: T.unsafe_split(x, 2),
    "unsafe_split_with_sizes": lambda x: T.unsafe_split_with_sizes(x, [2, 2]),
    "chunk": lambda x: x.chunk(2),
    "unsafe_chunk": lambda x: T.unsafe_chunk(x, 2),
    "unbind": lambda x: x.unbind(),
    "tensor_split": lambda x: x.tensor_split(2),
}
INPLACE = sorted(
    name
    for name in dir(T.Tensor)
    if name.endswith("_") and not name.startswith("_") and not name.startswith(("apply", "map", "share_memory", "sparse"))
)
WITH_OUT = "add max sort topk cummax kthvalue aminmax cat stack exp sum cumsum mm where gather take clamp nonzero".split()


def seen(t):
    t = t.detach()
    return tuple(t.shape), t.stride(), t.storage_offset(), t.dtype, repr(t.tolist())


def argument(parts, x):
    shape = tuple(parts[0].shape)
    choices = (
        lambda: T.ones(shape),
        lambda: T.ones(shape, requires_grad=True),
        lambda: T.zeros(shape, dtype=T.int64),
        lambda: T.ones(shape, dtype=T.complex64),
        lambda: T.ones(5),
        lambda: T.tensor([0, 99]),
        lambda: random.choice(parts),
        lambda: x,
        lambda: list(parts),
        lambda: random.choice((0, 1, -1, 2.5, 1j, 99, 2**40, None, "a", (2, 3), True)),
    )
    return random.choice(choices)()


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("base", BASES)
def test_a_refused_write_to_a_part_changes_nothing(base, split):
    random.seed(f"{base} {split}")
    refused = 0
    for _ in range(150):
        x = BASES[base]()
        parts = list(SPLITS[split](x))
        part = random.choice(parts)
        args = [argument(parts, x) for _ in range(random.choice((0, 1, 1, 2, 2, 3)))]
        if random.random() < 0.6:
            call = getattr(part, random.choice(INPLACE))
        else:
            function, twice = getattr(T, random.choice(WITH_OUT)), random.random() < 0.4
            out = (part, random.choice(parts)) if twice else part
            args.insert(0, random.choice(parts))

            def call(*args, function=function, out=out):
                return function(*args, out=out)

        watched = [x, *parts, *(a for a in args if isinstance(a, T.Tensor))]
        before = [seen(t) for t in watched]
        with warnings.catch_warnings(), T.set_grad_enabled(random.random() < 0.5):
            warnings.simplefilter("ignore")
            try:
                call(*args)
                continue
            except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, AttributeError):
                refused += 1
        assert [seen(t) for t in watched] == before, (call, args)
    assert refused > 50
