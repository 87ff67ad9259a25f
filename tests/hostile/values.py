"""Arguments that nobody should pass, and some that one may; all drawn from a random generator with a seed."""

import math

import gradiron as T

SHAPES = [
    (),
    (0,),
    (1,),
    (2,),
    (3,),
    (3, 3),
    (2, 3),
    (2, 0, 3),
    (5, 1),
    (2, 3, 4),
    (1, 2, 3, 4),
    (4, 4),
    (17,),
    (1,) * 7,
    (2,) * 5,
]
WIDE = [(2**31, 0), (0, 2**62), (1,) * 40, (200_000,), (300, 70), (2**16 + 1,)]
DTYPES = "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128".split()
INTS = [0, 1, -1, 2, 3, -2, 4, 5, 10, 63, 64, 65, 255, 256]
HUGE = [2**15, 2**31 - 1, 2**31, -(2**31), 2**32, 2**40, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64, 10**30, -(10**30)]
FLOATS = [0.0, -0.0, 0.5, 1.0, -1.5, 2.0, 1e-320, 1e308, -1e308, math.inf, -math.inf, math.nan]
TEXTS = [
    *"sum mean none prod amax ij ij,jk->ik ...i->... floor trunc linear reflect constant cpu cuda cuda:999 meta float32 fro nuc".split(),
    *("", "\0", "a" * 10_000, "é" * 5, "->", "torch.float32", "error", "different", "contiguous_format", "channels_last"),
]


class Liar:
    """A sequence and a number that says anything of itself."""

    def __init__(self, length, have, item, number):
        self.length, self.have, self.item, self.number = length, have, item, number

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        if isinstance(i, int) and not -self.have <= i < self.have:
            raise IndexError("no such element")
        return self.item

    def __index__(self):
        return self.number

    def __float__(self):
        return float(self.number)

    def __bool__(self):
        raise ValueError("neither true nor false")

    def __repr__(self):
        return f"Liar({self.length}, {self.have}, {self.item!r}, {self.number})"


class LongTuple(tuple):
    def __len__(self):
        return 2**40


class LongList(list):
    def __len__(self):
        return 2**61


class Sub(T.Tensor):
    """A subclass of tensors."""


class Raises:
    """Whatever is asked of it, it raises."""

    def __getattr__(self, name):
        raise ZeroDivisionError(name)

    def __len__(self):
        raise ZeroDivisionError("len")

    def __getitem__(self, i):
        raise ZeroDivisionError("item")

    def __iter__(self):
        raise ZeroDivisionError("iter")

    def __index__(self):
        raise ZeroDivisionError("index")

    def __float__(self):
        raise ZeroDivisionError("float")

    def __eq__(self, other):
        raise ZeroDivisionError("eq")

    __hash__ = None

    def __repr__(self):
        return "Raises()"


def _raising(*args):
    raise ZeroDivisionError("in a function of the user's")


def _endless():
    i = 0
    while i < 10_000:
        yield T.ones(1)
        i += 1


FUNCTIONS = [
    lambda *args: args[0],
    lambda *args: args,
    lambda *args: sum(a.sum() for a in args if isinstance(a, T.Tensor)),
    lambda *args: args[0] * 2,
    lambda *args: args[0].sin().sum(),
    lambda *args: None,
    lambda *args: 1.0,
    lambda *args: (args[0].exp(), args[0]),
    lambda *args: args[0].detach(),
    lambda *args: {"a": args[0]},
    _raising,
]


