"""Small Python functions of all kinds, which must do rewritten and observed what they do as they are."""

import collections
import contextlib
import dataclasses
import functools
import itertools
import operator
import types

PROGRAMS = []


def program(*args, **kwargs):
    """Register a function, with the arguments that it is called with."""

    def keep(function):
        PROGRAMS.append((function, args, kwargs))
        return function

    return keep


@program(3)
def closures(n):
    made = [lambda x, k=k: x + k + n for k in range(3)]
    return [f(1) for f in made]


@program(4)
def nonlocals(n):
    count = 0

    def more(by=1):
        nonlocal count
        count += by
        return count

    for _ in range(n):
        more()
    return count, more(by=5)


class Base:
    scale = 2

    def __init__(self, value):
        self.value = value

    def doubled(self):
        return self.value * self.scale

    @classmethod
    def named(cls, value):
        return cls(value)

    @staticmethod
    def plain(x):
        return x + 1

    @property
    def half(self):
        return self.value / 2

    @half.setter
    def half(self, x):
        self.value = x * 2

    def __eq__(self, other):
        return isinstance(other, Base) and self.value == other.value

    __hash__ = None

    def __lt__(self, other):
        return self.value < other.value

    def __add__(self, other):
        return type(self)(self.value + (other.value if isinstance(other, Base) else other))

    def __radd__(self, other):
        return self + other

    def __len__(self):
        return self.value

    def __bool__(self):
        return self.value > 1

    def __getitem__(self, key):
        return (self.value, key)

    def __contains__(self, x):
        return x == self.value

    def __call__(self, x, *, by=1):
        return self.value * x * by

    def __iter__(self):
        return iter(range(self.value))


class Derived(Base):
    __slots__ = ("extra",)
    scale = 3

    def __init__(self, value, extra=1):
        super().__init__(value)
        self.extra = extra
        self.__private = value + 10

    def doubled(self):
        return super().doubled() + self.__private

    @classmethod
    def named(cls, value):
        made = super().named(value)
        made.extra = 7
        return made

    def __getattr__(self, name):
        if name.startswith("dyn_"):
            return name[4:]
        raise AttributeError(name)

    def __hidden(self, x=2):
        return self.value * x

    def use_hidden(self):
        return self.__hidden() + self.__hidden(x=5)


@program()
def objects():
    a, b = Derived(3), Derived.named(4)
    a.half = 7
    return a.doubled(), b.doubled(), b.extra, a.half, a.plain(1), Base.plain(2), a.dyn_x, a.use_hidden(), hasattr(a, "nope")


class Table(dict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value * 2)

    def __getitem__(self, key):
        return super().__getitem__(key) + 1

    def get(self, key, default=None):
        return super().get(key, default)


@program()
def subclasses_of_containers():
    table = Table(a=1)
    table["b"] = 5
    return table["a"], table["b"], table.get("c", 7), sorted(table), len(table), "b" in table


@program()
def operators_of_objects():
    a, b = Base(3), Base(4)
    return (
        (a + b).value,
        (1 + a).value,
        a == b,
        a != b,
        a < b,
        b > a,
        len(a),
        bool(Base(1)),
        not a,
        a[2:3],
        3 in a,
        a(2, by=3),
        [*a],
    )


@program(5)
def generators(n):
    def count(limit):
        for i in range(limit):
            got = yield i
            if got:
                yield got * 10
        return "done"

    def outer():
        result = yield from count(n)
        yield result

    one = count(3)
    first = next(one)
    return list(outer()), first, list(one), sum(i * i for i in range(n) if i % 2)


@program([3, 1, 2])
def comprehensions(xs):
    pairs = [(i, x) for i, x in enumerate(xs)]
    table = {k: v for k, v in pairs if v > 1}
    nested = [[a * b for a in xs] for b in xs]
    deep = [a + b + c for a, (b, c) in zip(xs, [(1, 2), (3, 4), (5, 6)])]
    return pairs, table, nested, {x % 2 for x in xs}, deep, [y for x in xs if (y := x * 2) > 2]


@program(0)
@program(1)
@program(2)
@program(3)
def exceptions(kind):
    log = []
    try:
        try:
            if kind == 0:
                raise ValueError("zero")
            if kind == 1:
                {}["missing"]
            if kind == 2:
                [].nothing  # noqa: B018
            log.append("fine")
        except ValueError as error:
            log.append(str(error))
        except (KeyError, AttributeError) as error:
            log.append(type(error).__name__)
            raise RuntimeError("again") from error
        else:
            log.append("else")
        finally:
            log.append("finally")
    except RuntimeError as error:
        log.append((str(error), type(error.__cause__).__name__))
    return log


