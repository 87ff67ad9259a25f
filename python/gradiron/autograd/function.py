"""Custom Functions: a `forward` and a `backward` of the user's own."""

from __future__ import annotations

from .. import _core
from .._core import FunctionCtx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class BackwardCFunction(FunctionCtx):
    """What a Function's node and context are: attributes may be hung on it."""

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{type(self).__name__} object at {id(self):#x}>"


class FunctionMeta(type):
    """Gives each Function a class of contexts named after it."""

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})
        inherited = any(getattr(base, "_own_setup", False) for base in bases)
        # The root of all Functions has a `setup_context` that only raises.
        cls._own_setup = inherited or ("setup_context" in namespace and any(isinstance(b, FunctionMeta) for b in bases))
        super().__init__(name, bases, namespace)


class Function(metaclass=FunctionMeta):
    """Subclass it with static `forward(ctx, ...)` and `backward(ctx, *grads)`, and call `apply`."""

    _backward_cls: type
    _own_setup: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        import warnings

        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future version of "
            "PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function "
            "with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any) -> Any:
        return _core.apply_function(cls, cls._backward_cls, cls._own_setup, args)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """For a `backward` that must not be differentiated itself: doing so raises."""
    import functools

    @functools.wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        from .grad_mode import no_grad

        with no_grad():
            outputs = backward(ctx, *grads)
        if not _core.is_grad_enabled() or not any(isinstance(g, _core.Tensor) and g.requires_grad for g in grads):
            return outputs
        many = isinstance(outputs, tuple)
        made = tuple(
            _Refuse.apply(o.detach().requires_grad_()) if isinstance(o, _core.Tensor) else o
            for o in (outputs if many else (outputs,))
        )
        return made if many else made[0]

    return wrapper


class _Refuse(Function):
    """An identity whose gradient is an error."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")
