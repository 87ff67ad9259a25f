"""Tensors in coordinate format: what they hold, what works with them and its derivatives, and what is refused."""

import copy
import io
import pickle
import warnings

import pytest

from library import IS_GRADIRON, T, devices, tensor

warnings.filterwarnings("ignore", "Sparse", UserWarning)
pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse:UserWarning"),
    pytest.mark.filterwarnings("ignore:torch.sparse.SparseTensor:UserWarning"),
]

PLACES = [[0, 1, 1, 0, 2], [2, 0, 2, 2, 3]]
VALUES = [3.0, 4.0, 5.0, 0.5, -1.0]


def sample(device="cpu", kind="float32", size=(3, 4), grad=False):
    """Three rows and four columns, a place told twice."""
    values = tensor(VALUES, kind, device, grad)
    return T.sparse_coo_tensor(T.tensor(PLACES, device=device), values, size)


def dense_sample(device="cpu", kind="float32"):
    return tensor([[0, 0, 3.5, 0], [4, 0, 5, 0], [0, 0, 0, -1]], kind, device)


def close(a, b):
    a, b = (x.to_dense() if x.is_sparse else x for x in (a, b))
    assert a.shape == b.shape and a.dtype == b.dtype
    T.testing.assert_close(a, b)


def other(shape, device="cpu", kind="float32", seed=1, grad=False):
    T.manual_seed(seed)
    return T.randn(shape, dtype=T.float64).to(getattr(T, kind)).to(device).requires_grad_(grad)


def test_what_it_is():
    s = sample()
    assert isinstance(s, T.Tensor) and T.is_tensor(s)
    assert s.is_sparse and s.layout is T.sparse_coo and repr(T.sparse_coo) == "torch.sparse_coo"
    assert not T.ones(2).is_sparse and T.ones(2).layout is T.strided
    assert s.shape == (3, 4) == s.size() and s.dim() == s.ndim == 2 and s.numel() == 12 and len(s) == 3 and s.size(1) == 4
    assert s.dtype is T.float32 and s.device == T.device("cpu") and s.is_floating_point() and not s.is_cuda
    assert s._nnz() == 5 and (s.sparse_dim(), s.dense_dim()) == (2, 0)
    assert not s.is_coalesced() and not s.requires_grad and s.is_leaf and s.grad is None
    assert s._indices().tolist() == PLACES and s._values().tolist() == VALUES
    assert s.type() == "torch.sparse.FloatTensor"
    assert T.ones(2, 3).sparse_dim() == 0 and T.ones(2, 3).dense_dim() == 2
    dense = T.ones(2)
    assert dense.to_dense() is dense


def test_how_it_prints():
    assert repr(sample()) == (
        "tensor(indices=tensor([[0, 1, 1, 0, 2],\n"
        "                       [2, 0, 2, 2, 3]]),\n"
        "       values=tensor([ 3.0000,  4.0000,  5.0000,  0.5000, -1.0000]),\n"
        "       size=(3, 4), nnz=5, layout=torch.sparse_coo)"
    )
    assert str(T.sparse_coo_tensor((2, 3), dtype=T.float64)) == (
        "tensor(indices=tensor([], size=(2, 0)),\n"
        "       values=tensor([], size=(0,)),\n"
        "       size=(2, 3), nnz=0, dtype=torch.float64, layout=torch.sparse_coo)"
    )
    hybrid = T.sparse_coo_tensor([[0, 1]], [[1.0, 2], [3, 4]], (3, 2), requires_grad=True)
    assert f"{hybrid}" == (
        "tensor(indices=tensor([[0, 1]]),\n"
        "       values=tensor([[1., 2.],\n"
        "                      [3., 4.]]),\n"
        "       size=(3, 2), nnz=2, layout=torch.sparse_coo, requires_grad=True)"
    )


def test_there_and_back(device):
    s = sample(device)
    close(s.to_dense(), dense_sample(device))
    c = s.coalesce()
    assert c.is_coalesced() and c.coalesce() is c and c._nnz() == 4
    assert c.indices().tolist() == [[0, 1, 1, 2], [2, 0, 2, 3]] and c.values().tolist() == [3.5, 4, 5, -1]
    back = dense_sample(device).to_sparse()
    assert back.is_coalesced() and back.device.type == device
    assert back.indices().tolist() == c.indices().tolist() and back.values().tolist() == c.values().tolist()
    rows = dense_sample(device).to_sparse(1)
    assert rows.sparse_dim() == 1 == rows.dense_dim() and rows._nnz() == 3
    close(rows, dense_sample(device))


