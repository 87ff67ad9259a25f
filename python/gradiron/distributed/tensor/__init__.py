"""Tensors that lie on several machines: a name that programs ask `isinstance` of. No tensor is one."""

from __future__ import annotations

from typing import Any

__all__ = ["DTensor"]


class DTensor:
    """Would be one."""

    def __init__(self, *args: Any, **options: Any) -> None:
        raise NotImplementedError("torch.distributed.tensor.DTensor: gradiron trains in one process")
