"""Ways to change what a compiled function reads: each case gives a function of a tensor, and changes to make between its calls."""

import collections
import dataclasses
import enum
import functools
import operator
import types

import gradiron as torch
from gradiron import nn

CASES = []


def case(build):
    """Register a function that returns `(f, change, …)`: each change is made between calls of `f`."""
    CASES.append(build)
    return build


G_INT, G_STR, G_TUPLE, G_NONE, G_FLOAT, G_BOOL = 2, "a", (1, 2), None, 0.5, True
G_LIST, G_DICT, G_SET = [1, 2], {"a": 1}, {1, 2}
G_TENSOR = torch.ones(3)


def g_helper(x):
    return x + 1


def g_other(x):
    return x - 1


def setter(owner, name, value):
    """A change: `owner.name = value`."""
    return lambda: setattr(owner, name, value)


def global_setter(name, value):
    def change():
        globals()[name] = value

    return change


def global_case(name, read, values):
    def build():
        old = globals()[name]
        changes = [global_setter(name, value) for value in values]
        return read, *changes, global_setter(name, old)

    build.__name__ = f"global_{name}_{len(CASES)}"
    CASES.append(build)


global_case("G_INT", lambda x: x * G_INT, [3, 2.0, True])
global_case("G_STR", lambda x: x + 1 if G_STR == "a" else x - 1, ["b", "a"])
global_case("G_TUPLE", lambda x: x * G_TUPLE[1], [(1, 5), (1, 5.0)])
global_case("G_NONE", lambda x: x if G_NONE is None else x * 2, [0, None, ""])
global_case("G_FLOAT", lambda x: x * G_FLOAT, [0.25, -0.0, 0.0])
global_case("G_BOOL", lambda x: x * 2 if G_BOOL else x, [False, 1, []])
global_case("G_LIST", lambda x: x * sum(G_LIST), [[5], [1, 2]])
global_case("G_TENSOR", lambda x: x * G_TENSOR, [torch.full((3,), 2.0), torch.ones(1), torch.ones(3, dtype=torch.float64)])
global_case("g_helper", lambda x: g_helper(x), [g_other])
global_case("len", lambda x: x * len(G_LIST), [lambda y: 7]) if "len" in globals() else None


@case
def builtin_shadowed_by_a_global():
    def f(x):
        return x * max(1, 3)

    return f, global_setter("max", min), lambda: globals().pop("max", None)


@case
def builtin_replaced():
    import builtins

    old = builtins.sum

    def f(x):
        return x * sum((1, 2))

    return f, setter(builtins, "sum", lambda _: 9), setter(builtins, "sum", old)


@case
def list_appended():
    own = [1, 2]

    def f(x):
        return x * sum(own)

    return f, lambda: own.append(5), own.pop, own.clear


@case
def list_element():
    own = [1, 2, 3]

    def f(x):
        return x * own[1]

    return f, lambda: own.__setitem__(1, 7), own.reverse, lambda: own.insert(0, 9)


@case
def list_last_element():
    own = [1, 2, 3]

    def f(x):
        return x * own[-1]

    return f, lambda: own.append(9), lambda: own.__delitem__(0)


@case
def list_slice():
    own = [1, 2, 3]

    def f(x):
        return x * sum(own[:2])

    return f, lambda: own.__setitem__(1, 7), lambda: own.__setitem__(slice(0, 1), [4, 4])


@case
def list_length():
    own = [1, 2, 3]

    def f(x):
        return x * len(own)

    return f, own.pop, lambda: own.extend([1, 2])


@case
def list_truth():
    own = [1]

    def f(x):
        return x + 1 if own else x - 1

    return f, own.clear, lambda: own.append(0)


@case
def list_of_lists():
    own = [[1], [2, 3]]

    def f(x):
        for row in own:
            for value in row:
                x = x + value
        return x

    return f, lambda: own[1].append(4), lambda: own[0].__setitem__(0, 8), lambda: own.append([1])


