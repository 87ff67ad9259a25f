"""`DistributedDataParallel`: data-parallel training of a module in several processes."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ... import _core
from ..._core import Tensor, queue_callback
from ..._creation import tensor as make_tensor
from ...autograd import Function
from ...autograd.grad_mode import no_grad
from ...distributed import distributed_c10d as c10d
from ...distributed._grad_bucket import BuiltinCommHookType, GradBucket
from ...distributed.algorithms.join import Join, Joinable, JoinHook
from ...distributed.options import AllreduceOptions, ReduceOp
from ...distributed.utils import _sync_module_states, _sync_params_and_buffers, _verify_param_shape_across_processes
from ...futures import Future
from ...utils._pytree import tree_flatten, tree_unflatten
from ..modules.module import Module
from ..parameter import UninitializedBuffer, UninitializedParameter
from ._messages import BOTH_BUFFER_FLAGS, BROADCAST_BUFFERS_DEPRECATED, STATIC_FINDS_UNUSED
from ._reducer import Reducer
from .scatter_gather import moved

__all__ = ["DistributedDataParallel"]

_FIRST_BUCKET_BYTES = 1024 * 1024
_BUCKET_MEBIBYTES = 25
_BROADCAST_BYTES = 250 * 1024 * 1024


def _find_tensors(obj: Any) -> Iterator[Tensor]:
    """Yield the tensors in the output of a forward: in lists, tuples, dictionaries and dataclasses."""
    if isinstance(obj, Tensor):
        return iter((obj,))
    if isinstance(obj, (list, tuple)):
        return itertools.chain.from_iterable(map(_find_tensors, obj))
    if isinstance(obj, dict):
        return itertools.chain.from_iterable(map(_find_tensors, obj.values()))
    if dataclasses.is_dataclass(obj):
        return itertools.chain.from_iterable(_find_tensors(getattr(obj, field.name)) for field in dataclasses.fields(obj))
    return iter(())


class _DDPSink(Function):
    """Identity of the outputs whose backward runs first, and in which every output gets a gradient or `None`."""

    @staticmethod
    def forward(ctx: Any, reducer: Any, *tensors: Tensor) -> Any:
        ctx.set_materialize_grads(False)
        ctx.reducer = reducer
        return tuple(tensor.clone() for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        reducer = ctx.reducer()
        if reducer is not None and reducer.is_first_static():
            queue_callback(reducer._delay_all_reduce)
        return (None, *gradients)


class _DDPJoinHook(JoinHook):
    """What a rank without further inputs does while the others train."""

    def __init__(self, ddp: DistributedDataParallel, divide_by_initial_world_size: bool) -> None:
        self.ddp = ddp
        ddp._divide_by_initial_world_size = divide_by_initial_world_size
        super().__init__()

    def main_hook(self) -> None:
        """Take part in the collectives of the forward and backward of the others."""
        ddp = self.ddp
        ddp.reducer._rebuild_buckets()
        if ddp.will_sync_module_buffers():
            ddp._sync_buffers(joined=True)
        ddp.require_forward_param_sync = ddp._check_global_requires_backward_grad_sync(is_joined_rank=True)
        if ddp.require_forward_param_sync:
            ddp.reducer._take_part()
            ddp.reducer._push_all_rebuilt_params()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Take over the model of the ranks that trained longest."""
        self.ddp._sync_final_model(is_last_joiner)


