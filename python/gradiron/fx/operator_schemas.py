"""Signatures of the functions that nodes call, and arguments written out by them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import gradiron

from ._compatibility import compatibility
from ._names import library_path

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
]


@compatibility(is_backward_compatible=False)
class ArgsKwargsPair(NamedTuple):
    """Arguments and keyword arguments of a call.

    Examples:
        >>> torch.fx.operator_schemas.ArgsKwargsPair((1,), {"dim": 0}).kwargs
        {'dim': 0}
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _signature(target: Any) -> inspect.Signature | None:
    packet = getattr(target, "overloadpacket", target)
    try:
        if isinstance(packet, gradiron.ops.OpOverloadPacket):
            target = gradiron.ops.function_of(packet.__name__)
        return inspect.signature(inspect.unwrap(target))
    except (NotImplementedError, TypeError, ValueError):
        return None


@compatibility(is_backward_compatible=False)
def check_for_mutable_operation(target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise RuntimeError if a call of one of gradiron's functions writes into a tensor.

    Args:
        target: function.
        args, kwargs: arguments.

    Examples:
        >>> torch.fx.operator_schemas.check_for_mutable_operation(torch.relu, (), {"out": 1})
        Traceback (most recent call last):
        RuntimeError: Tried to trace mutable operation aten::relu.out.
    """
    name = getattr(target, "__name__", "")
    if library_path(target) is None or isinstance(target, type):
        return
    out = kwargs.get("out") is not None
    if out or (name.endswith("_") and not name.endswith("__")):
        raise RuntimeError(
            f"Tried to trace mutable operation aten::{name}{'.out' if out else ''}. FX only supports functional code, so "
            "operations that mutate operands in-place (e.g. via `out` arguments) are not supported"
        )


@compatibility(is_backward_compatible=False)
def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """Return the signatures of one of gradiron's functions in a list, or None for what is not one.

    Args:
        op: function.
        return_schemas: whether schemas of TorchScript's are returned as well, second in a tuple. There are none. Default:
            `False`

    Examples:
        >>> get_signature_for_torch_op = torch.fx.operator_schemas.get_signature_for_torch_op
        >>> list(get_signature_for_torch_op(torch.relu)[0].parameters)
        ['input']
    """
    found = _signature(op) if library_path(op) is not None else None
    signatures = None if found is None else [found]
    return (signatures, None) if return_schemas else signatures


@compatibility(is_backward_compatible=False)
def create_type_hint(x: Any) -> Any:
    """Return the type annotation of a list or tuple of types.

    Args:
        x: list or tuple of types; anything else is returned as it is.

    Examples:
        >>> create_type_hint = torch.fx.operator_schemas.create_type_hint
        >>> create_type_hint([int, int])
        list[int]
    """
    if not isinstance(x, (list, tuple)):
        return x
    common: Any = x[0] if x else Any
    for kind in x:
        if isinstance(kind, type) and isinstance(common, type):
            common = common if issubclass(kind, common) else kind if issubclass(common, kind) else Any
        else:
            common = Any
    return list[common] if isinstance(x, list) else tuple[common, ...]


def _normalized(signature: inspect.Signature, args: Any, kwargs: Any, only_kwargs: bool) -> ArgsKwargsPair | None:
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if any(parameter.kind not in plain for parameter in signature.parameters.values()):
        return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    names = list(bound.arguments)
    first = 0 if only_kwargs else len(args)
    return ArgsKwargsPair(
        tuple(bound.arguments[name] for name in names[:first]), {name: bound.arguments[name] for name in names[first:]}
    )


@compatibility(is_backward_compatible=False)
def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Return the arguments of a call with defaults filled in; None if the function's signature is unknown.

    Args:
        target: function.
        args, kwargs: arguments.
        arg_types, kwarg_types: ignored, as no function here has several signatures to choose from.
        normalize_to_only_use_kwargs: whether all become keyword arguments. Default: `False`

    Examples:
        >>> normalize_function = torch.fx.operator_schemas.normalize_function
        >>> def scale(x, by=2):
        ...     return x * by
        >>> normalize_function(scale, (1,), normalize_to_only_use_kwargs=True).kwargs
        {'x': 1, 'by': 2}
    """
    signature = _signature(target)
    if signature is None:
        return None
    try:
        return _normalized(signature, args, kwargs or {}, normalize_to_only_use_kwargs)
    except TypeError:
        return None


@compatibility(is_backward_compatible=False)
def normalize_module(
    root: Any,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Return the arguments of a call of one of `torch.nn`'s modules with defaults filled in; None for another's.

    Args:
        root: module that it belongs to.
        target: path of it.
        args, kwargs: arguments.
        normalize_to_only_use_kwargs: whether all become keyword arguments. Default: `False`

    Examples:
        >>> model = nn.Sequential(nn.ReLU())
        >>> torch.fx.operator_schemas.normalize_module(model, "0", (1,), normalize_to_only_use_kwargs=True).kwargs
        {'input': 1}
    """
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(f"Tried to normalize node with target {target} but root did not have that target!") from error
    if getattr(gradiron.nn, type(module).__name__, None) is not type(module):
        return None
    return _normalized(inspect.signature(module.forward), args, kwargs or {}, normalize_to_only_use_kwargs)
