"""Where classes and functions say that they come from, in a program that the launcher runs: from PyTorch's modules."""

import gzip
import json
import os
import pathlib
import pickle
import subprocess
import sys

import pytest

from library import GOLDEN, T, python_ok

pytestmark = pytest.mark.gradiron

ROOT = GOLDEN.parent.parent
HOME = str(pathlib.Path(T.__file__).parent.parent)

# Public names whose `__module__` differs from PyTorch's, by the reason.
KNOWN = {
    "one function here serves two modules, and is named after the other": """
        special.digamma special.erf special.erfc special.erfinv special.exp2 special.expit special.expm1 special.gammainc
        special.gammaincc special.gammaln special.i0 special.log1p special.log_softmax special.logit special.logsumexp
        special.multigammaln special.polygamma special.psi special.round special.sinc special.softmax special.xlogy
        special.modified_bessel_i0 xpu.list_gpu_processes nn.functional.layer_norm compiler.compile mps.is_available
        accelerator.synchronize mps.synchronize accelerator.empty_cache accelerator.max_memory_allocated
        accelerator.max_memory_reserved accelerator.memory_allocated accelerator.memory_reserved accelerator.memory_stats
        accelerator.reset_peak_memory_stats mps.empty_cache mps.get_rng_state mps.manual_seed mps.seed mps.set_rng_state
        optim.functional.adadelta optim.functional.adagrad optim.functional.adam optim.functional.adamax
        optim.functional.adamw optim.functional.asgd optim.functional.nadam optim.functional.radam
        optim.functional.rmsprop optim.functional.rprop optim.functional.sgd futures.Future ScriptModule
        distributed.ProcessGroupGloo distributed.distributed_c10d.ProcessGroupGloo
    """,
    "the module that it would be named after has no such name here": """
        nn.functional.threshold nn.functional.one_hot sym_sqrt overrides.has_torch_function Node
        distributed.all_gather_object distributed.broadcast_object_list distributed.gather_object
        distributed.recv_object_list distributed.scatter_object_list distributed.send_object_list
        _C.DispatchKey _C.DispatchKeySet _C.Graph _C.Value
    """,
    "another kind of thing here": "autograd.variable _C._TensorMeta",
    "one refusal for all of them": """
        ao.quantization.convert ao.quantization.prepare ao.quantization.prepare_qat ao.quantization.fuse_modules
        ao.quantization.fuse_modules_qat
    """,
}
# The same of functions' `__qualname__`, where PyTorch's is a word and not the inside of its build.
KNOWN_QUALNAMES = {
    "an alias is the function itself": """
        cuda.max_memory_cached cuda.memory_cached cuda.reset_max_memory_allocated cuda.reset_max_memory_cached
        cuda.memory.max_memory_cached cuda.memory.memory_cached special.modified_bessel_i1 dsmm spmm
        distributed.all_gather_single distributed.reduce_scatter_single distributed.is_gloo_available
        distributed.distributed_c10d.all_gather_single distributed.distributed_c10d.reduce_scatter_single
        distributed.distributed_c10d.is_gloo_available
    """,
    "the name of a function of the extension is fixed": "nn.functional.logsigmoid",
    "PyTorch names it after a private function": "nn.utils.clip_grads_with_norm_ nn.utils.get_total_norm",
}
# What no pickle can hold by its name, in PyTorch or here.
NOT_PICKLED = "Node ao.quantization. nn.init. autograd.variable".split()

ASK = """
import importlib, json, pickle, sys, types, warnings
warnings.simplefilter("ignore")
import gradiron
gradiron.as_torch()
asked, found = json.load(sys.stdin), {}
for module, names in asked.items():
    try:
        home = importlib.import_module("torch" if module == "." else f"torch.{module}")
    except ImportError:
        continue
    for name in names:
        value = getattr(home, name, None)
        # A method of `Tensor` has no `__module__`.
        if value is None or isinstance(value, types.MethodDescriptorType):
            continue
        try:
            data = pickle.dumps(value)
            pickled = "gradiron" if b"gradiron" in data else pickle.loads(data) is value
        except Exception as error:
            pickled = str(error)
        function = isinstance(value, (types.FunctionType, types.BuiltinFunctionType))
        found[name if module == "." else f"{module}.{name}"] = (
            getattr(value, "__module__", None), value.__qualname__ if function else None, pickled
        )
print(json.dumps(found))
"""


def golden():
    return json.loads(gzip.decompress((GOLDEN / "homes.json.gz").read_bytes()))["data"]


def environment():
    return {**os.environ, "OMP_NUM_THREADS": "2", "PYTHONPATH": HOME}


