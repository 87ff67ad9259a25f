"""`save` and `load`, in PyTorch's file formats."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from enum import Enum
from typing import IO, Any

from .. import _core, storage
from .._core import device
from .._pickling.rebuild import _get_layout as _get_layout
from .._pickling.state import thread
from .._storage import UntypedStorage
from ..utils.serialization import config
from . import _archive, _files, _legacy, _map_location, _pickles, _weights_only
from ._map_location import default_restore_location, location_tag, register_package, validate_cuda_device
from ._weights_only import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "StorageType",
    "add_safe_globals",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "validate_cuda_device",
]

DEFAULT_PROTOCOL = 2
# What annotations of programs call `map_location`.
MAP_LOCATION = Callable[[UntypedStorage, str], UntypedStorage] | device | str | dict[str, str] | None


class SourceChangeWarning(Warning):
    """Warning that the source of a saved class has changed."""


class LoadEndianness(Enum):
    """Byte order of files that do not state theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class StorageType:
    """A class of storages, by its former name."""

    def __init__(self, name: str) -> None:
        self._dtype = next(kind for kind, made in storage.CLASSES.items() if made.__name__ == name)

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self._dtype

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


def get_default_load_endianness() -> LoadEndianness | None:
    """Return the byte order of files that do not state theirs."""
    return config.load.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the byte order of files that do not state theirs."""
    if not isinstance(endianness, LoadEndianness | None):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    config.load.endianness = endianness


def get_crc32_options() -> bool:
    """Return whether `save` computes checksums."""
    return config.save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Set whether `save` computes checksums; without them, `load` does not notice changed bytes."""
    config.save.compute_crc32 = compute_crc32


def get_default_mmap_options() -> int | None:
    """Return the flags by which `load(mmap=True)` maps files."""
    return config.load.mmap_flags


class set_default_mmap_options:
    """Set the flags of `load(mmap=True)`, `mmap.MAP_PRIVATE` or `mmap.MAP_SHARED`, at once or for a `with` block."""

    def __init__(self, flags: int) -> None:
        if sys.platform == "win32":
            raise RuntimeError("Changing the default mmap options is currently not supported for Windows")
        from mmap import MAP_PRIVATE, MAP_SHARED

        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got "
                f"{flags}"
            )
        self.prev = config.load.mmap_flags
        config.load.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        config.load.mmap_flags = self.prev


class skip_data:
    """Let `save` leave space for the data of tensors without writing it, and `load` not read it, in a `with` block."""

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._before = thread.skip_data
        thread.skip_data = True

    def __exit__(self, *error: object) -> None:
        thread.skip_data = self._before


def _is_path(given: Any) -> bool:
    return isinstance(given, (str, os.PathLike))


def _check_dill(pickle_module: Any) -> None:
    if getattr(pickle_module, "__name__", None) == "dill":
        version = tuple(int(part) for part in re.findall(r"\d+", pickle_module.__version__)[:3])
        if version < (0, 3, 1):
            raise ValueError(
                f"'torch' supports dill >= 0.3.1, but you have dill {pickle_module.__version__}. Please upgrade dill or switch "
                "to 'pickle'"
            )


