"""Writes a graph as the source of a Python function."""

from __future__ import annotations

import enum
import math
import re
import types
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import _core
from .._core import Tensor
from ._compatibility import compatibility
from ._names import Namespace, custom_builtins, library_path, qualified_name, type_repr
from ._tensor_annotations import dtype_abbreviation, tensor_annotation
from ._wrap import wrap
from .node import Node

if TYPE_CHECKING:
    from .graph import CodeGen

# Python's operators by their names in the module `operator`.
reflectable_magic_methods = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "floordiv": "{} // {}",
    "truediv": "{} / {}",
    "div": "{} / {}",
    "mod": "{} % {}",
    "pow": "{} ** {}",
    "lshift": "{} << {}",
    "rshift": "{} >> {}",
    "and_": "{} & {}",
    "or_": "{} | {}",
    "xor": "{} ^ {}",
    "getitem": "{}[{}]",
    "matmul": "{} @ {}",
}
magic_methods = {
    "eq": "{} == {}",
    "ne": "{} != {}",
    "lt": "{} < {}",
    "gt": "{} > {}",
    "le": "{} <= {}",
    "ge": "{} >= {}",
    "pos": "+{}",
    "neg": "-{}",
    "invert": "~{}",
    **reflectable_magic_methods,
}
inplace_methods = {
    **{
        f"i{name}": f"{{}} {sign}= {{}}"
        for name, sign in [
            ("add", "+"),
            ("and", "&"),
            ("floordiv", "//"),
            ("lshift", "<<"),
            ("mod", "%"),
            ("mul", "*"),
            ("matmul", "@"),
            ("or", "|"),
            ("pow", "**"),
            ("rshift", ">>"),
            ("sub", "-"),
            ("truediv", "/"),
            ("xor", "^"),
        ]
    },
    "setitem": "{}[{}] = {}",
}

_STEP = re.compile(r"# COUNTER: (\d+)")
_FRAME = re.compile(r'File "(.+)", line (\d+), in (.+)')
_GENERICS = {list: typing.List, dict: typing.Dict, set: typing.Set, frozenset: typing.FrozenSet, tuple: typing.Tuple}  # noqa: UP006
_COLORS = {
    "red": "\x1b[31m",
    "blue": "\x1b[34m",
    "dim": "\x1b[2m",
    "dim_blue": "\x1b[2m\x1b[34m",
    "dim_green": "\x1b[2m\x1b[32m",
}


def format_target(base: str, target: str) -> str:
    """An attribute's path below `base`; parts that are no names are read by `getattr`."""
    path = base
    for part in target.split("."):
        path = f"{path}.{part}" if part.isidentifier() else f'getattr({path}, "{part}")'
    return path


def frame_summary(stack_trace: str) -> str | None:
    """The innermost place that a stack trace names, in one line."""
    lines = stack_trace.strip().split("\n")
    for number in range(len(lines) - 2, -1, -1):
        found = _FRAME.fullmatch(lines[number].strip())
        if found:
            file, line, name = found.groups()
            return f"File: {file}:{line} in {name}, code: {lines[number + 1].strip()}"
    return None


@compatibility(is_backward_compatible=True)
@dataclass
class PythonCode:
    """Source generated of a graph.

    Args:
        src: the source, which defines the function.
        globals: what its global names stand for.

    Examples:
        >>> code = torch.fx.symbolic_trace(torch.nn.ReLU()).graph.python_code("self")
        >>> sorted(code.globals)[:2]
        ['NoneType', 'device']
    """

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None
    _prologue_start: int = 0


