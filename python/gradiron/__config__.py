"""How the library was built, in a form that programs search for flags of PyTorch's."""

from __future__ import annotations

from . import _core, version

__all__ = ["parallel_info", "show"]


def show() -> str:
    """What the library is made of; programs look for flags such as `USE_CUDA=ON`, of which it has none."""
    flags = ("CUDA", "CUDNN", "MKL", "MKLDNN", "MPI", "NCCL", "NNPACK", "OPENMP", "ROCM")
    off = ", ".join(f"USE_{name}=OFF" for name in flags)
    made = f"gradiron {version.gradiron}\n  - Build settings: TORCH_VERSION={version.__version__}, {off}"
    return f"PyTorch built with:\n  - {made}\n"


def parallel_info() -> str:
    """How many threads compute."""
    return f"gradiron {version.gradiron}\n\tget_num_threads() : {_core.get_num_threads()}\n"
