"""Calls of other processes' functions: not there, as in a PyTorch that was built without them."""

from __future__ import annotations

from ._refused import _RPC, Refused, refused

__all__ = [
    "PyRRef",
    "RRef",
    "RpcBackendOptions",
    "TensorPipeRpcBackendOptions",
    "WorkerInfo",
    "get_worker_info",
    "init_rpc",
    "is_available",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]


def is_available() -> bool:
    """Whether there are remote calls: no."""
    return False


get_worker_info, init_rpc, remote, rpc_async, rpc_sync, shutdown = (
    refused(f"rpc.{name}", _RPC) for name in "get_worker_info init_rpc remote rpc_async rpc_sync shutdown".split()
)


class RRef(Refused):
    """Would stand for an object of another process."""

    _full_name, _instead = "rpc.RRef", _RPC


PyRRef = RRef


class WorkerInfo(Refused):
    """Would name another process."""

    _full_name, _instead = "rpc.WorkerInfo", _RPC


class RpcBackendOptions(Refused):
    """Would say how calls travel."""

    _full_name, _instead = "rpc.RpcBackendOptions", _RPC


class TensorPipeRpcBackendOptions(RpcBackendOptions):
    """Would say how calls travel."""

    _full_name = "rpc.TensorPipeRpcBackendOptions"
