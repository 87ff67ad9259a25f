"""Errors of workers: how a worker tells its launcher what went wrong, and the table that the launcher prints."""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]

_F = TypeVar("_F", bound=Callable[..., Any])
_VARIABLE = "TORCHELASTIC_ERROR_FILE"
_NO_FILE = "<N/A>"
_WIDEST = 60


class ErrorHandler:
    """Writes what ends a worker into the file that its launcher reads."""

    def initialize(self) -> None:
        """Called before the program begins."""

    def record_exception(self, e: BaseException) -> None:
        """Writes an exception; the first one stays."""
        path = os.environ.get(_VARIABLE)
        if not path or os.path.exists(path):
            return
        extra = {"py_callstack": "".join(traceback.format_exception(e)), "timestamp": repr(time.time())}
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                json.dump({"message": {"message": f"{type(e).__name__}: {e}", "extraInfo": extra}}, file)
        except OSError as error:
            print(f"cannot write {_VARIABLE}: {error}", file=sys.stderr)

    def dump_error_file(self, rootcause_error_file: str, error_code: int = 0) -> None:
        """Copies a worker's file to where the launcher's own starter reads, if it does."""
        path = os.environ.get(_VARIABLE)
        if path and os.path.exists(rootcause_error_file) and not os.path.exists(path):
            shutil.copyfile(rootcause_error_file, path)


def get_error_handler() -> ErrorHandler:
    """What `record` writes with."""
    return ErrorHandler()


def record(fn: _F, error_handler: ErrorHandler | None = None) -> _F:
    """Decorates a program's main function: the exception that ends it appears in the launcher's table."""
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def run(*args: Any, **options: Any) -> Any:
        handler.initialize()
        try:
            return fn(*args, **options)
        except SystemExit as error:
            if error.code not in (0, None):
                handler.record_exception(error)
            raise
        except ChildFailedError:
            raise  # The launcher has told its own starter.
        except Exception as error:
            handler.record_exception(error)
            raise

    return run  # type: ignore[return-value]


@dataclass
class ProcessFailure:
    """How a worker failed. The file that the worker wrote, if it did, tells why and when."""

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    timestamp: float = field(default_factory=time.time)
    message: str = ""
    host: str = field(default_factory=socket.gethostname)

    def __post_init__(self) -> None:
        if self.message:
            return
        try:
            with open(self.error_file) as file:
                told = json.load(file)["message"]
            if isinstance(told, str):
                self.message = told
            else:
                self.message = str(told["extraInfo"]["py_callstack"])
                self.timestamp = float(told["extraInfo"]["timestamp"])
        except (OSError, ValueError, KeyError, TypeError):
            self.error_file = _NO_FILE
            if self.exitcode < 0:
                self.message = f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"
            else:
                self.message = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"

    def signal_name(self) -> str:
        """The signal that ended it."""
        if self.exitcode >= 0:
            return _NO_FILE
        try:
            return signal.Signals(-self.exitcode).name
        except ValueError:
            return f"<Unknown signal {-self.exitcode}>"


class ChildFailedError(Exception):
    """Workers failed. Its text is the table of failures, the first of them as the root cause."""

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        if not failures:
            raise AssertionError("a failed job has a failure")
        self.name, self.failures = name, failures
        super().__init__(self._format())

    def __reduce__(self) -> Any:
        return type(self), (self.name, self.failures)

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The rank that failed first, and how."""
        rank = min(self.failures, key=lambda rank: self.failures[rank].timestamp)
        return rank, self.failures[rank]

    def _format(self) -> str:
        first, _ = self.get_first_failure()
        title = f"{self.name} FAILED"
        root = self._entry(0, first)
        others = [self._entry(at, rank) for at, rank in enumerate((rank for rank in self.failures if rank != first), 1)]
        longest = max(len(line) for entry in (title, root, *others) for line in entry.split("\n"))
        rule = "=" * min(_WIDEST, longest)
        thin = "-" * len(rule)
        lines = ["", rule, title, thin, "Failures:", *(others or ["  <NO_OTHER_FAILURES>"]), thin]
        return "\n".join([*lines, "Root Cause (first observed failure):", root, rule])

    def _entry(self, at: int, rank: int) -> str:
        failure = self.failures[rank]
        ended_by = f" ({failure.signal_name()})" if failure.exitcode < 0 else ""
        fields = {
            "time": time.strftime("%Y-%m-%d_%H:%M:%S", time.localtime(failure.timestamp)),
            "host": failure.host,
            "rank": f"{rank} (local_rank: {failure.local_rank})",
            "exitcode": f"{failure.exitcode} (pid: {failure.pid}) {ended_by}",
            "error_file": failure.error_file,
            "traceback": failure.message.replace("\n", "\n  "),
        }
        return "\n".join([f"[{at}]:", *(f"  {name:10}: {value}" for name, value in fields.items())])
