"""Index tensors, masks and targets are saved values: a write over one is noticed, hooks see them, backward frees them."""

import pytest

from library import T

F = T.nn.functional

SECOND_TIME = "Trying to backward through the graph a second time"
MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation"


def grid(*shape):
    count = 1
    for n in shape:
        count *= n
    return (T.arange(count, dtype=T.float32).reshape(*shape) / 7 + 0.1).requires_grad_()


def line():
    return T.tensor([0, 2])


def table():
    return T.tensor([[0, 2], [1, 1]])


def weights():
    return T.tensor([1.0, 2.0, 3.0])


def thirds():
    return T.ones(2, 3) / 3


# What is saved, an operator on a 2 x 3 tensor and it, and what the operator's node calls it.
CASES = {
    "gather": (table, lambda x, i: x.gather(1, i), "index"),
    "index_select": (line, lambda x, i: x.index_select(1, i), "index"),
    "take": (line, lambda x, i: x.take(i), "index"),
    "scatter a number": (table, lambda x, i: x.scatter(1, i, 2.0), "index"),
    "scatter": (table, lambda x, i: x.scatter(1, i, grid(2, 2)), "index"),
    "scatter_add": (table, lambda x, i: x.scatter_add(1, i, grid(2, 2)), "index"),
    "scatter_reduce": (table, lambda x, i: x.scatter_reduce(1, i, grid(2, 2), "amax"), "index"),
    "index_add": (line, lambda x, i: x.index_add(1, i, grid(2, 2)), "index"),
    "index_copy": (line, lambda x, i: x.index_copy(1, i, grid(2, 2)), "index"),
    "index_fill": (line, lambda x, i: x.index_fill(1, i, 2.0), "index"),
    "index_fill a tensor": (line, lambda x, i: x.index_fill(1, i, T.tensor(2.0, requires_grad=True)), "index"),
    "scatter_": (table, lambda x, i: (x * 1).scatter_(1, i, 2.0), "index"),
    "index_add_": (line, lambda x, i: (x * 1).index_add_(1, i, grid(2, 2)), "index"),
    "index_copy_": (line, lambda x, i: (x * 1).index_copy_(1, i, grid(2, 2)), "index"),
    "index_fill_": (line, lambda x, i: (x * 1).index_fill_(1, i, 2.0), "index"),
    "nll_loss": (line, lambda x, i: F.nll_loss(x, i), "target"),
    "nll_loss, weighted": (weights, lambda x, w: F.nll_loss(x, line(), w), "weight"),
    "cross_entropy": (line, lambda x, i: F.cross_entropy(x, i), "target"),
    "binary_cross_entropy": (thirds, lambda x, w: F.binary_cross_entropy(x / 10, thirds(), w), "weight"),
    "logits": (thirds, lambda x, w: F.binary_cross_entropy_with_logits(x, thirds(), w), "weight"),
    "logits, emphasised": (
        weights,
        lambda x, w: F.binary_cross_entropy_with_logits(x, thirds(), pos_weight=w),
        "pos_weight",
    ),
    "x[:, i]": (line, lambda x, i: x[:, i], None),
    "index_put": (lambda: T.tensor([0, 1]), lambda x, i: x.index_put((i,), grid(2, 3)), None),
    "masked_fill": (lambda: T.tensor([True, False, True]), lambda x, m: x.masked_fill(m, 2.0), "mask"),
}


@pytest.fixture(params=CASES)
def case(request):
    make, operator, name = CASES[request.param]
    return make(), operator, name


def test_a_write_over_it_is_noticed(case):
    index, operator, _ = case
    y = operator(grid(2, 3), index)
    index.zero_()
    with pytest.raises(RuntimeError, match=MODIFIED) as error:
        y.sum().backward()
    assert "is at version 1; expected version 0 instead" in str(error.value)


