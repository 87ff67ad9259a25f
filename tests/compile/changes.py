"""Ways to change what a compiled function reads: each case gives a function of a tensor, and changes to make between its calls."""

import gradiron as torch

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


class Plain:
    def __init__(self, **values):
        self.__dict__.update(values)
