"""Source lines in autograd's errors: the file and the line that called an operator.

While switched on, each recorded operator remembers its line, which takes about half a microsecond. Setting
`GRADIRON_SOURCE_LINES=1` in the environment switches it on from the start; anomaly mode includes it.
"""

from __future__ import annotations

import os

from .. import _core


class set_source_lines:
    """Switch source lines in autograd's errors on or off, at once or for a `with` block.

    Errors then name the file and the line of the operators involved. As a context manager it restores the former mode
    on exit.

    Args:
        mode: whether recorded operators remember the line that called them. Default: `True`

    Examples:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.autograd.set_source_lines():
        ...     y = x.exp()
        >>> y.add_(1).sum().backward()
        Traceback (most recent call last):
        RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation
    """

    def __init__(self, mode: bool = True) -> None:
        self._before = _core.swap_source_lines(bool(mode))

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        _core.swap_source_lines(self._before)


if os.environ.get("GRADIRON_SOURCE_LINES", "0") not in ("", "0"):
    set_source_lines(True)
