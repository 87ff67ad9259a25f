"""`ProcessGroup`: ranks that take part in collectives, and how collectives treat tensors."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from .. import _core
from .._core import Tensor
from .._creation import frombuffer, strided
from .._creation import tensor as make_tensor
from ..autograd.grad_mode import no_grad
from . import engine
from .constants import default_pg_timeout
from .engine.requests import Request
from .options import (
    AllreduceOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
    reduction_name,
)
from .store import DistBackendError, Store
from .work import Work, progress

__all__ = ["EngineProcessGroup", "ProcessGroup"]


class ProcessGroup:
    """Group of ranks that call collectives together; subclasses implement the collectives.

    Args:
        rank: rank of this process in the group. Default: `0`
        size: number of ranks. Default: `1`

    Examples:
        >>> group = torch.distributed.ProcessGroup(0, 1)
        >>> group.rank(), group.size()
        (0, 1)
    """

    class BackendType:
        """Numbers of backends."""

        UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, CUSTOM = 0, 1, 2, 7, 3, 4, 6

    class Options:
        """Options of a group: how long its collectives may take."""

        def __init__(self, backend: str = "", timeout: timedelta = default_pg_timeout) -> None:
            self.backend = backend
            self._timeout = timeout
            self.group_name = ""
            self.global_ranks_in_group: list[int] = []

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self._rank, self._size = rank, size
        self.group_name = ""
        self.group_desc = "undefined"
        self.bound_device_id: Any = None
        self._timeout = default_pg_timeout
        self._store: Store | None = None

    def rank(self) -> int:
        """Return the rank of this process in the group."""
        return self._rank

    def size(self) -> int:
        """Return the number of ranks."""
        return self._size

    def name(self) -> str:
        """Return the name of the backend."""
        return self.getBackendName()

    def getBackendName(self) -> str:
        """Return the name of the backend; a subclass to be registered has to define it."""
        return "undefined"

    def get_group_store(self) -> Store | None:
        """Return the store of the group."""
        return self._store

    def _set_group_name(self, name: str) -> None:
        self.group_name = name

    def _set_group_desc(self, description: str) -> None:
        self.group_desc = description

    def _label(self) -> str:
        """The description, or the name of a group that has none."""
        return self.group_name if self.group_desc in ("", "undefined") else self.group_desc

    def _get_backend(self, device: Any = None) -> ProcessGroup:
        return self

    def _get_backend_name(self) -> str:
        return self.name()

    @property
    def _device_types(self) -> list[Any]:
        return [_core.device("cpu")]

    def _set_default_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout

    set_timeout = _set_default_timeout

    def shutdown(self) -> None:
        """Free the resources of the group."""

    def abort(self) -> None:
        """Free the resources of the group without notifying the other ranks."""


def _missing_collective(name: str) -> Any:
    def refuse(self: ProcessGroup, *args: Any, **options: Any) -> Any:
        raise RuntimeError(f"Backend {self.name()} does not support {name}")

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


for _name in (
    "allreduce allreduce_coalesced broadcast reduce allgather allgather_coalesced _allgather_base gather scatter "
    "reduce_scatter _reduce_scatter_base allgather_into_tensor_coalesced reduce_scatter_tensor_coalesced alltoall "
    "alltoall_base send recv recv_anysource barrier monitored_barrier"
).split():
    setattr(ProcessGroup, _name, _missing_collective(_name))


# Dtypes that MPI cannot reduce portably are reduced in a wider one, and rounded once.
_WIDENED = {"float16": _core.float32, "bfloat16": _core.float32}
_REDUCED = frozenset("float32 float64 complex64 complex128 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split())
_INTEGERS = frozenset("int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split())


def _check_dense(tensor: Any, operation: str) -> None:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"incompatible function arguments: {operation} expected tensors, but got {type(tensor).__name__}")
    if tensor.layout is not strided:
        raise RuntimeError(f"{operation}: unsupported layout {tensor.layout}; only dense tensors travel between processes")
    if tensor.device.type == "meta":
        raise RuntimeError(f"{operation}: a tensor on the device meta has no elements to send")


def _is_ready(tensor: Tensor) -> bool:
    """Whether the engine can work on a tensor's own memory."""
    return tensor.device.type == "cpu" and tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def _source(tensor: Tensor) -> Tensor:
    """The tensor's elements in dense host memory, for reading."""
    if _is_ready(tensor):
        return tensor
    with no_grad():
        return tensor.detach().resolve_conj().resolve_neg().to("cpu").contiguous()


