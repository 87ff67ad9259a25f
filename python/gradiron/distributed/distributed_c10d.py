"""The functions of `torch.distributed`: process groups and collectives."""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from .. import _core
from .._core import Tensor
from ..autograd.grad_mode import no_grad
from . import engine
from .constants import default_pg_nccl_timeout, default_pg_timeout
from .debug import DebugLevel, get_debug_level
from .engine import mpi
from .file_store import FileStore
from .options import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOp,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from .process_group import EngineProcessGroup, ProcessGroup
from .rendezvous import register_rendezvous_handler, rendezvous
from .store import HashStore, PrefixStore, Store, TCPStore
from .work import Work

__all__ = [
    "AllToAllOptions",
    "AllgatherOptions",
    "AllreduceCoalescedOptions",
    "AllreduceOptions",
    "Backend",
    "BackendConfig",
    "BarrierOptions",
    "BroadcastOptions",
    "FileStore",
    "GatherOptions",
    "GroupMember",
    "HashStore",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "ReduceOp",
    "ReduceOptions",
    "ReduceScatterOptions",
    "ScatterOptions",
    "Store",
    "TCPStore",
    "Work",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "default_pg_timeout",
    "destroy_process_group",
    "gather",
    "get_backend",
    "get_backend_config",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "recv",
    "reduce",
    "reduce_op",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "register_rendezvous_handler",
    "rendezvous",
    "scatter",
    "send",
    "split_group",
    "supports_complex",
]

_NOT_INITIALIZED = "Default process group has not been initialized, please make sure to call init_process_group."


class Backend(str):
    """Name of a backend: `"gloo"`, `"mpi"` and `"nccl"`, which all use MPI, or a registered one.

    Args:
        name: name in any case.

    Examples:
        >>> torch.distributed.Backend("GLOO")
        'gloo'
    """

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    FAKE = "fake"

    _plugins: dict[str, tuple[Callable[..., Any], bool]] = {}  # noqa: RUF012
    backend_list: list[str] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]  # noqa: RUF012
    default_device_backend_map: dict[str, str] = {"cpu": GLOO, "cuda": NCCL}  # noqa: RUF012
    backend_capability: dict[str, list[str]] = {GLOO: ["cpu", "cuda"], NCCL: ["cuda"], MPI: ["cpu", "cuda"]}  # noqa: RUF012

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        value = getattr(cls, name.upper(), Backend.UNDEFINED)
        return value if value != Backend.UNDEFINED else name.lower()  # type: ignore[return-value]

    @classmethod
    def register_backend(
        cls,
        name: str,
        func: Callable[..., Any],
        extended_api: bool = False,
        devices: str | list[str] | None = None,
    ) -> None:
        """Register a backend of one's own: `func(store, rank, size, timeout)` returns its `ProcessGroup`."""
        name = name.lower()
        setattr(cls, name.upper(), name)
        if name not in cls.backend_list:
            cls.backend_list.append(name)
        devices = [devices] if isinstance(devices, str) else devices
        cls.backend_capability[name] = devices or ["cpu", "cuda"]
        for device in devices or []:
            cls.default_device_backend_map[device] = name
        cls._plugins[name.upper()] = (func, extended_api)


class BackendConfig:
    """The backend of each type of device.

    Args:
        backend: name of a backend, or pairs such as `"cpu:gloo,cuda:nccl"`.

    Examples:
        >>> torch.distributed.BackendConfig("cpu:gloo,cuda:nccl").get_device_backend_map()
        {'cpu': 'gloo', 'cuda': 'nccl'}
    """

    def __init__(self, backend: str) -> None:
        self.device_backend_map: dict[str, str] = {}
        if ":" in backend:
            for pair in backend.lower().split(","):
                device, _, name = pair.partition(":")
                if not name or ":" in name:
                    raise ValueError(
                        f"The custom backend string argument is invalid: {backend}.\n                "
                        "Custom backend string is an experimental feature where the backend string must be in the format:\n"
                        '                "<device_type1>:<backend1>,<device_type2>:<backend2>...". e.g. "cpu:gloo,cuda:nccl"'
                    )
                if device in self.device_backend_map:
                    raise ValueError(f"Duplicate device type {device} in backend string: {backend}")
                self.device_backend_map[device] = Backend(name)
        elif backend == Backend.UNDEFINED:
            # Looking for a GPU would take longer than starting all ranks.
            self.device_backend_map = {"cpu": Backend.GLOO}
        else:
            for device in Backend.backend_capability.get(backend, ["cpu", "cuda"]):
                self.device_backend_map[device] = backend

    def __repr__(self) -> str:
        return ",".join(f"{device}:{backend}" for device, backend in self.device_backend_map.items())

    def get_device_backend_map(self) -> dict[str, str]:
        """Return a dict from types of devices to backends."""
        return self.device_backend_map


class _ReduceOpNames:
    """The reductions under the old name `reduce_op`."""

    def __getattr__(self, name: str) -> Any:
        if name not in ReduceOp.RedOpType.__members__:
            raise AttributeError(name)
        warnings.warn(
            "torch.distributed.reduce_op is deprecated, please use torch.distributed.ReduceOp instead",
            FutureWarning,
            stacklevel=2,
        )
        return getattr(ReduceOp, name)


reduce_op = _ReduceOpNames()


class _World:
    """The groups of this process."""

    def __init__(self) -> None:
        self.default_pg: ProcessGroup | None = None
        self.pg_map: dict[ProcessGroup, tuple[str, Store | None]] = {}
        self.pg_names: dict[ProcessGroup, str] = {}
        self.pg_group_ranks: dict[ProcessGroup, dict[int, int]] = {}
        self.pg_backend_config: dict[ProcessGroup, str] = {}
        self.group_count = 0

    def forget(self, group: ProcessGroup) -> None:
        """Drops a group that has been destroyed."""
        for table in (self.pg_map, self.pg_names, self.pg_group_ranks, self.pg_backend_config):
            table.pop(group, None)
        if self.default_pg is group:
            self.default_pg = None


_world = _World()
_pg_map = _world.pg_map
_pg_names = _world.pg_names
_pg_group_ranks = _world.pg_group_ranks


class _WorldMeta(type):
    """`group.WORLD` is the default group."""

    @property
    def WORLD(cls) -> ProcessGroup | None:
        return _world.default_pg

    @WORLD.setter
    def WORLD(cls, pg: ProcessGroup | None) -> None:
        _world.default_pg = pg


class group(metaclass=_WorldMeta):
    """Namespace of `group.WORLD`, the default group.

    Examples:
        >>> torch.distributed.group.WORLD is None
        True
    """


