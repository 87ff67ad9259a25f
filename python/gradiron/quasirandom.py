"""Sobol sequences: a name that packages ask for when they are imported. The table of directions is not there."""

from __future__ import annotations

from typing import Any

__all__ = ["SobolEngine"]


class SobolEngine:
    """Refused."""

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        raise NotImplementedError("torch.quasirandom.SobolEngine: gradiron draws no Sobol sequences; torch.rand draws points")

    def draw(self, n: int = 1, out: Any = None, dtype: Any = None) -> Any:
        raise NotImplementedError("torch.quasirandom.SobolEngine.draw: gradiron draws no Sobol sequences")
