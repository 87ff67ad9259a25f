"""Learning rate schedulers, some of which also schedule the momentum."""

from __future__ import annotations

import math
import types
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any, cast
from weakref import ref

from .._core import Tensor
from .optimizer import Optimizer, _to_scalar

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed form "
    "is used instead of the new chainable form, where available."
)
_HOW_TO = "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
inf = math.inf


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _format_param(name: str, optimizer: Optimizer, param: Any) -> list[Any]:
    """A value for each group: the one of a list, or the same for all."""
    groups = optimizer.param_groups
    if not isinstance(param, (list, tuple)):
        return [_copied(param) for _ in groups]
    if len(param) != len(groups):
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. "
            f"{name} has {len(param)} values, param_groups has {len(groups)}."
        )
    return [_copied(value) for value in param]


def _param_groups_val_list(optimizer: Optimizer, key: str) -> list[Any]:
    """What the groups have under a key, tensors as copies."""
    return [_copied(group[key]) for group in optimizer.param_groups]


def _update_param_group_val(param_group: dict[str, Any], key: str, val: Any) -> None:
    """Gives a group another value; a tensor stays the same one."""
    if isinstance(param_group[key], Tensor):
        param_group[key].fill_(_to_scalar(val))
    else:
        param_group[key] = val


def _check_optimizer(optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _note_steps(optimizer: Any) -> None:
    """Lets the optimizer tell whether it has stepped, since schedules should step after it."""
    step = optimizer.step
    if hasattr(step, "_wrapped_by_lr_sched"):
        return
    # A weak reference, so that the optimizer is not kept alive by its own method.
    weak, func = ref(optimizer), step.__func__

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        own: Any = weak()
        own._opt_called = True
        return func.__get__(own, type(own))(*args, **kwargs)

    wrapper._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = wrapper


class LRScheduler:
    """Base class of learning rate schedulers.

    A subclass writes `get_lr`, which returns the learning rates of all parameter groups for `last_epoch`.

    Args:
        optimizer: optimizer whose learning rates are set.
        last_epoch: index of the last epoch when resuming; `-1` starts anew. Default: `-1`

    Attributes:
        base_lrs: initial learning rate of each parameter group.

    Examples:
        >>> class Halving(torch.optim.lr_scheduler.LRScheduler):
        ...     def get_lr(self):
        ...         return [base * 0.5**self.last_epoch for base in self.base_lrs]
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = Halving(optimizer)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    _get_lr_called_within_step: bool = False
    _is_initial: bool = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch >= 0.\n"
                    "This typically happens when:\n"
                    "1. You're trying to resume training from a checkpoint but haven't properly loaded the optimizer state\n"
                    "2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
                )
        self.base_lrs: list[Any] = _param_groups_val_list(optimizer, "initial_lr")
        self.last_epoch: Any = last_epoch
        _note_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        with self._during("_is_initial"):
            self.step()

    @contextmanager
    def _during(self, flag: str) -> Iterator[None]:
        setattr(self, flag, True)
        try:
            yield
        finally:
            setattr(self, flag, False)

    def _state_without(self, *names: str) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("optimizer", *names)}

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes but the optimizer."""
        return self._state_without()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of `state_dict`.

        Args:
            state_dict: what `state_dict` returned.
        """
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """Return the current learning rates, one for each parameter group."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """Compute the learning rates for `last_epoch`. Use `get_last_lr` to read the current ones."""
        raise NotImplementedError

    def _warn_of_get_lr(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def step(self, epoch: Any = None) -> None:
        """Set the next learning rates; call it after `optimizer.step()`.

        Args:
            epoch: epoch to go to instead of the next one; deprecated.
        """
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                warnings.warn(
                    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                    "Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. See more details at " + _HOW_TO,
                    UserWarning,
                    stacklevel=2,
                )
            elif not getattr(self.optimizer, "_opt_called", False):
                warnings.warn(
                    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you "
                    "should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure "
                    "to do this will result in PyTorch skipping the first value of the learning rate schedule. See more "
                    "details at " + _HOW_TO,
                    UserWarning,
                    stacklevel=2,
                )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: Any = None) -> None:
        with self._during("_get_lr_called_within_step"):
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            closed = getattr(self, "_get_closed_form_lr", None)
            values = self.get_lr() if epoch is None or closed is None else closed()
        self._set_lrs(values)

    def _set_lrs(self, values: Sequence[Any]) -> None:
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            _update_param_group_val(group, "lr", lr)
        self._last_lr: list[Any] = _param_groups_val_list(self.optimizer, "lr")

    def _current(self) -> list[Any]:
        return _param_groups_val_list(self.optimizer, "lr")

    def _times(self, factor: float) -> list[Any]:
        """The current rates times a factor."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]


class _LRScheduler(LRScheduler):
    """The old name of `LRScheduler`."""


class _ByFunction(LRScheduler):
    """A schedule that asks functions, one for each group."""

    lr_lambdas: list[Any]

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        if not isinstance(lr_lambda, (list, tuple)):
            self.lr_lambdas = [lr_lambda] * len(optimizer.param_groups)
        elif len(lr_lambda) != len(optimizer.param_groups):
            raise ValueError(f"Expected {len(optimizer.param_groups)} lr_lambdas, but got {len(lr_lambda)}")
        else:
            self.lr_lambdas = list(lr_lambda)
        self._check_functions()
        super().__init__(optimizer, last_epoch)

    def _check_functions(self) -> None:
        """Anything may be given."""

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes but the optimizer; of callable objects their attributes, of functions nothing."""
        saved = [None if isinstance(fn, types.FunctionType) else fn.__dict__.copy() for fn in self.lr_lambdas]
        return {**self._state_without("lr_lambdas"), "lr_lambdas": saved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of `state_dict`."""
        self.__dict__.update((key, value) for key, value in state_dict.items() if key != "lr_lambdas")
        for fn, saved in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=False):
            if saved is not None:
                fn.__dict__.update(saved)


