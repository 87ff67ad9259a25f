"""Kernels at the sizes where they change their way, beside the same from other operators or from their parts."""

from __future__ import annotations

from typing import Any

import pytest

from library import T

F = T.nn.functional


def close(found: Any, expected: Any, tolerance: float = 1e-12) -> None:
    assert T.allclose(found, expected, tolerance, tolerance, equal_nan=True), (found, expected)


@pytest.mark.parametrize("n", [*range(1, 40), 63, 64, 65, 100, 127, 128, 129, 140, 300])
def test_sums_of_rows(n: int) -> None:
    T.manual_seed(n)
    x = T.randn(7, n)
    exact = T.stack([x.double()[:, i] for i in range(n)]).sum(0)
    close(x.sum(1).double(), exact, 1e-5)
    close(x.mean(1).double(), exact / n, 1e-6)
    close(x.double().sum(1), exact)
    close(x.abs().sum(1).double(), x.abs().norm(1, dim=1).double(), 1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(9000, 3), (3, 4, 3000), (1, 2, 5, 2)])
@pytest.mark.parametrize("ignored", [-100, 1])
def test_classes_of_many_samples(shape: tuple[int, ...], weighted: bool, ignored: int) -> None:
    T.manual_seed(0)
    n, classes, *run = shape
    logs = T.randn(*shape).double().requires_grad_()
    target = T.randint(0, classes, (n, *run))
    target.reshape(-1)[1] = ignored
    weight = T.rand(classes).double() if weighted else None
    counts = (T.ones(classes).double() if weight is None else weight)[target.clamp(min=0)] * (target != ignored)
    each = -logs.gather(1, target.clamp(min=0).unsqueeze(1)).squeeze(1) * counts
    for reduction, expected in (("none", each), ("sum", each.sum()), ("mean", each.sum() / counts.sum())):
        found = F.nll_loss(logs, target, weight, ignore_index=ignored, reduction=reduction)
        close(found, expected)
        (mine,) = T.autograd.grad(found.sum(), logs)
        (theirs,) = T.autograd.grad(expected.sum(), logs, retain_graph=True)
        close(mine, theirs)


def test_a_class_that_there_is_not_far_behind() -> None:
    target = T.zeros(9000, dtype=T.int64)
    target[8999] = 3
    with pytest.raises(IndexError, match="Target 3 is out of bounds"):
        F.nll_loss(T.zeros(9000, 3), target)


@pytest.mark.parametrize("dtype", [T.float32, T.float64])
def test_a_batch_of_alignments_is_its_samples(dtype: Any) -> None:
    """Long and short ones in turn, some that no alignment spells."""
    T.manual_seed(0)
    steps, labels = [9, 4, 9, 2, 0, 9], [4, 1, 0, 3, 0, 4]
    logs = T.randn(9, 6, 5).to(dtype).log_softmax(2).requires_grad_()
    target = T.randint(1, 5, (6, 4))
    target[5] = 2
    tolerance = 1e-4 if dtype is T.float32 else 1e-10
    for zero in (False, True):
        found = F.ctc_loss(logs, target, tuple(steps), tuple(labels), reduction="none", zero_infinity=zero)
        (grads,) = T.autograd.grad(found.sum(), logs)
        for i in range(6):
            own = logs[:, i : i + 1].detach().requires_grad_()
            loss = F.ctc_loss(own, target[i : i + 1], (steps[i],), (labels[i],), reduction="none", zero_infinity=zero)
            close(found[i : i + 1], loss, tolerance)
            (grad,) = T.autograd.grad(loss.sum(), own)
            close(grads[:, i : i + 1], grad, tolerance)


def test_the_probability_of_all_alignments() -> None:
    """Of all ways of three steps those that spell "1 2", and how each probability changes the sum."""
    T.manual_seed(0)
    logs = T.randn(3, 1, 3).double().log_softmax(2).requires_grad_()
    ways = [(1, 2, 0), (1, 0, 2), (0, 1, 2), (1, 1, 2), (1, 2, 2)]
    p = logs.exp()[:, 0]
    expected = -T.stack([p[0, a] * p[1, b] * p[2, c] for a, b, c in ways]).sum().log()
    found = F.ctc_loss(logs, T.tensor([[1, 2]]), (3,), (2,), reduction="sum")
    close(found, expected)
    # The loss takes its probabilities for those of a softmax: their gradients sum to nothing in each step.
    ((mine,), (theirs,)) = (T.autograd.grad(loss, logs) for loss in (found, expected))
    close(mine, theirs + logs.exp())


@pytest.mark.parametrize("width", [3, 63, 64, 65, 131, 200])
@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        ((2, 2), {}),
        ((1, 3), {}),
        ((3, 3), {"stride": 2, "padding": 1}),
        ((3, 3), {"stride": 1, "padding": 1, "count_include_pad": False}),
        ((2, 3), {"stride": (3, 4), "ceil_mode": True}),
        ((2, 3), {"divisor_override": 5}),
    ],
)
def test_means_of_wide_windows(width: int, kernel: tuple[int, int], options: dict[str, Any]) -> None:
    T.manual_seed(0)
    x = T.randn(2, 1, 5, width).double().requires_grad_()
    found = F.avg_pool2d(x, kernel, **options)
    stride = T.tensor(options.get("stride", kernel)).expand(2).tolist()
    padding = options.get("padding", 0)
    padded = F.pad(x, [padding] * 4)
    inside = F.pad(T.ones_like(x), [padding] * 4)
    rows = []
    for i in range(found.shape[2]):
        for j in range(found.shape[3]):
            place = (..., slice(i * stride[0], i * stride[0] + kernel[0]), slice(j * stride[1], j * stride[1] + kernel[1]))
            part, count = padded[place], kernel[0] * kernel[1]
            if options.get("ceil_mode") or not options.get("count_include_pad", True):
                count = int(inside[place][0].sum().item())
            rows.append(part.sum((2, 3)) / options.get("divisor_override", count))
    expected = T.stack(rows, 2).reshape(found.shape)
    close(found, expected)
    g = T.randn(*found.shape).double()
    close(*(T.autograd.grad(result, x, g)[0] for result in (found, expected)))
