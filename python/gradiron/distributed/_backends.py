"""Backends: their names, and which of them can be used."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from .constants import default_pg_nccl_timeout, default_pg_timeout
from .engine import mpi


class Backend(str):
    """Name of a backend: `"gloo"`, `"mpi"` and `"nccl"`, which all use MPI, or a registered one.

    Args:
        name: name in any case.

    Examples:
        >>> torch.distributed.Backend("GLOO")
        'gloo'
    """

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    FAKE = "fake"

    _plugins: dict[str, tuple[Callable[..., Any], bool]] = {}  # noqa: RUF012
    backend_list: list[str] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]  # noqa: RUF012
    default_device_backend_map: dict[str, str] = {"cpu": GLOO, "cuda": NCCL}  # noqa: RUF012
    backend_capability: dict[str, list[str]] = {GLOO: ["cpu", "cuda"], NCCL: ["cuda"], MPI: ["cpu", "cuda"]}  # noqa: RUF012

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        value = getattr(cls, name.upper(), Backend.UNDEFINED)
        return value if value != Backend.UNDEFINED else name.lower()  # type: ignore[return-value]

    @classmethod
    def register_backend(
        cls,
        name: str,
        func: Callable[..., Any],
        extended_api: bool = False,
        devices: str | list[str] | None = None,
    ) -> None:
        """Register a backend of one's own: `func(store, rank, size, timeout)` returns its `ProcessGroup`."""
        name = name.lower()
        setattr(cls, name.upper(), name)
        if name not in cls.backend_list:
            cls.backend_list.append(name)
        devices = [devices] if isinstance(devices, str) else devices
        cls.backend_capability[name] = devices or ["cpu", "cuda"]
        for device in devices or []:
            cls.default_device_backend_map[device] = name
        cls._plugins[name.upper()] = (func, extended_api)


class BackendConfig:
    """The backend of each type of device.

    Args:
        backend: name of a backend, or pairs such as `"cpu:gloo,cuda:nccl"`.

    Examples:
        >>> torch.distributed.BackendConfig("cpu:gloo,cuda:nccl").get_device_backend_map()
        {'cpu': 'gloo', 'cuda': 'nccl'}
    """

    def __init__(self, backend: str) -> None:
        self.device_backend_map: dict[str, str] = {}
        if ":" in backend:
            for pair in backend.lower().split(","):
                device, _, name = pair.partition(":")
                if not name or ":" in name:
                    raise ValueError(
                        f"The custom backend string argument is invalid: {backend}.\n                "
                        "Custom backend string is an experimental feature where the backend string must be in the format:\n"
                        '                "<device_type1>:<backend1>,<device_type2>:<backend2>...". e.g. "cpu:gloo,cuda:nccl"'
                    )
                if device in self.device_backend_map:
                    raise ValueError(f"Duplicate device type {device} in backend string: {backend}")
                self.device_backend_map[device] = Backend(name)
        elif backend == Backend.UNDEFINED:
            # Looking for a GPU would take longer than starting all ranks.
            self.device_backend_map = {"cpu": Backend.GLOO}
        else:
            for device in Backend.backend_capability.get(backend, ["cpu", "cuda"]):
                self.device_backend_map[device] = backend

    def __repr__(self) -> str:
        return ",".join(f"{device}:{backend}" for device, backend in self.device_backend_map.items())

    def get_device_backend_map(self) -> dict[str, str]:
        """Return a dict from types of devices to backends."""
        return self.device_backend_map


def is_available() -> bool:
    """Return whether `torch.distributed` can be used.

    Examples:
        >>> torch.distributed.is_available()
        True
    """
    return True


def is_mpi_available() -> bool:
    """Return whether MPI, and so more than one rank, can be used: whether mpi4py is installed.

    Examples:
        >>> torch.distributed.is_mpi_available() == torch.distributed.is_gloo_available()
        True
    """
    return mpi.is_installed()


is_gloo_available = is_mpi_available


def is_nccl_available() -> bool:
    """Return whether the backend `"nccl"` can be used: MPI for tensors on a GPU.

    Examples:
        >>> isinstance(torch.distributed.is_nccl_available(), bool)
        True
    """
    return mpi.is_installed() and _has_gpu()


def is_ucc_available() -> bool:
    """Return whether UCC is available, which it is not.

    Examples:
        >>> torch.distributed.is_ucc_available()
        False
    """
    return False


def is_xccl_available() -> bool:
    """Return whether XCCL is available, which it is not.

    Examples:
        >>> torch.distributed.is_xccl_available()
        False
    """
    return False


def is_backend_available(backend: str) -> bool:
    """Return whether a backend can be used.

    Args:
        backend: name of the backend.

    Examples:
        >>> torch.distributed.is_backend_available("ucc")
        False
    """
    name = backend.lower()
    known = {"gloo": is_gloo_available, "mpi": is_mpi_available, "nccl": is_nccl_available}
    return known[name]() if name in known else name.upper() in Backend._plugins


def is_torchelastic_launched() -> bool:
    """Return whether `gradiron-run` started this process.

    Examples:
        >>> torch.distributed.is_torchelastic_launched()
        False
    """
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def _has_gpu() -> bool:
    from .. import cuda

    return cuda.is_available()


def _default_timeout(backend: str) -> timedelta:
    return default_pg_nccl_timeout if backend == Backend.NCCL else default_pg_timeout


def _check_backend(name: str) -> None:
    """Refuses a backend that cannot be used, before anything is started."""
    if name.upper() in Backend._plugins or name in (Backend.UNDEFINED, Backend.GLOO, Backend.MPI):
        return
    if name == Backend.NCCL:
        if not _has_gpu():
            raise RuntimeError('backend "nccl" requires at least one CUDA device, and gradiron finds no GPU: use "gloo"')
        return
    if name in (Backend.UCC, Backend.XCCL, Backend.FAKE):
        raise RuntimeError(f"Distributed package doesn't have {name.upper()} built in")
    known = ", ".join(["gloo", "mpi", "nccl", *(plugin.lower() for plugin in Backend._plugins)])
    raise AssertionError(f"Unknown backend type {name}: gradiron knows {known}")
