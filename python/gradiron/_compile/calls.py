"""Calls, observed: a Python function runs rewritten, a C function must be known."""

from __future__ import annotations

import builtins
import collections
import functools
import itertools
import operator
import sys
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from typing import TYPE_CHECKING, Any

from .. import _core
from .._core import Tensor
from . import containers, operations
from .attributes import get_attr, lookup, plain_set_attr, set_attr
from .dataclass import fill, is_of_dataclass
from .guards import MISSING, is_constant, matches
from .known import CORE, ITERTOOLS, KIND_CHANGES, PURE, PURE_METHODS, refused_core, refused_method
from .live import LIVE, ReadNumber, is_live, plain, plain_inside, value_of
from .notes import class_dict, is_rewritten, makes_named_tuple
from .reasons import Unrewritable
from .runtime import new_unit
from .signs import BINARY, COMPARE

if TYPE_CHECKING:
    from .observer import Observer

__all__ = ["call", "forget_functions", "rewritten"]

_BUILTIN = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType,
            types.ClassMethodDescriptorType)  # fmt: skip
_BINARY = {function: sign for sign, function in BINARY.items()}
_COMPARE = {function: sign for sign, function in COMPARE.items()}


def call(o: Observer, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return `function(*args, **kwargs)`, observed."""
    kind = type(function)
    if kind is types.FunctionType:
        return _function(o, function, args, kwargs)
    if kind is types.MethodType:
        return call(o, function.__func__, (function.__self__, *args), kwargs)
    if isinstance(function, type):
        return _class(o, function, args, kwargs)
    if isinstance(function, _BUILTIN):
        return _builtin(o, function, args, kwargs)
    if kind is functools.partial:
        if not o.is_fresh(function):
            o.note("attr", function, "func", function.func)
            o.note("attr", function, "args", function.args)
            o.note_dict(function.keywords)
        for each in function.args:
            o.see(each)
        return call(o, function.func, (*function.args, *args), {**function.keywords, **kwargs})
    if kind is operator.itemgetter or kind is operator.attrgetter:
        return _got(o, function, *args)
    if kind is _CACHED:
        return _cached(o, function, args, kwargs)
    if hasattr(kind, "_is_compiled_function"):
        return call(o, function.function, args, kwargs)
    if kind is weakref.ref:
        # What it refers to is held by the capture, so it stays what it is.
        return o.hold(function(*args, **kwargs))
    how = lookup(kind, "__call__")
    if isinstance(how, types.FunctionType):
        o.note_type(function)
        o.note_class(kind, "__call__")
        return call(o, how, (function, *args), kwargs)
    o.stop(f"it calls a {kind.__name__}, which is not known to be free of hidden inputs and outputs")
    return function(*args, **kwargs)


_CACHED: Any = type(functools.lru_cache(len))


def _cached(o: Observer, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function of `functools.lru_cache`: what it was made of is noted, even if the result was kept."""
    with o.trust():
        kept = function(*args, **kwargs)
    if str(function.__module__).partition(".")[0] == _PACKAGE:
        return kept
    again = o.call(function.__wrapped__, *args, **kwargs)
    if not matches(kept, again):
        o.stop(f"it calls {function.__name__}, whose kept results differ from new ones")
    return kept


_PACKAGE = __name__.partition(".")[0]


def _got(o: Observer, getter: Any, value: Any) -> Any:
    """Call an `operator.itemgetter` or `operator.attrgetter`."""
    keys, found = getter.__reduce__()[1], []
    for key in keys:
        each = value
        if isinstance(getter, operator.itemgetter):
            each = o.item(value, key)
        else:
            for name in key.split("."):
                each = get_attr(o, each, name)
        found.append(each)
    return found[0] if len(keys) == 1 else tuple(found)


# Functions of Python.


def _function(o: Observer, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if id(function) in o.fresh:
        found = function(*args, **kwargs)
        return o.make(found) if function.__code__.co_flags & _GENERATOR else found
    made = o.functions.get(id(function))
    if made is None:
        compiled = function.__dict__.get("_compiled")
        if compiled is not None:
            o.note("item", function.__dict__, "_compiled", compiled)
            return call(o, compiled.function, args, kwargs)
        reason = getattr(function, "_gradiron_disabled", None)
        if reason is not None:
            o.stop(f"it calls {function.__qualname__}, which is disabled" + (f": {reason}" if isinstance(reason, str) else ""))
            return function(*args, **kwargs)
        if makes_named_tuple(function.__code__, function.__globals__):
            o.note_cells(function)
            with o.trust():
                return function(*args, **kwargs)
        if is_of_dataclass(function, args):
            o.note_cells(function)
            return fill(o, function, args, kwargs)
        try:
            with o.trust():
                made = rewritten(function)
        except Unrewritable as error:
            o.stop(f"it calls {function.__qualname__}, and {error}")
            return function(*args, **kwargs)
        o.note_cells(function)
        own, stored = made
        for name in stored:
            before = function.__globals__.get(name, MISSING)
            o.note("item", function.__globals__, name, before, True)
            o.stored_globals.setdefault(id(function.__globals__), (function.__globals__, {}))[1].setdefault(name, before)
        made = o.functions[id(function)] = own
        o.keep(function)
    if o.reason is not None:
        return function(*args, **kwargs)
    found = made(*args, **kwargs)
    return o.make(found) if function.__code__.co_flags & _GENERATOR else found


_GENERATOR = 0x20


_units: dict[tuple[int, int], tuple[Any, Any, frozenset[str]]] = {}
_refused: dict[int, tuple[Any, str]] = {}


def forget_functions() -> None:
    """Forget what was rewritten."""
    _units.clear()
    _refused.clear()


def rewritten(function: types.FunctionType) -> tuple[types.FunctionType, frozenset[str]]:
    """Return a function like this one whose code is rewritten, and the global names that it stores.

    Raises:
        Unrewritable: if its code cannot be rewritten.
    """
    code, module = function.__code__, function.__globals__
    original = is_rewritten(code)
    found = _units.get((id(code), id(module)))
    if found is None:
        if original is not None:
            return function, frozenset()  # it was made by a captured call, or is in place of its original
        refused = _refused.get(id(code))
        if refused is not None:
            raise Unrewritable(refused[1])
        try:
            found = _units[id(code), id(module)] = (code, *new_unit(code, module))
        except Unrewritable as error:
            _refused[id(code)] = (code, str(error))
            raise
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    new = found[1]
    if any(name not in cells for name in new.co_freevars):
        raise Unrewritable("its rewritten form needs other variables of enclosing functions")
    closure = tuple(cells[name] for name in new.co_freevars)
    made = types.FunctionType(new, module, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    made.__dict__.update(function.__dict__)
    return made, found[2]


# Classes.

_CONTAINERS = (list, tuple, dict, set, frozenset, OrderedDict, deque)
_WALKERS = (enumerate, zip, reversed)
# How many of their arguments these iterate over, where that is not all of them.
_WALKED: dict[Any, int] = {
    enumerate: 1, deque: 1, itertools.repeat: 0, itertools.count: 0, itertools.islice: 1, itertools.permutations: 1,
    itertools.combinations: 1,
}  # fmt: skip
# What these make is their arguments, for later use.
_BUNDLES = (
    _core.device, _core.dtype, super, staticmethod, classmethod, property, functools.partial, types.MethodType,
    types.SimpleNamespace, operator.itemgetter, operator.attrgetter,
)  # fmt: skip
_NUMBERS = (int, float, bool, complex, str, bytes, range, slice, object)


def _class(o: Observer, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    known = _known_class(o, cls, args, kwargs)
    if known is not MISSING:
        return known
    meta = type(cls)
    if meta is not type:
        o.note_class(meta, "__call__")
        how = lookup(meta, "__call__")
        if isinstance(how, types.FunctionType):
            return o.call(how, cls, *args, **kwargs)
    o.note_class(cls, "__new__")
    o.note_class(cls, "__init__")
    init = lookup(cls, "__init__")
    made = o.make(_new(o, cls, init, args, kwargs))
    if isinstance(made, cls) and o.is_fresh(made):
        if isinstance(init, types.FunctionType):
            o.call(init, made, *args, **kwargs)
        elif init is not object.__init__:
            init(made, *args, **kwargs)
    return made


def _known_class(o: Observer, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return an instance of a class of Python's own; `MISSING` for other classes."""
    if cls is type and len(args) == 1:
        value = args[0]
        if isinstance(value, LIVE):
            return type(value_of(value))
        o.note_type(value)
        return type(value)
    if cls in _CONTAINERS or cls in _WALKERS or cls in ITERTOOLS:
        if cls is dict and args:
            containers.note_pairs(o, args[0])
        walks = _WALKED.get(cls, len(args))
        args = (*args[:walks], *map(plain_inside, args[walks:]))
        kwargs = {name: plain_inside(value) for name, value in kwargs.items()}
        return o.make(cls(*[containers.walked(o, each) for each in args[:walks]], *args[walks:], **kwargs))
    if cls is defaultdict:
        return o.make(cls(*args[:1], *[containers.walked(o, each) for each in args[1:]], **kwargs))
    if cls in _CALLERS:
        return o.make(_CALLERS[cls](o, *args, **kwargs))
    if cls in _NUMBERS and len(args) == 1 and isinstance(args[0], Tensor):
        return _number(o, cls, args[0])
    if cls in (int, float, bool) and len(args) == 1 and not kwargs and is_live(args[0]):
        found = bool(args[0]) if cls is bool else o.tape.call(cls, args)
        if found is not MISSING:
            return found
    if cls in _NUMBERS:
        args = tuple(map(plain_inside, args))
        for each in args:
            if not _is_plain(each) and not (cls is str and o.is_printable(each)):
                what = "reads the elements of a tensor" if isinstance(each, Tensor) else f"gets a {type(each).__name__}"
                o.stop(f"{cls.__name__}() {what}")
        return o.make(cls(*args, **kwargs))
    if cls in _BUNDLES:
        return o.make(cls(*map(plain_inside, args), **kwargs))
    return MISSING


def _number(o: Observer, cls: Any, value: Tensor) -> Any:
    """Return `bool(value)`, `int(value)` or `float(value)` of a tensor."""
    if cls is bool:
        return bool(o.tested(value))
    if (cls is int and not value.is_floating_point() and not value.is_complex()) or cls is float:
        found = operations.number(o, value)
        return found if isinstance(found, ReadNumber) else cls(found)
    o.stop(f"{cls.__name__}() reads the elements of a tensor")
    return o.make(cls(value))


def _new(o: Observer, cls: Any, init: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Do what `__new__` does, and all of `cls(…)` where that is written in C."""
    new = lookup(cls, "__new__")
    if isinstance(new, staticmethod):
        new = new.__func__
    if isinstance(new, types.FunctionType):
        return o.call(new, cls, *args, **kwargs)
    if new is object.__new__:
        return object.__new__(cls) if init is not object.__init__ else cls(*args, **kwargs)
    if issubclass(cls, (BaseException, *_CONTAINERS)) or new in _CORE_NEW:
        return new(cls, *[containers.walked(o, each) if isinstance(each, list) else each for each in args], **kwargs)
    if cls.__module__.partition(".")[0] != "gradiron" or issubclass(cls, Tensor) or cls is _core.Generator:
        o.stop(f"it makes a {cls.__name__}, which is not known to be free of hidden inputs and outputs")
    args = tuple(map(plain_inside, args))
    kwargs = {name: plain_inside(value) for name, value in kwargs.items()}
    _pass(o, args, kwargs)
    return new(cls, *args, **kwargs)


_CORE_NEW = (_core.GradSwitch.__new__, _core.new_no_grad, _core.new_enable_grad)


def _map(o: Observer, function: Any, *sources: Any) -> Any:
    for given in zip(*(containers.walked(o, each) for each in sources), strict=False):
        yield o.call(function, *given)


def _filter(o: Observer, function: Any, source: Any) -> Any:
    for each in containers.walked(o, source):
        if o.tested(each if function is None else o.call(function, each)):
            yield each


def _accumulate(o: Observer, source: Any, func: Any = None, *, initial: Any = None) -> Any:
    values = iter(containers.walked(o, source))
    total = next(values, MISSING) if initial is None else initial
    if total is MISSING:
        return
    yield total
    for each in values:
        total = o.binary("+", total, each) if func is None else o.call(func, total, each)
        yield total


def _starmap(o: Observer, function: Any, source: Any) -> Any:
    for given in containers.walked(o, source):
        yield o.call(function, *containers.walked(o, given))


_CALLERS: dict[Any, Any] = {map: _map, filter: _filter, itertools.accumulate: _accumulate, itertools.starmap: _starmap}


def _is_plain(value: Any) -> bool:
    return is_constant(value) or (type(value) in (list, tuple, dict) and not value)


# Functions of C.


def _builtin(o: Observer, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    kind = type(function)
    if kind in (types.MethodDescriptorType, types.WrapperDescriptorType):
        return _unbound(o, function, args, kwargs)
    owner = getattr(function, "__self__", None)
    if isinstance(owner, _core.Program):
        args = tuple([o.live_inside(each) for each in args])
        kwargs = {name: o.live_inside(value) for name, value in kwargs.items()}
    elif not _stores(owner, function.__name__) and function not in _TAKES_LIVE:
        if not kwargs and any(map(is_live, args)):
            found = o.tape.call(function, args)
            if found is not MISSING:
                return found
        found = _filled(o, function, owner, args, kwargs)
        if found is not None:
            return found
        args = tuple(map(plain_inside, args))
        kwargs = {name: plain_inside(value) for name, value in kwargs.items()}
    name = function.__name__
    if id(function) in CORE:
        if refused_core(function):
            o.stop(f"it calls {name}")
            return function(*args, **kwargs)
        _pass(o, args, kwargs)
        found = function(*args, **kwargs)
        if not isinstance(found, (Tensor, tuple, list)):
            for each in args:
                if isinstance(each, Tensor):
                    o.ask(each)
        return _made(o, found)
    if owner is not None and not isinstance(owner, types.ModuleType):
        return _method(o, function, owner, name, args, kwargs)
    handler = _HANDLERS.get(function)
    return _of_python(o, function, args, kwargs) if handler is None else handler(o, *args, **kwargs)


def _stores(owner: Any, name: str) -> bool:
    """Return whether a method only keeps what it is given, or compares it."""
    if isinstance(owner, (list, dict)):
        return name in _STORES
    return name == "__setattr__" and not isinstance(owner, (Tensor, type))


# Functions that make tensors of numbers: the position and the name of the number.
_FILLS = {_core.full: (1, "fill_value"), _core.full_like: (1, "fill_value"), _core.make_tensor: (0, "data")}
_INTS = frozenset((_core.int64, _core.int32))


def _filled(o: Observer, function: Any, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    """Return a tensor that a function makes of live numbers; `None` for other functions and numbers."""
    if isinstance(owner, Tensor) and function.__name__ == "new_full":
        at, name = 1, "fill_value"
    elif id(function) in CORE and function in _FILLS:
        at, name = _FILLS[function]
    else:
        return None
    value: Any = args[at] if len(args) > at else kwargs.get(name)
    parts = list(value) if type(value) in (list, tuple) and at == 0 else [value]
    if not any(map(is_live, parts)) or not all(is_live(each) or type(each) in (int, float) for each in parts):
        return None
    now: Any = [value_of(each) if is_live(each) else each for each in parts]
    now = now if type(value) in (list, tuple) else now[0]
    args = tuple([now if each is value else plain_inside(each) for each in args])
    kwargs = {key: now if each is value else plain_inside(each) for key, each in kwargs.items()}
    _pass(o, args, kwargs)
    made: Tensor = function(*args, **kwargs)
    for number, each in enumerate(parts):
        if is_live(each):
            double = made.dtype in _INTS and isinstance(each, int)
            found = None if made.requires_grad else o.tensor_of(each, made, _core.float64 if double else None)
            if found is None:
                return None
            (made if is_live(value) else made[number]).copy_(found)
    return o.make(made)


def _of_python(o: Observer, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function of one of Python's own modules."""
    owner, name = getattr(function, "__self__", None), function.__name__
    if id(function) in PURE:
        if function is not callable and all(map(o.is_printable, (*args, *kwargs.values()))):
            return function(*args, **kwargs)
        if function in (abs, round, pow, divmod) and isinstance(args[0], Tensor):
            _pass(o, args, kwargs)
            return _made(o, function(*args, **kwargs))
        if function is callable:
            o.note_type(args[0])
            o.note_class(type(args[0]), "__call__")
            return function(*args)
        o.stop(f"it calls {name}() of a {', '.join(type(each).__name__ for each in args)}")
        return function(*args, **kwargs)
    if function in _BINARY:
        return o.binary(_BINARY[function], *args)
    if function in _COMPARE:
        return o.compare(_COMPARE[function], *args)
    if isinstance(owner, types.ModuleType) and owner.__name__ == "itertools":
        return o.make(function(*(containers.walked(o, each) for each in args), **kwargs))
    where = function.__module__ if isinstance(function.__module__, str) else None
    full = name if where in (None, "builtins") else f"{where}.{name}"
    o.stop(f"it calls {full}, a C function that is not known to be free of hidden inputs and outputs")
    return function(*args, **kwargs)


def _unbound(o: Observer, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call `list.append(x, 1)`: a method asked for through its class."""
    name = function.__name__
    if name not in ("__setattr__", "__init__", *_STORES) or (args and isinstance(args[0], Tensor)):
        args = (*args[:1], *map(plain_inside, args[1:]))
        kwargs = {name: plain_inside(value) for name, value in kwargs.items()}
    if args and name == "__setattr__" and not isinstance(args[0], (type, Tensor)):
        plain_set_attr(o, args[2], args[0], args[1])
        return None
    if args and name == "__init__" and function is object.__init__:
        return function(*args)
    if args and name == "__getattribute__":
        o.stop("it calls __getattribute__")
        return function(*args)
    if not args or not isinstance(args[0], function.__objclass__):
        return function(*args, **kwargs)
    return _method(o, functools.partial(function, args[0]), args[0], name, args[1:], kwargs)


def _method(o: Observer, function: Any, owner: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a method of C."""
    kind = type(owner)
    if isinstance(owner, Tensor):
        return _of_tensor(o, function, owner, name, args, kwargs)
    if kind in PURE_METHODS or (kind is type and owner in PURE_METHODS):
        walks = name == "join" or (name == "__new__" and owner in (tuple, frozenset))
        given = [each if isinstance(each, type) else containers.walked(o, each) for each in args] if walks else args
        if not walks and not all(map(o.is_printable, args)) and not isinstance(owner, (tuple, frozenset)):
            o.stop(f"it calls {name}() with a {', '.join(type(each).__name__ for each in args)}")
        return o.make(function(*given, **kwargs))
    if isinstance(owner, (list, dict, set, deque)):
        return containers.method(o, function, owner, name, args, kwargs)
    if isinstance(owner, (_core.GradSwitch, _core.Program, _core._FunctionBase)) or _is_of_generator(owner, name):
        _pass(o, args, kwargs)
        found = function(*args, **kwargs)
        return _made(o, found) if isinstance(found, Tensor) else found
    if name == "__setattr__" and len(args) == 2 and not isinstance(owner, type):
        plain_set_attr(o, args[1], owner, args[0])
        return None
    if name == "__init__" and o.is_fresh(owner) and not args and not kwargs:
        return function()
    if isinstance(owner, types.FunctionType) and name in ("__get__", "__call__"):
        if name == "__call__":
            return o.call(owner, *args, **kwargs)
        return owner if args[0] is None else types.MethodType(owner, args[0])
    if owner is dict and name == "fromkeys":
        return o.make(function(containers.walked(o, args[0]), *args[1:]))
    if name in ("__instancecheck__", "__subclasscheck__") and isinstance(owner, type):
        o.note_type(args[0])
        with o.trust():
            return function(*args)
    if name == "__new__" and isinstance(owner, type):
        return o.make(function(*args, **kwargs))
    known = o.is_fresh(owner) and isinstance(owner, (types.GeneratorType, BaseException, type))
    if not known and function is not object.__init__ and name != "__init_subclass__":
        o.stop(f"it calls {name}() of a {kind.__name__}, which is not known to be free of hidden inputs and outputs")
    return function(*args, **kwargs)


def _is_of_generator(owner: Any, name: str) -> bool:
    """Return whether a method passes the state of a generator on, a tensor that kernels write and read."""
    return isinstance(owner, _core.Generator) and name in ("get_state", "set_state")


def _of_tensor(o: Observer, function: Any, owner: Tensor, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if name == "item" and not args and not kwargs:
        return operations.number(o, owner)
    if name == "__bool__":
        return o.tested(owner)
    if refused_method(name) and not (name == "register_hook" and o.is_fresh(owner)):
        o.stop(f"it calls {name}() of a tensor")
    elif name in KIND_CHANGES and not o.is_fresh(owner):
        wanted = args[0] if args else kwargs.get("requires_grad", True)
        if name != "requires_grad_" or wanted != owner.requires_grad:
            o.stop(f"it calls {name}() of a tensor that is older than the call")
    else:
        o.use(owner)
        _pass(o, args, kwargs)
    found = function(*args, **kwargs)
    if not isinstance(found, Tensor) and name not in _QUICK_METHODS:
        o.ask(owner)
    return _made(o, found)


_QUICK_METHODS = frozenset("size dim numel nelement backward is_floating_point is_complex split chunk unbind".split())


def _pass(o: Observer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Note what a function of the core reads of its arguments."""
    for each in (*args, *kwargs.values()):
        containers.read_inside(o, each)
        if isinstance(each, type):
            # The core calls these of a class of `torch.autograd.Function`.
            for name in ("forward", "backward", "setup_context", "vjp", "jvp", "vmap"):
                o.note_class(each, name)


def _made(o: Observer, value: Any) -> Any:
    """Take the result of a function of the core."""
    reason = _core.capture_reason()
    if reason is not None and o.reason is None:
        o.stop(reason)
    if isinstance(value, Tensor):
        if id(value) not in o.numbers:
            o.fresh[id(value)] = value
    elif isinstance(value, tuple):
        o.make(value)
        for each in value:
            _made(o, each)
    elif isinstance(value, (list, dict)):
        o.make(value)
        for each in value if isinstance(value, list) else value.values():
            _made(o, each)
    return value


# Functions of `builtins`.


def _getattr(o: Observer, value: Any, name: str, *default: Any) -> Any:
    if not default:
        return get_attr(o, value, name)
    try:
        return get_attr(o, value, name)
    except AttributeError:
        return default[0]


def _hasattr(o: Observer, value: Any, name: str) -> bool:
    try:
        get_attr(o, value, name)
    except AttributeError:
        return False
    return True


def _setattr(o: Observer, value: Any, name: str, new: Any) -> None:
    set_attr(o, new, value, name)


def _isinstance(o: Observer, value: Any, cls: Any) -> bool:
    for each in _classes(cls):
        meta = type(each)
        how = lookup(meta, "__instancecheck__")
        if isinstance(how, types.FunctionType) and meta.__module__ not in ("abc", "_py_abc"):
            o.note_class(meta, "__instancecheck__")
            if type(value) is each or o.tested(o.call(how, each, value)):
                o.note_type(value)
                return True
        else:
            o.note_type(value)
            o.note_registry(each)
            with o.trust():
                if isinstance(value, each):
                    return True
    return False


def _classes(cls: Any) -> list[Any]:
    if isinstance(cls, tuple):
        return [each for part in cls for each in _classes(part)]
    if isinstance(cls, types.UnionType):
        return list(cls.__args__)
    return [cls]


def _issubclass(o: Observer, value: Any, cls: Any) -> bool:
    if isinstance(value, type) and class_dict(value) is not None:
        o.note("attr", value, "__mro__", value.__mro__)
    o.note_registry(cls)
    with o.trust():
        return issubclass(value, cls)


def _len(o: Observer, value: Any) -> int:
    if isinstance(value, Tensor):
        o.use(value)
        return len(value)
    how = lookup(type(value), "__len__")
    if isinstance(how, types.FunctionType):
        o.note_type(value)
        o.note_class(type(value), "__len__")
        return int(o.call(how, value))
    containers.note_len(o, value)
    return len(value)


def _sum(o: Observer, source: Any, start: Any = 0) -> Any:
    for each in containers.walked(o, source):
        start = o.binary("+", start, each)
    return start


def _least(name: str) -> Any:
    function = getattr(builtins, name)

    def least(o: Observer, *args: Any, **kwargs: Any) -> Any:
        values = list(containers.walked(o, args[0])) if len(args) == 1 else list(args)
        key = kwargs.pop("key", None)
        if any(map(is_live, values)):
            found = o.tape.call(function, tuple(values)) if not kwargs and key is None and len(values) > 1 else MISSING
            if found is not MISSING:
                return found
            values = [plain(each) for each in values]
            args = (values,) if len(args) == 1 else tuple(values)
        keys = values if key is None else [plain(o.call(key, each)) for each in values]
        if not all(map(is_constant, keys)):
            o.stop(f"it calls {name}() of tensors or objects")
        if key is not None and values:
            return values[function(range(len(values)), key=keys.__getitem__)]
        return function(values, **kwargs) if len(args) == 1 else function(*values, **kwargs)

    return least


def _every(o: Observer, source: Any) -> bool:
    return all(o.tested(each) for each in containers.walked(o, source))


def _some(o: Observer, source: Any) -> bool:
    return any(o.tested(each) for each in containers.walked(o, source))


def _sorted(o: Observer, source: Any, *, key: Any = None, reverse: bool = False) -> Any:
    values = list(containers.walked(o, source))
    keys = values if key is None else [plain(o.call(key, each)) for each in values]
    if not all(map(is_constant, keys)):
        o.stop("it sorts by tensors or objects")
    order = sorted(range(len(values)), key=keys.__getitem__, reverse=reverse)
    return o.make([values[number] for number in order])


def _iter(o: Observer, value: Any, *sentinel: Any) -> Any:
    if sentinel:
        o.stop("it calls iter() with a sentinel")
        return iter(value, *sentinel)
    return o.make(iter(containers.walked(o, value)))


def _next(o: Observer, value: Any, *default: Any) -> Any:
    how = lookup(type(value), "__next__")
    if isinstance(how, types.FunctionType):
        o.note_type(value)
        o.note_class(type(value), "__next__")
        try:
            return o.call(how, value)
        except StopIteration:
            if default:
                return default[0]
            raise
    if not o.is_fresh(value):
        o.stop(f"it takes the next of a {type(value).__name__} that is older than the call")
    return next(value, *default)


class _ObjectId(int):
    """The `id` of an object that is another one in each call: good as a key of a dict that the call makes, and nothing else."""


def _id(o: Observer, value: Any) -> int:
    another = o.is_fresh(value) or (isinstance(value, Tensor) and o.is_argument(value))
    return _ObjectId(id(value)) if another else id(value)


def _reduce(o: Observer, function: Any, source: Any, *start: Any) -> Any:
    values = iter(containers.walked(o, source))
    made = start[0] if start else next(values)
    for each in values:
        made = o.call(function, made, each)
    return made


def _count(o: Observer, counts: Any, source: Any) -> None:
    """What `collections.Counter` does."""
    for each in containers.walked(o, source):
        o.set_item(containers.method(o, counts.get, counts, "get", (each, 0), {}) + 1, counts, each)


def _hash(o: Observer, value: Any) -> int:
    if not is_constant(value):
        o.stop(f"it calls hash() of a {type(value).__name__}")
    return hash(value)


def _vars(o: Observer, value: Any) -> Any:
    return get_attr(o, value, "__dict__")


def _repr(name: str) -> Any:
    function = getattr(builtins, name)

    def show(o: Observer, value: Any, *rest: Any) -> Any:
        o.formatted(value)
        return function(value, *rest)

    return show


# Methods of lists and dicts that keep or compare what they are given.
_STORES = frozenset("append extend get setdefault update copy keys values items __iter__ __contains__ __len__".split())
# Those that are given live numbers as they are.
_TAKES_LIVE = frozenset((isinstance, getattr, hasattr, setattr, min, max, sum, any, all))

_HANDLERS: dict[Any, Any] = {
    getattr: _getattr,
    hasattr: _hasattr,
    setattr: _setattr,
    isinstance: _isinstance,
    issubclass: _issubclass,
    len: _len,
    sum: _sum,
    min: _least("min"),
    max: _least("max"),
    any: _some,
    all: _every,
    sorted: _sorted,
    iter: _iter,
    next: _next,
    id: _id,
    vars: _vars,
    repr: _repr("repr"),
    format: _repr("format"),
    functools.reduce: _reduce,
    hash: _hash,
    sys.exc_info: lambda o: sys.exc_info(),
    collections._count_elements: _count,  # type: ignore[attr-defined]
    operator.getitem: lambda o, value, key: o.item(value, key),
    operator.not_: lambda o, value: not o.tested(value),
    operator.truth: lambda o, value: bool(o.tested(value)),
    operator.neg: lambda o, value: o.unary("-", value),
    operator.pos: lambda o, value: o.unary("+", value),
    operator.contains: lambda o, value, key: o.compare("in", key, value),
}
if sys.version_info >= (3, 11):
    _HANDLERS[sys.exception] = lambda o: sys.exception()
