"""Attributes, observed: where Python finds them, step by step."""

from __future__ import annotations

import collections
import functools
import threading
import types
from typing import TYPE_CHECKING, Any

from .. import _core
from .._core import Tensor
from .._creation import strided
from .guards import MISSING, matches
from .known import NEW_ATTRIBUTES, QUICK_ATTRIBUTES, TENSOR_ATTRIBUTES
from .live import plain
from .notes import class_dict

if TYPE_CHECKING:
    from .observer import Observer

__all__ = ["del_attr", "get_attr", "lookup", "own_dict", "set_attr"]

_TUPLE_FIELD: Any = type(collections.namedtuple("_Field", "field").field)  # type: ignore[attr-defined]
_GETATTRIBUTES = (
    object.__getattribute__, type.__getattribute__, super.__getattribute__, types.ModuleType.__getattribute__,
)  # fmt: skip
_C_DESCRIPTORS = (types.GetSetDescriptorType, types.MemberDescriptorType)
_C_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)


def lookup(cls: type, name: str) -> Any:
    """Return what a class has under a name, unbound; `MISSING` without it."""
    for each in cls.__mro__:
        found = each.__dict__.get(name, MISSING)
        if found is not MISSING:
            return found
    return MISSING


def own_dict(value: Any) -> dict[str, Any] | None:
    """Return an object's own attributes, without running Python code."""
    try:
        own = isinstance(value, threading.local)  # its attributes are those of this thread
        found = value.__dict__ if own else object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return found if type(found) is dict else None


def get_attr(o: Observer, value: Any, name: str) -> Any:
    """Return `getattr(value, name)`, observed."""
    value = plain(value)
    cls = type(value)
    if cls is types.ModuleType:
        return _of_module(o, value, name)
    if issubclass(cls, type):
        return _of_class(o, value, name)
    if cls is super:
        return _of_super(o, value, name)
    if cls is types.MethodType:
        if name in ("__func__", "__self__"):
            return getattr(value, name)
        return get_attr(o, value.__func__, name)
    if isinstance(value, Tensor):
        o.use(value)
    o.note_type(value)
    how = lookup(cls, "__getattribute__")
    if isinstance(how, types.FunctionType):
        o.stop(f"class {cls.__name__} has its own __getattribute__")
        return getattr(value, name)
    try:
        found = _found(o, value, cls, name, how)
    except AttributeError:
        if not isinstance(lookup(cls, "__getattr__"), types.FunctionType):
            raise
        found = MISSING
    return _fallback(o, value, cls, name) if found is MISSING else found


def _found(o: Observer, value: Any, cls: type, name: str, how: Any) -> Any:
    """Return an attribute without asking `__getattr__`; `MISSING` if there is none."""
    o.note_class(cls, name)
    raw = lookup(cls, name)
    kind = type(raw)
    if raw is not MISSING and (lookup(kind, "__set__") is not MISSING or lookup(kind, "__delete__") is not MISSING):
        return _by_descriptor(o, value, cls, name, raw)
    if how not in _GETATTRIBUTES and not isinstance(value, (Tensor, threading.local, types.SimpleNamespace)):
        # C looks in its own places.
        found = getattr(value, name, MISSING)
        if raw is MISSING or found is raw:
            return found if o.is_fresh(value) else o.read("attr", value, name, found)
    own = own_dict(value)
    if own is not None:
        fresh = o.is_fresh(value)
        if not fresh and not o.is_fresh(own) and not (isinstance(value, Tensor) and o.is_argument(value)):
            o.note("vars", value, None, own)
            found = o.read("item", own, name, own.get(name, MISSING))
            if found is not MISSING:
                return found
        if name in own:
            return own[name] if fresh else o.see(own[name])
    return raw if raw is MISSING else _bound(o, value, cls, name, raw)


