"""What gradiron does not have, by name: programs import it and ask `isinstance` of it; a call says what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from .._as_torch import refused as _as_torch

_SHARDED = (
    "gradiron keeps every parameter whole on each rank. Train with DistributedDataParallel; ZeroRedundancyOptimizer spreads "
    "the states of the optimizer over the ranks"
)
_RPC = "gradiron calls no functions of other processes. Exchange tensors by the collectives, or objects by all_gather_object"
_PIPELINES = "gradiron does not cut a model into stages. Train with DistributedDataParallel"


def refuse(name: str, instead: str) -> NoReturn:
    """Raises for the call of a thing that is not there."""
    _as_torch.refuse(f"distributed.{name}", instead)


def refused(name: str, instead: str) -> Callable[..., Any]:
    """A function that is not there."""
    return _as_torch.refused(f"distributed.{name}", instead)


class Refused:
    """A class that is not there: no object is one."""

    _full_name: ClassVar[str]
    _instead: ClassVar[str] = _SHARDED

    def __new__(cls, *args: Any, **options: Any) -> Any:
        refuse(cls._full_name, cls._instead)
