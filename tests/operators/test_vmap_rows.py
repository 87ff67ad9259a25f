"""Every differentiable row under vmap: the batched call, its gradient and a batch of its gradients, against a loop over samples."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_gradients import KNOWN, floating, leaves

from library import T, assert_values

vmap = T.func.vmap
COUNT = 3
# Their results have as many elements as the values say, or they count from the start of the storage.
DYNAMIC = {
    "as_strided",
    "as_strided_copy",
    "masked_select",
    "masked_scatter",
    "nonzero",
    "argwhere",
    "unique",
    "unique_consecutive",
}
by_row = pytest.mark.parametrize("name, sampler", [p for p in KNOWN if p.id not in DYNAMIC])


def varied(t, i):
    """Another sample of the same kind: numbers stay in the row's domain, indices and masks in range."""
    if floating(t):
        return t * (1 - 0.07 * i)
    return t.flip(0) if t.dim() and i % 2 else t.clone()


@cache
def choices(count):
    """Which of `count` things are chosen: at least one."""
    return st.lists(st.booleans(), min_size=count, max_size=count).filter(any)


def drawn(data, tensors):
    """Which operands are batched, and where their samples lie."""
    chosen = data.draw(choices(len(tensors)))
    return tuple(data.draw(st.integers(0, t.dim())) if batched else None for batched, t in zip(chosen, tensors))


def batch(tensors, dims):
    return [t if d is None else T.stack([varied(t, i) for i in range(COUNT)], d) for t, d in zip(tensors, dims)]


def sample(batched, dims, i):
    return [t if d is None else t.select(d, i) for t, d in zip(batched, dims)]


def listed(call):
    def wrapped(*tensors):
        out = call(*tensors)
        return (out,) if T.is_tensor(out) else tuple(out)

    return wrapped


def looped(call, batched, dims):
    parts = zip(*(call(*sample(batched, dims, i)) for i in range(COUNT)))
    return [T.stack(list(p)) for p in parts]


def agree(actual, expected, name):
    assert len(actual) == len(expected), name
    for a, e in zip(actual, expected):
        assert a.dtype == e.dtype
        assert_values(a, e, rtol=1e-7, atol=1e-8)


@by_row
@given(data=st.data())
@settings(max_examples=6)
def test_row(name, sampler, data):
    tensors, call = sampler(data.draw)
    call, dims = listed(call), drawn(data, tensors)
    batched = batch(tensors, dims)
    agree(vmap(call, in_dims=dims)(*batched), looped(call, batched, dims), name)


def weighted(results):
    parts = [(r * T.arange(1, r.numel() + 1, dtype=r.dtype).reshape(r.shape).cos()).sum() for r in results if floating(r)]
    return sum(parts[1:], parts[0])


def gradients(outputs, xs):
    y = weighted(outputs)
    if not y.requires_grad:
        return [T.zeros_like(x) for x in xs]
    found = T.autograd.grad(y, xs, allow_unused=True)
    return [T.zeros_like(x) if g is None else g for x, g in zip(xs, found)]


@by_row
@given(data=st.data())
@settings(max_examples=3)
def test_gradient_through_a_batched_row(name, sampler, data):
    tensors, call = sampler(data.draw)
    call, dims = listed(call), drawn(data, tensors)
    found = []
    for run in (lambda xs: vmap(call, in_dims=dims)(*xs), lambda xs: looped(call, xs, dims)):
        xs = leaves(batch(tensors, dims))
        found.append(gradients(run(xs), [x for x in xs if floating(x)]))
    agree(found[0], found[1], name)


@by_row
@given(data=st.data())
@settings(max_examples=3)
def test_batch_of_gradients(name, sampler, data):
    tensors, call = sampler(data.draw)
    xs = leaves(tensors)
    inputs = [x for x in xs if floating(x)]
    out = next((r for r in listed(call)(*xs) if floating(r)), None)
    if out is None or not out.requires_grad:
        return
    starts = T.stack([T.full_like(out, 1.0 + i).detach() for i in range(COUNT)])

    def back(start):
        found = T.autograd.grad(out, inputs, start, retain_graph=True, allow_unused=True)
        return tuple(T.zeros_like(x) if g is None else g for x, g in zip(inputs, found))

    parts = zip(*(back(start) for start in starts))
    agree(vmap(back)(starts), [T.stack(list(p)).detach() for p in parts], name)


@by_row
@given(data=st.data())
@settings(max_examples=2)
def test_row_under_two_levels(name, sampler, data):
    tensors, call = sampler(data.draw)
    call = listed(call)
    outer, inner = drawn(data, tensors), drawn(data, tensors)
    batched = batch(batch(tensors, inner), outer)
    loops = [looped(call, sample(batched, outer, i), inner) for i in range(COUNT)]
    expected = [T.stack(list(p)) for p in zip(*loops)]
    agree(vmap(vmap(call, in_dims=inner), in_dims=outer)(*batched), expected, name)
