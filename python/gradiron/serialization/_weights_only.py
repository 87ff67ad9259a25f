"""A reader of pickles that runs nothing: it knows the few instructions that checkpoints need, and calls only what is listed."""

from __future__ import annotations

import pickle
import re
import struct
import warnings
from _codecs import encode
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from pickle import UnpicklingError
from typing import Any

from .. import _core, storage
from .._core import Tensor, device
from .._parameter import Parameter
from .._pickling import rebuild
from .._pickling.rebuild import _get_layout
from .._types import Size
from ._names import to_torch

Safe = Callable[..., Any] | tuple[Callable[..., Any], str]

# Nothing of these is allowed, whatever the user says.
_BLOCKED = ("sys", "os", "posix", "nt")

_user: dict[Any, None] = {}


def add_safe_globals(safe_globals: list[Safe]) -> None:
    """Marks classes and functions as safe for `weights_only` loads: each one, or a pair of it and the name in the file."""
    _user.update(dict.fromkeys(safe_globals))


def get_safe_globals() -> list[Safe]:
    """What was marked as safe."""
    return list(_user)


def clear_safe_globals() -> None:
    """Unmarks all that was marked as safe."""
    _user.clear()


class safe_globals:
    """Inside the block, the given classes and functions are safe for `weights_only` loads."""

    def __init__(self, safe_globals: list[Safe]) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        add_safe_globals(self.safe_globals)

    def __exit__(self, *error: object) -> None:
        for one in self.safe_globals:
            _user.pop(one, None)


def user_globals() -> dict[str, Any]:
    """What was marked as safe, by the names in files."""
    found: dict[str, Any] = {}
    for one in _user:
        if not isinstance(one, tuple):
            # What has no name allows nothing; a method of a class that is written in C has no module.
            if hasattr(one, "__module__") and hasattr(one, "__qualname__"):
                found[".".join(to_torch(str(one.__module__), one.__qualname__))] = one
            continue
        if len(one) != 2:
            raise ValueError(
                f"Expected tuple of length 2 (global, str of callable full path), but got tuple of length: {len(one)}"
            )
        if type(one[1]) is not str:
            raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(one[1])}")
        found[one[1]] = one[0]
    return found


# What is called in place of what a pickle names: it does the same for what checkpoints hold, and refuses the rest.


def _text(data: Any, encoding: Any = "latin1") -> bytes:
    # Other encodings may be anybody's code.
    if type(data) is not str or str(encoding).lower() not in ("latin1", "latin-1", "ascii", "utf-8", "utf8"):
        raise UnpicklingError("bytes are encoded as latin1 text, and not otherwise")
    return encode(data, encoding)


def _bytearray(*args: Any) -> bytearray:
    # A number would be a size to allocate.
    if args and type(args[0]) is not str and type(args[0]) is not bytes:
        raise UnpicklingError(f"a bytearray is made of bytes, not of {type(args[0])}")
    return bytearray(*args)


def _pairs(items: Any = ()) -> dict[Any, Any]:
    made = {}
    for key, value in items.items() if isinstance(items, dict) else items:
        _check_key(key)
        made[key] = value
    return made


def _set(items: Any = ()) -> set[Any]:
    for item in items:
        _check_key(item)
    return set(items)


def _counter(items: Any = ()) -> Counter[Any]:
    return Counter(_pairs(items))


def _ordered(items: Any = ()) -> OrderedDict[Any, Any]:
    return OrderedDict(_pairs(items))


def _tensor(*args: Any) -> Tensor:
    # Numbers would be sizes to allocate.
    if args:
        raise UnpicklingError("a tensor is made of its storage, which comes later")
    return _core.empty([0])


def _parameter(data: Any = None, requires_grad: bool = True) -> Tensor:
    if not isinstance(data, Tensor | None):
        raise UnpicklingError(f"a parameter is made of a tensor, not of {type(data)}")
    return Parameter(data, requires_grad)


def _check_key(key: Any, depth: int = 0) -> None:
    """Hashing tuples of tuples recurses without a limit of its own, and does again what they share."""
    if type(key) is tuple:
        if depth == _DEEPEST or len(key) > _WIDEST:
            raise UnpicklingError("a key of a dictionary or set is a tuple that is too deep or too long")
        for item in key:
            _check_key(item, depth + 1)


_DEEPEST, _WIDEST = 4, 64


