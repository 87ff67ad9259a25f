"""What `DataParallel` does to a batch before and after: with one device, the whole batch goes there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _core
from ..._core import Tensor

__all__ = ["gather", "scatter", "scatter_kwargs"]


def moved(value: Any, place: Any) -> Any:
    """Tensors in any of Python's containers on another device."""
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
    """The inputs of each device."""
    parts = [moved(inputs, _gpu(_the_only("scatter", target_gpus)))]
    return tuple(parts) if isinstance(inputs, Tensor) else parts


def scatter_kwargs(inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """The inputs of each device, with a name and without."""
    return tuple(scatter(inputs, target_gpus, dim)), tuple(scatter(kwargs or {}, target_gpus, dim))


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """The results of all devices as one."""
    place = "cpu" if target_device in (-1, "cpu") else _gpu(target_device)
    return moved(_the_only("gather", outputs), place)
