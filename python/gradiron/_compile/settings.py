"""Options of `torch.compile` that hold for a process, and the stance of its compiled functions."""

from __future__ import annotations

from typing import Any

from .. import _core

__all__ = ["BACKENDS", "MODES", "STANCES", "Stance", "default_backend", "options", "stance"]

MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
BACKENDS = ("aot_eager", "cudagraphs", "eager", "inductor")
STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile")

options: dict[str, Any] = {"recompile_limit": 64}


class Stance:
    """What compiled functions do: `forced` is one of `STANCES`; `trusts` compares arguments only."""

    def __init__(self) -> None:
        self.set("default", False)

    def set(self, forced: str, trusts: bool) -> None:
        """Choose what compiled functions do."""
        self.forced = forced
        self.trusts = trusts
        _core.permit_direct_replays(forced != "force_eager")


stance = Stance()


class DefaultBackend:
    """The backend of calls of `torch.compile` that name none."""

    def __init__(self) -> None:
        self.name = "inductor"


default_backend = DefaultBackend()
