"""Names that packages call and that have no page of their own: checks, private functions, classes of results."""

import copy
import pickle

import pytest

from library import T

UNTOLD = "Expected cond to be True, but got False."


@pytest.mark.parametrize(
    "name, error",
    [
        ("_check", RuntimeError),
        ("_check_index", IndexError),
        ("_check_value", ValueError),
        ("_check_type", TypeError),
        ("_check_not_implemented", NotImplementedError),
    ],
)
def test_conditions(name, error):
    check = getattr(T, name)
    assert check(True) is None
    with pytest.raises(error, match=UNTOLD):
        check(False)
    with pytest.raises(error, match="^too long: 3$"):
        check(False, lambda: f"too long: {3}")
    with pytest.raises(TypeError, match="cond must be a bool, but got <class 'int'>"):
        check(1)
    with pytest.raises(TypeError, match="cond must be a bool, but got a Tensor. For tensor conditions"):
        check(T.tensor(True))


def test_conditions_of_tensors():
    assert T._check_tensor_all(T.tensor([True, True])) is None
    with pytest.raises(RuntimeError, match="^not all$"):
        T._check_tensor_all(T.tensor([True, False]), lambda: "not all")
    with pytest.raises(KeyError):
        T._check_tensor_all_with(KeyError, T.tensor([False]))
    with pytest.raises(TypeError, match="cond must be a tensor, but got <class 'bool'>"):
        T._check_tensor_all(True)
    with pytest.raises(TypeError, match="cond tensor must have dtype torch.bool, but got torch.int64"):
        T._check_tensor_all(T.tensor([1]))
    with pytest.raises(KeyError, match="k"):
        T._check_with(KeyError, False, lambda: "k")
    with pytest.warns(FutureWarning, match="_check_is_size will be removed"):
        assert T._check_is_size(3) is None
    for refused in (lambda: T._check_is_size(-1), lambda: T._check_is_size(3, max=2)):
        with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match=UNTOLD):
            refused()


def test_gradients_of_softmax_by_hand():
    x, g = T.randn(2, 3, requires_grad=True), T.randn(2, 3)
    for forward, backward in ((T.softmax, T._softmax_backward_data), (T.log_softmax, T._log_softmax_backward_data)):
        y = forward(x, 1)
        (wanted,) = T.autograd.grad(y, x, g)
        assert T.allclose(backward(g, y.detach(), 1, T.float32), wanted)


def test_small_ones():
    assert T.legacy_contiguous_format is T.contiguous_format
    assert T.zeros_like(T.ones(2, 3).t(), memory_format=T.legacy_contiguous_format).is_contiguous()
    assert T._shape_as_tensor(T.ones(2, 3)).tolist() == [2, 3]
    assert isinstance(T._C.Graph, type) and isinstance(T._C.Value, type)


def test_results_with_names_travel():
    made = T.max(T.eye(2), 0)
    assert type(made) is T.return_types.max
    assert isinstance(T.linalg.qr(T.eye(2)), T.return_types.linalg_qr)
    for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert type(again) is type(made)
        assert T.equal(again.values, made.values) and again.indices.tolist() == [0, 1]
    with pytest.raises(AttributeError):
        T.return_types.exp
