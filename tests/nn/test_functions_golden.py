"""Functions of `nn.functional` beside what PyTorch recorded: values, dtypes, strides, nodes, gradients of first and second order."""

import math
import re

import golden_file
import nn_function_cases as cases
import pytest

from library import IS_GRADIRON, T

# A node that gradiron calls otherwise: `norm` is `linalg_vector_norm` here.
KNOWN = {"NormBackward1": "LinalgVectorNormBackward0"}
MISSING = re.compile(r"'gradiron(.nn.functional)?' has no attribute '\w+'")
TABLE = golden_file.read("nn_functions.json.gz")


def close(found, expected, rtol, atol):
    if found is None or expected is None:
        # A gradient that is nowhere may be zeros, and the other way round.
        return not any(found or []) and not any(expected or [])
    same = lambda a, b: (math.isnan(a) and math.isnan(b)) or a == b or abs(a - b) <= atol + rtol * abs(b)  # noqa: E731
    return len(found) == len(expected) and all(map(same, found, expected))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("code, expected", TABLE["values"], ids=[code for code, _ in TABLE["values"]])
def test_calls_give_what_pytorch_gives(code, expected):
    try:
        found = cases.record(code, T, second="again" in expected)
    except AttributeError as error:
        assert MISSING.search(str(error))
        pytest.skip(str(error))
    if expected.get("node") in KNOWN:
        expected = {**expected, "node": KNOWN[expected["node"]], "saved": {}}
    half = expected["dtype"] in ("torch.float16", "torch.bfloat16")
    rtol, atol = (2e-2, 2e-2) if half else (3e-4, 3e-5)
    for fact in ("shape", "dtype", "strides", "node"):
        assert found.get(fact) == expected.get(fact), fact
    assert close(found["values"], expected["values"], rtol, atol), (found["values"], expected["values"])
    for order in ("grads", "again"):
        for k, (a, b) in enumerate(zip(found.get(order, []), expected.get(order, []))):
            assert close(a, b, 10 * rtol if order == "again" else rtol, 10 * atol), (order, k, a, b)
    told = expected.get("saved", {})
    assert {k: v for k, v in found.get("saved", {}).items() if k in told} == told


@pytest.mark.skipif(not IS_GRADIRON, reason="recorded from it")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("code, expected", TABLE["errors"], ids=[code for code, _ in TABLE["errors"]])
def test_errors_are_pytorchs(code, expected):
    found = cases.error(code, T)
    if found and MISSING.search(found[1]):
        pytest.skip(found[1])
    assert found == expected
