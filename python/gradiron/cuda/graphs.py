"""Graphs: the kernels of a piece of a program, captured once and replayed without Python.

They work on tensors of any device, the CPU's too. A replay runs the same kernels on the same memory: new inputs are copied
into the tensors that the capture used, and results are read from the tensors that it made.
"""

from __future__ import annotations

import gc
import importlib
import itertools
from typing import TYPE_CHECKING, Any

from .. import _core

if TYPE_CHECKING:
    from ..nn._graphed_callables import make_graphed_callables as make_graphed_callables

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
        keep_graph: ignored; a graph can be replayed as soon as its capture has ended. Default: `False`

    Examples:
        >>> x = torch.ones(3)
        >>> g = torch.cuda.CUDAGraph()
        >>> with torch.cuda.graph(g):
        ...     y = (x * 2).exp() + 1
        >>> _ = x.copy_(torch.tensor([0.0, 1.0, 0.5]))
        >>> g.replay()
        >>> y
        tensor([2.0000, 8.3891, 3.7183])
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
                Default: `"global"`
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
        capture_error_mode: see `CUDAGraph.capture_begin`. Default: `"global"`

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

    def __init__(self, cuda_graph: CUDAGraph, pool: Any = None, stream: Any = None, capture_error_mode: str = "global") -> None:
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


def __getattr__(name: str) -> Any:
    if name == "make_graphed_callables":
        return importlib.import_module("..nn._graphed_callables", __package__).make_graphed_callables
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
