"""Helpers for tests: comparison within tolerances, and random tensors."""

from ._allclose import assert_allclose
from ._compare import assert_close
from ._create import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
