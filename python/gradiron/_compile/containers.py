"""Lists, dicts and sets, observed: what is read of those that are older than the call, and what is stored into them."""

from __future__ import annotations

import types
from collections import OrderedDict, defaultdict, deque
from typing import TYPE_CHECKING, Any

from .. import _core
from .._core import Tensor
from .attributes import lookup
from .guards import MISSING, is_constant
from .live import LiveNumber, plain, plain_inside

if TYPE_CHECKING:
    from .observer import Observer

__all__ = ["append_each", "del_item", "get_item", "method", "note_len", "read_inside", "set_item", "walked"]

_DICTS = (dict, OrderedDict, defaultdict)
_VIEWS: Any = (type({}.keys()), type({}.values()), type({}.items()), type(OrderedDict().keys()), type(OrderedDict().values()),
          type(OrderedDict().items()))  # fmt: skip
_TUPLE_ITEM: Any = tuple.__getitem__
_PASSIVE = (
    str, bytes, tuple, range, frozenset, enumerate, zip, map, filter, reversed, types.GeneratorType,
)  # fmt: skip


def walked(o: Observer, value: Any) -> Any:
    """Return something to iterate over with the same elements, noting them."""
    kind = type(value)
    if kind in (str, bytes, range):
        return value
    if kind is tuple or kind is frozenset:
        return value
    if kind in (list, set):
        o.note_elements(value)
        return value
    if kind in _DICTS:
        o.note_keys(value)
        return value
    if o.is_fresh(value) and isinstance(value, (*_VIEWS, *_PASSIVE)):
        return value
    if isinstance(value, Tensor):
        return o.call_method(value, "__iter__")
    how = lookup(kind, "__iter__")
    if isinstance(how, types.FunctionType):
        o.note_type(value)
        o.note_class(kind, "__iter__")
        made = o.call(how, value)
        return made if made is value and isinstance(lookup(kind, "__next__"), types.BuiltinFunctionType) else _stepped(o, made)
    if isinstance(lookup(kind, "__next__"), types.FunctionType):
        return _stepped(o, value)
    if o.is_fresh(value):
        return value
    if isinstance(value, tuple):
        return value
    if isinstance(value, (list, set)):
        o.note_elements(value)
        return value
    o.stop(f"it iterates over a {kind.__name__} that is older than the call")
    return value


def note_pairs(o: Observer, value: Any) -> None:
    """Note the contents of a dict, or of lists in a list, which C may take for pairs."""
    if type(value) in _DICTS:
        o.note_dict(value)
    elif isinstance(value, (list, tuple)):
        for each in value:
            if isinstance(each, list):
                o.note_elements(each)


def _stepped(o: Observer, value: Any) -> Any:
    """Iterate over an object whose `__next__` is written in Python."""
    how = lookup(type(value), "__next__")
    if not isinstance(how, types.FunctionType):
        return walked(o, value)
    o.note_class(type(value), "__next__")
    return o.make(_steps(o, how, value))


def _steps(o: Observer, how: Any, value: Any) -> Any:
    while True:
        try:
            found = o.call(how, value)
        except StopIteration:
            return
        yield found


def read_inside(o: Observer, value: Any) -> None:
    """Note the elements of the lists, tuples and dicts that a function of the core is given."""
    if isinstance(value, Tensor):
        o.use(value)
    elif type(value) is list:
        o.note_elements(value)
        for each in value:
            read_inside(o, each)
    elif isinstance(value, tuple) or (type(value) is deque and o.is_fresh(value)):
        for each in value:
            read_inside(o, each)
    elif type(value) in _DICTS:
        o.note_dict(value)
        for each in value.values():
            read_inside(o, each)
    elif not _is_inert(value):
        o.stop(f"it passes a {type(value).__name__} to a function of C")


_DUNDERS = ("__array__", "__index__", "__float__", "__int__", "__len__", "__getitem__", "__iter__", "__torch_function__",
            "__bool__", "__dlpack__", "__array_interface__", "__complex__")  # fmt: skip


