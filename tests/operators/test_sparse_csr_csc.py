"""Sparse matrices that are compressed by rows or by columns (CSR, CSC)."""

import copy
import io

import pytest

from library import T

pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse:UserWarning"),
    pytest.mark.filterwarnings("ignore:Validating sparse:UserWarning"),
]

DENSE = [[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, 3.0, 4.0], [5.0, 0.0, 0.0]]
STARTS, ACROSS, VALUES = [0, 2, 2, 4, 5], [0, 2, 1, 2, 0], [1.0, 2.0, 3.0, 4.0, 5.0]


def matrix(**options):
    return T.sparse_csr_tensor(STARTS, ACROSS, VALUES, (4, 3), dtype=T.float64, **options)


def dense(**options):
    return T.tensor(DENSE, dtype=T.float64, **options)


def other(*size, **options):
    generator = T.Generator().manual_seed(0)
    return T.rand(*size, generator=generator, dtype=T.float64, **options)


def same(a, b):
    a, b = (x.to_dense() if x.layout is not T.strided else x for x in (a, b))
    assert a.shape == b.shape and T.allclose(a, b), (a, b)


def test_made_of_its_parts():
    x = matrix()
    assert x.layout is T.sparse_csr and x.is_sparse_csr and not x.is_sparse
    assert (x.shape, x.dim(), x.numel(), x._nnz(), x.sparse_dim(), x.dense_dim()) == ((4, 3), 2, 12, 5, 2, 0)
    assert x.crow_indices().tolist() == STARTS and x.col_indices().tolist() == ACROSS and x.values().tolist() == VALUES
    same(x, dense())
    assert T.sparse_csr_tensor(STARTS, ACROSS, VALUES).shape == (4, 3)
    narrow = T.sparse_csr_tensor(T.tensor(STARTS, dtype=T.int32), T.tensor(ACROSS, dtype=T.int32), VALUES, (4, 3))
    assert narrow.crow_indices().dtype is T.int32
    same(narrow.double(), dense())
    same(T.sparse_compressed_tensor(STARTS, ACROSS, VALUES, (4, 3), layout=T.sparse_csr).double(), dense())
    columns = T.sparse_csc_tensor([0, 2, 3, 5], [0, 3, 2, 0, 2], [1.0, 5.0, 3.0, 2.0, 4.0], (4, 3), dtype=T.float64)
    assert columns.layout is T.sparse_csc
    same(columns, dense())


def test_there_and_back():
    for x in (dense().to_sparse_csr(), dense().to_sparse(layout=T.sparse_csr), dense().to_sparse().to_sparse_csr()):
        assert x.crow_indices().tolist() == STARTS and x.col_indices().tolist() == ACROSS
        same(x, dense())
        assert x.to_sparse_csr() is x
    coo = matrix().to_sparse_coo()
    assert coo.is_coalesced() and coo.indices().tolist() == [[0, 0, 2, 2, 3], ACROSS]
    assert matrix().to_sparse().layout is T.sparse_coo
    columns = matrix().to_sparse_csc()
    assert columns.ccol_indices().tolist() == [0, 2, 3, 5] and columns.row_indices().tolist() == [0, 3, 2, 0, 2]
    same(columns.to_sparse_csr(), dense())
    twice = T.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [1.0, 2.0, 3.0], (2, 2)).to_sparse_csr()
    assert twice.values().tolist() == [3.0, 3.0]
    deep = T.ones(2, 2, 2).to_sparse_csr(dense_dim=1)
    assert deep.values().shape == (4, 2) and deep.to_dense().tolist() == T.ones(2, 2, 2).tolist()


def test_it_is_printed():
    assert repr(matrix(requires_grad=True)) == (
        "tensor(crow_indices=tensor([0, 2, 2, 4, 5]),\n"
        "       col_indices=tensor([0, 2, 1, 2, 0]),\n"
        "       values=tensor([1., 2., 3., 4., 5.]), size=(4, 3), nnz=5,\n"
        "       dtype=torch.float64, layout=torch.sparse_csr, requires_grad=True)"
    )
    assert repr(T.zeros(2, 3, layout=T.sparse_csr)) == (
        "tensor(crow_indices=tensor([0, 0, 0]),\n"
        "       col_indices=tensor([], size=(0,)),\n"
        "       values=tensor([], size=(0,)), size=(2, 3), nnz=0,\n"
        "       layout=torch.sparse_csr)"
    )


PRODUCTS = {
    "@": lambda a: a @ other(3, 2),
    "mm": lambda a: T.mm(a, other(3, 2)),
    "sparse.mm": lambda a: T.sparse.mm(a, other(3, 2)),
    "matmul": lambda a: T.matmul(a, other(3, 2)),
    "mv": lambda a: a.mv(other(3)),
    "@ vector": lambda a: a @ other(3),
    "dense @": lambda a: other(2, 4) @ a,
    "transposed": lambda a: a.t() @ other(4, 2),
    "addmm": lambda a: T.addmm(other(4, 2), a, other(3, 2)),
    "sparse.addmm": lambda a: T.sparse.addmm(other(4, 2), a, other(3, 2), beta=2, alpha=3),
    "addmv": lambda a: T.addmv(other(4), a, other(3)),
    "linear": lambda a: T.nn.functional.linear(other(2, 3), a),
    "squared": lambda a: a @ a.t(),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name):
    call = PRODUCTS[name]
    same(call(matrix()), call(dense()))


