"""Activation functions, and multi-head attention."""

from __future__ import annotations

import warnings
from typing import Any

from ... import _core
from ..._core import Tensor
from .. import functional as F
from ..init import constant_, xavier_normal_, xavier_uniform_
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "MultiheadAttention",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


def _noted(text: str, inplace: bool) -> str:
    return ", ".join(filter(None, [text, "inplace=True" if inplace else ""]))


class Threshold(Module):
    """Replace the elements that are not above a threshold by a value.

    `y = x if x > threshold else value`

    Args:
        threshold: elements above it are kept.
        value: what the other elements become.
        inplace: overwrite the input with the result. Default: `False`

    Examples:
        >>> nn.Threshold(0.5, 9.0)(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([9., 9., 2.])
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return _noted(f"threshold={self.threshold}, value={self.value}", self.inplace)


class ReLU(Module):
    """Apply the rectified linear unit: `max(x, 0)`.

    Args:
        inplace: overwrite the input with the result. Default: `False`

    Examples:
        >>> nn.ReLU()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([0., 0., 2.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        return _noted("", self.inplace)


class RReLU(Module):
    """Apply the randomized leaky ReLU, whose negative slope is random in training.

    `y = x if x >= 0 else a * x`, where `a` is drawn for each element uniformly from `[lower, upper]` in training and
    is `(lower + upper) / 2` in evaluation.

    Args:
        lower: lower bound of the slope. Default: `1/8`
        upper: upper bound of the slope. Default: `1/3`
        inplace: overwrite the input with the result. Default: `False`

    Examples:
        >>> nn.RReLU(0.1, 0.3).eval()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-0.4000,  0.0000,  2.0000])
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return _noted(f"lower={self.lower}, upper={self.upper}", self.inplace)


class Hardtanh(Module):
    """Clamp the input between `min_val` and `max_val`.

    Args:
        min_val: lower bound. Default: `-1.0`
        max_val: upper bound. Default: `1.0`
        inplace: overwrite the input with the result. Default: `False`
        min_value: deprecated name of `min_val`.
        max_value: deprecated name of `max_val`.

    Raises:
        AssertionError: if `max_val` is not greater than `min_val`.

    Examples:
        >>> nn.Hardtanh()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-1.,  0.,  1.])
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        for old, given in (("min_value", min_value), ("max_value", max_value)):
            if given is not None:
                warnings.warn(
                    f"keyword argument `{old}` is deprecated and renamed to `{old[:-2]}`", FutureWarning, stacklevel=2
                )
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return _noted(f"min_val={self.min_val}, max_val={self.max_val}", self.inplace)


class ReLU6(Hardtanh):
    """Clamp the input between 0 and 6.

    Args:
        inplace: overwrite the input with the result. Default: `False`

    Examples:
        >>> nn.ReLU6()(torch.tensor([-1.0, 3.0, 8.0]))
        tensor([0., 3., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return _noted("", self.inplace)


class Sigmoid(Module):
    """Apply the logistic sigmoid: `1 / (1 + exp(-x))`.

    Examples:
        >>> nn.Sigmoid()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([0.1192, 0.5000, 0.8808])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.sigmoid(input)


class Hardsigmoid(Module):
    """Apply a piecewise linear approximation of the sigmoid: `clamp(x / 6 + 1/2, 0, 1)`.

    Args:
        inplace: overwrite the input with the result. Default: `False`

    Examples:
        >>> nn.Hardsigmoid()(torch.tensor([-4.0, 0.0, 1.5]))
        tensor([0.0000, 0.5000, 0.7500])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Tanh(Module):
    """Apply the hyperbolic tangent.

    Examples:
        >>> nn.Tanh()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-0.9640,  0.0000,  0.9640])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanh(input)


class SiLU(Module):
    """Apply the sigmoid linear unit, also called swish: `x * sigmoid(x)`.

    Args:
        inplace: overwrite the input with the result. Default: `False`

    Examples:
        >>> nn.SiLU()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-0.2384,  0.0000,  1.7616])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        return _noted("", self.inplace)


class Mish(Module):
    """Apply the Mish activation: `x * tanh(softplus(x))`.

    Args:
        inplace: overwrite the input with the result. Default: `False`

    Examples:
        >>> nn.Mish()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-0.2525,  0.0000,  1.9440])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        return _noted("", self.inplace)


class Hardswish(Module):
    """Apply a piecewise approximation of swish: `x * clamp(x / 6 + 1/2, 0, 1)`.

    Args:
        inplace: overwrite the input with the result. Default: `False`

    Examples:
        >>> nn.Hardswish()(torch.tensor([-4.0, 1.5, 4.0]))
        tensor([-0.0000, 1.1250, 4.0000])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class ELU(Module):
    """Apply the exponential linear unit: `x if x > 0 else alpha * (exp(x) - 1)`.

    Args:
        alpha: the negative of the limit towards minus infinity. Default: `1.0`
        inplace: overwrite the input with the result. Default: `False`

    Examples:
        >>> nn.ELU()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-0.8647,  0.0000,  2.0000])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return _noted(f"alpha={self.alpha}", self.inplace)


