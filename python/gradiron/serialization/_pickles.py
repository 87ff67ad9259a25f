"""The pickles inside checkpoints: storages by number, everything of ours by PyTorch's names."""

from __future__ import annotations

import io
import pickle
import warnings
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor, device, dtype
from .._creation import layout, memory_format
from .._parameter import Parameter, UninitializedTensorMixin
from .._pickling.rebuild import _get_layout
from .._pickling.reduce import reduce_tensor, storage_class
from .._pickling.state import thread
from .._storage import UntypedStorage
from .._types import Size
from ..storage import TypedStorage
from . import _names, _weights_only
from ._map_location import location_tag

_STORAGES = (UntypedStorage, TypedStorage)


class Book:
    """The storages of one checkpoint: each has a key and one dtype."""

    def __init__(self, *, legacy: bool = False) -> None:
        self._legacy = legacy
        self._known: dict[int, tuple[str, dtype]] = {}
        self.storages: dict[str, tuple[UntypedStorage, dtype]] = {}

    def entry(self, storage: Any) -> Any:
        """What stands in the pickle for a storage."""
        untyped = storage.untyped()
        kind = storage.dtype if isinstance(storage, TypedStorage) else _core.uint8
        name = untyped._seen._storage_id()
        if name not in self._known:
            key = str(name if self._legacy else len(self._known))
            self._known[name] = key, kind
            self.storages[key] = untyped, kind
        key, first = self._known[name]
        if kind != first and len(untyped):
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        entry = ("storage", storage_class(storage), key, location_tag(untyped), len(storage))
        # The old format tells of what part of another storage this is; it is none.
        return (*entry, None) if self._legacy else entry


def _reduced(obj: Any) -> Any:
    """How checkpoints hold what is ours; NotImplemented for the rest."""
    if isinstance(obj, UninitializedTensorMixin):
        return type(obj), (obj.requires_grad,)  # type: ignore[attr-defined]
    if isinstance(obj, Tensor):
        if obj.is_meta and thread.skip_data:
            warnings.warn("Serializing tensors on the meta device under skip_data context manager is a no-op", stacklevel=4)
        return reduce_tensor(obj) if type(obj).__reduce_ex__ is _own_reduce(type(obj)) else NotImplemented
    if isinstance(obj, Size):
        return Size, (tuple(obj),)
    if isinstance(obj, device):
        # PyTorch does not know the last two of our names for the GPU.
        kind = "cuda" if obj.type in ("gpu", "wgpu") else obj.type
        return device, (kind,) if obj.index is None else (kind, obj.index)
    if isinstance(obj, layout):
        return _get_layout, (repr(obj),)
    if isinstance(obj, memory_format):
        return str.__str__(obj)
    return NotImplemented


def _own_reduce(cls: type[Tensor]) -> Any:
    """What a class's tensors are reduced with unless it says otherwise."""
    return Parameter.__reduce_ex__ if cls is Parameter else Tensor.__reduce_ex__


def dump(obj: Any, book: Book, pickle_module: Any, protocol: int) -> bytes:
    """The pickle of an object."""
    before, thread.saves = thread.saves, True
    try:
        return _dumped(obj, book, pickle_module, protocol)
    finally:
        thread.saves = before


def _dumped(obj: Any, book: Book, pickle_module: Any, protocol: int) -> bytes:
    def persistent_id(_pickler: Any, given: Any) -> Any:
        return book.entry(given) if isinstance(given, _STORAGES) else None

    if protocol < 4:
        data = _renamed(obj, persistent_id, pickle_module, protocol)
        if data is not None:
            return data
    base: Any = _names.NamingPickler if pickle_module is pickle else pickle_module.Pickler

    inherited = _inherited(base)

    class Pickler(base):  # type: ignore[misc]
        def reducer_override(self, obj: Any) -> Any:
            found = _reduced(obj)
            return inherited(self, obj) if found is NotImplemented else found

    # A method of its own, which is called for every object: no call in between.
    Pickler.persistent_id = persistent_id
    target = io.BytesIO()
    Pickler(target, protocol=protocol).dump(obj)
    return target.getvalue()


def _inherited(base: Any) -> Callable[[Any, Any], Any]:
    """What the pickler below makes of an object, if it has its own ways."""
    return getattr(base, "reducer_override", lambda _pickler, _obj: NotImplemented)


def _renamed(obj: Any, persistent_id: Callable[[Any, Any], Any], pickle_module: Any, protocol: int) -> bytes | None:
    """A pickle that C has written, with names changed afterwards; None if a string in it could be taken for a name."""
    written, inherited = _names.Written(), _inherited(pickle_module.Pickler)

    class Pickler(pickle_module.Pickler):  # type: ignore[misc]
        def reducer_override(self, obj: Any) -> Any:
            found = _reduced(obj)
            if isinstance(found, str):
                written.note(obj, found)
            elif found is NotImplemented:
                if isinstance(obj, _names.BY_NAME):
                    written.note(obj)
                elif isinstance(obj, dtype):
                    written.note(obj, str(obj).removeprefix("torch."))
                return inherited(self, obj)
            return found

    Pickler.persistent_id = persistent_id
    target = io.BytesIO()
    Pickler(target, protocol=protocol).dump(obj)
    return written.renamed(target.getvalue())


def loader(pickle_module: Any, file: Any, persistent_load: Callable[[Any], Any], *, weights_only: bool, **options: Any) -> Any:
    """What reads a pickle from a file."""
    if weights_only:
        safe = _weights_only.Unpickler(file, **options)
        safe.persistent_load = persistent_load
        return safe

    class Unpickler(pickle_module.Unpickler):  # type: ignore[misc]
        def persistent_load(self, pid: Any) -> Any:
            return persistent_load(pid)

        def find_class(self, module: str, name: str) -> Any:
            if _names.is_torch(module):
                return _names.from_torch(module, name)
            return super().find_class(module, name)

    return Unpickler(file, **options)


def read_entry(pid: Any) -> tuple[Any, str, str, int]:
    """The dtype, key, place and number of elements of a storage, of which a pickle told."""
    if not isinstance(pid, tuple) or len(pid) != 5:
        raise pickle.UnpicklingError(f"a storage is not told of as {pid!r:.100}")
    kind, (name, made, key, location, count) = None, pid
    if name not in ("storage", b"storage"):
        raise pickle.UnpicklingError(f"Unknown typename for persistent_load, expected 'storage' but got '{name!r:.100}'")
    if isinstance(made, type) and issubclass(made, (UntypedStorage, TypedStorage)):
        kind = getattr(made, "dtype", None) if issubclass(made, TypedStorage) else _core.uint8
    location = location.decode("ascii") if isinstance(location, bytes) else location
    if not (isinstance(kind, dtype) and type(location) is str and type(count) is int and count >= 0):
        raise pickle.UnpicklingError(f"a storage cannot be {made!r:.100} with {count!r:.100} elements on {location!r:.100}")
    return kind, str(key), location, count
