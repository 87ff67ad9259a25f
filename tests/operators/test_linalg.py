"""Linear algebra: factors multiply to what was factored, solutions solve, refusals are PyTorch's."""

import builtins
import math
import pickle

import pytest

from library import IS_GRADIRON, NO_GPU, T, assert_values

L = T.linalg
KINDS = [T.float32, T.float64, T.complex64, T.complex128]
SHAPES = [(4, 4), (2, 5, 3), (3, 5), (2, 1, 1, 1), (6, 2)]
kinds = pytest.mark.parametrize("kind", KINDS)
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


def draw(*shape, kind=T.float64, seed=0):
    T.manual_seed(seed)
    return T.randn(*shape, dtype=kind)


def near(actual, expected):
    loose = 2e-5 if expected.dtype in (T.float32, T.complex64) else 1e-12
    size = max(1.0, expected.abs().max().item() if expected.numel() else 1.0)
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    assert T.allclose(actual, expected, rtol=0, atol=loose * size * 10)


def unit(x, n):
    return T.eye(n, dtype=x.dtype).expand(*x.shape[:-2], n, n)


def square(kind, *lead):
    return draw(*lead, 4, 4, kind=kind) + 3 * T.eye(4, dtype=kind)


@kinds
@pytest.mark.parametrize("lead", [(), (3,), (2, 2)], ids=str)
def test_factors_of_squares(kind, lead):
    a = square(kind, *lead)
    p = a @ a.mH
    lower, upper = L.cholesky(p), L.cholesky(p, upper=True)
    near(lower @ lower.mH, p)
    near(upper.mH @ upper, p)
    assert T.equal(lower, lower.tril()) and T.equal(upper, upper.triu())
    # Only one triangle is read.
    near(L.cholesky(p.tril()), lower)
    near(L.cholesky(p.triu(), upper=True), upper)
    values, vectors = L.eigh(p)
    near((vectors * values.to(kind)[..., None, :]) @ vectors.mH, p)
    near(vectors.mH @ vectors, unit(a, 4))
    assert (values[..., 1:] >= values[..., :-1]).all()
    near(L.eigvalsh(p.triu(), UPLO="U"), values)
    near(T.cholesky_solve(a, lower), L.solve(p, a))
    near(T.cholesky_inverse(lower) @ p, unit(a, 4))


@kinds
@shapes
def test_factors_of_any_matrix(kind, shape):
    a = draw(*shape, kind=kind)
    m, n = shape[-2:]
    k = min(m, n)
    q, r = L.qr(a)
    near(q @ r, a)
    near(q.mH @ q, unit(a, k))
    assert T.equal(r, r.triu()) and q.shape[-1] == k
    whole, tall = L.qr(a, mode="complete")
    near(whole @ tall, a)
    near(whole @ whole.mH, unit(a, m))
    assert L.qr(a, mode="r")[0].numel() == 0
    near(L.qr(a, mode="r")[1], r)
    u, s, vh = L.svd(a, full_matrices=False)
    near((u * s.to(kind)[..., None, :]) @ vh, a)
    assert (s[..., 1:] <= s[..., :-1]).all() and (s >= 0).all()
    near(L.svdvals(a), s)
    u, s, vh = L.svd(a)
    near(u.mH @ u, unit(a, m))
    near(vh @ vh.mH, unit(a, n))
    p, lower, upper = L.lu(a)
    near(p @ lower @ upper, a)
    inverse = L.pinv(a)
    near(a @ inverse @ a, a)
    near(inverse @ a @ inverse, inverse)
    assert L.matrix_rank(a).unique().tolist() == [k]


