"""Views that are copied: values, memory, nodes and gradients beside those of the views themselves."""

import pytest

from library import T, assert_values

X = [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]
# The copy, the view, the node and what it shows.
CASES = [
    (lambda x: T.view_copy(x, (4, 3)), lambda x: x.view(4, 3), "View", {"self_sym_sizes": (3, 4)}),
    (lambda x: T.view_copy(x.t(), (-1,)), lambda x: x.t().reshape(-1), "View", {"self_sym_sizes": (4, 3)}),
    (lambda x: T.diagonal_copy(x), lambda x: x.diagonal(), "Diagonal", {"dim1": 0, "dim2": 1, "offset": 0}),
    (
        lambda x: T.diagonal_copy(x, offset=1, dim1=1, dim2=0),
        lambda x: x.diagonal(1, 1, 0),
        "Diagonal",
        {"dim1": 1, "offset": 1, "self_sym_sizes": (3, 4)},
    ),
    (
        lambda x: T.as_strided_copy(x, (2, 2), (1, 1), 3),
        lambda x: x.as_strided((2, 2), (1, 1), 3),
        "AsStrided",
        {"size": (2, 2), "stride": (1, 1), "storage_offset": 3},
    ),
    (lambda x: T.expand_copy(x, (2, -1, 4)), lambda x: x.expand(2, -1, 4), "Expand", {"self_sym_sizes": (3, 4)}),
    (lambda x: T.permute_copy(x, (-1, 0)), lambda x: x.permute(1, 0), "Permute", {}),
    (lambda x: T.select_copy(x, 1, 2), lambda x: x.select(1, 2), "Select", {"dim": 1, "index": 2, "self_sym_sizes": (3, 4)}),
    (lambda x: T.slice_copy(x, 1, 0, 4, 2), lambda x: x[:, ::2], "Slice", {"dim": 1, "start": 0, "end": 4, "step": 2}),
    (lambda x: T.slice_copy(x), lambda x: x[:], "Slice", {"dim": 0, "step": 1}),
    (lambda x: T.squeeze_copy(x[:1]), lambda x: x[:1].squeeze(), "Squeeze", {"self_sym_sizes": (1, 4)}),
    (lambda x: T.squeeze_copy(x[:1], 0), lambda x: x[:1].squeeze(0), "Squeeze1", {"dim": 0}),
    (lambda x: T.squeeze_copy(x[:1], (0, 1)), lambda x: x[:1].squeeze((0, 1)), "Squeeze2", {"dim": (0, 1)}),
    (lambda x: T.t_copy(x), lambda x: x.t(), "T", {}),
    (lambda x: T.transpose_copy(x, 0, 1), lambda x: x.transpose(0, 1), "Transpose", {"dim0": 0, "dim1": 1}),
    (
        lambda x: T.unfold_copy(x, 0, 2, 1),
        lambda x: x.unfold(0, 2, 1),
        "Unfold",
        {"dimension": 0, "size": 2, "step": 1, "self_sym_sizes": (3, 4)},
    ),
    (lambda x: T.unsqueeze_copy(x, 1), lambda x: x.unsqueeze(1), "Unsqueeze", {"dim": 1}),
    (lambda x: T.alias_copy(x), lambda x: x, "Alias", {}),
    (lambda x: T._neg_view_copy(x), lambda x: -x, "NegView", {}),
    (lambda x: T._reshape_alias_copy(x, (4, 3), (3, 1)), lambda x: x.view(4, 3), "ReshapeAlias", {"self_sym_sizes": (3, 4)}),
    (lambda x: T.split_copy(x, 2), lambda x: x.split(2), "Split", {"dim": 0, "split_size": 2, "self_sym_sizes": (3, 4)}),
    (
        lambda x: T.split_with_sizes_copy(x, [1, 3], dim=1),
        lambda x: x.split([1, 3], 1),
        "SplitWithSizes",
        {"dim": 1, "split_sizes": (1, 3)},
    ),
    (lambda x: T.unbind_copy(x, 1), lambda x: x.unbind(1), "Unbind", {"dim": 1}),
]


