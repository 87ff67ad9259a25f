"""Convolution and transposed convolution layers."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ... import _core
from ..._core import Tensor
from ...autograd.grad_mode import no_grad
from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module
from .utils import _ntuple, _reverse_repeat_tuple

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]

_STRINGS = ("same", "valid")
_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """The base of all convolution layers; sizes are tuples with one number for each spatial dimension."""

    weight: Any
    bias: Any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in _STRINGS:
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {set(_STRINGS)}")
            if padding == "same" and any(step != 1 for step in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _MODES:
            raise ValueError(f"padding_mode must be one of {set(_MODES)}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._for_pad()
        self.weight = Parameter(_core.empty(self._weight_shape(), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(_core.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _for_pad(self) -> Any:
        """Return the padding as `F.pad` takes it: the last dimension first, both sides of each."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        sides = []
        for step, size in zip(reversed(self.dilation), reversed(self.kernel_size), strict=True):
            total = step * (size - 1) if self.padding == "same" else 0
            sides += [total // 2, total - total // 2]
        return sides

    def _weight_shape(self) -> tuple[int, ...]:
        if self.transposed:
            return (self.in_channels, self.out_channels // self.groups, *self.kernel_size)
        return (self.out_channels, self.in_channels // self.groups, *self.kernel_size)

    def reset_parameters(self) -> None:
        """Draw weight and bias anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        count = len(self.kernel_size)
        conv = getattr(F, f"conv{count}d")
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0,) * count
        return conv(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        count = len(self.kernel_size)
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        # Default values are not shown.
        for name, usual in (
            ("padding", (0,) * len(self.padding)),
            ("dilation", (1,) * count),
            ("output_padding", (0,) * count),
        ):
            if getattr(self, name) != usual:
                parts.append(f"{name}={getattr(self, name)}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _Conv(_ConvNd):
    _spatial: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        each = _ntuple(self._spatial)
        super().__init__(
            in_channels,
            out_channels,
            each(kernel_size),
            each(stride),
            padding if isinstance(padding, str) else each(padding),
            each(dilation),
            False,
            each(0),
            groups,
            bias,
            padding_mode,
            device=device,
            dtype=dtype,
        )

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Convolve a sequence with learned filters (1D convolution, strictly a cross-correlation).

    The weight has the shape `(out_channels, in_channels / groups, kernel_size)`; it and the bias are drawn uniformly
    from `[-k, k]` with `k = sqrt(groups / (in_channels * prod(kernel_size)))`.

    Args:
        in_channels: number of channels of the input.
        out_channels: number of channels of the output, that is, of filters.
        kernel_size: size of the filters.
        stride: step between neighbouring windows. Default: `1`
        padding: number of elements added on both sides of each dimension, or `"valid"` for none, or `"same"` for as
            many as keep the size, with stride 1. Default: `0`
        dilation: spacing between filter elements. Default: `1`
        groups: number of groups of channels that are convolved separately; must divide both numbers of channels.
            Default: `1`
        bias: whether to add a learned bias to each output channel. Default: `True`
        padding_mode: what to pad with: `"zeros"`, `"reflect"`, `"replicate"` or `"circular"`. Default: `"zeros"`
        device, dtype: device and data type of the parameters.

    Shape:
        - Input: `(N, in_channels, L)` or `(in_channels, L)`.
        - Output: `(N, out_channels, L_out)` or `(out_channels, L_out)`, each size
          `floor((size + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1)`.

    Examples:
        >>> layer = nn.Conv1d(4, 8, 3, stride=2)
        >>> layer(torch.randn(2, 4, 10)).shape
        torch.Size([2, 8, 4])
    """

    _spatial = 1


class Conv2d(_Conv):
    """Convolve an image with learned filters (2D convolution, strictly a cross-correlation).

    The weight has the shape `(out_channels, in_channels / groups, kernel_size[0], kernel_size[1])`; it and the bias
    are drawn uniformly from `[-k, k]` with `k = sqrt(groups / (in_channels * prod(kernel_size)))`. Sizes are one
    integer, or one for each of the two dimensions.

    Args:
        in_channels: number of channels of the input.
        out_channels: number of channels of the output, that is, of filters.
        kernel_size: size of the filters.
        stride: step between neighbouring windows. Default: `1`
        padding: number of elements added on both sides of each dimension, or `"valid"` for none, or `"same"` for as
            many as keep the size, with stride 1. Default: `0`
        dilation: spacing between filter elements. Default: `1`
        groups: number of groups of channels that are convolved separately; must divide both numbers of channels.
            Default: `1`
        bias: whether to add a learned bias to each output channel. Default: `True`
        padding_mode: what to pad with: `"zeros"`, `"reflect"`, `"replicate"` or `"circular"`. Default: `"zeros"`
        device, dtype: device and data type of the parameters.

    Shape:
        - Input: `(N, in_channels, H, W)` or `(in_channels, H, W)`.
        - Output: `(N, out_channels, H_out, W_out)` or `(out_channels, H_out, W_out)`, each size
          `floor((size + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1)`.

    Examples:
        >>> layer = nn.Conv2d(4, 8, 3, stride=2)
        >>> layer(torch.randn(2, 4, 10, 12)).shape
        torch.Size([2, 8, 4, 5])
    """

    _spatial = 2


class Conv3d(_Conv):
    """Convolve a volume with learned filters (3D convolution, strictly a cross-correlation).

    The weight has the shape `(out_channels, in_channels / groups, kernel_size[0], kernel_size[1], kernel_size[2])`;
    it and the bias are drawn uniformly from `[-k, k]` with `k = sqrt(groups / (in_channels * prod(kernel_size)))`.
    Sizes are one integer, or one for each of the three dimensions.

    Args:
        in_channels: number of channels of the input.
        out_channels: number of channels of the output, that is, of filters.
        kernel_size: size of the filters.
        stride: step between neighbouring windows. Default: `1`
        padding: number of elements added on both sides of each dimension, or `"valid"` for none, or `"same"` for as
            many as keep the size, with stride 1. Default: `0`
        dilation: spacing between filter elements. Default: `1`
        groups: number of groups of channels that are convolved separately; must divide both numbers of channels.
            Default: `1`
        bias: whether to add a learned bias to each output channel. Default: `True`
        padding_mode: what to pad with: `"zeros"`, `"reflect"`, `"replicate"` or `"circular"`. Default: `"zeros"`
        device, dtype: device and data type of the parameters.

    Shape:
        - Input: `(N, in_channels, D, H, W)` or `(in_channels, D, H, W)`.
        - Output: `(N, out_channels, D_out, H_out, W_out)` or `(out_channels, D_out, H_out, W_out)`, each size
          `floor((size + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1)`.

    Examples:
        >>> layer = nn.Conv3d(4, 8, 3, stride=2)
        >>> layer(torch.randn(2, 4, 6, 8, 10)).shape
        torch.Size([2, 8, 2, 3, 4])
    """

    _spatial = 3


class _ConvTransposeNd(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        transposed: bool,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            transposed,
            output_padding,
            groups,
            bias,
            padding_mode,
            device=device,
            dtype=dtype,
        )

    def _output_padding(
        self,
        input: Tensor,
        output_size: Any,
        stride: Any,
        padding: Any,
        kernel_size: Any,
        num_spatial_dims: int,
        dilation: Any = None,
    ) -> Any:
        """Return the `output_padding` that gives the requested output size."""
        if output_size is None:
            return self.output_padding
        before = input.dim() - num_spatial_dims
        wanted = list(output_size)
        if len(wanted) == before + num_spatial_dims:
            wanted = wanted[before:]
        if len(wanted) != num_spatial_dims:
            raise ValueError(
                f"ConvTranspose{num_spatial_dims}D: for {input.dim()}D input, output_size must have {num_spatial_dims} or "
                f"{before + num_spatial_dims} elements (got {len(wanted)})"
            )
        smallest = [
            (input.size(before + d) - 1) * stride[d]
            - 2 * padding[d]
            + (1 if dilation is None else dilation[d]) * (kernel_size[d] - 1)
            + 1
            for d in range(num_spatial_dims)
        ]
        largest = [size + step - 1 for size, step in zip(smallest, stride, strict=True)]
        if any(not low <= size <= high for low, size, high in zip(smallest, wanted, largest, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size[-num_spatial_dims:]}, but valid sizes range from {smallest} to "
                f"{largest} (for an input of {input.size()[2:]})"
            )
        return [size - low for size, low in zip(wanted, smallest, strict=True)]


class _ConvTranspose(_ConvTransposeNd):
    _spatial: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        each = _ntuple(self._spatial)
        super().__init__(
            in_channels,
            out_channels,
            each(kernel_size),
            each(stride),
            each(padding),
            each(dilation),
            True,
            each(output_padding),
            groups,
            bias,
            padding_mode,
            device=device,
            dtype=dtype,
        )

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        if self.padding_mode != "zeros":
            raise ValueError(f"Only `zeros` padding mode is supported for ConvTranspose{self._spatial}d")
        extra = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, self._spatial, self.dilation
        )
        conv = getattr(F, f"conv_transpose{self._spatial}d")
        return conv(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)


class ConvTranspose1d(_ConvTranspose):
    """Apply the transpose of a 1D convolution to a sequence, which upsamples it (deconvolution).

    It maps shapes as the gradient of a `Conv1d` with the same options does. Pass `output_size` to the call to choose
    among the output sizes that a stride above 1 allows. The weight has the shape
    `(in_channels, out_channels / groups, kernel_size)`.

    Args:
        in_channels: number of channels of the input.
        out_channels: number of channels of the output.
        kernel_size: size of the filters.
        stride: step between the windows in the output; it enlarges the output. Default: `1`
        padding: number of elements cut off on both sides of each dimension of the output. Default: `0`
        output_padding: size added to one side of each dimension of the output. Default: `0`
        groups: number of groups of channels that are convolved separately; must divide both numbers of channels.
            Default: `1`
        bias: whether to add a learned bias to each output channel. Default: `True`
        dilation: spacing between filter elements. Default: `1`
        padding_mode: only `"zeros"` is supported. Default: `"zeros"`
        device, dtype: device and data type of the parameters.

    Shape:
        - Input: `(N, in_channels, L)` or `(in_channels, L)`.
        - Output: `(N, out_channels, L_out)` or `(out_channels, L_out)`, each size
          `(size - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1`.

    Examples:
        >>> layer = nn.ConvTranspose1d(4, 8, 3, stride=2)
        >>> layer(torch.randn(2, 4, 10)).shape
        torch.Size([2, 8, 21])
    """

    _spatial = 1


class ConvTranspose2d(_ConvTranspose):
    """Apply the transpose of a 2D convolution to an image, which upsamples it (deconvolution).

    It maps shapes as the gradient of a `Conv2d` with the same options does. Pass `output_size` to the call to choose
    among the output sizes that a stride above 1 allows. The weight has the shape
    `(in_channels, out_channels / groups, kernel_size[0], kernel_size[1])`. Sizes are one integer, or one for each of
    the two dimensions.

    Args:
        in_channels: number of channels of the input.
        out_channels: number of channels of the output.
        kernel_size: size of the filters.
        stride: step between the windows in the output; it enlarges the output. Default: `1`
        padding: number of elements cut off on both sides of each dimension of the output. Default: `0`
        output_padding: size added to one side of each dimension of the output. Default: `0`
        groups: number of groups of channels that are convolved separately; must divide both numbers of channels.
            Default: `1`
        bias: whether to add a learned bias to each output channel. Default: `True`
        dilation: spacing between filter elements. Default: `1`
        padding_mode: only `"zeros"` is supported. Default: `"zeros"`
        device, dtype: device and data type of the parameters.

    Shape:
        - Input: `(N, in_channels, H, W)` or `(in_channels, H, W)`.
        - Output: `(N, out_channels, H_out, W_out)` or `(out_channels, H_out, W_out)`, each size
          `(size - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1`.

    Examples:
        >>> layer = nn.ConvTranspose2d(4, 8, 3, stride=2)
        >>> layer(torch.randn(2, 4, 10, 12)).shape
        torch.Size([2, 8, 21, 25])
    """

    _spatial = 2


class ConvTranspose3d(_ConvTranspose):
    """Apply the transpose of a 3D convolution to a volume, which upsamples it (deconvolution).

    It maps shapes as the gradient of a `Conv3d` with the same options does. Pass `output_size` to the call to choose
    among the output sizes that a stride above 1 allows. The weight has the shape
    `(in_channels, out_channels / groups, kernel_size[0], kernel_size[1], kernel_size[2])`. Sizes are one integer, or
    one for each of the three dimensions.

    Args:
        in_channels: number of channels of the input.
        out_channels: number of channels of the output.
        kernel_size: size of the filters.
        stride: step between the windows in the output; it enlarges the output. Default: `1`
        padding: number of elements cut off on both sides of each dimension of the output. Default: `0`
        output_padding: size added to one side of each dimension of the output. Default: `0`
        groups: number of groups of channels that are convolved separately; must divide both numbers of channels.
            Default: `1`
        bias: whether to add a learned bias to each output channel. Default: `True`
        dilation: spacing between filter elements. Default: `1`
        padding_mode: only `"zeros"` is supported. Default: `"zeros"`
        device, dtype: device and data type of the parameters.

    Shape:
        - Input: `(N, in_channels, D, H, W)` or `(in_channels, D, H, W)`.
        - Output: `(N, out_channels, D_out, H_out, W_out)` or `(out_channels, D_out, H_out, W_out)`, each size
          `(size - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1`.

    Examples:
        >>> layer = nn.ConvTranspose3d(4, 8, 3, stride=2)
        >>> layer(torch.randn(2, 4, 6, 8, 10)).shape
        torch.Size([2, 8, 13, 17, 21])
    """

    _spatial = 3


class _ConvTransposeMixin(_ConvTransposeNd):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            "`_ConvTransposeMixin` is a deprecated internal class. Please consider using public APIs.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(*args, **kwargs)


class _LazyConvXdMixin(LazyModuleMixin):
    """What lazy convolutions share: `in_channels` comes from the first input."""

    def _wait(self: Any, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self: Any) -> None:
        """Draw weight and bias anew, once they have their shapes."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self: Any, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Set `in_channels` and create the parameters from the size of the first input."""
        if not self.has_uninitialized_params():
            return
        with no_grad():
            self.in_channels = self._get_in_channels(input)
            if self.in_channels % self.groups:
                raise ValueError("in_channels must be divisible by groups")
            self.weight.materialize(self._weight_shape())
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()

    def _get_in_channels(self: Any, input: Tensor) -> int:
        count = self._get_num_spatial_dims() + 1
        if input.dim() not in (count, count + 1):
            raise RuntimeError(
                f"Expected {count}D (unbatched) or {count + 1}D (batched) input to {type(self).__name__}, but got input of "
                f"size: {input.shape}"
            )
        return input.shape[-count]

    def _get_num_spatial_dims(self: Any) -> int:
        return self._spatial


class _LazyConv(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._wait(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A `Conv1d` layer that takes `in_channels` from its first input.

    Until the first call its parameters are uninitialized; then it becomes a `Conv1d`.

    Args:
        out_channels: number of channels of the output, that is, of filters.
        kernel_size: size of the filters.
        stride: step between neighbouring windows. Default: `1`
        padding: number of elements added on both sides of each dimension, or `"valid"` for none, or `"same"` for as
            many as keep the size, with stride 1. Default: `0`
        dilation: spacing between filter elements. Default: `1`
        groups: number of groups of channels that are convolved separately; must divide both numbers of channels.
            Default: `1`
        bias: whether to add a learned bias to each output channel. Default: `True`
        padding_mode: what to pad with: `"zeros"`, `"reflect"`, `"replicate"` or `"circular"`. Default: `"zeros"`
        device, dtype: device and data type of the parameters.

    Examples:
        >>> layer = nn.LazyConv1d(8, 3)
        >>> layer(torch.randn(2, 4, 10)).shape
        torch.Size([2, 8, 8])
        >>> layer.in_channels
        4
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A `Conv2d` layer that takes `in_channels` from its first input.

    Until the first call its parameters are uninitialized; then it becomes a `Conv2d`.

    Args:
        out_channels: number of channels of the output, that is, of filters.
        kernel_size: size of the filters.
        stride: step between neighbouring windows. Default: `1`
        padding: number of elements added on both sides of each dimension, or `"valid"` for none, or `"same"` for as
            many as keep the size, with stride 1. Default: `0`
        dilation: spacing between filter elements. Default: `1`
        groups: number of groups of channels that are convolved separately; must divide both numbers of channels.
            Default: `1`
        bias: whether to add a learned bias to each output channel. Default: `True`
        padding_mode: what to pad with: `"zeros"`, `"reflect"`, `"replicate"` or `"circular"`. Default: `"zeros"`
        device, dtype: device and data type of the parameters.

    Examples:
        >>> layer = nn.LazyConv2d(8, 3)
        >>> layer(torch.randn(2, 4, 10, 12)).shape
        torch.Size([2, 8, 8, 10])
        >>> layer.in_channels
        4
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A `Conv3d` layer that takes `in_channels` from its first input.

    Until the first call its parameters are uninitialized; then it becomes a `Conv3d`.

    Args:
        out_channels: number of channels of the output, that is, of filters.
        kernel_size: size of the filters.
        stride: step between neighbouring windows. Default: `1`
        padding: number of elements added on both sides of each dimension, or `"valid"` for none, or `"same"` for as
            many as keep the size, with stride 1. Default: `0`
        dilation: spacing between filter elements. Default: `1`
        groups: number of groups of channels that are convolved separately; must divide both numbers of channels.
            Default: `1`
        bias: whether to add a learned bias to each output channel. Default: `True`
        padding_mode: what to pad with: `"zeros"`, `"reflect"`, `"replicate"` or `"circular"`. Default: `"zeros"`
        device, dtype: device and data type of the parameters.

    Examples:
        >>> layer = nn.LazyConv3d(8, 3)
        >>> layer(torch.randn(2, 4, 6, 8, 10)).shape
        torch.Size([2, 8, 4, 6, 8])
        >>> layer.in_channels
        4
    """

    cls_to_become = Conv3d


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype
        )
        self._wait(out_channels, bias, device, dtype)


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A `ConvTranspose1d` layer that takes `in_channels` from its first input.

    Until the first call its parameters are uninitialized; then it becomes a `ConvTranspose1d`.

    Args:
        out_channels: number of channels of the output.
        kernel_size: size of the filters.
        stride: step between the windows in the output; it enlarges the output. Default: `1`
        padding: number of elements cut off on both sides of each dimension of the output. Default: `0`
        output_padding: size added to one side of each dimension of the output. Default: `0`
        groups: number of groups of channels that are convolved separately; must divide both numbers of channels.
            Default: `1`
        bias: whether to add a learned bias to each output channel. Default: `True`
        dilation: spacing between filter elements. Default: `1`
        padding_mode: only `"zeros"` is supported. Default: `"zeros"`
        device, dtype: device and data type of the parameters.

    Examples:
        >>> layer = nn.LazyConvTranspose1d(8, 3)
        >>> layer(torch.randn(2, 4, 10)).shape
        torch.Size([2, 8, 12])
        >>> layer.in_channels
        4
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A `ConvTranspose2d` layer that takes `in_channels` from its first input.

    Until the first call its parameters are uninitialized; then it becomes a `ConvTranspose2d`.

    Args:
        out_channels: number of channels of the output.
        kernel_size: size of the filters.
        stride: step between the windows in the output; it enlarges the output. Default: `1`
        padding: number of elements cut off on both sides of each dimension of the output. Default: `0`
        output_padding: size added to one side of each dimension of the output. Default: `0`
        groups: number of groups of channels that are convolved separately; must divide both numbers of channels.
            Default: `1`
        bias: whether to add a learned bias to each output channel. Default: `True`
        dilation: spacing between filter elements. Default: `1`
        padding_mode: only `"zeros"` is supported. Default: `"zeros"`
        device, dtype: device and data type of the parameters.

    Examples:
        >>> layer = nn.LazyConvTranspose2d(8, 3)
        >>> layer(torch.randn(2, 4, 10, 12)).shape
        torch.Size([2, 8, 12, 14])
        >>> layer.in_channels
        4
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A `ConvTranspose3d` layer that takes `in_channels` from its first input.

    Until the first call its parameters are uninitialized; then it becomes a `ConvTranspose3d`.

    Args:
        out_channels: number of channels of the output.
        kernel_size: size of the filters.
        stride: step between the windows in the output; it enlarges the output. Default: `1`
        padding: number of elements cut off on both sides of each dimension of the output. Default: `0`
        output_padding: size added to one side of each dimension of the output. Default: `0`
        groups: number of groups of channels that are convolved separately; must divide both numbers of channels.
            Default: `1`
        bias: whether to add a learned bias to each output channel. Default: `True`
        dilation: spacing between filter elements. Default: `1`
        padding_mode: only `"zeros"` is supported. Default: `"zeros"`
        device, dtype: device and data type of the parameters.

    Examples:
        >>> layer = nn.LazyConvTranspose3d(8, 3)
        >>> layer(torch.randn(2, 4, 6, 8, 10)).shape
        torch.Size([2, 8, 8, 10, 12])
        >>> layer.in_channels
        4
    """

    cls_to_become = ConvTranspose3d
