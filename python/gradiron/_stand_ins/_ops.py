"""PyTorch's module of operators, whose classes programs ask `isinstance` of."""

from __future__ import annotations

from gradiron import ops
from gradiron.ops import OpOverload, OpOverloadPacket

__all__ = ["HigherOrderOperator", "OpOverload", "OpOverloadPacket", "ops"]


class HigherOrderOperator:
    """An operator that takes functions. Here these are functions themselves, so that no object is one."""
