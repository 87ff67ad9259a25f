"""`gradcheck` and `gradgradcheck` find what is wrong with a derivative, and say where."""

import pytest

from library import T

gradcheck, gradgradcheck = T.autograd.gradcheck, T.autograd.gradgradcheck
GradcheckError = T.autograd.gradcheck.__globals__["GradcheckError"]
modes = pytest.mark.parametrize("fast_mode", [False, True])


def double(*shape):
    return T.randn(shape, dtype=T.float64, requires_grad=True)


class Square(T.autograd.Function):
    """With a derivative that is wrong by half."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x * 3


class Careless(T.autograd.Function):
    """Its derivative ignores the gradient that comes in."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return T.ones_like(g)


class Moody(T.autograd.Function):
    """Its derivative is never the same."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        Moody.calls += 1
        return g * (1 + Moody.calls * 1e-9)


class Needy(T.autograd.Function):
    """Does not expect that a gradient may be missing."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        if g is None:
            raise RuntimeError("where is my gradient?")
        return g * 2


class FlatCurvature(T.autograd.Function):
    """The first derivative is right, but takes no part in the second."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x.detach() ** 2


@modes
@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda a, b: a * b, [(2, 3), (3,)]),
        (lambda a, b: a @ b, [(2, 3), (3, 2)]),
        (lambda a: (a.exp(), a.sum()), [(2, 2)]),
        (lambda a: a.sin(), [()]),
        (lambda a: a * 2, [(0,)]),
        (lambda a: a[[0, 0, 1]], [(3,)]),
        (lambda a: a.clone().mul_(3).tanh(), [(3,)]),
        (lambda a, b: a * 2, [(2,), (3,)]),
        (lambda a: a, [(2,)]),
        (lambda a: [a * 2, a.argmax()], [(4,)]),
    ],
)
def test_right_derivatives_pass(function, shapes, fast_mode):
    inputs = [double(*shape) for shape in shapes]
    assert gradcheck(function, inputs, fast_mode=fast_mode) is True
    assert gradgradcheck(function, inputs, fast_mode=fast_mode) is True


@modes
def test_a_wrong_derivative_is_shown(fast_mode):
    x, y = double(2), double(2)
    with pytest.raises(
        GradcheckError, match=r"(?s)^Jacobian mismatch for output 1 with respect to input 1,\nnumerical:.*analytical:"
    ) as info:
        gradcheck(lambda a, b: (a * b, Square.apply(b)), (x, y), fast_mode=fast_mode)
    assert ("in slow mode" in str(info.value)) is fast_mode
    assert gradcheck(Square.apply, x, raise_exception=False, fast_mode=fast_mode) is False


def test_the_matrices_are_in_the_message():
    x = T.tensor([1.0, 2.0], dtype=T.float64, requires_grad=True)
    with pytest.raises(GradcheckError) as info:
        gradcheck(Square.apply, x)
    assert str(info.value) == (
        "Jacobian mismatch for output 0 with respect to input 0,\n"
        "numerical:tensor([[2.0000, 0.0000],\n        [0.0000, 4.0000]], dtype=torch.float64)\n"
        "analytical:tensor([[3., 0.],\n        [0., 6.]], dtype=torch.float64)\n"
    )


@modes
def test_second_derivatives_are_checked(fast_mode):
    x = double(3)
    assert gradcheck(FlatCurvature.apply, x, fast_mode=fast_mode)
    assert not gradgradcheck(FlatCurvature.apply, x, fast_mode=fast_mode, raise_exception=False)
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradgradcheck(FlatCurvature.apply, x, fast_mode=fast_mode)


def test_given_gradients_and_gradients_with_gaps():
    x = double(2, 3)
    assert gradgradcheck(T.sin, x, double(2, 3))
    assert gradgradcheck(T.sin, x, gen_non_contig_grad_outputs=True)


def test_a_derivative_has_to_use_the_gradient_that_comes_in():
    x = T.ones(1, dtype=T.float64, requires_grad=True)
    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(Careless.apply, x)


def test_a_derivative_has_to_be_repeatable():
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(Moody.apply, double(2))
    assert gradcheck(Moody.apply, double(2), nondet_tol=1e-6)


@pytest.mark.filterwarnings("ignore:Backwards compatibility")
def test_missing_gradients_count_as_zeros():
    with pytest.raises(GradcheckError, match="Expected backward function to handle undefined output grads"):
        gradcheck(Needy.apply, double(2))


def test_a_hidden_dependence_is_found():
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
        gradcheck(lambda a: a.detach() * 2, double(2))
    assert gradcheck(lambda a: T.ones(2, dtype=T.float64), double(2))


def test_what_cannot_be_checked_is_said():
    with pytest.raises(ValueError, match="gradcheck expects at least one input tensor to require gradient"):
        gradcheck(T.sin, T.ones(2, dtype=T.float64))
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        gradcheck(T.sin, T.ones(1, dtype=T.float64).expand(3).requires_grad_())
    with pytest.raises(AssertionError, match="Expected at least one of check_forward_ad or check_backward_ad to be True"):
        gradcheck(T.sin, double(2), check_backward_ad=False)
    with pytest.raises(AssertionError, match="same shape when inputs are perturbed"):
        gradcheck(lambda a: a[a > 1.0], T.tensor([1.0, 2.0], dtype=T.float64, requires_grad=True))


def test_single_precision_is_warned_of():
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision floating point"):
        gradcheck(T.sin, T.ones(2, requires_grad=True), eps=1e-2, atol=1e-2)


def test_inputs_are_left_as_they_were():
    x = double(2, 3).detach().t().requires_grad_()
    before = x.tolist()
    for fast_mode in (False, True):
        gradcheck(T.sin, x, fast_mode=fast_mode)
        gradcheck(Square.apply, x, fast_mode=fast_mode, raise_exception=False)
    assert x.tolist() == before and x.grad is None


# --- forward mode ---


class Cube(T.autograd.Function):
    """Both derivatives are right, but for what its factor makes of the tangent."""

    factor = 1.0

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2

    @classmethod
    def jvp(cls, ctx, v):
        (x,) = ctx.saved_tensors
        return v * 3 * x**2 * cls.factor


class WrongCube(Cube):
    factor = 1.5


@modes
def test_tangents_are_checked(fast_mode):
    x, y = double(3), double(3)
    options = {"fast_mode": fast_mode, "check_forward_ad": True}
    assert gradcheck(lambda a, b: (a * b.sin(), a.sum()), (x, y), **options)
    assert gradcheck(lambda a, b: (a * b.sin(), a.sum()), (x, y), check_backward_ad=False, **options)
    assert gradcheck(Cube.apply, x, **options)
    assert gradcheck(WrongCube.apply, x, fast_mode=fast_mode)
    assert not gradcheck(WrongCube.apply, x, raise_exception=False, **options)
    with pytest.raises(
        GradcheckError, match=r"(?s)^Jacobian computed with forward mode mismatch for output 0 with respect to input 0,\nnumer"
    ) as info:
        gradcheck(WrongCube.apply, x, check_backward_ad=False, **options)
    assert ("in slow mode" in str(info.value)) is fast_mode


@modes
def test_tangents_of_gradients_are_checked(fast_mode):
    x, y = double(3), double(3)
    assert gradgradcheck(lambda a, b: a * b.sin(), (x, y), check_fwd_over_rev=True, fast_mode=fast_mode)
    assert gradgradcheck(lambda a: a.exp(), x, check_fwd_over_rev=True, check_rev_over_rev=False, check_undefined_grad=False)


def test_a_function_without_a_jvp_cannot_be_checked():
    with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
        gradcheck(Careless.apply, double(2), check_forward_ad=True, check_backward_ad=False)


class Forgetful(Cube):
    """Takes a missing tangent for another one than zeros."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        return x * 2 + y

    @staticmethod
    def backward(ctx, g):
        return (None, None) if g is None else (g * 2, g)

    @staticmethod
    def jvp(ctx, v, w):
        return (0 if v is None else v * 2) + (1 if w is None else w)


