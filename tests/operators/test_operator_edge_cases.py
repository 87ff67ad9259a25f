"""Corners of single operators: which signature is meant, in-place forms that are rare, gradients at kinks, refusals."""

import pytest

from library import IS_GRADIRON, T


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("other", [1, True, 0.5])
def test_a_tensor_without_dimensions_is_no_dimension(name, other):
    """`max(x, tensor(1))` compares, though the tensor could stand for a dimension."""
    x = T.tensor([[0.0, 2.0], [3.0, -1.0]])
    number = T.tensor(other)
    expected = getattr(T, f"{name}imum")(x, number)
    assert T.equal(getattr(T, name)(x, number), expected)
    assert T.equal(getattr(x, name)(number), expected)
    values, places = getattr(T, name)(x, 1)
    assert values.shape == places.shape == (2,)
    assert getattr(x, name)(dim=1, keepdim=True).values.shape == (2, 1)


def test_renorm_in_place_has_the_gradient_of_renorm():
    x = T.tensor([[0.0, 1.0], [2.0, 3.0]], requires_grad=True)
    expected = (x * 3).renorm(2, 0, 1.0)
    found = (x * 3).renorm_(2, 0, 1.0)
    assert T.equal(expected, found)
    (a,), (b,) = (T.autograd.grad(y.square().sum(), x) for y in (expected, found))
    assert T.equal(a, b)


def test_gradient_of_renorm_is_rounded_once():
    x = (T.arange(300, dtype=T.float64) * 0.7).sin().reshape(10, 30).float()
    g = (T.arange(300, dtype=T.float64) * 1.3).cos().reshape(10, 30).float()

    def gradient(dtype):
        leaf = x.to(dtype).requires_grad_()
        return T.autograd.grad(leaf.renorm(2, 0, 1.0), leaf, g.to(dtype))[0]

    exact = gradient(T.float64)
    assert ((gradient(T.float32) - exact).abs() <= 2.0**-24 * exact.abs().max()).all()


def test_xlogy_counts_no_logarithm_for_a_gradient_of_zero():
    x, y = T.tensor([1.0, 1.0, 2.0], requires_grad=True), T.tensor([0.0, -1.0, 1.0])
    (grad,) = T.autograd.grad(T.xlogy(x, y), x, T.tensor([0.0, 0.0, 1.0]))
    assert grad.tolist() == [0.0, 0.0, 0.0]


def test_trace_keeps_small_terms_beside_large_ones():
    for kind in (T.float32, T.complex64):
        x = T.zeros(6, 6, dtype=kind).diagonal_scatter(T.tensor([2.0**24, 1, 1, 1, 1, -(2.0**24)], dtype=kind))
        assert T.trace(x).item() == 4
    assert T.trace(T.ones(3, 3, dtype=T.int32)).dtype == T.int64


def test_kron_of_a_transposed_matrix():
    x = T.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert T.equal(T.kron(x.t(), T.tensor([10.0])), x.t() * 10)
    if IS_GRADIRON:  # PyTorch refuses to view these products.
        for y in (T.tensor([10.0, 1.0]), T.tensor([[10.0], [1.0]])):
            assert T.equal(T.kron(x.t(), y), T.kron(x.t().contiguous(), y))


def test_rare_forms_in_place():
    x, y = T.tensor([1.0, 2.0]), T.tensor([2.0, 0.5])
    for name in ("igamma", "igammac"):
        a = x.clone()
        assert getattr(a, f"{name}_")(y) is a
        assert T.equal(a, getattr(T, name)(x, y))
    a = x.clone()
    assert a.polygamma_(1) is a
    assert T.equal(a, T.polygamma(1, x))
    a = x.double()
    assert a.float_power_(y) is a
    assert T.equal(a, T.float_power(x, y))
    with pytest.raises(
        RuntimeError, match="the base given to float_power_ has dtype Float but the operation's result requires dtype Double"
    ):
        x.float_power_(2)
    with pytest.raises(RuntimeError, match="has dtype Double but the operation's result requires dtype ComplexDouble"):
        x.double().float_power_(2j)
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        T.tensor([1]).polygamma_(1)
    with pytest.raises(RuntimeError, match="does not support negative n"):
        x.polygamma_(-1)


