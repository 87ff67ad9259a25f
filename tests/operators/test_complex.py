"""Complex numbers: values against PyTorch's and NumPy's, dtypes, printing, views of parts, gradients by differences."""

import cmath
import copy
import io
import math
import pickle
import sys
import warnings

import complex_cases as cases
import golden_file
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from library import IS_GRADIRON, T, devices

TABLE = golden_file.read("complex.json")
C64, C128 = T.complex64, T.complex128


def randn(*shape, grad=False, seed=0):
    rng = np.random.default_rng(seed + sum(shape))
    values = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return T.from_numpy(np.asarray(values)).clone().requires_grad_(grad)


def close(got, want, rtol=1e-10, atol=1e-12):
    want = want.detach().resolve_conj().numpy() if isinstance(want, T.Tensor) else np.asarray(want)
    np.testing.assert_allclose(got.detach().resolve_conj().numpy(), want, rtol=rtol, atol=atol)


# --- golden ---


@pytest.mark.parametrize("name", cases.UNARY)
@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_functions_on_both_sides_of_their_branch_cuts(name, dtype):
    x = T.tensor(cases.POINTS, dtype=getattr(T, dtype))
    got = getattr(T, name)(x)
    got = got.resolve_conj().tolist()
    tolerance = 1e-12 if dtype == "complex128" else 2e-5
    wrong = []
    for point, value, text in zip(cases.POINTS, got, TABLE["unary"][name]):
        want = (
            complex(float(text[0]), float(text[1]))
            if isinstance(text, list)
            else eval(text, {"nan": math.nan, "inf": math.inf})
        )
        parts = [(value.real, want.real), (value.imag, want.imag)] if isinstance(want, complex) else [(value, want)]
        if isinstance(want, complex) and not (np.isfinite(want.real) and np.isfinite(want.imag)):
            # Which of the parts is infinite and which NaN differs among PyTorch's own vector widths.
            if np.isfinite(value.real) and np.isfinite(value.imag):
                wrong.append((point, value, want))
            continue
        size = max(abs(want), 1e-30)
        if dtype == "complex64" and not 1e-30 < size < 1e30:
            continue
        if any(abs(a - b) > tolerance * max(size, 1e-3) for a, b in parts):
            wrong.append((point, value, want))
    assert not wrong, f"{len(wrong)} of {len(got)}: {wrong[:8]}"


@pytest.mark.parametrize("name", cases.BEYOND)
@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_functions_at_infinities_and_nan(name, dtype):
    """As Annex G of the C standard has them. Beside a NaN the sign of a part is free."""
    got = getattr(T, name)(T.tensor(cases.INFINITE, dtype=getattr(T, dtype))).tolist()
    wrong = []
    for point, value, text in zip(cases.INFINITE, got, TABLE["beyond"][name], strict=True):
        want = complex(*map(float, text)) if isinstance(text, list) else float(text)
        if IS_GRADIRON and name == "log1p" and cmath.isinf(point) and cmath.isnan(point):
            want = complex(math.inf, math.nan)  # PyTorch gives two NaNs.
        ours, theirs = ([v.real, v.imag] if isinstance(v, complex) else [v] for v in (value, want))
        free = any(map(math.isnan, theirs))
        for a, b in zip(ours, theirs, strict=True):
            same = math.isclose(abs(a), abs(b), rel_tol=1e-6) or (math.isnan(a) and math.isnan(b))
            if not same or not (free or math.copysign(1, a) == math.copysign(1, b)):
                wrong.append((point, value, want))
                break
    assert not wrong, f"{len(wrong)} of {len(got)}: {wrong[:8]}"


@pytest.mark.parametrize("op", TABLE["promotion"])
def test_promotion(op):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = [cases.promoted(T, op, a, b) for a, b in cases.PAIRS]
    wrong = [f"{op}({a}, {b}): {g}, expected {e}" for (a, b), g, e in zip(cases.PAIRS, got, TABLE["promotion"][op]) if g != e]
    assert not wrong, f"{len(wrong)} of {len(got)}\n" + "\n".join(wrong[:30])


@pytest.mark.parametrize("text", cases.ERRORS)
def test_refusals(text):
    assert cases.failure(T, text) == TABLE["errors"][text]


@pytest.mark.parametrize("number", range(len(TABLE["printed"])))
def test_prints_as_pytorch(number):
    case = TABLE["printed"][number]
    assert cases.printed(T, case) == case["text"]


# --- creation, conversion, exchange ---


def test_dtype_objects():
    assert (T.cfloat, T.cdouble) == (C64, C128)
    assert str(C64) == "torch.complex64" and C64.is_complex and not C64.is_floating_point and C64.is_signed
    assert (C64.itemsize, C128.itemsize) == (8, 16)
    assert (C64.to_real(), C128.to_real(), T.float32.to_complex(), T.float64.to_complex()) == (T.float32, T.float64, C64, C128)
    assert T.tensor([1j]).is_complex() and T.is_complex(T.tensor(1j)) and not T.ones(1).is_complex()
    assert T.finfo(C64).eps == T.finfo(T.float32).eps
    assert T.tensor(1j).type() == "torch.ComplexFloatTensor" and T.ones(2).type(C128).dtype == C128
    assert pickle.loads(pickle.dumps(C128)) is C128


