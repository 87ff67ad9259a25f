"""Options of `torch.compile`. Those that do nothing here are accepted."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._compile.settings import options as _options


class _Config(types.ModuleType):
    """The module, whose `recompile_limit` is the compiler's."""

    @property
    def recompile_limit(self) -> int:
        return int(_options["recompile_limit"])

    @recompile_limit.setter
    def recompile_limit(self, limit: int) -> None:
        _options["recompile_limit"] = limit

    cache_size_limit = recompile_limit

    @contextmanager
    def patch(self, *args: Any, **changes: Any) -> Iterator[None]:
        """Change options in a `with` block.

        Args:
            args: the name of an option and its value, or a dict of them.
            changes: options by name.
        """
        given = args[0] if args and isinstance(args[0], dict) else dict([args]) if args else {}
        changes = {**given, **changes}
        former = {name: getattr(self, name, None) for name in changes}
        for name, value in changes.items():
            setattr(self, name, value)
        try:
            yield
        finally:
            for name, value in former.items():
                setattr(self, name, value)


sys.modules[__name__].__class__ = _Config
