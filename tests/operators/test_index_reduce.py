"""`index_reduce`: products, means, largest and smallest of slices, against a loop over them."""

import itertools

import pytest

from library import T, assert_values, python_ok, tensor

HOWS = ("prod", "mean", "amax", "amin")
X = [[1.0, 2.0, 3.0, 4.0], [5.0, -6.0, 7.0, 8.0], [9.0, 10.0, -11.0, 12.0]]
S = [[2.0, -3.0, 4.0, 1.0], [0.5, 7.0, 2.0, 6.0], [3.0, 2.0, 1.0, -2.0]]
INDEX = [2, 0, 2]


def reduced(x, dim, index, source, how, own):
    """Slice by slice, in operators that have gradients of their own."""
    slices = []
    for place, mine in enumerate(x.unbind(dim)):
        sent = [s for s, i in zip(source.unbind(dim), index) if i == place]
        if not sent:
            slices.append(mine)
            continue
        all_ = T.stack(([mine] if own else []) + sent)
        slices.append({"prod": all_.prod(0), "mean": all_.mean(0), "amax": all_.amax(0), "amin": all_.amin(0)}[how])
    return T.stack(slices, dim)


@pytest.mark.parametrize("how, own, dim", list(itertools.product(HOWS, (True, False), (0, 1))))
def test_values_and_gradients(how, own, dim, device):
    x = T.tensor(X, device=device).movedim(0, dim).contiguous().requires_grad_()
    source = T.tensor(S, device=device).movedim(0, dim).contiguous().requires_grad_()
    index = T.tensor(INDEX, device=device)
    y = x.index_reduce(dim, index, source, how, include_self=own)
    wanted = reduced(x, dim, INDEX, source, how, own)
    assert_values(y, wanted)
    assert y.grad_fn.name() == "IndexReduceBackward0"
    saved = [getattr(y.grad_fn, f"_saved_{name}") for name in ("dim", "reduce", "include_self")]
    assert saved == [dim, how, own] and y.grad_fn._saved_index.tolist() == INDEX
    for g, h in zip(T.autograd.grad(y.exp().sum(), (x, source)), T.autograd.grad(wanted.exp().sum(), (x, source))):
        assert_values(g, h, rtol=1e-4)


@pytest.mark.parametrize("how, own", list(itertools.product(HOWS, (True, False))))
def test_second_derivatives(how, own):
    x = T.tensor(X, dtype=T.float64, requires_grad=True)
    source = T.tensor(S, dtype=T.float64, requires_grad=True)
    call = lambda x, s: x.index_reduce(0, T.tensor(INDEX), s, how, include_self=own)  # noqa: E731
    assert T.autograd.gradcheck(call, (x, source))
    assert T.autograd.gradgradcheck(call, (x, source))


@pytest.mark.parametrize("how", HOWS)
def test_forms(how, device):
    x, source, index = T.tensor(X, device=device), T.tensor(S, device=device), T.tensor(INDEX, device=device)
    wanted = x.index_reduce(0, index, source, how).tolist()
    out = T.empty(0, device=device)
    assert T.index_reduce(x, 0, index, source, how, out=out) is out and out.tolist() == wanted
    assert T.index_reduce(x, dim=0, index=index.int(), source=source, reduce=how).tolist() == wanted
    assert x.index_reduce_(0, index, source, how) is x and x.tolist() == wanted
    leaf = T.tensor(S, device=device, requires_grad=True)
    y = leaf * 1
    y.index_reduce_(0, index, source, how)
    assert y.grad_fn.name() == "IndexReduceBackward0"
    (g,) = T.autograd.grad(y.sum(), leaf)
    (h,) = T.autograd.grad(leaf.index_reduce(0, index, source, how).sum(), leaf)
    assert_values(g, h)


@pytest.mark.parametrize("kind", ["float64", "float16", "bfloat16", "int64", "int32", "uint8"])
@pytest.mark.parametrize("how", HOWS)
def test_dtypes(how, kind):
    x, source = tensor([[9, 8], [7, 6]], kind), tensor([[1, 2], [2, 2]], kind)
    wanted = {"prod": [18, 32], "mean": [4, 4], "amax": [9, 8], "amin": [1, 2]}[how]
    made = x.index_reduce(0, T.tensor([0, 0]), source, how)
    assert made.dtype is x.dtype and made.tolist() == [wanted, [7, 6]]


def test_whole_numbers_are_rounded_down():
    x, index = T.tensor([[0, 7]]), T.tensor([0, 0])
    assert x.index_reduce(0, index, -T.tensor([[1, 2], [5, 6]]), "mean", include_self=False).tolist() == [[-3, -4]]
    assert (x > 1).index_reduce(0, index, T.tensor([[True, True], [False, True]]), "prod").tolist() == [[False, True]]
    with pytest.raises(NotImplementedError, match="\"div_floor_cpu\" not implemented for 'Bool'"):
        (x > 1).index_reduce(0, index, T.tensor([[True, True], [False, True]]), "mean")


def test_no_number_wins():
    x = T.tensor([[1.0, 2.0]])
    source = T.tensor([[float("nan"), 5.0]])
    for how in ("amax", "amin"):
        first, second = x.index_reduce(0, T.tensor([0]), source, how)[0].tolist()
        assert first != first and second == (5.0 if how == "amax" else 2.0)


