"""Errors of `torch.compile`."""

from __future__ import annotations

from .._compile.errors import (
    BackendCompilerFailed,
    InternalTorchDynamoError,
    InvalidBackend,
    TorchDynamoException,
    Unsupported,
    UserError,
)

__all__ = [
    "BackendCompilerFailed",
    "InternalTorchDynamoError",
    "InvalidBackend",
    "TorchDynamoException",
    "Unsupported",
    "UserError",
]
