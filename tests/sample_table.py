"""The samplers of the operators that are not pointwise; see samples.py."""

import samples as s

from library import T

F = T.nn.functional
UNARY = """
abs neg sign sgn angle exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh
cosh tanh asinh acosh
atanh erf erfc erfinv lgamma digamma sigmoid floor ceil trunc frac deg2rad rad2deg
""".split()
BINARY = "add sub mul remainder fmod atan2 hypot copysign maximum minimum fmax fmin logaddexp xlogy".split()
TERNARY = "lerp addcmul addcdiv".split()
ACTIVATIONS = "softplus logsigmoid".split()


SAMPLES = {
    **{n: s.pointwise(getattr(T, n), 1, s.DOMAINS.get(n, s.WIDE)) for n in UNARY if hasattr(T, n)},
    **{n: s.pointwise(getattr(T, n), 2, s.DOMAINS.get(n, s.WIDE)) for n in BINARY if hasattr(T, n)},
    **{n: s.pointwise(getattr(T, n), 3, s.DOMAINS.get(n, s.WIDE)) for n in TERNARY if hasattr(T, n)},
    **{n: s.pointwise(getattr(F, n), 1, s.WIDE) for n in ACTIVATIONS if hasattr(F, n)},
    # products
    "interpolate": s.resized(),
    # joining and choosing
    "vstack": s.joined("vstack", False),
    "index": s.fixed([(3, 2)], lambda x: x[T.tensor([0, 2, 0], device=x.device)]),
    # shapes
    "slice": s.view(lambda draw, shape: lambda x: x[1:], 1),
    "to": s.view(lambda draw, shape: lambda x: x.to(x.dtype, copy=True)),
    "convert": s.view(lambda draw, shape: lambda x: x.to(x.dtype, copy=True)),
}
