"""Helpers for arguments with one number for each dimension, and for state dicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Iterable[Any], n: int) -> tuple[Any, ...]:
    """Return the elements in reverse order, each `n` times: the order of `F.pad`."""
    return tuple(x for x in reversed(tuple(t)) for _ in range(n))


def _list_with_default(out_size: Any, defaults: list[int]) -> Any:
    """Return the sizes, with the default in place of `None`."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [size if size is not None else d for size, d in zip(out_size, defaults[-len(out_size) :], strict=False)]


def consume_prefix_in_state_dict_if_present(state_dict: Any, prefix: str) -> None:
    """Strip a prefix from the keys of a state dict, in place.

    It makes the state of a wrapped module, as from `DistributedDataParallel`, fit the module itself.

    Args:
        state_dict: the state dict.
        prefix: the prefix, such as `"module."`.

    Examples:
        >>> state = {"module.weight": 1, "step": 2}
        >>> torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
        >>> state
        {'step': 2, 'weight': 1}
    """
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata: Any = getattr(state_dict, "_metadata", None) or {}
    for key in list(metadata):
        # The key of the wrapped module itself is the prefix without its dot.
        if key and (key == prefix.replace(".", "") or key.startswith(prefix)):
            metadata[key[len(prefix) :]] = metadata.pop(key)
