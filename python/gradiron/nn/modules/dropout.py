"""Dropout layers."""

from __future__ import annotations

from ..._core import Tensor
from .. import functional as F
from .module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zero elements at random with probability `p` in training, and scale the others by `1 / (1 - p)`.

    In evaluation the input is returned unchanged.

    Args:
        p: probability of an element to be zeroed. Default: `0.5`
        inplace: overwrite the input with the result. Default: `False`

    Examples:
        >>> nn.Dropout(0.5)(torch.ones(6))
        tensor([0., 0., 2., 0., 0., 0.])
        >>> nn.Dropout(0.5).eval()(torch.ones(6))
        tensor([1., 1., 1., 1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Zero whole channels of sequences at random in training.

    Each channel is zeroed with probability `p`, and the others are scaled by `1 / (1 - p)`; in evaluation nothing
    changes.

    Args:
        p: probability of a channel to be zeroed. Default: `0.5`
        inplace: overwrite the input with the result. Default: `False`

    Shape:
        - Input and output: `(N, C, L)` or `(C, L)`.

    Examples:
        >>> nn.Dropout1d(0.2)(torch.randn(2, 4, 10)).shape
        torch.Size([2, 4, 10])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Zero whole channels of images at random in training.

    Each channel is zeroed with probability `p`, and the others are scaled by `1 / (1 - p)`; in evaluation nothing
    changes.

    Args:
        p: probability of a channel to be zeroed. Default: `0.5`
        inplace: overwrite the input with the result. Default: `False`

    Shape:
        - Input and output: `(N, C, H, W)`.

    Examples:
        >>> nn.Dropout2d(0.2)(torch.randn(2, 4, 8, 6)).shape
        torch.Size([2, 4, 8, 6])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Zero whole channels of volumes at random in training.

    Each channel is zeroed with probability `p`, and the others are scaled by `1 / (1 - p)`; in evaluation nothing
    changes.

    Args:
        p: probability of a channel to be zeroed. Default: `0.5`
        inplace: overwrite the input with the result. Default: `False`

    Shape:
        - Input and output: `(N, C, D, H, W)` or `(C, D, H, W)`.

    Examples:
        >>> nn.Dropout3d(0.2)(torch.randn(2, 4, 6, 8, 6)).shape
        torch.Size([2, 4, 6, 8, 6])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout for networks with `SELU`, which keeps zero mean and unit variance.

    In training, elements are set at random to the negative limit of SELU, and the result is scaled and shifted.

    Args:
        p: probability of an element to be dropped. Default: `0.5`
        inplace: ignored by this layer. Default: `False`

    Examples:
        >>> nn.AlphaDropout(0.2)(torch.randn(3, 4)).shape
        torch.Size([3, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """Alpha dropout of whole channels, for networks with `SELU`.

    In training, channels are set at random to the negative limit of SELU, and the result is scaled and shifted such
    that mean and variance are kept.

    Args:
        p: probability of a channel to be dropped. Default: `0.5`
        inplace: ignored by this layer. Default: `False`

    Shape:
        - Input and output: `(N, C, *)`.

    Examples:
        >>> nn.FeatureAlphaDropout(0.2)(torch.randn(3, 4, 5)).shape
        torch.Size([3, 4, 5])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
