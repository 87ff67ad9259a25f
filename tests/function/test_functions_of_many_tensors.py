"""Functions of very many tensors: each is found again, in time that grows with their number."""

import pytest

from library import T


def at(place):
    """A Function that squares the input in one place."""

    class Square(T.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            ctx.save_for_backward(inputs[place])
            ctx.count = len(inputs)
            return inputs[place] ** 2

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return (*(None,) * place, 2 * x * grad, *(None,) * (ctx.count - place - 1))

    return Square


# A saved value is an input, an output or neither; in 16 bits a number of one kind was mistaken for one of another.
@pytest.mark.parametrize("place", [16_400, 32_767, 32_770, 65_540])
def test_a_saved_input_far_behind(place):
    inputs = [T.tensor(i % 7 + 1.0, requires_grad=True) for i in range(place + 3)]
    (grad,) = T.autograd.grad(at(place).apply(*inputs), inputs[place], create_graph=True)
    (second,) = T.autograd.grad(grad, inputs[place])
    assert (grad, second) == (2 * inputs[place], 2)


@pytest.mark.parametrize("place", [16_400, 32_770, 65_540])
def test_a_saved_output_far_behind(place):
    class Exp(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            outputs = (*(x.detach() * i for i in range(place)), x.exp())
            ctx.save_for_backward(outputs[place])
            return outputs

        @staticmethod
        def backward(ctx, *grads):
            (y,) = ctx.saved_tensors
            return grads[place] * y

    x = T.tensor(0.5, requires_grad=True)
    (grad,) = T.autograd.grad(Exp.apply(x)[place], x, create_graph=True)
    (second,) = T.autograd.grad(grad, x)
    assert grad == second == x.exp()


def test_a_saved_tensor_of_no_argument_far_behind():
    weights = [T.ones((), requires_grad=True) * i for i in range(16_500)]

    class Scale(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(*weights)
            return x * weights[-1]

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[-1]

    x = T.ones((), requires_grad=True)
    (grad,) = T.autograd.grad(Scale.apply(x), x, create_graph=True)
    (second,) = T.autograd.grad(grad, weights[-1])
    assert (grad, second) == (16_499, 1)


class Keeps(T.autograd.Function):
    @staticmethod
    def forward(ctx, *inputs):
        ctx.save_for_backward(*inputs)
        return inputs[0] * 2

    @staticmethod
    def backward(ctx, grad):
        return (grad,) * len(ctx.saved_tensors)


class Writes(T.autograd.Function):
    @staticmethod
    def forward(ctx, *inputs):
        ctx.mark_dirty(*inputs)
        return tuple(x.mul_(2) for x in inputs)

    @staticmethod
    def backward(ctx, *grads):
        return tuple(2 * grad for grad in grads)


class Marks(T.autograd.Function):
    @staticmethod
    def forward(ctx, *inputs):
        outputs = tuple(x * 2 for x in inputs)
        ctx.mark_non_differentiable(*outputs[1:])
        ctx.save_for_backward(*outputs)
        return outputs

    @staticmethod
    def backward(ctx, *grads):
        assert ctx.saved_tensors[-1] == 2
        return 2 * grads[0], *(None,) * (len(grads) - 1)


class Returns(T.autograd.Function):
    @staticmethod
    def forward(ctx, *inputs):
        return inputs

    @staticmethod
    def backward(ctx, *grads):
        return grads


@pytest.mark.parametrize("function, expected", [(Keeps, 100_000), (Writes, 2), (Marks, 2), (Returns, 1)])
def test_crowds_in_and_out(function, expected):
    """Where each looked through all, as in PyTorch, this would take minutes."""
    x = T.ones((), requires_grad=True)
    made = function.apply(*(x * 1 for _ in range(100_000)))
    (made if isinstance(made, T.Tensor) else made[0]).backward()
    assert x.grad == expected


def test_checkpoint_of_many_leaves():
    leaves = [T.ones((), requires_grad=True) for _ in range(20_000)]
    loss = T.utils.checkpoint.checkpoint(lambda *each: T.stack(each).pow(3).sum(), *leaves, use_reentrant=True)
    loss.backward()
    assert all(leaf.grad == 3 for leaf in leaves[::997])
