"""Kernels: many elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import Names, group

job = group("kernels")


def vectors(n: int) -> Callable[[Any], Names]:
    def setup(T: Any) -> Names:
        T.manual_seed(0)
        return {"T": T, "a": T.rand(n), "b": T.rand(n)}

    return setup


def into(n: int) -> Callable[[Any], Names]:
    """Memory for the result is at hand: what is left is the way of the bytes through it."""
    return lambda T: vectors(n)(T) | {"out": T.empty(n)}


def rows(T: Any) -> Names:
    T.manual_seed(0)
    return {"T": T, "a": T.randn(1000, 10_000), "t": T.randn(3000, 3000)}


def index(T: Any) -> Names:
    T.manual_seed(0)
    return {"a": T.randn(100_000, 16), "i": T.randint(0, 100_000, (50_000,)), "mask": T.rand(100_000, 16) > 0.5}


def matrices(n: int, dtype: str) -> Callable[[Any], Names]:
    def setup(T: Any) -> Names:
        T.manual_seed(0)
        return {f"{c}": T.rand(n, n, dtype=getattr(T, dtype)) for c in "ab"}

    return setup


job("add, 1e7", "a + b", vectors(10_000_000), 1.5, numpy="a + b")
job("mul, 1e7", "a * b", vectors(10_000_000), 1.5, numpy="a * b")
job("exp, 1e7", "a.exp()", vectors(10_000_000), 1.1, numpy="T.exp(a)")
job("tanh, 1e7", "a.tanh()", vectors(10_000_000), 1.1, numpy="T.tanh(a)")
job("sum, 1e7", "a.sum()", vectors(10_000_000), 1, numpy="a.sum()")
job("add into out=, 1e7", "T.add(a, b, out=out)", into(10_000_000), numpy="T.add(a, b, out=out)")
job("a.add_(b), 1e7", "a.add_(b)", vectors(10_000_000), numpy="T.add(a, b, out=a)")
job("softmax, 1000 x 10,000", "a.softmax(1)", rows, 1)
job("sum over rows, 1000 x 10,000", "a.sum(1)", rows, numpy="a.sum(1)")
job("sum over columns, 1000 x 10,000", "a.sum(0)", rows, numpy="a.sum(0)")
job("add of a transpose, 3000 x 3000", "t + t.t()", rows, numpy="t + t.T")
job("a[i], 50,000 rows of 16", "a[i]", index, numpy="a[i]")
job("a[mask], 1,600,000", "a[mask]", index, numpy="a[mask]")
job("add, 1e5", "a + b", vectors(100_000), numpy="a + b")
job("exp, 1e5", "a.exp()", vectors(100_000), numpy="T.exp(a)")
for dtype in ("float32", "float64"):
    for size in (32, 64, 128, 256, 512, 1024, 2048):
        job(f"matmul {size}, {dtype}", "a @ b", matrices(size, dtype), 1, numpy="a @ b")
