"""Every differentiable row: gradient and second gradient against differences, any strides, both devices, all float dtypes."""

import math

import pytest
import samples
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_table import SAMPLES

from library import IS_GRADIRON, NO_GPU, T, assert_values, devices, dtype, gpu_flushes, near_subnormal

# These have no second derivative that is worth a number here, or their differences straddle a jump.
JUMPS = {"floor", "ceil", "round", "trunc", "sign", "floor_divide"}
STEP = 1e-5


def homes(name):
    for home in (T, T.nn.functional, getattr(T, "_core", T)):
        if hasattr(home, name):
            return getattr(home, name)
    return (lambda x, *a, **k: getattr(x, name)(*a, **k)) if hasattr(T.Tensor, name) else None


def rows():
    """Every operator of the table, and every public differentiable row with its sampler, None where there is none."""
    found = {name: sampler for name, sampler in SAMPLES.items() if homes(name) or name in ("index", "slice", "convert")}
    for row in T._core.rows() if IS_GRADIRON else ():
        name = row["name"]
        # What is drawn at random, or not derived, has no differences to compare with.
        drawn = "random" in (row["family"], row["sample"]) or row["sample"] == "underived"
        if row["differentiable"] and not drawn and homes(name) and name not in found:
            found[name] = samples.of_row(name, row["sample"])
            if row["family"] == "pointwise":
                found[name] = samples.pointwise(homes(name), operands(row["params"]), samples.DOMAINS.get(name, samples.WIDE))
    return list(found.items())


def operands(params):
    """How many tensors a pointwise row takes; the rest of its parameters have defaults."""
    return sum(1 for _, kind, _, default in params if kind in ("Tensor", "Operand") and default is None)


ROWS = rows()
KNOWN = [pytest.param(name, sampler, id=name) for name, sampler in ROWS if sampler is not None]
by_row = pytest.mark.parametrize("name, sampler", KNOWN)


def test_every_differentiable_row_has_a_sample():
    assert [name for name, sampler in ROWS if sampler is None] == [], "add these to sample_table.py"
    assert len(ROWS) > 100


def floating(t):
    return t.is_floating_point()


def total(call, tensors, weights):
    """The weighted sum of all float results: one number to differentiate. Draws the weights on its first call."""
    results = call(*tensors)
    results = [results] if T.is_tensor(results) else [r for r in results if floating(r)]
    if not weights:
        weights.extend(samples.values(tuple(r.shape), 77 + k, (-1.0, 1.0)) for k, r in enumerate(results))
    parts = [(r * w.to(r.device, r.dtype)).sum() for r, w in zip(results, weights)]
    return sum(parts[1:], parts[0])


def leaves(tensors):
    return [t.detach().clone().requires_grad_() if floating(t) else t for t in tensors]


def moved(tensors, directions, step):
    return [t + step * d if floating(t) else t for t, d in zip(tensors, directions)]


def inner(a, b):
    return sum((x.double() * y.double()).sum().item() for x, y in zip(a, b))


def slope(function, tensors, directions):
    return (function(moved(tensors, directions, STEP)) - function(moved(tensors, directions, -STEP))) / (2 * STEP)


def close(a, b, what):
    assert math.isclose(a, b, rel_tol=2e-5, abs_tol=2e-6), f"{what}: {a!r}, differences say {b!r}"


@by_row
@given(data=st.data())
@settings(max_examples=12)
def test_gradient(name, sampler, data):
    tensors, call = sampler(data.draw)
    directions = [samples.values(tuple(t.shape), 5 + k, (-1.0, 1.0)) for k, t in enumerate(tensors)]
    weights, xs = [], leaves(tensors)
    y = total(call, xs, weights)
    inputs = [x for x in xs if floating(x)]
    grads = T.autograd.grad(y, inputs, allow_unused=True)
    grads = [T.zeros_like(x) if g is None else g for x, g in zip(inputs, grads)]
    assert all(g.shape == x.shape and g.dtype == x.dtype for g, x in zip(grads, inputs))
    wanted = slope(lambda ts: total(call, ts, weights).item(), tensors, directions)
    if name not in JUMPS:
        close(inner(grads, [d for d, t in zip(directions, tensors) if floating(t)]), wanted, name)


@by_row
@given(data=st.data())
@settings(max_examples=6)
def test_second_gradient(name, sampler, data):
    tensors, call = sampler(data.draw)
    across = [samples.values(tuple(t.shape), 11 + k, (-1.0, 1.0)) for k, t in enumerate(tensors)]
    along = [samples.values(tuple(t.shape), 23 + k, (-1.0, 1.0)) for k, t in enumerate(tensors)]
    weights = []

    def first(ts, create_graph=False):
        """The derivative in the direction `across`."""
        inputs = [t for t in ts if floating(t)]
        grads = T.autograd.grad(total(call, ts, weights), inputs, create_graph=create_graph, allow_unused=True)
        parts = [(g * d).sum() for g, d in zip(grads, (a for a, t in zip(across, ts) if floating(t))) if g is not None]
        return sum(parts[1:], parts[0])

    xs = leaves(tensors)
    y = first(xs, create_graph=True)
    got = 0.0
    if y.requires_grad:
        inputs = [x for x in xs if floating(x)]
        grads = T.autograd.grad(y, inputs, allow_unused=True)
        got = inner(
            [T.zeros_like(x) if g is None else g for x, g in zip(inputs, grads)],
            [a for a, t in zip(along, tensors) if floating(t)],
        )
    if name not in JUMPS:
        close(got, slope(lambda ts: first(leaves(ts)).item(), tensors, along), name)


