"""Sobol sequences: quasirandom points that fill the unit cube evenly."""

from __future__ import annotations

import functools
from typing import Any

from . import _core
from ._core import Tensor
from ._creation import tensor
from .random import default_generator

__all__ = ["SobolEngine"]


@functools.cache
def _directions(bits: int) -> list[list[int]]:
    """The direction numbers of each dimension, each as a fraction of `bits` bits."""
    from ._functions.sobol_directions import directions

    found = []
    for polynomial, first in directions():
        degree = len(first)
        numbers = list(first) if degree else [1] * bits
        # Each number follows from those before it by the polynomial's recurrence.
        for j in range(degree, bits if degree else 0):
            number = numbers[j - degree] ^ (numbers[j - degree] << degree)
            for k in range(1, degree):
                if polynomial >> (degree - k) & 1:
                    number ^= numbers[j - k] << k
            numbers.append(number)
        found.append([number << (bits - 1 - j) for j, number in enumerate(numbers[:bits])])
    return found


class SobolEngine:
    """Generator of the points of a Sobol sequence in the unit cube.

    Args:
        dimension: dimension of the points.
        scramble: scramble the sequence randomly. Default: `False`
        seed: seed of the scrambling; the default generator is used if `None`.

    Examples:
        >>> torch.quasirandom.SobolEngine(2).draw(3)
        tensor([[0.0000, 0.0000],
                [0.5000, 0.5000],
                [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        known = _directions(self.MAXBIT)
        if dimension > len(known):
            raise NotImplementedError(f"SobolEngine: gradiron knows {len(known)} dimensions, not {dimension}")
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        place = _core.device("cpu")
        self.sobolstate = tensor(known[:dimension], dtype=_core.int64, device=place)
        self.shift = _core.zeros(dimension, dtype=_core.int64, device=place)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """Return the next `n` points, one per row."""
        dtype = _core.get_default_dtype() if dtype is None else dtype
        # The first point is the start, and takes no step.
        steps = n - 1 if self.num_generated == 0 else n
        if steps < 0:
            raise ValueError(f"n must be non-negative, but got {steps}")
        start = 0 if self.num_generated == 0 else self.num_generated
        points = self._points(start, n)
        self.quasi = points[-1] if n else self.quasi
        made = points.to(dtype) * 2.0**-self.MAXBIT
        self.num_generated += n
        if out is None:
            return made
        return out.resize_(made.shape).copy_(made)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """Return the next `2**m` points; the total number must be a power of 2."""
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={self.num_generated}+2**{m}={total}. "
                "If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n=2**m, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Start the sequence again."""
        self.quasi = self.shift.clone()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip the next `n` points."""
        steps = n - 1 if self.num_generated == 0 else n
        if steps < 0:
            raise ValueError(f"n must be non-negative, but got {steps}")
        self.num_generated += n
        self.quasi = self._points(self.num_generated - 1, 1)[0]
        return self

    def _points(self, start: int, count: int) -> Tensor:
        """Points as whole numbers: of each, the direction numbers of the bits of its number in Gray's code, without carries."""
        if start + count > 1 << self.MAXBIT:
            raise ValueError(f"a Sobol sequence of {self.MAXBIT} bits has {1 << self.MAXBIT} points")
        number = _core.arange(start, start + count, dtype=_core.int64, device="cpu")
        gray = number ^ (number >> 1)
        points = self.shift.expand(count, -1).clone()
        for bit in range((start + count).bit_length()):
            points ^= (gray >> bit & 1)[:, None] * self.sobolstate[:, bit]
        return points

    def _scramble(self) -> None:
        generator = default_generator
        if self.seed is not None:
            generator = _core.Generator()
            generator.manual_seed(self.seed)
        bits, place = self.MAXBIT, _core.device("cpu")
        powers = 2 ** _core.arange(bits, dtype=_core.int64, device=place)
        drawn = _core.randint(2, (self.dimension, bits), device=place, generator=generator)
        self.shift = (drawn * powers).sum(1)
        matrices = _core.randint(2, (self.dimension, bits, bits), device=place, generator=generator).tril()
        matrices.diagonal(0, -2, -1).fill_(1)
        # A random triangle of bits times the bits of each number, the highest first.
        digits = self.sobolstate[:, :, None] >> powers.new_tensor(list(range(bits - 1, -1, -1))) & 1
        product = (matrices[:, None] * digits[:, :, None, :]).sum(-1) % 2
        self.sobolstate = (product * powers.flip(0)).sum(-1)

    def __repr__(self) -> str:
        told = [f"dimension={self.dimension}"]
        if self.scramble:
            told.append("scramble=True")
        if self.seed is not None:
            told.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(told)})"