class CELU(Module):
    """Apply the continuously differentiable ELU: `x if x > 0 else alpha * (exp(x / alpha) - 1)`.

    Unlike that of `ELU`, its slope at zero is 1 for every `alpha`.

    Args:
        alpha: the negative of the limit towards minus infinity. Default: `1.0`
        inplace: overwrite the input with the result. Default: `False`

    Examples:
        >>> nn.CELU(2.0)(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-1.2642,  0.0000,  2.0000])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return _noted(f"alpha={self.alpha}", self.inplace)


class SELU(Module):
    """Apply the scaled ELU: `scale * (x if x > 0 else alpha * (exp(x) - 1))`.

    With `scale` = 1.0507 and `alpha` = 1.6733, layers keep zero mean and unit variance if their weights are drawn
    with `nn.init.kaiming_normal_(weight, nonlinearity="linear")`.

    Args:
        inplace: overwrite the input with the result. Default: `False`

    Examples:
        >>> nn.SELU()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-1.5202,  0.0000,  2.1014])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)

    def extra_repr(self) -> str:
        return _noted("", self.inplace)


class GLU(Module):
    """Apply the gated linear unit: halve the input into `a` and `b`, and return `a * sigmoid(b)`.

    Args:
        dim: dimension to halve, of even size. Default: `-1`

    Examples:
        >>> nn.GLU()(torch.randn(4, 6)).shape
        torch.Size([4, 3])
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class GELU(Module):
    """Apply the Gaussian error linear unit: `x * P(Z <= x)` for a standard normal `Z`.

    Args:
        approximate: `"none"` for the exact function, or `"tanh"` for
            `x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x**3)))`. Default: `"none"`

    Examples:
        >>> nn.GELU()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-0.0455,  0.0000,  1.9545])
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Hardshrink(Module):
    """Set elements in `[-lambd, lambd]` to zero and keep the others.

    Args:
        lambd: bound below which elements vanish. Default: `0.5`

    Examples:
        >>> nn.Hardshrink()(torch.tensor([-1.0, 0.3, 2.0]))
        tensor([-1.,  0.,  2.])
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class LeakyReLU(Module):
    """Apply the leaky ReLU: `x if x >= 0 else negative_slope * x`.

    Args:
        negative_slope: slope for negative elements. Default: `0.01`
        inplace: overwrite the input with the result. Default: `False`

    Examples:
        >>> nn.LeakyReLU(0.1)(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-0.2000,  0.0000,  2.0000])
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return _noted(f"negative_slope={self.negative_slope}", self.inplace)


class LogSigmoid(Module):
    """Compute the logarithm of the sigmoid, `log(1 / (1 + exp(-x)))`, without overflow.

    Examples:
        >>> nn.LogSigmoid()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-2.1269, -0.6931, -0.1269])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softplus(Module):
    """Apply a smooth approximation of ReLU: `log(1 + exp(beta * x)) / beta`.

    Args:
        beta: sharpness; the larger, the closer to ReLU. Default: `1.0`
        threshold: return `x` itself where `beta * x` exceeds this. Default: `20.0`

    Examples:
        >>> nn.Softplus()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([0.1269, 0.6931, 2.1269])
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softshrink(Module):
    """Move each element towards zero by `lambd`, and set those within `[-lambd, lambd]` to zero.

    Args:
        lambd: how far to move, not negative. Default: `0.5`

    Examples:
        >>> nn.Softshrink()(torch.tensor([-1.0, 0.3, 2.0]))
        tensor([-0.5000,  0.0000,  1.5000])
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class PReLU(Module):
    """Apply a ReLU with a learned slope for negative elements: `x if x >= 0 else weight * x`.

    Weight decay pulls the slopes towards zero, so it is usually switched off for this layer.

    Args:
        num_parameters: number of slopes: 1 for all channels, or the size of dimension 1, the channels. Default: `1`
        init: initial slope. Default: `0.25`
        device, dtype: device and data type of the parameters.

    Examples:
        >>> nn.PReLU()(torch.tensor([-2.0, 0.0, 2.0])).detach()
        tensor([-0.5000,  0.0000,  2.0000])
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        self.num_parameters = num_parameters
        super().__init__()
        self.init = init
        self.weight = Parameter(_core.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set all slopes to `init`."""
        constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softsign(Module):
    """Apply `x / (1 + |x|)`, which lies between -1 and 1.

    Examples:
        >>> nn.Softsign()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-0.6667,  0.0000,  0.6667])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """Compute `x - tanh(x)`.

    Examples:
        >>> nn.Tanhshrink()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-1.0360,  0.0000,  1.0360])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class _AlongDim(Module):
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class _AlongOne(_AlongDim):
    """A layer along a dimension whose type is checked by the constructor."""

    def __init__(self, dim: int | None = None) -> None:
        if dim is not None and type(dim) is not int:
            raise TypeError(f"dim must be an int or None, got {type(dim)}")
        super().__init__(dim)


class Softmin(_AlongDim):
    """Apply softmax to the negative input: `exp(-x) / sum(exp(-x))` along `dim`.

    Args:
        dim: dimension along which the values sum to one. Without it, one is chosen by the number of dimensions, with
            a warning.

    Examples:
        >>> nn.Softmin(dim=0)(torch.tensor([1.0, 2.0, 3.0]))
        tensor([0.6652, 0.2447, 0.0900])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(_AlongOne):
    """Rescale the input to probabilities along `dim`: `exp(x) / sum(exp(x))`.

    For a loss, prefer `CrossEntropyLoss` on logits, or `LogSoftmax` with `NLLLoss`, which are numerically more
    stable.

    Args:
        dim: dimension along which the values sum to one. Without it, one is chosen by the number of dimensions, with
            a warning.

    Examples:
        >>> nn.Softmax(dim=0)(torch.tensor([1.0, 2.0, 3.0]))
        tensor([0.0900, 0.2447, 0.6652])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Apply softmax over the channels at each pixel of an image.

    Examples:
        >>> nn.Softmax2d()(torch.randn(2, 3, 4, 4)).sum(1).shape
        torch.Size([2, 4, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)


class LogSoftmax(_AlongOne):
    """Compute the logarithm of softmax along `dim`, in a numerically stable way.

    Args:
        dim: dimension along which the probabilities sum to one. Without it, one is chosen by the number of
            dimensions, with a warning.

    Examples:
        >>> nn.LogSoftmax(dim=0)(torch.tensor([1.0, 2.0, 3.0]))
        tensor([-2.4076, -1.4076, -0.4076])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)