@program()
def returns_in_finally():
    def inner(k):
        for i in range(5):
            try:
                if i == k:
                    return i
                if i == 1:
                    continue
                if i == 3:
                    break
            finally:
                if k == 9:
                    return "finally"  # noqa: B012
        else:
            return "else"
        return "end"

    return [inner(k) for k in (0, 1, 2, 4, 9)]


class Manager:
    def __init__(self, log, swallow=False):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("enter")
        return self.log

    def __exit__(self, kind, error, traceback):
        self.log.append(kind.__name__ if kind else None)
        return self.swallow


@contextlib.contextmanager
def managed(log):
    log.append("begin")
    try:
        yield len(log)
    finally:
        log.append("end")


@program()
def contexts():
    log = []
    with Manager(log) as same, managed(log) as n:
        same.append(n)
    with Manager(log, swallow=True):
        raise KeyError(1)
    try:
        with managed(log), Manager(log):
            raise ValueError
    except ValueError:
        log.append("caught")
    return log


@program(10)
def walrus(n):
    found = []
    while (n := n - 3) > 0:
        found.append(n)
    if (m := len(found)) and m > 2:
        found.append(m)
    return found


@program("x", 2.5, [1])
def strings(name, number, items):
    width = 8
    return (
        f"{name!r:>{width}}|{number:.2f}|{items}|{name=}",
        "{} {a}".format(1, a=2),  # noqa: UP032
        "%s" % name,  # noqa: UP031
        ",".join(map(str, items)),
    )


@program(1, 2, 3, d=4, e=5)
def star_arguments(a, *rest, d, **others):
    def inner(*args, **kwargs):
        return args, kwargs

    first, *middle, last = (a, *rest, d)
    return inner(*rest, a, **others, z=1), [*rest, *middle], {**others, "a": a}, first, middle, last


def doubling(times=2):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return [function(*args, **kwargs)] * times

        return wrapper

    return decorate


@program(3)
def decorators(x):
    @doubling(times=3)
    @doubling()
    def inner(y, /, z=1, *, w=2):
        """Its words."""
        return x + y + z + w

    return inner(1), inner(1, 2, w=5), inner.__name__, inner.__doc__, inner.__qualname__


@program([5, 4])
def assignments(xs):
    a = b = [1, 2, 3]
    a[0], c = 9, 8
    (d, [e, *f]), g = (1, (2, 3, 4)), xs
    i = 0
    i, b[i] = 2, 7
    b[1], i = 5, 0
    holder = Base(1)
    holder.value, holder.other = 3, 4
    holder.value += 2
    b[2] += 10
    b += [6]
    x: int = 3
    holder.note: int = 5
    del holder.other, b[0]
    for holder.value, b[0] in [(1, 2), (3, 4)]:
        pass
    return a, b, c, d, e, f, g, i, holder.value, x, hasattr(holder, "other")


@program(3)
def comparisons(n):
    order = []

    def say(x):
        order.append(x)
        return x

    return 1 < say(n) <= 3 < 5, say(9) < say(1) < say(2), n in (1, 3), n not in [3], None is None, n is not None, order


@program(7)
def conditions(n):
    a = n > 3 and "big" or "small"
    b = "x" if not n else "y" if n < 5 else "z"
    c = 0 or [] or None
    return a, b, c, n and 0, not (n and 1)


@program(6)
def loops(n):
    out = []
    for i in range(n):
        if i == 1:
            continue
        if i == 4:
            break
        out.append(i)
    else:
        out.append("else")
    while n:
        n -= 1
        if n == 2:
            break
    for k, v in {"a": 1, "b": 2}.items():
        out.append((k, v))
    return out, n


@program()
def library():
    return (
        list(itertools.chain([1], (2, 3))),
        functools.reduce(lambda a, b: a * b, [1, 2, 3, 4]),
        sorted(["bb", "a"], key=len),
        list(zip("ab", range(2))),
        max(3, 1), min([4, 2]), sum([1, 2], 3), any([0, 1]), all([]),
        list(map(lambda x: x + 1, [1, 2])), list(filter(None, [0, 1])), list(reversed([1, 2])),
        functools.partial(pow, 2)(5),
        isinstance(3, (int, str)), getattr(3, "nothing", "default"),
    )  # fmt: skip


