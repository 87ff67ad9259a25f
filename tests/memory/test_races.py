"""One thread gives tensors other memory and other sizes while others read and write them: results may be anything of either
size, calls may be refused, but the process lives."""

import pytest

from library import python_ok

pytestmark = pytest.mark.gradiron

RACE = """
import threading, warnings
warnings.simplefilter("ignore")
T.set_num_threads(2)
SMALL, LARGE = 40_000, 400_000
END = time.monotonic() + 1.5

failed = []

def run(work):
    while time.monotonic() < END and not failed:
        try:
            work()
        except (RuntimeError, IndexError, ValueError, MemoryError):
            pass
        except BaseException as error:
            failed.append(error)

def race(*works):
    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    [t.start() for t in threads]
    [t.join() for t in threads]
    if failed:
        raise failed[0]

def fits(made):
    # No result claims more elements than it has memory for.
    for t in made if isinstance(made, (tuple, list)) else [made]:
        if isinstance(t, T.Tensor) and t._base is None and not any(t is shared for shared in (x, y, index, mask)):
            last = t.storage_offset() + sum((n - 1) * s for n, s in zip(t.shape, t.stride())) + 1
            assert last * t.itemsize <= t.untyped_storage().nbytes(), (t.shape, t.untyped_storage().nbytes())

x, y, index, mask = T.ones(LARGE), T.ones(LARGE), T.arange(LARGE), T.ones(LARGE) > 0

def swap():
    for n in (SMALL, LARGE):
        x.data = T.ones(n)
        index.data = T.arange(n)
        mask.data = T.ones(n) > 0

def resize():
    x.resize_(SMALL)
    x.untyped_storage().resize_(4 * SMALL)
    x.resize_(LARGE)
    x.set_(T.ones(SMALL))
    x.resize_(2 * LARGE)
    index.data = T.arange(x.numel() % LARGE + 1)
"""
READERS = {
    "elementwise": ["x + y", "x * x", "x.exp()", "T.where(mask, x, y)", "x.clamp(0, 1)", "T.add(x, y, out=T.empty(0))"],
    "reductions": [
        "x.sum()",
        "x.max(0)",
        "x.softmax(0)",
        "x.cumsum(0)",
        "x.cummax(0)",
        "x.cumprod(0)",
        "x.sort()",
        "x.var()",
        "x.topk(5)",
        "x.norm()",
    ],
    "shapes": [
        "x.flip(0)",
        "x.roll(3)",
        "T.cat([x, y, x])",
        "T.stack([x, x])",
        "x.clone()",
        "x.to(T.float64)",
        "x.reshape(-1, 1) * 2",
    ],
    "indexing": ["x[index]", "x[mask]", "x.gather(0, index)", "x.index_select(0, index)", "mask.nonzero()", "x.take(index)"],
    "writing": [
        "x.add_(y)",
        "x.mul_(2).sub_(x)",
        "x.copy_(y)",
        "y.copy_(x)",
        "x.zero_()",
        "x.fill_(3)",
        "x.index_add_(0, index, x)",
    ],
    "assigning": [
        "x[10:] = y[10:]",
        "x[index] = 1.0",
        "x[mask] = 2.0",
        "x.masked_fill_(mask, 0)",
        "x[index] = x",
        "x += x.flip(0)",
    ],
    "products": [
        "x.view(-1, 100) @ y.view(100, -1)[:, :10]",
        "x.dot(y)",
        "T.outer(x[:300], x[:300])",
        "x.view(-1, 200).mv(x[:200])",
    ],
    "showing": ["x.tolist()", "repr(x)", "x.numpy().sum()", "x.untyped_storage().tolist()[:3]", "x.unbind()[:3]"],
}


@pytest.mark.parametrize("how", ["swap", "resize"])
@pytest.mark.parametrize("readers", READERS)
def test_readers_hold_what_they_read(readers, how):
    statements = "\n    ".join(
        f"attempt({call!r})" if " = " in call or " += " in call else f"attempt(lambda: {call})" for call in READERS[readers]
    )
    python_ok(f"""{RACE}
def attempt(call):
    try:
        if call.__class__ is str:
            exec(call, globals())
        else:
            fits(call())
    except (RuntimeError, IndexError, ValueError, MemoryError):
        pass

def read():
    {statements}

race({how}, read, read)
""")


def test_gradients_of_leaves_that_change():
    python_ok(f"""{RACE}
leaf = T.ones(LARGE, requires_grad=True)

def backward():
    (leaf * leaf).sum().backward()

def change():
    leaf.data = T.ones(SMALL)
    leaf.grad = None
    leaf.data = T.ones(LARGE)
    grad = leaf.grad
    if grad is not None:
        grad.resize_(SMALL)

race(change, backward, backward)
""")


def test_masks_and_indices_that_are_written_meanwhile():
    python_ok(f"""{RACE}
def write():
    mask.fill_(False)
    mask.fill_(True)
    index.fill_(LARGE - 1)
    index.fill_(0)
    index.random_(0, 10**12)
    index.copy_(T.arange(LARGE))

def read():
    for call in (lambda: x[mask], lambda: mask.nonzero(), lambda: x.masked_select(mask), lambda: x[index],
                 lambda: y.index_put_((index,), x), lambda: x.gather(0, index), lambda: y.index_add_(0, index, x)):
        try:
            call()
        except (RuntimeError, IndexError):
            pass

race(write, read, read)
""")
