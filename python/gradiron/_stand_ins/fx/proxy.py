"""Values that are not known yet."""

from __future__ import annotations

from ._refusal import _Refused

__all__ = ["Proxy"]


class Proxy(_Refused):
    """Would stand for a value; no value is one."""