class Source:
    """Draws arguments; tensors that were drawn for a call may come again, or as views of each other."""

    def __init__(self, random):
        self.random = random
        self.tensors = []

    def keep(self, made):
        """What a call made may be an argument of the next."""
        made = made if isinstance(made, (tuple, list)) else [made]
        self.tensors += [t for t in made[:4] if isinstance(t, T.Tensor) and t.numel() < 1000]

    def one(self, things):
        return things[self.random.randrange(len(things))]

    def chance(self, p):
        return self.random.random() < p

    def integer(self):
        r = self.random.random()
        return self.one(INTS) if r < 0.75 else self.one(HUGE) if r < 0.95 else self.random.randrange(-(2**63), 2**63)

    def number(self):
        r = self.random.random()
        if r < 0.45:
            return self.integer()
        if r < 0.85:
            return self.one(FLOATS)
        return self.one([True, False, 1j, complex(math.nan, math.inf), 10**400])

    def shape(self):
        return self.one(SHAPES) if self.chance(0.96) else self.one(WIDE)

    def tensor(self, shape=None, dtype=None):
        if self.tensors and shape is None and self.chance(0.3):
            t = self.one(self.tensors)
            t = t if self.chance(0.5) else self.view(t)
        else:
            t = self.fresh(self.shape() if shape is None else shape, dtype)
        self.tensors.append(t)
        return t

    def fresh(self, shape, dtype=None):
        name = dtype or (self.one(["float32", "float64", "int64"]) if self.chance(0.7) else self.one(DTYPES))
        kind = getattr(T, name)
        n = math.prod(shape)
        how = self.random.random()
        if n > 1000 or how < 0.15:
            t = T.zeros(shape, dtype=kind) if self.chance(0.5) else T.ones(shape, dtype=kind)
        elif kind.is_floating_point or kind.is_complex:
            values = [self.one(FLOATS) if how < 0.4 else self.random.uniform(-3, 3) for _ in range(n)]
            t = T.tensor(values, dtype=T.float64).to(kind).reshape(shape)
        else:
            low, high = (-9, 9) if how < 0.4 else (0, 3)
            t = T.tensor([self.random.randint(low, high) for _ in range(n)], dtype=T.int64).to(kind).reshape(shape)
        if self.chance(0.3):
            t = self.view(t)
        how = self.random.random()
        if how < 0.2 and (t.is_floating_point() or t.is_complex()):
            t = t.detach().requires_grad_()
            if how < 0.07:
                t = t * 1
            elif how < 0.1:
                t = t[...]
        elif how < 0.23:
            with T.inference_mode():
                t = t.clone()
        elif how < 0.26:
            t = T.from_numpy(t.detach().numpy()) if t.dtype != T.bfloat16 and not t.is_conj() and not t.is_neg() else t
        elif how < 0.28:
            t = t.detach().as_subclass(Sub)
        elif how < 0.30:
            t.untyped_storage()
        return t

    def view(self, t):
        """A view of any kind, or the tensor itself where that cannot be."""
        r = self.random
        makers = [
            lambda: t.transpose(-1, 0),
            lambda: t[..., :1],
            lambda: t[1:],
            lambda: t[::2],
            lambda: t.expand(self.one([2, 3, 2**16 if t.numel() < 100 else 4]), *t.shape),
            lambda: t.reshape(-1)[:1].expand(t.shape),
            lambda: t.unsqueeze(0),
            lambda: t.select(0, -1),
            lambda: t.diagonal(),
            lambda: t.as_strided((2, 2), (1, 1)),
            lambda: t.as_strided((1,), (2**62,)),
            lambda: t.as_strided((0, 5), (2**40, 2**62)),
            lambda: t.unfold(0, 2, 1),
            lambda: t.conj(),
            lambda: t.conj().imag,
            lambda: T._neg_view(t) if hasattr(T, "_neg_view") else t,
            lambda: t.real,
            lambda: t.view(T.uint8),
            lambda: t.detach(),
            lambda: t.data,
            lambda: t.unbind()[0],
            lambda: t.split(1)[-1],
        ]
        try:
            return makers[r.randrange(len(makers))]()
        except Exception:
            return t

    def sequence(self, depth=0):
        r = self.random.random()
        length = self.one([0, 1, 1, 2, 2, 3, 4, 10])
        if r < 0.35:
            items = [self.integer() for _ in range(length)]
        elif r < 0.55:
            items = [self.tensor() for _ in range(length)]
        elif r < 0.65 and depth < 3:
            items = [self.sequence(depth + 1) for _ in range(length)]
        elif r < 0.75:
            items = [self.number() for _ in range(length)]
        elif r < 0.8:
            n = self.one([2, 60, 64, 65, 130, 2000])
            items = [1.0]
            for _ in range(n):
                items = [items]
        elif r < 0.83:
            items = [1]
            items.append(items)
        elif r < 0.86:
            items = [0] * self.one([64, 65, 1000, 70_000])
        else:
            items = [self.anything(depth + 1) for _ in range(length)] if depth < 3 else []
        return items if self.chance(0.6) else tuple(items)

    def odd(self):
        """What is neither tensor nor number nor list."""
        makers = [
            lambda: None,
            lambda: ...,
            lambda: NotImplemented,
            lambda: object(),
            lambda: Liar(self.one([0, 1, 3, 2**31, 2**40, 2**62]), self.one([0, 1, 3]), self.number(), self.integer()),
            lambda: Raises(),
            lambda: LongTuple((1, 2)),
            lambda: LongList([1, 2]),
            lambda: range(self.one([0, 1, 3, 2**31, 2**62])),
            lambda: slice(
                self.one([None, 0, -1, 2**63, -(2**70)]), self.one([None, 1, -1, 2**62]), self.one([None, 1, 2, 0, -1, 2**62])
            ),
            lambda: self.one(TEXTS),
            lambda: self.one(TEXTS).encode(),
            lambda: bytearray(self.one([0, 1, 8, 9])),
            lambda: memoryview(bytearray(16)),
            lambda: {},
            lambda: {"a": self.tensor(), 2: self.number()},
            lambda: {1, 2},
            lambda: (x for x in [1, 2]),
            lambda: _endless(),
            lambda: int,
            lambda: float,
            lambda: T.Tensor,
            lambda: getattr(T, self.one(DTYPES)),
            lambda: T.device("cpu"),
            lambda: T.Size([self.one(INTS[:5] + [2**40])]),
            lambda: T.Generator(),
            lambda: T.contiguous_format,
            lambda: T.channels_last,
            lambda: T.strided,
            lambda: self.one(FUNCTIONS),
            lambda: T.finfo,
            lambda: self.array(),
            lambda: type("C", (), {})(),
            lambda: Exception("x"),
            lambda: 1 << 5000,
        ]
        return self.one(makers)()

    def array(self):
        import numpy as np

        x = np.arange(12, dtype=self.one(["<f4", "<f8", "<i8", ">f4", "u2", "?", "<c8", "S3", "O", "<M8[s]", "f2"][:9]))
        makers = [
            lambda: x,
            lambda: x.reshape(3, 4).T,
            lambda: x[::-1],
            lambda: x[::2],
            lambda: np.broadcast_to(x, (2, 12)),
            lambda: np.frombuffer(b"\0" * 17, dtype="<f4", offset=1),
            lambda: np.float64(1.5),
            lambda: np.int64(2),
            lambda: np.array(3.0),
            lambda: np.zeros((0, 3)),
            lambda: np.zeros(3, dtype=[("a", "<f4"), ("b", "u1")])["a"],
        ]
        return self.one(makers)()

    def anything(self, depth=0):
        r = self.random.random()
        if r < 0.4:
            return self.tensor()
        if r < 0.65:
            return self.number()
        if r < 0.8:
            return self.sequence(depth)
        return self.odd()

    def of_kind(self, kind):
        """What a row's parameter asks for."""
        r = self.random.random()
        if kind == "Tensor":
            return self.tensor()
        if kind == "Operand":
            return self.tensor() if r < 0.7 else self.number()
        if kind in ("Tensors", "Several"):
            like = self.shape()
            several = [self.tensor(like) if self.chance(0.7) else self.tensor() for _ in range(self.one([0, 1, 2, 3]))]
            return several if r < 0.5 else tuple(several)
        if kind == "Int":
            return self.integer()
        if kind in ("Ints", "Sizes"):
            return self.integer() if r < 0.2 else [self.integer() for _ in range(self.one([0, 1, 1, 2, 2, 3]))]
        if kind in ("Scalar", "Float"):
            return self.number()
        if kind == "Bool":
            return r < 0.5
        if kind == "DType":
            return getattr(T, self.one(DTYPES))
        if kind == "Device":
            return "cpu"
        if kind == "Generator":
            return T.Generator() if r < 0.5 else None
        if kind == "Str":
            return self.one(TEXTS)
        return self.anything()
