"""vmap over operators that read numbers which each sample has of its own, and what is refused because no size is known."""

import copy
import pickle

import pytest

from library import T, assert_values

vmap = T.func.vmap
X = T.arange(6, dtype=T.float64).reshape(3, 2) + 0.5
MASK = T.tensor([[True, False], [True, True], [False, True]])


def loop(f, *args):
    return T.stack([f(*sample) for sample in zip(*args)])


# --- what can be batched ---


@pytest.mark.parametrize("steps", [0, 1, 2, 5, 6])
def test_rows_of_numbers_between_bounds(steps):
    low, high = T.tensor([0.0, 1.0, -2.0]), T.tensor([1.0, 5.0, 2.0])
    assert_values(vmap(lambda a, b: T.linspace(a, b, steps))(low, high), loop(lambda a, b: T.linspace(a, b, steps), low, high))
    assert_values(vmap(lambda a: T.linspace(a, 3, steps))(low), loop(lambda a: T.linspace(a, 3, steps), low))
    both = (vmap(lambda a: T.logspace(-1, a, steps))(high), loop(lambda a: T.logspace(-1, a, steps), high))
    assert_values(*both, rtol=1e-5, atol=1e-5)


@pytest.mark.gradiron
def test_rows_of_complex_numbers():
    """PyTorch has no row of complex numbers to begin with."""
    low = T.tensor([0.0, 1.0, -2.0], dtype=T.float64)
    found, expected = (vmap(lambda a, d=d: T.linspace(a, 3, 6, dtype=d))(low) for d in (T.complex128, T.float64))
    assert_values(found, expected + 0j, rtol=1e-14, atol=1e-14)


def test_nothing_taken_of_nothing():
    empty = T.zeros(3, 0)
    assert vmap(T.take)(empty, T.zeros(3, 0, dtype=T.int64)).shape == (3, 0)
    assert vmap(T.take, in_dims=(0, None))(empty, T.zeros(0, dtype=T.int64)).shape == (3, 0)


@pytest.mark.parametrize("options", [{"output_size": 3}, {"dim": 0, "output_size": 3}])
def test_repeats_of_each_samples_own(options):
    repeats = T.tensor([[1, 2], [2, 1], [0, 3]])

    def one(x, r):
        return x.repeat_interleave(r, **options)

    assert_values(vmap(one)(X, repeats), loop(one, X, repeats))
    assert_values(vmap(one, in_dims=(None, 0))(X[0], repeats), loop(one, [X[0]] * 3, repeats))


def test_repeats_alone():
    repeats = T.tensor([2, 0, 1])
    assert T.repeat_interleave(repeats).tolist() == [0, 0, 2]
    assert T.repeat_interleave(repeats).dtype == T.int64
    found = vmap(lambda r: T.repeat_interleave(r, output_size=3))(T.tensor([[1, 2], [3, 0]]))
    assert found.tolist() == [[0, 1, 1], [0, 0, 0]]


def test_repeats_want_a_size():
    with pytest.raises(RuntimeError, match="^repeat_interleave: vmapping over the `repeats` tensor requires the `output_size`"):
        vmap(lambda x, r: x.repeat_interleave(r))(X, T.tensor([[1, 2], [2, 1], [0, 3]]))


def test_gradient_of_repeats():
    repeats = T.tensor([[1, 2], [2, 1], [0, 3]])
    gradient = T.func.grad(lambda x: vmap(lambda a, r: a.repeat_interleave(r, output_size=3))(x, repeats).sum())(X)
    assert_values(gradient, repeats.double())


def test_masked_scatter():
    source = T.arange(10, 16, dtype=T.float64).reshape(3, 2)

    def one(x, mask, values):
        return x.masked_scatter(mask, values)

    assert_values(vmap(one)(X, MASK, source), loop(one, X, MASK, source))
    assert_values(vmap(one, in_dims=(0, 0, None))(X, MASK, source[0]), loop(one, X, MASK, [source[0]] * 3))
    assert_values(vmap(one, in_dims=(None, 0, 0))(X[0], MASK, source), loop(one, [X[0]] * 3, MASK, source))
    weights = T.tensor([1.0, 10.0], dtype=T.float64)
    found = T.func.grad(lambda s: (vmap(one)(X, MASK, s) * weights).sum())(source)
    assert_values(found, [[1.0, 0.0], [1.0, 10.0], [10.0, 0.0]])


def test_a_mask_that_all_samples_share():
    assert_values(vmap(lambda x, m: x.masked_select(m), in_dims=(0, None))(X, MASK[0]), X[:, :1])
    assert_values(vmap(lambda x: T.masked_select(x, MASK[1]) * 2, in_dims=1)(X[:2]), X[:2].t() * 2)


