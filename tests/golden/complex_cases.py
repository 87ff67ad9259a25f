"""What make_complex.py asks PyTorch and test_complex.py asks the library: numbers, expressions, pairs of operands."""

import cmath
import itertools
import random

# --- functions of one number, at ordinary points and on both sides of every branch cut ---

UNARY = (
    "abs angle sgn neg conj exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos tan asin acos atan "
    "sinh cosh tanh asinh acosh atanh sigmoid isnan isinf isfinite logical_not"
).split()
PARTS = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -3.0, 1e-5, 25.0, -40.0)
POINTS = [complex(re, im) for re in PARTS for im in PARTS]
# At these some part is infinite or NaN. (Other functions differ there among PyTorch's own vector widths.)
BEYOND = (
    "abs angle exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh"
).split()
EDGES = (0.0, -0.0, 1.0, -1.0, float("inf"), -float("inf"), float("nan"))
INFINITE = [complex(re, im) for re in EDGES for im in EDGES if not cmath.isfinite(complex(re, im))]
BINARY = "add sub mul div pow eq ne logical_and logical_or logical_xor".split()

# --- dtypes of results: a dtype with dimensions, a dtype without, or a Python number ---

REALS = "bool uint8 int8 int16 int32 int64 float32 float64".split()
OPERANDS = [(d, n) for d in (*REALS, "complex64", "complex128") for n in (0, 1)]
OPERANDS += [(number, None) for number in (True, 2, 1.5, 2j)]
PAIRS = [
    (a, b)
    for a, b in itertools.product(OPERANDS, OPERANDS)
    if (a[1] is not None or b[1] is not None) and any("complex" in str(x[0]) or isinstance(x[0], complex) for x in (a, b))
]
PROMOTING = ("add", "mul", "true_divide", "pow", "where")
SMALL = {"float16": "half", "bfloat16": "half"}


def promoted(lib, op, a, b):
    def operand(kind, dims):
        return kind if dims is None else lib.ones([1] * dims).to(getattr(lib, kind))

    x, y = operand(*a), operand(*b)
    try:
        if op == "where":
            result = lib.where(lib.tensor([True]), x, y)
        else:
            result = getattr(lib, op)(x, y)
    except Exception as error:
        return type(error).__name__
    return str(result.dtype).removeprefix("torch.")


# --- what is refused, and in which words ---

ONE = "add_(1j) mul_(c) fill_(1j)".split()
ERRORS = [
    *(f"T.{n}(c, c)" for n in "lt le gt ge maximum minimum fmax fmin remainder fmod floor_divide atan2 hypot copysign".split()),
    *(f"T.{n}(c, c)" for n in "heaviside xlogy bitwise_and bitwise_or bitwise_xor".split()),
    *(f"T.{n}(c)" for n in "sign floor ceil round trunc frac erf erfc lgamma digamma max min amax amin argmax argmin".split()),
    *(f"T.{n}(c)" for n in "sort argsort median msort aminmax deg2rad rad2deg bitwise_not erfinv nansum relu".split()),
    *("T.clamp(c, 0)", "T.cummax(c, 0)", "T.cummin(c, 0)", "T.topk(c, 1)", "T.kthvalue(c, 1)"),
    *("T.softmax(c, 0)", "T.log_softmax(c, 0)", "T.nn.functional.gelu(c)", "T.nn.functional.softplus(c)"),
    *("~c", "c // c", "c % c", "c & c", "c < 1", "c > 1j", "r < 1j", "float(z)", "int(z)", "z.__index__()"),
    *("r.add_(1j)", "r.mul_(c)", "r.fill_(1j)", "T.full((2,), 1j, dtype=T.float32)", "T.add(r, 1, alpha=1j)"),
    *("T.tensor([1j], dtype=T.float32)", "T.tensor(1j, dtype=T.float64)", "T.tensor([1j], dtype=T.int64)"),
    *("r.imag", "T.imag(r)", "T.view_as_real(r)", "T.view_as_complex(T.ones(3))", "T.view_as_complex(T.ones(2, 2).int())"),
    *("T.view_as_complex(T.tensor(1.))", "T.view_as_complex(T.ones(2, 2).t())", "T.view_as_complex(T.ones(2, 3)[:, :2])"),
    *("T.view_as_complex(T.ones(5)[1:3])", "T.complex(r, r.double())", "T.complex(r.int(), r)", "T.polar(r.int(), r)"),
    *("w.sum().backward()", "w.backward()", "T.autograd.grad(w.sum(), w)", "T.autograd.grad((w * w).sum(), [w])"),
    *("T.randint(5, (2,), dtype=T.complex64)", "T.arange(3, dtype=T.complex64)", "T.set_default_dtype(T.complex64)"),
    *("T.int32.to_complex()", "T.iinfo(T.complex64)", "T.mm(T.ones(2, 2), T.ones(2, 2).to(T.complex64))"),
    *("T.dot(r, c)", "c.adjoint()", "T.ones(2, requires_grad=True).data.imag"),
]


def failure(lib, text):
    """The exception of an expression: its type and its first sentence."""
    c, r = lib.tensor([1 + 2j, 3 - 4j]), lib.ones(2)
    names = {"T": lib, "c": c, "r": r, "z": lib.tensor(1 + 2j), "w": c.clone().requires_grad_()}
    try:
        eval(text, names)
    except Exception as error:
        return [type(error).__name__, str(error).split(". ")[0].split("\n")[0]]
    return None


# --- printed forms ---


def printed_cases():
    rng = random.Random(7)
    odd = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0]
    cases = []
    for _ in range(360):
        dims = rng.choice([0, 0, 1, 1, 1, 2, 2, 3])
        sizes = [rng.choice([1, 2, 3, 5, 8]) for _ in range(dims)]
        if dims and rng.random() < 0.05:
            sizes[rng.randrange(dims)] = 0
        count = 1
        for size in sizes:
            count *= size

        kinds, scales = [rng.random(), rng.random()], [10 ** rng.uniform(-7, 9), 10 ** rng.uniform(-3, 3)]

        def part(which, kinds=kinds, scales=scales):
            if rng.random() < 0.06:
                return rng.choice(odd)
            value = rng.gauss(0, 1) * scales[which]
            return float(round(value)) if kinds[which] < 0.35 else value

        case = {
            "dtype": rng.choice(["complex64", "complex64", "complex128"]),
            "shape": sizes,
            "values": [[part(0), part(1)] for _ in range(count)],
        }
        if rng.random() < 0.2:
            case["options"] = rng.choice(
                [{"precision": 2}, {"linewidth": 40}, {"threshold": 4, "edgeitems": 1}, {"sci_mode": True}, {"sci_mode": False}]
            )
        if rng.random() < 0.2:
            case["then"] = rng.choice(["requires_grad_", "exp", "conj", "real"])
        cases.append(case)
    return cases


def build(lib, case):
    values = [complex(*pair) for pair in case["values"]]
    x = lib.tensor(values, dtype=getattr(lib, case["dtype"])).reshape(case["shape"])
    if then := case.get("then"):
        x.requires_grad_()
        found = x if then == "requires_grad_" else getattr(x, then)
        x = found() if callable(found) and then not in ("requires_grad_", "real") else found
    return x


def printed(lib, case):
    lib.set_printoptions(profile="default")
    lib.set_printoptions(**case.get("options", {}))
    text = repr(build(lib, case))
    lib.set_printoptions(profile="default")
    return text
