"""What tests of numerical programs need: comparing within a tolerance, and tensors to try things on."""

from .allclose import assert_allclose
from .compare import assert_close
from .create import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
