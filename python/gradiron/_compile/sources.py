"""Sources of functions: from a code object to its syntax tree, checked to be what runs."""

from __future__ import annotations
import __future__

import ast
import copy
import linecache
import re
import types
import warnings
from collections.abc import Iterator
from typing import Any

from .reasons import Unrewritable

__all__ = ["compiled", "forget_sources", "same_code", "tree_of"]

Function = ast.FunctionDef | ast.Lambda
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

_FUTURES = 0
for _feature in __future__.all_feature_names:
    _FUTURES |= getattr(__future__, _feature).compiler_flag
_OUTER = "outer.<locals>."
_NESTED = 0x10  # a function inside of another, which says nothing about what it does

_files: dict[str, _File] = {}


class _File:
    """What was read of a file.

    Attributes:
        functions: syntax trees of functions by their first lines, each with the class whose private names it mangles.
        imported: the names that the module imports: the compiler treats their attributes otherwise.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.functions: dict[int, list[tuple[Any, str | None]]] = {}
        self.imported: set[str] = set()
        stack: list[tuple[Any, str | None, bool]] = [(tree, None, True)]
        while stack:
            node, owner, outside = stack.pop()
            if isinstance(node, _FUNCTIONS):
                decorators = getattr(node, "decorator_list", ())
                first = min([node.lineno, *(mark.lineno for mark in decorators)])
                self.functions.setdefault(first, []).append((node, owner))
                outside = False
            elif isinstance(node, ast.ClassDef):
                owner, outside = node.name, False
            elif isinstance(node, (ast.Import, ast.ImportFrom)) and outside:
                self.imported.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
            stack.extend((child, owner, outside) for child in ast.iter_child_nodes(node))


def forget_sources() -> None:
    """Free the syntax trees of all files."""
    _files.clear()


def _lines(file: str, module: dict[str, Any]) -> list[str]:
    linecache.checkcache(file)
    lines = linecache.getlines(file, module)
    if not lines:
        raise Unrewritable("it has no source")
    return lines


def _parsed(text: str, file: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, file)


def _read(file: str, module: dict[str, Any]) -> _File:
    found = _files.get(file)
    if found is not None:
        return found
    try:
        tree = _parsed("".join(_lines(file, module)), file)
    except SyntaxError:
        raise Unrewritable("its source does not parse") from None
    found = _files[file] = _File(tree)
    return found


def tree_of(code: types.CodeType, module: dict[str, Any]) -> tuple[Function, str | None]:
    """Return a copy of the syntax tree of a code object, and the class whose private names it mangles.

    Decorators, defaults and annotations are left out: they are not part of the code.

    Args:
        code: the code object.
        module: the globals of its function.

    Raises:
        Unrewritable: if there is no source, or if another one runs than what the file holds now.
    """
    return _from_block(code, module) or _from_file(code, module)


def _from_file(code: types.CodeType, module: dict[str, Any]) -> tuple[Function, str | None]:
    """Do what `tree_of` does by parsing the whole file."""
    file = _read(code.co_filename, module)
    for node, owner in file.functions.get(code.co_firstlineno, ()):
        if isinstance(node, ast.AsyncFunctionDef):
            if node.name == code.co_name:
                raise Unrewritable("it is async")
            continue
        if code.co_name != ("<lambda>" if isinstance(node, ast.Lambda) else node.name):
            continue
        for part in ast.walk(node):
            if isinstance(part, ast.ClassDef):
                raise Unrewritable(f"it defines a class, {part.name}")
        found = _ready(copy.deepcopy(node), owner)
        if same_code(compiled(found, code, file.imported), code):
            return found, owner
    raise Unrewritable("its source is not what runs")


def _ready(node: Any, owner: str | None) -> Any:
    found = _bare(node)
    if owner is not None:
        _Mangled(owner).visit(found)
    return found


def _from_block(code: types.CodeType, module: dict[str, Any]) -> tuple[Function, str | None] | None:
    """Return what `tree_of` does by parsing the function's own lines only; `None` if that does not give the code that runs."""
    if not hasattr(code, "co_qualname") or code.co_name == "<lambda>":
        return None
    lines = _lines(code.co_filename, module)
    first = code.co_firstlineno - 1
    if first >= len(lines):
        return None
    indent = len(lines[first]) - len(lines[first].lstrip())
    # A function of a docstring alone has no code in its own lines.
    end = max(_last_line(code), next((at for at in range(first, len(lines)) if lines[at].lstrip().startswith("def ")), 0) + 1)
    while end < len(lines):
        text = lines[end]
        if text.strip() and not text.lstrip().startswith("#") and len(text) - len(text.lstrip()) <= indent:
            break
        end += 1
    block, owner = "".join(lines[first:end]), _class_of(code.co_qualname)
    try:
        found = _compiled_block(block, lines[first][:indent], owner, code, _imported(code.co_filename, lines))
        if found is None or not same_code(found, code):
            return None
        # Empty lines before it give its nodes their numbers.
        tree = _parsed(("\n" * (first - 1) + "if 1:\n" if indent else "\n" * first) + block, code.co_filename)
        node: Any = tree.body[0].body[0] if indent else tree.body[0]  # type: ignore[attr-defined]
    except (SyntaxError, IndexError):
        return None
    if not isinstance(node, ast.FunctionDef):
        return None
    return _ready(node, owner if _PRIVATE.search(block) else None), owner


