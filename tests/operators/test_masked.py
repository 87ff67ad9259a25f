"""`masked`: reductions and normalizations of what a mask shows; and reductions of segments."""

import math

import pytest

from library import T

M = T.masked
MASK = T.tensor([[1, 0, 1, 1], [0, 0, 0, 0], [0, 1, 0, 1]]).bool()


def sample(**options):
    values = [[0.5, -0.25, 0.125, 2.0], [1.0, -1.0, 0.75, 0.25], [3.0, -0.5, 0.0, 1.5]]
    return T.tensor(values, dtype=T.float64, **options)


def near(made, expected):
    assert T.allclose(made, T.tensor(expected, dtype=made.dtype), equal_nan=True), (made, expected)


REDUCED = {
    "sum": [2.625, 0.0, 1.0],
    "prod": [0.125, 1.0, -0.75],
    "mean": [0.875, math.nan, 0.5],
    "amax": [2.0, -math.inf, 1.5],
    "amin": [0.125, math.inf, -0.5],
    "argmax": [3.0, 0.0, 3.0],
    "argmin": [2.0, 0.0, 1.0],
    "median": [0.5, math.nan, -0.5],
    "var": [0.984375, math.nan, 2.0],
    "std": [0.984375**0.5, math.nan, 2.0**0.5],
    "logsumexp": [math.log(math.exp(0.5) + math.exp(0.125) + math.exp(2)), -math.inf, math.log(math.exp(-0.5) + math.exp(1.5))],
}


@pytest.mark.parametrize("name", REDUCED)
def test_reductions(name):
    x, function = sample(), getattr(M, name)
    near(function(x, 1, mask=MASK), REDUCED[name])
    near(function(x, -1, keepdim=True, mask=MASK), [[v] for v in REDUCED[name]])
    assert function(x, 1, mask=MASK).dtype is T.float64
    assert T.equal(function(x, 1, mask=T.ones(4, dtype=T.bool)), function(x, 1))
    if name != "median":
        assert function(x, 1, mask=MASK, dtype=T.float32).dtype is T.float32
    for wrong in (2, -3):
        with pytest.raises(IndexError):
            function(x, wrong, mask=MASK)


def test_of_all_dimensions():
    x = sample()
    for dim in (None, (), (0, 1)):
        assert M.sum(x, dim, mask=MASK).item() == 3.625
        assert M.mean(x, dim, mask=MASK).item() == 3.625 / 5
        assert M.amax(x, dim, mask=MASK, keepdim=True).tolist() == [[2.0]]


def test_norms():
    x = sample()
    for order, expected in ((1, [2.625, 0, 2]), (math.inf, [2, 0, 1.5]), (-math.inf, [0.125, math.inf, 0.5])):
        near(M.norm(x, order, 1, mask=MASK), expected)
    near(M.normalize(x, 1.0, 1, mask=MASK)[2], [0, -0.25, 0, 0.75])
    near(M.normalize(x, 1.0, 1, mask=MASK, eps=10.0)[2], [0, -0.05, 0, 0.15])


def test_in_one_dimension():
    x = sample()
    for name in ("softmax", "log_softmax", "softmin"):
        made = getattr(M, name)(x, 1, mask=MASK)
        dense = getattr(T.nn.functional, name)(x[2][MASK[2]], 0)
        near(made[2][MASK[2]], dense.tolist())
        assert made[2, 0].item() == (-math.inf if "log" in name else 0) and bool(made[1].isnan().all())
    near(M.cumsum(x, 1, mask=MASK)[0], [0.5, 0.5, 0.625, 2.625])
    near(M.cumprod(x, 1, mask=MASK)[2], [1, -0.5, -0.5, -0.75])
    near(M.logaddexp(x, x, input_mask=MASK, other_mask=~MASK), x.tolist())


def test_of_whole_numbers():
    x = T.tensor([[1, 2, 3, 4], [5, 6, 7, 8], [9, 1, 2, 3]])
    assert M.sum(x, 1, mask=MASK).tolist() == [8, 0, 4] and M.sum(x, 1, mask=MASK).dtype is T.int64
    assert M.amax(x, 1, mask=MASK).tolist() == [4, -(2**63), 3]
    assert M.median(x, 1).tolist() == [2, 6, 2]
    near(M.var(x, 1, mask=MASK), [7 / 3, math.nan, 2.0])
    with pytest.raises(ValueError, match=r"mean\(\): Could not infer output dtype"):
        M.mean(x, 1, mask=MASK)
    with pytest.raises(ValueError, match="masked median expects no fully masked out rows"):
        M.median(x, 1, mask=MASK)


@pytest.mark.parametrize("name", ("sum", "mean", "amax", "logsumexp", "var"))
def test_gradients_stay_inside(name):
    x = sample(requires_grad=True)
    getattr(M, name)(x, 1, mask=MASK)[[0, 2]].sum().backward()
    assert bool((x.grad[[0, 2]][~MASK[[0, 2]]] == 0).all()) and bool((x.grad[[0, 2]] != 0).any())


