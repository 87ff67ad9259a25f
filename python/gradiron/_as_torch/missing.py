"""What a program asked gradiron for and did not get: the list at the end of `python -m gradiron`."""

from __future__ import annotations

import dis
import importlib.machinery
import os
import sys
from types import FrameType, ModuleType
from typing import Any

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# How a program names what it needs. Other ways (`hasattr`) only ask whether it is there.
_NAMING = frozenset(("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM"))

_found: dict[tuple[str, str], None] = {}


def _outside(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the program itself."""
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((_HERE, "<frozen ")):
            return frame
        frame = frame.f_back
    return None


def _place(frame: FrameType | None) -> str:
    if frame is None:
        return ""
    path = os.path.relpath(frame.f_code.co_filename)
    return f"{frame.f_code.co_filename if path.startswith('..') else path}:{frame.f_lineno}"


def note(name: str, place: str) -> None:
    """Puts a name on the list, by PyTorch's name of it."""
    if name == "gradiron" or name.startswith("gradiron."):
        name = "torch" + name.removeprefix("gradiron")
    _found.setdefault((name, place))


def _watched(module: ModuleType) -> None:
    """Notes what is asked of a module in vain. Reading what is there goes its usual way."""
    inner = vars(module).get("__getattr__")

    def __getattr__(name: str) -> Any:
        try:
            if inner is not None:
                return inner(name)
            raise AttributeError(f"module '{module.__name__}' has no attribute '{name}'", name=name, obj=module)
        except AttributeError:
            caller = sys._getframe(1)
            if not name.startswith("__") and dis.opname[caller.f_code.co_code[caller.f_lasti]] in _NAMING:
                note(f"{module.__name__}.{name}", _place(_outside(caller)))
            raise

    if not hasattr(inner, "watches"):
        __getattr__.watches = module  # type: ignore[attr-defined]
        vars(module)["__getattr__"] = __getattr__


class _Watcher:
    """Sees gradiron's modules when they are loaded, and notes those that are asked for in vain."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if not name.startswith("gradiron."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None:
            frame = sys._getframe(1)
            # `from torch import name` looks for a module of that name, too; then the name itself is noted.
            if not _is_from(frame):
                note(name, _place(_outside(frame)))
            return None
        loader: Any = spec.loader
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            _watched(module)

        loader.exec_module = exec_module
        return spec


def _is_from(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_filename.startswith((_HERE, "<frozen ")):
        if frame.f_code.co_name == "_handle_fromlist":
            return True
        frame = frame.f_back
    return False


def watch() -> None:
    """From now on, everything that gradiron lacks is noted."""
    for name, module in list(sys.modules.items()):
        if name == "gradiron" or name.startswith("gradiron."):
            _watched(module)
    # Behind the finder of `torch`, before those of files.
    sys.meta_path.insert(1, _Watcher())


def died_of(error: BaseException) -> None:
    """Notes what ended the program, where that is something that gradiron lacks."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    inside = next((at for at in frames[::-1] if not at[0].f_code.co_filename.startswith(_HERE)), None)
    if inside is None:
        return
    path = os.path.relpath(inside[0].f_code.co_filename)
    place = f"{inside[0].f_code.co_filename if path.startswith('..') else path}:{inside[1]}"
    if isinstance(error, AttributeError) and isinstance(getattr(error, "name", None), str):
        of: Any = error.obj
        kind = of if isinstance(of, (type, ModuleType)) else type(of)
        module = getattr(kind, "__module__", None) or ""
        if isinstance(kind, ModuleType):
            owner = kind.__name__
        elif module.partition(".")[0] in ("gradiron", "torch"):
            owner = f"{'gradiron' if module == 'gradiron._core' else module}.{kind.__name__}"
        else:
            return
        if owner.partition(".")[0] in ("gradiron", "torch"):
            note(f"{owner}.{error.name}", place)
    elif isinstance(error, NotImplementedError) and frames[-1][0].f_code.co_filename.startswith(_HERE):
        note(str(error).partition("\n")[0], place)


def report() -> str:
    """The list, or nothing."""
    if not _found:
        return ""
    from . import pytorch_names as pytorch

    width = max(len(name) for name, _ in _found)
    lacking, unknown = ["gradiron lacks:"], [f"PyTorch {pytorch.version()} has no such names:"]
    for name, place in _found:
        line = f"  {name:{width}}  {place}"
        if pytorch.is_unknown(name):
            meant = pytorch.nearest(name)
            unknown.append(f"{line}  (did you mean {meant}?)" if meant else line)
        else:
            lacking.append(line)
    return "\n".join(line for lines in (lacking, unknown) if len(lines) > 1 for line in lines)
