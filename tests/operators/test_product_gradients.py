"""How gradients of products lie in memory, how a product of batches is told as one of matrices, and what its operands
may be."""

import itertools

import pytest

from library import T

SHAPES = [(3,), (4, 3), (3, 4), (2, 4, 3), (2, 3, 4), (1, 4, 3), (1, 3, 4), (5, 2, 3, 4), (0, 3, 4)]


def names(node):
    if node is None:
        return "-"
    behind = ", ".join(names(edge[0]) for edge in node.next_functions)
    name = node.name().replace("torch::autograd::", "").replace("Backward", "")
    return f"{name}({behind})" if behind else name


def tensor(shape, by_columns=False):
    count = 1
    for size in shape:
        count *= size
    t = T.arange(count, dtype=T.float64).reshape(shape)
    return (t.mT.contiguous().mT if by_columns else t).detach().requires_grad_()


@pytest.mark.parametrize("columns", list(itertools.product((False, True), repeat=2)))
def test_gradients_of_matrices_lie_as_the_matrices(columns):
    a, b = tensor((4, 3), columns[0]), tensor((3, 5), columns[1])
    for product in (T.mm(a, b), T.addmm(T.ones(5, dtype=T.float64), a, b), a @ b):
        for t, grad in zip((a, b), T.autograd.grad(product.sum(), (a, b))):
            assert grad.stride() == t.stride()
    scaled = T.addmm(T.ones(5, dtype=T.float64), a, b, alpha=2)
    assert [g.stride() for g in T.autograd.grad(scaled.sum(), (a, b))] == [a.stride(), b.stride()]


def test_a_gradient_by_columns_is_a_transposed_product():
    a, b = tensor((4, 3), True), tensor((3, 5))
    grads = T.autograd.grad((a @ b).square().sum(), (a, b), create_graph=True)
    assert grads[0].grad_fn.name() == "TBackward0"
    assert grads[1].grad_fn.name() == "MmBackward0"
    seconds = T.autograd.grad(grads[0].square().sum() + grads[1].square().sum(), (a, b))
    step = 1e-6
    for t, second in zip((a, b), seconds):
        moved = []
        for sign in (1, -1):
            x = [u.detach().clone() for u in (a, b)]
            x[0 if t is a else 1][0, 1] += sign * step
            x = [u.requires_grad_() for u in x]
            first = T.autograd.grad((x[0] @ x[1]).square().sum(), x)
            moved.append(first[0].square().sum() + first[1].square().sum())
        assert ((moved[0] - moved[1]) / (2 * step)).item() == pytest.approx(second[0, 1].item(), rel=1e-5)


BATCHES = "UnsafeView0(Bmm0({}, {}))"
WHOLE = "View0(Expand0(AccumulateGrad))"


@pytest.mark.parametrize(
    "shapes, told",
    [
        (((2, 4, 3), (2, 3, 4)), BATCHES.format(WHOLE, WHOLE)),
        (((2, 4, 3), (3, 4)), "UnsafeView0(Mm0(View0(AccumulateGrad), AccumulateGrad))"),
        (((2, 4, 3), (3,)), "UnsafeView0(Mv0(View0(AccumulateGrad), AccumulateGrad))"),
        (((2, 4, 3), (1, 3, 4)), "UnsafeView0(Mm0(View0(AccumulateGrad), Squeeze1(AccumulateGrad)))"),
        (((3,), (3, 4)), "Squeeze4(Mm0(Unsqueeze0(AccumulateGrad), AccumulateGrad))"),
        (((3,), (2, 3, 4)), "UnsafeView0(Mv0(UnsafeView0(Clone0(Transpose0(AccumulateGrad))), AccumulateGrad))"),
        (
            ((4, 3), (2, 3, 4)),
            "Clone0(Transpose0(UnsafeView0(Mm0(UnsafeView0(Clone0(Transpose0(AccumulateGrad))), T0(AccumulateGrad)))))",
        ),
        (((5, 2, 4, 3), (2, 3, 4)), BATCHES.format(WHOLE, "UnsafeView0(Clone0(Expand0(AccumulateGrad)))")),
    ],
)
def test_which_products_a_product_is(shapes, told):
    assert names((tensor(shapes[0]) @ tensor(shapes[1])).grad_fn) == told