def _fallback(o: Observer, value: Any, cls: type, name: str) -> Any:
    """Return what `__getattr__` gives for an attribute that is not there."""
    if isinstance(value, types.ModuleType):
        return _of_module(o, value, name)
    o.note_class(cls, "__getattr__")
    fallback = lookup(cls, "__getattr__")
    if isinstance(fallback, types.FunctionType):
        return o.call(fallback, value, name)
    found = getattr(value, name)
    o.stop(f"it reads {name} of a {cls.__name__}, which C finds in its own way")
    return found


def _of_tensor(o: Observer, value: Any, name: str) -> Any:
    """Return an attribute of a tensor that C computes."""
    if name == "__dict__":
        return _whole_dict(o, value)
    found = getattr(value, name)
    if name in ("grad", "_grad") or (name not in QUICK_ATTRIBUTES and not isinstance(found, Tensor)):
        o.ask(value)
    is_new = o.is_fresh(value) and (not isinstance(found, Tensor) or id(found) in o.fresh or id(found) in o.numbers)
    if name == "_base" and is_new:
        return found
    if name not in TENSOR_ATTRIBUTES and not (name in NEW_ATTRIBUTES and (o.is_fresh(value) or value.is_leaf)):
        o.stop(f"it reads {name} of a tensor")
    elif isinstance(found, Tensor):
        # The core finds a gradient through its leaf.
        (o.grads if name in ("grad", "_grad") else o.fresh)[id(found)] = found
    elif isinstance(found, _core.Node):
        if not o.is_fresh(value):
            o.stop(f"it reads {name} of a tensor that is older than the call")
        o.make(found)
    return found


def _by_descriptor(o: Observer, value: Any, cls: type, name: str, raw: Any) -> Any:
    """Return an attribute that a class rules over: a property, a slot, an attribute of C."""
    kind = type(raw)
    if isinstance(value, Tensor) and kind is types.GetSetDescriptorType:
        return _of_tensor(o, value, name)
    if isinstance(raw, property):
        return getattr(value, name) if raw.fget is None else o.call(raw.fget, value)
    if isinstance(raw, _C_DESCRIPTORS):
        if name == "__class__":
            return type(value)
        if name == "__dict__":
            return _whole_dict(o, value)
        found = getattr(value, name, MISSING)
        if not o.is_fresh(value):
            found = o.read("attr", value, name, found)
            return getattr(value, name) if found is MISSING else found
        if isinstance(found, tuple):
            for each in found:
                if isinstance(each, Tensor):
                    o.make(each)
        return getattr(value, name) if found is MISSING else found
    how = lookup(kind, "__get__")
    if isinstance(how, types.FunctionType):
        o.note_class(kind, "__get__")
        return o.call(how, raw, value, cls)
    if how is MISSING:
        return o.see(raw)
    if kind is _TUPLE_FIELD:
        return o.see(getattr(value, name))
    o.stop(f"it reads {name} of a {cls.__name__} through a {kind.__name__}")
    return getattr(value, name)


def _whole_dict(o: Observer, value: Any) -> Any:
    own = own_dict(value)
    if own is None:
        return value.__dict__
    if o.is_fresh(value):
        o.make(own)
    else:
        o.pin(value)
        o.note("vars", value, None, own)
    return own


def _bound(o: Observer, value: Any, cls: type, name: str, raw: Any) -> Any:
    """Return what a class has under a name, as its instance gives it."""
    kind = type(raw)
    if kind is types.FunctionType:
        return types.MethodType(raw, value)
    if kind is staticmethod:
        return o.see(raw.__func__)
    if kind is classmethod:
        if isinstance(raw.__func__, types.FunctionType):
            return types.MethodType(raw.__func__, cls)
        return raw.__get__(value, cls)
    if isinstance(raw, (*_C_METHODS, types.BuiltinFunctionType)):
        return getattr(value, name)
    if kind is functools.cached_property:
        found = o.call(raw.func, value)
        own = own_dict(value)
        if own is not None:
            o.set_item(found, own, raw.attrname)
        return found
    how = lookup(kind, "__get__")
    if how is MISSING:
        return o.see(raw)
    if isinstance(how, types.FunctionType):
        o.note_class(kind, "__get__")
        return o.call(how, raw, value, cls)
    o.stop(f"it reads {name} of a {cls.__name__}, a {kind.__name__}")
    return getattr(value, name)