def _destination(tensor: Tensor) -> Tensor:
    """Dense host memory for a tensor's new elements; `_store_back` puts them in place."""
    return tensor if _is_ready(tensor) else _core.empty(tensor.shape, dtype=tensor.dtype)


def _store_back(tensor: Tensor, dense: Tensor) -> None:
    if dense is not tensor:
        with no_grad():
            tensor.data.copy_(dense)  # By `data`, so that collectives do not change the version counter.


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _dtype_name(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


class EngineProcessGroup(ProcessGroup):
    """Group of ranks whose collectives run by MPI, or by copies for a single rank.

    Programs get it from `init_process_group` and `new_group`.

    Args:
        store: store of the group.
        rank: rank of this process.
        size: number of ranks.
        options: duration, or options with a `timeout`, after which a collective fails.
        communicator: communicator of the engine.

    Examples:
        >>> group = torch.distributed.ProcessGroupGloo(torch.distributed.HashStore(), 0, 1)
        >>> group.allreduce([torch.ones(2)]).wait()
        True
    """

    def __init__(self, store: Any, rank: int, size: int, options: Any = None, *, communicator: Any = None) -> None:
        super().__init__(rank, size)
        timeout = options if isinstance(options, timedelta) else getattr(options, "_timeout", None)
        if timeout is not None:
            self._timeout = timeout
        self._store = store
        self._backend_name = "gloo"
        self._ranks = list(range(size))  # Global ranks, for messages.
        self._number = 0
        self._messages = self._barriers = 0
        self._error: BaseException | None = None
        self._checks_calls = False
        self._freed = False
        self._coalesced: list[Work] | None = None
        self._lock = threading.Lock()
        self._communicator = communicator if communicator is not None else engine.start(store, rank, size, self._timeout)

    def getBackendName(self) -> str:
        return self._backend_name

    @property
    def _device_types(self) -> list[Any]:
        return [_core.device(name) for name in (("cuda",) if self._backend_name == "nccl" else ("cpu", "cuda"))]

    # Errors.

    def _failure(self) -> str | None:
        return engine.failure()

    def _left(self) -> str | None:
        left = [rank for rank in engine.left() if rank in self._ranks]
        return f"rank {left[0]}" if left else None

    def _whereabouts(self, number: int) -> str:
        """Return the ranks that have not joined a collective, and where they are."""
        notes = engine.notes()
        prefix = f"{self.group_name}/"
        late = []
        for rank in self._ranks:
            note = notes[rank] if rank < len(notes) else None
            if note is None:
                late.append(f"rank {rank} (before its first collective)")
                continue
            name, _, rest = note.partition("/")
            own, _, what = rest.partition(" ")
            if not note.startswith(prefix):
                late.append(f"rank {rank} (in {what} of group {name})")
            elif int(own) < number:
                late.append(f"rank {rank} (last in {what} #{own})")
        return "These have not come: " + ", ".join(late) if late else "All ranks have come"

    def _say(self, text: str) -> None:
        print(f"[rank{self._ranks[self._rank]}]: {text}", file=sys.stderr, flush=True)

    def _break(self, error: BaseException) -> None:
        """Makes all later calls raise the first error: the ranks no longer agree on what comes next."""
        if self._error is None:
            self._error = error

    @staticmethod
    def _error_class(timeout: bool) -> type[Exception]:
        return DistBackendError if timeout else RuntimeError

    def _translate(self, error: BaseException, what: str) -> BaseException:
        return RuntimeError(f"{what} failed: {error}. Do all ranks pass tensors of the same shape and dtype?")

    def _begin(self, name: str, tensors: Sequence[Any]) -> int:
        """Looks whether a collective may begin, and counts it."""
        if engine.was_forked():
            raise RuntimeError(f"{name}: this process was forked after init_process_group, and cannot take part in collectives")
        if self._freed:
            raise ValueError("The process group has been destroyed, and cannot be used any more")
        if self._error is not None:
            raise type(self._error)(*self._error.args)
        if failure := engine.failure():
            error = RuntimeError(f"{failure} during {name} #{self._number + 1} of group {self._label()}")
            self._break(error)
            raise error
        self._number += 1
        engine.note(f"{self.group_name}/{self._number} {name}")
        if self._checks_calls:
            self._check_call(name, tensors)
        return self._number

    def _check_call(self, name: str, tensors: Sequence[Any]) -> None:
        """Compares a collective with those of the other ranks, before it begins (TORCH_DISTRIBUTED_DEBUG=DETAIL)."""
        from .fingerprint import compare_calls

        self._checks_calls = False
        try:
            compare_calls(self, name, self._number, tensors)
        except Exception as error:
            self._break(error)
            raise
        finally:
            self._checks_calls = True

    def _work(
        self,
        request: Request,
        name: str,
        number: int,
        tensors: Sequence[Any],
        result: Any,
        options: Any = None,
        finish: Callable[[], None] | None = None,
    ) -> Work:
        largest = max((_bytes(t) for t in tensors if isinstance(t, Tensor)), default=0)
        timeout = getattr(options, "timeout", None)
        if timeout is None or timeout is default_pg_timeout or timeout.total_seconds() <= 0:
            timeout = self._timeout
        work = Work(
            request,
            group=self,
            name=name,
            number=number,
            tensors=tensors,
            result=result,
            finish=finish,
            largest=min(largest, 4 << 20),
            timeout=timeout,
        )
        if self._coalesced is not None:
            self._coalesced.append(work)
        if getattr(options, "asyncOp", True):
            progress.add(work)
        return work

    # Reductions.

    def _reduced(self, tensor: Tensor, op: Any, name: str) -> tuple[Tensor, str, str, Callable[[Tensor], None]]:
        """What the engine reduces in place of a tensor: dense host memory, its dtype, the operation, and what follows."""
        operation, dtype = reduction_name(op), _dtype_name(tensor)
        average = operation == "AVG"
        if average:
            if dtype in _INTEGERS:
                raise RuntimeError(f"result type Float can't be cast to the desired output type {dtype.capitalize()}")
            operation = "SUM"
        if operation in ("BAND", "BOR", "BXOR") and dtype not in _INTEGERS:
            raise RuntimeError(f"Cannot use ReduceOp.{operation} with non-integral dtype")
        if operation in ("MIN", "MAX") and dtype.startswith("complex"):
            raise ValueError(f"{name} does not support {op} on complex tensors")
        dense = _source(tensor)
        if dtype in _WIDENED:
            dense = dense.to(_WIDENED[dtype])
        elif dtype not in _REDUCED:
            raise RuntimeError("Invalid scalar type")

        def finish(reduced: Tensor) -> None:
            if average:
                with no_grad():
                    reduced.data.div_(self._size)

        return dense, _dtype_name(dense), operation, finish

    def allreduce(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None) -> Work:
        """Reduce a tensor over all ranks, in place."""
        tensor = _only(tensors, "allreduce")
        opts = _options(opts, AllreduceOptions, "reduceOp", timeout)
        _check_dense(tensor, "allreduce")
        dense, dtype, operation, after = self._reduced(tensor, opts.reduceOp, "all_reduce")
        number = self._begin("all_reduce", [tensor])

        def finish() -> None:
            after(dense)
            if dense.data_ptr() != tensor.data_ptr() or dense.dtype != tensor.dtype:
                _store_back(tensor, dense)

        request = self._communicator.all_reduce(dense.data_ptr(), dense.numel(), dtype, operation)
        return self._work(request, "all_reduce", number, [dense], [tensor], opts, finish)

    def allreduce_coalesced(self, tensors: list[Tensor], opts: Any = None) -> Work:
        """Reduce several tensors of one dtype over all ranks, as one message."""
        if not tensors:
            raise RuntimeError("ProcessGroup::allreduce_coalesced: requires non-empty tensor list")
        for tensor in tensors:
            _check_dense(tensor, "allreduce_coalesced")
            if tensor.dtype != tensors[0].dtype:
                raise RuntimeError("ProcessGroup::allreduce_coalesced: tensors must all have the same type")
        opts = _options(opts, AllreduceOptions, "reduceOp", None)
        with no_grad():
            flat = _core.cat([_source(tensor).detach().reshape(-1) for tensor in tensors])
        dense, dtype, operation, after = self._reduced(flat, opts.reduceOp, "all_reduce_coalesced")
        number = self._begin("allreduce_coalesced", tensors)

        def finish() -> None:
            after(dense)
            _scatter_flat(dense, tensors)

        request = self._communicator.all_reduce(dense.data_ptr(), dense.numel(), dtype, operation)
        return self._work(request, "allreduce_coalesced", number, [dense], list(tensors), opts, finish)

    def reduce(
        self, tensors: Any, opts: Any = None, op: Any = None, timeout: timedelta | None = None, *, root: int | None = None
    ) -> Work:
        """Reduce a tensor over all ranks into that of the root rank."""
        tensor = _only(tensors, "reduce")
        opts = _options(opts if root is None else root, ReduceOptions, "rootRank", timeout)
        if op is not None:
            opts.reduceOp = op
        _check_dense(tensor, "reduce")
        self._check_root(opts.rootRank, "reduce")
        _check_root_tensor(opts, "reduce")
        dense, dtype, operation, after = self._reduced(tensor, opts.reduceOp, "reduce")
        number = self._begin("reduce", [tensor])

        def finish() -> None:
            if self._rank == opts.rootRank:
                after(dense)
                if dense.data_ptr() != tensor.data_ptr() or dense.dtype != tensor.dtype:
                    _store_back(tensor, dense)

        request = self._communicator.reduce(dense.data_ptr(), dense.numel(), dtype, operation, opts.rootRank)
        return self._work(request, "reduce", number, [dense], [tensor], opts, finish)

    def reduce_scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None, *_: Any) -> Work:
        """Reduce a list of tensors, one for each rank, and keep that of this rank."""
        output = _only(output_tensors, "reduce_scatter")
        inputs = input_tensors[0] if input_tensors and isinstance(input_tensors[0], (list, tuple)) else input_tensors
        self._check_list(inputs, output, "reduce_scatter", "input")
        with no_grad():
            flat = _core.cat([_source(tensor).detach().reshape(-1) for tensor in inputs])
        return self._scatter_reduced(output, flat, _options(opts, ReduceScatterOptions, "reduceOp", None), "reduce_scatter")

    def _reduce_scatter_base(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        """Reduces one tensor, and keeps this rank's part of it."""
        _check_dense(output, "reduce_scatter_tensor")
        _check_dense(input, "reduce_scatter_tensor")
        if output.dtype != input.dtype:
            raise RuntimeError("output tensor must have the same type as input tensor")
        if output.numel() * self._size != input.numel():
            raise RuntimeError("input tensor must be the same size as output size times world size")
        opts = _options(opts, ReduceScatterOptions, "reduceOp", None)
        return self._scatter_reduced(output, input, opts, "reduce_scatter_tensor")

    reduce_scatter_single = _reduce_scatter_base

    def _scatter_reduced(self, output: Tensor, flat: Tensor, opts: Any, name: str) -> Work:
        dense, dtype, operation, after = self._reduced(flat, opts.reduceOp, name)
        number = self._begin(name, [output])
        into = output if _is_ready(output) and output.dtype == dense.dtype else _core.empty(output.shape, dtype=dense.dtype)

        def finish() -> None:
            after(into)
            _store_back(output, into)

        request = self._communicator.reduce_scatter(
            dense.data_ptr(), into.data_ptr(), into.numel(), dtype, into.element_size(), operation
        )
        return self._work(request, name, number, [dense, into], [output], opts, finish)

    def reduce_scatter_tensor_coalesced(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Work:
        """Reduce several tensors and keep this rank's parts."""
        return _join([self._reduce_scatter_base(out, into, opts) for out, into in zip(outputs, inputs, strict=True)], self)

    # Collectives that move data.

    def broadcast(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None, *, root: int | None = None) -> Work:
        """Send the tensor of the root rank to all ranks."""
        tensor = _only(tensors, "broadcast")
        opts = _options(opts if root is None else root, BroadcastOptions, "rootRank", timeout)
        _check_dense(tensor, "broadcast")
        self._check_root(opts.rootRank, "broadcast")
        _check_root_tensor(opts, "broadcast")
        number = self._begin("broadcast", [tensor])
        root = self._rank == opts.rootRank
        dense = _source(tensor) if root else _destination(tensor)
        finish = None if root else lambda: _store_back(tensor, dense)
        request = self._communicator.broadcast(dense.data_ptr(), _bytes(dense), opts.rootRank)
        return self._work(request, "broadcast", number, [dense], [tensor], opts, finish)

    def allgather(self, output_tensors: Any, input_tensors: Any, opts: Any = None, *_: Any) -> Work:
        """Gather the tensors of all ranks into a list, on all ranks."""
        tensor = _only(input_tensors, "allgather", "input ")
        outputs = _only_list(output_tensors, "allgather: requires input/output tensor lists to have the same length")
        self._check_list(outputs, tensor, "allgather", "output")
        number = self._begin("all_gather", [tensor])
        source = _source(tensor)
        flat = _core.empty((self._size, *tensor.shape), dtype=tensor.dtype)

        def finish() -> None:
            for out, part in zip(outputs, flat, strict=True):
                _store_back(out, part)

        request = self._communicator.all_gather(source.data_ptr(), flat.data_ptr(), _bytes(source))
        return self._work(request, "all_gather", number, [source, flat], list(outputs), opts, finish)

    def _allgather_base(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        """Gathers each rank's tensor in one, on every rank."""
        _check_dense(output, "all_gather_into_tensor")
        _check_dense(input, "all_gather_into_tensor")
        if output.dtype != input.dtype:
            raise RuntimeError("output tensor must have the same type as input tensor")
        if input.numel() * self._size != output.numel():
            raise RuntimeError("output tensor size must be equal to world_size times input tensor size")
        number = self._begin("all_gather_into_tensor", [input])
        source, into = _source(input), _destination(output)
        request = self._communicator.all_gather(source.data_ptr(), into.data_ptr(), _bytes(source))
        finish = lambda: _store_back(output, into)
        return self._work(request, "all_gather_into_tensor", number, [source, into], [output], opts, finish)

    all_gather_single = _allgather_base

    def allgather_coalesced(self, output_lists: list[list[Tensor]], input_list: list[Tensor], opts: Any = None) -> Work:
        """Gather several tensors from each rank: `output_lists[rank]` becomes the list of that rank."""
        if len(output_lists) != self._size:
            raise RuntimeError("output lists should be equal to world size")
        for of_rank in output_lists:
            if len(of_rank) != len(input_list):
                raise RuntimeError(
                    f"ProcessGroup::allgather_coalesced: invalid output size: (expected length {len(input_list)}, "
                    f"got {len(of_rank)})"
                )
        works = []
        for at, tensor in enumerate(input_list):
            works.append(self.allgather([[of_rank[at] for of_rank in output_lists]], [tensor], opts))
        return _join(works, self)

    def allgather_into_tensor_coalesced(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Work:
        """Gather several tensors, each into one tensor."""
        return _join([self._allgather_base(out, into, opts) for out, into in zip(outputs, inputs, strict=True)], self)

    def gather(self, output_tensors: Any, input_tensors: Any, opts: Any = None, *_: Any) -> Work:
        """Gather the tensors of all ranks into a list, on the root rank."""
        tensor = _only(input_tensors, "gather", "input ")
        if not isinstance(opts, GatherOptions):
            opts = GatherOptions(rootRank=opts or 0)
        self._check_root(opts.rootRank, "gather")
        outputs: Sequence[Tensor] = []
        if self._rank == opts.rootRank:
            outputs = _only_list(
                output_tensors, f"gather: requires a single-element output list containing a list with {self._size} tensors."
            )
            self._check_list(outputs, tensor, "gather", "output")
        elif output_tensors:
            raise RuntimeError("ProcessGroup::gather: requires empty output on non-root")
        _check_dense(tensor, "gather")
        number = self._begin("gather", [tensor])
        source = _source(tensor)
        flat = _core.empty((len(outputs), *tensor.shape), dtype=tensor.dtype)

        def finish() -> None:
            for out, part in zip(outputs, flat, strict=True):
                _store_back(out, part)

        request = self._communicator.gather(source.data_ptr(), flat.data_ptr(), _bytes(source), opts.rootRank)
        return self._work(request, "gather", number, [source, flat], list(outputs), opts, finish)

    def scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None, *_: Any) -> Work:
        """Distribute the tensors of the root rank's list, one to each rank."""
        output = _only(output_tensors, "scatter", "output ")
        if not isinstance(opts, ScatterOptions):
            opts = ScatterOptions(rootRank=opts or 0)
        self._check_root(opts.rootRank, "scatter")
        inputs: Sequence[Tensor] = []
        if self._rank == opts.rootRank:
            inputs = _only_list(
                input_tensors, f"scatter: requires a single-element input list containing a list with {self._size} tensors."
            )
            self._check_list(inputs, output, "scatter", "input")
        elif input_tensors:
            raise RuntimeError("ProcessGroup::scatter: requires empty input on non-root")
        _check_dense(output, "scatter")
        number = self._begin("scatter", [output])
        into = _destination(output)
        with no_grad():
            flat = _core.stack([_source(tensor).detach() for tensor in inputs]) if inputs else _core.empty(0)
        request = self._communicator.scatter(flat.data_ptr(), into.data_ptr(), _bytes(into), opts.rootRank)
        return self._work(request, "scatter", number, [flat, into], [output], opts, lambda: _store_back(output, into))

    def alltoall_base(
        self, output: Tensor, input: Tensor, output_split_sizes: list[int], input_split_sizes: list[int], opts: Any = None
    ) -> Work:
        """Send a part of a tensor to each rank."""
        _check_dense(output, "all_to_all_single")
        _check_dense(input, "all_to_all_single")
        if output.dtype != input.dtype:
            raise RuntimeError("output tensor must have the same type as input tensor")
        send = self._split_bytes(input, input_split_sizes)
        receive = self._split_bytes(output, output_split_sizes)
        number = self._begin("all_to_all_single", [] if output_split_sizes or input_split_sizes else [input])
        source, into = _source(input), _destination(output)
        request = self._communicator.all_to_all(source.data_ptr(), send, into.data_ptr(), receive)
        finish = lambda: _store_back(output, into)
        return self._work(request, "all_to_all_single", number, [source, into], [output], opts, finish)

    all_to_all_single = alltoall_base

    def _split_bytes(self, tensor: Tensor, sizes: Sequence[int]) -> list[int]:
        if not sizes:
            if tensor.dim() == 0 or tensor.shape[0] % self._size != 0:
                raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
            sizes = [tensor.shape[0] // self._size] * self._size
        if len(sizes) != self._size:
            raise RuntimeError("Number of tensor splits not equal to group size")
        if sum(sizes) != tensor.shape[0]:
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
        row = _bytes(tensor) // tensor.shape[0] if tensor.shape[0] else 0
        return [size * row for size in sizes]

    def alltoall(self, output_tensors: list[Tensor], input_tensors: list[Tensor], opts: Any = None) -> Work:
        """Send a tensor to each rank, and receive one from each."""
        for tensors in (output_tensors, input_tensors):
            if len(tensors) != self._size:
                raise RuntimeError("ProcessGroup::alltoall: tensor lists must have one tensor for each rank")
            for tensor in tensors:
                _check_dense(tensor, "all_to_all")
        number = self._begin("all_to_all", [])
        with no_grad():
            flat = _core.cat([_source(tensor).detach().reshape(-1) for tensor in input_tensors])
        into = _core.empty(sum(t.numel() for t in output_tensors), dtype=output_tensors[0].dtype)
        request = self._communicator.all_to_all(
            flat.data_ptr(), [_bytes(t) for t in input_tensors], into.data_ptr(), [_bytes(t) for t in output_tensors]
        )
        finish = lambda: _scatter_flat(into, output_tensors)
        return self._work(request, "all_to_all", number, [flat, into], list(output_tensors), opts, finish)

    # Messages between two ranks.

    def send(self, tensors: Any, dstRank: int, tag: int = 0) -> Work:
        """Send a tensor to a rank."""
        tensor = _only(tensors, "send")
        _check_dense(tensor, "send")
        self._check_root(dstRank, "send", "destination rank")
        number = self._begin_message("send")
        source = _source(tensor)
        request = self._communicator.send(source.data_ptr(), _bytes(source), dstRank, _checked_tag(tag))
        return self._work(request, "send", number, [source], [tensor])

    def recv(self, tensors: Any, srcRank: int, tag: int = 0) -> Work:
        """Receive a tensor from a rank."""
        self._check_root(srcRank, "recv", "source rank")
        return self._receive(_only(tensors, "recv"), srcRank, tag, "recv")

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        """Receive a tensor from any rank."""
        return self._receive(_only(tensors, "recv_anysource"), None, tag, "recv_anysource")

    def _receive(self, tensor: Tensor, peer: int | None, tag: int, name: str) -> Work:
        _check_dense(tensor, name)
        number = self._begin_message(name)
        into = _destination(tensor)
        request = self._communicator.receive(into.data_ptr(), _bytes(into), peer, _checked_tag(tag))
        return self._work(request, name, number, [into], [tensor], None, lambda: _store_back(tensor, into))

    def _begin_message(self, name: str) -> int:
        """Messages are counted apart: only two ranks take part."""
        number, checks = self._number, self._checks_calls
        self._checks_calls = False
        try:
            self._begin(name, [])
        finally:
            self._number, self._checks_calls = number, checks
        self._messages += 1
        return self._messages

    def barrier(self, opts: Any = None, **_: Any) -> Work:
        """Wait until all ranks have called this."""
        number = self._begin("barrier", [])
        return self._work(self._communicator.barrier(), "barrier", number, [], [], opts)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Wait until all ranks have called this, and name those that do not in time."""
        limit = self._timeout if timeout is None else timeout
        seconds = limit.total_seconds()
        deadline = time.monotonic() + seconds
        self._begin_message("monitored_barrier")
        self._barriers += 1
        tag = _BARRIER_TAG + self._barriers % 1024
        token = _core.zeros(1, dtype=_core.uint8)
        if self._rank != 0:
            answer = _core.zeros(1, dtype=_core.uint8)
            works = [self._message(token, 0, tag, True), self._message(answer, 0, tag, False)]
            if self._wait_all(works, deadline):
                _withdraw(works)
                raise RuntimeError(
                    f"Rank {self._rank} successfully reached monitoredBarrier, but received errors while waiting for send/recv "
                    "from rank 0. Please check rank 0 logs for faulty rank."
                )
            return
        late = []
        answers = _core.zeros(self._size, dtype=_core.uint8)
        works = [self._message(answers[rank : rank + 1], rank, tag, False) for rank in range(1, self._size)]
        begin = time.monotonic()
        for rank, work in enumerate(works, 1):
            if self._wait_all([work], deadline):
                late.append(rank)
                if not wait_all_ranks:
                    break
        if late:
            _withdraw(works)
            waited = round((time.monotonic() - begin) * 1000) if seconds == 0 else round(seconds * 1000)
            if wait_all_ranks:
                names = ", ".join(map(str, late))
                raise RuntimeError(f"Ranks {names} failed to pass monitoredBarrier in {waited} ms")
            raise RuntimeError(f"Rank {late[0]} failed to pass monitoredBarrier in {waited} ms")
        for work in [self._message(token, rank, tag, True) for rank in range(1, self._size)]:
            work.wait(limit)

    def _message(self, tensor: Tensor, peer: int, tag: int, sends: bool) -> Work:
        move = self._communicator.send if sends else self._communicator.receive
        request = move(tensor.data_ptr(), _bytes(tensor), peer, tag)
        return self._work(request, "monitored_barrier", 0, [tensor], [tensor])

    def _wait_all(self, works: list[Work], deadline: float) -> list[Work]:
        """Waits until the deadline; the works that are not done then."""
        while (left := [work for work in works if not work._poll()]) and time.monotonic() < deadline:
            if failure := self._failure():
                raise RuntimeError(f"{failure} during monitored_barrier")
            time.sleep(5e-4)
        return left

    # Checks.

    def _check_root(self, rank: int, name: str, what: str = "root rank") -> None:
        if not isinstance(rank, int) or not 0 <= rank < self._size:
            raise RuntimeError(f"ProcessGroup::{name}: invalid {what}: {rank}")

    def _check_list(self, tensors: Sequence[Any], like: Tensor, name: str, which: str) -> None:
        _check_dense(like, name)
        if len(tensors) != self._size:
            raise RuntimeError(
                f"ProcessGroup::{name}: Incorrect {which} list size {len(tensors)}. {which.capitalize()} list size should be "
                f"{self._size}, same as size of the process group."
            )
        for at, tensor in enumerate(tensors):
            _check_dense(tensor, name)
            if tensor.dtype != like.dtype:
                raise RuntimeError(
                    f"ProcessGroup::{name}: invalid tensor type at index {at} (expected {like.dtype}, got {tensor.dtype})"
                )
            if tensor.numel() != like.numel():
                expected, got = (str(tuple(t.shape)).replace(",)", ")") for t in (like, tensor))
                raise RuntimeError(f"ProcessGroup::{name}: invalid tensor size at index {at} (expected {expected}, got {got})")

    def _gather_bytes(self, data: bytes) -> list[bytes]:
        """The bytes of every rank, which must all have come already."""
        lengths = _core.zeros(self._size, dtype=_core.int64)
        self._gather_now(make_tensor([len(data)]), lengths)
        room = int(lengths.max())
        sent, received = _core.zeros(room, dtype=_core.uint8), _core.zeros(self._size, room, dtype=_core.uint8)
        sent[: len(data)] = frombuffer(bytearray(data), dtype=_core.uint8)
        self._gather_now(sent, received)
        return [_core.to_bytes(part[:length]) for part, length in zip(received, lengths.tolist(), strict=True)]

    def _gather_now(self, sent: Tensor, received: Tensor) -> None:
        request = self._communicator.all_gather(sent.data_ptr(), received.data_ptr(), _bytes(sent))
        Work(request, group=self, name="a check", number=self._number, tensors=[sent, received], timeout=self._timeout).wait()

    # Start and end.

    def _start_coalescing(self, device: Any = None) -> None:
        self._coalesced = []

    def _end_coalescing(self, device: Any = None) -> Work:
        works, self._coalesced = self._coalesced or [], None
        return _join(works, self)

    def _get_sequence_number_for_group(self) -> int:
        return self._number

    def _set_sequence_number_for_group(self) -> None:
        """The numbers of all ranks begin at zero."""

    def _wait_for_pending_works(self) -> None:
        """Works need no more than their own waits."""

    def shutdown(self) -> None:
        """Free the communicators, unless other ranks are lost."""
        if not self._freed:
            self._freed = True
            if self._error is None and engine.failure() is None and not engine.was_forked():
                self._communicator.free()


# Tags of monitored barriers; users' tags are smaller.
_BARRIER_TAG = 1 << 20


def _checked_tag(tag: int) -> int:
    if not isinstance(tag, int) or not 0 <= tag < _BARRIER_TAG:
        raise RuntimeError(f"invalid tag {tag}: tags lie between 0 and {_BARRIER_TAG - 1}")
    return tag


def _withdraw(works: list[Work]) -> None:
    for work in works:
        if not work._poll():
            work._request.cancel()


def _only(tensors: Any, name: str, which: str = "") -> Tensor:
    """The single tensor of a call: a list of several means several devices, of which there is one."""
    if isinstance(tensors, Tensor):
        return tensors
    if not isinstance(tensors, (list, tuple)) or len(tensors) != 1:
        count = len(tensors) if isinstance(tensors, (list, tuple)) else type(tensors).__name__
        raise RuntimeError(f"ProcessGroup::{name}: requires a single-element {which}tensor list, but got {count}")
    return tensors[0]


def _only_list(lists: Sequence[Any], complaint: str) -> Sequence[Tensor]:
    """The tensors of a call, one for each rank: a list of them, or that list alone in another one."""
    if not lists or (isinstance(lists[0], (list, tuple)) and len(lists) != 1):
        raise RuntimeError(f"ProcessGroup::{complaint}")
    tensors: Sequence[Tensor] = lists[0] if isinstance(lists[0], (list, tuple)) else lists
    return tensors


def _check_root_tensor(opts: Any, name: str) -> None:
    if opts.rootTensor != 0:
        raise RuntimeError(f"ProcessGroup::{name}: invalid root tensor: {opts.rootTensor}")


def _options(opts: Any, kind: type, first: str, timeout: timedelta | None) -> Any:
    """Options as an object: a method may also be called with the first of them alone."""
    if not hasattr(opts, first):
        opts = kind(**({} if opts is None else {first: opts}))
    if timeout is not None:
        opts.timeout = timeout
    return opts


def _scatter_flat(flat: Tensor, tensors: Sequence[Tensor]) -> None:
    """Copies a flat tensor into tensors, one after another."""
    at = 0
    for tensor in tensors:
        count = tensor.numel()
        _store_back(tensor, flat[at : at + count].reshape(tensor.shape))
        at += count


class _Joined(Work):
    """Several works as one."""

    def __init__(self, works: list[Work], group: Any) -> None:
        super().__init__(group=group, name="coalesced", result=[x for work in works for x in (work._result or [])])
        self._works = works

    def _poll(self) -> bool:
        if self._done:
            return True
        if not all(work._poll() for work in self._works):
            return False
        with self._lock:
            if not self._done:
                self._end(next((work._error for work in self._works if work._error is not None), None))
        return True

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Waits for all of them."""
        for work in self._works:
            work.wait(timeout)
        self._poll()
        return True


def _join(works: list[Work], group: Any) -> Work:
    return works[0] if len(works) == 1 else _Joined(works, group)