def restrided(t, how):
    """The same values, laid out differently: turned over, with gaps and an offset, or as it is."""
    if how == "turned":
        order = tuple(reversed(range(t.dim())))
        return t.permute(order).contiguous().permute(order)
    if how == "gaps" and t.dim():
        holder = T.empty((*t.shape[:-1], 2 * t.shape[-1] + 1), dtype=t.dtype, device=t.device).fill_(1)
        holder[..., 1::2] = t
        return holder[..., 1::2]
    return t.clone()


@by_row
@given(data=st.data())
@settings(max_examples=6)
def test_strided_equals_contiguous(name, sampler, data):
    tensors, call = sampler(data.draw)
    hows = [data.draw(st.sampled_from(["turned", "gaps", "plain"])) for _ in tensors]
    odd = [restrided(t, how) for t, how in zip(tensors, hows)]
    weights = []
    plain_leaves, odd_leaves = leaves(tensors), [t.detach().requires_grad_() if floating(t) else t for t in odd]
    outcomes = []
    for xs in (plain_leaves, odd_leaves):
        y = total(call, xs, weights)
        inputs = [x for x in xs if floating(x)]
        outcomes.append([y, *T.autograd.grad(y, inputs, allow_unused=True)])
    for a, b in zip(*outcomes):
        assert (a is None) == (b is None)
        if a is not None:
            assert_values(b, a, rtol=1e-10, atol=1e-11)


# The dtypes that the GPU has, and how close they come.
ON_GPU = {"float32": (2e-4, 2e-5), "float64": (1e-10, 1e-11)}
if IS_GRADIRON and not (NO_GPU or T._core._gpu.properties()["has_float64"]):
    del ON_GPU["float64"]


@pytest.mark.skipif("cuda" not in devices(), reason="the library under test has no GPU here")
@pytest.mark.parametrize("kind", ON_GPU)
@by_row
@given(data=st.data())
@settings(max_examples=3)
def test_gpu_equals_cpu(name, sampler, kind, data):
    tensors, call = sampler(data.draw)
    outcomes = []
    for place in ("cpu", "cuda"):
        weights = []
        xs = [t.to(place, dtype(kind)).requires_grad_() if floating(t) else t.to(place) for t in tensors]
        y = total(call, xs, weights)
        inputs = [x for x in xs if floating(x)]
        outcomes.append([y, *T.autograd.grad(y, inputs, allow_unused=True)])
    for a, b in zip(*outcomes):
        assert (a is None) == (b is None)
        if a is not None:
            assert str(b.device) == "cuda:0"
            rtol, atol = ON_GPU[kind]
            assert_values(b, a, rtol=rtol, atol=atol)


TOLERANCES = {"float32": (1e-4, 1e-5), "float16": (2e-2, 2e-2), "bfloat16": (1e-1, 1e-1)}
NO_HALF = {"erfinv", "lgamma", "digamma"}  # steep enough that half a unit of the input is more than the tolerance


@by_row
@given(data=st.data())
@settings(max_examples=3)
def test_float_dtypes(name, sampler, data):
    """Narrow dtypes compute what float64 computes for the same values, up to their own rounding."""
    tensors, call = sampler(data.draw)
    for kind in TOLERANCES:
        if kind == "float32" or name not in NO_HALF | JUMPS:
            compare_dtype(kind, tensors, call)


def compare_dtype(kind, tensors, call):
    narrow = [t.to(dtype(kind)) if floating(t) else t for t in tensors]
    wide = [t.double() if floating(t) else t for t in narrow]
    try:
        got = call(*narrow)
    except (RuntimeError, NotImplementedError):
        if IS_GRADIRON:
            raise
        return
    expected = call(*wide)
    pairs = [(got, expected)] if T.is_tensor(got) else list(zip(got, expected))
    for g, e in pairs:
        if not floating(e):
            continue
        assert g.dtype is dtype(kind) and g.shape == e.shape
        assert_values(g.double(), e, *TOLERANCES[kind])


@pytest.mark.gradiron
def test_rows_are_documented_and_typed():
    rows = T._core.rows()
    assert len(rows) >= 140
    assert [r["name"] for r in rows if len(r.get("doc", "").strip()) < 5] == []
    callables = [(r["name"], form) for r in rows for form in ("function", "method", "inplace", "nn") if r[form]]
    assert len(set(callables)) == len(callables)


EXTREMES = [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1e-40, -1e-40, 3.4e38, -3.4e38, 1.0, -1.0, 0.5]
UNARY = """
exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tanh sinh cosh sigmoid abs sign floor ceil round trunc relu square
reciprocal erf atan asinh neg
""".split()
BINARY = "maximum minimum fmax fmin add mul div sub pow atan2 eq ne lt le".split()


# The dtypes that the GPU has, and how close they come.
ON_GPU = {"float32": (2e-4, 2e-5), "float64": (1e-10, 1e-11)}
if IS_GRADIRON and not (NO_GPU or T._core._gpu.properties()["has_float64"]):
    del ON_GPU["float64"]


@pytest.mark.skipif("cuda" not in devices(), reason="the library under test has no GPU here")
@pytest.mark.parametrize("name", UNARY + BINARY)
def test_gpu_equals_cpu_at_the_extremes(name):
    some = EXTREMES[:7] if name in ("sin", "cos") else EXTREMES
    x = T.tensor([v for v in some if not (gpu_flushes() and near_subnormal(v))])
    y = x.cuda()
    function = getattr(T, name)
    here, there = (function(x), function(y)) if name in UNARY else (function(x[:, None], x), function(y[:, None], y))
    assert_values(there, here, rtol=1e-4, atol=1e-37)
