"""Averaged models (stochastic weight averaging, exponential moving average) and their learning rate scheduler."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

import gradiron as torch

from .._core import Tensor
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from ._rule import Rule, Trace
from .lr_scheduler import LRScheduler, _format_param
from .optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


@Rule
def _approach(x: Trace) -> None:
    x.average = x.average.lerp(x.current, x.weight)


@Rule
def _average(x: Trace) -> None:
    x.average = x.average + (x.current - x.average) / x.count


def _is_smooth(tensor: Tensor) -> bool:
    return bool(tensor.is_floating_point() or tensor.is_complex())


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Any, Any, Any], None]:
    """Return a function that updates lists of exponential moving averages in place.

    Args:
        decay: weight of the old average. Default: `0.999`

    Examples:
        >>> averages = [torch.zeros(1)]
        >>> torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)(averages, [torch.ones(1)], 1)
        >>> averages
        [tensor([0.1000])]
    """
    _check_decay(decay)

    @torch.no_grad()
    def ema_update(ema_param_list: Sequence[Tensor], current_param_list: Sequence[Tensor], _: Any) -> None:
        if _is_smooth(ema_param_list[0]):
            return _approach({"average": ema_param_list, "current": current_param_list}, {}, {"weight": 1 - decay})
        for average, current in zip(ema_param_list, current_param_list, strict=True):
            average.copy_(average * decay + current * (1 - decay))
        return None

    return ema_update


def get_swa_multi_avg_fn() -> Callable[[Any, Any, Any], None]:
    """Return a function that updates lists of equally weighted averages in place.

    Examples:
        >>> averages = [torch.zeros(1)]
        >>> torch.optim.swa_utils.get_swa_multi_avg_fn()(averages, [torch.ones(1)], 1)
        >>> averages
        [tensor([0.5000])]
    """

    @torch.no_grad()
    def swa_update(averaged_param_list: Sequence[Tensor], current_param_list: Sequence[Tensor], num_averaged: Any) -> None:
        if _is_smooth(averaged_param_list[0]):
            operands = {"average": averaged_param_list, "current": current_param_list}
            return _approach(operands, {}, {"weight": 1 / (num_averaged + 1)})
        for average, current in zip(averaged_param_list, current_param_list, strict=True):
            average.add_((current - average) / (num_averaged + 1))
        return None

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """Return a function that computes an exponential moving average, for `AveragedModel`.

    Args:
        decay: weight of the old average. Default: `0.999`

    Examples:
        >>> torch.optim.swa_utils.get_ema_avg_fn(0.9)(torch.zeros(1), torch.ones(1), 1)
        tensor([0.1000])
    """
    _check_decay(decay)

    @torch.no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Any:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Any], Tensor]:
    """Return a function that computes an equally weighted average, for `AveragedModel`.

    Examples:
        >>> torch.optim.swa_utils.get_swa_avg_fn()(torch.zeros(1), torch.ones(1), 1)
        tensor([0.5000])
    """

    @torch.no_grad()
    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Any:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's over the course of training.

    Args:
        model: model to copy.
        device: device of the copy.
        avg_fn: function `(average, current, count)` that returns the new average; the default weights all equally.
        multi_avg_fn: function that updates lists of averages in place, instead of `avg_fn`.
        use_buffers: average buffers too, rather than copy them from the model. Default: `False`

    Examples:
        >>> model = nn.Linear(2, 1)
        >>> averaged = torch.optim.swa_utils.AveragedModel(model)
        >>> averaged.update_parameters(model)
        >>> averaged(torch.ones(4, 2)).shape
        torch.Size([4, 1])
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[[Tensor, Tensor, Any], Tensor] | None = None,
        multi_avg_fn: Callable[[Any, Any, Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", torch.tensor(0, dtype=torch.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the averaged model."""
        return self.module(*args, **kwargs)

    def _averaged(self, model: Module) -> Iterable[Tensor]:
        return itertools.chain(model.parameters(), model.buffers() if self.use_buffers else ())

    def update_parameters(self, model: Module) -> None:
        """Update the averages with the current parameters of `model`."""
        averages = [p.detach() for p in self._averaged(self.module)]
        others = zip(averages, self._averaged(model), strict=False)
        currents = [p.detach().to(average.device) for average, p in others]
        if self.n_averaged == 0:
            for average, current in zip(averages, currents, strict=False):
                average.copy_(current)
        elif self.avg_fn is not None:
            for average, current in zip(averages, currents, strict=False):
                average.copy_(self.avg_fn(average, current, self.n_averaged.to(average.device)))
        else:
            self._update_lists(averages, currents)
        if not self.use_buffers:
            for own, buffer in zip(self.module.buffers(), model.buffers(), strict=True):
                own.detach().copy_(buffer.detach().to(own.device))
        self.n_averaged += 1

    def _update_lists(self, averages: list[Tensor], currents: list[Tensor]) -> None:
        kinds: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
        for average, current in zip(averages, currents, strict=False):
            own, other = kinds.setdefault((average.device, average.dtype), ([], []))
            own.append(average)
            other.append(current)
        for (device, _), (own, other) in kinds.items():
            count = self.n_averaged.to(device)
            if self.multi_avg_fn is not None:
                self.multi_avg_fn(own, other, count)
            elif device.type != "cpu":
                get_swa_multi_avg_fn()(own, other, count)
            elif _is_smooth(own[0]):
                _average({"average": own, "current": other}, {}, {"count": count.item() + 1})
            else:
                avg_fn = get_swa_avg_fn()
                for average, current in zip(own, other, strict=True):
                    average.copy_(avg_fn(average, current, count))


