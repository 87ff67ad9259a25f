"""`assert_allclose`, the predecessor of `assert_close`."""

from __future__ import annotations

import warnings
from typing import Any

import gradiron

from ._compare import assert_close

# (relative, absolute), by dtype; whatever is not listed has to be equal
_TOLERANCES = {"torch.float16": (1e-3, 1e-3), "torch.float32": (1e-4, 1e-5), "torch.float64": (1e-5, 1e-8)}


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Assert that two tensors are close; deprecated, use `assert_close`.

    It compares no dtypes, and its default tolerances are wider.

    Args:
        actual: tensor, or data for one.
        expected: tensor, or data for one.
        rtol: relative tolerance; depends on the dtype if `None`.
        atol: absolute tolerance; depends on the dtype if `None`.
        equal_nan: treat NaNs as equal. Default: `True`
        msg: message of the error. Default: an automatic one

    Examples:
        >>> torch.testing.assert_allclose(torch.tensor(1.0), torch.tensor(1.00001))
    """
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. "
        "Please use `torch.testing.assert_close()` instead. "
        "You can find detailed upgrade instructions in https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
        stacklevel=2,
    )
    if not isinstance(actual, gradiron.Tensor):
        actual = gradiron.tensor(actual)
    if not isinstance(expected, gradiron.Tensor):
        expected = gradiron.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        pairs = [_TOLERANCES.get(str(t.dtype), (0.0, 0.0)) for t in (actual, expected)]
        rtol, atol = max(r for r, _ in pairs), max(a for _, a in pairs)
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)
