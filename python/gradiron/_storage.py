"""Storages, and copies of tensors by them: tensors that share memory still share it in the copy."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any
from weakref import WeakValueDictionary

from . import _core
from ._core import Tensor, device, dtype
from ._creation import frombuffer
from ._pickling.state import _set_obj_state, attributes, restored


class UntypedStorage:
    """Memory that a tensor and its views share, as bytes.

    Args:
        source: number of bytes, or a sequence of their values. Default: `0`
        device: device of the memory.

    Examples:
        >>> x = torch.ones(3)
        >>> x.untyped_storage().nbytes()
        12
        >>> x[1:].untyped_storage().data_ptr() == x.data_ptr()
        True
    """

    __slots__ = ("__dict__", "__weakref__", "_seen")

    def __init__(self, source: Tensor | int | list[int] = 0, *, device: Any = None) -> None:
        if isinstance(source, Tensor):
            self._seen = source
        elif isinstance(source, int):
            self._seen = _core.zeros([source], dtype=_core.uint8, device=device)
        else:
            self._seen = _core.convert(_core.from_bytes(bytes(source)), None, device, False)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """Map the first bytes of a file into memory.

        Args:
            filename: path of the file.
            shared: write changes to the file, which is created or extended if needed; otherwise they stay in memory.
                Default: `False`
            nbytes: number of bytes. Default: `0`
        """
        return cls(map_file(filename, shared, nbytes))

    @property
    def _all(self) -> Tensor:
        """Every byte that there is now."""
        # A GPU's bytes are copied by the kernels of their dtype.
        return self._as(_core.uint8 if self._seen.device.type == "cpu" else self._seen.dtype)

    def _as(self, kind: dtype) -> Tensor:
        """The bytes as elements of `kind`."""
        return _core.storage_view(self._seen, kind, 0, (self.nbytes() // kind.itemsize,), (1,))

    @property
    def device(self) -> device:
        """The device of the memory."""
        return self._seen.device

    def get_device(self) -> int:
        """Return the number of the GPU, or -1 for the CPU."""
        return self._seen.get_device()

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is on a GPU."""
        return self.device.type == "cuda"

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return self._seen._storage_bytes()

    def resizable(self) -> bool:
        """Return whether `resize_` works, which it does not for memory owned by another library."""
        return _core.is_resizable(self._seen)

    def resize_(self, size: int) -> UntypedStorage:
        """Change the number of bytes for all tensors that share the memory; new ones are uninitialized."""
        if not isinstance(size, int):
            raise RuntimeError(f"resize_ expects an int, but got {type(size).__name__}")
        _core.resize_storage(self._seen, size)
        return self

    def copy_(self, source: UntypedStorage, non_blocking: bool | None = None) -> UntypedStorage:
        """Copy the bytes of another storage of the same size."""
        if self.nbytes() != source.nbytes():
            sizes = f"self was {self.nbytes()} bytes but src was {source.nbytes()} bytes"
            raise RuntimeError(f"size does not match, {sizes}")
        self._all.copy_(_core.storage_view(source._all, self._all.dtype, 0, self._all.shape, (1,)))
        return self

    def fill_(self, value: int) -> UntypedStorage:
        """Set all bytes to a value."""
        self._all.fill_(value)
        return self

    def element_size(self) -> int:
        """Return 1, the number of bytes per element."""
        return 1

    def to(self, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
        """Copy to a device; returns the storage itself if it is there."""
        # They go as elements of the dtype that they were made with: the GPU has no others.
        kind = self._seen.dtype if self.nbytes() % self._seen.dtype.itemsize == 0 else _core.uint8
        moved = _core.convert(self._as(kind), None, device, False)
        return self if moved._storage_id() == self._seen._storage_id() else UntypedStorage(moved)

    def cpu(self) -> UntypedStorage:
        """Copy to the CPU; returns the storage itself if it is there."""
        return self if self.device.type == "cpu" else self.to(device="cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """Copy to a GPU; returns the storage itself if it is there."""
        return self.to(device="cuda:0" if device is None else device)

    def new(self) -> UntypedStorage:
        """Return an empty storage on the same device."""
        return UntypedStorage(0, device=self.device)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the name of the type, or convert to a storage of elements."""
        from .storage import TypedStorage

        if dtype is None:
            return "torch.cuda.UntypedStorage" if self.is_cuda else "torch.storage.UntypedStorage"
        return TypedStorage(wrap_storage=self, dtype=_core.uint8).type(dtype)

    def byteswap(self, dtype: dtype) -> None:
        """Swap the byte order of all numbers of a dtype, in place."""
        import array

        size = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        if size > 1:
            view = self._memory()
            numbers = array.array({2: "H", 4: "I", 8: "Q"}[size], view.tobytes())
            numbers.byteswap()
            view[:] = memoryview(numbers).cast("B")

    def _memory(self) -> memoryview:
        """The bytes in host memory, to read and to write while the storage lives."""
        import ctypes

        count = self.nbytes()
        start = self._all.data_ptr() if count else 0
        return memoryview((ctypes.c_ubyte * count).from_address(start) if start else bytearray()).cast("B")

    def is_shared(self) -> bool:
        """Return whether the memory is shared with other processes."""
        from .multiprocessing._memory import segment_of

        return self.is_cuda or segment_of(self) is not None

    def share_memory_(self) -> UntypedStorage:
        """Move the bytes into memory that other processes can share, for all tensors that use them."""
        from .multiprocessing._memory import share

        if self._all.is_meta:
            raise RuntimeError("_share_fd_: only available on CPU")
        share(self)
        return self

    def untyped(self) -> UntypedStorage:
        """Return the storage itself."""
        return self

    def data_ptr(self) -> int:
        """Return the address of the first byte."""
        return self._all.data_ptr()

    def tolist(self) -> list[int]:
        """Return the bytes as a list of numbers."""
        return list(_core.to_bytes(self._all))

    def clone(self) -> UntypedStorage:
        """Return a copy."""
        return UntypedStorage(self._all.clone())

    size = __len__ = nbytes

    def __sizeof__(self) -> int:
        return super().__sizeof__() + self.nbytes()

    def __getitem__(self, index: int | slice) -> int | UntypedStorage:
        if isinstance(index, slice):
            return UntypedStorage(_core.from_dlpack(_core.to_dlpack(self._all[index])))
        return int(self._all[self._checked(index)])

    def __setitem__(self, index: int | slice, value: int) -> None:
        self._all[index if isinstance(index, slice) else self._checked(index)] = value

    def _checked(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return index

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        made = memo[id(self)] = self.clone()
        return made

    def __reduce__(self) -> Any:
        return _rebuild_storage, (_core.to_bytes(self._all), self._all.dtype, str(self.device))

    def __repr__(self) -> str:
        rows = "...\n" if self._all.is_meta else "".join(f" {byte}\n" for byte in self.tolist())
        return f"{rows}[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"


# One object for each storage, so that copies and pickles see what is shared.
_known: WeakValueDictionary[int, UntypedStorage] = WeakValueDictionary()


def untyped_storage(self: Tensor) -> UntypedStorage:
    """Return the memory that this tensor and its views share."""
    layer = _core.layer(self)
    if layer is not None:
        wrapper = "TensorWrapper" if layer[1] is None else "BatchedTensorImpl"
        raise NotImplementedError(f"Cannot access storage of {wrapper}")
    found = _known.get(self._storage_id())
    if found is None:
        found = _known[self._storage_id()] = UntypedStorage(self.data)
    return found


def map_file(path: Any, shared: bool, size: int) -> Tensor:
    """Map the first bytes of a file into memory; a shared file is created or extended if needed."""
    import mmap
    import os

    mode = os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY
    try:
        file = os.open(path, mode | getattr(os, "O_BINARY", 0), 0o600)
    except OSError as error:
        how = "read-write" if shared else "read-only"
        raise RuntimeError(f"unable to open file <{path}> in {how} mode: {error.strerror} ({error.errno})") from error
    try:
        there = os.fstat(file).st_size
        if there < size and shared:
            os.ftruncate(file, size)
        elif there < size:
            raise RuntimeError(f"file <{path}> size <{there}> is smaller than the required mapping size <{size}>")
        if not size:
            return _core.empty([0], dtype=_core.uint8)
        memory = mmap.mmap(file, size, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
        return frombuffer(memory, dtype=_core.uint8)
    except OSError as error:
        raise RuntimeError(f"unable to map file <{path}>: {error.strerror} ({error.errno})") from error
    finally:
        os.close(file)


def _rebuild_storage(data: bytes, kind: dtype, place: str) -> UntypedStorage:
    whole = _core.storage_view(_core.from_bytes(data), kind, 0, (len(data) // kind.itemsize,), (1,))
    return UntypedStorage(whole if place == "cpu" else whole.to(place))


def rebuild_tensor(
    storage: UntypedStorage,
    kind: dtype,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    requires_grad: bool,
    cls: type[Tensor] | None = None,
    state: Any = None,
) -> Tensor:
    """The other end of a pickle."""
    made = _core.storage_view(storage._all, kind, offset, shape, strides)
    _core.set_version(made, 1)  # It was given its memory.
    if cls not in (None, Tensor):
        made = _core.make_subclass(cls, made, requires_grad)
    elif requires_grad:
        _core.tracked(made)
    return restored(made, state) if state else made


def rebuild_lazy(
    conjugated: bool,
    negated: bool,
    storage: UntypedStorage,
    kind: dtype,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    requires_grad: bool,
) -> Tensor:
    """The same for a tensor whose elements are conjugated or negated when they are read."""
    made = rebuild_tensor(storage, kind, offset, shape, strides, False)
    made = made.conj() if conjugated else made
    made = _core._neg_view(made) if negated else made
    return made.detach().requires_grad_(requires_grad)


def deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A leaf with memory of its own, which copies of its views share."""
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
            "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(self) in memo:
        return memo[id(self)]
    if self.is_conj() or self.is_neg():
        # Its copy is no view.
        made = self.detach().clone().requires_grad_(self.requires_grad)
    else:
        storage = copy.deepcopy(untyped_storage(self), memo)
        place = (self.dtype, self.storage_offset(), tuple(self.shape), self.stride())
        made = rebuild_tensor(storage, *place, self.requires_grad, type(self))
    memo[id(self)] = made
    _set_obj_state(made, copy.deepcopy(attributes(self), memo))
    if self.grad is not None:
        made.grad = copy.deepcopy(self.grad, memo)
    return made
