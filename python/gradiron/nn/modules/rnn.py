"""Recurrent layers and cells: RNN, LSTM and GRU."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import gradiron

from ... import _core
from ..._core import Tensor
from .. import init
from .._room import require_room
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

# The number of weight rows for each hidden unit, and the function.
_MODES: dict[str, tuple[int, Any]] = {
    "LSTM": (4, _core.lstm),
    "GRU": (3, _core.gru),
    "RNN_TANH": (1, _core.rnn_tanh),
    "RNN_RELU": (1, _core.rnn_relu),
}
_CELLS = {"tanh": _core.rnn_tanh_cell, "relu": _core.rnn_relu_cell}


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """Deprecated name of `index_select`."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` instead",
        FutureWarning,
        stacklevel=2,
    )
    return tensor.index_select(dim, permutation)


class RNNBase(Module):
    """Base class of `RNN`, `LSTM` and `GRU`.

    The weights of layer `k` are named `weight_ih_lk`, `weight_hh_lk`, `bias_ih_lk` and `bias_hh_lk`, with the ending
    `_reverse` for the backward direction; those of the gates are stacked along the first dimension.

    Args:
        mode: `"RNN_TANH"`, `"RNN_RELU"`, `"LSTM"` or `"GRU"`.
        input_size: number of features of the input.
        hidden_size: number of features of the hidden state.
        num_layers: number of stacked layers. Default: `1`
        bias: whether to add biases. Default: `True`
        batch_first: whether input and output are `(N, L, *)` instead of `(L, N, *)`. Default: `False`
        dropout: probability of dropout on the output of each layer but the last, in training. Default: `0.0`
        bidirectional: whether to run a second layer in the other direction. Default: `False`
        proj_size: size of a projection of the hidden state of an LSTM; 0 for none. Default: `0`
        device, dtype: device and data type of the parameters.

    Examples:
        >>> [name for name, _ in nn.RNNBase("GRU", 4, 8).named_parameters()]
        ['weight_ih_l0', 'weight_hh_l0', 'bias_ih_l0', 'bias_hh_l0']
    """

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
        # The size of the hidden state.
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
        """All weights, in the order in which the functions take them: those that were assigned here, else the parameters."""
        assigned = self.__dict__.get("_assigned_weights", {})
        return [assigned.get(name, getattr(self, name, None)) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Any]) -> None:
        given = zip(self._flat_weights_names, weights, strict=True)
        self.__dict__["_assigned_weights"] = {name: w for name, w in given if w is not getattr(self, name, None)}

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__.get("_assigned_weights", {}).pop(name, None)
        super().__setattr__(name, value)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self.__dict__.pop("_assigned_weights", None)
        return super()._apply(fn, recurse)

    def __getstate__(self) -> dict[str, Any]:
        # PyTorch has these as attributes.
        return {**super().__getstate__(), "_flat_weights_names": self._flat_weights_names, "_flat_weights": self._flat_weights}

    @property
    def all_weights(self) -> list[list[Any]]:
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Do nothing; it exists for compatibility with PyTorch, where it makes the weights contiguous."""

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    # Checks.

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise an error if dtype, dimensions or size of the input do not fit the layer."""
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
        """Return the shape that the hidden state must have."""
        batch = self._batch(input, batch_sizes)
        return self.num_layers * self._directions, batch, self.proj_size or self.hidden_size

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Raise an error if the hidden state does not have the expected shape."""
        if tuple(hx.size()) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise an error if input or hidden state do not fit the layer."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def _check_hidden_dims(self, hx: Any, dims: int) -> None:
        if hx.dim() != dims:
            batched = "batched 3-D" if dims == 3 else "unbatched 2-D"
            raise RuntimeError(f"For {batched} input, hx should also be {dims}-D but got {hx.dim()}-D tensor")

    # Operations on the hidden state, which `LSTM` overrides for its pair of states.

    def _first_hidden(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        shape = self.get_expected_hidden_size(input, batch_sizes)
        return _core.zeros(shape, dtype=input.dtype, device=input.device)

    def _each(self, hx: Any, change: Any) -> Any:
        return change(hx)

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Return the hidden state with its batch in another order."""
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
    enabled = getattr(gradiron, "is_autocast_enabled", None)
    return enabled is not None and (enabled("cpu") or enabled("cuda"))


