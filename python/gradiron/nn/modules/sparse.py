"""Embedding tables."""

from __future__ import annotations

from typing import Any

from ... import _core
from ..._core import Tensor
from ...autograd.grad_mode import no_grad
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

__all__ = ["Embedding", "EmbeddingBag"]


def _padding_row(padding_idx: int | None, num_embeddings: int, name: str) -> int | None:
    """Return `padding_idx` counted from the front."""
    if padding_idx is None:
        return None
    if not -num_embeddings <= padding_idx < max(num_embeddings, 1):
        raise AssertionError(f"{name} must be within num_embeddings")
    return padding_idx + num_embeddings if padding_idx < 0 else padding_idx


class _Table(Module):
    """What `Embedding` and `EmbeddingBag` share."""

    weight: Tensor
    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None
    max_norm: float | None
    norm_type: float
    scale_grad_by_freq: bool

    def _set_weight(self, given: Any, freeze: bool, device: Any, dtype: Any) -> None:
        shape = (self.num_embeddings, self.embedding_dim)
        if given is None:
            self.weight = Parameter(_core.empty(shape, device=device, dtype=dtype), requires_grad=not freeze)
            self.reset_parameters()
            return
        if tuple(given.shape) != shape:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self.weight = Parameter(given, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        """Draw the rows anew and set the padding row to zero."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def _unusual(self) -> list[str]:
        parts = []
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq is not False:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        return parts


class Embedding(_Table):
    """Look up rows of a table of learned embedding vectors by index.

    The rows are drawn from a standard normal distribution.

    Args:
        num_embeddings: number of rows of the table, that is, size of the vocabulary.
        embedding_dim: size of each embedding vector.
        padding_idx: row of the padding, which starts as zeros and gets no gradient.
        max_norm: bound to which rows with a larger norm are scaled down, in place, when they are looked up.
        norm_type: exponent of that norm. Default: `2.0`
        scale_grad_by_freq: divide the gradient of a row by its number of occurrences in the batch. Default: `False`
        sparse: whether the gradient of the table is a sparse tensor, for `SparseAdam`, `SGD` and `Adagrad`. Default: `False`
        device, dtype: device and data type of the parameters.

    Shape:
        - Input: `(*)`, integer indices.
        - Output: `(*, embedding_dim)`.

    Examples:
        >>> table = nn.Embedding(10, 3, padding_idx=0)
        >>> table(torch.tensor([[1, 2, 0], [4, 9, 0]])).shape
        torch.Size([2, 3, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _padding_row(padding_idx, num_embeddings, "Padding_idx")
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self._set_weight(_weight, _freeze, device, dtype)
        self.sparse = sparse

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        parts += self._unusual()
        if self.sparse is not False:
            parts.append("sparse=True")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """Return an `Embedding` with given vectors.

        Args:
            embeddings: table of shape `(num_embeddings, embedding_dim)`.
            freeze: whether to keep the table out of training. Default: `True`
            padding_idx, max_norm: as in `Embedding`.
            norm_type, scale_grad_by_freq, sparse: as in `Embedding`. Default: `2.0`, `False`, `False`
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, cols = embeddings.shape
        return cls(
            num_embeddings=rows,
            embedding_dim=cols,
            _weight=embeddings,
            _freeze=freeze,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
        )


class EmbeddingBag(_Table):
    """Look up bags of embedding vectors and reduce each bag to its sum, mean or maximum.

    It is `Embedding` followed by the reduction, without the vectors of the single rows.

    Args:
        num_embeddings: number of rows of the table, that is, size of the vocabulary.
        embedding_dim: size of each embedding vector.
        max_norm: bound to which rows with a larger norm are scaled down, in place, when they are looked up.
        norm_type: exponent of that norm. Default: `2.0`
        scale_grad_by_freq: divide the gradient of a row by its number of occurrences in the batch. Default: `False`
        mode: `"sum"`, `"mean"` or `"max"`. Default: `"mean"`
        sparse: whether the gradient of the table is a sparse tensor, for `SparseAdam`, `SGD` and `Adagrad`. Default: `False`
        include_last_offset: whether the last offset is the length of the input instead of the start of a bag.
            Default: `False`
        padding_idx: row of the padding, which bags leave out and which gets no gradient.
        device, dtype: device and data type of the parameters.

    Shape:
        - Input: `(B, N)` for bags of `N` indices; or `(N,)` with offsets `(B,)`, the positions where bags start.
        - Per_sample_weights: the shape of the input; only for `"sum"`.
        - Output: `(B, embedding_dim)`.

    Examples:
        >>> bags = nn.EmbeddingBag(10, 3, mode="sum")
        >>> bags(torch.tensor([1, 2, 4, 5, 4]), torch.tensor([0, 3])).shape
        torch.Size([2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = _padding_row(padding_idx, num_embeddings, "padding_idx")
        self._set_weight(_weight, False, device, dtype)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}", *self._unusual(), f"mode={self.mode!r}"]
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """Return an `EmbeddingBag` with given vectors.

        Args:
            embeddings: table of shape `(num_embeddings, embedding_dim)`.
            freeze: whether to keep the table out of training. Default: `True`
            mode: `"sum"`, `"mean"` or `"max"`. Default: `"mean"`
            max_norm, padding_idx: as in `EmbeddingBag`.
            norm_type, scale_grad_by_freq, sparse, include_last_offset: as in `EmbeddingBag`. Default: `2.0`, else
                `False`
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, cols = embeddings.shape
        made = cls(
            num_embeddings=rows,
            embedding_dim=cols,
            _weight=embeddings,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        made.weight.requires_grad_(not freeze)
        return made
