"""Tables of vectors as functions: rows looked up, one by one or by bags."""

from __future__ import annotations

from .. import _core
from .._core import Tensor
from ..autograd.grad_mode import no_grad


def _shortened(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    """The rows that are looked up get a norm of at most `max_norm`, in place."""
    with no_grad():
        _core.embedding_renorm_(weight, input.contiguous(), max_norm, norm_type)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` that `input` names."""
    if weight.dim() != 2:
        raise RuntimeError("'weight' must be 2-D")
    count = weight.size(0)
    if padding_idx is None:
        padding_idx = -1
    elif not -count <= padding_idx < count:
        raise AssertionError("Padding_idx must be within num_embeddings")
    elif padding_idx < 0:
        padding_idx = padding_idx + count  # `+=` would write to a tensor
    if max_norm is not None:
        # What the look-up will refuse, it refuses before anything is written.
        _core.embedding(_core.zeros((1, 1)), _core.zeros(0, dtype=_core.int64), padding_idx, scale_grad_by_freq, sparse)
        _shortened(weight, input, max_norm, norm_type)
    return _core.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


_MODES = {"sum": 0, "mean": 1, "max": 2}


def _check_mode(mode: str, scale_grad_by_freq: bool, sparse: bool) -> None:
    if mode not in _MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or maxima of bags of rows of `weight`."""
    if weight.dtype == _core.int64 and input.is_floating_point():
        import warnings

        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. "
            "Usage `embedding_bag(weight, input, ...)` is deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        weight, input = input, weight
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the same shape "
            f"as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. "
                f"However, found offsets of type {type(offsets)}"
            )
        count, size = input.shape
        # Bags of nothing all begin at the beginning.
        if size == 0:
            offsets = _core.zeros(count, dtype=_core.int64, device=input.device)
        else:
            offsets = _core.arange(0, count * size, size, device=input.device)
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    _check_mode(mode, scale_grad_by_freq, sparse)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}')."
        )
    share = per_sample_weights
    if max_norm is not None:
        with no_grad():
            # As above.
            _core.embedding_bag(
                weight, input, offsets, scale_grad_by_freq, _MODES[mode], sparse, share, include_last_offset, padding_idx
            )
        _shortened(weight, input, max_norm, norm_type)
    return _core.embedding_bag(
        weight, input, offsets, scale_grad_by_freq, _MODES[mode], sparse, share, include_last_offset, padding_idx
    )[0]
