"""A module whose flags are set for the length of a `with` statement."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def setting(module: str, values: dict[str, Any]) -> Iterator[None]:
    """Sets the flags of a module that are not None, and puts them back."""
    flags = vars(sys.modules[module])
    before = {name: flags[name] for name, value in values.items() if value is not None}
    flags.update((name, value) for name, value in values.items() if value is not None)
    try:
        yield
    finally:
        flags.update(before)
