"""Utilities for modules: gradient clipping, parametrizations, packed sequences, fusion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# These functions replace the modules of the same names.
from .spectral_norm import remove_spectral_norm, spectral_norm
from .weight_norm import remove_weight_norm, weight_norm

_MODULES = (
    "clip_grad",
    "convert_parameters",
    "fusion",
    "init",
    "memory_format",
    "parametrizations",
    "parametrize",
    "rnn",
    "stateless",
)
_NAMES = {
    **dict.fromkeys(
        ("clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"), "clip_grad"
    ),
    **dict.fromkeys(("parameters_to_vector", "vector_to_parameters"), "convert_parameters"),
    **dict.fromkeys(("fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"), "fusion"),
    "skip_init": "init",
    **dict.fromkeys(("convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"), "memory_format"),
}

__all__ = [
    *_NAMES,
    "parametrizations",
    "parametrize",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "spectral_norm",
    "stateless",
    "weight_norm",
]


if TYPE_CHECKING:
    from . import clip_grad as clip_grad
    from . import convert_parameters as convert_parameters
    from . import fusion as fusion
    from . import init as init
    from . import memory_format as memory_format
    from . import parametrizations as parametrizations
    from . import parametrize as parametrize
    from . import rnn as rnn
    from . import stateless as stateless
    from .clip_grad import clip_grad_norm as clip_grad_norm
    from .clip_grad import clip_grad_norm_ as clip_grad_norm_
    from .clip_grad import clip_grad_value_ as clip_grad_value_
    from .clip_grad import clip_grads_with_norm_ as clip_grads_with_norm_
    from .clip_grad import get_total_norm as get_total_norm
    from .convert_parameters import parameters_to_vector as parameters_to_vector
    from .convert_parameters import vector_to_parameters as vector_to_parameters
    from .fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
    from .fusion import fuse_conv_bn_weights as fuse_conv_bn_weights
    from .fusion import fuse_linear_bn_eval as fuse_linear_bn_eval
    from .fusion import fuse_linear_bn_weights as fuse_linear_bn_weights
    from .init import skip_init as skip_init
    from .memory_format import convert_conv2d_weight_memory_format as convert_conv2d_weight_memory_format
    from .memory_format import convert_conv3d_weight_memory_format as convert_conv3d_weight_memory_format
else:

    def __getattr__(name: str) -> Any:
        import importlib

        if name in _NAMES:
            found = getattr(importlib.import_module(f".{_NAMES[name]}", __name__), name)
            globals()[name] = found
            return found
        if name in _MODULES:
            return importlib.import_module(f".{name}", __name__)
        raise AttributeError(f"module 'gradiron.nn.utils' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_NAMES})
