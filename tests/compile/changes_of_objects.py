"""Changes of closures, objects and classes that a compiled function reads."""

import functools

from changes import Plain, case, g_other, setter


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
