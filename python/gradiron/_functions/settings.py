"""Global settings: default device, determinism, precision of matrix products."""

from __future__ import annotations

import warnings
from typing import Any

import gradiron

from .. import _core
from .._core import device

# The flags that were set; results never depend on them.
_said: dict[str, Any] = {"deterministic": False, "warn_only": False, "precision": "highest", "interop": 1, "fill": True}


def set_default_device(device: Any) -> None:
    """Set the device on which functions create tensors, for this thread.

    Args:
        device: device, or `None` for the CPU again.

    Examples:
        >>> torch.set_default_device("cpu")
        >>> torch.zeros(2).device
        device(type='cpu')
    """
    _core.set_thread_device(None if device is None else _core.device(device))


def get_default_device() -> device:
    """Return the device on which functions create tensors in this thread.

    Examples:
        >>> torch.get_default_device()
        device(type='cpu')
    """
    return _core.thread_device() or device("cpu")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Set the flag of deterministic algorithms, which has no effect as all operators are deterministic.

    Args:
        mode: value of `are_deterministic_algorithms_enabled`.
        warn_only: value of `is_deterministic_algorithms_warn_only_enabled`. Default: `False`

    Examples:
        >>> torch.use_deterministic_algorithms(False)
    """
    _said.update(deterministic=bool(mode), warn_only=bool(warn_only))


def are_deterministic_algorithms_enabled() -> bool:
    """Return the flag that `use_deterministic_algorithms` sets.

    Examples:
        >>> torch.are_deterministic_algorithms_enabled()
        False
    """
    return bool(_said["deterministic"])


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return the flag `warn_only` that `use_deterministic_algorithms` sets.

    Examples:
        >>> torch.is_deterministic_algorithms_warn_only_enabled()
        False
    """
    return bool(_said["warn_only"])


_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Call `use_deterministic_algorithms` by a mode.

    Args:
        debug_mode: `"default"` (0), `"warn"` (1) or `"error"` (2).

    Examples:
        >>> torch.set_deterministic_debug_mode("default")
    """
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
    """Return the mode that `set_deterministic_debug_mode` sets, as a number.

    Examples:
        >>> torch.get_deterministic_debug_mode()
        0
    """
    return (1 if _said["warn_only"] else 2) if _said["deterministic"] else 0


def set_float32_matmul_precision(precision: str) -> None:
    """Set the precision of float32 matrix products, which has no effect as they are always exact to float32.

    Args:
        precision: `"highest"`, `"high"` or `"medium"`.

    Examples:
        >>> torch.set_float32_matmul_precision("highest")
    """
    if precision not in ("highest", "high", "medium"):
        known = "is not one of 'highest', 'high', or 'medium'"
        message = f"{precision} {known}; the currentsetFloat32MatmulPrecision call has no effect."
        warnings.warn(message, stacklevel=2)
        return
    _said["precision"] = precision


def get_float32_matmul_precision() -> str:
    """Return what `set_float32_matmul_precision` was given.

    Examples:
        >>> torch.get_float32_matmul_precision()
        'highest'
    """
    return str(_said["precision"])


def set_default_tensor_type(t: Any, /) -> None:
    """Set the default dtype and device by a tensor type; deprecated.

    Args:
        t: type such as `torch.DoubleTensor`, or its name.

    Examples:
        >>> torch.set_default_tensor_type(torch.FloatTensor)
        >>> torch.get_default_dtype()
        torch.float32
    """
    if isinstance(t, str):
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
    """Ask to flush denormal numbers to zero, which is not supported, and return `False`.

    Args:
        mode: ignored.

    Examples:
        >>> torch.set_flush_denormal(True)
        False
    """
    return False


def get_num_interop_threads() -> int:
    """Return what `set_num_interop_threads` was given, 1 at first.

    Examples:
        >>> torch.get_num_interop_threads()
        1
    """
    return int(_said["interop"])


def set_num_interop_threads(num_threads: int) -> None:
    """Set the number of operators that run in parallel, which has no effect: they run one after the other.

    Args:
        num_threads: number that `get_num_interop_threads` returns.

    Examples:
        >>> torch.set_num_interop_threads(1)
    """
    if num_threads <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    _said["interop"] = num_threads


def get_device_module(device: Any = None) -> Any:
    """Return the module of a type of device, such as `torch.cuda`.

    Args:
        device: device, or its type; the default device if `None`.

    Examples:
        >>> torch.get_device_module("cpu").__name__
        'gradiron.cpu'
    """
    import importlib

    kind = get_default_device().type if device is None else _core.device(device).type
    names = {"cuda": "cuda", "gpu": "cuda", "wgpu": "cuda", "mps": "mps", "cpu": "cpu"}
    return importlib.import_module(f"gradiron.{names[kind]}")


def _assert(condition: Any, message: str) -> None:
    """Assert a condition."""
    if type(condition) is not bool and gradiron.overrides.has_torch_function((condition,)):
        gradiron.overrides.handle_torch_function(_assert, (condition,), condition, message)
        return
    assert condition, message


def _assert_async(condition: Any, message: str | None = None) -> None:
    """Raise an error unless a tensor of one element is nonzero."""
    if not condition:
        raise RuntimeError("Expected Tensor with single nonzero value, but got zero" if message is None else message)


_told: set[str] = set()


def tell_once(what: str, message: str) -> None:
    """Warn of something the first time only."""
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
    """Capture the kernels of a function or module once, and replay them without Python.

    The first call runs as it is, the second is captured, later ones are replayed. Before each replay all that Python read
    during the captured call is compared: globals, attributes, items, shapes. If something differs, the call is captured again.
    What cannot be captured runs as it is; `torch._dynamo.explain` tells why.

    Args:
        model: function or module; without one, the result is a decorator.
        fullgraph: raise `torch._dynamo.exc.Unsupported` where something cannot be captured. Default: `False`
        dynamic: accepted; each new shape is captured on its own, which costs one call.
        backend: `"inductor"`, `"cudagraphs"` or `"aot_eager"`, all the same here, or `"eager"`, which captures nothing.
        mode: `"default"`, `"lite"`, `"reduce-overhead"`, `"max-autotune"` or `"max-autotune-no-cudagraphs"`: all the same.
        options: options of `torch.compile`, which have no effect here.
        name: name of the function in logs.
        disable: return the function as it is. Default: `False`
        recompile_limit: how many captures are kept; `torch._dynamo.config.recompile_limit` if `None`.
        isolate_recompiles: accepted; captures are counted for each compiled function. Default: `False`
        dynamic_shapes: accepted, like `dynamic`.

    Examples:
        >>> @torch.compile
        ... def scaled(x, factor):
        ...     return (x * factor).relu()
        >>> for _ in range(3):
        ...     y = scaled(torch.tensor([-1.0, 2.0]), 3)
        >>> y
        tensor([0., 6.])
    """
    from importlib import import_module

    given = (fullgraph, dynamic, backend, mode, options, name, disable, recompile_limit)
    return import_module("gradiron._compile.entry").compile_with(model, *given)