@case
def list_unpacked():
    own = [1, 2]

    def f(x):
        a, b = own
        return x * a + b

    return f, lambda: own.__setitem__(0, 4), own.reverse


@case
def list_starred():
    own = [1, 2]

    def f(x):
        return x * max(*own)

    return f, lambda: own.append(6), own.pop


@case
def list_contains():
    own = [1, 2]

    def f(x):
        return x + 1 if 3 in own else x

    return f, lambda: own.append(3), own.pop


@case
def list_comprehension():
    own = [1, 2]

    def f(x):
        return x * sum([i * i for i in own if i > 1])

    return f, lambda: own.append(3), lambda: own.__setitem__(0, 5)


@case
def list_compared():
    own = [1, 2]

    def f(x):
        return x + 1 if own == [1, 2] else x

    return f, lambda: own.append(3), own.pop


@case
def list_added():
    own = [1, 2]

    def f(x):
        return x * sum(own + [3])

    return f, lambda: own.append(3), own.pop


@case
def list_copied():
    own = [1, 2]

    def f(x):
        mine = list(own)
        mine.append(4)
        return x * sum(mine)

    return f, lambda: own.append(3), own.pop


@case
def list_sorted():
    own = [3, 1]

    def f(x):
        return x * sorted(own)[0]

    return f, lambda: own.append(0), own.pop


@case
def list_joined():
    own = ["a", "b"]

    def f(x):
        return x * len("-".join(own))

    return f, lambda: own.append("cc"), own.clear


@case
def list_of_tensors_stacked():
    own = [torch.ones(3), torch.ones(3)]

    def f(x):
        return x * torch.stack(own).sum(0)

    return f, lambda: own.append(torch.ones(3)), lambda: own.__setitem__(0, torch.full((3,), 5.0))


@case
def list_shown():
    own = [1, 2]

    def f(x):
        return x * len(f"{own}")

    return f, lambda: own.append(300), own.clear


@case
def dict_item():
    own = {"a": 1, "b": 2}

    def f(x):
        return x * own["a"]

    return f, lambda: own.update(a=5), lambda: own.update(a=1, c=2)


@case
def dict_get():
    own = {}

    def f(x):
        return x * own.get("a", 3)

    return f, lambda: own.update(a=5), own.clear


@case
def dict_contains():
    own = {}

    def f(x):
        return x + 1 if "a" in own else x

    return f, lambda: own.update(a=5), own.clear


@case
def dict_keys():
    own = {"a": 1}

    def f(x):
        for key in own:
            x = x + len(key)
        return x

    return f, lambda: own.update(bb=5), lambda: own.pop("a")


@case
def dict_values():
    own = {"a": 1}

    def f(x):
        return x * sum(own.values())

    return f, lambda: own.update(a=5), lambda: own.update(b=5)


@case
def dict_items():
    own = {"a": 1}

    def f(x):
        for key, value in own.items():
            x = x * value + len(key)
        return x

    return f, lambda: own.update(a=5), lambda: own.update(bb=5), own.clear


@case
def dict_length():
    own = {"a": 1}

    def f(x):
        return x * len(own)

    return f, lambda: own.update(b=5), own.clear


@case
def dict_truth():
    own = {}

    def f(x):
        return x + 1 if own else x

    return f, lambda: own.update(b=5), own.clear


@case
def dict_copy():
    own = {"a": 1}

    def f(x):
        mine = own.copy()
        return x * mine["a"]

    return f, lambda: own.update(a=5), lambda: own.update(a=6)


@case
def dict_unpacked():
    own = {"other": 2.0}

    def f(x):
        return torch.mul(x, **own)

    return f, lambda: own.update(other=3.0), lambda: own.update(other=4.0)


@case
def dict_merged():
    own = {"a": 2}

    def f(x):
        return x * {**own, "b": 1}["a"]

    return f, lambda: own.update(a=3), lambda: own.update(a=4)


