"""What views and their like take as arguments, and what they are of tensors without dimensions."""

import warnings

import pytest

from library import T, leaf


def test_narrow_starts_at_a_number_or_a_tensor_of_one():
    x = T.arange(5.0)
    for start in (1, T.tensor(1), T.tensor(1, dtype=T.int32), T.tensor(-4)):
        assert x.narrow(0, start, 2).tolist() == T.narrow(x, 0, start, 2).tolist() == [1, 2]
    for start in (T.tensor([1]), T.tensor(1.0), T.tensor(True)):
        with pytest.raises(RuntimeError, match="start must be an 0-dim integral Tensor"):
            x.narrow(0, start, 2)
    for start in (1.0, True, None, "a"):
        with pytest.raises(TypeError, match="narrow\\(\\) received an invalid combination of arguments"):
            x.narrow(0, start, 2)


def test_tensor_split_by_a_tensor():
    x = T.arange(5.0)
    assert [p.tolist() for p in x.tensor_split(T.tensor([1, 3]))] == [[0], [1, 2], [3, 4]]
    assert len(T.tensor_split(x, tensor_indices_or_sections=T.tensor(2))) == len(T.tensor_split(x, sections=2)) == 2
    assert len(T.tensor_split(x, indices=[1, 2])) == 3
    for kind, name in ((T.float32, "Float"), (T.int32, "Int"), (T.bool, "Bool")):
        with pytest.raises(RuntimeError, match=f"tensor_split expected .* to have dtype of long, but got {name}"):
            x.tensor_split(T.tensor([1], dtype=kind))
    with pytest.raises(RuntimeError, match="zero-dimensional or one-dimensional tensor, but got a tensor with 2 dims"):
        x.tensor_split(T.tensor([[1]]))
    for wrong in (2.0, "a"):
        with pytest.raises(TypeError, match="tensor_split\\(\\) received an invalid combination of arguments"):
            T.tensor_split(x, wrong)


def test_other_cuts():
    x = T.arange(6.0)
    assert len(T.hsplit(x, T.tensor(2))) == len(T.hsplit(x, sections=2)) == 2 and len(T.split(x, T.tensor(2))) == 3
    for wrong in (2.0, T.tensor(1.0), T.tensor([1, 3])):
        with pytest.raises(TypeError, match="hsplit\\(\\) received an invalid combination of arguments"):
            T.hsplit(x, wrong)
    with pytest.raises(TypeError, match="split_with_sizes\\(\\): argument 'split_sizes' .* must be tuple of ints, not float"):
        T.split(x, 2.0)


UNSAFE = {
    "unsafe_split": lambda x: T.unsafe_split(x, 2),
    "unsafe_chunk": lambda x: x.unsafe_chunk(2),
    "unsafe_split_with_sizes": lambda x: T.unsafe_split_with_sizes(x, [2, 2]),
}


@pytest.mark.parametrize("name", UNSAFE)
def test_unsafe_parts_count_their_own_writes(name):
    x = T.arange(4.0)
    first, second = UNSAFE[name](x)
    first.add_(1)
    assert (x._version, first._version, second._version) == (0, 1, 0)
    assert first._base is None and first.data_ptr() == x.data_ptr() and x.tolist() == [1, 2, 2, 3]
    x.add_(1)
    assert (x._version, first._version, second._version) == (1, 1, 0)


@pytest.mark.parametrize("name", UNSAFE)
def test_a_write_to_one_part_does_not_spoil_the_other(name):
    x = leaf([0.0, 1.0, 2.0, 3.0], kind="float64")
    first, second = UNSAFE[name](x * 2)
    squares = first * first
    second.mul_(3)
    (g,) = T.autograd.grad(squares.sum() + second.sum(), x)
    assert g.tolist() == [0, 8, 6, 6]
    kind = "UnsafeSplitWithSizesBackward0" if name.endswith("sizes") else "UnsafeSplitBackward0"
    assert type(UNSAFE[name](x)[0].grad_fn).__name__ == kind


def test_transposes_of_numbers():
    real, imaginary = T.tensor(3.0), T.tensor(3j)
    for name in ("mT", "H", "mH", "adjoint()"):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            T.set_warn_always(True)
            try:
                of_real, of_imaginary = eval(f"real.{name}, imaginary.{name}", {"real": real, "imaginary": imaginary})
            finally:
                T.set_warn_always(False)
        assert of_real is real and of_imaginary.item() == (3j if name == "mT" else -3j)
        assert len(told) == 2 and all("deprecated on 0-D tensors" in str(w.message) for w in told)
    with pytest.raises(RuntimeError, match="only supported on matrices or batches of matrices. Got 1-D tensor"):
        T.ones(3).adjoint()


def test_masked_scatter_reads_what_it_has_written():
    x = T.arange(6.0)
    x.masked_scatter_(T.tensor([False, True, True, True, True, True]), x)
    assert x.tolist() == [0.0] * 6
    x = T.arange(6.0)
    x.masked_scatter_(T.tensor([False, False, True, True, True, True]), x[1:])
    assert x.tolist() == [0, 1, 1, 1, 1, 1]
    x = T.arange(8.0).reshape(2, 4)
    x.masked_scatter_(T.tensor([True, False, False, True]), x.flatten()[1:])
    assert x.tolist() == [[1, 1, 2, 2], [2, 5, 6, 2]]
    # What is not in order is copied first.
    x = T.arange(6.0)
    x.masked_scatter_(T.ones(6, dtype=T.bool), x.flip(0))
    assert x.tolist() == [5, 4, 3, 2, 1, 0]
    x = leaf([0.0, 1.0, 2.0])
    y = x * 1
    y.masked_scatter_(T.tensor([False, True, True]), y)
    assert y.tolist() == [0, 0, 0] and T.autograd.grad(y.sum(), x)[0].tolist() == [2, 1, 0]
    with pytest.raises(RuntimeError, match="Number of elements of source < number of ones in mask"):
        T.zeros(3).masked_scatter_(T.ones(3, dtype=T.bool), T.ones(2))
    with pytest.raises(RuntimeError, match="expected self and source to have same dtypes but got"):
        T.zeros(3).masked_scatter_(T.ones(3, dtype=T.bool), T.ones(3, dtype=T.float64))


def test_index_fill_with_an_element_of_its_own():
    x = leaf([0.0, 1.0, 2.0, 3.0])
    y = x * 1
    y.index_fill_(0, T.tensor([1, 0]), y[2])
    assert y.tolist() == [2, 2, 2, 3] and T.autograd.grad(y.sum(), x)[0].tolist() == [0, 0, 3, 1]
    numbers = T.arange(6)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        numbers.index_fill_(0, numbers[:2], 3)
