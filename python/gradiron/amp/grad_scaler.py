"""Gradient scaling for mixed precision training."""

from __future__ import annotations

import enum
import functools
import inspect
import warnings
from collections.abc import Iterable
from typing import Any

from .. import _core
from .._core import Tensor
from ..autograd.grad_mode import no_grad

__all__ = ["GradScaler", "OptState"]


class OptState(enum.Enum):
    """Stage of an optimizer's step in `GradScaler`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


@functools.lru_cache(maxsize=16)
def _takes_scaler(step: Any) -> bool:
    return "grad_scaler" in inspect.signature(step).parameters


_UNUSED = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."


class GradScaler:
    """Scale losses so that gradients in float16 do not underflow, and skip steps that overflow.

    The scale is multiplied by `growth_factor` after `growth_interval` steps in a row without infinities and NaNs, and
    by
    `backoff_factor` after each step with one.

    Args:
        device: type of the device; `"cuda"` without a GPU disables the scaler. Default: `"cuda"`
        init_scale: initial scale. Default: `2.0**16`
        growth_factor: factor by which the scale grows, above 1. Default: `2.0`
        backoff_factor: factor by which the scale shrinks, below 1. Default: `0.5`
        growth_interval: number of good steps before the scale grows. Default: `2000`
        enabled: whether to scale; otherwise `step` is the optimizer's and the rest does nothing. Default: `True`

    Examples:
        >>> model = nn.Linear(2, 1)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> scaler = torch.amp.GradScaler("cpu")
        >>> loss = model(torch.ones(4, 2)).mean()
        >>> scaler.scale(loss).backward()
        >>> _ = scaler.step(optimizer)
        >>> scaler.update()
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda":
            from .. import cuda

            if not cuda.is_available():
                warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
                self._enabled = False
        if self._enabled:
            if growth_factor <= 1.0:
                raise AssertionError("The growth factor must be > 1.0.")
            if backoff_factor >= 1.0:
                raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Tensor | None = None
        # Those of optimizers that were neither unscaled nor stepped since the last update are `None`.
        self._per_optimizer_states: dict[int, dict[str, Any] | None] = {}

    def _started(self, action: str) -> tuple[Tensor, Tensor]:
        if self._scale is None or self._growth_tracker is None:
            raise AssertionError(f"Attempted {action} but _scale is None.  {_UNUSED}")
        return self._scale, self._growth_tracker

    def _start(self, device: Any) -> None:
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        self._scale = _core.full((), self._init_scale, dtype=_core.float32, device=device)
        self._growth_tracker = _core.full((), self._init_growth_tracker, dtype=_core.int32, device=device)

    def _state(self, optimizer: Any) -> dict[str, Any]:
        state = self._per_optimizer_states.get(id(optimizer))
        if state is None:
            state = self._per_optimizer_states[id(optimizer)] = {"stage": OptState.READY, "found_inf": None}
        return state

    def scale(self, outputs: Any) -> Any:
        """Multiply a tensor, or each tensor of an iterable, by the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._start(outputs.device)
            scale, _ = self._started("scale")
            return outputs * scale.to(device=outputs.device)
        if isinstance(outputs, Iterable):
            made = [self.scale(value) for value in outputs]
            return type(outputs)(made) if isinstance(outputs, (list, tuple)) else made
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _unscale_grads_(self, optimizer: Any, inverse: Tensor) -> Tensor | bool:
        """Divides the gradients by the scale; whether one of them is infinite or no number."""
        finite: Any = None
        with no_grad():
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    if p.grad.dtype is _core.float16 and p.dtype is _core.float16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    p.grad.mul_(inverse.to(device=p.grad.device))
                    values = p.grad._values() if p.grad.is_sparse else p.grad
                    good = values.isfinite().all()
                    finite = good if finite is None else finite & good.to(device=finite.device)
            return False if finite is None else ~finite

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, for instance before clipping them."""
        if not self._enabled:
            return
        scale, _ = self._started("unscale_")
        state = self._state(optimizer)
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        state["found_inf"] = self._unscale_grads_(optimizer, scale.double().reciprocal().float())
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Unscale the gradients and run `optimizer.step`, unless a gradient is infinite or NaN.

        Args:
            optimizer: optimizer to step.
            args, kwargs: arguments of its `step`.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._started("step")
        state = self._state(optimizer)
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if state["found_inf"] is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        if _takes_scaler(getattr(optimizer.step, "__func__", optimizer.step)):
            kwargs["grad_scaler"] = self
        state["found_inf"] = bool(state["found_inf"])
        done = None if state["found_inf"] else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return done

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Update the scale; call it once per iteration, after the steps of all optimizers.

        Args:
            new_scale: scale to set instead.
        """
        if not self._enabled:
            return
        scale, tracker = self._started("update")
        if new_scale is not None:
            scale.fill_(new_scale) if isinstance(new_scale, float) else scale.copy_(new_scale)
        else:
            states = [state for state in self._per_optimizer_states.values() if state is not None]
            found = [state["found_inf"] for state in states if state["found_inf"] is not None]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            if any(found):
                scale.mul_(self._backoff_factor)
                tracker.fill_(0)
            else:
                tracker.add_(1)
                grown, is_due = scale * self._growth_factor, tracker == self._growth_interval
                scale.copy_(_core.where(is_due & grown.isfinite(), grown, scale))
                tracker.masked_fill_(is_due, 0)
        for number in self._per_optimizer_states:
            self._per_optimizer_states[number] = None

    def _get_scale_async(self) -> Tensor | None:
        return self._scale

    def get_scale(self) -> float:
        """Return the scale as a float; 1 if the scaler is disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def get_growth_factor(self) -> float:
        """Return the factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the factor by which the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return the number of good steps before the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of good steps before the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def is_enabled(self) -> bool:
        """Return whether the scaler is enabled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Return the scale and the options; take it after `update`."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of `state_dict`."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        if self._enabled and any(state is not None for state in self._per_optimizer_states.values()):
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                "scaler.update()."
            )
        state = self.__dict__.copy()
        if self._enabled:
            state["_init_scale"], state["_init_growth_tracker"] = self.get_scale(), self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
            state["_per_optimizer_states"] = {}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _check_inf_per_device(self, optimizer: Any) -> bool:
        scale, _ = self._started("_check_inf_per_device")
        found = bool(self._unscale_grads_(optimizer, _core.ones_like(scale)))
        self._state(optimizer)["found_inf"] = found
        return found
