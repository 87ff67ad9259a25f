"""C functions that are known: what they read and write besides their arguments is nothing."""

from __future__ import annotations

import itertools
import math
import operator
import types
from typing import Any

from .. import _core

__all__ = [
    "CORE",
    "NEW_ATTRIBUTES",
    "PURE",
    "PURE_METHODS",
    "QUICK_ATTRIBUTES",
    "TENSOR_ATTRIBUTES",
    "refused_core",
    "refused_method",
]

# Attributes of tensors that the comparison of tensors covers.
TENSOR_ATTRIBUTES = frozenset(
    """
    shape dtype device ndim requires_grad is_leaf grad _grad data T H mT mH real imag layout itemsize nbytes grad_fn _grad_fn
    is_sparse is_sparse_csr is_cuda is_cpu is_meta is_mps is_xla is_xpu is_ipu is_maia is_mkldnn is_mtia is_nested
    is_quantized is_vulkan _backward_hooks _post_accumulate_grad_hooks __array_priority__
    """.split()
)

# Those that are known of tensors that the call made, and of leaves.
NEW_ATTRIBUTES = frozenset(("output_nr", "retains_grad"))

# Those of them that `quick_kind` covers.
QUICK_ATTRIBUTES = frozenset("shape dtype ndim requires_grad is_cpu itemsize nbytes".split())

# Methods of tensors, and functions of the core, that do more than compute: they change how a tensor lies in memory, hand its
# elements or its address to Python, or change a thread's modes for good.
_REFUSED_METHODS = frozenset(
    """
    data_ptr numpy tolist storage untyped_storage set_ resize_ resize_as_ share_memory_ pin_memory _storage_bytes _storage_id
    register_hook register_post_accumulate_grad_hook _is_view map_ map2_ apply_ is_set_to
    __array__ __dlpack__ __reduce_ex__ __setstate__ __repr__ __str__ __format__ __hash__ __index__ __int__ __float__ __complex__
    """.split()
)
# These change a tensor's kind, not its elements: only those made by the call may be changed so.
KIND_CHANGES = frozenset(
    "requires_grad_ squeeze_ unsqueeze_ t_ transpose_ swapaxes_ swapdims_ detach_ retain_grad as_strided_ rename_".split()
)
_REFUSED_CORE = frozenset(
    """
    set_default_dtype set_warn_always set_num_threads to_dlpack from_dlpack from_numpy register set_without_rules
    set_version set_anomaly queue_callback keep_tensors watch_writes get_num_threads
    is_warn_always_enabled swap_contents resize_storage move_storage to_bytes from_bytes crc32 begin_capture end_capture
    discard_capture profiler_start profiler_stop profiler_clock expect_overrides set_override_modes
    set_thread_device global_generator shared live_nodes storage_holders has_edge end_program increment_version
    """.split()
)

_core_functions = [value for part in (_core, _core._nn) for value in vars(part).values()]
CORE = {id(value): value for value in _core_functions if isinstance(value, types.BuiltinFunctionType)}

PURE: dict[int, Any] = {
    id(value): value
    for value in (
        *(value for name, value in vars(math).items() if isinstance(value, types.BuiltinFunctionType)),
        *(abs, round, divmod, pow, ord, chr, bin, hex, oct, ascii, callable, operator.index),
    )
}

# Methods of immutable values.
PURE_METHODS = frozenset(
    (str, bytes, int, float, complex, bool, tuple, frozenset, range, slice, type(None), _core.device, _core.dtype)
)

ITERTOOLS = frozenset(
    value
    for name, value in vars(itertools).items()
    if isinstance(value, type)
    and name in ("chain", "count", "islice", "product", "repeat", "zip_longest", "pairwise", "permutations", "combinations")
)


def refused_method(name: str) -> bool:
    """Return whether a method of a tensor cannot be captured."""
    return name in _REFUSED_METHODS


def refused_core(function: Any) -> bool:
    """Return whether a function of the core cannot be captured."""
    return function.__name__ in _REFUSED_CORE