@pytest.mark.parametrize("kind", ["float64", "int64", "int32", "bool"])
def test_of_every_dtype(kind):
    values = T.tensor([3, 4, 5, 1, 1]).to(getattr(T, kind))
    s = T.sparse_coo_tensor(PLACES, values, (3, 4))
    expected = T.zeros(3, 4, dtype=T.int64)
    for i, j, v in zip(*PLACES, values.tolist(), strict=True):
        expected[i, j] += int(v)
    assert s.dtype is values.dtype
    assert s.to_dense().tolist() == expected.to(values.dtype).tolist() == s.coalesce().to_dense().tolist()


def test_order_can_be_promised():
    s = T.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2))
    assert s._coalesced_(True) is s and s.is_coalesced() and s.indices().tolist() == [[0, 1], [1, 0]]
    assert not s._coalesced_(False).is_coalesced()


def test_ways_to_make_one():
    assert T.sparse_coo_tensor(PLACES, VALUES).shape == (3, 4)
    assert T.sparse_coo_tensor(T.tensor(PLACES), [1, 2, 3, 4, 5]).dtype is T.int64
    assert T.sparse_coo_tensor(PLACES, VALUES, (3, 4), dtype=T.float64).dtype is T.float64
    assert T.sparse_coo_tensor([[0, 1]], T.ones(2, 3)).shape == (2, 3)
    assert T.sparse_coo_tensor(PLACES, VALUES, (3, 4), is_coalesced=True).is_coalesced()
    empty = T.sparse_coo_tensor(T.zeros(2, 0, dtype=T.int64), T.zeros(0), (2, 3))
    assert empty._nnz() == 0 and empty.to_dense().tolist() == [[0, 0, 0], [0, 0, 0]] and empty.coalesce().is_coalesced()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old = T.sparse.FloatTensor(T.tensor(PLACES), T.tensor(VALUES), T.Size([3, 4]))
        assert old.shape == (3, 4) and T.sparse.FloatTensor(T.tensor(PLACES), T.tensor(VALUES)).shape == (3, 4)
        assert T.sparse.DoubleTensor(2, 3).shape == (2, 3) and T.sparse.DoubleTensor(2, 3).dtype is T.float64
        assert isinstance(old, T.sparse.FloatTensor) and not isinstance(old, T.sparse.DoubleTensor)


def test_products(device):
    s, d = sample(device), dense_sample(device)
    x, v = other((4, 5), device), other((4,), device)
    for product in (T.mm, T.spmm, T.sparse.mm, T.matmul, lambda a, b: a @ b, lambda a, b: a.mm(b)):
        close(product(s, x), d @ x)
    left = other((2, 3), device)
    for product in (T.mm, T.sparse.mm, lambda a, b: a @ b):
        close(product(left, s), left @ d)
    close(s @ v, d @ v)
    close(T.mv(s, v), d @ v)
    both = s @ s.t()
    assert both.is_sparse and both.is_coalesced()
    close(both, d @ d.t())
    close(T.addmm(T.ones(3, 5, device=device), s, x), 1 + d @ x)
    scaled = T.sparse.addmm(T.ones(3, 5, device=device), s, x, beta=0.5, alpha=2)
    close(scaled, 0.5 + 2 * (d @ x))
    linear = T.nn.functional.linear
    close(linear(left[:, :2], T.ones(3, 2, device=device).to_sparse()), left[:, :2] @ T.ones(2, 3, device=device))


@pytest.mark.parametrize("layout", [T.sparse_coo, T.sparse_csr])
@pytest.mark.parametrize("shape", [(4,), (2, 5, 4), (0, 3, 4), (2, 1, 3, 4)])
def test_linear_of_any_number_of_dimensions(layout, shape, device):
    d, x = dense_sample(device), other(shape, device, grad=True)
    s = d.to_sparse(layout=layout)
    close(T.nn.functional.linear(x, s), x @ d.t())
    close(T.nn.functional.linear(x, s, T.ones(3, device=device)), x @ d.t() + 1)
    close(x @ s.t(), x @ d.t())
    c = other((*shape[:-1], 3), device, seed=2)
    made, expected = (T.autograd.grad(T.nn.functional.linear(x, w), x, c)[0] for w in (s, d))
    close(made, expected)
    with pytest.raises(RuntimeError, match="^expand is unsupported for Sparse"):
        T.matmul(s, T.ones(2, 4, 5, device=device))


