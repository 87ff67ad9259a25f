"""Helpers of distributions: broadcasting, probabilities and logits, lazy properties."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Number
from typing import Any

import gradiron as torch

from .._core import Tensor
from .._types import Size
from ..autograd.grad_mode import enable_grad
from ..nn import functional as F

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060


def is_tensor_like(value: Any) -> bool:
    """Return whether a value is a tensor or of a class that overrides tensor functions."""
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Broadcast tensors and numbers; numbers get the dtype and device of the first tensor."""
    if not all(is_tensor_like(v) or isinstance(v, Number) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    if not all(is_tensor_like(v) for v in values):
        options = {"dtype": torch.get_default_dtype()}
        first = next((v for v in values if isinstance(v, Tensor)), None)
        if first is not None:
            options = {"dtype": first.dtype, "device": first.device}
        values = tuple(v if is_tensor_like(v) else torch.tensor(v, **options) for v in values)
    return tuple(torch.broadcast_tensors(*values))


def standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Draw samples of the standard normal distribution."""
    return torch.randn(shape, dtype=dtype, device=device)


def sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """Sum over the last `dim` dimensions."""
    return value if dim == 0 else value.reshape((*value.shape[: value.dim() - dim], -1)).sum(-1)


# What distributions written elsewhere call them by.
_standard_normal, _sum_rightmost = standard_normal, sum_rightmost


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Convert log-odds, or unnormalized log-probabilities along the last dimension, to probabilities."""
    return torch.sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Clamp probabilities away from 0 and 1."""
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Convert probabilities to log-odds, or to their logarithms."""
    probs = clamp_probs(probs)
    return torch.log(probs) - torch.log1p(-probs) if is_binary else torch.log(probs)


class lazy_property:
    """A property that is computed on first access and then stored as an attribute."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class Odds:
    """Base of distributions with a parameter given as `probs` or `logits`; the other one is computed."""

    _binary = True

    @staticmethod
    def _odds(probs: Any, logits: Any) -> dict[str, Any]:
        """The one that was given, by its name."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        return {"logits": logits} if probs is None else {"probs": probs}

    @lazy_property
    def logits(self) -> Tensor:
        """Log-odds, or log-probabilities along the last dimension."""
        return probs_to_logits(self.probs, self._binary)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities."""
        return logits_to_probs(self.logits, self._binary)

    @property
    def _param(self) -> Tensor:
        known = vars(self)
        return known["probs"] if "probs" in known else known["logits"]

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._param.size()


def mvlgamma(a: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension `p`, in which `a` may be learned."""
    steps = torch.arange(p, dtype=a.dtype, device=a.device) / 2
    return p * (p - 1) / 4 * math.log(math.pi) + torch.lgamma(a.unsqueeze(-1) - steps).sum(-1)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the lower triangle of a matrix as a vector, row by row."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = torch.tril_indices(n, n, diag, device=mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return the matrix whose lower triangle is given as a vector, row by row."""
    k = vec.shape[-1]
    # The positive root of n² + n - 2k, shifted by the diagonal.
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * k + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    size = round(n)
    rows, columns = torch.tril_indices(size, size, diag, device=vec.device)
    matrix = vec.new_zeros((*vec.shape[:-1], size, size))
    matrix[..., rows, columns] = vec
    return matrix
