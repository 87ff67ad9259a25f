"""Recurrent layers and cells."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

from ... import _core
from ..._core import Tensor
from .. import init
from .._room import require_room
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

# How many rows of weights each hidden unit has, and the function.
_MODES: dict[str, tuple[int, Any]] = {
    "LSTM": (4, _core.lstm),
    "GRU": (3, _core.gru),
    "RNN_TANH": (1, _core.rnn_tanh),
    "RNN_RELU": (1, _core.rnn_relu),
}
_CELLS = {"tanh": _core.rnn_tanh_cell, "relu": _core.rnn_relu_cell}


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """The old name of `index_select`."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` instead",
        FutureWarning,
        stacklevel=2,
    )
    return tensor.index_select(dim, permutation)


class RNNBase(Module):
    """What the recurrent layers have in common: weights by layer and direction, and the way in and out."""

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_options(dropout)
        if mode not in _MODES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        rows = _MODES[mode][0] * hidden_size
        # What a step hands to the next one.
        handed = proj_size or hidden_size
        require_room(num_layers, elements=rows * handed)
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            taken = input_size if layer == 0 else handed * self._directions
            for ending in ("", "_reverse")[: self._directions]:
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, taken), "weight_hh": (rows, handed)}
                if bias:
                    shapes.update(bias_ih=(rows,), bias_hh=(rows,))
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = {f"{name}_l{layer}{ending}": shape for name, shape in shapes.items()}
                for name, shape in names.items():
                    setattr(self, name, Parameter(_core.empty(shape, device=device, dtype=dtype)))
                self._all_weights.append(list(names))
        self.reset_parameters()

    def _check_options(self, dropout: Any) -> None:
        if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= self.dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if self.dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
                f"greater than 1, but got dropout={dropout} and num_layers={self.num_layers}",
                stacklevel=4,
            )
        for name, kind in (("bias", bool), ("batch_first", bool), ("input_size", int), ("hidden_size", int)):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
            if kind is int and value <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Any]:
        """All weights as they are now, in the order in which the functions want them."""
        return [getattr(self, name, None) for name in self._flat_weights_names]

    def __getstate__(self) -> dict[str, Any]:
        # What PyTorch has as attributes.
        return {**super().__getstate__(), "_flat_weights_names": self._flat_weights_names, "_flat_weights": self._flat_weights}

    @property
    def all_weights(self) -> list[list[Any]]:
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Nothing: no library here wants the weights in one piece."""

    def reset_parameters(self) -> None:
        """Draws the weights anew."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    # What is checked.

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Whether the input fits the weights."""
        kind = self._flat_weights[0].dtype
        if input.dtype != kind and not _autocast():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({kind}). Convert input: input.to({kind}), or "
                f"convert model: model.to({input.dtype})"
            )
        wanted = 3 if batch_sizes is None else 2
        if input.dim() != wanted:
            raise RuntimeError(f"input must have {wanted} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}")

    def _batch(self, input: Tensor, batch_sizes: Tensor | None) -> int:
        if batch_sizes is not None:
            return int(batch_sizes[0])
        return input.size(0 if self.batch_first else 1)

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the hidden state."""
        batch = self._batch(input, batch_sizes)
        return self.num_layers * self._directions, batch, self.proj_size or self.hidden_size

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Whether the hidden state has that shape."""
        if tuple(hx.size()) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Whether input and hidden state fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def _check_hidden_dims(self, hx: Any, dims: int) -> None:
        if hx.dim() != dims:
            batched = "batched 3-D" if dims == 3 else "unbatched 2-D"
            raise RuntimeError(f"For {batched} input, hx should also be {dims}-D but got {hx.dim()}-D tensor")

    # What is done with one hidden state, or, in an LSTM, with both.

    def _first_hidden(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        shape = self.get_expected_hidden_size(input, batch_sizes)
        return _core.zeros(shape, dtype=input.dtype, device=input.device)

    def _each(self, hx: Any, change: Any) -> Any:
        return change(hx)

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The hidden state with its samples in another order."""
        return hx if permutation is None else self._each(hx, lambda h: h.index_select(1, permutation))

    def _run(self, input: Tensor, batch_sizes: Tensor | None, hx: Any) -> tuple[Tensor, Any]:
        function = _MODES[self.mode][1]
        options = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if batch_sizes is None:
            result = function(input, hx, *options, self.batch_first)
        else:
            result = function(input, batch_sizes, hx, *options)
        return result[0], result[1]

    def forward(self, input: Any, hx: Any = None) -> Any:
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            tensor = " tensor" if self.mode.startswith("RNN") else ""
            name = self.mode.partition("_")[0]
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.dim()}D{tensor} instead")
        single = input.dim() == 2
        batch_dim = 0 if self.batch_first else 1
        if hx is not None:
            self._check_hidden_dims(hx, input.dim())
        if single:
            input = input.unsqueeze(batch_dim)
            hx = None if hx is None else self._each(hx, lambda h: h.unsqueeze(1))
        if hx is None:
            hx = self._first_hidden(input, None)
        self.check_forward_args(input, hx, None)
        output, hidden = self._run(input, None, hx)
        if single:
            return output.squeeze(batch_dim), self._each(hidden, lambda h: h.squeeze(1))
        return output, hidden

    def _forward_packed(self, packed: PackedSequence, hx: Any) -> Any:
        input, batch_sizes, order, back = packed
        hx = self._first_hidden(input, batch_sizes) if hx is None else self.permute_hidden(hx, order)
        self.check_forward_args(input, hx, batch_sizes)
        output, hidden = self._run(input, batch_sizes, hx)
        return PackedSequence(output, batch_sizes, order, back), self.permute_hidden(hidden, back)

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        usual = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False}
        parts += [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        return ", ".join(parts)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = {name: value for name, value in state.items() if not name.startswith("_flat_weight")}
        super().__setstate__(state)
        self.__dict__.setdefault("proj_size", 0)


def _autocast() -> bool:
    import gradiron

    enabled = getattr(gradiron, "is_autocast_enabled", None)
    return enabled is not None and (enabled("cpu") or enabled("cuda"))


class RNN(RNNBase):
    """The simple recurrent layer: `tanh` or `relu` of what comes in and what was before."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            self.nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            self.nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{self.nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_" + self.nonlinearity.upper(), *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory: a hidden state, and a cell that gates write, read and forget."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the cell state."""
        return self.num_layers * self._directions, self._batch(input, batch_sizes), self.hidden_size

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes), self.get_expected_cell_size(input, batch_sizes)
        for at in (0, 1):
            self.check_hidden_size(hidden[at], expected[at], f"Expected hidden[{at}] size {{}}, got {{}}")

    def _check_hidden_dims(self, hx: Any, dims: int) -> None:
        if hx[0].dim() != dims or hx[1].dim() != dims:
            batched = "batched 3-D" if dims == 3 else "unbatched 2-D"
            raise RuntimeError(
                f"For {batched} input, hx and cx should also be {dims}-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )

    def _first_hidden(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        shapes = self.get_expected_hidden_size(input, batch_sizes), self.get_expected_cell_size(input, batch_sizes)
        return tuple(_core.zeros(shape, dtype=input.dtype, device=input.device) for shape in shapes)

    def _each(self, hx: Any, change: Any) -> Any:
        return change(hx[0]), change(hx[1])

    def _run(self, input: Tensor, batch_sizes: Tensor | None, hx: Any) -> tuple[Tensor, Any]:
        options = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if batch_sizes is None:
            output, *hidden = _core.lstm(input, hx, *options, self.batch_first)
        else:
            output, *hidden = _core.lstm(input, batch_sizes, hx, *options)
        return output, tuple(hidden)


class GRU(RNNBase):
    """The gated recurrent layer: one gate forgets, one blends the new with the old."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    """What the cells, one step each, have in common."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(_core.empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(_core.empty((rows, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(_core.empty(rows, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.bias is not True:
            parts.append(f"bias={self.bias}")
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            parts.append(f"nonlinearity={self.nonlinearity}")
        return ", ".join(parts)

    def reset_parameters(self) -> None:
        """Draws the weights anew."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _check_dims(self, value: Tensor, what: str) -> None:
        if value.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected {what} to be 1D or 2D, got {value.dim()}D instead")

    def _step(self, function: Any, input: Tensor, hx: Any) -> Any:
        return function(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)

    def _one_state(self, function: Any, input: Tensor, hx: Tensor | None) -> Tensor:
        """A step of a cell with one state."""
        self._check_dims(input, "input")
        if hx is not None:
            self._check_dims(hx, "hidden")
        single = input.dim() == 1
        if single:
            input = input.unsqueeze(0)
            hx = None if hx is None else hx.unsqueeze(0)
        if hx is None:
            hx = _core.zeros((input.size(0), self.hidden_size), dtype=input.dtype, device=input.device)
        made = self._step(function, input, hx)
        return made.squeeze(0) if single else made


class RNNCell(RNNCellBase):
    """One step of `RNN`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in _CELLS:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._one_state(_CELLS[self.nonlinearity], input, hx)


class LSTMCell(RNNCellBase):
    """One step of `LSTM`."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        self._check_dims(input, "input")
        for at, value in enumerate(hx or ()):
            self._check_dims(value, f"hx[{at}]")
        single = input.dim() == 1
        if single:
            input = input.unsqueeze(0)
            hx = None if hx is None else (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        if hx is None:
            zeros = _core.zeros((input.size(0), self.hidden_size), dtype=input.dtype, device=input.device)
            hx = (zeros, zeros)
        h, c = self._step(_core.lstm_cell, input, hx)
        return (h.squeeze(0), c.squeeze(0)) if single else (h, c)


class GRUCell(RNNCellBase):
    """One step of `GRU`."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._one_state(_core.gru_cell, input, hx)
