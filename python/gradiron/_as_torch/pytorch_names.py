"""The public names of PyTorch, as `pytorch_names.json` knows them."""

from __future__ import annotations

import difflib
import functools
import json
import pathlib


@functools.cache
def _table() -> dict[str, list[str]]:
    """The names in each module below `torch`, and in each `class NAME`; under `modules` all modules there are."""
    found: dict[str, list[str]] = json.loads(pathlib.Path(__file__).with_suffix(".json").read_bytes())["data"]
    return found


def version() -> str:
    """The PyTorch that was asked."""
    told: str = json.loads(pathlib.Path(__file__).with_suffix(".json").read_bytes())["pytorch"]
    return told.partition("+")[0]


def _beside(name: str) -> list[str] | None:
    """The names in the module or class that a name `torch.…` would be in, where they are known."""
    owner, _, last = name.partition(".")[2].rpartition(".")
    table = _table()
    if last.startswith("_"):
        return None
    if owner and owner not in table:
        return table.get(f"class {owner}")
    below = f"{owner}." if owner else ""
    modules = (module.removeprefix(below) for module in table["modules"] if module.startswith(below))
    return [*table[owner or "."], *(module for module in modules if "." not in module)]


def is_unknown(name: str) -> bool:
    """Whether PyTorch has no such name `torch.…`; what it has for itself is not known, nor what lies in most classes."""
    parts = name.split(".")
    for end in range(2, len(parts) + 1):
        names = _beside(".".join(parts[:end])) if parts[0] == "torch" else None
        if names is None:
            return False
        if parts[end - 1] not in names:
            return True
    return False


def nearest(name: str) -> str | None:
    """The name of PyTorch's that a misspelt one may have meant."""
    owner, _, last = name.rpartition(".")
    found = difflib.get_close_matches(last, _beside(name) or [], 1)
    return f"{owner}.{found[0]}" if found else None
