"""The process groups of this process: the default group, and what is known of each group."""

from __future__ import annotations

import os
import warnings
from typing import Any

from .. import _core
from ._backends import Backend
from .options import ReduceOp
from .process_group import ProcessGroup
from .store import Store

_NOT_INITIALIZED = "Default process group has not been initialized, please make sure to call init_process_group."


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
