"""The old place of `func.functional_call`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..._core import Tensor
from ...func import _module
from ...func import functional_call as _functional_call

__all__ = ["functional_call"]


def functional_call(
    module: Any,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers; deprecated in favour of `func.functional_call`.

    Args:
        module: module to call.
        parameters_and_buffers: tensors by name that replace those of the module.
        args: positional arguments: a tuple, or a single one.
        kwargs: keyword arguments.
        tie_weights: whether tensors that share storage in the module are replaced together. Default: `True`
        strict: whether all tensors of the module must be given, and no others. Default: `False`

    Examples:
        >>> layer = nn.Linear(2, 1)
        >>> state = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
        >>> nn.utils.stateless.functional_call(layer, state, torch.ones(1, 2))
        tensor([[2.]])
    """
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future version of "
        "PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


@contextmanager
def _reparametrize_module(
    module: Any,
    parameters_and_buffers: dict[str, Tensor],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:
    """Inside, a module has other tensors; what it holds of them in the end stays in the dict, and its own ones come back."""
    own = _module._names(module)
    if strict:
        _module._check_names(parameters_and_buffers, own, type(module).__name__)
    given = _module._tied(parameters_and_buffers, own) if tie_weights else dict(parameters_and_buffers)
    with _module._replaced(module, given, parameters_and_buffers):
        yield
