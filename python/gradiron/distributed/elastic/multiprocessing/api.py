"""Where the outputs of workers go, and the exception of a launcher that got a signal."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from .std import Std

__all__ = ["DefaultLogsSpecs", "LogsSpecs", "SignalException"]


class SignalException(Exception):
    """The launcher got a signal, and has ended its workers."""

    def __init__(self, msg: str, sigval: signal.Signals) -> None:
        super().__init__(msg)
        self.sigval = sigval


@dataclass
class DefaultLogsSpecs:
    """Where the outputs of workers go: to files below `log_dir`, to the console, or to both (`tee`)."""

    log_dir: str | None = None
    redirects: Std | dict[int, Std] = Std.NONE
    tee: Std | dict[int, Std] = Std.NONE
    local_ranks_filter: set[int] | None = None


LogsSpecs = DefaultLogsSpecs
