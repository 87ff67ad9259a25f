"""The zip archives that checkpoints are: records stored as they are, at offsets that suit a map of the file."""

from __future__ import annotations

import hashlib
import io
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, Any

from .. import _core
from .._core import Tensor
from .._creation import frombuffer

_U16, _U32 = 0xFFFF, 0xFFFFFFFF
# Bit 3: checksum and sizes follow the data. Bit 11: names are UTF-8.
_FOLLOWS, _UTF8 = 1 << 3, 1 << 11
_LOCAL = struct.Struct("<IHHHHHIIIHH")
_CENTRAL = struct.Struct("<IHHHHHHIIIHHHHHII")
_PADDING = struct.Struct("<2sH")
_SIZES, _WIDE_SIZES = struct.Struct("<IIII"), struct.Struct("<IIQQ")
# Data are summed and written in pieces of this size, which stay in the cache between the two.
_PIECE = 1 << 20
# For so many bytes the core's checksum is worth a call: zlib's takes as long as it takes to read the data.
_LONG = 1 << 16
# Deflated data cannot become more than this many times as long.
_DEFLATE = 1032

_ADVICE = (
    "If you are seeing this error, there is a high likelihood that your checkpoint file is corrupted. This can happen if the "
    "checkpoint was not saved properly, was transferred incorrectly, or the file was modified after saving."
)
_VERSIONS = (1, 10)


def _checksum(data: memoryview) -> int:
    """The checksum of zip files, of memory that may be written."""
    return zlib.crc32(data) if len(data) < _LONG else _core.crc32(frombuffer(data, dtype=_core.uint8), 0)


class Writer:
    """Writes records one after another; `write` is all that it needs of its target."""

    def __init__(self, write: Callable[[Any], Any], name: str, *, checksums: bool = True, alignment: int = 64) -> None:
        self._write = write
        self._prefix = name
        self._checksums = checksums
        self._alignment = alignment
        self._at = 0
        self._central: list[bytes] = []
        self._sums = zlib.crc32(b"")
        self._written: dict[str, None] = {}

    def _put(self, data: Any) -> None:
        self._write(data)
        self._at += len(data)

    def record(self, name: str, data: Any, *, elements: Tensor | None = None, skip: bool = False) -> None:
        """One record of `data`, which may also be there as a tensor of bytes; with `skip`, its place and no more."""
        path = f"{self._prefix}/{name}".encode()
        start, size = self._at, len(data)
        flags = _UTF8 | (_FOLLOWS if size else 0)
        # Numbers that do not fit into 32 bits stand here.
        large = [n for n in (size, size, start) if n >= _U32]
        wide = struct.pack(f"<HH{len(large)}Q", 1, 8 * len(large), *large) if large else b""
        used = start + _LOCAL.size + len(path) + len(wide) + 4
        padding = -used % self._alignment
        extra = wide + _PADDING.pack(b"FB", padding) + b"Z" * padding
        self._put(_LOCAL.pack(0x04034B50, 0, flags, 0, 0, 0, 0, 0, 0, len(path), len(extra)) + path + extra)
        check = zlib.crc32(b"")
        for at in range(0, size, _PIECE):
            piece = bytes(min(_PIECE, size - at)) if skip else data[at : at + _PIECE]
            if self._checksums and not skip:
                check = zlib.crc32(piece, check) if elements is None else _core.crc32(elements[at : at + _PIECE], check)
            self._put(piece)
        if size:
            self._put((_WIDE_SIZES if large else _SIZES).pack(0x08074B50, check, size, size))
        short, at = min(size, _U32), min(start, _U32)
        numbers = (0x02014B50, 0, 0, flags, 0, 0, 0, check, short, short, len(path), len(wide), 0, 0, 0, 0, at)
        self._central.append(_CENTRAL.pack(*numbers) + path + wide)
        self._written[path.decode()] = None
        self._sums = zlib.crc32(check.to_bytes(4, "little"), self._sums)

    def end(self) -> None:
        """What stands behind the records."""
        self.record("version", b"3\n")
        if f"{self._prefix}/byteorder" not in self._written:
            self.record("byteorder", sys.byteorder.encode())
        names = hashlib.blake2b("".join(self._written).encode(), digest_size=8)
        number = int.from_bytes(names.digest(), "little")
        self.record(".data/serialization_id", f"{number:020d}{self._sums:020d}".encode())
        start, count = self._at, len(self._central)
        for entry in self._central:
            self._put(entry)
        size, end = self._at - start, self._at
        self._put(struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 0x031E, 45, 0, 0, count, count, size, start))
        self._put(struct.pack("<IIQI", 0x07064B50, 0, end, 1))
        few = min(count, _U16)
        self._put(struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, few, few, min(size, _U32), min(start, _U32), 0))


