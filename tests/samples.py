"""What each differentiable operator is tried on: shapes, strides, broadcasts, empties and 0-d tensors, drawn by hypothesis.

`SAMPLES[name](draw)` gives the operands (float64 values; integers and bools where an operator wants them) and a function of
them. A pointwise operator needs no entry: its row says how many operands it has.
"""

import math
import random
import warnings

from hypothesis import strategies as st

from library import T

SHAPES = st.lists(st.integers(0, 3), max_size=3).map(tuple)
FULL = st.lists(st.integers(1, 3), max_size=3).map(tuple)
SOME = FULL.filter(len)
SEEDS = st.integers(0, 2**16)

WIDE = (-2.0, 2.0)
DOMAINS = {
    **dict.fromkeys("log log2 log10 sqrt rsqrt lgamma digamma reciprocal xlogy pow polygamma".split(), (0.3, 2.5)),
    **dict.fromkeys("asin acos atanh erfinv".split(), (-0.8, 0.8)),
    **dict.fromkeys("acosh".split(), (1.2, 3.0)),
    **dict.fromkeys("log1p".split(), (-0.5, 2.0)),
    **dict.fromkeys("div true_divide remainder fmod floor_divide addcdiv atan2 hypot".split(), (0.4, 2.0)),
    **dict.fromkeys("tan".split(), (-1.2, 1.2)),
    **dict.fromkeys("logit".split(), (0.1, 0.9)),
}


def values(shape, seed, domain=WIDE):
    r = random.Random(seed)
    n = math.prod(shape)
    return T.tensor([r.uniform(*domain) for _ in range(n)], dtype=T.float64).reshape(tuple(shape))


def integers(shape, seed, low, high):
    r = random.Random(seed)
    return T.tensor([r.randrange(low, high) for _ in range(math.prod(shape))], dtype=T.int64).reshape(tuple(shape))


def coins(shape, seed):
    r = random.Random(seed)
    return T.tensor([r.random() < 0.5 for _ in range(math.prod(shape))], dtype=T.bool).reshape(tuple(shape))


def named(name):
    return lambda *args, **kwargs: getattr(T, name)(*args, **kwargs)


def unwarned(call):
    """What is deprecated says so."""

    def run(*xs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call(*xs)

    return run


def narrower(draw, shape):
    """A shape that broadcasts to `shape`."""
    start = draw(st.integers(0, len(shape)))
    return tuple(1 if draw(st.booleans()) and draw(st.booleans()) else n for n in shape[start:])


def dim_of(draw, shape):
    return draw(st.integers(-len(shape), len(shape) - 1))


def pointwise(call, operands, domain):
    def sample(draw):
        shape = draw(SHAPES)
        shapes = [shape] + [narrower(draw, shape) for _ in range(operands - 1)]
        if operands > 1 and draw(st.booleans()):
            shapes.reverse()
        # Operands of one seed would be equal: a tie for maximum, a jump for remainder.
        return [values(s, draw(SEEDS) * operands + k, domain) for k, s in enumerate(shapes)], call

    return sample


def elements(name, operands=1):
    return pointwise(named(name), operands, DOMAINS.get(name, WIDE))


def clamped():
    def sample(draw):
        bounds = draw(st.sampled_from([{"min": -0.5, "max": 0.7}, {"min": 0.1}, {"max": 0.1}]))
        return [values(draw(SHAPES), draw(SEEDS))], lambda x: x.clamp(**bounds)

    return sample


def chosen():
    def sample(draw):
        shape = draw(SHAPES)
        parts = [coins(narrower(draw, shape), draw(SEEDS)), values(shape, draw(SEEDS))]
        return [*parts, values(narrower(draw, shape), draw(SEEDS))], named("where")

    return sample


def first(results):
    return results[0]


def in_parts(call):
    """Halves go by way of float32: there are no complex halves."""

    def run(*xs):
        return call(*(x.to(T.float32) if x.dtype.itemsize == 2 else x for x in xs)).to(xs[0].dtype)

    return run


def shaped(call, shapes=FULL, domain=WIDE, least=0):
    """One operand; `call(draw, shape)` gives the function."""

    shapes = shapes.filter(lambda shape: len(shape) >= least) if least else shapes

    def sample(draw):
        shape = draw(shapes)
        return [values(shape, draw(SEEDS), domain)], call(draw, shape)

    return sample


def over_dim(name, domain=WIDE, shapes=FULL, result=lambda y: y, **fixed):
    """Operators with one `dim`, on tensors that have one."""

    def call(draw, shape):
        dim = dim_of(draw, shape)
        function = name if callable(name) else getattr(T, name)
        return lambda x: result(function(x, dim, **fixed))

    return shaped(call, shapes, domain, least=1)


def reduction(name, domain=WIDE, shapes=SHAPES, several=True, result=lambda y: y, args=(), **fixed):
    """Operators that reduce everything, one dimension or several, keeping them or not."""

    def call(draw, shape):
        if not shape or draw(st.booleans()):
            return lambda x: result(getattr(T, name)(x, *args, **fixed))
        keep = draw(st.booleans())
        dim = dim_of(draw, shape)
        if several and draw(st.booleans()):
            dim = tuple(draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True)))
        return lambda x: result(getattr(T, name)(x, *args, dim, keepdim=keep, **fixed))

    return shaped(call, shapes, domain)