class Allowed:
    """What names in a pickle may mean, and what a pickle may call."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {
            "collections.OrderedDict": OrderedDict,
            "collections.Counter": Counter,
            "torch.nn.parameter.Parameter": Parameter,
            "torch.serialization._get_layout": _get_layout,
            "torch.Size": Size,
            "torch.Tensor": Tensor,
            "torch.device": device,
            "_codecs.encode": encode,
            "builtins.bytearray": bytearray,
            "builtins.set": set,
            "builtins.complex": complex,
            "torch.storage.UntypedStorage": storage.UntypedStorage,
            "torch.storage.TypedStorage": storage.TypedStorage,
            "torch._tensor._rebuild_from_type_v2": rebuild._rebuild_from_type_v2,
        }
        for kind, made in storage.CLASSES.items():
            self.values[str(kind)] = kind
            self.values[f"torch.{made.__name__}"] = self.values[f"torch.cuda.{made.__name__}"] = made
        self.values |= {str(kind): kind for kind in storage.NEWER}
        rebuilders = {name: made for name, made in vars(rebuild).items() if name.startswith("_rebuild_")}
        del rebuilders["_rebuild_from_type_v2"]
        self.values |= {f"torch._utils.{name}": made for name, made in rebuilders.items()}
        same = [*rebuilders.values(), Size, device, complex, _get_layout]
        self.calls: dict[Any, Callable[..., Any]] = {
            **{made: made for made in same},
            OrderedDict: _ordered,
            Counter: _counter,
            Parameter: _parameter,
            Tensor: _tensor,
            encode: _text,
            bytearray: _bytearray,
            set: _set,
            rebuild._rebuild_from_type_v2: self._from_type,
        }
        self.users = user_globals()

    def find(self, module: str, name: str) -> Any:
        """What a name means."""
        path = f"{module}.{name}"
        if module in _BLOCKED:
            raise UnpicklingError(f"Trying to load unsupported GLOBAL {path} whose module {module} is blocked.")
        for known in (self.values, self.users):
            if path in known:
                return known[path]
        why = lacking(module, name)
        if why is not None:
            raise UnpicklingError(why)
        path = path.removeprefix("builtins.")
        raise UnpicklingError(
            f"Unsupported global: GLOBAL {path} was not an allowed global by default. Please use "
            f"`torch.serialization.add_safe_globals([{path}])` or the `torch.serialization.safe_globals([{path}])` context "
            "manager to allowlist this global if you trust this class/function."
        )

    def is_users(self, value: Any) -> bool:
        """Whether the user marked it as safe."""
        # Methods of classes are equal, and other objects each time.
        return any(value is one or (callable(value) and value == one) for one in self.users.values())

    def call(self, what: Any) -> Callable[..., Any] | None:
        """What to call where a pickle calls `what`."""
        if callable(what) and isinstance(what, Hashable) and what in self.calls:
            return self.calls[what]
        found: Callable[..., Any] | None = what if self.is_users(what) else None
        return found

    def _from_type(self, func: Any, new_type: Any, args: Any, state: Any) -> Any:
        call = self.call(func)
        if call is None or not (new_type is Tensor or self.is_users(new_type)):
            raise UnpicklingError(f"Trying to rebuild a tensor as {new_type} by unrecognized function {func}")
        return rebuild._rebuild_from_type_v2(call, new_type, args, state)


def lacking(module: str, name: str) -> str | None:
    """Whether a name is of something of PyTorch's that gradiron does not have."""
    if module == "torch._utils" and name in rebuild.MISSING:
        return f"the file holds {rebuild.MISSING[name]} (torch._utils.{name}), which gradiron does not have"
    if module == "torch" and re.fullmatch(r"uint\d+|int\d|float[48]_.*|q\w+|bits\w+|complex32|per_\w+", name):
        return f"the file holds torch.{name}, which gradiron does not have"
    return None


def _refuse(pid: Any) -> Any:
    raise UnpicklingError("unsupported persistent id encountered")


_STEPS: dict[int, Callable[[Unpickler], None]] = {}
_Step = Callable[["Unpickler"], None]


def _step(*codes: bytes) -> Callable[[_Step], _Step]:
    """Makes a method the one for these instructions."""

    def note(method: _Step) -> _Step:
        _STEPS.update((code[0], method) for code in codes)
        return method

    return note


