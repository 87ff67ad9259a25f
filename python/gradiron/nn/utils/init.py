"""Construction of modules without initialization."""

from __future__ import annotations

import inspect
from typing import Any

from ..modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Construct a module whose parameters and buffers are not initialized.

    Args:
        module_cls: class of the module; its constructor must accept `device`.
        *args, **kwargs: arguments of the constructor.

    Examples:
        >>> nn.utils.skip_init(nn.Linear, 4, 2).weight.shape
        torch.Size([2, 4])
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)
