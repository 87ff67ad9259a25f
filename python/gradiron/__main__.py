"""`python -m gradiron script.py …`: runs a program written for PyTorch, with `torch` meaning gradiron."""

from __future__ import annotations

import builtins
import io
import os
import pkgutil
import runpy
import sys
from types import CodeType, ModuleType, TracebackType
from typing import Any

import gradiron

from ._as_torch import missing

USAGE = """\
usage: python -m gradiron script.py [arguments …]
       python -m gradiron -m module [arguments …]
       python -m gradiron -c code [arguments …]

Runs a program written for PyTorch. `import torch` gives it gradiron, also in the Python programs that it starts.
What it asked for and gradiron does not have is listed at the end."""


def _as_main(code: CodeType, **names: Any) -> None:
    """Runs code as the program's own module, which stays the program's until the very end, as in Python itself."""
    module = ModuleType("__main__")
    vars(module).update({"__builtins__": builtins, **names})
    sys.modules["__main__"] = module
    exec(code, vars(module))


def _code(path: str) -> CodeType:
    """The code of a script: its source, or what Python has made of it before."""
    with io.open_code(path) as file:
        code = pkgutil.read_code(file)
    if code is None:
        with io.open_code(path) as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
    return code


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
            _as_main(compile(what, "<string>", "exec", dont_inherit=True))
        return
    if not os.path.exists(first):
        raise SystemExit(f"python -m gradiron: can't open file {os.path.abspath(first)!r}: no such file")
    sys.argv[:] = arguments
    if pkgutil.get_importer(first) is not None:  # A folder or an archive with a program in it.
        runpy.run_path(first, run_name="__main__")
        return
    if not getattr(sys.flags, "safe_path", False):
        # As with `python script.py`: its neighbours can be imported, what lies in the working directory cannot.
        sys.path[0] = os.path.dirname(os.path.realpath(first))
    path = os.path.abspath(first)
    _as_main(_code(path), __file__=path, __cached__=None)


def _trimmed(trace: TracebackType | None) -> TracebackType | None:
    """A traceback from where the program begins."""
    own = (os.path.abspath(__file__), "<frozen runpy>", runpy.__file__)
    while trace is not None and trace.tb_frame.f_code.co_filename in own:
        trace = trace.tb_next
    return trace


def _tell_launcher(error: BaseException) -> None:
    """Tells `gradiron-run`, if it has started this process, what ends it."""
    if "TORCHELASTIC_ERROR_FILE" in os.environ:
        from .distributed.elastic.multiprocessing.errors import get_error_handler

        get_error_handler().record_exception(error)


def main(arguments: list[str]) -> int:
    """Runs the program; the exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version"):
        print(f"gradiron {gradiron.version.gradiron}, for PyTorch {gradiron.version.__version__}")
        return 0
    gradiron.as_torch()
    os.environ["GRADIRON_AS_TORCH"] = "1"  # for `_gradiron_as_torch`, with which its child processes begin
    missing.watch()
    try:
        _run(arguments)
        return 0
    except SystemExit as error:
        if error.code not in (0, None):
            _tell_launcher(error)
        raise
    except Exception as error:
        missing.died_of(error)
        error.__traceback__ = _trimmed(error.__traceback__)
        _tell_launcher(error)
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    finally:
        if told := missing.report():
            print(told, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
