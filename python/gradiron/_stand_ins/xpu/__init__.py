"""Intel GPUs have no name of their own: they are `cuda`, like all GPUs."""

from __future__ import annotations

from typing import Any, NoReturn

from gradiron import _streams

__all__ = ["device_count", "is_available", "is_current_stream_capturing", "is_initialized"]

# Programs ask these before they look for a device; the answers are those of a PyTorch without Intel's GPUs.
_ZERO = "max_memory_allocated max_memory_reserved memory_allocated memory_reserved"
_NOTHING = """
    empty_cache manual_seed manual_seed_all reset_accumulated_memory_stats reset_peak_memory_stats seed seed_all
    set_rng_state_all
"""
_EMPTY_DICT = "memory_stats memory_stats_as_nested_dict"
_EMPTY_LIST = "get_arch_list get_rng_state_all memory_snapshot"
_FALSE = "is_bf16_supported is_tf32_supported"
_NEED_A_DEVICE = """
    can_device_access_peer change_current_allocator clock_rate current_device current_stream device_memory_used
    get_device_capability get_device_name get_device_properties get_per_process_memory_fraction get_rng_state
    get_stream_from_external graph graph_pool_handle init initial_seed list_gpu_processes make_graphed_callables mem_get_info
    memory_usage power_draw set_device set_per_process_memory_fraction set_rng_state set_stream
    synchronize temperature use_mem_pool utilization
"""
_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(_ZERO.split(), lambda: 0),
    **dict.fromkeys(_NOTHING.split(), lambda: None),
    **dict.fromkeys(_EMPTY_DICT.split(), dict),
    **dict.fromkeys(_EMPTY_LIST.split(), list),
    **dict.fromkeys(_FALSE.split(), lambda: False),
    "get_gencode_flags": str,
}
default_generators: tuple[()] = ()


def _answering(name: str) -> Any:
    def call(*args: Any, **options: Any) -> Any:
        return _DEFAULTS[name]()

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "Answer as where there is no device named `xpu`."
    return call


def _needing_a_device(name: str) -> Any:
    def call(*args: Any, **options: Any) -> NoReturn:
        raise AssertionError("Torch not compiled with XPU enabled")

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "Raises AssertionError: there is no device named `xpu`."
    return call


globals().update({name: _answering(name) for name in _DEFAULTS})
globals().update({name: _needing_a_device(name) for name in _NEED_A_DEVICE.split()})


class Stream(_streams.Stream):
    """Streams of devices named `xpu`, which there are none of."""

    def __new__(cls, *args: Any, **options: Any) -> Any:
        raise RuntimeError(f"Tried to instantiate dummy base class {cls.__name__}")


class Event(_streams.Event):
    """Events of devices named `xpu`, which there are none of."""

    def __new__(cls, *args: Any, **options: Any) -> Any:
        raise RuntimeError(f"Tried to instantiate dummy base class {cls.__name__}")


class _NeedsADevice:
    def __init__(self, *args: Any, **options: Any) -> None:
        raise RuntimeError(f"Tried to instantiate dummy base class {type(self).__name__}")


class MemPool(_NeedsADevice):
    """Pools of memory on devices named `xpu`, which there are none of."""


class XPUGraph(_NeedsADevice):
    """Graphs of work on devices named `xpu`, which there are none of."""


class XPUPluggableAllocator(_NeedsADevice):
    """Allocators of devices named `xpu`, which there are none of."""


class StreamContext:
    """Context manager of `stream`, which does nothing without one."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


stream = StreamContext


class device:
    """Context manager that selects a device named `xpu`, which there are none of: only a negative index does nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = device if isinstance(device, int) else 0

    def __enter__(self) -> None:
        if self.idx >= 0:
            raise NotImplementedError("gradiron has no devices named xpu: Intel GPUs are cuda, like all GPUs")

    def __exit__(self, *error: object) -> None:
        return None


class device_of(device):
    """Context manager that selects the device of a tensor, which is never an `xpu`."""

    def __init__(self, obj: Any) -> None:
        super().__init__(-1)


def is_available() -> bool:
    """Return whether devices named `xpu` are available, which they are not.

    Examples:
        >>> torch.xpu.is_available()
        False
    """
    return False


def is_initialized() -> bool:
    """Return whether devices named `xpu` are initialized, which they are not.

    Examples:
        >>> torch.xpu.is_initialized()
        False
    """
    return False


def device_count() -> int:
    """Return the number of devices named `xpu`, 0.

    Examples:
        >>> torch.xpu.device_count()
        0
    """
    return 0


def is_current_stream_capturing() -> bool:
    """Return whether work is being captured, which it never is.

    Examples:
        >>> torch.xpu.is_current_stream_capturing()
        False
    """
    return False
