"""Memory formats of the weights of convolutions."""

from __future__ import annotations

from typing import Any

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module: Any, memory_format: Any, kinds: tuple[type, ...]) -> Any:
    for part in module.modules():
        if isinstance(part, kinds):
            weight: Any = part.weight  # type: ignore[attr-defined]
            weight.data = weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Convert the weights of all 2D convolutions of a module to a memory format, in place.

    Args:
        module: module to convert.
        memory_format: the memory format, such as `torch.channels_last`.

    Returns:
        The module.

    Examples:
        >>> conv = nn.utils.convert_conv2d_weight_memory_format(nn.Conv2d(4, 4, 3), torch.channels_last)
        >>> conv.weight.is_contiguous(memory_format=torch.channels_last)
        True
    """
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Convert the weights of all 3D convolutions of a module to a memory format, in place.

    Args:
        module: module to convert.
        memory_format: the memory format, such as `torch.channels_last_3d`.

    Returns:
        The module.

    Examples:
        >>> conv = nn.utils.convert_conv3d_weight_memory_format(nn.Conv3d(4, 4, 3), torch.channels_last_3d)
        >>> conv.weight.is_contiguous(memory_format=torch.channels_last_3d)
        True
    """
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))
