"""Parametrizations that are often wanted: orthogonal matrices, lengths and directions, spectral norms."""

from __future__ import annotations

import math
from enum import Enum, auto
from typing import Any

from ... import _core
from ..._core import Tensor
from ..._limits import finfo
from ...autograd.grad_mode import no_grad
from .. import functional as F
from ..init import _orthonormal_rows
from ..modules.module import Module
from . import parametrize
from .spectral_norm import default_dim
from .weight_norm import norm_except_dim, weigh

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def _matrix_exp(a: Tensor) -> Tensor:
    """The exponential of matrices: a power series of a part that is small, squared until it is the whole."""
    with no_grad():
        size = a.abs().sum(-1).max().item()
    halvings = 0
    while 0.5 < size < math.inf:
        size, halvings = size / 2, halvings + 1
    a = a / 2**halvings
    made = term = _core.eye(a.size(-1), dtype=a.dtype, device=a.device).expand_as(a)
    for n in range(1, 16 if a.dtype == _core.float64 else 10):
        term = term @ a / n
        made = made + term
    for _ in range(halvings):
        made = made @ made
    return made


def _reflected(a: Tensor, tau: Tensor) -> Tensor:
    """The product of reflections whose vectors are the columns of `a`, each with a one on the diagonal."""
    rows, cols = a.size(-2), a.size(-1)
    vectors = a + _core.eye(rows, cols, dtype=a.dtype, device=a.device)
    made = _core.eye(rows, cols, dtype=a.dtype, device=a.device).expand_as(a)
    for at in reversed(range(cols)):
        v = vectors[..., at : at + 1]
        made = made - tau[..., at : at + 1].unsqueeze(-1) * v * (v.mT @ made)
    return made


def _reflections(q: Tensor) -> tuple[Tensor, Tensor]:
    """The reflections that make `q` upper triangular, below the diagonal, and their factors."""
    made = q.clone()
    taus = []
    for at in range(q.size(-1)):
        x = made[..., at:, at]
        length = x.square().sum(-1).sqrt()
        head = x[..., 0]
        rest = x[..., 1:].square().sum(-1)
        sign = _core.where(head >= 0, -_core.ones_like(head), _core.ones_like(head))
        beta = _core.where(rest == 0, head, sign * length)
        tau = _core.where(rest == 0, _core.zeros_like(head), (beta - head) / beta)
        scale = _core.where(rest == 0, _core.ones_like(head), head - beta)
        v = x / scale.unsqueeze(-1)
        v[..., 0] = 1
        block = made[..., at:, at + 1 :]
        made[..., at:, at + 1 :] = block - tau[..., None, None] * v.unsqueeze(-1) * (v.unsqueeze(-2) @ block)
        made[..., at, at] = beta
        made[..., at + 1 :, at] = v[..., 1:]
        taus.append(tau)
    return made, _core.stack(taus, -1)


def _is_orthogonal(q: Tensor) -> bool:
    identity = _core.eye(q.size(-1), dtype=q.dtype, device=q.device).expand((*q.shape[:-2], q.size(-1), q.size(-1)))
    return _core.allclose(q.mH @ q, identity, atol=10.0 * q.size(-2) * finfo(q.dtype).eps)


