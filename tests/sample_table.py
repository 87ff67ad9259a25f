"""The samplers of the operators that are not pointwise; see samples.py."""

import samples as s
from hypothesis import strategies as st

from library import T

F = T.nn.functional
UNARY = """
abs neg sign sgn angle exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh
cosh tanh asinh acosh
atanh erf erfc erfinv lgamma digamma sigmoid floor ceil trunc frac deg2rad rad2deg
""".split()
BINARY = "add sub mul remainder fmod atan2 hypot copysign maximum minimum fmax fmin logaddexp xlogy".split()
TERNARY = "lerp addcmul addcdiv".split()
ACTIVATIONS = "softplus leaky_relu elu gelu silu logsigmoid".split()


SAMPLES = {
    **{n: s.pointwise(getattr(T, n), 1, s.DOMAINS.get(n, s.WIDE)) for n in UNARY if hasattr(T, n)},
    **{n: s.pointwise(getattr(T, n), 2, s.DOMAINS.get(n, s.WIDE)) for n in BINARY if hasattr(T, n)},
    **{n: s.pointwise(getattr(T, n), 3, s.DOMAINS.get(n, s.WIDE)) for n in TERNARY if hasattr(T, n)},
    **{n: s.pointwise(getattr(F, n), 1, s.WIDE) for n in ACTIVATIONS if hasattr(F, n)},
    "gelu": lambda draw: (
        [s.values(draw(s.SHAPES), draw(s.SEEDS))],
        draw(st.sampled_from([F.gelu, lambda x: F.gelu(x, approximate="tanh")])),
    ),
    # products
    "interpolate": s.resized(),
    "linear": s.fixed([(2, 3), (4, 3), (4,)], lambda x, w, b: F.linear(x, w, b)),
    # joining and choosing
    "vstack": s.joined("vstack", False),
    "gather": s.indexed(s.named("gather")),
    "scatter": lambda draw: (
        lambda n: (
            [s.values((2, n), draw(s.SEEDS)), T.tensor([draw(st.permutations(range(n)))]), s.values((1, n), draw(s.SEEDS))],
            lambda x, i, y: T.scatter(x, 1, i, y),
        )
    )(draw(st.integers(1, 3))),
    "scatter_add": s.indexed(s.named("scatter_add"), lambda draw, where: [s.values(where, draw(s.SEEDS))]),
    "index_select": s.listed(s.named("index_select")),
    "index_add": s.listed(
        s.named("index_add"), lambda draw, shape, dim, n: [s.values(s.replaced(shape, dim, n), draw(s.SEEDS))]
    ),
    "index_fill": s.listed(lambda x, dim, i: T.index_fill(x, dim, i, 2.0)),
    "index_put": s.fixed([(3, 2), (2,)], lambda x, v: x.index_put((T.tensor([2, 0], device=x.device),), v)),
    "index": s.fixed([(3, 2)], lambda x: x[T.tensor([0, 2, 0], device=x.device)]),
    "masked_fill": s.masked(lambda x, m: x.masked_fill(m, 1.5)),
    "take": s.fixed([(2, 3)], lambda x: x.take(T.tensor([5, 0, 0], device=x.device))),
    "take_along_dim": s.indexed(lambda x, dim, i: x.gather(dim, i)),
    # shapes
    "slice": s.view(lambda draw, shape: lambda x: x[1:], 1),
    "to": s.view(lambda draw, shape: lambda x: x.to(x.dtype, copy=True)),
    "convert": s.view(lambda draw, shape: lambda x: x.to(x.dtype, copy=True)),
    # losses
    "mse_loss": s.loss("mse_loss", lambda draw, n, c: s.values((n, c), draw(s.SEEDS))),
    "cross_entropy": s.loss("cross_entropy", lambda draw, n, c: s.integers((n,), draw(s.SEEDS), 0, c)),
    "nll_loss": s.loss("nll_loss", lambda draw, n, c: s.integers((n,), draw(s.SEEDS), 0, c)),
}