def test_products_of_sparse_matrices_are_sparse():
    x = matrix()
    for y in (x @ x.t(), x @ x.t().to_sparse_csr()):
        assert y.layout is T.sparse_csr
    assert x.t().layout is T.sparse_csc and x.transpose(0, 1).shape == (3, 4)


@pytest.mark.parametrize("reduce", ("sum", "mean", "amax", "amin"))
def test_a_row_of_terms_is_reduced(reduce):
    rows, x = matrix(requires_grad=True), (other(3, 2) - 0.5).requires_grad_()
    made = T.sparse.mm(rows, x, reduce)
    terms = [[VALUES[k] * x.detach()[ACROSS[k]] for k in range(*STARTS[i : i + 2])] for i in range(4)]
    how = {"sum": lambda t: t.sum(0), "mean": lambda t: t.mean(0), "amax": lambda t: t.amax(0), "amin": lambda t: t.amin(0)}
    expected = T.stack([how[reduce](T.stack(t)) if t else T.zeros(2, dtype=T.float64) for t in terms])
    same(made, expected)
    made.sum().backward()
    assert rows.grad.layout is T.sparse_csr and x.grad.shape == (3, 2)
    if reduce == "mean":
        assert T.allclose(x.grad, T.tensor([[5.5] * 2, [1.5] * 2, [3.0] * 2], dtype=T.float64))


def test_elements():
    x = matrix()
    for made, expected in (
        (x + x, 2 * dense()),
        (x + dense(), 2 * dense()),
        (dense() + x, 2 * dense()),
        (x * 2, 2 * dense()),
        (2 * x, 2 * dense()),
        (x * x, dense() ** 2),
        (x * dense(), dense() ** 2),
        (-x, -dense()),
        (x.sqrt(), dense().sqrt()),
        (x.abs(), dense()),
        (x.sum(1, keepdim=True), dense().sum(1, keepdim=True)),
        (x.sum(0, keepdim=True), dense().sum(0, keepdim=True)),
        (T.zeros_like(x), T.zeros(4, 3, dtype=T.float64)),
        (dense().sparse_mask(x), dense()),
        (x.float().double(), dense()),
        (x.clone(), dense()),
        (x[2], dense()[2]),
        (x.select(1, 2), dense()[:, 2]),
    ):
        same(made, expected)
    assert x.sum().item() == 15.0 and x[0, 2].item() == 2.0
    assert (x * 2).layout is T.sparse_csr and (x + x).layout is T.sparse_csr and x[2].layout is T.sparse_coo
    assert matrix().mul_(2).values().tolist() == [2.0, 4.0, 6.0, 8.0, 10.0]
    sampled = T.sparse.sampled_addmm(x, other(4, 2), other(2, 3), beta=2.0, alpha=3.0)
    same(sampled, 2 * dense() + 3 * (other(4, 2) @ other(2, 3)) * (dense() != 0))


def test_gradients():
    values = T.tensor(VALUES, dtype=T.float64, requires_grad=True)
    x = T.sparse_csr_tensor(STARTS, ACROSS, values, (4, 3))
    assert x.requires_grad and not x.is_leaf
    features = other(3, 2).requires_grad_()
    (x @ features).square().sum().backward()
    mine, theirs = dense(requires_grad=True), other(3, 2).requires_grad_()
    (mine @ theirs).square().sum().backward()
    same(values.grad, mine.grad[dense() != 0])
    same(features.grad, theirs.grad)
    leaf = matrix(requires_grad=True)
    assert leaf.is_leaf
    (leaf * 2).to_dense().sum().backward()
    assert leaf.grad.layout is T.sparse_csr and leaf.grad.values().tolist() == [2.0] * 5


@pytest.mark.gradiron
def test_second_gradients_of_a_product():
    # (PyTorch has none.)
    def product(values, x):
        return T.sparse_csr_tensor(STARTS, ACROSS, values, (4, 3)) @ x

    values = T.tensor(VALUES, dtype=T.float64, requires_grad=True)
    assert T.autograd.gradcheck(product, (values, other(3, 2).requires_grad_()))
    assert T.autograd.gradgradcheck(product, (values, other(3, 2).requires_grad_()))


def test_it_is_saved():
    for x in (matrix(), matrix().to_sparse_csc()):
        file = io.BytesIO()
        T.save({"x": x}, file)
        file.seek(0)
        loaded = T.load(file)["x"]
        assert loaded.layout is x.layout
        same(loaded, dense())


@pytest.mark.gradiron
def test_it_is_copied_deeply():
    # (PyTorch cannot.)
    x = matrix(requires_grad=True)
    y = copy.deepcopy(x)
    assert y.requires_grad and y.values().data_ptr() != x.values().data_ptr()
    same(y, x)


