"""Loss functions as modules."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from ..._core import Tensor
from .. import _reduction
from .. import functional as F
from .distance import PairwiseDistance
from .linear import Linear
from .module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "LinearCrossEntropyLoss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "NLLLoss2d",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class _Loss(Module):
    reduction: str

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            reduction = _reduction.legacy_get_string(size_average, reduce)
        self.reduction = reduction


class _WeightedLoss(_Loss):
    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """Measure the mean absolute error `|input - target|` (L1 loss).

    Args:
        size_average, reduce: deprecated forms of `reduction`.
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Shape:
        - Input and target: `(*)`, the same shape.
        - Output: a scalar, or the shape of the input without reduction.

    Examples:
        >>> nn.L1Loss()(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 4.0]))
        tensor(1.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class NLLLoss(_WeightedLoss):
    """Negative log likelihood loss: minus the log-probability of the target class, times its weight.

    The input holds log-probabilities, as `LogSoftmax` gives them; for logits use `CrossEntropyLoss`. The mean is
    weighted: the sum is divided by the weights of the targets.

    Args:
        weight: weight of each class, of shape `(C,)`.
        size_average, reduce: deprecated forms of `reduction`.
        ignore_index: target class that does not contribute to loss and gradient. Default: `-100`
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Shape:
        - Input: `(N, C)`, `(C,)`, or `(N, C, d1, d2, ...)` with positions in the last dimensions.
        - Target: class indices of the same shape without `C`.
        - Output: a scalar, or the shape of the class indices without reduction.

    Examples:
        >>> log_probs = torch.tensor([[0.9, 0.1], [0.5, 0.5]]).log()
        >>> nn.NLLLoss()(log_probs, torch.tensor([0, 1]))
        tensor(0.3993)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """Deprecated name of `NLLLoss` for images.

    Args:
        weight: weight of each class, of shape `(C,)`.
        size_average, reduce: deprecated forms of `reduction`.
        ignore_index: target class that does not contribute to loss and gradient. Default: `-100`
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Examples:
        >>> nn.NLLLoss2d()(torch.randn(2, 3, 4, 4).log_softmax(1), torch.zeros(2, 4, 4, dtype=torch.long)).shape
        torch.Size([])
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        warnings.warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in replacement and see "
            "https://pytorch.org/docs/main/nn.html#torch.nn.NLLLoss for more details.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class PoissonNLLLoss(_Loss):
    """Negative log likelihood of counts under Poisson distributions with predicted rates.

    `exp(input) - target * input` with `log_input`, else `input - target * log(input + eps)`.

    Args:
        log_input: whether the input is the logarithm of the rates. Default: `True`
        full: whether to add Stirling's approximation of `log(target!)`, where the target is above 1. Default: `False`
        size_average, reduce: deprecated forms of `reduction`.
        eps: term that keeps the logarithm finite if `log_input` is off. Default: `1e-8`
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Shape:
        - Input and target: `(*)`, the same shape.
        - Output: a scalar, or the shape of the input without reduction.

    Examples:
        >>> nn.PoissonNLLLoss()(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 3.0]))
        tensor(0.3591)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """Negative log likelihood of targets under normal distributions with predicted means and variances.

    `(log(var) + (input - target)**2 / var) / 2`. Call it with `(input, target, var)`.

    Args:
        full: whether to add the constant `log(2 * pi) / 2`. Default: `False`
        eps: lower bound of the variances. Default: `1e-6`
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Shape:
        - Input and target: `(*)`, the same shape or one that broadcasts.
        - Var: the same shape, or with 1 as its last dimension, or without it; or a float.
        - Output: a scalar, or the shape of the input without reduction.

    Examples:
        >>> nn.GaussianNLLLoss()(torch.zeros(2), torch.tensor([1.0, 2.0]), torch.ones(2))
        tensor(1.2500)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Any) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence of the target distribution from the input distribution.

    `target * (log(target) - input)`: the input holds log-probabilities, the target probabilities, or logarithms, too,
    with `log_target`.

    Args:
        size_average, reduce: deprecated forms of `reduction`.
        reduction: `"batchmean"` for the sum divided by the batch size, which is the divergence as it is defined;
            `"mean"` over all elements, `"sum"` or `"none"`. Default: `"mean"`
        log_target: whether the target holds log-probabilities. Default: `False`

    Shape:
        - Input and target: `(*)`, the same shape.
        - Output: a scalar, or the shape of the input without reduction.

    Examples:
        >>> p = torch.tensor([[0.5, 0.5]])
        >>> nn.KLDivLoss(reduction="batchmean")(torch.tensor([[0.9, 0.1]]).log(), p)
        tensor(0.5108)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class MSELoss(_Loss):
    """Measure the mean squared error `(input - target)**2` (squared L2 norm).

    Args:
        size_average, reduce: deprecated forms of `reduction`.
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Shape:
        - Input and target: `(*)`, the same shape.
        - Output: a scalar, or the shape of the input without reduction.

    Examples:
        >>> nn.MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 4.0]))
        tensor(2.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class BCELoss(_WeightedLoss):
    """Binary cross entropy of probabilities: `-(target * log(input) + (1 - target) * log(1 - input))`.

    The logarithms are bounded below by -100. For logits use `BCEWithLogitsLoss`, which is more stable.

    Args:
        weight: weight of each loss; broadcasts against the input.
        size_average, reduce: deprecated forms of `reduction`.
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Shape:
        - Input and target: `(*)`, the same shape.
        - Output: a scalar, or the shape of the input without reduction.

    Examples:
        >>> nn.BCELoss()(torch.tensor([0.9, 0.2]), torch.tensor([1.0, 0.0]))
        tensor(0.1643)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of logits: a sigmoid and `BCELoss` in one, in a numerically stable way.

    Args:
        weight: weight of each loss; broadcasts against the input.
        size_average, reduce: deprecated forms of `reduction`.
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`
        pos_weight: weight of the positive targets, for each class; above 1 it favours recall, below 1 precision.

    Shape:
        - Input and target: `(*)`, the same shape.
        - Output: a scalar, or the shape of the input without reduction.

    Examples:
        >>> nn.BCEWithLogitsLoss()(torch.tensor([2.0, -1.0]), torch.tensor([1.0, 0.0]))
        tensor(0.2201)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class HingeEmbeddingLoss(_Loss):
    """Hinge loss of distances: `x` for targets 1, and `max(0, margin - x)` for targets -1.

    The input is usually a distance of pairs, which similar pairs (1) shall have small and others (-1) large.

    Args:
        margin: distance beyond which dissimilar pairs cost nothing. Default: `1.0`
        size_average, reduce: deprecated forms of `reduction`.
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Shape:
        - Input and target: `(*)`, the same shape.
        - Output: a scalar, or the shape of the input without reduction.

    Examples:
        >>> nn.HingeEmbeddingLoss()(torch.tensor([0.3, 0.4]), torch.tensor([1, -1]))
        tensor(0.4500)
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """Multi-label margin loss: the hinge between the scores of target classes and of all others.

    For each sample it is the sum of `max(0, 1 - (x[j] - x[i])) / C` over its target classes `j` and all other classes
    `i`.

    Args:
        size_average, reduce: deprecated forms of `reduction`.
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Shape:
        - Input: `(N, C)` or `(C,)`.
        - Target: the same shape; class indices, of which those from the first negative number on are ignored.
        - Output: a scalar, or `(N,)` without reduction.

    Examples:
        >>> loss = nn.MultiLabelMarginLoss()
        >>> loss(torch.tensor([[0.5, 2.0, 1.0]]), torch.tensor([[1, 2, -1]]))
        tensor(0.1667)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Smooth L1 loss: `d**2 / (2 * beta)` for `d = |input - target| < beta`, else `d - beta / 2`.

    It is less sensitive to outliers than `MSELoss`, and is `HuberLoss` divided by `beta`.

    Args:
        size_average, reduce: deprecated forms of `reduction`.
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`
        beta: where the loss turns from quadratic to linear, not negative; 0 is `L1Loss`. Default: `1.0`

    Shape:
        - Input and target: `(*)`, the same shape.
        - Output: a scalar, or the shape of the input without reduction.

    Examples:
        >>> nn.SmoothL1Loss()(torch.tensor([0.5, 3.0]), torch.zeros(2))
        tensor(1.3125)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Huber loss: `d**2 / 2` for `d = |input - target| < delta`, else `delta * (d - delta / 2)`.

    Args:
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`
        delta: where the loss turns from quadratic to linear. Default: `1.0`

    Shape:
        - Input and target: `(*)`, the same shape.
        - Output: a scalar, or the shape of the input without reduction.

    Examples:
        >>> nn.HuberLoss(delta=2.0)(torch.tensor([0.5, 3.0]), torch.zeros(2))
        tensor(2.0625)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class SoftMarginLoss(_Loss):
    """Logistic loss of two classes: `log(1 + exp(-target * input))` for targets 1 and -1.

    Args:
        size_average, reduce: deprecated forms of `reduction`.
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Shape:
        - Input and target: `(*)`, the same shape.
        - Output: a scalar, or the shape of the input without reduction.

    Examples:
        >>> nn.SoftMarginLoss()(torch.tensor([2.0, -1.0]), torch.tensor([1.0, -1.0]))
        tensor(0.2201)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """Cross entropy between logits and target classes or class probabilities.

    For class indices it is `-weight[target] * log_softmax(input)[target]`, that is, `LogSoftmax` and `NLLLoss` in
    one; for probabilities it is `-sum(target * weight * log_softmax(input))`. With class indices the mean is divided
    by the weights of the targets.

    Args:
        weight: weight of each class, of shape `(C,)`.
        size_average, reduce: deprecated forms of `reduction`.
        ignore_index: target class that does not contribute to loss and gradient. Default: `-100`
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`
        label_smoothing: share of the target that is spread evenly over all classes, from 0 to 1. Default: `0.0`

    Shape:
        - Input: `(N, C)`, `(C,)`, or `(N, C, d1, d2, ...)` with positions in the last dimensions.
        - Target: class indices of the same shape without `C`, or probabilities of the shape of the input.
        - Output: a scalar, or the shape of the class indices without reduction.

    Examples:
        >>> loss = nn.CrossEntropyLoss()
        >>> loss(torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([0]))
        tensor(0.2395)
        >>> loss(torch.randn(3, 5), torch.randn(3, 5).softmax(1)).shape
        torch.Size([])
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class LinearCrossEntropyLoss(_WeightedLoss):
    """Cross entropy of the output of a linear layer, which this module owns.

    It equals `CrossEntropyLoss` of `Linear(in_features, num_classes)`.

    Args:
        in_features: size of the last dimension of the input.
        num_classes: number of classes `C`.
        out_features: sizes of further output dimensions, each position with its own target. Default: `()`
        bias: whether the layer adds a learned bias. Default: `False`
        device, dtype: device and data type of the parameters.
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`
        weight: weight of each class, of shape `(C,)`.
        ignore_index: target class that does not contribute to loss and gradient.
        label_smoothing: share of the target that is spread evenly over all classes, from 0 to 1. Default: `0.0`
        options: a `LinearCrossEntropyOptions`, which is checked and has no effect here.

    Shape:
        - Input: `(N, in_features)` or `(in_features,)`.
        - Target: class indices `(N, *out_features)`.
        - Output: a scalar, or the shape of the target without reduction.

    Examples:
        >>> loss = nn.LinearCrossEntropyLoss(8, 5)
        >>> loss(torch.randn(3, 8), torch.tensor([0, 4, 2])).shape
        torch.Size([])
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        if weight is not None and weight.shape != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        rows = math.prod(out_features, start=num_classes)
        self.linear = Linear(in_features, rows, bias=bias, device=device, dtype=dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        weight, bias = self.linear.weight, self.linear.bias
        shape = (self.num_classes, *self.out_features)
        return F.linear_cross_entropy(
            input,
            weight.reshape((*shape, self.linear.in_features)),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Multi-label loss: binary cross entropy of the logit of each class, averaged over the classes.

    Args:
        weight: weight of each class, of shape `(C,)`.
        size_average, reduce: deprecated forms of `reduction`.
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Shape:
        - Input: `(N, C)`, and target: the same shape, 0 or 1 for each class.
        - Output: a scalar, or `(N,)` without reduction.

    Examples:
        >>> nn.MultiLabelSoftMarginLoss()(torch.tensor([[2.0, -1.0]]), torch.tensor([[1.0, 0.0]]))
        tensor(0.2201)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """Cosine embedding loss: makes pairs with target 1 similar and pairs with target -1 dissimilar.

    `1 - cos(x1, x2)` for targets 1, and `max(0, cos(x1, x2) - margin)` for targets -1.

    Args:
        margin: similarity below which dissimilar pairs cost nothing, from -1 to 1. Default: `0.0`
        size_average, reduce: deprecated forms of `reduction`.
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Shape:
        - Input1 and input2: `(N, D)` or `(D,)`.
        - Target: `(N,)` or `()`.
        - Output: a scalar, or the shape of the target without reduction.

    Examples:
        >>> a, b = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 1.0]])
        >>> nn.CosineEmbeddingLoss()(a, b, torch.tensor([1]))
        tensor(0.2929)
    """

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """Ranking loss of two scores: `max(0, -target * (input1 - input2) + margin)`.

    The target is 1 if the first input shall be ranked higher, and -1 if the second.

    Args:
        margin: difference of the scores beyond which the loss is zero. Default: `0.0`
        size_average, reduce: deprecated forms of `reduction`.
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Shape:
        - Input1, input2 and target: `(N,)` or `()`.
        - Output: a scalar, or the shape of the input without reduction.

    Examples:
        >>> nn.MarginRankingLoss()(torch.tensor([0.25, 1.0]), torch.tensor([0.5, 0.0]), torch.tensor([1, 1]))
        tensor(0.1250)
    """

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """Multi-class margin (hinge) loss between the score of the target class and all other scores.

    `sum(max(0, margin - x[target] + x[i])**p) / C` over the other classes `i`.

    Args:
        p: exponent, 1 or 2. Default: `1`
        margin: difference of the scores beyond which the loss is zero. Default: `1.0`
        weight: weight of each class, of shape `(C,)`.
        size_average, reduce: deprecated forms of `reduction`.
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Shape:
        - Input: `(N, C)` or `(C,)`.
        - Target: class indices `(N,)` or `()`.
        - Output: a scalar, or the shape of the target without reduction.

    Examples:
        >>> nn.MultiMarginLoss()(torch.tensor([[0.5, 2.0, 1.0]]), torch.tensor([1]))
        tensor(0.)
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """Triplet loss: the anchor shall be closer to the positive than to the negative example by a margin.

    `max(0, d(anchor, positive) - d(anchor, negative) + margin)`, where `d` is the p-norm of the difference.

    Args:
        margin: difference of the distances beyond which the loss is zero. Default: `1.0`
        p: exponent of the norm. Default: `2.0`
        eps: small number added to every element of the differences. Default: `1e-6`
        swap: use the distance of positive and negative if it is smaller than that of anchor and negative.
            Default: `False`
        size_average, reduce: deprecated forms of `reduction`.
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Shape:
        - Anchor, positive and negative: `(N, D)` or `(D,)`.
        - Output: a scalar, or `(N,)` without reduction.

    Examples:
        >>> anchor, positive, negative = torch.randn(3, 10, 8)
        >>> nn.TripletMarginLoss()(anchor, positive, negative).shape
        torch.Size([])
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """Triplet loss with any distance: `max(0, d(anchor, positive) - d(anchor, negative) + margin)`.

    Args:
        distance_function: the distance `d` of two tensors; `PairwiseDistance` if `None`.
        margin: difference of the distances beyond which the loss is zero. Default: `1.0`
        swap: use the distance of positive and negative if it is smaller than that of anchor and negative.
            Default: `False`
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Shape:
        - Anchor, positive and negative: `(N, D)` or `(D,)`.
        - Output: a scalar, or `(N,)` without reduction.

    Examples:
        >>> loss = nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: (x - y).abs().sum(-1))
        >>> loss(torch.zeros(1, 4), torch.ones(1, 4), torch.full((1, 4), 2.0))
        tensor(0.)
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead")
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class CTCLoss(_Loss):
    """Connectionist temporal classification loss: negative log likelihood of unaligned label sequences.

    The probability of a target is summed over all its alignments with the input. Each step of the input emits a class
    or a blank; repeated classes without a blank between them count once.

    Args:
        blank: class index of the blank. Default: `0`
        reduction: `"mean"` of the losses divided by their target lengths, `"sum"`, or `"none"`. Default: `"mean"`
        zero_infinity: whether to replace infinite losses, of inputs too short for their targets, by zero.
            Default: `False`

    Shape:
        - Log_probs: `(T, N, C)` or `(T, C)`, log-probabilities.
        - Targets: `(N, S)`, or all sequences concatenated: `(sum(target_lengths),)`.
        - Input_lengths and target_lengths: `(N,)` or `()`.
        - Output: a scalar, or `(N,)` without reduction.

    Examples:
        >>> log_probs = torch.randn(12, 3, 6).log_softmax(2)
        >>> targets = torch.randint(1, 6, (3, 4))
        >>> nn.CTCLoss()(log_probs, targets, torch.full((3,), 12), torch.full((3,), 4)).shape
        torch.Size([])
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity)