def test_creation():
    assert T.tensor([1 + 2j, 3]).tolist() == [1 + 2j, 3 + 0j] and T.tensor([1 + 2j]).dtype == C64
    assert T.tensor([[1j], [2.5]]).shape == (2, 1) and T.tensor(2j).item() == 2j
    assert T.zeros(2, dtype=C64).tolist() == [0j, 0j] and T.ones(2, dtype=C128).tolist() == [1 + 0j, 1 + 0j]
    assert T.full((2,), 1 - 2j).tolist() == [1 - 2j] * 2 and T.full((1,), 1j).dtype == C64
    x = T.empty(2, 3, dtype=C128)
    assert T.zeros_like(x).dtype == T.ones_like(x).dtype == T.randn_like(x).dtype == T.full_like(x, 2j).dtype == C128
    assert x.new_zeros(2).dtype == C128 and x.new_tensor([1, 2]).dtype == C128 and x.new_full((1,), 1j).item() == 1j
    assert T.eye(2, dtype=C64).tolist() == [[1, 0], [0, 1]]
    assert T.linspace(0, 1, 3, dtype=C64).tolist() == [0, 0.5, 1]
    assert T.complex(T.tensor([1.0, 2.0]), T.tensor(3.0)).tolist() == [1 + 3j, 2 + 3j]
    close(T.polar(T.tensor([2.0], dtype=T.float64), T.tensor([math.pi / 3], dtype=T.float64)), [2 * np.exp(1j * math.pi / 3)])


def test_default_dtype_decides():
    T.set_default_dtype(T.float64)
    try:
        assert T.tensor([1j]).dtype == C128 and T.full((1,), 1j).dtype == C128 and (T.ones(1) * 1j).dtype == C128
        assert repr(T.tensor([1 + 2j])) == "tensor([1.+2.j])"
    finally:
        T.set_default_dtype(T.float32)


def test_random_numbers():
    T.manual_seed(3)
    x = T.randn(20_000, dtype=C128)
    assert abs(x.mean().item()) < 0.03 and abs(x.abs().square().mean().item() - 1) < 0.05
    T.manual_seed(5)
    parts = T.rand(6, dtype=T.float64)
    T.manual_seed(5)
    assert T.view_as_real(T.rand(3, dtype=C128)).reshape(-1).tolist() == parts.tolist()


def test_numbers_of_python():
    x = T.tensor(1 + 2j)
    assert complex(x) == 1 + 2j and bool(x) and not bool(T.tensor(0j)) and bool(T.tensor(1j))
    assert float(T.tensor(2 + 0j)) == 2.0 and int(T.tensor(2 + 0j)) == 2 and complex(T.tensor(2.5)) == 2.5
    assert f"{T.tensor(1 + 2j):.1f}" == "1.0+2.0j" and (1 + 2j) in T.tensor([1 + 2j])


def test_casts():
    x = T.tensor([1.5 + 2j, 0j, 2j])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert x.to(T.float32).tolist() == [1.5, 0.0, 0.0] and x.to(T.int64).tolist() == [1, 0, 0]
    assert x.bool().tolist() == [True, False, True] and x.to(C128).tolist() == x.tolist()
    assert T.tensor([True, False]).to(C64).tolist() == [1, 0] and T.arange(3).cfloat().dtype == C64
    assert T.tensor([1.5], dtype=T.float16).cdouble().tolist() == [1.5]
    assert x.to(C128)[::2].to(C64).tolist() == [1.5 + 2j, 2j]


def test_discarding_imaginary_parts_warns_once():
    code = (
        f"import warnings, {T.__name__} as T\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    T.tensor([1j]).bool(); T.tensor([1j]).to(T.float32); T.zeros(1).copy_(T.tensor([1j])); T.tensor([1j]).int()\n"
        "print([str(w.message)[:58] for w in seen])"
    )
    import subprocess

    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == repr(["Casting complex values to real discards the imaginary part"])


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_numpy_shares_memory(kind):
    a = np.arange(6, dtype=kind).reshape(2, 3) * (1 + 1j)
    x = T.from_numpy(a)
    assert str(x.dtype) == f"torch.{kind}" and x.tolist() == a.tolist()
    x[0, 1] = 9j
    assert a[0, 1] == 9j and x.t().numpy().dtype == kind and (x.t().numpy() == a.T).all()
    if IS_GRADIRON:  # PyTorch takes NumPy's complex64 for a float
        assert (T.ones(1) * a.dtype.type(2j)).tolist() == [2j]
    assert T.tensor(a).tolist() == a.tolist() and T.as_tensor(a).data_ptr() == x.data_ptr()


def test_pickle_deepcopy_dlpack():
    x = randn(2, 3)
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()
    assert copy.deepcopy(x.t()).tolist() == x.t().tolist()
    y = T.from_dlpack(x)
    assert y.dtype == C128 and y.data_ptr() == x.data_ptr() and np.from_dlpack(x).tolist() == x.tolist()
    assert io.BytesIO(pickle.dumps(C64)).read()


# --- arithmetic ---

