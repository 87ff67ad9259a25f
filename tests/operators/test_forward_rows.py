"""Forward mode on every differentiable row: its tangents are what reverse mode says, to second order in every nesting."""

import math

import pytest
import samples
from hypothesis import given, settings
from hypothesis import strategies as st
from test_gradients import KNOWN, floating, inner, leaves, restrided, total

from library import IS_GRADIRON, T

fw = T.autograd.forward_ad
by_row = pytest.mark.parametrize("name, sampler", KNOWN)
# PyTorch's forward formulas for these write over what the second order needs, or cannot be differentiated.
FIRST_ORDER = "silu aminmax norm logsumexp logcumsumexp softmax log_softmax mse_loss cross_entropy".split()
SECOND = [p for p in KNOWN if IS_GRADIRON or p.id not in FIRST_ORDER]


def directions_for(tensors, seed):
    """A direction for each float operand, None for the others."""
    drawn = [samples.values(tuple(t.shape), seed + k, (-1.0, 1.0)) for k, t in enumerate(tensors)]
    return [d if floating(t) else None for d, t in zip(drawn, tensors)]


def dual(tensors, directions):
    return [t if d is None else fw.make_dual(t, d) for t, d in zip(tensors, directions)]


def tangent(t):
    found = fw.unpack_dual(t).tangent
    return T.zeros_like(t) if found is None else found


def gradients(y, xs, **options):
    inputs = [x for x in xs if floating(x)]
    found = T.autograd.grad(y, inputs, allow_unused=True, **options) if y.requires_grad else [None] * len(inputs)
    return [T.zeros_like(x) if g is None else g for x, g in zip(inputs, found)]


def present(values):
    return [v for v in values if v is not None]


def close(a, b, name):
    assert math.isclose(a, b, rel_tol=1e-8, abs_tol=1e-9), f"{name}: forward mode {a!r}, reverse mode {b!r}"


@by_row
@given(data=st.data())
@settings(max_examples=8)
def test_tangent(name, sampler, data):
    tensors, call = sampler(data.draw)
    tensors = [restrided(t, data.draw(st.sampled_from(["turned", "gaps", "plain"]))) for t in tensors]
    directions = directions_for(tensors, 5)
    some = [data.draw(st.booleans()) or k == 0 for k in range(len(tensors))]
    directions = [d if chosen else None for d, chosen in zip(directions, some)]
    weights, xs = [], leaves(tensors)
    expected = sum(
        (g * d).sum().item() for g, d in zip(every_gradient(total(call, xs, weights), xs), directions) if d is not None
    )
    with fw.dual_level():
        y = total(call, dual(tensors, directions), weights)
        got = tangent(y)
        assert got.shape == y.shape and got.dtype == y.dtype and not got.requires_grad
        close(got.item(), expected, name)


def every_gradient(y, xs):
    """The gradients of all operands, None for those that are not floating point."""
    found = iter(gradients(y, xs))
    return [next(found) if floating(x) else None for x in xs]


@pytest.mark.parametrize("name, sampler", SECOND)
@given(data=st.data())
@settings(max_examples=5)
def test_tangent_of_gradient_and_gradient_of_tangent(name, sampler, data):
    tensors, call = sampler(data.draw)
    across, along = directions_for(tensors, 11), directions_for(tensors, 23)
    weights, xs = [], leaves(tensors)
    first = gradients(total(call, xs, weights), xs, create_graph=True)
    across_slope = sum((g * d).sum() for g, d in zip(first, present(across)))
    expected = [g.detach() for g in gradients(across_slope, xs)]
    with fw.dual_level():
        # Forward over reverse: the tangent of the gradient along a direction is a Hessian-vector product.
        moved = dual(leaves(tensors), across)
        gradient = gradients(total(call, moved, weights), moved, create_graph=True)
        close(inner([tangent(g).detach() for g in gradient], present(along)), inner(expected, present(along)), name)
        # Reverse over forward: so is the gradient of the tangent.
        xs = leaves(tensors)
        slope = tangent(total(call, dual(xs, across), weights))
        got = gradients(slope, xs)
        close(inner(got, present(along)), inner(expected, present(along)), name)


@pytest.mark.gradiron
@by_row
@given(data=st.data())
@settings(max_examples=4)
def test_tangent_of_tangent(name, sampler, data):
    """Two levels, the inner one within the outer one: the second derivative along both directions."""
    tensors, call = sampler(data.draw)
    across, along = directions_for(tensors, 11), directions_for(tensors, 23)
    weights, xs = [], leaves(tensors)
    first = gradients(total(call, xs, weights), xs, create_graph=True)
    second = gradients(sum((g * d).sum() for g, d in zip(first, present(across))), xs)
    core = T._core
    outer, within = core.enter_dual_level(), core.enter_dual_level()
    try:
        moved = [t if d is None else core.make_dual(t, d, outer) for t, d in zip(tensors, along)]
        moved = [t if d is None else core.make_dual(t, d, within) for t, d in zip(moved, across)]
        once = core.unpack_dual(total(call, moved, weights), within)[1]
        twice = None if once is None else core.unpack_dual(once, outer)[1]
    finally:
        core.exit_dual_level(within)
        core.exit_dual_level(outer)
    close(0.0 if twice is None else twice.item(), inner(second, present(along)), name)
