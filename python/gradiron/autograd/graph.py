"""The graph of recorded operators: nodes, gradient edges, and hooks for saved tensors."""

from __future__ import annotations

import abc
import contextlib
import threading
from collections import defaultdict
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary

from .. import _core
from .._core import Tensor, increment_version, queue_callback
from .function import BackwardCFunction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "node_creation_hook",
    "queue_callback",
    "region_activation_memory_budget",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
]


class Node(abc.ABC):
    """Base class of the nodes of the graph, such as `tensor.grad_fn`.

    Examples:
        >>> x = torch.ones(2, requires_grad=True)
        >>> y = x * 2
        >>> isinstance(y.grad_fn, torch.autograd.graph.Node), y.grad_fn.name()
        (True, 'MulBackward0')
    """

    @abc.abstractmethod
    def name(self) -> str:
        """Return the name, such as `"MulBackward0"`."""

    @property
    @abc.abstractmethod
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that the gradients flow to, one per input, each with an output number."""

    @property
    @abc.abstractmethod
    def metadata(self) -> dict[Any, Any]:
        """A dict for notes of the user's."""

    @abc.abstractmethod
    def _sequence_nr(self) -> int: ...

    @property
    @abc.abstractmethod
    def _input_metadata(self) -> tuple[Any, ...]: ...

    @abc.abstractmethod
    def register_hook(self, fn: Callable[..., Any]) -> Any:
        """Register `fn(grad_inputs, grad_outputs)` to run after the node; its result replaces `grad_inputs`."""

    @abc.abstractmethod
    def register_prehook(self, fn: Callable[..., Any]) -> Any:
        """Register `fn(grad_outputs)` to run before the node; its result replaces `grad_outputs`."""


Node.register(_core.Node)
Node.register(BackwardCFunction)


class GradientEdge(NamedTuple):
    """An edge of the graph, along which the gradient of one tensor flows.

    Args:
        node: node that receives the gradient.
        output_nr: number of the node's output that the gradient belongs to.
        ownership_token: object that keeps the node alive, if needed.

    Examples:
        >>> y = torch.ones(2, requires_grad=True) * 2
        >>> torch.autograd.graph.get_gradient_edge(y).output_nr
        0
    """

    node: Any
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return the edge of the graph that the gradient of a tensor flows along.

    `backward` and `grad` take edges in place of tensors, so that the tensors themselves can be freed.

    Args:
        tensor: tensor that requires a gradient.

    Examples:
        >>> x = torch.ones(2, requires_grad=True)
        >>> edge = torch.autograd.graph.get_gradient_edge(x)
        >>> torch.autograd.grad((x * 2).sum(), edge)
        (tensor([2., 2.]),)
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*_edge_of(tensor))


def _edge_of(tensor: Tensor) -> tuple[Any, int]:
    """Node and output, which a view that was made unrecorded seems to have and has not."""
    tensor.grad_fn  # noqa: B018  A view that cannot follow its base's writes is refused.
    if not tensor.requires_grad or not _core.has_edge(tensor):
        raise AssertionError("Expected gradient function to be set")
    return _core.gradient_edge(tensor)


