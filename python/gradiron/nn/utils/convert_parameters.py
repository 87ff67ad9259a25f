"""Many parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from ... import _core
from ..._core import Tensor
from ..._types import typename

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _on_one_device(parameters: Iterable[Tensor]) -> list[Tensor]:
    found = list(parameters)
    if len({param.device for param in found}) > 1:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return found


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of all parameters in one vector."""
    return _core.cat([param.view(-1) for param in _on_one_device(parameters)])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Gives the parameters the values of one vector, whose memory they share from now on."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    start = 0
    for param in _on_one_device(parameters):
        count = param.numel()
        param.data = vec[start : start + count].view_as(param).data
        start += count