class _Orthogonal(Module):
    """A matrix with orthogonal columns, or rows if there are fewer, from any matrix."""

    base: Any

    def __init__(self, weight: Tensor, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            # What the map is multiplied by, so that any matrix can be its start.
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.size(-2) < X.size(-1)
        X = X.mT if wide else X
        made = self._reflect(X) if self.orthogonal_map == _OrthMaps.householder else self._turn(X)
        if hasattr(self, "base"):
            made = self.base @ made
        return made.mT if wide else made

    def _turn(self, X: Tensor) -> Tensor:
        """By a skew matrix."""
        rows, cols = X.size(-2), X.size(-1)
        X = X.tril()
        if rows != cols:
            X = _core.cat([X, X.new_zeros((*X.shape[:-1], rows - cols))], -1)
        skew = X - X.mH
        if self.orthogonal_map == _OrthMaps.cayley:
            identity = _core.eye(rows, dtype=X.dtype, device=X.device)
            return _core.linalg_solve(identity - 0.5 * skew, identity + 0.5 * skew)[..., :cols]
        return _matrix_exp(skew)[..., :cols]

    def _reflect(self, X: Tensor) -> Tensor:
        """By reflections."""
        below = X.tril(-1)
        tau = 2.0 / (1.0 + (below * below).sum(-2))
        return _reflected(below, tau) * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    def right_inverse(self, Q: Tensor) -> Tensor:
        """What the map makes `Q` of, or an orthogonal matrix near it."""
        if Q.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}.")
        wide = Q.size(-2) < Q.size(-1)
        with no_grad():
            tall = Q.mT if wide else Q
            if hasattr(self, "base"):
                self.base = self._base(tall)
                made = _core.zeros_like(Q)
                made.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
                return made
            if self.orthogonal_map != _OrthMaps.householder:
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            found, tau = _reflections(tall)
            diagonal = found.diagonal(dim1=-2, dim2=-1)
            diagonal.copy_(_core.where(tau == 0.0, -diagonal.sign(), diagonal.sign()))
            return found.mT if wide else found

    def _base(self, tall: Tensor) -> Tensor:
        rows, cols = tall.size(-2), tall.size(-1)
        if rows == cols and _is_orthogonal(tall):
            return tall.clone()
        if rows != cols:
            more = _core.randn((*tall.shape[:-2], rows, rows - cols), dtype=tall.dtype, device=tall.device)
            tall = _core.cat([tall, more], -1)
        return _orthonormal_rows(tall.mT).mT.contiguous()


def _weight(module: Any, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def orthogonal(module: Any, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True) -> Any:
    """Keeps a matrix orthogonal, as a function of any matrix: `matrix_exp`, `cayley`, or `householder`."""
    weight = _weight(module, name)
    if weight.dim() < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    chosen = getattr(_OrthMaps, orthogonal_map, None)
    if chosen is None:
        raise ValueError(f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}')
    made = _Orthogonal(weight, chosen, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)


class _WeightNorm(Module):
    """A length times a direction."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weigh(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The length and the direction of a weight."""
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Trains a weight as a length, `original0`, and a direction, `original1`."""
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def take_old_names(state_dict: Any, prefix: str, *_: Any) -> None:
        """From states of the hook of that name."""
        old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in old):
            for at, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{at}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(take_old_names)
    return module


class _SpectralNorm(Module):
    """A weight by its largest singular value; a vector by its length."""

    _u: Any
    _v: Any

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        count = weight.dim()
        if not -count <= dim < count:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{count}, {count - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.dim = dim % count
        self.eps = eps
        if count > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            for name, size in zip(("_u", "_v"), matrix.shape, strict=True):
                self.register_buffer(name, F.normalize(matrix.new_empty(size).normal_(0, 1), dim=0, eps=eps))
            # Near enough to begin with.
            self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        if self.dim != 0:
            weight = weight.permute((self.dim, *(d for d in range(weight.dim()) if d != self.dim)))
        return weight.flatten(1)

    def _power_method(self, matrix: Tensor, n_power_iterations: int) -> None:
        with no_grad():
            for _ in range(n_power_iterations):
                self._u = F.normalize(_core.mv(matrix, self._v), dim=0, eps=self.eps, out=self._u)
                self._v = F.normalize(_core.mv(matrix.mH, self._u), dim=0, eps=self.eps, out=self._v)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # The graph keeps copies: another call before its backward would change these.
        u, v = self._u.clone(), self._v.clone()
        return weight / _core.vdot(u, _core.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value itself, in the hope that its norm is one."""
        return value


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divides a weight by its largest singular value, which is followed by power iteration, a step a call in training."""
    made = _SpectralNorm(_weight(module, name), n_power_iterations, default_dim(module) if dim is None else dim, eps)
    return parametrize.register_parametrization(module, name, made)
