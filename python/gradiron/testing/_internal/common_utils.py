"""The class of PyTorch's own tests, which packages derive theirs from."""

from __future__ import annotations

import contextlib
import random
import sys
import unittest
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import gradiron

from .. import assert_close, make_tensor
from .._compare import TOLERANCES

__all__ = ["TestCase", "freeze_rng_state", "make_tensor", "run_tests", "set_default_dtype"]

IS_LINUX = sys.platform == "linux"
IS_MACOS = sys.platform == "darwin"
IS_WINDOWS = sys.platform == "win32"
SEED = 1234


class TestCase(unittest.TestCase):
    """A test case that compares tensors, and begins each test with the same random numbers.

    Examples:
        >>> from gradiron.testing._internal.common_utils import TestCase
        >>> TestCase().assertEqual(torch.ones(2), torch.ones(2))
    """

    # Tests raise these for all their comparisons.
    precision: float = 0.0
    rel_tol: float = 0.0
    maxDiff = None

    def setUp(self) -> None:
        """Seed the generators."""
        random.seed(SEED)
        gradiron.manual_seed(SEED)

    def assertEqual(
        self,
        x: Any,
        y: Any,
        msg: Any = None,
        *,
        atol: float | None = None,
        rtol: float | None = None,
        equal_nan: bool = True,
        exact_dtype: bool = True,
        exact_device: bool = False,
        exact_layout: bool = False,
        exact_stride: bool = False,
        exact_is_coalesced: bool = False,
    ) -> None:
        """Compare tensors, numbers, and containers of them, by their dtype's tolerance; other objects by `==`."""
        if (atol is None) != (rtol is None):
            atol, rtol = atol or 0.0, rtol or 0.0
        if atol is None and (self.precision or self.rel_tol):
            # The larger ones of the test's and of the dtype's tolerances hold.
            usual = [TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in (*_dtypes(x), *_dtypes(y))]
            rtol = max(self.rel_tol, *(r for r, _ in usual), 0.0)
            atol = max(self.precision, *(a for _, a in usual), 0.0)
        if not _is_comparable(x) or not _is_comparable(y):
            super().assertEqual(x, y, msg)
            return
        if isinstance(x, gradiron.Tensor) != isinstance(y, gradiron.Tensor):
            # A tensor equals a number or list of its values.
            like = x if isinstance(x, gradiron.Tensor) else y
            x, y = (gradiron.as_tensor(value, dtype=like.dtype, device=like.device) for value in (x, y))
        assert_close(
            x,
            y,
            rtol=rtol,
            atol=atol,
            equal_nan=equal_nan,
            check_dtype=exact_dtype,
            check_device=exact_device,
            check_layout=exact_layout,
            check_stride=exact_stride,
            msg=msg if msg is None or callable(msg) else lambda told: f"{told}\n{msg}",
        )

    def assertNotEqual(self, x: Any, y: Any, msg: Any = None, **options: Any) -> None:  # type: ignore[override]
        """Require that `assertEqual` fails."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertEqual(x, y, msg, **options)

    def assertEqualIgnoreType(self, x: Any, y: Any, **options: Any) -> None:
        """Compare the values, whatever the dtypes."""
        self.assertEqual(x, y, exact_dtype=False, **options)

    def assertEqualTypeString(self, x: Any, y: Any) -> None:
        """Compare devices and dtypes."""
        super().assertEqual((x.device, x.dtype), (y.device, y.dtype))

    def assertObjectIn(self, obj: Any, iterable: Any) -> None:
        """Require that an object itself is among others."""
        if not any(obj is other for other in iterable):
            raise AssertionError("object not found in iterable")

    @contextlib.contextmanager
    def assertWarnsOnceRegex(self, category: type[Warning], regex: str = "") -> Iterator[None]:
        """Require one warning of a category whose text matches."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        found = [warning for warning in caught if issubclass(warning.category, category)]
        super().assertEqual(len(found), 1)
        self.assertRegex(str(found[0].message), regex)

    def assertNotWarn(self, callable: Callable[[], Any], msg: str = "") -> None:
        """Require that a call warns of nothing."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            callable()
        super().assertEqual(len(caught), 0, msg)


def _is_comparable(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_comparable, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_comparable, value))
    return value is None or isinstance(value, (gradiron.Tensor, bool, int, float, complex))


def _dtypes(value: Any) -> list[str]:
    """The dtypes of the tensors in a value, by name."""
    if isinstance(value, gradiron.Tensor):
        return [str(value.dtype)]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [dtype for part in parts for dtype in _dtypes(part)]


def run_tests(argv: list[str] | None = None) -> None:
    """Run the tests of the program.

    Args:
        argv: the command line; the program's own if `None`.
    """
    unittest.main(argv=argv)


@contextlib.contextmanager
def freeze_rng_state() -> Iterator[None]:
    """Give the generator back the state that it had before a `with` block.

    Examples:
        >>> from gradiron.testing._internal.common_utils import freeze_rng_state
        >>> with freeze_rng_state():
        ...     x = torch.rand(1)
        >>> torch.equal(x, torch.rand(1))
        True
    """
    state = gradiron.get_rng_state()
    try:
        yield
    finally:
        gradiron.set_rng_state(state)


@contextlib.contextmanager
def set_default_dtype(dtype: Any) -> Iterator[None]:
    """Set the default dtype in a `with` block.

    Args:
        dtype: a dtype of floating point.

    Examples:
        >>> from gradiron.testing._internal.common_utils import set_default_dtype
        >>> with set_default_dtype(torch.float64):
        ...     torch.ones(1).dtype
        torch.float64
    """
    before = gradiron.get_default_dtype()
    gradiron.set_default_dtype(dtype)
    try:
        yield
    finally:
        gradiron.set_default_dtype(before)