def node_name(kind):
    plain = kind.rstrip("012")
    return f"{plain}Backward{kind[len(plain) :] or 0}_copy"


def listed(made):
    return [made] if T.is_tensor(made) else list(made)


@pytest.mark.parametrize("copy, view, kind, shown", CASES)
def test_values_and_nodes(copy, view, kind, shown, device):
    x = T.tensor(X, device=device, requires_grad=True)
    made, wanted = copy(x), view(x)
    assert T.is_tensor(made) == T.is_tensor(wanted) and isinstance(made, (T.Tensor, tuple))
    for number, (own, other) in enumerate(zip(listed(made), listed(wanted), strict=True)):
        assert_values(own, other)
        assert own._base is None and own.is_contiguous() and own.data_ptr() != x.data_ptr()
        assert own.output_nr == number and own.grad_fn.name() == node_name(kind)
        assert {name: getattr(own.grad_fn, f"_saved_{name}") for name in shown} == shown


@pytest.mark.parametrize("copy, view, kind, shown", CASES)
def test_gradients(copy, view, kind, shown, device):
    x = T.tensor(X, device=device, requires_grad=True)

    def gradients(operator, some):
        parts = [part for i, part in enumerate(listed(operator(x))) if i in some]
        loss = sum(
            (part * T.arange(1.0, 1 + part.numel(), device=device).reshape(part.shape) ** 2).pow(2).sum() for part in parts
        )
        (g,) = T.autograd.grad(loss, x, create_graph=True)
        return g, T.autograd.grad(g.sin().sum(), x)[0]

    for some in ({0, 1, 2, 3}, {0}):
        for own, other in zip(gradients(copy, some), gradients(view, some)):
            assert_values(own, other)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("copy, view, kind, shown", CASES)
def test_samples_and_tangents(copy, view, kind, shown):
    if kind in ("AsStrided", "NegView", "ReshapeAlias", "Select", "Slice", "Split", "View"):
        pytest.skip("PyTorch has no rule for it, or not for any strides")
    xs = T.stack([T.tensor(X), T.tensor(X).cos()])
    first = lambda operator: lambda x: listed(operator(x))[0]  # noqa: E731
    assert_values(T.func.vmap(first(copy))(xs), T.stack([first(view)(xs[0]), first(view)(xs[1])]))
    out, tangent = T.func.jvp(first(copy), (xs[0],), (xs[1],))
    assert_values(out, first(view)(xs[0]))
    assert_values(tangent, first(view)(xs[1]))


@pytest.mark.gradiron
@pytest.mark.parametrize("copy, view, kind, shown", CASES)
def test_samples_of_all(copy, view, kind, shown):
    if kind == "AsStrided":
        pytest.skip("where samples lie in storage is not told")
    xs = T.stack([T.tensor(X), T.tensor(X).cos()])
    for own, a, b in zip(listed(T.func.vmap(copy)(xs)), listed(view(xs[0])), listed(view(xs[1])), strict=True):
        assert_values(own, T.stack([a, b]))
    jacobian = T.func.jacfwd(lambda x: listed(copy(x))[0])(xs[0])
    assert_values(jacobian, T.func.jacrev(lambda x: listed(view(x))[0])(xs[0]))


@pytest.mark.parametrize("copy, view, kind, shown", CASES[:20])
def test_out(copy, view, kind, shown, monkeypatch):
    if kind in ("Split", "SplitWithSizes", "Unbind"):
        pytest.skip("several results")
    x, out = T.tensor(X), T.empty(0)
    name = next(name for name in copy.__code__.co_names if name.endswith("_copy"))
    monkeypatch.setattr(T, name, lambda *args, own=getattr(T, name), **options: own(*args, out=out, **options))
    assert copy(x) is out
    assert_values(out, view(x))
    out = T.empty(0, dtype=T.float64)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got double instead"):
        copy(x)


