"""Names of PyTorch's past, and seldom called ones, that programs still reach for."""

import warnings
from importlib import import_module

import pytest

from library import T


def leaf():
    return T.tensor([1.0, 2.0], requires_grad=True)


class Watched(T.autograd.Function):
    seen: list = []

    @staticmethod
    def forward(ctx, x, y):
        Watched.seen = [(ctx.dirty_tensors, ctx.non_differentiable, ctx.saved_for_forward, ctx.requires_grad)]
        ctx.mark_dirty(x)
        ctx.save_for_forward(x, None)
        ctx.save_for_backward(y)
        signs = y.sign()
        ctx.mark_non_differentiable(signs)
        Watched.seen += [ctx.dirty_tensors[0] is x, ctx.saved_for_forward == (x, None), ctx.non_differentiable[0] is signs]
        return x.mul_(y), signs

    @staticmethod
    def backward(ctx, g, _):
        Watched.seen.append((ctx.dirty_tensors, ctx.non_differentiable, ctx.saved_for_forward, ctx.requires_grad))
        with pytest.warns(DeprecationWarning, match="'saved_variables' is deprecated; use 'saved_tensors'"):
            Watched.seen.append(len(ctx.saved_variables))
        return g, g


def test_what_a_context_was_told():
    y, signs = Watched.apply(leaf() * 1, leaf())
    y.sum().backward()
    none = None, None, None, True
    assert Watched.seen == [none, True, True, True, none, 1]
    assert not signs.requires_grad


def test_shared_storage_need_not_be_marked():
    class Marks(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with pytest.warns(FutureWarning, match="`mark_shared_storage` is deprecated"):
                ctx.mark_shared_storage((x, x))
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    assert Marks.apply(leaf()).tolist() == [2.0, 4.0]


def test_the_engine_by_its_old_name():
    Variable = import_module(T.__name__ + ".autograd.variable").Variable
    assert Variable is T.autograd.Variable
    engine, told = Variable._execution_engine, []
    assert engine.is_checkpoint_valid()
    x = leaf()
    x.register_hook(lambda g: engine.queue_callback(lambda: told.append("end")) or told.append("hook"))
    (x * 2).sum().backward()
    assert told == ["hook", "end"]
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass"):
        engine.queue_callback(lambda: None)


def test_a_checkpoint_is_valid_where_all_leaves_get_gradients():
    x, seen = leaf(), []
    for run in (lambda y: y.sum().backward(), lambda y: T.autograd.grad(y.sum(), x)):
        y = x * 2
        y.register_hook(lambda g: seen.append(T.autograd.Variable._execution_engine.is_checkpoint_valid()))
        run(y)
    assert seen == [True, False]


def test_underscored_gradients():
    x = leaf()
    y = x * 2
    assert x._grad is None and y._grad_fn is y.grad_fn
    x._grad = T.ones(2)
    assert x.grad.tolist() == [1.0, 1.0]


def test_hooks_that_are_not_saved():
    hooks = import_module(T.__name__ + ".utils.hooks")
    x = leaf()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hooks.warn_if_has_hooks(x)
        x.register_hook(hooks.unserializable_hook(lambda g: None))
        hooks.warn_if_has_hooks(x)
    x.register_hook(lambda g: None)
    with pytest.warns(UserWarning, match="on tensor will not be serialized"):
        hooks.warn_if_has_hooks(x)
