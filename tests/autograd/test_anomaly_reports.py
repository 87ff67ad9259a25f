"""Anomaly mode: what it tells of errors in hooks and of changed values, its two switches, and what nodes keep for it."""

import warnings

import pytest

from library import T, leaf


def reports(act):
    """What an erroneous program makes the mode tell, by the first words."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with T.autograd.set_detect_anomaly(True), pytest.raises(Exception) as error:
            act()
    return [str(w.message).split(" Traceback")[0] for w in told if "Error detected" in str(w.message)], error.value


def test_an_error_of_a_tensor_hook_is_told_with_its_node():
    def act():
        y = leaf([1.0]) * 2
        y.register_hook(lambda g: 1 / 0)
        y.sum().backward()

    told, error = reports(act)
    assert told == ["Error detected in MulBackward0."]
    assert isinstance(error, ZeroDivisionError)


def test_an_error_of_a_node_s_hook_is_told():
    def act():
        y = leaf([1.0]).exp()
        y.grad_fn.register_prehook(lambda grads: 1 / 0)
        y.sum().backward()

    assert reports(act)[0] == ["Error detected in ExpBackward0."]


def test_a_warning_that_is_an_error_is_printed(capsys):
    y = leaf([1.0]) * 2
    y.register_hook(lambda g: 1 / 0)
    with T.autograd.set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ZeroDivisionError):
            y.sum().backward()
    assert "Error detected in MulBackward0" in capsys.readouterr().err


def test_changed_values_point_to_the_backtrace():
    def act():
        x = leaf([1.0])
        y = x.exp()
        y.add_(1)
        y.sum().backward()

    told, error = reports(act)
    assert told == ["Error detected in ExpBackward0."]
    assert "Hint: the backtrace further above shows the operation that failed to compute its gradient." in str(error)
    with pytest.raises(RuntimeError, match="Hint: enable anomaly detection to find the operation"):
        act()


def test_a_custom_function_s_traceback_ends_where_it_was_called():
    class Fails(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise ValueError("mine")

    with T.autograd.set_detect_anomaly(True), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(ValueError, match="mine"):
            Fails.apply(leaf([1.0])).sum().backward()
    text = next(str(w.message) for w in told if "Error detected in FailsBackward" in str(w.message))
    # Behind it may come the package's own `apply`, and that of sparse tensors once these are in use.
    last = [line for line in text.splitlines() if line.startswith("  File ")][-3:]
    assert any("test_anomaly_reports.py" in line for line in last)


def test_nan_is_looked_for_unless_switched_off():
    assert not T.is_anomaly_enabled()
    assert T.is_anomaly_check_nan_enabled()
    with T.autograd.set_detect_anomaly(True, False):
        assert T.is_anomaly_enabled()
        assert not T.is_anomaly_check_nan_enabled()
        (leaf([0.0]).sqrt() * 0).sum().backward()
    assert T.is_anomaly_check_nan_enabled()
    (leaf([0.0]).sqrt() * 0).sum().backward()  # only in the mode


@pytest.mark.parametrize("wrong", [3, "x", None])
def test_both_switches_are_bools(wrong):
    with pytest.raises(TypeError, match=r"argument 'enabled' \(position 1\) must be bool, not"):
        T.autograd.set_detect_anomaly(wrong)
    with pytest.raises(TypeError, match=r"argument 'check_nan' \(position 2\) must be bool, not"):
        T.autograd.set_detect_anomaly(True, wrong)
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        mode = T.autograd.detect_anomaly(wrong)
    with pytest.raises(TypeError, match=r"argument 'check_nan' \(position 2\) must be bool, not"), mode:
        pass


def test_a_node_keeps_the_way_to_its_call():
    with T.autograd.set_detect_anomaly(True):
        y = leaf([1.0]) * 2
        traceback = y.grad_fn.metadata["traceback_"]
    assert isinstance(traceback, list)
    assert any("test_anomaly_reports.py" in frame for frame in traceback)
    assert (leaf([1.0]) * 2).grad_fn.metadata == {}