class Unpickler:
    """Reads one pickle. What is wrong with it is an UnpicklingError."""

    def __init__(self, file: Any, *, encoding: str = "bytes") -> None:
        self._read_some: Callable[[int], bytes] = file.read
        self._read_line: Callable[[], bytes] = file.readline
        self._encoding = encoding
        self._allowed = Allowed()
        # What a storage's name stands for; to be replaced.
        self.persistent_load: Callable[[Any], Any] = _refuse
        self._memo: dict[int, Any] = {}
        self._marked: list[list[Any]] = []
        self._stack: list[Any] = []

    def load(self) -> Any:
        """The object."""
        code = self._read_some(1)
        if not code:
            raise EOFError("Ran out of input")
        stop = pickle.STOP
        try:
            while code != stop:
                step = _STEPS.get(code[0])
                if step is None:
                    raise UnpicklingError(f"Unsupported operand {code[0]}")
                step(self)
                code = self._read(1)
            return self._stack.pop()
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, struct.error, RecursionError) as error:
            why = f"{type(error).__name__}: {error}"
            raise UnpicklingError(f"the pickle data is corrupt or not a checkpoint's ({why})") from error

    def _read(self, count: int) -> bytes:
        data = self._read_some(count)
        if len(data) < count:
            raise UnpicklingError("pickle data was truncated")
        return data

    def _number(self, form: str) -> int:
        (number,) = struct.unpack(form, self._read(struct.calcsize(form)))
        return int(number)

    def _since_mark(self) -> list[Any]:
        items, self._stack = self._stack, self._marked.pop()
        return items

    @_step(pickle.PROTO)
    def _proto(self) -> None:
        protocol = self._read(1)[0]
        if protocol != 2:
            warnings.warn(
                f"Detected pickle protocol {protocol} in the checkpoint, which was not the default pickle protocol used by "
                "`torch.load` (2). The weights_only Unpickler might not support all instructions implemented by this protocol.",
                stacklevel=6,
            )

    @_step(pickle.GLOBAL)
    def _global(self) -> None:
        module, name = (self._read_line()[:-1].decode() for _ in range(2))
        module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))
        self._stack.append(self._allowed.find(module, name))

    @_step(pickle.NEWOBJ)
    def _newobj(self) -> None:
        args, made = self._stack.pop(), self._stack.pop()
        call = self._allowed.call(made)
        if call is None:
            raise UnpicklingError(
                f"Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` but got {made}"
            )
        self._stack.append(call.__new__(call, *args) if isinstance(call, type) and call is made else call(*args))

    @_step(pickle.REDUCE)
    def _reduce(self) -> None:
        args, function = self._stack.pop(), self._stack[-1]
        call = self._allowed.call(function)
        if call is None:
            owner = f" which belongs to {function.__self__}" if hasattr(function, "__self__") else ""
            raise UnpicklingError(f"Trying to call reduce for unrecognized function {function}{owner}")
        self._stack[-1] = call(*args)

    @_step(pickle.BUILD)
    def _build(self) -> None:
        state, made = self._stack.pop(), self._stack[-1]
        if type(made) is Tensor:
            # As tensors were pickled long ago.
            made.set_(rebuild._rebuild_tensor(*state))
        elif type(made) is OrderedDict:
            made.__dict__.update(state)
        elif not self._allowed.is_users(type(made)):
            raise UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got "
                f"{type(made)}"
            )
        elif hasattr(made, "__setstate__"):
            made.__setstate__(state)
        else:
            state, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
            if state:
                made.__dict__.update(state)
            for name, value in (slots or {}).items():
                setattr(made, name, value)

    @_step(pickle.APPEND)
    def _append(self) -> None:
        item, target = self._stack.pop(), self._stack[-1]
        if type(target) is not list:
            raise UnpicklingError(f"Can only append to lists, but got {type(target)}")
        target.append(item)

    @_step(pickle.APPENDS)
    def _appends(self) -> None:
        items, target = self._since_mark(), self._stack[-1]
        if type(target) is not list:
            raise UnpicklingError(f"Can only extend lists, but got {type(target)}")
        target.extend(items)

    def _set_items(self, code: str, items: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) not in (dict, OrderedDict, Counter):
            raise UnpicklingError(
                f"Can only {code} for dict, collections.OrderedDict, collections.Counter, but got {type(target)}"
            )
        for key, value in zip(items[::2], items[1::2], strict=True):
            _check_key(key)
            target[key] = value

    @_step(pickle.SETITEM)
    def _setitem(self) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._set_items("SETITEM", [key, value])

    @_step(pickle.SETITEMS)
    def _setitems(self) -> None:
        self._set_items("SETITEMS", self._since_mark())

    @_step(pickle.MARK)
    def _mark(self) -> None:
        self._marked.append(self._stack)
        self._stack = []

    @_step(pickle.TUPLE)
    def _tuple(self) -> None:
        items = tuple(self._since_mark())
        self._stack.append(items)

    def _last(self, count: int) -> None:
        if len(self._stack) < count:
            raise IndexError("pop from an empty stack")
        self._stack[-count:] = [tuple(self._stack[-count:])]

    @_step(pickle.TUPLE1)
    def _tuple1(self) -> None:
        self._last(1)

    @_step(pickle.TUPLE2)
    def _tuple2(self) -> None:
        self._last(2)

    @_step(pickle.TUPLE3)
    def _tuple3(self) -> None:
        self._last(3)

    @_step(pickle.NONE)
    def _none(self) -> None:
        self._stack.append(None)

    @_step(pickle.NEWFALSE)
    def _false(self) -> None:
        self._stack.append(False)

    @_step(pickle.NEWTRUE)
    def _true(self) -> None:
        self._stack.append(True)

    @_step(pickle.EMPTY_TUPLE)
    def _empty_tuple(self) -> None:
        self._stack.append(())

    @_step(pickle.EMPTY_LIST)
    def _empty_list(self) -> None:
        self._stack.append([])

    @_step(pickle.EMPTY_DICT)
    def _empty_dict(self) -> None:
        self._stack.append({})

    @_step(pickle.EMPTY_SET)
    def _empty_set(self) -> None:
        self._stack.append(set())

    @_step(pickle.BININT)
    def _int(self) -> None:
        self._stack.append(self._number("<i"))

    @_step(pickle.BININT1)
    def _int1(self) -> None:
        self._stack.append(self._read(1)[0])

    @_step(pickle.BININT2)
    def _int2(self) -> None:
        self._stack.append(self._number("<H"))

    @_step(pickle.LONG1)
    def _long(self) -> None:
        self._stack.append(pickle.decode_long(self._read(self._read(1)[0])))

    @_step(pickle.BINFLOAT)
    def _float(self) -> None:
        self._stack.append(struct.unpack(">d", self._read(8))[0])

    @_step(pickle.BINUNICODE)
    def _unicode(self) -> None:
        self._stack.append(str(self._read(self._number("<I")), "utf-8", "surrogatepass"))

    @_step(pickle.SHORT_BINSTRING)
    def _string(self) -> None:
        data = self._read(self._read(1)[0])
        self._stack.append(data if self._encoding == "bytes" else data.decode(self._encoding))

    @_step(pickle.BINPERSID)
    def _persistent(self) -> None:
        pid = self._stack.pop()
        if type(pid) is not tuple and type(pid) is not int:
            raise UnpicklingError(f"persistent_load id must be tuple or int, but got {type(pid)}")
        if type(pid) is tuple and pid and pid[0] not in ("storage", b"storage"):
            raise UnpicklingError(f"Only persistent_load of storage is allowed, but got {type(pid[0])}")
        self._stack.append(self.persistent_load(pid))

    @_step(pickle.BINGET)
    def _get(self) -> None:
        self._stack.append(self._memo[self._read(1)[0]])

    @_step(pickle.LONG_BINGET)
    def _long_get(self) -> None:
        self._stack.append(self._memo[self._number("<I")])

    @_step(pickle.BINPUT)
    def _put(self) -> None:
        self._memo[self._read(1)[0]] = self._stack[-1]

    @_step(pickle.LONG_BINPUT)
    def _long_put(self) -> None:
        self._memo[self._number("<I")] = self._stack[-1]