@torch.no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the running statistics of batch normalization layers in one pass over the data.

    Args:
        loader: iterable of batches; of a list or tuple, the first element is given to the model.
        model: model to update.
        device: device to which batches are moved.

    Examples:
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
        >>> torch.optim.swa_utils.update_bn([torch.randn(8, 2), torch.randn(8, 2)], model)
        >>> model[1].num_batches_tracked
        tensor(2)
    """
    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None
    for batch in loader:
        given = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(given if device is None else given.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneal the learning rates to `swa_lr`, at which they stay.

    Args:
        optimizer: optimizer whose learning rates are set.
        swa_lr: final learning rate, or one for each parameter group.
        anneal_epochs: number of steps until `swa_lr` is reached. Default: `10`
        anneal_strategy: `"cos"` or `"linear"`. Default: `"cos"`
        last_epoch: index of the last epoch when resuming. Default: `-1`

    Examples:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.swa_utils.SWALR(optimizer, 0.5, anneal_epochs=2, anneal_strategy="linear")
        >>> for _ in range(2):
        ...     optimizer.step()
        ...     scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for rate, group in zip(_format_param("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._set_anneal_func(anneal_strategy)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _linear_anneal(t: float) -> float:
        return t

    @staticmethod
    def _cosine_anneal(t: float) -> float:
        return (1 - math.cos(math.pi * t)) / 2

    @staticmethod
    def _get_initial_lr(lr: Any, swa_lr: Any, alpha: float) -> Any:
        return swa_lr if alpha == 1 else (lr - alpha * swa_lr) / (1 - alpha)

    def get_lr(self) -> list[Any]:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=2,
            )
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        span = max(1, self.anneal_epochs)
        before, now = (self.anneal_func(max(0, min(1, at / span))) for at in (step - 1, step))
        rates = []
        for group in self.optimizer.param_groups:
            # The initial learning rate, computed back from the current one.
            start = self._get_initial_lr(group["lr"], group["swa_lr"], before)
            rates.append(group["swa_lr"] * now + start * (1 - now))
        return rates

    def _set_anneal_func(self, anneal_strategy: str) -> None:
        self._anneal_strategy = anneal_strategy
        self.anneal_func = self._cosine_anneal if anneal_strategy == "cos" else self._linear_anneal

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes but the optimizer and the annealing function."""
        return self._state_without("anneal_func")

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of `state_dict`."""
        self.__dict__.update(state_dict)
        self._set_anneal_func(self._anneal_strategy)
