"""Tensors that come to show other memory: `.data`, `set_`, `resize_`."""

import pytest

from library import T, assert_values, leaf


def test_set_to_a_tensor():
    x, y = T.ones(2), T.arange(6.0)
    assert x.set_(y) is x
    assert x.tolist() == y.tolist() and x.data_ptr() == y.data_ptr() and x._version == 1
    x.mul_(2)
    assert y.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]


def test_set_to_nothing():
    x = T.ones(2, 2)
    assert x.set_().shape == (0,)


def test_set_to_a_storage():
    x, y = T.ones(2), T.arange(6.0)
    assert x.set_(y.untyped_storage()).tolist() == y.tolist()
    assert x.set_(y.untyped_storage(), 1, (2,), (2,)).tolist() == [1.0, 3.0]
    assert x.set_(y, 1, (2, 2)).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert x.set_(y, 1, (2,), (2,)).stride() == (2,)
    assert x.set_(source=y).shape == (6,)


def test_set_refuses():
    x, y = T.ones(2), T.arange(6.0)
    with pytest.raises(RuntimeError, match="Tensor: invalid storage offset -1"):
        x.set_(y, -1, (2,))
    with pytest.raises(RuntimeError, match="Could not set tensor of type .* to a tensor of type float"):
        x.set_(T.ones(2, dtype=T.int64))
    with pytest.raises(TypeError, match=r"set_\(\) received an invalid combination of arguments"):
        x.set_(3)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        leaf([1.0]).set_(y)


def test_set_has_no_derivative():
    y = (leaf([1.0, 2.0]) * 1).set_(T.ones(3))
    assert y.requires_grad and y.grad_fn.name() == "torch::autograd::NotImplemented"
    with pytest.raises(RuntimeError):
        y.sum().backward()
    x = leaf([1.0, 2.0])
    with T.no_grad():
        x.set_(T.ones(3))
    assert x.is_leaf and x.shape == (3,) and x._version == 1


def test_resize():
    x = T.arange(4.0)
    assert x.resize_(2).tolist() == [0.0, 1.0] and x._version == 1
    assert x.resize_(4).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert x.resize_(2, 2).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert x.resize_((1, 4)).shape == (1, 4)
    y = x.resize_(6)
    assert y is x and x.shape == (6,) and x[:4].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert x.resize_as_(T.ones(3, 2)).shape == (3, 2)
    assert T.arange(4.0)[1:].resize_(2).tolist() == [1.0, 2.0]


def test_resize_refuses():
    for x in (leaf([1.0]), leaf([1.0]) * 1):
        with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
            x.resize_(2)
    with pytest.raises(RuntimeError):
        T.ones(2).resize_(-1)


def test_data_is_an_alias_that_counts_for_itself():
    x = leaf([1.0, 2.0])
    d = x.data
    assert not d.requires_grad and d._version == 0 and not d._is_view() and d.data_ptr() == x.data_ptr()
    d.mul_(2)
    assert x.tolist() == [2.0, 4.0] and x._version == 0


def test_data_takes_other_shapes_and_dtypes():
    x = leaf([1.0, 2.0])
    x.data = T.ones(3, dtype=T.float64)
    assert x.shape == (3,) and x.dtype == T.float64 and x.is_leaf and x.requires_grad
    (x * 2).sum().backward()
    assert_values(x.grad, [2.0, 2.0, 2.0])
    y = x * 2
    y.data = T.ones(1)
    assert y.grad_fn.name() == "MulBackward0" and y.tolist() == [1.0]
    i = T.ones(2, dtype=T.int64)
    i.data = T.ones(2)
    assert i.dtype == T.float32


def test_data_keeps_the_count_of_writes():
    x = leaf([1.0, 2.0])
    x.data = T.ones(1).mul_(2)
    assert x._version == 0
    with T.no_grad():
        x.mul_(2)
    x.data = T.ones(1)
    assert x._version == 1


def test_data_refuses():
    x = leaf([1.0, 2.0])
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got int"):
        x.data = 1
    with pytest.raises(RuntimeError, match="data set to a tensor that requires gradients must be floating point or complex"):
        x.data = T.ones(2, dtype=T.int64)
    for x, y in (
        (T.ones(2), T.ones(2, device="meta")),
        (T.ones(2, device="meta"), T.ones(2)),
        (T.ones(2), T.eye(2).to_sparse()),
    ):
        with pytest.raises(RuntimeError, match="`variable` and `tensor` have incompatible tensor type"):
            x.data = y
        assert x.shape == (2,)
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="Deleting tensor data is not allowed"):
        del x.data


def test_functions_that_write():
    x = T.tensor([-1.0, 2.0])
    assert T.relu_(x) is x and x.tolist() == [0.0, 2.0]
    assert T.exp_(T.zeros(1)).tolist() == [1.0] and T.zero_(x).tolist() == [0.0, 0.0]


def test_a_leaf_that_was_set_has_a_new_end_of_the_graph():
    x = leaf([1.0, 2.0])
    edge = T.autograd.graph.get_gradient_edge(x)
    out = x.clone().sum()
    with T.no_grad():
        x.set_(T.ones(2))
    assert_values(T.autograd.grad(out, edge, retain_graph=True)[0], [1.0, 1.0])
    with pytest.raises(RuntimeError, match="The differentiated Tensor at index 0 appears to not have been used"):
        T.autograd.grad(out, x)
    out.backward()
    assert_values(x.grad, [1.0, 1.0])


def test_sizes_of_what_wants_gradients_change_in_inference_mode_only():
    x = T.arange(3.0).requires_grad_()
    for mode in (T.enable_grad, T.no_grad):
        with mode(), pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
            x.resize_(2)
    with T.inference_mode():
        assert x.resize_(2).tolist() == [0.0, 1.0]
        assert x.resize_as_(T.zeros(1)).tolist() == [0.0]
    assert x.requires_grad and x.shape == (1,)
