"""Pooling layers: max, average, power-average, fractional and adaptive pooling, and max unpooling."""

from __future__ import annotations

from typing import Any

from ..._core import Tensor
from .. import functional as F
from .module import Module
from .utils import _ntuple, _pair, _single, _triple

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class _MaxPoolNd(Module):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def _options(self) -> dict[str, Any]:
        return {"ceil_mode": self.ceil_mode, "return_indices": self.return_indices}

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """Take the maximum of each sliding window of a sequence (1D max pooling).

    Args:
        kernel_size: size of the windows.
        stride: step between windows; `kernel_size` if `None`.
        padding: number of minus infinities added on both sides, at most half of `kernel_size`. Default: `0`
        dilation: spacing between the elements of a window. Default: `1`
        return_indices: whether to return the flat position of each maximum, too, as `MaxUnpool1d` needs.
            Default: `False`
        ceil_mode: round output sizes up instead of down, so that no input is left out. Default: `False`

    Shape:
        - Input: `(N, C, L)` or `(C, L)`.
        - Output: `(N, C, L_out)` or `(C, L_out)`, each size
          `floor((size + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1)`.

    Examples:
        >>> nn.MaxPool1d(3, stride=2)(torch.randn(2, 4, 10)).shape
        torch.Size([2, 4, 4])
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool1d(input, self.kernel_size, self.stride, self.padding, self.dilation, **self._options())


class MaxPool2d(_MaxPoolNd):
    """Take the maximum of each sliding window of an image (2D max pooling).

    Args:
        kernel_size: size of the windows.
        stride: step between windows; `kernel_size` if `None`.
        padding: number of minus infinities added on both sides, at most half of `kernel_size`. Default: `0`
        dilation: spacing between the elements of a window. Default: `1`
        return_indices: whether to return the flat position of each maximum, too, as `MaxUnpool2d` needs.
            Default: `False`
        ceil_mode: round output sizes up instead of down, so that no input is left out. Default: `False`

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`.
        - Output: `(N, C, H_out, W_out)` or `(C, H_out, W_out)`, each size
          `floor((size + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1)`.

    Examples:
        >>> nn.MaxPool2d(3, stride=2)(torch.randn(2, 4, 8, 6)).shape
        torch.Size([2, 4, 3, 2])
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool2d(input, self.kernel_size, self.stride, self.padding, self.dilation, **self._options())


class MaxPool3d(_MaxPoolNd):
    """Take the maximum of each sliding window of a volume (3D max pooling).

    Args:
        kernel_size: size of the windows.
        stride: step between windows; `kernel_size` if `None`.
        padding: number of minus infinities added on both sides, at most half of `kernel_size`. Default: `0`
        dilation: spacing between the elements of a window. Default: `1`
        return_indices: whether to return the flat position of each maximum, too, as `MaxUnpool3d` needs.
            Default: `False`
        ceil_mode: round output sizes up instead of down, so that no input is left out. Default: `False`

    Shape:
        - Input: `(N, C, D, H, W)` or `(C, D, H, W)`.
        - Output: `(N, C, D_out, H_out, W_out)` or `(C, D_out, H_out, W_out)`, each size
          `floor((size + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1)`.

    Examples:
        >>> nn.MaxPool3d(3, stride=2)(torch.randn(2, 4, 6, 8, 6)).shape
        torch.Size([2, 4, 2, 3, 2])
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool3d(input, self.kernel_size, self.stride, self.padding, self.dilation, **self._options())


class _MaxUnpoolNd(Module):
    _each = staticmethod(_ntuple(0))

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = self._each(kernel_size)
        self.stride = self._each(kernel_size if stride is None else stride)
        self.padding = self._each(padding)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Invert `MaxPool1d` partially: put the maxima back at their positions, with zeros elsewhere.

    Several input sizes give the same pooled size; pass `output_size` to the call to choose one of them.

    Args:
        kernel_size: size of the windows.
        stride: step between windows; `kernel_size` if `None`.
        padding: padding of the pooling. Default: `0`

    Shape:
        - Input: `(N, C, L)` or `(C, L)`.
        - Output: `(N, C, L_out)` or `(C, L_out)`, each size `(size - 1) * stride - 2 * padding + kernel_size`.

    Examples:
        >>> pool = nn.MaxPool1d(2, return_indices=True)
        >>> output, indices = pool(torch.randn(2, 4, 10))
        >>> nn.MaxUnpool1d(2)(output, indices).shape
        torch.Size([2, 4, 10])
    """

    _each = staticmethod(_single)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpoolNd):
    """Invert `MaxPool2d` partially: put the maxima back at their positions, with zeros elsewhere.

    Several input sizes give the same pooled size; pass `output_size` to the call to choose one of them.

    Args:
        kernel_size: size of the windows.
        stride: step between windows; `kernel_size` if `None`.
        padding: padding of the pooling. Default: `0`

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`.
        - Output: `(N, C, H_out, W_out)` or `(C, H_out, W_out)`, each size
          `(size - 1) * stride - 2 * padding + kernel_size`.

    Examples:
        >>> pool = nn.MaxPool2d(2, return_indices=True)
        >>> output, indices = pool(torch.randn(2, 4, 8, 6))
        >>> nn.MaxUnpool2d(2)(output, indices).shape
        torch.Size([2, 4, 8, 6])
    """

    _each = staticmethod(_pair)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpoolNd):
    """Invert `MaxPool3d` partially: put the maxima back at their positions, with zeros elsewhere.

    Several input sizes give the same pooled size; pass `output_size` to the call to choose one of them.

    Args:
        kernel_size: size of the windows.
        stride: step between windows; `kernel_size` if `None`.
        padding: padding of the pooling. Default: `0`

    Shape:
        - Input: `(N, C, D, H, W)` or `(C, D, H, W)`.
        - Output: `(N, C, D_out, H_out, W_out)` or `(C, D_out, H_out, W_out)`, each size
          `(size - 1) * stride - 2 * padding + kernel_size`.

    Examples:
        >>> pool = nn.MaxPool3d(2, return_indices=True)
        >>> output, indices = pool(torch.randn(2, 4, 6, 8, 6))
        >>> nn.MaxUnpool3d(2)(output, indices).shape
        torch.Size([2, 4, 6, 8, 6])
    """

    _each = staticmethod(_triple)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class _AvgPoolNd(Module):
    kernel_size: Any
    stride: Any
    padding: Any
    ceil_mode: bool
    count_include_pad: bool

    def _geometry(self) -> tuple[Any, ...]:
        return self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """Take the average of each sliding window of a sequence (1D average pooling).

    Args:
        kernel_size: size of the windows.
        stride: step between windows; `kernel_size` if `None`.
        padding: number of zeros added on both sides, at most half of `kernel_size`. Default: `0`
        ceil_mode: round output sizes up instead of down, so that no input is left out. Default: `False`
        count_include_pad: whether the zeros of the padding count in the averages. Default: `True`

    Shape:
        - Input: `(N, C, L)` or `(C, L)`.
        - Output: `(N, C, L_out)` or `(C, L_out)`, each size `floor((size + 2 * padding - kernel_size) / stride + 1)`.

    Examples:
        >>> nn.AvgPool1d(3, stride=2)(torch.randn(2, 4, 10)).shape
        torch.Size([2, 4, 4])
    """

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(kernel_size if stride is None else stride)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, *self._geometry())


class _AvgPoolWithDivisor(_AvgPoolNd):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def _geometry(self) -> tuple[Any, ...]:
        return *super()._geometry(), self.divisor_override


class AvgPool2d(_AvgPoolWithDivisor):
    """Take the average of each sliding window of an image (2D average pooling).

    Args:
        kernel_size: size of the windows.
        stride: step between windows; `kernel_size` if `None`.
        padding: number of zeros added on both sides, at most half of `kernel_size`. Default: `0`
        ceil_mode: round output sizes up instead of down, so that no input is left out. Default: `False`
        count_include_pad: whether the zeros of the padding count in the averages. Default: `True`
        divisor_override: number to divide the sums by instead of the size of the window.

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`.
        - Output: `(N, C, H_out, W_out)` or `(C, H_out, W_out)`, each size
          `floor((size + 2 * padding - kernel_size) / stride + 1)`.

    Examples:
        >>> nn.AvgPool2d(3, stride=2)(torch.randn(2, 4, 8, 6)).shape
        torch.Size([2, 4, 3, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(input, *self._geometry())


class AvgPool3d(_AvgPoolWithDivisor):
    """Take the average of each sliding window of a volume (3D average pooling).

    Args:
        kernel_size: size of the windows.
        stride: step between windows; `kernel_size` if `None`.
        padding: number of zeros added on both sides, at most half of `kernel_size`. Default: `0`
        ceil_mode: round output sizes up instead of down, so that no input is left out. Default: `False`
        count_include_pad: whether the zeros of the padding count in the averages. Default: `True`
        divisor_override: number to divide the sums by instead of the size of the window.

    Shape:
        - Input: `(N, C, D, H, W)` or `(C, D, H, W)`.
        - Output: `(N, C, D_out, H_out, W_out)` or `(C, D_out, H_out, W_out)`, each size
          `floor((size + 2 * padding - kernel_size) / stride + 1)`.

    Examples:
        >>> nn.AvgPool3d(3, stride=2)(torch.randn(2, 4, 6, 8, 6)).shape
        torch.Size([2, 4, 2, 3, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool3d(input, *self._geometry())

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for name, usual in (("padding", 0), ("ceil_mode", False), ("count_include_pad", True)):
            self.__dict__.setdefault(name, usual)


class _FractionalMaxPoolNd(Module):
    _spatial: int
    _random_samples: Any

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        super().__init__()
        each = _ntuple(self._spatial)
        self.kernel_size = each(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else each(output_size)
        self.output_ratio = None if output_ratio is None else each(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        pool = getattr(F, f"fractional_max_pool{self._spatial}d")
        return pool(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Take the maxima of randomly placed windows of an image (fractional max pooling).

    The sizes may shrink by any ratio. Exactly one of `output_size` and `output_ratio` must be given.

    Args:
        kernel_size: size of the windows.
        output_size: size of the output: one integer for all dimensions, or one for each.
        output_ratio: size of the output as a fraction of the size of the input, between 0 and 1.
        return_indices: whether to return the flat position of each maximum, too, as `MaxUnpool2d` needs.
            Default: `False`

    Raises:
        ValueError: if neither or both of `output_size` and `output_ratio` are given, or a ratio is not within (0, 1).

    Examples:
        >>> nn.FractionalMaxPool2d(2, output_ratio=0.5)(torch.randn(2, 4, 8, 6)).shape
        torch.Size([2, 4, 4, 3])
    """

    _spatial = 2


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Take the maxima of randomly placed windows of a volume (fractional max pooling).

    The sizes may shrink by any ratio. Exactly one of `output_size` and `output_ratio` must be given.

    Args:
        kernel_size: size of the windows.
        output_size: size of the output: one integer for all dimensions, or one for each.
        output_ratio: size of the output as a fraction of the size of the input, between 0 and 1.
        return_indices: whether to return the flat position of each maximum, too, as `MaxUnpool3d` needs.
            Default: `False`

    Raises:
        ValueError: if neither or both of `output_size` and `output_ratio` are given, or a ratio is not within (0, 1).

    Examples:
        >>> nn.FractionalMaxPool3d(2, output_ratio=0.5)(torch.randn(2, 4, 6, 8, 6)).shape
        torch.Size([2, 4, 3, 4, 3])
    """

    _spatial = 3

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        if any(size <= 0 for size in _triple(kernel_size)):
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        super().__init__(kernel_size, output_size, output_ratio, return_indices, _random_samples)


class _LPPoolNd(Module):
    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        if norm_type == 0:
            raise ValueError(f"norm_type must be a non-zero value, but got {norm_type}")
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}"


class LPPool1d(_LPPoolNd):
    """Take the p-norm of each sliding window of a sequence (1D power-average pooling).

    `y = (sum of x**p over the window) ** (1/p)`: with `p = 1` the sum, and the maximum as `p` grows.

    Args:
        norm_type: the exponent `p`, not 0.
        kernel_size: size of the windows.
        stride: step between windows; `kernel_size` if `None`.
        ceil_mode: round output sizes up instead of down, so that no input is left out. Default: `False`

    Shape:
        - Input: `(N, C, L)` or `(C, L)`.
        - Output: `(N, C, L_out)` or `(C, L_out)`, each size `floor((size - kernel_size) / stride + 1)`.

    Examples:
        >>> nn.LPPool1d(2, 3, stride=2)(torch.randn(2, 4, 10)).shape
        torch.Size([2, 4, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_LPPoolNd):
    """Take the p-norm of each sliding window of an image (2D power-average pooling).

    `y = (sum of x**p over the window) ** (1/p)`: with `p = 1` the sum, and the maximum as `p` grows.

    Args:
        norm_type: the exponent `p`, not 0.
        kernel_size: size of the windows.
        stride: step between windows; `kernel_size` if `None`.
        ceil_mode: round output sizes up instead of down, so that no input is left out. Default: `False`

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`.
        - Output: `(N, C, H_out, W_out)` or `(C, H_out, W_out)`, each size `floor((size - kernel_size) / stride + 1)`.

    Examples:
        >>> nn.LPPool2d(2, 3, stride=2)(torch.randn(2, 4, 8, 6)).shape
        torch.Size([2, 4, 3, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool2d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool3d(_LPPoolNd):
    """Take the p-norm of each sliding window of a volume (3D power-average pooling).

    `y = (sum of x**p over the window) ** (1/p)`: with `p = 1` the sum, and the maximum as `p` grows.

    Args:
        norm_type: the exponent `p`, not 0.
        kernel_size: size of the windows.
        stride: step between windows; `kernel_size` if `None`.
        ceil_mode: round output sizes up instead of down, so that no input is left out. Default: `False`

    Shape:
        - Input: `(N, C, D, H, W)` or `(C, D, H, W)`.
        - Output: `(N, C, D_out, H_out, W_out)` or `(C, D_out, H_out, W_out)`, each size
          `floor((size - kernel_size) / stride + 1)`.

    Examples:
        >>> nn.LPPool3d(2, 3, stride=2)(torch.randn(2, 4, 6, 8, 6)).shape
        torch.Size([2, 4, 2, 3, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool3d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class _AdaptiveMaxPoolNd(Module):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Take maxima of a sequence down to a given output size (1D adaptive max pooling).

    Args:
        output_size: size of the output.
        return_indices: whether to return the flat position of each maximum, too. Default: `False`

    Shape:
        - Input: `(N, C, L)` or `(C, L)`.
        - Output: `(N, C, output_size)` or `(C, output_size)`.

    Examples:
        >>> nn.AdaptiveMaxPool1d(3)(torch.randn(2, 4, 10)).shape
        torch.Size([2, 4, 3])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Take maxima of an image down to a given output size (2D adaptive max pooling).

    Args:
        output_size: size of the output: one integer for all dimensions, or one for each, `None` to keep the size of
            the input.
        return_indices: whether to return the flat position of each maximum, too. Default: `False`

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`.
        - Output: `(N, C, output_size[0], output_size[1])` or `(C, output_size[0], output_size[1])`.

    Examples:
        >>> nn.AdaptiveMaxPool2d((3, 2))(torch.randn(2, 4, 8, 6)).shape
        torch.Size([2, 4, 3, 2])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Take maxima of a volume down to a given output size (3D adaptive max pooling).

    Args:
        output_size: size of the output: one integer for all dimensions, or one for each, `None` to keep the size of
            the input.
        return_indices: whether to return the flat position of each maximum, too. Default: `False`

    Shape:
        - Input: `(N, C, D, H, W)` or `(C, D, H, W)`.
        - Output: `(N, C, output_size[0], output_size[1], output_size[2])` or
          `(C, output_size[0], output_size[1], output_size[2])`.

    Examples:
        >>> nn.AdaptiveMaxPool3d((2, 3, 2))(torch.randn(2, 4, 6, 8, 6)).shape
        torch.Size([2, 4, 2, 3, 2])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class _AdaptiveAvgPoolNd(Module):
    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Average a sequence down to a given output size (1D adaptive average pooling).

    Args:
        output_size: size of the output.

    Shape:
        - Input: `(N, C, L)` or `(C, L)`.
        - Output: `(N, C, output_size)` or `(C, output_size)`.

    Examples:
        >>> nn.AdaptiveAvgPool1d(3)(torch.randn(2, 4, 10)).shape
        torch.Size([2, 4, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Average an image down to a given output size (2D adaptive average pooling).

    Args:
        output_size: size of the output: one integer for all dimensions, or one for each, `None` to keep the size of
            the input.

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`.
        - Output: `(N, C, output_size[0], output_size[1])` or `(C, output_size[0], output_size[1])`.

    Examples:
        >>> nn.AdaptiveAvgPool2d((3, 2))(torch.randn(2, 4, 8, 6)).shape
        torch.Size([2, 4, 3, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Average a volume down to a given output size (3D adaptive average pooling).

    Args:
        output_size: size of the output: one integer for all dimensions, or one for each, `None` to keep the size of
            the input.

    Shape:
        - Input: `(N, C, D, H, W)` or `(C, D, H, W)`.
        - Output: `(N, C, output_size[0], output_size[1], output_size[2])` or
          `(C, output_size[0], output_size[1], output_size[2])`.

    Examples:
        >>> nn.AdaptiveAvgPool3d((2, 3, 2))(torch.randn(2, 4, 6, 8, 6)).shape
        torch.Size([2, 4, 2, 3, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)
