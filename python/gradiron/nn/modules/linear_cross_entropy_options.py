"""Options of `linear_cross_entropy` for chunked computation.

They are checked as PyTorch checks them, and have no effect here.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ... import _core

__all__ = ["LinearCrossEntropyOptions"]

_POLICIES = ("accurate", "compact", "auto")


@dataclasses.dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """Options of `linear_cross_entropy` for chunking and precision.

    They are checked and have no effect here.

    Args:
        allow_retain_graph: allow a second backward pass. Default: `False`
        batch_chunk_size: number of samples in a chunk.
        chunking_method: `"auto"`, `"aspect_ratio"`, `"aspect_ratio:<factor>"` or `None`. Default: `"auto"`
        acc_policy: `"accurate"`, `"compact"` or `"auto"`. Default: `"auto"`
        acc_dtype: floating-point data type of the accumulation.

    Raises:
        ValueError: if an option has none of these values.

    Examples:
        >>> nn.LinearCrossEntropyOptions(acc_policy="compact").acc_policy
        'compact'
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}; expected one of {', '.join(map(repr, _POLICIES))}")
        if self.chunking_method not in (None, "auto", "aspect_ratio"):
            name, _, factor = self.chunking_method.partition(":")
            if name != "aspect_ratio" or not factor.isdigit() or int(factor) == 0:
                raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        kinds = (_core.float16, _core.bfloat16, _core.float32, _core.float64)
        if self.acc_dtype is not None and self.acc_dtype not in kinds:
            raise ValueError(
                "acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, torch.float64}, got "
                f"{self.acc_dtype!r}. Pass acc_dtype=None to let the op pick automatically."
            )
