"""Whether a GPU answers to the name `mps`."""

from __future__ import annotations

__all__ = ["get_core_count", "get_name", "is_available", "is_built", "is_macos13_or_newer", "is_macos_or_newer"]


def is_built() -> bool:
    """True: `mps` names the GPU on every system."""
    return True


def is_available() -> bool:
    """Tells whether there is a GPU, which `mps` then names."""
    from .. import cuda

    return cuda.is_available()


def is_macos_or_newer(major: int, minor: int) -> bool:
    import platform

    version = platform.mac_ver()[0]
    return bool(version) and tuple(map(int, version.split(".")[:2])) >= (major, minor)


def is_macos13_or_newer(minor: int = 0) -> bool:
    return is_macos_or_newer(13, minor)


def get_name() -> str:
    """The adapter's name."""
    from .. import cuda

    return cuda.get_device_name() if is_available() else ""


def get_core_count() -> int:
    """Not known: 0."""
    return 0
