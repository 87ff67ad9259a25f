"""Automatic mixed precision: matrix products in half precision, the rest in float32."""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from .. import _core
from .._core import bfloat16, dtype, float16

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

# Names of devices that PyTorch knows and gradiron does not support.
_STRANGE = frozenset("ipu xpu mkldnn opengl opencl ideep hip ve fpga maia xla lazy vulkan meta hpu mtia privateuseone".split())
_KINDS = ("cpu", "cuda", "mps", "gpu", "wgpu")
_CPU = (bfloat16, float16)


class _State(threading.local):
    """Each thread's own."""

    def __init__(self) -> None:
        self.on = dict.fromkeys(_KINDS, False)
        self.dtypes: dict[str, dtype] = {**dict.fromkeys(_KINDS, float16), "cpu": bfloat16}
        self.cache = True
        self.nesting = 0

    def apply(self) -> None:
        """Tells the core what holds on this thread now."""
        _core.swap_autocast(self.dtypes["cpu"] if self.on["cpu"] else None, self.cache, any(self.on.values()))


_state = _State()


def _kind(device_type: str) -> str:
    if device_type not in _KINDS and device_type not in _STRANGE:
        # Raises the usual error for an unknown device.
        _core.device(device_type)
    return device_type


def is_autocast_available(device_type: str) -> bool:
    """Return whether autocast has an effect on a device; that is the CPU only.

    Args:
        device_type: type of the device, such as `"cpu"`.

    Examples:
        >>> torch.amp.is_autocast_available("cpu")
        True
    """
    return _kind(device_type) == "cpu"


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Return whether autocast is enabled for a type of device.

    Args:
        device_type: type of the device. Default: `"cuda"`

    Examples:
        >>> with torch.autocast("cpu"):
        ...     torch.is_autocast_enabled("cpu")
        True
    """
    return _state.on.get(_kind(device_type), False)


def set_autocast_enabled(*args: Any) -> None:
    """Enable or disable autocast, called as `set_autocast_enabled(device_type, enabled)`.

    Without a type of device it means `"cuda"`.

    Args:
        args: type of the device and whether to enable.

    Examples:
        >>> torch.set_autocast_enabled("cpu", False)
    """
    kind, on = args if len(args) == 2 else ("cuda", *args)
    if kind == "cpu" or not on:
        _state.on[_kind(kind)] = bool(on)
        _state.apply()
    else:
        raise RuntimeError(f"autocast has nothing to do on '{kind}': the GPU computes in float32")


def get_autocast_dtype(device_type: str) -> dtype:
    """Return the dtype that autocast converts to on a type of device.

    Args:
        device_type: type of the device.

    Examples:
        >>> torch.get_autocast_dtype("cpu")
        torch.bfloat16
    """
    return _state.dtypes.get(_kind(device_type), float16)


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Set the dtype that autocast converts to on a type of device.

    Args:
        device_type: type of the device.
        dtype: dtype.

    Examples:
        >>> torch.set_autocast_dtype("cpu", torch.bfloat16)
    """
    _state.dtypes[_kind(device_type)] = dtype
    _state.apply()


def _deprecated(name: str, new: str) -> None:
    warnings.warn(f"torch.{name} is deprecated. Please use torch.{new} instead.", DeprecationWarning, stacklevel=3)


def is_autocast_cpu_enabled() -> bool:
    """Return whether autocast is enabled on the CPU; deprecated, use `is_autocast_enabled("cpu")`.

    Examples:
        >>> torch.is_autocast_cpu_enabled()
        False
    """
    _deprecated("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')")
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Enable or disable autocast on the CPU; deprecated, use `set_autocast_enabled("cpu", enabled)`.

    Args:
        enabled: whether to enable.

    Examples:
        >>> torch.set_autocast_cpu_enabled(False)
    """
    _deprecated("set_autocast_cpu_enabled(enabled)", "set_autocast_enabled('cpu', enabled)")
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> dtype:
    """Return the dtype of autocast on the CPU; deprecated, use `get_autocast_dtype("cpu")`.

    Examples:
        >>> torch.get_autocast_cpu_dtype()
        torch.bfloat16
    """
    _deprecated("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')")
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: dtype) -> None:
    """Set the dtype of autocast on the CPU; deprecated, use `set_autocast_dtype("cpu", dtype)`.

    Args:
        dtype: dtype.

    Examples:
        >>> torch.set_autocast_cpu_dtype(torch.bfloat16)
    """
    _deprecated("set_autocast_cpu_dtype(dtype)", "set_autocast_dtype('cpu', dtype)")
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> dtype:
    """Return the dtype of autocast on the GPU; deprecated, use `get_autocast_dtype("cuda")`.

    Examples:
        >>> torch.get_autocast_gpu_dtype()
        torch.float16
    """
    _deprecated("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')")
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: dtype) -> None:
    """Set the dtype of autocast on the GPU; deprecated, use `set_autocast_dtype("cuda", dtype)`.

    Args:
        dtype: dtype.

    Examples:
        >>> torch.set_autocast_gpu_dtype(torch.float16)
    """
    _deprecated("set_autocast_gpu_dtype(dtype)", "set_autocast_dtype('cuda', dtype)")
    set_autocast_dtype("cuda", dtype)


def is_autocast_cache_enabled() -> bool:
    """Return whether autocast keeps converted weights, to convert them only once.

    Examples:
        >>> torch.is_autocast_cache_enabled()
        True
    """
    return _state.cache


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Set whether autocast keeps converted weights, to convert them only once.

    Args:
        enabled: whether to keep them.

    Examples:
        >>> torch.set_autocast_cache_enabled(True)
    """
    _state.cache = bool(enabled)
    _state.apply()


