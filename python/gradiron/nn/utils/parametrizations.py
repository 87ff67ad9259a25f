"""Parametrizations: orthogonal matrices, weight normalization and spectral normalization."""

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
    """Return the matrix exponential, by a power series with scaling and squaring."""
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
    """Return the product of Householder reflections, with vectors in the columns of `a` and ones on the diagonal."""
    rows, cols = a.size(-2), a.size(-1)
    vectors = a + _core.eye(rows, cols, dtype=a.dtype, device=a.device)
    made = _core.eye(rows, cols, dtype=a.dtype, device=a.device).expand_as(a)
    for at in reversed(range(cols)):
        v = vectors[..., at : at + 1]
        made = made - tau[..., at : at + 1].unsqueeze(-1) * v * (v.mT @ made)
    return made


def _reflections(q: Tensor) -> tuple[Tensor, Tensor]:
    """Return the Householder reflections that make `q` upper triangular, and their factors."""
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
    """Parametrization of matrices with orthonormal columns, or rows if there are fewer."""

    base: Any

    def __init__(self, weight: Tensor, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            # A factor of the map, so that any orthogonal matrix can be assigned.
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.size(-2) < X.size(-1)
        X = X.mT if wide else X
        made = self._reflect(X) if self.orthogonal_map == _OrthMaps.householder else self._turn(X)
        if hasattr(self, "base"):
            made = self.base @ made
        return made.mT if wide else made

    def _turn(self, X: Tensor) -> Tensor:
        """Map a matrix to an orthogonal one by its skew-symmetric part."""
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
        """Map a matrix to an orthogonal one by Householder reflections."""
        below = X.tril(-1)
        tau = 2.0 / (1.0 + (below * below).sum(-2))
        return _reflected(below, tau) * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    def right_inverse(self, Q: Tensor) -> Tensor:
        """Return a matrix that is mapped to `Q`, or to an orthogonal matrix near it."""
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
    """Parametrize a matrix of a module to be orthogonal.

    If it is not square, its columns are orthonormal, or its rows if there are fewer.

    Args:
        module: module that has the matrix.
        name: name of the matrix. Default: `"weight"`
        orthogonal_map: `"matrix_exp"`, `"cayley"` or `"householder"`; if `None`, `"matrix_exp"` for square and
            complex matrices and else `"householder"`.
        use_trivialization: whether to multiply by a fixed orthogonal matrix, so that any one can be assigned.
            Default: `True`

    Returns:
        The module.

    Examples:
        >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(3, 3))
        >>> torch.allclose(layer.weight.T @ layer.weight, torch.eye(3), atol=1e-5)
        True
    """
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
    """Parametrization by magnitude and direction."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weigh(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return magnitude and direction of a weight."""
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Parametrize a weight by magnitude and direction, `w = g * v / |v|` (weight normalization).

    The trained parameters are `parametrizations.<name>.original0`, the magnitude, and `original1`, the direction.

    Args:
        module: module that has the weight.
        name: name of the weight. Default: `"weight"`
        dim: dimension along which each slice has its own magnitude; `None` for a single magnitude. Default: `0`

    Returns:
        The module.

    Examples:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 2))
        >>> layer.parametrizations.weight.original0.shape
        torch.Size([2, 1])
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def take_old_names(state_dict: Any, prefix: str, *_: Any) -> None:
        """Rename the parameters in state dicts of `utils.weight_norm`."""
        old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in old):
            for at, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{at}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(take_old_names)
    return module


class _SpectralNorm(Module):
    """Parametrization that divides a matrix by its largest singular value, and a vector by its norm."""

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
            # Start close to the singular vectors.
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
        # The graph saves copies: another call before the backward would change the buffers.
        u, v = self._u.clone(), self._v.clone()
        return weight / _core.vdot(u, _core.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """Return the value itself, which is assumed to have spectral norm 1."""
        return value


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Parametrize a weight to be divided by its largest singular value (spectral normalization).

    The singular value is estimated by power iteration.

    Args:
        module: module that has the weight.
        name: name of the weight. Default: `"weight"`
        n_power_iterations: number of power iterations for each call in training. Default: `1`
        eps: lower bound of norms, for numerical stability. Default: `1e-12`
        dim: dimension that corresponds to the outputs; 1 for transposed convolutions and else 0 if `None`.

    Returns:
        The module.

    Examples:
        >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 2))
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'parametrizations.weight.original']
    """
    made = _SpectralNorm(_weight(module, name), n_power_iterations, default_dim(module) if dim is None else dim, eps)
    return parametrize.register_parametrization(module, name, made)
