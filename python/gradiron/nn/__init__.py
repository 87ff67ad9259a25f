"""Parts of networks. So far `functional` and `Parameter`."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor
from . import functional

__all__ = ["Parameter", "functional"]


class Parameter(Tensor):
    """A leaf that wants a gradient and prints as what it is."""

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = _core.empty([0], None, None)
        return _core.make_subclass(cls, data, requires_grad)
