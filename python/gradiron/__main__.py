"""`python -m gradiron script.py …`: runs a program written for PyTorch, with `torch` meaning gradiron."""

from __future__ import annotations

import os
import runpy
import sys
from types import TracebackType

import gradiron

from . import _missing

USAGE = """\
usage: python -m gradiron script.py [arguments …]
       python -m gradiron -m module [arguments …]
       python -m gradiron -c code [arguments …]

Runs a program written for PyTorch. `import torch` gives it gradiron, also in its child processes.
What it asked for and gradiron does not have is listed at the end."""


def _run(arguments: list[str]) -> None:
    first, *rest = arguments
    if first in ("-m", "-c"):
        if not rest:
            raise SystemExit(f"Argument expected for the {first} option\n{USAGE}")
        what, *rest = rest
        sys.argv[:] = [first, *rest]
        if first == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(compile(what, "<string>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
        return
    if not os.path.exists(first):
        raise SystemExit(f"python -m gradiron: can't open file {os.path.abspath(first)!r}: no such file")
    sys.argv[:] = arguments
    if not getattr(sys.flags, "safe_path", False):
        # As with `python script.py`: its neighbours can be imported, what lies in the working directory cannot.
        sys.path[0] = os.path.dirname(os.path.realpath(first))
    runpy.run_path(first, run_name="__main__")


def _trimmed(trace: TracebackType | None) -> TracebackType | None:
    """A traceback from where the program begins."""
    own = (os.path.abspath(__file__), "<frozen runpy>", runpy.__file__)
    while trace is not None and trace.tb_frame.f_code.co_filename in own:
        trace = trace.tb_next
    return trace


def main(arguments: list[str]) -> int:
    """Runs the program; the exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version"):
        print(f"gradiron {gradiron.version.gradiron}, for PyTorch {gradiron.version.__version__}")
        return 0
    gradiron.as_torch()
    _missing.watch()
    try:
        _run(arguments)
        return 0
    except Exception as error:
        _missing.died_of(error)
        error.__traceback__ = _trimmed(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    finally:
        if told := _missing.report():
            print(told, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
