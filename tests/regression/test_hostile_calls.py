"""A fixed batch of hostile calls (`python -m hostile` makes millions): no death, no panic, no hang, no argument half changed."""

import os
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.gradiron

TESTS = pathlib.Path(__file__).parent.parent


@pytest.mark.parametrize("of, first", [*(("calls", first) for first in range(0, 4000, 1000)), ("made", 0)])
def test_hostile_calls_are_survived(of, first, tmp_path):
    path = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-m", "hostile", "--of", of, "-n", "1000", "--first", str(first), "--jobs", "1", "--patience", "60"],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": path},
        cwd=tmp_path,  # some calls write files
    )
    assert done.returncode == 0 and "1000 seeds" in done.stdout, done.stdout + done.stderr
