"""Switches that programs set at their beginning: the default device, determinism, the precision of products."""

from __future__ import annotations

import warnings
from typing import Any

from . import _core
from ._core import device

# What is said stands; that is all: results never depend on any of these.
_said: dict[str, Any] = {"deterministic": False, "warn_only": False, "precision": "highest", "interop": 1, "fill": True}


def set_default_device(device: Any) -> None:
    """Tensors are made on `device` from now on, where nothing else is said; None takes that back. For this thread."""
    _core.set_thread_device(None if device is None else _core.device(device))


def get_default_device() -> device:
    """Where tensors are made."""
    return _core.thread_device() or device("cpu")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Every operator is deterministic anyway: the same program gives the same bits."""
    _said.update(deterministic=bool(mode), warn_only=bool(warn_only))


def are_deterministic_algorithms_enabled() -> bool:
    return bool(_said["deterministic"])


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    return bool(_said["warn_only"])


_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """As `use_deterministic_algorithms`, by a number or a word."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            words = ", ".join(f"`{mode}`" for mode in _MODES)
            raise RuntimeError(f"invalid value of debug_mode, expected one of {words}, but got {debug_mode}")
        debug_mode = _MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    return (1 if _said["warn_only"] else 2) if _said["deterministic"] else 0


def set_float32_matmul_precision(precision: str) -> None:
    """Products of float32 are computed in float32, whatever is allowed."""
    if precision not in ("highest", "high", "medium"):
        known = "is not one of 'highest', 'high', or 'medium'"
        message = f"{precision} {known}; the currentsetFloat32MatmulPrecision call has no effect."
        warnings.warn(message, stacklevel=2)
        return
    _said["precision"] = precision


def get_float32_matmul_precision() -> str:
    return str(_said["precision"])


def set_default_tensor_type(t: Any, /) -> None:
    """The old way to choose the default dtype and device: `torch.DoubleTensor`, or its name."""
    if isinstance(t, str):
        import gradiron

        holder: Any = gradiron
        for part in t.removeprefix("torch.").split("."):
            holder = getattr(holder, part, None)
        if holder is None:
            raise TypeError(f"invalid type: '{t}'")
        t = holder
    kind, place = getattr(t, "kind", None), getattr(t, "place", None)
    if kind is None:
        raise TypeError("invalid type object")
    _core.set_default_dtype(kind)
    set_default_device(None if place == "cpu" else place)


def set_flush_denormal(mode: bool) -> bool:
    """Denormal numbers are never flushed: False."""
    return False


def get_num_interop_threads() -> int:
    return int(_said["interop"])


def set_num_interop_threads(num_threads: int) -> None:
    """Operators run one after the other: there is nothing to choose."""
    if num_threads <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    _said["interop"] = num_threads


def get_device_module(device: Any = None) -> Any:
    """The module of a kind of device: `torch.cuda`, `torch.cpu`."""
    import importlib

    kind = get_default_device().type if device is None else _core.device(device).type
    names = {"cuda": "cuda", "gpu": "cuda", "wgpu": "cuda", "mps": "mps", "cpu": "cpu"}
    return importlib.import_module(f".{names[kind]}", __package__)


def _assert(condition: Any, message: str) -> None:
    """An assertion that a compiler would see."""
    assert condition, message


def _assert_async(condition: Any, message: str | None = None) -> None:
    """An assertion about a tensor's one element."""
    if not condition:
        raise RuntimeError("Expected Tensor with single nonzero value, but got zero" if message is None else message)


_told: set[str] = set()


def tell_once(what: str, message: str) -> None:
    """Warns of something the first time only."""
    if what not in _told:
        _told.add(what)
        warnings.warn(message, stacklevel=3)


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: Any = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    dynamic_shapes: Any = None,
) -> Any:
    """The function or module itself: gradiron has no compiler, and says so once."""
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if not disable:
        tell_once("compile", "torch.compile: gradiron has no compiler; what it is given runs as it is")
    return (lambda given: given) if model is None else model