class CodeWriter:
    """Writes one function.

    Args:
        codegen: what gives the function its form.
        nodes: nodes of the graph.
        root_module: what the code calls the module.
        namespace: names in the code.
        verbose: whether shapes and places in the traced program are written as comments.
        include_stride, include_device, colored: what they show, and whether in colors.
        expanded_def: whether each parameter stands on a line of its own.
        additional_meta: entries of `meta` to show.
    """

    def __init__(
        self,
        codegen: CodeGen,
        nodes: Iterable[Node],
        root_module: str,
        namespace: Namespace,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> None:
        self.codegen, self.nodes, self.root_module, self.namespace = codegen, list(nodes), root_module, namespace
        self.verbose, self.colored, self.expanded_def = verbose, colored, expanded_def
        self.include_stride, self.include_device, self.additional_meta = include_stride, include_device, additional_meta or []
        self.globals: dict[str, Any] = {}
        self.body: list[str] = []
        self.parameters: list[str] = []
        self.wrapped: dict[str, None] = {}
        self.return_annotation = ""
        self._summary = ""
        for name, builtin in custom_builtins.items():
            self.add_global(name, builtin.obj)

    def paint(self, color: str, text: str) -> str:
        return f"{_COLORS[color]}{text}\x1b[0m" if self.colored else text

    # Values.

    def add_global(self, hint: str, obj: Any) -> str:
        """The name of an object in the code, which finds it there when the function runs."""
        if obj is not _core.device:
            path = library_path(obj)
            if path is not None and path != "torch":
                return path
        name = self.namespace.create_name(hint, obj)
        if name in self.globals and self.globals[name] is not obj and self.globals[name] != obj:
            raise AssertionError(f"Global name {name} already assigned to different object")
        self.globals[name] = obj
        return name

    def type(self, kind: Any) -> str:
        """A type annotation."""
        if kind == ():
            return "()"
        if isinstance(kind, types.UnionType):
            arguments = ",".join(map(self.type, typing.get_args(kind)))
            return f"{self.add_global(type_repr(typing.Union), typing.Union)}[{arguments}]"
        origin = getattr(kind, "__origin__", None)
        if origin is None:
            return self.add_global(type_repr(kind), kind)
        if not isinstance(kind, types.GenericAlias):
            origin = _GENERICS.get(origin, origin)
        name = self.add_global(type_repr(origin), origin)
        inner = kind.dims if hasattr(kind, "dims") else typing.get_args(kind)
        return f"{name}[{','.join(map(self.type, inner))}]" if inner else name

    def value(self, arg: Any) -> str:
        """An argument."""
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple):
            inner = ", ".join(map(self.value, arg))
            if hasattr(arg, "_fields"):
                return f"{self.add_global(qualified_name(type(arg)), type(arg))}({inner}{',' if len(arg) == 1 else ''})"
            return f"({inner}{',' if len(arg) == 1 else ''})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.value, arg))}]"
        if isinstance(arg, dict):
            return "{" + ", ".join(f"{key!r}: {self.value(item)}" for key, item in arg.items()) + "}"
        if isinstance(arg, slice):
            return f"slice({self.value(arg.start)}, {self.value(arg.stop)}, {self.value(arg.step)})"
        if isinstance(arg, enum.Enum):
            return f"{self.add_global(type(arg).__name__, type(arg))}.{arg.name}"
        if isinstance(arg, complex):
            plain = arg.real and arg.imag and math.isfinite(arg.real) and math.isfinite(arg.imag)
            return self.paint("blue", repr(arg)) if plain else f"complex({self.value(arg.real)}, {self.value(arg.imag)})"
        if isinstance(arg, Tensor):
            return f"torch.Tensor(size={list(arg.size())}, dtype={str(arg.dtype).split('.')[-1]})"
        if not isinstance(arg, type) and callable(arg) and library_path(arg) is not None:
            return self.add_global(qualified_name(arg), arg)
        return self.paint("blue", repr(arg))

    def arguments(self, args: Iterable[Any], kwargs: dict[str, Any]) -> str:
        return ", ".join([*map(self.value, args), *(f"{key} = {self.value(item)}" for key, item in kwargs.items())])

    # Steps.

    def annotation(self, node: Node) -> str:
        kind = "" if node.type is None else f" : {self.type(node.type)}"
        if not self.verbose:
            return kind
        value: Any = node.meta.get("val", node.meta.get("tensor_meta", node.meta.get("example_value")))
        if isinstance(value, Tensor):
            core = tensor_annotation(value, self.include_stride, self.include_device, self.paint)
            return f': "{core}"' if type(value) is Tensor else f': "{type(value).__name__}({core})"'
        if isinstance(value, tuple) and hasattr(value, "shape") and hasattr(value, "dtype"):  # a TensorMetadata
            return f': "{dtype_abbreviation(value.dtype)}{list(value.shape)}"'
        return kind

    def comment(self, node: Node) -> None:
        """Before a step, the place in the traced program that it comes from, unless the last step has just named it."""
        if node.op in ("placeholder", "output"):
            return
        place = frame_summary(node.stack_trace) if node.stack_trace else None
        known = [f"{key}: {node.meta[key]}" for key in self.additional_meta if key in node.meta]
        shown = f"# {', '.join(known)} " if known else ""
        custom = {
            key: f"{str(item)[:40]}..." if len(str(item)) > 40 else item
            for key, item in (node.meta.get("custom") or {}).items()
        }
        marks = f" Annotation: {custom}" if custom else ""
        summary = self.paint("dim", f"{shown}#{marks} {place or 'No stacktrace found for following nodes'}")
        if summary != self._summary:
            self._summary = summary
            self.body.append(f"\n{summary}\n")

    def placeholder(self, node: Node) -> str:
        target = str(node.target)
        default = f" = {self.value(node.args[0])}" if node.args else ""
        described = f"  # {node.meta['desc']}" if self.expanded_def and node.meta.get("desc") is not None else ""
        self.parameters.append(f"{target}{self.annotation(node)}{default}{described}")
        name = target.replace("*", "")
        return "" if name == repr(node) else f"{node!r} = {name}\n"

    def call_function(self, node: Node) -> str:
        target: Any = node.target
        made = f"{node!r}{self.annotation(node)}"
        if getattr(target, "__module__", "") == "_operator":
            if target.__name__ in magic_methods:
                return f"{made} = {magic_methods[target.__name__].format(*map(self.value, node.args))}"
            if target.__name__ in inplace_methods:
                change = inplace_methods[target.__name__].format(*map(self.value, node.args))
                return f"{change};  {made} = {self.value(node.args[0])}"
        name = self.add_global(qualified_name(target), target)
        if name == "getattr" and len(node.args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():
            return f"{made} = {format_target(self.value(node.args[0]), node.args[1])}"
        if node.meta.get("is_wrapped", False):
            self.wrapped.setdefault(name)
        return f"{made} = {name}({self.arguments(node.args, node.kwargs)})"

    def output(self, node: Node) -> str:
        if node.type is not None:
            self.return_annotation = f" -> {self.type(node.type)}"
        options = {"descs": node.meta.get("desc") if self.expanded_def else None, "repr_fn": self.value}
        return str(self.codegen._call(self.codegen.generate_output, node.args[0], **options))

    def step(self, node: Node) -> str:
        """The line of one node."""
        made = f"{node!r}"
        match node.op:
            case "placeholder":
                return self.placeholder(node)
            case "call_function":
                return self.call_function(node)
            case "call_method":
                method = format_target(self.value(node.args[0]), str(node.target))
                return f"{made}{self.annotation(node)} = {method}({self.arguments(node.args[1:], node.kwargs)})"
            case "call_module":
                module = format_target(self.root_module, str(node.target))
                return f"{made}{self.annotation(node)} = {module}({self.arguments(node.args, node.kwargs)})"
            case "get_attr":
                return f"{made}{self.annotation(node)} = {format_target(self.root_module, str(node.target))}"
            case "output":
                return self.output(node)
        raise NotImplementedError(f"node: {node.op} {node.target}")

    def ended(self) -> dict[Node, list[Node]]:
        """The values that no node needs after each node: the code lets go of them there."""
        last: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for user in reversed(self.nodes):
            for used in user._input_nodes:
                if used not in seen:
                    seen.add(used)
                    last.setdefault(user, []).append(used)
        return last

    def write(self) -> PythonCode:
        """Write the function."""
        ended = self.ended()
        for number, node in enumerate(self.nodes):
            if self.verbose:
                self.comment(node)
            self.body.append(f"# COUNTER: {number}\n")
            self.body.append(self.step(node))
            if node.op == "placeholder":
                continue
            gone = [] if node.op == "output" else ended.get(node, []) + ([] if node.users else [node])
            self.body.append(f";  {self.paint('dim', ' = '.join([*map(repr, gone), 'None']))}\n" if gone else "\n")
        if not self.body:
            self.body.append("pass\n")
        wraps = ""
        if self.wrapped:
            mark = self.add_global("wrap", wrap)
            wraps = "\n".join(f'{mark}("{name}")' for name in self.wrapped)
        body = self.codegen._body_transformer(self.body) if self.codegen._body_transformer else self.body
        for name, value in self.codegen.additional_globals():
            self.add_global(name, value)
        options = {"expanded_def": self.expanded_def}
        head = self.codegen._call(self.codegen.gen_fn_def, self.parameters, self.return_annotation, **options)
        lines, steps = _numbered("".join(body), head.count("\n") + 1)
        code = "\n".join("    " + line for line in "\n".join(lines).lstrip("\n").split("\n"))
        return PythonCode(f"\n{wraps}\n\n{head}\n{code}", self.globals, steps, wraps.count("\n") + 4)


def _numbered(body: str, head: int) -> tuple[list[str], dict[int, int | None]]:
    """The lines of a body without the counters, and the node that each line, below a head of some lines, belongs to."""
    lines: list[str] = []
    steps: dict[int, int | None] = {}
    current = None
    for line in body.split("\n"):
        found = _STEP.search(line)
        if found:
            current = int(found.group(1))
        else:
            steps[len(lines) + head] = current
            lines.append(line)
    return lines, steps
