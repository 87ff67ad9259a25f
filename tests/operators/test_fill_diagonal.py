"""`fill_diagonal_`, on the CPU and the GPU, and its gradient."""

import pytest

from library import T, assert_values, leaf


@pytest.mark.parametrize(
    ("shape", "wrap", "places"),
    [
        ((3, 3), False, [(0, 0), (1, 1), (2, 2)]),
        ((2, 4), True, [(0, 0), (1, 1)]),
        ((5, 2), False, [(0, 0), (1, 1)]),
        ((7, 3), True, [(0, 0), (1, 1), (2, 2), (4, 0), (5, 1), (6, 2)]),
        ((8, 2), True, [(0, 0), (1, 1), (3, 0), (4, 1), (6, 0), (7, 1)]),
        ((3, 2), True, [(0, 0), (1, 1)]),
        ((2, 2, 2), False, [(0, 0, 0), (1, 1, 1)]),
        ((0, 3), False, []),
    ],
)
def test_places(shape, wrap, places, device):
    x = T.zeros(shape, device=device)
    assert x.fill_diagonal_(5, wrap=wrap) is x
    expected = T.zeros(shape)
    for place in places:
        expected[place] = 5.0
    assert_values(x, expected)


def test_transposed_and_whole_numbers():
    x = T.zeros(2, 3, dtype=T.int64).t()
    x.fill_diagonal_(7)
    assert x.tolist() == [[7, 0], [0, 7], [0, 0]]


def test_gradient():
    x = leaf([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
    y = (x * 2).fill_diagonal_(0.5, wrap=True)
    assert y.grad_fn.name().endswith("CopySlices")
    y.sum().backward()
    assert_values(x.grad, [[0.0, 2.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]])
    tangent = T.func.jvp(lambda t: (t * 2).fill_diagonal_(3), (x.detach(),), (T.ones(4, 2),))[1]
    assert_values(tangent, [[0.0, 2.0], [2.0, 0.0], [2.0, 2.0], [2.0, 2.0]])


def test_errors():
    with pytest.raises(RuntimeError, match="dimensions must larger than 1"):
        T.zeros(3).fill_diagonal_(1)
    with pytest.raises(RuntimeError, match="all dimensions of input must be of equal length"):
        T.zeros(2, 2, 3).fill_diagonal_(1)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        leaf([[1.0]]).fill_diagonal_(1)


@pytest.mark.gradiron  # PyTorch has written the first part by then.
@pytest.mark.parametrize("shape", [(5, 1), (7, 3), (7, 1)])
def test_a_number_that_is_refused_is_not_written(shape):
    x = T.zeros(shape, dtype=T.bfloat16)
    with pytest.raises(RuntimeError, match="value cannot be converted to type c10::BFloat16 without overflow"):
        x.fill_diagonal_(-1e308, wrap=True)
    assert not x.any() and x._version == 0
