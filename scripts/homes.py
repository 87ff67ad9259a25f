"""Writes `python/gradiron/_as_torch/homes.py`: where PyTorch keeps what gradiron keeps elsewhere.

Run it when a function or class moves, or after `tests/golden/make_homes.py`.
"""

import gzip
import importlib
import importlib.util
import json
import pathlib
import sys
import types
import warnings
from collections import defaultdict

ROOT = pathlib.Path(__file__).parent.parent
FILE = ROOT / "python" / "gradiron" / "_as_torch" / "homes.py"
# The parts of the extension, which are no modules to import.
PARTS = ("_nn", "_distributed")
HEAD = '''\
"""Written by `scripts/homes.py`: where PyTorch keeps what gradiron keeps elsewhere."""

from __future__ import annotations

# For a module of ours and a module of PyTorch's, the names; `ours=theirs` where they differ.
'''


def golden():
    """For each of PyTorch's modules and public names, `__module__` and `__qualname__`."""
    read = json.loads(gzip.decompress((ROOT / "tests" / "golden" / "homes.json.gz").read_bytes()))["data"]
    for module, names in read.items():
        whole = "torch" if module == "." else f"torch.{module}"
        for name, (home, inside) in names.items():
            yield whole, name, home or whole, inside or name


def to_gradiron(theirs):
    return "gradiron" + theirs.removeprefix("torch")


def exists(theirs):
    """Whether gradiron has a module of its own by this name."""
    try:
        return importlib.util.find_spec(to_gradiron(theirs)) is not None
    except ModuleNotFoundError:
        return False


def found(theirs, name):
    try:
        return getattr(importlib.import_module(to_gradiron(theirs)), name, None)
    except ModuleNotFoundError:
        return None


def address(value):
    """Our module and name of a function or class, where its module has it by this name."""
    if isinstance(value, types.BuiltinFunctionType):
        core = sys.modules["gradiron._core"]
        for module, holder in (("gradiron._core", core), *((f"gradiron._core.{name}", getattr(core, name)) for name in PARTS)):
            if getattr(holder, value.__name__, None) is value:
                return module, value.__name__
        return None
    if isinstance(value, type | types.FunctionType):
        module, name = value.__module__, value.__qualname__
    else:
        return None
    holder = sys.modules.get(module)
    return (module, name) if module.startswith("gradiron") and getattr(holder, name, None) is value else None


def common(ours, theirs):
    """How many words two modules' names begin with alike, leading underscores apart."""
    pairs = zip(ours.split(".")[1:], theirs.split(".")[1:], strict=False)
    count = 0
    for one, other in pairs:
        if one.lstrip("_") != other.lstrip("_"):
            break
        count += 1
    return count


def fit(ours, own, home, inside):
    """How well a place of PyTorch's fits what we have by the name `own` in `ours`: the larger, the better."""
    return inside == own, to_gradiron(home) == ours, common(ours, home), home == "torch", -len(home)


def table():
    """For each module of ours, PyTorch's modules and the names there."""
    wanted = defaultdict(list)
    for whole, name, home, inside in golden():
        value = found(whole, name)
        where = address(value)
        if where is None:
            continue
        ours, own = where
        if isinstance(value, types.BuiltinFunctionType):
            # Its `__qualname__` is fixed.
            inside = inside.removeprefix("_VariableFunctionsClass.")
            if inside != own and inside.isidentifier():
                continue
            inside = own
        elif not inside.isidentifier():
            inside = inside.removeprefix("_VariableFunctionsClass.") if home == "torch" else own
        if (found(home, inside) is value) if exists(home) else inside.isidentifier():
            wanted[where].append((home, inside))
    made = defaultdict(lambda: defaultdict(list))
    taken = set()
    for (ours, own), places in sorted(wanted.items()):
        default = "torch" + ours.removeprefix("gradiron")

        home, inside = max(places, key=lambda place: fit(ours, own, *place))
        builtin_default = (
            ours == "gradiron._core" and home == "torch" and isinstance(found(home, inside), types.BuiltinFunctionType)
        )
        if (home, inside) == (default, own) or (home, inside) in taken or builtin_default:
            continue
        taken.add((home, inside))
        made[ours][home].append(own if own == inside else f"{own}={inside}")
    return made


def without_file(made):
    """PyTorch's modules that gradiron has not, by those that they are in."""
    below = defaultdict(set)
    for homes in made.values():
        for home in homes:
            while home and not exists(home):
                parent, _, name = home.rpartition(".")
                below[parent].add(name)
                home = parent
    return {parent: sorted(names) for parent, names in sorted(below.items())}


def text():
    """The file."""
    made = table()
    lines = [HEAD, "HOMES: dict[str, dict[str, str]] = {\n"]
    for ours, homes in sorted(made.items()):
        lines.append(f'    "{ours}": {{\n')
        for home, names in sorted(homes.items()):
            lines.append(f'        "{home}": """\n')
            line = "           "
            for name in sorted(names):
                if len(line) + len(name) > 120:
                    lines.append(f"{line}\n")
                    line = "           "
                line += f" {name}"
            lines.append(f'{line}\n        """,\n')
        lines.append("    },\n")
    lines.append("}\n\n# PyTorch's modules among them that gradiron has no file for, by the module that they are in.\n")
    lines.append("WITHOUT_FILE = {\n")
    lines += [f'    "{parent}": "{" ".join(names)}",\n' for parent, names in without_file(made).items()]
    lines.append("}\n")
    return "".join(lines)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    new = text()
    if "--write" in sys.argv[1:]:
        FILE.write_text(new)
    elif FILE.read_text() != new:
        sys.exit("python/gradiron/_as_torch/homes.py is old: run `python scripts/homes.py --write`")
