"""Recurrent layers: steps beside their formulas, packed steps beside padded ones, both orders of derivatives, refusals."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from library import IS_GRADIRON, NO_GPU, T, assert_values

nn = T.nn
KINDS = ["RNN", "LSTM", "GRU"]


def drawn(*shape, seed=0, dtype=T.float64):
    return T.randn(*shape, dtype=dtype, generator=T.Generator().manual_seed(seed))


def made(kind, *args, dtype=T.float64, **options):
    """A layer whose weights are the same each time."""
    layer = getattr(nn, kind)(*args, dtype=dtype, **options)
    with T.no_grad():
        for i, p in enumerate(layer.parameters()):
            p.copy_(drawn(*p.shape, seed=50 + i) * 0.4)
    return layer


def states(kind, *shape):
    h = drawn(*shape, seed=5)
    return (h, drawn(*shape, seed=6)) if kind == "LSTM" else h


def step(kind, x, state, w, u, b, c, relu=False):
    """One step by its formula."""
    sums, own = x @ w.T + b, (state[0] if kind == "LSTM" else state) @ u.T + c
    if kind == "RNN":
        return (sums + own).relu() if relu else (sums + own).tanh()
    if kind == "LSTM":
        i, f, g, o = (sums + own).chunk(4, 1)
        cell = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
        return o.sigmoid() * cell.tanh(), cell
    xs, hs = sums.chunk(3, 1), own.chunk(3, 1)
    reset, update = (xs[0] + hs[0]).sigmoid(), (xs[1] + hs[1]).sigmoid()
    new = (xs[2] + reset * hs[2]).tanh()
    return (1 - update) * new + update * state


@pytest.mark.parametrize("samples", [1, 3, 40])
@pytest.mark.parametrize("kind", [*KINDS, "relu"])
def test_a_layer_is_its_steps(kind, samples):
    """Values and gradients; samples of several blocks."""
    relu, kind = kind == "relu", "RNN" if kind == "relu" else kind
    layer = made(kind, 3, 5, **({"nonlinearity": "relu"} if relu else {}))
    x, state = drawn(4, samples, 3).requires_grad_(), states(kind, 1, samples, 5)
    state = tuple(s.requires_grad_() for s in state) if kind == "LSTM" else state.requires_grad_()
    out, last = layer(x, state)
    now = tuple(s[0] for s in state) if kind == "LSTM" else state[0]
    outs = []
    for t in range(4):
        now = step(kind, x[t], now, *layer.parameters(), relu=relu)
        outs.append(now[0] if kind == "LSTM" else now)
    expected = T.stack(outs)
    assert T.allclose(out, expected)
    lasts = zip(last, now) if kind == "LSTM" else [(last, now)]
    weight = drawn(*out.shape, seed=9)
    found, wanted = (out * weight).sum(), (expected * weight).sum()
    for a, b in lasts:
        assert T.allclose(a[0], b)
        found, wanted = found + (a * a).sum(), wanted + (b * b).sum()
    operands = (x, *(state if kind == "LSTM" else [state]), *layer.parameters())
    for a, b in zip(T.autograd.grad(found, operands), T.autograd.grad(wanted, operands)):
        assert T.allclose(a, b)


@settings(max_examples=15)
@given(
    st.sampled_from(KINDS),
    st.lists(st.integers(1, 5), min_size=1, max_size=20),
    st.booleans(),
    st.integers(1, 2),
    st.booleans(),
)
def test_packed_steps_are_the_samples_alone(kind, lengths, both, layers, first):
    layer = made(kind, 2, 3, layers, bidirectional=both, batch_first=first)
    sequences = [drawn(n, 2, seed=i).requires_grad_() for i, n in enumerate(lengths)]
    packed = nn.utils.rnn.pack_sequence(sequences, enforce_sorted=False)
    out, last = layer(packed)
    padded, sizes = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
    assert sizes.tolist() == lengths
    total = 0
    for i, x in enumerate(sequences):
        alone, own = layer(x)
        assert T.allclose(padded[i, : lengths[i]], alone)
        pairs = zip(last, own) if kind == "LSTM" else [(last, own)]
        assert all(T.allclose(a[:, i], b) for a, b in pairs)
        total = total + (alone * alone).sum()
    found = T.autograd.grad((padded * padded).sum(), (*sequences, *layer.parameters()))
    for a, b in zip(found, T.autograd.grad(total, (*sequences, *layer.parameters()))):
        assert T.allclose(a, b)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("both", [False, True])
def test_derivatives_of_both_orders(kind, both):
    layer = made(kind, 2, 2, bidirectional=both)
    x, names = drawn(2, 2, 2).requires_grad_(), [name for name, _ in layer.named_parameters()]
    h = states(kind, 1 + both, 2, 2)

    def f(x, *weights):
        out, last = T.func.functional_call(layer, dict(zip(names, weights)), (x, h))
        return (out, *(last if kind == "LSTM" else [last]))

    operands = (x, *(p.detach().requires_grad_() for p in layer.parameters()))
    assert T.autograd.gradcheck(f, operands)
    assert T.autograd.gradgradcheck(f, operands)


def test_projections():
    layer = made("LSTM", 3, 5, 2, proj_size=2, bidirectional=True)
    out, (h, c) = layer(drawn(4, 2, 3))
    assert (out.shape, h.shape, c.shape) == ((4, 2, 4), (4, 2, 2), (4, 2, 5))
    assert T.allclose(out[-1, :, :2], h[2]) and T.allclose(out[0, :, 2:], h[3])
    small = made("LSTM", 2, 3, proj_size=2)
    assert T.autograd.gradcheck(lambda x: small(x)[0], (drawn(2, 2, 2).requires_grad_(),))


@pytest.mark.parametrize("kind", KINDS)
def test_cells_are_layers_of_one_step(kind):
    layer, cell = made(kind, 3, 4), made(kind + "Cell", 3, 4)
    x, state = drawn(5, 3), states(kind, 5, 4)
    own = cell(x, state)
    whole = tuple(s[None] for s in state) if kind == "LSTM" else state[None]
    _, last = layer(x[None], whole)
    for a, b in zip(own if kind == "LSTM" else [own], last if kind == "LSTM" else [last]):
        assert T.allclose(a, b[0])
    assert T.allclose(cell(x[0])[0], cell(x)[0][0] if kind == "LSTM" else cell(x)[0, 0], 1, 1)


def test_dropout_between_layers():
    layer = made("GRU", 3, 4, 2, dropout=0.5)
    x = drawn(6, 2, 3)
    T.manual_seed(1)
    a = layer(x)[0]
    T.manual_seed(1)
    assert T.equal(layer(x)[0], a) and not T.allclose(layer(x)[0], a)
    layer.eval()
    assert T.equal(layer(x)[0], layer(x)[0])


def test_samples_first():
    layer, turned = made("LSTM", 3, 4), made("LSTM", 3, 4, batch_first=True)
    x = drawn(5, 2, 3)
    out = turned(x.transpose(0, 1))[0]
    assert T.allclose(out.transpose(0, 1), layer(x)[0]) and out.shape == (2, 5, 4)


REFUSED = [
    (lambda: made("LSTM", 3, 4)(drawn(2, 2, 5)), RuntimeError, "input.size.-1. must be equal to input_size. Expected 3, got 5"),
    (lambda: made("GRU", 3, 4)(drawn(2, 2, 3), drawn(1, 3, 4)), RuntimeError, r"Expected hidden size \(1, 2, 4\), got"),
    (lambda: made("GRU", 3, 4)(drawn(0, 2, 3)), RuntimeError, "Expected sequence length to be larger than 0 in RNN"),
    (lambda: made("RNNCell", 3, 4)(drawn(2, 5)), RuntimeError, "input has inconsistent input_size: got 5 expected 3"),
    (lambda: made("GRUCell", 3, 4)(drawn(2, 3), drawn(3, 4)), RuntimeError, "Input batch size 2 doesn't match hidden"),
]


@pytest.mark.parametrize("call, kind, text", REFUSED)
def test_what_is_refused(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.skipif(not IS_GRADIRON, reason="these texts are ours")
def test_sizes_that_do_not_fit_are_refused():
    layer = made("LSTM", 3, 4)
    with pytest.raises(RuntimeError, match="incorrect number of RNN parameters"):
        T.lstm(drawn(2, 2, 3), states("LSTM", 1, 2, 4), [layer.weight_ih_l0], True, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="expected packed data"):
        sizes = T.tensor([1, 2])
        T.gru(drawn(3, 3), sizes, drawn(1, 2, 4), list(made("GRU", 3, 4).parameters()), True, 1, 0.0, False, False)
    with pytest.raises(RuntimeError, match="hidden state of shape"):
        T.gru(drawn(2, 3, 3), drawn(1, 2, 4), list(made("GRU", 3, 4).parameters()), True, 1, 0.0, False, False, False)


@pytest.mark.skipif(NO_GPU or not IS_GRADIRON, reason="without the GPU")
@pytest.mark.parametrize("kind", KINDS)
def test_on_the_gpu(kind):
    found = []
    for device in ("cpu", "cuda"):
        layer = made(kind, 3, 4, 2, bidirectional=True, dtype=T.float32).to(device)
        x = drawn(3, 2, 3, dtype=T.float32).to(device).requires_grad_()
        out, _ = layer(x)
        out.pow(2).sum().backward()
        found.append([t.cpu() for t in (out.detach(), x.grad, *(p.grad for p in layer.parameters()))])
    for a, b in zip(*found):
        assert T.allclose(a, b, 1e-4, 1e-5)


@pytest.mark.parametrize("cell", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cells_of_the_functions_say_what_has_the_wrong_dimensions(cell):
    call = {"RNNCell": T.rnn_tanh_cell, "LSTMCell": T.lstm_cell, "GRUCell": T.gru_cell}[cell]
    weights = getattr(nn, cell)(3, 4).parameters()
    state = T.ones(2, 4)
    with pytest.raises(RuntimeError, match="Expected 2D input .batch x feature., but got 3D input"):
        call(T.ones(1, 2, 3), (state, state) if cell == "LSTMCell" else state, *weights)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_a_sequence_without_batches(kind):
    layer = getattr(nn, kind)(3, 4, num_layers=2, bidirectional=True)
    output, state = layer(T.ones(5, 0, 3))
    assert output.shape == (5, 0, 8) and (state[0] if kind == "LSTM" else state).shape == (4, 0, 4)


def test_layers_that_drop_everything_keep_the_last_ones_output():
    layer = nn.GRU(3, 4, num_layers=2, dropout=1.0)
    top = nn.GRU(4, 4)
    for name, value in top.named_parameters():
        value.data.copy_(getattr(layer, name.replace("l0", "l1")).data)
    assert_values(layer(T.ones(5, 2, 3))[0], top(T.zeros(5, 2, 4))[0].tolist(), 1e-6)


def test_a_layer_without_one_of_its_weights():
    layer = nn.LSTM(3, 4)
    del layer.weight_hh_l0
    with pytest.raises(AttributeError, match="object has no attribute 'weight_hh_l0'"):
        layer.weight_hh_l0  # noqa: B018
    layer.weight_hh_l0 = nn.Parameter(T.zeros(16, 4))
    assert layer(T.ones(1, 1, 3))[0].shape == (1, 1, 4)


def test_assigned_weights_are_used():
    layer, x = T.nn.GRU(2, 3), T.ones(1, 2)
    before = layer(x)[0]
    weights = [w.detach() * 2 for w in layer._flat_weights]
    layer._flat_weights = weights
    assert not T.equal(layer(x)[0], before) and layer.weight_ih_l0 is not weights[0]
    assert all(a is b for a, b in zip(layer._flat_weights, weights, strict=True))
    layer.weight_ih_l0 = T.nn.Parameter(T.zeros(9, 2))
    assert layer._flat_weights[0] is layer.weight_ih_l0 and layer._flat_weights[1] is weights[1]
    layer.double()
    assert layer._flat_weights[1] is layer.weight_hh_l0
    layer._flat_weights = list(layer.parameters())
    assert layer(x.double())[0].requires_grad
