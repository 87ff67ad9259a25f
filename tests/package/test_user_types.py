"""Type checkers, as a user has them: strict, without any settings of ours, on the installed package."""

import importlib
import inspect
import pathlib
import subprocess
import sys

import golden_file
import pytest

from library import IS_GRADIRON, T

if not IS_GRADIRON:
    pytest.skip("a promise of gradiron's own", allow_module_level=True)

CHECKERS = {
    "mypy": ("mypy", "--strict", "--config-file=", "--cache-dir=.mypy_cache", "--no-error-summary"),
    "pyright": ("pyright", "--pythonpath", sys.executable),
}
PROGRAM = pathlib.Path(__file__).parent.parent / "typed_program.py"
NAMES = golden_file.read(golden_file.NAMES)
# What people write most; of the others mypy checks what we import ourselves.
MODULES = """
    autograd autograd.functional autograd.graph autograd.forward_ad nn nn.functional nn.init nn.parameter nn.utils nn.utils.rnn
    nn.utils.parametrize nn.attention optim optim.lr_scheduler optim.swa_utils utils utils.data utils.checkpoint cuda amp func linalg
    fft special random distributions profiler testing multiprocessing serialization backends
""".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("program")


# What is there as soon as these modules are imported.
_LIST = f"import sys, gradiron\nfor name in {list(MODULES)}: __import__('gradiron.' + name)\nprint(*sys.modules)"
AT_ONCE = set(subprocess.run([sys.executable, "-c", _LIST], capture_output=True, text=True, check=True).stdout.split())


def is_own(module, name):
    """Whether a module has the name, and not for its own use only, as an import from elsewhere."""
    found = getattr(module, name, None)
    if found is None or found is T or name == "TYPE_CHECKING":
        return False
    if inspect.ismodule(found) and hasattr(module, "__path__") and found.__name__ not in AT_ONCE:
        return False  # Another test has imported it.
    home = found.__name__ if inspect.ismodule(found) else getattr(found, "__module__", None) or "gradiron"
    if inspect.isclass(found) and not hasattr(module, "__path__"):
        return home == module.__name__
    return home.startswith(("gradiron", "torch", "_nn"))


def check(checker, folder, text):
    (folder / "program.py").write_text(text)
    command = [sys.executable, "-m", *CHECKERS[checker], "program.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=folder)
    return done.stdout + done.stderr if done.returncode else ""


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_program(checker, folder):
    # It says itself what must be reported, and a checker tells where it finds no fault there.
    assert check(checker, folder, PROGRAM.read_text()) == ""


@pytest.mark.parametrize("checker", CHECKERS)
def test_every_name_is_exported(checker, folder):
    lines = []
    for module in ("", *MODULES):
        alias = f"m_{module.replace('.', '_')}"
        lines.append(f"import gradiron.{module} as {alias}" if module else f"import gradiron as {alias}")
        ours = importlib.import_module(f"gradiron.{module}".rstrip("."))
        lines += [f"{alias}.{name}" for name in NAMES[module or "."] if is_own(ours, name)]
    assert len(lines) > 1000
    assert check(checker, folder, "# pyright: reportUnusedExpression=false\n" + "\n".join(lines) + "\n") == ""
