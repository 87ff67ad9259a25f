"""Models and optimizers together: the losses that PyTorch has after the same seed, step for step."""

import re

import golden_file
import pytest
import training_cases

from library import IS_GRADIRON, T

TABLE = golden_file.read("nn.json")["training"]
MISSING = r"'gradiron.nn.functional' has no attribute '(\w+)'|^(\w+) is not there yet"


@pytest.mark.parametrize("name", training_cases.PROGRAMS)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_losses(name):
    try:
        found = training_cases.losses(T, name)
    except (AttributeError, NotImplementedError) as error:
        missing = re.search(MISSING, str(error)) if IS_GRADIRON else None
        if missing is None:
            raise
        pytest.skip(f"{missing[1] or missing[2]} is missing")
    assert found == pytest.approx(TABLE[name], rel=2e-3, abs=1e-5)
    assert found[0] == pytest.approx(TABLE[name][0], rel=1e-5)