def test_a_batch_that_wants_no_matrix_gradient_stays_a_batch():
    a = T.ones(4, 3, dtype=T.float64)
    assert names((a @ tensor((2, 3, 4))).grad_fn) == "UnsafeView0(Bmm0(-, View0(Expand0(AccumulateGrad))))"


@pytest.mark.parametrize("shapes", list(itertools.product(SHAPES, SHAPES)))
def test_products_of_all_shapes(shapes):
    a, b = (tensor(shape) for shape in shapes)
    inner = shapes[1][-2] if len(shapes[1]) > 1 else shapes[1][-1]
    leads = [shape[:-2] for shape in shapes]
    fits = all(1 in pair or pair[0] == pair[1] for pair in zip(*(reversed(lead) for lead in leads)))
    if shapes[0][-1] != inner or not fits:
        with pytest.raises(RuntimeError):
            a @ b
        return
    made = a @ b
    # Element by element, of the operands stretched by hand.
    rows = a.detach() if a.ndim > 1 else a.detach()[None]
    columns = b.detach() if b.ndim > 1 else b.detach()[:, None]
    want = (rows[..., :, :, None] * columns[..., None, :, :]).sum(-2)
    want = want if a.ndim > 1 else want.squeeze(-2)
    want = want if b.ndim > 1 else want.squeeze(-1)
    assert made.shape == want.shape and T.equal(made.detach(), want)
    assert T.autograd.gradcheck(lambda x, y: x @ y, (a / 10, b / 10))


@pytest.mark.parametrize("left", [T.bool, T.int64, T.float32])
@pytest.mark.parametrize("right", [T.bool, T.int64, T.float64])
def test_dtypes_of_products_must_agree(left, right):
    if left == right and left != T.bool:
        return
    a, b = T.ones(2, 2, 2).to(left), T.ones(2, 2, 2).to(right)
    kind = NotImplementedError if left == T.bool else RuntimeError
    with pytest.raises(kind, match='"bmm" not implemented' if left == T.bool else "expected scalar type"):
        T.bmm(a, b)
    same = left == right
    with pytest.raises(NotImplementedError if same else RuntimeError, match="addmv"):
        a[0] @ b[0, 0]
    with pytest.raises(NotImplementedError if same else RuntimeError):
        T.addmm(a[0], a[0], b[0])


def test_addr_and_addbmm_of_whole_numbers():
    i, v = T.tensor([[1, 2], [3, 4]]), T.tensor([2, 3])
    truth, vector = T.tensor([[True, False], [True, True]]), T.tensor([True, False])
    assert T.addr(truth, vector, vector, beta=3, alpha=2).tolist() == [[True, False], [True, True]]
    assert T.addr(truth, vector, vector, beta=False).tolist() == [[True, False], [False, False]]
    assert T.addr(truth, v, v).dtype == T.int64
    assert T.addr(i, v.float(), v, beta=0).dtype == T.float32
    with pytest.raises(RuntimeError, match="argument beta must not be a floating point number"):
        T.addr(i, v, v, beta=0.5)
    with pytest.raises(RuntimeError, match="Boolean alpha only supported for Boolean results"):
        T.addr(i, v, v, alpha=True)
    with pytest.raises(RuntimeError, match="addr: Expected 1-D argument vec1, but got 2-D"):
        T.addr(i, i, v)
    with pytest.raises(RuntimeError, match="must match the existing size"):
        T.addr(T.ones(3), v.float(), v.float())
    made = T.addbmm(i, i[None], i[None], beta=1.5, alpha=2.5)
    assert made.dtype == T.int64 and made.tolist() == [[15, 22], [33, 48]]
