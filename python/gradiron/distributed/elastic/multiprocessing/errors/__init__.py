"""Errors of workers: how a worker tells its launcher what went wrong, and the table that the launcher prints."""

from __future__ import annotations

import functools
import json
import os
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


class ErrorHandler:
    """Writes what ends a worker into the file that its launcher reads."""

    def initialize(self) -> None:
        """Nothing is needed."""

    def record_exception(self, error: BaseException) -> None:
        """Writes an exception, once."""
        path = os.environ.get(_VARIABLE)
        if not path or os.path.exists(path):
            return
        text = "".join(traceback.format_exception(error))
        extra = {"py_callstack": text, "timestamp": str(int(time.time()))}
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            json.dump({"message": {"message": f"{type(error).__name__}: {error}", "extraInfo": extra}}, file)


def get_error_handler() -> ErrorHandler:
    """What `record` writes with."""
    return ErrorHandler()


def record(fn: _F, error_handler: ErrorHandler | None = None) -> _F:
    """Decorates a program's main function: an exception that ends it appears in the launcher's table."""
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def run(*args: Any, **options: Any) -> Any:
        handler.initialize()
        try:
            return fn(*args, **options)
        except SystemExit as error:
            if error.code == 0:
                raise
            handler.record_exception(error)
            raise
        except ChildFailedError as error:
            print(error, file=sys.stderr)
            raise SystemExit(1) from None
        except Exception as error:
            handler.record_exception(error)
            raise

    return run  # type: ignore[return-value]


@dataclass
class ProcessFailure:
    """How a worker failed."""

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    timestamp: float = field(default_factory=time.time)
    message: str = ""

    def __post_init__(self) -> None:
        try:
            with open(self.error_file) as file:
                told = json.load(file)["message"]
            self.message = told if isinstance(told, str) else told["extraInfo"]["py_callstack"].rstrip()
        except (OSError, ValueError, KeyError, TypeError):
            self.error_file = "<N/A>"
            if name := self.signal_name():
                self.message = f"Signal {-self.exitcode} ({name}) received by PID {self.pid}"
            else:
                self.message = (
                    "see its output above; decorate main with torch.distributed.elastic.multiprocessing.errors.record"
                )

    def signal_name(self) -> str:
        """The signal that ended it, if one has."""
        try:
            return signal.Signals(-self.exitcode).name if self.exitcode < 0 else ""
        except ValueError:
            return f"<Unknown signal {-self.exitcode}>"


class ChildFailedError(Exception):
    """Workers failed. Its text is the table of failures, the first of them as the root cause."""

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        self.name, self.failures = name, failures
        super().__init__(self._table())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The rank that failed first, and how."""
        rank = min(self.failures, key=lambda rank: self.failures[rank].timestamp)
        return rank, self.failures[rank]

    def _table(self) -> str:
        root, _ = self.get_first_failure()
        others = [self._entry(at, rank) for at, rank in enumerate((r for r in self.failures if r != root), 1)]
        title = f"{self.name} FAILED"
        entries = [*others, self._entry(0, root)]
        width = max(60, min(120, max(len(line) for entry in (title, *entries) for line in entry.split("\n"))))
        rule, thin = "=" * width, "-" * width
        failures = "\n".join(others) if others else "  <NO_OTHER_FAILURES>"
        return "\n".join(
            [
                "",
                rule,
                title,
                thin,
                "Failures:",
                failures,
                thin,
                "Root Cause (first observed failure):",
                self._entry(0, root),
                rule,
            ]
        )

    def _entry(self, at: int, rank: int) -> str:
        failure = self.failures[rank]
        when = time.strftime("%Y-%m-%d_%H:%M:%S", time.localtime(failure.timestamp))
        name = failure.signal_name()
        message = failure.message.replace("\n", "\n    ")
        return (
            f"[{at}]:\n  time      : {when}\n  host      : {socket.gethostname()}\n  rank      : {rank} (local_rank: "
            f"{failure.local_rank})\n  exitcode  : {failure.exitcode} (pid: {failure.pid}){f' ({name})' if name else ''}\n"
            f"  error_file: {failure.error_file}\n  traceback : {message}"
        )
