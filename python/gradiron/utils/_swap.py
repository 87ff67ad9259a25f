"""`swap_tensors`, which exchanges two tensor objects."""

from __future__ import annotations

import copyreg
import weakref
from typing import Any, NoReturn

from .. import _core
from .._core import Tensor


def _poisoned(grads: Any) -> NoReturn:
    raise RuntimeError(
        "Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when you try to run backward "
        "on a tensor that was swapped. Change a tensor's device or dtype before the forward pass, or after the backward."
    )


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange two tensors in place: values, gradients, attributes and classes.

    Args:
        t1, t2: tensors without weak references to them.

    Examples:
        >>> a, b = torch.zeros(1), torch.ones(2)
        >>> torch.utils.swap_tensors(a, b)
        >>> a, b
        (tensor([1., 1.]), tensor([0.]))
    """
    for tensor, name in ((t1, "t1"), (t2, "t2")):
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots = [set(copyreg._slotnames(type(tensor))) for tensor in (t1, t2)]  # type: ignore[attr-defined]
    if slots[0] != slots[1]:
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    for end in _core.swap_contents(t1, t2):
        end.register_prehook(_poisoned)
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for slot in slots[0]:
        _swap_slot(t1, t2, slot)


def _swap_slot(t1: Tensor, t2: Tensor, slot: str) -> None:
    values = [(tensor, getattr(tensor, slot)) for tensor in (t1, t2) if hasattr(tensor, slot)]
    for tensor, _ in values:
        delattr(tensor, slot)
    for tensor, value in values:
        setattr(t2 if tensor is t1 else t1, slot, value)