def _is_inert(value: Any) -> bool:
    """Return whether C takes nothing out of a value that is not part of its identity."""
    kind = type(value)
    if is_constant(value) or isinstance(value, (type, types.FunctionType, types.MethodType, types.BuiltinFunctionType)):
        return True
    if kind.__module__.partition(".")[0] == "gradiron" or isinstance(value, (int, float, str)):
        return True
    if kind in (set, frozenset) or not kind.__flags__ & 1 << 9:
        return all(map(is_constant, value)) if kind in (set, frozenset) else isinstance(value, _PASSIVE)
    return all(lookup(kind, name) is MISSING for name in _DUNDERS)


def note_len(o: Observer, value: Any) -> None:
    """Note how many elements a container has."""
    if isinstance(value, (str, bytes, tuple, range, frozenset)) or o.is_fresh(value) or id(value) in o.containers:
        return
    if isinstance(value, (list, dict, set, deque)):
        o.note("len", value, None, len(value))
    else:
        o.stop(f"it asks for the length of a {type(value).__name__}")


def _is_key(o: Observer, key: Any) -> bool:
    """Return whether a key of a dict is compared by value or identity, without Python code."""
    if is_constant(key):
        return True
    if o.is_fresh(key):
        return False
    if isinstance(key, Tensor):
        o.pin(key)
        return True
    if isinstance(key, tuple):
        return all(_is_key(o, each) for each in key)
    return lookup(type(key), "__hash__") is object.__hash__ or isinstance(
        key, (type, types.FunctionType, types.BuiltinFunctionType)
    )


def get_item(o: Observer, value: Any, key: Any) -> Any:
    """Return `value[key]`, observed."""
    key = plain_inside(key)
    kind = type(value)
    if isinstance(value, Tensor):
        o.use(value)
        read_inside(o, key)
        return o.make(value[key])
    if kind in (tuple, str, bytes, range) or isinstance(value, _core.Sizes):
        return value[key]
    if kind in (list, *_DICTS):
        if kind is defaultdict and o.is_fresh(value) and key not in value and value.default_factory is not None:
            value[key] = o.call(value.default_factory)
        if o.is_fresh(value) or id(value) in o.containers:
            found = value[key]
            return o.make(found) if isinstance(key, slice) else found
        return _list_item(o, value, key) if kind is list else _dict_item(o, value, key)
    if isinstance(value, type):
        with o.trust():
            generic: Any = value
            return o.make(generic[key])  # `list[int]`
    how = lookup(kind, "__getitem__")
    if isinstance(how, types.FunctionType):
        o.note_type(value)
        o.note_class(kind, "__getitem__")
        return o.call(how, value, key)
    if not o.is_fresh(value) and how is not _TUPLE_ITEM:
        o.stop(f"it reads an item of a {kind.__name__}")
    return value[key]


def _list_item(o: Observer, value: list[Any], key: Any) -> Any:
    if not isinstance(key, int):
        o.note_elements(value)
        return o.make(value[key])
    at = key if key >= 0 else key + len(value)
    if not 0 <= at < len(value):
        o.note("len", value, None, len(value))
        return o.see(value[key])
    if id(value) in o.grown:
        o.note("len", value, None, len(value))
    if (id(value), at) in o.written:
        return value[key]
    if key < 0:
        o.lengths.setdefault(id(value), len(value))
    # From the end on, it is another element once the list has grown.
    return o.read("element", value, at, value[at]) if key >= 0 else o.read("last", value, key, value[at])


def _dict_item(o: Observer, value: dict[Any, Any], key: Any) -> Any:
    if not _is_key(o, key):
        o.stop(f"it reads a dict by a {type(key).__name__}")
        return value[key]
    found = dict.get(value, key, MISSING)
    live = _live(o, value, key, found)
    if live is not MISSING:
        return live
    found = o.read("item", value, key, found)
    if found is MISSING and isinstance(value, defaultdict) and value.default_factory is not None:
        o.note("attr", value, "default_factory", value.default_factory)
        made = o.call(value.default_factory)
        set_item(o, made, value, key)
        return made
    return value[key] if found is MISSING else found


def _live(o: Observer, own: dict[Any, Any], key: Any, value: Any) -> Any:
    """Return a float of a parameter group, or floats such as `betas`, as numbers that each replay reads anew; `MISSING` for
    anything else."""
    if type(value) not in (float, tuple) or not _is_group(own):
        return MISSING
    if type(value) is float:
        return MISSING if o.is_place("item", own, key) else o.live(own, key, value)
    if not value or (id(own), key) in o.written or not all(type(each) is float for each in value):
        return MISSING
    return tuple([o.live(own, (key, at), each) for at, each in enumerate(value)])


