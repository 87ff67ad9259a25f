"""Parameters and buffers as tensors, also those whose shape is not known yet."""

import copy
import pickle

import pytest

from library import IS_GRADIRON, T, assert_values

nn = T.nn


class Marked(T.Tensor):
    pass


def test_what_a_parameter_is():
    p = nn.Parameter(T.ones(2))
    assert isinstance(p, T.Tensor) and isinstance(p, nn.Parameter) and p.requires_grad and p.is_leaf
    assert type(p * 2) is T.Tensor and type(p.detach()) is T.Tensor and type(p.data) is T.Tensor and type(p[0]) is T.Tensor
    assert not isinstance(T.ones(1), nn.Parameter) and not nn.Parameter(T.ones(1), requires_grad=False).requires_grad
    assert nn.Parameter().shape == (0,)
    assert repr(p) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)" == str(p)
    data = T.zeros(2)
    p = nn.Parameter(data)
    with T.no_grad():
        p.add_(1)
    assert_values(data, [1.0, 1.0])
    with pytest.raises(RuntimeError, match="^Only Tensors of floating point and complex dtype can require gradients"):
        nn.Parameter(T.arange(2))


def test_a_parameter_of_another_class():
    p = nn.Parameter(T.ones(2).as_subclass(Marked))
    assert type(p) is Marked and isinstance(p, nn.Parameter) and p.requires_grad
    assert repr(p) == "Parameter(Marked([1., 1.], requires_grad=True))"
    m = nn.Module()
    m.w = p
    assert list(m.parameters())[0] is p


def test_copies_and_pickles():
    p = nn.Parameter(T.ones(2))
    p.grad = T.ones(2)
    other = copy.deepcopy(p)
    assert type(other) is nn.Parameter and other.grad is None and other is not p and other.requires_grad
    other = pickle.loads(pickle.dumps(nn.Parameter(T.ones(2), requires_grad=False)))
    assert type(other) is nn.Parameter and not other.requires_grad
    memo = {}
    assert copy.deepcopy(p, memo) is copy.deepcopy(p, memo)


def test_conversions_stay_in_the_graph():
    p = nn.Parameter(T.ones(2))
    (p.double() * 2).sum().backward()
    assert_values(p.grad, [2.0, 2.0])


def test_buffer():
    b = nn.Buffer(T.ones(2))
    assert type(b) is T.Tensor and isinstance(b, nn.Buffer) and b.persistent and not b.requires_grad
    assert not nn.Buffer(persistent=False).persistent


def test_without_a_shape():
    p = nn.UninitializedParameter(dtype=T.float64)
    assert isinstance(p, nn.Parameter) and repr(p) == "<UninitializedParameter>" and nn.parameter.is_lazy(p)
    with pytest.raises(RuntimeError, match="^Can't access the shape of an uninitialized parameter or buffer"):
        p.shape
    p = p.__class__(dtype=T.float64)
    same = p
    p.materialize((2, 3))
    assert p is same and type(p) is nn.Parameter and p.shape == (2, 3) and p.dtype == T.float64 and p.requires_grad
    b = nn.UninitializedBuffer(persistent=False)
    assert repr(b) == "<UninitializedBuffer>" and not b.requires_grad and isinstance(b, nn.Buffer)
    b.materialize((2,), dtype=T.float64)
    assert type(b) is T.Tensor and b.dtype == T.float64


def test_without_a_shape_copies_and_pickles():
    p = nn.UninitializedParameter(requires_grad=False, dtype=T.float64)
    for other in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert type(other) is nn.UninitializedParameter and not other.requires_grad
    m = nn.Module()
    m.p = p
    m.float()
    assert m.p.dtype == T.float32 and nn.parameter.is_lazy(m.p)
    m.register_buffer("b", nn.UninitializedBuffer(persistent=False))
    for change in (lambda: m.double(), lambda: m.to(T.float16), lambda: m.to("cpu", T.float64)):
        change()
        assert nn.parameter.is_lazy(m.b) and nn.parameter.is_lazy(m.p) and m.b.dtype == m.p.dtype


def test_without_a_shape_nothing_can_be_computed():
    if IS_GRADIRON and not hasattr(T.Tensor, "__torch_function__"):
        pytest.skip("__torch_function__ is missing")
    p = nn.UninitializedParameter()
    with pytest.raises(ValueError, match="^Attempted to use an uninitialized parameter in"):
        p + 1
    with pytest.raises(ValueError, match="^Attempted to use an uninitialized parameter in"):
        T.add(p, 1)