def test_slopes_of_bessel_functions():
    x = T.tensor([0.0, 0.5, 3.0, -9.0], dtype=T.float64, requires_grad=True)
    j0, j1 = T.special.bessel_j0(x), T.special.bessel_j1(x)
    assert j0.grad_fn.name() == "SpecialBesselJ0Backward0"
    assert j1.grad_fn.name() == "SpecialBesselJ1Backward0"
    (d0,) = T.autograd.grad(j0.sum(), x)
    (d1,) = T.autograd.grad(j1.sum(), x)
    with T.no_grad():
        assert T.allclose(d0, -j1, atol=1e-8)
        assert T.allclose(d1[1:], (j0 - j1 / x)[1:], atol=1e-8)
    assert d1[0] == 0.5


def test_slopes_of_a_step_to_the_next_number():
    x = T.tensor([1.0, 2.0, 0.0, -0.0], requires_grad=True)
    y = T.tensor([2.0, 2.0, 0.0, 1.0], requires_grad=True)
    a, b = T.autograd.grad(T.nextafter(x, y).sum(), (x, y))
    assert a.tolist() == [1.0, 0.0, 0.0, 1.0]
    assert b.tolist() == [0.0] * 4


def test_residuals_of_least_squares_have_gradients():
    T.manual_seed(0)
    a, b = T.randn(5, 2, dtype=T.float64, requires_grad=True), T.randn(5, 1, dtype=T.float64)

    def left(a):
        return T.linalg.lstsq(a, b, driver="gels").residuals

    assert left(a).requires_grad
    assert T.autograd.gradcheck(left, (a,))


@pytest.mark.parametrize("name", ["linspace", "logspace"])
def test_bounds_hold_one_number(name):
    function = getattr(T, name)
    assert T.allclose(function(T.tensor(1.0), T.tensor(2.0), 3), function(1.0, 2.0, 3))
    said = f"{name} only supports 0-dimensional start and end tensors, but got "
    for start, end, rest in [
        (T.ones(2), 3, "start with 1 dimension\\(s\\)."),
        (1, T.ones(1), "end with 1 dimension\\(s\\)."),
        (T.ones(1), T.ones(1, 1), "start with 1 dimension\\(s\\) and end with 2 dimension\\(s\\)."),
    ]:
        with pytest.raises(RuntimeError, match=said + rest):
            function(start, end, 3)


def test_weights_of_observations_are_not_negative():
    with pytest.raises(RuntimeError, match=r"cov\(\): fweights cannot be negative"):
        T.cov(T.ones(3), fweights=T.tensor([1, -2, 3]))
    with pytest.raises(RuntimeError, match=r"cov\(\): aweights cannot be negative"):
        T.cov(T.ones(3), aweights=T.tensor([1.0, -2.0, 3.0]))
    assert T.cov(T.tensor([1.0, 2.0, 4.0]), fweights=T.tensor([1, 0, 1])) == 4.5


def test_reflections_of_a_matrix():
    T.manual_seed(0)
    for shape in ((4, 3), (2, 5, 5)):
        x = T.randn(*shape)
        a, tau = T.geqrf(x)
        n = shape[-1]
        assert T.allclose(T.linalg.householder_product(a, tau) @ a[..., :n, :].triu(), x, atol=1e-5)
        assert T.equal(x.geqrf().tau, tau)
    with pytest.raises(RuntimeError, match="input must have at least 2 dimensions"):
        T.geqrf(T.ones(3))
    with pytest.raises(NotImplementedError, match="\"geqrf_cpu\" not implemented for 'Long'"):
        T.geqrf(T.ones(3, 2, dtype=T.int64))
    with pytest.raises(NotImplementedError, match="the derivative for 'geqrf' is not implemented"):
        T.geqrf(T.eye(2, requires_grad=True)).a.sum().backward()


def test_put_by_sizes_and_strides():
    x, src = T.zeros(4), T.ones(2)
    assert T.as_strided_scatter(x, src, (2,), (2,)).tolist() == [1.0, 0.0, 1.0, 0.0]
    assert x.as_strided_scatter(src, (2,), (2,), 1).tolist() == [0.0, 1.0, 0.0, 1.0]
    turned = T.zeros(3, 4).t()
    put = turned.as_strided_scatter(T.ones(2, 2), (2, 2), (2, 3), 1)
    assert put.stride() == turned.stride()
    assert put.t().reshape(-1).nonzero()[:, 0].tolist() == [1, 3, 4, 6]
    value = T.tensor([2.0, 3.0], requires_grad=True)
    (slope,) = T.autograd.grad(T.as_strided_scatter(x, value, (2,), (2,)).square().sum(), value)
    assert slope.tolist() == [4.0, 6.0]
    with pytest.raises(RuntimeError, match="expected src to have a size equal to the slice of self"):
        T.as_strided_scatter(x, T.ones(3), (2,), (2,))