@case
def dict_by_object():
    class Key:
        pass

    key = Key()
    own = {key: 2}

    def f(x):
        return x * own[key]

    return f, lambda: own.update({key: 3}), lambda: own.update({key: 4})


@case
def default_dict():
    own = collections.defaultdict(int, a=2)

    def f(x):
        return x * own["a"]

    return f, lambda: own.update(a=3), lambda: own.update(a=4)


@case
def ordered_dict():
    own = collections.OrderedDict(a=1, b=2)

    def f(x):
        for value in own.values():
            x = x * 2 + value
        return x

    return f, lambda: own.move_to_end("a"), lambda: own.pop("b")


@case
def set_contains():
    own = {1}

    def f(x):
        return x + 1 if 2 in own else x

    return f, lambda: own.add(2), lambda: own.discard(2)


@case
def set_length():
    own = {1}

    def f(x):
        return x * len(own)

    return f, lambda: own.add(2), own.clear


@case
def frozen_set():
    class A:
        own = frozenset([1])

    def f(x):
        return x + 1 if 2 in A.own else x

    return f, setter(A, "own", frozenset([2])), setter(A, "own", frozenset())


@case
def closure_variable():
    factor = 2

    def f(x):
        return x * factor

    def change(value):
        nonlocal factor
        factor = value

    return f, lambda: change(3), lambda: change(3.0), lambda: change(True)


@case
def closure_function():
    def inner(x):
        return x + 1

    def f(x):
        return inner(x)

    def change():
        nonlocal inner
        inner = g_other

    return f, change


@case
def closure_of_a_closure():
    factor = 2

    def inner(x):
        return x * factor

    def f(x):
        return inner(x)

    def change(value):
        nonlocal factor
        factor = value

    return f, lambda: change(3), lambda: change(4)


@case
def closure_cell_contents():
    factor = 2

    def f(x):
        return x * factor

    return f, setter(f.__closure__[0], "cell_contents", 5)


class Plain:
    def __init__(self, **values):
        self.__dict__.update(values)


@case
def attribute():
    own = Plain(a=2)

    def f(x):
        return x * own.a

    return f, setter(own, "a", 3), setter(own, "a", 3.5), lambda: own.__dict__.update(a=9)


@case
def attribute_of_an_attribute():
    own = Plain(a=Plain(b=2))

    def f(x):
        return x * own.a.b

    return f, setter(own.a, "b", 3), setter(own, "a", Plain(b=4))


@case
def attribute_falls_to_its_class():
    class A:
        a = 2

    own = A()

    def f(x):
        return x * own.a

    return f, setter(own, "a", 3), lambda: own.__dict__.clear(), setter(A, "a", 5)


@case
def attribute_of_a_base_class():
    class A:
        a = 2

    class B(A):
        pass

    own = B()

    def f(x):
        return x * own.a

    return f, setter(A, "a", 3), setter(B, "a", 4), lambda: delattr(B, "a")


@case
def attribute_dict_replaced():
    own = Plain(a=2)

    def f(x):
        return x * own.a

    return f, setter(own, "__dict__", {"a": 4})


@case
def class_replaced():
    class A:
        def go(self, x):
            return x + 1

    class B:
        def go(self, x):
            return x - 1

    own = A()

    def f(x):
        return own.go(x)

    return f, setter(own, "__class__", B)


@case
def bases_replaced():
    class Root:
        pass

    class A(Root):
        a = 2

    class B(Root):
        a = 3

    class C(A):
        pass

    own = C()

    def f(x):
        return x * own.a

    return f, setter(C, "__bases__", (B,))


@case
def method_replaced():
    class A:
        def go(self, x):
            return x + 1

    own = A()

    def f(x):
        return own.go(x)

    return f, setter(A, "go", lambda self, x: x - 1), setter(own, "go", lambda x: x * 5)