def test_parts_without_a_base():
    parts = vmap(lambda x: tuple(T.unsafe_split(x, 1)))(X)
    assert [p.tolist() for p in parts] == [X[:, :1].tolist(), X[:, 1:].tolist()]
    tangents = T.func.jvp(lambda x: tuple(T.unsafe_chunk(x, 2)), (X,), (X * 2,))[1]
    assert [t.shape for t in tangents] == [(2, 2), (1, 2)]
    assert_values(T.cat(tangents), X * 2)


@pytest.mark.gradiron
def test_a_number_of_each_samples_own():
    """PyTorch fills with the last sample's."""
    index = T.tensor([1])
    found = vmap(lambda v: X[0].index_fill(0, index, v))(T.tensor([7.0, 8.0, 9.0], dtype=T.float64))
    assert_values(found, [[0.5, 7.0], [0.5, 8.0], [0.5, 9.0]])


def test_a_number_with_a_tangent():
    index = T.tensor([1])
    tangent = T.func.jvp(lambda v: X[0].index_fill(0, index, v), (T.tensor(7.0).double(),), (T.tensor(2.0).double(),))[1]
    assert_values(tangent, [0.0, 2.0])


def test_products_with_complex_factors():
    a, b, c = (T.tensor(v) for v in ([[1 + 2j, 2.0]], [[1j, 2.0]], [[1 + 2j, 2.0], [3.0, 4j]]))

    def one(a, b, c):
        return T.addmm(a, b, c, alpha=1 + 3j, beta=1 + 2j)

    assert_values(vmap(one)(a[None], b[None], c[None])[0], one(a, b, c))
    assert_values(one(a, b, c), (1 + 2j) * a + (1 + 3j) * (b @ c))


def test_complex_numbers_behind_a_mask():
    z = T.tensor([1 + 2j, 3 - 4j, 5 + 6j], dtype=T.complex128)
    assert T.masked_select(z, T.tensor([True, False, True])).tolist() == [1 + 2j, 5 + 6j]


# --- what cannot ---

NUMBERS = "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over aten::"
MASKS = "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing"


@pytest.mark.parametrize(
    ("f", "error", "start"),
    [
        (lambda x: x.nonzero(), RuntimeError, NUMBERS + "nonzero."),
        (lambda x: x.nonzero(as_tuple=True), RuntimeError, "Batching rule not implemented for aten::nonzero_numpy."),
        (lambda x: T.where(x > 1), RuntimeError, NUMBERS + "where."),
        (lambda x: T.unique(x), RuntimeError, NUMBERS + "_unique2."),
        (lambda x: T.unique(x, dim=0), RuntimeError, NUMBERS + "unique_dim."),
        (lambda x: T.unique_consecutive(x), RuntimeError, NUMBERS + "unique_consecutive."),
        (lambda x: T.unique_consecutive(x, dim=0), RuntimeError, NUMBERS + "unique_consecutive."),
        (lambda x: x[x > 1], RuntimeError, MASKS),
        (lambda x: x.index_put((x > 1,), T.tensor(1.0).double()), RuntimeError, MASKS),
        (lambda x: x.masked_select(x > 1), RuntimeError, "vmap: Attempted to vmap over `mask` in torch.masked_select("),
        (lambda x: T.allclose(x, x), RuntimeError, "vmap over torch.allclose isn't supported yet."),
        (lambda x: T.equal(x, x), RuntimeError, "Batching rule not implemented for aten::equal."),
        (lambda x: T.equal(x, x[:1]), RuntimeError, "Batching rule not implemented for aten::equal."),
        (lambda x: T.add(x, 1, out=T.zeros(2)), RuntimeError, "Batching rule not implemented for aten::add.out;"),
        (lambda x: x.data, RuntimeError, "accessing `data` under vmap transform is not allowed"),
        (lambda x: x.untyped_storage(), NotImplementedError, "Cannot access storage of BatchedTensorImpl"),
        (lambda x: copy.deepcopy(x), NotImplementedError, "Cannot access storage of BatchedTensorImpl"),
        (lambda x: pickle.dumps(x), NotImplementedError, "Cannot access storage of BatchedTensorImpl"),
        (lambda x: x.__dlpack__(), RuntimeError, "Cannot access data pointer of Tensor that doesn't have storage"),
    ],
)
def test_what_is_refused(f, error, start):
    with pytest.raises(error) as found:
        vmap(f)(X.clone())
    assert type(found.value) is error and str(found.value).startswith(start)


# --- chunks ---


def test_chunks_draw_the_same():
    drawn = vmap(lambda x: T.rand(()), chunk_size=2, randomness="same")(X)
    assert drawn[0] == drawn[1] == drawn[2]
    drawn = vmap(lambda x: T.rand(()), chunk_size=2, randomness="different")(X)
    assert drawn[0] != drawn[1] != drawn[2]


@pytest.mark.gradiron
def test_no_samples_in_chunks():
    """PyTorch fails an assertion."""
    assert vmap(lambda x: x * 2, chunk_size=2)(T.zeros(0, 2)).shape == (0, 2)
