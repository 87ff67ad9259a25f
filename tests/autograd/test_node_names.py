"""What a node is called, where it leads, what it shows of its call, and which values pack hooks are given, in which order."""

import pytest

from library import T

LEAF = "torch::autograd::AccumulateGrad"


def names():
    """The tensors that the cases are written over."""
    return {
        "T": T,
        "F": T.nn.functional,
        "x": T.tensor([0.3, 1.2, -0.4], requires_grad=True),
        "y": T.tensor([0.7, 0.5, 1.1], requires_grad=True),
        "w": T.tensor([0.2, 0.4, 0.9], requires_grad=True),
        "m": T.tensor([[2.0, 0.1, 0.2], [0.3, 3.0, 0.4], [0.5, -0.6, 4.0]], requires_grad=True),
        "b": T.linspace(-1, 1, 27).reshape(3, 3, 3).requires_grad_(),
        "i": T.tensor([0, 2]),
        "at": T.tensor([[0, 1, 2], [2, 0, 1], [0, 0, 0]]),
    }


def result(source):
    found = eval(source, names())
    return found if T.is_tensor(found) else found[0]


def edges(node):
    return " ".join("-" if n is None else "leaf" if n.name() == LEAF else n.name() for n, _ in node.next_functions)


NAMES = [
    ("x.log1p()", "Log1PBackward0", "leaf"),
    ("x.deg2rad()", "Deg2RadBackward0", "leaf"),
    ("x.rad2deg()", "Rad2DegBackward0", "leaf"),
    ("x.exp2()", "Exp2Backward0", "leaf"),
    ("x + 1", "AddBackward0", "leaf -"),
    ("T.add(x, y, alpha=2)", "AddBackward0", "leaf leaf"),
    ("T.sub(x, y, alpha=0.5)", "SubBackward0", "leaf leaf"),
    ("x.clone().add_(y, alpha=2)", "AddBackward0", "CloneBackward0 leaf"),
    ("m.sum(dtype=T.float64)", "SumBackward0", "leaf"),
    ("m.sum(0, dtype=T.float64)", "SumBackward1", "leaf"),
    ("m.mean(0, dtype=T.float64)", "MeanBackward1", "leaf"),
    ("m.prod(0, dtype=T.float64)", "ProdBackward1", "leaf"),
    ("m.cumsum(0, dtype=T.float64)", "CumsumBackward0", "leaf"),
    ("m.cumprod(0, dtype=T.float64)", "CumprodBackward0", "leaf"),
    ("1 + x", "AddBackward0", "leaf -"),
    ("2 * x", "MulBackward0", "leaf -"),
    ("x / 2", "DivBackward0", "leaf -"),
    ("1 - x", "RsubBackward1", "leaf"),
    ("2**x", "PowBackward2", "leaf"),
    ("x**3", "PowBackward0", "leaf"),
    ("x**y", "PowBackward1", "leaf leaf"),
    ("x.remainder(2)", "RemainderBackward0", "leaf"),
    ("x.remainder(y)", "RemainderBackward1", "leaf leaf"),
    ("x.fmod(2)", "FmodBackward0", "leaf"),
    ("x.fmod(y)", "FmodBackward1", "leaf leaf"),
    ("x.copysign(2)", "CopysignBackward1", "leaf"),
    ("x.copysign(y)", "CopysignBackward0", "leaf leaf"),
    ("x.xlogy(2)", "XlogyBackward2", "leaf"),
    ("x.xlogy(y)", "XlogyBackward0", "leaf leaf"),
    ("x.lerp(y, 0.3)", "LerpBackward0", "leaf leaf"),
    ("x.lerp(y, w)", "LerpBackward1", "leaf leaf leaf"),
    ("x.clone().lerp_(y, 0.3)", "LerpBackward0", "CloneBackward0 leaf"),
    ("T.addcmul(x, y, w, value=2)", "AddcmulBackward0", "leaf leaf leaf"),
    ("T.addcdiv(x, y, w)", "AddcdivBackward0", "leaf leaf leaf"),
    ("x.clamp(0, 1)", "ClampBackward1", "leaf"),
    ("x.clamp(min=0)", "ClampBackward1", "leaf"),
    ("x.clamp_min(0.3)", "ClampMinBackward0", "leaf"),
    ("x.round(decimals=2)", "RoundBackward1", "leaf"),
    ("x.round(decimals=0)", "RoundBackward1", "leaf"),
    ("x.put(at[0], y)", "PutBackward0", "leaf leaf"),
    ("x.masked_scatter(x > 0, y)", "MaskedScatterBackward0", "leaf leaf"),
    ("m.reshape_as(m)", "ViewBackward0", "leaf"),
    ("T.inner(x, y)", "ViewBackward0", "DotBackward0"),
    ("T.tensordot(m, m, 1)", "ViewBackward0", "MmBackward0"),
    ("T.tensordot(m, m, 2)", "ViewBackward0", "DotBackward0"),
    ("T.kron(x, y)", "UnsafeViewBackward0", "MulBackward0"),
    ("T.einsum('ij->', m)", "SumBackward1", "PermuteBackward0"),
    ("T.einsum('ii->i', m)", "PermuteBackward0", "PermuteBackward0"),
    ("T.einsum('i,j->ij', x, y)", "MulBackward0", "PermuteBackward0 PermuteBackward0"),
    ("T.einsum('ij,jk->ik', m, m)", "ViewBackward0", "PermuteBackward0"),
    ("F.linear(x, m)", "SqueezeBackward4", "MmBackward0"),
    ("F.linear(m, x)", "MvBackward0", "leaf TBackward0"),
    ("T.unsafe_split(x, 2)[0]", "UnsafeSplitBackward0", "leaf"),
    ("T.unsafe_chunk(x, 2)[0]", "UnsafeSplitBackward0", "leaf"),
    ("x.clamp_max(0.3)", "ClampMaxBackward0", "leaf"),
    ("x.clamp_min(y)", "ClampMinBackward1", "leaf leaf"),
    ("x.clone().clamp_max_(0)", "ClampMaxBackward0", "CloneBackward0"),
    ("T.where(x > 0, x, y.exp())", "WhereBackward0", "leaf ExpBackward0"),
    ("T.where(x > 0, x, 0.0)", "WhereBackward0", "leaf -"),
    ("T.where(x > 0, 1.0, x)", "WhereBackward0", "- leaf"),
    ("x.nan_to_num()", "NanToNumBackward0", "leaf"),
    ("F.elu(x)", "EluBackward0", "leaf"),
    ("F.elu(x.clone(), inplace=True)", "EluBackward1", "CloneBackward0"),
    ("F.leaky_relu(x.clone(), inplace=True)", "LeakyReluBackward1", "CloneBackward0"),
    ("F.layer_norm(x, (3,), y, w)", "NativeLayerNormBackward0", "leaf leaf leaf"),
    ("T.ldexp(x, y)", "LdexpBackward0", "leaf leaf"),
    ("m.narrow_copy(0, 1, 2)", "NarrowCopyBackward0", "leaf"),
    ("x.scatter_reduce(0, i, y[:2], 'mean')", "ScatterReduceBackward0", "leaf SliceBackward0"),
    ("x.scatter_reduce(0, i, y[:2], 'amax', include_self=False)", "ScatterReduceBackward0", "leaf SliceBackward0"),
    ("m.index_add(0, i, m[:2], alpha=2)", "IndexAddBackward0", "leaf SliceBackward0"),
    ("T.diagflat(x)", "DiagEmbedBackward0", "ViewBackward0"),
    ("T.meshgrid(x, indexing='ij')[0]", "ExpandBackward0", "ViewBackward0"),
    ("x.unique()", "Unique2Backward0", "leaf"),
    ("x.unique_consecutive()", "UniqueConsecutiveBackward0", "leaf"),
    ("F.leaky_relu(x)", "LeakyReluBackward0", "leaf"),
    ("F.softplus(x)", "SoftplusBackward0", "leaf"),
    ("x // 2", "torch::autograd::NotImplemented", "leaf"),
    ("m @ x", "MvBackward0", "leaf leaf"),
    ("x @ m", "SqueezeBackward4", "MmBackward0"),
    ("b @ x", "UnsafeViewBackward0", "MvBackward0"),
    ("T.vdot(x, y)", "VdotBackward0", "leaf leaf"),
    ("T.addr(m, x, y)", "AddrBackward0", "leaf leaf leaf"),
    ("T.addbmm(m, b, b)", "AddbmmBackward0", "leaf leaf leaf"),
    ("T.cross(x, y, dim=0)", "LinalgCrossBackward0", "leaf leaf"),
    ("m.narrow(0, 1, 2)", "SliceBackward0", "leaf"),
    ("m.select_scatter(x, 0, 1)", "SelectScatterBackward0", "leaf leaf"),
    ("m.slice_scatter(m[:1], 0, 0, 1)", "SliceScatterBackward0", "leaf SliceBackward0"),
    ("m.diagonal_scatter(x)", "DiagonalScatterBackward0", "leaf leaf"),
    ("m.clone().t_()", "TBackward1", "CloneBackward0"),
    ("m.clone().transpose_(0, 1)", "TransposeBackward1", "CloneBackward0"),
    ("m.clone().swapaxes_(0, 1)", "TransposeBackward1", "CloneBackward0"),
    ("m.clone().unsqueeze_(0)", "UnsqueezeBackward1", "CloneBackward0"),
    ("m.clone().squeeze_()", "SqueezeBackward3", "CloneBackward0"),
    ("m.clone().squeeze_(0)", "SqueezeBackward4", "CloneBackward0"),
    ("m.clone().as_strided_((2, 2), (1, 1))", "AsStridedBackward1", "CloneBackward0"),
    ("m.t()", "TBackward0", "leaf"),
]