class GroupMember(metaclass=_WorldMeta):
    """Namespace of `GroupMember.NON_GROUP_MEMBER`, which ranks outside of a new group get, and `WORLD`.

    Examples:
        >>> torch.distributed.GroupMember.NON_GROUP_MEMBER
        -100
    """

    NON_GROUP_MEMBER = -100


# Available backends.


def is_available() -> bool:
    """Return whether `torch.distributed` can be used.

    Examples:
        >>> torch.distributed.is_available()
        True
    """
    return True


def is_mpi_available() -> bool:
    """Return whether MPI, and so more than one rank, can be used: whether mpi4py is installed.

    Examples:
        >>> torch.distributed.is_mpi_available() == torch.distributed.is_gloo_available()
        True
    """
    return mpi.is_installed()


is_gloo_available = is_mpi_available


def is_nccl_available() -> bool:
    """Return whether the backend `"nccl"` can be used: MPI for tensors on a GPU.

    Examples:
        >>> isinstance(torch.distributed.is_nccl_available(), bool)
        True
    """
    return mpi.is_installed() and _has_gpu()


def is_ucc_available() -> bool:
    """Return whether UCC is available, which it is not.

    Examples:
        >>> torch.distributed.is_ucc_available()
        False
    """
    return False


def is_xccl_available() -> bool:
    """Return whether XCCL is available, which it is not.

    Examples:
        >>> torch.distributed.is_xccl_available()
        False
    """
    return False


def is_backend_available(backend: str) -> bool:
    """Return whether a backend can be used.

    Args:
        backend: name of the backend.

    Examples:
        >>> torch.distributed.is_backend_available("ucc")
        False
    """
    name = backend.lower()
    known = {"gloo": is_gloo_available, "mpi": is_mpi_available, "nccl": is_nccl_available}
    return known[name]() if name in known else name.upper() in Backend._plugins


def is_torchelastic_launched() -> bool:
    """Return whether `gradiron-run` started this process.

    Examples:
        >>> torch.distributed.is_torchelastic_launched()
        False
    """
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def _has_gpu() -> bool:
    from .. import cuda

    return cuda.is_available()


# Groups.


def is_initialized() -> bool:
    """Return whether there is a default group.

    Examples:
        >>> torch.distributed.is_initialized()
        False
    """
    return _world.default_pg is not None


def _get_default_group() -> ProcessGroup:
    if _world.default_pg is None:
        raise ValueError(_NOT_INITIALIZED)
    return _world.default_pg


def _get_default_store() -> Store | None:
    return _world.pg_map[_get_default_group()][1]


def _rank_not_in_group(group: Any) -> bool:
    return group is not None and group == GroupMember.NON_GROUP_MEMBER


def _check_member(operation: str, group: Any) -> bool:
    """Return whether this rank is in the group, and warn if it is not."""
    if _rank_not_in_group(group):
        rank = _get_default_group().rank() if is_initialized() else "?"
        warnings.warn(f"Running {operation} on global rank {rank} which does not belong to the given group.", stacklevel=3)
        return False
    return True


def _resolve(group: Any) -> Any:
    return _get_default_group() if group is None else group


