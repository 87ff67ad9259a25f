"""What stands in a module or class for everybody's completion is PyTorch's, or in a short list of our own."""

import importlib
import inspect
import pathlib
import pkgutil
import subprocess
import sys

import golden_file
import pytest

from library import T

pytestmark = pytest.mark.gradiron

# Our own, by the module or class they stand in.
OURS = {
    ".": {"viz", "as_torch", "functorch"},
    "autograd": {"set_source_lines", "source_lines"},
    "cuda": {"dispatches", "submits"},
    "version": {"gradiron"},
    "distributed": {
        *("describe_engine", "ProcessGroupMPI", "AllgatherOptions"),
        *("engine", "file_store", "fingerprint", "objects", "options", "process_group", "store", "work"),
    },
    "distributed.checkpoint": {"state_dict_io"},
    "distributed.launcher": {"agent", "nodes", "shared_memory", "worker"},
}
# (PyTorch's own `utils.tensorboard` can be imported only beside tensorboard.)
OUR_MODULES = (
    *("viz", "autograd.source_lines", "ops", "utils.safetensors", "utils.tensorboard"),
    # What PyTorch has in its core.
    *(f"distributed.{name}" for name in "engine file_store fingerprint objects options process_group store work".split()),
    *(f"distributed.launcher.{name}" for name in "agent nodes shared_memory worker".split()),
    "distributed.checkpoint.state_dict_io",
    # PyTorch's as well: a package beside `torch`, and modules of which the golden file has the names at `xpu`.
    "functorch",
    *(f"xpu.{name}" for name in "graphs memory random streams".split()),
)
PYTORCHS = golden_file.read(golden_file.NAMES)


def modules():
    """The modules that are not private, by their names below the package."""
    below = [info.name.removeprefix(f"{T.__name__}.") for info in pkgutil.walk_packages(T.__path__, f"{T.__name__}.")]
    return [".", *(name for name in below if not name.startswith("_") and "._" not in name)]


def module(name):
    return importlib.import_module(T.__name__ if name == "." else f"{T.__name__}.{name}")


def is_import(holder, value):
    """From elsewhere, as a module's own source needs it."""
    home = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None)
    inside = home is None or home == holder.__name__ or home.startswith(holder.__name__ + ".")
    return not inside or home == "__future__"


def strange(key, holder, skip=lambda value: False):
    known = {*PYTORCHS.get(key, ()), *OURS.get(key, ()), "TYPE_CHECKING"}  # an import, but of a mere bool
    return [n for n in dir(holder) if not n.startswith("_") and n not in known and not skip(getattr(holder, n))]


def test_the_top_of_the_package():
    assert strange(".", T) == []


def test_modules_are_pytorchs_or_private():
    ours = tuple(f"{name}." for name in OUR_MODULES)
    assert [n for n in modules() if n not in PYTORCHS and not f"{n}.".startswith(ours)] == []


def test_packages():
    for name in set(modules()) & set(PYTORCHS) - {"."}:
        holder = module(name)
        if hasattr(holder, "__path__") or name == "nn.functional":
            assert (name, strange(name, holder, lambda value: is_import(holder, value))) == (name, [])


@pytest.mark.parametrize("name", [n for n in PYTORCHS if n.startswith("class ")])
def test_classes(name):
    holder = T
    for part in name.removeprefix("class ").split("."):
        holder = getattr(holder, part, None)
    assert holder is None or strange(name, holder) == []


def test_internals_are_within_reach_of_the_package_alone():
    core = T._core
    inside = [name for name in vars(core) if not name.startswith("_") and name not in core.__all__]
    assert {"allow_view_writes", "run_grad", "vmap_swap_calls"} < set(inside) and not any(hasattr(T, name) for name in inside)


def test_internals_refuse_what_does_not_fit():
    """They are not hidden: who calls them in any way may get an error, but no crash and no panic."""
    script = pathlib.Path(__file__).with_name("hostile_calls.py")
    done = subprocess.run([sys.executable, script, "1", "4000"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == "no faults", done.stdout
