"""Changes of modules, functions and values that a compiled function reads."""

import collections
import dataclasses
import enum
import functools
import operator
import types

import gradiron as torch
from changes import Plain, case, setter
from gradiron import nn


@case
def module_attribute():
    module = types.ModuleType("settings")
    module.k = 2

    def f(x):
        return x * module.k

    return f, setter(module, "k", 3), setter(module, "k", 4)


@case
def module_getattr():
    module = types.ModuleType("settings")
    store = {"k": 2}

    def getter(name):
        return store[name]

    module.__getattr__ = getter

    def f(x):
        return x * module.k

    return f, lambda: store.update(k=3), setter(module, "k", 4)


@case
def module_function_replaced():
    old = torch.nn.functional.relu

    def f(x):
        return nn.functional.relu(x - 1)

    return f, setter(nn.functional, "relu", lambda x: x * 3), setter(nn.functional, "relu", old)


@case
def function_of_torch_replaced():
    old = torch.exp

    def f(x):
        return torch.exp(x)

    return f, setter(torch, "exp", torch.sin), setter(torch, "exp", old)


@case
def tensor_method_replaced():
    def f(x):
        return x.relu()

    old = torch.Tensor.relu
    return f, setter(torch.Tensor, "relu", lambda self: self * 3), setter(torch.Tensor, "relu", old)


@case
def import_inside():
    import math

    old = math.pi

    def f(x):
        import math
        from math import pi

        return x * math.pi + pi

    return f, setter(math, "pi", 3), setter(math, "pi", old)


@case
def imported_module_replaced():
    import sys

    name = "module_of_changes"
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].k = 2
    other = types.ModuleType(name)
    other.k = 5

    def f(x):
        import module_of_changes

        return x * module_of_changes.k

    return f, lambda: sys.modules.update({name: other})


@case
def partial_function():
    def inner(k, x, *, by=1):
        return x * k * by

    own = Plain(p=functools.partial(inner, 2, by=3))

    def f(x):
        return own.p(x)

    return f, lambda: own.p.keywords.update(by=5), setter(own, "p", functools.partial(inner, 4))


@case
def wrapped_function():
    own = Plain(k=2)

    def decorate(function):
        @functools.wraps(function)
        def wrapper(x):
            return function(x) * own.k

        return wrapper

    @decorate
    def inner(x):
        return x + 1

    def f(x):
        return inner(x)

    return f, setter(own, "k", 3)


@case
def generator_inside():
    own = [1, 2]

    def values():
        yield from own

    def f(x):
        for value in values():
            x = x * 2 + value
        return x

    return f, lambda: own.append(3), own.reverse


@case
def key_function():
    own = Plain(sign=1)

    def key(v):
        return v * own.sign

    def f(x):
        return x * sorted([1, 2, 3], key=key)[0]

    return f, setter(own, "sign", -1)


@case
def mapped_function():
    own = Plain(k=1)

    def add(v):
        return v + own.k

    def f(x):
        return x * sum(map(add, [1, 2]))

    return f, setter(own, "k", 3)


@case
def enum_member():
    class Color(enum.Enum):
        RED = 1
        BLUE = 2

    own = Plain(color=Color.RED)

    def f(x):
        return x + 1 if own.color is Color.RED else x - 1

    return f, setter(own, "color", Color.BLUE), setter(own, "color", Color.RED)


@case
def data_class():
    @dataclasses.dataclass
    class Options:
        k: int = 2
        names: list = dataclasses.field(default_factory=lambda: [1])

    own = Options()

    def f(x):
        return x * own.k + sum(own.names)

    return f, setter(own, "k", 3), lambda: own.names.append(4)


@case
def named_tuple():
    Pair = collections.namedtuple("Pair", "a b")
    own = Plain(p=Pair(1, 2))

    def f(x):
        return x * own.p.b

    return f, setter(own, "p", Pair(1, 5)), setter(own, "p", Pair(1, 5.0))


@case
def tuple_with_a_list():
    own = Plain(p=(1, [2]))

    def f(x):
        return x * own.p[1][0]

    return f, lambda: own.p[1].__setitem__(0, 7), setter(own, "p", (1, [8]))


