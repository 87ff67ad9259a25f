"""Writes scripts.json: what the programs of tests/scripts print under PyTorch. Run under PyTorch."""

import pathlib
import subprocess
import sys

import golden_file

HOME = pathlib.Path(__file__).parent
STEPS = 5


def printed(path):
    done = subprocess.run([sys.executable, path, "--steps", str(STEPS)], capture_output=True, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines()]


if __name__ == "__main__":
    scripts = sorted(p for p in (HOME.parent / "scripts").glob("*.py") if p.stem != "common")
    made = {path.stem: printed(path) for path in scripts}
    golden_file.write("scripts.json", made)