class saved_tensors_hooks:
    """Pack and unpack the tensors that operators inside save for the backward pass.

    Args:
        pack_hook: function of a tensor to save; its result is kept instead.
        unpack_hook: function that returns the tensor from the result of `pack_hook`.

    Examples:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.autograd.graph.saved_tensors_hooks(lambda x: x.half(), lambda x: x.float()):
        ...     y = x * x
        >>> y.sum().backward()
        >>> x.grad
        tensor([2., 2.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _core.push_saved_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *args: object) -> None:
        _core.pop_saved_hooks()


class node_creation_hook:
    """Call a hook with each node that this thread adds to the graph in a `with` block.

    The node of a leaf counts as new whenever it joins a graph that it was not part of.

    Args:
        hook: function of the complete node.

    Examples:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.autograd.graph.node_creation_hook(lambda node: print(node.name())):
        ...     y = x.exp().sum()
        torch::autograd::AccumulateGrad
        ExpBackward0
        SumBackward0
    """

    def __init__(self, hook: Callable[[Node], None]) -> None:
        self.hook = hook

    def __enter__(self) -> None:
        _core.push_creation_hook(self.hook)

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        try:
            _core.pop_creation_hook()
        except BaseException:
            # The error raised inside the block goes first.
            if kind is None:
                raise


class save_on_cpu(saved_tensors_hooks):
    """Move the tensors that operators inside save to the CPU, and back in the backward pass.

    It saves memory of the GPU.

    Args:
        pin_memory: copy back without blocking. Default: `False`
        device_type: accepted for compatibility. Default: `"cuda"`

    Examples:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.autograd.graph.save_on_cpu():
        ...     y = (x * x).sum()
        >>> y.backward()
        >>> x.grad
        tensor([2., 2.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple[Any, Tensor]:
            # Detached, so that what an operator keeps of its own result does not keep the operator.
            return tensor.device, tensor.detach().cpu()

        def unpack(packed: tuple[Any, Tensor]) -> Tensor:
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Forbid hooks for saved tensors in a `with` block.

    Args:
        error_message: message of the error that setting such hooks raises.

    Examples:
        >>> with torch.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
        ...     with torch.autograd.graph.save_on_cpu():
        ...         pass
        Traceback (most recent call last):
        RuntimeError: no hooks here
    """
    before = _core.saved_hooks_disabled()
    try:
        _core.disable_saved_hooks(error_message)
        yield
    finally:
        _core.disable_saved_hooks(before)


class _MultiHandle:
    """Takes several hooks off again."""

    def __init__(self, handles: tuple[Any, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _MultiHandle:
        return self

    def __exit__(self, *args: object) -> None:
        self.remove()


def _node_of(place: Any) -> Any:
    if isinstance(place, GradientEdge):
        return place.node
    return _edge_of(place)[0]


def _must_be_bool(enabled: Any) -> None:
    if not isinstance(enabled, bool):
        raise RuntimeError(f"enabled must be a bool, but got {type(enabled).__name__}")


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Accept a flag about streams of captured graphs, which has no effect.

    Args:
        enabled: value of the flag.

    Examples:
        >>> torch.autograd.graph.set_override_stale_capture_stream(True)
    """
    _must_be_bool(enabled)


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Accept a flag about the streams of gradient accumulation, which has no effect.

    All work of a GPU is in one stream.

    Args:
        enabled: value of the flag.

    Examples:
        >>> torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(True)
    """
    _must_be_bool(enabled)


def region_activation_memory_budget(budget: float) -> contextlib.AbstractContextManager[None]:
    """Limit what a compiled region saves, which is not supported and always raises.

    Args:
        budget: share between 0 and 1.

    Raises:
        RuntimeError: always, as PyTorch does outside of compiled code.

    Examples:
        >>> torch.autograd.graph.region_activation_memory_budget(0.5)
        Traceback (most recent call last):
        RuntimeError: can only be used inside a torch.compile region
    """
    name = "torch.autograd.graph.region_activation_memory_budget"
    if isinstance(budget, bool) or not isinstance(budget, (int, float)):
        raise TypeError(f"{name}: expects a float, got {type(budget).__name__}")
    if not 0.0 <= budget <= 1.0:
        raise ValueError(f"{name}: must be in [0, 1], got {budget}")
    raise RuntimeError(f"{name} can only be used inside a torch.compile region; it has no effect in eager mode.")


class _Gathered:
    """The gradients that one backward has brought so far."""

    def __init__(self, nodes: list[Any]) -> None:
        self.grads: list[Tensor | None] = [None] * len(nodes)
        self.missing = sum(map(_core.will_execute, nodes))


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all") -> _MultiHandle:
    """Register a hook that runs once per backward pass, for several tensors together.

    Args:
        tensors: tensors that require gradients.
        fn: function of the list of all gradients, or of a single gradient in mode `"any"`.
        mode: `"all"` runs the hook when all gradients are there, `"any"` at the first of them. Default: `"all"`

    Returns:
        A handle whose `remove()` removes the hook.

    Examples:
        >>> a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
        >>> handle = torch.autograd.graph.register_multi_grad_hook((a, b), lambda grads: print(grads))
        >>> (2 * a + 3 * b).backward()
        [tensor([2.]), tensor([3.])]
    """
    modes = ("all", "any")
    if mode not in modes:
        raise ValueError(f"Expects mode to be one of {modes} but got {mode}")
    lock = threading.Lock()

    if mode == "any":
        seen: set[int] = set()

        def first(grad: Tensor) -> None:
            backward = _core.current_graph_task_id()
            with lock:
                if backward in seen:
                    return
                seen.add(backward)
            # The number of a backward pass is unique, so it can be dropped at the end.
            queue_callback(lambda: seen.discard(backward))
            fn(grad)

        return _MultiHandle(tuple(t.register_hook(first) for t in tensors if t.requires_grad))

    # Names instead of nodes: the hooks belong to the nodes and must not keep them alive.
    nodes = [_core.node_name(_node_of(tensor)) for tensor in tensors]
    gathered: dict[int, _Gathered] = {}

    def hook_for(position: int) -> Callable[[Tensor], None]:
        def hook(grad: Tensor) -> None:
            backward = _core.current_graph_task_id()
            with lock:
                state = gathered.get(backward)
                if state is None:
                    state = _Gathered(nodes)
                    # As PyTorch counts, where a backward starts from one node, that is none of those which it reaches.
                    if state.missing == 0:
                        return
                    gathered[backward] = state
                state.grads[position] = grad
                state.missing -= 1
                complete = state.missing == 0
                if complete:
                    del gathered[backward]
            if complete:
                fn(state.grads)

        return hook

    return _MultiHandle(tuple(t.register_hook(hook_for(i)) for i, t in enumerate(tensors)))


class _Handle:
    """Stands in the graph for a tensor that it saved."""

    __slots__ = ("__weakref__",)


class _AllowMutationOnSavedContext:
    """What was saved inside `allow_mutation_on_saved_tensors`, and the copies of what was written over since."""

    def __init__(self) -> None:
        self.cloned: WeakKeyDictionary[_Handle, Tensor] = WeakKeyDictionary()
        self.original: WeakKeyDictionary[_Handle, Tensor] = WeakKeyDictionary()
        self.tid_to_weakhandle: WeakValueDictionary[tuple[int, ...], _Handle] = WeakValueDictionary()
        self.sid_to_tid: dict[tuple[int, int], set[tuple[int, ...]]] = defaultdict(set)

    def clear(self) -> None:
        self.cloned.clear()
        self.original.clear()
        self.tid_to_weakhandle.clear()
        self.sid_to_tid.clear()

    def _keep(self, tensor: Tensor) -> _Handle:
        memory = (tensor.untyped_storage().data_ptr(), tensor._version)
        identity = (id(tensor), *memory)
        self.sid_to_tid[memory].add(identity)
        handle = self.tid_to_weakhandle.get(identity)
        if handle is None:
            handle = self.tid_to_weakhandle[identity] = _Handle()
            self.original[handle] = tensor
        return handle

    def _before_write(self, target: Tensor) -> None:
        memory = (target.untyped_storage().data_ptr(), target._version)
        for identity in self.sid_to_tid.pop(memory, ()):
            handle = self.tid_to_weakhandle.get(identity)
            if handle is not None and handle in self.original:
                self.cloned[handle] = self.original.pop(handle).detach().clone()

    def _give(self, handle: _Handle) -> Tensor:
        kept = self.cloned if handle in self.cloned else self.original
        if not _mutation_allowed or handle not in kept:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
                "in which the graph was originally recorded."
            )
        return kept[handle]


_mutation_allowed = False


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutationOnSavedContext]:
    """Allow tensors that the graph has saved to be modified in place, in a `with` block.

    The graph gets a copy just before the write. The backward pass must run inside the block, too.

    Examples:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
        ...     y = x * 2
        ...     z = (y**2).sum()
        ...     _ = y.zero_()
        ...     z.backward()
        >>> x.grad
        tensor([8., 8.])
    """
    global _mutation_allowed

    if _mutation_allowed:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _AllowMutationOnSavedContext()
    with saved_tensors_hooks(context._keep, context._give):
        _mutation_allowed = True
        _core.watch_writes(context._before_write)
        try:
            yield context
        finally:
            _core.watch_writes(None)
            context.clear()
            _mutation_allowed = False
