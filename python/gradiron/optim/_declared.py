"""An optimizer as a declaration of its state, its options and its rule: the step and the functional form are written here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import gradiron as torch

from .._core import Tensor
from ._rule import Rule
from .optimizer import (
    Optimizer,
    _device_dtype_check_for_fused,
    _get_capturable_supported_devices,
    _get_scalar_dtype,
    _use_grad_for_differentiable,
)

Options: TypeAlias = dict[str, Any]
Lists: TypeAlias = dict[str, list[Any]]


def zeros(p: Tensor, group: Options) -> Tensor:
    """Make a state entry of zeros like the parameter."""
    return torch.zeros_like(p, memory_format=torch.preserve_format)


def count(p: Tensor, group: Options) -> Tensor:
    """Make a count of steps, on the parameter's device if the step is captured or fused."""
    fused = group.get("fused")
    on_device = group.get("capturable") or fused
    return torch.zeros((), dtype=_get_scalar_dtype(fused), device=p.device if on_device else "cpu")


def check_options(**options: Any) -> None:
    """Refuse numbers below 0, and betas outside of [0, 1)."""
    names = {"lr": "learning rate", "eps": "epsilon value"}
    for name, value in options.items():
        if name == "betas":
            for i, beta in enumerate(value):
                if not 0.0 <= beta < 1.0:
                    raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        elif name == "lr" and isinstance(value, Tensor) and value.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        elif not 0.0 <= value:
            raise ValueError(f"Invalid {names.get(name, f'{name} value')}: {value}")


def check_steps(steps: list[Any], name: str = "state_steps") -> None:
    """Refuse counts that are not tensors."""
    for step in steps:
        if not isinstance(step, Tensor):
            raise RuntimeError(f"API has changed, `{name}` argument must contain a list of singleton tensors")


def check_foreach(foreach: bool | None, differentiable: bool) -> None:
    """Refuse to differentiate through an update of all parameters at once."""
    if foreach and differentiable:
        raise AssertionError("_foreach ops don't support autograd")


def check_capturable(
    capturable: bool, foreach: bool | None, *tensors: list[Tensor], names: str = "params and state_steps"
) -> None:
    """Refuse `capturable` where parameters and counts are not on a device whose steps can be captured."""
    if not capturable:
        return
    devices = _get_capturable_supported_devices(supports_xla=not foreach)
    for own in zip(*tensors, strict=True):
        kinds = {tensor.device.type for tensor in own}
        if len(kinds) != 1 or not kinds.issubset(devices):
            raise AssertionError(f"If capturable=True, {names} must be on supported devices: {devices}.")


