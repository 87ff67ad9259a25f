"""gradiron: PyTorch's autograd as a small Rust extension. `import gradiron as torch` and go on."""

from __future__ import annotations

from . import _core
from ._core import *  # noqa: F403  (the rows' functions)
from ._core import (
    Tensor,
    _nn,
    bfloat16,
    bool,
    device,
    dtype,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    is_grad_enabled,
    promote_types,
    rows,
    set_default_dtype,
    uint8,
)
from ._types import OutOfMemoryError, Size, named_result

_core.register(Size, named_result, OutOfMemoryError)

from . import _tensor  # noqa: E402  (hangs the Python-side methods on Tensor)
from . import autograd  # noqa: E402
from ._creation import *  # noqa: E402, F403
from .random import default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state  # noqa: E402
from ._tensor_str import get_printoptions, printoptions, set_printoptions  # noqa: E402
from .autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled  # noqa: E402

float = float32
double = float64
half = float16
short = int16
int = int32
long = int64

from math import e, inf, nan, pi  # noqa: E402

__version__ = "0.1.0"


# Loaded when they are first asked for: importing gradiron stays quick.
_LAZY = ("nn", "viz", "testing", "cuda", "utils", "random")


def __getattr__(name: str) -> object:
    if name in _LAZY:
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'gradiron' has no attribute '{name}'")
