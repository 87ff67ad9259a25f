"""Where storages are put when they are loaded: by the tag that was saved with each, or by `map_location`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import device
from ..storage import TypedStorage

Tagger = Callable[[Any], str | None]
Mover = Callable[[Any, str], Any]

_registry: list[tuple[int, Tagger, Mover]] = []

_CPU_ONLY = (
    "If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
    "storages to the CPU."
)


def register_package(priority: int, tagger: Tagger, deserializer: Mover) -> None:
    """Adds a pair of functions that tag storages with their place, and put them there. The lowest priority is asked first."""
    _registry.append((priority, tagger, deserializer))
    _registry.sort(key=lambda entry: entry[0])


def _tag_cpu(storage: Any) -> str | None:
    return "cpu" if storage.device.type == "cpu" else None


def _put_on_cpu(storage: Any, location: str) -> Any:
    return storage if location == "cpu" else None


def _tag_gpu(storage: Any) -> str | None:
    place = storage.device
    if place.type in ("cpu", "meta"):
        return None
    # PyTorch does not number this device, and does not know the last two.
    return "mps" if place.type == "mps" else f"cuda:{place.index or 0}"


def _put_on_gpu(storage: Any, location: str) -> Any:
    if not re.match(r"(cuda|mps|gpu|wgpu)(:?\d+)?$", location):
        return None
    return storage.to(device=validated(location))


def validated(location: str) -> device:
    """The GPU that a tag names, if it is there."""
    from .. import cuda

    kind, number = re.fullmatch(r"([a-z]+):?(\d*)", location, re.ASCII).groups()  # type: ignore[union-attr]
    if not cuda.is_available():
        raise RuntimeError(
            f"Attempting to deserialize object on a {kind.upper()} device but torch.{kind}.is_available() is False. {_CPU_ONLY}"
        )
    if int(number or 0) >= cuda.device_count():
        raise RuntimeError(
            f"Attempting to deserialize object on {kind.upper()} device {number} but torch.{kind}.device_count() is "
            f"{cuda.device_count()}. Please use torch.load with map_location to map your storages to an existing device."
        )
    return _core.device(f"{kind}:{number or 0}")


def _tag_meta(storage: Any) -> str | None:
    return "meta" if storage.device.type == "meta" else None


def _put_on_meta(storage: Any, location: str) -> Any:
    return storage.to(device="meta") if location == "meta" else None


register_package(10, _tag_cpu, _put_on_cpu)
register_package(20, _tag_gpu, _put_on_gpu)
register_package(22, _tag_meta, _put_on_meta)


def validate_cuda_device(location: str) -> int:
    """The number of the GPU that a tag names, if it is there."""
    return validated(location).index or 0


def _name(storage: Any) -> str:
    return "torch.storage.TypedStorage" if isinstance(storage, TypedStorage) else "torch.storage.UntypedStorage"


def location_tag(storage: Any) -> str:
    """The tag for the place of a storage."""
    for _, tagger, _ in _registry:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(f"don't know how to determine data location of {_name(storage)}")


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage, put where its tag says."""
    for _, _, mover in _registry:
        moved = mover(storage, location)
        if moved is not None:
            return moved
    raise RuntimeError(f"don't know how to restore data location of {_name(storage)} (tagged with {location})")


class Passed(Exception):
    """What the user's function raised, on its way through a reader of pickles that makes errors its own."""


def mover(map_location: Any) -> Mover:
    """What puts storages where `map_location` says."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, map_location.get(location, location))
    if isinstance(map_location, (str, bytes, device)):
        place = map_location.decode() if isinstance(map_location, bytes) else str(map_location)
        return lambda storage, location: default_restore_location(storage, place)

    def moved(storage: Any, location: str) -> Any:
        try:
            result = map_location(storage, location)
        except Exception as error:
            raise Passed(error) from error
        return default_restore_location(storage, location) if result is None else result

    return moved
