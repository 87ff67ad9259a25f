"""Products of matrices."""

from __future__ import annotations

from typing import Any

from .._forms import form
from .._writer import Value, Writer
from .shapes import listed, swapped

__all__: list[str] = []


@form("matmul", "mm", "bmm", "mv", "__matmul__")
def _matmul(g: Writer, input: Any, other: Any) -> Any:
    return g.MatMul(input, other)


@form("dot", "vdot", "inner")
def _dot(g: Writer, input: Any, other: Any) -> Any:
    if input.ndim > 1 or other.ndim > 1:
        return g.MatMul(input, swapped(g, other, other.ndim, -1, -2) if other.ndim > 1 else other)
    return g.MatMul(input, other)


@form("outer", "ger")
def _outer(g: Writer, input: Any, other: Any) -> Any:
    return g.Mul(g.unsqueeze(input, 1), g.unsqueeze(other, 0))


def _sum_of(g: Writer, input: Any, product: Value, beta: Any, alpha: Any) -> Value:
    """`beta * input + alpha * product`."""
    product = product if alpha == 1 else g.Mul(product, alpha)
    if beta == 0:
        return product
    return g.Add(product, input if beta == 1 else g.Mul(input, beta))


@form("addmm")
def _addmm(g: Writer, input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return g.Gemm(mat1, mat2, input, alpha=float(alpha), beta=float(beta))


@form("baddbmm", "addmv")
def _baddbmm(g: Writer, input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return _sum_of(g, input, g.MatMul(batch1, batch2), beta, alpha)


@form("einsum")
def _einsum(g: Writer, equation: str, *operands: Any) -> Any:
    return g.Einsum(*listed(operands), equation=equation.replace(" ", ""))


@form("linear")
def _linear(g: Writer, input: Any, weight: Any, bias: Any = None) -> Any:
    if input.ndim == 2 and weight.ndim == 2:
        return g.Gemm(input, weight, bias, transB=1)
    made = g.MatMul(input, swapped(g, weight, 2, 0, 1) if weight.ndim == 2 else weight)
    return made if bias is None else g.Add(made, bias)


@form("bilinear")
def _bilinear(g: Writer, input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    made = g.Einsum(input1, weight, input2, equation="...i,oij,...j->...o")
    return made if bias is None else g.Add(made, bias)