finite = st.floats(-100, 100, allow_nan=False, width=32)
numbers = st.builds(complex, finite, finite)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=40), st.booleans())
@settings(max_examples=60, deadline=None)
def test_arithmetic_is_pythons(pairs, wide):
    kind, rtol = (C128, 1e-12) if wide else (C64, 1e-5)
    a, b = (T.tensor(list(side), dtype=kind) for side in zip(*pairs))
    for name, got, want in (
        ("add", a + b, [x + y for x, y in pairs]),
        ("sub", a - b, [x - y for x, y in pairs]),
        ("mul", a * b, [x * y for x, y in pairs]),
        ("div", a / (b + 200), [x / (y + 200) for x, y in pairs]),
        ("number", 2j * a + (1 - 1j), [2j * x + (1 - 1j) for x, y in pairs]),
        ("square", a**2, [x * x for x, y in pairs]),
        ("addcmul", T.addcmul(a, a, b, value=0.5), [x + 0.5 * x * y for x, y in pairs]),
    ):
        for g, w, (x, y) in zip(got.tolist(), want, pairs):
            assert abs(g - w) <= rtol * (1 + abs(x) + abs(x) * abs(y) + abs(x) ** 2), (name, x, y, g, w)
    assert (a == b).tolist() == [x == y for x, y in pairs] and (a != a.clone()).any().item() is False


def test_powers():
    x = T.tensor([1 + 2j, -3.5j, 0j], dtype=C128)
    for exponent in (0, 1, 2, 3, -1, 0.5, 1.5, 2j, 1 - 1j):
        for got, value in zip((x[:2] ** exponent).tolist(), x.tolist()):
            assert abs(got - value**exponent) < 1e-12 * max(1, abs(got))
    assert (x**2).tolist()[0] == -3 + 4j and (x**0).tolist() == [1, 1, 1]
    close(2**x, [2**v for v in x.tolist()])
    close(x[:2] ** x[:2], [v**v for v in x.tolist()[:2]])


@pytest.mark.parametrize("base", [-1.0, -0.1, 3.0, T.tensor([-1.0, -2.5], dtype=T.float64), T.tensor([-2.0, 1.5])])
def test_slope_of_a_complex_exponent_over_a_real_base(base):
    exponent = T.tensor([0.3 + 0.2j, -1.0 + 0.5j], dtype=C128, requires_grad=True)
    y = T.pow(base, exponent)
    (slope,) = T.autograd.grad(y, exponent, T.ones_like(y))
    bases = base.tolist() if isinstance(base, T.Tensor) else [base] * 2
    rtol = 1e-6 if isinstance(base, T.Tensor) and base.dtype is T.float32 else 1e-12
    for got, b, e in zip(slope.tolist(), bases, exponent.tolist()):
        wanted = (cmath.log(b) * cmath.exp(e * cmath.log(b))).conjugate()
        assert abs(got - wanted) < rtol * abs(wanted)


def test_strided_broadcast_and_large_operands():
    for n in (1, 15, 16, 17, 300, 5000, 70_000):
        a, b = randn(2, n).t(), randn(n, 1, seed=1)
        close(a * b, a.numpy() * b.numpy())
        close(a.to(C64) + b.to(C64), a.numpy() + b.numpy(), rtol=1e-5, atol=1e-5)
        close(a * 2j, a.numpy() * 2j)
        close(a.exp().mean(), np.exp(a.numpy()).mean(), rtol=1e-9)
        assert T.equal(a.clone(), a) and a.contiguous().tolist()[:3] == a.tolist()[:3]


def test_where_isclose_equal():
    x = T.tensor([1j, 2.0, complex("nan")])
    assert T.where(T.tensor([True, False, True]), x, 0).tolist()[:2] == [1j, 0]
    assert T.isclose(x, x + 1e-9).tolist() == [True, True, False] and T.isclose(x, x, equal_nan=True).all()
    assert T.allclose(T.tensor([1j]), T.tensor([1j + 1e-7])) and not T.equal(x, x)
    assert T.isfinite(T.tensor([1j, complex(0, math.inf)])).tolist() == [True, False]
    assert T.nan_to_num(x).tolist() == [1j, 2, 0]


# --- parts ---


def test_parts_are_views():
    x = T.tensor([1 + 2j, 3 - 4j])
    assert x.real.tolist() == [1, 3] and x.imag.tolist() == [2, -4] and T.real(x).data_ptr() == x.data_ptr()
    x.real = T.tensor([5.0, 6.0])
    x.imag[1] = 7
    assert x.tolist() == [5 + 2j, 6 + 7j]
    x.imag = 0
    assert x.tolist() == [5, 6] and x.real.dtype == T.float32 and T.ones(2).real.tolist() == [1, 1]
    pairs = T.view_as_real(x)
    pairs[0] = T.tensor([1.0, -1.0])
    assert x[0].item() == 1 - 1j and pairs.shape == (2, 2) and pairs.stride() == (2, 1)
    whole = T.view_as_complex(T.arange(8.0).reshape(2, 2, 2)[:, 1])
    assert whole.tolist() == [2 + 3j, 6 + 7j] and whole.stride() == (2,) and x.real._base is x
    assert x.t().conj().resolve_conj().tolist() == [1 + 1j, 6] and x.conj_physical().tolist() == [1 + 1j, 6]


def test_conjugates():
    x = randn(2, 3)
    assert x.conj().tolist() == x.numpy().conj().tolist() and T.ones(2).conj().tolist() == [1, 1]
    assert not x.is_conj() and not x.conj().resolve_conj().is_conj() and not x.is_neg()
    assert x.mH.tolist() == x.H.tolist() == x.adjoint().tolist() == x.numpy().conj().T.tolist()
    assert x.mT.tolist() == x.numpy().T.tolist()
    real = T.ones(2, 3)
    assert real.conj() is real and real.resolve_conj() is real


