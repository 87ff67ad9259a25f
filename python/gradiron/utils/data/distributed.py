"""A sampler that distributes a dataset among several processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ... import _core
from ..._core import Generator
from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[Any]):
    """Sampler of this process's share of a dataset in distributed training.

    All processes get the same number of indices. Call `set_epoch` before each epoch, or every epoch has the same
    order.

    Args:
        dataset: dataset with a length.
        num_replicas: number of processes; the size of the default process group if `None`.
        rank: number of this process; its rank in the default process group if `None`.
        shuffle: shuffle the indices, equally in all processes. Default: `True`
        seed: seed of the shuffling, the same in all processes. Default: `0`
        drop_last: drop indices so that the rest divides evenly, instead of repeating some. Default: `False`

    Examples:
        >>> sampler = torch.utils.data.DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False)
        >>> list(sampler)
        [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            from ... import distributed as dist

            num_replicas = dist.get_world_size() if num_replicas is None else num_replicas
            rank = dist.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        count = len(dataset)
        # The same number for all processes, so that some indices are dropped or repeated.
        self.num_samples = count // num_replicas if drop_last else -(-count // num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[Any]:
        order = list(range(len(self.dataset)))
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            order = _core.randperm(len(order), generator=generator).tolist()
        # Missing indices are repeated from the start.
        return (order[place % len(order)] for place in range(self.rank, self.total_size, self.num_replicas))

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which the order of a shuffled sampler depends on.

        Args:
            epoch: number of the epoch.
        """
        self.epoch = epoch
