"""PyTorch notices some errors only after it has written; here a refused write changes nothing, not even a version.
Tensors of inference mode are an exception: there it is only the count that is refused, as in PyTorch."""

import pytest

from library import T, leaf

pytestmark = pytest.mark.gradiron


def refused(write, x, kind=(RuntimeError, IndexError)):
    before, version = x.tolist(), x._version
    with pytest.raises(kind):
        write(x)
    assert x.tolist() == before and x._version == version


def test_scatter_with_a_bad_index_at_the_end():
    refused(lambda x: x.scatter_(0, T.tensor([0, 1, 9]), 1.0), T.zeros(4))
    refused(lambda x: x.scatter_add_(0, T.tensor([0, 1, -9]), T.ones(3)), T.zeros(4))


def test_index_add_and_index_fill_with_a_bad_index_at_the_end():
    refused(lambda x: x.index_add_(0, T.tensor([0, 4]), T.ones(2)), T.zeros(4))
    refused(lambda x: x.index_fill_(0, T.tensor([0, 4]), 1.0), T.zeros(4))


def test_a_view_of_a_leaf():
    x = leaf([1.0, 2.0])
    refused(lambda x: x.__setitem__(0, 5.0), x)
    refused(lambda x: x[0].zero_(), x)


def test_an_output_of_unbind():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * 1
    part = y.unbind(0)[0]
    refused(lambda p: p.mul_(2), part)
    assert y._version == 0


def test_a_zero_divisor_at_the_end():
    refused(lambda x: x.floor_divide_(T.tensor([1, 2, 0])), T.tensor([10, 20, 30]))
    refused(lambda x: x.remainder_(T.tensor([1, 2, 0])), T.tensor([10, 20, 30]))


def test_copying_from_a_list_of_the_wrong_length():
    refused(lambda x: x.__setitem__(slice(0, 2), T.ones(3)), T.zeros(4))


def test_groups_that_are_no_number_of_them():
    refused(lambda x: T.nn.init.dirac_(x, 2.0), T.ones(2, 3, 4), TypeError)
