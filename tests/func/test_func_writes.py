"""Writes in place inside transforms: into what the function made, was given, or only happens to see."""

import pytest

from library import T, assert_values

func = T.func
CAPTURED = "transform, the function provided attempted to call in-place operation \\(aten::{}\\) that would mutate a captured"


def x():
    return T.tensor([1.0, 2.0, -3.0])


TRANSFORMS = {
    "grad": lambda f: func.grad(lambda t: f(t).sum())(x()),
    "grad_and_value": lambda f: func.grad_and_value(lambda t: f(t).sum())(x()),
    "vjp": lambda f: func.vjp(f, x())[1](x()),
    "jvp": lambda f: func.jvp(f, (x(),), (x(),)),
    "jacrev": lambda f: func.jacrev(f)(x()),
    "jacfwd": lambda f: func.jacfwd(f)(x()),
    "hessian": lambda f: func.hessian(lambda t: f(t).sum())(x()),
    "grad of grad": lambda f: func.grad(lambda t: func.grad(lambda t: f(t).sum())(t).sum())(x()),
    "vmap of grad": lambda f: func.vmap(func.grad(lambda t: f(t).sum()))(T.ones(2, 3)),
    "grad of vmap": lambda f: func.grad(lambda t: func.vmap(f)(t).sum())(T.ones(2, 3)),
    "jvp of grad": lambda f: func.jvp(func.grad(lambda t: f(t).sum()), (x(),), (x(),)),
    "grad of jvp": lambda f: func.grad(lambda t: func.jvp(f, (t,), (t,))[1].sum())(x()),
}

WRITES = {
    "add_.Tensor": lambda c: c.add_(1),
    "mul_.Tensor": lambda c: c.mul_(T.ones(3)),
    "sub_.Tensor": lambda c: c.__isub__(1),
    "div_.Tensor": lambda c: c.__itruediv__(2.0),
    "pow_.Scalar": lambda c: c.pow_(2),
    "fmod_.Tensor": lambda c: c.fmod_(T.ones(3)),
    "fmod_.Scalar": lambda c: c.fmod_(2),
    "sin_": lambda c: c.sin_(),
    "zero_": lambda c: c.zero_(),
    "fill_.Scalar": lambda c: c.fill_(2),
    "fill_.Tensor": lambda c: c.fill_(T.tensor(2.0)),
    "copy_": lambda c: c.copy_(T.zeros(3)),
    "clamp_": lambda c: c.clamp_(0, 1),
    "clamp_.Tensor": lambda c: c.clamp_(T.zeros(3)),
    "lerp_.Scalar": lambda c: c.lerp_(T.zeros(3), 0.5),
    "masked_fill_.Scalar": lambda c: c.masked_fill_(T.tensor([True, False, True]), 0),
    "index_put_": lambda c: c.index_put_((T.tensor([0]),), T.tensor([1.0])),
    "index_add_": lambda c: c.index_add_(0, T.tensor([0]), T.ones(1)),
    "scatter_.src": lambda c: c.scatter_(0, T.tensor([0]), T.ones(1)),
    "scatter_.value": lambda c: c.scatter_(0, T.tensor([0]), 1.0),
    "index_fill_.int_Scalar": lambda c: c.index_fill_(0, T.tensor([0]), 1.0),
    "addcmul_": lambda c: c.addcmul_(T.ones(3), T.ones(3)),
    "atan2_": lambda c: c.atan2_(T.ones(3)),
    "t_": lambda c: c.t_(),
    "unsqueeze_": lambda c: c.unsqueeze_(0),
    "squeeze_": lambda c: c.squeeze_(),
    "squeeze_.dim": lambda c: c.squeeze_(0),
    "transpose_": lambda c: c.transpose_(0, 0),
    "detach_": lambda c: c.detach_(),
    "set_.source_Tensor": lambda c: c.set_(T.zeros(3)),
    "resize_": lambda c: c.resize_(3),
}


@pytest.mark.parametrize(("name", "write"), WRITES.items(), ids=WRITES)
def test_every_write_is_named(name, write):
    c = x()

    def f(t):
        write(c)
        return t * c

    with pytest.raises(RuntimeError, match=CAPTURED.format(name)):
        func.grad(lambda t: f(t).sum())(x())
    assert_values(c, x())


