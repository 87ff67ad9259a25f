"""Choice of the attention kernel: it is checked and has no effect, as there is one kernel for all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

__all__ = ["SDPBackend", "WARN_FOR_UNFUSED_KERNELS", "sdpa_kernel"]  # noqa: RUF022

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(IntEnum):
    """Names of the attention kernels of PyTorch, for `sdpa_kernel`.

    Examples:
        >>> nn.attention.SDPBackend.FLASH_ATTENTION.value
        1
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[Any]:
    """Context manager that allows certain attention kernels.

    It has no effect, as there is one kernel for all.

    Args:
        backends: a `SDPBackend` or a list of them.
        set_priority: whether the list is in order of preference. Default: `False`

    Examples:
        >>> q = torch.randn(1, 2, 4, 8)
        >>> with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
        ...     F.scaled_dot_product_attention(q, q, q).shape
        torch.Size([1, 2, 4, 8])
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {type(backends).__name__}"
        )
    yield {}