@case
def method_code_replaced():
    class A:
        def go(self, x):
            return x + 1

    own = A()

    def f(x):
        return own.go(x)

    def other(self, x):
        return x - 1

    return f, setter(A.go, "__code__", other.__code__)


@case
def function_code_replaced():
    def inner(x):
        return x + 1

    def f(x):
        return inner(x)

    return f, setter(inner, "__code__", g_other.__code__)


@case
def own_code_replaced():
    def f(x):
        return x + 1

    return f, setter(f, "__code__", g_other.__code__)


@case
def defaults_replaced():
    def inner(x, k=2):
        return x * k

    def f(x):
        return inner(x)

    return f, setter(inner, "__defaults__", (3,)), setter(inner, "__defaults__", (4,))


@case
def keyword_defaults_replaced():
    def inner(x, *, k=2):
        return x * k

    def f(x):
        return inner(x)

    return f, setter(inner, "__kwdefaults__", {"k": 3}), lambda: inner.__kwdefaults__.update(k=4)


@case
def own_defaults_replaced():
    def f(x, k=2):
        return x * k

    return f, setter(f, "__defaults__", (3,))


@case
def mutable_default():
    def inner(x, k=[2]):  # noqa: B006
        return x * k[0]

    def f(x):
        return inner(x)

    return f, lambda: inner.__defaults__[0].__setitem__(0, 5)


@case
def function_attribute():
    def inner(x):
        return x * inner.k

    inner.k = 2

    def f(x):
        return inner(x)

    return f, setter(inner, "k", 3)


@case
def property_of_a_class():
    class A:
        value = 2

        @property
        def p(self):
            return self.value

    own = A()

    def f(x):
        return x * own.p

    return f, setter(own, "value", 3), setter(A, "p", property(lambda self: 7)), setter(A, "p", 9)


@case
def cached_property():
    class A:
        @functools.cached_property
        def p(self):
            return 2

    own = A()

    def f(x):
        return x * own.p

    return f, lambda: own.__dict__.update(p=5), lambda: own.__dict__.pop("p")


@case
def getattr_of_a_class():
    class A:
        def __init__(self):
            self.store = {"a": 2}

        def __getattr__(self, name):
            return self.store[name]

    own = A()

    def f(x):
        return x * own.a

    return f, lambda: own.store.update(a=3), setter(own, "a", 4), setter(A, "a", property(lambda self: 6))


@case
def getattr_of_a_class_replaced():
    class A:
        def __getattr__(self, name):
            return 2

    own = A()

    def f(x):
        return x * own.a

    return f, setter(A, "__getattr__", lambda self, name: 3)


@case
def slots():
    class A:
        __slots__ = ("a",)

    own = A()
    own.a = 2

    def f(x):
        return x * own.a

    return f, setter(own, "a", 3), setter(own, "a", 4)


@case
def static_method():
    class A:
        @staticmethod
        def go(x):
            return x + 1

    def f(x):
        return A.go(x)

    return f, setter(A, "go", staticmethod(g_other))


@case
def class_method():
    class A:
        k = 2

        @classmethod
        def go(cls, x):
            return x * cls.k

    class B(A):
        pass

    def f(x):
        return B.go(x)

    return f, setter(A, "k", 3), setter(B, "k", 4), setter(A, "go", classmethod(lambda cls, x: x))


@case
def super_method():
    class A:
        def go(self, x):
            return x + 1

    class B(A):
        def go(self, x):
            return super().go(x) * 2

    own = B()

    def f(x):
        return own.go(x)

    return f, setter(A, "go", lambda self, x: x - 1), setter(A, "go", lambda self, x: x - 2)


@case
def descriptor():
    class Twice:
        k = 2

        def __get__(self, owner, cls):
            return self.k

    class A:
        d = Twice()

    own = A()

    def f(x):
        return x * own.d

    return f, setter(Twice, "k", 3), setter(A.__dict__["d"], "k", 4), setter(Twice, "__get__", lambda *_: 5)


