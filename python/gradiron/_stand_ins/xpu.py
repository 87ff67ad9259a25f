"""Intel GPUs have no name of their own: they are `cuda`, like all GPUs."""

from __future__ import annotations

__all__ = ["device_count", "is_available", "is_current_stream_capturing", "is_initialized"]


def is_available() -> bool:
    """Return whether devices named `xpu` are available, which they are not.

    Examples:
        >>> torch.xpu.is_available()
        False
    """
    return False


def is_initialized() -> bool:
    """Return whether devices named `xpu` are initialized, which they are not.

    Examples:
        >>> torch.xpu.is_initialized()
        False
    """
    return False


def device_count() -> int:
    """Return the number of devices named `xpu`, 0.

    Examples:
        >>> torch.xpu.device_count()
        0
    """
    return 0


def is_current_stream_capturing() -> bool:
    """Return whether work is being captured, which it never is.

    Examples:
        >>> torch.xpu.is_current_stream_capturing()
        False
    """
    return False
