"""Functions rewritten, once each, so that what they read, store and call goes through the run time.

`a.b` becomes `u.attr(a, "b")`, `f(x)` becomes `u.call(f, x)`, and so on; `u`, a `Unit`, is a constant of the new code. Names,
lines and evaluation order stay, so that a traceback reads as before.
"""

from __future__ import annotations

import ast
import types
from typing import Any

from .reasons import Unrewritable
from .sources import compiled, tree_of

__all__ = ["rewrite"]

# Stands for the unit in a syntax tree, whose constants must be plain.
_UNIT = "\0gradiron unit"

_BINARY = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip
_COMPARE = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_UNARY = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}
_SINGLETONS = (None, True, False, ...)
_OF_FRAMES = ("vars", "dir", "eval", "exec", "globals", "breakpoint")


def _placed(node: Any, at: Any) -> Any:
    """Give a node the place of another, more quickly than `ast.copy_location`."""
    node.lineno, node.col_offset, node.end_lineno, node.end_col_offset = (
        at.lineno,
        at.col_offset,
        at.end_lineno,
        at.end_col_offset,
    )
    return node


def rewrite(code: types.CodeType, module: dict[str, Any], unit: Any) -> tuple[types.CodeType, frozenset[str]]:
    """Return the rewritten code of a function, and the global names that it stores.

    Args:
        code: the function's code.
        module: the function's globals.
        unit: the object whose methods the new code calls.

    Raises:
        Unrewritable: if the function does something that is not understood.
    """
    node, _ = tree_of(code, module)
    rewriter = _Rewriter(code.co_freevars)
    made = rewriter.unit(node)
    try:
        new = compiled(made, code, set())
    except (SyntaxError, TypeError, ValueError, RecursionError) as error:
        raise Unrewritable(f"its rewritten form does not compile: {error}") from None
    prefix = getattr(new, "co_qualname", None)
    name = getattr(code, "co_qualname", None)
    new = _finished(new, unit, (prefix, name) if prefix and name else ("outer.<locals>." + code.co_name, code.co_name))
    return new, frozenset(rewriter.stored_globals)


def _finished(code: types.CodeType, unit: Any, names: tuple[str, str]) -> types.CodeType:
    """Put the unit in its place, and give nested functions their qualified names."""
    consts = []
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            const = _finished(const, unit, names)
        elif const == _UNIT and isinstance(const, str):
            const = unit
        elif isinstance(const, str) and const.startswith(names[0] + ".<locals>"):
            const = names[1] + const[len(names[0]) :]
        consts.append(const)
    changes: dict[str, Any] = {"co_consts": tuple(consts)}
    own = getattr(code, "co_qualname", "")
    if own.startswith(names[0]):
        changes["co_qualname"] = names[1] + own[len(names[0]) :]
    return code.replace(**changes)


class _Scope:
    """The names of a function, a lambda or a comprehension."""

    def __init__(self, bound: set[str], declared: set[str], first: str | None = None) -> None:
        self.bound = bound
        self.declared = declared
        self.first = first


class _Bindings(ast.NodeVisitor):
    """The names that a function binds, and those that it declares global or nonlocal."""

    def __init__(self) -> None:
        self.bound: set[str] = set()
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.bound.add(node.id)

    def visit_FunctionDef(self, node: Any) -> None:
        self.bound.add(node.name)
        for part in (*node.decorator_list, *node.args.defaults, *node.args.kw_defaults):
            if part is not None:
                self.visit(part)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        raise Unrewritable(f"it defines a class, {node.name}")

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for part in (*node.args.defaults, *node.args.kw_defaults):
            if part is not None:
                self.visit(part)

    def visit_ListComp(self, node: Any) -> None:
        # Names bound by `:=` belong to the function, those bound by `for` do not.
        for part in ast.walk(node):
            if isinstance(part, ast.NamedExpr):
                self.bound.add(part.target.id)
        self.visit(node.generators[0].iter)

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def visit_Global(self, node: ast.Global) -> None:
        self.globals.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.nonlocals.update(node.names)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.bound.add(node.name)
        self.generic_visit(node)

    def visit_alias(self, node: ast.alias) -> None:
        self.bound.add(node.asname or node.name.partition(".")[0])

    def visit_MatchAs(self, node: Any) -> None:
        if node.name:
            self.bound.add(node.name)
        self.generic_visit(node)


