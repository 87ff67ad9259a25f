"""Names for operators, `ops.aten.mm.default`: what a policy of selective checkpointing is asked about."""

from __future__ import annotations

__all__ = ["OpOverload", "OpOverloadPacket", "aten"]


class OpOverload:
    """One form of an operator; there is only one object for each."""

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self.overloadpacket = packet
        self._overloadname = overload
        self.namespace = "aten"
        self.__name__ = f"{packet.__name__}.{overload}"

    def name(self) -> str:
        suffix = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"aten::{self.overloadpacket.__name__}{suffix}"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self.overloadpacket.__name__}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """An operator with all its forms as attributes."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        made = OpOverload(self, overload)
        setattr(self, overload, made)
        return made

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"


class _Aten:
    """PyTorch's own operators."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__"):
            raise AttributeError(name)
        made = OpOverloadPacket(name)
        setattr(self, name, made)
        return made


aten = _Aten()


def overload(name: tuple[str, str]) -> OpOverload:
    """The form of an operator that the core tells by two words."""
    found: OpOverload = getattr(getattr(aten, name[0]), name[1])
    return found
