"""Distances and similarities of pairs of vectors."""

from __future__ import annotations

from ..._core import Tensor
from .. import functional as F
from .module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """Compute the p-norm of the difference of each pair of vectors: `norm(x1 - x2 + eps, p)`.

    Args:
        p: exponent of the norm. Default: `2.0`
        eps: small number added to every element of the difference. Default: `1e-6`
        keepdim: whether to keep the last dimension, with size 1. Default: `False`

    Shape:
        - Inputs: `(N, D)` or `(D,)`.
        - Output: `(N,)` or `()`.

    Examples:
        >>> nn.PairwiseDistance()(torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2))
        tensor([5.0000])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """Compute the cosine of the angle between vectors along `dim`: `x1 @ x2 / (|x1| * |x2|)`.

    Args:
        dim: dimension of the vectors. Default: `1`
        eps: lower bound of each norm, which prevents a division by zero. Default: `1e-8`

    Shape:
        - Inputs: the same shape, or shapes that broadcast.
        - Output: that shape without `dim`.

    Examples:
        >>> nn.CosineSimilarity(dim=0)(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0]))
        tensor(0.7071)
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
