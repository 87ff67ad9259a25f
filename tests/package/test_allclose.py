"""PyTorch's older comparison, `assert_allclose`."""

import pytest

from library import T

pytestmark = pytest.mark.filterwarnings("ignore:.*assert_allclose.*is deprecated:FutureWarning")
allclose = T.testing.assert_allclose


@pytest.mark.parametrize("kind, near, far", [("float16", 1e-3, 1e-2), ("float32", 5e-5, 1e-3), ("float64", 5e-6, 1e-4)])
def test_tolerances_by_dtype(kind, near, far):
    one = T.ones(2, dtype=getattr(T, kind))
    allclose(one + near, one)
    with pytest.raises(AssertionError, match="Tensor-likes are not close!"):
        allclose(one + far, one)


def test_numbers_lists_and_other_dtypes():
    allclose([1.0, 2.0], T.tensor([1.0, 2.0]))
    allclose(T.tensor([1.0, 2.0]), [1, 2])
    allclose(T.ones(2), T.ones(2, dtype=T.float64))
    allclose(T.ones(2, dtype=T.int64), T.ones(2))
    with pytest.raises(AssertionError):
        allclose(T.tensor([1, 2]), T.tensor([1, 3]))


def test_nan_and_given_tolerances():
    nan = T.tensor([float("nan")])
    allclose(nan, nan)
    with pytest.raises(AssertionError):
        allclose(nan, nan, equal_nan=False)
    allclose(T.tensor([1.0]), T.tensor([1.5]), rtol=0, atol=1)
    with pytest.raises(ValueError, match="rtol"):
        allclose(T.tensor([1.0]), T.tensor([1.5]), rtol=1)


def test_its_message_and_its_warning():
    with pytest.raises(AssertionError, match="mine"):
        allclose(T.zeros(1), T.ones(1), msg="mine")
    with pytest.warns(FutureWarning, match="assert_allclose"):
        allclose(T.ones(1), T.ones(1))
