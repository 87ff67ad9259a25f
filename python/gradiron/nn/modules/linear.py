"""Linear and bilinear layers."""

from __future__ import annotations

import math
from typing import Any

from ... import _core
from ..._core import Tensor
from ...autograd.grad_mode import no_grad
from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """Return the input unchanged; a placeholder for another layer.

    All arguments of the constructor are accepted and ignored.

    Examples:
        >>> nn.Identity(8, bias=False)(torch.arange(3))
        tensor([0, 1, 2])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """Apply an affine map to the last dimension: `y = x @ weight.T + bias`.

    Weight and bias are drawn uniformly from `[-k, k]` with `k = 1 / sqrt(in_features)`.

    Args:
        in_features: size of the last dimension of the input.
        out_features: size of the last dimension of the output.
        bias: whether to add a learned bias. Default: `True`
        device: device of the parameters.
        dtype: data type of the parameters.

    Shape:
        - Input: `(*, in_features)`, where `*` is any number of dimensions.
        - Output: `(*, out_features)`.

    Examples:
        >>> layer = nn.Linear(4, 3)
        >>> layer(torch.randn(5, 4)).shape
        torch.Size([5, 3])
    """

    in_features: int
    out_features: int
    weight: Tensor

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(_core.empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(_core.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """The output projection of `MultiheadAttention`: a `Linear` that quantization tools leave alone."""


class Bilinear(Module):
    """Apply a bilinear map to two inputs: `y[k] = x1 @ weight[k] @ x2 + bias[k]`.

    Weight and bias are drawn uniformly from `[-k, k]` with `k = 1 / sqrt(in1_features)`.

    Args:
        in1_features: size of the last dimension of the first input.
        in2_features: size of the last dimension of the second input.
        out_features: size of the last dimension of the output.
        bias: whether to add a learned bias. Default: `True`
        device, dtype: device and data type of the parameters.

    Shape:
        - Input1: `(*, in1_features)`, and Input2: `(*, in2_features)` with the same leading dimensions.
        - Output: `(*, out_features)`.

    Examples:
        >>> layer = nn.Bilinear(4, 3, 2)
        >>> layer(torch.randn(5, 4), torch.randn(5, 3)).shape
        torch.Size([5, 2])
    """

    in1_features: int
    in2_features: int
    out_features: int
    weight: Tensor

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(_core.empty((out_features, in1_features, in2_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(_core.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew."""
        if self.in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={self.in1_features})")
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """A `Linear` layer that takes `in_features` from its first input.

    Until the first call its parameters are uninitialized; then it becomes a `Linear`.

    Args:
        out_features: size of the last dimension of the output.
        bias: whether to add a learned bias. Default: `True`
        device, dtype: device and data type of the parameters.

    Examples:
        >>> layer = nn.LazyLinear(3)
        >>> layer(torch.randn(5, 4)).shape
        torch.Size([5, 3])
        >>> layer
        Linear(in_features=4, out_features=3, bias=True)
    """

    cls_to_become = Linear
    weight: Any
    bias: Any

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, once they have their shapes."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Set `in_features` and create the parameters from the size of the first input."""
        found = input.shape[-1]
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = found
                self.weight.materialize((self.out_features, found))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        elif self.in_features == 0:  # loaded from a state dict, which has the shapes
            if found != self.weight.shape[-1]:
                raise AssertionError(
                    f"The in_features inferred from input: {found} is not equal to in_features from self.weight: "
                    f"{self.weight.shape[-1]}"
                )
            self.in_features = found
