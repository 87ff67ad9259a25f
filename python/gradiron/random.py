"""The default generator of random numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from . import _core
from ._core import Generator, Tensor

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]

default_generator: Generator = _core.global_generator()


def manual_seed(seed: Any) -> Generator:
    """Seed the generators of all devices, and return the one of the CPU.

    On the CPU, random operators give the same numbers as PyTorch's after the same seed.

    Args:
        seed: seed, an integer.

    Examples:
        >>> _ = torch.manual_seed(0)
        >>> torch.rand(2)
        tensor([0.4963, 0.7682])
    """
    return default_generator.manual_seed(seed)


def reduce_generator(generator: Generator) -> tuple[Any, ...]:
    """Pickle a generator with its state."""
    return rebuilt_generator, (str(generator.device), generator.get_state())


def rebuilt_generator(device: str, state: Tensor) -> Generator:
    """Rebuild a generator from its pickled state."""
    generator = Generator(device)
    generator.set_state(state)
    return generator


def seed() -> int:
    """Seed the generators with an unpredictable number, and return it.

    Examples:
        >>> torch.seed() == torch.initial_seed()
        True
    """
    return default_generator.seed()


def initial_seed() -> int:
    """Return the last seed of the CPU generator.

    Examples:
        >>> _ = torch.manual_seed(5)
        >>> torch.initial_seed()
        5
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Return the state of the CPU generator as a tensor of bytes.

    Examples:
        >>> state = torch.get_rng_state()
        >>> x = torch.rand(2)
        >>> torch.set_rng_state(state)
        >>> torch.equal(x, torch.rand(2))
        True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Set the state of the CPU generator.

    Args:
        new_state: state that `get_rng_state` returned.

    Examples:
        >>> torch.set_rng_state(torch.get_rng_state())
    """
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(
    devices: Any = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:
    """Restore the states of the generators after a `with` block.

    Args:
        devices: GPUs whose states are restored besides the CPU's; those in use if `None`.
        enabled: whether to restore anything. Default: `True`
        device_type: `"cuda"` or `"cpu"`.

    Examples:
        >>> with torch.random.fork_rng():
        ...     x = torch.rand(1)
        >>> torch.equal(x, torch.rand(1))
        True
    """
    if not enabled:
        yield
        return
    if device_type not in (None, "cuda", "cpu"):
        raise RuntimeError(
            f"torch has no module of `{device_type}`, you should register a module by `torch._register_device_module`."
        )
    # A GPU that is not in use is not initialized for this.
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