def save(
    obj: object,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Save an object, such as a `state_dict`, to a file.

    PyTorch can load it. An existing file is replaced only when everything is written.

    Args:
        obj: object to save.
        f: path, or a file-like object with `write`.
        pickle_module: module that pickles what is not a tensor. Default: `pickle`
        pickle_protocol: protocol of the pickle. Default: `2`

    Examples:
        >>> import io
        >>> buffer = io.BytesIO()
        >>> torch.save({"x": torch.ones(2)}, buffer)
        >>> _ = buffer.seek(0)
        >>> torch.load(buffer)
        {'x': tensor([1., 1.])}
    """
    _check_dill(pickle_module)
    if not _is_path(f) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if not _use_new_zipfile_serialization and thread.skip_data:
        raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
    name = "archive"
    if _is_path(f):
        stem = os.path.basename(os.fspath(f)).rpartition(".")
        name = stem[0] or stem[2]
    # Before a file is touched, for here is what fails most often.
    book = _pickles.Book(legacy=not _use_new_zipfile_serialization)
    data = _pickles.dump(obj, book, pickle_module, pickle_protocol)
    with _target(f) as write:
        if _use_new_zipfile_serialization:
            options = config.save
            writer = _archive.Writer(
                write,
                name if name.isascii() else "archive",
                checksums=options.compute_crc32,
                alignment=options.storage_alignment,
            )
            _save(data, book, writer, not _disable_byteorder_record)
        else:
            _legacy.save(data, book, write, pickle_module, pickle_protocol)


@contextlib.contextmanager
def _target(f: Any) -> Iterator[Callable[[Any], Any]]:
    """The `write` of a file that is to be written."""
    if not _is_path(f):
        if not callable(f.write):
            raise TypeError(f"Buffer of {str(type(f)).strip('<>')} has no callable attribute 'write'")
        yield f.write
        if hasattr(f, "flush"):
            f.flush()
        return
    try:
        with _files.replacing(os.fspath(f)) as file:
            yield file.write
    except OSError as error:
        raise RuntimeError(f"PytorchStreamWriter failed writing file {os.fspath(f)}: file write failed ({error})") from error


def _save(data: bytes, book: _pickles.Book, writer: _archive.Writer, byteorder: bool) -> None:
    writer.record("data.pkl", data)
    writer.record(".format_version", b"1")
    writer.record(".storage_alignment", str(config.save.storage_alignment).encode())
    if byteorder:
        writer.record("byteorder", sys.byteorder.encode())
    for key, (held, _) in book.storages.items():
        here = held.cpu()
        writer.record(f"data/{key}", here._memory(), elements=here._all, skip=thread.skip_data)
    writer.end()


_TRUTH = ("1", "y", "yes", "true")


def _forced(name: str) -> bool:
    return os.getenv(name, "0").lower() in _TRUTH


def _decide(weights_only: bool | None, pickle_module: Any) -> bool:
    """Whether nothing in the file may run."""
    force, forbid = _forced("TORCH_FORCE_WEIGHTS_ONLY_LOAD"), _forced("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    if force and forbid:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both were "
            "set."
        )
    if force:
        return True
    if weights_only is None and forbid:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the`weights_only` argument was not "
            "explicitly passed to `torch.load`, forcing weights_only=False.",
            stacklevel=3,
        )
        return False
    return pickle_module is None if weights_only is None else bool(weights_only)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Load an object that `save` wrote, here or in PyTorch, or the tensors of a `.safetensors` file.

    By default only tensors and plain types are loaded, and no code in the file runs.

    Args:
        f: path, or a file-like object with `read` and `seek`.
        map_location: device for the tensors, a dict from old to new devices, or a function of storage and location.
        pickle_module: module that unpickles what is not a tensor, if `weights_only` is false.
        weights_only: refuse all but tensors and plain types; false allows any code to run. True if `None`.
        mmap: map the file into memory instead of reading it.
        pickle_load_args: options of the unpickler, if `weights_only` is false.

    Raises:
        pickle.UnpicklingError: if the file holds what `weights_only` refuses.

    Examples:
        >>> import io
        >>> buffer = io.BytesIO()
        >>> torch.save([1, 2], buffer)
        >>> _ = buffer.seek(0)
        >>> torch.load(buffer)
        [1, 2]
    """
    weights_only = _decide(weights_only, pickle_module)
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if weights_only and pickle_load_args:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
    pickle_module = pickle_module or pickle
    mmap = config.load.mmap if mmap is None else mmap
    _check_dill(pickle_module)
    pickle_load_args.setdefault("encoding", "utf-8")
    if _is_path(f) and os.fspath(f).endswith(".safetensors"):
        return _load_safetensors(os.fspath(f), map_location)
    before, thread.map_location = thread.map_location, map_location
    try:
        with open(f, "rb") if _is_path(f) else contextlib.nullcontext(f) as file:
            return _load(f, file, map_location, pickle_module, weights_only, bool(mmap), pickle_load_args)
    except _map_location.Passed as passed:
        raise passed.args[0] from None
    except pickle.UnpicklingError as error:
        if weights_only:
            raise pickle.UnpicklingError(_explained(str(error))) from error.__cause__
        raise
    finally:
        thread.map_location = before


def _load(
    given: Any, file: IO[bytes], map_location: Any, pickle_module: Any, weights_only: bool, mmap: bool, options: dict[str, Any]
) -> Any:
    _check_seekable(file)
    start = file.tell()
    head = file.read(4)
    file.seek(start)
    move = _map_location.mover(map_location)
    if head != b"PK\x03\x04":
        if mmap:
            name = f"{given}, " if isinstance(given, str) else ""
            raise RuntimeError(
                f"mmap can only be used with files saved with `torch.save({name}_use_new_zipfile_serialization=True), please "
                "torch.save your checkpoint with this option in order to use mmap."
            )
        return _legacy.load(file, move, pickle_module, weights_only=weights_only, skip=thread.skip_data, **options)
    archive = _archive.Reader(file)
    if archive.has("constants.pkl"):
        if weights_only:
            raise RuntimeError(
                f"Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. {_UNSAFE}"
            )
        raise NotImplementedError("gradiron cannot run TorchScript archives")
    if mmap and not _is_path(given):
        raise ValueError("f must be a file path in order to use the mmap argument")
    storages = _Storages(archive, move, _map(os.fspath(given)) if mmap else None)
    data = io.BytesIO(archive.read("data.pkl"))
    return _pickles.loader(pickle_module, data, storages.get, weights_only=weights_only, **options).load()


def _check_seekable(file: Any) -> None:
    try:
        file.seek(file.tell())
    except (io.UnsupportedOperation, AttributeError) as error:
        raise type(error)(
            f"{error}. You can only torch.load from a file that is seekable. Please pre-load the data into a buffer like "
            "io.BytesIO and try to load from it instead."
        ) from error


def _map(path: str) -> Any:
    """The whole file as memory, of which only what is used is read."""
    # MAP_SHARED.
    shared = config.load.mmap_flags == 1
    return UntypedStorage.from_file(path, shared, os.path.getsize(path))


class _Storages:
    """The storages of an archive, read when the pickle tells of them."""

    def __init__(self, archive: _archive.Reader, move: Any, memory: Any) -> None:
        self._archive = archive
        self._move = move
        self._memory = memory
        self._known: dict[str, UntypedStorage] = {}
        self._swap = _byteorder(archive) != sys.byteorder

    def get(self, pid: Any) -> storage.TypedStorage:
        """What a storage's name in the pickle stands for."""
        kind, key, location, count = _pickles.read_entry(pid)
        if key not in self._known:
            name = f"data/{key}"
            size = self._archive.size(name)
            if size != count * kind.itemsize:
                expected = f"{count * kind.itemsize} bytes = {count} elements * {kind.itemsize} bytes/element"
                raise RuntimeError(f"record size ({size} bytes) does not match expected size ({expected}) for dtype {kind}")
            self._known[key] = self._move(self._read(name, kind, size), location).untyped()
        return storage.TypedStorage(wrap_storage=self._known[key], dtype=kind, _internal=True)

    def _read(self, name: str, kind: Any, size: int) -> UntypedStorage:
        start = self._archive.offset(name) if self._memory is not None and size and not self._swap else None
        # Elements must lie where they may.
        if start is not None and start % kind.itemsize == 0:
            return UntypedStorage(self._memory[start : start + size]._as(kind))
        if thread.skip_data:
            return UntypedStorage(_core.zeros([size // kind.itemsize], dtype=kind, device="cpu"))
        made = UntypedStorage(_core.empty([size // kind.itemsize], dtype=kind, device="cpu"))
        self._archive.read_into(name, made._memory())
        if self._swap:
            made.byteswap(kind)
        return made


def _byteorder(archive: _archive.Reader) -> str:
    if archive.has("byteorder"):
        text = archive.read("byteorder").decode(errors="replace")
        if text not in ("little", "big"):
            raise ValueError(f"Unknown endianness type: {text}")
        return text
    orders = {None: "little", LoadEndianness.LITTLE: "little", LoadEndianness.BIG: "big"}
    return orders.get(config.load.endianness, sys.byteorder)


_UNSAFE = (
    "The default of `weights_only` is `True`, as it is in PyTorch since version 2.6. With `weights_only` set to `False` the "
    "load will likely succeed, but what is in the file may then run any code. Do it only if you got the file from a trusted "
    "source."
)


def _explained(message: str) -> str:
    """What to do when a file holds more than weights."""
    if "was not an allowed global by default" not in message:
        return f"Weights only load failed. {_UNSAFE}\n\n{message}"
    return (
        "Weights only load failed. This file can still be loaded, to do so you have two options, do those steps only if you "
        f"trust the source of the checkpoint. \n\t(1) {_UNSAFE}\n\t(2) Alternatively, to load with `weights_only=True` please "
        f"check the recommended steps in the following error message.\n\tWeightsUnpickler error: {message}"
    )


def _load_safetensors(path: str, map_location: Any) -> Any:
    if map_location is not None and not isinstance(map_location, (str, device)):
        kind = "dict" if isinstance(map_location, dict) else "callable"
        raise RuntimeError(
            f"Loading safetensors file with {kind} map_location is not supported. Use a device string or torch.device instead."
        )
    from ..utils import safetensors

    return safetensors.load_file(path, device="cpu" if map_location is None else str(map_location))


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """What a file names that is not known to be safe."""
    with open(f, "rb") if _is_path(f) else contextlib.nullcontext(f) as file:
        _check_seekable(file)
        head = file.read(4)
        file.seek(-len(head), io.SEEK_CUR)
        if head != b"PK\x03\x04":
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        archive = _archive.Reader(file)
        if archive.has("constants.pkl"):
            raise ValueError("Expected input to be a checkpoint returned by torch.save but got a torchscript checkpoint")
        allowed = _weights_only.Allowed()
        names = _weights_only.named(io.BytesIO(archive.read("data.pkl")))
        return sorted(names.difference(allowed.values, allowed.users))
