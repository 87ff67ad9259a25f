"""Multi-head attention as a function, and its masks."""

from __future__ import annotations

import math
import warnings
from typing import Any

from .. import _core
from .._core import Tensor


def _canonical_mask(
    mask: Tensor | None, mask_name: str, other_type: Any, other_name: str, target_type: Any, check_other: bool = True
) -> Tensor | None:
    """Return a mask as floats to add to the scores: minus infinity where a boolean mask is `True`."""
    if mask is None:
        return None
    if mask.dtype != _core.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=2,
        )
    if mask.is_floating_point():
        return mask
    return _core.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _none_or_dtype(input: Tensor | None) -> Any:
    if input is None or isinstance(input, Tensor):
        return None if input is None else input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _need(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)


def _mha_shape_check(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None, num_heads: int
) -> bool:
    """Return whether the tensors have a batch dimension, after checking that they agree."""
    dims = query.dim()
    _need(dims in (2, 3), f"query should be unbatched 2D or batched 3D tensor but received {dims}-D query tensor")
    kind = "batched (3-D)" if dims == 3 else "unbatched (2-D)"
    _need(
        key.dim() == dims and value.dim() == dims,
        f"For {kind} `query`, expected `key` and `value` to be {dims}-D but found {key.dim()}-D and {value.dim()}-D tensors "
        "respectively",
    )
    if key_padding_mask is not None:
        _need(
            key_padding_mask.dim() == dims - 1,
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {dims - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead",
        )
    if attn_mask is not None:
        _need(
            attn_mask.dim() in (2, 3),
            f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor instead",
        )
        expected = (num_heads, query.size(0), key.size(0))
        if dims == 2 and attn_mask.dim() == 3:
            _need(
                tuple(attn_mask.shape) == expected,
                f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}",
            )
    return dims == 3


def _in_projection_packed(q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None) -> list[Tensor]:
    """Project queries, keys and values by one matrix, in one product if they are the same tensor."""
    size = q.size(-1)
    if q is k is v:
        return list(_core._nn.linear(q, w, b).chunk(3, -1))
    if k is v:
        weights = w.split([size, 2 * size])
        biases = (None, None) if b is None else b.split([size, 2 * size])
        return [_core._nn.linear(q, weights[0], biases[0]), *_core._nn.linear(k, weights[1], biases[1]).chunk(2, -1)]
    parts = (None, None, None) if b is None else b.chunk(3)
    return [_core._nn.linear(x, weight, bias) for x, weight, bias in zip((q, k, v), w.chunk(3), parts, strict=True)]


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> list[Tensor]:
    """Project queries, keys and values by separate matrices."""
    size = q.size(-1)
    made = []
    for name, x, weight, bias in (("query", q, w_q, b_q), ("key", k, w_k, b_k), ("value", v, w_v, b_v)):
        shape = (size, x.size(-1))
        _need(tuple(weight.shape) == shape, f"expecting {name} weights shape of {shape}, but got {weight.shape}")
        if bias is not None:
            _need(tuple(bias.shape) == (size,), f"expecting {name} bias shape of {(size,)}, but got {bias.shape}")
        made.append(_core._nn.linear(x, weight, bias))
    return made


def _wider(mask: Tensor | None) -> Tensor | None:
    """Extend a mask by one key, which is visible."""
    return None if mask is None else _core.cat([mask, mask.new_zeros((*mask.shape[:-1], 1))], -1)


def _check_attn_mask(mask: Tensor, batch: int, tgt_len: int, src_len: int) -> Tensor:
    """Return the mask with a dimension for batch and heads."""
    if mask.dim() not in (2, 3):
        raise RuntimeError(f"attn_mask's dimension {mask.dim()} is not supported")
    expected = (tgt_len, src_len) if mask.dim() == 2 else (batch, tgt_len, src_len)
    if tuple(mask.shape) != expected:
        raise RuntimeError(f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {expected}.")
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _projected(
    inputs: list[Tensor], in_weight: Tensor | None, in_bias: Tensor | None, separate: bool, weights: dict[str, Any]
) -> list[Tensor]:
    query, key, value = inputs
    if separate:
        _need(
            key.shape[:2] == value.shape[:2],
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}",
        )
        for name, weight in weights.items():
            _need(weight is not None, f"use_separate_proj_weight is True but {name} is None")
        biases = (None, None, None) if in_bias is None else in_bias.chunk(3)
        return _in_projection(query, key, value, *weights.values(), *biases)
    _need(key.shape == value.shape, f"key shape {key.shape} does not match value shape {value.shape}")
    if in_weight is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    return _in_projection_packed(query, key, value, in_weight, in_bias)


def _merged(mask: Tensor | None, padding: Tensor, bsz: int, num_heads: int, src_len: int) -> Tensor:
    """Combine attention mask and padding mask, for each batch and head."""
    for dim, size in ((0, bsz), (1, src_len)):
        _need(padding.size(dim) == size, f"Expected key_padded_mask.shape[{dim}] to be {size}, but got {padding.size(dim)}")
    spread = padding.reshape((bsz, 1, 1, src_len)).expand((-1, num_heads, -1, -1)).reshape((-1, 1, src_len))
    return spread if mask is None else mask + spread


def _weighed(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float) -> tuple[Tensor, Tensor]:
    """Compute attention and its weights."""
    q = q * math.sqrt(1.0 / float(q.size(-1)))
    scores = _core.bmm(q, k.transpose(-2, -1)) if mask is None else _core.baddbmm(mask, q, k.transpose(-2, -1))
    weights = _core._nn.softmax(scores, dim=-1)
    if dropout_p > 0.0:
        weights = _core._nn.dropout(weights, p=dropout_p)
    return _core.bmm(weights, v), weights