@case
def itemgetter():
    own = {"a": 2}

    def f(x):
        return x * operator.getitem(own, "a")

    return f, lambda: own.update(a=3)


@case
def string_method():
    own = Plain(name="ab")

    def f(x):
        return x + 1 if own.name.startswith("a") else x - 1

    return f, setter(own, "name", "b"), setter(own, "name", "aa")


@case
def dtype_attribute():
    own = Plain(kind=torch.float32)

    def f(x):
        return torch.zeros(3, dtype=own.kind) + x

    return f, setter(own, "kind", torch.float64), setter(own, "kind", torch.int64)


@case
def set_attribute_each_call():
    own = Plain(n=0, total=1)

    def f(x):
        own.last = own.total
        return x * own.last

    return f, setter(own, "total", 5), setter(own, "last", 0)


@case
def counter():
    own = Plain(n=0)

    def f(x):
        own.n += 1
        return x * own.n

    return f, setter(own, "n", 10)


@case
def nonlocal_counter():
    n = 0

    def f(x):
        nonlocal n
        n += 1
        return x * n

    return f, lambda: None, lambda: None


@case
def list_filled():
    own = []

    def f(x):
        own.append(1)
        return x * len(own)

    return f, lambda: own.clear(), lambda: None


@case
def environment_variable():
    import os

    name = "GRADIRON_TEST_OF_CHANGES"
    os.environ.pop(name, None)

    def f(x):
        return x * float(os.environ.get(name, "2"))

    return f, lambda: os.environ.update({name: "3"}), lambda: os.environ.pop(name, None)


@case
def logging_level():
    import logging

    log = logging.getLogger("gradiron.test.of.changes")

    def f(x):
        return x * 2 if log.isEnabledFor(logging.INFO) else x

    return f, lambda: log.setLevel(logging.INFO), lambda: log.setLevel(logging.ERROR)


@case
def lru_cache():
    own = Plain(k=2)

    @functools.lru_cache
    def kept():
        return own.k

    def f(x):
        return x * kept()

    return f, setter(own, "k", 3), kept.cache_clear


@case
def subclass_of_dict():
    class Table(dict):
        factor = 2

        def __getitem__(self, key):
            return super().__getitem__(key) * self.factor

    own = Table(a=2)

    def f(x):
        return x * own["a"]

    return f, lambda: own.update(a=3), setter(Table, "factor", 5)


@case
def property_that_raises():
    class A:
        @property
        def p(self):
            raise AttributeError("p")

        def __getattr__(self, name):
            return 2

    own = A()

    def f(x):
        return x * own.p

    return f, setter(A, "p", property(lambda self: 7)), setter(A, "p", 9)


@case
def thread_local():
    import threading

    own = threading.local()
    own.k = 2

    def f(x):
        return x * own.k

    return f, setter(own, "k", 3), setter(own, "k", 4)


@case
def registered_subclass():
    import abc

    class Root(abc.ABC):  # noqa: B024
        pass

    class A:
        pass

    own = Plain(a=A())

    def f(x):
        return x + 1 if isinstance(own.a, Root) else x - 1

    return f, lambda: Root.register(A)


@case
def kept_gradient():
    p = torch.ones(3, requires_grad=True)
    p.grad = torch.ones(3)

    def f(x):
        return x * p.grad

    return (
        f,
        lambda: p.grad.mul_(3),
        setter(p, "grad", torch.full((3,), 5.0)),
        setter(p, "grad", torch.ones(3, dtype=torch.float32)),
    )


@case
def number_of_hooks_of_a_tensor():
    p = torch.ones(3, requires_grad=True)
    handles = []

    def f(x):
        (grad,) = torch.autograd.grad((p * x).sum(), p)
        return grad

    return f, lambda: handles.append(p.register_hook(lambda g: g * 2)), lambda: handles[0].remove()


@case
def several_paths_to_one_tensor():
    one, two = torch.ones(3), torch.full((3,), 2.0)
    own = Plain(a=one, b=one)

    def f(x):
        own.a.mul_(2)
        out = x * own.b
        own.a.div_(2)
        return out

    return f, setter(own, "b", two), setter(own, "a", two)
