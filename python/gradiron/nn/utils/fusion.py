"""Fusion of a convolution or linear layer with the batch normalization after it, for evaluation."""

from __future__ import annotations

import copy
from typing import Any

from ... import _core
from ..._core import Tensor
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _check(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")


def _need_statistics(bn: Any) -> None:
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Return a copy of a convolution that includes the batch normalization after it.

    Both must be in evaluation mode.

    Args:
        conv: the convolution.
        bn: the batch normalization.
        transpose: whether the convolution is a transposed one. Default: `False`

    Examples:
        >>> conv, bn = nn.Conv2d(3, 4, 3).eval(), nn.BatchNorm2d(4).eval()
        >>> x = torch.randn(1, 3, 5, 5)
        >>> torch.allclose(nn.utils.fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)), atol=1e-6)
        True
    """
    _check(conv, bn)
    fused = copy.deepcopy(conv)
    _need_statistics(bn)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of a convolution that includes the batch normalization after it.

    Args:
        conv_w, conv_b: weight and bias of the convolution; the bias may be `None`.
        bn_rm, bn_rv: running mean and variance of the normalization.
        bn_eps: its `eps`.
        bn_w, bn_b: its weight and bias, which may be `None`.
        transpose: whether the convolution is a transposed one. Default: `False`

    Examples:
        >>> zeros, ones = torch.zeros(4), torch.ones(4)
        >>> weight, bias = nn.utils.fuse_conv_bn_weights(torch.randn(4, 3, 3, 3), None, zeros, ones, 1e-5, ones, zeros)
        >>> weight.shape, bias.shape
        (torch.Size([4, 3, 3, 3]), torch.Size([4]))
    """
    bias = _core.zeros_like(bn_rm) if conv_b is None else conv_b
    bias_kind = conv_w.dtype if conv_b is None else conv_b.dtype
    scale = _core.rsqrt(bn_rv + bn_eps)
    scale = scale if bn_w is None else scale * bn_w
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    weight = (conv_w * scale.reshape(shape)).to(conv_w.dtype)
    shifted = (bias - bn_rm) * scale
    shifted = shifted if bn_b is None else shifted + bn_b
    return Parameter(weight, conv_w.requires_grad), Parameter(shifted.to(bias_kind), bias.requires_grad)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Return a copy of a linear layer that includes the batch normalization after it.

    Both must be in evaluation mode.

    Args:
        linear: the linear layer.
        bn: the batch normalization.

    Examples:
        >>> linear, bn = nn.Linear(3, 4).eval(), nn.BatchNorm1d(4).eval()
        >>> x = torch.randn(2, 3)
        >>> torch.allclose(nn.utils.fuse_linear_bn_eval(linear, bn)(x), bn(linear(x)), atol=1e-6)
        True
    """
    _check(linear, bn)
    fused = copy.deepcopy(linear)
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    _need_statistics(bn)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of a linear layer that includes the batch normalization after it.

    Args:
        linear_w, linear_b: weight and bias of the linear layer; the bias may be `None`.
        bn_rm, bn_rv: running mean and variance of the normalization.
        bn_eps: its `eps`.
        bn_w, bn_b: its weight and bias.

    Examples:
        >>> zeros, ones = torch.zeros(4), torch.ones(4)
        >>> weight, bias = nn.utils.fuse_linear_bn_weights(torch.randn(4, 3), None, zeros, ones, 1e-5, ones, zeros)
        >>> weight.shape, bias.shape
        (torch.Size([4, 3]), torch.Size([4]))
    """
    bias = _core.zeros_like(bn_rm) if linear_b is None else linear_b
    bias_kind = linear_w.dtype if linear_b is None else linear_b.dtype
    scale = bn_w * _core.rsqrt(bn_rv + bn_eps)
    weight = linear_w * scale.unsqueeze(-1).to(linear_w.dtype)
    shifted = ((bias - bn_rm) * scale + bn_b).to(bias_kind)
    return Parameter(weight, linear_w.requires_grad), Parameter(shifted, bias.requires_grad)
