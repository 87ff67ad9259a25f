"""Files that are replaced as a whole: who reads finds the old one or the new one, and never half of it."""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import stat
from collections.abc import Iterator
from typing import IO, Any

# The number of bytes that begin to go to the disk together.
_PIECE = 1 << 20


class _Early(io.BufferedWriter):
    """A new file whose content goes to the disk while more is written, so that little is left to wait for at the end."""

    _at = _sent = 0

    def write(self, data: Any) -> int:
        for at in range(0, len(data), _PIECE):
            self._at += super().write(data[at : at + _PIECE])
            if self._at - self._sent >= _PIECE and hasattr(os, "posix_fadvise"):
                # The file has no use for what is on the disk already: that begins to go there.
                os.posix_fadvise(self.fileno(), self._sent, self._at - self._sent, os.POSIX_FADV_DONTNEED)
                self._sent = self._at
        return len(data)


@contextlib.contextmanager
def replacing(path: str) -> Iterator[IO[bytes]]:
    """A file to write, which takes the place of `path` when the block ends well."""
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise RuntimeError(f"Parent directory {os.path.dirname(path)} does not exist.")
    try:
        old = os.stat(path)
    except FileNotFoundError:
        old = None
    # A link goes on being one.
    real = os.path.realpath(path)
    folder, name = os.path.split(real)
    if old is not None and not (stat.S_ISREG(old.st_mode) and os.access(folder, os.W_OK)):
        # A device or pipe has no old content; and where no file may be added, the old one is all there is to write to.
        with io.BufferedWriter(_opened(path, os.O_WRONLY | os.O_TRUNC, 0)) as file:
            yield file
        return
    beside = os.path.join(folder, f".{name[:200]}.{secrets.token_hex(6)}.tmp")
    # What may not be written must not be replaced either.
    if old is not None and not os.access(path, os.W_OK):
        raise RuntimeError("open file failed with strerror: Permission denied")
    try:
        with _Early(_opened(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)) as file:
            if old is not None:
                _take_over(file.fileno(), old)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, real)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
        raise


def _opened(path: str, flags: int, mode: int) -> io.FileIO:
    try:
        return io.FileIO(os.open(path, flags | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0), mode), "wb")
    except OSError as error:
        raise RuntimeError(f"open file failed with strerror: {error.strerror}") from error


def _take_over(file: int, old: os.stat_result) -> None:
    """The new file's owner and rights are those of the old one, as far as we may."""
    if hasattr(os, "fchown"):
        with contextlib.suppress(OSError):
            os.fchown(file, old.st_uid, old.st_gid)
        with contextlib.suppress(OSError):
            os.fchmod(file, stat.S_IMODE(old.st_mode))