ITEMS = {
    "fill_.Scalar": lambda c: c.__setitem__(0, 5.0),
    "copy_": lambda c: c.__setitem__(slice(1, None), T.zeros(2)),
    "masked_fill_.Scalar": lambda c: c.__setitem__(c > 1, 0.0),
    "index_put_": lambda c: c.__setitem__([0, 1], T.zeros(2)),
}
PARTS = {
    "mul_.Tensor": lambda c: c[1:].mul_(2),
    "zero_": lambda c: c.detach().zero_(),
    "add_.Tensor": lambda c: c.data.add_(1),
    "sin_": lambda c: c.view(3, 1).sin_(),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize(("name", "write"), [*ITEMS.items(), *PARTS.items()])
def test_captured_tensors_are_left_alone(transform, name, write):
    c = x()

    def f(t):
        write(c)
        return t * c

    with pytest.raises(RuntimeError, match=CAPTURED.format(name)):
        transform(f)
    assert_values(c, x())


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_what_is_made_inside_may_be_written(transform):
    c = x()

    def f(t):
        made = T.zeros(3)
        made.add_(1)
        made[0] = 4
        copy = c.clone()
        copy.mul_(2)
        copy[1:] = 3
        like = T.zeros_like(t)
        like.add_(t)
        like[0] = t[1]
        turned = T.ones(1, 3).t_().squeeze_()
        return t * made * copy * turned + like

    def same(t):
        made = T.tensor([4.0, 1.0, 1.0])
        return t * made * T.tensor([2.0, 3.0, 3.0]) + T.cat([t[1:2], t[1:]])

    def flat(found):
        return [t for part in found for t in flat(part)] if isinstance(found, tuple) else [found]

    for one, other in zip(flat(transform(f)), flat(transform(same)), strict=True):
        assert_values(one, other)
    assert_values(c, x())


def test_vmap_writes_what_all_samples_share():
    c = x()

    def f(t):
        c.add_(1)
        c[0] = 7
        return t * c

    many = T.arange(6.0).reshape(2, 3)
    assert_values(func.vmap(f)(many), many * T.tensor([7.0, 3.0, -2.0]))
    assert_values(c, T.tensor([7.0, 3.0, -2.0]))


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda c, t: c.mul_(t), "inplace arithmetic"),
        (lambda c, t: c.add_(t), "output with shape \\[3\\] doesn't match the broadcast shape \\[2, 3\\]"),
        (lambda c, t: c.copy_(t), "inplace arithmetic"),
        (lambda c, t: c.logical_and_(t), "inplace arithmetic"),
        (lambda c, t: c.atan2_(t), "output with shape \\[3\\] doesn't match the broadcast shape \\[2, 3\\]"),
        (lambda c, t: c.remainder_(t), "aten::remainder_.* but `self` not being vmapped over at level 1"),
        (lambda c, t: c.fmod_(t), "aten::fmod_.* instead of aten::fmod_"),
        (lambda c, t: c.eq_(t), "aten::eq_"),
        (lambda c, t: c.__setitem__(0, t[0]), "inplace arithmetic"),
        (lambda c, t: c[1:].mul_(t[1:]), "inplace arithmetic"),
    ],
)
def test_vmap_does_not_write_samples_into_one(write, message):
    c = x()
    with pytest.raises(RuntimeError, match=message):
        func.vmap(lambda t: (write(c, t), t)[1])(T.ones(2, 3))
    assert_values(c, x())


@pytest.mark.parametrize("inner", [lambda f, t: func.grad(lambda u: f(u).sum())(t), lambda f, t: func.jvp(f, (t,), (t,))[1]])
def test_an_inner_transform_guards_the_outer_ones_tensors(inner):
    def f(t):
        outer = T.zeros(3)
        outer.add_(1)
        return inner(lambda u: outer.add_(1) * u, t).sum()

    with pytest.raises(RuntimeError, match=CAPTURED.format("add_.Tensor")):
        func.grad(f)(x())


def test_results_of_an_inner_transform_belong_to_the_outer_one():
    def f(t):
        found = func.grad(lambda u: (u * u).sum())(t)
        found.mul_(2)
        return found.sum()

    assert_values(func.grad(f)(x()), T.full((3,), 4.0))


def test_vmap_inside_of_a_transform_writes_what_that_made():
    def f(t):
        made = T.zeros(3)
        return func.vmap(lambda y: made.add_(1) * y)(t.expand(2, 3)).sum()

    assert_values(func.grad(f)(x()), T.full((3,), 2.0))


@pytest.mark.parametrize("name", ["grad", "vjp", "jacrev", "grad of grad", "vmap of grad", "grad of vmap", "jvp of grad"])
@pytest.mark.parametrize(
    ("write", "what"),
    [
        (lambda t: t.mul_(2), "a leaf"),
        (lambda t: t.fill_(2.0), "a leaf"),
        (lambda t: t.__setitem__(0, 2.0), "a view of a leaf"),
    ],
)
def test_reverse_modes_inputs_are_leaves(name, write, what):
    with pytest.raises(RuntimeError, match=f"^{what} Variable that requires grad is being used in an in-place operation"):
        TRANSFORMS[name](lambda t: (write(t), t)[1])


def test_forward_modes_inputs_may_be_written():
    value, tangent = func.jvp(lambda t: t.mul_(2) * 1, (x(),), (T.ones(3),))
    assert_values(value, 2 * x())
    assert_values(tangent, T.full((3,), 2.0))

    def put(t):
        t[0] = 5.0
        return t * t

    assert_values(func.jvp(put, (x(),), (T.ones(3),))[1], T.tensor([0.0, 4.0, -6.0]))


def test_values_of_inputs_may_be_written():
    def f(t):
        value = t.detach()
        value.mul_(2)
        return t * value

    assert_values(func.grad(lambda t: f(t).sum())(x()), 2 * x())


