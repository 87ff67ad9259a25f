"""Writes kinks.json: the gradients that PyTorch gives where a function has none, or several. Run under PyTorch."""

import golden_file

INF, NAN = float("inf"), float("nan")
# One input `x` (and `y`), the expression of them.
KINKS = [
    (
        [-1.0, -0.0, 0.0, 1.0],
        None,
        "abs sqrt rsqrt log log1p reciprocal relu sign square sigmoid tanh asin acos acosh atanh erfinv lgamma",
    ),
    (
        [0.0, INF, -INF, NAN],
        None,
        "exp exp2 expm1 tanh sigmoid sin sqrt log abs relu atan erf reciprocal square floor frac nan_to_num",
    ),
]
CASES = [
    ("x.clamp(-1, 1)", [-2.0, -1.0, 0.0, 1.0, 2.0, NAN], None),
    ("x.clamp(min=0.0)", [-1.0, 0.0, 1.0], None),
    ("T.clamp_max(x, 0.0)", [-1.0, 0.0, 1.0], None),
    ("x.clamp(y, y + 1)", [0.0, 1.0, 2.0], [0.0, 0.0, 0.0]),
    ("T.maximum(x, y)", [0.0, 1.0, 2.0, NAN], [0.0, 0.0, 3.0, 1.0]),
    ("T.minimum(x, y)", [0.0, 1.0, 2.0, NAN], [0.0, 0.0, 3.0, 1.0]),
    ("T.fmax(x, y)", [0.0, 1.0, 2.0, NAN, 1.0], [0.0, 0.0, 3.0, 1.0, NAN]),
    ("T.fmin(x, y)", [0.0, 1.0, 2.0, NAN, 1.0], [0.0, 0.0, 3.0, 1.0, NAN]),
    ("x.max()", [1.0, 3.0, 3.0, 2.0], None),
    ("x.min()", [1.0, 3.0, 1.0, 1.0], None),
    ("x.max(0)[0]", [1.0, 3.0, 3.0, 2.0], None),
    ("x.amax(0)", [1.0, 3.0, 3.0, 2.0], None),
    ("x.amin()", [1.0, 1.0, 3.0, 1.0], None),
    ("x.aminmax()[0]", [1.0, 1.0, 3.0], None),
    ("x.sort()[0]", [2.0, 1.0, 2.0], None),
    ("x.norm()", [0.0, 0.0], None),
    ("x.norm(1)", [0.0, -2.0, 3.0], None),
    ("x.norm(float('inf'))", [3.0, -3.0, 1.0], None),
    ("x.norm(3)", [0.0, 2.0], None),
    ("x.norm(0)", [0.0, 2.0], None),
    ("x.norm(0.5)", [1.0, 2.0], None),
    ("x.std()", [1.0, 1.0], None),
    ("x.var()", [1.0, 1.0], None),
    ("x.prod()", [0.0, 2.0, 3.0], None),
    ("x.prod()", [0.0, 0.0, 3.0], None),
    ("x.prod()", [0.0], None),
    ("x.cumprod(0)", [2.0, 0.0, 3.0, 4.0], None),
    ("x.cumprod(0)", [0.0, 0.0, 3.0], None),
    ("x ** 0", [0.0, 2.0], None),
    ("x ** 1", [0.0, 2.0], None),
    ("x ** 2", [0.0, -2.0], None),
    ("x ** 0.5", [0.0, 4.0, -1.0], None),
    ("x ** -1", [0.0, 2.0], None),
    ("x ** y", [0.0, 0.0, 2.0, -2.0, 0.0], [0.0, 2.0, 0.0, 2.0, -1.0]),
    ("2 ** x", [0.0, INF, -INF], None),
    ("0 ** x", [0.0, 1.0, -1.0], None),
    ("T.hypot(x, y)", [0.0, 3.0], [0.0, 4.0]),
    ("T.atan2(x, y)", [0.0, 1.0], [0.0, 0.0]),
    ("T.xlogy(x, y)", [0.0, 0.0, 2.0], [0.0, 2.0, 0.0]),
    ("T.logaddexp(x, y)", [-INF, INF, 1.0], [-INF, INF, 1.0]),
    ("T.copysign(x, y)", [0.0, -0.0, 2.0], [1.0, 1.0, -1.0]),
    ("x / y", [0.0, 1.0], [0.0, 0.0]),
    ("T.remainder(x, y)", [5.0, -5.0, 4.0], [3.0, 3.0, 2.0]),
    ("T.fmod(x, y)", [5.0, -5.0, 4.0], [3.0, 3.0, 2.0]),
    ("x.logsumexp(0)", [-INF, -INF], None),
    ("x.logsumexp(0)", [1.0, -INF], None),
    ("x.softmax(0)", [1.0, -INF, INF], None),
    ("x.softmax(0)", [1.0, -INF, 2.0], None),
    ("x.log_softmax(0)", [1.0, -INF, 2.0], None),
    ("T.where(x > 0, x, y)", [1.0, NAN, -1.0], [NAN, 2.0, 3.0]),
    ("T.where(x > 0, x.log(), y)", [1.0, -1.0, 0.0], [1.0, 2.0, 3.0]),
    ("T.lerp(x, y, 0.5)", [1.0, 2.0], [3.0, INF]),
    ("x.nansum()", [1.0, NAN], None),
    ("x.mean()", [], None),
    ("x.sum()", [], None),
    ("x.prod()", [], None),
    ("F.leaky_relu(x)", [-1.0, 0.0, -0.0, 1.0], None),
    ("F.elu(x)", [-1.0, 0.0, 1.0, -200.0], None),
    ("F.softplus(x)", [-200.0, 0.0, 20.0, 21.0, 200.0], None),
    ("F.gelu(x)", [-50.0, 0.0, 50.0], None),
    ("F.silu(x)", [-200.0, 0.0, 200.0], None),
    ("x.floor() + x.round() + x.trunc() + x.ceil()", [0.0, 0.5, 1.0], None),
    ("x.masked_fill(x > 0, 0.0)", [1.0, -1.0, NAN], None),
    ("x.expand(2, 3).max(0)[0]", [1.0, 2.0, 3.0], None),
    ("x.relu() * x", [0.0, 1.0], None),
    ("x.tril().sum() if x.dim() > 1 else x.cumsum(0)", [1.0, 2.0], None),
]


def gradients(code, x, y, T):
    """The gradients of the sum of `code`."""
    x = T.tensor(x, dtype=T.float64, requires_grad=True)
    y = None if y is None else T.tensor(y, dtype=T.float64, requires_grad=True)
    inputs = [x] if y is None else [x, y]
    out = eval(code, {"T": T, "F": T.nn.functional, "x": x, "y": y})
    grads = T.autograd.grad(out.sum(), inputs, allow_unused=True)
    return [None if g is None else g.tolist() for g in grads]


def text(grads):
    return [None if g is None else [repr(float(f"{v:.12g}")) for v in g] for g in grads]


if __name__ == "__main__":
    import torch

    cases = [(f"{n}(x)" if n.startswith("F.") else f"T.{n}(x)", x, y) for x, y, names in KINKS for n in names.split()] + CASES
    rows = [
        [code, [repr(v) for v in x], y and [repr(v) for v in y], text(gradients(code, x, y, torch))] for code, x, y in cases
    ]
    golden_file.write("kinks.json", rows)
    print(len(rows), "cases")