class DeclaredOptimizer(Optimizer):
    """Base class of the optimizers that declare their options, their state and their rule.

    `__init__` checks its arguments and passes `self._chosen_options(locals())` on; the functional form passes its
    `locals()` to `_functional`. What an optimizer does in its own way, it overrides.
    """

    # The names of the options, in the order in which a group holds them.
    _OPTIONS: ClassVar[Sequence[str]]
    # Options that old checkpoints lack, and their values.
    _ADDED: ClassVar[Options] = {}
    # Options that hold two numbers, and the names of these.
    _PAIRS: ClassVar[Mapping[str, tuple[str, str]]] = {}
    # The entries of a parameter's state, and how each is made.
    _STATE: ClassVar[Mapping[str, Callable[[Tensor, Options], Tensor | None]]] = {}
    # Entries that exist only under some options.
    _OPTIONAL: ClassVar[Mapping[str, Callable[[Options], bool]]] = {}
    # Entries of one number each, which are tensors on the CPU unless the options say otherwise.
    _COUNTS: ClassVar[tuple[str, ...]] = ("step",)
    # Whether they are on the parameter's device regardless of the options.
    _COUNTS_ON_DEVICE: ClassVar[bool] = False
    # The arithmetic, over the parameter `param`, its gradient `grad`, the state's entries and the numbers.
    _RULE: ClassVar[Rule]
    # The options, or parts of them, that the rule reads.
    _NUMBERS: ClassVar[Sequence[str]] = ()
    # Whether `fused=True` is an option, which lets a gradient scaler leave the scaling to the step.
    _HAS_FUSED: ClassVar[bool] = False
    # The error for a sparse gradient; `None` if the rule is written for such, too.
    _NO_SPARSE: ClassVar[str | None] = "{name} does not support sparse gradients"

    def _chosen_options(self, given: Options) -> dict[str, Any]:
        """Return the options among the arguments of `__init__`."""
        # Pickle writes a string once that several optimizers share.
        return {sys.intern(name): given[name] for name in self._OPTIONS}

    def _check_fused(self) -> None:
        """Refuse what a fused step cannot do, and tell gradient scalers that the step can do their work."""
        if self.defaults["fused"]:
            if self.defaults["differentiable"]:
                raise RuntimeError("`fused` does not support `differentiable`")
            if self.defaults["foreach"]:
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
            self._step_supports_amp_scaling = True

    def _check_fused_once(self, params: list[Tensor]) -> None:
        """Refuse the first parameter that a fused step ever meets, if it cannot be fused."""
        if params and getattr(self, "_need_device_dtype_check_for_fused", True):
            _device_dtype_check_for_fused(params[0])
            self._need_device_dtype_check_for_fused = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for option, value in self._ADDED.items():
                group.setdefault(option, value)
            fused = group.get("fused") or None
            on_device = self._COUNTS_ON_DEVICE or group.get("capturable") or fused
            for p in group["params"] if self._COUNTS else ():
                # Old checkpoints hold numbers.
                own = self.state.get(p, {})
                for name in self._COUNTS if own else ():
                    if not isinstance(own[name], Tensor):
                        device = p.device if on_device else None
                        own[name] = torch.tensor(float(own[name]), dtype=_get_scalar_dtype(fused), device=device)

    @classmethod
    def _state_entries(cls, options: Options) -> Iterable[str]:
        """Return the names of the entries that the state has under these options."""
        if not cls._OPTIONAL:
            return cls._STATE
        return [name for name in cls._STATE if name not in cls._OPTIONAL or cls._OPTIONAL[name](options)]

    @staticmethod
    def _rule_flags(options: Options) -> dict[str, Any]:
        """Return the flags under which the rule is traced."""
        return {"maximize": options["maximize"], "decay": options["weight_decay"] != 0}

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Make the state of a parameter that is updated for the first time."""
        return {name: self._STATE[name](p, group) for name in self._state_entries(group)}

    def _gather_lists(self, group: dict[str, Any]) -> tuple[list[Tensor], list[Tensor], Lists]:
        """Return the group's parameters that have gradients, the gradients, and a list for each entry of the state."""
        params, grads, states = [], [], []
        for p in group["params"]:
            if (grad := p.grad) is not None:
                if self._NO_SPARSE and type(grad) is not Tensor and grad.is_sparse:
                    raise RuntimeError(self._NO_SPARSE.format(name=type(self).__name__))
                state = self.state[p]
                if not state:
                    state.update(self._new_state(p, group))
                params.append(p)
                grads.append(grad)
                states.append(state)
        return params, grads, {name: [state[name] for state in states] for name in self._state_entries(group)}

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Perform one optimization step."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            self._step_group(group)
        return loss

    def _step_group(self, group: dict[str, Any]) -> None:
        self._update_lists(*self._gather_lists(group), self._group_options(group))

    def _group_options(self, group: dict[str, Any]) -> Options:
        """Return the group's options as the functional form names them."""
        options = group.copy()
        if self._HAS_FUSED:
            options["grad_scale"] = getattr(self, "grad_scale", None)
            options["found_inf"] = getattr(self, "found_inf", None)
        for name, (first, second) in self._PAIRS.items():
            options[first], options[second] = group[name][0], group[name][1]
        return options

    @classmethod
    def _functional(cls, given: dict[str, Any], **others: Any) -> None:
        """Run the functional form, given its arguments by name. `exp_avgs` is the list of the entries `exp_avg`, and so on."""
        given |= others
        lists = {name: given["state_steps" if name == "step" else f"{name}s"] for name in cls._state_entries(given)}
        cls._update_lists(given["params"], given["grads"], lists, given)

    @classmethod
    def _update_lists(cls, params: list[Tensor], grads: list[Tensor], lists: Lists, options: Options) -> None:
        """Check the arguments and apply the rule, unless a gradient scaler found an infinite gradient."""
        found_inf = options["found_inf"] if cls._HAS_FUSED else None
        if cls._HAS_FUSED and not options["fused"] and (found_inf is not None or options["grad_scale"] is not None):
            raise AssertionError("Expected grad_scale and found_inf to be None")
        cls._check_arguments(params, lists, options)
        if params and (found_inf is None or found_inf.item() == 0):
            cls._apply_rule(params, grads, lists, options)

    @classmethod
    def _check_arguments(cls, params: list[Tensor], lists: Lists, options: Options) -> None:
        """Refuse arguments as PyTorch's functional form does."""
        check_steps(lists["step"])
        check_foreach(options["foreach"], options["differentiable"])
        check_capturable(options["capturable"], options["foreach"], params, lists["step"])

    @classmethod
    def _apply_rule(cls, params: list[Tensor], grads: list[Tensor], lists: Lists, options: Options) -> None:
        """Apply the rule to all parameters."""
        counts = {name: lists.pop(name) for name in cls._COUNTS}
        numbers = {name: options[name] for name in cls._NUMBERS}
        fused = cls._HAS_FUSED and options["fused"]
        if fused and options["grad_scale"] is not None:
            numbers["grad_scale"] = options["grad_scale"]
        operands = {"param": params, "grad": grads, **lists}
        cls._RULE(operands, counts, numbers, rounds=not fused, **cls._rule_flags(options))
