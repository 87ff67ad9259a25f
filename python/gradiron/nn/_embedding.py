"""Look-up of embedding vectors as functions."""

from __future__ import annotations

from .. import _core
from .._core import Tensor
from ..autograd.grad_mode import no_grad


def _shortened(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows that are looked up down to a norm of at most `max_norm`, in place."""
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
    """Look up rows of a table of embedding vectors by index.

    Args:
        input: integer indices of any shape.
        weight: table `(num_embeddings, embedding_dim)`.
        padding_idx: row of the padding, which gets no gradient.
        max_norm: bound to which rows with a larger norm are scaled down, in place, when they are looked up.
        norm_type: exponent of that norm. Default: `2.0`
        scale_grad_by_freq: divide the gradient of a row by its number of occurrences in the batch. Default: `False`
        sparse: whether the gradient of `weight` is a sparse tensor, for `SparseAdam`, `SGD` and `Adagrad`. Default: `False`

    Examples:
        >>> F.embedding(torch.tensor([[1, 2], [4, 9]]), torch.randn(10, 3)).shape
        torch.Size([2, 2, 3])
    """
    if weight.dim() != 2:
        raise RuntimeError("'weight' must be 2-D")
    count = weight.size(0)
    if padding_idx is None:
        padding_idx = -1
    elif not -count <= padding_idx < count:
        raise AssertionError("Padding_idx must be within num_embeddings")
    elif padding_idx < 0:
        padding_idx = padding_idx + count  # `+=` would modify a tensor in place
    if max_norm is not None:
        # Errors of the look-up are raised before anything is written.
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
    """Look up bags of embedding vectors and reduce each bag to its sum, mean or maximum.

    Args:
        input: integer indices: `(B, N)` for bags of `N`, or `(N,)` with offsets.
        weight: table `(num_embeddings, embedding_dim)`.
        offsets: `(B,)`, the positions in a 1D input where bags start.
        max_norm: bound to which rows with a larger norm are scaled down, in place, when they are looked up.
        norm_type: exponent of that norm. Default: `2`
        scale_grad_by_freq: divide the gradient of a row by its number of occurrences in the batch. Default: `False`
        mode: `"sum"`, `"mean"` or `"max"`. Default: `"mean"`
        sparse: whether the gradient of `weight` is a sparse tensor, for `SparseAdam`, `SGD` and `Adagrad`. Default: `False`
        per_sample_weights: factors of the rows, of the shape of the input; only for `"sum"`.
        include_last_offset: whether the last offset is the length of the input instead of the start of a bag.
            Default: `False`
        padding_idx: row of the padding, which bags leave out and which gets no gradient.

    Examples:
        >>> F.embedding_bag(torch.tensor([1, 2, 4, 5, 4]), torch.randn(10, 3), torch.tensor([0, 3])).shape
        torch.Size([2, 3])
    """
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
        # Empty bags all start at 0.
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
            # Raise errors before anything is written, as above.
            _core.embedding_bag(
                weight, input, offsets, scale_grad_by_freq, _MODES[mode], sparse, share, include_last_offset, padding_idx
            )
        _shortened(weight, input, max_norm, norm_type)
    return _core.embedding_bag(
        weight, input, offsets, scale_grad_by_freq, _MODES[mode], sparse, share, include_last_offset, padding_idx
    )[0]
