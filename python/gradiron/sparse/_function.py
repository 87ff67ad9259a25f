"""Custom Functions that are called with sparse tensors: the graph sees their values, the methods the tensors themselves."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from .. import _core
from .._core import Tensor
from ..autograd import function
from ._compressed import sparse_mask
from ._tensor import SparseTensor


def _values(x: Any) -> Any:
    return x._held if isinstance(x, SparseTensor) else x


def _same_places(a: SparseTensor, b: SparseTensor) -> bool:
    return type(a) is type(b) and all(
        mine is theirs or (mine.shape == theirs.shape and bool((mine == theirs).all()))
        for mine, theirs in zip(a._places(), b._places(), strict=True)
    )


def _gradient(of: Any, grad: Any) -> Any:
    """What a method returned as the gradient of an input, as the gradient of what the graph knows of it."""
    if not isinstance(of, SparseTensor) or not isinstance(grad, Tensor):
        return grad
    if isinstance(grad, SparseTensor) and _same_places(of, grad):
        return grad._held
    if grad.shape != of.shape:
        raise RuntimeError(
            f"the gradient of a sparse input of shape {list(of.shape)} must have this shape, but it has {list(grad.shape)}"
        )
    return sparse_mask(grad, of)._held


class _Call:
    """The sparse tensors of one call: first as they are, then, for gradients, what they are without their values."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        self.args = args
        self.outputs: tuple[Any, ...] = ()

    def shown(self, given: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments as the methods see them."""
        return tuple(
            values if not isinstance(x, SparseTensor) else x if values is x._held else x._with(values)
            for x, values in zip(self.args, given, strict=True)
        )

    def kept(self, made: Any) -> Any:
        """The outputs as the graph sees them."""
        self.outputs = made if isinstance(made, tuple) else (made,)
        return tuple(map(_values, made)) if isinstance(made, tuple) else _values(made)

    def finish(self, made: Any) -> Any:
        """The outputs as the caller gets them."""
        several = isinstance(made, tuple)
        seen = [
            y._with(values) if isinstance(y, SparseTensor) else values
            for y, values in zip(self.outputs, made if several else (made,), strict=True)
        ]
        self.args, self.outputs = tuple(map(_hollow, self.args)), tuple(map(_hollow, self.outputs))
        return tuple(seen) if several else seen[0]


def _hollow(x: Any) -> Any:
    """The places of a sparse tensor, with one value for all."""
    if not isinstance(x, SparseTensor):
        return None
    return x._with(_core.zeros((), dtype=x.dtype, device=x.device).expand(x._held.shape))


_classes: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def _of_values(cls: Any) -> Any:
    """The Function of values that stands for one of sparse tensors. Its last argument is the call."""

    def backward(ctx: Any, *grads: Any) -> Any:
        call: _Call = ctx._sparse_call
        made = cls.backward(ctx, *(y._with(g) if isinstance(y, SparseTensor) and g is not None else g
                                   for y, g in zip(call.outputs, grads, strict=True)))  # fmt: skip
        several = made if isinstance(made, tuple) else tuple(made) if isinstance(made, list) else (made,)
        inputs = (*call.args, *(None,) * (len(several) - len(call.args)))
        found = [_gradient(x, g) for x, g in zip(inputs, several, strict=False)]
        return (*found, None) if len(found) == len(call.args) else tuple(found)

    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise NotImplementedError("forward mode through a Function of sparse tensors is not supported")

    def forward(*given: Any) -> Any:
        *values, call = given
        if cls._own_setup:
            return call.kept(cls.forward(*call.shown(tuple(values))))
        ctx, *values = values
        ctx._sparse_call = call
        return call.kept(cls.forward(ctx, *call.shown(tuple(values))))

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        *values, call = inputs
        ctx._sparse_call = call
        cls.setup_context(ctx, call.shown(tuple(values)), call.outputs if isinstance(output, tuple) else call.outputs[0])

    methods: dict[str, Any] = {"forward": forward, "backward": backward, "jvp": jvp}
    if cls._own_setup:
        methods["setup_context"] = setup_context
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
    return type(cls)(cls.__name__, (cls,), {**names, **{name: staticmethod(method) for name, method in methods.items()}})


def apply(cls: Any, backward_cls: Any, style: int, args: tuple[Any, ...]) -> Any:
    """`_core.apply_function`, where some of what goes in and comes out may be sparse."""
    if any(isinstance(a, SparseTensor) for a in args):
        return _apply_sparse(cls, args)
    made = _core.apply_function(cls, backward_cls, style, args)
    _check_outputs(cls, made)
    return made


def _apply_sparse(cls: Any, args: tuple[Any, ...]) -> Any:
    """A call of which some arguments are sparse."""
    if cls.boxed_grads_call:
        raise NotImplementedError("boxed_grads_call is not supported by Functions of sparse tensors")
    if cls not in _classes:
        _classes[cls] = _of_values(cls)
    call = _Call(args)
    of_values = _classes[cls]
    made = _core.apply_function(of_values, *of_values._apply_with, (*map(_values, args), call))
    return call.finish(made)


def _check_outputs(cls: type, made: Any) -> None:
    """Refuses what would lose its gradient: a sparse output of a Function that is called with no sparse tensor."""
    for y in made if isinstance(made, tuple) else (made,):
        if isinstance(y, SparseTensor) and _core.Tensor.requires_grad.__get__(y):
            raise NotImplementedError(
                f"{cls.__name__} made a sparse tensor of dense ones: its gradient would be lost. Return the values, and make "
                "the sparse tensor of them outside"
            )


function._apply = apply
