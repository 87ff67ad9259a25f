"""Automatic differentiation: gradients, custom Functions, grad modes and gradient checks."""

from __future__ import annotations

import sys
import warnings
from types import ModuleType

import gradiron as torch  # noqa: F401  (programs patch `autograd.torch`)

from .. import _core
from .._core import SavedTensor as SavedTensor
from .._core import Tensor
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .function import Function
from .grad_mode import (
    _force_original_view_tracking as _force_original_view_tracking,
)
from .grad_mode import (
    _unsafe_preserve_version_counter as _unsafe_preserve_version_counter,
)
from .grad_mode import (
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    is_multithreading_enabled,
    is_view_replay_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .source_lines import set_source_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "grad",
    "inference_mode",
    "is_multithreading_enabled",
    "is_view_replay_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "set_source_lines",
]


def _tuple(values: Any) -> tuple[Any, ...]:
    # A tensor has an `output_nr`, and so has a GradientEdge, a tuple itself.
    return (values,) if hasattr(values, "output_nr") else tuple(values)


def _gradients(given: Any, count: int) -> tuple[Any, ...]:
    if given is None:
        return (None,) * count
    return (given,) if isinstance(given, Tensor) else tuple(given)


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Compute the gradients of `tensors` and add them to `.grad` of the leaves of their graph.

    Args:
        tensors: tensors or gradient edges to differentiate.
        grad_tensors: gradients of `tensors`, `v` of the vector-Jacobian product; may be `None` for scalars.
        retain_graph: keep the graph, so that it can be differentiated again; like `create_graph` if `None`.
        create_graph: record the gradients' own computation, for higher derivatives. Default: `False`
        grad_variables: deprecated name of `grad_tensors`.
        inputs: tensors or gradient edges to accumulate gradients for; all leaves if `None`.

    Examples:
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> torch.autograd.backward((x**2).sum())
        >>> x.grad
        tensor([2., 4.])
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use "
                "`grad_tensors`."
            )
        grad_tensors = grad_variables
    roots = _tuple(tensors)
    keep = create_graph if retain_graph is None else retain_graph
    _core.run_backward(roots, _gradients(grad_tensors, len(roots)), keep, create_graph, inputs)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """Compute and return the gradients of `outputs` with respect to `inputs`.

    The `.grad` of leaves stays as it is.

    Args:
        outputs: tensors or gradient edges to differentiate.
        inputs: tensors or gradient edges to differentiate with respect to.
        grad_outputs: gradients of `outputs`, `v` of the vector-Jacobian product; may be `None` for scalars.
        retain_graph: keep the graph, so that it can be differentiated again; like `create_graph` if `None`.
        create_graph: record the gradients' own computation, for higher derivatives. Default: `False`
        only_inputs: deprecated and ignored. Default: `True`
        allow_unused: return `None` for inputs that `outputs` do not depend on, instead of raising.
        is_grads_batched: the first dimension of `grad_outputs` is a batch of vectors. Default: `False`
        materialize_grads: return zeros instead of `None` for unused inputs. Default: `False`

    Raises:
        RuntimeError: if an input is unused and neither `allow_unused` nor `materialize_grads` is set.

    Examples:
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> (first,) = torch.autograd.grad(x**3, x, create_graph=True)
        >>> torch.autograd.grad(first, x)
        (tensor(18.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True).", FutureWarning, stacklevel=2)
    roots, wanted = _tuple(outputs), _tuple(inputs)
    keep = create_graph if retain_graph is None else retain_graph
    if _core.is_transformed():
        _refuse_constants(roots)
    run = _run_batched if is_grads_batched else _core.run_grad
    found = run(roots, wanted, _gradients(grad_outputs, len(roots)), keep, create_graph)
    if materialize_grads:
        if any(g is None and not isinstance(x, Tensor) for g, x in zip(found, wanted, strict=True)):
            raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
        return tuple(
            g if g is not None else _core.zeros_like(x, requires_grad=create_graph) for g, x in zip(found, wanted, strict=True)
        )
    unused = next((i for i, g in enumerate(found) if g is None), None)
    if unused is not None and not allow_unused:
        _core.raise_error(
            f"The differentiated Tensor at index {unused} appears to not have been used in the graph. Set allow_unused=True "
            "if this is the desired behavior.",
            wanted[unused],
            "look for detach(), .data or a copy between it and the outputs; or pass materialize_grads=True to get zeros",
        )
    return found


def _refuse_constants(roots: tuple[Any, ...]) -> None:
    """To what runs inside of a transform, samples are constants, and what is not made of its inputs."""
    for i, root in enumerate(roots):
        if isinstance(root, Tensor) and _core.wants_grad(root) and not root.requires_grad:
            advice = "use func.grad, vjp or jacrev inside of the transform, or autograd.grad outside of it"
            _core.raise_error(f"element {i} of tensors does not require grad and does not have a grad_fn", root, advice)


def _run_batched(
    roots: tuple[Any, ...], wanted: tuple[Any, ...], given: tuple[Any, ...], keep: bool, create_graph: bool
) -> tuple[Any, ...]:
    """A backward for each slice of the gradients of the outputs, all of them in one pass."""
    starts = list(given)
    for i, (root, start) in enumerate(zip(roots, starts, strict=True)):
        if start is None:
            if not isinstance(root, Tensor) or root.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            start = starts[i] = _core.ones_like(root)  # It has no batch dimension, so that vmap refuses it.
        if isinstance(root, Tensor) and start.dim() > 0 and start.shape[1:] != root.shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The "
                "sizes of the remaining dimensions are expected to match the shape of corresponding output, but a mismatch "
                f"was detected: grad_output[{i}] has a shape of {start.shape} and output[{i}] has a shape of {root.shape}. If "
                "you only want some tensors in `grad_output` to be considered batched, consider using vmap."
            )
    sizes = [start.shape[0] if isinstance(start, Tensor) and start.dim() > 0 else None for start in starts]
    if not sizes or sizes[0] is None or sizes.count(sizes[0]) < len(sizes):
        _refuse_starts(starts)
    # Custom Functions need no batching rule here, as only gradients are batched.
    before = _core.set_without_rules(True)
    try:
        level = _core.vmap_enter(sizes[0], "error")
        try:
            samples = tuple([_core.add_batch_dim(start, 0, level) for start in starts])
            found = _core.run_grad(roots, wanted, samples, keep, create_graph)
            return tuple([None if g is None else _core.remove_batch_dim(g, level, sizes[0], 0) for g in found])
        finally:
            _core.vmap_leave()
    finally:
        _core.set_without_rules(before)


def _refuse_starts(starts: list[Any]) -> None:
    """Refuses gradients that cannot be batched, in the words of `vmap`."""
    from ..func._vmap import _Call

    def vjp(*starts: Any) -> None: ...

    _Call(vjp, 0, 0, tuple(starts))


class _Engine:
    """What programs reach for by `Variable._execution_engine`."""

    @staticmethod
    def queue_callback(callback: Callable[[], object]) -> None:
        """Call `callback()` when the running backward pass of this thread has succeeded."""
        _core.queue_callback(callback)

    @staticmethod
    def is_checkpoint_valid() -> bool:
        """Return whether the running backward pass accumulates into the `.grad` of all leaves."""
        return _core.is_whole_backward()


class _VariableMeta(type):
    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=_VariableMeta):
    """PyTorch's former wrapper of tensors; calling it returns a tensor, and every tensor is an instance.

    Args:
        data: tensor to detach; an empty one if `None`.
        requires_grad: whether the result requires a gradient. Default: `False`
        volatile: removed from PyTorch; has no effect but a warning. Default: `False`

    Examples:
        >>> torch.autograd.Variable(torch.ones(2), requires_grad=True)
        tensor([1., 1.], requires_grad=True)
    """

    _execution_engine = _Engine()

    def __new__(  # type: ignore[misc]
        cls, data: Tensor | None = None, requires_grad: bool = False, volatile: bool = False
    ) -> Tensor:
        if data is None:
            data = _core.empty([0])
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if volatile:
            message = "volatile was removed and now has no effect. Use `with torch.no_grad():` instead."
            warnings.warn(message, UserWarning, stacklevel=2)
            if requires_grad:
                raise ValueError("Variable can't be volatile and require_grad at the same time!")
        out = data.detach()
        return _core.tracked(out) if requires_grad else out


_LATE = ("forward_ad", "functional", "gradcheck", "gradgradcheck", "graph", "profiler", "profiler_util", "variable")


def __dir__() -> list[str]:
    loaded = ("SavedTensor", "anomaly_mode", "function", "grad_mode", "source_lines", "torch")
    return sorted({*__all__, *_LATE, *loaded, *(name for name in globals() if name.startswith("_"))})


if TYPE_CHECKING:
    from . import forward_ad as forward_ad
    from . import functional as functional
    from . import graph as graph
    from . import profiler as profiler
    from . import profiler_util as profiler_util
    from . import variable as variable
    from .gradcheck import gradcheck as gradcheck
    from .gradcheck import gradgradcheck as gradgradcheck
else:

    def __getattr__(name: str) -> object:
        import importlib

        if name in ("gradcheck", "gradgradcheck"):
            return getattr(importlib.import_module(".gradcheck", __name__), name)
        if name in _LATE:
            return importlib.import_module(f".{name}", __name__)
        raise AttributeError(f"module 'gradiron.autograd' has no attribute '{name}'")


class _Package(ModuleType):
    def __setattr__(self, name: str, value: object) -> None:
        # `gradcheck` is a module and a function; the name stays the function's when the module is imported, as in PyTorch.
        super().__setattr__(name, value.gradcheck if name == "gradcheck" and isinstance(value, ModuleType) else value)


sys.modules[__name__].__class__ = _Package
