"""Programs written for PyTorch, run by `python -m gradiron` or under `as_torch`."""

import os
import pathlib
import py_compile
import subprocess
import sys
import venv
import zipapp

import pytest

from library import T, python, python_ok

pytestmark = pytest.mark.gradiron

HOME = str(pathlib.Path(T.__file__).parent.parent)


def launch(*arguments, cwd, path=()):
    env = {**os.environ, "OMP_NUM_THREADS": "2", "PYTHONPATH": os.pathsep.join([*map(str, path), HOME])}
    command = [sys.executable, "-m", "gradiron", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd, env=env)


def script(folder, text, name="script.py"):
    (folder / name).write_text(text)
    return folder / name


@pytest.fixture
def real(tmp_path):
    """A folder with another package of the name `torch`."""
    package = tmp_path / "real" / "torch"
    (package / "nn").mkdir(parents=True)
    (package / "__init__.py").write_text("REAL = True\n")
    (package / "nn" / "__init__.py").write_text("REAL = True\n")
    return tmp_path / "real"


def test_a_script_and_its_neighbours(tmp_path, real):
    script(tmp_path, "import torch\nNAME = torch.__spec__.name\n", "neighbour.py")
    path = script(
        tmp_path,
        "import sys, torch, neighbour\n"
        "import torch.nn.functional as F\n"
        "import torch.optim.lr_scheduler\n"
        "from torch.utils.data import DataLoader\n"
        "from torch import nn\n"
        "assert neighbour.NAME == 'gradiron' and __name__ == '__main__'\n"
        "assert nn is torch.nn is sys.modules['torch.nn'] is sys.modules['gradiron.nn']\n"
        "assert nn.__spec__.name == 'gradiron.nn' and F is nn.functional\n"
        "print(sys.argv[1:], F.relu(torch.tensor([-1.0, 2.0])).tolist())\n",
    )
    done = launch(path, "--lr", "3", cwd=real, path=[real])
    assert (done.returncode, done.stdout, done.stderr) == (0, "['--lr', '3'] [0.0, 2.0]\n", "")