def view(call, least=0, shapes=FULL):
    return shaped(lambda draw, shape: call(draw, shape), shapes, least=least)


def product(name, make):
    """Matrix products: `make(i, j, k, b)` gives the shapes of the operands for four drawn sizes."""

    def sample(draw):
        i, j, k, b = (draw(st.integers(0, 3)) for _ in range(4))
        return [values(s, draw(SEEDS)) for s in make(i, j, k, b)], named(name)

    return sample


def any_product(name):
    """Vectors, matrices and batches of either, on both sides."""
    makes = [
        lambda i, j, k, b: [(i, j), (j, k)],
        lambda i, j, k, b: [(j,), (j, k)],
        lambda i, j, k, b: [(i, j), (j,)],
        lambda i, j, k, b: [(j,), (j,)],
        lambda i, j, k, b: [(b, i, j), (j, k)],
        lambda i, j, k, b: [(i, j), (b, j, k)],
        lambda i, j, k, b: [(b, 1, i, j), (2, j, k)],
        lambda i, j, k, b: [(j,), (b, j, k)],
        lambda i, j, k, b: [(b, i, j), (j,)],
    ]
    return lambda draw: product(name, draw(st.sampled_from(makes)))(draw)


def indexed(call, extra=lambda draw, index_shape: []):
    """Operators along a dimension with an index tensor of the operand's own rank: gather and its kin."""

    def sample(draw):
        shape = draw(SOME)
        dim = draw(st.integers(0, len(shape) - 1))
        where = tuple(draw(st.integers(0, n)) for n in shape)
        index = integers(where, draw(SEEDS), 0, shape[dim])
        return [values(shape, draw(SEEDS)), index, *extra(draw, where)], lambda x, i, *rest: call(x, dim, i, *rest)

    return sample


def listed(call, extra=lambda draw, shape, dim, n: []):
    """The same with a list of positions along one dimension: index_select and its kin."""

    def sample(draw):
        shape = draw(SOME)
        dim = draw(st.integers(0, len(shape) - 1))
        n = draw(st.integers(0, 4))
        index = integers((n,), draw(SEEDS), 0, shape[dim])
        return [values(shape, draw(SEEDS)), index, *extra(draw, shape, dim, n)], lambda x, i, *rest: call(x, dim, i, *rest)

    return sample


def scattered():
    """Every place of a line is written once."""

    def sample(draw):
        n = draw(st.integers(1, 3))
        index = T.tensor([draw(st.permutations(range(n)))])
        return [values((2, n), draw(SEEDS)), index, values((1, n), draw(SEEDS))], lambda x, i, y: T.scatter(x, 1, i, y)

    return sample


def replaced(shape, dim, n):
    return (*shape[:dim], n, *shape[dim + 1 :])


def joined(name, dims):
    def sample(draw):
        shape = draw(SOME)
        dim = draw(st.integers(0, len(shape) - 1))
        sizes = [draw(st.integers(0, 3)) if name == "cat" else shape[dim] for _ in range(draw(st.integers(1, 3)))]
        parts = [values(replaced(shape, dim, n), draw(SEEDS)) for n in sizes]
        return parts, (lambda *xs: getattr(T, name)(xs, dim)) if dims else (lambda *xs: getattr(T, name)(xs))

    return sample


