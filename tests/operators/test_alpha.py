"""`alpha`, where a number meets truth values: it has the result's dtype, not theirs."""

import pytest

from library import T

TRUTHS = T.tensor([True, False])


@pytest.mark.parametrize(
    "number, alpha, wanted",
    [(0.25, 0.5, [0.75, 0.25]), (2, 2, [4, 2]), (2, 3, [5, 2]), (0.5, 2, [2.5, 0.5]), (True, 2, [True, True])],
)
def test_a_number_and_truth_values(number, alpha, wanted):
    made = T.add(number, TRUTHS, alpha=alpha)
    assert made.tolist() == wanted and made.dtype == T.tensor(wanted).dtype


def test_tensors_and_truth_values():
    assert T.add(T.tensor([0.5, 0.5]), TRUTHS, alpha=0.25).tolist() == [0.75, 0.5]
    assert T.add(T.tensor(0.5), TRUTHS, alpha=0.25).tolist() == [0.75, 0.5]
    assert T.add(TRUTHS, 0.5, alpha=0.5).tolist() == [1.25, 0.25]
    assert T.sub(T.tensor([1, 1]), T.tensor([2, 3]), alpha=2).tolist() == [-3, -5]


def test_numbers_alone():
    assert T.add(3, 2).tolist() == 5 and T.add(3, 2, alpha=2).tolist() == 7 and T.sub(1.5, 2).tolist() == -0.5
    assert T.mul(True, 2).dtype is T.int64 and T.mul(1j, 2).tolist() == 2j and T.add(3, 0.5).dtype is T.float32
    assert T.add(True, True).tolist() is True
    for name in ("remainder", "fmod", "maximum", "atan2"):
        with pytest.raises(TypeError):
            getattr(T, name)(3, 2)
