"""Recurrent layers on the GPU: the CPU's values and gradients, in two launches a step."""

import pytest

from library import NO_GPU, T, assert_values

pytestmark = [pytest.mark.gradiron, pytest.mark.skipif(NO_GPU, reason="GRADIRON_TEST_NO_GPU is set")]
LAYERS = {
    "tanh": (T.nn.RNN, {}),
    "relu": (T.nn.RNN, {"nonlinearity": "relu"}),
    "gru": (T.nn.GRU, {}),
    "lstm": (T.nn.LSTM, {}),
    "projected": (T.nn.LSTM, {"proj_size": 2}),
}


def packed(x, lengths):
    return T.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)


def results(layer, x, device, lengths=None, first=True):
    """All that a layer gives, and the gradients of all that it takes."""
    x = x.to(device, copy=True).requires_grad_()
    layer = layer.to(device)
    directions = 2 if layer.bidirectional else 1
    states = [(layer.num_layers * directions, x.shape[1], layer.proj_size or layer.hidden_size)]
    if isinstance(layer, T.nn.LSTM):
        states.append((*states[0][:2], layer.hidden_size))
    given = [
        T.linspace(-1, 1, 2 * a * b * c, dtype=x.dtype)[::2].view(a, b, c).to(device).requires_grad_() for a, b, c in states
    ]
    arguments = [x if lengths is None else packed(x, lengths)]
    if first:
        arguments.append(tuple(given) if len(given) == 2 else given[0])
    out, last = layer(*arguments)
    out = out if lengths is None else out.data
    found = [out, *(last if isinstance(last, tuple) else [last])]
    loss = sum((y * y.detach().cos()).sum() for y in found)
    inputs = [x, *layer.parameters(), *(given if first else [])]
    return [*found, *T.autograd.grad(loss, inputs)]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("lengths", [None, [3, 5, 1]], ids=["whole", "packed"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_those_of_the_cpu(name, lengths, bias):
    kind, options = LAYERS[name]
    T.manual_seed(0)
    layer = kind(3, 4, 2, bidirectional=True, bias=bias, **options)
    x = T.randn(5, 3, 3)
    for first in (True, False):
        here, there = (results(layer, x, device, lengths, first) for device in ("cpu", "cuda"))
        for a, b in zip(here, there, strict=True):
            assert b.is_cuda
            assert_values(b.cpu(), a.detach(), 1e-5)


def test_cells_are_those_of_the_cpu():
    T.manual_seed(0)
    for kind in (T.nn.RNNCell, T.nn.GRUCell, T.nn.LSTMCell):
        cell, x = kind(3, 4), T.randn(2, 3)
        here = cell(x)
        there = cell.to("cuda")(x.cuda())
        for a, b in zip(*(y if isinstance(y, tuple) else (y,) for y in (here, there)), strict=True):
            assert_values(b.cpu(), a.detach(), 1e-6)


@pytest.mark.parametrize("name", ["tanh", "gru", "lstm"])
def test_second_gradients(name):
    kind, options = LAYERS[name]
    T.manual_seed(0)
    layer, x = kind(2, 3, **options), T.randn(3, 2, 2)
    found = []
    for device in ("cpu", "cuda"):
        y = x.to(device, copy=True).requires_grad_()
        (g,) = T.autograd.grad(layer.to(device)(y)[0].pow(2).sum(), y, create_graph=True)
        found.append(T.autograd.grad(g.pow(2).sum(), [y, *layer.parameters()]))
    for a, b in zip(*found, strict=True):
        assert_values(b.cpu(), a.detach(), 1e-4)


@pytest.mark.parametrize("name", ["tanh", "relu", "gru", "lstm"])
def test_a_time_step_is_two_launches(name):
    kind, options = LAYERS[name]
    layer = kind(3, 4, **options).cuda()

    def launches(steps):
        x = T.zeros(steps, 2, 3, device="cuda")
        before = T.cuda.dispatches()
        out = layer(x)[0]
        between = T.cuda.dispatches()
        out.backward(T.ones_like(out))
        return between - before, T.cuda.dispatches() - between

    launches(4)  # makes the gradients
    few, many = launches(4), launches(14)
    assert [b - a for a, b in zip(few, many, strict=True)] == [20, 20], (few, many)


def test_a_hidden_state_that_does_not_fit():
    layer = T.nn.GRU(3, 4).cuda()
    with pytest.raises(RuntimeError, match=r"Expected hidden size \(1, 2, 4\), got \[1, 3, 4\]"):
        layer(T.zeros(5, 2, 3, device="cuda"), T.zeros(1, 3, 4, device="cuda"))
    with pytest.raises(RuntimeError, match="device"):
        layer(T.zeros(5, 2, 3, device="cuda"), T.zeros(1, 2, 4))