def permutation(draw, shape):
    order = draw(st.permutations(range(len(shape))))
    return lambda x: x.permute(order)


def reshaped(draw, shape):
    n = math.prod(shape)
    first = draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0]))
    return lambda x: x.reshape(first, -1)


def masked(call, extra=()):
    def sample(draw):
        shape = draw(SHAPES)
        return [
            values(shape, draw(SEEDS)),
            coins(narrower(draw, shape), draw(SEEDS)),
            *(values(s, draw(SEEDS)) for s in extra),
        ], call

    return sample


def loss(name, target, reduction=True):
    def sample(draw):
        n, classes = draw(st.integers(1, 3)), draw(st.integers(1, 4))
        how = draw(st.sampled_from(["mean", "sum", "none"]))
        return [values((n, classes), draw(SEEDS)), target(draw, n, classes)], lambda x, y: getattr(T.nn.functional, name)(
            x, y, reduction=how
        )

    return sample


def fixed(shapes, call, domain=WIDE):
    return lambda draw: ([values(s, draw(SEEDS), domain) for s in shapes], call)


def leaky(call):
    """One slope for all, or one for each channel."""

    def sample(draw):
        shape = draw(SHAPES)
        own = len(shape) > 1 and shape[1] > 0 and draw(st.booleans())
        return [values(shape, draw(SEEDS)), values((shape[1] if own else 1,), draw(SEEDS))], call

    return sample


def widened(call):
    """Halves go by way of float32: PyTorch's CPU has no kernel for them."""

    def run(*xs):
        wide = (x.to(T.float32) if x.is_floating_point() and x.dtype.itemsize == 2 else x for x in xs)
        return call(*wide).to(xs[0].dtype)

    return run


def of_wide(sample):
    """A sampler whose function goes that way."""

    def widen(draw):
        operands, call = sample(draw)
        return operands, widened(call)

    return widen


def softly():
    """Targets of 1 and -1, which have no gradient."""

    def call(draw, shape):
        signs = coins(shape, draw(SEEDS)) * 2.0 - 1.0
        how = draw(st.sampled_from(["mean", "sum", "none"]))
        return lambda x: T.nn.functional.soft_margin_loss(x, signs.to(x.device, x.dtype), reduction=how)

    return shaped(call)


def distances(orders):
    """Vectors of which no two are equal, and an order that the norm has."""

    def sample(draw):
        seed, p = 2 * draw(SEEDS), draw(st.sampled_from(orders))
        return [values((2, 3), seed), values((4, 3), seed + 1)], widened(lambda x, y: T.cdist(x, y, p))

    return sample


def resized():
    """Resizing by every rule, longer and shorter."""

    def sample(draw):
        dims = draw(st.integers(1, 3))
        rules = [["linear"], ["bilinear", "bicubic"], ["trilinear"]][dims - 1]
        rule = draw(st.sampled_from(["nearest", "nearest-exact", *rules]))
        options = {} if rule.startswith("nearest") else {"align_corners": draw(st.booleans())}
        if rule.startswith("bi"):
            options["antialias"] = draw(st.booleans())
        shape = (1, 2, *(draw(st.integers(1, 4)) for _ in range(dims)))
        size = [draw(st.integers(1, 5)) for _ in range(dims)]
        call = lambda x: T.nn.functional.interpolate(x, size, mode=rule, **options)  # noqa: E731
        return [values(shape, draw(SEEDS))], call

    return sample


def gridded():
    """Places in images, not where neighbours change."""

    def sample(draw):
        kernel, padding, align = draw(st.sampled_from([0, 1, 2])), draw(st.integers(0, 2)), draw(st.booleans())
        flat = draw(st.booleans())
        shape, places = ((1, 2, 3, 4), (1, 2, 2, 2)) if flat else ((1, 1, 2, 3, 2), (1, 1, 2, 1, 3))
        # At these places no neighbour changes within a step of the differences.
        seed = draw(SEEDS)
        grid = values(places, seed, (-1.3, 1.3))
        grid = (grid * 50).floor() / 50 + 0.0073
        return [values(shape, seed + 1), grid], lambda x, g: T.grid_sampler(x, g, kernel, padding, align)

    return sample


def window(draw, shape):
    dim = draw(st.integers(0, len(shape) - 1))
    size, step = draw(st.integers(1, shape[dim])), draw(st.integers(1, 2))
    return lambda x: x.unfold(dim, size, step)