def test_numbers():
    x = T.tensor(3.0, requires_grad=True)
    source = T.tensor(2.0, requires_grad=True)
    y = x.index_reduce(0, T.tensor(0), source, "prod")
    assert y.item() == 6.0 and [g.item() for g in T.autograd.grad(y, (x, source))] == [2.0, 3.0]
    assert T.zeros(0, 4).index_reduce(0, T.zeros(0, dtype=T.long), T.zeros(0, 4), "prod").shape == (0, 4)
    assert T.tensor(X).index_reduce(0, T.zeros(0, dtype=T.long), T.zeros(0, 4), "mean").tolist() == X


@pytest.mark.gradiron
@pytest.mark.parametrize("how", HOWS)
def test_samples(how):
    xs, sources = T.tensor([X, S]), T.tensor([S, X])
    call = lambda x, s: x.index_reduce(0, T.tensor(INDEX), s, how)  # noqa: E731
    assert_values(T.func.vmap(call)(xs, sources), T.stack([call(xs[0], sources[0]), call(xs[1], sources[1])]))
    assert_values(T.func.vmap(call, in_dims=(0, None))(xs, sources[0]), T.stack([call(x, sources[0]) for x in xs]))
    out, tangent = T.func.jvp(call, (xs[0], sources[0]), (xs[1], sources[1]))
    a, b = T.func.jacrev(call, argnums=(0, 1))(xs[0], sources[0])
    assert_values(tangent, (a * xs[1]).sum((2, 3)) + (b * sources[1]).sum((2, 3)), rtol=1e-4, atol=1e-4)


def test_several_zeros():
    """A product of several zeros has a gradient, but no second one."""
    x = T.zeros(1, 2, requires_grad=True)
    source = T.zeros(2, 2, requires_grad=True)
    y = x.index_reduce(0, T.tensor([0, 0]), source, "prod")
    (g,) = T.autograd.grad(y.sum(), source, create_graph=True)
    assert g.tolist() == [[0, 0], [0, 0]]
    with pytest.raises(
        RuntimeError, match=r"index_reduce\(\): Double backward is unsupported for source when >1 zeros in source"
    ):
        g.sum().backward()


def refused(**changes):
    call = {"dim": 0, "index": T.tensor(INDEX), "source": T.tensor(S), "reduce": "prod"} | changes
    return T.tensor(X).index_reduce(**call)


@pytest.mark.parametrize(
    "changes, kind, message",
    [
        ({"reduce": "sum"}, RuntimeError, "Expected reduce to be one of prod, mean, amax or amin but got sum."),
        ({"dim": 2}, IndexError, r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"),
        ({"index": T.tensor([0, 1, 3])}, IndexError, "index out of range in self"),
        ({"index": T.tensor([0, 1, -1])}, IndexError, "index out of range in self"),
        ({"index": T.tensor(INDEX).short()}, RuntimeError, "Expected dtype int32/int64 for index but got: Short"),
        ({"index": T.tensor([INDEX])}, IndexError, "Index is supposed to be a vector, but got dim: 2 with type: Long"),
        (
            {"index": T.tensor([0])},
            RuntimeError,
            r"Number of indices \(1\) should be equal to source.size\(dim\): \(3\), for dim: 0",
        ),
        (
            {"source": T.tensor(S).double()},
            RuntimeError,
            r"self \(Float\) and source \(Double\) must have the same scalar type",
        ),
        (
            {"source": T.tensor(S)[:, :3]},
            RuntimeError,
            r"source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = \[3, 4\] "
            r"source.shape = \[3, 3\]",
        ),
    ],
)
def test_refusals(changes, kind, message):
    with pytest.raises(kind, match=message):
        refused(**changes)


def test_other_refusals():
    x = T.tensor(X)
    with pytest.raises(TypeError, match='index_reduce.. missing 1 required positional arguments: "reduce"'):
        T.index_reduce(x, 0, T.tensor([0]), x[:1])
    with pytest.raises(
        RuntimeError, match="some elements of the input tensor and the written-to tensor refer to a single memory"
    ):
        x.index_reduce_(0, T.tensor([2]), x[:1], "prod")
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.requires_grad_().index_reduce_(0, T.tensor([2]), T.tensor(S)[:1], "prod")
    with pytest.raises(RuntimeError, match="functions with out=... arguments don't support automatic differentiation"):
        T.index_reduce(x, 0, T.tensor([2]), T.tensor(S)[:1], "prod", out=T.empty(0))
    z = x.detach().to(T.complex64)
    assert z.index_reduce(0, T.tensor([0]), z[1:2], "prod")[0].tolist() == (z[0] * z[1]).tolist()
    for how, kernel in (("amax", "maximum_cpu"), ("amin", "minimum_cpu")):
        with pytest.raises(NotImplementedError, match=f"\"{kernel}\" not implemented for 'ComplexFloat'"):
            z.index_reduce(0, T.tensor([0]), z[1:2], how)


def test_it_is_told_once_that_it_is_new():
    told = python_ok(
        "import warnings\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    for _ in range(2):\n"
        "        T.ones(1).index_reduce(0, T.tensor([0]), T.ones(1), 'prod')\n"
        "print(len(seen), seen[0].message)"
    )
    assert told.startswith("1 index_reduce() is in beta and the API may change at any time.")
