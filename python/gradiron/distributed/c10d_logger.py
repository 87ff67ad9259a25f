"""Decorators that PyTorch logs collectives with: here errors and the profiler name them, and nothing is logged."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

__all__: list[str] = []

F = TypeVar("F", bound=Callable[..., Any])

_c10d_logger = logging.getLogger(__name__)


def _exception_logger(func: F) -> F:
    return func


def _time_logger(func: F) -> F:
    return func
