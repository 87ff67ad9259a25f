"""Custom `autograd.Function`s."""

import gc
import weakref

import pytest

from library import T, assert_values, leaf

Function = T.autograd.Function


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2


def test_forward_and_backward(device):
    x = leaf([1.0, 2.0], device)
    y = Cube.apply(x)
    assert_values(y, [1.0, 8.0])
    assert y.requires_grad and not y.is_leaf
    y.sum().backward()
    assert_values(x.grad, [3.0, 12.0])


def test_the_node_is_called_after_the_class():
    y = Cube.apply(leaf([1.0]))
    assert y.grad_fn.name() == "CubeBackward"
    assert type(y.grad_fn).__name__ == "CubeBackward"
    assert "grad_fn=<CubeBackward>" in repr(y)
    assert y.grad_fn.next_functions[0][0].name() == "torch::autograd::AccumulateGrad"


def test_double_backward_goes_through_python():
    x = leaf([2.0])
    (g,) = T.autograd.grad(Cube.apply(x), x, create_graph=True)
    (h,) = T.autograd.grad(g, x, create_graph=True)
    (k,) = T.autograd.grad(h, x)
    assert [t.item() for t in (g, h, k)] == [12.0, 12.0, 6.0]


def test_once_differentiable():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @T.autograd.function.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            assert not T.is_grad_enabled()
            return g * 2 * x

    x = leaf([3.0])
    (g,) = T.autograd.grad(Square.apply(x) ** 2, x, create_graph=True)
    assert_values(g, [2 * 9 * 6.0])
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was marked with @once_diff"):
        g.backward()


def test_attributes_of_ctx():
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, factor, note=None):
            ctx.factor = factor
            ctx.note = note
            return x * factor

        @staticmethod
        def backward(ctx, g):
            assert ctx.note == "hello"
            return g * ctx.factor, None, None

    x = leaf([1.0, 2.0])
    y = Scale.apply(x, 2.5, "hello")
    assert y.grad_fn.factor == 2.5
    y.sum().backward()
    assert_values(x.grad, [2.5, 2.5])


