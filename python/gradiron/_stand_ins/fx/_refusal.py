"""What everything here that would trace a program says."""

from __future__ import annotations

from typing import Any, NoReturn

from gradiron._as_torch.refused import refuse


def _refuse(name: str) -> NoReturn:
    refuse(f"fx.{name}", "gradiron traces no programs; a module runs as it is")


class _Refused:
    """A name that programs derive from or ask `isinstance` of; no object is one."""

    def __init__(self, *args: Any, **options: Any) -> None:
        _refuse(type(self).__name__)
