"""Adaptive softmax, for many classes of which most are rare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ... import _core
from ..._core import Tensor
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


_ASMoutput.__name__ = "ASMoutput"


class AdaptiveLogSoftmaxWithLoss(Module):
    """Adaptive softmax: efficient training over many classes of very different frequencies.

    Classes must be sorted by frequency, the most frequent first. Those below `cutoffs[0]` are scored directly; the
    others are in clusters, whose scores are computed from fewer features and only where a target needs them. Call it
    with `(input, target)`; it returns `(output, loss)`: the log-probabilities of the targets, and the mean of their
    negatives.

    Args:
        in_features: number of features of the input.
        n_classes: number of classes.
        cutoffs: increasing class indices at which clusters begin.
        div_value: each cluster has this factor fewer features than the one before. Default: `4.0`
        head_bias: whether the layer for frequent classes has a bias. Default: `False`
        device, dtype: device and data type of the parameters.

    Raises:
        ValueError: if `cutoffs` are not increasing integers between 1 and `n_classes - 1`.

    Examples:
        >>> softmax = nn.AdaptiveLogSoftmaxWithLoss(16, 1000, cutoffs=[10, 100])
        >>> output, loss = softmax(torch.randn(4, 16), torch.tensor([0, 5, 50, 500]))
        >>> output.shape, loss.shape
        (torch.Size([4]), torch.Size([]))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        rising = all(low < high for low, high in zip([0, *cutoffs], [*cutoffs, n_classes], strict=True))
        if not rising or any(int(c) != c for c in cutoffs):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is "
                "between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for at, (low, high) in enumerate(self._clusters(), 1):
            hidden = int(in_features // (div_value**at))
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, bias=False, device=device, dtype=dtype),
                    Linear(hidden, high - low, bias=False, device=device, dtype=dtype),
                )
            )

    def _clusters(self) -> list[tuple[int, int]]:
        return list(zip(self.cutoffs, self.cutoffs[1:], strict=False))

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.head.reset_parameters()
        for inward, outward in self.tail:
            inward.reset_parameters()
            outward.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        self._check(input_, target_)
        single = target_.dim() == 0
        input = input_.unsqueeze(0) if single else input_
        target = target_.unsqueeze(0) if single else target_
        if bool(((target < 0) | (target >= self.n_classes)).any()):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, "
                f"{target.max().item()}] were found. "
            )
        # The column of the head for each target: that of the class, or that of its cluster.
        columns = target.clone()
        inside = input.new_zeros(target.size(0))
        for at, (low, high) in enumerate(self._clusters()):
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel():
                columns.index_fill_(0, rows, self.shortlist_size + at)
                scores = F.log_softmax(self.tail[at](input.index_select(0, rows)), dim=1)
                place = (target.index_select(0, rows) - low).unsqueeze(1)
                inside = inside.index_copy(0, rows, scores.gather(1, place).squeeze(1))
        head = F.log_softmax(self.head(input), dim=1)
        output = inside + head.gather(1, columns.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def _check(self, input: Tensor, target: Tensor) -> None:
        if target.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if target.dim() == 1 and input.size(0) != target.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input.dim() != target.dim() + 1:
            raise RuntimeError(
                f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with size "
                f"{input.size()}"
            )

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for at in range(self.n_clusters):
            cluster = head[:, self.shortlist_size + at].unsqueeze(1)
            parts.append(F.log_softmax(self.tail[at](input), dim=1) + cluster)
        return _core.cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log-probabilities of all classes, of shape `(N, n_classes)`."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """Return the most probable class of each sample; clusters are computed only where needed."""
        head = self.head(input)
        output = _core.argmax(head, dim=1)
        rows = (output >= self.shortlist_size).nonzero().squeeze(1)
        if rows.numel():
            scores = self._get_full_log_prob(input.index_select(0, rows), head.index_select(0, rows))
            output = output.index_copy(0, rows, _core.argmax(scores, dim=1))
        return output
