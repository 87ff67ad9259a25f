"""Makes the pages of the reference from the docstrings of the built package: a page for each public module."""

from __future__ import annotations

import inspect
import posixpath
import re
import sys
import textwrap
import types
from collections import defaultdict
from enum import Enum
from functools import partial
from typing import Any

import gradiron
from docstring import inline, markdown
from public import FUNCTIONS, ROOT, Entry, first_sentence, members, modules, names

Tensor = gradiron.Tensor
ROWS = {name: row for row in gradiron._core.rows() for name in (row["name"], *row["aliases"])}
FOLDERS = {path.stem: path.relative_to(ROOT / "src/ops").parts[0] for path in (ROOT / "src/ops").rglob("*.rs")}
# The names of `torch` itself are too many for one page. An operator belongs to the topic of the folder that has its row.
TOPICS = {
    "creation": "Creation",
    "elementwise": "Element by element",
    "reduction": "Reductions",
    "linalg": "Linear algebra",
    "shape": "Shapes and views",
    "indexing": "Indexing",
    "sorting": "Sorting and searching",
    "complex": "Complex numbers",
    "special": "Special functions",
    "fft": "Windows and spectra",
    "random": "Random numbers",
    "nn": "Layers and losses",
    "sparse": "Sparse tensors",
    "settings": "Settings and grad modes",
    "classes": "Classes, dtypes and constants",
    "older": "Older classes, and types of TorchScript",
}
OLDER = re.compile(r"(Storage|Tensor|[a-z]Type|^Type|^Sym[A-Z]\w+|^Script\w+|^PyTorchFile\w+)$|^float[48]_|^(chalf|complex32)$")
# Topics of what no row declares, by where it is written.
WRITTEN_IN = {
    "nn.": "nn",
    "_creation": "creation",
    "_functions.indices": "indexing",
    "_functions.spectral": "fft",
    "_functions.histograms": "reduction",
    "_functions.segments": "reduction",
    "_functions.differences": "elementwise",
    "_lobpcg": "linalg",
    "_lowrank": "linalg",
    "_tensor": "linalg",
    "sparse.": "sparse",
    "random": "random",
    "storage": "creation",
}


def topic(name: str, value: Any) -> str:
    row = ROWS.get(name) or ROWS.get(name.rstrip("_"))
    if row:
        family = row["family"]
        return "elementwise" if family == "pointwise" else FOLDERS.get(family, family)
    if isinstance(value, types.FunctionType):
        home = value.__module__.removeprefix("gradiron.")
        return next((found for start, found in WRITTEN_IN.items() if home.startswith(start)), "settings")
    if isinstance(value, FUNCTIONS) or name in ("no_grad", "enable_grad", "inference_mode", "set_grad_enabled", "autocast"):
        return "settings"
    return "older" if OLDER.search(name) else "classes"


WIDTH = 80  # characters that a page shows without scrolling


