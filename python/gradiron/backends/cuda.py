"""Flags of CUDA's libraries, which are not used: products are computed in float32, attention by gradiron's own kernels."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = [
    "can_use_efficient_attention",
    "can_use_flash_attention",
    "cudnn_sdp_enabled",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "is_built",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "preferred_linalg_library",
    "sdp_kernel",
]


class _Matmul:
    """Attributes that programs set."""

    def __init__(self) -> None:
        self.allow_tf32 = False
        self.allow_fp16_reduced_precision_reduction = True
        self.allow_bf16_reduced_precision_reduction = True
        self.allow_fp16_accumulation = False
        self.fp32_precision = "none"


matmul = _Matmul()
_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def is_built() -> bool:
    """Whether it is built with CUDA: never; the GPU is reached by other ways."""
    return False


def flash_sdp_enabled() -> bool:
    """Return whether the flash kernel of attention may be used; the flag has no effect."""
    return _attention["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Set whether the flash kernel of attention may be used; the flag has no effect."""
    _attention["flash"] = enabled


def mem_efficient_sdp_enabled() -> bool:
    """Return whether the memory-efficient kernel of attention may be used; the flag has no effect."""
    return _attention["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Set whether the memory-efficient kernel of attention may be used; the flag has no effect."""
    _attention["mem_efficient"] = enabled


def math_sdp_enabled() -> bool:
    """Return whether the composed kernel of attention may be used; the flag has no effect."""
    return _attention["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Set whether the composed kernel of attention may be used; the flag has no effect."""
    _attention["math"] = enabled


def cudnn_sdp_enabled() -> bool:
    """Return whether cuDNN's kernel of attention may be used; the flag has no effect."""
    return _attention["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Set whether cuDNN's kernel of attention may be used; the flag has no effect."""
    _attention["cudnn"] = enabled


def can_use_flash_attention(params: Any, debug: bool = False) -> bool:
    """Return False: there is no flash kernel of CUDA's."""
    return False


def can_use_efficient_attention(params: Any, debug: bool = False) -> bool:
    """Return False: there is no memory-efficient kernel of CUDA's."""
    return False


def preferred_linalg_library(backend: Any = None) -> str:
    """There is one library only."""
    return "default"


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    """Choose the kernels of attention that may be used within a `with` statement."""
    before = dict(_attention)
    _attention.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield
    finally:
        _attention.update(before)