def _parameters(args: ast.arguments) -> list[str]:
    own = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    return [arg.arg for arg in (*own, args.vararg, args.kwarg) if arg is not None]


class _Rewriter(ast.NodeTransformer):
    """Rewrites one function with the functions inside of it."""

    def __init__(self, free: tuple[str, ...]) -> None:
        self.free = {*free, "__class__"}
        self.scopes: list[_Scope] = []
        self.stored_globals: set[str] = set()
        self.temporaries = 0

    # Helpers.

    def run(self, at: ast.AST, method: str, *args: Any) -> ast.Call:
        """Return a call of one of the unit's methods, in the place of a node."""
        unit = ast.Attribute(ast.Constant(_UNIT), method, ast.Load())
        given: list[Any] = [arg if isinstance(arg, ast.AST) else ast.Constant(arg) for arg in args]
        made = ast.Call(unit, given, [])
        for part in (unit.value, unit, *(new for new, arg in zip(given, args, strict=True) if new is not arg)):
            _placed(part, at)
        return _placed(made, at)

    def temporary(self) -> str:
        self.temporaries += 1
        return f".{self.temporaries}"

    def is_global(self, name: str) -> bool:
        for scope in reversed(self.scopes):
            if name in scope.declared:
                return True
            if name in scope.bound:
                return False
        return name not in self.free

    # Functions.

    def unit(self, node: Any) -> Any:
        """Rewrite the function itself."""
        return self.function(node)

    def function(self, node: Any) -> Any:
        """Rewrite the body of a function or a lambda."""
        found = _Bindings()
        body = node.body if isinstance(node.body, list) else [node.body]
        for part in body:
            found.visit(part)
        parameters = _parameters(node.args)
        first = next(iter([*node.args.posonlyargs, *node.args.args]), None)
        declared = found.globals
        self.stored_globals |= declared & found.bound
        bound = (found.bound | set(parameters)) - declared - found.nonlocals
        self.scopes.append(_Scope(bound, declared, first.arg if first is not None else None))
        keywords = node.args.kwarg
        if isinstance(node, ast.Lambda):
            new: Any = self.visit(node.body)
            if keywords is not None:
                new = self.run(node.body, "second", self.run(node.body, "made", self.load(node.body, keywords.arg)), new)
            node.body = new
        else:
            node.body = self.statements(node.body)
            if keywords is not None:
                at = 1 if _is_docstring(node.body[0]) else 0
                call = self.run(node.body[0], "made", self.load(node.body[0], keywords.arg))
                node.body.insert(at, _placed(ast.Expr(call), call))
        self.scopes.pop()
        return node

    def load(self, at: ast.AST, name: str) -> ast.Name:
        return _placed(ast.Name(name, ast.Load()), at)

    def store(self, at: ast.AST, name: str) -> ast.Name:
        return _placed(ast.Name(name, ast.Store()), at)

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for number, part in enumerate(body):
            if number == 0 and _is_docstring(part):
                made.append(part)
                continue
            new = self.visit(part)
            made.extend(new if isinstance(new, list) else [new])
        return made

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        if getattr(node, "type_params", None):
            raise Unrewritable("it has type parameters")
        self.defaults(node.args)
        marks = [self.run(mark, "decorator", self.visit(mark)) for mark in node.decorator_list]
        first = node.decorator_list[0] if node.decorator_list else None
        node.decorator_list = []
        node.returns = None
        for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg):
            if arg is not None:
                arg.annotation = None
        self.function(node)
        made = _placed(ast.Attribute(_placed(ast.Constant(_UNIT), node), "made", ast.Load()), first or node)
        node.decorator_list = [*marks, made]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        self.defaults(node.args)
        return self.run(node, "made", self.function(node))

    def defaults(self, args: ast.arguments) -> None:
        args.defaults = [self.visit(part) for part in args.defaults]
        args.kw_defaults = [None if part is None else self.visit(part) for part in args.kw_defaults]

    def refuse(self, node: Any) -> Any:
        names = {
            "AsyncFunctionDef": "an async function", "AsyncFor": "async for", "AsyncWith": "async with", "Await": "await",
            "ClassDef": "a class", "TryStar": "except*", "TypeAlias": "a type alias", "TemplateStr": "a template string",
        }  # fmt: skip
        raise Unrewritable(f"it has {names[type(node).__name__]} in line {node.lineno}")

    visit_AsyncFunctionDef = visit_AsyncFor = visit_AsyncWith = visit_Await = visit_ClassDef = refuse
    visit_TryStar = visit_TypeAlias = visit_TemplateStr = refuse

    # Names.

    def visit_Name(self, node: ast.Name) -> Any:
        if not isinstance(node.ctx, ast.Load) or not self.is_global(node.id):
            return node
        return self.run(node, "name", node.id)

    def visit_Global(self, node: ast.Global) -> Any:
        return node

    # Reads.

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        return self.run(node, "attr", self.visit(node.value), node.attr)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        return self.run(node, "item", self.visit(node.value), self.visit(node.slice))

    def visit_Slice(self, node: ast.Slice) -> Any:
        parts = [None if part is None else self.visit(part) for part in (node.lower, node.upper, node.step)]
        return self.run(node, "slice", *parts)

    def visit_Starred(self, node: ast.Starred) -> Any:
        if isinstance(node.ctx, ast.Load):
            node.value = self.run(node.value, "iterate", self.visit(node.value))
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        function = node.func
        name = function.id if isinstance(function, ast.Name) and self.is_global(function.id) else None
        plain = not node.args and not node.keywords
        if name == "super" and plain:
            return self.super_call(node)
        if name == "locals" and plain:
            return self.run(node, "locals", self.visit(function), _placed(
                ast.Call(self.load(node, "locals"), [], []), node))  # fmt: skip
        if name in _OF_FRAMES and (plain or name in ("eval", "exec")):
            raise Unrewritable(f"it calls {name}() in line {node.lineno}")
        made = self.run(node, "call", self.visit(function))
        made.args += [self.visit(arg) for arg in node.args]
        for keyword in node.keywords:
            value = self.visit(keyword.value)
            if keyword.arg is None:
                value = self.run(keyword.value, "double_star", value)
            made.keywords.append(_placed(ast.keyword(keyword.arg, value), keyword))
        return made

    def super_call(self, node: ast.Call) -> Any:
        first = next((scope.first for scope in reversed(self.scopes) if scope.first is not None), None)
        if first is None:
            raise Unrewritable("super() without a first argument")
        return self.run(node, "super", self.visit(node.func), self.load(node, "__class__"), self.load(node, first))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                part.value = self.run(part.value, "formatted", self.visit(part.value))
                if part.format_spec is not None:
                    self.visit(part.format_spec)
        return node

    # Operators.

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        if isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant):
            return node
        return self.run(node, "binary", _BINARY[type(node.op)], self.visit(node.left), self.visit(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.operand, ast.Constant):
            return node
        if isinstance(node.op, ast.Not):
            node.operand = self.tested(node.operand)
            return node
        return self.run(node, "unary", _UNARY[type(node.op)], self.visit(node.operand))

    def tested(self, node: ast.expr) -> Any:
        """Rewrite an expression whose truth is tested."""
        new = self.visit(node)
        if isinstance(new, ast.Constant) or (isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not)):
            return new
        return self.run(node, "tested", new)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        node.values = [*map(self.tested, node.values[:-1]), self.visit(node.values[-1])]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        node.test, node.body, node.orelse = self.tested(node.test), self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) == 1:
            return self.compare(node, node.ops[0], self.visit(node.left), self.visit(node.comparators[0]))
        left, parts = self.visit(node.left), []
        for number, (op, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            value = self.visit(right)
            if number + 1 < len(node.ops) and not isinstance(value, ast.Constant):
                name = self.temporary()
                value = _placed(ast.NamedExpr(self.store(right, name), value), right)
                following: Any = self.load(right, name)
            else:
                following = value
            part = self.compare(node, op, left, value)
            parts.append(part if number + 1 == len(node.ops) else self.run(node, "tested", part))
            left = following
        return _placed(ast.BoolOp(ast.And(), parts), node)

    def compare(self, at: ast.AST, op: ast.cmpop, left: Any, right: Any) -> Any:
        if isinstance(op, (ast.Is, ast.IsNot)) and any(
            isinstance(side, ast.Constant) and any(side.value is one for one in _SINGLETONS) for side in (left, right)
        ):
            return _placed(ast.Compare(left, [op], [right]), at)
        return self.run(at, "compare", _COMPARE[type(op)], left, right)

    # What is made.

    def display(self, node: Any) -> Any:
        if isinstance(getattr(node, "ctx", None), ast.Store):
            return self.generic_visit(node)
        return self.run(node, "made", self.generic_visit(node))

    visit_List = visit_Set = display

    def visit_Dict(self, node: ast.Dict) -> Any:
        values = [
            self.run(value, "double_star", self.visit(value)) if key is None else self.visit(value)
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        node.keys, node.values = [None if key is None else self.visit(key) for key in node.keys], values
        return self.run(node, "made", node)

    def comprehension(self, node: Any) -> Any:
        for number, part in enumerate(node.generators):
            if part.is_async:
                raise Unrewritable("it has an async comprehension")
            bound = {name.id for name in ast.walk(part.target) if isinstance(name, ast.Name)}
            if any(isinstance(each, (ast.Attribute, ast.Subscript)) for each in ast.walk(part.target)):
                raise Unrewritable(f"a comprehension stores into an object in line {node.lineno}")
            # The first iterable is evaluated outside.
            source = self.visit(part.iter)
            if number == 0:
                self.scopes.append(_Scope(set(), set()))
            self.scopes[-1].bound |= bound
            whole = isinstance(part.target, ast.Name)
            part.iter = self.run(part.iter, "iterate", source) if whole else self.run(part.iter, "iterate_parts", source)
            part.ifs = [self.tested(test) for test in part.ifs]
        for field in ("elt", "key", "value"):
            if hasattr(node, field):
                setattr(node, field, self.visit(getattr(node, field)))
        self.scopes.pop()
        return self.run(node, "made", node)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        node.value = self.visit(node.value)
        return node

    def visit_YieldFrom(self, node: ast.YieldFrom) -> Any:
        node.value = self.run(node.value, "iterate", self.visit(node.value))
        return node

    # Stores.

    def assign(self, target: Any, value: Any, at: ast.AST) -> list[ast.stmt]:
        """Return the statements that store the value of an expression into a target."""
        if isinstance(target, ast.Name):
            return [_placed(ast.Assign([target], value), at)]
        if isinstance(target, ast.Attribute):
            call = self.run(target, "set_attr", value, self.visit(target.value), target.attr)
            return [_placed(ast.Expr(call), at)]
        if isinstance(target, ast.Subscript):
            call = self.run(target, "set_item", value, self.visit(target.value), self.visit(target.slice))
            return [_placed(ast.Expr(call), at)]
        value = self.run(at, "iterate", value)
        if all(isinstance(part, ast.Name) for part in target.elts):
            return [_placed(ast.Assign([target], value), at)]
        names: list[Any] = []
        after: list[ast.stmt] = []
        for part in target.elts:
            name = self.temporary()
            if isinstance(part, ast.Starred):
                names.append(_placed(ast.Starred(self.store(part, name), ast.Store()), part))
                after += self.assign(part.value, self.run(part, "made", self.load(part, name)), at)
            else:
                names.append(self.store(part, name))
                after += self.assign(part, self.load(part, name), at)
            after.append(self.forget(part, name))
        target.elts = names
        return [_placed(ast.Assign([target], value), at), *after]

    def forget(self, at: ast.AST, name: str) -> ast.stmt:
        return _placed(ast.Delete([_placed(ast.Name(name, ast.Del()), at)]), at)

    def keep(self, at: ast.AST, name: str, value: Any) -> ast.stmt:
        return _placed(ast.Assign([self.store(at, name)], value), at)

    def visit_Assign(self, node: ast.Assign) -> Any:
        value = self.visit(node.value)
        if len(node.targets) == 1:
            target: Any = node.targets[0]
            both = isinstance(target, (ast.Tuple, ast.List)) and isinstance(node.value, ast.Tuple)
            if both and all(isinstance(part, ast.Name) for part in target.elts):
                node.value = value
                return node
            return self.assign(target, value, node)
        name = self.temporary()
        made = [self.keep(node, name, value)]
        for target in node.targets:
            made += self.assign(target, self.load(node, name), node)
        return [*made, self.forget(node, name)]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            if isinstance(node.target, ast.Name):
                return node
            return _placed(ast.Pass(), node)
        return self.assign(node.target, self.visit(node.value), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target, sign = node.target, _BINARY[type(node.op)]
        if isinstance(target, ast.Name):
            old = self.visit_Name(_placed(ast.Name(target.id, ast.Load()), target))
            new = self.run(node, "inplace", sign, old, self.visit(node.value))
            return _placed(ast.Assign([target], new), node)
        name = self.temporary()
        made = [self.keep(node, name, self.visit(target.value))]
        own = [name]
        if isinstance(target, ast.Attribute):
            old = self.run(target, "attr", self.load(target, name), target.attr)
            new = self.run(node, "inplace", sign, old, self.visit(node.value))
            call = self.run(target, "set_attr", new, self.load(target, name), target.attr)
        else:
            key = self.temporary()
            own.append(key)
            made.append(self.keep(node, key, self.visit(target.slice)))
            old = self.run(target, "item", self.load(target, name), self.load(target, key))
            new = self.run(node, "inplace", sign, old, self.visit(node.value))
            call = self.run(target, "set_item", new, self.load(target, name), self.load(target, key))
        made.append(_placed(ast.Expr(call), node))
        return [*made, *(self.forget(node, each) for each in own)]

    def visit_Delete(self, node: ast.Delete) -> Any:
        made: list[ast.stmt] = []
        for target in node.targets:
            if isinstance(target, ast.Attribute):
                call = self.run(target, "del_attr", self.visit(target.value), target.attr)
            elif isinstance(target, ast.Subscript):
                call = self.run(target, "del_item", self.visit(target.value), self.visit(target.slice))
            elif isinstance(target, ast.Name):
                made.append(_placed(ast.Delete([target]), node))
                continue
            else:
                raise Unrewritable(f"it deletes a tuple in line {node.lineno}")
            made.append(_placed(ast.Expr(call), node))
        return made

    # Statements.

    def visit_If(self, node: Any) -> Any:
        node.test = self.tested(node.test)
        node.body, node.orelse = self.inner(node.body), self.inner(node.orelse)
        return node

    visit_While = visit_If

    def inner(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for part in body:
            new = self.visit(part)
            made.extend(new if isinstance(new, list) else [new])
        return made

    def visit_For(self, node: ast.For) -> Any:
        node.iter = self.run(node.iter, "iterate", self.visit(node.iter))
        before: list[ast.stmt] = []
        if not isinstance(node.target, ast.Name):
            name = self.temporary()
            target, node.target = node.target, self.store(node.target, name)
            before = [*self.assign(target, self.load(target, name), target), self.forget(target, name)]
        node.body, node.orelse = [*before, *self.inner(node.body)], self.inner(node.orelse)
        return node

    def visit_With(self, node: ast.With) -> Any:
        # Several items are nested, so that each target is stored before the next is entered.
        first, *others = node.items
        body = node.body
        if others:
            body = [_placed(ast.With(others, body), others[0].context_expr)]
        first.context_expr = self.run(first.context_expr, "context", self.visit(first.context_expr))
        before: list[ast.stmt] = []
        if first.optional_vars is not None and not isinstance(first.optional_vars, ast.Name):
            name, target = self.temporary(), first.optional_vars
            first.optional_vars = self.store(target, name)
            before = [*self.assign(target, self.load(target, name), target), self.forget(target, name)]
        node.items, node.body = [first], [*before, *self.inner(body)]
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        node.test = self.tested(node.test)
        node.msg = None if node.msg is None else self.visit(node.msg)
        return node

    def visit_Import(self, node: ast.Import) -> Any:
        made: list[ast.stmt] = []
        for alias in node.names:
            call = self.run(node, "import_module", alias.name, alias.asname is not None)
            target = self.store(node, alias.asname or alias.name.partition(".")[0])
            made.append(_placed(ast.Assign([target], call), node))
        return made

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        made: list[ast.stmt] = []
        for alias in node.names:
            call = self.run(node, "import_from", node.module or "", alias.name, node.level)
            made.append(_placed(ast.Assign([self.store(node, alias.asname or alias.name)], call), node))
        return made

    def visit_Match(self, node: Any) -> Any:
        node.subject = self.run(node.subject, "matched", self.visit(node.subject))
        for case in node.cases:
            parts: Any = ast.walk(case.pattern)
            for part in parts:
                plain = isinstance(part, (ast.Constant, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop))
                kinds = (ast.MatchValue, ast.MatchSingleton, ast.MatchAs, ast.MatchOr)
                if not plain and not isinstance(part, kinds):
                    raise Unrewritable(f"it matches more than constants in line {part.lineno}")
            case.guard = None if case.guard is None else self.tested(case.guard)
            case.body = self.inner(case.body)
        return node


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
