"""Layers, lists and recursions that no memory or stack could hold are refused at once."""

import subprocess
import sys
import warnings

import pytest

from library import NAME, T

pytestmark = pytest.mark.gradiron

nn = T.nn


@pytest.mark.parametrize(
    "build",
    [
        lambda: nn.RNN(3, 2, 10**30),
        lambda: nn.LSTM(3, 2, 10**14),
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 2**63 - 1),
        lambda: nn.Transformer(8, 2, 2**40, 1),
    ],
)
def test_layers_that_no_memory_holds(build):
    with pytest.raises(RuntimeError):
        build()


def test_the_gradient_of_a_weight_that_no_memory_holds():
    with pytest.raises(RuntimeError, match="Kernel size can't be greater than actual input size"):
        nn.grad.conv3d_weight(T.ones(1, 1, 2, 2, 2), (1, 1, 2**40, 1, 1), T.ones(1, 1, 1, 1, 1))
    x, w = T.rand(2, 3, 5, 5), T.rand(4, 3, 3, 3).requires_grad_()
    y = nn.functional.conv2d(x, w)
    y.sum().backward()
    assert T.allclose(nn.grad.conv2d_weight(x, w.shape, T.ones_like(y)), w.grad)


def test_a_hook_that_calls_its_own_backward_without_end():
    a = T.ones(1, requires_grad=True)

    def again(g):
        with T.enable_grad():
            (a * a).sum().backward()

    a.register_hook(again)
    with pytest.raises(RecursionError):
        (a * a).sum().backward()


def test_a_list_of_too_many_levels():
    with pytest.raises(RecursionError, match="200000 levels"):
        T.ones((1,) * 200_000).tolist()
    assert T.ones((1,) * 60).tolist()


def test_a_subinterpreter_is_refused():
    code = f"""
import {NAME}
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
other = interpreters.create()
try:
    print(interpreters.run_string(other, "import {NAME}"))
except Exception as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "ImportError" in done.stdout + done.stderr, done


def test_refused_calls_leave_their_arguments():
    out = T.ones(3)
    with pytest.raises(RuntimeError, match="does not match device type of out parameter"):
        T.fft.rfftfreq(1, out=out, device="meta")
    assert out.tolist() == [1, 1, 1]
    x = nn.init.trunc_normal_(T.ones(100), std=2**63)
    assert x.abs().max() <= 2


def test_old_private_names():
    assert T._utils._element_size(T.float64) == 8
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert T.ones(1).volatile is False
    assert "volatile was removed (Variable.volatile is always False)" in str(told[0].message)
    values, inverse = T._unique(T.tensor([3, 1, 1]))
    assert values.tolist() == [1, 3] and inverse.numel() == 0
    assert T._unique(T.tensor([3, 1, 1]), return_inverse=True)[1].tolist() == [1, 0, 0]
    y = T.ones(2, requires_grad=True) ** 2
    with pytest.raises(TypeError, match="incompatible function arguments"):
        y.grad_fn._raw_saved_self.register_hooks()
