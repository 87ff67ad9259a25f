"""Collectives of Python objects, which are sent as pickles."""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .._creation import frombuffer
from .._creation import tensor as make_tensor
from .distributed_c10d import (
    _check_member,
    _group_rank,
    _resolve,
    all_gather,
    broadcast,
    gather,
    get_global_rank,
    get_rank,
    get_world_size,
    recv,
    scatter,
    send,
)

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]


def _object_to_tensor(obj: Any, device: Any = None, group: Any = None) -> tuple[Tensor, Tensor]:
    """The bytes of an object's pickle, and how many there are."""
    data = bytearray(pickle.dumps(obj))
    return frombuffer(data, dtype=_core.uint8), make_tensor([len(data)], dtype=_core.int64)


def _tensor_to_object(tensor: Tensor, tensor_size: Any, group: Any = None, weights_only: bool = False) -> Any:
    """The object that `_object_to_tensor` was given."""
    data = _core.to_bytes(tensor[: int(tensor_size)])
    if weights_only:
        from ..serialization import _pickles

        return _pickles.loader(pickle, io.BytesIO(data), _refuse_storage, weights_only=True).load()
    return pickle.loads(data)


def _refuse_storage(pid: Any) -> Any:
    raise pickle.UnpicklingError(f"an object from another rank names a storage of a file: {pid!r:.100}")


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None, weights_only: bool = False) -> None:
    """Gather an object from each rank into a list, on all ranks.

    Args:
        object_list: list of as many elements as ranks, to write to.
        obj: object of this rank, which can be pickled.
        group: process group; the default group if `None`.
        weights_only: unpickle tensors and plain types only. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> objects = [None]
        >>> torch.distributed.all_gather_object(objects, {"loss": 1.5})
        >>> objects
        [{'loss': 1.5}]
        >>> torch.distributed.destroy_process_group()
    """
    if not _check_member("all_gather_object", group):
        return
    sent, size = _object_to_tensor(obj)
    sizes, sent = _gather_sizes(sent, size, group)
    received = [_core.empty_like(sent) for _ in sizes]
    all_gather(received, sent, group)
    for at, tensor in enumerate(received):
        object_list[at] = _tensor_to_object(tensor, sizes[at], group, weights_only)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
    weights_only: bool = False,
) -> None:
    """Gather an object from each rank into a list, on one rank.

    Args:
        obj: object of this rank, which can be pickled.
        object_gather_list: list of as many elements as ranks, to write to; `None` on other ranks than `dst`.
        dst: rank that gets the list; 0 if `None`.
        group: process group; the default group if `None`.
        group_dst: the same as a rank of the group.
        weights_only: unpickle tensors and plain types only. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> objects = [None]
        >>> torch.distributed.gather_object("a", objects)
        >>> objects
        ['a']
        >>> torch.distributed.destroy_process_group()
    """
    if not _check_member("gather_object", group):
        return
    if dst is None and group_dst is None:
        dst = 0
    root = _group_rank(_resolve(group), dst, group_dst)
    if get_rank(group) == root:
        if not object_gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    elif object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    sent, size = _object_to_tensor(obj)
    sizes, sent = _gather_sizes(sent, size, group)
    received = [_core.empty_like(sent) for _ in sizes] if get_rank(group) == root else None
    gather(sent, received, group=group, group_dst=root)
    for at, tensor in enumerate(received or []):
        assert object_gather_list is not None
        object_gather_list[at] = _tensor_to_object(tensor, sizes[at], group, weights_only)


def _gather_sizes(sent: Tensor, size: Tensor, group: Any) -> tuple[list[int], Tensor]:
    """The sizes of all ranks' pickles, and this rank's in as much memory as the longest needs."""
    each = [_core.zeros(1, dtype=_core.int64) for _ in range(get_world_size(group))]
    all_gather(each, size, group)
    sizes = [int(one) for one in each]
    room = _core.zeros(max(sizes), dtype=_core.uint8)
    room[: sent.numel()] = sent
    return sizes, room


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    weights_only: bool = False,
) -> None:
    """Send the objects of a list from one rank to all, where they replace those in the list.

    Args:
        object_list: list of the same length on all ranks.
        src: rank that sends; 0 if `None`.
        group: process group; the default group if `None`.
        device: accepted for compatibility.
        group_src: the same as a rank of the group.
        weights_only: unpickle tensors and plain types only. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> objects = ["a", 1]
        >>> torch.distributed.broadcast_object_list(objects)
        >>> torch.distributed.destroy_process_group()
    """
    if src is None and group_src is None:
        src = 0
    if not _check_member("broadcast_object_list", group):
        return
    root = _group_rank(_resolve(group), src, group_src)
    if get_rank(group) == root:
        sizes, data = _joined(object_list)
    else:
        sizes, data = _core.empty(len(object_list), dtype=_core.int64), None
    broadcast(sizes, group=group, group_src=root)
    if data is None:
        data = _core.empty(int(sizes.sum()), dtype=_core.uint8)
    broadcast(data, group=group, group_src=root)
    if get_rank(group) != root:
        _split_into(object_list, sizes, data, group, weights_only)


