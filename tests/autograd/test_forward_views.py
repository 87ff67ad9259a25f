"""Whose tangent a view has: that of what it shows, however late that became dual, unless it was parted from it."""

import pytest

from library import T, assert_values

fw = T.autograd.forward_ad


def t(*values):
    return T.tensor(values, dtype=T.float64)


def tangent(x):
    return fw.unpack_dual(x).tangent


X, V = (1.0, 2.0, 3.0), (10.0, 20.0, 30.0)


def write(target, source):
    target.copy_(source)


def write_part(target, source):
    target[...] = source


def add(target, source):
    target.zero_().add_(source)


WRITES = pytest.mark.parametrize("put", [write, write_part, add])


@WRITES
def test_a_view_of_the_time_before_learns_that_its_base_became_dual(put):
    x = t(*X)
    view, part, column = x.view(3), x[1:], x.unsqueeze(1)
    with fw.dual_level():
        put(x, fw.make_dual(t(*X), t(*V)))
        assert_values(tangent(view), list(V))
        assert_values(tangent(part), [20.0, 30.0])
        assert_values(tangent(column * 2), [[20.0], [40.0], [60.0]])
        assert_values(tangent(part + part), [40.0, 60.0])
    assert tangent(part) is None
    with fw.dual_level():
        assert tangent(part * 2) is None


@WRITES
def test_a_base_learns_that_a_view_of_the_time_before_became_dual(put):
    x = t(*X)
    part, sister = x[1:], x[:2]
    with fw.dual_level():
        put(part, fw.make_dual(t(4.0, 5.0), t(6.0, 7.0)))
        assert_values(tangent(x), [0.0, 6.0, 7.0])
        assert_values(tangent(sister), [0.0, 6.0])
        x.mul_(2)
        assert_values(tangent(part), [12.0, 14.0])


def test_a_second_level_finds_the_view_anew():
    x = t(*X)
    part = x[1:]
    for factor in (1.0, 2.0):
        with fw.dual_level():
            x.copy_(fw.make_dual(t(*X), factor * t(*V)))
            assert_values(tangent(part.exp()), part.exp() * factor * t(20.0, 30.0))


def test_the_unpacked_primal_is_a_view_parted_from_the_tangent():
    with fw.dual_level():
        x, v = t(*X), t(*V)
        dual = fw.make_dual(x, v)
        primal = fw.unpack_dual(dual).primal
        assert primal._base is x and primal._is_view()
        primal.mul_(2)
        assert_values(dual, [2.0, 4.0, 6.0])
        assert_values(tangent(dual), list(V))
        assert tangent(primal) is tangent(primal * 2) is tangent(primal[1:]) is None


def test_a_write_of_a_dual_into_the_primal_stays_there():
    with fw.dual_level():
        dual = fw.make_dual(t(*X), t(*V))
        primal = fw.unpack_dual(dual).primal
        part = primal[1:]
        primal.copy_(fw.make_dual(t(4.0, 5.0, 6.0), t(7.0, 8.0, 9.0)))
        assert_values(dual, [4.0, 5.0, 6.0])
        assert_values(tangent(dual), list(V))
        assert_values(tangent(primal), [7.0, 8.0, 9.0])
        assert_values(tangent(part), [8.0, 9.0])
        part.copy_(fw.make_dual(t(1.0, 1.0), t(2.0, 3.0)))
        assert_values(tangent(primal), [7.0, 2.0, 3.0])
        assert_values(tangent(dual), list(V))


def test_the_primal_of_what_is_not_dual_is_parted_too():
    with fw.dual_level():
        x = t(*X)
        primal = fw.unpack_dual(x).primal
        assert primal is not x and primal._base is x
        x.copy_(fw.make_dual(t(*X), t(*V)))
        assert_values(tangent(x), list(V))
        assert tangent(primal) is None


def test_a_dual_tensor_and_what_it_was_made_of():
    with fw.dual_level():
        x = t(*X)
        before = x[1:]
        dual = fw.make_dual(x, t(*V))
        within = dual[1:]
        assert tangent(x) is tangent(before) is None
        x.copy_(fw.make_dual(t(*X), t(7.0, 8.0, 9.0)))
        assert_values(tangent(before), [8.0, 9.0])
        assert_values(tangent(within), [20.0, 30.0])
        within.mul_(2)
        assert_values(tangent(dual), [10.0, 40.0, 60.0])
        assert_values(tangent(x), [7.0, 8.0, 9.0])


def test_the_primal_keeps_the_history():
    with fw.dual_level():
        x = t(*X).requires_grad_()
        dual = fw.make_dual(x * 1, t(*V))
        primal = fw.unpack_dual(dual).primal
        (gradient,) = T.autograd.grad((primal**2).sum(), x, retain_graph=True)
        assert_values(gradient, [2.0, 4.0, 6.0])
        primal.mul_(3)
        (gradient,) = T.autograd.grad(dual.sum(), x)
        assert_values(gradient, [3.0, 3.0, 3.0])
        assert_values(tangent(dual), list(V))


def test_a_tangent_that_becomes_dual_itself():
    with fw.dual_level():
        v = t(*V)
        dual = fw.make_dual(t(*X), v)
        v[0] = dual[1]
        assert_values(v, [2.0, 20.0, 30.0])
        assert_values(tangent(dual), v.detach())
        assert_values(tangent(v), [20.0, 0.0, 0.0])
