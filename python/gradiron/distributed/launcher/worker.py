"""A worker of the launcher: a process in a session of its own, that ends when the launcher ends."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Outputs", "Worker", "start_command", "start_function"]

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None
_TAIL_INTERVAL = 0.05


@dataclass
class Outputs:
    """Files for a worker's standard output (1) and standard error (2), and which of them are shown as they grow."""

    files: dict[int, str] = field(default_factory=dict)
    shown: list[int] = field(default_factory=list)
    prefix: str = ""


class Worker:
    """A process of the job."""

    def __init__(self, rank: int, local_rank: int, error_file: str, process: Any, outputs: Outputs) -> None:
        self.rank, self.local_rank, self.error_file = rank, local_rank, error_file
        self.pid: int = process.pid
        self.exitcode: int | None = None
        self.ended_at = 0.0
        self._process = process
        self._threads: list[threading.Thread] = []
        self._has_ended = threading.Event()
        self._outputs = outputs

    def watch(self, ended: threading.Event) -> None:
        """From now on its end is noted when it happens, and `ended` is set."""

        def wait() -> None:
            if isinstance(self._process, subprocess.Popen):
                code = self._process.wait()
            else:
                self._process.join()
                code = self._process.exitcode
            self.ended_at = time.time()
            self.exitcode = code
            self._has_ended.set()
            ended.set()

        self._begin(wait)
        for number in self._outputs.shown:
            self._begin(self._show, self._outputs.files[number], sys.stdout if number == 1 else sys.stderr)

    def _begin(self, function: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=function, args=args, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _show(self, path: str, console: Any) -> None:
        """Copies what the worker writes into a file to the console, a prefix before each line."""
        rest = ""
        with open(path, errors="replace", newline="\n") as file:
            is_last = False
            while True:
                text = file.read(1 << 16)
                *lines, rest = (rest + text).split("\n")
                if not text and is_last:
                    lines += [rest] if rest else []
                if lines:
                    console.write("".join(f"{self._outputs.prefix}{line}\n" for line in lines))
                    console.flush()
                if not text:
                    if is_last:
                        return
                    # What was written before its end is read once more after it.
                    is_last = self._has_ended.wait(_TAIL_INTERVAL)

    def send(self, number: int) -> None:
        """Sends a signal to it and to what it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.pid, number)
                    return
                # It has no session of its own yet.
            if self.exitcode is None:
                os.kill(self.pid, number)

    def join(self) -> None:
        """Waits for its end, and until its output is shown."""
        for thread in self._threads:
            thread.join()


def _die_with(launcher: int) -> None:
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != launcher:
            os._exit(1)


def start_command(command: list[str], environment: dict[str, str], outputs: Outputs) -> Any:
    """Starts a command."""
    launcher = os.getpid()
    with contextlib.ExitStack() as opened:
        files = {number: opened.enter_context(open(path, "wb")) for number, path in outputs.files.items()}
        return subprocess.Popen(
            command,
            env=environment,
            stdout=files.get(1),
            stderr=files.get(2),
            start_new_session=True,
            preexec_fn=(lambda: _die_with(launcher)) if _libc is not None else None,
        )


def start_function(
    function: Callable[..., Any], args: list[Any], environment: dict[str, str], outputs: Outputs, method: str, result: str
) -> Any:
    """Starts a function in a process; what it returns is written to the file `result`."""
    for path in outputs.files.values():
        open(path, "wb").close()
    context: Any = multiprocessing.get_context(method)
    process = context.Process(target=_call, args=(function, args, environment, outputs.files, result, os.getpid()))
    process.start()
    return process


def _call(
    function: Callable[..., Any],
    args: list[Any],
    environment: dict[str, str],
    files: dict[int, str],
    result: str,
    launcher: int,
) -> None:
    from ..elastic.multiprocessing.errors import record

    os.setsid()
    for caught in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT):
        if callable(signal.getsignal(caught)):  # The launcher's, if this is a forked copy of it.
            signal.signal(caught, signal.default_int_handler if caught == signal.SIGINT else signal.SIG_DFL)
    _die_with(launcher)
    for number, path in files.items():
        os.dup2(os.open(path, os.O_WRONLY), number)
    os.environ.clear()
    os.environ.update(environment)

    @record
    def call() -> None:
        returned = function(*args)
        with open(result, "wb") as file:
            pickle.dump(returned, file)

    call()
