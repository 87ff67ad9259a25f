"""Processes of the launcher, as far as programs ask for them."""

from __future__ import annotations

from . import errors
from .api import DefaultLogsSpecs, LogsSpecs, SignalException, Std
from .errors import ProcessFailure

__all__ = ["DefaultLogsSpecs", "LogsSpecs", "ProcessFailure", "SignalException", "Std", "errors"]