def _joined(objects: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """The sizes of objects' pickles, and the pickles one after another."""
    pairs = [_object_to_tensor(obj) for obj in objects]
    return _core.cat([size for _, size in pairs]), _core.cat([data for data, _ in pairs])


def _split_into(objects: list[Any], sizes: Tensor, data: Tensor, group: Any, weights_only: bool) -> None:
    at = 0
    for place, size in enumerate(sizes.tolist()):
        objects[place] = _tensor_to_object(data[at : at + size], size, group, weights_only)
        at += size


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Sequence[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
    weights_only: bool = False,
) -> None:
    """Distribute the objects of a list from one rank, one to each rank.

    Args:
        scatter_object_output_list: list whose first element is replaced by the object.
        scatter_object_input_list: objects, one per rank; `None` on other ranks than `src`.
        src: rank that sends; 0 if `None`.
        group: process group; the default group if `None`.
        group_src: the same as a rank of the group.
        weights_only: unpickle tensors and plain types only. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> objects = [None]
        >>> torch.distributed.scatter_object_list(objects, ["a"])
        >>> objects
        ['a']
        >>> torch.distributed.destroy_process_group()
    """
    if not _check_member("scatter_object_list", group):
        return
    if not isinstance(scatter_object_output_list, list) or len(scatter_object_output_list) < 1:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    if src is None and group_src is None:
        src = 0
    pg = _resolve(group)
    root = _group_rank(pg, src, group_src)
    longest = _core.zeros(1, dtype=_core.int64)
    tensors = sizes = None
    if pg.rank() == root:
        if not isinstance(scatter_object_input_list, (list, tuple)) or len(scatter_object_input_list) != pg.size():
            given = len(scatter_object_input_list) if scatter_object_input_list is not None else 0
            raise ValueError(
                f"Incorrect input list size {given}. Input list size should be {pg.size()}, same as size of the process group."
            )
        pairs = [_object_to_tensor(obj) for obj in scatter_object_input_list]
        longest = make_tensor([max(data.numel() for data, _ in pairs)])
        sizes = [size for _, size in pairs]
        tensors = []
        for data, _ in pairs:
            room = _core.zeros(int(longest), dtype=_core.uint8)
            room[: data.numel()] = data
            tensors.append(room)
    broadcast(longest, group=group, group_src=root)
    received, size = _core.empty(int(longest), dtype=_core.uint8), _core.zeros(1, dtype=_core.int64)
    scatter(received, tensors, group=group, group_src=root)
    scatter(size, sizes, group=group, group_src=root)
    scatter_object_output_list[0] = _tensor_to_object(received, size, group, weights_only)


def send_object_list(
    object_list: Sequence[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
    weights_only: bool = False,
) -> None:
    """Send objects to another rank.

    Args:
        object_list: objects, which can be pickled.
        dst: rank that receives.
        group: process group; the default group if `None`.
        device, use_batch, weights_only: accepted for compatibility. Default: `False` for both flags
        group_dst: the same as a rank of the group.

    Examples:
        >>> def program():
        ...     if torch.distributed.get_rank() == 0:
        ...         torch.distributed.send_object_list(["a"], dst=1)
        ...     else:
        ...         torch.distributed.recv_object_list([None], src=0)
    """
    if not _check_member("send_object_list", group):
        return
    to = _group_rank(_resolve(group), dst, group_dst)
    if get_rank(group) == to:
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as the rank of the current process."
        )
    sizes, data = _joined(object_list)
    send(sizes, group=group, group_dst=to)
    send(data, group=group, group_dst=to)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
    weights_only: bool = False,
) -> int:
    """Receive objects from another rank, and return that rank.

    Args:
        object_list: list of as many elements as are sent, to write to.
        src: rank that sends; any if `None`.
        group: process group; the default group if `None`.
        device, use_batch: accepted for compatibility. Default: `False` for `use_batch`
        group_src: the same as a rank of the group.
        weights_only: unpickle tensors and plain types only. Default: `False`

    Examples:
        >>> def program():
        ...     if torch.distributed.get_rank() == 0:
        ...         torch.distributed.send_object_list(["a"], dst=1)
        ...     else:
        ...         torch.distributed.recv_object_list([None], src=0)
    """
    if not _check_member("recv_object_list", group):
        return -1
    pg = _resolve(group)
    root = None if src is None and group_src is None else _group_rank(pg, src, group_src)
    sizes = _core.empty(len(object_list), dtype=_core.int64)
    sender = recv(sizes, group=group, group_src=root)
    data = _core.empty(int(sizes.sum()), dtype=_core.uint8)
    again = recv(data, src=sender, group=group)
    if sender != again:
        raise AssertionError("Mismatch in return ranks for object sizes and objects.")
    _split_into(object_list, sizes, data, group, weights_only)
    return get_global_rank(pg, root) if root is not None else sender
