"""Messages between two ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from ._collectives import _check_single_tensor, _group_rank
from ._registry import _check_member, _resolve, get_global_rank
from .process_group import ProcessGroup


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Any:
    """Start sending a tensor to another rank, and return a `Work`.

    Args:
        tensor: tensor to send, which must not change before the work is done.
        dst: global rank of the destination.
        group: process group; the default group if `None`.
        tag: number that the receiver has to give as well. Default: `0`
        group_dst: rank of the destination in the group, instead of `dst`.

    Examples:
        >>> def program():
        ...     if torch.distributed.get_rank() == 0:
        ...         torch.distributed.isend(torch.ones(2), dst=1).wait()
        ...     else:
        ...         torch.distributed.irecv(torch.zeros(2), src=0).wait()
    """
    pg = _resolve(group)
    if not _check_member("isend", group):
        return None
    to = _group_rank(pg, dst, group_dst)
    _check_not_self_rank(pg, to, "destination")
    _check_single_tensor(tensor, "tensor")
    return pg.send([_core.view_as_real(tensor) if tensor.is_complex() else tensor], to, tag)


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Any:
    """Start receiving a tensor from another rank, and return a `Work`.

    Args:
        tensor: output.
        src: global rank of the source; any if `None`.
        group: process group; the default group if `None`.
        tag: number that the sender gave. Default: `0`
        group_src: rank of the source in the group, instead of `src`.

    Examples:
        >>> def program():
        ...     if torch.distributed.get_rank() == 0:
        ...         torch.distributed.isend(torch.ones(2), dst=1).wait()
        ...     else:
        ...         torch.distributed.irecv(torch.zeros(2), src=0).wait()
    """
    _check_single_tensor(tensor, "tensor")
    if not _check_member("irecv", group):
        return None
    pg = _resolve(group)
    if tensor.is_complex():
        tensor = _core.view_as_real(tensor)
    if src is None and group_src is None:
        return pg.recv_anysource([tensor], tag)
    return pg.recv([tensor], _group_rank(pg, src, group_src), tag)


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to another rank.

    Args:
        tensor: tensor to send.
        dst: global rank of the destination.
        group: process group; the default group if `None`.
        tag: number that the receiver has to give as well. Default: `0`
        group_dst: rank of the destination in the group, instead of `dst`.

    Examples:
        >>> def program():
        ...     if torch.distributed.get_rank() == 0:
        ...         torch.distributed.send(torch.ones(2), dst=1)
        ...     else:
        ...         torch.distributed.recv(torch.zeros(2), src=0)
    """
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor from another rank, and return that rank.

    Args:
        tensor: output.
        src: global rank of the source; any if `None`.
        group: process group; the default group if `None`.
        tag: number that the sender gave. Default: `0`
        group_src: rank of the source in the group, instead of `src`.

    Examples:
        >>> def program():
        ...     if torch.distributed.get_rank() == 0:
        ...         torch.distributed.send(torch.ones(2), dst=1)
        ...     else:
        ...         torch.distributed.recv(torch.zeros(2), src=0)
    """
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    pg = _resolve(group)
    if src is None and group_src is None:
        return get_global_rank(pg, work._source_rank())
    return src if src is not None else get_global_rank(pg, group_src)  # type: ignore[arg-type]


def _check_not_self_rank(pg: ProcessGroup, rank: int, kind: str) -> None:
    if pg.rank() == rank:
        raise ValueError(f"Invalid {kind} rank: {kind} rank should not be the same as the rank of the current process.")


class P2POp:
    """A message for `batch_isend_irecv`.

    Args:
        op: `isend` or `irecv`.
        tensor: tensor to send or receive.
        peer: global rank of the other side.
        group: process group; the default group if `None`.
        tag: number of the message, equal on both sides. Default: `0`
        group_peer: rank of the other side in the group, instead of `peer`.

    Examples:
        >>> def program(peer):
        ...     send = torch.distributed.P2POp(torch.distributed.isend, torch.ones(2), peer)
        ...     receive = torch.distributed.P2POp(torch.distributed.irecv, torch.zeros(2), peer)
        ...     for work in torch.distributed.batch_isend_irecv([send, receive]):
        ...         work.wait()
    """

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        _check_p2p_function(op)
        _check_single_tensor(tensor, "tensor")
        self.op = op
        self.tensor = tensor
        self.group = _resolve(group)
        self.group_peer = _group_rank(self.group, peer, group_peer)
        _check_not_self_rank(self.group, self.group_peer, "peer")
        self.peer = peer if peer is not None else get_global_rank(self.group, self.group_peer)
        self.tag = tag

    def __repr__(self) -> str:
        me, size = self.group.rank(), self.group.size()
        source, target = (me, self.group_peer) if self.op is isend else (self.group_peer, me)
        return (
            f"P2POp({self.op.__name__} pg={self.group.group_name}, group_src={source}, group_dst={target},  "
            f"{tuple(self.tensor.shape)}, {self.tensor.dtype}) of {size} ranks"
        )


def _check_p2p_function(op: Any) -> None:
    if op not in (isend, irecv):
        raise ValueError(
            "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
        )


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Any]:
    """Start several messages, and return a list of `Work`.

    Args:
        p2p_op_list: messages of one group.

    Examples:
        >>> def program(peer):
        ...     send = torch.distributed.P2POp(torch.distributed.isend, torch.ones(2), peer)
        ...     receive = torch.distributed.P2POp(torch.distributed.irecv, torch.zeros(2), peer)
        ...     for work in torch.distributed.batch_isend_irecv([send, receive]):
        ...         work.wait()
    """
    if not isinstance(p2p_op_list, list) or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    group = p2p_op_list[0].group
    if any(op.group is not group for op in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    works = []
    for message in p2p_op_list:
        name = "group_dst" if message.op is isend else "group_src"
        work = message.op(message.tensor, group=message.group, tag=message.tag, **{name: message.group_peer})
        if work is not None:
            works.append(work)
    return works
