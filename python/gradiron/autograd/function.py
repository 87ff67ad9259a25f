"""Custom Functions, with a `forward` and a `backward` written by the user."""

from __future__ import annotations

from .. import _core
from .grad_mode import no_grad

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction", "once_differentiable"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class FunctionCtx:
    """The context of a custom Function: `ctx` in `forward`, `setup_context` and `backward`.

    An instance made by hand only notes what it is told, for calls of `forward` without `apply`.

    Examples:
        >>> ctx = torch.autograd.function.FunctionCtx()
        >>> ctx.save_for_backward(torch.ones(1))
        >>> ctx.to_save
        (tensor([1.]),)
    """

    def save_for_backward(self, *tensors: Any) -> None:
        """Save tensors for `backward`, which reads them from `ctx.saved_tensors`."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Save tensors for `jvp`."""
        if not all(t is None or isinstance(t, _core.Tensor) for t in tensors):
            raise AssertionError(
                "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx."
            )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Declare inputs that `forward` modified in place."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Declare outputs that have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether missing gradients of outputs are passed to `backward` as zeros."""
        self.materialize_grads = value

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Deprecated and without effect: shared memory is tracked without it."""
        import warnings

        warnings.warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically tracked. "
            "Note that calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )


class BackwardCFunction(_core._FunctionBase, FunctionCtx):  # type: ignore[override] # stubs tell of no setters
    """Base class of a custom Function's context, which is also its node in the graph.

    Examples:
        >>> class Same(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x.clone()
        >>> y = Same.apply(torch.ones(1, requires_grad=True))
        >>> isinstance(y.grad_fn, torch.autograd.function.BackwardCFunction)
        True
    """

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{type(self).__name__} object at {id(self):#x}>"

    def _get_user_fn(self) -> Callable[..., Any]:
        cls: Any = type(self)
        backward, vjp = cls._forward_cls.backward, cls._forward_cls.vjp
        if backward is not Function.backward and vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one "
                "of them."
            )
        return vjp if vjp is not Function.vjp else backward

    def apply(self, *args: Any) -> Any:
        """Call the `backward` of the class with this context."""
        cls: Any = type(self)
        return self._get_user_fn()(self, *([list(args)] if cls._forward_cls.boxed_grads_call else args))

    def apply_boxed(self, *args: Any) -> Any:
        """Call the `backward` of the class with this context and a list of gradients."""
        return self._get_user_fn()(self, *args)

    def apply_jvp(self, *args: Any) -> Any:
        """Call the `jvp` of the class with this context."""
        cls: Any = type(self)
        return cls._forward_cls.jvp(self, *args)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """Deprecated name of `saved_tensors`."""
        import warnings

        message = "'saved_variables' is deprecated; use 'saved_tensors'"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return self.saved_tensors


class FunctionMeta(type):
    """Metaclass that gives each custom Function its class of contexts.

    Args:
        name, bases, namespace: as for `type`.

    Examples:
        >>> type(torch.autograd.Function) is torch.autograd.function.FunctionMeta
        True
    """

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})
        inherited = any(getattr(base, "_own_setup", False) for base in bases)
        # The root of all Functions has a `setup_context` that only raises.
        cls._own_setup = inherited or ("setup_context" in namespace and any(isinstance(b, FunctionMeta) for b in bases))
        super().__init__(name, bases, namespace)
        cls._settle()

    def __setattr__(cls, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in ("boxed_grads_call", "clear_saved_tensors_on_access"):
            cls._settle()

    def _settle(cls) -> None:
        """What a call needs of the class, found out once: its class of contexts, and what it says of its calls, in bits."""
        boxed, once = getattr(cls, "boxed_grads_call", False), getattr(cls, "clear_saved_tensors_on_access", False)
        wrong = not isinstance(once, bool)
        cls._apply_with = cls._backward_cls, cls._own_setup | 2 * bool(boxed) | 4 * (once is True) | 8 * wrong
        heirs: list[Any] = cls.__subclasses__()
        for subclass in heirs:
            subclass._settle()


class Function(metaclass=FunctionMeta):
    """Base class of custom differentiable functions.

    A subclass has static methods `forward(ctx, *inputs)` and `backward(ctx, *grad_outputs)`, which returns a gradient
    or
    `None` for each input. Call it by `apply`. Alternatively, `forward(*inputs)` goes without a context, which
    `setup_context(ctx, inputs, output)` fills. `jvp(ctx, *tangents)` adds forward mode, `vmap` a batching rule.

    Attributes:
        generate_vmap_rule: let `vmap` derive its rule from the methods. Default: `False`
        boxed_grads_call: pass the gradients to `backward` in one list, which may free them early. Default: `False`
        clear_saved_tensors_on_access: free the saved tensors when they are read. Default: `False`

    Examples:
        >>> class Square(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x**2
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         (x,) = ctx.saved_tensors
        ...         return 2 * x * grad
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> Square.apply(x).backward()
        >>> x.grad
        tensor(6.)
    """

    _backward_cls: type
    _own_setup: bool
    _apply_with: tuple[type, int]
    #: Whether `vmap` may run the methods over samples; otherwise there is a `vmap` staticmethod, or none.
    generate_vmap_rule = False
    #: Whether `backward` gets the gradients in one list, `backward(ctx, grads)`: who takes them out of it frees them.
    boxed_grads_call = False
    #: Whether reading `ctx.saved_tensors` gives up what was saved; it can be read once then.
    clear_saved_tensors_on_access = False

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
        """Compute the outputs: `forward(ctx, *inputs)`, or `forward(*inputs)` beside `setup_context`."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save in `ctx` what `backward` and `jvp` need, if `forward` takes no context."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return a gradient, or None, for each input."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    #: Another name for `backward`; a class has one of them.
    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Return the tangents of the outputs, for forward mode."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """Return the outputs for batched inputs, and the dimensions of their batches."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call the function and record it."""
        context, style = cls._apply_with
        if kwargs or (style & 1 and _has_defaults(cls.forward)):
            args = (_bound if style & 1 else _placed)(cls.forward, args, kwargs)
        try:
            return _apply(cls, context, style, args)
        except TypeError:
            if cls._own_setup:
                # For missing arguments, raise the error that names those of `forward`.
                _bound(cls.forward, args, {})
            raise


# `gradiron.sparse` replaces this when it is imported.
_apply = _core.apply_function
_core.register_function(Function.backward)


def _has_defaults(forward: Any) -> bool:
    return bool(getattr(forward, "__defaults__", None) or getattr(forward, "__kwdefaults__", None))


def _bound(forward: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, ...]:
    """The arguments in the order of a forward without a context, with its defaults."""
    import inspect

    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    for name in bound.kwargs:
        raise TypeError(f"forward() got an unexpected keyword argument '{name}'")
    return bound.args


def _placed(forward: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments in the order of a forward with a context, as far as they were given."""
    import inspect

    named = [p.name for p in inspect.signature(forward).parameters.values() if p.kind <= p.POSITIONAL_OR_KEYWORD][1:]
    for name in kwargs:
        if name not in named:
            raise TypeError(f"forward() got an unexpected keyword argument '{name}'")
        if named.index(name) < len(args):
            raise TypeError(f"forward() got multiple values for argument '{name}'")
    last = max(named.index(name) for name in kwargs)
    for at in range(len(args), last):
        if named[at] not in kwargs:
            raise TypeError(f"forward() missing required argument: '{named[at]}' (position {at})")
    return (*args, *(kwargs[name] for name in named[len(args) : last + 1]))


class InplaceFunction(Function):
    """A custom Function with a flag `inplace`, which some older programs derive from.

    Args:
        inplace: value of the flag. Default: `False`

    Examples:
        >>> issubclass(torch.autograd.function.InplaceFunction, torch.autograd.Function)
        True
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a `backward` that cannot be differentiated itself, so that doing so raises.

    Args:
        fn: static method `backward` of a custom Function.

    Examples:
        >>> class Square(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     @torch.autograd.function.once_differentiable
        ...     def backward(ctx, grad):
        ...         return 2 * ctx.saved_tensors[0] * grad
    """
    import functools

    @functools.wraps(fn)
    def wrapper(ctx: Any, *grads: Any, **kwargs: Any) -> Any:
        with no_grad():
            outputs = fn(ctx, *grads, **kwargs)
        if not _core.is_grad_enabled() or not any(isinstance(g, _core.Tensor) and _core.wants_grad(g) for g in grads):
            return outputs
        made = outputs if isinstance(outputs, tuple) else (outputs,)
        return _Refuse.apply(
            type(ctx).__name__, *(_core.tracked(o.detach()) if isinstance(o, _core.Tensor) else o for o in made)
        )

    return wrapper


class _Refuse(Function):
    """An identity whose gradient is an error."""

    @staticmethod
    def forward(ctx: Any, name: str, *given: Any) -> Any:
        ctx.refuses = name
        return tuple(g.clone() if isinstance(g, _core.Tensor) else g for g in given)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable\n"
            f"  operator: {ctx.refuses}\n"
            "  what to do: leave out create_graph=True, or write its backward in differentiable operators, without the mark"
        )


# The node's name in PyTorch.
_Refuse._backward_cls.__name__ = "Error"
