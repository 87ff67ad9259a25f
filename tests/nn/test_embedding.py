"""Tables of vectors: rows and bags of rows, their gradients of both orders, what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library import IS_GRADIRON, NO_GPU, T

F = T.nn.functional


def table(count=5, width=3, seed=0):
    return T.randn(count, width, dtype=T.float64, generator=T.Generator().manual_seed(seed)).requires_grad_()


@given(st.lists(st.integers(0, 4), max_size=8), st.booleans(), st.sampled_from([None, 0, 3, -1]))
def test_gradients_of_rows_are_counts(numbers, by_frequency, padding):
    """The gradient of a sum is how often each row was looked up, or 1 where it is divided by that."""
    w = table()
    y = F.embedding(T.tensor(numbers, dtype=T.int64), w, padding, scale_grad_by_freq=by_frequency)
    assert y.tolist() == [w[i].tolist() for i in numbers]
    (g,) = T.autograd.grad(y.sum(), w)
    for row in range(5):
        count = numbers.count(row)
        expected = min(count, 1) if by_frequency else count
        expected = 0 if padding is not None and row == padding % 5 else expected
        assert g[row].tolist() == pytest.approx([expected] * 3)


@given(
    st.lists(st.integers(0, 4), max_size=8),
    st.lists(st.integers(0, 8), max_size=3),
    st.sampled_from(["sum", "mean", "max"]),
    st.sampled_from([None, 2, -1]),
    st.booleans(),
)
def test_bags_are_their_rows_put_together(numbers, starts, mode, padding, last):
    w = table()
    starts = sorted(min(at, len(numbers)) for at in starts)
    ends = [0, *starts, len(numbers)]
    offsets = T.tensor(ends if last else ends[:-1])
    y = F.embedding_bag(T.tensor(numbers, dtype=T.int64), w, offsets, mode=mode, padding_idx=padding, include_last_offset=last)
    skipped = None if padding is None else padding % 5
    rows = []
    for first, end in zip(ends, ends[1:]):
        bag = [w[i] for i in numbers[first:end] if i != skipped]
        stacked = T.stack(bag) if bag else T.zeros(1, 3, dtype=T.float64)
        rows.append({"sum": stacked.sum(0), "mean": stacked.mean(0), "max": stacked.amax(0)}[mode])
    expected = T.stack(rows)
    assert T.allclose(y, expected)
    weight = T.arange(1.0, 1 + y.numel(), dtype=T.float64).reshape(y.shape)
    found, wanted = (T.autograd.grad((t * weight).sum() + w.sum() * 0, w)[0] for t in (y, expected))
    if mode != "max":  # of equal rows the first takes all
        assert T.allclose(found, wanted)
    assert found.sum().item() == pytest.approx(wanted.sum().item())


def test_weights_of_samples():
    w, share = table(), T.tensor([0.5, -1.0, 2.0], dtype=T.float64, requires_grad=True)
    y = F.embedding_bag(T.tensor([1, 2, 1]), w, T.tensor([0, 1]), mode="sum", per_sample_weights=share)
    assert T.allclose(y, T.stack([0.5 * w[1], 2 * w[1] - w[2]]))
    y.sum().backward()
    assert T.allclose(share.grad, T.stack([w[1].sum(), w[2].sum(), w[1].sum()]))
    assert w.grad[:, 0].tolist() == [0, 2.5, -1, 0, 0]


def test_rows_are_shortened():
    w = T.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]])
    y = F.embedding(T.tensor([0, 1, 0]), w, max_norm=1.0)
    assert T.allclose(y, T.tensor([[0.6, 0.8], [0.3, 0.4], [0.6, 0.8]]))
    assert T.allclose(w, T.tensor([[0.6, 0.8], [0.3, 0.4], [6.0, 8.0]]))
    w = T.tensor([[3.0, 4.0]], requires_grad=True)
    version = w._version
    F.embedding_bag(T.tensor([[0]]), w, max_norm=1.0, norm_type=1.0, mode="sum").sum().backward()
    assert T.allclose(w.detach(), T.tensor([[3.0, 4.0]]) / 7) and w._version > version
    assert w.grad.tolist() == [[1, 1]]


@pytest.mark.gradiron  # PyTorch has no second derivatives of bags
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_second_derivatives_of_bags(mode):
    index, offsets = T.tensor([1, 2, 1, 0, 4]), T.tensor([0, 2, 2, 3])

    def f(w):
        return F.embedding_bag(index, w, offsets, mode=mode).pow(3)

    assert T.autograd.gradcheck(f, (table(),))
    assert T.autograd.gradgradcheck(f, (table(),))


def test_second_derivatives_of_rows():
    index = T.tensor([[1, 2], [1, 0]])

    def f(w):
        return F.embedding(index, w, padding_idx=2, scale_grad_by_freq=False).pow(3)

    assert T.autograd.gradgradcheck(lambda w: F.embedding(index, w).pow(3), (table(),))
    w = table()
    (g,) = T.autograd.grad(f(w).sum(), w, create_graph=True)
    (second,) = T.autograd.grad(g.sum(), w)
    expected = 6 * w.detach() * T.tensor([[1.0], [2.0], [0.0], [0.0], [0.0]], dtype=T.float64)
    assert T.allclose(second, expected)


def test_what_the_node_keeps():
    node = F.embedding(T.tensor([1, 2]), table(), padding_idx=1).grad_fn
    assert node.name() == "EmbeddingBackward0"
    assert node._saved_indices.tolist() == [1, 2] and node._saved_padding_idx == 1
    assert (node._saved_scale_grad_by_freq, node._saved_sparse, node._saved_weight_sym_argsize_0) == (False, False, 5)
    node = F.embedding_bag(T.tensor([[1, 2]]), table(), mode="max").grad_fn
    assert node.name() == "EmbeddingBagBackward0" and node._saved_mode == 2


REFUSED = [
    (lambda w: F.embedding(T.tensor([7]), w), IndexError, "index out of range in self"),
    (lambda w: F.embedding(T.tensor([-1]), w), IndexError, "index out of range in self"),
    (lambda w: F.embedding(T.tensor([1.0]), w), RuntimeError, "Expected tensor for argument #1 'indices' to have one of"),
    (lambda w: F.embedding(T.tensor([1]), w[0]), RuntimeError, "'weight' must be 2-D"),
    (lambda w: F.embedding(T.tensor([1]), w, padding_idx=5), AssertionError, "Padding_idx must be within num_embeddings"),
    (lambda w: F.embedding_bag(T.tensor([1]), w), ValueError, "offsets has to be a 1D Tensor but got None"),
    (lambda w: F.embedding_bag(T.tensor([1]), w, T.tensor([1])), RuntimeError, r"offsets\[0\] has to be 0"),
    (lambda w: F.embedding_bag(T.tensor([1]), w, T.tensor([0, 4])), RuntimeError, r"offsets\[-1\] can not be greater"),
    (
        lambda w: F.embedding_bag(T.tensor([1, 9]), w.float(), T.tensor([0])),
        RuntimeError,
        "Index 1 of input takes value 9 which",
    ),
    (lambda w: F.embedding_bag(T.tensor([[1]]), w, mode="most"), ValueError, "mode has to be one of sum, mean or max"),
    (lambda w: F.embedding_bag(T.tensor([[1]]), w, padding_idx=5), RuntimeError, "padding_idx must be within the number of"),
    (
        lambda w: F.embedding_bag(T.tensor([[1]]), w, per_sample_weights=T.ones(1, 1)),
        NotImplementedError,
        "embedding_bag: per_sample_weights was not None",
    ),
    (
        lambda w: F.embedding_bag(T.tensor([[1]]), w, mode="max", scale_grad_by_freq=True),
        ValueError,
        "max mode does not support scaling the gradient by the frequency",
    ),
]


@pytest.mark.parametrize("call, kind, text", REFUSED)
def test_what_is_refused(call, kind, text):
    w = table()
    before = w.tolist()
    with pytest.raises(kind, match=text):
        call(w)
    assert w.tolist() == before


@pytest.mark.skipif(NO_GPU or not IS_GRADIRON, reason="without the GPU")
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_on_the_gpu(mode):
    """The same values and gradients, the latter twice in the same bits."""
    r = T.Generator().manual_seed(3)
    w, index = T.randn(40, 5, generator=r), T.randint(0, 40, (300,), generator=r)
    offsets = T.tensor([0, 0, 10, 11, 200])
    found = []
    for device in ("cpu", "cuda", "cuda"):
        own = w.to(device, copy=True).requires_grad_()
        y = F.embedding_bag(index.to(device), own, offsets.to(device), mode=mode, padding_idx=3)
        y.pow(2).sum().backward()
        found.append((y.detach().cpu(), own.grad.cpu()))
    assert T.allclose(found[0][0], found[1][0], 1e-5, 1e-5) and T.allclose(found[0][1], found[1][1], 1e-4, 1e-4)
    assert found[1][1].tolist() == found[2][1].tolist()


REFUSED = [
    lambda w, i: F.embedding(i, w, 1.5, max_norm=1.0),
    lambda w, i: F.embedding(i, w, scale_grad_by_freq="x", max_norm=1.0),
    lambda w, i: F.embedding(T.tensor([0, 9]), w, max_norm=1.0),
    lambda w, i: F.embedding(i.double(), w, max_norm=1.0),
    lambda w, i: F.embedding_bag(i, w, T.tensor([1, 2]), max_norm=1.0),
    lambda w, i: F.embedding_bag(i, w, T.tensor([0]), max_norm=1.0, per_sample_weights=T.ones(2, dtype=T.float64)),
    lambda w, i: F.embedding_bag(i, w, T.tensor([0]), max_norm=1.0, padding_idx=9),
]


@pytest.mark.gradiron  # PyTorch shortens first
@pytest.mark.parametrize("call", REFUSED)
def test_what_is_refused_has_shortened_nothing(call):
    w = T.full((5, 3), 10.0, dtype=T.float64)
    with pytest.raises((TypeError, RuntimeError, IndexError, ValueError, NotImplementedError)):
        call(w, T.tensor([0, 1]))
    assert (w == 10).all() and w._version == 0


def test_a_tensor_as_padding_idx_is_not_written():
    at = T.tensor([-1.0])
    with pytest.raises(TypeError, match="padding_idx"):
        F.embedding(T.tensor([0, 1]), T.ones(5, 3), at)
    assert at.item() == -1


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
def test_rows_that_are_made_shorter_keep_their_tangents():
    from importlib import import_module

    forward = import_module(f"{T.__name__}.autograd.forward_ad")
    with forward.dual_level():
        weight = forward.make_dual(T.full((2, 2), 3.0), T.ones(2, 2))
        made = T.nn.functional.embedding(T.tensor([1]), weight, max_norm=1.0)
        assert forward.unpack_dual(made).tangent.tolist() == [[1, 1]]


@pytest.mark.parametrize("options", [{"mode": "max"}, {"padding_idx": 0}])
def test_bags_of_what_is_not_there(options):
    with pytest.raises(RuntimeError, match="Expected idx >= 0 && idx < num_embeddings but found idx to be 7"):
        T.nn.functional.embedding_bag(T.tensor([7]), T.ones(3, 2), T.tensor([0]), **options)