@program(2)
def matching(n):
    match n:
        case 1 | 2:
            return "few"
        case None:
            return "none"
        case x if x > 5:
            return "many"
        case _:
            return "some"


def defaults_of(x, y=[1], *, z={"a": 2}):  # noqa: B006
    return x, y, z


@program()
def defaults():
    return defaults_of(1), defaults_of(1, 2, z=3)


class Counting:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if not self.n:
            raise StopIteration
        self.n -= 1
        return self.n


@program()
def iterators():
    return (
        list(Counting(3)),
        [x for x in Counting(2)],
        dict(a=1, **{"b": 2}),
        [*Counting(2)],
        next(iter([1, 2])),
        next(iter([]), "none"),
    )


def countdown(n):
    return [n, *countdown(n - 1)] if n else []


@program()
def recursion_by_a_global_name():
    return countdown(4)


@program()
def recursion():
    def fact(n):
        return 1 if n <= 1 else n * fact(n - 1)

    return fact(6)


@program()
def local_names():
    a, (b, c) = 1, (2, 3)
    return sorted(locals())


GLOBAL = 5


@program()
def global_names():
    global GLOBAL
    GLOBAL = 6
    seen = GLOBAL
    GLOBAL = 5
    return seen


@program([3, 1, 2])
def iterators_that_call(values):
    return (
        list(itertools.accumulate(values)),
        list(itertools.accumulate(values, lambda a, b: a * b)),
        list(itertools.accumulate([], initial=4)),
        list(itertools.accumulate([])),
        list(itertools.starmap(lambda a, b: a - b, [(3, 1), [5, 2]])),
    )


@program({"a": [1, 2], "b": Base(3)})
def getters(given):
    first, both = operator.itemgetter("a"), operator.itemgetter("a", "b")
    return (
        first(given),
        len(both(given)),
        operator.attrgetter("value", "half")(given["b"]),
        operator.attrgetter("value.real")(given["b"]),
    )


@program([3, -1, 2])
def orders(values):
    own = [*values]
    own.sort(key=lambda x: -x)
    words = ["ccc", "a", "bb"]
    words.sort(reverse=True)
    return own, words, min(values, key=abs), max(values, key=abs), max([], default=7, key=abs), min("bb", "a", key=len)


@program()
def containers_that_count():
    counts, lists = collections.Counter("abca"), collections.defaultdict(list)
    counts["z"] += 2
    lists["x"].append(1)
    lists["x"] += [2]
    return counts, counts.most_common(1), dict(lists), sorted(lists["y"]), hash(3), hash((1, None)) == hash((1, None))


@dataclasses.dataclass
class Settings:
    width: int
    scale: float = 2.0
    names: list = dataclasses.field(default_factory=list)
    seed: dataclasses.InitVar[int] = 5
    hidden: int = dataclasses.field(default=7, init=False)
    last: int = dataclasses.field(default=9, kw_only=True)

    def __post_init__(self, seed):
        self.names.append(seed)
        self.twice = 2 * self.width


@dataclasses.dataclass(frozen=True)
class Frozen(Base):
    value: int
    other: object = None

    def sum(self):
        return self.value + (self.other or 0)


@dataclasses.dataclass(slots=True)
class Slots:
    value: int


@program()
def data_classes():
    given = ["given"]
    one, other = Settings(1), Settings(2, 3.0, given, seed=4, last=1)
    other.names.append(one.hidden)
    return one, one.twice, other, given, Frozen(1, other=2).sum(), dataclasses.replace(one, width=5, seed=6), Slots(3)


@program()
def data_classes_called_wrongly():
    errors = []
    for args, kwargs in (((), {}), ((1, 2, 3, 4, 5, 6), {}), ((1,), {"width": 2}), ((1,), {"colour": 3})):
        try:
            Settings(*args, **kwargs)
        except TypeError as error:
            errors.append(str(error))
    return errors


@program(3)
def name_spaces(x):
    made = types.SimpleNamespace(a=x, b=[])
    made.b.append(made.a)
    made.c = 4
    return made


@program()
def stacks_of_contexts():
    left = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(KeyError))
        stack.callback(left.append, "called")
        {}["missing"]
    return left


@program([1, 2])
def bound_by_hand(values):
    return types.MethodType(lambda own, x: own + [x], values)(3)
