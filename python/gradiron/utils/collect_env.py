"""A description of the system for bug reports: `python -m gradiron.utils.collect_env`."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from typing import NamedTuple

from .. import cuda
from .._core import get_num_threads
from ..version import __version__

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main", "pretty_str"]

# Packages that matter for one that is imported as `torch`.
_PACKAGES = ("gradiron", "numpy", "safetensors", "torch", "torchvision", "torchaudio", "transformers", "lightning")


class SystemEnv(NamedTuple):
    """Description of the system, as strings.

    Args:
        torch_version, os, libc_version, python_version, python_platform: versions.
        is_cuda_available, gpu_models: whether there is a GPU, and its name.
        cpu_info: the CPU.
        pip_packages: versions of related packages.

    Examples:
        >>> torch.utils.collect_env.get_env_info().is_cuda_available in ("True", "False")
        True
    """

    torch_version: str
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    gpu_models: str
    cpu_info: str
    pip_packages: str


def get_env_info() -> SystemEnv:
    """Collect a description of the system.

    Examples:
        >>> torch.utils.collect_env.get_env_info().torch_version == torch.__version__
        True
    """
    there = cuda.is_available()
    return SystemEnv(
        __version__,
        f"{platform.system()} {platform.release()} ({platform.machine()})",
        "-".join(platform.libc_ver()),
        f"{sys.version.splitlines()[0]} ({sys.maxsize.bit_length() + 1}-bit runtime)",
        platform.platform(),
        str(there),
        cuda.get_device_name() if there else "none",
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {get_num_threads()} threads for kernels",
        "\n".join(f"{name}=={_version(name)}" for name in _PACKAGES if _version(name)),
    )


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def pretty_str(envinfo: SystemEnv) -> str:
    """Format a description of the system.

    Args:
        envinfo: description.

    Examples:
        >>> text = torch.utils.collect_env.pretty_str(torch.utils.collect_env.get_env_info())
    """
    lines = [
        f"PyTorch version: {envinfo.torch_version}",
        f"OS: {envinfo.os}",
        f"Libc version: {envinfo.libc_version}",
        f"Python version: {envinfo.python_version}",
        f"Python platform: {envinfo.python_platform}",
        f"Is CUDA available: {envinfo.is_cuda_available}",
        f"GPU models and configuration: {envinfo.gpu_models}",
        f"CPU: {envinfo.cpu_info}",
        "Versions of relevant libraries:",
        *(f"[pip3] {line}" for line in envinfo.pip_packages.splitlines()),
    ]
    return "\n".join(lines)


def get_pretty_env_info() -> str:
    """Return a formatted description of the system.

    Examples:
        >>> torch.utils.collect_env.get_pretty_env_info().startswith("PyTorch version")
        True
    """
    return pretty_str(get_env_info())


def main() -> None:
    """Print a description of the system.

    Examples:
        >>> torch.utils.collect_env.main()
        PyTorch version: ...
    """
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
