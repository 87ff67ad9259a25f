"""nll_loss and cross_entropy against their definition, element by element; the ignored and the weighted included."""

from itertools import product

import pytest

from library import T, tensor

F = T.nn.functional
SHAPES = [(5,), (4, 5), (3, 5, 2), (2, 5, 2, 3), (2, 5, 1, 2, 2)]


def logs_and_targets(shape):
    T.manual_seed(len(shape))
    logs = T.randn(shape, dtype=T.float64).log_softmax(1 if len(shape) > 1 else 0).requires_grad_()
    return logs, T.randint(0, 5, shape[:1] + shape[2:] if len(shape) > 1 else ())


def expected(logs, target, weight, ignored, reduction):
    """By a loop over the targets."""
    each, total = [], 0.0
    for place in product(*map(range, target.shape)):
        cls = target[place].item()
        share = 0.0 if cls == ignored else 1.0 if weight is None else weight[cls].item()
        at = (place[0], cls, *place[1:]) if place else (cls,)
        each.append(-logs[at] * share)
        total += share
    if reduction == "none":
        return T.stack(each).reshape(target.shape)
    loss = sum(each)
    return loss / total if reduction == "mean" else loss


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("ignored", [-100, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_nll_is_its_definition(shape, reduction, ignored, weighted):
    logs, target = logs_and_targets(shape)
    if not target.ndim:
        target = T.tensor(1)  # A single ignored target has no mean.
    weight = T.tensor([1.0, 2, 0.5, 3, 0.25], dtype=T.float64) if weighted else None
    loss = F.nll_loss(logs, target, weight, ignore_index=ignored, reduction=reduction)
    wanted = expected(logs, target, weight, ignored, reduction)
    assert loss.shape == wanted.shape
    assert T.allclose(loss, wanted)
    seed = T.randn(loss.shape, dtype=T.float64)
    (got,), (grad,) = T.autograd.grad(loss, logs, seed), T.autograd.grad(wanted, logs, seed)
    assert T.allclose(got, grad)
    assert T.autograd.gradgradcheck(
        lambda x: F.cross_entropy(x, target, weight, ignore_index=ignored, reduction=reduction), logs
    )


@pytest.mark.parametrize(("shape", "names"), [((4, 5), "NllLoss"), ((2, 5, 2, 3), "NllLoss2D"), ((3, 5, 2), "View")])
def test_its_node(shape, names):
    logs, target = logs_and_targets(shape)
    assert F.nll_loss(logs, target, reduction="none").grad_fn.name() == names + "Backward0"


def test_all_ignored_and_none_at_all():
    x = T.randn(3, 5, requires_grad=True)
    loss = F.cross_entropy(x, T.tensor([1, 1, 1]), ignore_index=1)
    assert loss.isnan()
    (grad,) = T.autograd.grad(loss, x)
    assert grad.eq(0).all() or grad.isnan().all()
    assert F.cross_entropy(T.randn(0, 5), T.zeros(0, dtype=T.int64)).isnan()
    assert F.cross_entropy(T.randn(0, 5), T.zeros(0, dtype=T.int64), reduction="sum") == 0


def test_targets_out_of_bounds():
    for wrong in (5, -1):
        with pytest.raises(IndexError, match=f"Target {wrong} is out of bounds"):
            F.nll_loss(T.randn(2, 5), T.tensor([0, wrong]))


@pytest.mark.parametrize(
    "input, target, kind, words",
    [
        ((4, 2), (5,), ValueError, r"Expected input batch_size \(4\) to match target batch_size \(5\)"),
        ((4, 2), (4, 1), RuntimeError, "0D or 1D target tensor expected, multi-target not supported"),
        ((4, 2, 3), (4, 4), RuntimeError, r"Expected target size \[4, 3\], got \[4, 4\]"),
        ((4, 2, 3, 3), (4, 3), RuntimeError, r"only batches of spatial targets supported \(3D tensors\) but got targets of"),
        ((4, 2), (4,), RuntimeError, "expected target dtype to be Long or Byte, but got Float"),
    ],
)
def test_sizes_of_targets_come_before_their_dtype(input, target, kind, words):
    with pytest.raises(kind, match=words):
        F.nll_loss(T.zeros(*input), T.zeros(*target))


def test_on_each_device(device):
    x = tensor([[0.5, 1.0, -2.0], [0.0, 3.0, 1.0]]).to(device).requires_grad_()
    target = T.tensor([2, 0]).to(device)
    loss = F.cross_entropy(x, target)
    loss.backward()
    assert loss.device == x.device
    assert loss.item() == pytest.approx(3.33722, abs=1e-4)
    assert x.grad.cpu().sum(1).abs().max() < 1e-6
