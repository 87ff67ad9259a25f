"""Activation checkpointing: recompute the tensors saved for the backward pass instead of keeping them."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

from .. import _core
from .._core import Tensor
from ..amp import autocast_mode
from ..autograd import backward
from ..autograd.function import Function
from ..autograd.grad_mode import enable_grad, no_grad
from ..autograd.graph import saved_tensors_hooks
from ..random import fork_rng, get_rng_state, set_rng_state
from ._pytree import flatten
from ._recompute import CHECKS, Again, CheckpointError, Frame, GraphExecGroup
from ._selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "GraphExecGroup",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]


class _Setting:
    """A switch for all checkpoints inside a `with` block; None leaves the choice to each call."""

    value: bool | None = None

    @contextlib.contextmanager
    def hold(self, value: bool | None) -> Iterator[None]:
        before, self.value = self.value, value
        try:
            yield
        finally:
            self.value = before

    def over(self, own: bool) -> bool:
        return own if self.value is None else self.value


_debug, _early_stop = _Setting(), _Setting()


def set_checkpoint_debug_enabled(enabled: bool | None) -> AbstractContextManager[None]:
    """Override the argument `debug` of all checkpoints in a `with` block.

    Args:
        enabled: value of `debug`; `None` uses that of each call.

    Examples:
        >>> with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):
        ...     x = torch.utils.checkpoint.checkpoint(torch.sin, torch.ones(1), use_reentrant=False)
    """
    return _debug.hold(enabled)


def set_checkpoint_early_stop(enable: bool) -> AbstractContextManager[None]:
    """Override the argument `early_stop` of checkpoints whose forward runs in a `with` block.

    Args:
        enable: whether a recomputation stops as soon as it has made all that is needed.

    Examples:
        >>> with torch.utils.checkpoint.set_checkpoint_early_stop(False):
        ...     x = torch.utils.checkpoint.checkpoint(torch.sin, torch.ones(1), use_reentrant=False)
    """
    return _early_stop.hold(enable)


def noop_context_fn() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """Return two contexts that do nothing, the default of `checkpoint(context_fn=...)`.

    Examples:
        >>> forward, recompute = torch.utils.checkpoint.noop_context_fn()
    """
    return contextlib.nullcontext(), contextlib.nullcontext()


class DefaultDeviceType:
    """Type of the device whose random state is restored if no argument is on a device.

    Examples:
        >>> torch.utils.checkpoint.DefaultDeviceType.get_device_type()
        'cuda'
    """

    _chosen: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set the type of the device."""
        DefaultDeviceType._chosen = device

    @staticmethod
    def get_device_type() -> str:
        """Return the type of the device."""
        return DefaultDeviceType._chosen or "cuda"


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Return the indices and the random states of the GPUs that tensors are on.

    Args:
        args: tensors and containers of them.

    Examples:
        >>> torch.utils.checkpoint.get_device_states(torch.ones(1))
        ([], [])
    """
    tensors = [x for x in flatten(args)[0] if isinstance(x, Tensor)]
    devices = sorted({t.device.index or 0 for t in tensors if t.device.type != "cpu"})
    if not devices:
        return [], []
    from .. import cuda

    return devices, [cuda.get_rng_state(device) for device in devices]


def set_device_states(devices: Iterable[int], states: Iterable[Tensor], *, device_type: str | None = None) -> None:
    """Set the random states of GPUs.

    Args:
        devices: indices of the GPUs.
        states: states that `get_device_states` returned.
        device_type: accepted for compatibility.

    Examples:
        >>> torch.utils.checkpoint.set_device_states([], [])
    """
    from .. import cuda

    for device, state in zip(devices, states, strict=False):
        cuda.set_rng_state(state, device)


class _RandomState:
    """The random numbers as they were before the forward, for every run after it."""

    def __init__(self, args: Any) -> None:
        self.cpu = get_rng_state()
        self.devices, self.states = get_device_states(*args)

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        with fork_rng(devices=self.devices):
            set_rng_state(self.cpu)
            set_device_states(self.devices, self.states)
            yield


def _autocast_now() -> autocast_mode.autocast:
    """Autocast as it is before the forward, for every run after it; the GPU has none."""
    return autocast_mode.autocast(
        "cpu",
        dtype=autocast_mode.get_autocast_dtype("cpu"),
        enabled=autocast_mode.is_autocast_enabled("cpu"),
        cache_enabled=autocast_mode.is_autocast_cache_enabled(),
    )


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Detach the tensors in a tuple, keeping `requires_grad`.

    Args:
        inputs: tuple of tensors and other values.

    Examples:
        >>> x = torch.ones(1, requires_grad=True) * 2
        >>> (y,) = torch.utils.checkpoint.detach_variable((x,))
        >>> y.is_leaf, y.requires_grad
        (True, True)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if none of the inputs requires a gradient.

    Args:
        inputs: tensors and other values.

    Examples:
        >>> torch.utils.checkpoint.check_backward_validity([torch.ones(1, requires_grad=True)])
    """
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


