"""Losses of classes, tables and attention on the GPU: few kernels, and the CPU's values."""

import pytest

from library import NO_GPU, T

pytestmark = [pytest.mark.gradiron, pytest.mark.skipif(NO_GPU, reason="GRADIRON_TEST_NO_GPU is set")]
F = T.nn.functional


def launches(run):
    run()
    before = T.cuda.dispatches()
    result = run()
    return result, T.cuda.dispatches() - before


def close(a, b, tolerance=1e-5):
    T.testing.assert_close(a.cpu(), b, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(5,), (37, 5), (3, 5, 4, 6), (3, 5, 7), (700, 3)])
def test_losses_of_classes_are_those_of_the_cpu(shape, weighted, reduction):
    T.manual_seed(0)
    x = T.randn(shape).log_softmax(min(len(shape) - 1, 1))
    classes = shape[min(len(shape) - 1, 1)]
    y = T.randint(0, classes, shape[:1] + shape[2:] if len(shape) > 1 else ())
    if y.dim():
        y.view(-1)[::3] = 2
        x.view(-1)[2] = float("-inf")  # Of an ignored class, maybe.
    weight = T.rand(classes) + 0.5 if weighted else None
    if weighted:
        weight[1] = 0
    made = []
    for device in ("cpu", "cuda"):
        a = x.to(device).requires_grad_()
        w = None if weight is None else weight.to(device)
        loss = F.nll_loss(a, y.to(device), w, ignore_index=2, reduction=reduction)
        (gradient,) = T.autograd.grad(loss, a, T.full_like(loss, 1.5))
        made.append((loss.detach(), gradient))
    close(made[1][0], made[0][0])
    close(made[1][1], made[0][1])


@pytest.mark.parametrize("dtype", [T.float16, T.bfloat16, T.float32])
def test_a_cross_entropy_is_two_kernels_forward_and_few_back(dtype):
    T.manual_seed(0)
    x, y = T.randn(40, 65), T.randint(0, 65, (40,))
    a, b = x.to("cuda", dtype).requires_grad_(), y.to("cuda")
    loss, count = launches(lambda: F.cross_entropy(a, b))
    assert count == 2
    one = T.ones_like(loss)
    (gradient,), count = launches(lambda: T.autograd.grad(loss, a, one, retain_graph=True))
    assert count <= 4
    c = x.to(dtype).float().requires_grad_()
    F.cross_entropy(c, y).backward()
    close(gradient.float(), c.grad, 1e-5 if dtype == T.float32 else 1e-3)


def test_targets_of_bytes_and_all_ignored():
    x = T.randn(4, 3, device="cuda")
    close(F.nll_loss(x, T.tensor([0, 2, 1, 1], dtype=T.uint8, device="cuda")), F.nll_loss(x.cpu(), T.tensor([0, 2, 1, 1])))
    assert F.nll_loss(x, T.full((4,), -100, device="cuda")).isnan()


def test_a_class_that_is_not_there_is_told_of():
    x = T.randn(4, 3, device="cuda")
    with pytest.raises(IndexError, match="^index 3 is out of bounds for dimension 1 with size 3"):
        F.nll_loss(x, T.tensor([0, 3, 1, 1], device="cuda")).item()
    assert F.nll_loss(x, T.tensor([0, 2, 1, 1], device="cuda")).isfinite()


def test_second_derivatives_of_losses_of_classes():
    T.manual_seed(0)
    x, y = T.randn(6, 4), T.tensor([0, 3, -100, 1, 2, 2])
    made = []
    for device in ("cpu", "cuda"):
        a = x.to(device).requires_grad_()
        (g,) = T.autograd.grad(F.cross_entropy(a, y.to(device)), a, create_graph=True)
        made.append(T.autograd.grad((g * g).sum(), a)[0])
    close(made[1], made[0])


@pytest.mark.parametrize("dtype", [T.int64, T.int32])
@pytest.mark.parametrize(("rows", "width", "count"), [(65, 16, 1024), (7, 300, 40), (1000, 3, 513), (4, 1, 1)])
def test_the_gradient_of_a_table_is_one_kernel(rows, width, count, dtype):
    T.manual_seed(0)
    index, w = T.randint(0, rows, (count,), dtype=dtype), T.randn(rows, width)
    g = T.randn(count, width)
    for options in ({}, {"padding_idx": rows - 1}, {"scale_grad_by_freq": True}):
        made = []
        for device in ("cpu", "cuda"):
            a = w.to(device).requires_grad_()
            out, start = F.embedding(index.to(device), a, **options), g.to(device)
            (gradient,), launched = launches(lambda: T.autograd.grad(out, a, start, retain_graph=True))
            made.append(gradient)
            assert options.get("scale_grad_by_freq") or device == "cpu" or launched == 1
        close(made[1], made[0], 2e-5)


@pytest.mark.parametrize("shape", [(2, 2, 5, 4), (3, 7, 4)])
def test_causal_attention_asks_nothing_of_a_mask(shape):
    T.manual_seed(0)
    q, k, v = T.randn(3, *shape)
    made = []
    for device in ("cpu", "cuda"):
        parts = [t.to(device).requires_grad_() for t in (q, k, v)]
        out, count = launches(lambda: F.scaled_dot_product_attention(*parts, is_causal=True))
        assert device == "cpu" or count <= 8
        made.append((out.detach(), *T.autograd.grad(out, parts, T.ones_like(out))))
    for ours, theirs in zip(made[1], made[0]):
        close(ours, theirs)
