"""The parts of the data loader."""

from __future__ import annotations

from ...._utils import ExceptionWrapper
from . import collate, fetch, pin_memory, worker

# How long to wait, in seconds, before looking whether the other side is still there.
MP_STATUS_CHECK_INTERVAL = 5.0

__all__ = ["MP_STATUS_CHECK_INTERVAL", "ExceptionWrapper", "collate", "fetch", "pin_memory", "worker"]
