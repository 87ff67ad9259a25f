"""Turns the docstrings of the package into Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable

SECTION = re.compile(r"^(Args|Attributes|Examples|Raises|Returns|Shape):$", re.MULTILINE)
ENTRY = re.compile(r"^    (\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)*)(?: \(([^)]*)\))?: (.*(?:\n(?:     .*|$))*)", re.MULTILINE)
TITLES = {"Args": "Parameters"}
Link = Callable[[str], str]


def inline(text: str, link: Link) -> str:
    """Prose, in which only code between backticks has a meaning: what else Markdown would read is escaped."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(link(part) if part.startswith("`") else re.sub(r"([\\*_\[\]<>{}|#])", r"\\\1", part) for part in parts)


def prose(text: str, link: Link) -> str:
    """Paragraphs and lists; what is indented behind `::` is code."""
    made = []
    code = False
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        if code and block.startswith("    "):
            made.append("```text\n" + "\n".join(line[4:] for line in block.split("\n")) + "\n```")
            continue
        code = block.rstrip().endswith("::")
        block = inline(block.replace("::", ":") if code else block, link)
        made.append(re.sub(r"(?<!\n)\n(?=- )", "\n\n", re.sub(r"^(- .*)$", r"\1", block, flags=re.MULTILINE), count=1))
    return "\n\n".join(made)


def entries(text: str, link: Link) -> str:
    """`name: what it is`, one below the other, as a list."""
    found = ENTRY.findall(text)
    if not found:
        return prose(re.sub(r"^    ", "", text, flags=re.MULTILINE), link)
    lines = []
    for names, kind, said in found:
        shown = ", ".join(f"`{name.strip()}`" for name in names.split(","))
        kind = f" ({inline(kind, link)})" if kind else ""
        said = inline(re.sub(r"\s*\n\s*", " ", said.strip()), link)
        lines.append(f"- **{shown}**{kind}: {said}")
    return "\n".join(lines)


def markdown(text: str, link: Link) -> str:
    """A whole docstring, as `inspect.getdoc` gives it."""
    head, *rest = SECTION.split(text)
    made = [prose(head, link)] if head.strip() else []
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        body = body.strip("\n")
        if title == "Examples":
            code = "\n".join(line.removeprefix("    ") for line in body.split("\n"))
            made.append(f"```pycon\n{code}\n```")
        else:
            made.append(f"**{TITLES.get(title, title)}**\n\n{entries(body, link)}")
    return "\n\n".join(made)