@kinds
@pytest.mark.parametrize("n", [33, 50, 130])
def test_factors_of_many_blocks(kind, n):
    """Larger matrices are factored block by block; tall ones by way of a triangle."""
    a, b = draw(2, n, n, kind=kind), draw(2, n, 9, kind=kind)
    a = a + 2 * n**0.5 * T.eye(n, dtype=kind)
    p, lower, upper = L.lu(a)
    near(p @ lower @ upper, a)
    near(a @ L.solve(a, b), b)
    near(a @ L.inv(a), unit(a, n))
    near(L.solve_triangular(a.tril(), a.tril() @ b, upper=False), b)
    q, r = L.qr(a)
    near(q @ r, a)
    near(q.mH @ q, unit(a, n))
    h = (a + a.mH) / 2
    near(L.cholesky(h @ h) @ L.cholesky(h @ h).mH, h @ h)
    values, vectors = L.eigh(h)
    near((vectors * values.to(kind)[..., None, :]) @ vectors.mH, h)
    near(vectors.mH @ vectors, unit(h, n))
    for x in (a, a[..., : n // 2], a[..., : n // 2, :]):
        u, s, vh = L.svd(x, full_matrices=False)
        near((u * s.to(kind)[..., None, :]) @ vh, x)
        near(u.mH @ u, unit(x, s.shape[-1]))
        near(vh @ vh.mH, unit(x, s.shape[-1]))
        whole = L.svd(x)
        near(whole.U.mH @ whole.U, unit(x, x.shape[-2]))
        near(whole.S, s)
    values, vectors = L.eig(a)
    near(a.to(values.dtype) @ vectors, vectors * values[:, None])


@kinds
def test_values_alone_are_those_with_vectors(kind):
    """Without gradients nobody needs the vectors."""
    a = draw(3, 60, 60, kind=kind)
    h = a + a.mH
    near(L.svdvals(a), L.svd(a).S)
    near(L.svdvals(a[..., :20, :]), L.svd(a[..., :20, :].clone().requires_grad_()).S.detach())
    near(L.eigvalsh(h), L.eigh(h)[0])
    near(L.eigvalsh(h.clone().requires_grad_()).detach(), L.eigvalsh(h))
    expected, alone = L.eigvals(a.clone().requires_grad_()).detach(), L.eigvals(a)
    gaps = (alone[..., None] - expected[..., None, :]).abs()
    assert gaps.min(-1).values.max() < (1e-3 if kind in (T.float32, T.complex64) else 1e-9)


def test_signs_are_those_of_householder():
    q, r = L.qr(T.tensor([[3.0, 1.0], [4.0, 2.0]]))
    assert_values(r, [[-5.0, -2.2], [0.0, 0.4]])
    assert_values(q, [[-0.6, -0.8], [-0.8, 0.6]])


@kinds
def test_solutions(kind):
    a, b, v = square(kind, 2), draw(2, 4, 3, kind=kind), draw(2, 4, kind=kind)
    near(a @ L.solve(a, b), b)
    near(L.solve(a, b.mT, left=False) @ a, b.mT)
    near(a @ L.solve(a, v)[..., None], v[..., None])
    near(a @ L.inv(a), unit(a, 4))
    near(T.inverse(a), L.inv(a))
    near(a.triu() @ L.solve_triangular(a, b, upper=True), b)
    lu, pivots = L.lu_factor(a)
    assert pivots.dtype is T.int32
    near(L.lu_solve(lu, pivots, b), L.solve(a, b))
    near(L.lu_solve(lu, pivots, b, adjoint=True), L.solve(a.mH, b))
    near(L.lu_solve(lu, pivots, b.mT, left=False), L.solve(a, b.mT, left=False))
    p, lower, upper = T.lu_unpack(lu, pivots)
    near(p @ lower @ upper, a)
    sign, size = L.slogdet(a)
    near(sign * size.exp().to(kind), L.det(a))
    near(L.matrix_power(a, -2) @ a @ a, unit(a, 4))
    near(L.matrix_exp(a) @ L.matrix_exp(-a), unit(a, 4))
    near(L.lstsq(a, b).solution, L.solve(a, b))
    assert L.lstsq(a, b).solution.mT.is_contiguous()
    near(L.multi_dot([a[0], a[1], v[0]]), a[0] @ a[1] @ v[0])


@kinds
@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("lead", [(), (3,), (2, 2)], ids=str)
def test_triangles_and_blocks(kind, hermitian, lead):
    """Of matrices that are not positive; those with zeros on the diagonal need blocks of two rows."""
    a, b = draw(*lead, 6, 6, kind=kind), draw(*lead, 6, 2, kind=kind)
    a = a + (a.mH if hermitian else a.mT)
    for given in (a, a - T.diag_embed(a.diagonal(dim1=-2, dim2=-1))):
        ld, pivots = L.ldl_factor(given, hermitian=hermitian)
        assert pivots.dtype is T.int32 and T.equal(ld, ld.tril()) and ld.mT.is_contiguous()
        near(given @ L.ldl_solve(ld, pivots, b, hermitian=hermitian), b)
        near(L.ldl_solve(ld, pivots.long(), b, hermitian=hermitian), L.solve(given, b))
        # Only one triangle is read.
        assert T.equal(L.ldl_factor(given.tril(), hermitian=hermitian).LD, ld)
    assert (pivots < 0).any()
    assert L.ldl_factor_ex(a, hermitian=hermitian).info.tolist() == T.zeros(lead).tolist()


def test_blocks_are_those_of_lapack():
    ld, pivots = L.ldl_factor(T.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]]))
    assert_values(ld, [[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [1.5, 0.5, -3.0]])
    assert pivots.tolist() == [-3, -3, 3]
    ld, pivots, info = L.ldl_factor_ex(T.tensor([[1.0, 2.0], [2.0, 4.0]]))
    assert_values(ld, [[4.0, 0.0], [0.5, 0.0]])
    assert pivots.tolist() == [2, 2] and info.item() == 2
    i = 1j
    ld, pivots = L.ldl_factor(T.tensor([[1 + i, 4 * i], [-4 * i, 2]]), hermitian=True)
    assert_values(ld, [[1, 0], [-4 * i, 2]])
    assert pivots.tolist() == [-2, -2]


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_one_factored_matrix_solves_many_right_sides():
    ld, pivots = L.ldl_factor(T.tensor([[0.0, 2.0], [2.0, 0.0]]))
    b = T.arange(8.0).reshape(2, 2, 2)
    assert_values(L.ldl_solve(ld, pivots, b), (b.flip(1) / 2).tolist())
    assert_values(L.ldl_solve(ld, pivots, b, out=T.empty(0)), (b.flip(1) / 2).tolist())
    assert_values(T.vmap(L.ldl_solve, (None, None, 0))(ld, pivots, b), (b.flip(1) / 2).tolist())
    assert T.vmap(L.ldl_factor)(b + b.mT)[1].shape == (2, 2)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
def test_triangles_and_blocks_have_no_derivative():
    a = T.eye(2, requires_grad=True)
    ld, pivots = L.ldl_factor(a)
    with pytest.raises(RuntimeError, match="^derivative for aten::linalg_ldl_factor_ex is not implemented"):
        ld.sum().backward()
    solution = L.ldl_solve(ld.detach(), pivots, a)
    with pytest.raises(RuntimeError, match="^derivative for aten::linalg_ldl_solve is not implemented"):
        solution.sum().backward()
    with pytest.raises(NotImplementedError, match="^Trying to use forward AD with aten::linalg_ldl_factor_ex that does not"):
        T.func.jvp(lambda x: L.ldl_factor(x).LD, (T.eye(2),), (T.eye(2),))


@pytest.mark.gradiron
def test_pivots_of_anybody_do_no_harm():
    for pivots in ([-1, 2, -3], [0, 0, 0], [9, -9, 7], [3, -2, -2]):
        assert L.ldl_solve(T.eye(3), T.tensor(pivots, dtype=T.int32), T.ones(3, 1)).shape == (3, 1)


def test_determinants():
    a = T.tensor([[0.0, 2.0], [3.0, 4.0]], dtype=T.float64)
    assert L.det(a).item() == -6 and T.slogdet(a)[0].item() == -1
    assert_values(L.slogdet(a).logabsdet, math.log(6))
    assert math.isnan(T.logdet(a).item()) and T.logdet(-a).isnan()
    assert L.det(T.zeros(3, 3)).item() == 0 and L.slogdet(T.zeros(3, 3)).logabsdet.item() == -math.inf
    assert L.det(T.zeros(2, 0, 0)).tolist() == [1, 1]


# PyTorch's way without second derivatives gives zeros.
@pytest.mark.parametrize("twice", [pytest.param(False, marks=pytest.mark.gradiron), True])
def test_the_gradient_of_the_determinant_of_a_singular_matrix(twice):
    a = T.tensor([[1.0, 2.0, 0.5], [2.0, 4.0, 1.0], [0.0, 1.0, 3.0]], dtype=T.float64, requires_grad=True)
    (grad,) = T.autograd.grad(L.det(a), a, create_graph=twice)
    # The cofactors.
    assert_values(grad, [[11.0, -6.0, 2.0], [-5.5, 3.0, -1.0], [0.0, 0.0, 0.0]], atol=1e-6)


def test_norms():
    a = T.tensor([[3.0, -4.0], [0.0, 5.0]], dtype=T.float64)
    s = L.svdvals(a)
    expected = {"fro": math.sqrt(50), "nuc": s.sum().item(), 2: s[0].item(), -2: s[1].item(), 1: 9, -1: 3}
    for ord, value in {**expected, math.inf: 7, -math.inf: 5}.items():
        assert_values(L.matrix_norm(a, ord), value)
        assert_values(L.norm(a, ord, dim=(0, 1), keepdim=True), [[value]])
        assert_values(L.cond(a, ord), L.matrix_norm(a, ord).item() * L.matrix_norm(L.inv(a), ord).item())
    assert_values(L.norm(a), math.sqrt(50))
    assert_values(L.vector_norm(a, 1, dim=1), [7.0, 5.0])
    assert_values(T.norm(a, "nuc"), s.sum().item())
    assert L.cond(T.zeros(2, 2), 1).item() == math.inf
    assert L.vector_norm(a.float(), dtype=T.float64).dtype is T.float64


def test_empty_matrices():
    assert L.inv(T.zeros(0, 0)).shape == (0, 0) and L.solve(T.zeros(2, 0, 0), T.zeros(2, 0, 3)).shape == (2, 0, 3)
    assert [t.shape for t in L.qr(T.zeros(3, 0))] == [(3, 0), (0, 0)]
    assert [t.shape for t in L.svd(T.zeros(0, 3))] == [(0, 0), (0,), (3, 3)]
    assert L.eigh(T.zeros(2, 0, 0))[0].shape == (2, 0)
    assert L.pinv(T.zeros(0, 3)).shape == (3, 0) and L.matrix_rank(T.zeros(0, 3)).item() == 0
    assert L.cholesky(T.zeros(0, 0)).shape == (0, 0) and L.matrix_exp(T.zeros(0, 0)).shape == (0, 0)


def test_tensors_as_matrices():
    a = T.eye(6, dtype=T.float64).reshape(2, 3, 6) + draw(2, 3, 6) * 0.1
    inverse = L.tensorinv(a)
    assert inverse.shape == (6, 2, 3)
    near(T.tensordot(inverse, a, 2), T.eye(6, dtype=T.float64))
    b = draw(2, 3)
    near(T.tensordot(a, L.tensorsolve(a, b), 1), b)
    assert_values(L.vander(T.tensor([2.0, 3.0]), N=3), [[1.0, 2.0, 4.0], [1.0, 3.0, 9.0]])


def test_reflections():
    a = draw(5, 3)
    v, tau = (T.geqrf(a)) if hasattr(T, "geqrf") else (a, a[0])
    q = L.householder_product(v, tau)
    if hasattr(T, "geqrf"):
        near(q, L.qr(a)[0])
    near(T.ormqr(v, tau, T.eye(5, dtype=a.dtype))[:, :3], q)
    near(T.orgqr(v, tau), q)


SINGULAR = "because the input matrix is singular."


@kinds
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (6, 1), (3, 0), (0, 3, 2)], ids=str)
def test_polar_factors(kind, shape):
    A = draw(*shape, kind=kind)
    U, H = found = L.polar(A)
    near(U @ H, A)
    near(U.mH @ U, unit(A, shape[-1]))
    near(H.mH, H)
    assert (L.eigvalsh(H) >= -1e-5).all() and found.U is U and found.H is H


