"""Functions of PyTorch's that have no public name, and that packages call."""

from __future__ import annotations

from .. import _core
from .._core import Tensor, dtype
from .._creation import tensor


def _shape_as_tensor(self: Tensor) -> Tensor:
    """The sizes, as a tensor."""
    return tensor(list(self.shape), dtype=_core.int64)


def _unique(self: Tensor, sorted: bool = True, return_inverse: bool = False) -> tuple[Tensor, Tensor]:
    """The different elements, and where each element stands among them, which is empty unless it is asked for."""
    values, inverse = _core.unique(self, sorted, True)
    return values, inverse if return_inverse else _core.empty([0], dtype=_core.int64, device=self.device)


def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: dtype) -> Tensor:
    """What reaches the input of a softmax whose result is `output`."""
    made = output * (grad_output - (grad_output * output).sum(dim, keepdim=True))
    return made.to(input_dtype)


def _log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: dtype) -> Tensor:
    """What reaches the input of a `log_softmax` whose result is `output`."""
    made = grad_output - output.exp() * grad_output.sum(dim, keepdim=True)
    return made.to(input_dtype)
