"""Checks the wording of comments and docstrings: each opens as a sentence does, so that it can be read alone."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# These begin a clause that needs something before it.
OPENING = r"(?:Of|That|Which|Who|So) "
RUST = re.compile(rf"//[/!]? {OPENING}")
PYTHON = re.compile(rf'(?:# |r?""")({OPENING})')


def complaints(path: Path) -> list[str]:
    """The lines at which a comment or docstring opens with such a word; later lines of a comment may."""
    opening, mark = (RUST, "//") if path.suffix == ".rs" else (PYTHON, "#")
    found, before = [], ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = line.strip()
        if opening.match(line) and not before.startswith(mark):
            found.append(f"{path.relative_to(ROOT)}:{number}: {line}")
        before = line
    return found


def main() -> None:
    folders = [("src", "*.rs"), ("macros/src", "*.rs"), ("python/gradiron", "*.py")]
    paths = [path for folder, pattern in folders for path in sorted((ROOT / folder).rglob(pattern))]
    found = [line for path in paths for line in complaints(path)]
    sys.exit("\n".join(["A comment opens with a clause of its own:", *found]) if found else 0)


if __name__ == "__main__":
    main()
