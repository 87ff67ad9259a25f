"""How the library was built, in the form that programs search for flags of PyTorch."""

from __future__ import annotations

from . import _core, version

__all__ = ["parallel_info", "show"]


def show() -> str:
    """Describe the build, with flags such as `USE_CUDA=OFF`.

    Examples:
        >>> "USE_CUDA=OFF" in torch.__config__.show()
        True
    """
    flags = ("CUDA", "CUDNN", "MKL", "MKLDNN", "MPI", "NCCL", "NNPACK", "OPENMP", "ROCM")
    off = ", ".join(f"USE_{name}=OFF" for name in flags)
    made = f"gradiron {version.gradiron}\n  - Build settings: TORCH_VERSION={version.__version__}, {off}"
    return f"PyTorch built with:\n  - {made}\n"


def parallel_info() -> str:
    """Describe the threads in use.

    Examples:
        >>> "get_num_threads()" in torch.__config__.parallel_info()
        True
    """
    return f"gradiron {version.gradiron}\n\tget_num_threads() : {_core.get_num_threads()}\n"
