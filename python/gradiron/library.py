"""Custom operators: named Python functions, optionally with derivatives and a rule for `vmap`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import ops
from ._as_torch.refused import refuse
from ._core import Tensor
from .autograd.function import Function

__all__ = ["Library", "custom_op", "define", "impl", "register_autograd", "register_fake", "register_kernel", "register_vmap"]


class CustomOpDef:
    """A custom operator, called like its function and as `torch.ops.<namespace>.<name>`."""

    def __init__(self, qualified: str, fn: Callable[..., Any]) -> None:
        self._namespace, self._name = _parts(qualified)
        self._qualname = qualified
        self._signature = inspect.signature(fn)
        self._kernels: dict[str | None, Callable[..., Any]] = {None: fn}
        self._backward: Callable[..., Any] | None = None
        self._setup: Callable[..., Any] | None = None
        self._vmap: Callable[..., Any] | None = None
        functools.update_wrapper(self, fn)
        self._function = _function(self)

    def register_kernel(self, device_types: str | Sequence[str] | None, fn: Callable[..., Any] | None = None, /) -> Any:
        """Register another function for tensors on some types of devices."""
        kinds = [device_types] if device_types is None or isinstance(device_types, str) else device_types
        return _decorated(fn, lambda given: self._kernels.update(dict.fromkeys(kinds, given)))

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Accept a function for the shapes of results, which is never called."""
        return fn

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None) -> None:
        """Register `backward(ctx, *grads)`, and `setup_context(ctx, inputs, output)` that saves what it needs."""
        self._backward, self._setup = backward, setup_context

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Register a rule for `vmap`: `func(info, in_dims, *args)` returns results and their batch dimensions."""
        return _decorated(func, lambda given: setattr(self, "_vmap", given))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return self._function.apply(*bound.args, *bound.kwargs.values())

    def _run(self, args: tuple[Any, ...]) -> Any:
        device = next((a.device.type for a in args if isinstance(a, Tensor)), None)
        kernel = self._kernels.get(device, self._kernels[None])
        count = sum(p.kind is not p.KEYWORD_ONLY for p in self._signature.parameters.values())
        named = list(self._signature.parameters)[count:]
        return kernel(*args[:count], **dict(zip(named, args[count:], strict=True)))

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"


class _Named:
    """The operator as `torch.ops` gives it: with its forms, of which there is one."""

    def __init__(self, operator: CustomOpDef, suffix: str = "") -> None:
        self._operator, self._suffix = operator, suffix
        self.__name__ = operator._name + suffix
        if not suffix:
            self.default = _Named(operator, ".default")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._operator(*args, **kwargs)

    def __str__(self) -> str:
        return f"{self._operator._namespace}.{self.__name__}"

    __repr__ = __str__


def _function(operator: CustomOpDef) -> Any:
    """The Function that a call is recorded as."""

    def forward(*args: Any) -> Any:
        return operator._run(args)

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        if operator._setup is not None:
            operator._setup(ctx=ctx, inputs=inputs, output=output)

    def backward(ctx: Any, *grads: Any) -> Any:
        if operator._backward is None:
            raise RuntimeError(
                f"Trying to backward through {operator._namespace}.{operator._name}.default but no autograd formula was "
                "registered. Please use register_autograd to add one."
            )
        return operator._backward(ctx, *grads)

    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        if operator._vmap is None:
            raise RuntimeError(f"{operator._qualname} has no rule of vmap. Please use register_vmap to add one.")
        return operator._vmap(info, in_dims, *args)

    methods = {name: staticmethod(fn) for name, fn in list(locals().items()) if name != "operator"}
    kind: Any = type(Function)
    return kind(f"GeneratedBackwardFor_{operator._namespace}_{operator._name}_default", (Function,), methods)


def _parts(qualified: str) -> tuple[str, str]:
    space, colons, name = qualified.partition("::")
    if not (space and colons and name) or "." in space:
        raise ValueError(
            f"Expected `name` to be of the form `namespace::name`, but got {qualified}. The namespace keeps operators of "
            "different packages apart."
        )
    return space, name


def _decorated(fn: Any, take: Callable[[Any], None]) -> Any:
    """Takes a function now, or as a decorator."""

    def decorate(given: Any) -> Any:
        take(given)
        return given

    return decorate if fn is None else decorate(fn)


def _operator(op: Any) -> CustomOpDef:
    """The operator of a name, or of what `torch.ops` gave."""
    if isinstance(op, str):
        space, name = _parts(op)
        op = getattr(getattr(ops, space), name)
    found: CustomOpDef = op._operator if isinstance(op, _Named) else op
    return found


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make a function a custom operator, `torch.ops.<namespace>.<name>`.

    Args:
        name: name of the form `"namespace::name"`.
        fn: function; a decorator is returned if `None`.
        mutates_args: names of the arguments that are modified; accepted for compatibility.
        device_types, schema, tags: accepted for compatibility.

    Examples:
        >>> @torch.library.custom_op("example::twice", mutates_args=())
        ... def twice(x: torch.Tensor) -> torch.Tensor:
        ...     return 2 * x
        >>> torch.ops.example.twice(torch.ones(2))
        tensor([2., 2.])
    """

    def decorate(given: Callable[..., Any]) -> CustomOpDef:
        made = CustomOpDef(name, given)
        setattr(getattr(ops, made._namespace), made._name, _Named(made))
        return made

    return decorate if fn is None else decorate(fn)


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None, **options: Any) -> Any:
    """Accept a function for the shapes of an operator's results, which is never called.

    Args:
        op: operator or its name.
        func: function; a decorator is returned if `None`.
        lib, options: accepted for compatibility.

    Examples:
        >>> @torch.library.register_fake("example::any")
        ... def _(x):
        ...     return torch.empty_like(x)
    """

    # It may come before the operator does, or without it.
    return _decorated(func, lambda given: None)


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None, lib: Any = None
) -> None:
    """Register the derivative of a custom operator.

    Args:
        op: operator or its name.
        backward: function `(ctx, *grads)` that returns a gradient for each input.
        setup_context: function `(ctx, inputs, output)` that saves what `backward` needs.
        lib: accepted for compatibility.

    Examples:
        >>> @torch.library.custom_op("example::double", mutates_args=())
        ... def double(x: torch.Tensor) -> torch.Tensor:
        ...     return 2 * x
        >>> torch.library.register_autograd(double, lambda ctx, grad: 2 * grad)
        >>> x = torch.ones(1, requires_grad=True)
        >>> double(x).backward()
        >>> x.grad
        tensor([2.])
    """
    _operator(op).register_autograd(backward, setup_context=setup_context)


