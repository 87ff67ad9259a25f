"""Attention with user-defined functions of scores and masks, computed from the full score matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ... import _core
from ..._core import Tensor
from ...func import vmap

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

_DEFAULT_SPARSE_BLOCK_SIZE = 128
_Mod = Callable[..., Tensor]


class AuxRequest(NamedTuple):
    """Additional results to request from `flex_attention`.

    Args:
        lse: whether to return the log-sum-exp of the scores. Default: `False`
        max_scores: whether to return the largest scores. Default: `False`

    Examples:
        >>> from gradiron.nn.attention.flex_attention import AuxRequest
        >>> AuxRequest(lse=True)
        AuxRequest(lse=True, max_scores=False)
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """Additional results of `flex_attention`; `None` for those not requested.

    Args:
        lse: log-sum-exp of the scores of each query.
        max_scores: largest score of each query.

    Examples:
        >>> from gradiron.nn.attention.flex_attention import AuxOutput
        >>> AuxOutput()
        AuxOutput(lse=None, max_scores=None)
    """

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """Mask function under which every key is visible.

    Args:
        batch, head, token_q, token_kv: indices of batch, head, query and key.

    Examples:
        >>> from gradiron.nn.attention.flex_attention import create_mask, noop_mask
        >>> create_mask(noop_mask, None, None, 2, 2).all()
        tensor(True)
    """
    return batch.new_ones((), dtype=_core.bool)


def and_masks(*mask_mods: _Mod) -> _Mod:
    """Return a mask function that is true where all of the given ones are.

    Args:
        *mask_mods: functions of the indices of batch, head, query and key.

    Examples:
        >>> from gradiron.nn.attention.flex_attention import and_masks, create_mask
        >>> mask = and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 2)
        >>> create_mask(mask, None, None, 3, 3)[0, 0].sum()
        tensor(5)
    """

    def mask(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        shown = noop_mask(b, h, q, kv)
        for mod in mask_mods:
            shown = shown & mod(b, h, q, kv)
        return shown

    return mask


def or_masks(*mask_mods: _Mod) -> _Mod:
    """Return a mask function that is true where any of the given ones is.

    Args:
        *mask_mods: functions of the indices of batch, head, query and key.

    Examples:
        >>> from gradiron.nn.attention.flex_attention import or_masks, create_mask
        >>> mask = or_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 2)
        >>> create_mask(mask, None, None, 3, 3)[0, 0].sum()
        tensor(9)
    """

    def mask(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        shown = ~noop_mask(b, h, q, kv)
        for mod in mask_mods:
            shown = shown | mod(b, h, q, kv)
        return shown

    return mask


def create_mask(mod_fn: _Mod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None) -> Tensor:
    """Return the boolean tensor `(B, H, Q_LEN, KV_LEN)` of a mask function.

    Args:
        mod_fn: function of the indices of batch, head, query and key; true where the key is visible.
        B: batch size; 1 if `None`.
        H: number of heads; 1 if `None`.
        Q_LEN: number of queries.
        KV_LEN: number of keys.
        device: device of the mask.

    Examples:
        >>> from gradiron.nn.attention.flex_attention import create_mask
        >>> create_mask(lambda b, h, q, k: q >= k, None, None, 2, 2)
        tensor([[[[ True, False],
                  [ True,  True]]]])
    """
    fn = mod_fn
    for at in (3, 2, 1, 0):
        fn = vmap(fn, in_dims=tuple(0 if i == at else None for i in range(4)))
    return fn(*(_core.arange(n, device=device) for n in (B or 1, H or 1, Q_LEN, KV_LEN)))


class BlockMask:
    """The mask of a mask function, for `flex_attention`; made by `create_block_mask`.

    Args:
        mask_mod: the mask function.
        mask: its boolean tensor `(B, H, Q_LEN, KV_LEN)`.
        block_size: numbers of queries and of keys in a block.

    Examples:
        >>> from gradiron.nn.attention.flex_attention import create_block_mask
        >>> create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256)
        BlockMask(shape=(1, 1, 256, 256), sparsity=25.00%)
    """

    def __init__(self, mask_mod: _Mod, mask: Tensor, block_size: tuple[int, int]) -> None:
        self.mask_mod, self.BLOCK_SIZE = mask_mod, block_size
        self._mask = mask

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._mask.shape)

    @property
    def seq_lengths(self) -> tuple[int, ...]:
        return self.shape[-2:]

    def to_dense(self) -> Tensor:
        """Return which blocks have a visible key, as integers."""
        rows, columns = self.BLOCK_SIZE
        pads = (-self.shape[-1] % columns, -self.shape[-2] % rows)
        padded = _core.constant_pad_nd(self._mask.to(_core.int32), [0, pads[0], 0, pads[1]])
        blocks = padded.unflatten(-1, (-1, columns)).unflatten(-3, (-1, rows))
        return blocks.amax((-3, -1))

    def sparsity(self) -> float:
        """Return the percentage of blocks without a visible key."""
        return 100.0 * (1.0 - self.to_dense().to(_core.float32).mean().item())

    def to(self, device: Any) -> BlockMask:
        return BlockMask(self.mask_mod, self._mask.to(device), self.BLOCK_SIZE)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def create_block_mask(
    mask_mod: _Mod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    **options: Any,
) -> BlockMask:
    """Return the `BlockMask` of a mask function.

    Args:
        mask_mod: function of the indices of batch, head, query and key; true where the key is visible.
        B: batch size; 1 if `None`.
        H: number of heads; 1 if `None`.
        Q_LEN: number of queries.
        KV_LEN: number of keys.
        device: device of the mask.
        BLOCK_SIZE: size of the blocks: one number, or numbers of queries and keys. Default: `128`
        **options: further options of PyTorch, without effect.

    Examples:
        >>> from gradiron.nn.attention.flex_attention import create_block_mask
        >>> create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256).shape
        (1, 1, 256, 256)
    """
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    return BlockMask(mask_mod, create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device), size)


