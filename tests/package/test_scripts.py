"""Programs written for PyTorch (tests/scripts), unmodified, by the launcher: the losses are PyTorch's."""

import os
import pathlib
import subprocess
import sys

import golden_file
import pytest

from library import T

pytestmark = pytest.mark.gradiron

HOME = pathlib.Path(T.__file__).parent.parent
SCRIPTS = pathlib.Path(__file__).parent.parent / "scripts"
PRINTED = golden_file.read("scripts.json")
# What they lack still; once it is there, they run by themselves.
MISSING = {
    "lstm_lm": "lstm",
    **dict.fromkeys(("dcgan", "mnist_convnet", "resnet", "siamese", "vit"), "conv"),
}
# Rounding grows where a network is far from where it settles.
LOOSE = {"maml": 1e-3, "resnet": 1e-3, "siamese": 1e-3, "pinn": 1e-3}


def number(word):
    try:
        return float(word)
    except ValueError:
        return None


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_scripts_print_what_they_print_under_pytorch(name):
    env = {**os.environ, "OMP_NUM_THREADS": "2", "PYTHONPATH": str(HOME)}
    command = [sys.executable, "-m", "gradiron", str(SCRIPTS / f"{name}.py"), "--steps", "5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)
    if name in MISSING and done.returncode:
        assert MISSING[name] in done.stderr.partition("gradiron lacks:")[2], done.stderr[-2000:]
        pytest.skip(f"{MISSING[name]} is missing")
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == len(PRINTED[name])
    for line, expected in zip(lines, PRINTED[name]):
        assert len(line) == len(expected), (line, expected)
        for word, theirs in zip(line, expected):
            value = number(theirs)
            if value is None:
                assert word == theirs
            else:
                assert abs(float(word) - value) <= LOOSE.get(name, 1e-4) * max(1.0, abs(value)), (line, expected)
