"""Whether the GPU can be used by the name `mps`."""

from __future__ import annotations

__all__ = ["get_core_count", "get_name", "is_available", "is_built", "is_macos13_or_newer", "is_macos_or_newer"]


def is_built() -> bool:
    """Return `True`: `mps` names the GPU on every system."""
    return True


def is_available() -> bool:
    """Return whether a GPU is available.

    Examples:
        >>> torch.backends.mps.is_available() == torch.cuda.is_available()
        True
    """
    from .. import cuda

    return cuda.is_available()


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Return whether this is macOS of at least this version."""
    import platform

    version = platform.mac_ver()[0]
    return bool(version) and tuple(map(int, version.split(".")[:2])) >= (major, minor)


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Return whether this is macOS 13 or newer."""
    return is_macos_or_newer(13, minor)


def get_name() -> str:
    """Return the name of the GPU."""
    from .. import cuda

    return cuda.get_device_name() if is_available() else ""


def get_core_count() -> int:
    """Return 0, as the number of cores is not known."""
    return 0
