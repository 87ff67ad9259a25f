"""Bad input: PyTorch's exception, the first sentence of its message, and every tensor as it was."""

import warnings

import error_cases
import golden_file
import pytest

from library import T

TABLE = golden_file.read("errors.json")
ROWS = [pytest.param(*row, id=row[0]) for rows in TABLE.values() for row in rows]
NAMES = "f i b v s g w".split()


@pytest.mark.parametrize("code, kind, sentence", ROWS)
def test_bad_call(code, kind, sentence):
    space = {"T": T}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(error_cases.SETUP, space)
        before = {name: (space[name], space[name].tolist()) for name in NAMES}
        with pytest.raises(Exception) as caught:
            exec(code, space)
    assert kind in [base.__name__ for base in type(caught.value).__mro__]
    assert error_cases.first_sentence(str(caught.value)) == sentence
    for name, (tensor, values) in before.items():
        assert tensor.tolist() == values, f"the failed call changed {name}"


def test_table_is_what_the_cases_say():
    """A case that was added without running make_errors.py would never be checked."""
    known = {row[0] for rows in TABLE.values() for row in rows}
    assert known == {code for group in error_cases.CASES for code in error_cases.source(group)}


def test_broadcast_failure_leaves_the_result_alone():
    out = T.full((2, 3), 7.0)
    with pytest.raises(RuntimeError):
        T.add(T.ones(2, 3), T.ones(4), out=out)
    assert out.tolist() == [[7.0] * 3] * 2


@pytest.mark.parametrize(
    "write",
    [
        lambda x, i: x.index_copy_(0, i, T.ones(3)) if hasattr(x, "index_copy_") else x.__setitem__(i, 1.0),
        lambda x, i: x.scatter_(0, i, 1.0),
        lambda x, i: x.scatter_add_(0, i, T.ones(3)),
        lambda x, i: x.index_add_(0, i, T.ones(3)),
        lambda x, i: x.index_fill_(0, i, 1.0),
        lambda x, i: x.__setitem__(i, T.ones(3)),
    ],
)
def test_a_bad_index_writes_nothing(write):
    x = T.zeros(4)
    with pytest.raises((RuntimeError, IndexError)):
        write(x, T.tensor([0, 1, 9]))
    assert T.isfinite(x).all()
    if x.sum() != 0:  # PyTorch may write what came before the bad index; gradiron checks first
        assert T.__name__ == "torch"
