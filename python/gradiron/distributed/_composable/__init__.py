"""Wrappers that are applied to a module in place."""

from __future__ import annotations

from .._refused import refused

__all__ = ["checkpoint", "replicate"]

replicate = refused("_composable.replicate", "wrap the module in DistributedDataParallel")
checkpoint = refused("_composable.checkpoint", "use torch.utils.checkpoint.checkpoint, or checkpoint_wrapper")
