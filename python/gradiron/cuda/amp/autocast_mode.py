"""Deprecated forms of `amp.autocast`, `amp.custom_fwd` and `amp.custom_bwd` for GPUs."""

from __future__ import annotations

import functools
import warnings
from typing import Any

from ... import amp
from ..._core import dtype, float16

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


def _deprecated(name: str) -> None:
    message = f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('cuda', args...)` instead."
    warnings.warn(message, FutureWarning, stacklevel=3)


class autocast(amp.autocast):
    """Deprecated form of `amp.autocast("cuda", ...)`."""

    def __init__(self, enabled: bool = True, dtype: dtype = float16, cache_enabled: bool = True) -> None:
        _deprecated("autocast")
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


def custom_fwd(fwd: Any = None, *, cast_inputs: dtype | None = None) -> Any:
    """Deprecated form of `amp.custom_fwd(..., device_type="cuda")`."""
    _deprecated("custom_fwd")
    return functools.partial(amp.custom_fwd, device_type="cuda")(fwd=fwd, cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """Deprecated form of `amp.custom_bwd(..., device_type="cuda")`."""
    _deprecated("custom_bwd")
    return functools.partial(amp.custom_bwd, device_type="cuda")(bwd)