@kinds
@pytest.mark.parametrize("lead", [(), (3,), (0,)], ids=str)
def test_the_root_of_a_hermitian_matrix(kind, lead):
    A = square(kind, *lead)
    A = A @ A.mH
    root = L.matrix_sqrth(A)
    near(root @ root, A)
    near(root.mH, root)
    assert T.equal(L.matrix_sqrth(A.tril()), root)


def test_gradients_of_roots():
    x = draw(3, 3)
    x = x @ x.mT + T.eye(3)
    # Only the lower triangle is read; the gradient is that of a symmetric matrix.
    assert T.autograd.gradcheck(lambda x: L.matrix_sqrth((x + x.mT) / 2), x.clone().requires_grad_())
    for shape in ((4, 3), (3, 3), (2, 3, 1)):
        for kind in (T.float64, T.complex128):
            a = draw(*shape, kind=kind).requires_grad_()
            assert T.autograd.gradcheck(L.polar, a) and T.autograd.gradgradcheck(L.polar, a)
            assert T.autograd.gradcheck(lambda a: L.polar(a).H, a)
    assert L.polar(a).U.grad_fn.name() == "LinalgPolarBackward0"


REFUSED = [
    (lambda: L.solve(T.zeros(2, 2), T.ones(2)), "RuntimeError", f"torch.linalg.solve: The solver failed {SINGULAR}"),
    (
        lambda: L.inv(T.zeros(3, 2, 2)),
        "RuntimeError",
        f"linalg.inv: (Batch element 0): The diagonal element 1 is zero, the inversion could not be completed {SINGULAR}",
    ),
    (
        lambda: L.cholesky(-T.eye(2)),
        "RuntimeError",
        "linalg.cholesky: The factorization could not be completed because the input is not positive-definite (the leading "
        "minor of order 1 is not positive-definite).",
    ),
    (lambda: L.solve(T.eye(2), T.ones(3)), "RuntimeError", "linalg.solve: Incompatible shapes of A and B"),
    (lambda: L.det(T.ones(2, 3)), "RuntimeError", "linalg.det: A must be batches of square matrices, but they are 2 by 3"),
    (
        lambda: L.cross(T.tensor(1.0), T.tensor(1.0)),
        "IndexError",
        "Dimension specified as -1 but tensor has no dimensions",
    ),
    (
        lambda: T.ormqr(T.zeros(3, 0), T.zeros(0), T.zeros(0)),
        "RuntimeError",
        "torch.ormqr: other must have at least 2 dimensions.",
    ),
    (
        lambda: T.ormqr(T.zeros(5, 3), T.zeros(2), T.zeros(5, 5)),
        "RuntimeError",
        "torch.ormqr: tau.shape[-1] must be equal to min(other.shape[-2], input.shape[-1])",
    ),
    (lambda: L.polar(T.ones(2)), "RuntimeError", "linalg.polar: The input tensor A must have at least 2 dimensions."),
    (
        lambda: L.polar(T.ones(3, 4)),
        "RuntimeError",
        "linalg.polar: input must have at least as many rows as columns, but got 3",
    ),
    (lambda: L.polar(T.ones(2, 2).int()), "NotImplementedError", "linalg.polar: Expected a floating point or complex tensor"),
    (lambda: L.matrix_sqrth(T.ones(2, 3)), "RuntimeError", "linalg.matrix_sqrth: A must be batches of square matrices, but"),
    (lambda: L.matrix_sqrth(T.eye(2).half()), "NotImplementedError", "linalg.matrix_sqrth: Low precision dtypes not supp"),
    (lambda: L.qr(T.ones(2)), "RuntimeError", "linalg.qr: The input tensor A must have at least 2 dimensions."),
    (lambda: L.qr(T.ones(2, 2), mode="some"), "RuntimeError", "qr received unrecognized mode 'some'"),
    (lambda: L.inv(T.ones(2, 2, dtype=T.int64)), "NotImplementedError", "linalg.inv: Expected a floating point or complex"),
    (lambda: L.inv(T.eye(2).half()), "NotImplementedError", "linalg.inv: Low precision dtypes not supported. Got Half"),
    (lambda: L.eigh(T.eye(2).half()), "NotImplementedError", "\"linalg_eigh_cpu\" not implemented for 'Half'"),
    (lambda: L.eigh(T.eye(2), "X"), "RuntimeError", "Expected UPLO argument to be 'L' or 'U', but got X"),
    (lambda: L.svd(T.full((2, 2), math.nan)), "RuntimeError", "linalg.svd: The algorithm failed to converge because the input"),
    (lambda: L.matrix_norm(T.eye(2), 3), "RuntimeError", "linalg.matrix_norm: Order 3 not supported."),
    (lambda: L.cond(T.eye(2), 7), "ValueError", "linalg.cond got an invalid norm type: 7"),
    (lambda: L.multi_dot([T.eye(2)]), "RuntimeError", "multi_dot(): expected at least 2 tensors but got 1"),
    (lambda: L.lstsq(T.eye(2), T.eye(2), driver="x"), "RuntimeError", "torch.linalg.lstsq: parameter `driver` should be one"),
    (lambda: L.ldl_factor(T.ones(2, 3)), "RuntimeError", "torch.linalg.ldl_factor_ex: A must be batches of square matrices"),
    (lambda: L.ldl_factor(T.eye(2).long()), "NotImplementedError", "torch.linalg.ldl_factor_ex: Expected a floating point or"),
    (lambda: L.ldl_factor(T.eye(2).half()), "NotImplementedError", "\"ldl_factor_kernel_cpu\" not implemented for 'Half'"),
    (lambda: L.ldl_solve(T.eye(2), T.ones(2), T.eye(2)), "RuntimeError", "torch.linalg.ldl_solve: Expected pivots to be integ"),
    (
        lambda: L.ldl_solve(T.eye(2), T.ones(3).int(), T.eye(2)),
        "RuntimeError",
        "torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape [3] instead",
    ),
    (
        lambda: L.ldl_solve(T.eye(2), T.ones(2).int(), T.ones(3, 1)),
        "RuntimeError",
        "Incompatible matrix sizes for torch.linalg.ldl_solve: each A matrix is 2 by 2 but each b matrix is 3 by 1",
    ),
    (
        lambda: L.ldl_solve(T.eye(2), T.ones(2).int(), T.eye(2).double()),
        "RuntimeError",
        "Expected b and A to have the same dtype, but found b of type Double and A of type Float instead.",
    ),
    (lambda: T.linalg.lu_factor(T.ones(2)), "RuntimeError", "torch.lu_factor: Expected tensor with 2 or more dimensions."),
    (
        lambda: L.cross(T.ones(2), T.ones(2)),
        "RuntimeError",
        "linalg.cross: inputs dimension -1 must have length 3. Got 2 and 2",
    ),
]


