"""SparseAdam, which is not supported."""

from __future__ import annotations

from typing import Any

from .optimizer import Optimizer

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam for sparse gradients, which is not supported: use `Adam`, as all gradients are dense.

    Raises:
        NotImplementedError: always.

    Examples:
        >>> torch.optim.SparseAdam([])
        Traceback (most recent call last):
        NotImplementedError: SparseAdam needs sparse gradients, which gradiron does not have; use Adam instead
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("SparseAdam needs sparse gradients, which gradiron does not have; use Adam instead")