@pytest.fixture(scope="module")
def answers():
    """Of each public name `__module__`, a function's `__qualname__`, and whether a pickle of it gives it back."""
    asked = json.dumps({module: list(names) for module, names in golden().items()})
    done = subprocess.run([sys.executable, "-c", ASK], input=asked, capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def expected():
    found = {}
    for module, names in golden().items():
        whole = "torch" if module == "." else f"torch.{module}"
        for name, (home, inside) in names.items():
            found[name if module == "." else f"{module}.{name}"] = home or whole, inside or name
    return found


def listed(table):
    return {name for names in table.values() for name in names.split()}


def test_modules_are_pytorchs(answers, expected):
    assert len(answers) > 2600
    wrong = {name for name, (module, _, _) in answers.items() if module != expected[name][0]}
    assert sorted(wrong - listed(KNOWN)) == []
    assert sorted((listed(KNOWN) & answers.keys()) - wrong) == [], "these agree by now"


def test_functions_names_are_pytorchs(answers, expected):
    wrong = set()
    for name, (module, inside, _) in answers.items():
        theirs = expected[name][1]
        if inside is not None and module == expected[name][0] and theirs.isidentifier() and inside != theirs:
            wrong.add(name)
    assert sorted(wrong - listed(KNOWN_QUALNAMES)) == []


def test_all_are_pickled_by_pytorchs_names(answers):
    wrong = {name: pickled for name, (_, _, pickled) in answers.items() if pickled is not True}
    assert [item for item in wrong.items() if not item[0].startswith(tuple(NOT_PICKLED))] == []


def test_the_table_is_up_to_date():
    done = subprocess.run([sys.executable, "scripts/homes.py"], capture_output=True, text=True, cwd=ROOT, env=environment())
    assert done.returncode == 0, done.stderr


BACK = """
import sys, types
import gradiron.nn, gradiron.optim, gradiron.linalg, gradiron.masked, gradiron.distributions, gradiron.jit

def names():
    for module in [m for name, m in list(sys.modules.items()) if name.partition(".")[0] == "gradiron"]:
        yield module, module.__name__
        for value in list(vars(module).values()):
            if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
                yield value, value.__module__, value.__qualname__
                for inner in vars(value).values() if isinstance(value, type) else ():
                    if isinstance(inner, types.FunctionType):
                        yield inner, inner.__module__, inner.__qualname__

before = list(names())
with T.as_torch():
    assert T.nn.Linear.forward.__module__ == "torch.nn.modules.linear" == T.nn.modules.linear.__name__
    assert T.special.erfcx.__module__ == "torch._C._special" and T.vmap.__module__ == "torch.func"
    import torch.masked._ops, torch.fft
    assert torch.masked._ops.sum is torch.masked.sum and torch.masked.sum.__module__ == "torch.masked._ops"
after = {id(item[0]): item[1:] for item in names()}
assert [item for item in before if after[id(item[0])] != item[1:]] == []
assert T.fft.fftfreq.__module__ == "gradiron.fft" and T.vmap.__module__ == "gradiron.func._vmap"
assert "_ops" not in vars(T.masked) and not [name for name in sys.modules if name.partition(".")[0] == "torch"]
with T.as_torch():
    assert T.vmap.__module__ == "torch.func" and T.nn.Linear.__module__ == "torch.nn.modules.linear"
"""


def test_all_names_come_back():
    python_ok(BACK)


# A user's program: what libraries ask of classes, and what the standard library makes of the answers.
PROGRAM = """
import copy, inspect, multiprocessing, pickle, sys, traceback, typing
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(2, 3), nn.ReLU())

    def forward(self, x):
        return self.inner(x)

def child(queue, layer, kind):
    queue.put((type(layer).__module__, kind is torch.Tensor, repr(kind), type(torch.ones(1)).__module__))

def main():
    x = torch.ones(2)
    for thing in (x, x.dtype, x.device, x.shape, torch.Generator(), nn.Linear(1, 1), torch.optim.SGD([x], 0.1)):
        assert type(thing).__module__.split(".")[0] == "torch", type(thing)
    assert [str(kind) for kind in (type(x), type(x.dtype), nn.Linear, nn.Parameter, torch.autograd.Function)] == [
        "<class 'torch.Tensor'>", "<class 'torch.dtype'>", "<class 'torch.nn.modules.linear.Linear'>",
        "<class 'torch.nn.parameter.Parameter'>", "<class 'torch.autograd.function.Function'>",
    ]
    for kind in (nn.Linear, torch.no_grad, torch.optim.SGD, torch.nn.functional.relu, torch.manual_seed):
        assert vars(inspect.getmodule(kind))[kind.__name__] is kind and inspect.getsource(kind)
        assert kind.__module__ in sys.modules
    assert typing.get_type_hints(nn.Linear.forward) == {"input": torch.Tensor, "return": torch.Tensor}
    net = Net()
    other = copy.deepcopy(net)
    assert type(other.inner[0]) is nn.Linear and torch.equal(other(x), net(x))
    data = pickle.dumps(net)
    assert b"gradiron" not in data and b"torch.nn.modules.linear" in data and torch.equal(pickle.loads(data)(x), net(x))
    torch.save(net, "net.pt")
    assert torch.equal(torch.load("net.pt", weights_only=False)(x), net(x))
    try:
        torch.load("net.pt")
    except pickle.UnpicklingError as error:
        assert "__main__.Net" in str(error)
    else:
        raise AssertionError
    kinds = [Net, nn.Sequential, nn.Linear, nn.ReLU, set]
    with torch.serialization.safe_globals(kinds):
        assert torch.equal(torch.load("net.pt", weights_only=True)(x), net(x))
    torch.save(net.state_dict(), "state.pt")
    assert torch.load("state.pt", weights_only=True).keys() == net.state_dict().keys()
    try:
        torch.load("nothing.pt")
    except FileNotFoundError:
        pass
    try:
        raise torch.OutOfMemoryError("too much")
    except RuntimeError as error:
        assert traceback.format_exception_only(error) == ["torch.OutOfMemoryError: too much\\n"]
    try:
        torch.linalg.inv(torch.zeros(2, 2))
    except torch.linalg.LinAlgError as error:
        assert traceback.format_exception_only(error)[0].startswith("torch._C._LinAlgError: ")
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue, net.inner[0], torch.Tensor))
    process.start()
    assert queue.get(timeout=60) == ("torch.nn.modules.linear", True, "<class 'torch.Tensor'>", "torch")
    process.join()
    assert process.exitcode == 0

    class Local(nn.Linear):
        pass

    assert Local.__module__ == "__main__" and Local.forward.__module__ == "torch.nn.modules.linear"
    print("done")

if __name__ == "__main__":
    main()
"""


def launch(*arguments, cwd):
    command = [sys.executable, "-m", "gradiron", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd, env=environment())


def test_a_program_that_asks(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = launch("program.py", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_saved_files_are_the_same_by_both_names(tmp_path):
    save = """
import sys
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Conv1d(1, 1, 1), torch.nn.TransformerEncoderLayer(4, 2, 4))
torch.save([net, torch.float32, torch.Size([1]), torch.device("cpu"), torch.nn.functional.relu, torch.strided], "NAME")
"""
    for name, line in (("plain", "import gradiron as torch"), ("launched", "import torch")):
        code = line + save.replace("NAME", f"{name}.pt")
        command = [sys.executable, *([] if name == "plain" else ["-m", "gradiron"]), "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment())
        assert (done.returncode, done.stderr) == (0, ""), name
    names = [pickled_names(tmp_path / f"{name}.pt") for name in ("plain", "launched")]
    assert names[0] == names[1] and "torch.nn.modules.linear Linear" in names[0]
    for name in ("plain", "launched"):
        net, dtype, *_ = T.load(tmp_path / f"{name}.pt", weights_only=False)
        assert type(net[0]) is T.nn.Linear and dtype is T.float32


def pickled_names(path):
    import pickletools
    import zipfile

    with zipfile.ZipFile(path) as archive:
        data = archive.read(next(name for name in archive.namelist() if name.endswith("data.pkl")))
    return [argument for code, argument, _ in pickletools.genops(data) if code.name == "GLOBAL"]


def test_pickles_of_either_name_load(tmp_path):
    make = "net = torch.nn.Linear(2, 3)\npickle.dump([net, torch.nn.Linear, torch.nn.functional.gelu, torch.add, torch.int8], "
    make += "open('NAME', 'wb'))"
    code = f"import pickle, gradiron as torch\n{make.replace('NAME', 'plain')}"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment())
    # Names of PyTorch's and of gradiron's, in the launched program.
    code = f"import pickle, torch\n{make.replace('NAME', 'launched')}\n" + (
        "for name in ('plain', 'launched'):\n"
        "    net, *rest = pickle.load(open(name, 'rb'))\n"
        "    assert type(net) is torch.nn.Linear\n"
        "    assert rest == [torch.nn.Linear, torch.nn.functional.gelu, torch.add, torch.int8], name\n"
    )
    done = launch("-c", code, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert b"gradiron" in (tmp_path / "plain").read_bytes() and b"gradiron" not in (tmp_path / "launched").read_bytes()
    # A plain program gives `torch` a meaning first.
    with T.as_torch():
        net, *rest = pickle.loads((tmp_path / "launched").read_bytes())
    assert type(net) is T.nn.Linear and rest == [T.nn.Linear, T.nn.functional.gelu, T.add, T.int8]