def get_rank(group: ProcessGroup | None = None) -> int:
    """Return the rank of this process in a group, or -1 outside of it.

    Args:
        group: process group; the default group if `None`.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.get_rank()
        0
        >>> torch.distributed.destroy_process_group()
    """
    return -1 if _rank_not_in_group(group) else int(_resolve(group).rank())


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Return the number of ranks in a group, or -1 outside of it.

    Args:
        group: process group; the default group if `None`.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.get_world_size()
        1
        >>> torch.distributed.destroy_process_group()
    """
    return -1 if _rank_not_in_group(group) else int(_resolve(group).size())


def _known(group: Any) -> ProcessGroup:
    pg = _resolve(group)
    if pg not in _world.pg_map:
        raise ValueError(f"Process group {pg} is not initialized in the world group map. Please initialize the group first.")
    return pg


def get_backend(group: ProcessGroup | None = None) -> str:
    """Return the name of the backend of a group.

    Args:
        group: process group; the default group if `None`.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.get_backend()
        'gloo'
        >>> torch.distributed.destroy_process_group()
    """
    _resolve(group)
    if _rank_not_in_group(group):
        raise ValueError("Invalid process group specified")
    return _world.pg_map[_known(group)][0]


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """Return the backends of a group by device, such as `"cpu:gloo"`.

    Args:
        group: process group; the default group if `None`.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.get_backend_config()
        'cpu:gloo,cuda:gloo'
        >>> torch.distributed.destroy_process_group()
    """
    if _rank_not_in_group(group):
        raise ValueError("Invalid process group specified")
    return _world.pg_backend_config[_known(group)]


def get_default_backend_for_device(device: Any) -> str:
    """Return the default backend for a device.

    Args:
        device: device or its type.

    Examples:
        >>> torch.distributed.get_default_backend_for_device("cpu")
        'gloo'
    """
    kind = device.type if isinstance(device, _core.device) else _core.device(device).type
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """Return the global ranks of the members of a group, in its order.

    Args:
        group: process group; the default group if `None`.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.get_process_group_ranks(None)
        [0]
        >>> torch.distributed.destroy_process_group()
    """
    return list(_world.pg_group_ranks[_known(group)])


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Convert a rank of a group to a global rank.

    Args:
        group: process group.
        group_rank: rank in the group.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.get_global_rank(torch.distributed.new_group([0]), 0)
        0
        >>> torch.distributed.destroy_process_group()
    """
    if group is _world.default_pg or group is None:
        return group_rank
    if group not in _world.pg_group_ranks:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    for world_rank, own_rank in _world.pg_group_ranks[group].items():
        if own_rank == group_rank:
            return world_rank
    raise ValueError(f"Group rank {group_rank} is not part of group {group}")


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Convert a global rank to a rank of a group.

    Args:
        group: process group.
        global_rank: rank in the default group.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.get_group_rank(torch.distributed.new_group([0]), 0)
        0
        >>> torch.distributed.destroy_process_group()
    """
    if group is _world.default_pg or group is None:
        return global_rank
    if group not in _world.pg_group_ranks:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    ranks = _world.pg_group_ranks[group]
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks[global_rank]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return the rank of this process on its machine, from the environment variable LOCAL_RANK.

    Args:
        fallback_rank: result if the variable is not set.

    Raises:
        RuntimeError: if neither is given.

    Examples:
        >>> torch.distributed.get_node_local_rank(fallback_rank=0)
        0
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, assuming "
        "you are not running in a multi-device context and want the code to run locally instead."
    )


def get_pg_count() -> int:
    """Return the number of groups that were created.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.get_pg_count()
        1
        >>> torch.distributed.destroy_process_group()
    """
    return _world.group_count


def _get_process_group_name(pg: ProcessGroup) -> str:
    return _world.pg_names.get(pg, "None")


def _get_group_size_by_name(name: str) -> int:
    return _resolve_process_group(name).size()


def _resolve_process_group(name: str) -> ProcessGroup:
    for pg, own in _world.pg_names.items():
        if own == name:
            return pg
    raise RuntimeError(f"Could not resolve the process group registered under the name {name}")


def _get_pg_default_device(group: ProcessGroup | None = None) -> Any:
    return _core.device("cuda" if get_backend(group) == Backend.NCCL else "cpu")


_get_object_coll_device = _get_pg_default_device


def _check_timeout(timeout: Any) -> None:
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")


def _default_timeout(backend: str) -> timedelta:
    return default_pg_nccl_timeout if backend == Backend.NCCL else default_pg_timeout


def _check_backend(name: str) -> None:
    """Refuses a backend that cannot be used, before anything is started."""
    if name.upper() in Backend._plugins or name in (Backend.UNDEFINED, Backend.GLOO, Backend.MPI):
        return
    if name == Backend.NCCL:
        if not _has_gpu():
            raise RuntimeError('backend "nccl" requires at least one CUDA device, and gradiron finds no GPU: use "gloo"')
        return
    if name in (Backend.UCC, Backend.XCCL, Backend.FAKE):
        raise RuntimeError(f"Distributed package doesn't have {name.upper()} built in")
    known = ", ".join(["gloo", "mpi", "nccl", *(plugin.lower() for plugin in Backend._plugins)])
    raise AssertionError(f"Unknown backend type {name}: gradiron knows {known}")


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
    _ranks: list[int] | None = None,
    enable_reconfigure: bool = False,
) -> None:
    """Initialize the default process group; all ranks call it and find each other.

    Args:
        backend: `"gloo"`, `"mpi"`, `"nccl"`, pairs such as `"cpu:gloo,cuda:nccl"`, or a registered backend. All
            built-in names use MPI.
        init_method: where ranks meet: `"env://"` reads MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE from the
            environment; `"tcp://host:port"` and `"file:///path"` need `rank` and `world_size`. `None` means
            `"env://"`.
        timeout: longest duration of a collective; 30 minutes, for `"nccl"` 10, if `None`.
        world_size: number of processes. Default: `-1`
        rank: rank of this process. Default: `-1`
        store: store where ranks meet, instead of `init_method`.
        group_name: name of the group. Default: `""`
        pg_options: options for a registered backend.
        device_id: device of this process.
        enable_reconfigure: accepted for compatibility. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.is_initialized()
        True
        >>> torch.distributed.destroy_process_group()
    """
    if _world.default_pg is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    chosen = Backend(backend) if backend else Backend.UNDEFINED
    config = BackendConfig(chosen)
    for name in {chosen} if ":" not in chosen else set(config.device_backend_map.values()):
        _check_backend(name)
    if timeout is None:
        timeout = _default_timeout(chosen)
    _check_timeout(timeout)
    if store is not None:
        if world_size <= 0:
            raise AssertionError("world_size must be positive if using store")
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
    if world_size > 0 and rank >= world_size:
        raise ValueError(f"rank must be less than world_size, but got rank {rank} and world_size {world_size}")
    plugin = Backend._plugins.get(chosen.upper())
    communicator = None
    if plugin is None and engine.is_launched_for(init_method, store, rank, world_size):
        communicator, store, rank, world_size = engine.start_by_launcher(rank, world_size, timeout)
    else:
        if plugin is None and (world_size > 1 or os.environ.get("WORLD_SIZE", "1") not in ("0", "1")):
            engine.check_start()
        if store is None:
            store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size, timeout=timeout))
            store.set_timeout(timeout)
    name = group_name or "0"
    own_store = PrefixStore("default_pg", store)
    if plugin is not None:
        pg = _make_plugin_group(plugin, own_store, rank, world_size, list(range(world_size)), name, timeout, pg_options)
    else:
        pg = EngineProcessGroup(own_store, rank, world_size, timeout, communicator=communicator)
    _register(pg, str(chosen), config, name, "default_pg", list(range(world_size)), own_store)
    _world.default_pg = pg
    pg.bound_device_id = _core.device(device_id) if device_id is not None and not isinstance(device_id, int) else device_id
    if chosen == Backend.NCCL:
        warnings.warn("GPU tensors travel between processes through host memory", stacklevel=2)
    engine.mark_tracebacks(rank)


def _make_plugin_group(
    plugin: tuple[Callable[..., Any], bool],
    store: Store,
    rank: int,
    size: int,
    ranks: list[int],
    name: str,
    timeout: timedelta,
    options: Any,
) -> ProcessGroup:
    make, extended = plugin
    if not extended:
        return make(store, rank, size, timeout)
    facts = _DistributedBackendOptions()
    facts.store, facts.group_rank, facts.group_size = store, rank, size
    facts.timeout, facts.group_id, facts.global_ranks_in_group = timeout, name, ranks
    return make(facts, options)


class _DistributedBackendOptions:
    """What a registered backend is told of its group."""

    store: Any
    group_rank: int
    group_size: int
    timeout: timedelta
    group_id: str
    global_ranks_in_group: list[int]


def _register(
    pg: ProcessGroup, backend: str, config: BackendConfig, name: str, description: str, ranks: list[int], store: Store | None
) -> None:
    _world.pg_map[pg] = (backend, store)
    _world.pg_names[pg] = name
    _world.pg_backend_config[pg] = repr(config)
    _world.pg_group_ranks[pg] = {world_rank: at for at, world_rank in enumerate(ranks)}
    _world.group_count += 1
    pg._set_group_name(name)
    pg._set_group_desc(description)
    if isinstance(pg, EngineProcessGroup):
        pg._ranks = ranks
        pg._store = store
        pg._backend_name = "gloo" if backend == Backend.UNDEFINED or ":" in backend else backend
        pg._checks_calls = get_debug_level() is DebugLevel.DETAIL


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Destroy a process group, or all groups.

    Args:
        group: group to destroy; all of them if `None` or the default group.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.destroy_process_group()
        >>> torch.distributed.is_initialized()
        False
    """
    if _rank_not_in_group(group):
        return
    pg = _world.default_pg if group is None else group
    if pg is None:
        raise AssertionError("Process group cannot be None")
    if pg not in _world.pg_map:
        raise ValueError("Invalid process group specified")
    if group is None or group is _world.default_pg:
        for each in sorted(_world.pg_map, key=lambda each: each is pg):
            each.shutdown()
        for table in (_world.pg_map, _world.pg_names, _world.pg_group_ranks, _world.pg_backend_config):
            table.clear()
        _world.default_pg, _world.group_count = None, 0
    else:
        pg.shutdown()
        _world.forget(pg)