class LambdaLR(_ByFunction):
    """Set each learning rate to its initial value times a function of the epoch.

    Args:
        optimizer: optimizer whose learning rates are set.
        lr_lambda: function from the epoch to a factor, or a list with one for each parameter group.
        last_epoch: index of the last epoch when resuming; `-1` starts anew. Default: `-1`

    Examples:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (epoch + 1))
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    def get_lr(self) -> list[Any]:
        self._warn_of_get_lr()
        return [base * fn(self.last_epoch) for fn, base in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(_ByFunction):
    """Multiply each learning rate in every epoch by a function of the epoch.

    Args:
        optimizer: optimizer whose learning rates are set.
        lr_lambda: function from the epoch to a factor, or a list with one for each parameter group.
        last_epoch: index of the last epoch when resuming; `-1` starts anew. Default: `-1`

    Examples:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
        >>> for _ in range(2):
        ...     optimizer.step()
        ...     scheduler.step()
        >>> scheduler.get_last_lr()
        [0.25]
    """

    def _check_functions(self) -> None:
        for fn in self.lr_lambdas:
            if not callable(fn):
                raise TypeError(f"lr_lambda should be a function, but got {type(fn).__name__}")

    def get_lr(self) -> list[Any]:
        self._warn_of_get_lr()
        if self._is_initial:
            return self._current()
        groups = self.optimizer.param_groups
        return [group["lr"] * fn(self.last_epoch) for fn, group in zip(self.lr_lambdas, groups, strict=True)]


class StepLR(LRScheduler):
    """Multiply the learning rates by `gamma` every `step_size` epochs.

    Args:
        optimizer: optimizer whose learning rates are set.
        step_size: number of epochs between two changes.
        gamma: factor of each change. Default: `0.1`
        last_epoch: index of the last epoch when resuming; `-1` starts anew. Default: `-1`

    Examples:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
        >>> for _ in range(4):
        ...     print(scheduler.get_last_lr())
        ...     optimizer.step()
        ...     scheduler.step()
        [1.0]
        [1.0]
        [0.1]
        [0.1]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_of_get_lr()
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._current()
        return self._times(self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiply the learning rates by `gamma` at each of the given epochs.

    Args:
        optimizer: optimizer whose learning rates are set.
        milestones: epochs at which the learning rates change.
        gamma: factor of each change. Default: `0.1`
        last_epoch: index of the last epoch when resuming; `-1` starts anew. Default: `-1`

    Examples:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     scheduler.step()
        >>> scheduler.get_last_lr()
        [0.25]
    """

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_of_get_lr()
        if self.last_epoch not in self.milestones:
            return self._current()
        return self._times(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[Any]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Multiply the learning rates by a constant factor for the first `total_iters` epochs.

    Args:
        optimizer: optimizer whose learning rates are set.
        factor: factor between 0 and 1. Default: `1.0 / 3`
        total_iters: number of epochs until the learning rates have their full value. Default: `5`
        last_epoch: index of the last epoch when resuming; `-1` starts anew. Default: `-1`

    Examples:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=1)
        >>> scheduler.get_last_lr()
        [0.5]
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [1.0]
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_of_get_lr()
        if self.last_epoch == 0:
            return self._times(self.factor)
        if self.last_epoch != self.total_iters:
            return self._current()
        return self._times(1.0 / self.factor)

    def _get_closed_form_lr(self) -> list[Any]:
        done = self.last_epoch >= self.total_iters
        return [base * (self.factor + done * (1 - self.factor)) for base in self.base_lrs]


class LinearLR(LRScheduler):
    """Change the factor of the learning rates linearly, for instance to warm up.

    Args:
        optimizer: optimizer whose learning rates are set.
        start_factor: factor of the first epoch, above 0 and at most 1. Default: `1.0 / 3`
        end_factor: factor from epoch `total_iters` on, between 0 and 1. Default: `1.0`
        total_iters: number of epochs of the change. Default: `5`
        last_epoch: index of the last epoch when resuming; `-1` starts anew. Default: `-1`

    Examples:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
        >>> scheduler.get_last_lr()
        [0.5]
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_of_get_lr()
        if self.last_epoch == 0:
            return self._times(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current()
        rise = self.end_factor - self.start_factor
        return self._times(1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))

    def _get_closed_form_lr(self) -> list[Any]:
        rise = self.end_factor - self.start_factor
        done = min(self.total_iters, self.last_epoch)
        return [base * (self.start_factor + rise * done / self.total_iters) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiply the learning rates by `gamma` in every epoch.

    Args:
        optimizer: optimizer whose learning rates are set.
        gamma: factor of each change.
        last_epoch: index of the last epoch when resuming; `-1` starts anew. Default: `-1`

    Examples:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> for _ in range(2):
        ...     optimizer.step()
        ...     scheduler.step()
        >>> scheduler.get_last_lr()
        [0.25]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_of_get_lr()
        return self._current() if self._is_initial else self._times(self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class _OfSchedulers(LRScheduler):
    """A schedule that is made of others."""

    _schedulers: Sequence[Any]

    def _check_parts(self, schedulers: Sequence[Any], optimizer: Optimizer) -> None:
        name = type(self).__name__
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                    f"specified when calling `step`, but got one at index {i} in the given schedulers sequence."
                )
            if optimizer != scheduler.optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {i} has {scheduler.optimizer}, which is different from "
                    f"{type(optimizer).__name__}."
                )

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes but the optimizer, with the states of the schedulers."""
        return {**self._state_without("_schedulers"), "_schedulers": [part.state_dict() for part in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of `state_dict`."""
        self.__dict__.update((key, value) for key, value in state_dict.items() if key != "_schedulers")
        for part, saved in zip(self._schedulers, state_dict["_schedulers"], strict=False):
            part.load_state_dict(saved)


class SequentialLR(_OfSchedulers):
    """Run several schedulers one after the other.

    Args:
        optimizer: optimizer whose learning rates are set.
        schedulers: schedulers of this optimizer.
        milestones: epochs at which the next scheduler takes over, one fewer than schedulers.
        last_epoch: index of the last epoch when resuming; `-1` starts anew. Default: `-1`

    Examples:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> warmup = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.1, total_iters=2)
        >>> decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, decay], milestones=[2])
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler, but got no scheduler.")
        self._check_parts(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone "
                f"points, but got number of schedulers {len(schedulers)} and the number of milestones to be equal to "
                f"{len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Each scheduler took a step when it was made: undo all of them, then repeat that of the first.
        for group in optimizer.param_groups:
            _update_param_group_val(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Take one epoch off every scheduler inside, as construction steps each of them."""
        sched = self if sched is None else sched
        if hasattr(sched, "_schedulers"):
            for part in sched._schedulers:
                self.recursive_undo(part)
        elif hasattr(sched, "last_epoch"):
            sched.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Step the scheduler whose turn it is."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class PolynomialLR(LRScheduler):
    """Decay the learning rates to 0 along a polynomial.

    In epoch `t` they are the initial ones times `(1 - t / total_iters)**power`.

    Args:
        optimizer: optimizer whose learning rates are set.
        total_iters: number of epochs until 0. Default: `5`
        power: power of the polynomial. Default: `1.0`
        last_epoch: index of the last epoch when resuming; `-1` starts anew. Default: `-1`

    Examples:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4, power=2)
        >>> for _ in range(2):
        ...     optimizer.step()
        ...     scheduler.step()
        >>> round(scheduler.get_last_lr()[0], 4)
        0.25
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_of_get_lr()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current()
        left, before = 1.0 - self.last_epoch / self.total_iters, 1.0 - (self.last_epoch - 1) / self.total_iters
        return self._times((left / before) ** self.power)

    def _get_closed_form_lr(self) -> list[Any]:
        done = min(self.total_iters, self.last_epoch)
        return [base * (1.0 - done / self.total_iters) ** self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Anneal the learning rates along a cosine, without restarts.

    In epoch `t` they are `eta_min + (base_lr - eta_min) * (1 + cos(pi * t / T_max)) / 2`, which rises again after
    `T_max`.

    Args:
        optimizer: optimizer whose learning rates are set.
        T_max: number of epochs until `eta_min`.
        eta_min: lowest learning rate. Default: `0.0`
        last_epoch: index of the last epoch when resuming; `-1` starts anew. Default: `-1`

    Examples:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
        >>> for _ in range(2):
        ...     optimizer.step()
        ...     scheduler.step()
        >>> round(scheduler.get_last_lr()[0], 4)
        0.5
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_of_get_lr()
        low, groups = self.eta_min, self.optimizer.param_groups
        if self._is_initial:
            return self._current()
        if self._step_count == 1 and self.last_epoch > 0:
            wave = 1 + math.cos(self.last_epoch * math.pi / self.T_max)
            return [low + (base - low) * wave / 2 for base in self.base_lrs]
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # At `eta_min` the ratio below would divide by zero.
            wave = 1 - math.cos(math.pi / self.T_max)
            return [group["lr"] + (base - low) * wave / 2 for base, group in zip(self.base_lrs, groups, strict=True)]
        now, before = (1 + math.cos(math.pi * epoch / self.T_max) for epoch in (self.last_epoch, self.last_epoch - 1))
        return [now / before * (group["lr"] - low) + low for group in groups]

    def _get_closed_form_lr(self) -> list[Any]:
        wave = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return [self.eta_min + (base - self.eta_min) * wave / 2 for base in self.base_lrs]


class ChainedScheduler(_OfSchedulers):
    """Apply several schedulers in every epoch, so that their factors multiply.

    Args:
        schedulers: schedulers of one optimizer.
        optimizer: that optimizer; taken from the first scheduler if `None`.

    Examples:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> warmup = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.1, total_iters=3)
        >>> decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> scheduler = torch.optim.lr_scheduler.ChainedScheduler([warmup, decay])
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.05]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        self._check_parts(schedulers, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = _param_groups_val_list(schedulers[-1].optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Step every scheduler."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = _param_groups_val_list(self._schedulers[-1].optimizer, "lr")


class ReduceLROnPlateau(LRScheduler):
    """Reduce the learning rates when a metric has stopped improving.

    Args:
        optimizer: optimizer whose learning rates are set.
        mode: `"min"` if a lower metric is better, `"max"` if a higher one is. Default: `"min"`
        factor: factor of each reduction. Default: `0.1`
        patience: number of epochs without improvement that are tolerated. Default: `10`
        threshold: smallest change that counts as an improvement. Default: `1e-4`
        threshold_mode: `"rel"` for a threshold relative to the best metric, or `"abs"`. Default: `"rel"`
        cooldown: number of epochs after a reduction in which the metric is not judged. Default: `0`
        min_lr: lower bound of the learning rates, or one for each parameter group. Default: `0`
        eps: smallest reduction that is carried out. Default: `1e-8`

    Examples:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
        >>> for loss in (0.5, 0.6, 0.7):
        ...     scheduler.step(loss)
        >>> scheduler.get_last_lr()
        [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        self.factor = factor
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        count = len(optimizer.param_groups)
        self.default_min_lr: Any
        if not isinstance(min_lr, (list, tuple)):
            self.default_min_lr, self.min_lrs = min_lr, [min_lr] * count
        elif len(min_lr) != count:
            raise ValueError(f"expected {count} min_lrs, got {len(min_lr)}")
        else:
            self.default_min_lr, self.min_lrs = None, list(min_lr)
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = _param_groups_val_list(optimizer, "lr")
        self._init_is_better(mode=mode, threshold=threshold, threshold_mode=threshold_mode)
        self._reset()

    def _reset(self) -> None:
        """Begins anew, as if no measure had been seen."""
        self.best: float = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: Any = None) -> None:  # type: ignore[override]
        """Judge the metric of an epoch and reduce the learning rates if it is time.

        Args:
            metrics: value of the metric.
            epoch: index of the epoch; deprecated.
        """
        current = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = _param_groups_val_list(self.optimizer, "lr")

    def _reduce_lr(self, epoch: Any) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new param group being "
                    "added to the optimizer. Please modify the `min_lrs` field to match the length of the `optimizer` "
                    "param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, low in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, low)
            if old - new > self.eps:
                _update_param_group_val(group, "lr", new)

    @property
    def in_cooldown(self) -> bool:
        """Whether the scheduler waits after a reduction."""
        return self.cooldown_counter > 0

    def _is_better(self, a: float, best: float) -> bool:
        sign = -1.0 if self.mode == "min" else 1.0
        if self.threshold_mode == "rel":
            bound = best * (1.0 + sign * self.threshold)
        else:
            bound = best + sign * self.threshold
        return a < bound if self.mode == "min" else a > bound

    def _init_is_better(self, mode: str, threshold: float, threshold_mode: str) -> None:
        if mode not in {"min", "max"}:
            raise ValueError("mode " + mode + " is unknown!")
        if threshold_mode not in {"rel", "abs"}:
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        self.mode_worse = inf if mode == "min" else -inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of `state_dict`."""
        self.__dict__.update(state_dict)
        self._init_is_better(mode=self.mode, threshold=self.threshold, threshold_mode=self.threshold_mode)


class _CyclesMomentum(LRScheduler):
    """A schedule that lets momentum go the other way than the rates."""

    cycle_momentum: bool
    use_beta1: bool

    def _begin_momentum(self, optimizer: Optimizer, base: Any, most: Any, first: bool) -> tuple[list[Any], list[Any]]:
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults
        bases = _format_param("base_momentum", optimizer, base)
        mosts = _format_param("max_momentum", optimizer, most)
        if first:
            for low, high, group in zip(bases, mosts, optimizer.param_groups, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"] = high
                group["base_momentum"] = low
        return bases, mosts

    def _set_momentum(self, group: dict[str, Any], momentum: Any) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(_CyclesMomentum):
    """Let the learning rates go up and down between two bounds, once per cycle.

    Step it after every batch.

    Args:
        optimizer: optimizer whose learning rates are set.
        base_lr: lower bound, or one for each parameter group.
        max_lr: upper bound, or one for each parameter group.
        step_size_up: number of steps of the rising half. Default: `2000`
        step_size_down: number of steps of the falling half; `step_size_up` if `None`.
        mode: `"triangular"` (constant height), `"triangular2"` (halved in each cycle) or `"exp_range"` (times
            `gamma**step`). Default: `"triangular"`
        gamma: factor of mode `"exp_range"`. Default: `1.0`
        scale_fn: function that gives the height of a cycle, instead of `mode`.
        scale_mode: whether `scale_fn` gets the `"cycle"` (counted from 1) or the `"iterations"`. Default: `"cycle"`
        cycle_momentum: let the momentum (or `beta1`) go the opposite way. Default: `True`
        base_momentum: lower bound of the momentum, or one for each group. Default: `0.8`
        max_momentum: upper bound of the momentum, or one for each group. Default: `0.9`
        last_epoch: index of the last epoch when resuming; `-1` starts anew. Default: `-1`

    Examples:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, 0.0, 1.0, step_size_up=2, cycle_momentum=False)
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = _format_param("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                _update_param_group_val(group, "lr", lr)
        self.max_lrs = _format_param("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom: Any = scale_fn
        self.scale_mode = scale_mode
        self._init_scale_fn()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            begun = self._begin_momentum(optimizer, base_momentum, max_momentum, last_epoch == -1)
            self.base_momentums, self.max_momentums = begun
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _init_scale_fn(self) -> None:
        if self._scale_fn_custom is not None:
            return
        if self.mode == "exp_range":
            self._scale_fn_ref: Callable[[float], float] = partial(self._exp_range_scale_fn, self.gamma)
            self.scale_mode = "iterations"
        else:
            self._scale_fn_ref = self._triangular_scale_fn if self.mode == "triangular" else self._triangular2_scale_fn
            self.scale_mode = "cycle"

    def scale_fn(self, x: float) -> float:
        """Return the height of a cycle or an iteration, relative to `max_lr - base_lr`."""
        return cast(float, self._scale_fn_ref(x) if self._scale_fn_custom is None else self._scale_fn_custom(x))

    @staticmethod
    def _triangular_scale_fn(x: float) -> float:
        return 1.0

    @staticmethod
    def _triangular2_scale_fn(x: float) -> float:
        return 1 / 2.0 ** (x - 1)

    @staticmethod
    def _exp_range_scale_fn(gamma: float, x: float) -> float:
        return cast(float, gamma**x)

    def get_lr(self) -> list[Any]:
        """Compute the learning rates for `last_epoch`, and set the momentum."""
        self._warn_of_get_lr()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)

        def scale() -> float:
            return self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)

        lrs = [base + (most - base) * height * scale() for base, most in zip(self.base_lrs, self.max_lrs, strict=True)]
        if self.cycle_momentum:
            ranges = zip(self.base_momentums, self.max_momentums, strict=True)
            momentums = [most - (most - base) * height * scale() for base, most in ranges]
            for group, momentum in zip(self.optimizer.param_groups, momentums, strict=True):
                self._set_momentum(group, momentum)
        return lrs

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes but the optimizer; of a callable `scale_fn` its attributes, of a function nothing."""
        fn = self._scale_fn_custom
        saved = None if fn is None or isinstance(fn, types.FunctionType) else fn.__dict__.copy()
        return {**self._state_without("_scale_fn_ref", "_scale_fn_custom"), "_scale_fn_custom": saved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of `state_dict`."""
        fn = state_dict["_scale_fn_custom"]
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_scale_fn_custom"})
        if fn is not None:
            self._scale_fn_custom.__dict__.update(fn)
        self._init_scale_fn()


class CosineAnnealingWarmRestarts(LRScheduler):
    """Anneal the learning rates along a cosine that restarts at the initial value.

    At `t` epochs after a restart, in a cycle of `T` epochs, they are
    `eta_min + (base_lr - eta_min) * (1 + cos(pi * t / T)) / 2`.

    Args:
        optimizer: optimizer whose learning rates are set.
        T_0: number of epochs of the first cycle.
        T_mult: factor by which each cycle is longer than the one before. Default: `1`
        eta_min: lowest learning rate. Default: `0.0`
        last_epoch: index of the last epoch when resuming; `-1` starts anew. Default: `-1`

    Examples:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
        >>> for _ in range(2):
        ...     optimizer.step()
        ...     scheduler.step()
        >>> scheduler.get_last_lr()
        [1.0]
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: Any = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_of_get_lr()
        wave = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * wave / 2 for base in self.base_lrs]

    def step(self, epoch: Any = None) -> None:
        """Set the next learning rates.

        Args:
            epoch: epoch to go to instead of the next one; may be fractional.
        """
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur = self.T_cur + 1
            if self.T_cur >= self.T_i:
                self.T_cur = self.T_cur % self.T_i
                self.T_i = self.T_i * self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        elif epoch < self.T_0:
            self.T_i = self.T_0
            self.T_cur = epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n
        self.last_epoch = math.floor(epoch)
        with self._during("_get_lr_called_within_step"):
            values = self.get_lr()
        self._set_lrs(values)


class OneCycleLR(_CyclesMomentum):
    """Warm up to `max_lr` and anneal to far below the initial learning rate, in one cycle.

    Step it after every batch. The momentum goes the opposite way.

    Args:
        optimizer: optimizer whose learning rates are set.
        max_lr: highest learning rate, or one for each parameter group.
        total_steps: number of steps; `epochs * steps_per_epoch` if `None`.
        epochs: number of epochs.
        steps_per_epoch: number of steps per epoch.
        pct_start: share of the steps, between 0 and 1, in which the learning rate rises. Default: `0.3`
        anneal_strategy: `"cos"` or `"linear"`. Default: `"cos"`
        cycle_momentum: change the momentum (or `beta1`) too. Default: `True`
        base_momentum: lower bound of the momentum, or one for each group. Default: `0.85`
        max_momentum: upper bound of the momentum, or one for each group. Default: `0.95`
        div_factor: the initial learning rate is `max_lr / div_factor`. Default: `25.0`
        final_div_factor: the last learning rate is the initial one divided by this. Default: `1e4`
        three_phase: fall back to the initial learning rate first, in as many steps as the rise took. Default: `False`
        last_epoch: index of the last epoch when resuming; `-1` starts anew. Default: `-1`

    Examples:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1, momentum=0.9)
        >>> scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10)
        >>> for _ in range(2):
        ...     optimizer.step()
        ...     scheduler.step()
        >>> scheduler.get_last_lr()
        [1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = self._count(total_steps, epochs, steps_per_epoch)
        last = self.total_steps - 1
        top = float(pct_start * self.total_steps) - 1
        if three_phase:
            again = float(2 * pct_start * self.total_steps) - 2
            phases = [
                (top, "initial_lr", "max_lr", "max_momentum", "base_momentum"),
                (again, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                (last, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
            ]
        else:
            phases = [
                (top, "initial_lr", "max_lr", "max_momentum", "base_momentum"),
                (last, "max_lr", "min_lr", "base_momentum", "max_momentum"),
            ]
        names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
        self._schedule_phases: list[dict[str, Any]] = [dict(zip(names, phase, strict=True)) for phase in phases]
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        max_lrs = _format_param("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for most, group in zip(max_lrs, optimizer.param_groups, strict=True):
                group["initial_lr"] = most / div_factor
                group["max_lr"] = most
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._begin_momentum(optimizer, base_momentum, max_momentum, last_epoch == -1)
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _count(total_steps: Any, epochs: Any, steps_per_epoch: Any) -> int:
        given = {"total_steps": total_steps}
        if total_steps is None:
            given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        if any(value is None for value in given.values()):
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        for name, value in given.items():
            if value <= 0 or not isinstance(value, int):
                raise ValueError(f"Expected positive integer {name}, but got {value}")
        return math.prod(given.values())

    def _anneal_func(self, start: Any, end: Any, pct: float) -> Any:
        anneal = self._annealing_cos if self._anneal_func_type == "cos" else self._annealing_linear
        return anneal(start, end, pct)

    @staticmethod
    def _annealing_cos(start: Any, end: Any, pct: float) -> Any:
        return end + (start - end) / 2.0 * (math.cos(math.pi * pct) + 1)

    @staticmethod
    def _annealing_linear(start: Any, end: Any, pct: float) -> Any:
        return (end - start) * pct + start

    def get_lr(self) -> list[Any]:
        """Compute the learning rates for `last_epoch`, and set the momentum."""
        self._warn_of_get_lr()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        start, phase = 0.0, self._schedule_phases[0]
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        pct = (step - start) / (phase["end_step"] - start)
        lrs = []
        for group in self.optimizer.param_groups:
            lrs.append(self._anneal_func(group[phase["start_lr"]], group[phase["end_lr"]], pct))
            if self.cycle_momentum:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._anneal_func(*ends, pct))
        return lrs
