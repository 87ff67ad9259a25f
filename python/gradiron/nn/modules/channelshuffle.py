"""Channel shuffling."""

from __future__ import annotations

from ..._core import Tensor
from .. import functional as F
from .module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Interleave the channels of several groups (channel shuffle).

    The output holds the first channel of each group, then the second of each, and so on.

    Args:
        groups: number of groups; must divide the number of channels.

    Shape:
        - Input and output: `(N, C, *)`.

    Examples:
        >>> nn.ChannelShuffle(2)(torch.arange(4).reshape(1, 4, 1, 1)).flatten()
        tensor([0, 2, 1, 3])
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