@case
def instance_called():
    class A:
        k = 2

        def __call__(self, x):
            return x * self.k

    own = A()

    def f(x):
        return own(x)

    return f, setter(own, "k", 3), setter(A, "__call__", lambda self, x: x)


@case
def instance_made():
    class A:
        k = 2

        def __init__(self):
            self.k = self.k + 1

    def f(x):
        return x * A().k

    return f, setter(A, "k", 3), setter(A, "__init__", lambda self: None)


@case
def instance_made_by_new():
    class A:
        k = 2

        def __new__(cls):
            made = object.__new__(cls)
            made.v = cls.k
            return made

    def f(x):
        return x * A().v

    return f, setter(A, "k", 3)


@case
def operator_of_a_class():
    class A:
        k = 2

        def __add__(self, x):
            return x + self.k

        def __rmul__(self, x):
            return x * self.k

    own = A()

    def f(x):
        return (own + 1) * (3 * own) * x

    return f, setter(own, "k", 3), setter(A, "__add__", lambda self, x: 0), setter(A, "__rmul__", lambda self, x: 1)


@case
def comparison_of_a_class():
    class A:
        k = 2

        def __eq__(self, other):
            return self.k == other

        def __lt__(self, other):
            return self.k < other

        __hash__ = None

    own = A()

    def f(x):
        return x + (own == 2) * 4 + (own < 2)

    return f, setter(own, "k", 1), setter(A, "__eq__", lambda self, other: True)


@case
def comparison_without_a_method():
    class A:
        pass

    own = A()

    def f(x):
        return x + (own == 2)

    return f, setter(A, "__eq__", lambda self, other: True)


@case
def truth_of_a_class():
    class A:
        on = True

        def __bool__(self):
            return self.on

    own = A()

    def f(x):
        return x + 1 if own else x

    return f, setter(own, "on", False), setter(A, "__bool__", lambda self: True)


@case
def truth_without_a_method():
    class A:
        pass

    own = A()

    def f(x):
        return x + 1 if own else x

    return f, setter(A, "__bool__", lambda self: False)


@case
def length_of_a_class():
    class A:
        n = 2

        def __len__(self):
            return self.n

    own = A()

    def f(x):
        return x * len(own)

    return f, setter(own, "n", 3), setter(A, "__len__", lambda self: 4)


@case
def item_of_a_class():
    class A:
        n = 2

        def __getitem__(self, key):
            return self.n + key

    own = A()

    def f(x):
        return x * own[1]

    return f, setter(own, "n", 3), setter(A, "__getitem__", lambda self, key: key)


@case
def iteration_of_a_class():
    class A:
        def __init__(self):
            self.values = [1, 2]

        def __iter__(self):
            return iter(self.values)

    own = A()

    def f(x):
        for value in own:
            x = x * 2 + value
        return x

    return f, lambda: own.values.append(3), setter(A, "__iter__", lambda self: iter((5,)))


@case
def context_of_a_class():
    class A:
        n = 2

        def __enter__(self):
            return self.n

        def __exit__(self, *error):
            return False

    own = A()

    def f(x):
        with own as n:
            return x * n

    return f, setter(own, "n", 3), setter(A, "__enter__", lambda self: 4)


@case
def contains_of_a_class():
    class A:
        n = 2

        def __contains__(self, x):
            return x == self.n

    own = A()

    def f(x):
        return x + 1 if 2 in own else x

    return f, setter(own, "n", 3), setter(A, "__contains__", lambda self, x: True)


@case
def hasattr_of_an_object():
    own = Plain()

    def f(x):
        return x + 1 if hasattr(own, "a") else x

    return f, setter(own, "a", 1), lambda: delattr(own, "a")


@case
def hasattr_of_a_class():
    class A:
        pass

    own = A()

    def f(x):
        return x + 1 if hasattr(own, "a") else x

    return f, setter(A, "a", 1), lambda: delattr(A, "a")


