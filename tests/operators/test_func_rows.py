"""Every differentiable row in forward mode where points and directions are shared by all samples or not, each on its own:
against a loop over the samples. To second order as well, through a gradient."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_forward_rows import directions_for
from test_gradients import floating, total
from test_vmap_rows import COUNT, agree, by_row, choices, varied

from library import T

func = T.func


def mixed(data, tensors):
    """For each operand and for each direction whether the samples share it; they do not share all."""
    return [not own for own in data.draw(choices(2 * len(tensors)))]


def stacked(values, shared):
    return [t if t is None or one else T.stack([varied(t, i) for i in range(COUNT)]) for t, one in zip(values, shared)]


def picked(values, shared, i):
    return [t if t is None or one else t[i] for t, one in zip(values, shared)]


def compare(name, f, tensors, shared):
    """`f(points, directions)` for all samples at once and one by one."""
    count = len(tensors)
    directions = directions_for(tensors, 5)
    values = stacked([*tensors, *directions], shared)
    places = [i for i, v in enumerate(values) if v is not None]

    def whole(*given):
        full = [None] * len(values)
        for place, value in zip(places, given):
            full[place] = value
        return tuple(f(full[:count], full[count:]))

    dims = tuple(None if shared[i] else 0 for i in places)
    if all(dim is None for dim in dims):
        return
    found = func.vmap(whole, in_dims=dims)(*(values[i] for i in places))
    one_by_one = []
    for i in range(COUNT):
        sample = picked(values, shared, i)
        one_by_one.append(f(sample[:count], sample[count:]))
    agree(found, [T.stack(list(parts)) for parts in zip(*one_by_one)], name)


def pushed(function, points, directions):
    """What a function of some of the operands gives, and its tangents."""
    moving = [i for i, d in enumerate(directions) if d is not None]

    def of_moving(*given):
        full = list(points)
        for place, value in zip(moving, given):
            full[place] = value
        out = function(full)
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)

    value, tangent = func.jvp(of_moving, tuple(points[i] for i in moving), tuple(directions[i] for i in moving))
    return [*value, *tangent]


@pytest.mark.gradiron
@by_row
@given(data=st.data())
@settings(max_examples=6)
def test_points_and_directions(name, sampler, data):
    tensors, call = sampler(data.draw)
    weights = []

    def f(points, directions):
        return pushed(lambda full: total(call, full, weights), points, directions)

    total(call, tensors, weights)
    compare(name, f, tensors, mixed(data, tensors))


@pytest.mark.gradiron
@by_row
@given(data=st.data())
@settings(max_examples=4)
def test_points_and_directions_of_a_gradient(name, sampler, data):
    tensors, call = sampler(data.draw)
    weights = []
    total(call, tensors, weights)
    places = tuple(i for i, t in enumerate(tensors) if floating(t))

    def f(points, directions):
        gradient = func.grad(lambda *full: total(call, full, weights).sum(), argnums=places)
        return pushed(lambda full: gradient(*full), points, directions)

    compare(name, f, tensors, mixed(data, tensors))