class MultiheadAttention(Module):
    """Apply multi-head attention: scaled dot-product attention in `num_heads` projected subspaces.

    Each head attends with `softmax(q @ k.T / sqrt(head_dim)) @ v`, where `head_dim = embed_dim // num_heads`; the
    results are concatenated and projected.

    Args:
        embed_dim: size of queries and output.
        num_heads: number of heads; must divide `embed_dim`.
        dropout: probability of dropping attention weights in training. Default: `0.0`
        bias: whether the projections add a bias. Default: `True`
        add_bias_kv: append a learned key and value to the sequences of keys and values. Default: `False`
        add_zero_attn: append a key and a value of zeros. Default: `False`
        kdim: size of keys; `embed_dim` if `None`.
        vdim: size of values; `embed_dim` if `None`.
        batch_first: whether the batch is the first dimension of the tensors instead of the second. Default: `False`
        device, dtype: device and data type of the parameters.

    Shape:
        - Query: `(L, N, embed_dim)`, or `(N, L, embed_dim)` with `batch_first`, or `(L, embed_dim)` without a batch.
        - Key: `(S, N, kdim)` and value: `(S, N, vdim)`, likewise.
        - Output: the shape of the query.
        - Weights: `(N, L, S)`, or `(N, num_heads, L, S)` if they are not averaged.

    Examples:
        >>> attention = nn.MultiheadAttention(8, 2, batch_first=True)
        >>> x = torch.randn(3, 5, 8)
        >>> output, weights = attention(x, x, x)
        >>> output.shape, weights.shape
        (torch.Size([3, 5, 8]), torch.Size([3, 5, 5]))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")

        def new(*shape: int) -> Parameter:
            return Parameter(_core.empty(shape, device=device, dtype=dtype))

        # One weight for all three projections, or three separate ones; those not used are None.
        same = self._qkv_same_embed_dim
        self.register_parameter("q_proj_weight", None if same else new(embed_dim, embed_dim))
        self.register_parameter("k_proj_weight", None if same else new(embed_dim, self.kdim))
        self.register_parameter("v_proj_weight", None if same else new(embed_dim, self.vdim))
        self.register_parameter("in_proj_weight", new(3 * embed_dim, embed_dim) if same else None)
        self.register_parameter("in_proj_bias", new(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.bias_k = new(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = new(1, 1, embed_dim) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            constant_(self.in_proj_bias, 0.0)
            constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                xavier_normal_(bias)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Compute the attention of `query` over `key` and `value`.

        Args:
            query, key, value: the sequences.
            key_padding_mask: `(N, S)`; keys where it is `True` are ignored, or a float mask that is added to the
                scores.
            need_weights: whether to return the attention weights, too; `None` in their place otherwise.
                Default: `True`
            attn_mask: `(L, S)` or `(N * num_heads, L, S)`; `True` forbids a position, floats are added to the scores.
            average_attn_weights: whether to average the weights over the heads. Default: `True`
            is_causal: hint that `attn_mask` is the causal mask. Default: `False`
        """
        batch_first = self.batch_first and query.dim() == 3
        if batch_first:
            # Equal tensors stay the same object, so that one product suffices for their projections.
            turned = {id(t): t.transpose(1, 0) for t in (query, key, value)}
            query, key, value = (turned[id(t)] for t in (query, key, value))
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (output.transpose(1, 0) if batch_first else output), weights
