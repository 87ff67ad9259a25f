"""The operands of the promotion table: every dtype with a dimension and without, and Python's numbers."""

DTYPES = "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool".split()
KINDS = [f"{d}{z}" for d in DTYPES for z in ("", "()")] + ["True", "2", "2.5"]
OPS = (
    "add mul sub true_divide floor_divide remainder pow maximum eq lt logical_and bitwise_and atan2 where cat "
    "lerp copysign result_type"
).split()
UNARY = (
    "abs neg exp sin sigmoid floor round sum prod mean cumsum var any argmax max isnan logical_not bitwise_not square sqrt "
    "rsqrt "
    "reciprocal sign relu softmax logsumexp norm deg2rad nan_to_num erf trunc amax logical_not count_nonzero"
).split()
EDGES = {
    "float": [0.0, -0.0, 1.5, -1.5, 2.5, 100.7, -100.7, 65504.0, 1e-8],
    "int": [0, 1, -1, 100, -100, 127],
    "uint8": [0, 1, 100, 127, 128, 255],
    "bool": [True, False],
}


def pairs():
    return [(a, b) for a in KINDS for b in KINDS if not (a[0] in "T2" and b[0] in "T2")]


def operand(kind, T):
    if kind[0] in "T2":
        return eval(kind)
    dtype = getattr(T, kind.removesuffix("()"))
    return T.tensor(1, dtype=dtype) if kind.endswith("()") else T.ones(2, dtype=dtype)


def result(op, a, b, T):
    x, y = operand(a, T), operand(b, T)
    try:
        if op == "result_type":
            return str(T.result_type(x, y)).split(".")[-1]
        if op == "where":
            value = T.where(T.tensor([True, False]), x, y)
        elif op == "cat":
            value = T.cat([x.reshape(-1), y.reshape(-1)])
        elif op == "lerp":
            value = T.lerp(x, y, 0.5)
        elif a[0] in "T2" and op in OPERATORS:
            value = OPERATORS[op](x, y)
        else:
            value = getattr(T, op)(x, y)
    except (TypeError, RuntimeError, AttributeError) as error:
        return type(error).__name__
    return str(value.dtype).split(".")[-1]


def unary(op, kind, T):
    x = operand(kind, T)
    try:
        value = getattr(T, op)(x, 0) if op in ("softmax", "logsumexp", "cumsum") else getattr(T, op)(x)
    except (TypeError, RuntimeError, AttributeError) as error:
        return type(error).__name__
    return str(value.dtype).split(".")[-1]


def cast(a, b, T):
    family = a if a in EDGES else "float" if "float" in a else "int"
    values = [v for v in EDGES[family] if abs(v) < 1000 or (a != "float16" and "float" in b) or a == "float16" and "float" in b]
    return T.tensor(values, dtype=getattr(T, a)).to(getattr(T, b)).tolist()


OPERATORS = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "sub": lambda x, y: x - y,
    "true_divide": lambda x, y: x / y,
    "floor_divide": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "pow": lambda x, y: x**y,
    "eq": lambda x, y: x == y,
    "lt": lambda x, y: x < y,
    "bitwise_and": lambda x, y: x & y,
}
