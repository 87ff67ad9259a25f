"""Begins the child processes of `python -m gradiron`: `torch` is gradiron there, which is loaded when it is first asked for.

Python reads `gradiron_as_torch.pth`, beside this file, whenever it starts; that imports this module where the launcher has set
`GRADIRON_AS_TORCH`, and does nothing otherwise.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Finder:
    """Stands in for gradiron's own finder of `torch` until then."""

    def _gradirons(self) -> Any:
        sys.meta_path.remove(self)
        import gradiron

        gradiron.as_torch()
        del sys.modules["torch"]  # the import under way puts it there
        return sys.meta_path[0]

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return self._gradirons().find_spec(name, path, target) if name == "torch" else None

    def find_distributions(self, context: Any = None) -> Any:
        return self._gradirons().find_distributions(context) if context is not None and context.name == "torch" else []


sys.meta_path.insert(0, _Finder())