class Written:
    """Stands for a default that prints as it is written in a program."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def default(value: Any) -> Any:
    if value is inspect.Parameter.empty:
        return value
    if isinstance(value, FUNCTIONS | type | types.ModuleType):
        return Written(value.__name__)
    if type(value) is tuple:
        inside = ", ".join(str(default(item)) for item in value)
        return Written(f"({inside},)" if len(value) == 1 else f"({inside})")
    text = str(value) if isinstance(value, Enum) else repr(value)
    return Written("..." if " at 0x" in text or "\n" in text else text)


def signature(name: str, value: Any) -> str:
    """A call with the names and defaults of its parameters."""
    try:
        given = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return f"{name}(...)"
    if given and given[0].name in ("self", "cls"):
        del given[0]
    shown = [one.replace(annotation=inspect.Parameter.empty, default=default(one.default)) for one in given]
    row = ROWS.get(name.rpartition(".")[2])
    returns = row["signatures"][0][1] if row and row["signatures"] and not isinstance(value, type) else ""
    call = f"{name}{inspect.Signature(shown)}"
    if len(call) > WIDTH:
        lines = textwrap.wrap(str(inspect.Signature(shown))[1:-1], WIDTH - 4, break_long_words=False, break_on_hyphens=False)
        call = "\n".join([f"{name}(", *(f"    {line}" for line in lines), ")"])
    return call + (f" -> {returns}" if returns else "")


# The modules that most readers look for stand before the others.
FIRST = ("nn", "nn.functional", "nn.init", "optim", "optim.lr_scheduler", "autograd", "func", "utils", "utils.data")


# A search for a name finds it on these pages first.
LOOKED_UP = ("reference/torch/", "reference/Tensor", "reference/nn/index", "reference/nn/functional", "reference/optim/index")
BOOST = "---\nsearch:\n  boost: 4\n---\n\n"


def pruned(items: list[Any]) -> list[Any]:
    """A navigation without empty sections."""
    made = []
    for item in items:
        if isinstance(item, dict):
            ((title, below),) = item.items()
            below = pruned(below) if isinstance(below, list) else below
            if below:
                made.append({title: below})
        else:
            made.append(item)
    return made


class Reference:
    """All pages, by path, and the entry of each name."""

    def __init__(self) -> None:
        self.modules = modules()
        self.names = {module: names(loaded) for module, loaded in self.modules.items()}
        self.home: dict[int, tuple[str, str]] = {}  # of a class or function: its page and its name
        self.anchors: dict[str, str] = {}  # of a name as code writes it: its page
        self.without: list[str] = []
        self.count = 0
        self.contents: dict[str, list[Entry]] = defaultdict(list)
        self.assign()

    def page(self, module: str, name: str = "", value: Any = None) -> str:
        if module:
            folder = any(other.startswith(f"{module}.") for other in self.modules)
            return f"reference/{module.replace('.', '/')}{'/index' if folder else ''}.md"
        return f"reference/torch/{topic(name, value)}.md" if name else "reference/torch/index.md"

    def assign(self) -> None:
        """Gives each name its page: that of the module nearest to the top."""
        tensor = "reference/Tensor.md"
        for name in sorted(dir(Tensor)):
            if not name.startswith("_"):
                self.anchors[f"torch.Tensor.{name}"] = self.anchors[f"Tensor.{name}"] = tensor
                self.home.setdefault(id(inspect.getattr_static(Tensor, name)), (tensor, f"torch.Tensor.{name}"))
        self.home[id(Tensor)] = (tensor, "torch.Tensor")
        self.anchors["torch.Tensor"] = tensor
        for module, found in self.names.items():
            for name in found:
                value = getattr(self.modules[module], name)
                full = f"torch.{module}.{name}" if module else f"torch.{name}"
                page = self.page(module, name, value)
                is_code = isinstance(value, type | FUNCTIONS)
                if is_code and id(value) in self.home:
                    self.anchors[full] = self.home[id(value)][0]
                    continue
                if is_code:
                    self.home[id(value)] = (page, full)
                self.anchors[full] = page
                self.contents[page].append(Entry(full, value))

    def link(self, page: str, code: str) -> str:
        """`code` between backticks, as a link if it names something that has an entry."""
        name = code.strip("`").removesuffix("()")
        full = name if name in self.anchors else f"torch.{name}" if name.startswith(("nn.", "Tensor.")) else ""
        if full not in self.anchors:
            return code
        return f"[{code}]({self.url(page, full)})"

    def url(self, page: str, full: str) -> str:
        full = f"torch.{full}" if full.startswith("Tensor.") else full
        value = self.value(full)
        target, name = (
            self.home.get(id(value), (self.anchors[full], full))
            if isinstance(value, type | FUNCTIONS)
            else (self.anchors[full], full)
        )
        return f"{posixpath.relpath(target, posixpath.dirname(page))}#{name}"

    def value(self, full: str) -> Any:
        if full.startswith("torch.Tensor."):
            return inspect.getattr_static(Tensor, full.removeprefix("torch.Tensor."))
        module, _, name = full.removeprefix("torch").removeprefix(".").rpartition(".")
        return getattr(self.modules[module], name)

    def text(self, page: str, name: str, value: Any) -> str:
        """A docstring as Markdown; a name without one is noted."""
        self.count += 1
        said = inspect.getdoc(value)
        if not said:
            self.without.append(name)
            return ""
        return markdown(said, partial(self.link, page))

    def entry(self, page: str, entry: Entry) -> list[str]:
        name, value = entry.name, entry.value
        lines = [f"### `{entry.short}` {{ #{name} }}", ""]
        if not isinstance(value, type | FUNCTIONS):
            self.count += 1
            kind = type(value)
            shown = repr(value) if not re.search(r" at 0x|\n", repr(value)) and len(repr(value)) < 80 else ""
            lines += [f"```python\n{name}" + (f"  # {shown}" if shown and shown != name else "") + "\n```", ""]
            said = inspect.getdoc(value) if kind.__module__ != "builtins" else ""
            lines += [markdown(said, partial(self.link, page)) if said else f"A value of type `{kind.__name__}`.", ""]
            return lines
        lines += [
            f"```python\n{signature(name, value)}\n```",
            "",
            self.facts(page, entry),
            "",
            self.text(page, name, value),
            "",
        ]
        if isinstance(value, type):
            for member, of in members(value):
                lines += self.member(page, f"{name}.{member}", of)
        return lines

    def facts(self, page: str, entry: Entry) -> str:
        """What the declaration of an operator says, or the base of a class."""
        value, name = entry.value, entry.short
        if isinstance(value, type):
            bases = [self.home[id(base)][1] for base in value.__bases__ if id(base) in self.home]
            shown = ", ".join(f"[`{base}`]({self.url(page, base)})" for base in bases)
            return f"Base class: {shown}" if shown else ""
        row = ROWS.get(name)
        if not row or not entry.name.startswith("torch.") or entry.name.count(".") > 1:
            return ""
        told = []
        for method in (name, f"{name}_"):
            if f"torch.Tensor.{method}" in self.anchors:
                told.append(f"[`Tensor.{method}`]({self.url(page, f'torch.Tensor.{method}')})")
        others = [other for other in (row["name"], *row["aliases"]) if other != name and f"torch.{other}" in self.anchors]
        said = [f"Method: {', '.join(told)}"] if told else []
        said += [f"other names: {', '.join(f'`torch.{other}`' for other in others)}"] if others else []
        said += ["differentiable" if row["differentiable"] else "not differentiable"]
        return "<small>" + " · ".join(said) + "</small>"

    def member(self, page: str, name: str, value: Any) -> list[str]:
        inner = getattr(value, "__func__", value)
        short = name.rpartition(".")[2]
        if callable(inner):
            head = signature(short, inner)
        else:
            shown = repr(value)
            head = f"{short} = {shown}" if type(value) in (bool, int, float, str) or value is None else short
        self.anchors.setdefault(name, page)
        self.count += 1
        said = inspect.getdoc(value)
        lines = [f"#### `{short}` {{ #{name} }}", "", *([f"```python\n{head}\n```", ""] if head != short else [])]
        if said and not (type(value).__module__ == "builtins" and said == type(value).__doc__):
            lines += [markdown(said, partial(self.link, page)), ""]
        return lines

    def tensor(self) -> str:
        """The page of tensors' methods; one that is also a function is a line with a link to it."""
        page = "reference/Tensor.md"
        said = markdown(inspect.getdoc(Tensor) or "", partial(self.link, page))
        lines = ["# torch.Tensor { #torch.Tensor }", "", said, ""]
        short, full, properties = [], [], []
        for name in sorted(dir(Tensor)):
            if name.startswith("_"):
                continue
            value = inspect.getattr_static(Tensor, name)
            function = name.rstrip("_") if not hasattr(gradiron, name) else name
            own = "Method form of" not in (inspect.getdoc(value) or "") and "In-place form of" not in (
                inspect.getdoc(value) or ""
            )
            if not callable(value) and not isinstance(value, staticmethod | classmethod):
                properties.append(name)
            elif function in ROWS and f"torch.{function}" in self.anchors and not own:
                short.append((name, function, value))
            else:
                full.append(name)
        for title, found in (("Attributes", properties), ("Methods", full)):
            lines += [f"## {title}", ""]
            for name in found:
                lines += self.member_of_tensor(page, name)
        lines += ["## Methods that are functions, too", "", "| method | does | function |", "|---|---|---|"]
        for name, function, value in short:
            self.count += 1
            head = re.sub(r" -> .*", "", signature(name, value)).replace("|", "\\|")
            said = markdown(first_sentence(value), partial(self.link, page)).replace("|", "\\|").replace("\\\\|", "\\|")
            link = f"[`torch.{function}`]({self.url(page, f'torch.{function}')})"
            lines.append(f'| <span id="torch.Tensor.{name}"></span>`{head}` | {said} | {link} |')
        return "\n".join(lines) + "\n"

    def member_of_tensor(self, page: str, name: str) -> list[str]:
        value = inspect.getattr_static(Tensor, name)
        lines = self.member(page, f"torch.Tensor.{name}", value)
        lines[0] = lines[0].replace("####", "###")
        if not inspect.getdoc(value):
            self.without.append(f"torch.Tensor.{name}")
        return lines

    def table(self, page: str, found: list[tuple[str, Any]]) -> list[str]:
        lines = ["| name | |", "|---|---|"]
        for full, value in found:
            said = markdown(first_sentence(value), partial(self.link, page)) if isinstance(value, type | FUNCTIONS) else ""
            said = said.replace("\n", " ").replace("|", "\\|").replace("\\\\|", "\\|")
            lines.append(f"| [`{full.rpartition('.')[2]}`]({self.url(page, full)}) | {said} |")
        return [*lines, ""]

    def pages(self) -> dict[str, str]:
        made = self.all_pages()
        return {path: (BOOST if path.startswith(LOOKED_UP) else "") + text for path, text in made.items()}

    def all_pages(self) -> dict[str, str]:
        made = {"reference/Tensor.md": self.tensor()}
        top = ["# torch", "", markdown(inspect.getdoc(gradiron) or "", partial(self.link, "reference/torch/index.md")), ""]
        for key, title in TOPICS.items():
            page = f"reference/torch/{key}.md"
            found = self.contents[page]
            top += [f"## {title}", "", *self.table("reference/torch/index.md", [(one.name, one.value) for one in found])]
            made[page] = "\n".join([f"# {title}", "", *(line for one in found for line in self.entry(page, one))])
        made["reference/torch/index.md"] = "\n".join(top)
        for module, loaded in self.modules.items():
            if module and self.contents[self.page(module)]:
                made[self.page(module)] = self.module(module, loaded)
        return made

    def navigation(self) -> list[Any]:
        """The pages as mkdocs wants them: a section for each module that has others below it."""
        topics = [{title: f"reference/torch/{key}.md"} for key, title in TOPICS.items()]
        made: list[Any] = [{"torch": ["reference/torch/index.md", *topics]}, {"torch.Tensor": "reference/Tensor.md"}]
        sections: dict[str, list[Any]] = {"": made}
        order = {name: number for number, name in enumerate(FIRST)}
        for module in sorted(self.modules, key=lambda name: (order.get(name, len(FIRST)), name)):
            if not module:
                continue
            page, above = self.page(module), module.rpartition(".")[0]
            while above and above not in sections:
                above = above.rpartition(".")[0]
            shown = f"torch.{module}" if not above else module.removeprefix(f"{above}.")
            if page.endswith("index.md"):
                sections[module] = [page] if self.contents[page] else []
                sections[above].append({shown: sections[module]})
            elif self.contents[page]:
                sections[above].append({shown: page})
        return pruned(made)

    def layers(self, page: str, here: list[Entry]) -> list[str]:
        """The tables of the classes of `nn`, one for each family: each has a module of its own."""
        families = defaultdict(list)
        for one in here:
            families[getattr(one.value, "__module__", "")].append((one.name, one.value))
        lines = []
        for family in sorted(families, key=lambda name: (not name.startswith("gradiron.nn.modules."), name)):
            said = (inspect.getdoc(sys.modules[family]) or "").partition("\n\n")[0].replace("\n", " ").rstrip(".")
            lines += [f"## {inline(said, str)} {{ data-search-exclude }}", "", *self.table(page, families[family])]
        return lines

    def module(self, module: str, loaded: types.ModuleType) -> str:
        page = self.page(module)
        said = markdown(inspect.getdoc(loaded) or "", partial(self.link, page))
        lines = [f"# torch.{module}", "", said, ""]
        here = self.contents[page]
        elsewhere = [f"torch.{module}.{name}" for name in self.names[module]]
        elsewhere = [full for full in elsewhere if full not in {one.name for one in here}]
        if module == "nn":
            lines += self.layers(page, here)
        elif len(here) > 12:
            lines += ["## All names { data-search-exclude }", "", *self.table(page, [(one.name, one.value) for one in here])]
        if here:
            lines += ["## Entries { data-search-exclude }", ""]
        for one in here:
            lines += self.entry(page, one)
        if elsewhere:
            lines += [
                "## Names that stand elsewhere { data-search-exclude }",
                "",
                *self.table(page, [(n, self.value(n)) for n in elsewhere]),
            ]
        return "\n".join(lines) + "\n"


def main() -> int:
    """Prints how much there is; fails if a public name has no docstring."""
    reference = Reference()
    pages = reference.pages()
    print(f"{len(pages)} pages, {reference.count} names, {len(reference.without)} without an entry")
    print("".join(f"  {name}\n" for name in reference.without), end="")
    return int(bool(reference.without))


if __name__ == "__main__":
    sys.exit(main())
