"""Checks Markdown files: `examples.py README.md docs/*.md`.

A block that starts with ```python runs, each file as one program; what follows it as ```text is what it must have printed.
A block that starts with ```rust quotes the source: it must stand there, but for what `…` leaves out. Paths in backticks must
exist, and `name` in `path` must be a word of that file.
"""

import contextlib
import io
import os
import re
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(python|text|rust)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROOMS = r"(?:src|macros|python|tests|benches|scripts|examples|docs)"
NAMED = re.compile(rf"`({ROOMS}/[\w./-]+)`")
WITHIN = re.compile(rf"`([\w:]+)`\s+(?:\(|in\s+)`({ROOMS}/[\w./-]+)`")


@cache
def sources() -> list[str]:
    """The texts of all Rust files, as `plain` makes them."""
    paths = [path for folder in ("src", "examples") for path in sorted((ROOT / folder).rglob("*.rs"))]
    return [plain(path.read_text(encoding="utf-8")) for path in paths]


def plain(code: str) -> str:
    """Code without what rustfmt may change: spaces, and commas before a closing bracket."""
    return re.sub(r",(?=[)\]}])", "", re.sub(r"\s+", "", code))


def is_quoted(item: str) -> bool:
    """Whether some file has all parts of a quoted item, one after the other."""
    parts = [plain(part) for part in item.split("…")]

    def holds(text: str) -> bool:
        at = 0
        for part in parts:
            found = text.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return True

    return any(holds(text) for text in sources())


def missing(text: str) -> list[str]:
    """What the prose of a page names and the source does not have."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    paths = sorted(set(NAMED.findall(prose)))
    wrong = [f"there is no {path}" for path in paths if not (ROOT / path).exists()]
    for name, path in WITHIN.findall(prose):
        file, word = ROOT / path, name.rpartition("::")[2]
        if file.is_file() and not re.search(rf"\b{word}\b", file.read_text(encoding="utf-8")):
            wrong.append(f"{path} has no {word}")
    return wrong


def run_file(path: Path) -> int:
    """Checks one file, and runs its blocks in order, in one namespace; returns how many failed."""
    text = path.read_text(encoding="utf-8")
    space: dict[str, object] = {"__name__": "__main__"}
    printed: str | None = None
    wrong = missing(text)
    for what in wrong:
        print(f"{path}: {what}", file=sys.stderr)
    failures = len(wrong)
    for match in BLOCK.finditer(text):
        kind, body = match.groups()
        line = text.count("\n", 0, match.start()) + 2
        if kind == "rust":
            for item in body.split("\n\n"):
                if not is_quoted(item):
                    print(f"{path}:{line}: the source no longer has\n{item}", file=sys.stderr)
                    failures += 1
        elif kind == "python":
            out = io.StringIO()
            try:
                # The newlines make tracebacks point into the file.
                code = compile("\n" * (line - 1) + body, str(path), "exec")
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):  # progress bars
                    exec(code, space)
            except Exception:
                traceback.print_exc()
                failures += 1
            printed = out.getvalue()
        elif printed is not None:
            if printed.rstrip() != body.rstrip():
                print(f"{path}:{line}: the example printed\n{printed}\ninstead of\n{body}", file=sys.stderr)
                failures += 1
            printed = None
    return failures


def main() -> int:
    pages = [Path(name).absolute() for name in sys.argv[1:]]
    # What the examples of a page write belongs into no repository.
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        failures = sum(run_file(page) for page in pages)
        os.chdir(ROOT)
    return failures


if __name__ == "__main__":
    sys.exit(min(main(), 1))
