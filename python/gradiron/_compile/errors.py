"""Errors of `torch.compile`."""

from __future__ import annotations

__all__ = [
    "BackendCompilerFailed",
    "InternalTorchDynamoError",
    "InvalidBackend",
    "TorchDynamoException",
    "Unsupported",
    "UserError",
]


class TorchDynamoException(RuntimeError):
    """The base class of the errors of `torch.compile`."""


class InternalTorchDynamoError(TorchDynamoException):
    """An error inside of the compiler."""


class BackendCompilerFailed(TorchDynamoException):
    """An error of a backend."""


class UserError(TorchDynamoException):
    """A wrong use of `torch.compile`."""


class InvalidBackend(TorchDynamoException):
    """A backend that is not known.

    Args:
        name: its name.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"Invalid backend: {name!r}. See `torch._dynamo.list_backends()` for available backends.")


class Unsupported(TorchDynamoException):
    """Something that cannot be captured, in a function that was compiled with `fullgraph=True`.

    Args:
        msg: what it is, with file and line.
    """

    def __init__(self, msg: str) -> None:
        super().__init__(msg)
        self.msg = msg
