"""Marks of functions that traces do not look into."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ._compatibility import compatibility

__all__ = ["wrap"]

#: Names marked by `wrap`, with the globals that hold them.
wrapped_functions: dict[tuple[int, str], dict[str, Any]] = {}


@compatibility(is_backward_compatible=True)
def wrap(fn_or_name: str | Callable[..., Any]) -> str | Callable[..., Any]:
    """Have calls of a function on proxies become nodes rather than be traced through.

    Call it at the top level of the module that holds the function, or use it as a decorator there.

    Args:
        fn_or_name: function, or name of one, which may be defined later or be one of Python's, as `"len"`.

    Examples:
        >>> @torch.fx.wrap  # doctest: +SKIP
        ... def twice(x):
        ...     return x + x
    """
    if not (callable(fn_or_name) or isinstance(fn_or_name, str)):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    caller = sys._getframe(1)
    if caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    wrapped_functions[id(caller.f_globals), name] = caller.f_globals
    return fn_or_name
