"""GPUs by PyTorch's names: any adapter that computes by Vulkan, Metal or DirectX 12 counts as `cuda`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._creation import LEGACY, legacy_type
from .._types import OutOfMemoryError
from . import graphs
from ._gpu import checked_index, core, gpu, index_of
from ._memory import (
    empty_cache,
    ipc_collect,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
)
from ._random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from ._stream import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)
from .graphs import CUDAGraph, graph, graph_pool_handle, is_current_stream_capturing

__all__ = [
    "CUDAGraph",
    "Event",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "dispatches",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "graph_pool_handle",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "submits",
    "synchronize",
]


for _name in LEGACY:
    globals()[_name] = legacy_type(_name, "cuda")


if TYPE_CHECKING:
    from .. import BFloat16Tensor as BFloat16Tensor
    from .. import BoolTensor as BoolTensor
    from .. import ByteTensor as ByteTensor
    from .. import CharTensor as CharTensor
    from .. import DoubleTensor as DoubleTensor
    from .. import FloatTensor as FloatTensor
    from .. import HalfTensor as HalfTensor
    from .. import IntTensor as IntTensor
    from .. import LongTensor as LongTensor
    from .. import ShortTensor as ShortTensor
    from . import amp as amp
    from . import nvtx as nvtx
    from .graphs import make_graphed_callables as make_graphed_callables
else:

    def __getattr__(name: str) -> Any:
        import importlib

        if name in ("amp", "nvtx"):
            return importlib.import_module(f".{name}", __name__)
        if name == "make_graphed_callables":
            return graphs.make_graphed_callables
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*__all__, "amp", "nvtx", *LEGACY, *(name for name in globals() if name.startswith("_"))})


def is_available() -> bool:
    """Return whether a GPU is available.

    Examples:
        >>> torch.cuda.is_available() == (torch.cuda.device_count() > 0)
        True
    """
    return core is not None and core.is_available()


def device_count() -> int:
    """Return the number of GPUs, at most one.

    Examples:
        >>> torch.cuda.device_count() in (0, 1)
        True
    """
    return core.device_count() if core is not None else 0


def is_initialized() -> bool:
    """Return whether the GPU is initialized, which its first use does.

    Examples:
        >>> isinstance(torch.cuda.is_initialized(), bool)
        True
    """
    return core is not None and core.is_open()


def init() -> None:
    """Initialize the GPU now rather than at its first use.

    Examples:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.init()
    """
    gpu().check(0)


def current_device() -> int:
    """Return the index of the current GPU.

    Examples:
        >>> torch.cuda.current_device() if torch.cuda.is_available() else 0
        0
    """
    return checked_index()


def set_device(device: Any) -> None:
    """Set the current GPU.

    Args:
        device: index or device; a negative index does nothing.

    Examples:
        >>> torch.cuda.set_device(-1)
    """
    if index_of(device) >= 0:
        checked_index(device)


class device:
    """Set the current GPU in a `with` block.

    Args:
        device: index or device; a negative index does nothing.

    Examples:
        >>> with torch.cuda.device(-1):
        ...     x = torch.ones(1)
    """

    def __init__(self, device: Any) -> None:
        self.idx = index_of(device)
        if self.idx >= 0:
            checked_index(device)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass


class device_of(device):
    """Set the current GPU in a `with` block to that of a tensor; one on the CPU does nothing.

    Args:
        obj: tensor.

    Examples:
        >>> with torch.cuda.device_of(torch.ones(1)):
        ...     x = torch.ones(1)
    """

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


class DeviceProperties:
    """Properties of a GPU: name, memory and features. Its CUDA capability is 0.0."""

    major = 0
    minor = 0
    name: str
    total_memory: int

    def __init__(self, facts: dict[str, Any]) -> None:
        vars(self).update(facts)

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // (1 << 20)}MB)"
        )


def get_device_properties(device: Any = None) -> DeviceProperties:
    """Return the properties of a GPU, such as `name` and `total_memory`.

    Args:
        device: a GPU; the current one if `None`.

    Examples:
        >>> if torch.cuda.is_available():
        ...     memory = torch.cuda.get_device_properties().total_memory
    """
    index = index_of(device)
    init()
    if not 0 <= index < device_count():
        raise AssertionError("Invalid device id")
    return DeviceProperties(gpu().properties())


def get_device_name(device: Any = None) -> str:
    """Return the name of a GPU.

    Args:
        device: a GPU; the current one if `None`.

    Examples:
        >>> if torch.cuda.is_available():
        ...     name = torch.cuda.get_device_name()
    """
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the CUDA capability, which is (0, 0) as the GPU is not used by CUDA.

    Args:
        device: a GPU; the current one if `None`.

    Examples:
        >>> torch.cuda.get_device_capability() if torch.cuda.is_available() else (0, 0)
        (0, 0)
    """
    properties = get_device_properties(device)
    return properties.major, properties.minor


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return whether bfloat16 is supported; every GPU emulates it by float32.

    Args:
        including_emulation: count emulation. Default: `True`

    Examples:
        >>> torch.cuda.is_bf16_supported(including_emulation=False)
        False
    """
    return including_emulation and is_available()


def synchronize(device: Any = None) -> None:
    """Wait until the GPU has finished all work, and raise errors that occurred there.

    Args:
        device: a GPU; the current one if `None`.

    Examples:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.synchronize()
    """
    checked_index(device)
    gpu().synchronize()


def submits() -> int:
    """Return the number of batches of work that were submitted to the GPU so far.

    A training step should take only a few.

    Examples:
        >>> torch.cuda.submits() >= 0
        True
    """
    return 0 if core is None else core.work()[0]


def dispatches() -> int:
    """Return the number of kernels that were dispatched so far.

    Examples:
        >>> torch.cuda.dispatches() >= 0
        True
    """
    return 0 if core is None else core.work()[1]