def test_several_inputs_and_outputs():
    class SumAndProduct(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a + b, a * b

        @staticmethod
        def backward(ctx, gs, gp):
            a, b = ctx.saved_tensors
            return gs + gp * b, gs + gp * a

    a, b = leaf([2.0]), leaf([5.0])
    s, p = SumAndProduct.apply(a, b)
    (s * 10 + p).backward()
    assert_values(a.grad, [15.0])
    assert_values(b.grad, [12.0])
    assert s.grad_fn is p.grad_fn


def test_gradients_that_do_not_come_are_zeros_or_none():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            seen.append(b)
            return a * 2 if b is None else a * 2 + b * 3, None

    for materialize in (True, False):
        x = leaf([1.0, 1.0])
        Two.apply(x, materialize)[0].sum().backward()
        assert_values(x.grad, [2.0, 2.0])
    assert_values(seen[0], [0.0, 0.0])
    assert seen[1] is None


def test_needs_input_grad():
    seen = []

    class Product(Function):
        @staticmethod
        def forward(ctx, a, b, c):
            return a * b

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            return g, None, None

    Product.apply(leaf([1.0]), T.ones(1), 3).backward()
    assert seen == [(True, False, False)]


def test_forward_does_not_record():
    class Peek(Function):
        @staticmethod
        def forward(ctx, x):
            assert not T.is_grad_enabled()
            inner = x * 2
            assert not inner.requires_grad
            return inner

        @staticmethod
        def backward(ctx, g):
            assert not T.is_grad_enabled()
            return g * 2

    x = leaf([1.0])
    Peek.apply(x).backward()
    assert_values(x.grad, [2.0])
    assert not Peek.apply(T.ones(1)).requires_grad
    with T.no_grad():
        assert not Peek.apply(x).requires_grad


def test_ctx_may_hold_its_inputs_and_outputs_as_attributes():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.out = x.exp()
            return ctx.out

        @staticmethod
        def backward(ctx, g):
            return g * ctx.out

    x = leaf([0.0, 1.0])
    Exp.apply(x).sum().backward()
    assert_values(x.grad, x.detach().exp())


def test_a_saved_output_is_differentiable_again():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y

    x = leaf([1.0], kind="float64")
    (g,) = T.autograd.grad(Exp.apply(x), x, create_graph=True)
    (h,) = T.autograd.grad(g, x)
    assert_values(h, x.detach().exp())


def test_saved_tensors_notice_writes():
    x = leaf([1.0])
    a = x * 1
    y = Cube.apply(a)
    a.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_saved_tensors_are_freed():
    x = leaf([1.0])
    y = Cube.apply(x)
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_none_and_optional_tensors_may_be_saved():
    class Optional(Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            assert w is None
            return g * 2, None

    x = leaf([1.0])
    Optional.apply(x, None).backward()
    assert_values(x.grad, [2.0])


def test_mark_dirty():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.mul_(2)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf([1.0, 2.0])
    y = x * 1
    z = Double.apply(y)
    assert z is y and y.grad_fn.name() == "DoubleBackward"
    y.sum().backward()
    assert_values(x.grad, [2.0, 2.0])
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation"):
        Double.apply(x)


def test_mark_non_differentiable():
    class SortOf(Function):
        @staticmethod
        def forward(ctx, x):
            order = (x > 1).float()
            ctx.mark_non_differentiable(order)
            return x * 1, order

        @staticmethod
        def backward(ctx, g, unused):
            return g

    x = leaf([1.0, 2.0])
    y, order = SortOf.apply(x)
    assert y.requires_grad and not order.requires_grad
    y.sum().backward()
    assert_values(x.grad, [1.0, 1.0])


def test_returning_the_input_makes_an_alias():
    class Identity(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 5

    x = leaf([1.0])
    y = Identity.apply(x)
    assert y is not x and y.data_ptr() == x.data_ptr() and not y.is_leaf
    y.backward()
    assert_values(x.grad, [5.0])


def test_setup_context():
    class Power(Function):
        @staticmethod
        def forward(x, n):
            return x**n

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.n = inputs
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * ctx.n * x ** (ctx.n - 1), None

    x = leaf([2.0])
    Power.apply(x, 3).backward()
    assert_values(x.grad, [12.0])


def test_gradient_shapes_are_reduced_to_the_inputs_shape():
    class Stretch(Function):
        @staticmethod
        def forward(ctx, x):
            return x.expand(3, 2)

        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf([1.0, 2.0])
    Stretch.apply(x).sum().backward()
    assert_values(x.grad, [3.0, 3.0])


def failing(name, forward=None, backward=None):
    body = {
        "forward": staticmethod(forward or (lambda ctx, x: x * 2)),
        "backward": staticmethod(backward or (lambda ctx, g: g)),
    }
    return type(name, (Function,), body)


@pytest.mark.parametrize(
    "backward, kind, message",
    [
        (lambda ctx, g: (g, g), RuntimeError, "returned an incorrect number of gradients (expected 1, got 2)"),
        (lambda ctx, g: (), RuntimeError, "returned an incorrect number of gradients (expected 1, got 0)"),
        (
            lambda ctx, g: T.ones(7),
            RuntimeError,
            "returned an invalid gradient at index 0 - got [7] but expected shape compatible with [2]",
        ),
        (lambda ctx, g: 1 / 0, ZeroDivisionError, "division by zero"),
        (lambda ctx, g: ctx.nothing, AttributeError, "object has no attribute 'nothing'"),
        (lambda ctx, g: "no", RuntimeError, "expected Variable or None (got str)"),
    ],
)
def test_bad_backwards(backward, kind, message):
    x = leaf([1.0, 2.0])
    with pytest.raises(kind) as caught:
        failing("Bad", backward=backward).apply(x).sum().backward()
    assert message in str(caught.value)
    assert x.grad is None


def test_trailing_nones_are_dropped():
    x = leaf([1.0])
    failing("Generous", backward=lambda ctx, g: (g, None, None)).apply(x).backward()
    assert_values(x.grad, [1.0])


@pytest.mark.parametrize(
    "forward, kind, message",
    [
        (lambda ctx, x: 1 / 0, ZeroDivisionError, "division by zero"),
        (lambda ctx: None, TypeError, "takes 1 positional argument but 2 were given"),
    ],
)
def test_bad_forwards(forward, kind, message):
    with pytest.raises(kind) as caught:
        failing("Bad", forward=forward).apply(leaf([1.0]))
    assert message in str(caught.value)
    assert T.is_grad_enabled()


def test_a_function_without_backward():
    class Half(Function):
        @staticmethod
        def forward(ctx, x):
            return x / 2

    y = Half.apply(leaf([1.0]))
    with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp method"):
        y.backward()


def test_an_instance_is_not_what_one_wants():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        Cube()


def test_tensors_inside_containers_are_passed_through():
    class Total(Function):
        @staticmethod
        def forward(ctx, tensors, x):
            return x + sum(t.sum() for t in tensors)

        @staticmethod
        def backward(ctx, g):
            return None, g

    x, w = leaf([1.0]), leaf([5.0])
    Total.apply([w, w], x).backward()
    assert w.grad is None
    assert_values(x.grad, [1.0])


def test_a_cycle_through_ctx_is_collected():
    class Keeper(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.y = x * 2
            return ctx.y

        @staticmethod
        def backward(ctx, g):
            return g * 2

    class Token:
        pass

    x = leaf([1.0])
    y = Keeper.apply(x)
    token = y.grad_fn.token = Token()
    y.grad_fn.result = y
    ghost = weakref.ref(token)
    del y, token
    gc.collect()
    assert ghost() is None


def test_backward_of_a_function_inside_a_function():
    class Outer(Function):
        @staticmethod
        def forward(ctx, x):
            with T.enable_grad():
                inner = x.detach().requires_grad_()
                out = (inner**2).sum()
            ctx.inner, ctx.result = inner, out
            return out.detach()

        @staticmethod
        def backward(ctx, g):
            with T.enable_grad():
                (grad,) = T.autograd.grad(ctx.result, ctx.inner)
            return g * grad

    x = leaf([1.0, 2.0])
    Outer.apply(x).backward()
    assert_values(x.grad, [2.0, 4.0])


def test_saved_tensors_outside_of_backward():
    y = Cube.apply(leaf([2.0]))
    assert_values(y.grad_fn.saved_tensors[0], [2.0])


def test_print_inside_backward(capsys):
    class Loud(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.x, ctx.y = x, y
            return x * y

        @staticmethod
        def backward(ctx, g):
            print(f"grad: {g}")
            return -ctx.x * g, -ctx.y * g

    a, b = leaf([1.0, 2.0, 3.0]), leaf([2.0, 4.0, 6.0])
    Loud.apply(a, b).sum().backward()
    assert capsys.readouterr().out == "grad: tensor([1., 1., 1.])\n"
    assert_values(a.grad, [-1.0, -2.0, -3.0])
    assert_values(b.grad, [-2.0, -4.0, -6.0])