# Chains of nodes along the first edges.
CHAINS = [
    ("T.inner(m, x)", "View Mm View Permute"),
    ("T.inner(x, y)", "View Dot Permute"),
    ("T.tensordot(m.t(), m, 1)", "View Mm ReshapeAlias Permute T"),
    ("T.tensordot(m, m[:1], ([0], [0]))", "View Mm View Permute Sum"),
    ("T.kron(m, m)", "UnsafeView Mul UnsafeView"),
    ("T.chain_matmul(m, m, m)", "View Mm Mm"),
    ("T.chain_matmul(m)", "Clone"),
    ("T.einsum('ij,jk->ik', m, m)", "View Permute View Bmm View Permute Permute Unsqueeze"),
    ("T.einsum('bij,bjk->bik', b, b)", "View Permute View Bmm View Permute Permute Unsqueeze"),
    ("T.einsum('ij,j->i', m, x)", "View Permute View Bmm View Permute Permute"),
    ("T.einsum('i,i->', x, y)", "View Permute View Bmm View Permute Permute"),
    (
        "T.einsum('ij,jk,k->', m, m, x)",
        "View Permute View Bmm View Permute Permute View Bmm View Permute Sum Permute Unsqueeze",
    ),
    ("T.einsum('ii->', m)", "Sum Permute Permute Diagonal"),
    ("T.einsum('...i->...', b)", "Sum Permute"),
]