def test_no_grad_guards_too():
    c = x()

    def f(t):
        with T.no_grad():
            c.mul_(2)
        return t.sum()

    with pytest.raises(RuntimeError, match=CAPTURED.format("mul_.Tensor")):
        func.grad(f)(x())


def test_afterwards_everything_may_be_written():
    c = x()
    kept = []

    def f(t):
        kept.append(T.zeros(3))
        return (t * c).sum()

    func.grad(f)(x())
    c.add_(1)
    kept[0].add_(1)
    assert_values(c, x() + 1)
    with pytest.raises(ZeroDivisionError):
        func.grad(lambda t: 1 / 0)(x())
    c.add_(1)
    with pytest.raises(RuntimeError, match="captured"):
        func.grad(lambda t: (kept[0].add_(1) * t).sum())(x())


def test_results_written_elsewhere_are_not_guarded():
    c = x()

    def f(t):
        T.add(T.ones(3), 1, out=c)
        return (t * c).sum()

    assert_values(func.grad(f)(x()), T.full((3,), 2.0))


GIVEN = {
    "grad": lambda f, y: func.grad(lambda t, y: f(t, y).sum())(x(), y),
    "grad by keyword": lambda f, y: func.grad(lambda t, y: f(t, y).sum())(x(), y=y),
    "grad of a structure": lambda f, y: func.grad(lambda t, ys: f(t, ys["y"][0]).sum())(x(), {"y": [y]}),
    "jacrev": lambda f, y: func.jacrev(f)(x(), y).sum(0),
    "jacfwd": lambda f, y: func.jacfwd(f)(x(), y).sum(0),
    "vmap of grad": lambda f, y: func.vmap(func.grad(lambda t, y: f(t, y).sum()))(x().unsqueeze(0), y.unsqueeze(0))[0],
    "grad of vmap": lambda f, y: func.grad(lambda t, y: func.vmap(f)(t, y).sum())(x(), y),
}


@pytest.mark.parametrize("transform", GIVEN)
@pytest.mark.parametrize(
    ("write", "written", "gradient"),
    [
        (lambda t, y: y.copy_(t), [1.0, 2.0, -3.0], [1.0, 1.0, 1.0]),
        (lambda t, y: y.add_(t), [5.0, 7.0, 3.0], [1.0, 1.0, 1.0]),
        (lambda t, y: y.mul_(2) * t, [8.0, 10.0, 12.0], [8.0, 10.0, 12.0]),
        (lambda t, y: y.view(y.shape).mul_(t), [4.0, 10.0, -18.0], [4.0, 5.0, 6.0]),
        (lambda t, y: y.zero_() * t, [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    ],
)
def test_arguments_that_are_not_differentiated_may_be_written(transform, write, written, gradient):
    y = T.tensor([4.0, 5.0, 6.0])
    assert_values(GIVEN[transform](write, y), T.tensor(gradient))
    assert y.tolist() == written and not y.requires_grad and y.grad_fn is None


def test_arguments_that_are_not_differentiated_come_out_as_they_went_in():
    y = T.tensor([4.0, 5.0, 6.0])
    _, (seen, part) = func.grad(lambda t, y: (t.sum(), (y, y[1:])), has_aux=True)(x(), y)
    assert seen is y
    part.zero_()
    assert y.tolist() == [4.0, 0.0, 0.0]


IN_PLACE = {
    "square": (lambda t: (t + 1).square_(), lambda t: (t + 1).square()),
    "pow": (lambda t: (t + 1).pow_(3), lambda t: (t + 1) ** 3),
    "mul": (lambda t: (t + 1).mul_(t), lambda t: (t + 1) * t),
    "sin": (lambda t: (t * t).sin_(), lambda t: (t * t).sin()),
    "clamp": (lambda t: (t * t).clamp_(max=4) * t, lambda t: (t * t).clamp(max=4) * t),
    "div": (lambda t: (t * t).div_(t + 9), lambda t: t * t / (t + 9)),
    "cumsum": (lambda t: (t * t).cumsum_(0) * t, lambda t: (t * t).cumsum(0) * t),
    "copy": (lambda t: T.zeros_like(t).copy_(t * t).mul_(t), lambda t: t * t * t),
    "masked_fill": (lambda t: (t * t).masked_fill_(t > 1.5, 0.5) * t, lambda t: (t * t).masked_fill(t > 1.5, 0.5) * t),
}


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", IN_PLACE)
def test_second_derivatives_of_writes_are_those_of_new_tensors(name):
    write, make = IN_PLACE[name]
    points = T.stack([x(), x() + 0.25])
    for f in (func.hessian, lambda f: func.jacrev(func.jacrev(f)), lambda f: func.jacfwd(func.jacfwd(f))):
        expected = T.stack([f(lambda t: make(t).sum())(point) for point in points])
        assert_values(func.vmap(f(lambda t: write(t).sum()))(points), expected)
        assert_values(f(lambda t: write(t).sum())(points[0]), expected[0])