@pytest.mark.parametrize("at", range(len(REFUSED)))
def test_refusals(at):
    call, kind, text = REFUSED[at]
    with pytest.raises(getattr(builtins, kind)) as caught:
        call()
    assert str(caught.value).startswith(text)


def test_the_error_has_a_class_of_its_own():
    with pytest.raises(L.LinAlgError):
        L.inv(T.zeros(2, 2))
    assert issubclass(L.LinAlgError, RuntimeError) and pickle.loads(pickle.dumps(L.LinAlgError)) is L.LinAlgError
    result, info = L.solve_ex(T.zeros(2, 2), T.ones(2))
    assert info.item() == 1 and info.dtype is T.int32
    assert L.inv_ex(T.eye(2)).info.item() == 0 and L.cholesky_ex(-T.eye(2)).info.item() == 1
    assert L.lu_factor_ex(T.zeros(2, 2)).info.item() == 1 and L.ldl_factor_ex(T.zeros(2, 2)).info.item() == 1
    for call in (L.ldl_factor, lambda a: L.ldl_factor_ex(a, check_errors=True)):
        with pytest.raises(RuntimeError):
            call(T.zeros(2, 2))


def test_results_are_named():
    assert L.svd(T.eye(2))._fields == ("U", "S", "Vh") if hasattr(L.svd(T.eye(2)), "_fields") else L.svd(T.eye(2)).U.shape
    assert L.qr(T.eye(2)).R.shape == (2, 2) and L.eigh(T.eye(2)).eigenvectors.shape == (2, 2)
    assert L.slogdet(T.eye(2)).logabsdet.item() == 0 and T.svd(T.eye(2)).V.shape == (2, 2)