@pytest.mark.filterwarnings("ignore:torch.chain_matmul is deprecated")
@pytest.mark.parametrize("source, chain", CHAINS, ids=[case[0] for case in CHAINS])
def test_chains(source, chain):
    node, found = result(source).grad_fn, []
    while node.name() != LEAF:
        found.append(node.name().split("Backward")[0])
        node = node.next_functions[0][0]
    assert " ".join(found) == chain


@pytest.mark.parametrize("source, name, leads", NAMES, ids=[case[0] for case in NAMES])
def test_names_and_edges(source, name, leads):
    node = result(source).grad_fn
    assert (node.name(), edges(node)) == (name, leads)


def test_hooks_see_as_many_gradients_as_there_are_edges():
    for source, _, leads in NAMES:
        seen = []
        y = result(source)
        y.grad_fn.register_hook(lambda inputs, outputs, seen=seen: seen.append(len(inputs)))
        if not any(word in y.grad_fn.name() for word in ("NotImplemented", "Unique")):
            y.sum().backward()
            assert seen == [len(leads.split())], source


def test_what_has_no_derivative_says_so_when_it_is_asked_for():
    x = names()["x"]
    assert (x // 2).requires_grad and T.heaviside(x, T.ones(3)).requires_grad
    with pytest.raises(RuntimeError, match="derivative for aten::floor_divide is not implemented"):
        (x // 2).sum().backward()
    with pytest.raises(RuntimeError, match="derivative for aten::heaviside is not implemented"):
        T.heaviside(x, T.ones(3)).sum().backward()
    assert not (T.tensor([3]) // 2).requires_grad


def test_a_row_times_a_matrix_counts_one_write():
    t = names()
    assert (t["x"] @ t["m"])._version == 1 and not (t["x"] @ t["m"])._is_view()
    assert (t["m"] @ t["x"])._version == 0


BIG = 2**64
SHOWN = [
    ("x + y", {"alpha": 1}),
    ("x - 1", {"alpha": 1}),
    ("1 - x", {"alpha": 1}),
    ("T.add(x, y, alpha=2)", {"alpha": 2}),
    ("x.clone().sub_(y, alpha=0.5)", {"alpha": 0.5}),
    ("x.roll(1)", {"dims": (), "shifts": (1,)}),
    ("m.roll(-1, 0)", {"dims": (0,), "shifts": (BIG - 1,)}),
    ("m.tril(-1)", {"diagonal": BIG - 1}),
    ("m.diagonal(-2)", {"dim1": 0, "dim2": 1, "offset": BIG - 2, "self_sym_sizes": (3, 3)}),
    ("T.diagflat(x, -1)", {"dim1": BIG - 2, "dim2": BIG - 1, "offset": BIG - 1}),
    ("T.stack([x, y], -1)", {"dim": BIG - 1}),
    ("T.cat([x, y], -1)", {"dim": BIG - 1}),
    ("m.var()", {"correction": None, "dim": None, "keepdim": False, "self": "tensor"}),
    ("m.var(0)", {"correction": 1, "dim": (0,), "keepdim": False, "self": "tensor"}),
    ("m.std(False)", {"correction": 0, "dim": None, "keepdim": False, "result": "tensor", "self": "tensor"}),
    ("m.aminmax(dim=1)", {"dim": 1, "keepdim": False, "max": "tensor", "min": "tensor", "self": "tensor"}),
    ("m.select_scatter(x, -1, -2)", {"dim": BIG - 1, "index": BIG - 2}),
    ("m.slice_scatter(m[:1], 0, 0, 1)", {"dim": 0, "end": 1, "start": 0, "step": 1}),
    ("m.diagonal_scatter(x)", {"dim1": 0, "dim2": 1, "offset": 0}),
    (
        "x.scatter_reduce(0, i, y[:2], 'mean')",
        {
            "dim": 0,
            "include_self": True,
            "index": "tensor",
            "reduce": "mean",
            "result": "tensor",
            "self": "tensor",
            "src": "tensor",
        },
    ),
    ("m.index_add(0, i, m[:2], alpha=2)", {"alpha": 2, "dim": 0, "index": "tensor", "source": "tensor", "source_dim": 2}),
    ("m.narrow_copy(0, 1, 2)", {"dim": 0, "length": 2, "self_sym_sizes": (3, 3), "start": 1}),
    (
        "F.layer_norm(x, (3,), y, w)",
        {
            "bias": "tensor",
            "input": "tensor",
            "normalized_shape": (3,),
            "result1": "tensor",
            "result2": "tensor",
            "weight": "tensor",
        },
    ),
    (
        "F.layer_norm(x, (3,))",
        {
            "bias": None,
            "input": "tensor",
            "normalized_shape": (3,),
            "result1": "tensor",
            "result2": "tensor",
            "weight": None,
        },
    ),
    (
        "F.elu(x.clone(), inplace=True)",
        {"alpha": 1.0, "input_scale": 1, "result": "tensor", "scale": 1},
    ),
    ("m.index_fill(0, i, 1.0)", {"dim": 0, "index": "tensor"}),
    ("m.scatter(1, at, 2.0)", {"dim": 1, "index": "tensor"}),
    (
        "m @ m.T",
        {
            "self": "tensor",
            "mat2": "tensor",
            "self_sym_sizes": (3, 3),
            "mat2_sym_sizes": (3, 3),
            "self_sym_strides": (3, 1),
            "mat2_sym_strides": (1, 3),
        },
    ),
    ("x * x.detach()", {"other": "tensor", "self": None}),
    ("x**2", {"exponent": 2, "self": "tensor"}),
    ("x.clamp(min=0)", {"min": 0, "max": None, "self": "tensor"}),
    ("x.clamp(0, 1)", {"min": 0, "max": 1, "self": "tensor"}),
    ("T.div(x, y, rounding_mode='floor')", {"rounding_mode": "floor", "other": "tensor", "self": "tensor"}),
    ("F.gelu(x)", {"approximate": "none", "self": "tensor"}),
    ("F.gelu(x, approximate='tanh')", {"approximate": "tanh", "self": "tensor"}),
    ("F.elu(x)", {"alpha": 1.0, "input_scale": 1, "scale": 1, "self": "tensor"}),
    ("m.sum()", {"self_sym_sizes": (3, 3)}),
    ("m.sum(-1)", {"self_sym_sizes": (3, 3), "dim": (BIG - 1,), "keepdim": False}),
    ("m.mean()", {"self_sym_sizes": (3, 3), "self_sym_numel": 9}),
    ("m.mean(0)", {"self_sym_sizes": (3, 3), "self_sym_numel": 9, "dim": (0,), "keepdim": False}),
    ("b.view(9, 3)", {"self_sym_sizes": (3, 3, 3)}),
    ("x.expand(2, 3)", {"self_sym_sizes": (3,)}),
    ("m[0]", {"dim": 0, "index": 0, "self_sym_sizes": (3, 3)}),
    ("m[:, 1:]", {"dim": 1, "start": 1, "end": BIG // 2 - 1, "step": 1, "self_sym_sizes": (3, 3)}),
    ("m.mT", {"dim0": BIG - 2, "dim1": BIG - 1}),
    ("m.clone().transpose_(0, 1)", {"dim0": 0, "dim1": 1}),
    ("m.as_strided((2, 2), (1, 1))", {"size": (2, 2), "stride": (1, 1), "storage_offset": None}),
    ("m.split(2)", {"dim": 0, "split_size": 2, "self_sym_sizes": (3, 3)}),
    ("m.split([1, 2])", {"dim": 0, "split_sizes": (1, 2), "self_sym_sizes": (3, 3)}),
    ("m.tensor_split([1])[1]", {"dim": 0, "start": 1, "end": 3, "step": 1, "self_sym_sizes": (3, 3)}),
    ("m.unbind(1)", {"dim": 1}),
    ("T.stack([x, y], 1)", {"dim": 1}),
    ("F.mse_loss(x, y)", {"reduction": 1, "self": "tensor", "target": "tensor"}),
    ("F.smooth_l1_loss(x, y, reduction='sum')", {"reduction": 2, "beta": 1.0, "self": "tensor", "target": "tensor"}),
    ("F.huber_loss(x, y, reduction='none')", {"reduction": 0, "delta": 1.0, "self": "tensor", "target": "tensor"}),
    ("m.sort(-1)", {"dim": BIG - 1, "indices": "tensor", "self_sym_sizes": (3, 3)}),
    ("m.gather(1, at)", {"dim": 1, "index": "tensor", "self": "tensor", "sparse_grad": False}),
    ("m.index_add(0, i, m[:2])", {"alpha": 1, "dim": 0, "index": "tensor", "source": "tensor", "source_dim": 2}),
    ("m[None].squeeze(0)", {"dim": 0, "self_sym_sizes": (1, 3, 3)}),
    ("m[None].squeeze((0,))", {"dim": (0,), "self_sym_sizes": (1, 3, 3)}),
    ("m.clone().squeeze_(0)", {"dim": 0, "self_sym_sizes": (3, 3)}),
    ("m.clone().unsqueeze_(0)", {"dim": 0}),
    ("x @ m", {"dim": 0, "self_sym_sizes": (1, 3)}),
    ("T.unsafe_split(m, 1)", {"dim": 0, "self_sym_sizes": (3, 3), "split_size": 1}),
    ("T.diag(x)", {"dim1": BIG - 2, "dim2": BIG - 1, "offset": 0}),
    ("T.complex(x, y)", {"imag": "tensor", "real": "tensor"}),
    ("T.complex(x, y).real", {"dim": 1, "index": 0, "self_sym_sizes": (3, 2)}),
    ("m.put(i, x[:2])", {"accumulate": False, "index": "tensor", "source": "tensor"}),
    ("m.masked_scatter(m > 0, m)", {"mask": "tensor", "source_sym_sizes": (3, 3)}),
    (
        "T.addbmm(m, b, b)",
        {
            "alpha": 1,
            "batch1": "tensor",
            "batch1_sym_argsize_0": 3,
            "batch1_sym_argsize_1": 3,
            "batch2": "tensor",
            "batch2_sym_argsize_2": 3,
            "beta": 1,
        },
    ),
]


def shown(node):
    found = {}
    for name in dir(node):
        if name.startswith("_saved_"):
            value = getattr(node, name)
            found[name.removeprefix("_saved_")] = "tensor" if T.is_tensor(value) else value
    return found


@pytest.mark.parametrize("source, expected", SHOWN, ids=[case[0] for case in SHOWN])
def test_saved_attributes(source, expected):
    assert shown(result(source).grad_fn) == expected


@pytest.mark.parametrize(
    "source, name",
    [
        ("m.var(0, correction=0)", "correction"),
        ("T.norm(m, 2)", "ord"),
        ("F.softplus(x)", "beta"),
        ("F.softplus(x)", "threshold"),
        ("T.addcmul(x, y, w)", "value"),
    ],
)
def test_whole_numbers_are_shown_without_a_point(source, name):
    assert type(getattr(result(source).grad_fn, f"_saved_{name}")) is int


def test_complex_numbers_are_shown_whole():
    z = T.tensor([[1j, 2.0], [0.5, 1.0]], requires_grad=True)
    node = z.addmm(z, z, alpha=2 + 3j, beta=1j).grad_fn
    assert (node._saved_alpha, node._saved_beta) == (2 + 3j, 1j)
    assert z.lerp(z, 0.4j).grad_fn._saved_weight == 0.4j


def test_numbers_that_took_part_as_tensors_are_tensors():
    for source, dtype in [("x * 2.5", T.float64), ("x * 2", T.int64), ("x / 2.5", T.float64)]:
        other = result(source).grad_fn._saved_other
        assert other.shape == () and other.dtype == dtype


def test_raw_indices_are_a_tuple():
    node = result("m[i]").grad_fn
    assert isinstance(node._raw_saved_indices, tuple) and len(node._raw_saved_indices) == 1
    assert node._raw_saved_indices[0].unpack().tolist() == [0, 2]


def test_arguments_outlive_saved_tensors():
    y = result("m.sum(0)")
    z = y * y
    z.sum().backward()
    assert y.grad_fn._saved_keepdim is False and y.grad_fn._saved_self_sym_sizes == (3, 3)


ORDERS = [
    ("x * y", "y x"),
    ("x / y", "y x"),
    ("x.atan2(y)", "y x"),
    ("T.hypot(x, y)", "y x result"),
    ("T.maximum(x, y)", "y x"),
    ("x.clamp(y, w)", "w y x"),
    ("x.lerp(y, w)", "y x w"),
    ("T.addcmul(x, y, w)", "y w"),
    ("x.clone().mul_(y)", "y x"),
    ("m @ m.detach()", "m"),
    ("m @ x", "m x"),
    ("x.exp()", "result"),
    ("T.dot(x, y)", "x y"),
    ("T.vdot(x, y)", "y x"),
    ("F.mse_loss(x, y)", "x y"),
    ("F.elu(x.clone(), inplace=True)", "result"),
    ("T.addr(m, x, y)", "x y"),
]


@pytest.mark.parametrize("source, order", ORDERS, ids=[case[0] for case in ORDERS])
def test_the_order_in_which_values_are_packed(source, order):
    packed, given = [], names()
    with T.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.detach().clone()), lambda nothing: nothing):
        made = eval(source, given)
    expected = [made.detach() if name == "result" else given[name].detach() for name in order.split()]
    assert [t.tolist() for t in packed] == [t.tolist() for t in expected]


def test_a_node_can_be_called():
    x = T.tensor([1.0, 2.0], requires_grad=True)
    node = (x * x).grad_fn
    g = T.ones(2)
    assert [t.tolist() for t in node(g)] == [[1.0, 2.0], [1.0, 2.0]]
    assert node(g)[0].requires_grad  # recorded, as grad mode says
    with T.no_grad():
        assert not node(g)[0].requires_grad
    assert node(None) == (None, None)
    assert (x.exp().sum()).grad_fn(T.tensor(3.0)).tolist() == [3.0, 3.0]
    end = node.next_functions[0][0]
    assert end(g) == () and x.grad.tolist() == [1.0, 1.0]


def test_a_node_that_is_called_runs_no_hooks():
    y = T.tensor([1.0, 2.0], requires_grad=True).exp()
    node, seen = y.grad_fn, []
    y.register_hook(lambda g: seen.append("tensor"))
    node.register_prehook(lambda outputs: seen.append("before"))
    node.register_hook(lambda inputs, outputs: seen.append("after"))
    node(T.ones(2))
    assert seen == []


@pytest.mark.parametrize(
    "grads, message",
    [((), "expected 1 arguments, got 0 instead"), ((3,), "argument 0 is not a Variable"), ((None, None), "expected 1 arg")],
)
def test_a_node_called_wrongly(grads, message):
    with pytest.raises(TypeError, match=message):
        T.ones(2, requires_grad=True).exp().grad_fn(*grads)


def test_a_node_that_was_freed_cannot_be_called():
    y = T.ones(2, requires_grad=True).exp()
    y.sum().backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.grad_fn(T.ones(2))