def set_item(o: Observer, new: Any, value: Any, key: Any) -> None:
    """Do `value[key] = new`, observed."""
    kind = type(value)
    if type(new) is LiveNumber and not o.is_fresh(value):
        new = plain(new)
    key = plain_inside(key)
    if isinstance(value, Tensor):
        new = plain_inside(new)
        o.use(value)
        read_inside(o, key)
        read_inside(o, new)
        value[key] = new
        return
    if kind in (list, *_DICTS):
        if o.is_fresh(value):
            value[key] = new
            return
        old: Any = MISSING
        if kind is list:
            if not isinstance(key, int) or not -len(value) <= key < len(value):
                o.stop("it stores a slice of a list that is older than the call")
                value[key] = new
                return
            old = value[key]
        elif _is_key(o, key):
            old = dict.get(value, key, MISSING)
        else:
            o.stop(f"it stores into a dict by a {type(key).__name__}")
            value[key] = new
            return
        what = ("element" if key >= 0 else "last") if kind is list else "item"
        if kind is list:
            o.lengths.setdefault(id(value), len(value))
        if what == "last" and id(value) in o.grown:
            o.stop("it stores into a list from its end after it appended to it")
        if o.is_new(what, value, key, old, new):
            o.store("set_item", value, key, new, old is MISSING)
        else:
            o.note(what, value, key, old)
        value[key] = new
        return
    how = lookup(kind, "__setitem__")
    if isinstance(how, types.FunctionType):
        o.note_type(value)
        o.note_class(kind, "__setitem__")
        o.call(how, value, key, new)
        return
    if not o.is_fresh(value):
        o.stop(f"it stores into a {kind.__name__} that is older than the call")
    value[key] = new


def del_item(o: Observer, value: Any, key: Any) -> None:
    """Do `del value[key]`, observed."""
    key = plain_inside(key)
    how = lookup(type(value), "__delitem__")
    if isinstance(how, types.FunctionType):
        o.note_type(value)
        o.note_class(type(value), "__delitem__")
        o.call(how, value, key)
        return
    if not o.is_fresh(value):
        o.stop(f"it deletes an item of a {type(value).__name__} that is older than the call")
    del value[key]


_READS = frozenset(
    "copy count index __iter__ __reversed__ __eq__ __ne__ union intersection difference issubset issuperset".split()
)
_WALKS = frozenset(
    """
    __init__ update extend union intersection difference issubset issuperset isdisjoint symmetric_difference intersection_update
    difference_update
    """.split()
)