def test_views_and_indexing():
    x = randn(3, 4)
    a = x.numpy()
    for got, want in (
        (x[1], a[1]),
        (x[:, ::2], a[:, ::2]),
        (x[T.tensor([2, 0])], a[[2, 0]]),
        (x[x.abs() > 1], a[abs(a) > 1]),
        (x.reshape(2, 6), a.reshape(2, 6)),
        (x.t().reshape(-1), a.T.reshape(-1)),
        (T.cat([x, x.real], 1), np.concatenate([a, a.real], 1)),
        (T.stack([x, x]), np.stack([a, a])),
        (x.index_select(1, T.tensor([3, 1])), a[:, [3, 1]]),
        (x.gather(0, T.zeros(1, 4, dtype=T.int64)), a[:1]),
        (x.flip(0), a[::-1]),
        (x.tril(), np.tril(a)),
        (x.repeat(2, 1), np.tile(a, (2, 1))),
        (x.roll(1, 0), np.roll(a, 1, 0)),
        (x.masked_fill(x.real > 0, 1j), np.where(a.real > 0, 1j, a)),
    ):
        close(got, want)
    assert T.nonzero(T.tensor([0j, 1j, 0, 1])).reshape(-1).tolist() == [1, 3]


def test_writes():
    x = T.zeros(3, dtype=C64)
    x[1] = 1 - 1j
    x[T.tensor([0])] = 2j
    x += 1
    x.mul_(2).sub_(1j)
    assert x.tolist() == [2 + 3j, 4 - 3j, 2 - 1j]
    x.fill_(1j).neg_()
    assert x.tolist() == [-1j] * 3
    x.index_add_(0, T.tensor([0, 0]), T.tensor([1 + 1j, 2]))
    x.scatter_add_(0, T.tensor([2]), T.tensor([5j]))
    assert x.tolist() == [3, -1j, 4j]
    x.copy_(T.tensor([1, 2, 3]))
    assert x.tolist() == [1, 2, 3] and x.zero_().tolist() == [0, 0, 0]
    out = T.empty(3, dtype=C64)
    T.add(x, 1j, out=out)
    assert out.tolist() == [1j] * 3


# --- reductions and products ---


