"""Collation of samples into batches: tensors are stacked, numbers become tensors, containers are kept."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .... import _core
from ...._core import Tensor
from ...._creation import as_tensor, tensor
from ....multiprocessing import _memory
from ._nested import is_named, mapping_like, sequence_like

np_str_obj_array_pattern = re.compile(r"[SaUO]")
default_collate_err_msg_format = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
# From this many bytes on, a copy costs more than a new piece of shared memory.
_LARGE = 1 << 16
_Map = dict[Any, Callable[..., Any]]


def default_convert(data: Any) -> Any:
    """Convert the NumPy arrays and scalars of one sample to tensors.

    Containers are kept, except that tuples become lists; Python numbers and strings stay as they are.

    Args:
        data: sample.

    Examples:
        >>> torch.utils.data.default_convert({"x": torch.ones(2), "y": 3})
        {'x': tensor([1., 1.]), 'y': 3}
    """
    kind = type(data)
    if isinstance(data, Tensor):
        return data
    if kind.__module__ == "numpy" and kind.__name__ not in ("str_", "string_"):
        text = kind.__name__ == "ndarray" and np_str_obj_array_pattern.search(data.dtype.str)
        return data if text else as_tensor(data)
    if isinstance(data, Mapping):
        return mapping_like(data, lambda: {key: default_convert(data[key]) for key in data})
    if is_named(data):
        return kind(*[default_convert(x) for x in data])
    if isinstance(data, tuple):
        return [default_convert(x) for x in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return sequence_like(data, lambda: [default_convert(x) for x in data])
    return data


def collate(batch: Any, *, collate_fn_map: _Map | None = None) -> Any:
    """Collate a list of samples, with a function for each type that is not a container."""
    first = batch[0]
    if collate_fn_map is not None:
        kinds = collate_fn_map
        found = kinds.get(type(first)) or next((kinds[kind] for kind in kinds if isinstance(first, kind)), None)
        if found is not None:
            return found(batch, collate_fn_map=collate_fn_map)

    def together(samples: Any) -> Any:
        return collate(samples, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        return mapping_like(first, lambda: {key: together([sample[key] for sample in batch]) for key in first})
    if is_named(first):
        return type(first)(*[together(column) for column in zip(*batch, strict=False)])
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = list(zip(*batch, strict=False))
        if isinstance(first, tuple):
            return [together(column) for column in columns]
        return sequence_like(first, lambda: [together(column) for column in columns])
    raise TypeError(default_collate_err_msg_format.format(type(first)))


def collate_tensor_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Tensor:
    """Stack tensors; a worker stacks large ones in shared memory."""
    first = batch[0]
    if len(batch) * first.numel() * first.element_size() >= _LARGE and _goes_to_the_loader(batch):
        out = _memory.to_hand_on(first.dtype, (len(batch), *first.shape))
        return _core.stack(batch, 0, out=out)
    return _core.stack(batch, 0)


def _goes_to_the_loader(batch: Any) -> bool:
    from .worker import get_worker_info

    if get_worker_info() is None or not _memory.can_share():
        return False
    first = batch[0]
    return all(
        type(t) is Tensor and not t.requires_grad and not t.is_cuda and (t.dtype, t.shape) == (first.dtype, first.shape)
        for t in batch
    )


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Any:
    """Stack arrays, except those of strings and objects."""
    if np_str_obj_array_pattern.search(batch[0].dtype.str):
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate([as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Tensor:
    """Make a tensor of NumPy scalars."""
    return as_tensor(batch)


def collate_float_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Tensor:
    """Make a float64 tensor of floats."""
    return tensor(batch, dtype=_core.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Tensor:
    """Make a tensor of integers."""
    return tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Any:
    """Return the strings as they are."""
    return batch


default_collate_fn_map: _Map = {
    Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def _know_numpy() -> None:
    """NumPy's types, once there is NumPy: nobody has arrays before it is imported."""
    np = sys.modules.get("numpy")
    if np is None or not hasattr(np, "ndarray") or np.ndarray in default_collate_fn_map:
        return
    known = dict(default_collate_fn_map)
    default_collate_fn_map.clear()
    # Asked before float, of which one of NumPy's numbers is a subclass.
    default_collate_fn_map.update({Tensor: known.pop(Tensor, collate_tensor_fn), np.ndarray: collate_numpy_array_fn})
    default_collate_fn_map[np.bool_, np.number, np.object_] = collate_numpy_scalar_fn
    default_collate_fn_map.update(known)


def default_collate(batch: Any) -> Any:
    """Collate a list of samples into a batch with a new first dimension.

    Tensors and arrays are stacked, numbers become a tensor, strings stay in a list. Dicts, lists and tuples are
    collated
    by their elements; tuples become lists.

    Args:
        batch: list of samples of the same structure.

    Examples:
        >>> torch.utils.data.default_collate([(torch.ones(2), 0, "a"), (torch.zeros(2), 1, "b")])
        [tensor([[1., 1.],
                [0., 0.]]), tensor([0, 1]), ('a', 'b')]
    """
    _know_numpy()
    return collate(batch, collate_fn_map=default_collate_fn_map)
