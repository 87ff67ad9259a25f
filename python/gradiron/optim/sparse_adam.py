"""Adam for sparse gradients: a name that says what is missing."""

from __future__ import annotations

from typing import Any

from .optimizer import Optimizer

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Not there, since gradients are dense: `Adam` takes them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("SparseAdam needs sparse gradients, which gradiron does not have; use Adam instead")
