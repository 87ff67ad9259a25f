"""Causal attention masks that are known by their shape, without elements."""

from __future__ import annotations

import warnings
from enum import IntEnum
from typing import Any

from ... import _core
from ..._core import Tensor
from ..functional import scaled_dot_product_attention

__all__ = ["causal_upper_left", "causal_lower_right", "CausalVariant", "CausalBias"]  # noqa: RUF022


class CausalVariant(IntEnum):
    """The corner that the diagonal of a causal mask touches, if the mask is not square.

    Examples:
        >>> from gradiron.nn.attention.bias import CausalVariant
        >>> CausalVariant.UPPER_LEFT.value
        1
    """

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask for `attn_mask` of `scaled_dot_product_attention`.

    It is made by `causal_upper_left` or `causal_lower_right`.

    Args:
        variant: a `CausalVariant`.
        seq_len_q: number of queries.
        seq_len_kv: number of keys.

    Examples:
        >>> from gradiron.nn.attention.bias import CausalBias, CausalVariant
        >>> CausalBias(CausalVariant.LOWER_RIGHT, 2, 3)
        tensor([[ True,  True, False],
                [ True,  True,  True]])
    """

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!",
                stacklevel=2,
            )

    def _materialize(self, device: Any = None) -> Tensor:
        """Return the mask as a boolean tensor; `True` is visible."""
        below = 0 if self.variant == CausalVariant.UPPER_LEFT else self.seq_len_kv - self.seq_len_q
        return _core.tril(_core.ones(self.seq_len_q, self.seq_len_kv, dtype=_core.bool, device=device), diagonal=below)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is scaled_dot_product_attention:
            return _attend(*args, **kwargs)
        return super().__torch_function__(func, types, args, kwargs)

    def __repr__(self, *, tensor_contents: Any = None) -> Any:  # type: ignore[override]
        return repr(self._materialize())

    __str__ = __repr__  # type: ignore[assignment]


# Such masks exist only once this module is imported; from now on calls look for them.
_core.expect_overrides(True)


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: CausalBias,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    **options: Any,
) -> Tensor:
    if is_causal:
        raise ValueError("CausalBias should not be used with causal=True")
    begins_alike = attn_mask.variant == CausalVariant.UPPER_LEFT or attn_mask.seq_len_q == attn_mask.seq_len_kv
    mask = None if begins_alike else attn_mask._materialize(query.device)
    return scaled_dot_product_attention(query, key, value, mask, dropout_p, begins_alike, **options)


def causal_upper_left(*size: int) -> CausalBias:
    """Return the causal mask whose diagonal starts in the upper left: query `i` sees the keys up to `i`.

    Args:
        *size: number of queries, and number of keys.

    Examples:
        >>> from gradiron.nn.attention.bias import causal_upper_left
        >>> causal_upper_left(2, 3)
        tensor([[ True, False, False],
                [ True,  True, False]])
    """
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """Return the causal mask whose diagonal ends in the lower right corner: the last query sees all keys.

    Args:
        *size: number of queries, and number of keys.

    Examples:
        >>> from gradiron.nn.attention.bias import causal_lower_right
        >>> causal_lower_right(2, 3)
        tensor([[ True,  True, False],
                [ True,  True,  True]])
    """
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
