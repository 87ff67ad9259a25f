"""Fourier transforms: long lines with small and with large factors, planes, many short rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import Names, group

job = group("fft")


def numbers(*shape: int, dtype: str) -> Callable[[Any], Names]:
    def setup(T: Any) -> Names:
        T.manual_seed(0)
        return {"T": T, "x": T.randn(*shape, dtype=getattr(T, dtype))}

    return setup


def halves(*shape: int) -> Callable[[Any], Names]:
    """Transforms of real numbers, for the way back."""

    def setup(T: Any) -> Names:
        T.manual_seed(0)
        return {"T": T, "x": T.fft.rfft(T.randn(*shape))}

    return setup


for n in (64, 1000, 4096, 65_536, 99_991):
    job(f"fft, {n}", "T.fft.fft(x)", numbers(n, dtype="complex64"))
    job(f"rfft, {n}", "T.fft.rfft(x)", numbers(n, dtype="float32"))
job("fft, 65,536, complex128", "T.fft.fft(x)", numbers(65_536, dtype="complex128"))
job("irfft, 65,536", "T.fft.irfft(x)", halves(65_536))
job("fft2, 256 x 256", "T.fft.fft2(x)", numbers(256, 256, dtype="complex64"))
job("rfft2, 256 x 256", "T.fft.rfft2(x)", numbers(256, 256, dtype="float32"))
job("fft, 1000 rows of 64", "T.fft.fft(x)", numbers(1000, 64, dtype="complex64"))
job("rfft, 1000 rows of 64", "T.fft.rfft(x)", numbers(1000, 64, dtype="float32"))
job("fft along columns, 64 x 1000", "T.fft.fft(x, dim=0)", numbers(64, 1000, dtype="complex64"))
