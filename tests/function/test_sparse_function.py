"""Custom Functions that are called with sparse tensors."""

import warnings

import pytest

from library import T

warnings.filterwarnings("ignore", "Sparse", UserWarning)
pytestmark = pytest.mark.filterwarnings("ignore:Sparse:UserWarning")

PLACES, VALUES = [[0, 0, 2], [1, 2, 0]], [1.0, 2.0, 3.0]


def leaf():
    return T.sparse_coo_tensor(PLACES, VALUES, (3, 4), requires_grad=True, dtype=T.float64)


class Product(T.autograd.Function):
    @staticmethod
    def forward(ctx, matrix, x):
        assert matrix.is_sparse
        ctx.save_for_backward(matrix, x)
        return T.sparse.mm(matrix, x)

    @staticmethod
    def backward(ctx, g):
        assert ctx.needs_input_grad[:2] == (True, True)
        matrix, x = ctx.saved_tensors
        return (g @ x.t()).sparse_mask(matrix), matrix.t() @ g


class Later(T.autograd.Function):
    @staticmethod
    def forward(matrix, x):
        return T.sparse.mm(matrix, x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        matrix, x = ctx.saved_tensors
        return (g @ x.t()).sparse_mask(matrix), matrix.t() @ g


@pytest.mark.parametrize("function", (Product, Later))
def test_a_sparse_leaf_gets_its_gradient(function):
    matrix, x = leaf().coalesce().detach().requires_grad_(), T.ones(4, 2, dtype=T.float64, requires_grad=True)
    y = function.apply(matrix, x)
    assert y.requires_grad and y.grad_fn.name() == f"{function.__name__}Backward"
    y.sum().backward()
    assert matrix.grad.is_sparse and matrix.grad.to_dense().tolist() == [[0, 2, 2, 0], [0] * 4, [2, 0, 0, 0]]
    assert x.grad.tolist() == [[3, 3], [1, 1], [2, 2], [0, 0]]


def test_no_gradient_is_asked_of_what_wants_none():
    matrix = leaf().detach()
    seen = []

    class Asked(T.autograd.Function):
        @staticmethod
        def forward(ctx, matrix, x):
            return T.sparse.mm(matrix, x)

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad[:2])
            return None, matrix.t() @ g

    x = T.ones(4, 2, dtype=T.float64, requires_grad=True)
    Asked.apply(matrix, x).sum().backward()
    assert seen == [(False, True)] and x.grad is not None


def test_a_sparse_result():
    class Doubled(T.autograd.Function):
        @staticmethod
        def forward(ctx, matrix):
            return matrix * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    matrix = leaf().coalesce().detach().requires_grad_()
    doubled = Doubled.apply(matrix)
    assert doubled.is_sparse and doubled.requires_grad
    T.sparse.sum(doubled).backward()
    assert matrix.grad.to_dense().sum().item() == 6.0


@pytest.mark.gradiron
def test_a_gradient_elsewhere_is_cut_to_the_places():
    class Whole(T.autograd.Function):
        @staticmethod
        def forward(ctx, matrix):
            return matrix.to_dense().sum()

        @staticmethod
        def backward(ctx, g):
            return g * T.ones(3, 4, dtype=T.float64).to_sparse()

    matrix = leaf()
    Whole.apply(matrix).backward()
    assert matrix.grad._values().tolist() == [1.0, 1.0, 1.0]


@pytest.mark.gradiron
def test_a_gradient_that_would_be_lost_is_told():
    class Made(T.autograd.Function):
        @staticmethod
        def forward(ctx, values):
            return T.sparse_coo_tensor(PLACES, values, (3, 4))

    T.zeros(1, layout=T.sparse_coo)
    with pytest.raises(NotImplementedError, match="made a sparse tensor of dense ones"):
        Made.apply(T.ones(3, requires_grad=True))
