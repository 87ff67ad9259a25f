"""no_grad, enable_grad, set_grad_enabled, inference_mode and anomaly detection."""

import threading

import pytest

from library import T, assert_values, leaf


def test_no_grad_records_nothing(device):
    x = leaf([1.0], device)
    with T.no_grad():
        assert not T.is_grad_enabled()
        y = x * 2
        assert not y.requires_grad and y.is_leaf and y.grad_fn is None
    assert T.is_grad_enabled() and (x * 2).requires_grad


def test_modes_nest_and_come_back():
    with T.no_grad():
        with T.enable_grad():
            assert T.is_grad_enabled()
            with T.set_grad_enabled(False):
                assert not T.is_grad_enabled()
            assert T.is_grad_enabled()
        assert not T.is_grad_enabled()
    assert T.is_grad_enabled()


def test_an_exception_restores_the_mode():
    with pytest.raises(ValueError):
        with T.no_grad():
            raise ValueError
    assert T.is_grad_enabled()


def test_a_class_derived_from_no_grad():
    class Mode(T.no_grad):
        def __new__(cls, *args):
            return super().__new__(cls)

        def __init__(self, *args):
            super().__init__()
            self.args = args

    with Mode(1, 2) as entered:
        assert not T.is_grad_enabled()
    assert T.is_grad_enabled() and entered is None and Mode(1, 2).args == (1, 2)
    with pytest.raises(TypeError):
        T.no_grad.__new__(int)
    with pytest.raises(TypeError):
        T.no_grad(1, 2)


def test_set_grad_enabled_as_a_statement():
    T.set_grad_enabled(False)
    assert not T.is_grad_enabled()
    T.set_grad_enabled(True)
    assert T.is_grad_enabled()


def test_one_manager_may_be_entered_again():
    mode = T.no_grad()
    with mode:
        pass
    with mode:
        assert not T.is_grad_enabled()
        with mode:
            assert not T.is_grad_enabled()
        assert not T.is_grad_enabled()


@pytest.mark.parametrize("decorate", [lambda f: T.no_grad()(f), lambda f: T.no_grad(f), lambda f: T.set_grad_enabled(False)(f)])
def test_as_a_decorator(decorate):
    @decorate
    def double(x, *, times=2):
        """Doubles."""
        return x * times

    x = leaf([1.0])
    assert not double(x).requires_grad
    assert not double(x, times=3).requires_grad
    assert double.__name__ == "double" and double.__doc__ == "Doubles."
    assert T.is_grad_enabled()


def test_enable_grad_as_a_decorator():
    @T.enable_grad()
    def double(x):
        return x * 2

    with T.no_grad():
        assert double(leaf([1.0])).requires_grad


def test_a_decorated_generator_holds_the_mode_only_while_it_runs():
    @T.no_grad()
    def numbers(x):
        for i in range(3):
            assert not T.is_grad_enabled()
            yield x * i

    x = leaf([1.0])
    for y in numbers(x):
        assert T.is_grad_enabled()
        assert not y.requires_grad


def test_the_mode_belongs_to_the_thread():
    seen = []
    with T.no_grad():
        thread = threading.Thread(target=lambda: seen.append(T.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_creation_with_requires_grad_ignores_the_mode():
    with T.no_grad():
        x = T.ones(1, requires_grad=True)
        assert x.requires_grad and x.is_leaf


def test_in_place_under_no_grad_is_free_and_counted():
    x = leaf([1.0, 2.0])
    with T.no_grad():
        x.mul_(3)
        x -= 1
    assert_values(x, [2.0, 5.0])
    assert x._version == 2 and x.requires_grad and x.is_leaf


def test_views_of_leaves_under_no_grad():
    x = leaf([1.0, 2.0])
    with T.no_grad():
        x[0] = 9.0
        x.view(2, 1)[1] = 8.0
    assert_values(x, [9.0, 8.0])


def test_inference_mode():
    x = leaf([1.0])
    with T.inference_mode():
        assert T.is_inference_mode_enabled() and not T.is_grad_enabled()
        y = x * 2
    assert not T.is_inference_mode_enabled() and T.is_grad_enabled()
    assert not y.requires_grad
    assert_values(y.clone() * x, [2.0])
    with T.inference_mode(), T.enable_grad():
        assert T.is_inference_mode_enabled() and T.is_grad_enabled()
    with T.no_grad(), T.inference_mode(False):
        assert T.is_grad_enabled() and not T.is_inference_mode_enabled()


def test_detect_anomaly_names_the_forward_call():
    assert not T.is_anomaly_enabled()
    with pytest.warns(UserWarning) as caught:
        with T.autograd.detect_anomaly():
            assert T.is_anomaly_enabled()
            x = leaf([-1.0])
            y = x.sqrt()
            with pytest.raises(RuntimeError, match="returned nan values in its 0th output"):
                y.backward()
    text = "\n".join(str(w.message) for w in caught)
    assert "Anomaly Detection has been enabled" in text
    assert "Traceback of forward call that caused the error" in text and "x.sqrt()" in text
    assert not T.is_anomaly_enabled()


def test_set_detect_anomaly():
    T.autograd.set_detect_anomaly(True, check_nan=False)
    try:
        assert T.is_anomaly_enabled() and not T.is_anomaly_check_nan_enabled()
        (leaf([-1.0]).sqrt()).backward()
    finally:
        T.autograd.set_detect_anomaly(False)
    assert not T.is_anomaly_enabled()


def test_the_gradient_mode_of_backward():
    seen = []
    x = leaf([1.0])
    x.register_hook(lambda g: seen.append(T.is_grad_enabled()))
    (x * 2).backward()
    (x * x).backward(create_graph=True)
    assert seen == [False, True]


def test_variable_is_a_tensor():
    v = T.autograd.Variable(T.tensor([9.0]), requires_grad=True)
    assert isinstance(v, T.Tensor) and isinstance(v, T.autograd.Variable) and v.requires_grad and v.is_leaf
    assert not T.autograd.Variable(T.ones(1)).requires_grad
