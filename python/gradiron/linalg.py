"""Linear algebra: factorisations, and what they solve."""

from . import _core

LinAlgError = _core._LinAlgError

_ROWS = {name.removeprefix("linalg_"): function for name, function in vars(_core).items() if name.startswith("linalg_")}
globals().update(_ROWS)

__all__ = sorted(["LinAlgError", *_ROWS])