def test_arithmetic():
    s, d = sample(), dense_sample()
    x = other((3, 4))
    for made, expected in (
        (s * 2, d * 2),
        (0.5 * s, d * 0.5),
        (s / 2, d / 2),
        (s + s, d + d),
        (s - 3 * s.t().t(), -2 * d),
        (s * s.coalesce(), d * d),
        (s * d.to_sparse(1).to_dense().to_sparse(), d * d),
        (s * x, d * x),
        (x * s, d * x),
        (-s, -d),
        (s.abs(), d.abs()),
        (s.relu(), d.relu()),
        (T.tanh(s), d.tanh()),
        (s.pow(2), d**2),
        (s**3, d**3),
        (s * T.tensor(2.0), d * 2),
        (s // 2, d // 2),
    ):
        assert made.is_sparse
        close(made, expected)
    for made, expected in ((x + s, x + d), (x - s, x - d), (T.add(x, s, alpha=2), x + 2 * d), (x.clone().add_(s), x + d)):
        assert not made.is_sparse
        close(made, expected)
    whole = T.eye(3) + T.sparse_coo_tensor([[0], [1]], [1], (3, 3))
    assert whole.dtype is T.float32 and whole.sum() == 4


def test_in_place():
    s = sample()
    values = s._values()
    same = s.mul_(2)
    assert same is s and s._values().tolist() == [2 * v for v in VALUES]
    assert not IS_GRADIRON or values.tolist() == s._values().tolist()
    s.div_(2).add_(s.clone())
    close(s, 2 * dense_sample())
    held = s
    s.copy_(dense_sample().to_sparse())
    assert held is s
    close(s, dense_sample())
    assert s.zero_()._nnz() == 0 and s.to_dense().abs().sum() == 0
    x = T.ones(3, 4)
    x += sample()
    close(x, 1 + dense_sample())


def test_sums():
    s, d = sample(), dense_sample()
    assert T.sparse.sum(s) == d.sum() == s.sum() and T.sparse.sum(s).layout is T.strided
    for dim in (0, 1, -1, (0,)):
        made = T.sparse.sum(s, dim)
        assert made.is_sparse and made.is_coalesced()
        close(made, d.sum(dim))
        close(s.sum(dim), d.sum(dim))
    assert T.sparse.sum(s, (0, 1)) == d.sum()
    hybrid = T.sparse_coo_tensor([[0, 2, 0]], other((3, 2)), (3, 2))
    close(T.sparse.sum(hybrid, 0), hybrid.to_dense().sum(0))
    close(T.sparse.sum(hybrid, 1), hybrid.to_dense().sum(1))
    assert T.sparse.sum(s, dtype=T.float64).dtype is T.float64
    T.testing.assert_close(s.norm(), d.norm())


@pytest.mark.parametrize("dim", [0, 1])
def test_softmax(dim):
    s = sample()
    masked = dense_sample().masked_fill(dense_sample() == 0, -float("inf"))
    made = T.sparse.softmax(s, dim).to_dense()
    close(made, masked.softmax(dim).nan_to_num(0))
    logs = T.sparse.log_softmax(s, dim)
    T.testing.assert_close(logs._values().exp(), T.sparse.softmax(s, dim)._values())


def test_places():
    s, d = sample(), dense_sample()
    for made, expected in (
        (s.t(), d.t()),
        (s.T, d.T),
        (s.transpose(0, 1), d.t()),
        (s.permute(1, 0), d.t()),
        (s.unsqueeze(0), d.unsqueeze(0)),
        (s.unsqueeze(-1), d.unsqueeze(-1)),
        (s[0], d[0]),
        (s[-1], d[-1]),
        (s[:, 2], d[:, 2]),
        (s.select(1, 2), d[:, 2]),
        (s.index_select(0, T.tensor([2, 0, 2])), d[[2, 0, 2]]),
        (s.index_select(1, T.tensor([2])), d[:, [2]]),
        (T.cat([s, s]), T.cat([d, d])),
        (T.cat([s, s], 1), T.cat([d, d], 1)),
        (T.stack([s, s]), T.stack([d, d])),
    ):
        assert made.is_sparse
        close(made, expected)
    assert s[0, 2] == 3.5 and not s[0, 2].is_sparse
    assert [row.to_dense().tolist() for row in s] == d.tolist()
    kept = other((3, 4)).sparse_mask(s.coalesce())
    assert kept.is_sparse and kept._indices().tolist() == s.coalesce()._indices().tolist()
    close(kept, other((3, 4)) * (d != 0))


def test_derivatives(device):
    x, w = other((4, 5), device, grad=True), other((3, 5), device)
    values = tensor(VALUES, device=device, grad=True)
    s = T.sparse_coo_tensor(T.tensor(PLACES, device=device), values, (3, 4))
    assert s.requires_grad and not s.is_leaf and s.grad_fn is not None
    (T.sparse.mm(s, x) * w).sum().backward()
    d = dense_sample(device).requires_grad_()
    y = x.detach().clone().requires_grad_()
    ((d @ y) * w).sum().backward()
    T.testing.assert_close(x.grad, y.grad)
    T.testing.assert_close(values.grad, d.grad[tuple(T.tensor(PLACES))])


def test_second_derivatives():
    places = T.tensor(PLACES)
    values, x = tensor(VALUES, "float64", grad=True), other((4, 2), kind="float64", grad=True)

    def product(v, y):
        return T.sparse.mm(T.sparse_coo_tensor(places, v, (3, 4)), y)

    assert T.autograd.gradcheck(product, (values, x))
    if IS_GRADIRON:  # PyTorch has no second derivative of it.
        assert T.autograd.gradgradcheck(product, (values, x))
    for f in (
        lambda v: T.sparse_coo_tensor(places, v, (3, 4)).coalesce().values() ** 2,
        lambda v: T.sparse_coo_tensor(places, v, (3, 4)).to_dense() ** 2,
        lambda v: T.sparse.sum(T.sparse_coo_tensor(places, v, (3, 4)) * 3.0),
        lambda v: T.sparse.softmax(T.sparse_coo_tensor(places, v, (3, 4)).coalesce(), 1).to_dense(),
    ):
        assert T.autograd.gradcheck(f, (values,))


def test_a_leaf():
    s = T.sparse_coo_tensor(PLACES, VALUES, (3, 4), requires_grad=True)
    x = other((4, 2))
    assert s.is_leaf and s.requires_grad
    T.sparse.mm(s, x).sum().backward()
    assert s.grad.is_sparse and s.grad.shape == (3, 4)
    expected = x.sum(1).expand(3, 4)
    seen = s.grad.to_dense() if s.grad.is_coalesced() else s.grad.coalesce().to_dense()
    assert ((seen == 0) | T.isclose(seen, expected) | T.isclose(seen, 2 * expected)).all() and (seen != 0).sum() == 4
    assert not s.detach().requires_grad and s.detach().is_sparse
    through = other((3, 4), grad=True)
    (through.to_sparse() @ x).sum().backward()
    T.testing.assert_close(through.grad, expected)


def test_it_is_saved_by_functions():
    class Product(T.autograd.Function):
        @staticmethod
        def forward(ctx, places, values, size, x):
            matrix = T.sparse_coo_tensor(places, values, size)
            ctx.save_for_backward(matrix, x)
            return T.matmul(matrix, x)

        @staticmethod
        def backward(ctx, g):
            matrix, x = ctx.saved_tensors
            whole = g.matmul(x.t())
            return None, whole[tuple(matrix._indices())], None, matrix.t().matmul(g)

    values, x = tensor(VALUES, grad=True), other((4, 2), grad=True)
    Product.apply(T.tensor(PLACES), values, T.Size([3, 4]), x).sum().backward()
    first = values.grad, x.grad
    values.grad = x.grad = None
    T.sparse.mm(T.sparse_coo_tensor(PLACES, values, (3, 4)), x).sum().backward()
    T.testing.assert_close(first, (values.grad, x.grad))


def test_other_dtypes_and_devices():
    s = sample()
    for made, kind in ((s.double(), T.float64), (s.half(), T.float16), (s.to(T.int64), T.int64), (s.long(), T.int64)):
        assert made.is_sparse and made.dtype is kind and made._nnz() == 5
    assert s.float() is s and s.to("cpu") is s and s.cpu() is s and s.to(s) is s
    for device in devices()[1:]:
        there = s.to(device)
        assert there.is_cuda and there.device.type == device and there._indices().device.type == device
        close(there.cpu(), s)
        close(s.cuda() @ T.ones(4, 2, device=device), (dense_sample() @ T.ones(4, 2)).to(device))


def test_copies_and_checkpoints():
    s = sample()
    module = T.nn.Module()
    module.register_buffer("adjacency", s.coalesce())
    for made in (s.clone(), copy.deepcopy(s), pickle.loads(pickle.dumps(s)), module.double().state_dict()["adjacency"].float()):
        assert made.is_sparse and made is not s
        close(made, s)
    assert s.clone()._values().data_ptr() != s._values().data_ptr()
    file = io.BytesIO()
    T.save({"a": s.coalesce(), "b": s}, file)
    file.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = T.load(file)
    assert read["a"].is_coalesced() and not read["b"].is_coalesced()
    close(read["a"], s)
    close(read["b"], s)
    zeros = T.zeros_like(s)
    assert zeros.is_sparse and zeros._nnz() == 0 and zeros.shape == s.shape


BAD = [
    (lambda s: s.indices(), RuntimeError, "Cannot get indices on an uncoalesced tensor, please call .coalesce() first"),
    (lambda s: s.values(), RuntimeError, "Cannot get values on an uncoalesced tensor, please call .coalesce() first"),
    (lambda s: T.ones(2).indices(), RuntimeError, "indices expected sparse coordinate tensor layout but got Strided"),
    (lambda s: T.ones(2).values(), RuntimeError, "values expected sparse tensor layout but got Strided"),
    (lambda s: T.ones(2).coalesce(), RuntimeError, "coalesce expected sparse coordinate tensor layout but got Strided"),
    (lambda s: T.sparse.sum(T.ones(2)), RuntimeError, "coalesce expected sparse coordinate tensor layout but got Strided"),
    (lambda s: s + 1, RuntimeError, "add(sparse, dense) is not supported. Use add(dense, sparse) instead."),
    (lambda s: s + T.ones(3, 4), RuntimeError, "add(sparse, dense) is not supported. Use add(dense, sparse) instead."),
    (lambda s: s / T.ones(3, 4), RuntimeError, "Sparse division requires a scalar or zero-dim dense tensor divisor"),
    (lambda s: s @ T.ones(3, 2), RuntimeError, "addmm: Argument #3 (dense): Expected dim 0 size 4, got 3"),
    (lambda s: s @ T.ones(3), RuntimeError, "mv: expected self.size(-1) == vec.size(-1)"),
    (lambda s: s.double() @ T.ones(4, 2), RuntimeError, "expected scalar type Double but found Float"),
    (lambda s: s @ T.ones(2, 4, 2), RuntimeError, "expand is unsupported for Sparse tensors"),
    (lambda s: s.exp(), NotImplementedError, "Could not run 'aten::exp' with arguments from the 'SparseCPU' backend."),
    (lambda s: s.cos(), NotImplementedError, "Could not run 'aten::cos' with arguments from the 'SparseCPU' backend."),
    (lambda s: s.view(4, 3), NotImplementedError, "Could not run 'aten::view' with arguments from the 'SparseCPU' backend."),
    (lambda s: T.where(s, s, s), NotImplementedError, "Could not run 'aten::where"),
    (lambda s: s[0:1], NotImplementedError, "Could not run 'aten::as_strided' with arguments from the 'SparseCPU' backend."),
    (lambda s: s.reshape(4, 3), RuntimeError, "reshape is not implemented for sparse tensors"),
    (lambda s: s.numpy(), TypeError, "can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first."),
    (lambda s: s.tolist(), RuntimeError, "Cannot access data pointer of Tensor that doesn't have storage"),
    (lambda s: s.data_ptr(), RuntimeError, "Cannot access data pointer of Tensor that doesn't have storage"),
    (lambda s: s.untyped_storage(), NotImplementedError, "Cannot access storage of SparseTensorImpl"),
    (lambda s: s.item(), RuntimeError, "a Tensor with 12 elements cannot be converted to Scalar"),
    (lambda s: bool(s), RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"),
    (lambda s: s.to_sparse(1), RuntimeError, "to_sparse: conversion from Sparse to Sparse with sparse_dim argument"),
    (
        lambda s: T.sparse_coo_tensor(PLACES, VALUES[:4], (3, 4)),
        RuntimeError,
        "indices and values must have same nnz, but got nnz",
    ),
    (
        lambda s: T.sparse_coo_tensor(PLACES, VALUES, (3,)),
        RuntimeError,
        "'len(size) == sparse_dim + dense_dim' is not satisfied",
    ),
    (lambda s: T.sparse_coo_tensor([-1], VALUES), RuntimeError, "indices must be sparse_dim x nnz, but got: [1]"),
    (lambda s: T.sparse_coo_tensor([[-1]], [1.0]), RuntimeError, "found negative index -1 for dim 0"),
    (
        lambda s: T.sparse_coo_tensor(PLACES, VALUES, (3, 3), check_invariants=True),
        RuntimeError,
        "size is inconsistent with indices: for dim 1, size is 3 but found index 3",
    ),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_what_is_refused(case):
    call, kind, text = BAD[case]
    with pytest.raises(kind) as error:
        call(sample())
    assert str(error.value).startswith(text)


def test_invariants_can_be_checked_everywhere():
    assert not T.sparse.check_sparse_tensor_invariants.is_enabled()
    with T.sparse.check_sparse_tensor_invariants():
        assert T.sparse.check_sparse_tensor_invariants.is_enabled()
        with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
            T.sparse_coo_tensor(PLACES, VALUES, (3, 3))
    assert not T.sparse.check_sparse_tensor_invariants.is_enabled()


@pytest.mark.gradiron
def test_a_place_outside_is_told_and_nothing_is_read():
    s = T.sparse_coo_tensor([[0, 7], [0, 0]], [1.0, 2.0], (3, 4))
    for call in (s.to_dense, lambda: s @ T.ones(4, 2)):
        with pytest.raises((IndexError, RuntimeError), match="out of (range|bounds)"):
            call()


@pytest.mark.gradiron
def test_what_is_not_there_says_so():
    for call in (lambda: T.nn.Parameter(sample()), lambda: T.ones(2, 2).to_sparse(layout=T.sparse_bsr)):
        with pytest.raises(NotImplementedError):
            call()


def test_methods_called_by_way_of_tensor():
    coo = sample(grad=True)
    for x in (coo, coo.detach().to_sparse_csr()):
        names = "detach half double cpu to_dense sparse_dim dense_dim type values _nnz".split()
        for name in names if x.layout is T.sparse_csr else [*names, "coalesce", "is_coalesced", "_indices", "_values"]:
            by_class, own = getattr(T.Tensor, name), getattr(x, name)
            try:
                expected = own()
            except RuntimeError as error:
                with pytest.raises(type(error)) as caught:
                    by_class(x)
                assert str(caught.value) == str(error)
                continue
            found = by_class(x)
            assert type(found) is type(expected) and (not T.is_tensor(found) or found.layout == expected.layout)
            assert repr(found) == repr(expected)
    assert T.Tensor.to(coo, T.float64, copy=True).layout is T.sparse_coo
    assert not T.Tensor.detach(coo).requires_grad


def test_former_constructor():
    x = T.eye(3).to_sparse()
    at, held = x._indices(), T.ones(3, dtype=T.float64)
    made = x.new(at, held, (4, 4))
    assert made.is_sparse and made.shape == (4, 4) and made.dtype is T.float64
    assert x.new(at, held).to_dense().tolist() == T.eye(3).tolist()
    assert x.new().shape == (0,) and x.new(2, 3).shape == x.new(T.Size([2, 3])).shape == x.new(size=(2, 3)).shape == (2, 3)
    assert x.double().new(2)._nnz() == 0 and x.double().new(2).dtype is T.float64
    with pytest.raises(TypeError, match="SparseTensor.new.sequence. only accepts sizes"):
        x.new((2, 3))
    for wrong in (T.ones(3), x, "a"):
        with pytest.raises(TypeError, match=r"new\(\) received an invalid combination of arguments - got \("):
            x.new(wrong)


def test_an_empty_tensor_takes_another_shape():
    like = T.sparse_coo_tensor([[0]], T.ones(1, 2), (3, 2), check_invariants=True)
    x = T.eye(3).to_sparse().new().double()
    assert x.resize_as_(like) is x and x.shape == (3, 2) and x.dtype is T.float64
    assert (x.sparse_dim(), x.dense_dim(), x._nnz()) == (1, 1, 0) and x._values().shape == (0, 2)
    with pytest.raises(NotImplementedError, match="Could not run 'aten::resize"):
        x.resize_as_(T.eye(3))