# The instructions without names: how many bytes follow each.
_PLAIN = {
    **dict.fromkeys("NEWOBJ REDUCE BUILD APPEND APPENDS SETITEM SETITEMS MARK TUPLE TUPLE1 TUPLE2 TUPLE3".split(), 0),
    **dict.fromkeys("NONE NEWFALSE NEWTRUE EMPTY_TUPLE EMPTY_LIST EMPTY_DICT EMPTY_SET BINPERSID".split(), 0),
    **dict.fromkeys("BININT1 BINGET BINPUT PROTO".split(), 1),
    **{"BININT": 4, "BININT2": 2, "BINFLOAT": 8, "LONG_BINGET": 4, "LONG_BINPUT": 4},
}


def named(file: Any) -> set[str]:
    """All names in a pickle, without making anything of them."""
    found: set[str] = set()
    follow = {getattr(pickle, name)[0]: count for name, count in _PLAIN.items()}
    while code := file.read(1):
        if code == pickle.STOP:
            return found
        if code == pickle.GLOBAL:
            module, name = (file.readline()[:-1].decode() for _ in range(2))
            module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))
            found.add(f"{module}.{name}")
        elif code == pickle.BINUNICODE:
            file.read(struct.unpack("<I", file.read(4))[0])
        elif code in (pickle.SHORT_BINSTRING, pickle.LONG1):
            file.read(file.read(1)[0])
        elif code[0] in follow:
            file.read(follow[code[0]])
        else:
            raise UnpicklingError(f"Unsupported operand {code[0]}")
    raise EOFError