@case
def getattr_with_default():
    own = Plain()

    def f(x):
        return x * getattr(own, "a", 2)

    return f, setter(own, "a", 1), setter(own, "a", 5)


@case
def isinstance_of_an_attribute():
    own = Plain(a=1)

    def f(x):
        return x + 1 if isinstance(own.a, int) else x - 1

    return f, setter(own, "a", 1.0), setter(own, "a", True)


@case
def type_of_an_attribute():
    class A:
        pass

    class B:
        pass

    own = Plain(a=A())

    def f(x):
        return x + 1 if type(own.a) is A else x - 1

    return f, setter(own.a, "__class__", B), setter(own, "a", A())


@case
def isinstance_by_metaclass():
    class Meta(type):
        answer = True

        def __instancecheck__(cls, other):
            return cls.answer

    class A(metaclass=Meta):
        pass

    own = Plain()

    def f(x):
        return x + 1 if isinstance(own, A) else x - 1

    return f, setter(Meta, "answer", False), setter(A, "answer", True)


@case
def metaclass_attribute():
    class Meta(type):
        a = 2

    class A(metaclass=Meta):
        pass

    def f(x):
        return x * A.a

    return f, setter(Meta, "a", 3), setter(A, "a", 4)


@case
def class_name():
    class A:
        pass

    def f(x):
        return x * len(A.__name__)

    return f, setter(A, "__name__", "Longer")


@case
def vars_of_an_object():
    own = Plain(a=2)

    def f(x):
        return x * vars(own)["a"] + len(own.__dict__)

    return f, setter(own, "a", 3), setter(own, "b", 3)


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


# Modules.


def layer_case(change_of):
    def build():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Dropout(0.0), nn.Linear(3, 3))

        def f(x):
            y = model(x)
            return y.detach() * (2 if y.requires_grad else 3)

        return f, *change_of(model)

    build.__name__ = "module_" + change_of.__name__
    CASES.append(build)
    return build


@layer_case
def parameter_replaced(model):
    return setter(model[0], "weight", nn.Parameter(torch.eye(3))), setter(model[0], "bias", None)


@layer_case
def parameter_filled(model):
    return lambda: model[0].weight.data.fill_(0.5), lambda: model[0].bias.detach().mul_(2)


@layer_case
def data_replaced(model):
    return setter(model[0].weight, "data", torch.eye(3) * 2), setter(model[3].weight, "data", torch.eye(3).t())


@layer_case
def data_of_another_dtype(model):
    return (lambda: model.double(),)


@layer_case
def layer_replaced(model):
    return lambda: model.__setitem__(1, nn.Tanh()), lambda: model.append(nn.Sigmoid()), lambda: model.__delitem__(2)


@layer_case
def forward_replaced(model):
    return setter(nn.ReLU, "forward", lambda self, x: x * 3), lambda: setattr(nn.ReLU, "forward", _relu_forward)


_relu_forward = nn.ReLU.forward


@layer_case
def forward_of_an_instance(model):
    return (setter(model[1], "forward", lambda x: x * 3),)


@layer_case
def training_mode(model):
    return model.eval, model.train


@layer_case
def forward_hook(model):
    handles = []
    return lambda: handles.append(model[0].register_forward_hook(lambda m, a, out: out * 2)), lambda: handles[0].remove()


@layer_case
def forward_pre_hook(model):
    return (lambda: model[3].register_forward_pre_hook(lambda m, args: (args[0] + 1,)),)


@layer_case
def global_forward_hook(model):
    handles = []
    register = nn.modules.module.register_module_forward_hook
    return lambda: handles.append(register(lambda m, a, out: out * 2)), lambda: handles[0].remove()


@layer_case
def state_loaded(model):
    other = {name: value + 1 for name, value in model.state_dict().items()}
    return lambda: model.load_state_dict(other), lambda: model.load_state_dict(other, assign=True)


