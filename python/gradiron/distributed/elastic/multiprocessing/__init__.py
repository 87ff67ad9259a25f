"""Processes of the launcher, as far as programs ask for them."""

from __future__ import annotations

from . import errors
from .api import DefaultLogsSpecs, LogsSpecs, SignalException
from .errors import ChildFailedError, ProcessFailure, record
from .std import Std

__all__ = ["ChildFailedError", "DefaultLogsSpecs", "LogsSpecs", "ProcessFailure", "SignalException", "Std", "errors", "record"]