class RNN(RNNBase):
    """Apply a multi-layer Elman recurrent neural network (RNN) to a sequence.

    For each step `t`, with the input `x[t]` of the layer, its hidden state `h` and the elementwise product `*`::

        h = tanh(W_ih @ x[t] + b_ih + W_hh @ h + b_hh)

    Call it with `(input, h_0)`, where the states default to zeros, or with a `PackedSequence` as input. It returns
    `(output, h_n)`: the hidden states of the last layer at all steps, and the final state of all layers. All weights
    are drawn uniformly from `[-k, k]` with `k = 1 / sqrt(hidden_size)`.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of the hidden state.
        num_layers: number of stacked layers, each of which takes the output of the one below. Default: `1`
        nonlinearity: `"tanh"` or `"relu"`. Default: `"tanh"`
        bias: whether to add `b_ih` and `b_hh`. Default: `True`
        batch_first: whether input and output are `(N, L, *)` instead of `(L, N, *)`; the states are not affected.
            Default: `False`
        dropout: probability of dropout on the output of each layer but the last, in training. Default: `0.0`
        bidirectional: whether to run a second layer from the last step to the first and concatenate both outputs.
            Default: `False`
        device, dtype: device and data type of the parameters.

    Shape:
        - Input: `(L, N, input_size)`, or `(L, input_size)` without a batch.
        - Output: `(L, N, D * hidden_size)`, where `D` is 2 if bidirectional, else 1.
        - h_0 and h_n: `(D * num_layers, N, hidden_size)`.

    Examples:
        >>> rnn = nn.RNN(4, 8, num_layers=2)
        >>> output, h_n = rnn(torch.randn(5, 3, 4))
        >>> output.shape, h_n.shape
        (torch.Size([5, 3, 8]), torch.Size([2, 3, 8]))
    """

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
    """Apply a multi-layer long short-term memory (LSTM) network to a sequence.

    For each step `t`, with the input `x[t]` of the layer, its hidden state `h` and the elementwise product `*`::

        i, f, o = sigmoid(W @ x[t] + U @ h + b), each with its own weights
        g = tanh(W @ x[t] + U @ h + b)
        c = f * c + i * g
        h = o * tanh(c)

    Call it with `(input, (h_0, c_0))`, where the states default to zeros, or with a `PackedSequence` as input. It
    returns `(output, (h_n, c_n))`: the hidden states of the last layer at all steps, and the final states of all
    layers. All weights are drawn uniformly from `[-k, k]` with `k = 1 / sqrt(hidden_size)`.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of the hidden state.
        num_layers: number of stacked layers, each of which takes the output of the one below. Default: `1`
        bias: whether to add `b_ih` and `b_hh`. Default: `True`
        batch_first: whether input and output are `(N, L, *)` instead of `(L, N, *)`; the states are not affected.
            Default: `False`
        dropout: probability of dropout on the output of each layer but the last, in training. Default: `0.0`
        bidirectional: whether to run a second layer from the last step to the first and concatenate both outputs.
            Default: `False`
        proj_size: size of a projection of the hidden state, `h = W_hr @ h`; 0 for none. Default: `0`
        device, dtype: device and data type of the parameters.

    Shape:
        - Input: `(L, N, input_size)`, or `(L, input_size)` without a batch.
        - Output: `(L, N, D * H)`, where `D` is 2 if bidirectional, else 1, and `H` is `proj_size` or `hidden_size`.
        - h_0 and h_n: `(D * num_layers, N, H)`; c_0 and c_n: `(D * num_layers, N, hidden_size)`.

    Examples:
        >>> lstm = nn.LSTM(4, 8, batch_first=True)
        >>> output, (h_n, c_n) = lstm(torch.randn(3, 5, 4))
        >>> output.shape, h_n.shape, c_n.shape
        (torch.Size([3, 5, 8]), torch.Size([1, 3, 8]), torch.Size([1, 3, 8]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """Return the shape that the cell state must have."""
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
    """Apply a multi-layer gated recurrent unit (GRU) network to a sequence.

    For each step `t`, with the input `x[t]` of the layer, its hidden state `h` and the elementwise product `*`::

        r, z = sigmoid(W @ x[t] + b + U @ h + c), each with its own weights
        n = tanh(W @ x[t] + b + r * (U @ h + c))
        h = (1 - z) * n + z * h

    Call it with `(input, h_0)`, where the states default to zeros, or with a `PackedSequence` as input. It returns
    `(output, h_n)`: the hidden states of the last layer at all steps, and the final state of all layers. All weights
    are drawn uniformly from `[-k, k]` with `k = 1 / sqrt(hidden_size)`.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of the hidden state.
        num_layers: number of stacked layers, each of which takes the output of the one below. Default: `1`
        bias: whether to add `b_ih` and `b_hh`. Default: `True`
        batch_first: whether input and output are `(N, L, *)` instead of `(L, N, *)`; the states are not affected.
            Default: `False`
        dropout: probability of dropout on the output of each layer but the last, in training. Default: `0.0`
        bidirectional: whether to run a second layer from the last step to the first and concatenate both outputs.
            Default: `False`
        device, dtype: device and data type of the parameters.

    Shape:
        - Input: `(L, N, input_size)`, or `(L, input_size)` without a batch.
        - Output: `(L, N, D * hidden_size)`, where `D` is 2 if bidirectional, else 1.
        - h_0 and h_n: `(D * num_layers, N, hidden_size)`.

    Examples:
        >>> gru = nn.GRU(4, 8, bidirectional=True)
        >>> output, h_n = gru(torch.randn(5, 3, 4))
        >>> output.shape, h_n.shape
        (torch.Size([5, 3, 16]), torch.Size([2, 3, 8]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    """Base class of `RNNCell`, `LSTMCell` and `GRUCell`.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of the hidden state.
        bias: whether to add the biases `bias_ih` and `bias_hh`.
        num_chunks: number of weight matrices stacked in each weight: 1 for RNN, 4 for LSTM, 3 for GRU.
        device, dtype: device and data type of the parameters.

    Examples:
        >>> nn.RNNCellBase(4, 8, bias=True, num_chunks=3).weight_ih.shape
        torch.Size([24, 4])
    """

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
        """Draw all weights anew."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _check_dims(self, value: Tensor, what: str) -> None:
        if value.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected {what} to be 1D or 2D, got {value.dim()}D instead")

    def _step(self, function: Any, input: Tensor, hx: Any) -> Any:
        return function(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)

    def _one_state(self, function: Any, input: Tensor, hx: Tensor | None) -> Tensor:
        """Run a step of a cell with one state."""
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
    """Run one step of an Elman recurrent neural network: `tanh(W_ih @ x + b_ih + W_hh @ h + b_hh)`.

    Call it with `(input, h)`; it returns the new hidden state.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of the hidden state.
        bias: whether to add the biases `bias_ih` and `bias_hh`. Default: `True`
        nonlinearity: `"tanh"` or `"relu"`. Default: `"tanh"`
        device, dtype: device and data type of the parameters.

    Shape:
        - Input: `(N, input_size)` or `(input_size,)`.
        - Hidden state and output: `(N, hidden_size)` or `(hidden_size,)`; zeros if not given.

    Examples:
        >>> cell = nn.RNNCell(4, 8)
        >>> cell(torch.randn(3, 4), torch.zeros(3, 8)).shape
        torch.Size([3, 8])
    """

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
    """Run one step of a long short-term memory (LSTM) network; see `LSTM` for the formulas.

    Call it with `(input, (h, c))`; it returns the new `(h, c)`.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of the hidden state.
        bias: whether to add the biases `bias_ih` and `bias_hh`. Default: `True`
        device, dtype: device and data type of the parameters.

    Shape:
        - Input: `(N, input_size)` or `(input_size,)`.
        - Hidden and cell state: `(N, hidden_size)` or `(hidden_size,)`; zeros if not given.

    Examples:
        >>> cell = nn.LSTMCell(4, 8)
        >>> h, c = cell(torch.randn(3, 4))
        >>> h.shape, c.shape
        (torch.Size([3, 8]), torch.Size([3, 8]))
    """

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
    """Run one step of a gated recurrent unit (GRU) network; see `GRU` for the formulas.

    Call it with `(input, h)`; it returns the new hidden state.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of the hidden state.
        bias: whether to add the biases `bias_ih` and `bias_hh`. Default: `True`
        device, dtype: device and data type of the parameters.

    Shape:
        - Input: `(N, input_size)` or `(input_size,)`.
        - Hidden state and output: `(N, hidden_size)` or `(hidden_size,)`; zeros if not given.

    Examples:
        >>> cell = nn.GRUCell(4, 8)
        >>> cell(torch.randn(3, 4)).shape
        torch.Size([3, 8])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._one_state(_core.gru_cell, input, hx)
