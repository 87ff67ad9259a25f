"""Which line of the program made what: errors of autograd tell it for what was made while this is on.

Each recorded operator then remembers a file and a line number, in about half a microsecond. `GRADIRON_SOURCE_LINES=1` in the
environment switches it on from the start; anomaly mode includes it.
"""

from __future__ import annotations

import os

from .. import _core


class set_source_lines:
    """Switches it at once; as a context manager, back at its end."""

    def __init__(self, mode: bool = True) -> None:
        self._before = _core.swap_source_lines(bool(mode))

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        _core.swap_source_lines(self._before)


if os.environ.get("GRADIRON_SOURCE_LINES", "0") not in ("", "0"):
    set_source_lines(True)