class DistributedDataParallel(Module, Joinable):
    """Train a module in several processes: gradients are averaged over all ranks during the backward.

    The module is stored as `module`. At construction, parameters and buffers of rank 0 are sent to all ranks.
    Gradients are all-reduced in buckets as soon as they are computed. Each rank should get its own part of every
    batch.

    Args:
        module: module to train, the same on every rank.
        device_ids: list with the GPU of the module, to which inputs are moved; `None` on the CPU.
        output_device: device of the output; the device of the module by default.
        dim: kept for compatibility. Default: `0`
        broadcast_buffers: deprecated name of `forward_sync_buffers`, which also controls the buffers at construction.
        init_sync: whether to compare shapes and send parameters and buffers at construction. Default: `True`
        process_group: processes that take part; all of them if `None`.
        bucket_cap_mb: size of the buckets in MiB; 25 if `None`. The first bucket has 1 MiB.
        find_unused_parameters: whether the backward may leave out parameters; the outputs are searched for those that
            they do not depend on. Default: `False`
        check_reduction: deprecated, without effect. Default: `False`
        gradient_as_bucket_view: whether gradients share memory with the buckets in every backward. Default: `False`
        static_graph: whether every backward uses the same parameters as the first; allows repeated checkpoints and
            unused parameters. Default: `False`
        delay_all_reduce_named_params: pairs of name and parameter whose gradients are reduced late.
        param_to_hook_all_reduce: the parameter after whose gradient these are reduced.
        mixed_precision: not supported.
        device_mesh: 1D device mesh, instead of a process group.
        skip_all_reduce_unused_params: whether buckets of unused parameters are not reduced; all ranks must then use
            the same parameters. Default: `False`
        bucket_cap_mb_list: sizes of the single buckets in MiB, instead of `bucket_cap_mb`.
        batched_grad_copy: has no effect. Default: `False`
        forward_sync_buffers: whether rank 0 sends its buffers before each forward; it does if `None`.
        lazy_bucket_allocation: whether the memory of buckets is freed after each backward. Default: `False`

    Raises:
        RuntimeError: if no parameter requires a gradient, or parameters are uninitialized.

    Examples:
        >>> def train(rank):  # in each process, after torch.distributed.init_process_group
        ...     model = nn.parallel.DistributedDataParallel(nn.Linear(4, 2))
        ...     model(torch.randn(3, 4)).sum().backward()
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: list[tuple[str, Any]] | None = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
        lazy_bucket_allocation: bool = False,
    ) -> None:
        super().__init__()
        Joinable.__init__(self)
        if mixed_precision is not None:
            raise NotImplementedError(
                "DistributedDataParallel: mixed_precision is not supported; use torch.autocast in the forward, which works "
                "with any module"
            )
        if (delay_all_reduce_named_params is None) != (param_to_hook_all_reduce is None):
            raise ValueError("delay_all_reduce_named_params and param_to_hook_all_reduce need to be set at the same time.")
        if process_group is not None and device_mesh is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        if device_mesh is not None:
            if device_mesh.ndim != 1:
                raise RuntimeError(f"Only 1D device mesh is supported, but got {device_mesh}.")
            process_group = device_mesh.get_group(mesh_dim=0)
        self.process_group: Any = c10d._get_default_group() if process_group is None else process_group
        if c10d._rank_not_in_group(self.process_group):
            raise ValueError("DistributedDataParallel: this rank is not in the process group")
        self.device_mesh = device_mesh
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self._delayed = list(delay_all_reduce_named_params or ())
        delayed_names = {name for name, _ in self._delayed}
        self.parameters_to_ignore |= delayed_names
        if not any(param.requires_grad for param in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        self.module: Any = module
        self._check_devices(device_ids, output_device)
        self.dim = dim
        if check_reduction:
            warnings.warn(
                "The `check_reduction` argument in `DistributedDataParallel` module is deprecated. Please avoid using it.",
                FutureWarning,
                stacklevel=2,
            )
        self.broadcast_buffers, init_buffers = self._buffer_flags(broadcast_buffers, forward_sync_buffers)
        self.forward_sync_buffers = self.broadcast_buffers
        if static_graph and find_unused_parameters:
            warnings.warn(STATIC_FINDS_UNUSED, stacklevel=2)
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.skip_all_reduce_unused_params = skip_all_reduce_unused_params
        self.batched_grad_copy = batched_grad_copy
        self.lazy_bucket_allocation = lazy_bucket_allocation
        self.mixed_precision = None
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self.broadcast_bucket_size = _BROADCAST_BYTES
        self.bucket_bytes_cap_default = bucket_cap_mb is None
        mebibytes = _BUCKET_MEBIBYTES if bucket_cap_mb is None else bucket_cap_mb
        self.bucket_bytes_cap = int(mebibytes * 1024 * 1024)
        self.bucket_bytes_cap_list = [int(each * 1024 * 1024) for each in bucket_cap_mb_list or ()]
        self._divide_by_initial_world_size = True
        self._comm_hooks: list[tuple[Callable[..., Any], Any]] = []
        self._refuse_uninitialized()
        names, parameters = self._build_params_for_reducer()
        if init_sync:
            _verify_param_shape_across_processes(self.process_group, parameters, names=names)
            _sync_module_states(
                module,
                self.process_group,
                self.broadcast_bucket_size,
                0,
                self.parameters_to_ignore - delayed_names,
                broadcast_buffers=init_buffers,
            )
        self._ddp_init_helper(names, parameters)
        if self._delayed:
            self._register_delay_all_reduce_hook(param_to_hook_all_reduce)

    # Construction.

    def _check_devices(self, device_ids: Any, output_device: Any) -> None:
        devices = {param.device for param in self.module.parameters()}
        kinds = {device.type for device in devices}
        if len(kinds) > 1:
            raise ValueError(
                "DistributedDataParallel's input module must be on the same type of devices, but input module parameters "
                f"locate in {kinds}."
            )
        self.device_type = next(iter(kinds))
        self.device = next(iter(devices))
        self.is_multi_device_module = len(devices) > 1
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        if not device_ids or self.device_type == "cpu":
            if device_ids or output_device:
                raise ValueError(
                    "DistributedDataParallel device_ids and output_device arguments only work with "
                    f"single-device/multiple-device GPU modules or CPU modules, but got device_ids {device_ids}, "
                    f"output_device {output_device}, and module parameters {devices}."
                )
            self.device_ids, self.output_device = None, None
            return
        self.device_ids = [_device_index(each) for each in device_ids]
        self.output_device = self.device_ids[0] if output_device is None else _device_index(output_device)

    @staticmethod
    def _buffer_flags(broadcast: bool | None, forward_sync: bool | None) -> tuple[bool, bool]:
        """Return whether buffers are sent before each forward, and whether at construction."""
        if forward_sync is not None:
            if broadcast is not None:
                warnings.warn(BOTH_BUFFER_FLAGS, FutureWarning, stacklevel=3)
            return forward_sync, True
        if broadcast is not None:
            warnings.warn(BROADCAST_BUFFERS_DEPRECATED, FutureWarning, stacklevel=3)
            return broadcast, broadcast
        return True, True

    def _refuse_uninitialized(self) -> None:
        tensors = itertools.chain(self.module.parameters(), self.module.buffers())
        if any(isinstance(tensor, (UninitializedParameter, UninitializedBuffer)) for tensor in tensors):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with `DistributedDataParallel`. Run a dummy forward "
                "pass to correctly initialize the modules"
            )

    def _build_params_for_reducer(self) -> tuple[list[str], list[Any]]:
        """Return names and parameters whose gradients are reduced, and find the buffers to send."""
        named = [
            (name, param)
            for name, param in self.module.named_parameters()
            if param.requires_grad and name not in self.parameters_to_ignore
        ]
        for name, child in self.module.named_modules():
            weight = getattr(child, "weight", None)
            if getattr(child, "sparse", False) is True and any(param is weight for _, param in named):
                raise RuntimeError(
                    "DistributedDataParallel reduces no sparse gradients: pass sparse=False to the embedding "
                    f"{name or 'itself'}"
                )
        named_buffers = [
            (buffer, name) for name, buffer in self.module.named_buffers() if name not in self.parameters_to_ignore
        ]
        self.named_module_buffers = {name: buffer for buffer, name in named_buffers}
        self.modules_buffers = [buffer for buffer, _ in named_buffers]
        return [name for name, _ in named], [param for _, param in named]

    def _ddp_init_helper(self, names: list[str], parameters: list[Any]) -> None:
        limits = self.bucket_bytes_cap_list or [min(_FIRST_BUCKET_BYTES, self.bucket_bytes_cap), self.bucket_bytes_cap]
        self.reducer = Reducer(
            parameters,
            names,
            self.process_group,
            limits,
            find_unused=self.find_unused_parameters,
            as_views=self.gradient_as_bucket_view,
            skip_unused=self.skip_all_reduce_unused_params,
            release=self.lazy_bucket_allocation,
        )
        if self.static_graph:
            self.reducer._set_static_graph()

    def _set_static_graph(self) -> None:
        """Declare that every backward uses the same parameters as the first."""
        if self.static_graph:
            warnings.warn("You've set static_graph to be True, no need to set it again.", stacklevel=2)
            return
        self.reducer._set_static_graph()
        self.static_graph = True
        if self.find_unused_parameters:
            warnings.warn(STATIC_FINDS_UNUSED, stacklevel=2)

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, params_and_buffers_to_ignore: Any) -> None:
        """Name parameters and buffers of a module that may differ between ranks."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    def __getstate__(self) -> dict[str, Any]:
        if self.process_group is not c10d.group.WORLD:
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default process group. That is, when "
                "you have called init_process_group and have not passed process_group argument to DDP constructor"
            )
        return {name: value for name, value in self.__dict__.items() if name not in ("process_group", "reducer")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.process_group = c10d._get_default_group()
        super().__setstate__(state)
        self._ddp_init_helper(*self._build_params_for_reducer())

    def _update_process_group(self, new_process_group: Any) -> None:
        self.process_group = new_process_group
        self.reducer._update_process_group(new_process_group)

    # Forward.

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        inputs, kwargs = self._pre_forward(*inputs, **kwargs)
        return self._post_forward(self.module(*inputs, **kwargs))

    def _pre_forward(self, *inputs: Any, **kwargs: Any) -> Any:
        recording = _core.is_grad_enabled()
        if recording and self.require_backward_grad_sync:
            self.reducer.prepare_for_forward()
        work = Join.notify_join_context(self)
        if work is not None:
            self.reducer._set_forward_pass_work_handle(work, self._divide_by_initial_world_size)
        if recording:
            self.reducer._rebuild_buckets()
        if self.will_sync_module_buffers():
            self._sync_buffers()
        if self._join_config.enable:
            self._check_global_requires_backward_grad_sync(is_joined_rank=False)
        if self.device_ids:
            place = _core.device(self.device_type, self.device_ids[0])
            inputs, kwargs = moved(inputs, place), moved(kwargs, place)
        return inputs, kwargs

    def _post_forward(self, output: Any) -> Any:
        if not (_core.is_grad_enabled() and self.require_backward_grad_sync):
            self.require_forward_param_sync = False
            return output
        self.require_forward_param_sync = True
        searching = self.find_unused_parameters and not self.static_graph
        self.reducer.prepare_for_backward(list(_find_tensors(output)) if searching else [])
        if searching or self.reducer.is_first_static():
            return self._pass_through_sink(output)
        return output

    def _pass_through_sink(self, output: Any) -> Any:
        leaves, structure = tree_flatten(output)
        recorded = [at for at, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.grad_fn is not None]
        if not recorded:
            return output
        passed = _DDPSink.apply(weakref.ref(self.reducer), *(leaves[at] for at in recorded))
        for at, tensor in zip(recorded, passed, strict=True):
            leaves[at] = tensor
        return tree_unflatten(leaves, structure)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Context manager within which gradients accumulate on each rank, until a backward outside reduces them."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def train(self, mode: bool = True) -> DistributedDataParallel:
        super().train(mode)
        return self

    # Buffers.

    def will_sync_module_buffers(self) -> bool:
        """Return whether the next forward starts by sending the buffers of one rank."""
        return self.require_forward_param_sync and self.broadcast_buffers and bool(self.modules_buffers)

    def _sync_buffers(self, joined: bool = False) -> None:
        with no_grad():
            source = 0
            if joined or self._join_config.enable:
                source = self._find_common_rank(self._distributed_rank, not joined)
            self._assign_modules_buffers()
            _sync_params_and_buffers(self.process_group, self.modules_buffers, self.broadcast_bucket_size, source)

    def _assign_modules_buffers(self) -> None:
        """Find the buffers again: a module may have replaced them."""
        self.named_module_buffers = {
            name: buffer for name, buffer in self.module.named_buffers() if name not in self.parameters_to_ignore
        }
        self.modules_buffers = list(self.named_module_buffers.values())

    # Communication hooks.

    def register_comm_hook(self, state: Any, hook: Callable[..., Any]) -> None:
        """Register a hook that reduces the buckets.

        Args:
            state: first argument of the hook.
            hook: `hook(state, bucket)` returns a `Future` of the averaged contents of the bucket.
        """
        self._check_comm_hook(hook)
        self._take_comm_hook(state, hook)

    def _register_builtin_comm_hook(self, comm_hook_type: BuiltinCommHookType) -> None:
        from ...distributed.algorithms.ddp_comm_hooks import default_hooks

        hooks = {
            BuiltinCommHookType.ALLREDUCE: default_hooks.allreduce_hook,
            BuiltinCommHookType.FP16_COMPRESS: default_hooks.fp16_compress_hook,
        }
        if comm_hook_type not in hooks:
            raise TypeError(f"expected a BuiltinCommHookType, but got {comm_hook_type!r}")
        self._take_comm_hook(self.process_group, hooks[comm_hook_type])

    def _take_comm_hook(self, state: Any, hook: Callable[..., Any]) -> None:
        if self.reducer._hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.reducer._hook = (state, hook)
        self._comm_hooks.append((hook, state))

    @staticmethod
    def _check_comm_hook(hook: Any) -> None:
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        signature = inspect.signature(hook)
        bucket = signature.parameters.get("bucket")
        if bucket is not None and bucket.annotation not in (
            inspect.Parameter.empty,
            GradBucket,
            "GradBucket",
            "dist.GradBucket",
        ):
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
        returned = signature.return_annotation
        if returned is not inspect.Signature.empty and returned is not Future and "Future" not in str(returned):
            raise ValueError("Communication hook: return annotation should be torch.futures.Future[torch.Tensor].")

    # Parameters whose gradients are reduced late.

    def _register_delay_all_reduce_hook(self, trigger: Any) -> None:
        params = [param for _, param in self._delayed]
        like = params[0]
        self._delay_grad_buffer = _core.zeros(sum(p.numel() for p in params), dtype=like.dtype, device=like.device)
        self._delay_grad_views, at = [], 0
        for param in params:
            self._delay_grad_views.append(self._delay_grad_buffer[at : at + param.numel()].view(param.shape))
            at += param.numel()
        self._clear_grad_buffer()
        trigger.register_post_accumulate_grad_hook(functools.partial(_reduce_delayed, weakref.ref(self)))

    def _clear_grad_buffer(self) -> None:
        for (_, param), view in zip(self._delayed, self._delay_grad_views, strict=True):
            if param.grad is None:
                view.zero_()
                param.grad = view

    # Uneven inputs.

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """Context manager for uneven inputs: ranks without further batches join the collectives of the others."""
        return Join([self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size)

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook that runs when this rank has no more inputs."""
        return _DDPJoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> Any:
        return self.device

    @property
    def join_process_group(self) -> Any:
        return self.process_group

    @property
    def _distributed_rank(self) -> int:
        return int(self.process_group.rank())

    def _check_global_requires_backward_grad_sync(self, is_joined_rank: bool) -> bool:
        """Tell ranks without inputs whether the backward will be reduced."""
        requires = make_tensor([0.0 if is_joined_rank or not self.require_backward_grad_sync else 1.0])
        self.process_group.allreduce([requires], AllreduceOptions()).wait()
        return bool(requires.item())

    def _find_common_rank(self, input_rank: int, rank_cond: bool) -> int:
        """Return the highest rank among those that pass a true condition."""
        rank = make_tensor([input_rank if rank_cond else -1])
        self.process_group.allreduce([rank], AllreduceOptions(reduceOp=ReduceOp.MAX)).wait()
        if rank.item() == -1:
            raise ValueError("BUG! Expected rank_cond to be true for at least one process. This indicates a bug in PyTorch.")
        return int(rank.item())

    def _sync_final_model(self, is_last_joiner: bool) -> None:
        source = self._find_common_rank(self._distributed_rank, is_last_joiner)
        _sync_module_states(
            self.module,
            self.process_group,
            self.broadcast_bucket_size,
            source,
            self.parameters_to_ignore,
            broadcast_buffers=self.broadcast_buffers,
        )

    # Statistics.

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """Return facts and times of this module, under the names of PyTorch."""
        reducer = self.reducer
        sizes = ", ".join(str(bucket.bytes) for bucket in reducer.buckets)
        data: dict[str, Any] = {
            "world_size": self.process_group.size(),
            "rank": self.process_group.rank(),
            "module_name": type(self.module).__name__,
            "backend_name": self.process_group.name(),
            "iteration": reducer.iterations,
            "num_parameter_tensors": len(reducer.params),
            "total_parameter_size_bytes": sum(bucket.bytes for bucket in reducer.buckets),
            "bucket_sizes": sizes,
            "dtypes": ", ".join(sorted({str(p.dtype).removeprefix("torch.") for p in reducer.params})),
            "device_ids": ", ".join(map(str, self.device_ids or ())),
            "output_device": -1 if self.output_device is None else self.output_device,
            "broadcast_buffers": int(self.broadcast_buffers),
            "bucket_cap_bytes": self.bucket_bytes_cap,
            "find_unused_parameters": int(self.find_unused_parameters),
            "gradient_as_bucket_view": int(self.gradient_as_bucket_view),
            "static_graph": int(self.static_graph),
            "is_multi_device_module": int(self.is_multi_device_module),
            "has_rebuilt_buckets": int(reducer.rebuilt),
            "num_buckets_reduced": reducer.count_reduced(),
            "unused_parameter_size": reducer.unused_bytes(),
            **reducer.measured(),
        }
        if reducer.rebuilt:
            data["rebuilt_bucket_sizes"] = sizes
            data["rebuilt_per_bucket_param_indices"] = ", ".join(" ".join(map(str, b.members)) for b in reducer.buckets)
        if self.find_unused_parameters and not self.static_graph:
            data["can_set_static_graph"] = reducer.can_be_static()
        if self._comm_hooks:
            hook = self._comm_hooks[0][0]
            data["comm_hook"] = getattr(hook, "__qualname__", type(hook).__name__)
        return data


def _device_index(device: Any) -> int:
    return device if isinstance(device, int) else (_core.device(device).index or 0)


def _reduce_delayed(reference: Any, param: Tensor) -> None:
    """Reduce all late gradients, with the last of them."""
    ddp = reference()
    if ddp is None or not ddp.require_backward_grad_sync:
        return
    buffer = ddp._delay_grad_buffer
    with no_grad():
        for (_, delayed), view in zip(ddp._delayed, ddp._delay_grad_views, strict=True):
            if delayed.grad is not None and delayed.grad.data_ptr() != view.data_ptr():
                view.copy_(delayed.grad)
                delayed.grad = view
        buffer.div_(ddp.process_group.size())
    work = ddp.process_group.allreduce([buffer], AllreduceOptions(asyncOp=True))
    queue_callback(work.wait)
