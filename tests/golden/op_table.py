"""Which calls `make_ops.py` records: one line an operator, arguments as Python over a few named inputs.

`name: args | args | …`. An argument list is evaluated with the inputs below in scope; `forms` are found by trying.
"""

# Inputs: a tensor's name tells its kind. Each is drawn by make_ops.py from a fixed seed and stored in the golden file.
INPUTS = """
a      float32 (2,3) normal
b      float32 (2,3) normal
row    float32 (3,) normal
col    float32 (2,1) normal
sc     float32 () normal
p      float32 (2,3) positive
q      float32 (3,) positive
u      float32 (2,3) unit
o      float32 (2,3) above_one
e      float32 (0,3) normal
t4     float32 (2,3,2,2) normal
t3     float32 (2,3,4) normal
s3     float32 (2,4,3) normal
m      float32 (3,4) normal
n      float32 (4,2) normal
sq     float32 (3,3) normal
x      float32 (5,) special
xs     float32 (2,5) special
h      float32 (2,3) halves
d      float64 (2,3) normal
dp     float64 (2,3) positive
du     float64 (2,3) unit
dm     float64 (3,4) normal
f16    float16 (2,3) normal
bf     bfloat16 (2,3) normal
f16p   float16 (3,) positive
i      int64 (2,3) small
j      int64 (2,3) nonzero
ip     int64 (2,3) tiny
i32    int32 (2,3) small
i8     int8 (3,) small
i16    int16 (2,3) small
u8     uint8 (2,3) tiny
k      bool (2,3) coin
l      bool (3,) coin
long   float32 (40,) normal
ties   int64 (7,) tiny
ix     int64 (2,3) index2
"""

UNARY_REAL = """
abs neg sign positive square floor ceil trunc frac exp expm1 sin cos tan sinh cosh tanh asinh atan erf erfc sigmoid relu
deg2rad rad2deg exp2 isnan isinf isfinite logical_not nan_to_num
"""
UNARY_POSITIVE = "log log2 log10 log1p sqrt rsqrt lgamma digamma reciprocal"
UNARY_UNIT = "asin acos atanh erfinv"

CASES = {name: "a | p | d | f16 | bf | x | t3.transpose(0, 2) | e | sc | i | k | u8" for name in UNARY_REAL.split()}
CASES |= {name: "p | dp | q | x | f16p | p.t() | e | ip | k" for name in UNARY_POSITIVE.split()}
CASES |= {name: "u | du | x | u.t() | e | k" for name in UNARY_UNIT.split()}

BINARY = (
    "a, b | a, row | col, row | a, sc | a, 2.5 | a, 2 | i, 2 | i, j | a, i | d, a | f16, a | bf, bf | k, a | "
    "i8, i32 | xs, x | e, row"
)
CASES |= {name: BINARY for name in "add mul maximum minimum eq ne lt le gt ge".split()}
for name in ("maximum", "minimum"):
    CASES[name] = "a, b | a, row | col, row | a, sc | i, j | a, i | d, a | f16, a | bf, bf | k, k | i8, i32 | xs, x | e, row"