def two_dims(name):
    def call(draw, shape):
        a, b = dim_of(draw, shape), dim_of(draw, shape)
        return lambda x: getattr(T, name)(x, a, b)

    return view(call, least=1)


def diagonal(draw, shape):
    a, b = draw(st.permutations(range(len(shape))))[:2]
    offset = draw(st.integers(-2, 2))
    return lambda x: x.diagonal(offset, a, b)


def extreme(name):
    return reduction(name, shapes=FULL, several=False, result=lambda y: y if T.is_tensor(y) else y[0])


def extreme_pair():
    return shaped(lambda draw, shape: lambda x: tuple(T.aminmax(x)))


def normed(name):
    orders = st.sampled_from([2, 1, 3, float("inf")])
    return lambda draw: reduction(name, shapes=FULL, args=(draw(orders),))(draw)


def spread_of(name):
    """Variances: of one number there is none."""
    if name.endswith("_mean"):
        return shaped(lambda draw, shape: lambda x: getattr(T, name)(x, 0), st.just((3, 2)))
    return lambda draw: reduction(name, shapes=st.just((3, 2, 4)), correction=draw(st.integers(0, 1)))(draw)


def layered():
    """A normalization over the last dimension, scaled and shifted or not."""

    def sample(draw):
        lead, width, affine = draw(FULL), draw(st.integers(2, 4)), draw(st.booleans())
        shapes = [(*lead, width), (width,), (width,)][: 3 if affine else 1]
        return [values(s, draw(SEEDS)) for s in shapes], lambda x, *rest: T.layer_norm(x, (width,), *rest)

    return sample


def layered_by_root():
    """The same by the root of the mean square, which has no shift."""

    def sample(draw):
        lead, width = draw(FULL), draw(st.integers(1, 4))
        shapes = [(*lead, width), (width,)][: draw(st.integers(1, 2))]
        return [values(s, draw(SEEDS)) for s in shapes], lambda x, *rest: T.rms_norm(x, (width,), *rest, eps=0.1)

    return sample


def channels(draw, *rest):
    """A batch of channels, and what they are scaled and shifted with."""
    count, n = draw(st.integers(1, 4)), draw(st.integers(2, 3))
    shapes = [(n, count, *rest), (count,), (count,)][: draw(st.integers(1, 3))]
    return count, [values(s, draw(SEEDS)) for s in shapes]


def with_statistics(draw, count):
    """Nothing, or what was seen before: means and spreads of the channels."""
    if draw(st.booleans()):
        return None
    return values((count,), draw(SEEDS)), values((count,), draw(SEEDS), (0.5, 2.0))


def channelled():
    """Normalization over a batch, by its own statistics or by given ones."""

    def sample(draw):
        count, operands = channels(draw, *draw(st.sampled_from([(), (2,), (2, 3), (40,)])))
        given = with_statistics(draw, count)

        def call(x, weight=None, bias=None):
            mean, var = (t.to(x.device, x.dtype) for t in given) if given else (None, None)
            return T.batch_norm(x, weight, bias, mean, var, given is None, 0.1, 0.1, False)

        return operands, call

    return sample


def channelled_alone():
    """Normalization of each channel of each sample."""

    def sample(draw):
        _, operands = channels(draw, *draw(st.sampled_from([(3,), (2, 3)])))
        return operands, lambda x, weight=None, bias=None: T.instance_norm(x, weight, bias, None, None, True, 0.1, 0.1, False)

    return sample


def grouped():
    """Normalization of groups of channels."""

    def sample(draw):
        count, operands = channels(draw, *draw(st.sampled_from([(3,), (2, 3), (40,)])))
        groups = draw(st.sampled_from([n for n in range(1, count + 1) if count % n == 0]))
        return operands, lambda x, weight=None, bias=None: T.group_norm(x, groups, weight, bias, 0.1)

    return sample


