"""gradiron's own version: Cargo.toml has it, and the rest takes it from there."""

import pathlib
import re
import subprocess
import sys

import pytest

from library import T

pytestmark = pytest.mark.gradiron

ROOT = pathlib.Path(__file__).parent.parent.parent


def written_in(name, pattern):
    """What a file of the repository says of the version."""
    found = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None, name
    return found[1]


def test_the_version_is_cargos():
    assert T.version.gradiron == written_in("Cargo.toml", r'^\[workspace\.package\]\nversion = "(.*)"$')
    assert T.version.gradiron == written_in("CITATION.cff", r"^version: (.*)$")
    assert T.version.gradiron == written_in("CHANGELOG.md", r"^## (\S+)")
    assert T.__version__.endswith(f"+gradiron{T.version.gradiron}")


def test_the_command_tells_both_versions():
    home = str(pathlib.Path(T.__file__).parent.parent)
    command = [sys.executable, "-m", "gradiron", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={"PYTHONPATH": home})
    assert done.stdout == f"gradiron {T.version.gradiron}, for PyTorch {T.__version__}\n"
