"""The generator of random numbers that operators use when they are given none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from . import _core
from ._core import Generator, Tensor

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]

default_generator: Generator = _core.global_generator()


def manual_seed(seed: Any) -> Generator:
    """Seeds the generators of all devices; the same seed gives the same numbers, on the CPU PyTorch's own."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seeds the generators with a number that nobody can foresee, and returns it."""
    return default_generator.seed()


def initial_seed() -> int:
    """The last seed."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The CPU generator's state, as bytes."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Puts the CPU generator where `get_rng_state` found it."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """What is drawn inside does not change the numbers that come after."""
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)
