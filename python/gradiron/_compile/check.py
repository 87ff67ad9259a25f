"""`GRADIRON_COMPILE_CHECK=1`: each replay beside the function itself, compared bit for bit; on the GPU, within its rounding."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor
from ..autograd.grad_mode import no_grad
from .arguments import is_plain_class
from .guards import MISSING, cell_contents

__all__ = ["CompileCheckError", "compare_both"]


class CompileCheckError(AssertionError):
    """A replay gave something else than the function itself."""


def compare_both(compiled: Any, captured: Any, arguments: Any, args: Any, kwargs: Any) -> Any:
    """Replay, then put all tensors back and run the function as it is; return the function's result.

    Raises:
        CompileCheckError: if results, arguments or gradients differ.
    """
    known = [*arguments.tensors, *captured.known]
    before = [tensor.detach().clone() for tensor in known]
    grads = [(tensor, tensor.grad, None if tensor.grad is None else tensor.grad.detach().clone()) for tensor in _leaves(known)]
    used = [read[3] for read in captured.reads if isinstance(read[3], _core.Generator)]
    states = [(generator, generator.get_state()) for generator in (_core.global_generator(), *used)]
    stored = [_Stored(kind, owner, key) for kind, owner, key, _ in captured.effects_on(arguments)]
    done = captured.replay(arguments)
    if type(done) is not tuple:
        return compiled.function(*args, **kwargs)
    left = [each.now() for each in stored]
    for each in reversed(stored):
        each.undo()
    after = [tensor.detach().clone() for tensor in known]
    after_grads = [None if tensor.grad is None else tensor.grad.detach().clone() for tensor, _, _ in grads]
    for generator, state in states:
        generator.set_state(state)
    with no_grad():
        for tensor, values in zip(known, before, strict=True):
            if not _same(tensor, values):
                tensor.data.copy_(values)
    for tensor, grad, values in grads:
        if grad is not None:
            grad.data.copy_(values)
        tensor.grad = grad
    result = compiled.function(*args, **kwargs)
    _compare(compiled.name, "result", done[0], result)
    for each, value in zip(stored, left, strict=True):
        _compare(compiled.name, f"what it stores under {each.key!r}", value, each.now())
    for number, (tensor, values) in enumerate(zip(known, after, strict=True)):
        _compare(compiled.name, f"tensor {number}", values, tensor.detach())
    for (tensor, _, _), values in zip(grads, after_grads, strict=True):
        _compare(compiled.name, "a gradient", values, None if tensor.grad is None else tensor.grad.detach())
    return result


class _Stored:
    """Where a replay stores something into an object, and what was there before."""

    def __init__(self, kind: str, owner: Any, key: Any) -> None:
        self.kind, self.owner, self.key = kind, owner, key
        self.before = len(owner) if kind == "append" else self.now()

    def now(self) -> Any:
        """Return what is there now."""
        if self.kind == "append":
            return list(self.owner)
        if self.kind == "set_attr":
            return getattr(self.owner, self.key, MISSING)
        if self.kind == "cell":
            return cell_contents(self.owner)
        return dict.get(self.owner, self.key, MISSING) if isinstance(self.owner, dict) else self.owner[self.key]

    def undo(self) -> None:
        """Put back what was there before."""
        if self.kind == "append":
            del self.owner[self.before :]
        elif self.kind == "set_attr":
            if self.before is MISSING:
                object.__delattr__(self.owner, self.key)
            else:
                object.__setattr__(self.owner, self.key, self.before)
        elif self.kind == "cell":
            self.owner.cell_contents = self.before
        elif self.before is MISSING:
            del self.owner[self.key]
        else:
            self.owner[self.key] = self.before


def _leaves(tensors: list[Tensor]) -> list[Tensor]:
    return [tensor for tensor in tensors if tensor.is_leaf and tensor.requires_grad]


# A driver may round the same expression differently where it stands in another shader.
_GPU_TOLERANCES = {"float32": 1e-4, "float64": 1e-10, "float16": 1e-2, "bfloat16": 3e-2}


def _same(a: Tensor, b: Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype or a.device != b.device:
        return False
    if a.is_meta:
        return True
    same = (a == b) | ((a != a) & (b != b))
    tolerance = _GPU_TOLERANCES.get(str(a.dtype).rpartition(".")[2]) if a.is_cuda else None
    if tolerance is not None:
        same = same | ((a - b).abs() <= tolerance * (1 + b.abs()))
    return bool(same.all())


def _compare(name: str, what: str, replayed: Any, eager: Any) -> None:
    if isinstance(eager, Tensor):
        if not isinstance(replayed, Tensor) or not _same(replayed.detach(), eager.detach()):
            raise CompileCheckError(f"{name}: {what} of the replay is {replayed}, of the function {eager}")
    elif isinstance(eager, (list, tuple)):
        for number, (one, other) in enumerate(zip(replayed, eager, strict=True)):
            _compare(name, f"{what}[{number}]", one, other)
    elif isinstance(eager, dict):
        for key in eager:
            _compare(name, f"{what}[{key!r}]", replayed[key], eager[key])
    elif type(replayed) is type(eager) and is_plain_class(type(eager)):
        _compare(name, what, vars(replayed), vars(eager))
    elif replayed is not eager and replayed != eager:
        raise CompileCheckError(f"{name}: {what} of the replay is {replayed}, of the function {eager}")
