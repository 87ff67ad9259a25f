"""Recurrent layers and cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradiron

from .._table import form
from .._writer import Value, Writer
from .shapes import permuted

__all__: list[str] = []

# ONNX has the gates in another order: the position here of each gate there.
_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


def _ordered(g: Writer, kind: str, weight: Any) -> Any:
    """The rows of a weight or bias in the order of ONNX's gates."""
    order = _GATES[kind]
    if len(order) == 1:
        return weight
    rows = weight.shape[0] // len(order)
    gates = g.several("Split", weight, [rows] * len(order), outputs=len(order), axis=0)
    return g.Concat(*(gates[at] for at in order), axis=0)


def _stacked(g: Writer, parts: Sequence[Any]) -> Any:
    """One value for each direction, along a first dimension."""
    added = [g.unsqueeze(part, 0) for part in parts]
    return added[0] if len(added) == 1 else g.Concat(*added, axis=0)


class _Layers:
    """The layers of a recurrent network, one node each."""

    def __init__(self, g: Writer, kind: str, params: Sequence[Any], has_biases: bool, bidirectional: bool) -> None:
        self.g, self.kind, self.has_biases = g, kind, has_biases
        self.directions = 2 if bidirectional else 1
        self.params = [params[at : at + self.width] for at in range(0, len(params), self.width)]

    @property
    def width(self) -> int:
        """The number of weights of one layer and direction."""
        return 4 if self.has_biases else 2

    def run(self, layer: int, x: Any, states: Sequence[Any], **attributes: Any) -> tuple[Value, ...]:
        """Adds a layer; returns its output for all steps, and its last states."""
        g, count = self.g, self.directions
        weights = self.params[layer * count : (layer + 1) * count]
        ordered = [[_ordered(g, self.kind, each) for each in group] for group in weights]
        bias = _stacked(g, [g.Concat(*group[2:], axis=0) for group in ordered]) if self.has_biases else None
        first = [g.slice(state, 0, layer * count, (layer + 1) * count) for state in states]
        made = g.several(
            self.kind,
            x,
            _stacked(g, [group[0] for group in ordered]),
            _stacked(g, [group[1] for group in ordered]),
            bias,
            None,
            *first,
            outputs=1 + len(states),
            hidden_size=weights[0][1].shape[1],
            direction="bidirectional" if count == 2 else "forward",
            **attributes,
        )
        # From (steps, directions, batch, features) to the features of both directions side by side.
        return g.Reshape(permuted(g, made[0], [0, 2, 1, 3]), [0, 0, -1]), *made[1:]


def _recurrent(
    g: Writer,
    kind: str,
    input: Any,
    hx: Any,
    params: Any,
    options: tuple[Any, ...],
    **attributes: Any,
) -> tuple[Any, ...]:
    if not isinstance(params, (list, tuple)):
        g.refuse("Packed sequences are not supported.")
    has_biases, num_layers, dropout, train, bidirectional, batch_first = options
    states = list(hx) if isinstance(hx, (list, tuple)) else [hx]
    layers = _Layers(g, kind, params, has_biases, bidirectional)
    if len(params) != num_layers * layers.directions * layers.width:
        g.refuse("Projections of the hidden state (proj_size) are not supported.")
    x = permuted(g, input, [1, 0, 2]) if batch_first else input
    last: list[tuple[Value, ...]] = []
    for layer in range(num_layers):
        if layer and train and dropout > 0:
            x = g.Dropout(x, g.cast(dropout, gradiron.float32), g.cast(True, gradiron.bool))
        x, *ends = layers.run(layer, x, states, **attributes)
        last.append(tuple(ends))
    ends = [parts[0] if num_layers == 1 else g.Concat(*parts, axis=0) for parts in zip(*last, strict=True)]
    return permuted(g, x, [1, 0, 2]) if batch_first else x, *ends


@form("lstm")
def _lstm(g: Writer, input: Any, hx: Any, params: Any, *options: Any) -> tuple[Any, ...]:
    return _recurrent(g, "LSTM", input, hx, params, options)


@form("gru")
def _gru(g: Writer, input: Any, hx: Any, params: Any, *options: Any) -> tuple[Any, ...]:
    return _recurrent(g, "GRU", input, hx, params, options, linear_before_reset=1)


def _rnn(g: Writer, activation: str, input: Any, hx: Any, params: Any, options: tuple[Any, ...]) -> tuple[Any, ...]:
    activations = [activation] * (2 if len(options) > 4 and options[4] else 1)
    return _recurrent(g, "RNN", input, hx, params, options, activations=activations)


@form("rnn_tanh")
def _rnn_tanh(g: Writer, input: Any, hx: Any, params: Any, *options: Any) -> tuple[Any, ...]:
    return _rnn(g, "Tanh", input, hx, params, options)


@form("rnn_relu")
def _rnn_relu(g: Writer, input: Any, hx: Any, params: Any, *options: Any) -> tuple[Any, ...]:
    return _rnn(g, "Relu", input, hx, params, options)


# Cells.


def _gates(g: Writer, x: Any, weight: Any, bias: Any, count: int) -> tuple[Any, ...]:
    if weight.shape[0] is None:
        g.refuse("The size of the hidden state is dynamic.")
    made = g.Gemm(x, weight, bias, transB=1)
    return g.several("Split", made, [weight.shape[0] // count] * count, outputs=count, axis=-1) if count > 1 else (made,)


@form("lstm_cell")
def _lstm_cell(g: Writer, input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> tuple[Any, ...]:
    hidden, cell = hx
    ours, theirs = _gates(g, input, w_ih, b_ih, 4), _gates(g, hidden, w_hh, b_hh, 4)
    i, f, c, o = (g.Add(one, two) for one, two in zip(ours, theirs, strict=True))
    cell = g.Add(g.Mul(g.Sigmoid(f), cell), g.Mul(g.Sigmoid(i), g.Tanh(c)))
    return g.Mul(g.Sigmoid(o), g.Tanh(cell)), cell


@form("gru_cell")
def _gru_cell(g: Writer, input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    ours, theirs = _gates(g, input, w_ih, b_ih, 3), _gates(g, hx, w_hh, b_hh, 3)
    reset, update = (g.Sigmoid(g.Add(ours[at], theirs[at])) for at in (0, 1))
    new = g.Tanh(g.Add(ours[2], g.Mul(reset, theirs[2])))
    return g.Add(new, g.Mul(update, g.Sub(hx, new)))


def _rnn_cell(g: Writer, kind: str, input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
    (ours,), (theirs,) = _gates(g, input, w_ih, b_ih, 1), _gates(g, hx, w_hh, b_hh, 1)
    return getattr(g, kind)(g.Add(ours, theirs))


@form("rnn_tanh_cell")
def _rnn_tanh_cell(g: Writer, input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    return _rnn_cell(g, "Tanh", input, hx, w_ih, w_hh, b_ih, b_hh)


@form("rnn_relu_cell")
def _rnn_relu_cell(g: Writer, input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    return _rnn_cell(g, "Relu", input, hx, w_ih, w_hh, b_ih, b_hh)
