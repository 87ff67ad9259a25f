"""Products of matrices."""

from __future__ import annotations

import string
from typing import Any

import gradiron

from .._table import form
from .._writer import Value, Writer
from .shapes import listed, swapped

__all__: list[str] = []


@form("bmm", "linalg.matmul", "matmul", "mm", "mv", "__matmul__")
def _matmul(g: Writer, input: Any, other: Any) -> Any:
    return g.MatMul(input, other)


@form("__rmatmul__")
def _rmatmul(g: Writer, input: Any, other: Any) -> Any:
    return g.MatMul(other, input)


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


@form("linalg.vecdot")
def _vecdot(g: Writer, x: Any, y: Any, *, dim: int = -1) -> Any:
    return g.reduce("ReduceSum", g.Mul(x, y), [dim], False)


@form("linalg.multi_dot")
def _multi_dot(g: Writer, tensors: Any) -> Any:
    made = tensors[0]
    for each in tensors[1:]:
        made = g.MatMul(made, each)
    return made


@form("det", "linalg.det")
def _det(g: Writer, input: Any) -> Any:
    return g.Det(input)


@form("cross", "linalg.cross")
def _cross(g: Writer, input: Any, other: Any, dim: int | None = None) -> Any:
    if dim is None:
        dim = -1 if g.called == "linalg.cross" else next(at for at, size in enumerate(input.shape) if size == 3)
    parts = [
        [g.Gather(x, gradiron.tensor([at % 3 for at in (start, start + 1, start + 2)]), axis=dim) for start in (1, 2)]
        for x in (input, other)
    ]
    (one, two), (ours, theirs) = parts
    return g.Sub(g.Mul(one, theirs), g.Mul(two, ours))


@form("cdist")
def _cdist(g: Writer, x1: Any, x2: Any, p: float = 2.0, compute_mode: Any = None) -> Any:
    apart = g.Sub(g.unsqueeze(x1, x1.ndim - 1), g.unsqueeze(x2, x2.ndim - 2))
    if p not in (1, 2):
        g.refuse("Only p=1 and p=2 are supported.")
    return g.reduce(f"ReduceL{int(p)}", apart, [-1], False)


@form("tensordot")
def _tensordot(g: Writer, a: Any, b: Any, dims: Any = 2, out: Any = None) -> Any:
    if isinstance(dims, int):
        dims = (list(range(a.ndim - dims, a.ndim)), list(range(dims)))
    ours, theirs = ([dim % x.ndim for dim in each] for x, each in zip((a, b), dims, strict=True))
    letters = string.ascii_letters
    first = letters[: a.ndim]
    second = list(letters[a.ndim : a.ndim + b.ndim])
    for mine, other in zip(ours, theirs, strict=True):
        second[other] = first[mine]
    left = [each for each in (*first, *second) if each not in {first[dim] for dim in ours}]
    return g.Einsum(a, b, equation=f"{first},{''.join(second)}->{''.join(left)}")
