"""The GPU's random numbers: a seed, and how far into its stream the draws have come. No device is needed to set them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from .. import _core
from .._core import Tensor
from ._gpu import checked_index, core, gpu

_WORD = 8
_MASK = (1 << 64) - 1


def manual_seed(seed: int) -> None:
    """Set the seed; the stream starts at its beginning."""
    if core is not None:
        core.manual_seed(int(seed) & _MASK)


def manual_seed_all(seed: int) -> None:
    """Set the seed of every GPU."""
    manual_seed(seed)


def seed() -> None:
    """Set a seed from the system's randomness."""
    manual_seed(int.from_bytes(os.urandom(_WORD), "little") >> 11)


def seed_all() -> None:
    """Set a seed for every GPU from the system's randomness."""
    seed()


def initial_seed() -> int:
    """The seed."""
    checked_index()
    return gpu().generator_state()[0]


def get_rng_state(device: Any = "cuda") -> Tensor:
    """Seed and place in the stream, as bytes."""
    checked_index(device)
    # PyTorch counts single numbers, the core blocks of four.
    now, blocks = gpu().generator_state()
    data = now.to_bytes(_WORD, "little") + ((4 * blocks) & _MASK).to_bytes(_WORD, "little")
    return _core.make_tensor(list(data), _core.uint8, None, False)


def get_rng_state_all() -> list[Tensor]:
    """The state of every GPU."""
    return [get_rng_state()]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Go back to a state that `get_rng_state` gave."""
    checked_index(device)
    data = bytes(new_state.tolist())
    if len(data) != 2 * _WORD:
        raise RuntimeError("RNG state is wrong size")
    offset = int.from_bytes(data[_WORD:], "little")
    if offset % 4:
        raise RuntimeError("offset must be a multiple of 4")
    gpu().set_generator_state(int.from_bytes(data[:_WORD], "little"), offset // 4)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Set the state of every GPU."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)
