"""What tests of numerical programs need: comparing within a tolerance, and tensors to try things on."""

from ._allclose import assert_allclose
from ._compare import assert_close
from ._create import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
