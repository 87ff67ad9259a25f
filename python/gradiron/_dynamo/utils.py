"""What programs ask the compiler's inside."""

from __future__ import annotations

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type: str) -> bool:
    """Return whether functions over tensors of a device can be compiled.

    Args:
        device_type: `"cpu"` or `"cuda"`.
    """
    return device_type.partition(":")[0] in ("cpu", "cuda", "gpu", "wgpu")
