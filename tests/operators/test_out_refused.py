"""`out=` of every row: a call that is refused has written and resized nothing, whichever target was wrong, and how."""

import functools
import itertools
import warnings

import pytest

from library import IS_GRADIRON, T

if not IS_GRADIRON:
    pytest.skip("reads gradiron's rows", allow_module_level=True)

ROWS = {row["name"]: row for row in T._core.rows() if row["out"]}


def operands():
    """Something for each kind of parameter, the likeliest first."""
    x = T.tensor([[0.5, 0.25, 0.75], [0.1, 0.2, 0.3], [0.7, 0.6, 0.9]])
    index = T.tensor([[0, 1, 2], [2, 0, 1], [1, 2, 0]])
    tensors = [x, index, x[0], index[0], T.stack([x, x]), x > 0.5, T.complex(x, x), T.stack([x, x], -1)]
    return {
        "Tensor": tensors,
        "Operand": [x, 2, index],
        "Tensors": [[x, x]],
        "Several": [[x, x]],
        "Int": [1, 0],
        "Ints": [(1,), (0,), (3, 3), (1, 2)],
        "Sizes": [(3, 3)],
        "Scalar": [2],
        "Float": [0.5],
        "Bool": [True],
        "Any": [1, 3],
        "Str": ["sum", "none", "amax"],
    }


def volumes():
    """Calls whose operands have more dimensions than a search by kinds should try."""
    x = T.arange(8.0).reshape(1, 2, 2, 2)
    at = T.arange(8).reshape(1, 2, 2, 2)
    return {
        "avg_pool3d": [x, 1],
        "max_pool3d_with_indices": [x, 1],
        "adaptive_avg_pool3d": [x, (1, 2, 2)],
        "adaptive_max_pool3d": [x, (1, 2, 2)],
        "max_unpool2d": [x, at % 4, (2, 2)],
        "max_unpool3d": [x, at, (2, 2, 2), (1, 1, 1), (0, 0, 0)],
        "col2im": [x[0, 0], (1, 2), (1, 1), (1, 1), (0, 0), (1, 1)],
    } | matrices()


def matrices():
    """The same with matrices that have what is asked for."""
    a, pivots = T.eye(2) * 3 + 1, T.tensor([1, 2], dtype=T.int32)
    return {
        "linalg_cholesky": [a],
        "lu_unpack": [a, pivots],
        "linalg_lu_solve": [a, pivots, a],
        "linalg_ldl_solve": [a, pivots, a],
        "lu_solve": [a, a, pivots],
        "linalg_solve_triangular": [a, a],
        "linalg_tensorinv": [T.eye(6).reshape(2, 3, 6)],
        "linalg_lstsq": [T.eye(3, 2), T.ones(3, 1)],
    }


# What has to be given by name.
NAMED = {"linalg_solve_triangular": {"upper": True}, "linalg_lstsq": {"driver": "gelsd"}}


def call_of(row):
    """A function of `out` that works without, and the tensors that it reads."""
    function = getattr(T._core._nn if row["nn"] else T._core, row["name"])
    function = functools.partial(function, **NAMED.get(row["name"], {}))
    choices = operands()
    needed = [kind for _, kind, _, default in row["params"] if default is None]
    x = choices["Tensor"][0]
    # Of several results only those along a dimension have targets; a choice has two operands more, and random numbers a size.
    given = volumes().get(row["name"])
    for more in ([],) if given else ([], [1], [x, x], [5, (3,)]):
        for args in [given] if given else itertools.product(*(choices[kind] for kind in needed)):
            try:
                made = function(*args, *more)
                function(*args, *more, out=made)
            except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, AttributeError):
                continue
            read = [t for a in args for t in (a if isinstance(a, list) else [a]) if isinstance(t, T.Tensor)]
            return lambda **out: function(*args, *more, **out), read
    raise AssertionError(f"no call of {row['name']} was found")


