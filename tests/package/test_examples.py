"""The examples run: a few steps of each."""

import os
import pathlib
import subprocess
import sys
import xml.dom.minidom

import pytest

from library import T

pytestmark = pytest.mark.gradiron

EXAMPLES = pathlib.Path(__file__).parent.parent.parent / "examples"
NAMES = sorted(p.stem for p in EXAMPLES.glob("*.py") if "Training(" in p.read_text() and p.stem != "training")


def test_all_are_found():
    assert NAMES == ["convnet", "lstm", "neural_ode", "pinn", "transformer"]


@pytest.mark.parametrize("name", NAMES)
def test_examples_run_and_draw(name, tmp_path):
    home = pathlib.Path(T.__file__).parent.parent
    env = {**os.environ, "OMP_NUM_THREADS": "2", "PYTHONPATH": str(home)}
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), "--steps", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "step     3 of 3" in done.stdout
    drawn = xml.dom.minidom.parse(str(tmp_path / "demo-output" / f"{name}.svg"))
    texts = [node.firstChild.data for node in drawn.getElementsByTagName("text")]
    assert f"{name}: the loss" in texts and {"1", "2", "3"} <= {*texts}