def test_diagonals():
    made = T.sparse.spdiags(T.arange(1.0, 7.0).reshape(2, 3), T.tensor([0, 1]), (3, 3))
    assert made.to_dense().tolist() == [[1.0, 5.0, 0.0], [0.0, 2.0, 6.0], [0.0, 0.0, 3.0]]
    assert T.sparse.spdiags(T.ones(1, 3), T.tensor([0]), (3, 3), layout=T.sparse_csr).layout is T.sparse_csr


CHECKED = [
    ([0, 2, 2, 4, 6], ACROSS, "`crow_indices[..., -1] == nnz` is not satisfied."),
    ([1, 2, 2, 4, 5], ACROSS, "`crow_indices[..., 0] == 0` is not satisfied."),
    (STARTS, [0, 2, 1, 9, 0], "`0 <= col_indices < ncols` is not satisfied."),
    (STARTS, [2, 0, 1, 2, 0], "`col_indices[..., crow_indices[..., i - 1]:crow_indices[..., i]] for all i = 1, ..., nrows"),
]


@pytest.mark.parametrize("case", range(len(CHECKED)))
def test_what_invariants_refuse(case):
    starts, across, text = CHECKED[case]
    with pytest.raises(RuntimeError) as error:
        T.sparse_csr_tensor(starts, across, VALUES, (4, 3), check_invariants=True)
    assert str(error.value).startswith(text)


BAD = [
    (lambda x: x.indices(), RuntimeError, "indices expected sparse coordinate tensor layout but got SparseCsr"),
    (
        lambda x: x.ccol_indices(),
        RuntimeError,
        "ccol_indices expected sparse column compressed tensor layout but got SparseCsr",
    ),
    (
        lambda x: dense().crow_indices(),
        RuntimeError,
        "crow_indices expected sparse row compressed tensor layout but got Strided",
    ),
    (
        lambda x: dense().to_sparse().crow_indices(),
        RuntimeError,
        "crow_indices expected sparse row compressed tensor layout but got Sparse",
    ),
    (lambda x: x.is_coalesced(), RuntimeError, "is_coalesced expected sparse coordinate tensor layout but got SparseCsr"),
    (lambda x: x.stride(), RuntimeError, "Sparse CSR tensors do not have strides"),
    (lambda x: x.contiguous(), RuntimeError, "Sparse CSR tensors do not have is_contiguous"),
    (lambda x: x.numpy(), TypeError, "can't convert SparseCsr layout tensor to numpy. Use Tensor.to_dense() first."),
    (lambda x: x - x, RuntimeError, "unsupported tensor layout: SparseCsr"),
    (lambda x: x / 2, RuntimeError, "unsupported tensor layout: SparseCsr"),
    (lambda x: x.exp(), RuntimeError, "unsupported tensor layout: SparseCsr"),
    (lambda x: x + 1, RuntimeError, "add: expected 'self' and 'other' to have same size, but self has size []"),
    (lambda x: x.sum(0), RuntimeError, "reduction operations on CSR tensors with keepdim=False is unsupported"),
    (lambda x: x.max(), NotImplementedError, "Could not run 'aten::max' with arguments from the 'SparseCsrCPU' backend."),
    (
        lambda x: x.nonzero(),
        NotImplementedError,
        "Could not run 'aten::nonzero' with arguments from the 'SparseCsrCPU' backend.",
    ),
    (lambda x: T.ones(2).to_sparse(layout="sparse_csr"), TypeError, ""),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_what_is_refused(case):
    call, kind, text = BAD[case]
    with pytest.raises(kind) as error:
        call(matrix())
    assert str(error.value).startswith(text)


@pytest.mark.gradiron
def test_what_is_not_there_says_so():
    for call in (
        lambda: T.zeros(2, 3, 4, layout=T.sparse_csr),
        lambda: T.ones(2, 2, 2).to_sparse_csr(),
        lambda: T.ones(2, 2).to_sparse(layout=T.sparse_bsr),
    ):
        with pytest.raises(NotImplementedError, match="gradiron has"):
            call()


@pytest.mark.gradiron
@pytest.mark.parametrize("layout", (T.sparse_coo, T.sparse_csr, T.sparse_csc))
def test_parameters_are_not_sparse(layout):
    with pytest.raises(NotImplementedError, match="a sparse tensor cannot be a parameter"):
        T.nn.Parameter(T.ones(2, 2).to_sparse(layout=layout))


def test_places_are_compressed():
    rows = T.tensor([0, 0, 2, 3])
    assert T._convert_indices_from_coo_to_csr(rows, 5).tolist() == [0, 2, 2, 3, 4, 4]
    assert T._convert_indices_from_coo_to_csr(rows, 5, out_int32=True).dtype is T.int32
    starts, across = T.tensor([0, 2, 2, 3]), T.tensor([1, 0, 2])
    assert T._convert_indices_from_csr_to_coo(starts, across).tolist() == [[0, 0, 2], [1, 0, 2]]
    turned = T._convert_indices_from_csr_to_coo(starts, across, transpose=True, out_int32=True)
    assert turned.tolist() == [[1, 0, 2], [0, 0, 2]] and turned.dtype is T.int32