def history(t):
    try:
        return t.is_leaf
    except RuntimeError as error:
        return str(error)


def state(t):
    whole = t.detach().as_strided((t.untyped_storage().nbytes() // t.itemsize,), (1,), 0)
    version = 0 if t.is_inference() else t._version
    place = (tuple(t.shape), t.stride(), t.storage_offset(), t.dtype, version, t.requires_grad, history(t))
    return place, whole.view(T.uint8).tolist() if whole.dtype != T.bool else whole.tolist()


def fresh(t):
    made = T.zeros_like(t)
    return made + 3 if t.dtype != T.bool else made


def lent(t):
    made = fresh(t).reshape(-1)[:1].clone()
    made.numpy()
    return made


def written_since(t):
    """A part of a split whose base was written in place: its history is lost."""
    base = T.stack([fresh(t).to(T.float32)] * 2).requires_grad_() * 1
    part = base.unbind()[0]
    base.mul_(2)
    return part


@T.no_grad()
def unrecorded(t):
    return fresh(t).to(T.float32).requires_grad_()[...]


HOSTILE = {
    **{f"as {kind}": lambda t, kind=kind: fresh(t).to(kind) for kind in (T.bool, T.uint8, T.int64, T.float64, T.complex64)},
    "of another shape": lambda t: fresh(t).new_zeros(5),
    "of another shape and dtype": lambda t: T.zeros(5, dtype=T.bool if t.dtype != T.bool else T.int64),
    "stretched": lambda t: fresh(t).reshape(-1)[0].expand(t.shape),
    "lent to NumPy and too short": lent,
    "wanting gradients": lambda t: fresh(t).to(T.float32).requires_grad_(),
    "a view of a leaf": lambda t: fresh(t).to(T.float32).requires_grad_()[...],
    "a part of a split": lambda t: T.stack([fresh(t).to(T.float32).requires_grad_()] * 2).unbind()[0],
    "a part of a split, written since": written_since,
    "a view of a leaf, made under no_grad": unrecorded,
    "a list": lambda t: [fresh(t)],
    "a number": lambda t: 1.0,
}


def untouched(call, out, read, *, strict=False):
    """Whether the call went through; if not, that it changed nothing."""
    parts = out if isinstance(out, (tuple, list)) else [out]
    parts = [p for p in (*parts, *read) if isinstance(p, T.Tensor)]
    before = [state(p) for p in parts]
    with warnings.catch_warnings():
        warnings.simplefilter("error" if strict else "ignore")
        try:
            call(out=out)
        except UserWarning:
            # Of a resizing: all is written.
            return True
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
            assert [state(p) for p in parts] == before
            return False
    return True


@pytest.mark.parametrize("name", ROWS)
def test_a_refused_target_is_untouched(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call, read = call_of(ROWS[name])
        made = call()
    single = not isinstance(made, tuple)
    made = [made] if single else list(made)
    give = (lambda targets: targets[0]) if single else tuple
    assert untouched(call, give([fresh(t) for t in made]), read)
    for at, how in itertools.product(range(len(made)), HOSTILE):
        targets = [fresh(t) for t in made]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            targets[at] = HOSTILE[how](made[at])
        for strict in (False, True):
            untouched(call, give(targets), read, strict=strict)
    for t in read:
        for at, target in itertools.product(range(len(made)), (t, t.reshape(-1)[1:], t.reshape(-1)[:2])):
            targets = [fresh(m) for m in made]
            targets[at] = target
            before = state(t)
            if not untouched(call, give(targets), read):
                assert state(t) == before
            else:
                call, read = call_of(ROWS[name])
    if not single:
        twice = fresh(made[0])
        assert not untouched(call, (twice,) * len(made), read)
        assert not untouched(call, [fresh(m) for m in made[1:]], read)
        assert not untouched(call, tuple(fresh(m) for m in [*made, made[0]]), read)
