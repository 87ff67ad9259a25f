"""`out=`: where results may be written, what is resized with a warning, and what is refused in which words."""

import re
import warnings

import pytest

from library import T, tensor

X = tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
I = tensor([[1, 2, 3], [4, 5, 6]], "int64")
F = T.nn.functional

RESIZED = (
    "An output with one or more elements was resized since it had shape \\[2\\], which does not match the required output shape"
)
REFUSED = "functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad."

# A call that takes `out=`, the shape of its result.
CALLS = {
    "exp": (lambda **o: T.exp(X, **o), (2, 3)),
    "add": (lambda **o: T.add(X, 1, **o), (2, 3)),
    "sum": (lambda **o: T.sum(X, 0, **o), (3,)),
    "mm": (lambda **o: T.mm(X, X.t(), **o), (2, 2)),
    "cat": (lambda **o: T.cat([X, X], **o), (4, 3)),
    "cumsum": (lambda **o: T.cumsum(X, 0, **o), (2, 3)),
    "gather": (lambda **o: T.gather(X, 0, T.zeros(1, 3, dtype=T.int64), **o), (1, 3)),
    "tensordot": (lambda **o: T.tensordot(X, X, dims=([1], [1]), **o), (2, 2)),
    "linear": (lambda **o: F.linear(X, X, **o), (2, 2)),
    "gelu": (lambda **o: F.gelu(X, **o), (2, 3)),
    "softplus": (lambda **o: F.softplus(X, **o), (2, 3)),
    "logsigmoid": (lambda **o: F.logsigmoid(X, **o), (2, 3)),
    "narrow_copy": (lambda **o: T.narrow_copy(X, 1, 0, 2, **o), (2, 2)),
    "slice_scatter": (lambda **o: T.slice_scatter(X, X[:1], 0, 0, 1, **o), (2, 3)),
    "multinomial": (lambda **o: T.multinomial(X.abs(), 2, **o), (2, 2)),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_result_is_written_where_it_fits(name):
    call, shape = CALLS[name]
    T.manual_seed(1)
    expected = call()
    out = T.full(shape, 7, dtype=expected.dtype)
    T.manual_seed(1)
    assert call(out=out) is out
    assert T.equal(out, expected)


SILENT = {"logsigmoid", "multinomial", "narrow_copy"}


@pytest.mark.parametrize("name", sorted(CALLS.keys() - {"tensordot"} - SILENT))
def test_another_shape_is_resized_with_a_warning(name):
    call, shape = CALLS[name]
    T.manual_seed(1)
    expected = call()
    out = T.full((2,), 7, dtype=expected.dtype)
    T.manual_seed(1)
    with pytest.warns(UserWarning, match=RESIZED):
        call(out=out)
    assert out.shape == shape and T.equal(out, expected)


@pytest.mark.parametrize(
    "name, size", [*((name, 0) for name in ("exp", "sum", "mm", "cat", "gelu")), *((n, 2) for n in sorted(SILENT))]
)
def test_an_empty_tensor_is_resized_without_a_word(name, size):
    call, shape = CALLS[name]
    out = T.empty(size, dtype=call().dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(out=out)
    assert out.shape == shape


NAMES = {
    "add": lambda **o: T.add(X, 1, **o),
    "linalg_cross": lambda **o: T.cross(X, X, dim=1, **o),
    "div": lambda **o: T.true_divide(X, 2, **o),
    "aten::floor_divide": lambda **o: T.floor_divide(X, 2, **o),
    "aten::softmax": lambda **o: T.softmax(X, 0, **o),
    "mul": lambda **o: T.outer(X[0], X[1], **o),
    "pow": lambda **o: T.square(X, **o),
    "cat": lambda **o: T.hstack([X, X], **o),
    "sort": lambda **o: T.msort(X, **o),
    "linalg_vector_norm": lambda **o: T.norm(X, **o),
    "log_sigmoid_forward": lambda **o: F.logsigmoid(X, **o),
    "aten::ones": lambda **o: T.ones(2, 3, **o),
}


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_refused_by_the_operator(name):
    shape = NAMES[name]().shape
    with pytest.raises(RuntimeError) as caught:
        NAMES[name](out=T.zeros(shape, requires_grad=True))
    assert str(caught.value) == f"{name}(): {REFUSED}"


def test_what_only_resizes_refuses_gradients_otherwise():
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        T.empty(3, out=T.zeros(3, requires_grad=True))


DRAWN = {
    "rand": lambda **o: T.rand(3, **o),
    "randn": lambda **o: T.randn(3, **o),
    "randint": lambda **o: T.randint(2, 9, (3,), **o),
    "randperm": lambda **o: T.randperm(3, **o),
}


@pytest.mark.parametrize("name", DRAWN)
def test_random_numbers_are_written_to_a_target_of_their_size(name):
    for kind in (T.float32, T.float64):
        for out in (T.full((3,), 20, dtype=kind), T.full((3, 2), 20, dtype=kind)[:, 0]):
            T.manual_seed(1)
            expected = DRAWN[name](dtype=kind)
            T.manual_seed(1)
            assert DRAWN[name](out=out) is out
            assert T.equal(out, expected)
    T.manual_seed(1)
    assert (DRAWN[name](out=T.full((3,), 20.0)) < 20).all()


LONG = {"dtype": T.int64}
WRONG = [
    (lambda: T.ceil(X, out=T.zeros(2, 3, **LONG)), "Found dtype Long but expected Float"),
    (lambda: T.neg(I, out=T.zeros(2, 3, dtype=T.int32)), "Found dtype Int but expected Long"),
    (lambda: T.mm(X, X.t(), out=T.zeros(2, 2, **LONG)), "Expected out tensor to have dtype float, but got long int instead"),
    (lambda: T.argmax(X, 0, out=T.zeros(3, dtype=T.int32)), "Expected out tensor to have dtype long int, but got int instead"),
    (lambda: T.ones(2, dtype=T.float32, out=T.zeros(2, **LONG)), "dtype Float does not match dtype of out parameter (Long)"),
    (lambda: T.dot(X[0], X[1], out=T.zeros((), **LONG)), "result dtype Long does not match input dtype Float"),
    (
        lambda: T.masked_select(X, X > 0, out=T.zeros(4, **LONG)),
        "masked_select(): self and result must have the same scalar type",
    ),
    (lambda: T.take(X, T.tensor([0]), out=T.zeros(1, **LONG)), "take(): self and out expected to have the same dtype"),
    (lambda: T.all(X, out=T.zeros((), **LONG)), "all only supports bool tensor for result, got: Long"),
    (lambda: T.amax(X, 0, out=T.zeros(3, dtype=T.float64)), "Expected the dtype for input and out to match, but got Float"),
    (lambda: T.signbit(X, out=T.zeros(2, 3)), "signbit does not support non-boolean outputs."),
    (lambda: T.renorm(X, 2, 0, 1.0, out=T.zeros(2, 3, dtype=T.float64)), "Expected out tensor to have dtype float, but got"),
    (lambda: T.unbind_copy(X, 0, out=[T.zeros(3, **LONG)] * 2), "Expected out tensor to have dtype float, but got long int"),
    (
        lambda: T.mode(X, 0, out=(T.zeros(3), T.zeros(3))),
        "expected scalar type 'Long' but got 'Float' for indices output",
    ),
    (lambda: F.hardshrink(X, out=T.zeros(2, 3, **LONG)), "Found dtype Long but expected Float"),
    (lambda: T.linalg.norm(X, out=T.zeros((), **LONG)), "linalg.norm expected out tensor dtype Float but got: Long"),
    (lambda: T.linalg.vecdot(X, X, out=T.zeros(2, **LONG)), "linalg.vecdot: Expected out of dtypeFloat but found Long"),
    (lambda: T.where(X > 0, X, X, out=T.zeros(2, 3, dtype=T.float64)), "Expected out type to be Float but got Double"),
    (
        lambda: T.max(X, 0, out=(T.zeros(3, **LONG), T.zeros(3, **LONG))),
        "Expected out tensor to have dtype float, but got long",
    ),
    (lambda: T.add(X, X, out=T.zeros(2, 3, **LONG)), "result type Float can't be cast to the desired output type Long"),
    (lambda: T.cummax(X, 0, out=(T.zeros(2, 3, **LONG), T.zeros(2, 3, **LONG))), "expected scalar_type Float but found Long"),
]


@pytest.mark.parametrize("call, words", WRONG)
def test_another_dtype_is_refused_in_the_operators_words(call, words):
    with pytest.raises(RuntimeError) as caught:
        call()
    assert str(caught.value).startswith(words)


A = tensor([[4.0, 1.0], [1.0, 3.0]])
CASTABLE = {
    "cholesky_inverse: Expected result": lambda **o: T.cholesky_inverse(A, **o),
    "cholesky_solve: Expected result": lambda **o: T.cholesky_solve(A, A, **o),
    "linalg.cond: Expected result": lambda **o: T.linalg.cond(A, **o),
    "torch.linalg.eigvals: Expected eigenvalues": lambda **o: T.linalg.eigvals(A, **o),
    "torch.linalg.householder_product: Expected result": lambda **o: T.linalg.householder_product(A, A[0], **o),
    "linalg.pinv: Expected result": lambda **o: T.linalg.pinv(A, **o),
    "tensorinv: Expected result": lambda **o: T.linalg.tensorinv(A, 1, **o),
    "tensorsolve: Expected result": lambda **o: T.linalg.tensorsolve(A, A[0], **o),
    "torch.linalg.matrix_rank: Expected result": lambda **o: T.linalg.matrix_rank(A, **o),
}


@pytest.mark.parametrize("words", CASTABLE)
def test_results_of_linear_algebra_are_cast_to_what_holds_them(words):
    call = CASTABLE[words]
    want = call()
    for dtype in T.complex64, T.complex128:
        out = T.zeros(want.shape, dtype=dtype)
        assert call(out=out) is out
        assert out.dtype == dtype and T.equal(out, want.to(dtype))
    narrow = T.zeros(want.shape, dtype=T.bool)
    words = re.escape(words) + r" to be safely castable from \w+ dtype, but got \w+ with dtype Bool"
    with pytest.raises(RuntimeError, match=words):
        call(out=narrow)
    assert not narrow.any()


def test_each_of_several_results_may_be_cast():
    values, vectors = T.linalg.eig(A)
    out = T.zeros(2, dtype=T.complex128), T.zeros(2, 2, dtype=T.complex64)
    T.linalg.eig(A, out=out)
    assert T.equal(out[0], values.to(T.complex128)) and T.equal(out[1], vectors)
    with pytest.raises(RuntimeError, match="torch.linalg.eig: Expected eigenvectors to be safely castable from ComplexFloat"):
        T.linalg.eig(A, out=(T.zeros(2, dtype=T.complex64), T.zeros(2, 2)))
    with pytest.raises(
        RuntimeError, match="torch.geqrf: Expected tau to be safely castable from Float dtype, but got tau with"
    ):
        T.geqrf(A, out=(T.zeros(2, 2), T.zeros(2, dtype=T.int64)))


def test_an_interpolation_is_cast_to_a_wider_dtype():
    out = T.zeros(2, 2, dtype=T.float64)
    T.lerp(A, A + 1, 0.5, out=out)
    assert T.equal(out, (A + 0.5).double())
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        T.lerp(A, A + 1, 0.5, out=T.zeros(2, 2, **LONG))


def test_joining_into_another_dtype_is_a_type_error():
    with pytest.raises(TypeError, match="torch.cat\\(\\): input types can't be cast to the desired output type Long"):
        T.cat([X, X], out=T.zeros(4, 3, dtype=T.int64))


@pytest.mark.parametrize("make", [lambda o: T.zeros(3, out=o), lambda o: T.arange(3, out=o), lambda o: T.full((3,), 2, out=o)])
def test_what_is_made_takes_the_targets_dtype(make):
    for kind in (T.float32, T.int32, T.float64):
        out = T.ones(3, dtype=kind)
        assert make(out) is out and out.dtype is kind


@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
@pytest.mark.parametrize(
    "make",
    [
        lambda o: T.arange(6, out=o),
        lambda o: T.range(0, 5, out=o),
        lambda o: T.linspace(0, 5, 6, out=o),
        lambda o: T.logspace(0, 5, 6, base=1, out=o),
    ],
)
def test_ranges_keep_the_shape_of_as_many_elements(make):
    told = make(T.zeros(6)).tolist()
    for place in (T.zeros(2, 3), T.zeros(3, 2).t(), T.zeros(1, 6)):
        shape = place.shape
        assert make(place) is place and place.shape == shape and place.flatten().tolist() == told
    whole = T.full((3, 2, 2), 7.0)
    make(whole[..., 0])
    assert whole[..., 0].flatten().tolist() == told and bool((whole[..., 1] == 7).all())
    assert make(T.zeros(0, 3)).shape == (6,)


def test_a_range_of_another_count_is_told():
    words = (
        "The number of elements in the out tensor of shape \\[3\\] is 3 which does not match the computed number of elements 5"
    )
    with pytest.warns(UserWarning, match=words):
        assert T.arange(5, out=T.empty(3)).tolist() == [0, 1, 2, 3, 4]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert T.arange(5, out=T.empty(0)).shape == (5,) and T.linspace(0, 4, 5, out=T.empty(3)).shape == (5,)


@pytest.mark.parametrize(
    "name, fields", [("max", ("values", "indices")), ("sort", ("values", "indices")), ("aminmax", ("min", "max"))]
)
def test_several_results_come_as_a_named_tuple(name, fields):
    function = (lambda **o: T.aminmax(X, **o)) if name == "aminmax" else (lambda **o: getattr(T, name)(X, 0, **o))
    places = tuple(T.empty_like(t) for t in function())
    made = function(out=places)
    assert type(made).__name__ == f"{name}_out"
    assert [getattr(made, field) is place for field, place in zip(fields, places)] == [True, True]


def test_inputs_may_not_be_written_to_where_they_are_still_read():
    words = "some elements of the input tensor and the written-to tensor refer to a single memory location"
    x = T.arange(6.0)
    for call in (
        lambda: T.take(x, T.tensor([2, 1, 0]), out=x),
        lambda: T.masked_select(x, x > 2, out=x),
        lambda: T.cat([x, x], out=x),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()


BY_ELEMENTS = {
    "polygamma": lambda x, **o: T.polygamma(1, x, **o),
    "nextafter": lambda x, **o: T.nextafter(x, T.ones(4), **o),
    "i0": T.i0,
    "special.i1e": T.special.i1e,
    "special.log_ndtr": T.special.log_ndtr,
    "special.bessel_j0": T.special.bessel_j0,
    "special.airy_ai": T.special.airy_ai,
    "special.zeta": lambda x, **o: T.special.zeta(x, T.ones(4), **o),
    "igamma": lambda x, **o: T.igamma(x, T.ones(4), **o),
}


@pytest.mark.parametrize("name", BY_ELEMENTS)
def test_functions_of_elements_write_over_what_they_read_and_no_other(name):
    f, x = BY_ELEMENTS[name], tensor([1.5, 2.5, 3.5, 4.5, 5.5])
    expected = f(x[:4])
    with pytest.raises(RuntimeError, match="^unsupported operation: some elements of the input tensor and the written-to"):
        f(x[:4], out=x[1:])
    assert x.tolist() == [1.5, 2.5, 3.5, 4.5, 5.5]
    assert f(x[:4], out=x[:4]).tolist() == expected.tolist() and x[4] == 5.5


def test_divisors_write_over_what_they_read_and_no_other():
    for f in (T.gcd, T.lcm):
        x = tensor([4, 6, 8], "int64")
        with pytest.raises(RuntimeError, match="^unsupported operation: some elements of the input tensor"):
            f(x[:2], tensor([6, 4], "int64"), out=x[1:])
        assert f(x, x, out=x).tolist() == [4, 6, 8]


def test_mantissas_and_exponents_have_their_dtypes():
    x = tensor([0.0, 3.0])
    places = T.empty(0, dtype=T.int32)
    made = T.frexp(x, out=(T.empty(0), places))
    assert made.mantissa.tolist() == [0.0, 0.75] and places.tolist() == [0, 2]
    for pair in ((T.empty(2, dtype=T.float64), places), (T.empty(2), T.empty(2))):
        with pytest.raises(RuntimeError, match="to have .*dtype"):
            T.frexp(x, out=pair)


def test_a_number_of_places():
    x, out = tensor([0.0, 3.0, 0.0, 4.0]), T.empty(3, 1, dtype=T.int64)
    assert T.nonzero_static(x, size=3, out=out) is out and out.tolist() == [[1], [3], [-1]]
    assert T.nonzero_static(x, size=1, fill_value=7, out=out.resize_(0)).tolist() == [[1]]
    with pytest.raises(
        RuntimeError, match="^nonzero_static: Expected out tensor to have scalar type Long but got scalar typeFloat"
    ):
        T.nonzero_static(x, size=3, out=T.empty(3, 1))


@pytest.mark.gradiron
def test_a_target_that_is_also_read_keeps_its_shape():
    x, nothing = T.arange(6.0), T.zeros(0)
    with pytest.raises(RuntimeError, match="single memory location"):
        T.cat([x, x], out=x)
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert T.cat([nothing, nothing], out=nothing) is nothing


def test_joined_tensors_that_want_gradients_are_refused():
    x, y = tensor([1.0, 2.0]).requires_grad_(), T.zeros(4, dtype=T.int64)
    for join in (T.cat, T.stack, T.hstack):
        with pytest.raises(RuntimeError, match=f"cat\\(\\): {REFUSED}" if join is not T.stack else REFUSED):
            join([x, x], out=y)


def test_truths_and_places_are_written_beside_histories():
    x = tensor([[1.0, -2.0]]).requires_grad_()
    y = x * 1
    assert T.gt(x, 0, out=y) is y and y.tolist() == [[1.0, 0.0]] and y._version == 1
    assert T.argmax(x, out=T.zeros((), dtype=T.int64)).item() == 0
    assert T.logical_not(x, out=x.new_empty(1, 2, dtype=T.bool)).tolist() == [[False, False]]
    y.sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize("name, results", [("sum", [9, 8]), ("prod", [20, 12]), ("cumsum", [[4, 2], [9, 8]])])
def test_sums_are_computed_in_the_targets_dtype(name, results):
    x = tensor([[4.5, 2.75], [5.5, 6.25]])
    out = T.zeros(T.tensor(results).shape, dtype=T.int64)
    assert getattr(T, name)(x, 0, out=out).tolist() == results
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got long int instead"):
        getattr(T, name)(x, 0, dtype=T.float32, out=out)


def test_what_is_stacked_is_not_written_over():
    x = T.arange(3.0)
    for join in (lambda: T.stack([x[:2]], out=x[1:].view(1, 2)), lambda: T.hstack([x[:2]], out=x[1:])):
        with pytest.raises(RuntimeError, match="single memory location"):
            join()


@pytest.mark.parametrize("kind", ["float64", "int64", "uint8", "bool"])
def test_draws_are_written_to_any_dtype(kind):
    p = tensor([0.2, 0.5, 0.8])
    T.manual_seed(0)
    expected = T.bernoulli(p)
    T.manual_seed(0)
    out = T.empty(3, dtype=getattr(T, kind))
    assert T.bernoulli(p, out=out) is out and out.tolist() == expected.tolist()


def test_magnitudes_are_written_where_real_numbers_are_cast():
    x = T.tensor([3 + 4j, 1j])
    for kind in (T.float16, T.float64, T.complex64):
        assert T.abs(x, out=T.empty(2, dtype=kind)).tolist() == [5, 1]
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        T.abs(x, out=T.empty(2, dtype=T.int64))
    with pytest.raises(RuntimeError, match="Found dtype ComplexDouble but expected ComplexFloat"):
        T.abs(x, out=T.empty(2, dtype=T.complex128))
