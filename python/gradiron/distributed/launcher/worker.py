"""A worker of the launcher: a process in a session of its own, that ends when the launcher ends."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from ..elastic.multiprocessing.std import Std

__all__ = ["Worker", "start_command", "start_function"]

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def _die_with_launcher() -> None:
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Worker:
    """A process of the job."""

    rank = 0
    error_file = ""

    def __init__(self, process: Any, copies: list[threading.Thread], results: Any = None) -> None:
        self._process, self._copies, self._results = process, copies, results
        self._result: Any = None

    @property
    def pid(self) -> int:
        """The process's number."""
        return int(self._process.pid)

    def poll(self) -> int | None:
        """How it has ended; None while it runs."""
        if isinstance(self._process, subprocess.Popen):
            return self._process.poll()
        if self._results is not None and self._results.poll():
            with contextlib.suppress(EOFError):
                self._result = self._results.recv()
            self._results = None
        return self._process.exitcode

    def wait(self) -> None:
        """Waits for its end, and for its output."""
        if isinstance(self._process, subprocess.Popen):
            self._process.wait()
        else:
            self._process.join()
        for copy in self._copies:
            copy.join(5)

    def send(self, number: int) -> None:
        """Sends a signal to it and to what it has started."""
        if isinstance(self._process, subprocess.Popen):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)
        elif self._process.exitcode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    def result(self) -> Any:
        """What its function returned."""
        self.wait()
        self.poll()
        return self._result


def start_command(
    command: list[str],
    environment: dict[str, str],
    prefix: str,
    redirects: Std,
    tee: Std,
    folder: str | None,
    shows: bool,
) -> Worker:
    """Starts a command; its outputs go to files, to the console or to both."""
    streams: dict[str, Any] = {}
    copies: list[tuple[str, Any, str]] = []
    opened = []
    for flag, name, console in ((Std.OUT, "stdout", sys.stdout), (Std.ERR, "stderr", sys.stderr)):
        if folder is not None and flag & tee:
            streams[name] = subprocess.PIPE
            copies.append((name, console if shows else None, os.path.join(folder, f"{name}.log")))
        elif folder is not None and flag & redirects:
            file = open(os.path.join(folder, f"{name}.log"), "wb")
            opened.append(file)
            streams[name] = file
        elif not shows:
            streams[name] = subprocess.DEVNULL
    process = subprocess.Popen(command, env=environment, start_new_session=True, preexec_fn=_die_with_launcher, **streams)
    for file in opened:
        file.close()
    threads = []
    for name, console, path in copies:
        thread = threading.Thread(target=_copy, args=(getattr(process, name), console, path, prefix), daemon=True)
        thread.start()
        threads.append(thread)
    return Worker(process, threads)


def _copy(source: Any, console: Any, path: str, prefix: str) -> None:
    """Copies a worker's output into a file, and to the console with its rank before each line."""
    with open(path, "wb") as file, source:
        for line in source:
            file.write(line)
            file.flush()
            if console is not None:
                console.write(prefix + line.decode(errors="replace"))
                console.flush()


def start_function(function: Callable[..., Any], args: list[Any], environment: dict[str, str], method: str) -> Worker:
    """Starts a function in a process; its result comes back through a pipe."""
    context: Any = multiprocessing.get_context(method)
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_call, args=(function, args, environment, there), daemon=True)
    process.start()
    there.close()
    return Worker(process, [], here)


def _call(function: Callable[..., Any], args: list[Any], environment: dict[str, str], told: Any) -> None:
    from ..elastic.multiprocessing.errors import record

    _die_with_launcher()
    os.environ.update(environment)
    told.send(record(function)(*args))