def _of_module(o: Observer, module: types.ModuleType, name: str) -> Any:
    own = module.__dict__
    if name == "__dict__":
        return own
    if name in own:
        return o.read("item", own, name, own[name])
    fallback = own.get("__getattr__")
    ours = str(own.get("__name__")).partition(".")[0] == _PACKAGE
    if fallback is not None and not ours:
        o.note("item", own, name, MISSING)
        o.note("item", own, "__getattr__", fallback)
        return o.call(fallback, name)
    # What this package loads when it is first asked for does not change.
    with o.trust():
        found = getattr(module, name)
    o.note("item", own, name, own.get(name, MISSING))
    return o.see(found)


_PACKAGE = __name__.partition(".")[0]
_OF_TYPES = ("__name__", "__qualname__", "__module__", "__doc__", "__mro__", "__bases__", "__base__")


def _of_class(o: Observer, cls: Any, name: str) -> Any:
    meta = type(cls)
    if name == "__dict__":
        o.stop(f"it reads the __dict__ of class {cls.__name__}")
        return cls.__dict__
    if name == "__class__":
        return meta
    if name in _OF_TYPES:
        found = getattr(cls, name)
        o.note("attr", cls, name, found)
        return found
    if isinstance(lookup(meta, "__getattribute__"), types.FunctionType):
        o.stop(f"class {cls.__name__} has a metaclass with its own __getattribute__")
        return getattr(cls, name)
    o.note_class(meta, name)
    ruled = lookup(meta, name)
    if ruled is not MISSING and lookup(type(ruled), "__set__") is not MISSING:
        return _by_descriptor(o, cls, meta, name, ruled)
    o.note_class(cls, name)
    raw = lookup(cls, name)
    if raw is not MISSING:
        return _of_class_itself(o, cls, name, raw)
    if ruled is not MISSING:
        return _bound(o, cls, meta, name, ruled)
    o.note_class(meta, "__getattr__")
    fallback = lookup(meta, "__getattr__")
    return o.call(fallback, cls, name) if isinstance(fallback, types.FunctionType) else getattr(cls, name)


def _of_class_itself(o: Observer, cls: Any, name: str, raw: Any) -> Any:
    """Return what a class has under a name, as the class gives it."""
    kind = type(raw)
    if kind is types.FunctionType or kind is property:
        return raw
    if kind is staticmethod:
        return o.see(raw.__func__)
    if kind is classmethod:
        return types.MethodType(raw.__func__, cls) if isinstance(raw.__func__, types.FunctionType) else raw.__get__(None, cls)
    if isinstance(raw, (*_C_METHODS, *_C_DESCRIPTORS, types.BuiltinFunctionType)):
        return getattr(cls, name)
    how = lookup(kind, "__get__")
    if how is MISSING:
        return o.see(raw)
    if isinstance(how, types.FunctionType):
        o.note_class(kind, "__get__")
        return o.call(how, raw, None, cls)
    o.stop(f"it reads {name} of class {cls.__name__}, a {kind.__name__}")
    return getattr(cls, name)


def _of_super(o: Observer, value: Any, name: str) -> Any:
    if name == "__class__":
        return super
    start, owner, own = value.__self_class__, value.__thisclass__, value.__self__
    order = start.__mro__
    for each in order[order.index(owner) + 1 :]:
        mutable = class_dict(each)
        if mutable is not None:
            o.note("item", mutable, name, mutable.get(name, MISSING))
        raw = each.__dict__.get(name, MISSING)
        if raw is MISSING:
            continue
        if class_dict(start) is not None:
            o.note("attr", start, "__mro__", order)
        if isinstance(own, type) and isinstance(raw, types.FunctionType):
            # `super().__new__`, or a function of a class asked for through a class method.
            return raw if own is start else types.MethodType(raw, own)
        if type(raw) is property:
            return o.call(raw.fget, own)
        if isinstance(raw, (*_C_DESCRIPTORS, *_C_METHODS, types.BuiltinFunctionType)):
            return getattr(value, name)
        return _bound(o, own, start, name, raw)
    return getattr(value, name)


