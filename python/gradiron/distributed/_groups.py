"""Makes and destroys process groups."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from .. import _core
from . import engine
from ._backends import Backend, BackendConfig, _check_backend, _default_timeout
from ._registry import (
    GroupMember,
    _get_default_group,
    _rank_not_in_group,
    _resolve,
    _world,
    get_process_group_ranks,
    get_rank,
    get_world_size,
)
from .debug import DebugLevel, get_debug_level
from .process_group import EngineProcessGroup, ProcessGroup
from .rendezvous import rendezvous
from .store import PrefixStore, Store


def _check_timeout(timeout: Any) -> None:
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")


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