def test_columns_lie_together():
    """As LAPACK leaves them."""
    a = draw(2, 4, 4)
    a = a @ a.mT
    assert L.qr(a).Q.stride() == (16, 1, 4) and L.eigh(a)[1].stride() == (16, 1, 4)
    assert L.cholesky(a).stride() == (16, 1, 4) and L.solve(a, draw(2, 4, 3)).stride() == (12, 1, 4)
    assert L.lu_factor(a)[0].stride() == (16, 1, 4) and L.inv(a).stride() == (16, 1, 4)


@pytest.mark.skipif(NO_GPU or not IS_GRADIRON, reason="without the GPU")
@pytest.mark.parametrize("name", "cholesky qr inv det slogdet eigh svd lu_factor ldl_factor pinv matrix_exp lu".split())
def test_the_gpu_is_refused_by_name(name):
    with pytest.raises(NotImplementedError, match="linalg_|lu_"):
        getattr(L, name)(T.eye(2, device="cuda"))


def test_gradients_need_vectors():
    a = draw(3, 2).requires_grad_()
    with pytest.raises(
        RuntimeError, match="^The QR decomposition is not differentiable when mode='complete' and nrows > ncols"
    ):
        L.qr(a, mode="complete")[0].sum().backward()
    with pytest.raises(RuntimeError, match="^The derivative of linalg.qr depends on Q"):
        L.qr(a, mode="r")[1].sum().backward()


