"""Selective checkpointing: a policy decides for each operator whether its result is saved or recomputed."""

from __future__ import annotations

import enum
import warnings
from collections import Counter
from typing import Any

from .. import _core
from .._core import Tensor
from ..ops import OpOverload, OpOverloadPacket, overload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# Operators that policies are not asked about, such as views.
SAC_IGNORED_OPS: set[Any] = set()

_CHANGED = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend on global state that changed"
    " between forward and backward."
)


class SelectiveCheckpointContext:
    """The first argument of a policy for selective checkpointing.

    Args:
        is_recompute: whether the function is run again.
        op_output: result of the operator.

    Examples:
        >>> torch.utils.checkpoint.SelectiveCheckpointContext(is_recompute=False).is_recompute
        False
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


class CheckpointPolicy(enum.Enum):
    """What a policy for selective checkpointing returns: save the result of an operator, or recompute it.

    `MUST_...` and `PREFER_...` make no difference.

    Examples:
        >>> torch.utils.checkpoint.CheckpointPolicy.MUST_SAVE.name
        'MUST_SAVE'
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVES = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)

# Mark calls whose results were not saved, or were already used.
_AGAIN, _USED = object(), object()


class _Kept:
    """A result, as it was."""

    def __init__(self, tensor: Tensor, hooks: tuple[Any, Any] | None) -> None:
        self.version = tensor._version
        self.unpack = hooks[1] if hooks else None
        self.value = hooks[0](tensor) if hooks else tensor

    def get(self, mutation: bool) -> Any:
        if self.unpack is not None:
            return self.unpack(self.value)
        if not mutation and self.value._version != self.version:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return self.value


class _Chooser:
    """A context in which an operator's results are kept, or handed out. Calls are known by operator and number."""

    def __init__(self, kept: dict[tuple[tuple[str, str], int], Any]) -> None:
        self.kept = kept
        self.calls: Counter[tuple[str, str]] = Counter()

    def __enter__(self) -> None:
        self.calls.clear()
        _core.push_chooser(self)

    def __exit__(self, *args: object) -> None:
        _core.pop_chooser()


class _Keeps(_Chooser):
    """The forward: the policy is asked."""

    def __init__(self, kept: dict[tuple[tuple[str, str], int], Any], policy: Callable[..., Any]) -> None:
        super().__init__(kept)
        self.policy = policy
        self.respect_saved_tensors_hooks: bool | None = None
        self.hooks: tuple[Any, Any] | None = None

    def supply(self, name: tuple[str, str]) -> None:
        pass

    def made(self, name: tuple[str, str], inputs: list[Tensor], result: Tensor | None) -> None:
        call = name, self.calls[name]
        self.calls[name] += 1
        wish = self.policy(SelectiveCheckpointContext(is_recompute=False, op_output=result), overload(name), *inputs)
        if isinstance(wish, bool):
            wish = CheckpointPolicy.MUST_SAVE if wish else CheckpointPolicy.PREFER_RECOMPUTE
        # Views are never saved, as recomputing them is free.
        keeps = wish in _SAVES and result is not None
        self.kept[call] = _Kept(result, self._chosen_hooks()) if keeps and result is not None else _AGAIN

    def _chosen_hooks(self) -> tuple[Any, Any] | None:
        if self.hooks is not None and self.respect_saved_tensors_hooks is None:
            warnings.warn(
                "A saved_tensors_hooks context (e.g. save_on_cpu) is active around a selective activation checkpoint region. "
                "Tensors that SAC saves currently bypass these hooks, but a future release will route them through the hooks "
                "like any other saved tensor. Silence this warning and choose the behavior explicitly by passing "
                "respect_saved_tensors_hooks=True|False to torch.utils.checkpoint.checkpoint.",
                FutureWarning,
                stacklevel=2,
            )
        return self.hooks if self.respect_saved_tensors_hooks else None


class _Gives(_Chooser):
    """The recomputation: what was kept is handed out instead of made."""

    def __init__(self, kept: dict[tuple[tuple[str, str], int], Any], mutation: bool) -> None:
        super().__init__(kept)
        self.mutation = mutation

    def supply(self, name: tuple[str, str]) -> Any:
        entry = self._find(name)
        return None if entry is _AGAIN else entry.get(self.mutation)

    def made(self, name: tuple[str, str], inputs: list[Tensor], result: Tensor | None) -> None:
        if self._find(name) is not _AGAIN:
            self.kept[name, self.calls[name]] = _USED
        self.calls[name] += 1

    def _find(self, name: tuple[str, str]) -> Any:
        entry = self.kept.get((name, self.calls[name]))
        if entry is None:
            raise RuntimeError(
                f"{overload(name)} invocation index {self.calls[name]} encountered during backward but not found in storage. "
                f"{_CHANGED}"
            )
        if entry is _USED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        return entry


def create_selective_checkpoint_contexts(policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False) -> tuple[Any, Any]:
    """Make the contexts of `checkpoint(context_fn=...)` that save the results of some operators.

    Args:
        policy_fn_or_list: list of operators whose results are saved, or a function `policy(ctx, op, *tensors)` that
            returns a `CheckpointPolicy`.
        allow_cache_entry_mutation: allow that saved results are modified in place. Default: `False`

    Examples:
        >>> def contexts():
        ...     return torch.utils.checkpoint.create_selective_checkpoint_contexts([torch.ops.aten.exp.default])
        >>> x = torch.ones(1, requires_grad=True)
        >>> y = torch.utils.checkpoint.checkpoint(torch.exp, x, use_reentrant=False, context_fn=contexts)
        >>> y.backward()
        >>> x.grad
        tensor([2.7183])
    """
    policy = policy_fn_or_list
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, OpOverload):
                extra = (
                    "Please update the OpOverloadPacket to a specific OpOverload.For example, if you have `torch.ops.aten.mm`, "
                    "change it to `torch.ops.aten.mm.default`."
                    if isinstance(op, OpOverloadPacket)
                    else ""
                )
                raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. {extra}")
        wanted = set(policy_fn_or_list)

        def policy(ctx: SelectiveCheckpointContext, op: OpOverload, *inputs: Tensor) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if op in wanted else CheckpointPolicy.PREFER_RECOMPUTE

    elif not callable(policy):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept: dict[tuple[tuple[str, str], int], Any] = {}
    return _Keeps(kept, policy), _Gives(kept, allow_cache_entry_mutation)