def test_a_module_and_a_line(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    script(package, "")
    script(package, "from . import inner\nimport sys\nprint(inner.F.relu(inner.x).item(), sys.argv[1:])\n", "__main__.py")
    script(package, "import torch, torch.nn.functional as F\nx = torch.tensor(-1.0)\n", "inner.py")
    done = launch("-m", "package", "a", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("0.0 ['a']\n", "")
    done = launch("-c", "import torch; print(torch.ones(1).tolist())", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("[1.0]\n", "")


def test_exit_statuses(tmp_path):
    assert launch(script(tmp_path, "raise SystemExit(7)"), cwd=tmp_path).returncode == 7
    done = launch(script(tmp_path, "def f():\n    raise ValueError('mine')\nf()\n"), cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.endswith("ValueError: mine\n")
    # The traceback begins with the program.
    assert done.stderr.splitlines()[1].strip().startswith("File") and "script.py" in done.stderr.splitlines()[1]
    assert launch(cwd=tmp_path).returncode == 2
    done = launch("nowhere.py", cwd=tmp_path)
    assert done.returncode == 1 and "no such file" in done.stderr


UNTIL_THE_END = """\
import __main__, atexit, os, sys
assert vars(__main__) is globals()
left = open("left.txt", "w")
left.write("written")
def end():
    print(os.path.isabs(__file__), sys.modules["__main__"].end is end)
def kind(x: int):
    return left
atexit.register(end)
print(kind.__annotations__)
"""


@pytest.mark.parametrize("way", ["script", "compiled", "line"])
def test_a_program_is_the_main_module_until_the_end(tmp_path, way):
    # An open file reaches the disk, handlers find their module, and annotations are as Python evaluates them.
    path = script(tmp_path, UNTIL_THE_END)
    if way == "compiled":
        path = pathlib.Path(py_compile.compile(path, tmp_path / "script.pyc"))
    text = UNTIL_THE_END.replace("os.path.isabs(__file__)", "True")
    done = launch(*(("-c", text) if way == "line" else (path,)), cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("{'x': <class 'int'>}\nTrue True\n", "")
    assert (tmp_path / "left.txt").read_text() == "written"


def test_a_folder_and_an_archive(tmp_path):
    inner = tmp_path / "program"
    inner.mkdir()
    script(inner, "import torch, side\nprint(side.NAME, torch.ones(1).tolist())\n", "__main__.py")
    script(inner, "import torch\nNAME = torch.__spec__.name\n", "side.py")
    zipapp.create_archive(inner, tmp_path / "program.pyz")
    for path in (inner, tmp_path / "program.pyz"):
        done = launch(path, cwd=tmp_path)
        assert (done.stdout, done.stderr) == ("gradiron [1.0]\n", "")


def test_what_is_missing_is_listed(tmp_path):
    text = """\
import torch
hasattr(torch, "probed")
try:
    torch.nn.quantized
except AttributeError:
    pass
try:
    torch.sigmiod
except AttributeError:
    pass
try:
    from torch.export import export
except ImportError:
    pass
try:
    from torch.cuda import CUDAPluggableAllocator
except ImportError:
    pass
try:
    from torch.nowhere import thing
except ImportError:
    pass
torch.ones(1).sigmiod()
"""
    done = launch(script(tmp_path, text), cwd=tmp_path)
    heading = f"PyTorch {T.__version__.partition('+')[0]} has no such names:\n"
    lacking, _, unknown = done.stderr.partition("gradiron lacks:\n")[2].partition(heading)
    assert done.returncode == 1
    assert [line.split() for line in lacking.splitlines()] == [
        ["torch.nn.quantized", "script.py:4"],
        ["torch.export", "script.py:12"],
        ["torch.cuda.CUDAPluggableAllocator", "script.py:16"],
    ]
    assert [line.split(maxsplit=2) for line in unknown.splitlines()] == [
        ["torch.sigmiod", "script.py:8", "(did you mean torch.sigmoid?)"],
        ["torch.nowhere", "script.py:20", "(did you mean torch.where?)"],
        ["torch.Tensor.sigmiod", "script.py:23", "(did you mean torch.Tensor.sigmoid?)"],
    ]


@pytest.mark.parametrize(
    "name, unknown",
    [
        *[(f"torch.{name}", False) for name in ("sigmoid", "nn.Linear", "nn.quantized", "contrib", "export.export", "ops.a.b")],
        *[(f"torch.{name}", True) for name in ("sigmiod", "nn.Linaer", "nn.functional.rleu", "nowhere.thing", "Size.dims")],
        # What PyTorch has for itself, and what lies in most classes, is not in the table.
        *[(f"torch.{name}", False) for name in ("_foo", "_foo.bar", "nn.modules.linear.Linear.wieght")],
        ("MulBackward0 is not differentiable twice", False),
    ],
)
def test_names_that_pytorch_has_not_either(name, unknown):
    from gradiron._as_torch import pytorch_names

    assert pytorch_names.is_unknown(name) is unknown


WORKERS = """\
import sys, torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset

class Names(Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, i):
        import torch.nn.functional as F
        return F.relu(torch.tensor(i - 0.5)), torch.__spec__.name

def work(queue):
    import torch
    queue.put(torch.__spec__.name)

if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        context = mp.get_context(method)
        queue = context.SimpleQueue()
        process = context.Process(target=work, args=(queue,))
        process.start()
        loader = DataLoader(Names(), batch_size=2, num_workers=1, multiprocessing_context=method)
        print(method, queue.get(), [(x.tolist(), names) for x, names in loader])
        process.join()
"""


def test_child_processes(tmp_path, real):
    done = launch(script(tmp_path, WORKERS), cwd=tmp_path, path=[real])
    expected = "gradiron [([0.0, 0.5], ('gradiron', 'gradiron'))]"
    assert done.stdout.splitlines() == [f"{m} {expected}" for m in ("fork", "spawn", "forkserver")], done.stderr


LEVELS = """\
import importlib.metadata, subprocess, sys
assert "gradiron" not in sys.modules or sys.argv[1:] == ["2"]
version = importlib.metadata.version("torch")
import torch.nn.functional as F
import torch
level = int(sys.argv[1])
print(level, torch.__spec__.name, F.__spec__.name, version == torch.__version__, flush=True)
for way in ([__file__], ["-m", "levels"], ["-c", open(__file__).read().replace("__file__", repr(__file__))]) if level else ():
    subprocess.run([sys.executable, *way, str(level - 1)], check=True)
"""


def test_subprocesses_of_several_levels(tmp_path, real):
    path = script(tmp_path, LEVELS, "levels.py")
    done = launch(path, "2", cwd=tmp_path, path=[real])
    row = "{} gradiron gradiron.nn.functional True"
    assert done.stdout.splitlines() == [row.format(2)] + 3 * ([row.format(1)] + 3 * [row.format(0)]), done.stderr
    assert done.stderr == ""


def test_subprocesses_without_gradiron_are_as_ever(tmp_path):
    venv.create(tmp_path / "other", symlinks=True)
    python = next(path for path in tmp_path.glob("other/*/python*") if path.is_file())
    text = f"""\
import subprocess, sys, torch
code = "import sys; print([type(f).__module__ for f in sys.meta_path]); import torch"
subprocess.run([sys.executable, "-S", "-c", "print(1)"], check=True)
child = subprocess.run([{str(python)!r}, "-c", code], capture_output=True, text=True)
print(child.stdout, child.stderr.splitlines()[-1])
"""
    done = launch(script(tmp_path, text), cwd=tmp_path)
    assert "_gradiron" not in done.stdout and done.stderr == ""
    assert done.stdout.splitlines()[-1].strip() == "ModuleNotFoundError: No module named 'torch'"


def test_a_python_that_is_not_launched_knows_nothing_of_it(real):
    code = """
with T.as_torch():
    assert "GRADIRON_AS_TORCH" not in os.environ
assert "GRADIRON_AS_TORCH" not in os.environ and "_gradiron_as_torch" not in sys.modules
"""
    python_ok("import os\n" + code, env={"PYTHONPATH": os.pathsep.join([str(real), HOME])})


def test_a_launched_python_loads_gradiron_late_and_keeps_it(real):
    code = """
import sys
assert "gradiron" not in sys.modules and "typing" not in sys.modules
import gradiron
with gradiron.as_torch():
    import torch
    assert torch is gradiron
import torch, torch.nn
assert torch is gradiron and torch.nn.__spec__.name == "gradiron.nn"
"""
    env = {**os.environ, "GRADIRON_AS_TORCH": "1", "PYTHONPATH": os.pathsep.join([str(real), HOME])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=env)
    assert (done.returncode, done.stderr) == (0, "")


def test_another_pytorch_is_not_disturbed(real):
    env = {"PYTHONPATH": os.pathsep.join([str(real), HOME])}
    code = """
import subprocess
import torch, torch.nn
theirs = torch
with T.as_torch() as ours:
    import torch, torch.nn
    assert torch is ours is T and torch.nn is T.nn
    child = subprocess.run([sys.executable, "-c", "import torch; print(torch.REAL)"], capture_output=True, text=True)
    assert child.stdout == "True\\n", child
    with T.as_torch():
        pass
    import torch.optim
    assert torch is T
import torch, torch.nn
assert torch is theirs and torch.nn.REAL and "torch.optim" not in sys.modules
assert not any("_as_torch" in str(type(f)) for f in sys.meta_path)
"""
    python_ok(code, env=env)


def test_pickles_and_metadata():
    code = """
import pickle, importlib.metadata, importlib.util
T.as_torch()
assert pickle.loads(b"ctorch.nn.modules.linear\\nLinear\\n.") is T.nn.Linear
assert importlib.metadata.version("torch") == T.__version__
assert importlib.util.find_spec("torch.nn").name == "gradiron.nn"
try:
    import torch.nothing.at_all
except ModuleNotFoundError as error:
    assert error.name == "torch.nothing", error.name
else:
    raise AssertionError
"""
    python_ok(code)


TYPES = """
import pickle
x = T.ones(2)
x.note = "kept"
before, printed = pickle.dumps(x), repr(x)
with T.as_torch():
    import torch
    assert type(x).__module__ == T.Tensor.__module__ == "torch" and repr(torch.Tensor) == "<class 'torch.Tensor'>"
    assert f"{type(x).__module__}.{type(x).__qualname__}" == "torch.Tensor"
    assert T.nn.Parameter.__module__ == "torch.nn.parameter"
    assert pickle.loads(pickle.dumps(torch.Tensor)) is T.Tensor
    inside = pickle.dumps(x)
    assert b"gradiron" not in inside and pickle.loads(inside).note == pickle.loads(before).note == "kept"
    assert repr(x) == printed
    with T.as_torch():
        pass
    assert type(x).__module__ == "torch"
assert type(x).__module__ == "gradiron" and repr(T.Tensor) == "<class 'gradiron.Tensor'>"
assert pickle.dumps(x) == before and pickle.loads(before).note == "kept"
with T.as_torch():
    assert pickle.loads(inside).note == "kept"
"""


def test_a_tensors_class_is_pytorchs_by_name(tmp_path):
    python_ok(TYPES)
    line = "import torch; print(type(torch.ones(1)).__module__, type(torch.ones(1)))"
    done = launch("-c", line, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("torch <class 'torch.Tensor'>\n", "")


def test_nothing_is_aliased_without_being_asked():
    done = python("import importlib.util\nprint('torch' in sys.modules, 'gradiron._as_torch.alias' in sys.modules)")
    assert done.stdout == "False False\n"


@pytest.mark.parametrize(
    "other, less, equal",
    [
        ("1.13", False, False),
        ("2.0", False, False),
        ("2.9.1", False, False),
        ((2, 15), False, False),
        ("2.15.0+gradiron0.1.0", False, True),
        ("3", True, False),
        ("main", True, False),
    ],
)
def test_version_checks(other, less, equal):
    version = T.__version__
    assert (version < other, version == other, version <= other) == (less, equal, less or equal)
    assert (version > other, version >= other, version != other) == (not (less or equal), not less, not equal)
    assert int(version.split(".")[0]) == 2 and T.version.__version__ is version and T.version.cuda is None


def test_versions_before_a_release():
    from gradiron.torch_version import TorchVersion

    assert TorchVersion("2.0.0a1") < "2.0" < TorchVersion("2.0.0.post1") and TorchVersion("2.1") > "2.0.9"
    assert TorchVersion("2.0") == "2.0.0" and hash(TorchVersion("2.0")) == hash("2.0")