def test_several_outs():
    x, outs = T.tensor(X), [T.empty(4), T.empty(4), T.empty(4)]
    T.unbind_copy(x, out=outs)
    assert [out.tolist() for out in outs] == X
    outs = [T.empty(2, 4), T.empty(1, 4)]
    T.split_copy(x, 2, out=outs)
    assert outs[0].tolist() == X[:2] and outs[1].tolist() == X[2:]


def test_dtypes():
    x = T.tensor(X)
    assert T.view_copy(x, T.int32).tolist() == x.view(T.int32).tolist()
    assert T.view_copy(x, dtype=T.int16).shape == (3, 8) and T.view_copy(x, T.float32).data_ptr() != x.data_ptr()


def test_complex_numbers():
    x = T.tensor([[1 + 2j, 3j]], requires_grad=True)
    y = T.transpose_copy(x, 0, 1)
    assert y.tolist() == [[1 + 2j], [3j]] and y.grad_fn.name() == "TransposeBackward0_copy"
    assert T.view_as_real_copy(x).tolist() == [[[1, 2], [0, 3]]]
    assert T.view_as_real_copy(x).grad_fn.name() == "ViewAsRealBackward0_copy"
    for copy in (lambda: T.select_copy(x, 0, 0), lambda: T.slice_copy(x), lambda: T._conj_copy(x)):
        with pytest.raises(NotImplementedError, match="does not support automatic differentiation for outputs with complex"):
            copy()
    z = x.detach().conj()
    assert not T.alias_copy(z).is_conj() and T.alias_copy(z).tolist() == z.tolist()
    assert T._conj_copy(x.detach()).tolist() == z.tolist() and not T._conj_copy(x.detach()).is_conj()
    assert T.view_as_complex_copy(T.tensor([[1.0, 2.0]])).tolist() == [1 + 2j]


def test_detached():
    x = T.ones(2, requires_grad=True)
    y = T.detach_copy(x)
    assert y.grad_fn.name() == "torch::autograd::NotImplemented" and T.detach_copy(y.detach()).grad_fn is None
    with pytest.raises(RuntimeError, match="derivative for aten::detach_copy is not implemented"):
        y.sum().backward()


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda x: T.view_copy(x, (5,)), RuntimeError, r"shape '\[5\]' is invalid for input of size 12"),
        (lambda x: T.view_copy(x, 4, 3), TypeError, "invalid combination of arguments|positional arguments"),
        (lambda x: T.expand_copy(x, 3, 4), TypeError, "positional arguments"),
        (lambda x: T.permute_copy(x, 1, 0), TypeError, "positional arguments"),
        (lambda x: T.select_copy(x, 0, 9), IndexError, r"select\(\): index 9 out of range for tensor of size \[3, 4\]"),
        (lambda x: T.slice_copy(x, 0, 0, 2, 0), RuntimeError, "slice step must be positive"),
        (lambda x: T.split_copy(x, [1, 2]), TypeError, "argument 'split_size' .*must be int, not list"),
        (lambda x: T.split_copy(x, 0), RuntimeError, "split_size can only be 0 if dimension size is 0"),
        (lambda x: T.unbind_copy(x[0, 0]), IndexError, "Dimension specified as 0 but tensor has no dimensions"),
        (lambda x: T.t_copy(x[None]), RuntimeError, r"t\(\) expects a tensor with <= 2 dimensions, but self is 3D"),
        (lambda x: T.as_strided_copy(x, (20,), (1,)), RuntimeError, "out of bounds for storage of size 48"),
        (lambda x: T.unfold_copy(x, 0, 5, 1), RuntimeError, "maximum size for tensor at dimension 0 is 3 but size is 5"),
        (lambda x: T.view_as_real_copy(x), TypeError, "view_as_real is only supported for complex tensors"),
    ],
)
def test_refusals(call, kind, message):
    with pytest.raises(kind, match=message):
        call(T.tensor(X))
