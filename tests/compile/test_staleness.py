"""Never stale: whatever is changed of what a compiled function reads, it gives what the function gives as it is."""

import gc

import changes_of_containers  # noqa: F401 # they register their cases
import changes_of_functions  # noqa: F401
import changes_of_objects  # noqa: F401
import changes_of_state  # noqa: F401
import changes_of_tensors  # noqa: F401
import gradiron as torch
import pytest
from changes import CASES


@pytest.fixture(autouse=True)
def _modes():
    yield
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.requires_grad == b.requires_grad and torch.equal(a, b)


def outcome(function, x):
    try:
        return function(x)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("build", CASES, ids=lambda build: build.__name__)
def test_after_a_change_compiled_equals_eager(build):
    # Two copies of the case: what a call changes, each changes for itself.
    plain, *plain_changes = build()
    function, *changes = build()
    compiled = torch.compile(function)
    x = torch.tensor([0.5, -1.0, 2.0])

    def check():
        for _ in range(3):
            expected, found = outcome(plain, x), outcome(compiled, x)
            if isinstance(expected, tuple):
                assert found == expected
            else:
                assert same(found, expected), (found, expected)

    check()
    for plain_change, change in zip(plain_changes, changes, strict=True):
        plain_change()
        change()
        check()

    gc.collect()


def test_cases_are_captured():
    """Most of the cases must be captured at all, or the table shows nothing."""
    captured, reasons = 0, {}
    for build in CASES:
        function, *_ = build()
        compiled = torch.compile(function)
        for _ in range(4):
            outcome(compiled, torch.tensor([0.5, -1.0, 2.0]))
        captured += compiled._compiled.replays > 0
        if not compiled._compiled.replays:
            reasons[build.__name__] = list(map(str, compiled._compiled.reasons))
    assert captured >= len(CASES) - 12, reasons
