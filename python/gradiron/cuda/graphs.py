"""Graphs: the kernels of a piece of a program, captured once and replayed without Python.

They work on tensors of any device, the CPU's too. A replay runs the same kernels on the same memory: new inputs are copied
into the tensors that the capture used, and results are read from the tensors that it made.
"""

from __future__ import annotations

import gc
import itertools
import typing
from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from ..amp.autocast_mode import is_autocast_cache_enabled, is_autocast_enabled
from ..autograd import Function, grad
from ..utils._pytree import tree_flatten, tree_unflatten

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]

_pools = itertools.count(1)


def is_current_stream_capturing() -> bool:
    """Return whether this thread is capturing a graph.

    Examples:
        >>> torch.cuda.is_current_stream_capturing()
        False
    """
    return bool(_core.is_capturing())


def graph_pool_handle() -> tuple[int, int]:
    """Return a token for the memory of several graphs. Each graph has memory of its own here, so it has no effect.

    Examples:
        >>> len(torch.cuda.graph_pool_handle())
        2
    """
    return (0, next(_pools))


class CUDAGraph:
    """Captured kernels, which `replay` runs again on the same memory.

    Nothing is computed while a graph is captured: only replays do that. What Python does is not captured, so control flow is
    what it was during the capture. Reading elements (`item`, `nonzero`, printing) is refused during a capture.

    Args:
        keep_graph: ignored; a graph can be replayed as soon as its capture has ended.

    Examples:
        >>> x = torch.ones(3)
        >>> g = torch.cuda.CUDAGraph()
        >>> with torch.cuda.graph(g):
        ...     y = (x * 2).exp() + 1
        >>> _ = x.copy_(torch.tensor([0.0, 1.0, 2.0]))
        >>> g.replay()
        >>> y
        tensor([ 2.0000,  8.3891, 55.5982])
    """

    def __init__(self, keep_graph: bool = False) -> None:
        self._captured: Any = None
        self._pool = graph_pool_handle()
        self._keep_graph = keep_graph

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Begin to capture the kernels of this thread. `torch.cuda.graph` is the usual way.

        Args:
            pool: a token of `graph_pool_handle` or `CUDAGraph.pool`.
            capture_error_mode: `"global"`, `"thread_local"` or `"relaxed"`; other threads are never affected here.
        """
        if capture_error_mode not in ("global", "thread_local", "relaxed"):
            raise RuntimeError(
                "Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got " + capture_error_mode
            )
        if self._captured is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance."
            )
        if pool is not None:
            self._pool = pool
        _core.begin_capture(False)

    def capture_end(self) -> None:
        """End the capture."""
        self._captured = _core.end_capture()

    def instantiate(self) -> None:
        """Prepare the graph for replays, which needs nothing."""
        self._need_graph("instantiate")

    def replay(self) -> None:
        """Run the captured kernels again."""
        self._need_graph("replay")
        self._captured.replay()

    def reset(self) -> None:
        """Free the graph and its memory."""
        self._captured = None

    def pool(self) -> Any:
        """Return a token for the memory of this graph."""
        return self._pool

    def _need_graph(self, method: str) -> None:
        if self._captured is None:
            raise RuntimeError(f"Called CUDAGraph::{method} without a preceding successful capture.")


class graph:
    """Capture the kernels of a `with` block into a graph.

    Args:
        cuda_graph: the graph.
        pool: a token for shared memory, which has no effect.
        stream: ignored.
        capture_error_mode: see `CUDAGraph.capture_begin`.

    Raises:
        RuntimeError: if the block reads elements on the host, or uses an operator that cannot be captured.

    Examples:
        >>> model, x = torch.nn.Linear(4, 2), torch.zeros(3, 4)
        >>> g = torch.cuda.CUDAGraph()
        >>> with torch.cuda.graph(g), torch.no_grad():
        ...     y = model(x)
        >>> g.replay()
        >>> torch.equal(y, model(x))
        True
    """

    def __init__(
        self, cuda_graph: CUDAGraph, pool: Any = None, stream: Any = None, capture_error_mode: str = "global"
    ) -> None:
        self.cuda_graph = cuda_graph
        self.pool = pool
        self.stream = stream
        self.capture_error_mode = capture_error_mode

    def __enter__(self) -> None:
        # What dead cycles hold would otherwise be held by the graph.
        gc.collect()
        self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is not None:
            _core.discard_capture()
            return
        self.cuda_graph.capture_end()


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Any = None,
) -> Any:
    """Return versions of functions or modules whose forward and backward are graphs.

    They can be called and differentiated like the originals, with tensors of the shapes of the samples. The results are
    overwritten by the next call. A module is changed in place, and runs as a graph while it is in the mode (`train` or
    `eval`) that it had here.

    Args:
        callables: a function or module, or a tuple of them.
        sample_args: a tuple of tensors, or a tuple of one for each callable. They become the graph's inputs.
        num_warmup_iters: number of calls before the capture.
        allow_unused_input: whether inputs that no result depends on are permitted.
        pool: a token for shared memory, which has no effect.

    Raises:
        RuntimeError: if autocast caches weights, if a module has hooks, or if a buffer requires gradients.

    Examples:
        >>> f = torch.cuda.make_graphed_callables(lambda x: (x * x).sum(), (torch.ones(3, requires_grad=True),))
        >>> x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        >>> f(x).backward()
        >>> x.grad
        tensor([2., 4., 6.])
    """
    if is_autocast_enabled() and is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables does not support the autocast caching. Please set `cache_enabled=False`."
        )
    if isinstance(callables, tuple):
        graphed = [_Graphed(f, args) for f, args in zip(callables, typing.cast("tuple[Any, ...]", sample_args), strict=True)]
    else:
        graphed = [_Graphed(callables, sample_args)]
    for one in graphed:
        one.warm_up(num_warmup_iters, allow_unused_input)
    # As the graphs will run: all forwards, and the backwards from the last to the first.
    for one in graphed:
        one.capture_forward(pool)
    for one in reversed(graphed):
        one.capture_backward(pool, allow_unused_input)
    made = [one.replace() for one in graphed]
    return tuple(made) if isinstance(callables, tuple) else made[0]


def _is_module(f: Any) -> bool:
    from ..nn import Module

    return isinstance(f, Module)


def _wanting(tensors: Sequence[Any]) -> tuple[Tensor, ...]:
    return tuple(tensor for tensor in tensors if tensor is not None and tensor.requires_grad)


class _Graphed:
    """A function or module, and the graphs of its forward and backward."""

    def __init__(self, f: Any, args: Any) -> None:
        if _is_module(f):
            if f._backward_hooks or f._forward_hooks or f._forward_pre_hooks:
                raise RuntimeError(
                    "Modules must not have hooks registered at the time they are passed. However, registering hooks "
                    "on modules after passing them through make_graphed_callables is allowed."
                )
            if any(buffer.requires_grad for buffer in f.buffers()):
                raise RuntimeError(
                    "In any :class:`~torch.nn.Module` passed to :func:`~make_graphed_callables`, only parameters may be "
                    "trainable. All buffers must have ``requires_grad=False``."
                )
        self.f = f
        self.args = args
        flat, self.arguments = tree_flatten(args)
        if not all(isinstance(arg, Tensor) for arg in flat):
            raise TypeError(
                "In the beta API, sample_args for each callable must contain only Tensors. Other types are not allowed."
            )
        self.inputs: tuple[Tensor, ...] = (*flat, *(f.parameters() if _is_module(f) else ()))
        self.count = len(flat)
        self.outputs: tuple[Any, ...] = ()
        self.forward_graph, self.backward_graph = CUDAGraph(), CUDAGraph()
        self.grad_outputs: tuple[Any, ...] = ()
        self.grad_inputs: tuple[Any, ...] = ()

    def warm_up(self, times: int, allow_unused: bool) -> None:
        for _ in range(times):
            wanting = _wanting(tree_flatten(self.f(*self.args))[0])
            if wanting:
                grad(wanting, _wanting(self.inputs), [t.detach().clone() for t in wanting], allow_unused=allow_unused)

    def capture_forward(self, pool: Any) -> None:
        with graph(self.forward_graph, pool=pool):
            outputs = self.f(*self.args)
        flat, self.results = tree_flatten(outputs)
        self.outputs = tuple(flat)

    def capture_backward(self, pool: Any, allow_unused: bool) -> None:
        self.grad_outputs = tuple(_core.zeros_like(t) if t.requires_grad else None for t in self.outputs)
        given = tuple(g for g in self.grad_outputs if g is not None)
        if not given:
            return
        with graph(self.backward_graph, pool=pool):
            grads = iter(grad(_wanting(self.outputs), _wanting(self.inputs), given, allow_unused=allow_unused))
        self.grad_inputs = tuple(next(grads) if t.requires_grad else None for t in self.inputs)

    def replace(self) -> Any:
        """The callable that replays the graphs; a module, with its forward replaced."""
        graphed = self.function()
        if not _is_module(self.f):
            return graphed
        module, original, training = self.f, self.f.forward, self.f.training

        def forward(*args: Any) -> Any:
            return graphed(*args) if module.training == training else original(*args)

        module.forward = forward
        return module

    def function(self) -> Callable[..., Any]:
        own = self

        class Graphed(Function):
            @staticmethod
            def forward(ctx: Any, *inputs: Any) -> Any:
                for kept, given in zip(own.inputs[: own.count], inputs, strict=False):
                    if kept.data_ptr() != given.data_ptr():
                        kept.detach().copy_(given)
                own.forward_graph.replay()
                return tuple(output.detach() for output in own.outputs)

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                for kept, given in zip(own.grad_outputs, grads, strict=True):
                    if kept is not None and kept.data_ptr() != given.data_ptr():
                        kept.copy_(given)
                own.backward_graph.replay()
                return tuple(None if g is None else g.detach() for g in own.grad_inputs)

        def graphed(*args: Any) -> Any:
            flat, arguments = tree_flatten(args)
            if arguments != own.arguments:
                raise RuntimeError("a graphed callable must be called with arguments like its samples")
            outputs = Graphed.apply(*flat, *own.inputs[own.count :])
            return tree_unflatten(outputs, own.results)

        return graphed