def test_loss_of_phases_is_ill_defined():
    a = draw(3, 3, kind=T.complex128).requires_grad_()
    with pytest.raises(RuntimeError, match="^svd_backward: The singular vectors in the complex case are specified up to"):
        L.svd(a)[0].imag.sum().backward()
    with pytest.raises(RuntimeError, match="^linalg_eigh_backward: The eigenvectors in the complex case are specified up to"):
        L.eigh(a + a.mH)[1].imag.sum().backward()


def test_low_powers_of_a_matrix():
    x = T.eye(2, dtype=T.float64).mul(2).requires_grad_()
    first, none = T.linalg.matrix_power(x, 1), T.linalg.matrix_power(x, 0)
    with T.no_grad():
        first.zero_()  # It has memory of its own.
    assert x.tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert none.requires_grad and none.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    none.sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_results_have_memory_of_their_own():
    x, y = T.tensor(3.0), T.ones(5, 2)
    x.mode().values.zero_()
    T.ormqr(T.ones(5, 0), T.ones(0), y).zero_()
    assert x.item() == 3.0 and y.sum().item() == 10.0


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_bounds_of_each_matrix():
    A = T.tensor([[[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [2.0, 4.00001]]], dtype=T.float64)
    bounds = T.tensor([1e-3, 1e-1], dtype=T.float64)
    each = T.stack([L.pinv(A[0], rcond=1e-3), L.pinv(A[1], rcond=1e-1)])
    for found in (L.pinv(A, bounds), L.pinv(A, rcond=bounds), L.pinv(A, rtol=bounds)):
        assert T.equal(found, each)
    assert T.equal(L.pinv(A, T.tensor(0.1), hermitian=False), L.pinv(A, 0.1))
    assert L.matrix_rank(A, T.tensor([1e-3, 1e-7])).tolist() == [2, 2]
    assert L.matrix_rank(A, tol=T.tensor([[1e-3], [1e-7], [5.0]])).tolist() == [[2, 1], [2, 2], [1, 1]]
    assert L.matrix_rank(A[1], T.tensor(1e-3), hermitian=True).item() == 1
    out = T.empty(2, dtype=T.int64)
    assert L.matrix_rank(A, T.tensor(1e-3), out=out) is out and out.tolist() == [2, 1]
    x = A.clone().requires_grad_()
    L.pinv(x, bounds).sum().backward()
    y = A.clone().requires_grad_()
    T.stack([L.pinv(y[0], rcond=1e-3), L.pinv(y[1], rcond=1e-1)]).sum().backward()
    assert T.allclose(x.grad, y.grad, rtol=0, atol=1e-7)


@pytest.mark.parametrize("n", [127, 128, 300])
def test_large_matrices_of_single_precision(n):
    T.manual_seed(1)
    a, b, unit = T.randn(2, n, n), T.randn(2, n, 3), T.eye(n)
    positive = a @ a.mT / n + unit
    factor = T.linalg.cholesky(positive)
    assert factor.dtype is T.float32 and T.equal(factor, factor.tril())
    assert T.allclose(factor @ factor.mT, positive, atol=1e-4)
    well = a + 10 * n**0.5 * unit.roll(1, 0)
    p, l, u = T.linalg.lu(well)
    assert T.allclose(p @ l @ u, well, atol=1e-3)
    assert T.allclose(T.linalg.inv(well) @ well, unit.expand(2, n, n), atol=1e-4)
    assert T.allclose(well @ T.linalg.solve(well, b), b, atol=1e-4)
    assert T.allclose(well.mT @ T.linalg.lu_solve(*T.linalg.lu_factor(well), b, adjoint=True), b, atol=1e-4)
    assert T.allclose(factor @ T.linalg.solve_triangular(factor, b, upper=False), b, atol=1e-4)
    for singular in (T.zeros(n, n), T.ones(n, n)):
        assert T.linalg.inv_ex(singular).info > 0
    assert T.linalg.cholesky_ex(positive - 100 * unit).info.tolist() == [1, 1]
