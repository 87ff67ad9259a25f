"""The order of the Python package: as `tests/layers.rs` for the extension, read from the `import` statements of the source."""

import ast
from pathlib import Path

import pytest

from library import NAME

PACKAGE = Path(__file__).parents[2] / "python" / "gradiron"

pytestmark = pytest.mark.skipif(NAME == "torch" or not PACKAGE.exists(), reason="reads the source")

# The rooms of the package, lowest first: when a module is loaded, it imports from its own room and from lower ones. A module
# belongs to the longest name here that its own begins with.
ORDER = """
    __future__ _core _as_torch torch_version version testing viz ops functional futures backends
    _types _limits _tensor_str _pickling.state utils.hooks utils.serialization autograd random overrides __main__
    _creation _tensor _parameter _foreach _functions _lobpcg _lowrank linalg fft special types return_types __config__
    amp library masked profiler quasirandom signal cpu _streams cuda mps accelerator
    _storage storage _pickling multiprocessing serialization _utils sparse hub utils
    func nn _higher_order_ops optim distributions fx
    _compile compiler onnx _dynamo
    distributed nn.parallel nn.modules._sync_batchnorm
    _stand_ins _C
""".split()

# Imports inside functions postpone a cost, but they also hide a circle. Their number only falls.
INSIDE = 74
LARGEST_CIRCLE = 5


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {module_name(path): path for path in PACKAGE.rglob("*.py")} if PACKAGE.exists() else {}
MODULES = {*SOURCES, "gradiron._core"}


def targets(module, node):
    """The modules of the package that an `import` statement loads or reads from."""
    if isinstance(node, ast.Import):
        named = [alias.name for alias in node.names]
    else:
        package = module if SOURCES[module].name == "__init__.py" else module.rpartition(".")[0]
        above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
        source = ".".join([*above, *([node.module] if node.module else [])])
        named = [f"{source}.{alias.name}" if f"{source}.{alias.name}" in MODULES else source for alias in node.names]
    return {name for name in named if name in MODULES} - {module}


def imports(module):
    """The modules that are imported when a module is loaded, and the number of imports of ours inside its functions."""
    loaded, inside = set(), 0

    def visit(node, in_function):
        nonlocal inside
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.Import, ast.ImportFrom)):
                found = targets(module, child)
                if in_function:
                    inside += bool(found)
                else:
                    loaded.update(found)
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            else:
                visit(child, in_function or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)))

    visit(ast.parse(SOURCES[module].read_text("utf-8")), False)
    # What the package itself holds is asked for when a function runs.
    return loaded - {"gradiron"}, inside


GRAPH = {module: imports(module) for module in SOURCES}


def circles(graph):
    """Sets of modules that reach one another (by Tarjan's algorithm), largest first."""
    number, lowest, stack, found = {}, {}, [], []

    def visit(module):
        number[module] = lowest[module] = len(number)
        stack.append(module)
        for other in graph.get(module, ()):
            if other not in number:
                visit(other)
            if other in stack:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == number[module]:
            at = stack.index(module)
            found.append(stack[at:])
            del stack[at:]

    for module in graph:
        if module not in number:
            visit(module)
    return sorted(found, key=len, reverse=True)


def room(module):
    """The longest name in the order that a module's begins with, or its first part."""
    parts = module.split(".")[1:]
    names = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((name for name in names if name in ORDER), "".join(parts[:1]))


def test_no_import_runs_against_the_order_of_the_rooms():
    level = {name: number for number, name in enumerate(ORDER)}
    rooms = {room(module) for module in MODULES} - {""}
    assert rooms == set(level), f"without a place: {sorted(rooms - set(level))}; gone: {sorted(set(level) - rooms)}"
    against = [
        f"{module} imports {other}"
        for module, (loaded, _) in GRAPH.items()
        if module != "gradiron"
        for other in loaded
        if level[room(other)] > level[room(module)]
    ]
    assert not against, "\n".join(against)


def test_files_import_one_another_in_no_large_circle():
    largest = circles({module: loaded for module, (loaded, _) in GRAPH.items()})[0]
    assert len(largest) <= LARGEST_CIRCLE, sorted(largest)


def test_imports_inside_functions_become_fewer():
    assert sum(inside for _, inside in GRAPH.values()) <= INSIDE


def test_the_reader_reads():
    assert circles({"a": {"b"}, "b": {"a", "c"}, "c": set()})[0] == ["a", "b"]
    assert targets("gradiron.nn.init", ast.parse("from .. import _core").body[0]) == {"gradiron._core"}
    assert targets("gradiron.nn.init", ast.parse("from ..autograd.grad_mode import no_grad").body[0]) == {
        "gradiron.autograd.grad_mode"
    }
    assert targets("gradiron.nn", ast.parse("from . import functional").body[0]) == {"gradiron.nn.functional"}
