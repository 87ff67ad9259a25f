"""Conversion of parameters to a single vector, and back."""

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
    """Concatenate all parameters into one vector.

    Args:
        parameters: the parameters, all on one device.

    Examples:
        >>> nn.utils.parameters_to_vector(nn.Linear(4, 2).parameters()).shape
        torch.Size([10])
    """
    return _core.cat([param.view(-1) for param in _on_one_device(parameters)])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Set the parameters to consecutive parts of a vector, with which they share memory afterwards.

    Args:
        vec: vector with as many elements as all parameters.
        parameters: the parameters, all on one device.

    Examples:
        >>> layer = nn.Linear(2, 1)
        >>> nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0, 3.0]), layer.parameters())
        >>> layer.bias.detach()
        tensor([3.])
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    start = 0
    for param in _on_one_device(parameters):
        count = param.numel()
        param.data = vec[start : start + count].view_as(param).data
        start += count
