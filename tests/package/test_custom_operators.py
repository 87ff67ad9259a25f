"""Operators of a program's own, by `torch.library`."""

import importlib
import uuid

import pytest

from library import IS_GRADIRON, T

library = importlib.import_module(f"{T.__name__}.library")


def fresh(fn, **options):
    """An operator under a name that no other test has."""
    name = f"mine::{fn.__name__}_{uuid.uuid4().hex}"
    return library.custom_op(name, fn, mutates_args=(), **options), name.partition("::")[2]


def scaled(x: T.Tensor, by: float = 2.0) -> T.Tensor:
    return x.detach() * by


def pair(x: T.Tensor) -> tuple[T.Tensor, T.Tensor]:
    return x.detach() + 1, x.detach() * 2


def test_calls():
    op, name = fresh(scaled)
    x = T.ones(3)
    assert op(x).tolist() == [2.0] * 3 == op(x, by=2.0).tolist() == getattr(T.ops.mine, name)(x).tolist()
    assert getattr(T.ops.mine, name).default(x, 3.0).tolist() == [3.0] * 3
    assert str(getattr(T.ops.mine, name).default) == f"mine.{name}.default" and repr(op) == f"<CustomOpDef(mine::{name})>"


def test_without_a_derivative_backward_is_refused():
    op, name = fresh(scaled)
    y = op(T.ones(2, requires_grad=True))
    assert type(y.grad_fn).__name__ == f"GeneratedBackwardFor_mine_{name}_defaultBackward"
    with pytest.raises(RuntimeError, match=f"Trying to backward through mine.{name}.default but no autograd formula was"):
        y.sum().backward()


def test_a_derivative():
    op, name = fresh(scaled)

    def setup(ctx, inputs, output):
        ctx.by = inputs[1]

    library.register_autograd(f"mine::{name}", lambda ctx, g: (g * ctx.by, None), setup_context=setup)
    x = T.ones(2, requires_grad=True)
    op(x, 5.0).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_several_results():
    op, _ = fresh(pair)
    op.register_autograd(lambda ctx, a, b: a + 2 * b)
    x = T.ones(2, requires_grad=True)
    first, second = op(x)
    (first + 3 * second).sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]


def test_fakes_and_kernels():
    op, name = fresh(scaled)

    @library.register_fake(f"mine::{name}")
    def _(x, by=2.0):
        return T.empty_like(x)

    @op.register_kernel("cpu")
    def _(x, by=2.0):
        return x.detach() * by + 1

    assert op(T.ones(1)).tolist() == [3.0]


def test_a_rule_of_vmap():
    op, _ = fresh(scaled)
    op.register_vmap(lambda info, dims, x, by=2.0: (x * by, dims[0]))
    assert T.func.vmap(op)(T.ones(3, 2)).tolist() == [[2.0, 2.0]] * 3


def test_what_is_not_there():
    with pytest.raises(AttributeError, match="'_OpNamespace' 'mine' object has no attribute 'nothing'"):
        library.register_autograd("mine::nothing", lambda ctx, g: g)
    with pytest.raises(ValueError):
        library.custom_op("nameless", scaled, mutates_args=())
    if IS_GRADIRON:
        # Of operators that a package has in a library, which is not loaded here.
        library.register_fake("mine::nothing_yet", lambda x: x)


def test_namespaces_may_begin_with_an_underscore():
    op = library.custom_op("_mine::scaled", scaled, mutates_args=())
    assert T.ops._mine.scaled(T.ones(2)).tolist() == op(T.ones(2)).tolist() == [2.0, 2.0]
