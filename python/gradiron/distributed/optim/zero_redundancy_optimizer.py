"""`ZeroRedundancyOptimizer`: each rank keeps the states of some parameters, steps these, and sends them to the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from ... import _core
from ..._core import Tensor
from ...autograd.grad_mode import no_grad
from ...optim import Optimizer
from ...utils._pytree import tree_map_only
from .. import distributed_c10d as c10d
from ..algorithms.join import Join, Joinable, JoinHook
from ..objects import gather_object
from ..options import BroadcastOptions

__all__ = ["ZeroRedundancyOptimizer"]


class _ZeROJoinHook(JoinHook):
    """A rank without inputs steps its part of the parameters all the same."""

    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self.zero = zero

    def main_hook(self) -> None:
        """A step."""
        self.zero.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer whose states are spread over the ranks of a group: each rank has about its share of the bytes.

    Args:
        params: all parameters, or groups of them, the same on every rank.
        optimizer_class: what steps each rank's part.
        process_group: the ranks; all of them without it.
        parameters_as_bucket_view: puts the parameters of each rank into one block of memory, which is sent at once.
        overlap_with_ddp: not there.
        **defaults: the options of `optimizer_class`.

    A checkpoint is made by `consolidate_state_dict`, which all ranks call, and `state_dict` on the rank that has received
    the states.
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError(
                "ZeroRedundancyOptimizer: overlap_with_ddp is not there. Call step() after the backward, as with any optimizer"
            )
        self.initialized = False
        groups, self._all_params = _checked(params)
        Joinable.__init__(self)
        self.process_group: Any = process_group if process_group is not None else c10d._get_default_group()
        self.world_size, self.rank = self.process_group.size(), self.process_group.rank()
        self.global_rank = c10d.get_rank()
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._default_device = self._all_params[0].device
        self._param_to_rank: dict[Tensor, int] = {}
        self._sizes = [0] * self.world_size
        self._buckets: list[tuple[int, Tensor]] = []
        self._all_state_dicts: list[dict[str, Any]] = []
        Optimizer.__init__(self, groups, defaults)
        for group in self.param_groups:
            self._assign(group["params"])
        self.optim = optimizer_class([self._own_part(group) for group in self.param_groups], **defaults)
        self._copy_options(self.optim.param_groups, self.param_groups)
        self._build_buckets()
        self.initialized = True

    # The rank that steps each parameter.

    def _assign(self, params: list[Tensor]) -> None:
        """Gives each parameter, the largest first, to the rank that has least."""
        for param in sorted(params, key=lambda param: -param.numel()):
            rank = self._sizes.index(min(self._sizes))
            self._param_to_rank[param] = rank
            self._sizes[rank] += param.numel()

    def _own_part(self, group: dict[str, Any]) -> dict[str, Any]:
        return {**group, "params": [param for param in group["params"] if self._param_to_rank[param] == self.rank]}

    def _build_buckets(self) -> None:
        """Moves the parameters of each rank and device into one block of memory."""
        if not self.parameters_as_bucket_view:
            return
        parts: dict[tuple[int, Any], list[Tensor]] = {}
        for param in chain.from_iterable(group["params"] for group in self.param_groups):
            parts.setdefault((self._param_to_rank[param], param.device), []).append(param)
        self._buckets = []
        for (rank, device), params in sorted(parts.items(), key=lambda part: part[0][0]):
            bucket = _core.empty(sum(param.numel() for param in params), dtype=params[0].dtype, device=device)
            at = 0
            for param in params:
                place = bucket[at : at + param.numel()].view(param.shape)
                place.copy_(param.detach())
                param.data = place
                at += param.numel()
            self._buckets.append((rank, bucket))

    @staticmethod
    def _copy_options(source: list[dict[str, Any]], target: list[dict[str, Any]]) -> None:
        for theirs, ours in zip(source, target, strict=True):
            ours.update({key: value for key, value in theirs.items() if key != "params"})

    # Steps.

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Steps this rank's parameters, and receives the others'."""
        Join.notify_join_context(self)
        self._copy_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure=closure, **kwargs)
        self._copy_options(self.optim.param_groups, self.param_groups)
        self._sync_params()
        return loss

    def _sync_params(self) -> None:
        """Sends the parameters of each rank to the others."""
        if self.world_size == 1:
            return
        if self.parameters_as_bucket_view:
            parts = self._buckets
        else:
            parts = [(rank, param.detach()) for param, rank in self._param_to_rank.items() if param.requires_grad]
        with no_grad():
            works = [
                self.process_group.broadcast([part], BroadcastOptions(rootRank=rank, asyncOp=True)) for rank, part in parts
            ]
            for work in works:
                work.wait()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters; all ranks call it."""
        super().add_param_group(param_group)
        if not self.initialized:
            return
        group = self.param_groups[-1]
        _check_types([*self._all_params, *group["params"]])
        self._all_params += group["params"]
        self._assign(group["params"])
        self.optim.add_param_group(self._own_part(group))
        self._copy_options(self.optim.param_groups, self.param_groups)
        self._build_buckets()

    # Checkpoints.

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Sends the states of all ranks to rank `to` of the group, whose `state_dict` gives them; all ranks call it."""
        self._copy_options(self.param_groups, self.optim.param_groups)
        state = tree_map_only(Tensor, lambda tensor: tensor.detach().cpu(), self.optim.state_dict()["state"])
        gathered: list[Any] | None = [None] * self.world_size if self.rank == to else None
        gather_object(state, gathered, group=self.process_group, group_dst=to)
        self._all_state_dicts = gathered or []

    def _numbers(self) -> dict[Tensor, int]:
        return {param: at for at, param in enumerate(chain.from_iterable(group["params"] for group in self.param_groups))}

    def _params_of(self, rank: int) -> list[Tensor]:
        """The parameters of a rank, in the order in which its optimizer counts them."""
        every = chain.from_iterable(group["params"] for group in self.param_groups)
        return [param for param in every if self._param_to_rank[param] == rank]

    def state_dict(self) -> dict[str, Any]:
        """The states of all ranks, as the optimizer has them in one process."""
        if not self._all_state_dicts:
            raise RuntimeError(
                f"Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to={self.rank})` "
                "on all ranks beforehand if you meant to save the global state."
            )
        made = super().state_dict()
        numbers = self._numbers()
        for rank, state in enumerate(self._all_state_dicts):
            params = self._params_of(rank)
            made["state"].update({numbers[params[at]] if isinstance(at, int) else at: value for at, value in state.items()})
        made["state"] = dict(
            sorted(made["state"].items(), key=lambda item: item[0] if isinstance(item[0], int) else len(numbers))
        )
        return made

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over the part of a whole state dict that belongs to this rank."""
        super().load_state_dict({**state_dict, "state": {}})
        saved = list(chain.from_iterable(group["params"] for group in state_dict["param_groups"]))
        params = dict(zip(saved, chain.from_iterable(group["params"] for group in self.param_groups), strict=True))
        own = {param: at for at, param in enumerate(self._params_of(self.rank))}
        state = {}
        for number, value in state_dict["state"].items():
            if number not in params:
                state[number] = value
            elif params[number] in own:
                state[own[params[number]]] = value
        local = self.optim.state_dict()
        self.optim.load_state_dict({**local, "state": state})
        self._copy_options(self.param_groups, self.optim.param_groups)

    # In a `Join` context.

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """A hook that steps along while other ranks have inputs."""
        return _ZeROJoinHook(self)

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self._default_device

    @property
    def join_process_group(self) -> Any:
        """The ranks that share the states."""
        return self.process_group


def _checked(params: Any) -> tuple[list[Any], list[Tensor]]:
    """The parameters or groups that were given, and all parameters in them."""
    if isinstance(params, Tensor):
        raise TypeError(f"`params` argument should be an iterable of Tensors, but got {params.type()}")
    if not isinstance(params, Iterable):
        raise TypeError(f"`params` argument should be an iterable of Tensors or dicts, but got {type(params).__name__}")
    given = list(params)
    if not given:
        raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
    if all(isinstance(param, Tensor) for param in given):
        every = list(given)
    elif all(isinstance(group, dict) for group in given):
        for group in given:
            if "params" not in group:
                raise ValueError(
                    "Each parameter group passed-in via `params` must have a 'params' key mapping to the parameters "
                    "in the group"
                )
            if not isinstance(group["params"], Tensor):
                group["params"] = list(group["params"])
        every = list(chain.from_iterable([g["params"]] if isinstance(g["params"], Tensor) else g["params"] for g in given))
    else:
        raise TypeError("`params` argument should be an iterable of Tensors or dicts")
    _check_types(every)
    return given, every


def _check_types(params: list[Tensor]) -> None:
    for param in params:
        if param.is_sparse:
            raise ValueError(
                f"ZeroRedundancyOptimizer only supports using the same dense type for all parameters but got {param.type()}"
            )
        if param.type() != params[0].type():
            raise ValueError(
                "ZeroRedundancyOptimizer only supports using the same dense type for all parameters but got both "
                f"{params[0].type()} and {param.type()}"
            )
