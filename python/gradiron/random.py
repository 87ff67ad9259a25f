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


def rebuilt_generator(device: str, state: Tensor) -> Generator:
    """A generator with this state: what a pickle of one names."""
    generator = Generator(device)
    generator.set_state(state)
    return generator


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
def fork_rng(
    devices: Any = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:
    """What is drawn inside does not change the numbers that come after: on the CPU, and on `devices` (all GPUs, if None)."""
    if not enabled:
        yield
        return
    if device_type not in (None, "cuda", "cpu"):
        raise RuntimeError(
            f"torch has no module of `{device_type}`, you should register a module by `torch._register_device_module`."
        )
    # A GPU that nobody asked for is left alone.
    places = list(devices) if devices is not None else [0] if _gpu_is_open() else []
    state, states = get_rng_state(), []
    if places:
        from . import cuda

        states = [cuda.get_rng_state(place) for place in places]
    try:
        yield
    finally:
        set_rng_state(state)
        for place, gpu_state in zip(places, states, strict=True):
            cuda.set_rng_state(gpu_state, place)


def _gpu_is_open() -> bool:
    """Whether the GPU was used already; its numbers cannot have been drawn before."""
    from . import cuda

    return cuda.is_initialized()