@layer_case
def gradients_off(model):
    return lambda: model.requires_grad_(False), lambda: model[0].requires_grad_(True)


@layer_case
def class_of_a_layer(model):
    return (setter(model[1], "__class__", nn.Tanh),)


@layer_case
def call_replaced(model):
    old = nn.Module.__call__
    return setter(nn.Module, "__call__", lambda self, x: x * 2), setter(nn.Module, "__call__", old)


@case
def dropout_rate():
    layer = nn.Dropout(0.0)

    def f(x):
        return layer(x)

    return f, setter(layer, "p", 1.0), layer.eval


@case
def batch_norm():
    layer = nn.BatchNorm1d(3)
    layer.eval()

    def f(x):
        return layer(x.expand(2, 3)).detach()

    return (
        f,
        lambda: layer.running_mean.fill_(0.5),
        setter(layer, "eps", 0.1),
        setter(layer, "running_var", torch.full((3,), 4.0)),
    )


@case
def buffer_replaced():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.ones(3))

        def forward(self, x):
            return x * self.scale

    model = Model()

    def f(x):
        return model(x)

    return f, setter(model, "scale", torch.full((3,), 3.0)), setter(model, "scale", torch.full((1,), 4.0))


@case
def module_list():
    layers = nn.ModuleList([nn.Tanh()])

    def f(x):
        for layer in layers:
            x = layer(x)
        return x

    return f, lambda: layers.append(nn.Sigmoid()), lambda: layers.__setitem__(0, nn.ReLU())


@case
def parametrized():
    torch.manual_seed(0)
    layer = nn.Linear(3, 3)

    def f(x):
        return layer(x).detach()

    class Double(nn.Module):
        def forward(self, w):
            return w * 2

    return f, lambda: nn.utils.parametrize.register_parametrization(layer, "weight", Double())


@case
def config_dict_of_a_module():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.config = {"act": "relu", "scale": 2}

        def forward(self, x):
            x = x.relu() if self.config["act"] == "relu" else x.tanh()
            return x * self.config["scale"]

    model = Model()

    def f(x):
        return model(x)

    return f, lambda: model.config.update(act="tanh"), lambda: model.config.update(scale=3)


# Tensors.


@case
def tensor_reshaped_in_place():
    own = torch.arange(3.0)

    def f(x):
        return x * own.sum() + own.shape[0]

    return f, lambda: own.unsqueeze_(0), lambda: own.squeeze_()


@case
def tensor_shape_read():
    own = Plain(t=torch.ones(3))

    def f(x):
        return x * own.t.shape[0]

    return f, setter(own, "t", torch.ones(5)), setter(own, "t", torch.ones(5, 2))


@case
def tensor_requires_grad_read():
    own = torch.ones(3)

    def f(x):
        return x + 1 if own.requires_grad else x - 1

    return f, lambda: own.requires_grad_(True), lambda: own.requires_grad_(False)


@case
def tensor_grad_read():
    own = torch.ones(3, requires_grad=True)

    def f(x):
        return x + 1 if own.grad is None else x - 1

    return f, setter(own, "grad", torch.ones(3)), setter(own, "grad", None)


@case
def tensor_attribute():
    own = torch.ones(3)
    own.tag = 2

    def f(x):
        return x * own.tag

    return f, setter(own, "tag", 3)


@case
def tensor_identity():
    one, two = torch.ones(3), torch.ones(3)
    own = Plain(a=one, b=one)

    def f(x):
        return x + 1 if own.a is own.b else x - 1

    return f, setter(own, "b", two), setter(own, "a", two)


@case
def tensors_begin_to_share_memory():
    own = Plain(a=torch.ones(3), b=torch.ones(3))

    def f(x):
        own.a.mul_(1.0).add_(0.0)
        return x * own.b

    return f, setter(own, "b", own.a)


@case
def tensor_strides():
    own = Plain(t=torch.arange(9.0).reshape(3, 3))

    def f(x):
        return own.t @ x

    return f, setter(own, "t", torch.arange(9.0).reshape(3, 3).t())