def method(o: Observer, function: Any, owner: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a method of a list, dict, set or deque."""
    given = args
    if name in _WALKS:
        for each in args:
            note_pairs(o, each)
        given = tuple(walked(o, each) for each in args)
    if name == "sort" and o.is_fresh(owner):
        owner[:] = o.call(sorted, owner, **kwargs)
        return None
    if name in ("index", "count", "remove", "__contains__") and isinstance(owner, (list, deque)):
        if not all(_compares_plainly(each) for each in (*owner, *args)):
            o.stop(f"it calls {name}() of a list of tensors or objects")
    if o.is_fresh(owner) or (id(owner) in o.containers and name not in _CHANGES):
        found = function(*given, **kwargs)
        return o.make(found) if name in _MAKES else found
    if isinstance(owner, dict) and (type(owner) in _DICTS or name in _DICT_READS):
        return _of_dict(o, function, owner, name, given, kwargs)
    if type(owner) in (list, set):
        return _of_list(o, function, owner, name, given, kwargs)
    if name == "__len__":
        note_len(o, owner)
    elif name == "append" and type(owner) is deque:
        o.store("append", owner, None, plain(args[0]), True)
    else:
        o.stop(f"it calls {name}() of a {type(owner).__name__} that is older than the call")
    return function(*given, **kwargs)


# What C does to an object of a subclass of dict as to a dict.
_DICT_READS = frozenset(("get", "__getitem__", "__contains__", "keys", "values", "items", "__iter__", "__len__"))


def _of_list(o: Observer, function: Any, owner: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a method of a list or set that is older than the call."""
    if name in _READS or name == "__contains__":
        o.note_elements(owner)
        found = function(*args, **kwargs)
        return o.make(found) if name in _MAKES else found
    if name == "__getitem__":
        return get_item(o, owner, *args)
    if name == "__setitem__":
        set_item(o, args[1], owner, args[0])
        return None
    if name == "__len__":
        note_len(o, owner)
    elif name == "extend":
        append_each(o, owner, args[0])
        return None
    elif name == "append":
        o.store("append", owner, None, plain(args[0]) if type(args[0]) is LiveNumber else args[0], True)
    elif name in ("add", "discard") and is_constant(args[0]) and (args[0] in owner) is (name == "add"):
        o.note_elements(owner)
    else:
        o.stop(f"it calls {name}() of a {type(owner).__name__} that is older than the call")
    return function(*args, **kwargs)


def append_each(o: Observer, owner: list[Any], source: Any) -> None:
    """Append what is iterated over to a list that is older than the call."""
    for each in list(walked(o, source)):
        method(o, owner.append, owner, "append", (each,), {})


# What these give back is new.
_MAKES = frozenset(
    """
    copy keys values items union intersection difference symmetric_difference __iter__ __reversed__ __or__ __and__ __sub__
    __add__ __mul__
    """.split()
)
_CHANGES = frozenset(
    """
    append extend insert pop remove clear sort reverse update setdefault popitem add discard move_to_end appendleft popleft
    __setitem__ __delitem__ __iadd__
    """.split()
)


def _compares_plainly(value: Any) -> bool:
    return is_constant(value) or lookup(type(value), "__eq__") is object.__eq__


def _is_group(own: dict[Any, Any]) -> bool:
    """Return whether a dict is a parameter group of an optimizer."""
    return "params" in own and "lr" in own


def _live_copy(o: Observer, own: dict[Any, Any]) -> dict[Any, Any]:
    o.note_keys(own)
    made: dict[Any, Any] = o.make({})
    for key, value in own.items():
        live = _live(o, own, key, value)
        made[key] = o.read("item", own, key, value) if live is MISSING else live
    return made


def _of_dict(o: Observer, function: Any, owner: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a method of a dict that is older than the call."""
    if name in ("get", "__contains__", "setdefault", "pop") and _is_key(o, args[0]):
        return _of_key(o, function, owner, name, args)
    if name in ("keys", "__iter__", "__reversed__"):
        o.note_keys(owner)
        return o.make(function(*args))
    if name == "copy" and _is_group(owner):
        return _live_copy(o, owner)
    if name in ("values", "items", "copy", "__eq__", "__ne__", "__or__"):
        o.note_dict(owner)
        for each in args:
            read_inside(o, each)
        return o.make(function(*args))
    if name == "__getitem__":
        if type(owner) not in _DICTS and args[0] not in dict.keys(owner):
            o.stop("it asks a subclass of dict for a key that is not there")
            return function(*args)
        return _dict_item(o, owner, args[0])
    if name == "__setitem__":
        set_item(o, args[1], owner, args[0])
        return None
    if name == "update":
        for source in (*args, kwargs):
            pairs = source.items() if isinstance(source, dict) else source
            for key, each in list(pairs):
                set_item(o, each, owner, key)
        return None
    if name == "__len__" or (name == "clear" and not owner):
        note_len(o, owner)
    else:
        o.stop(f"it calls {name}() of a dict that is older than the call")
    return function(*args, **kwargs)


def _of_key(o: Observer, function: Any, owner: Any, name: str, args: tuple[Any, ...]) -> Any:
    found = dict.get(owner, args[0], MISSING)
    live = _live(o, owner, args[0], found) if name == "get" else MISSING
    if live is not MISSING:
        return live
    if found is MISSING and name == "setdefault":
        set_item(o, args[1] if len(args) > 1 else None, owner, args[0])
        return dict.get(owner, args[0])
    if name == "pop" and found is not MISSING:
        o.stop("it removes an item of a dict that is older than the call")
    if found is MISSING or name == "__contains__":
        o.note("item", owner, args[0], found, name == "__contains__")
        return function(*args)
    return o.read("item", owner, args[0], found)