@pytest.mark.parametrize("dim", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("turned", [False, True])
def test_reductions(dim, turned):
    x = randn(3, 5)
    x = x.t() if turned else x
    a, axis = x.numpy(), dim
    args = () if dim is None else (dim,)
    close(x.sum(*args), a.sum(axis))
    close(x.mean(*args), a.mean(axis))
    if not isinstance(dim, tuple):
        close(x.prod(*args), a.prod(axis))
        close(x.std() if dim is None else x.std(dim), a.std(axis, ddof=1))
    close(x.var() if dim is None else x.var(dim), a.var(axis, ddof=1))
    for p in (0, 1, 2, 3, math.inf, -math.inf):
        want = {
            0: lambda v, ax: (v != 0).sum(ax),
            math.inf: lambda v, ax: abs(v).max(ax),
            -math.inf: lambda v, ax: abs(v).min(ax),
        }
        exact = want.get(p, lambda v, ax, p=p: (abs(v) ** p).sum(ax) ** (1 / p))
        got = x.norm(p) if dim is None else x.norm(p, dim)
        assert got.dtype == T.float64
        close(got, exact(a, axis))
    assert x.sum(dim=0, keepdim=True).shape == (1, x.shape[1])
    assert T.all(x).item() and not T.any(x * 0).item() and T.count_nonzero(x).item() == 15


def test_logarithms_of_sums():
    x, y = randn(3, 4), randn(3, 4, seed=3)
    close(x.logsumexp(1), np.log(np.exp(x.numpy()).sum(1)))
    close(T.logaddexp(x, y), np.log(np.exp(x.numpy()) + np.exp(y.numpy())))
    check(lambda a: a.logsumexp(0), x)
    check(T.logaddexp, x, y)


def test_scans_and_empty_reductions():
    x = randn(3, 4)
    close(x.cumsum(1), x.numpy().cumsum(1))
    close(x.cumprod(0), x.numpy().cumprod(0))
    close(x.to(C64).cumsum(0), x.numpy().cumsum(0), rtol=1e-5)
    for n in (4096, 70_001):
        many = randn(n)
        close(many.sum(), many.numpy().sum(), rtol=1e-10)
        assert many[::2].sum(0, keepdim=True).shape == (1,) and many.sum().shape == ()
    empty = T.zeros(0, 2, dtype=C64)
    assert empty.sum().item() == 0 and empty.prod().item() == 1 and empty.sum(0).tolist() == [0, 0]
    assert T.sum(T.ones(2), dtype=C64).item() == 2


@pytest.mark.parametrize("kind", [C64, C128])
def test_products(kind):
    rtol = 1e-4 if kind == C64 else 1e-10
    a, b, v, w = (x.to(kind) for x in (randn(3, 4), randn(4, 5), randn(4), randn(4, seed=9)))
    p, q = randn(2, 3, 4).to(kind), randn(2, 4, 5).to(kind)
    n = [x.numpy() for x in (a, b, v, w, p, q)]
    for got, want in (
        (a @ b, n[0] @ n[1]),
        (T.mm(a.conj(), b), n[0].conj() @ n[1]),
        (a.mv(v), n[0] @ n[2]),
        (p.bmm(q), n[4] @ n[5]),
        (p @ b, n[4] @ n[1]),
        (T.matmul(v, b), n[2] @ n[1]),
        (v.dot(w), (n[2] * n[3]).sum()),
        (T.vdot(v, w), (n[2].conj() * n[3]).sum()),
        (T.outer(v, w), np.outer(n[2], n[3])),
        (T.einsum("ij,jk->ik", a, b), n[0] @ n[1]),
        (T.addmm(T.ones(5, dtype=kind), a, b, beta=2j, alpha=1 - 1j), 2j + (1 - 1j) * (n[0] @ n[1])),
        (T.baddbmm(T.ones(5, dtype=kind), p, q, alpha=2), 1 + 2 * (n[4] @ n[5])),
        (a.t().mH.mT.mT @ b, n[0].conj() @ n[1]) if False else (a.mH.mH @ b, n[0] @ n[1]),
    ):
        close(got, want, rtol=rtol, atol=rtol)
    assert (T.zeros(2, 0, dtype=kind) @ T.zeros(0, 2, dtype=kind)).tolist() == [[0, 0], [0, 0]]


# --- gradients ---


def differences(func, inputs, eps=1e-6):
    """For a weighted sum of the parts of `func`'s result: what the gradients should be, by central differences."""
    results = func(*inputs)
    rng = np.random.default_rng(1)
    parts = [T.view_as_real(r) if r.is_complex() else r for r in (results if isinstance(results, tuple) else (results,))]
    weights = [T.from_numpy(np.asarray(rng.standard_normal(p.shape))) for p in parts]

    def loss(*xs):
        results = func(*xs)
        results = results if isinstance(results, tuple) else (results,)
        return sum((w * (T.view_as_real(r) if r.is_complex() else r)).sum() for w, r in zip(weights, results))

    slopes = []
    for i, x in enumerate(inputs):
        flat = T.view_as_real(x.detach()).clone() if x.is_complex() else x.detach().clone()
        slope = np.zeros(tuple(flat.shape))
        for index in np.ndindex(*flat.shape):
            values = []
            for sign in (1, -1):
                moved = flat.clone()
                moved[index] += sign * eps
                moved = T.view_as_complex(moved) if x.is_complex() else moved
                values.append(loss(*[moved if k == i else y.detach() for k, y in enumerate(inputs)]).item())
            slope[index] = (values[0] - values[1]) / (2 * eps)
        slopes.append(slope[..., 0] + 1j * slope[..., 1] if x.is_complex() else slope)
    return loss, slopes


def check(func, *inputs, tol=1e-6):
    inputs = [x.detach().clone().requires_grad_() for x in inputs]
    loss, slopes = differences(func, inputs)
    found = T.autograd.grad(loss(*inputs), inputs, create_graph=True)
    for g, slope, x in zip(found, slopes, inputs):
        assert g.dtype == x.dtype and g.shape == x.shape
        close(g, slope, rtol=tol, atol=tol)


UNARY = (
    "abs angle sgn neg conj conj_physical exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos tan".split()
)
UNARY += "asin acos atan sinh cosh tanh asinh acosh atanh sigmoid positive".split()


@pytest.mark.parametrize("name", UNARY)
def test_gradients_of_functions(name):
    check(lambda x: getattr(T, name)(x).resolve_conj(), randn(5) * 0.7 + 0.1j)


REAL, REAL2 = T.tensor([0.5, 1.25, 2.0], dtype=T.float64), T.tensor([1.5, 0.75, -2.5], dtype=T.float64)
FUNCTIONS = {
    "mul": (lambda a, b: a * b, 3, 3),
    "div": (lambda a, b: a / b, 3, 3),
    "sub": (lambda a, b: a - 2 * b, 3, 3),
    "add alpha": (lambda a, b: T.add(a, b, alpha=2j), 3, 3),
    "pow": (lambda a, b: a**b, 3, 3),
    "pow 3": (lambda a: a**3, 3),
    "pow 2": (lambda a: a**2, 3),
    "pow -1.5j": (lambda a: a ** (-1.5j), 3),
    "2 ** x": (lambda a: 2**a, 3),
    "1j / x": (lambda a: 1j / a, 3),
    "real times complex": (lambda a, b: a * b, "real", 3),
    "complex over real": (lambda a, b: a / b, 3, "real"),
    "real plus complex": (lambda a, b: (a + b).abs(), "real", 3),
    "real and number": (lambda a: a * (1 + 2j), "real"),
    "real power": (lambda a, b: (a * a) ** b, "real", 3),
    "broadcast": (lambda a, b: (a * b).sum(0), (2, 3), 3),
    "where": (lambda a, b: T.where(T.tensor([True, False, True]), a, b), 3, 3),
    "lerp": (lambda a, b, w: T.lerp(a, b, w), 3, 3, 3),
    "addcmul": (lambda a, b, c: T.addcmul(a, b, c, value=0.5), 3, 3, 3),
    "addcdiv": (lambda a, b, c: T.addcdiv(a, b, c, value=0.5), 3, 3, 3),
    "complex": (lambda a, b: T.complex(a, b) * 1j, "real", "real2"),
    "polar": (lambda a, b: T.polar(a, b), "real", "real2"),
    "real": (lambda a: a.real * 2, 3),
    "imag": (lambda a: a.imag * a.real, 3),
    "view_as_real": (lambda a: T.view_as_real(a).square(), 3),
    "view_as_complex": (lambda a: T.view_as_complex(T.stack([a, a * a], -1)), "real"),
    "to complex": (lambda a: a.to(T.complex128) * 1j, "real"),
    "abs squared": (lambda a: (a * a.conj()).real, 3),
    "sum": (lambda a: a.sum(0) * 1j, (2, 3)),
    "mean": (lambda a: a.mean(), (2, 3)),
    "prod": (lambda a: a.prod(), (2, 3)),
    "prod dim": (lambda a: a.prod(1), (2, 3)),
    "cumsum": (lambda a: a.cumsum(1), (2, 3)),
    "cumprod": (lambda a: a.cumprod(1), (2, 3)),
    "cumprod with a zero": (lambda a: (a * T.tensor([1, 0, 1])).cumprod(1), (2, 3)),
    "prod with a zero": (lambda a: (a * T.tensor([1, 0, 1])).prod(1), (2, 3)),
    "var": (lambda a: a.var(), (2, 3)),
    "std": (lambda a: a.std(1), (2, 3)),
    "norm": (lambda a: a.norm(), (2, 3)),
    "norm 1": (lambda a: a.norm(1, 0), (2, 3)),
    "norm 3": (lambda a: a.norm(3), (2, 3)),
    "norm inf": (lambda a: a.norm(math.inf), (2, 3)),
    "mm": (lambda a, b: a @ b, (2, 3), (3, 2)),
    "mm conj": (lambda a, b: a.mH @ b, (3, 2), (3, 2)),
    "bmm": (lambda a, b: a @ b, (2, 2, 3), (2, 3, 2)),
    "mv": (lambda a, b: a @ b, (2, 3), 3),
    "addmm": (lambda a, b, c: T.addmm(a, b, c, beta=1j, alpha=2 - 1j), (2, 2), (2, 3), (3, 2)),
    "addmv": (lambda a, b, c: T.addmv(a, b, c, alpha=1j), 2, (2, 3), 3),
    "dot": (lambda a, b: T.dot(a, b), 3, 3),
    "vdot": (lambda a, b: T.vdot(a, b), 3, 3),
    "outer": (lambda a, b: T.outer(a, b), 2, 3),
    "einsum": (lambda a, b: T.einsum("ij,kj->ik", a, b), (2, 3), (2, 3)),
    "index": (lambda a: a[T.tensor([0, 0, 2])] * 1j, 3),
    "cat": (lambda a, b: T.cat([a, b]) * 1j, 3, "real"),
    "transpose": (lambda a: a.t().reshape(-1)[1:] ** 2, (2, 3)),
}


def arguments(shapes):
    reals = {"real": REAL, "real2": REAL2}
    shaped = [s if isinstance(s, (str, tuple)) else (s,) for s in shapes]
    return [reals[s] if isinstance(s, str) else randn(*s, seed=11 * i) for i, s in enumerate(shaped)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name):
    func, *shapes = FUNCTIONS[name]
    check(func, *arguments(shapes))


@pytest.mark.parametrize(
    "name", ["mul", "div", "pow", "abs squared", "mm", "norm", "prod", "polar", "real times complex", "imag", "var"]
)
def test_gradcheck_and_second_derivatives(name):
    func, *shapes = FUNCTIONS[name]
    inputs = [x.detach().clone().requires_grad_() for x in arguments(shapes)]
    assert T.autograd.gradcheck(func, inputs) and T.autograd.gradgradcheck(func, inputs, atol=1e-4)
    assert T.autograd.gradcheck(func, inputs, fast_mode=True)


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "tanh", "abs", "sgn", "angle", "sigmoid", "reciprocal", "acosh"])
def test_second_derivatives_of_functions(name):
    x = (randn(4) * 0.7 + 0.1j).requires_grad_()
    assert T.autograd.gradgradcheck(getattr(T, name), [x], atol=1e-4)


