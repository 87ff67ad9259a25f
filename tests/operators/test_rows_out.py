"""Every differentiable row that takes `out=`, on its sampler's operands: the same values, in the tensor that is given; what fits
not is resized; and gradients are refused. And what is no tensor is refused by every row, by name."""

import types
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_gradients import ROWS, floating, homes

from library import T

OUT = {row["name"]: row for row in T._core.rows() if row["out"]}
# What stands in `nn.functional` in Python takes no `out`, as in PyTorch.
KNOWN = [
    pytest.param(name, sampler, id=name)
    for name, sampler in ROWS
    if sampler is not None and name in OUT and not isinstance(homes(name), types.FunctionType)
]
# Their samplers call methods.
ELSEWHERE = set(
    "clamp diag float_power frobenius_norm kthvalue linalg_matmul matrix_power narrow_copy slice_scatter take take_along_dim topk tril triu".split()
)
# Only the overload with a dimension takes `out`.
ALONG = {"sum", "prod"}


class Calls:
    """The calls of one function of the package, while it stands in for it."""

    def __init__(self, name):
        self.name, self.made = name, []
        self.home = T if hasattr(T, name) else T.nn.functional
        space, _, rest = name.partition("_")
        if space in ("linalg", "fft", "special"):
            self.home, self.name = getattr(T, space), rest

    def __enter__(self):
        self.own = getattr(self.home, self.name)

        def noted(*args, **kwargs):
            self.made.append((args, kwargs))
            return self.own(*args, **kwargs)

        setattr(self.home, self.name, noted)
        return self

    def __exit__(self, *_):
        setattr(self.home, self.name, self.own)


def call_of(name, sampler, draw):
    """A call of the row, as its sampler makes it."""
    with Calls(name) as calls:
        tensors, call = sampler(draw)
        call(*tensors)
    made = [(tensors, {})] if call is calls.own else calls.made
    assert made or name in ELSEWHERE, "the sampler does not call the function"
    return calls.own, [(args, kwargs) for args, kwargs in made[:1] if name not in ALONG or len(args) > 1]


def targets(made, size=None):
    """Tensors like the results, filled with something else."""
    results = made if isinstance(made, (tuple, list)) else [made]
    found = [T.full(r.shape if size is None else size, 1, dtype=r.dtype) for r in results]
    return tuple(found) if isinstance(made, (tuple, list)) else found[0]


def values(made):
    return list(made) if isinstance(made, (tuple, list)) else [made]


@pytest.mark.parametrize("name, sampler", KNOWN)
@given(data=st.data())
@settings(max_examples=3)
def test_out(name, sampler, data):
    own, made = call_of(name, sampler, data.draw)
    for args, kwargs in made:
        expected = own(*args, **kwargs)
        shapes = [t.shape for t in values(expected)]
        out = targets(expected)
        assert own(*args, **kwargs, out=out) is out or isinstance(out, tuple)
        for a, b in zip(values(out), values(expected), strict=True):
            assert a.shape == b.shape and T.equal(a.nan_to_num(), b.nan_to_num())
        out = targets(expected, (0,))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            own(*args, **kwargs, out=out)
        assert [t.shape for t in values(out)] == shapes
        out = targets(expected)
        if all(floating(t) for t in values(out)):
            values(out)[0].requires_grad_()
            with pytest.raises(RuntimeError, match="don't support automatic differentiation|requires grad"):
                own(*args, **kwargs, out=out)


def first_is_a_tensor(row):
    return bool(row["params"]) and row["params"][0][1] in ("Tensor", "Tensors") and row["params"][0][3] is None


ASKING = {row["name"] for row in T._core.rows() if first_is_a_tensor(row) and (row["function"] or row["nn"])}


@pytest.mark.parametrize("name", sorted(name for name in ASKING if callable(homes(name))))
def test_what_is_no_tensor_is_refused(name):
    with pytest.raises(TypeError, match=name.rstrip("_")):
        homes(name)(object())
