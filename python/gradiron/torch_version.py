"""A version that is a string and compares as a version does: `torch.__version__ >= "2.0"`, or with a tuple."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["TorchVersion"]

_STAGES = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "rc": -1, "c": -1, "": 0, "post": 1}


def _key(version: Any) -> tuple[Any, ...]:
    """Orders versions: numbers, then stages (`2.0a1` comes before `2.0`), then what stands behind `+`."""
    if isinstance(version, (tuple, list)):
        version = ".".join(map(str, version))
    text, _, local = str(version).strip().lower().removeprefix("v").partition("+")
    found = re.fullmatch(r"(\d+(?:\.\d+)*)[._-]?([a-z]*)[._-]?(\d*)(?:[._-].*)?", text)
    if found is None:
        raise ValueError(f"Invalid version: {version!r}")
    numbers = [int(part) for part in found[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers, _STAGES.get(found[2], 0), int(found[3] or 0), local


class TorchVersion(str):
    """A string that compares with strings and tuples as a version."""

    __slots__ = ()

    def _compare(self, other: Any) -> int:
        own: Any
        try:
            own, its = _key(self), _key(other)
        except ValueError:
            own, its = str(self), other  # No version: as strings compare.
        return (own > its) - (own < its)

    def __gt__(self, other: Any) -> bool:
        return self._compare(other) > 0

    def __lt__(self, other: Any) -> bool:
        return self._compare(other) < 0

    def __ge__(self, other: Any) -> bool:
        return self._compare(other) >= 0

    def __le__(self, other: Any) -> bool:
        return self._compare(other) <= 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (str, tuple, list)) and self._compare(other) == 0

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__