def test_filled_and_permuted():
    assert T.fill(T.tensor([1]), 2.5).tolist() == [2]
    assert T.fill(T.ones(3, 2).t(), 1).stride() == (1, 2)
    x, value = T.ones(2, requires_grad=True), T.tensor(3.0, requires_grad=True)
    a, b = T.autograd.grad(T.fill(x, value).square().sum(), (x, value))
    assert a.tolist() == [0.0, 0.0]
    assert b == 12.0
    assert T.empty_permuted((2, 3, 4), (2, 0, 1)).stride() == (3, 1, 6)
    assert T.empty_permuted((2, 3), (1, 0), dtype=T.int64).dtype == T.int64
    for order, message in [
        ((1, 1), "Duplicate dim not allowed"),
        ((1,), "Number of dimensions in size does not match the length of the physical_layout"),
        ((0, 5), r"Dimension out of range \(expected to be between 0 and 1, but got 5 at index 1\)"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            T.empty_permuted((2, 3), order)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolution_of_complex_numbers(transposed, groups):
    T.manual_seed(0)
    F = T.nn.functional
    x = T.randn(2, 4, 6, 6, dtype=T.complex128)
    function = F.conv_transpose2d if transposed else F.conv2d
    w = T.randn(4, 6 // groups, 3, 3, dtype=T.complex128) if transposed else T.randn(6, 4 // groups, 3, 3, dtype=T.complex128)
    bias = T.randn(6, dtype=T.complex128)

    def of(x, w):
        return function(x, w, stride=2, padding=1, groups=groups)

    expected = T.complex(of(x.real, w.real) - of(x.imag, w.imag), of(x.real, w.imag) + of(x.imag, w.real)) + bias.reshape(
        -1, 1, 1
    )
    found = function(x, w, bias, stride=2, padding=1, groups=groups)
    assert found.dtype == T.complex128
    assert T.allclose(found, expected)
    if groups == 1 and not transposed:
        small = [t.clone().requires_grad_() for t in (x[:1, :, :3, :3], w[:2, :, :2, :2])]
        assert T.autograd.gradcheck(F.conv2d, small)


def test_refusals_of_layers():
    F = T.nn.functional
    with pytest.raises(RuntimeError, match="Expected number of channels to be greater than 0, got 0"):
        F.group_norm(T.ones(1, 0, 2), 1)
    with pytest.raises(RuntimeError, match="'weight' must be 2-D"):
        F.embedding(T.tensor([0]), T.tensor(1.0))
    for function in (F.conv1d, F.conv_transpose1d):
        with pytest.raises(RuntimeError, match="^dilation should be greater than zero$"):
            function(T.ones(1, 1, 4), T.ones(1, 1, 2), dilation=-1)


def test_channels_of_complex_numbers_are_dropped():
    T.manual_seed(0)
    x = T.ones(2, 8, 3, 3, dtype=T.complex64)
    found = T.nn.functional.dropout2d(x)
    assert found.dtype == T.complex64
    assert set(found.real.flatten().tolist()) == {0.0, 2.0}


def test_no_spacing_is_one():
    x = T.arange(5.0) ** 2
    assert T.equal(T.gradient(x, spacing=None)[0], T.gradient(x)[0])


def test_weights_of_classes_have_the_dtype_of_the_input():
    F = T.nn.functional
    for shape in ((2, 3), (2, 3, 4), (2, 3, 4, 2)):
        target = T.zeros(shape[:1] + shape[2:], dtype=T.int64)
        for loss in (F.nll_loss, F.cross_entropy):
            with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
                loss(T.ones(shape), target, weight=T.ones(3).double())
    with pytest.raises(RuntimeError, match="ignore_index is not supported for floating point target"):
        F.cross_entropy(T.ones(2, 3), T.ones(2, 3), ignore_index=1)


def test_cells_refuse_states_of_other_sizes():
    x = T.ones(3, 10)
    for cell, states in [(T.nn.RNNCell(10, 20), 1), (T.nn.GRUCell(10, 20), 1), (T.nn.LSTMCell(10, 20), 2)]:
        for wrong in range(states):
            for size, message in [
                ((3, 21), f"hidden{wrong} has inconsistent hidden_size: got 21, expected 20"),
                ((4, 20), f"Input batch size 3 doesn't match hidden{wrong} batch size 4"),
            ]:
                given = [T.ones(3, 20) for _ in range(states)]
                given[wrong] = T.ones(size)
                with pytest.raises(RuntimeError, match=message):
                    cell(x, given[0] if states == 1 else tuple(given))


@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax"])
def test_dimensions_of_a_softmax_are_whole_numbers(name):
    layer = getattr(T.nn, name)
    assert layer().dim is None
    for dim in (True, 1.0, "a"):
        with pytest.raises(TypeError, match=f"dim must be an int or None, got <class '{type(dim).__name__}'>"):
            layer(dim)


def test_generators_can_be_copied():
    import copy
    import io
    import pickle

    generator = T.Generator()
    generator.manual_seed(3)
    T.rand(2, generator=generator)
    file = io.BytesIO()
    T.save(generator, file)
    file.seek(0)
    copies = [copy.deepcopy(generator), pickle.loads(pickle.dumps(generator)), T.load(file, weights_only=False)]
    expected = T.rand(4, generator=generator)
    for other in copies:
        assert T.equal(T.rand(4, generator=other), expected)


def test_half_of_a_spectrum_stands_for_the_other():
    """A real signal is made of the first half, whatever the second is."""
    T.manual_seed(0)
    whole, window = T.randn(6, 4, dtype=T.complex128), T.ones(6, dtype=T.float64)
    found = T.istft(whole, 6, window=window, onesided=False)
    assert T.allclose(found, T.istft(whole[:4], 6, window=window, onesided=True))


def test_statistics_beside_norms():
    x = T.randn(2, 3, requires_grad=True)
    weight = T.ones(3, requires_grad=True)
    assert [t.requires_grad for t in T.native_layer_norm(x, (3,), weight, None, 1e-5)] == [True, False, False]
    found = T.native_batch_norm(x, weight, None, None, None, True, 0.1, 1e-5)
    assert [t.requires_grad for t in found] == [True, False, False]
    assert all(t.requires_grad for t in T.native_group_norm(x, None, None, 2, 3, 1, 1, 1e-5))


def test_more_refusals():
    F = T.nn.functional
    with pytest.raises(RuntimeError, match=r"tensor a \(4\) must match the size of tensor b \(5\)"):
        F.soft_margin_loss(T.ones(5, 4), T.ones(5))
    for stride, shown in [(0, "[0, 0, 0]"), ((1, -1, 1), "[1, -1, 1]")]:
        with pytest.raises(RuntimeError) as caught:
            F.max_unpool3d(T.ones(1, 1, 2, 2, 2), T.zeros(1, 1, 2, 2, 2, dtype=T.int64), 3, stride)
        assert str(caught.value) == f"strides should be greater than zero, but got stride: {shown}"
    assert T.linalg.vander(T.tensor(2.0), N=3).tolist() == [[1.0, 2.0, 4.0]]
    a = [T.ones(2)]
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        T._foreach_addcmul(a, a, a, value=[1.0])
    assert T._foreach_addcmul(a, a, a, scalars=[2.0])[0].tolist() == [3.0, 3.0]


def test_extremes_over_no_dimension_that_is_told():
    x = T.tensor([[1.0, 4.0], [3.0, 2.0]])
    assert x.amax(None).item() == x.amax(dim=None).item() == 4.0
    assert T.amin(x, None, keepdim=True).tolist() == [[1.0]]


def test_incomplete_gamma_functions_promote_as_others():
    for kind in (T.float16, T.bfloat16, T.float32):
        for other in (T.int64, T.uint8, T.bool):
            x, y = T.ones(2, dtype=kind), T.ones(2, dtype=other)
            assert T.igamma(x, y).dtype is T.igammac(y, x).dtype is kind


def test_what_is_real_lies_as_the_numbers_do():
    assert T.ones(2, 3).t().isreal().stride() == (1, 3)