# The thread.


@case
def grad_mode():
    own = torch.ones(3, requires_grad=True)

    def f(x):
        y = x * own
        return y.detach() * (2 if y.requires_grad else 3)

    return f, lambda: torch.set_grad_enabled(False), lambda: torch.set_grad_enabled(True)


@case
def default_dtype():
    def f(x):
        return torch.ones(3) * 0.1 + x

    return f, lambda: torch.set_default_dtype(torch.float64), lambda: torch.set_default_dtype(torch.float32)


@case
def autocast():
    own = torch.ones(3, 3)

    def f(x):
        return own @ (x * 1.001)

    switch = torch.set_autocast_enabled
    return f, lambda: switch("cpu", True), lambda: switch("cpu", False)


@case
def default_device():
    def f(x):
        return torch.zeros(3) + x

    return f, lambda: torch.set_default_device("cpu"), lambda: torch.set_default_device(None)


@case
def optimizer_options():
    p = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.5)

    def f(x):
        p.data.fill_(1.0)
        optimizer.zero_grad()
        (p * x).sum().backward()
        optimizer.step()
        return p.detach().clone()

    group = optimizer.param_groups[0]
    return (
        f,
        lambda: group.update(lr=0.25),
        lambda: group.update(weight_decay=0.5),
        lambda: group.update(maximize=True),
        lambda: optimizer.register_step_post_hook(lambda *_: p.data.add_(1)),
    )


@case
def optimizer_gets_another_parameter():
    p, q = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.5)

    def f(x):
        p.data.fill_(1.0)
        q.data.fill_(1.0)
        optimizer.zero_grad()
        (p * q * x).sum().backward()
        q.grad = q.grad.clone()
        optimizer.step()
        q.grad = None
        return p.detach() + q.detach()

    return f, lambda: optimizer.add_param_group({"params": [q]})


@case
def scheduler():
    p = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.5)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)

    def f(x):
        p.data.fill_(1.0)
        optimizer.zero_grad()
        (p * x).sum().backward()
        optimizer.step()
        return p.detach().clone()

    return f, schedule.step, schedule.step


@case
def adam_state_loaded():
    p = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.Adam([p], lr=0.5)
    p.grad = torch.ones(3)
    optimizer.step()
    saved = optimizer.state_dict()

    def f(x):
        optimizer.zero_grad()
        (p * x).sum().backward()
        before = p.detach().clone()
        optimizer.step()
        return (p.detach() - before).sign()

    return f, lambda: optimizer.load_state_dict(saved), lambda: optimizer.state.clear()


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


def used_tensor_case(change_of):
    def build():
        p = torch.full((3,), 2.0, requires_grad=True)

        def f(x):
            y = (x * p).detach()
            if p.grad is not None:
                y = y + 1
            if p.requires_grad:
                y = y * 3
            if p.is_contiguous():
                y = y - 5
            return y + p.dim()

        return f, *change_of(p)

    build.__name__ = "used_tensor_" + change_of.__name__
    CASES.append(build)
    return build


@used_tensor_case
def gets_a_gradient(p):
    return setter(p, "grad", torch.ones(3)), setter(p, "grad", None), lambda: (p * 2).sum().backward(), lambda: p.grad.zero_()


@used_tensor_case
def stops_to_require_one(p):
    return lambda: p.requires_grad_(False), lambda: p.requires_grad_(True)


@used_tensor_case
def gets_another_shape(p):
    return lambda: p.requires_grad_(False).unsqueeze_(0), lambda: p.squeeze_(0)


@used_tensor_case
def gets_other_strides(p):
    return setter(p, "data", torch.full((6,), 3.0)[::2]), setter(p, "data", torch.full((3,), 4.0))


@used_tensor_case
def gets_another_dtype(p):
    return (setter(p, "data", torch.full((3,), 3.0, dtype=torch.float64)),)
