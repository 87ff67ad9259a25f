"""`gradiron-as-torch`: the distribution named `torch` that it puts into an environment, and those that it leaves alone."""

import os
import pathlib
import re
import subprocess
import sys
import venv
import zipfile

import pytest

from library import T

pytestmark = pytest.mark.gradiron

HOME = str(pathlib.Path(T.__file__).parent.parent)
VERSION = str(T.__version__)


class Environment:
    """A fresh virtual environment that can import gradiron."""

    def __init__(self, path):
        self.path = path
        venv.create(path, with_pip=False, symlinks=os.name != "nt")
        self.site = pathlib.Path(self("import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip())

    def __call__(self, code, path=HOME):
        python = self.path / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        env = {**os.environ, "PYTHONPATH": path}
        return subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=120, env=env)

    def command(self, *words, path=HOME):
        done = self(f"import sys; from gradiron._as_torch.stub import main; sys.exit(main({[*words]!r}))", path)
        return done.returncode, done.stdout + done.stderr

    def pip(self, *words):
        command = [sys.executable, "-m", "pip", "--python", str(self.path), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, "PIP_NO_INDEX": "1"})

    def add(self, name, version, *lines):
        """Adds a distribution of another's."""
        folder = self.site / f"{name}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            "\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *lines, ""])
        )

    def files(self):
        return sorted(path.relative_to(self.site).as_posix() for path in self.site.rglob("*") if path.is_file())


@pytest.fixture
def environment(tmp_path):
    return Environment(tmp_path / "environment")


def wheel_that_requires(tmp_path, requirement):
    path = tmp_path / "wants_torch-1.0-py3-none-any.whl"
    info = "wants_torch-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("wants_torch.py", "import torch.nn\nfrom torch import Tensor\n")
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: wants-torch\nVersion: 1.0\nRequires-Dist: {requirement}\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return str(path)


def test_torch_is_gradiron_from_install_to_uninstall(environment):
    status, told = environment.command("status")
    assert status == 1 and "not installed" in told
    status, told = environment.command("install")
    assert status == 0 and str(environment.site) in told
    code = """
import importlib.metadata, importlib.util
assert importlib.metadata.version("torch") == VERSION and importlib.util.find_spec("torch") is not None
import torch.nn.functional as F
import torch, gradiron
assert torch is gradiron and F is gradiron.nn.functional and torch.__version__ == VERSION
from torch.optim import SGD
assert type(torch.ones(1)).__module__ == "torch"
"""
    done = environment(code.replace("VERSION", repr(VERSION)))
    assert (done.returncode, done.stderr) == (0, "")
    before = environment.files()
    assert environment.command("status") == (0, f"torch {VERSION} in {environment.site} is gradiron {T.version.gradiron}.\n")
    assert environment.command("install")[0] == 0 and environment.files() == before
    assert environment.command("uninstall")[0] == 0
    assert not list(environment.site.glob("torch*"))
    assert environment.command("uninstall")[0] == 0
    assert "No module named 'torch'" in environment("import torch").stderr


def test_every_file_is_in_the_record_and_they_are_few_kilobytes(environment):
    environment.command("install")
    record = (environment.site / f"torch-{VERSION}.dist-info" / "RECORD").read_text().splitlines()
    assert sorted(line.split(",")[0] for line in record) == environment.files()
    assert sum((environment.site / name).stat().st_size for name in environment.files()) < 4000


def test_pip_finds_the_requirement_met_and_removes_the_stub(environment, tmp_path):
    environment.add("gradiron", T.version.gradiron)
    environment.command("install")
    done = environment.pip("install", wheel_that_requires(tmp_path, "torch>=2.1,<4"))
    assert done.returncode == 0, done.stderr
    assert environment("import wants_torch, gradiron\nassert wants_torch.Tensor is gradiron.Tensor").returncode == 0
    assert environment.pip("check").returncode == 0
    assert re.search(rf"torch +{re.escape(VERSION)}", environment.pip("list").stdout)
    assert environment.pip("uninstall", "--yes", "torch").returncode == 0
    assert not list(environment.site.glob("torch*"))


def test_without_it_pip_does_not_find_the_requirement_met(environment, tmp_path):
    assert environment.pip("install", wheel_that_requires(tmp_path, "torch>=2.1,<4")).returncode == 1


def test_the_wheel_is_the_same_distribution(environment, tmp_path):
    environment.add("gradiron", T.version.gradiron)
    status, path = environment.command("wheel", str(tmp_path / "wheels"))
    assert status == 0 and environment.command("status")[0] == 1
    assert environment.pip("install", path.strip()).returncode == 0
    assert environment.command("status")[0] == 0
    assert environment.command("uninstall")[0] == 0 and not list(environment.site.glob("torch*"))


@pytest.mark.parametrize("verb", ["install", "status", "uninstall"])
def test_pytorch_is_left_alone(environment, tmp_path, verb):
    environment.add("torch", "2.15.0+cpu")
    (environment.site / "torch").mkdir()
    (environment.site / "torch" / "__init__.py").write_text("REAL = True\n")
    before = environment.files()
    status, told = environment.command(verb)
    assert status == 1 and "torch 2.15.0+cpu" in told and "is PyTorch" in told and "python -m gradiron" in told
    assert environment.files() == before and environment("import torch; assert torch.REAL").returncode == 0


def test_pytorch_elsewhere_is_found(environment, tmp_path):
    (tmp_path / "source" / "torch").mkdir(parents=True)
    (tmp_path / "source" / "torch" / "__init__.py").touch()
    status, told = environment.command("install", path=os.pathsep.join([HOME, str(tmp_path / "source")]))
    assert status == 1 and str(tmp_path / "source") in told and environment.files() == []


def test_another_versions_stub_is_told_and_renewed(environment):
    environment.command("install")
    info = environment.site / f"torch-{VERSION}.dist-info"
    old = info.with_name("torch-2.9.0+gradiron0.0.1.dist-info")
    for name in ("METADATA", "RECORD"):
        (info / name).write_text((info / name).read_text().replace(VERSION, "2.9.0+gradiron0.0.1"))
    info.rename(old)
    status, told = environment.command("status")
    assert status == 1 and "2.9.0+gradiron0.0.1" in told and "install" in told
    assert environment.command("install")[0] == 0
    assert not old.exists() and environment.command("status")[0] == 0


def test_a_folder_that_cannot_be_written_is_told(environment):
    (environment.site / "torch").write_text("in the way")
    status, told = environment.command("install")
    assert status == 1 and told.startswith("gradiron-as-torch: cannot write") and "Traceback" not in told
    assert environment.files() == ["torch"]


def test_without_gradiron_the_import_says_what_to_do(environment):
    environment.command("install")
    told = environment("import torch", path="").stderr.splitlines()[-1]
    assert told.startswith("ModuleNotFoundError") and "pip install gradiron" in told and "pip uninstall torch" in told


def test_files_of_others_in_its_folder_are_kept(environment):
    environment.command("install")
    (environment.site / "torch" / "mine.txt").touch()
    assert environment.command("uninstall")[0] == 0 and environment.files() == ["torch/mine.txt"]
