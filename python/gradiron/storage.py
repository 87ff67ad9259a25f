"""Storages, the memory of tensors, by PyTorch's public names."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from . import _core
from ._core import Tensor, device, dtype
from ._storage import UntypedStorage, map_file

__all__ = ["TypedStorage", "UntypedStorage"]

# Former classes of typed storages; checkpoints still name dtypes by them.
LEGACY = {
    "float32": "FloatStorage",
    "float64": "DoubleStorage",
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
    "uint8": "ByteStorage",
    "int8": "CharStorage",
    "int16": "ShortStorage",
    "int32": "IntStorage",
    "int64": "LongStorage",
    "bool": "BoolStorage",
    "complex64": "ComplexFloatStorage",
    "complex128": "ComplexDoubleStorage",
}

# Dtypes that are younger than the former classes: checkpoints name them beside an untyped storage.
NEWER = (_core.uint16, _core.uint32, _core.uint64, _core.float8_e4m3fn, _core.float8_e5m2, _core.complex32)

_DEPRECATED = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. This "
    "should only matter to you if you are using storages directly.  To access UntypedStorage directly, use "
    "tensor.untyped_storage() instead of tensor.storage()"
)
_told = False


def warn_of_removal() -> None:
    """Warn once that typed storages are deprecated."""
    global _told
    if not _told:
        _told = True
        warnings.warn(_DEPRECATED, UserWarning, stacklevel=4)


class TypedStorage:
    """Memory that a tensor and its views share, as elements of a dtype; deprecated.

    Use `UntypedStorage`, which `Tensor.untyped_storage` returns.

    Args:
        args: number of elements or a sequence of numbers.
        kwargs: `wrap_storage`, `dtype` and `device`.

    Examples:
        >>> torch.ones(3).storage().tolist()
        [1.0, 1.0, 1.0]
    """

    _untyped_storage: UntypedStorage
    dtype: Any

    def __new__(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        # The former classes create instances of `TypedStorage`.
        made = object.__new__(TypedStorage)
        if cls is not TypedStorage:
            made.__init__(*args, dtype=cls._dtype, **kwargs)  # type: ignore[misc, attr-defined]
        return made

    def __init__(
        self,
        *args: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: dtype | None = None,
        device: Any = None,
        _internal: bool = False,
    ) -> None:
        if not _internal:
            warn_of_removal()
        if len(args) > 1:
            raise RuntimeError(f"TypedStorage() received an invalid combination of arguments: {len(args)} positional ones")
        self.dtype = dtype or _core.get_default_dtype()
        if wrap_storage is not None:
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
            self._untyped_storage = wrap_storage
        elif args and not isinstance(args[0], int):
            self._untyped_storage = UntypedStorage(_core.make_tensor(list(args[0]), self.dtype, device, False))
        else:
            count = args[0] if args else 0
            self._untyped_storage = UntypedStorage(_core.zeros([count], dtype=self.dtype, device=device))

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """Map the first elements of a file, see `UntypedStorage.from_file`."""
        kind: Any = getattr(cls, "_dtype", None) or _core.get_default_dtype()
        made = UntypedStorage(_file_elements(filename, shared, size, kind))
        return TypedStorage(wrap_storage=made, dtype=kind, _internal=True)

    @property
    def _all(self) -> Tensor:
        """Every element."""
        return self._untyped_storage._as(self.dtype)

    @property
    def device(self) -> device:
        """The device of the memory."""
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is on a GPU."""
        return self._untyped_storage.is_cuda

    def untyped(self) -> UntypedStorage:
        """Return the memory as an `UntypedStorage`."""
        return self._untyped_storage

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """Return the number of bytes per element."""
        return self.dtype.itemsize

    def size(self) -> int:
        """Return the number of elements."""
        return self.nbytes() // self.dtype.itemsize

    __len__ = _size = size

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self._untyped_storage.data_ptr()

    def get_device(self) -> int:
        """Return the number of the GPU, or -1 for the CPU."""
        return self._untyped_storage.get_device()

    def is_shared(self) -> bool:
        """Return whether the memory is shared with other processes."""
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> TypedStorage:
        """Move the elements into memory that other processes can share."""
        self._untyped_storage.share_memory_()
        return self

    def resizable(self) -> bool:
        """Return whether `resize_` works."""
        return self._untyped_storage.resizable()

    def resize_(self, size: int) -> None:
        """Change the number of elements."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def pickle_storage_type(self) -> str:
        """Return the former class name for this dtype."""
        return LEGACY[str(self.dtype).removeprefix("torch.")]

    _pickle_storage_type = pickle_storage_type

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the former class name, or convert to another type."""
        if dtype is None:
            return ("torch.cuda." if self.is_cuda else "torch.") + self.pickle_storage_type()
        if isinstance(dtype, str):
            found = next((kind for kind, name in LEGACY.items() if name == dtype.rpartition(".")[2]), None)
            if found is None:
                raise ValueError(f"invalid type: '{dtype}'")
            return self._converted(getattr(_core, found))
        return self._converted(getattr(dtype, "_dtype", dtype))

    def _converted(self, kind: Any) -> TypedStorage:
        made = UntypedStorage(_core.convert(self._all, kind, None, True))
        return TypedStorage(wrap_storage=made, dtype=kind, _internal=True)

    def _with(self, storage: UntypedStorage) -> TypedStorage:
        if storage is self._untyped_storage:
            return self
        return TypedStorage(wrap_storage=storage, dtype=self.dtype, _internal=True)

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """Copy to a device; returns the storage itself if it is there."""
        return self._with(self._untyped_storage.to(device=device))

    def cpu(self) -> TypedStorage:
        """Copy to the CPU; returns the storage itself if it is there."""
        return self._with(self._untyped_storage.cpu())

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """Copy to a GPU; returns the storage itself if it is there."""
        return self._with(self._untyped_storage.cuda(device))

    def clone(self) -> TypedStorage:
        """Return a copy."""
        return self._with(self._untyped_storage.clone())

    __copy__ = clone

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Copy the elements of another storage of the same size."""
        self._all.copy_(source._all)
        return self

    def fill_(self, value: Any) -> TypedStorage:
        """Set all elements to a value."""
        self._all.fill_(value)
        return self

    def tolist(self) -> list[Any]:
        """Return the elements as a list of numbers."""
        return list(self._all.tolist())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def _checked(self, index: Any) -> int:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise TypeError(f"can't index a {type(self)} with {type(index)}")
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return index

    def __getitem__(self, index: Any) -> Any:
        return self._all[self._checked(index)].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._all[index if isinstance(index, slice) else self._checked(index)] = value

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        import copy

        return self._with(copy.deepcopy(self._untyped_storage, memo))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TypedStorage):
            return NotImplemented
        mine, theirs = self._untyped_storage._seen, other._untyped_storage._seen
        return mine._storage_id() == theirs._storage_id()

    def __hash__(self) -> int:
        return hash(self._untyped_storage._seen._storage_id())

    def __reduce__(self) -> Any:
        return _rebuild, (self._untyped_storage, self.dtype)

    def __repr__(self) -> str:
        rows = "...\n" if self.device.type == "meta" else "".join(f" {element}\n" for element in self)
        return f"{rows}[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"

    __str__ = __repr__


def _conversion(name: str, kind: dtype) -> Any:
    def convert(self: TypedStorage) -> TypedStorage:
        return self._converted(kind)

    convert.__name__ = name
    convert.__qualname__ = f"TypedStorage.{name}"
    convert.__doc__ = f"Return a copy of the elements as `{kind}`."
    return convert


_CONVERSIONS = {
    "double": _core.float64,
    "float": _core.float32,
    "half": _core.float16,
    "bfloat16": _core.bfloat16,
    "long": _core.int64,
    "int": _core.int32,
    "short": _core.int16,
    "char": _core.int8,
    "byte": _core.uint8,
    "bool": _core.bool,
    "complex_double": _core.complex128,
    "complex_float": _core.complex64,
}
for _name, _kind in _CONVERSIONS.items():
    setattr(TypedStorage, _name, _conversion(_name, _kind))


def _rebuild(storage: UntypedStorage, kind: dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=storage, dtype=kind, _internal=True)


class _LegacyMeta(type):
    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, TypedStorage) and other.dtype == cls.dtype

    @property
    def dtype(cls) -> dtype:
        found: dtype = cls._dtype  # type: ignore[attr-defined]
        return found


def _legacy(kind: str, name: str) -> Any:
    doc = f"Deprecated class of storages of {kind}.\n\nExamples:\n    >>> torch.{name}(2).size()\n    2\n"
    parts = {"_dtype": getattr(_core, kind), "__module__": "gradiron", "__doc__": doc}
    return _LegacyMeta(name, (TypedStorage,), parts)


CLASSES: dict[dtype, type[TypedStorage]] = {getattr(_core, kind): _legacy(kind, name) for kind, name in LEGACY.items()}
globals().update({made.__name__: made for made in CLASSES.values()})


def _file_elements(filename: Any, shared: bool, size: int, kind: dtype) -> Tensor:
    return _core.storage_view(map_file(filename, shared, size * kind.itemsize), kind, 0, (size,), (1,))


def from_file(
    filename: Any,
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Map the first elements of a file into memory as a vector.

    Args:
        filename: path of the file.
        shared: write changes to the file, which is created or extended if needed; otherwise they stay in memory.
        size: number of elements. Default: `0`
        dtype: dtype of the elements; the default dtype if `None`.
        device: device of the result.
        requires_grad: whether the result requires a gradient. Default: `False`
        pin_memory: accepted for compatibility. Default: `False`

    Examples:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "numbers")
        >>> _ = torch.from_file(path, shared=True, size=3).fill_(1)
        >>> torch.from_file(path, size=3)
        tensor([1., 1., 1.])
    """
    made = _file_elements(filename, bool(shared), size or 0, dtype or _core.get_default_dtype())
    return _core.convert(made, None, device, False).requires_grad_(requires_grad)


def is_storage(obj: Any) -> bool:
    """Return whether an object is a storage.

    Args:
        obj: object to test.

    Examples:
        >>> torch.is_storage(torch.ones(1).untyped_storage())
        True
    """
    return isinstance(obj, (UntypedStorage, TypedStorage))


def storage_type(self: Tensor) -> type[TypedStorage]:
    """Return the former class of storages of this dtype."""
    return CLASSES[self.dtype]


def typed_storage(self: Tensor) -> TypedStorage:
    """Return the memory of this tensor and its views as a `TypedStorage`."""
    warn_of_removal()
    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True)


def _load_from_bytes(data: bytes) -> Any:
    """What PyTorch's pickles of storages call."""
    import io

    from .serialization import load

    return load(io.BytesIO(data), weights_only=False)
