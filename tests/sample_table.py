"""The samplers of the operators that are not pointwise; see samples.py."""

import samples as s
from hypothesis import strategies as st

from library import T

F = T.nn.functional
UNARY = """
abs neg sign sgn angle conj_physical exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh
cosh tanh asinh acosh
atanh erf erfc erfinv lgamma digamma sigmoid floor ceil trunc frac deg2rad rad2deg clone
""".split()
BINARY = "add sub mul remainder fmod atan2 hypot copysign maximum minimum fmax fmin logaddexp xlogy".split()
TERNARY = "lerp addcmul addcdiv".split()
ACTIVATIONS = "softplus leaky_relu elu gelu silu logsigmoid".split()


def in_parts(call):
    """Halves go by way of float32: there are no complex halves."""

    def run(*xs):
        return call(*(x.to(T.float32) if x.dtype.itemsize == 2 else x for x in xs)).to(xs[0].dtype)

    return run


SAMPLES = {
    **{n: s.pointwise(getattr(T, n), 1, s.DOMAINS.get(n, s.WIDE)) for n in UNARY if hasattr(T, n)},
    **{n: s.pointwise(getattr(T, n), 2, s.DOMAINS.get(n, s.WIDE)) for n in BINARY if hasattr(T, n)},
    **{n: s.pointwise(getattr(T, n), 3, s.DOMAINS.get(n, s.WIDE)) for n in TERNARY if hasattr(T, n)},
    **{n: s.pointwise(getattr(F, n), 1, s.WIDE) for n in ACTIVATIONS if hasattr(F, n)},
    "gelu": lambda draw: (
        [s.values(draw(s.SHAPES), draw(s.SEEDS))],
        draw(st.sampled_from([F.gelu, lambda x: F.gelu(x, approximate="tanh")])),
    ),
    # complex numbers, seen as their parts
    "complex": s.pointwise(in_parts(lambda x, y: T.view_as_real(T.complex(x, y))), 2, s.WIDE),
    "polar": s.pointwise(in_parts(lambda x, y: T.view_as_real(T.polar(x.abs() + 0.1, y))), 2, s.WIDE),
    "view_as_real": s.pointwise(in_parts(lambda x: T.view_as_real(T.complex(x, x * 2))), 1, s.WIDE),
    "view_as_complex": s.pointwise(in_parts(lambda x: T.view_as_complex(T.stack([x, x * x], -1)).abs()), 1, s.WIDE),
    # products
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
    "tril": s.view(lambda draw, shape: (lambda k: lambda x: x.tril(k))(draw(st.integers(-2, 2))), 2),
    "triu": s.view(lambda draw, shape: (lambda k: lambda x: x.triu(k))(draw(st.integers(-2, 2))), 2),
    "flip": s.view(lambda draw, shape: (lambda d: lambda x: x.flip(d))(s.dim_of(draw, shape)), 1),
    "roll": s.view(
        lambda draw, shape: (lambda n, d: lambda x: x.roll(n, d))(draw(st.integers(-3, 3)), s.dim_of(draw, shape)), 1
    ),
    "repeat": s.view(lambda draw, shape: lambda x: x.repeat(2, *[1 + d % 2 for d in range(x.dim())])),
    "repeat_interleave": s.view(lambda draw, shape: (lambda d: lambda x: x.repeat_interleave(2, d))(s.dim_of(draw, shape)), 1),
    "tile": s.view(lambda draw, shape: lambda x: x.tile((2, 1))),
    "view": s.view(lambda draw, shape: lambda x: x.contiguous().view(-1)),
    "reshape": s.view(s.reshaped),
    "transpose": s.two_dims("transpose"),
    "swapaxes": s.two_dims("swapaxes"),
    "movedim": s.two_dims("movedim"),
    "t": s.view(lambda draw, shape: lambda x: x.t(), shapes=st.sampled_from([(2, 3), (4,), (), (0, 2)])),
    "permute": s.view(s.permutation),
    "expand": s.view(lambda draw, shape: lambda x: x.expand(2, *x.shape)),
    "expand_as": s.view(lambda draw, shape: lambda x: x.expand_as(T.zeros(2, *x.shape, device=x.device))),
    "broadcast_to": s.view(lambda draw, shape: lambda x: x.broadcast_to((2, *x.shape))),
    "view_as": s.view(lambda draw, shape: lambda x: x.contiguous().view_as(x)),
    "squeeze": s.view(lambda draw, shape: draw(st.sampled_from([lambda x: x.squeeze(), lambda x: x.squeeze(0)])), 1),
    "unsqueeze": s.view(
        lambda draw, shape: (lambda d: lambda x: x.unsqueeze(d))(draw(st.integers(-len(shape) - 1, len(shape))))
    ),
    "select": s.view(lambda draw, shape: (lambda d: lambda x: x.select(d, shape[d] - 1))(s.dim_of(draw, shape)), 1),
    "narrow": s.view(
        lambda draw, shape: (lambda d: lambda x: x.narrow(d, shape[d] // 2, shape[d] - shape[d] // 2))(s.dim_of(draw, shape)), 1
    ),
    "slice": s.view(lambda draw, shape: lambda x: x[1:], 1),
    "chunk": s.view(lambda draw, shape: (lambda d: lambda x: x.chunk(2, d))(s.dim_of(draw, shape)), 1),
    "split": s.view(lambda draw, shape: (lambda d: lambda x: x.split(1, d))(s.dim_of(draw, shape)), 1),
    "tensor_split": s.view(lambda draw, shape: lambda x: x.tensor_split(2), 1),
    "diagonal": s.view(s.diagonal, 2),
    "diag": s.view(
        lambda draw, shape: (lambda k: lambda x: x.diag(k))(draw(st.integers(-1, 1))),
        shapes=st.sampled_from([(3,), (2, 3), (3, 3)]),
    ),
    "diag_embed": s.view(lambda draw, shape: (lambda k: lambda x: x.diag_embed(k))(draw(st.integers(-1, 1))), 1),
    "trace": s.view(lambda draw, shape: lambda x: x.trace(), shapes=st.sampled_from([(3, 3), (2, 4), (0, 2)])),
    "rot90": s.view(lambda draw, shape: (lambda k: lambda x: x.rot90(k, (0, -1)))(draw(st.integers(-1, 4))), 2),
    "as_strided": s.fixed(
        [(3, 4)],
        lambda x: x.as_strided((2, 3), (1, 2), 1) if x.is_contiguous() else x.contiguous().as_strided((2, 3), (1, 2), 1),
    ),
    "unfold": s.view(s.window, 1),
    "flatten": s.view(lambda draw, shape: lambda x: x.flatten()),
    "ravel": s.view(lambda draw, shape: lambda x: x.ravel()),
    "unflatten": s.fixed([(2, 4)], lambda x: x.unflatten(1, (2, -1))),
    "broadcast_tensors": s.fixed([(3,), (2, 1)], lambda a, b: T.broadcast_tensors(a, b)),
    "contiguous": s.view(lambda draw, shape: lambda x: x.contiguous()),
    "to": s.view(lambda draw, shape: lambda x: x.to(x.dtype, copy=True)),
    "convert": s.view(lambda draw, shape: lambda x: x.to(x.dtype, copy=True)),
    # losses
    "mse_loss": s.loss("mse_loss", lambda draw, n, c: s.values((n, c), draw(s.SEEDS))),
    "cross_entropy": s.loss("cross_entropy", lambda draw, n, c: s.integers((n,), draw(s.SEEDS), 0, c)),
    "nll_loss": s.loss("nll_loss", lambda draw, n, c: s.integers((n,), draw(s.SEEDS), 0, c)),
}
