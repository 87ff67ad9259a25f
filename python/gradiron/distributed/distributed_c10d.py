"""The functions of `torch.distributed`, under the name of the module that PyTorch has them in."""

from __future__ import annotations

from ._backends import (
    Backend,
    BackendConfig,
    is_backend_available,
    is_gloo_available,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
)
from ._backends import is_available as is_available
from ._coalescing import _broadcast_coalesced as _broadcast_coalesced
from ._coalescing import _coalescing_manager as _coalescing_manager
from ._coalescing import _CoalescingManager as _CoalescingManager
from ._coalescing import _IllegalWork as _IllegalWork
from ._collectives import _all_gather_base as _all_gather_base
from ._collectives import _check_single_tensor as _check_single_tensor
from ._collectives import _check_tensor_list as _check_tensor_list
from ._collectives import _finish as _finish
from ._collectives import _group_rank as _group_rank
from ._collectives import _reduce_scatter_base as _reduce_scatter_base
from ._collectives import (
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
    supports_complex,
)
from ._groups import _abort_process_group as _abort_process_group
from ._groups import _DistributedBackendOptions as _DistributedBackendOptions
from ._groups import _register as _register
from ._groups import _set_pg_timeout as _set_pg_timeout
from ._groups import _store_based_barrier as _store_based_barrier
from ._groups import (
    destroy_process_group,
    init_process_group,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    split_group,
)
from ._groups import hash_ranks as hash_ranks
from ._groups import set_timeout as set_timeout
from ._messages import P2POp, batch_isend_irecv, irecv, isend, recv, send
from ._messages import _check_not_self_rank as _check_not_self_rank
from ._registry import (
    GroupMember,
    get_backend,
    get_backend_config,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    is_initialized,
    reduce_op,
)
from ._registry import _check_member as _check_member
from ._registry import _get_default_group as _get_default_group
from ._registry import _get_default_store as _get_default_store
from ._registry import _get_group_size_by_name as _get_group_size_by_name
from ._registry import _get_object_coll_device as _get_object_coll_device
from ._registry import _get_pg_default_device as _get_pg_default_device
from ._registry import _get_process_group_name as _get_process_group_name
from ._registry import _pg_group_ranks as _pg_group_ranks
from ._registry import _pg_map as _pg_map
from ._registry import _pg_names as _pg_names
from ._registry import _rank_not_in_group as _rank_not_in_group
from ._registry import _resolve as _resolve
from ._registry import _resolve_process_group as _resolve_process_group
from ._registry import _World as _World
from ._registry import _world as _world
from ._registry import _WorldMeta as _WorldMeta
from .constants import default_pg_nccl_timeout as default_pg_nccl_timeout
from .constants import default_pg_timeout
from .debug import DebugLevel as DebugLevel
from .debug import get_debug_level as get_debug_level
from .engine import mpi as mpi
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
from .process_group import EngineProcessGroup as EngineProcessGroup
from .process_group import ProcessGroup
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