def test_missing_tangents_count_as_zeros():
    pair = (double(2), double(2))
    with pytest.raises(GradcheckError, match="Mismatch in tangent values for output with index"):
        gradcheck(lambda x, y: Forgetful.apply(x, y + 0 * x.detach()), pair, check_forward_ad=True, check_backward_ad=False)


def test_batches_of_gradients_and_tangents():
    pair = (double(2, 3), double(3))
    options = {"check_batched_grad": True, "check_forward_ad": True, "check_batched_forward_grad": True}
    assert gradcheck(lambda a, b: (a * b.tanh()).cumsum(0), pair, **options)
    assert gradgradcheck(lambda a, b: a * b.tanh(), pair, check_batched_grad=True)
    with pytest.raises(AssertionError, match="check_batched_forward_grad=True requires check_forward_ad to be True"):
        gradcheck(T.sin, pair[0], check_batched_forward_grad=True)


class Straight(T.autograd.Function):
    """z² with the gradient that it would have without the convention's conjugate."""

    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z * z

    @staticmethod
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0]


class Slanted(T.autograd.Function):
    """2z with a tangent that is wrong along the imaginary axis."""

    @staticmethod
    def forward(ctx, z):
        return z * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def jvp(ctx, v):
        return T.complex(v.real * 2, v.imag * 3)


