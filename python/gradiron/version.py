"""The version of PyTorch whose behaviour gradiron has, and gradiron's own."""

from __future__ import annotations

from . import _core
from .torch_version import TorchVersion

__all__ = ["__version__", "cuda", "debug", "git_version", "gradiron", "hip", "xpu"]

gradiron: str = _core._version
__version__ = TorchVersion(f"2.15.0+gradiron{gradiron}")
debug = False
# What it was built for: no CUDA, although devices are called so.
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version = "unknown"