def test_gradcheck_finds_a_missing_conjugate():
    class Product(T.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g * b, g * a.conj()

    x, y = randn(2, grad=True), randn(2, seed=4, grad=True)
    with pytest.raises(
        T.autograd.gradcheck.GradcheckError if hasattr(T.autograd.gradcheck, "GradcheckError") else RuntimeError
    ):
        T.autograd.gradcheck(Product.apply, [x, y])


def test_convention():
    z = T.tensor(3 + 4j, requires_grad=True)
    z.abs().backward()
    assert abs(z.grad.item() - (0.6 + 0.8j)) < 1e-6
    z = T.tensor(1 + 2j, requires_grad=True)
    (z * z).backward(T.tensor(1 + 0j))
    assert z.grad.item() == 2 - 4j
    x = T.tensor([1.0, 2.0], requires_grad=True)
    (x * T.tensor([1j, 2 + 1j])).backward(T.tensor([1j, 1 + 0j]))
    assert x.grad.tolist() == [1.0, 2.0] and x.grad.dtype == T.float32


def test_node_names():
    x = T.tensor([1 + 2j], requires_grad=True)
    names = {
        "Conj": x.conj(),
        "ConjPhysical": x.conj_physical(),
        "Select": x.real,
        "ViewAsReal": T.view_as_real(x),
        "Abs": x.abs(),
        "Angle": x.angle(),
        "Sgn": x.sgn(),
        "Vdot": T.vdot(x, x),
        "Dot": T.dot(x, x),
        "Complex": T.complex(x.real, x.imag),
        "Polar": T.polar(x.real, x.imag),
        "ViewAsComplex": T.view_as_complex(T.view_as_real(x)),
    }
    assert {n: y.grad_fn.name() for n, y in names.items()} == {n: f"{n}Backward0" for n in names}


def test_writes_through_parts_are_tracked():
    x = T.tensor([1 + 2j, 3 - 1j], dtype=C128, requires_grad=True)

    def func(a):
        y = a * 2
        y.real.mul_(3)
        y.imag[1] = 5 * y.real[0]
        T.view_as_real(y)[0, 0] += a[1].imag
        return y * y

    check(func, x)

    def other(a):
        pairs = T.stack([a, a * a], -1) * 1.0
        whole = T.view_as_complex(pairs)
        whole.mul_(1 + 2j)
        return pairs

    check(other, REAL)


def test_writes_are_tracked():
    def func(a, b):
        y = a * 1
        y[0] = b[1]
        y.mul_(b).add_(a, alpha=1j)
        y[1:] *= 2j
        return y

    check(func, randn(3), randn(3, seed=5))

    def into_complex(a, r):
        y = a * 1
        y[1] = r[0]
        y.copy_(r * a.real)
        return y * a

    check(into_complex, randn(3), REAL)


def test_leaves_refuse_and_accept():
    x = T.tensor([1j], requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        x.real.mul_(2)
    y = T.zeros(1, dtype=C64).requires_grad_()
    (y + x).abs().sum().backward()
    assert y.grad.dtype == C64 and y.grad.tolist() == x.grad.tolist() == [1j]
    with pytest.raises(RuntimeError, match="dtype"):
        x.grad = T.ones(1)
    x.backward(T.tensor([1j]))
    assert x.grad.tolist() == [2j]


def test_function_hooks_and_retained_gradients():
    seen = []
    x = randn(2, grad=True)
    y = x * 2j
    y.retain_grad()
    y.register_hook(lambda g: seen.append(g.dtype))
    y.abs().sum().backward()
    close(y.grad, y.detach() / y.detach().abs())
    assert seen == [C128]

    class Twice(T.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    check(Twice.apply, randn(2))


def test_gradients_of_outputs_have_their_kind():
    z, r = T.tensor([1j], requires_grad=True), T.ones(1, requires_grad=True)
    for y, g in ((z * 2, T.ones(1)), (r * 2, T.tensor([1j]))):
        with pytest.raises(
            RuntimeError, match="For complex Tensors, both grad_output and output are required to have the same"
        ):
            y.backward(g)
    (z * 2).backward(T.ones(1, dtype=C128))
    assert z.grad.tolist() == [2] and z.grad.dtype == C64


# --- forward mode and batches ---

MAPPED = {
    n: (lambda x, y, n=n: getattr(x, n)()) for n in "exp sqrt tanh abs angle sgn conj square sum mean prod var norm".split()
} | {
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y,
    "imag": lambda x, y: x.imag * x.real,
    "parts": lambda x, y: T.view_as_complex(T.view_as_real(x) * 2),
    "vdot": lambda x, y: T.vdot(x, y),
    "complex": lambda x, y: T.complex(x.real, y.imag),
    "cumprod": lambda x, y: x.cumprod(0),
    "products": lambda x, y: T.outer(x, y) @ y,
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", MAPPED)
def test_forward_mode(name):
    func = MAPPED[name]
    x, y, u, v = (randn(4, seed=s) for s in (0, 1, 2, 3))
    fwAD, step = T.autograd.forward_ad, 1e-6
    with fwAD.dual_level():
        tangent = fwAD.unpack_dual(func(fwAD.make_dual(x, u), fwAD.make_dual(y, v))).tangent
        tangent = tangent.detach().resolve_conj().clone()
    slope = (func(x + step * u, y + step * v) - func(x - step * u, y - step * v)) / (2 * step)
    close(tangent, slope, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", MAPPED)
def test_batches(name):
    func = MAPPED[name]
    xs, ys = randn(3, 4), randn(3, 4, seed=2)
    close(T.func.vmap(func)(xs, ys), T.stack([func(x, y).resolve_conj() for x, y in zip(xs, ys)]))


# --- testing ---


def test_make_tensor_and_assert_close():
    x = T.testing.make_tensor(4, 5, dtype=C64, device="cpu", low=-2, high=2)
    assert x.dtype == C64 and T.view_as_real(x).abs().max() <= 2 and x.imag.abs().max() > 0
    assert not T.testing.make_tensor(3, 4, dtype=C128, device="cpu", noncontiguous=True).is_contiguous()
    T.testing.assert_close(x, x * (1 + 1e-7))
    T.testing.assert_close(T.tensor([complex("nan")]), T.tensor([complex("nan")]), equal_nan=True)
    with pytest.raises(AssertionError, match="Tensor-likes are not close"):
        T.testing.assert_close(x, x + 1e-3j)


# --- the GPU ---


@pytest.mark.skipif("cuda" not in devices() or not IS_GRADIRON, reason="no GPU")
def test_on_the_gpu():
    x = randn(3, 4)
    y = x.to(C64).cuda()
    assert y.device.type == "cuda" and y.dtype == C64 and y[1, 2].item() == x.to(C64)[1, 2].item()
    close(y.t().cpu(), x.t().to(C64))
    close(y.sum(1).cpu(), x.sum(1), rtol=1e-5, atol=1e-5)
    close((y @ y.mT).cpu(), x @ x.mT, rtol=1e-4, atol=1e-5)
    assert T.zeros(2, dtype=C64, device="cuda").tolist() == [0, 0] and y.real.device.type == "cuda"
    assert repr(y[:1, :1].cpu()) == repr(x[:1, :1].to(C64))
    close((y * y).cpu(), x * x, rtol=1e-5, atol=1e-5)
    with pytest.raises(NotImplementedError, match="not implemented on the GPU for .ComplexFloat."):
        y.logcumsumexp(0)


def test_logcumsumexp():
    x = T.tensor([[1 + 2j, -3 - 1j, 0.5j], [200 + 1j, -200, 1 - 1j]], dtype=T.complex128, requires_grad=True)
    y = x.logcumsumexp(1)
    rows = [[1 + 2j, 0.981705 + 1.997368j, 1.070925 + 1.64857j], [200 + 1j] * 3]
    assert (y - T.tensor(rows)).abs().max() < 1e-6
    (grad,) = T.autograd.grad(y, x, T.tensor([[1 + 1j, 2, -1j]] * 2, dtype=T.complex128))
    rows = [[2.716249 + 0.12004j, -0.028845 + 0.020392j, 0.312596 - 0.140432j], [3, 0, 0]]
    assert (grad - T.tensor(rows)).abs().max() < 1e-6
    assert T.autograd.gradcheck(lambda x: x.logcumsumexp(0), T.randn(3, 2, dtype=T.complex128, requires_grad=True))
    ends = T.tensor([float("-inf"), 1, complex(float("inf"), 1)], dtype=T.complex64).logcumsumexp(0)
    assert ends.real.tolist() == [float("-inf"), 1.0, float("inf")] and ends.imag.tolist() == [0.0, 0.0, 1.0]


def test_index_add_times_a_complex_number():
    x, s = (T.tensor(v, dtype=T.complex128, requires_grad=True) for v in ([1.0, 2.0], [1j, 3.0]))
    y = x.index_add(0, T.tensor([1, 1]), s, alpha=2j)
    assert y.tolist() == [1, 6j]
    y.sum().abs().backward()
    away = (1 + 6j) / 37**0.5
    assert (x.grad - away).abs().max() < 1e-12
    if IS_GRADIRON:  # PyTorch forgets to conjugate the factor
        assert (s.grad - away * -2j).abs().max() < 1e-12


def test_gradients_of_real_operands_are_views_of_complex_ones():
    x, g = T.arange(3.0, dtype=T.float64).requires_grad_(), T.ones(3, dtype=T.complex128)
    for made in (x.to(T.complex128), x * (1 + 1j), x + g):
        found = T.autograd.grad(made, x, g)[0]
        assert found.dtype == T.float64 and found.stride() == (2,)
        assert found.tolist() == [1.0, 1.0, 1.0]
    x.to(T.complex128).backward(g)
    assert x.grad.stride() == (1,)
    copies = T.autograd.grad(x.to(T.complex128), x, T.stack([g, g]), is_grads_batched=True)[0]
    assert copies.stride() == (6, 2)


@pytest.mark.parametrize("name", ("angle", "sgn"))
def test_real_numbers_do_not_turn(name):
    x = T.tensor([1.0, -2.0, 0.0, math.nan], dtype=T.float64).requires_grad_()
    turned = getattr(x, name)()
    found = T.autograd.grad(turned, x, T.tensor([math.nan, math.inf, 1.0, 1.0], dtype=T.float64), create_graph=True)[0]
    assert (found + 0.0).tolist() == [0.0] * 4 and not found.requires_grad
    z = T.tensor([1 + 2j, -2 - 1j], dtype=T.complex128).requires_grad_()
    weights = T.tensor([1.0, 2.0], dtype=T.float64)
    assert T.autograd.gradcheck(lambda z: T.view_as_real(getattr(z, name)() * (1 + 1j)) * weights, z)
    assert T.autograd.gradgradcheck(lambda z: T.view_as_real(getattr(z, name)() * (1 + 1j)) * weights, z)


def test_nan_to_num():
    nan, inf = float("nan"), float("inf")
    x = T.tensor([1 + 2j, complex(nan, 1), complex(2, -inf)], dtype=T.complex128, requires_grad=True)
    y = x.nan_to_num(5.0, 6.0, 7.0)
    assert y.tolist() == [1 + 2j, 5 + 1j, 2 + 7j] and y.grad_fn.name() == "NanToNumBackward0" and not y._is_view()
    for made in (y, (x * 1).nan_to_num_(5.0, 6.0, 7.0)):
        (grad,) = T.autograd.grad(made.real.sum(), x)
        assert grad.tolist() == [1, 0, 0]


def test_gradients_of_products_along_a_dimension_lie_in_order():
    for x in (T.randn(3, 4, 2, dtype=T.complex128, requires_grad=True), T.zeros(3, 4, 2, requires_grad=True)):
        assert T.autograd.grad(x.cumprod(1).abs().sum(), x, create_graph=True)[0].stride() == (8, 2, 1)