SEGMENTS = {
    "sum": ([[2, 4], [0, 0], [28, 32]], [[3.5, 5.5], [1.5, 1.5], [29.5, 33.5]]),
    "mean": ([[1, 2], [math.nan] * 2, [7, 8]], [[1.75, 2.75], [1.5, 1.5], [7.375, 8.375]]),
    "max": ([[2, 3], [-math.inf] * 2, [10, 11]], [[2, 3], [1.5, 1.5], [10, 11]]),
    "min": ([[0, 1], [math.inf] * 2, [4, 5]], [[0, 1], [1.5, 1.5], [1.5, 1.5]]),
    "prod": ([[0, 3], [1, 1], [1920, 3465]], [[0, 4.5], [1.5, 1.5], [2880, 5197.5]]),
}
SLOPES = {
    "sum": [1] * 12,
    "mean": [0.5] * 4 + [0.25] * 8,
    "max": [0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1],
    "min": [1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0],
    "prod": [2, 3, 0, 1, 480, 693, 320, 495, 240, 385, 192, 315],
}


@pytest.mark.parametrize("reduce", SEGMENTS)
def test_segments(reduce):
    x, lengths = T.arange(12.0).reshape(6, 2).requires_grad_(), T.tensor([2, 0, 4])
    plain, begun = SEGMENTS[reduce]
    made = T.segment_reduce(x, reduce, lengths=lengths)
    near(made, plain)
    made.sum().backward()
    near(x.grad.flatten(), SLOPES[reduce])
    near(T.segment_reduce(x, reduce, lengths=lengths, initial=1.5), begun)
    near(T.segment_reduce(x, reduce, lengths=lengths.int()), plain)
    near(T.segment_reduce(x, reduce, offsets=T.tensor([0, 2, 2, 6])), plain)


def test_segments_of_rows():
    x = T.arange(12.0).reshape(6, 2).t().contiguous()
    near(T.segment_reduce(x, "sum", lengths=T.tensor([[2, 4], [3, 3]]), axis=1), [[2, 28], [9, 27]])
    assert math.isnan(T.segment_reduce(T.tensor([math.nan, 1.0]), "max", lengths=T.tensor([2])).item())
    tied = T.tensor([1.0, 1.0, 0.0], requires_grad=True)
    T.segment_reduce(tied, "max", lengths=T.tensor([3])).sum().backward()
    assert tied.grad.tolist() == [0.5, 0.5, 0.0]


def test_segments_that_are_refused():
    x = T.ones(6, 2)
    for options, kind, text in (
        ({"lengths": T.tensor([2, 3])}, RuntimeError, "Expected all rows of lengths along axis to sum to"),
        ({"lengths": T.tensor([-1, 7])}, RuntimeError, "lengths contains negative value!"),
        ({}, RuntimeError, "Either lengths or offsets must be defined."),
        ({"indices": T.tensor([0])}, RuntimeError, "indices based reduction is not supported yet."),
        ({"lengths": T.tensor([6]), "axis": 1}, RuntimeError, "Expected axis to be the last dimension of lengths but got 1."),
        ({"lengths": T.tensor([6.0])}, NotImplementedError, "not implemented for 'Float'"),
    ):
        with pytest.raises(kind, match=text):
            T.segment_reduce(x, "sum", **options)
    with pytest.raises(NotImplementedError, match="\"_segment_reduce_cpu\" not implemented for 'Long'"):
        T.segment_reduce(T.arange(6), "sum", lengths=T.tensor([6]))
    with pytest.raises(RuntimeError, match="reduce argument must be either sum, prod, mean, amax or amin, got foo"):
        T.segment_reduce(x, "foo", lengths=T.tensor([6]))


def test_the_order_of_dimensions():
    images = T.zeros(2, 3, 4, 5)
    last = images.contiguous(memory_format=T.channels_last)
    assert images.dim_order() == (0, 1, 2, 3) and last.dim_order() == (0, 2, 3, 1)
    assert T.zeros(2, 3).t().dim_order() == (1, 0) and T.zeros(()).dim_order() == ()
    assert T.zeros(2, 3, 3).dim_order(ambiguity_check=True) == (0, 1, 2)
    assert images.dim_order(ambiguity_check=[T.contiguous_format, T.channels_last]) == (0, 1, 2, 3)
    for options in ({"ambiguity_check": True}, {"ambiguity_check": [T.contiguous_format, T.channels_last]}):
        with pytest.raises(RuntimeError, match="does not have unique dim order"):
            T.zeros(2, 1, 3, 1).dim_order(**options)
    for wrong in ("a", [1]):
        with pytest.raises(TypeError, match="must be a bool or a list of memory formats"):
            images.dim_order(ambiguity_check=wrong)


def test_dtypes_of_reductions():
    z = T.tensor([1 + 1j, 3 + 1j], dtype=T.complex64)
    near(M.var(z), 2 + 0j)
    near(M.std(z, correction=0), 1 + 0j)
    near(M.logsumexp(z, mask=T.tensor([True, False])), 1 + 1j)
    assert M.var(T.ones(3).bfloat16(), correction=0.5).dtype is T.bfloat16
    truths = T.tensor([[True, False], [True, True]])
    assert M.prod(T.tensor(True)).dtype is T.int64
    assert M.amax(truths, 1).tolist() == [True, True] and M.amin(truths, 1).tolist() == [False, True]
    for name, expected in {"cumsum": [1, 3], "cumprod": [1, 2]}.items():
        made = getattr(M, name)(T.tensor([1, 2], dtype=T.int32), 0)
        assert made.dtype is T.int32 and made.tolist() == expected