class Reader:
    """Finds and reads records. Whatever is wrong with the file is a RuntimeError."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        start = file.tell()
        self._end = file.seek(0, io.SEEK_END)
        file.seek(start)
        try:
            self._zip = zipfile.ZipFile(file)
            entries = self._zip.infolist()
            self._prefix = entries[0].filename.partition("/")[0]
        except Exception as error:
            why = "not a ZIP archive" if self._end - start < 22 else "failed finding central directory"
            raise RuntimeError(f"PytorchStreamReader failed reading zip archive: {why}. {_ADVICE}") from error
        self._entries = {entry.filename: entry for entry in entries}
        self._check_version()

    def _check_version(self) -> None:
        if not self.has("version"):
            raise RuntimeError('Expected hasRecord("version") to be true, but got false.')
        text = self.read("version")
        try:
            version = int(text)
        except ValueError:
            raise RuntimeError(f"Couldn't parse the version {text.decode(errors='replace')} as Long Long.") from None
        least, most = _VERSIONS
        if not least <= version <= most:
            side, limit = ("minimum", least) if version < least else ("maximum", most)
            raise RuntimeError(
                f"Attempted to read a PyTorch file with version {version}, but the {side} supported version for reading is "
                f"{limit}."
            )

    def names(self) -> list[str]:
        """The records' names."""
        return [name.partition("/")[2] for name in self._entries]

    def has(self, name: str) -> bool:
        """Whether there is such a record."""
        return f"{self._prefix}/{name}" in self._entries

    def _entry(self, name: str) -> zipfile.ZipInfo:
        try:
            return self._entries[f"{self._prefix}/{name}"]
        except KeyError:
            message = f"PytorchStreamReader failed locating file {name}: file not found. {_ADVICE}"
            raise RuntimeError(message) from None

    def _broken(self, name: str, why: str) -> RuntimeError:
        return RuntimeError(f"PytorchStreamReader failed reading file {name}: {why}. {_ADVICE}")

    def size(self, name: str) -> int:
        """How many bytes a record has; no more than the file can hold."""
        entry = self._entry(name)
        if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise self._broken(name, "it is encrypted or packed in a way that is not supported")
        if entry.compress_type == zipfile.ZIP_STORED:
            fits = entry.file_size == entry.compress_size
        else:
            fits = entry.file_size <= _DEFLATE * entry.compress_size + 64
        if not fits or entry.compress_size > self._end:
            raise self._broken(name, f"it claims {entry.file_size} bytes, which the file does not hold")
        return entry.file_size

    def offset(self, name: str) -> int | None:
        """Where in the file a record's bytes begin; None if they do not stand there as they are."""
        size, entry = self.size(name), self._entry(name)
        if entry.compress_type != zipfile.ZIP_STORED:
            return None
        self._file.seek(max(entry.header_offset, 0))
        header = self._file.read(_LOCAL.size)
        if len(header) < _LOCAL.size or not header.startswith(b"PK\x03\x04"):
            raise self._broken(name, "there is no header where it should be")
        *_, path, extra = _LOCAL.unpack(header)
        start = entry.header_offset + _LOCAL.size + int(path) + int(extra)
        known = entry.orig_filename.encode("utf-8" if entry.flag_bits & _UTF8 else "cp437")
        if self._file.read(path) != known or start + size > self._end:
            raise self._broken(name, "its header is not what the directory says")
        return start

    def read(self, name: str) -> bytes:
        """A record's bytes."""
        data = bytearray(self.size(name))
        self.read_into(name, memoryview(data))
        return bytes(data)

    def read_into(self, name: str, target: memoryview) -> None:
        """Reads a record to where `target` says, which is as long, and checks it."""
        start, entry = self.offset(name), self._entry(name)
        try:
            if start is None:
                with self._zip.open(entry) as packed:
                    whole = fill(packed, target) and not packed.read(1)
            else:
                self._file.seek(start)
                whole = fill(self._file, target)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise self._broken(name, str(error)) from error
        if not whole:
            raise self._broken(name, "the file ends before it does")
        # Zero says that nobody computed it.
        if entry.CRC and _checksum(target) != entry.CRC:
            raise self._broken(name, "its bytes are not those that were saved (their checksum differs)")


def fill(file: Any, target: memoryview) -> bool:
    """Reads until `target` is full; whether there was enough."""
    into = getattr(file, "readinto", None)
    while target:
        if into is not None:
            count = into(target)
        else:
            data = file.read(min(len(target), 1 << 24))
            count = len(data)
            target[:count] = data
        if not count:
            return False
        target = target[count:]
    return True
