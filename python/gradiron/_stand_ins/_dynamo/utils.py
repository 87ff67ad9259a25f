"""What programs ask the compiler's inside."""

from __future__ import annotations

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type: str) -> bool:
    """Whether programs are compiled for a device: for none."""
    return False