def _abort_process_group(group: ProcessGroup | None = None) -> None:
    destroy_process_group(group)


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """Create a group of some ranks; all ranks of the default group must call it, in the same order.

    Args:
        ranks: global ranks of the members; all if `None`.
        timeout: longest duration of a collective; 30 minutes, for `"nccl"` 10, if `None`.
        backend: backend of the group; that of the default group if `None`.
        pg_options: options for a registered backend.
        use_local_synchronization: let only the members call it. Default: `False`
        group_desc: description of the group.
        device_id: accepted for compatibility.
        sort_ranks: number the members by their global ranks, not in the order given. Default: `True`

    Returns:
        The group, or `GroupMember.NON_GROUP_MEMBER` on other ranks.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.new_group([0]).size()
        1
        >>> torch.distributed.destroy_process_group()
    """
    world = _get_default_group()
    default_backend, default_store = _world.pg_map[world]
    chosen = Backend(backend) if backend else default_backend
    if backend:
        _check_backend(chosen)
    if timeout is None:
        timeout = _default_timeout(chosen)
    _check_timeout(timeout)
    size = world.size()
    if ranks is None:
        members = list(range(size))
    else:
        members = sorted(ranks) if sort_ranks else list(ranks)
        if len(members) > size:
            raise ValueError("the new group's world size should be less or equal to the world size set by init_process_group")
        if len(set(members)) != len(members):
            raise ValueError(f"ranks list must not contain duplicate entries, got {list(ranks)}")
        for rank in members:
            if not isinstance(rank, int) or not 0 <= rank < size:
                raise ValueError("The new group's rank should be within the world_size set by init_process_group")
    _world.group_count += 1
    if use_local_synchronization:
        name = f"{hash_ranks(members)}:{_count_local(tuple(members))}"
    else:
        name = str(_world.group_count)
    me = world.rank()
    if me not in members:
        return GroupMember.NON_GROUP_MEMBER
    assert default_store is not None
    store = PrefixStore(f"{name}/", default_store)
    plugin = Backend._plugins.get(chosen.upper())
    own = members.index(me)
    if plugin is not None:
        pg = _make_plugin_group(plugin, store, own, len(members), members, name, timeout, pg_options)
    elif isinstance(world, EngineProcessGroup):
        communicator = engine.split(world._communicator, members, own, store, timeout, name)
        pg = EngineProcessGroup(store, own, len(members), timeout, communicator=communicator)
    else:
        raise RuntimeError(f"a group of backend {chosen} cannot be made from a world of backend {default_backend}")
    _register(pg, str(chosen), BackendConfig(chosen), name, group_desc or "undefined", members, store)
    _world.group_count -= 1  # `_register` has counted it, too.
    return pg


def hash_ranks(ranks: Sequence[int]) -> str:
    """Return a name for a set of ranks, equal on all ranks."""
    import hashlib

    return hashlib.sha1("_".join(map(str, ranks)).encode(), usedforsecurity=False).hexdigest()


_local_counts: dict[tuple[int, ...], int] = {}