def attending():
    """Queries, keys and values, with a mask or without."""

    def sample(draw):
        heads, queries, keys, width = (draw(st.integers(1, 3)) for _ in range(4))
        lead = draw(st.sampled_from([(), (heads,), (2, heads)]))
        shapes = [(*lead, queries, width), (*lead, keys, width), (*lead, keys, width)]
        mask = draw(st.sampled_from([None, "causal", "seen", "added"]))
        given = coins((queries, keys), draw(SEEDS)) if mask == "seen" else values((queries, keys), draw(SEEDS))

        def call(q, k, v):
            own = {"seen": given.to(q.device), "added": given.to(q.device, q.dtype)}.get(mask)
            return T.nn.functional.scaled_dot_product_attention(q, k, v, own, is_causal=mask == "causal", scale=0.7)

        return [values(s, draw(SEEDS)) for s in shapes], call

    return sample


def recurrent(name):
    """Layers of one or two directions, with biases or without."""
    gates = {"lstm": 4, "gru": 3}.get(name, 1)

    def sample(draw):
        steps, count, width, units = (draw(st.integers(1, 2)) for _ in range(4))
        both, biases = draw(st.booleans()), draw(st.booleans())
        layer = [(gates * units, width), (gates * units, units), *[(gates * units,)] * (2 * biases)]
        directions = 1 + both
        states = [(directions, count, units)] * (2 if name == "lstm" else 1)
        shapes = [(steps, count, width), *states, *layer * directions]

        def call(x, *rest):
            hx, params = rest[: len(states)], rest[len(states) :]
            hx = hx if name == "lstm" else hx[0]
            made = getattr(T, name)(x, hx, params, biases, 1, 0.0, False, both, False)
            return tuple(made)

        return [values(s, draw(SEEDS)) for s in shapes], call

    return sample


def recurrent_step(name):
    """A step of a cell, with biases or without."""
    gates = {"lstm_cell": 4, "gru_cell": 3}.get(name, 1)

    def sample(draw):
        count, width, units = (draw(st.integers(1, 3)) for _ in range(3))
        states = [(count, units)] * (2 if name == "lstm_cell" else 1)
        weights = [(gates * units, width), (gates * units, units), *[(gates * units,)] * draw(st.sampled_from([0, 2]))]

        def call(x, *rest):
            hx, params = rest[: len(states)], rest[len(states) :]
            made = getattr(T, name)(x, hx if name == "lstm_cell" else hx[0], *params)
            return tuple(made) if name == "lstm_cell" else made

        return [values(s, draw(SEEDS)) for s in [(count, width), *states, *weights]], call

    return sample


def looked_up():
    """A table, and numbers of its rows."""

    def sample(draw):
        count, shape = draw(st.integers(1, 4)), draw(SHAPES)
        table = values((count, draw(st.integers(1, 3))), draw(SEEDS))
        return [table, integers(shape, draw(SEEDS), 0, count)], T.embedding

    return sample


def convolved(name):
    """Windows moved over images: strides, padding, dilation, groups, with a bias or without, one sample or several."""
    transposed = "transpose" in name

    def sample(draw):
        dims = int(name[-2]) if name[-1] == "d" else draw(st.integers(1, 2))
        few = st.lists(st.integers(1, 2), min_size=dims, max_size=dims)
        groups, outputs, kernel, image = draw(st.integers(1, 2)), draw(st.integers(1, 2)), draw(few), draw(few)
        stride, dilation, padding = draw(few), draw(few), [n - 1 for n in draw(few)]
        inputs = draw(st.integers(1, 2))
        across = dilation if transposed else [d * (k - 1) for d, k in zip(dilation, kernel)]
        image = [n + a + p for n, a, p in zip(image, across, padding)]
        lead = () if draw(st.booleans()) and name != "convolution" else (draw(st.integers(1, 2)),)
        weight = (groups * inputs, outputs, *kernel) if transposed else (groups * outputs, inputs, *kernel)
        shapes = [(*lead, groups * inputs, *image), weight, (groups * outputs,)]
        shapes = shapes[: draw(st.integers(2, 3))]

        def call(x, w, b=None):
            if name == "convolution":
                return T.convolution(x, w, b, stride, padding, dilation, False, [0] * dims, groups)
            return getattr(T, name)(x, w, b, stride=stride, padding=padding, dilation=dilation, groups=groups)

        return [values(s, draw(SEEDS)) for s in shapes], call

    return sample


