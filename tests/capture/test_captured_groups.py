"""Groups of captured kernels: random programs of pointwise operators, replayed with the bits that operators give."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from library import T

F = T.nn.functional

UNARY = """abs neg exp log sqrt sin cos tanh sigmoid relu erf square reciprocal rsqrt floor ceil round trunc sign expm1 log1p atan
sinh cosh asinh logical_not isnan isfinite bitwise_not positive deg2rad sgn exp2 log2 lgamma digamma erfc frac signbit clone""".split()
BINARY = """add sub mul maximum minimum fmax fmin atan2 eq lt gt ne ge le logical_and logical_or logical_xor bitwise_and
bitwise_or bitwise_xor copysign hypot logaddexp xlogy heaviside""".split()
FLOAT_BINARY = ["div", "pow", "fmod", "remainder", "floor_divide"]
IN_PLACE = [
    "add_",
    "sub_",
    "mul_",
    "neg_",
    "exp_",
    "tanh_",
    "abs_",
    "sqrt_",
    "zero_",
    "clamp_min_",
    "copy_",
    "fill_",
    "sigmoid_",
]
NUMBERS = [2, 3, -1, 0, 0.5, -2.5, 1e-3, 7, True]
FLOATS = [T.float32, T.float64, T.float16, T.bfloat16]
INTEGERS = [T.int64, T.int32, T.int16, T.int8, T.uint8, T.bool]
COMPLEX = [T.complex64, T.complex128]
SHAPES = [(), (1,), (7,), (3, 4), (5, 1, 9), (2, 3, 16), (40, 70), (600,), (3, 2000)]


def parts(rng, shape):
    """A shape that is broadcast to `shape`, or `shape` itself."""
    if rng.random() < 0.6:
        return shape
    kept = [n if rng.random() < 0.6 else 1 for n in shape]
    return tuple(kept[rng.randrange(len(kept) + 1) :])


def make(rng, shape, dtype, generator):
    if dtype == T.bool:
        return T.rand(shape, generator=generator) < 0.5
    if dtype in INTEGERS:
        low = 0 if dtype == T.uint8 else -9
        return T.randint(low, 9, shape, generator=generator).to(dtype)
    values = T.randn(shape, generator=generator, dtype=T.float64) * rng.choice([1, 1, 3])
    if dtype in COMPLEX:
        return T.complex(values, T.randn(shape, generator=generator, dtype=T.float64)).to(dtype)
    return values.to(dtype)


def inputs_of(seed, elements):
    rng, generator = random.Random(seed), T.Generator().manual_seed(elements)
    kind = rng.random()
    dtypes = COMPLEX + FLOATS[:2] if kind < 0.1 else INTEGERS + FLOATS[:1] if kind < 0.3 else FLOATS
    one = [rng.choice(dtypes)] if rng.random() < 0.7 else dtypes
    shape = rng.choice(SHAPES)
    wants = rng.random() < 0.6
    inputs = [make(rng, parts(rng, shape), rng.choice(one), generator) for _ in range(rng.randint(1, 4))]
    return [x.requires_grad_(wants and (x.is_floating_point() or x.is_complex())) for x in inputs]


def fold(rng, x):
    """A number for all elements, or for those of the last dimensions."""
    name = rng.choice(["sum", "mean", "amax", "amin"])
    dims = rng.choice([(), (-1,), (-2, -1), (0,)])
    if len(dims) > x.ndim or x.is_complex():
        return x.sum()
    if name == "mean" and not x.is_floating_point():
        name = "amax"
    return getattr(x, name)(dims or tuple(range(x.ndim)), keepdim=rng.random() < 0.5)


def step(rng, values):
    """One more operator over some of the values."""
    x, y = rng.choice(values), rng.choice(values)
    kind = rng.random()
    number = rng.choice(NUMBERS)
    if kind < 0.3:
        return getattr(T, rng.choice(UNARY))(x)
    if kind < 0.55:
        return getattr(T, rng.choice(BINARY))(x, number if rng.random() < 0.25 else y)
    if kind < 0.62:
        if not (x.is_floating_point() and y.is_floating_point()):
            return x + y
        return getattr(T, rng.choice(FLOAT_BINARY))(x, number or 1 if rng.random() < 0.4 else y)
    if kind < 0.68:
        return T.where(x > number if not x.is_complex() else x == x, x, y)
    if kind < 0.72:
        return x.to(rng.choice(FLOATS[:2] + [x.dtype, T.float16]) if not x.is_complex() else x.dtype)
    if kind < 0.76:
        z = rng.choice(values)
        return T.addcmul(x, y, z) if rng.random() < 0.5 or x.is_complex() else T.lerp(x, y, 0.3)
    if kind < 0.82:
        views = [
            lambda: x.t() if x.ndim == 2 else x,
            lambda: x.flatten(),
            lambda: x[..., :1],
            lambda: x[1:],
            lambda: x.expand_as(x),
        ]
        return rng.choice(views)()
    if kind < 0.86:
        return F.softplus(x) if rng.random() < 0.5 else F.gelu(x)
    if kind < 0.88:
        return fold(rng, x)
    # Writes, also through views.
    target = x if x.grad_fn is not None or not x.requires_grad else x.clone()
    if rng.random() < 0.5 and target.ndim > 0:
        target = rng.choice([lambda: target[:1], lambda: target[..., 1:], lambda: target.view(-1), lambda: target.t()])()
    name = rng.choice(IN_PLACE)
    method = getattr(target, name)
    if name in ("add_", "sub_", "mul_", "copy_"):
        method(y)
    elif name in ("clamp_min_", "fill_"):
        method(number)
    else:
        method()
    return target


def run(seed, inputs):
    """The results of the program of this seed, and gradients."""
    rng = random.Random(seed + 1)
    values = list(inputs)
    for _ in range(rng.randint(2, 30)):
        try:
            made = step(rng, values)
        except (RuntimeError, TypeError, IndexError, ValueError) as error:
            assert "not permitted when stream is capturing" not in str(error), error
            continue
        if made.numel() > 0:
            values.append(made)
    results = [v for v in values[len(inputs) :] if rng.random() < 0.6]
    wants = [x for x in inputs if x.requires_grad]
    ends = [v for v in results if v.requires_grad]
    if wants and ends:
        try:
            given = [T.ones_like(v) for v in ends]
            grads = T.autograd.grad(ends, wants, given, allow_unused=True)
            results += [g for g in grads if g is not None]
        except RuntimeError as error:
            assert "not permitted when stream is capturing" not in str(error), error
    return results


def bits(tensor):
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if tensor.is_complex():
        tensor = T.view_as_real(tensor)
    if not tensor.is_floating_point():
        return tensor.dtype, tuple(tensor.shape), tensor.tolist()
    known = T.where(T.isnan(tensor), T.zeros_like(tensor), tensor)
    same_size = {2: T.int16, 4: T.int32, 8: T.int64}[tensor.element_size()]
    return tensor.dtype, tuple(tensor.shape), known.view(same_size).tolist(), T.isnan(tensor).tolist()


def check(seed):
    inputs = inputs_of(seed, 1)
    originals = [x.detach().clone() for x in inputs]
    graph = T.cuda.CUDAGraph()
    with T.cuda.graph(graph):
        captured = run(seed, inputs)
    for elements in (1, 2):
        fresh = inputs_of(seed, elements)
        with T.no_grad():
            for x, new in zip(inputs, fresh):
                x.copy_(new)
        graph.replay()
        got = [bits(t) for t in captured]
        inputs_after = [bits(x) for x in inputs]
        expected = [bits(t) for t in run(seed, fresh)]
        assert len(got) == len(expected)
        for a, b in zip(got, expected):
            assert a == b, (seed, elements, a[:2], b[:2])
        assert inputs_after == [bits(x) for x in fresh], (seed, elements)
    assert len(originals) == len(inputs)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**40))
def test_random_programs_have_the_bits_of_operators(seed):
    check(seed)


def capture(call):
    graph = T.cuda.CUDAGraph()
    with T.cuda.graph(graph):
        result = call()
    return graph, result


def test_a_chain_with_its_backward_is_one_group():
    x = T.randn(100, requires_grad=True)

    def step():
        y = x
        for _ in range(5):
            y = (y * 1.1).tanh()
        return T.autograd.grad(y.sum(), x)[0]

    graph, grad = capture(step)
    captured = graph._captured
    assert captured.groups == 1 and captured.units == 1 and captured.kernels > 15
    assert captured.bytes_apart > 10 * captured.traffic
    graph.replay()
    assert T.equal(grad, step())


def test_numbers_as_tensors_are_one_group_without_memory():
    x = T.tensor(1.01, requires_grad=True)

    def step():
        y = x
        for _ in range(100):
            y = y * x
        return T.autograd.grad(y, x)[0]

    graph, grad = capture(step)
    assert graph._captured.units == 1 and graph._captured.bytes == 0
    graph.replay()
    assert T.equal(grad, step())


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape,dims",
    [
        ((7,), None),
        ((300_000,), None),
        ((40, 7), (1,)),
        ((40, 8), (1,)),
        ((5, 3, 129), (1, 2)),
        ((3, 5, 3000), (2,)),
        ((2, 140_000), (1,)),
        ((20, 30), (0,)),
        ((20, 1, 30), (0, 2)),
    ],
)
def test_folds_take_the_tiles_of_a_group(shape, dims, dtype):
    x, w = T.randn(shape).to(dtype), T.randn(shape[-1:]).to(dtype)
    x.view(-1)[5] = float("nan")
    x.view(-1)[1:3] = T.tensor([-0.0, 0.0])

    def step():
        y = x * w
        z = y.relu()
        dim = tuple(range(x.ndim)) if dims is None else dims
        folds = [(y + 1).sum(dim), z.mean(dim, keepdim=True), y.amax(dim), z.amin(dim), (y * y).sum(dim, dtype=T.float64)]
        return [*folds, z + 1]

    graph, results = capture(step)
    for threads in (1, 2):
        before = T.get_num_threads()
        T.set_num_threads(threads)
        graph.replay()
        assert list(map(bits, results)) == list(map(bits, step()))
        T.set_num_threads(before)


def test_a_loss_and_its_backward_are_one_group():
    x = T.randn(50, 100, requires_grad=True)

    def step():
        loss = (x.sigmoid() * x + 1).mean()
        return loss.detach(), *T.autograd.grad(loss, x)

    graph, results = capture(step)
    captured = graph._captured
    # `x` is read, its gradient written.
    assert captured.units == 1 and captured.bytes == 0 and captured.traffic == 2 * x.nbytes + 4
    graph.replay()
    assert all(map(T.equal, results, step()))


def test_large_values_are_computed_again():
    x = T.randn(700, 600)

    def step():
        d = x - x.mean(1, keepdim=True)
        return d * (d * d).mean(1, keepdim=True).add(1e-5).rsqrt()

    graph, result = capture(step)
    captured = graph._captured
    # Memory has room for means and variances only: `x` is read three times.
    assert captured.bytes < 4 * 700 * 4 and captured.traffic < 4.1 * x.nbytes
    graph.replay()
    assert T.equal(result, step())
    x.mul_(3)
    graph.replay()
    assert T.equal(result, step())


def test_values_are_not_computed_again_from_what_has_changed():
    x, y = T.randn(700, 600), T.randn(700, 600)

    def step():
        z = x * y
        total = z.sum()
        y.copy_(x)
        return z / total

    graph, result = capture(step)
    before = y.clone()
    graph.replay()
    y.copy_(before)
    assert T.equal(result, step())


def test_what_reads_a_fold_comes_after_it():
    x = T.randn(6, 50)

    def step():
        y = x * 2
        total = y.sum(1, keepdim=True)
        y = y / total
        total.add_(1)
        return y * total, total, x.sub_(y).amax()

    graph, results = capture(step)
    before = x.clone()
    graph.replay()
    got = [bits(r) for r in (*results, x)]
    x.copy_(before)
    assert got == [bits(r) for r in (*step(), x)]


def test_what_nobody_reads_is_not_computed():
    x = T.randn(50)
    graph, _ = capture(lambda: [(x * 2).exp(), None][1])
    assert graph._captured.units == 0
    graph.replay()


def test_writes_stay_in_order():
    x, y = T.arange(40.0), T.arange(40.0)

    def step():
        a = x * 2
        x.add_(1)
        b = x * 3
        y.copy_(a)
        y.mul_(b)
        a.zero_()
        return a + y, b

    graph, results = capture(step)
    old_x, old_y = x.clone(), y.clone()
    graph.replay()
    got = [r.clone() for r in results] + [x.clone(), y.clone()]
    x.copy_(old_x)
    y.copy_(old_y)
    expected = [*step(), x, y]
    assert all(T.equal(a, b) for a, b in zip(got, expected))


def test_views_that_overlap_do_not_join():
    x = T.arange(100.0)

    def step():
        x[1:].copy_(x[1:] * 2)
        x[:-1].add_(1)
        return x[50:] - x[:50]

    graph, result = capture(step)
    before = x.clone()
    graph.replay()
    got, after = result.clone(), x.clone()
    x.copy_(before)
    assert T.equal(got, step()) and T.equal(after, x)


def test_arrays_that_share_memory():
    np = pytest.importorskip("numpy")
    array = np.arange(64, dtype=np.float32)
    a, b = T.from_numpy(array), T.from_numpy(array[::-1].copy())
    c = T.from_numpy(array[8:])

    def step():
        y = a * 2
        c.add_(1)
        return y, a + b

    graph, results = capture(step)
    before = a.clone()
    graph.replay()
    got = [r.clone() for r in results]
    a.copy_(before)
    assert all(T.equal(x, y) for x, y in zip(got, step()))


@pytest.mark.parametrize("shape", [(), (100,), (64, 33), (5, 7, 11)])
def test_several_threads_and_sizes(shape):
    x = T.randn(shape, requires_grad=True)
    w = T.randn(shape[-1:], requires_grad=True)

    def step():
        y = (x * w + 1).sigmoid() * x
        return [y, *T.autograd.grad(y.sum(), (x, w))]

    graph, results = capture(step)
    graph.replay()
    assert all(T.equal(a, b) for a, b in zip(results, step()))