class CheckpointFunction(Function):
    """Reentrant checkpoint as a custom Function, whose backward runs the function and a backward pass of its own.

    Examples:
        >>> x = torch.ones(1, requires_grad=True)
        >>> torch.utils.checkpoint.CheckpointFunction.apply(torch.exp, True, x).backward()
        >>> x.grad
        tensor([2.7183])
    """

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.random = _RandomState(args) if preserve_rng_state else None
        ctx.autocast = _autocast_now()
        ctx.plain = [None if isinstance(x, Tensor) else x for x in args]
        ctx.places = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if not _core.is_whole_backward():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter"
                " to .backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without"
                " passing the `inputs` argument."
            )
        inputs = list(ctx.plain)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[place] = tensor
        leaves = detach_variable(tuple(inputs))
        with ctx.random.again() if ctx.random else contextlib.nullcontext(), ctx.autocast, enable_grad():
            outputs = ctx.run_function(*leaves)
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        wanted = [(o, g) for o, g in zip(outputs, grads, strict=False) if isinstance(o, Tensor) and o.requires_grad]
        if not wanted:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([o for o, _ in wanted], [g for _, g in wanted])
        return None, None, *(x.grad if isinstance(x, Tensor) else None for x in leaves)


class _Checkpointed:
    """A function that is checkpointed whenever it is called; works on methods, too."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        import functools

        self.function = function
        self.options = options
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _checkpoint(self.function, args, kwargs, **self.options)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        bind = getattr(self.function, "__get__", None)
        if instance is None or bind is None:
            return self
        return _Checkpointed(bind(instance, owner), self.options)


def checkpoint(
    function: Callable[..., Any] | None = None,
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    respect_saved_tensors_hooks: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Run a function without saving tensors for the backward pass, which runs it again.

    It saves memory at the cost of a second forward. Without a function it returns a decorator.

    Args:
        function: function to run.
        args, kwargs: its arguments.
        use_reentrant: use the older implementation, a node with a backward pass of its own; pass `False`. `None` warns
            and means true.
        preserve_rng_state: restore the state of random number generators for the second run. Default: `True`
        context_fn: function that returns two contexts, for the first and the second run. Default: `noop_context_fn`
        determinism_check: `"default"` compares shapes, dtypes and devices of both runs, `"none"` nothing. Default:
            `"default"`
        debug: report the operators of both runs if they differ. Default: `False`
        early_stop: stop the second run as soon as it has made all that is needed. Default: `True`
        respect_saved_tensors_hooks: apply hooks for saved tensors to what selective checkpointing keeps.

    Raises:
        CheckpointError: in the backward pass, if the second run differs from the first.

    Examples:
        >>> x = torch.ones(1, requires_grad=True)
        >>> y = torch.utils.checkpoint.checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False)
        >>> y.backward()
        >>> x.grad
        tensor([-2.4783])
    """
    options: dict[str, Any] = {
        "use_reentrant": use_reentrant,
        "preserve_rng_state": preserve_rng_state,
        "context_fn": context_fn,
        "determinism_check": determinism_check,
        "debug": debug,
        "early_stop": early_stop,
        "respect_saved_tensors_hooks": respect_saved_tensors_hooks,
    }
    if function is None and not args:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        return lambda function: _Checkpointed(function, options)
    return _checkpoint(function, args, kwargs, **options)