CASES |= {
    "acosh": "o | x | o.t() | e",
    "sub": (
        "a, b | a, row | col, row | a, 2.5 | i, 2 | i, j | a, i | d, a | f16, a | i8, i32 | u8, u8 | xs, x | "
        "a, b, alpha=2 | i, j, alpha=3"
    ),
    "add": BINARY + " | a, b, alpha=0.5 | k, k | u8, i8 | i, 2.5 | k, 1",
    "mul": BINARY + " | k, k | u8, i8 | i, 2.5",
    "div": (
        "a, o | i, j | i, 4 | a, 0 | d, 3 | k, j | xs, x | a, o, rounding_mode='floor' | "
        "i, j, rounding_mode='floor' | i, j, rounding_mode='trunc' | "
        "a, 0.3, rounding_mode='trunc' | i8, 3, rounding_mode='floor' | f16, 3"
    ),
    "true_divide": "a, o | i, 4",
    "floor_divide": "a, o | i, j | i, 4 | i, -4 | a, -0.4 | xs, x",
    "remainder": "a, o | i, j | i, 4 | i, -4 | a, -0.4 | xs, x | i8, 5 | 5, j",
    "fmod": "a, o | i, j | i, 4 | i, -4 | a, -0.4 | xs, x",
    "pow": (
        "p, a | p, 2 | p, 0.5 | p, -1 | p, 3.0 | a, 2 | a, 3 | a, 0 | 2, a | 2.5, i | i, 2 | ip, 3 | p, row | "
        "x, x | x, 2 | dp, d | ip, ip | k, 2"
    ),
    "atan2": "a, b | xs, x | i, j | a, row",
    "hypot": "a, b | xs, x | a, row",
    "copysign": "a, b | xs, x | a, -1.0 | i, j",
    "fmax": "a, b | xs, x | i, j | a, row",
    "fmin": "a, b | xs, x | i, j | a, row",
    "logical_and": "k, l | a, i | x, x",
    "logical_or": "k, l | a, i | x, x",
    "logical_xor": "k, l | a, i | x, x",
    "bitwise_and": "i, j | k, l | i, 6 | u8, u8",
    "bitwise_or": "i, j | k, l | i, 6 | i8, 1",
    "bitwise_xor": "i, j | k, l | i, 6 | i16, 3",
    "bitwise_not": "i | k | u8 | i8",
    "isclose": "a, b | a, a | xs, x | x, x, equal_nan=True | a, a + 1e-6 | i, j | a, b, rtol=1.0 | a, b, atol=10.0",
    "allclose": "a, a | a, b | x, x | x, x, equal_nan=True",
    "equal": "a, a | a, b | x, x | a, row | i, i",
    "round": "a | h | d | x | i | h, decimals=1 | a, decimals=2 | a * 1000, decimals=-2 | f16",
    "where": "k, a, b | l, a, row | k, a, 0.0 | k, 1.0, b | k, 1, 2 | k, i, a | k, d, a | k",
    "clamp": (
        "a, -0.5, 0.5 | a, min=0.1 | a, max=0.1 | a, row, row + 1 | i, -2, 2 | x, -1.0, 1.0 | i, 0.5 | "
        "a, min=row | a, 1.0, -1.0 | i, max=j"
    ),
    "clamp_min": "a, 0.2 | i, 1 | a, row | x, 0.0",
    "clamp_max": "a, 0.2 | i, 1 | a, row | x, 0.0",
    "lerp": "a, b, 0.3 | a, b, u | a, row, 0.7 | d, d * 2, 0.5 | a, b, col",
    "addcmul": "a, b, row | a, b, row, value=0.5 | i, j, j, value=2 | row, a, col",
    "addcdiv": "a, b, o | a, b, o, value=0.5 | row, a, o",
    "logaddexp": "a, b | xs, x | a, row",
    "xlogy": "p, p | a, o | a, 2.0 | 2.0, p | x, x",
    "heaviside": "a, row | h, b | i, j",
    "sum": (
        "a | i | k | a, 0 | a, 1 | a, -1, keepdim=True | t3, (0, 2) | t3, [1], True | t3.transpose(0, 2), 1 | e | "
        "e, 0 | sc | f16 | bf | u8 | x | "
        "i, dtype=T.float32 | a, dtype=T.float64 | long | sc, 0 | a, ()"
    ),
    "nansum": "x | xs, 0 | a, 1 | i",
    "mean": "a | d | a, 0 | t3, (0, 2) | t3, 1, True | i, dtype=T.float32 | e | e, 1 | f16 | sc | x",
    "prod": (
        "a | i | k | a, 0 | a, 1, True | t3, 1 | e | e, 0 | sc | ip | a * T.tensor([0.0, 1.0, 1.0]) | u8 | a, dtype=T.float64"
    ),
    "max": "a | i | a, 0 | a, 1, True | t3, -2 | ties, 0 | x | xs, 0 | k | a, b | k, 0 | sc, 0",
    "min": "a | i | a, 0 | a, 1, True | t3, -2 | ties, 0 | x | xs, 0 | k | a, b | u8, 1",
    "amax": "a | a, 0 | t3, (0, 1) | t3, (1,), True | ties | x | e, 1 | i, 0",
    "amin": "a | a, 0 | t3, (0, 1) | t3, (1,), True | ties | x | e, 1 | i, 0",
    "aminmax": "a | a, dim=0 | i | x | t3, dim=1, keepdim=True",
    "argmax": "a | a, 0 | a, 1, True | t3, -1 | x | i | xs, 1 | sc",
    "argmin": "a | a, 0 | a, 1, True | t3, -1 | x | i | xs, 1 | sc",
    "all": "k | k, 0 | a | k, 1, True | e | e, 0 | u8 | i, 0",
    "any": "k | k, 0 | a | k, 1, True | e | e, 0 | u8 | i, 0",
    "norm": (
        "a | a, 1 | a, float('inf') | a, 2, 0 | t3, 3, (0, 1) | a, 0 | a, 'fro' | t3, 2, 1, True | d | e | "
        "a, 2, dtype=T.float64"
    ),
    "var": "a | a, 0 | a, 1, False | t3, (0, 2) | a, correction=0 | a, dim=1, correction=2, keepdim=True | d | long | x",
    "std": "a | a, 0 | a, 1, False | t3, (0, 2) | a, correction=0 | a, dim=1, correction=2, keepdim=True | d | long",
    "var_mean": "a | a, 0 | a, dim=1, correction=0",
    "std_mean": "a | a, 0 | a, dim=1, correction=0",
    "logsumexp": "a, 0 | a, 1, True | t3, (0, 2) | x, 0 | a * 100, 1",
    "cumsum": (
        "a, 0 | a, 1 | t3, -1 | i, 0 | k, 1 | x, 0 | t3.transpose(0, 2), 1 | e, 0 | sc, 0 | f16, 1 | i, 0, dtype=T.float32"
    ),
    "cumprod": (
        "a, 0 | a, 1 | t3, -1 | i, 0 | x, 0 | t3.transpose(0, 2), 1 | e, 0 | a * T.tensor([0.0, 1.0, 1.0]), 1 | "
        "a * T.tensor([0.0, 1.0, 0.0]), 1"
    ),
    "count_nonzero": "a | k | i, 0 | x | t3, (0, 1)",
    "mm": "a, m | a, m.t().contiguous().t() | d, dm | e, m | i, i.t() | b.t(), a",
    "bmm": "t3, s3 | t3[:0], s3[:0] | s3, s3.transpose(1, 2)",
    "matmul": (
        "a, m | a, row | row, m | row, row | t3, s3 | t3, n | t4, t4.transpose(-1, -2) | t3, m.t()[0] | "
        "row, s3.transpose(1, 2) | d, dm | m.t(), t3.transpose(1, 2)"
    ),
    "mv": "a, row | m.t(), row | d, d[0] | e, row",
    "dot": "row, q | row, row | i8, i8 | row[:0], row[:0]",
    "inner": "row, q | a, row | a, b | sc, a",
    "outer": "row, m[0] | i8, i8 | row, row",
    "addmm": "m[:2], a, m | m[0], a, m | m[:2], a, m, beta=0.5, alpha=2 | sc, a, m | m[0] * float('nan'), a, m, beta=0",
    "addmv": "row[:2], a, row | sc, a, row, beta=2, alpha=0.5",
    "baddbmm": "t3[:, :, :3], t3, s3 | sc, t3, s3, beta=0.5, alpha=2",
    "linear:nn.functional": "a, m.t() | a, m.t(), m[0] | t3, m | row, m.t()",
    "softmax": "a, 0 | a, 1 | t3, -2 | x, 0 | a * 100, 1 | a, 1, dtype=T.float64 | e, 1 | f16, 1 | sc, 0",
    "log_softmax": "a, 0 | a, 1 | t3, -2 | x, 0 | a * 100, 1 | e, 1 | sc, 0",
    "cat": (
        "(a, b) | (a, col), 1 | (a, b, a), -1 | (a, d) | (i, a) | (a,) | (e, a) | (t3, t3), 1 | "
        "(a.t(), b.t()), 1 | (k, i8.expand(2, 3))"
    ),
    "stack": "(a, b) | (a, b), 1 | (a, b), -1 | (i, a) | (sc, sc)",
    "hstack": "(row, q) | (a, col) | (sc, sc)",
    "vstack": "(row, q) | (a, row) | (sc, sc)",
    "gather": "a, 0, ix | a, 1, ix[:, :2] | t3, 0, ix[:, :, None] | i, 0, ix | sc, 0, T.tensor(0)",
    "scatter": "a, 0, ix, b | a, 0, ix, 2.5 | m, 1, ix, a | i, 1, ix, j | a, 0, ix[:1], b",
    "scatter_add": "a, 0, ix, b | m, 1, ix, a | i, 1, ix, j | a, 0, ix[:1, :2], b",
    "index_select": (
        "a, 0, ix[0] | a, 1, T.tensor([2, 0, 2]) | t3, 1, ix[1] | row, 0, T.tensor(1) | sc, 0, T.tensor([0]) | "
        "i, 0, T.tensor([1], dtype=T.int32)"
    ),
    "index_add": "a, 0, ix[0], sq | a, 1, T.tensor([2, 0, 2]), b | a, 0, ix[0], sq, alpha=2 | i, 0, T.tensor([1]), j[:1]",
    "index_fill": "a, 0, ix[0], 3.0 | a, 1, T.tensor([2, 0]), sc | i, 0, T.tensor([1]), 7",
    "masked_fill": "a, k, 0.5 | a, l, 0.5 | a, k, sc | i, k, 7 | x, x > 0, float('nan') | k, l, True",
    "masked_select": "a, k | a, l | row, k | i, k | e, l",
    "take": "a, ix | a, T.tensor([5, 0, -1]) | i, ix | a.t(), T.tensor([1])",
    "take_along_dim": "a, ix, 0 | a, T.tensor([5, 0])",
    "tril": "sq | sq, 1 | sq, -1 | m | t3, 0 | i | k | sq.t(), 1",
    "triu": "sq | sq, 1 | sq, -1 | m | t3, 0 | i | k | sq.t(), 1",
    "topk": "long, 5 | long, 5, largest=False | t3, 2, 1 | a, 1, 0 | d, 2 | x, 3",
    "sort": "long | t3, 1 | t3, -1, True | x | x, descending=True | ties, stable=True | d | sc | e, 0",
    "argsort": "long | t3, 1 | t3, -1, True | x",
    "kthvalue": "long, 3 | t3, 2, 1 | t3, 2, 1, True",
    "nonzero": "k | a | i | sc | e | x | k, as_tuple=True",
    "flip": "a, (0,) | a, (0, 1) | t3, (-1, 0) | i, [1]",
    "roll": "a, 1 | a, 1, 0 | t3, (1, -2), (0, 2) | i, 4, 1 | long, -3",
    "repeat:method": "a, 2, 1 | row, 2, 2 | sc, 3 | a, (1, 2) | i, 0, 1",
    "repeat_interleave": "row, 2 | a, 2, 0 | a, T.tensor([1, 2]), 0 | i, 2",
    "tile": "a, (2,) | a, (2, 1) | row, (2, 2, 1)",
    "view:method": "a, 6 | a, (3, 2) | a, -1, 2 | t3, 2, 12 | e, 0 | sc, 1",
    "reshape": "a, (6,) | a.t(), (2, 3) | t3, (-1, 4) | sc, (1, 1) | e, (3, 0)",
    "transpose": "a, 0, 1 | t3, -1, 0 | sc, 0, 0",
    "t": "a | row | sc",
    "permute": "t3, (2, 0, 1) | t3, (-1, 0, 1) | sc, ()",
    "expand:method": "row, 2, 3 | col, 2, 4 | sc, 2, 2 | a, 4, -1, -1 | sc, ()",
    "expand_as:method": "row, a | sc, a",
    "view_as:method": "a, b.view(3, 2)",
    "squeeze": "col | col, 1 | a, 0 | t3[:, :1, :1], (1, 2) | t3[:1]",
    "unsqueeze": "a, 0 | a, -1 | sc, 0 | t3, 2",
    "select": "a, 0, 1 | a, 1, -1 | t3, 1, 0",
    "narrow": "a, 0, 0, 1 | a, 1, 1, 2 | t3, -1, 1, 2 | a, 1, 3, 0 | a, 0, -1, 1",
    "chunk": "a, 2 | a, 2, 1 | long, 7 | t3, 3, 2",
    "split": "a, 1 | a, 2, 1 | a, [1, 2], 1 | long, 15",
    "unbind": "a | a, 1 | t3, -1",
    "diagonal": "sq | sq, 1 | m, -1 | t3, 0, 1, 2 | t3, offset=1, dim1=0, dim2=2 | t3, 5",
    "diag": "row | row, 1 | sq | m, -1",
    "as_strided": "a, (2, 2), (3, 1) | a, (3,), (2,), 1 | a, (2, 3), (0, 1)",
    "unfold:method": "long, 0, 4, 3 | a, 1, 2, 1 | t3, 2, 3, 1",
    "flatten": "t3 | t3, 1 | t3, 0, 1 | sc | a.t()",
    "unflatten": "t3, 2, (2, 2) | t3, -1, (2, -1)",
    "movedim": "t3, 0, 2 | t3, (0, 1), (1, 2) | a, 0, 0",
    "swapaxes": "t3, 0, 2",
    "broadcast_to": "row, (2, 3) | sc, (2, 2)",
    "broadcast_tensors": "row, col | sc, a",
    "ravel": "t3 | a.t()",
    "contiguous:method": "a | a.t() | t3.transpose(0, 1)",
    "clone": "a | a.t() | i",
    "detach": "a",
    "softplus:nn.functional": "a | a, 2.0 | a * 30 | d | x",
    "leaky_relu:nn.functional": "a | a, 0.3 | d | x",
    "elu:nn.functional": "a | a, 0.5 | d | x",
    "gelu:nn.functional": "a | a, approximate='tanh' | d",  # at infinity PyTorch says NaN or not by how it vectorised
    "relu:nn.functional": "a | i",
    "silu:nn.functional": "a | d",
    "sigmoid:nn.functional": "a",
    "tanh:nn.functional": "a",
    "softmax:nn.functional": "a, 1 | a, dim=0",
    "log_softmax:nn.functional": "a, 1 | t3, dim=1",
    "mse_loss:nn.functional": "a, b | a, b, reduction='none' | a, b, reduction='sum' | d, d * 2",
    "cross_entropy:nn.functional": (
        "sq, T.tensor([0, 2, 1]) | m, T.tensor([3, 0, 0]) | sq, T.tensor([0, 2, 1]), reduction='sum' | "
        "sq, T.tensor([0, 2, 1]), reduction='none' | sq, T.tensor([0, -100, 1]) | sq, sq.softmax(1) | "
        "sq, T.tensor([0, 2, 1]), label_smoothing=0.1 | "
        "sq, T.tensor([0, 2, 1]), weight=q | t3, T.zeros(2, 4, dtype=T.int64)"
    ),
    "nll_loss:nn.functional": (
        "sq, T.tensor([0, 2, 1]) | sq, T.tensor([0, 2, 1]), reduction='sum' | sq, T.tensor([0, -100, 1]) | "
        "sq, T.tensor([0, 2, 1]), weight=q"
    ),
    "einsum": (
        "'ij,jk->ik', a, m | 'ij->ji', a | 'ii', sq | 'ii->i', sq | 'ij->', a | 'bij,bjk->bik', t3, s3 | "
        "'i,j->ij', row, q | 'ij,j', a, row | "
        "'...ij,...jk->...ik', t3, s3 | 'ij,jk,kl->il', a, m, n | 'ij,ij->i', a, b | 'bij->bji', t3 | 'ij, kj -> ik', a, b"
    ),
    "to:method": (
        "a, T.float64 | a, T.int64 | x * 0 + 1, T.bool | i, T.float32 | k, T.float32 | a, d | "
        "a, 'cpu', T.float16 | a, dtype=T.bfloat16 | a | i, T.uint8 | h, T.int8"
    ),
    "zeros_like": "a | i | k | a, dtype=T.float64 | a.t()",
    "ones_like": "a | i | k | a, dtype=T.int32",
    "full_like": "a, 3 | i, 3 | a, 2.5, dtype=T.float64 | k, True",
}
CASES |= {
    f"{name}:method": "a | i | k | h" if name != "byte" else "p | ip | k"
    for name in "type_as float double half bfloat16 int long short char byte bool".split()
    if name != "type_as"
}
CASES["type_as:method"] = "a, d | i, a | a, i"
