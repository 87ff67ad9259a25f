"""The formats of old: before PyTorch 1.6 a row of pickles with the bytes behind, long before that a tar archive."""

from __future__ import annotations

import contextlib
import io
import pickle
import struct
import sys
import tarfile
from collections.abc import Iterator
from typing import IO, Any

from .. import _core
from .._core import dtype
from .._pickling import rebuild
from .._storage import UntypedStorage
from ..storage import TypedStorage
from ._archive import fill
from ._map_location import Mover
from ._pickles import Book, loader, read_entry

MAGIC = 0x1950A86A20F9469CFC6C
VERSION = 1001


def save(data: bytes, book: Book, write: Any, pickle_module: Any, protocol: int) -> None:
    """Writes a pickle and its storages in the newer of the two."""
    sizes = {name: struct.calcsize(f"={code}") for name, code in (("short", "h"), ("int", "i"), ("long", "l"))}
    system = {"protocol_version": VERSION, "little_endian": sys.byteorder == "little", "type_sizes": sizes}
    for head in (MAGIC, VERSION, system):
        write(pickle_module.dumps(head, protocol=protocol))
    write(data)
    keys = sorted(book.storages)
    write(pickle_module.dumps(keys, protocol=protocol))
    for key in keys:
        storage, kind = book.storages[key]
        storage = storage.cpu()
        if sys.byteorder != "little":
            storage = storage.clone()
            storage.byteswap(kind)
        write(struct.pack("<q", len(storage) // kind.itemsize))
        write(storage._memory())


class _Storages:
    """The storages that a pickle tells of, whose bytes come later."""

    def __init__(self, file: IO[bytes], move: Mover) -> None:
        here = file.tell()
        # There cannot be more bytes than the file has.
        self._left = file.seek(0, io.SEEK_END) - here
        file.seek(here)
        self._file = file
        self._move = move
        self._known: dict[str, tuple[UntypedStorage, UntypedStorage, dtype]] = {}
        self._parts: dict[str, TypedStorage] = {}

    def add(self, key: str, kind: dtype, count: int, location: str) -> None:
        """A storage in host memory, and where it is to lie."""
        size = count * kind.itemsize
        self._left -= size
        if self._left < 0:
            raise pickle.UnpicklingError(f"a storage of {size} bytes is more than there is in the file")
        made = UntypedStorage(_core.empty([count], dtype=kind, device="cpu"))
        moved = self._move(made, location)
        self._known[key] = made, moved.untyped(), kind

    def get(self, key: str, kind: dtype) -> TypedStorage:
        """A storage by its key."""
        return TypedStorage(wrap_storage=self._known[key][1], dtype=kind, _internal=True)

    def part(self, key: str, whole: TypedStorage, offset: int, count: int) -> TypedStorage:
        """A part of a storage, which has a key of its own."""
        if key not in self._parts:
            if not 0 <= offset <= offset + count <= len(whole):
                raise pickle.UnpicklingError("a part of a storage reaches beyond it")
            size = whole.dtype.itemsize
            part: Any = whole.untyped()[offset * size : (offset + count) * size]
            self._parts[key] = TypedStorage(wrap_storage=part, dtype=whole.dtype, _internal=True)
        return self._parts[key]

    def read(self, key: str) -> None:
        """Reads the bytes of a storage."""
        made, moved, kind = self._known[key]
        head = self._file.read(8)
        count = struct.unpack("<q", head)[0] if len(head) == 8 else 0
        if count * kind.itemsize != len(made):
            raise RuntimeError(f"storage has wrong byte size: expected {len(made)} got {count * kind.itemsize}")
        if not fill(self._file, made._memory()):
            raise RuntimeError("the file ends within a storage: it was not saved or copied to its end")
        if sys.byteorder != "little":
            made.byteswap(kind)
        if moved is not made:
            moved.copy_(made)


def load(file: IO[bytes], move: Mover, pickle_module: Any, *, weights_only: bool, skip: bool, **options: Any) -> Any:
    """Reads either."""
    if file.tell() == 0 and _is_tar(file):
        if weights_only:
            raise RuntimeError(
                "Cannot use ``weights_only=True`` with files saved in the legacy .tar format. With ``weights_only=False`` what "
                "is in the file may run any code: do that only if you trust its source."
            )
        return _load_tar(file, move, pickle_module, **options)
    storages = _Storages(file, move)

    def persistent_load(pid: Any) -> Any:
        if isinstance(pid, tuple) and len(pid) == 4 and pid[0] in ("module", b"module") and not weights_only:
            # A class, and what its source was.
            return pid[1]
        if not isinstance(pid, tuple) or len(pid) != 6:
            raise pickle.UnpicklingError(f"a storage is not told of as {pid!r:.100}")
        kind, key, location, count = read_entry(pid[:5])
        if key not in storages._known:
            storages.add(key, kind, count, location)
        found = storages.get(key, kind)
        if pid[5] is None:
            return found
        part, offset, size = pid[5]
        return storages.part(str(part), found, offset, size)

    def next_pickle(persistent_load: Any = _refuse) -> Any:
        return loader(pickle_module, file, persistent_load, weights_only=weights_only, **options).load()

    if next_pickle() != MAGIC:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = next_pickle()
    if version != VERSION:
        raise RuntimeError(f"Invalid protocol version: {version!r:.100}")
    next_pickle()
    result = next_pickle(persistent_load)
    keys = next_pickle()
    if sorted(map(str, keys)) != sorted(storages._known):
        raise RuntimeError("the storages in the file are not those that its pickle tells of")
    for key in () if skip else keys:
        storages.read(str(key))
    return result


def _refuse(pid: Any) -> Any:
    raise pickle.UnpicklingError("a storage is told of where there is none")


def _is_tar(file: IO[bytes]) -> bool:
    head = file.read(512)
    file.seek(0)
    with contextlib.suppress(tarfile.TarError):
        tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
        return True
    return False


def _load_tar(file: IO[bytes], move: Mover, pickle_module: Any, **options: Any) -> Any:
    """Three members: storages, tensors over them, and a pickle that tells of tensors by number."""
    tensors: dict[str, Any] = {}

    def pickles(source: IO[bytes]) -> Iterator[Any]:
        while True:
            yield loader(pickle_module, source, _refuse, weights_only=False, **options).load()

    with tarfile.open(fileobj=file, mode="r:") as tar:

        def member(name: str) -> IO[bytes]:
            found = tar.extractfile(name)
            if found is None:
                raise RuntimeError(f"{name} in the archive is no file")
            return io.BytesIO(found.read())

        source = member("storages")
        storages, read = _Storages(source, move), pickles(source)
        kinds: dict[str, dtype] = {}
        for _ in range(next(read)):
            key, location, made = next(read)
            kinds[str(key)] = made.dtype
            (count,) = struct.unpack("<q", source.read(8))
            source.seek(-8, io.SEEK_CUR)
            storages.add(str(key), made.dtype, count, location)
            storages.read(str(key))
        for part, whole, offset, count in next(read):
            storages.part(str(part), storages.get(str(whole), kinds[str(whole)]), offset, count)

        source = member("tensors")
        read = pickles(source)
        for _ in range(next(read)):
            key, owner, _cls = next(read)
            dims, _unused = struct.unpack("<ii", source.read(8))
            numbers = struct.unpack(f"<{2 * dims + 1}q", source.read(8 * (2 * dims + 1)))
            storage = storages._parts.get(str(owner)) or storages.get(str(owner), kinds[str(owner)])
            tensors[str(key)] = rebuild._rebuild_tensor(storage, numbers[-1], numbers[:dims], numbers[dims:-1])

        def persistent_load(pid: Any) -> Any:
            return pid[0] if isinstance(pid, tuple) else tensors[str(pid)]

        return loader(pickle_module, member("pickle"), persistent_load, weights_only=False, **options).load()
