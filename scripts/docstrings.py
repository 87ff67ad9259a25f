"""Checks the docstrings of the public classes and functions: `docstrings.py [NAMESPACE ...]`.

A docstring opens with one sentence. `Args:` names every parameter, with `Default:` where it has one, and `Examples:` shows
lines that doctest runs (with `torch`, `nn` and `F` imported). Without arguments, all namespaces of `COMPLETE` are checked.
"""

import contextlib
import doctest
import enum
import importlib
import inspect
import io
import re
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any

import gradiron

# The namespaces whose docstrings are complete.
COMPLETE: list[str] = [
    "__config__",
    "accelerator",
    "amp",
    "autograd",
    "autograd.forward_ad",
    "autograd.function",
    "autograd.functional",
    "compiler",
    "cpu",
    "cuda",
    "distributed",
    "distributions",
    "fft",
    "fx",
    "fx.annotate",
    "fx.experimental.const_fold",
    "fx.experimental.optimization",
    "fx.experimental.proxy_tensor",
    "fx.graph",
    "fx.graph_module",
    "fx.immutable_collections",
    "fx.interpreter",
    "fx.node",
    "fx.operator_schemas",
    "fx.passes.dialect.common.cse_pass",
    "fx.passes.infra.pass_base",
    "fx.passes.infra.pass_manager",
    "fx.passes.shape_prop",
    "fx.passes.split_module",
    "fx.passes.utils.fuser_utils",
    "fx.passes.utils.matcher_utils",
    "fx.passes.utils.matcher_with_name_node_map_utils",
    "fx.subgraph_rewriter",
    "fx.tensor_type",
    "func",
    "futures",
    "hub",
    "jit",
    "library",
    "linalg",
    "masked",
    "mps",
    "multiprocessing",
    "nn",
    "nn.attention",
    "nn.attention.bias",
    "nn.attention.flex_attention",
    "nn.functional",
    "nn.grad",
    "nn.init",
    "nn.modules",
    "nn.parallel",
    "nn.parameter",
    "nn.utils",
    "nn.utils.clip_grad",
    "nn.utils.parametrizations",
    "nn.utils.parametrize",
    "nn.utils.prune",
    "nn.utils.rnn",
    "nn.utils.stateless",
    "onnx",
    "ops",
    "optim",
    "optim.lr_scheduler",
    "optim.swa_utils",
    "overrides",
    "quasirandom",
    "signal.windows",
    "sparse",
    "special",
    "testing",
    "torch",
    "types",
    "utils",
    "utils.benchmark",
    "utils.checkpoint",
    "utils.collect_env",
    "utils.data",
    "utils.dlpack",
    "utils.flop_counter",
    "viz",
    "xpu",
]


def public(namespace: str) -> Iterator[tuple[str, Any]]:
    """The classes and functions of a namespace that gradiron itself documents, each once."""
    module = importlib.import_module(f"gradiron.{namespace}" if namespace != "torch" else "gradiron")
    seen = set()
    for name in sorted(getattr(module, "__all__", dir(module))):
        item = getattr(module, name, None)
        is_code = isinstance(item, type | types.FunctionType | types.BuiltinFunctionType)
        home = getattr(item, "__module__", None) or "gradiron"
        if name.startswith("_") or not is_code or not home.startswith("gradiron") or id(item) in seen:
            continue
        seen.add(id(item))
        yield f"{namespace}.{name}", item


def parameters(item: Any) -> dict[str, inspect.Parameter]:
    """What a caller may pass; nothing for exceptions, enumerations and classes that Python code does not construct."""
    if isinstance(item, type) and issubclass(item, BaseException | enum.Enum):
        return {}
    if isinstance(item, type) and isinstance(vars(item).get("__new__"), types.BuiltinFunctionType):
        return {}  # Here inspect would find the signature of a base class.
    try:
        found = inspect.signature(item).parameters
    except (TypeError, ValueError):
        return {}
    return {name: one for name, one in found.items() if name not in ("self", "args", "kwargs") and name[0] != "_"}


def described(text: str) -> dict[str, str]:
    """The entries of the section `Args:`."""
    match = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)+)", text, re.MULTILINE)
    entries: dict[str, str] = {}
    if match:
        for names, rest in re.findall(r"^    ([*\w, ]+)(?: \([^)]*\))?: ((?:.*\n?(?:     .*\n?)*))", match[1], re.MULTILINE):
            entries |= {name.strip().lstrip("*"): rest for name in names.split(",")}
    return entries


def complaints(name: str, item: Any) -> Iterator[str]:
    inherited = isinstance(item, type) and not vars(item).get("__doc__")
    text = None if inherited else inspect.getdoc(item)
    if not text:
        yield "has no docstring"
        return
    entries = described(text)
    for parameter, one in parameters(item).items():
        if parameter not in entries:
            yield f"does not describe {parameter}"
        elif one.default not in (None, inspect.Parameter.empty) and "Default" not in entries[parameter]:
            yield f"does not tell the default of {parameter}"
    if ">>> " not in text:
        yield "has no example"
    yield from failures(name, text)


def failures(name: str, text: str) -> Iterator[str]:
    """What the examples of a docstring print otherwise than written."""
    names = {"torch": gradiron, "nn": gradiron.nn, "F": gradiron.nn.functional}
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    test = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    printed = io.StringIO()
    gradiron.manual_seed(0)
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        result = doctest.DocTestRunner(verbose=False, optionflags=flags).run(test, out=printed.write)
    if result.failed:
        yield "prints something else:\n" + printed.getvalue()


def main() -> None:
    wrong = 0
    for namespace in sys.argv[1:] or COMPLETE:
        checked = list(public(namespace))
        found = [f"{name} {what}" for name, item in checked for what in complaints(name, item)]
        print(f"{namespace}: {len(checked)} docstrings, {len(found)} faults")
        print("".join(f"  {line}\n" for line in found), end="")
        wrong += len(found)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
