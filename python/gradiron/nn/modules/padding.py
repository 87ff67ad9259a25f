"""Padding layers."""

from __future__ import annotations

from typing import Any

from ..._core import Tensor
from .. import functional as F
from .module import Module
from .utils import _ntuple, _pair, _quadruple

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]

_sextuple = _ntuple(6)


class _Pad(Module):
    padding: tuple[int, ...]

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPadNd(_Pad):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return F.pad(input, self.padding, "circular")

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError


class CircularPad1d(_CircularPadNd):
    """Pad the last dimension with the elements from the opposite side (circular padding).

    Args:
        padding: number of elements to add, at most the size of the dimension, one for all sides, or `(left, right)`.

    Shape:
        - Input: `(N, C, W)` or `(C, W)`; the output has longer last dimension.

    Examples:
        >>> nn.CircularPad1d((1, 2))(torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
        tensor([[4., 1., 2., 3., 4., 1., 2.]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _pair(padding)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class CircularPad2d(_CircularPadNd):
    """Pad the last two dimensions with the elements from the opposite side (circular padding).

    Args:
        padding: number of elements to add, at most the size of the dimension, one for all sides, or
            `(left, right, top, bottom)`.

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`; the output has longer last dimensions.

    Examples:
        >>> nn.CircularPad2d((1, 2, 0, 1))(torch.randn(1, 1, 4, 4)).shape
        torch.Size([1, 1, 5, 7])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _quadruple(padding)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (3, 4):
            raise ValueError(f"expected 3D or 4D input (got {input.dim()}D input)")


class CircularPad3d(_CircularPadNd):
    """Pad the last three dimensions with the elements from the opposite side (circular padding).

    Args:
        padding: number of elements to add, at most the size of the dimension, one for all sides, or
            `(left, right, top, bottom, front, back)`.

    Shape:
        - Input: `(N, C, D, H, W)` or `(C, D, H, W)`; the output has longer last dimensions.

    Examples:
        >>> nn.CircularPad3d((1, 2, 0, 1, 1, 1))(torch.randn(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 6, 5, 7])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _sextuple(padding)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (4, 5):
            raise ValueError(f"expected 4D or 5D input (got {input.dim()}D input)")


class _ConstantPadNd(_Pad):
    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pad the last dimension with a constant; negative padding crops.

    Args:
        padding: number of elements to add, one for all sides, or `(left, right)`.
        value: what to pad with.

    Shape:
        - Input: `(N, C, W)` or `(C, W)`; the output has longer last dimension.

    Examples:
        >>> nn.ConstantPad1d((1, 2), 0.5)(torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
        tensor([[0.5000, 1.0000, 2.0000, 3.0000, 4.0000, 0.5000, 0.5000]])
    """

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(value)
        self.padding = _pair(padding)


class ConstantPad2d(_ConstantPadNd):
    """Pad the last two dimensions with a constant; negative padding crops.

    Args:
        padding: number of elements to add, one for all sides, or `(left, right, top, bottom)`.
        value: what to pad with.

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`; the output has longer last dimensions.

    Examples:
        >>> nn.ConstantPad2d((1, 2, 0, 1), 0.5)(torch.randn(1, 1, 4, 4)).shape
        torch.Size([1, 1, 5, 7])
    """

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(value)
        self.padding = _quadruple(padding)


class ConstantPad3d(_ConstantPadNd):
    """Pad the last three dimensions with a constant; negative padding crops.

    Args:
        padding: number of elements to add, one for all sides, or `(left, right, top, bottom, front, back)`.
        value: what to pad with.

    Shape:
        - Input: `(N, C, D, H, W)` or `(C, D, H, W)`; the output has longer last dimensions.

    Examples:
        >>> nn.ConstantPad3d((1, 2, 0, 1, 1, 1), 0.5)(torch.randn(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 6, 5, 7])
    """

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(value)
        self.padding = _sextuple(padding)


class _ReflectionPadNd(_Pad):
    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "reflect")


class ReflectionPad1d(_ReflectionPadNd):
    """Pad the last dimension by mirroring at the borders, without repeating the border itself.

    Args:
        padding: number of elements to add, less than the size of the dimension, one for all sides, or
            `(left, right)`.

    Shape:
        - Input: `(N, C, W)` or `(C, W)`; the output has longer last dimension.

    Examples:
        >>> nn.ReflectionPad1d((1, 2))(torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
        tensor([[2., 1., 2., 3., 4., 3., 2.]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _pair(padding)


class ReflectionPad2d(_ReflectionPadNd):
    """Pad the last two dimensions by mirroring at the borders, without repeating the border itself.

    Args:
        padding: number of elements to add, less than the size of the dimension, one for all sides, or
            `(left, right, top, bottom)`.

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`; the output has longer last dimensions.

    Examples:
        >>> nn.ReflectionPad2d((1, 2, 0, 1))(torch.randn(1, 1, 4, 4)).shape
        torch.Size([1, 1, 5, 7])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _quadruple(padding)


class ReflectionPad3d(_ReflectionPadNd):
    """Pad the last three dimensions by mirroring at the borders, without repeating the border itself.

    Args:
        padding: number of elements to add, less than the size of the dimension, one for all sides, or
            `(left, right, top, bottom, front, back)`.

    Shape:
        - Input: `(N, C, D, H, W)` or `(C, D, H, W)`; the output has longer last dimensions.

    Examples:
        >>> nn.ReflectionPad3d((1, 2, 0, 1, 1, 1))(torch.randn(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 6, 5, 7])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _sextuple(padding)


class _ReplicationPadNd(_Pad):
    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "replicate")


class ReplicationPad1d(_ReplicationPadNd):
    """Pad the last dimension by repeating the elements at the borders.

    Args:
        padding: number of elements to add, one for all sides, or `(left, right)`.

    Shape:
        - Input: `(N, C, W)` or `(C, W)`; the output has longer last dimension.

    Examples:
        >>> nn.ReplicationPad1d((1, 2))(torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
        tensor([[1., 1., 2., 3., 4., 4., 4.]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _pair(padding)


class ReplicationPad2d(_ReplicationPadNd):
    """Pad the last two dimensions by repeating the elements at the borders.

    Args:
        padding: number of elements to add, one for all sides, or `(left, right, top, bottom)`.

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`; the output has longer last dimensions.

    Examples:
        >>> nn.ReplicationPad2d((1, 2, 0, 1))(torch.randn(1, 1, 4, 4)).shape
        torch.Size([1, 1, 5, 7])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _quadruple(padding)


class ReplicationPad3d(_ReplicationPadNd):
    """Pad the last three dimensions by repeating the elements at the borders.

    Args:
        padding: number of elements to add, one for all sides, or `(left, right, top, bottom, front, back)`.

    Shape:
        - Input: `(N, C, D, H, W)` or `(C, D, H, W)`; the output has longer last dimensions.

    Examples:
        >>> nn.ReplicationPad3d((1, 2, 0, 1, 1, 1))(torch.randn(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 6, 5, 7])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _sextuple(padding)


class ZeroPad1d(ConstantPad1d):
    """Pad the last dimension with zeros; negative padding crops.

    Args:
        padding: number of elements to add, one for all sides, or `(left, right)`.

    Shape:
        - Input: `(N, C, W)` or `(C, W)`; the output has longer last dimension.

    Examples:
        >>> nn.ZeroPad1d((1, 2))(torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
        tensor([[0., 1., 2., 3., 4., 0., 0.]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Pad the last two dimensions with zeros; negative padding crops.

    Args:
        padding: number of elements to add, one for all sides, or `(left, right, top, bottom)`.

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`; the output has longer last dimensions.

    Examples:
        >>> nn.ZeroPad2d((1, 2, 0, 1))(torch.randn(1, 1, 4, 4)).shape
        torch.Size([1, 1, 5, 7])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Pad the last three dimensions with zeros; negative padding crops.

    Args:
        padding: number of elements to add, one for all sides, or `(left, right, top, bottom, front, back)`.

    Shape:
        - Input: `(N, C, D, H, W)` or `(C, D, H, W)`; the output has longer last dimensions.

    Examples:
        >>> nn.ZeroPad3d((1, 2, 0, 1, 1, 1))(torch.randn(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 6, 5, 7])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"