def register_kernel(op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Register another function of a custom operator for some types of devices.

    Args:
        op: operator or its name.
        device_types: type or types, such as `"cpu"`; all others if `None`.
        func: function; a decorator is returned if `None`.
        lib: accepted for compatibility.

    Examples:
        >>> @torch.library.custom_op("example::name", mutates_args=())
        ... def name(x: torch.Tensor) -> torch.Tensor:
        ...     return 2 * x
        >>> _ = torch.library.register_kernel(name, "cpu", lambda x: 3 * x)
        >>> name(torch.ones(1))
        tensor([3.])
    """
    return _operator(op).register_kernel(device_types, func)


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Register the rule of a custom operator for `vmap`.

    Args:
        op: operator or its name.
        func: function `(info, in_dims, *args)` that returns the results and their batch dimensions; a decorator is
            returned if `None`.
        lib: accepted for compatibility.

    Examples:
        >>> @torch.library.custom_op("example::triple", mutates_args=())
        ... def triple(x: torch.Tensor) -> torch.Tensor:
        ...     return 3 * x
        >>> _ = torch.library.register_vmap(triple, lambda info, in_dims, x: (triple(x), in_dims[0]))
        >>> torch.func.vmap(triple)(torch.ones(2))
        tensor([3., 3.])
    """
    return _operator(op).register_vmap(func)


def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """Define an operator by its schema, which is not supported: use `custom_op`.

    Args:
        qualname, schema, lib, tags: ignored. Default: none

    Examples:
        >>> torch.library.define("example::f", "(Tensor x) -> Tensor")
        Traceback (most recent call last):
        NotImplementedError: torch.library.define: gradiron reads no schemas
    """
    refuse("library.define", "gradiron reads no schemas; torch.library.custom_op makes an operator")


def impl(qualname: str, types: Any, func: Any = None, *, lib: Any = None) -> Any:
    """Implement an operator that `define` defined, which is not supported: use `custom_op`.

    Args:
        qualname, types, func, lib: ignored. Default: none

    Examples:
        >>> torch.library.impl("example::f", "cpu")
        Traceback (most recent call last):
        NotImplementedError: torch.library.impl: gradiron reads no schemas
    """
    refuse("library.impl", "gradiron reads no schemas; torch.library.custom_op makes an operator")


class Library:
    """A library of operators, which is not supported: use `custom_op`.

    Args:
        ns, kind, dispatch_key: ignored. Default: none

    Examples:
        >>> torch.library.Library("example", "DEF")
        Traceback (most recent call last):
        NotImplementedError: torch.library.Library: gradiron reads no schemas
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        refuse("library.Library", "gradiron reads no schemas; torch.library.custom_op makes an operator")