def test_hooks_are_given_it_and_give_it_back(case):
    index, operator, _ = case
    expected = grid(2, 3)
    operator(expected, index).sum().backward()
    packed, x = [], grid(2, 3)

    def pack(t):
        packed.append(t)
        return t.clone()

    with T.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = operator(x, index)
    assert any(t.dtype == index.dtype and T.equal(t, index) for t in packed)
    # The clone is what counts now.
    index.zero_()
    y.sum().backward()
    assert T.equal(x.grad, expected.grad)


def test_backward_frees_it(case):
    index, operator, name = case
    y = operator(grid(2, 3), index)
    loss = y.sum()
    loss.backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        loss.backward()
    if name is not None:
        with pytest.raises(RuntimeError, match=SECOND_TIME):
            getattr(y.grad_fn, f"_saved_{name}")


def test_its_name(case):
    index, operator, name = case
    saved = operator(grid(2, 3), index).grad_fn
    found = saved._saved_indices[-1] if name is None else getattr(saved, f"_saved_{name}")
    assert T.equal(found, index)


def test_indices_have_a_place_for_each_dimension():
    x, i, j = grid(2, 3), T.tensor([0, 1]), T.tensor([1, 2])
    assert x[:, j].grad_fn._saved_indices[0] is None
    both = x[i, j].grad_fn._saved_indices
    assert isinstance(both, tuple)
    assert [t.tolist() for t in both] == [[0, 1], [1, 2]]


def test_nothing_is_saved_for_gradients_that_nobody_wants():
    index = line()
    y = grid(2, 3).index_add(1, index, T.ones(2, 2))
    assert y.grad_fn._saved_index is None
    index.zero_()
    y.sum().backward()


def test_without_weights_their_name_gives_none():
    assert F.binary_cross_entropy(grid(2, 3) / 10, thirds()).grad_fn._saved_weight is None


@pytest.mark.parametrize("images", [False, True])
def test_targets(images):
    target = T.tensor([[0, 1], [2, 1]]) if images else line()
    loss = F.nll_loss(grid(2, 3, 2) if images else grid(2, 3), target)
    target.zero_()
    with pytest.raises(RuntimeError, match=MODIFIED):
        loss.backward()


def test_masked_select():
    mask = T.tensor([True, False, True])
    y = grid(2, 3).masked_select(mask)
    mask.zero_()
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_hooks_are_given_the_tensor_itself():
    packed, index = [], table()
    with T.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        grid(2, 3).gather(1, index)
        grid(2, 3)[:, index]
    assert sum(t is index for t in packed) == 2


@pytest.mark.parametrize(
    ("dtype", "words"),
    [
        (T.bool, "CPUBoolType"),
        (T.bfloat16, "CPUBFloat16Type"),
        (T.complex64, "CPUComplexFloatType"),
        (T.int32, "torch.IntTensor"),
        (T.float16, "torch.HalfTensor"),
    ],
)
def test_the_error_names_the_type(dtype, words):
    x, other = T.ones(2, requires_grad=True), T.ones(2).to(dtype)
    y = x * other
    other.zero_()
    with pytest.raises(RuntimeError, match=rf"\[{words} \[2\]\] is at version 1"):
        y.sum().abs().backward()


def test_an_index_of_inference_mode_cannot_be_saved():
    with T.inference_mode():
        index = line()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        grid(2, 3).index_select(1, index)


def test_take_along_dim_keeps_an_index_of_its_own():
    x, index = grid(2, 3), T.tensor([[0, -1], [1, 4]])
    y = T.take_along_dim(x, index, 1)
    index.zero_()
    y.sum().backward()
    assert x.grad.tolist() == [[1, 0, 1], [0, 2, 0]]


def test_raw_indices_tell_of_every_dimension():
    x = T.ones(2, 2, requires_grad=True)
    y = x[:, T.tensor([0, 1])]
    raw = y.grad_fn._raw_saved_indices
    assert len(raw) == 2
    with pytest.raises(RuntimeError, match="Calling register_hooks on a saved tensor with value None is forbidden"):
        raw[0].register_hooks(lambda t: t, lambda t: t)
    raw[1].register_hooks(lambda t: t, lambda t: t)