def set_attr(o: Observer, new: Any, value: Any, name: str) -> None:
    """Do `setattr(value, name, new)`, observed."""
    cls = type(value)
    if isinstance(value, types.ModuleType):
        o.set_item(new, value.__dict__, name)
        return
    if isinstance(value, Tensor):
        _set_of_tensor(o, new, value, name)
        return
    if isinstance(value, type):
        if not o.is_fresh(value) and not matches(value.__dict__.get(name, MISSING), new):
            o.stop(f"it changes class {value.__name__}")
        setattr(value, name, new)
        return
    o.note_type(value)
    o.note_class(cls, "__setattr__")
    how = lookup(cls, "__setattr__")
    if isinstance(how, types.FunctionType):
        o.call(how, value, name, new)
        return
    if o.is_fresh(value) and isinstance(value, _core._FunctionBase):
        setattr(value, name, new)
        return
    if how is not object.__setattr__ and not isinstance(value, (BaseException, threading.local, types.SimpleNamespace)):
        o.stop(f"it sets {name} of a {cls.__name__}")
        setattr(value, name, new)
        return
    plain_set_attr(o, new, value, name)


def plain_set_attr(o: Observer, new: Any, value: Any, name: str) -> None:
    """Do `object.__setattr__(value, name, new)`, observed."""
    cls = type(value)
    o.note_class(cls, name)
    raw = lookup(cls, name)
    kind = type(raw)
    if isinstance(raw, property) and raw.fset is not None:
        o.call(raw.fset, value, new)
        return
    how = lookup(kind, "__set__") if raw is not MISSING else MISSING
    own = own_dict(value)
    if how is not MISSING:
        if isinstance(how, types.FunctionType):
            o.note_class(kind, "__set__")
            o.call(how, raw, value, new)
            return
        if o.is_fresh(value) or not isinstance(raw, types.MemberDescriptorType):
            if not o.is_fresh(value) and not isinstance(value, BaseException):
                o.stop(f"it sets {name} of a {cls.__name__}")
            object.__setattr__(value, name, new)
            return
        if not o.is_new("attr", value, name, getattr(value, name, MISSING), new):
            o.note("attr", value, name, new)
        else:
            o.store("set_attr", value, name, new)
        object.__setattr__(value, name, new)
        return
    if own is None or isinstance(value, types.FunctionType):
        if not o.is_fresh(value):
            o.stop(f"it sets {name} of a {cls.__name__}")
        object.__setattr__(value, name, new)
        return
    if o.is_fresh(value):
        object.__setattr__(value, name, new)
        return
    o.note("vars", value, None, own)
    o.set_item(new, own, name)


def _set_of_tensor(o: Observer, new: Any, value: Any, name: str) -> None:
    o.use(value)
    if name == "data" and isinstance(new, Tensor) and _is_same_memory(value, new):
        return  # `p.data -= …` has written already
    if name != "grad" and not o.is_fresh(value):
        if not (name == "requires_grad" and value.requires_grad is new):
            o.stop(f"it sets {name} of a tensor that is older than the call")
    setattr(value, name, new)


def _is_same_memory(value: Tensor, other: Tensor) -> bool:
    if value.layout is not strided or other.layout is not strided or value.dtype is not other.dtype:
        return False
    same = value.shape == other.shape and value.stride() == other.stride() and value.storage_offset() == other.storage_offset()
    same = same and value.is_conj() == other.is_conj() and value.is_neg() == other.is_neg()
    return same and value._storage_id() == other._storage_id()


def del_attr(o: Observer, value: Any, name: str) -> None:
    """Do `delattr(value, name)`, observed."""
    cls = type(value)
    o.note_type(value)
    o.note_class(cls, "__delattr__")
    how = lookup(cls, "__delattr__")
    if isinstance(how, types.FunctionType):
        o.call(how, value, name)
        return
    if not o.is_fresh(value):
        o.stop(f"it deletes {name} of a {cls.__name__}")
    delattr(value, name)