def _scored(score_mod: _Mod, scores: Tensor) -> Tensor:
    for_keys = vmap(score_mod, in_dims=(0, None, None, None, 0))
    for_queries = vmap(for_keys, in_dims=(0, None, None, 0, None))
    for_heads = vmap(for_queries, in_dims=(0, None, 0, None, None))
    for_batches = vmap(for_heads, in_dims=(0, 0, None, None, None))
    return for_batches(scores, *(_core.arange(n, device=scores.device) for n in scores.shape))


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: _Mod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Compute attention with user-defined changes to scores and mask.

    Args:
        query: queries `(B, H, L, E)`.
        key, value: keys `(B, H, S, E)` and values `(B, H, S, Ev)`.
        score_mod: function of a score and the indices of batch, head, query and key, that returns the new score.
        block_mask: mask from `create_block_mask`.
        scale: factor of the scores; `1 / sqrt(E)` if `None`.
        enable_gqa: whether keys and values may have fewer heads, each for several query heads. Default: `False`
        return_lse: whether to return the log-sum-exp of the scores, too. Default: `False`
        kernel_options: has no effect.
        return_aux: an `AuxRequest`; an `AuxOutput` is then returned, too.

    Examples:
        >>> from gradiron.nn.attention.flex_attention import flex_attention
        >>> q = torch.randn(1, 2, 4, 8)
        >>> flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: s - (i - j).abs()).shape
        torch.Size([1, 2, 4, 8])
    """
    heads, shared = query.shape[-3], key.shape[-3]
    if not enable_gqa and heads != shared:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={shared}. "
            "Try setting enable_gqa=True for GQA."
        )
    if heads != shared:
        key, value = (x.repeat_interleave(heads // shared, dim=-3) for x in (key, value))
    scores = (query @ key.mT) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if score_mod is not None:
        scores = _scored(score_mod, scores)
    if block_mask is not None:
        scores = _core.where(block_mask._mask, scores, -math.inf)
    lse = scores.logsumexp(-1)
    # A query without visible keys gives zeros.
    result = _core.where(lse.isneginf()[..., None], 0.0, scores.softmax(-1)).to(value.dtype) @ value
    if return_aux is not None:
        return result, AuxOutput(lse if return_aux.lse else None, scores.amax(-1) if return_aux.max_scores else None)
    return (result, lse) if return_lse else result