_PRIVATE = re.compile(r"\b__(?!\w*__\b)\w")


def _compiled_block(
    block: str, lead: str, owner: str | None, code: types.CodeType, imported: set[str]
) -> types.CodeType | None:
    """Compile the lines of a function as `compiled` does a syntax tree.

    Args:
        block: the lines.
        lead: what they begin with.
        owner: the class that the function is in.
        code: the code object.
        imported: the names that its module imports.
    """
    free = [name for name in code.co_freevars if name != "__class__"]
    used = sorted(imported.intersection(_names(code)))
    parts, inside = [f"import {', '.join(used)}\n" if used else ""], [code.co_name]
    if owner is not None:
        inside.insert(0, owner)
    if free or (lead and owner is None):
        # Only what is indented can stand in a function, and deeper in a class of that.
        if len(lead) < len(inside):
            return None
        first = lead[:1] if owner is not None else lead
        inside.insert(0, "around")
        parts.append("def around():\n")
        parts.append(f"{first}{' = '.join(free)} = None\n" if free else "")
        parts.append(f"{first}global {code.co_name}\n" if owner is None and code.co_name not in free else "")
        parts.append(f"{first}class {owner}:\n" if owner is not None else "")
    elif owner is not None:
        parts.append(f"class {owner}:\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flags = code.co_flags & _FUTURES
        found = compile("".join([*parts, block]), code.co_filename, "exec", flags, dont_inherit=True)
    for name in inside:
        codes = [const for const in found.co_consts if isinstance(const, types.CodeType) and const.co_name == name]
        if not codes:
            return None
        found = codes[-1]
    return found


def _last_line(code: types.CodeType) -> int:
    last = max((line for _, _, line in code.co_lines() if line is not None), default=code.co_firstlineno)
    return max([last, *(_last_line(const) for const in code.co_consts if isinstance(const, types.CodeType))])


def _class_of(name: str) -> str | None:
    """Return the innermost class in a qualified name, without the last part."""
    parts = name.split(".")
    for at in range(len(parts) - 2, -1, -1):
        if parts[at] != "<locals>" and parts[at + 1] != "<locals>":
            return parts[at]
    return None


_imports: dict[str, set[str]] = {}
_IMPORT = re.compile(r"(?:from\s+[\w.]+\s+)?import\s+(\([^)]*\)|[^\n(]*(?:\\\n[^\n]*)*)", re.MULTILINE)


def _imported(file: str, lines: list[str]) -> set[str]:
    """Return names that a module seems to import: where that is wrong, the code differs."""
    found = _imports.get(file)
    if found is None:
        found = _imports[file] = set()
        for match in _IMPORT.finditer("".join(line for line in _import_lines(lines))):
            for part in match[1].strip("()").replace("\\\n", " ").split(","):
                words = part.partition("#")[0].split()
                if words:
                    found.add(words[-1].partition(".")[0] if len(words) == 1 else words[-1])
    return found


def _import_lines(lines: list[str]) -> Iterator[str]:
    inside = False
    for line in lines:
        if inside or line.startswith(("import ", "from ")):
            yield line.partition("#")[0].rstrip() + "\n"
            inside = ("(" in line or inside) and ")" not in line


def _bare(node: Any) -> Any:
    args = node.args
    for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
        if arg is not None:
            arg.annotation = None
    args.defaults = []
    args.kw_defaults = [None] * len(args.kwonlyargs)
    if isinstance(node, ast.FunctionDef):
        if getattr(node, "type_params", None):
            raise Unrewritable("it has type parameters")
        node.decorator_list = []
        node.returns = None
    return node


class _Mangled(ast.NodeTransformer):
    """Writes out the private names of a class."""

    def __init__(self, owner: str) -> None:
        self.prefix = owner.lstrip("_")

    def name(self, name: Any) -> Any:
        if not isinstance(name, str) or not name.startswith("__") or name.endswith("__") or "." in name or not self.prefix:
            return name
        return f"_{self.prefix}{name}"

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        raise Unrewritable(f"it defines a class, {node.name}")

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field in ("id", "attr", "arg", "name", "asname", "rest"):
            if isinstance(getattr(node, field, None), str) and not (field == "name" and isinstance(node, ast.alias)):
                setattr(node, field, self.name(getattr(node, field)))
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            node.names = [self.name(name) for name in node.names]
        if isinstance(node, ast.alias) and node.asname is None:
            mangled = self.name(node.name)
            node.asname = None if mangled == node.name else mangled
        return super().generic_visit(node)


def _names(code: types.CodeType) -> set[str]:
    """Return the names that a function uses, local ones too: one that the module imports is compiled otherwise even then."""
    found = {*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars}
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            found |= _names(const)
    return found


def compiled(node: Any, code: types.CodeType, imported: set[str]) -> types.CodeType:
    """Compile a function's syntax tree with the free names, file and features of a code object.

    Args:
        node: the syntax tree.
        code: the code object.
        imported: the names that its module imports.
    """
    line = code.co_firstlineno
    place = {"lineno": line, "col_offset": 0, "end_lineno": line, "end_col_offset": 0}
    made = node if isinstance(node, ast.FunctionDef) else ast.Expr(node)
    names: list[ast.expr] = [ast.Name(name, ast.Store()) for name in code.co_freevars]
    body: list[Any] = [ast.Assign(names, ast.Constant(None))] if names else []
    outer: Any = ast.parse("def outer(): pass").body[0]
    # A function that calls itself by a global name must not find it in here.
    own = isinstance(node, ast.FunctionDef) and node.name not in code.co_freevars
    body = [ast.Global([node.name]), *body] if own else body
    outer.body = [*body, made]
    for top in (outer, outer.args, *body, *names, *(getattr(part, "value", part) for part in body), made):
        for key, value in place.items():
            if "lineno" in top._attributes and (top is not node):
                setattr(top, key, value)
    used = sorted(imported.intersection(_names(code)))
    imports = [ast.Import([ast.alias(name, None)]) for name in used]
    tree = ast.Module([*map(ast.fix_missing_locations, imports), outer], [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = compile(tree, code.co_filename, "exec", code.co_flags & _FUTURES, dont_inherit=True)
    outside = next(const for const in whole.co_consts if isinstance(const, types.CodeType))
    return next(const for const in outside.co_consts if isinstance(const, types.CodeType))


def same_code(code: types.CodeType, other: types.CodeType) -> bool:
    """Return whether two code objects do the same."""
    same = (
        code.co_code == other.co_code
        and code.co_names == other.co_names
        and code.co_varnames == other.co_varnames
        and code.co_freevars == other.co_freevars
        and code.co_cellvars == other.co_cellvars
        and code.co_argcount == other.co_argcount
        and code.co_posonlyargcount == other.co_posonlyargcount
        and code.co_kwonlyargcount == other.co_kwonlyargcount
        and code.co_flags | _NESTED == other.co_flags | _NESTED
        and len(code.co_consts) == len(other.co_consts)
    )
    return same and all(map(_same_constant, code.co_consts, other.co_consts))


def _same_constant(a: Any, b: Any) -> bool:
    if isinstance(a, types.CodeType):
        return isinstance(b, types.CodeType) and same_code(a, b)
    if isinstance(a, str) and isinstance(b, str) and ".<locals>." in a:
        # The qualified name of a function inside, before Python 3.11: here it is in no class.
        name = a.removeprefix(_OUTER)
        return b == name or b.endswith(f".{name}")
    return type(a) is type(b) and (a == b if isinstance(a, frozenset) else repr(a) == repr(b))
