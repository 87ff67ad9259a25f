"""Runs the Python examples of Markdown files, each file as one program: `examples.py README.md ...`.

A block that starts with ```python runs; what follows it as ```text is what it must have printed.
"""

import contextlib
import io
import re
import sys
import traceback
from pathlib import Path

BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_file(path: Path) -> int:
    """Runs one file's blocks in order, in one namespace; returns how many failed."""
    text = path.read_text(encoding="utf-8")
    space: dict[str, object] = {"__name__": "__main__"}
    printed: str | None = None
    failures = 0
    for match in BLOCK.finditer(text):
        kind, body = match.groups()
        line = text.count("\n", 0, match.start()) + 2
        if kind == "python":
            out = io.StringIO()
            try:
                # The newlines make tracebacks point into the file.
                code = compile("\n" * (line - 1) + body, str(path), "exec")
                with contextlib.redirect_stdout(out):
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
    return sum(run_file(Path(name)) for name in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(min(main(), 1))
