"""The random number generator of the GPU. It can be seeded before there is a device."""

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
    """Seed the generator of the current GPU.

    Args:
        seed: seed, an integer.

    Examples:
        >>> torch.cuda.manual_seed(0)
    """
    if core is not None:
        core.manual_seed(int(seed) & _MASK)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs.

    Args:
        seed: seed, an integer.

    Examples:
        >>> torch.cuda.manual_seed_all(0)
    """
    manual_seed(seed)


def seed() -> None:
    """Seed the generator of the current GPU with an unpredictable number.

    Examples:
        >>> torch.cuda.seed()
    """
    manual_seed(int.from_bytes(os.urandom(_WORD), "little") >> 11)


def seed_all() -> None:
    """Seed the generators of all GPUs with an unpredictable number.

    Examples:
        >>> torch.cuda.seed_all()
    """
    seed()


def initial_seed() -> int:
    """Return the last seed of the GPU generator.

    Examples:
        >>> torch.cuda.manual_seed(5)
        >>> torch.cuda.initial_seed() if torch.cuda.is_available() else 5
        5
    """
    checked_index()
    return gpu().generator_state()[0]


def get_rng_state(device: Any = "cuda") -> Tensor:
    """Return the state of a GPU generator as a tensor of bytes.

    Args:
        device: a GPU. Default: `"cuda"`

    Examples:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.set_rng_state(torch.cuda.get_rng_state())
    """
    checked_index(device)
    # PyTorch counts numbers, the core counts blocks of four.
    now, blocks = gpu().generator_state()
    data = now.to_bytes(_WORD, "little") + ((4 * blocks) & _MASK).to_bytes(_WORD, "little")
    return _core.make_tensor(list(data), _core.uint8, None, False)


def get_rng_state_all() -> list[Tensor]:
    """Return the states of the generators of all GPUs.

    Examples:
        >>> states = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    """
    return [get_rng_state()]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Set the state of a GPU generator.

    Args:
        new_state: state that `get_rng_state` returned.
        device: a GPU. Default: `"cuda"`

    Examples:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.set_rng_state(torch.cuda.get_rng_state())
    """
    checked_index(device)
    data = bytes(new_state.tolist())
    if len(data) != 2 * _WORD:
        raise RuntimeError("RNG state is wrong size")
    offset = int.from_bytes(data[_WORD:], "little")
    if offset % 4:
        raise RuntimeError("offset must be a multiple of 4")
    gpu().set_generator_state(int.from_bytes(data[:_WORD], "little"), offset // 4)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Set the states of the generators of all GPUs.

    Args:
        new_states: states that `get_rng_state_all` returned.

    Examples:
        >>> torch.cuda.set_rng_state_all([])
    """
    for i, state in enumerate(new_states):
        set_rng_state(state, i)
