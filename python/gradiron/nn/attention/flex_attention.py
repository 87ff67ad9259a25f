"""Attention whose scores and mask are functions of the program's own: a composition over the full score matrix."""

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
    """What is wanted beside the result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was wanted."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """Hides nothing."""
    return batch.new_ones((), dtype=_core.bool)


def and_masks(*mask_mods: _Mod) -> _Mod:
    """Shows what all of them show."""

    def mask(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        shown = noop_mask(b, h, q, kv)
        for mod in mask_mods:
            shown = shown & mod(b, h, q, kv)
        return shown

    return mask


def or_masks(*mask_mods: _Mod) -> _Mod:
    """Shows what any of them shows."""

    def mask(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        shown = ~noop_mask(b, h, q, kv)
        for mod in mask_mods:
            shown = shown | mod(b, h, q, kv)
        return shown

    return mask


def create_mask(mod_fn: _Mod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None) -> Tensor:
    """Which positions `mod_fn` shows, as truth values."""
    fn = mod_fn
    for at in (3, 2, 1, 0):
        fn = vmap(fn, in_dims=tuple(0 if i == at else None for i in range(4)))
    return fn(*(_core.arange(n, device=device) for n in (B or 1, H or 1, Q_LEN, KV_LEN)))


class BlockMask:
    """Which positions a function shows."""

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
        """Which blocks show anything."""
        rows, columns = self.BLOCK_SIZE
        pads = (-self.shape[-1] % columns, -self.shape[-2] % rows)
        padded = _core.constant_pad_nd(self._mask.to(_core.int32), [0, pads[0], 0, pads[1]])
        blocks = padded.unflatten(-1, (-1, columns)).unflatten(-3, (-1, rows))
        return blocks.amax((-3, -1))

    def sparsity(self) -> float:
        """How many per cent of the blocks show nothing."""
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
    """The mask of a function of a batch, a head and two positions."""
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
    """Attention with scores that `score_mod` changes, of the positions that the mask shows."""
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
    # A row that sees nothing is zero.
    result = _core.where(lse.isneginf()[..., None], 0.0, scores.softmax(-1)).to(value.dtype) @ value
    if return_aux is not None:
        return result, AuxOutput(lse if return_aux.lse else None, scores.amax(-1) if return_aux.max_scores else None)
    return (result, lse) if return_lse else result
