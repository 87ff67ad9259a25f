"""`torch.cuda.make_graphed_callables`: functions and modules whose forward and backward are graphs."""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from ..amp.autocast_mode import is_autocast_cache_enabled, is_autocast_enabled
from ..autograd import Function, grad
from ..cuda.graphs import CUDAGraph, graph
from ..utils._pytree import tree_flatten, tree_unflatten
from .modules.module import Module


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
        num_warmup_iters: number of calls before the capture. Default: 3
        allow_unused_input: whether inputs that no result depends on are permitted. Default: `False`
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
        raise RuntimeError("make_graphed_callables does not support the autocast caching. Please set `cache_enabled=False`.")
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


def _wanting(tensors: Sequence[Any]) -> tuple[Tensor, ...]:
    return tuple(tensor for tensor in tensors if tensor is not None and tensor.requires_grad)


class _Graphed:
    """A function or module, and the graphs of its forward and backward."""

    def __init__(self, f: Any, args: Any) -> None:
        if isinstance(f, Module):
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
        self.inputs: tuple[Tensor, ...] = (*flat, *(f.parameters() if isinstance(f, Module) else ()))
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
        if not isinstance(self.f, Module):
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
