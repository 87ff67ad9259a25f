"""Odds and ends: `dlpack`, handles of hooks, `swap_tensors`."""

from __future__ import annotations

from . import dlpack as dlpack
from . import hooks as hooks
from ._swap import swap_tensors as swap_tensors

TYPE_CHECKING = False
__all__ = ["dlpack", "hooks", "swap_tensors"]


if TYPE_CHECKING:
    from . import _pytree as _pytree
    from . import checkpoint as checkpoint
    from . import collect_env as collect_env
    from . import data as data
    from . import deterministic as deterministic
    from . import flop_counter as flop_counter
    from . import model_zoo as model_zoo
    from . import safetensors as safetensors
    from . import serialization as serialization
    from . import tensorboard as tensorboard
else:

    def __getattr__(name: str) -> object:
        import importlib

        lazy = """
            _pytree checkpoint collect_env data deterministic flop_counter model_zoo safetensors serialization tensorboard
        """
        if name in lazy.split():
            return importlib.import_module(f".{name}", __name__)
        raise AttributeError(f"module 'gradiron.utils' has no attribute '{name}'")
