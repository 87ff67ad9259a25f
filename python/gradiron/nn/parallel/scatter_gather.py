"""Distribution of inputs to devices and collection of outputs, for the single device that is supported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _core
from ..._core import Tensor

__all__ = ["gather", "scatter", "scatter_kwargs"]


def moved(value: Any, place: Any) -> Any:
    """Move the tensors in any Python container to a device."""
    if isinstance(value, Tensor):
        return value.to(place)
    if isinstance(value, (list, tuple)):
        parts = [moved(part, place) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return type(value)((key, moved(part, place)) for key, part in value.items())
    return value


def _gpu(index: Any) -> Any:
    return _core.device("cuda", index) if isinstance(index, int) else _core.device(index)


def _the_only(what: str, parts: Sequence[Any]) -> Any:
    if len(parts) != 1:
        raise RuntimeError(f"{what} was given {len(parts)} devices, but gradiron has one GPU")
    return parts[0]


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Distribute inputs to devices, of which only one is supported: it moves them there.

    Args:
        inputs: a tensor, or containers of tensors.
        target_gpus: list with the device.
        dim: dimension to split along; kept for compatibility. Default: `0`

    Returns:
        A tuple or list with one element for each device.

    Examples:
        >>> torch.nn.parallel.scatter(torch.ones(2), ["cpu"])
        (tensor([1., 1.]),)
    """
    parts = [moved(inputs, _gpu(_the_only("scatter", target_gpus)))]
    return tuple(parts) if isinstance(inputs, Tensor) else parts


def scatter_kwargs(inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Move positional and keyword arguments to the device."""
    return tuple(scatter(inputs, target_gpus, dim)), tuple(scatter(kwargs or {}, target_gpus, dim))


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Collect the outputs of devices, of which only one is supported: it moves them.

    Args:
        outputs: list with the outputs of the device.
        target_device: device to move to.
        dim: dimension to concatenate along; kept for compatibility. Default: `0`

    Examples:
        >>> torch.nn.parallel.gather([torch.ones(2)], "cpu")
        tensor([1., 1.])
    """
    place = "cpu" if target_device in (-1, "cpu") else _gpu(target_device)
    return moved(_the_only("gather", outputs), place)