def _count_local(ranks: tuple[int, ...]) -> int:
    _local_counts[ranks] = _local_counts.get(ranks, -1) + 1
    return _local_counts[ranks]


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Split the ranks into groups of equal size, of consecutive ranks.

    Args:
        group_size: size of each group; the number of ranks per machine if `None`.
        group: group to split; the default group if `None`.
        timeout: longest duration of a collective; 30 minutes, for `"nccl"` 10, if `None`.
        backend: backend of the group; that of the default group if `None`.
        pg_options: options for a registered backend.
        group_desc: description of the group.

    Returns:
        The group of this rank, and a list of all groups.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> mine, groups = torch.distributed.new_subgroups(1)
        >>> len(groups)
        1
        >>> torch.distributed.destroy_process_group()
    """
    if group_size is None:
        group_size = int(os.environ.get("LOCAL_WORLD_SIZE", get_world_size()))
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    size = get_world_size(group)
    if size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size != 0:
        raise ValueError(f"The world size ({size}) must be divisible by 'group_size={group_size}'")
    ranks = get_process_group_ranks(group)
    parts = [ranks[at : at + group_size] for at in range(0, size, group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: list[list[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Create several disjoint groups from lists of ranks.

    Args:
        ranks_per_subgroup_list: global ranks of each group.
        timeout: longest duration of a collective; 30 minutes, for `"nccl"` 10, if `None`.
        backend: backend of the group; that of the default group if `None`.
        pg_options: options for a registered backend.
        group_desc: description of the group.

    Returns:
        The group of this rank, or `None`, and a list of all groups.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> mine, groups = torch.distributed.new_subgroups_by_enumeration([[0]])
        >>> mine is groups[0]
        True
        >>> torch.distributed.destroy_process_group()
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    of_rank: dict[int, int] = {}
    for at, ranks in enumerate(ranks_per_subgroup_list):
        for rank in ranks:
            if rank in of_rank:
                raise ValueError(
                    f"Rank {rank} has appeared in both subgroup {ranks_per_subgroup_list[of_rank[rank]]} and {ranks}"
                )
            of_rank[rank] = at
    groups = [new_group(ranks, timeout, backend, pg_options, group_desc=group_desc) for ranks in ranks_per_subgroup_list]
    mine = of_rank.get(get_rank())
    return (None if mine is None else groups[mine]), groups


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: list[list[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
    backend: str | None = None,
) -> Any:
    """Split a group into disjoint groups, and return that of this rank, or `None`.

    Args:
        parent_pg: group to split; the default group if `None`.
        split_ranks: ranks in the parent group, for each new group.
        timeout: longest duration of a collective; 30 minutes, for `"nccl"` 10, if `None`.
        pg_options: options for a registered backend.
        group_desc: description of the group.
        backend: backend of the group; that of the default group if `None`.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.split_group(split_ranks=[[0]]).size()
        1
        >>> torch.distributed.destroy_process_group()
    """
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    parent = get_process_group_ranks(parent_pg)
    mine, _ = new_subgroups_by_enumeration(
        [[parent[rank] for rank in ranks] for ranks in split_ranks], timeout, backend, pg_options, group_desc
    )
    return mine


def set_timeout(timeout: timedelta, group: ProcessGroup | None = None) -> None:
    """Set how long the collectives of a group may take.

    Args:
        timeout: a `datetime.timedelta`.
        group: process group; the default group if `None`.

    Examples:
        >>> import datetime
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.set_timeout(datetime.timedelta(minutes=5))
        >>> torch.distributed.destroy_process_group()
    """
    _check_timeout(timeout)
    _resolve(group)._set_default_timeout(timeout)


_set_pg_timeout = set_timeout


# Collectives. Each checks its arguments before anything is sent.


def _check_single_tensor(tensor: Any, name: str) -> None:
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(tensor)} instead."
        )


def _check_tensor_list(tensors: Any, name: str) -> None:
    head = f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
    head += f"             but got {type(tensors)}"
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{head} instead.")
    if not all(isinstance(tensor, Tensor) for tensor in tensors):
        raise TypeError(f"{head} with elements of type {[type(tensor) for tensor in tensors]}.")


def _check_same_dtype(*values: Any) -> None:
    first = None
    for value in values:
        for tensor in [value] if isinstance(value, Tensor) else value:
            if first is not None and tensor.dtype != first:
                raise ValueError(f"Invalid usage of tensors with different dtypesFound {first} and  {tensor.dtype}")
            first = tensor.dtype


def _group_rank(group: ProcessGroup, world_rank: int | None, own_rank: int | None) -> int:
    """The rank in a group of a rank that was given in one of two ways."""
    if own_rank is not None:
        if world_rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        return own_rank
    if world_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    return get_group_rank(group, world_rank)


def _finish(work: Any, async_op: bool) -> Any:
    if async_op:
        return work
    if work is not None:
        work.wait()
    return None


def supports_complex(reduceOp: Any) -> bool:
    """Return whether a reduction supports complex tensors.

    Args:
        reduceOp: reduction.

    Examples:
        >>> torch.distributed.supports_complex(torch.distributed.ReduceOp.SUM)
        True
    """
    return reduceOp not in (ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT, ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


def _as_real(tensor: Tensor, op: Any, name: str) -> Tensor:
    """Complex tensors travel as pairs of real numbers."""
    if not tensor.is_complex():
        return tensor
    if not supports_complex(op):
        raise ValueError(f"{name} does not support {op} on complex tensors")
    return tensor if tensor.is_conj() else _core.view_as_real(tensor)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False) -> Any:
    """Reduce a tensor over all ranks, in place; every rank gets the result.

    Args:
        tensor: input and output.
        op: reduction, such as `ReduceOp.SUM`, `AVG`, `MIN` or `MAX`. Default: `ReduceOp.SUM`
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> x = torch.ones(2)
        >>> torch.distributed.all_reduce(x)
        >>> x
        tensor([1., 1.])
        >>> torch.distributed.destroy_process_group()
    """
    _check_single_tensor(tensor, "tensor")
    if not _check_member("all_reduce", group):
        return None
    tensor = _as_real(tensor, op, "all_reduce")
    opts = AllreduceOptions(reduceOp=op, asyncOp=async_op)
    pg = _resolve(group)
    if pg in _coalescing:
        _coalescing[pg].append(("all_reduce", tensor, None, op))
        return _IllegalWork() if async_op else None
    return _finish(pg.allreduce([tensor], opts), async_op)


def all_reduce_coalesced(
    tensors: list[Tensor], op: Any = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """Reduce several tensors of one dtype over all ranks, in place, as one message.

    Args:
        tensors: inputs and outputs.
        op: reduction, such as `ReduceOp.SUM`, `AVG`, `MIN` or `MAX`. Default: `ReduceOp.SUM`
        group: process group; the default group if `None`.
        async_op: return a future at once instead of waiting. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.all_reduce_coalesced([torch.ones(2), torch.ones(3)])
        >>> torch.distributed.destroy_process_group()
    """
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    _check_tensor_list(tensors, "tensor")
    tensors = [_as_real(t, op, "all_reduce") for t in tensors]
    _check_same_dtype(tensors)
    if not _check_member("all_reduce_coalesced", group):
        return None
    opts = AllreduceCoalescedOptions(reduceOp=op, asyncOp=async_op)
    work = _resolve(group).allreduce_coalesced(tensors, opts)
    return work.get_future() if async_op else _finish(work, False)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Send a tensor from one rank to all ranks, in place.

    Args:
        tensor: data on the source rank, output on the others.
        src: global rank of the source.
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`
        group_src: rank of the source in the group, instead of `src`.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.broadcast(torch.ones(2), src=0)
        >>> torch.distributed.destroy_process_group()
    """
    pg: Any = _resolve(group) if not _rank_not_in_group(group) else group
    _check_single_tensor(tensor, "tensor")
    if not _check_member("broadcast", group):
        return None
    opts = BroadcastOptions(rootRank=_group_rank(pg, src, group_src), rootTensor=0, asyncOp=async_op)
    return _finish(pg.broadcast([tensor], opts), async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """Reduce a tensor over all ranks; only one rank gets the result, in place.

    Args:
        tensor: input, and output on the destination rank.
        dst: global rank of the destination.
        op: reduction, such as `ReduceOp.SUM`, `AVG`, `MIN` or `MAX`. Default: `ReduceOp.SUM`
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`
        group_dst: rank of the destination in the group, instead of `dst`.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.reduce(torch.ones(2), dst=0)
        >>> torch.distributed.destroy_process_group()
    """
    pg: Any = _resolve(group) if not _rank_not_in_group(group) else group
    _check_single_tensor(tensor, "tensor")
    if not _check_member("reduce", group):
        return None
    tensor = _as_real(tensor, op, "reduce")
    opts = ReduceOptions(reduceOp=op, rootRank=_group_rank(pg, dst, group_dst), asyncOp=async_op)
    return _finish(pg.reduce([tensor], opts), async_op)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False) -> Any:
    """Gather the tensors of all ranks into a list, on all ranks.

    Args:
        tensor_list: outputs, one per rank.
        tensor: input of this rank.
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> outputs = [torch.zeros(2)]
        >>> torch.distributed.all_gather(outputs, torch.ones(2))
        >>> outputs
        [tensor([1., 1.])]
        >>> torch.distributed.destroy_process_group()
    """
    _check_tensor_list(tensor_list, "tensor_list")
    _check_single_tensor(tensor, "tensor")
    _check_same_dtype(tensor_list, tensor)
    if not _check_member("all_gather", group):
        return None
    return _finish(_resolve(group).allgather([tensor_list], [tensor], AllgatherOptions(asyncOp=async_op)), async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """Gather the tensors of all ranks into one tensor, on all ranks.

    Args:
        output_tensor: output with the inputs of all ranks, concatenated or stacked along the first dimension.
        input_tensor: input of this rank.
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> output = torch.zeros(2)
        >>> torch.distributed.all_gather_into_tensor(output, torch.ones(2))
        >>> output
        tensor([1., 1.])
        >>> torch.distributed.destroy_process_group()
    """
    _check_single_tensor(input_tensor, "input_tensor")
    _check_single_tensor(output_tensor, "output_tensor")
    _check_same_dtype(input_tensor, output_tensor)
    if not _check_member("all_gather_into_tensor", group):
        return None
    pg = _resolve(group)
    if pg in _coalescing:
        _coalescing[pg].append(("all_gather_into_tensor", input_tensor, output_tensor, None))
        return _IllegalWork() if async_op else None
    return _finish(pg._allgather_base(output_tensor, input_tensor, AllgatherOptions(asyncOp=async_op)), async_op)


all_gather_single = all_gather_into_tensor
_all_gather_base = all_gather_into_tensor


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Gather several tensors from each rank, on all ranks.

    Args:
        output_tensor_lists: outputs, a list of tensors for each rank.
        input_tensor_list: inputs of this rank.
        group: process group; the default group if `None`.
        async_op: return a future at once instead of waiting. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.all_gather_coalesced([[torch.zeros(2)]], [torch.ones(2)])
        >>> torch.distributed.destroy_process_group()
    """
    if not _check_member("all_gather_coalesced", group):
        return None
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    _check_same_dtype(input_tensor_list)
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for tensors in output_tensor_lists:
        _check_tensor_list(tensors, "output_tensor_lists")
        _check_same_dtype(tensors)
    work = _resolve(group).allgather_coalesced(output_tensor_lists, input_tensor_list, AllgatherOptions(asyncOp=async_op))
    return work.get_future() if async_op else _finish(work, False)


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """Gather the tensors of all ranks into a list, on one rank.

    Args:
        tensor: input of this rank.
        gather_list: outputs, one per rank, on the destination rank only.
        dst: global rank of the destination; 0 if `None`.
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`
        group_dst: rank of the destination in the group, instead of `dst`.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> outputs = [torch.zeros(2)]
        >>> torch.distributed.gather(torch.ones(2), outputs)
        >>> outputs
        [tensor([1., 1.])]
        >>> torch.distributed.destroy_process_group()
    """
    _check_single_tensor(tensor, "tensor")
    if gather_list:
        _check_tensor_list(gather_list, "gather_list")
    else:
        gather_list = []
    _check_same_dtype(tensor, gather_list)
    if not _check_member("gather", group):
        return None
    pg = _resolve(group)
    if dst is None and group_dst is None:
        dst = 0
    root = _group_rank(pg, dst, group_dst)
    if pg.rank() == root:
        if not gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    elif gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    outputs = [gather_list] if pg.rank() == root else []
    return _finish(pg.gather(outputs, [tensor], GatherOptions(rootRank=root, asyncOp=async_op)), async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Distribute the tensors of a list from one rank, one to each rank.

    Args:
        tensor: output of this rank.
        scatter_list: inputs, one per rank, on the source rank only.
        src: global rank of the source; 0 if `None`.
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`
        group_src: rank of the source in the group, instead of `src`.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> output = torch.zeros(2)
        >>> torch.distributed.scatter(output, [torch.ones(2)])
        >>> output
        tensor([1., 1.])
        >>> torch.distributed.destroy_process_group()
    """
    _check_single_tensor(tensor, "tensor")
    if scatter_list:
        _check_tensor_list(scatter_list, "scatter_list")
    else:
        scatter_list = []
    _check_same_dtype(tensor, scatter_list)
    if not _check_member("scatter", group):
        return None
    pg = _resolve(group)
    if src is None and group_src is None:
        src = 0
    root = _group_rank(pg, src, group_src)
    if pg.rank() == root:
        if not scatter_list:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    inputs = [scatter_list] if pg.rank() == root else []
    return _finish(pg.scatter([tensor], inputs, ScatterOptions(rootRank=root, asyncOp=async_op)), async_op)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Reduce a list of tensors over all ranks; each rank gets one of the results.

    Args:
        output: output of this rank.
        input_list: inputs, one for each rank.
        op: reduction, such as `ReduceOp.SUM`, `AVG`, `MIN` or `MAX`. Default: `ReduceOp.SUM`
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> output = torch.zeros(2)
        >>> torch.distributed.reduce_scatter(output, [torch.ones(2)])
        >>> output
        tensor([1., 1.])
        >>> torch.distributed.destroy_process_group()
    """
    _check_single_tensor(output, "output")
    _check_tensor_list(input_list, "input_list")
    _check_same_dtype(output, input_list)
    if not _check_member("reduce_scatter", group):
        return None
    opts = ReduceScatterOptions(reduceOp=op, asyncOp=async_op)
    return _finish(_resolve(group).reduce_scatter([output], [input_list], opts), async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """Reduce a tensor over all ranks; each rank gets its part of the result.

    Args:
        output: output of this rank.
        input: input, the parts for all ranks along the first dimension.
        op: reduction, such as `ReduceOp.SUM`, `AVG`, `MIN` or `MAX`. Default: `ReduceOp.SUM`
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> output = torch.zeros(2)
        >>> torch.distributed.reduce_scatter_tensor(output, torch.ones(2))
        >>> output
        tensor([1., 1.])
        >>> torch.distributed.destroy_process_group()
    """
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    if not _check_member("reduce_scatter_tensor", group):
        return None
    pg = _resolve(group)
    if pg in _coalescing:
        _coalescing[pg].append(("reduce_scatter_tensor", input, output, op))
        return _IllegalWork() if async_op else None
    opts = ReduceScatterOptions(reduceOp=op, asyncOp=async_op)
    return _finish(pg._reduce_scatter_base(output, input, opts), async_op)


reduce_scatter_single = reduce_scatter_tensor
_reduce_scatter_base = reduce_scatter_tensor


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Send a part of a tensor to each rank, and receive a part from each.

    Args:
        output: output of this rank.
        input: input of this rank.
        output_split_sizes: sizes of the parts that are received, along the first dimension; equal if `None`.
        input_split_sizes: sizes of the parts that are sent, along the first dimension; equal if `None`.
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> output = torch.zeros(2)
        >>> torch.distributed.all_to_all_single(output, torch.ones(2))
        >>> output
        tensor([1., 1.])
        >>> torch.distributed.destroy_process_group()
    """
    if not _check_member("all_to_all_single", group):
        return None
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    _check_same_dtype(output, input)
    opts = AllToAllOptions(asyncOp=async_op)
    work = _resolve(group).alltoall_base(output, input, output_split_sizes or [], input_split_sizes or [], opts)
    return _finish(work, async_op)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Send a tensor to each rank, and receive one from each.

    Args:
        output_tensor_list: outputs, one per rank.
        input_tensor_list: inputs, one per rank.
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> outputs = [torch.zeros(2)]
        >>> torch.distributed.all_to_all(outputs, [torch.ones(2)])
        >>> outputs
        [tensor([1., 1.])]
        >>> torch.distributed.destroy_process_group()
    """
    if not _check_member("all_to_all", group):
        return None
    _check_tensor_list(output_tensor_list, "output_tensor_list")
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    _check_same_dtype(output_tensor_list, input_tensor_list)
    work = _resolve(group).alltoall(output_tensor_list, input_tensor_list, AllToAllOptions(asyncOp=async_op))
    return _finish(work, async_op)


def barrier(
    group: ProcessGroup | None = None,
    async_op: bool = False,
    device_ids: list[int] | None = None,
    timeout: timedelta | None = None,
) -> Any:
    """Wait until all ranks of a group have called this.

    Args:
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`
        device_ids: accepted for compatibility.
        timeout: how long to wait; the group's timeout if `None`.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.barrier()
        >>> torch.distributed.destroy_process_group()
    """
    if not _check_member("barrier", group):
        return None
    pg = _resolve(group)
    if device_ids is not None and not isinstance(device_ids, list):
        raise TypeError("Invalid function argument: device_ids type should be List[int]")
    opts = BarrierOptions(asyncOp=async_op)
    if timeout is not None:
        opts.timeout = timeout
    return _finish(pg.barrier(opts), async_op)


def monitored_barrier(
    group: ProcessGroup | None = None, timeout: timedelta | float | None = None, wait_all_ranks: bool = False
) -> None:
    """Wait until all ranks of a group have called this, and raise an error that names those that do not in time.

    Args:
        group: process group; the default group if `None`.
        timeout: how long to wait; the group's timeout if `None`.
        wait_all_ranks: name all missing ranks, not only the first. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.monitored_barrier()
        >>> torch.distributed.destroy_process_group()
    """
    if not _check_member("monitored_barrier", group):
        return
    pg = _resolve(group)
    if timeout is None:
        timeout = pg._timeout
    elif isinstance(timeout, (int, float)):
        timeout = timedelta(seconds=timeout)
    _check_timeout(timeout)
    pg.monitored_barrier(timeout, wait_all_ranks)


# Messages between two ranks.


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Any:
    """Start sending a tensor to another rank, and return a `Work`.

    Args:
        tensor: tensor to send, which must not change before the work is done.
        dst: global rank of the destination.
        group: process group; the default group if `None`.
        tag: number that the receiver has to give as well. Default: `0`
        group_dst: rank of the destination in the group, instead of `dst`.

    Examples:
        >>> def program():
        ...     if torch.distributed.get_rank() == 0:
        ...         torch.distributed.isend(torch.ones(2), dst=1).wait()
        ...     else:
        ...         torch.distributed.irecv(torch.zeros(2), src=0).wait()
    """
    pg = _resolve(group)
    if not _check_member("isend", group):
        return None
    to = _group_rank(pg, dst, group_dst)
    _check_not_self_rank(pg, to, "destination")
    _check_single_tensor(tensor, "tensor")
    return pg.send([_core.view_as_real(tensor) if tensor.is_complex() else tensor], to, tag)


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Any:
    """Start receiving a tensor from another rank, and return a `Work`.

    Args:
        tensor: output.
        src: global rank of the source; any if `None`.
        group: process group; the default group if `None`.
        tag: number that the sender gave. Default: `0`
        group_src: rank of the source in the group, instead of `src`.

    Examples:
        >>> def program():
        ...     if torch.distributed.get_rank() == 0:
        ...         torch.distributed.isend(torch.ones(2), dst=1).wait()
        ...     else:
        ...         torch.distributed.irecv(torch.zeros(2), src=0).wait()
    """
    _check_single_tensor(tensor, "tensor")
    if not _check_member("irecv", group):
        return None
    pg = _resolve(group)
    if tensor.is_complex():
        tensor = _core.view_as_real(tensor)
    if src is None and group_src is None:
        return pg.recv_anysource([tensor], tag)
    return pg.recv([tensor], _group_rank(pg, src, group_src), tag)


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to another rank.

    Args:
        tensor: tensor to send.
        dst: global rank of the destination.
        group: process group; the default group if `None`.
        tag: number that the receiver has to give as well. Default: `0`
        group_dst: rank of the destination in the group, instead of `dst`.

    Examples:
        >>> def program():
        ...     if torch.distributed.get_rank() == 0:
        ...         torch.distributed.send(torch.ones(2), dst=1)
        ...     else:
        ...         torch.distributed.recv(torch.zeros(2), src=0)
    """
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor from another rank, and return that rank.

    Args:
        tensor: output.
        src: global rank of the source; any if `None`.
        group: process group; the default group if `None`.
        tag: number that the sender gave. Default: `0`
        group_src: rank of the source in the group, instead of `src`.

    Examples:
        >>> def program():
        ...     if torch.distributed.get_rank() == 0:
        ...         torch.distributed.send(torch.ones(2), dst=1)
        ...     else:
        ...         torch.distributed.recv(torch.zeros(2), src=0)
    """
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    pg = _resolve(group)
    if src is None and group_src is None:
        return get_global_rank(pg, work._source_rank())
    return src if src is not None else get_global_rank(pg, group_src)  # type: ignore[arg-type]


def _check_not_self_rank(pg: ProcessGroup, rank: int, kind: str) -> None:
    if pg.rank() == rank:
        raise ValueError(f"Invalid {kind} rank: {kind} rank should not be the same as the rank of the current process.")


class P2POp:
    """A message for `batch_isend_irecv`.

    Args:
        op: `isend` or `irecv`.
        tensor: tensor to send or receive.
        peer: global rank of the other side.
        group: process group; the default group if `None`.
        tag: number of the message, equal on both sides. Default: `0`
        group_peer: rank of the other side in the group, instead of `peer`.

    Examples:
        >>> def program(peer):
        ...     send = torch.distributed.P2POp(torch.distributed.isend, torch.ones(2), peer)
        ...     receive = torch.distributed.P2POp(torch.distributed.irecv, torch.zeros(2), peer)
        ...     for work in torch.distributed.batch_isend_irecv([send, receive]):
        ...         work.wait()
    """

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        _check_p2p_function(op)
        _check_single_tensor(tensor, "tensor")
        self.op = op
        self.tensor = tensor
        self.group = _resolve(group)
        self.group_peer = _group_rank(self.group, peer, group_peer)
        _check_not_self_rank(self.group, self.group_peer, "peer")
        self.peer = peer if peer is not None else get_global_rank(self.group, self.group_peer)
        self.tag = tag

    def __repr__(self) -> str:
        me, size = self.group.rank(), self.group.size()
        source, target = (me, self.group_peer) if self.op is isend else (self.group_peer, me)
        return (
            f"P2POp({self.op.__name__} pg={self.group.group_name}, group_src={source}, group_dst={target},  "
            f"{tuple(self.tensor.shape)}, {self.tensor.dtype}) of {size} ranks"
        )


def _check_p2p_function(op: Any) -> None:
    if op not in (isend, irecv):
        raise ValueError(
            "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
        )


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Any]:
    """Start several messages, and return a list of `Work`.

    Args:
        p2p_op_list: messages of one group.

    Examples:
        >>> def program(peer):
        ...     send = torch.distributed.P2POp(torch.distributed.isend, torch.ones(2), peer)
        ...     receive = torch.distributed.P2POp(torch.distributed.irecv, torch.zeros(2), peer)
        ...     for work in torch.distributed.batch_isend_irecv([send, receive]):
        ...         work.wait()
    """
    if not isinstance(p2p_op_list, list) or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    group = p2p_op_list[0].group
    if any(op.group is not group for op in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    works = []
    for message in p2p_op_list:
        name = "group_dst" if message.op is isend else "group_src"
        work = message.op(message.tensor, group=message.group, tag=message.tag, **{name: message.group_peer})
        if work is not None:
            works.append(work)
    return works


# Coalescing: several collectives in one `with` statement, with one work.

_coalescing: dict[ProcessGroup, list[tuple[str, Tensor, Tensor | None, Any]]] = {}


class _IllegalWork(Work):
    """Stands for the work of a collective that has not begun yet."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("is_success", "exception", "wait", "source_rank", "_source_rank", "result", "synchronize"):
            raise ValueError(f"Illegal to call {name} on IllegalWork object")
        return super().__getattribute__(name)


class _CoalescingManager:
    """The works of a coalescing `with` statement."""

    def __init__(self) -> None:
        self.works: list[Any] = []

    def append(self, work: Any = None) -> None:
        """Adds a work."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Waits for all of them."""
        for work in self.works:
            work.wait()


@contextlib.contextmanager
def _coalescing_manager(
    group: ProcessGroup | None = None, device: Any = None, async_ops: bool = False
) -> Iterator[_CoalescingManager]:
    """Collects collectives of one kind, and begins them together at its end."""
    pg = _resolve(group)
    if pg in _coalescing:
        raise ValueError("ProcessGroup has non-empty op list at the start of coalescing")
    _coalescing[pg] = []
    manager = _CoalescingManager()
    try:
        yield manager
        calls = _coalescing.pop(pg)
        if len({call[0] for call in calls}) > 1:
            raise RuntimeError("Coalescing manager requires that all collectives be of the same type")
        if calls:
            manager.append(_begin_coalesced(pg, calls, async_ops))
        if not async_ops:
            manager.wait()
    finally:
        _coalescing.pop(pg, None)


def _begin_coalesced(pg: Any, calls: list[tuple[str, Any, Any, Any]], async_ops: bool) -> Any:
    kind, _, _, op = calls[0]
    inputs, outputs = [call[1] for call in calls], [call[2] for call in calls]
    if kind == "all_reduce":
        return pg.allreduce_coalesced(inputs, AllreduceCoalescedOptions(reduceOp=op))
    if kind == "all_gather_into_tensor":
        return pg.allgather_into_tensor_coalesced(outputs, inputs)
    return pg.reduce_scatter_tensor_coalesced(outputs, inputs, ReduceScatterOptions(reduceOp=op))


def _store_based_barrier(
    rank: int,
    store: Store,
    group_name: str,
    rendezvous_count: int,
    timeout: timedelta,
    logging_interval: timedelta | None = None,
) -> None:
    """Waits until all ranks have come to the store."""
    key = f"store_based_barrier_key:{group_name}"
    store.add(key, 1)
    begin = time.monotonic()
    while (come := store.add(key, 0)) < rendezvous_count:
        if time.monotonic() - begin > timeout.total_seconds():
            raise RuntimeError(
                f"Timed out initializing process group in store based barrier on rank {rank}, for key: {key} (world_size="
                f"{rendezvous_count}, num_workers_joined={come}, timeout={timeout})"
            )
        time.sleep(0.01)


def _broadcast_coalesced(pg: ProcessGroup, tensors: Sequence[Tensor], buffer_size: int, src: int = 0) -> None:
    """Sends tensors of rank `src` to all, joined to messages of about `buffer_size` bytes."""
    pending = []
    with no_grad():
        for part in _parts_by_dtype(tensors, buffer_size):
            flat = _core.cat([t.detach().reshape(-1) for t in part])
            pending.append((pg.broadcast([flat], BroadcastOptions(rootRank=src)), flat, part))  # type: ignore[attr-defined]
        for work, flat, part in pending:
            work.wait()
            at = 0
            for tensor in part:
                tensor.detach().copy_(flat[at : at + tensor.numel()].reshape(tensor.shape))
                at += tensor.numel()


def _parts_by_dtype(tensors: Sequence[Tensor], limit: int) -> list[list[Tensor]]:
    """Tensors of the same dtype and device, in parts of at most `limit` bytes."""
    parts: list[list[Tensor]] = []
    open_parts: dict[Any, tuple[list[Tensor], int]] = {}
    for tensor in tensors:
        kind, size = (tensor.dtype, tensor.device), tensor.numel() * tensor.element_size()
        part, used = open_parts.get(kind, ([], 0))
        if not part or used + size > limit:
            part, used = [], 0
            parts.append(part)
        part.append(tensor)
        open_parts[kind] = (part, used + size)
    return parts