def _checkpoint(
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    use_reentrant: bool | None,
    preserve_rng_state: bool,
    context_fn: Callable[[], tuple[Any, Any]],
    determinism_check: str,
    debug: bool,
    early_stop: bool,
    respect_saved_tensors_hooks: bool | None,
) -> Any:
    if use_reentrant is None:
        _warn_unset(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. In a future release, "
            "calling checkpoint without use_reentrant will raise an exception."
        )
        use_reentrant = True
    if not use_reentrant:
        return _without_reentrant(
            function,
            args,
            kwargs,
            preserve_rng_state,
            context_fn,
            determinism_check,
            _debug.over(debug),
            _early_stop.over(early_stop),
            respect_saved_tensors_hooks,
        )
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug is not False or respect_saved_tensors_hooks is not None:
        raise ValueError(
            "Passing `context_fn`, `debug`, or `respect_saved_tensors_hooks` is only supported when use_reentrant=False."
        )
    return CheckpointFunction.apply(function, preserve_rng_state, *args)


def _warn_unset(first: str) -> None:
    warnings.warn(
        f"{first} use_reentrant=False is recommended, but if you need to preserve the current default behavior, you can pass "
        "use_reentrant=True. Refer to docs for more details on the differences between the two variants.",
        stacklevel=4,
    )


def _without_reentrant(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    preserve_rng_state: bool,
    context_fn: Callable[[], tuple[Any, Any]],
    determinism_check: str,
    debug: bool,
    early_stop: bool,
    respect_hooks: bool | None,
) -> Any:
    if debug and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    if determinism_check not in CHECKS:
        raise ValueError(f"determinism_check should be one of {list(CHECKS)}, but got {determinism_check}")
    first, later = context_fn()
    if hasattr(first, "respect_saved_tensors_hooks"):
        first.respect_saved_tensors_hooks = respect_hooks
        first.hooks = _users_hooks()
    if not _core.is_grad_enabled():
        return function(*args, **kwargs)
    random = _RandomState(args) if preserve_rng_state else None
    autocast = _autocast_now()

    def run(*inputs: Any) -> None:
        with random.again() if random else contextlib.nullcontext(), autocast, later:
            function(*inputs, **kwargs)

    frame = Frame(run, args, early_stop, CHECKS[determinism_check])
    frame.log = [] if debug else None
    returned = False
    with saved_tensors_hooks(frame.pack, frame.unpack), first:
        result = function(*args, **kwargs)
        returned = True
    if not returned:
        raise RuntimeError(
            "torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception raised during the "
            "checkpointed forward. This is not supported because checkpoint cannot return a value for a failed forward."
        )
    frame.complete = True
    return result


def _users_hooks() -> tuple[Any, Any] | None:
    """The pair of hooks in force, unless it is a checkpoint's own."""
    hooks = _core.top_saved_hooks()
    return None if hooks is None or isinstance(getattr(hooks[0], "__self__", None), (Frame, Again)) else hooks


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any) -> Any:
    """Run functions or modules one after the other, split into checkpointed segments.

    The last segment is not checkpointed.

    Args:
        functions: `nn.Sequential`, or a list of functions.
        segments: number of segments.
        input: input of the first function.
        use_reentrant: as for `checkpoint`; pass `False`.
        kwargs: `preserve_rng_state`, as for `checkpoint`.

    Examples:
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
        >>> torch.utils.checkpoint.checkpoint_sequential(model, 2, torch.ones(4, 2), use_reentrant=False).shape
        torch.Size([4, 1])
    """
    if use_reentrant is None:
        _warn_unset(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. "
            "In a future release, we will raise an exception if use_reentrant is not passed."
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def part(start: int, end: int) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for step in steps[start:end]:
                value = step(value)
            return value

        return run

    size = len(steps) // segments
    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(part(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return part(end, len(steps))(input)