def _per_head(x: Tensor, static: Tensor | None, name: str, batch: int, head_dim: int) -> Tensor:
    """Reshape to batch and heads first; or return the static tensor that is given instead."""
    if static is None:
        return x.reshape((x.size(0), batch, head_dim)).transpose(0, 1)
    for dim, size in ((0, batch), (2, head_dim)):
        _need(static.size(dim) == size, f"expecting {name}.size({dim}) of {size}, but got {static.size(dim)}")
    return static


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Compute multi-head attention, with the projections of queries, keys, values and output.

    `nn.MultiheadAttention` is the module for it.

    Args:
        query, key, value: sequences `(L, N, embed_dim)` and `(S, N, *)`, or without a batch.
        embed_dim_to_check: number of features that the query must have.
        num_heads: number of heads; must divide `embed_dim`.
        in_proj_weight: weight `(3 * embed_dim, embed_dim)` of all three input projections.
        in_proj_bias: their bias.
        bias_k, bias_v: key and value to append to the sequences.
        add_zero_attn: append a key and a value of zeros.
        dropout_p: probability of dropping attention weights.
        out_proj_weight, out_proj_bias: weight and bias of the output projection.
        training: whether to apply dropout. Default: `True`
        key_padding_mask: `(N, S)`; `True` marks padding, floats are added to the scores.
        need_weights: whether to return the attention weights, too. Default: `True`
        attn_mask: `(L, S)` or `(N * num_heads, L, S)`; `True` forbids a position, floats are added to the scores.
        use_separate_proj_weight: whether to use the next three instead of `in_proj_weight`. Default: `False`
        q_proj_weight, k_proj_weight, v_proj_weight: weights of separate input projections.
        static_k, static_v: projected keys and values `(N * num_heads, S, head_dim)` to use instead.
        average_attn_weights: whether to average the weights over the heads. Default: `True`
        is_causal: hint that `attn_mask` is the causal mask. Default: `False`

    Returns:
        The output `(L, N, embed_dim)`, and the weights or `None`.

    Examples:
        >>> x = torch.randn(5, 3, 8)
        >>> w_in, w_out = torch.randn(24, 8), torch.randn(8, 8)
        >>> y, w = F.multi_head_attention_forward(x, x, x, 8, 2, w_in, None, None, None, False, 0.0, w_out, None)
        >>> y.shape, w.shape
        (torch.Size([5, 3, 8]), torch.Size([3, 5, 5]))
    """
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        # Equal tensors stay the same object.
        turned = {id(t): t.unsqueeze(1) for t in (query, key, value)}
        query, key, value = (turned[id(t)] for t in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    tgt_len, bsz, embed_dim = query.shape
    src_len = key.size(0)
    padding = _canonical_mask(key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and padding is None and not need_weights:
        attn_mask = None  # the hint replaces the mask
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        is_causal = False
    _need(
        embed_dim == embed_dim_to_check,
        f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}",
    )
    head_dim = embed_dim // num_heads
    _need(head_dim * num_heads == embed_dim, f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    own = {"q_proj_weight": q_proj_weight, "k_proj_weight": k_proj_weight, "v_proj_weight": v_proj_weight}
    q, k, v = _projected([query, key, value], in_proj_weight, in_proj_bias, use_separate_proj_weight, own)
    if attn_mask is not None:
        attn_mask = _check_attn_mask(attn_mask, bsz * num_heads, tgt_len, src_len)
    if bias_k is not None and bias_v is not None:
        _need(static_k is None, "bias cannot be added to static key.")
        _need(static_v is None, "bias cannot be added to static value.")
        k, v = (_core.cat([x, bias.repeat((1, bsz, 1))]) for x, bias in ((k, bias_k), (v, bias_v)))
        attn_mask, padding = _wider(attn_mask), _wider(padding)
    _need(bias_k is None or bias_v is not None, "bias_k is set but bias_v is None")
    _need(bias_v is None or bias_k is not None, "bias_v is set but bias_k is None")
    q = _per_head(q, None, "", bsz * num_heads, head_dim)
    k = _per_head(k, static_k, "static_k", bsz * num_heads, head_dim)
    v = _per_head(v, static_v, "static_v", bsz * num_heads, head_dim)
    if add_zero_attn:
        k, v = (_core.cat([x, x.new_zeros((bsz * num_heads, 1, head_dim))], 1) for x in (k, v))
        attn_mask, padding = _wider(attn_mask), _wider(padding)
    src_len = k.size(1)
    if padding is not None:
        attn_mask = _merged(attn_mask, padding, bsz, num_heads, src_len)
    weights: Any = None
    if need_weights:
        output, weights = _weighed(q, k, v, attn_mask, dropout_p if training else 0.0)
        weights = weights.reshape((bsz, num_heads, tgt_len, src_len))
        weights = weights.mean(dim=1) if average_attn_weights else weights
        weights = weights if batched else weights.squeeze(0)
        output = output.transpose(0, 1)
    else:
        if attn_mask is not None:
            alone = attn_mask.size(0) == 1
            attn_mask = attn_mask.unsqueeze(0) if alone else attn_mask.reshape((bsz, num_heads, attn_mask.size(1), src_len))
        heads = [x.reshape((bsz, num_heads, x.size(1), head_dim)) for x in (q, k, v)]
        output = _core._nn.scaled_dot_product_attention(*heads, attn_mask, dropout_p if training else 0.0, is_causal)
        output = output.permute((2, 0, 1, 3))
    output = _core._nn.linear(output.reshape((tgt_len * bsz, embed_dim)), out_proj_weight, out_proj_bias)
    output = output.reshape((tgt_len, bsz, output.size(1)))
    return (output if batched else output.squeeze(1)), weights