def complex_leaf():
    return T.tensor([0.5 + 1j, 3 - 2j], dtype=T.complex128, requires_grad=True)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_which_part_of_complex_numbers_is_wrong(fast_mode):
    with pytest.raises(GradcheckError) as found:
        gradcheck(Straight.apply, complex_leaf(), fast_mode=fast_mode)
    assert str(found.value).startswith(
        "While considering the imaginary part of complex outputs only, Jacobian mismatch for output 0 with respect to input 0,"
    )
    with pytest.raises(GradcheckError) as found:
        gradcheck(Slanted.apply, complex_leaf(), check_forward_ad=True, check_backward_ad=False, fast_mode=fast_mode)
    assert str(found.value).startswith(
        "While considering the imaginary part of complex inputs only, Jacobian computed with forward mode mismatch for output 0"
    )


def test_the_jacobian_of_a_part():
    with pytest.raises(GradcheckError) as found:
        gradcheck(Straight.apply, complex_leaf())
    assert str(found.value).splitlines()[-2:] == [
        "analytical:tensor([[-2.+1.j,  0.+0.j],",
        "        [ 0.+0.j,  4.+6.j]], dtype=torch.complex128)",
    ]


class Peeks(T.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        g.sum().item()
        return g * 2


def test_a_backward_that_cannot_be_batched():
    with pytest.raises(GradcheckError, match="^While computing batched gradients, got: "):
        gradcheck(Peeks.apply, double(2), check_batched_grad=True)
    assert not gradcheck(Peeks.apply, double(2), check_batched_grad=True, raise_exception=False)


class Drifts(T.autograd.Function):
    calls = 0

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        Drifts.calls += 1
        return g * 2 + Drifts.calls * 1e-9


@pytest.mark.parametrize("fast_mode", [False, True])
def test_a_backward_that_drifts(fast_mode):
    start = (
        "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different "
        "values, although analytical gradient matches numerical gradient.The tolerance for nondeterminism was 0.0."
    )
    with pytest.raises(GradcheckError) as found:
        gradcheck(Drifts.apply, double(2), atol=1e-3, fast_mode=fast_mode)
    assert str(found.value).startswith(start)
    assert gradcheck(lambda x: x * 2, double(2), nondet_tol=1e-3, fast_mode=fast_mode)


@pytest.mark.parametrize("result", [None, 3.0])
def test_results_that_are_no_tensors(result):
    with pytest.raises(AttributeError, match="object has no attribute 'requires_grad'"):
        gradcheck(lambda x: result, double(2))


def test_outputs_that_are_not_conjugated_yet():
    z = T.tensor([1 + 2j, 3 - 1j], dtype=T.complex128, requires_grad=True)
    for f in (T.conj, lambda z: z.conj().conj().conj(), lambda z: (z * 2, z.conj())):
        assert gradcheck(f, (z,)) and gradcheck(f, (z,), fast_mode=True) and gradcheck(f, (z,), check_forward_ad=True)
    assert gradcheck(lambda z: z * 2, (z.detach().conj().requires_grad_(),))