def clear_autocast_cache() -> None:
    """Drop the converted weights that autocast has kept.

    Examples:
        >>> torch.clear_autocast_cache()
    """
    _core.clear_autocast_weights()


def autocast_increment_nesting() -> int:
    """Increment the depth of nested autocast regions and return it.

    Examples:
        >>> torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()
        (1, 0)
    """
    _state.nesting += 1
    return _state.nesting


def autocast_decrement_nesting() -> int:
    """Decrement the depth of nested autocast regions and return it.

    Examples:
        >>> torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()
        (1, 0)
    """
    _state.nesting -= 1
    return _state.nesting


def autocast_decorator(autocast_instance: autocast, func: Any) -> Any:
    """Wrap a function so that it runs inside of an `autocast` instance."""

    @functools.wraps(func)
    def decorate_autocast(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    return decorate_autocast


class autocast:
    """Run matrix products and convolutions in lower precision, and losses in float32.

    Use it as a context manager or as a decorator, around the forward pass. On a GPU it warns once and has no effect.

    Args:
        device_type: type of the device, such as `"cpu"`.
        dtype: `torch.bfloat16` or `torch.float16`; `get_autocast_dtype(device_type)` if `None`.
        enabled: whether autocast is enabled inside. Default: `True`
        cache_enabled: convert each weight only once; unchanged if `None`.

    Examples:
        >>> model = nn.Linear(2, 1)
        >>> with torch.autocast("cpu", dtype=torch.bfloat16):
        ...     y = model(torch.ones(4, 2))
        >>> y.dtype
        torch.bfloat16
    """

    _told_of_gpu = False

    def __init__(
        self, device_type: str, dtype: dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = _kind(device_type)
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        self._enabled = bool(enabled) and self._possible()
        self._before: list[tuple[bool, Any, bool]] = []

    def _possible(self) -> bool:
        if self.device == "cpu":
            if self.fast_dtype in _CPU:
                return True
            names = ", ".join(map(str, _CPU))
            warnings.warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"CPU Autocast only supports dtypes of {names} currently.",
                stacklevel=3,
            )
            return False
        from .. import cuda

        if self.device in _STRANGE or not cuda.is_available():
            name = (
                "CUDA is not available or torch_xla is imported" if self.device == "cuda" else f"There is no {self.device} here"
            )
            warnings.warn(f"{name}. Disabling autocast.", stacklevel=3)
        elif not autocast._told_of_gpu:
            autocast._told_of_gpu = True
            warnings.warn("gradiron's GPU computes in float32. Disabling autocast.", stacklevel=3)
        return False

    def __enter__(self) -> autocast:
        kind = self.device
        self._before.append((is_autocast_enabled(kind), get_autocast_dtype(kind), _state.cache))
        _state.on[kind], _state.dtypes[kind], _state.cache = self._enabled, self.fast_dtype, self._cache_enabled
        autocast_increment_nesting()
        _state.apply()
        return self

    def __exit__(self, *exception: object) -> None:
        kind = self.device
        if autocast_decrement_nesting() == 0:
            clear_autocast_cache()
        _state.on[kind], _state.dtypes[kind], _state.cache = self._before.pop()
        _state.apply()

    def __call__(self, func: Any) -> Any:
        return autocast_decorator(self, func)


def _cast(value: Any, device_type: str, dtype: dtype) -> Any:
    if isinstance(value, _core.Tensor):
        fits = value.is_floating_point() and value.device.type == device_type and value.dtype is not _core.float64
        return value.to(dtype) if fits else value
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, Mapping):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        made = [_cast(v, device_type, dtype) for v in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return value


def _checked(device_type: Any) -> str:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    return _kind(device_type)


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: dtype | None = None
) -> Callable[..., Any]:
    """Decorate the `forward` of a custom Function for use under autocast.

    Args:
        fwd: static method `forward`.
        device_type: type of the device.
        cast_inputs: under autocast, convert floating point tensors to this dtype and run `fwd` without autocast.

    Examples:
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        ...     def forward(ctx, x):
        ...         return 2 * x
        ...     @staticmethod
        ...     @torch.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, grad):
        ...         return 2 * grad
        >>> with torch.autocast("cpu"):
        ...     y = Double.apply(torch.ones(2, dtype=torch.bfloat16))
        >>> y.dtype
        torch.float32
    """
    kind = _checked(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(*args: Any, **kwargs: Any) -> Any:
        context = args[0]
        context._dtype = get_autocast_dtype(kind)
        if cast_inputs is None:
            context._fwd_used_autocast = is_autocast_enabled(kind)
            return fwd(*args, **kwargs)
        was_on = is_autocast_enabled(kind)
        context._fwd_used_autocast = False
        if not was_on:
            return fwd(*args, **kwargs)
        with autocast(kind, enabled=False):
            return fwd(*_cast(args, kind, cast_inputs), **_cast(kwargs, kind, cast_inputs))

    return decorate_fwd


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorate the `backward` of a custom Function to run in the autocast state of its `forward`.

    The `forward` needs `custom_fwd`, whose example shows both.

    Args:
        bwd: static method `backward`.
        device_type: type of the device.

    Examples:
        >>> backward = torch.amp.custom_bwd(lambda ctx, grad: 2 * grad, device_type="cpu")
    """
    kind = _checked(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(*args: Any, **kwargs: Any) -> Any:
        context = args[0]
        with autocast(kind, enabled=context._fwd_used_autocast, dtype=context._dtype):
            return bwd(*args, **kwargs)

    return decorate_bwd