def bagged():
    """A table, numbers of its rows, and where bags of them begin."""

    def sample(draw):
        count, n = draw(st.integers(1, 4)), draw(st.integers(0, 5))
        mode = draw(st.integers(0, 2))
        starts = [0, *sorted(draw(st.lists(st.integers(0, n), max_size=3)))]
        operands = [values((count, 2), draw(SEEDS)), integers((n,), draw(SEEDS), 0, count)]
        if mode == 0 and draw(st.booleans()):
            operands.append(values((n,), draw(SEEDS)))

        def call(table, indices, *share):
            offsets = T.tensor(starts, device=table.device)
            return T.embedding_bag(table, indices, offsets, False, mode, False, *share)[0]

        return operands, call

    return sample


def distinct(shape, seed):
    """Values that are far from one another, so that small steps change no order."""
    n = math.prod(shape)
    order = random.Random(seed).sample(range(n), n)
    return T.tensor([0.3 * i - 1 for i in order], dtype=T.float64).reshape(tuple(shape))


def pooled(name):
    """Windows over images: sliding ones, parts of the whole, or such at random places."""
    F, dims = T.nn.functional, int(name[name.index("pool") + 4])

    def sample(draw):
        few = st.lists(st.integers(1, 3), min_size=dims, max_size=dims)
        kernel, more = draw(few), draw(few)
        shape = [*draw(st.lists(st.integers(1, 2), min_size=1, max_size=2)), *(k + m for k, m in zip(kernel, more))]
        x = distinct(shape, draw(SEEDS))
        call = getattr(F, name)
        if "adaptive" in name:
            return [x], lambda x: values_of(call(x, more))
        if "fractional" in name:
            numbers = values((shape[0] if len(shape) == dims + 2 else 1, shape[-dims - 1], dims), draw(SEEDS), (0.0, 1.0))
            sizes = [min(m, 2) for m in more]
            return [x], lambda x: values_of(call(x, kernel, sizes, _random_samples=numbers.to(x.device, x.dtype)))
        stride, padding, ceil = draw(few), [draw(st.integers(0, k // 2)) for k in kernel], draw(st.booleans())
        if "avg" in name:
            options = {"count_include_pad": draw(st.booleans())}
            if dims > 1 and draw(st.booleans()):
                options["divisor_override"] = 3
            return [x], lambda x: call(x, kernel, stride, padding, ceil, **options)
        return [x], lambda x: values_of(call(x, kernel, stride, padding, 1, ceil))

    return sample


def values_of(found):
    return found if T.is_tensor(found) else found[0]


def unpooled(name):
    """Values that go to places of their own."""
    dims = int(name[-2])

    def sample(draw):
        sizes = draw(st.lists(st.integers(1, 3), min_size=dims, max_size=dims))
        shape = [*draw(st.lists(st.integers(1, 2), min_size=1, max_size=2)), *sizes]
        plane = [2 * n for n in sizes]
        r = random.Random(draw(SEEDS))
        places = [r.sample(range(math.prod(plane)), math.prod(sizes)) for _ in range(math.prod(shape[:-dims]))]
        index = T.tensor(places, dtype=T.int64).reshape(tuple(shape))
        return [values(shape, draw(SEEDS)), index], lambda x, i: getattr(T.nn.functional, name)(x, i, 2)

    return sample


def unfolded(name):
    """Images as columns, and back."""

    def sample(draw):
        few = st.lists(st.integers(1, 2), min_size=2, max_size=2)
        kernel, dilation, stride, count = (draw(few) for _ in range(4))
        padding = [draw(st.integers(0, 1)), draw(st.integers(0, 1))]
        image = [(n - 1) * s + d * (k - 1) + 1 for n, s, d, k in zip(count, stride, dilation, kernel)]
        padding = [p if n > 2 * p else 0 for n, p in zip(image, padding)]
        image = [n - 2 * p for n, p in zip(image, padding)]
        lead = draw(st.lists(st.integers(1, 2), max_size=1))
        F = T.nn.functional
        if name == "im2col":
            return [values((*lead, 2, *image), draw(SEEDS))], lambda x: F.unfold(x, kernel, dilation, padding, stride)
        columns = (*lead, 2 * math.prod(kernel), math.prod(count))
        return [values(columns, draw(SEEDS))], lambda x: F.fold(x, image, kernel, dilation, padding, stride)

    return sample


def of_row(name, sample):
    """The sampler that a row asks for: an expression over the functions of this file and of matrices.py, `T` and `F`; `name` is
    the row's."""
    import matrices

    return eval(sample, {**globals(), **vars(matrices), "name": name, "F": T.nn.functional}) if sample else None
