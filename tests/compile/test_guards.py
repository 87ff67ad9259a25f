"""What a captured call read of Python's objects, compared in Rust before each replay."""

import gc
import math
import types
import weakref

import pytest

from library import T

pytestmark = pytest.mark.gradiron
core = getattr(T, "_core", None)
MISSING = object()


class Plain:
    kind = "a class attribute"


def cell_of(value):
    return (lambda: value).__closure__[0]


def cases():
    """Reads with what they give, and functions that change it."""
    own, module, numbers = Plain(), types.ModuleType("m"), [1, 2.5, "three"]
    own.rate, own.shape = 0.5, (1, (2, "x"))
    module.flag, table, members = True, {"a": 1, "b": own}, {1, 2}
    holder = []
    cell = cell_of(holder)
    return {
        "type": (("type", own, None, Plain), lambda: setattr(own, "__class__", type("Other", (Plain,), {}))),
        "vars": (("vars", own, None, own.__dict__), lambda: setattr(own, "__dict__", dict(own.__dict__))),
        "item": (("item", own.__dict__, "rate", 0.5), lambda: setattr(own, "rate", 0.25)),
        "item of another type": (("item", own.__dict__, "rate", 0.5), lambda: setattr(own, "rate", True)),
        "item that goes": (("item", own.__dict__, "rate", 0.5), lambda: delattr(own, "rate")),
        "item that comes": (("item", own.__dict__, "kind", MISSING), lambda: setattr(own, "kind", 1)),
        "nested tuple": (("item", own.__dict__, "shape", (1, (2, "x"))), lambda: setattr(own, "shape", (1, (2, "y")))),
        "global": (("item", module.__dict__, "flag", True), lambda: setattr(module, "flag", 1)),
        "element": (("element", numbers, 1, 2.5), lambda: numbers.__setitem__(1, 2)),
        "element that goes": (("element", numbers, 2, "three"), numbers.pop),
        "len": (("len", numbers, None, 3), lambda: numbers.append(4)),
        "list": (("list", numbers, None, (1, 2.5, "three")), numbers.reverse),
        "list that grows": (("list", numbers, None, (1, 2.5, "three")), lambda: numbers.append(1)),
        "set": (("set", members, None, tuple(members)), lambda: members.add(3)),
        "keys": (("keys", table, None, ("a", "b")), lambda: table.__setitem__("c", 1)),
        "order of keys": (("keys", table, None, ("a", "b")), lambda: table.__setitem__("a", table.pop("a"))),
        "dict": (("dict", table, None, (("a", "b"), (1, own))), lambda: table.__setitem__("b", Plain())),
        "cell": (("cell", cell, None, holder), lambda: setattr(cell, "cell_contents", [])),
        "cell that is emptied": (("cell", cell, None, holder), lambda: delattr(cell, "cell_contents")),
        "attribute": (("attr", Plain, "__name__", "Plain"), lambda: setattr(Plain, "__name__", "Simple")),
        "attribute that comes": (("attr", own, "later", MISSING), lambda: setattr(own, "later", 0)),
    }


@pytest.mark.parametrize("name", cases())
def test_each_read_notices_its_change(name):
    read, change = cases()[name]
    guards = core.Guards([("len", [], None, 0), read], MISSING)
    assert guards.failed() is None and len(guards) == 2
    change()
    try:
        assert guards.failed() == 1
    finally:
        Plain.__name__ = "Plain"


@pytest.mark.parametrize(
    "value, other",
    [
        (1000, 1001), (1, True), (1, 1.0), (0.0, -0.0), (1.5, 1.25), (1j, 2j), (complex(0.0, 0.0), complex(0.0, -0.0)), ("ab", "ac"),
        (b"a", b"b"), (range(3), range(4)), ((1, 2), (1, 2.0)), ((1, 2), (1, 2, 3)), (frozenset((1, 2)), frozenset((1, 3))),
        (slice(1, 2), slice(1, 3)), (None, False), (..., None), (T.device("cpu"), T.device("meta")), (T.float32, T.float64),
        (T.Size((1, 2)), T.Size((1, 3))), (T.Size((1, 2)), (1, 2)), (math.nan, 1.0),
    ],
)  # fmt: skip
def test_constants_are_compared_by_value_and_type(value, other):
    own = {"key": value}
    guards = core.Guards([("item", own, "key", value)], MISSING)
    if value == value:
        own["key"] = eval(repr(value), {"torch": T, "device": T.device, "Ellipsis": ...})
        assert guards.failed() is None
    own["key"] = other
    assert guards.failed() == 0
    own["key"] = value
    assert guards.failed() is None


def test_objects_are_compared_by_identity():
    class Equal:
        def __eq__(self, other):
            raise AssertionError("nobody calls this")

        __hash__ = None

    own = {"key": (first := Equal()), "list": [1]}
    guards = core.Guards([("item", own, "key", first), ("item", own, "list", own["list"])], MISSING)
    assert guards.failed() is None
    own["list"] = [1]
    assert guards.failed() == 1
    own["key"] = Equal()
    assert guards.failed() == 0


def test_tensors_are_compared_by_kind():
    def fails(change):
        x = T.randn(3, 4, requires_grad=True)
        guards = core.Guards([("tensor", x, None, core.tensor_kind(x))], MISSING)
        assert guards.failed() is None
        change(x)
        return guards.failed() == 0

    def write(x):
        with T.no_grad():
            x.mul_(2)

    assert not fails(write)
    assert not fails(lambda x: setattr(x, "data", T.zeros(3, 4)))
    assert fails(lambda x: setattr(x, "data", T.zeros(4, 3).t()))
    assert fails(lambda x: setattr(x, "data", T.zeros(3, 5)))
    assert fails(lambda x: setattr(x, "data", T.zeros(3, 4, dtype=T.float64)))
    assert fails(lambda x: x.requires_grad_(False))
    assert fails(lambda x: x.sum().backward())
    assert fails(lambda x: x.register_hook(lambda g: g))
    hooks = []
    x = T.randn(3, requires_grad=True)
    hooks.append(x.register_hook(lambda g: g))
    guards = core.Guards([("tensor", x, None, core.tensor_kind(x))], MISSING)
    assert guards.failed() is None
    hooks.pop().remove()
    hooks.append(x.register_hook(lambda g: g * 2))
    assert guards.failed() == 0


def test_a_replay_compares_guards_first():
    x, own = T.ones(3), {"scale": 2}
    core.begin_capture(True)
    y = x * own["scale"]
    program = core.end_program([x], [y])
    guards = core.Guards([("item", own, "scale", 2)], MISSING)
    assert program.replay((x,), (), guards)[0].tolist() == [2, 2, 2]
    own["scale"] = 3
    assert program.replay((x,), (), guards) == 0
    assert isinstance(program.replay((T.ones(4),), ()), str)


def test_guards_are_collected_with_what_they_hold():
    class Owner:
        pass

    own = Owner()
    own.guards = core.Guards([("vars", own, None, own.__dict__), ("item", own.__dict__, "x", MISSING)], MISSING)
    gone = weakref.ref(own)
    assert own.guards.failed() is None
    del own
    gc.collect()
    assert gone() is None


def test_bad_reads_are_refused():
    for read, error in (
        (("nothing", 1, 2, 3), ValueError),
        (("item", [], "a", 1), TypeError),
        (("list", {}, None, ()), TypeError),
    ):
        with pytest.raises(error):
            core.Guards([read], MISSING)
