"""Forward mode: levels, dual tensors, writes in place, views, lifetimes, custom Functions, and what is refused."""

import gc
import math
import threading
import weakref

import pytest

from library import T, assert_values

fw = T.autograd.forward_ad


def t(*values, grad=False):
    return T.tensor(values, dtype=T.float64, requires_grad=grad)


def tangent(x):
    return fw.unpack_dual(x).tangent


X, V, W = (1.0, 2.0, 3.0), (10.0, 20.0, 30.0), (0.5, -1.0, 2.0)


@pytest.fixture
def level():
    with fw.dual_level():
        yield


@pytest.fixture
def dual(level):
    return fw.make_dual(t(*X), t(*V))


# --- levels ---


def test_a_level_is_entered_and_left():
    assert fw._current_level == -1
    with fw.dual_level() as number:
        assert number == 0 == fw._current_level
    assert fw._current_level == -1
    assert fw.enter_dual_level() == 0
    fw.exit_dual_level(level=0)
    assert fw._current_level == -1


def test_levels_do_not_nest_and_are_left_in_order(level):
    with pytest.raises(RuntimeError, match="^Nested forward mode AD is not supported at the moment"):
        fw.enter_dual_level()
    with pytest.raises(RuntimeError, match="^Trying to exit a forward AD level that was not the last one that was created"):
        fw.exit_dual_level(level=1)


def test_a_level_that_raises_is_left():
    with pytest.raises(KeyError), fw.dual_level():
        raise KeyError
    with fw.dual_level():
        pass


def test_a_level_decorates_a_function():
    @fw.dual_level()
    def slope(x, v):
        return tangent((fw.make_dual(x, v) * 2).sum()).item()

    assert slope(t(1.0), t(3.0)) == slope(t(2.0), t(3.0)) == 6.0


def test_tangents_go_with_their_level():
    with fw.dual_level():
        dual = fw.make_dual(t(*X), t(*V))
        result, part = dual * 2, dual[1:]
    assert fw.unpack_dual(result).primal is result
    assert repr(result) == "tensor([2., 4., 6.], dtype=torch.float64)"
    with fw.dual_level():
        assert tangent(dual) is tangent(result) is tangent(part) is None
        assert tangent(result * 2) is None
        assert_values(tangent(fw.make_dual(result, t(*V))), list(V))


def test_a_left_level_holds_nothing():
    kept, tangents = [], []
    for _ in range(3):
        with fw.dual_level():
            v = t(*V)
            tangents.append(weakref.ref(v))
            kept.append(fw.make_dual(t(*X), v).exp())
            del v
    gc.collect()
    assert [ref() for ref in tangents] == [None] * 3


def test_a_level_holds_for_all_threads(level):
    dual, found = fw.make_dual(t(*X), t(*V)), []
    thread = threading.Thread(target=lambda: found.append(tangent(dual * 2).tolist()))
    thread.start()
    thread.join()
    assert found == [[20.0, 40.0, 60.0]]


# --- dual tensors ---


def test_a_dual_tensor_is_a_view_with_a_tangent(level):
    x, v = t(*X), t(*V)
    dual = fw.make_dual(x, v)
    assert dual is not x and dual.data_ptr() == x.data_ptr() and dual._base is x
    unpacked = fw.unpack_dual(dual)
    assert type(unpacked).__name__ == "UnpackedDualTensor" and unpacked._fields == ("primal", "tangent")
    assert unpacked.tangent is v and unpacked.primal is not dual
    assert tangent(unpacked.primal) is None and tangent(v) is None
    assert_values(unpacked.primal, list(X))


def test_what_was_not_dual_has_no_tangent(level):
    assert fw.unpack_dual(t(*X)).tangent is None
    assert tangent(T.ones_like(fw.make_dual(t(*X), t(*V)))) is None


def test_a_tangent_that_lies_otherwise_is_copied(level):
    x, v = T.randn(3, 2, dtype=T.float64).t(), T.randn(2, 3, dtype=T.float64)
    got = tangent(fw.make_dual(x, v))
    assert got is not v and got.stride() == x.stride()
    assert_values(got, v)
    part = T.arange(6, dtype=T.float64)[2:5]
    assert tangent(fw.make_dual(part, t(*V))).storage_offset() == 2


def test_dual_tensors_print_their_tangent(dual):
    assert repr(dual) == (
        "tensor([1., 2., 3.], dtype=torch.float64,\n       tangent=tensor([10., 20., 30.], dtype=torch.float64))"
    )
    assert repr(dual.float()) == "tensor([1., 2., 3.], tangent=tensor([10., 20., 30.]))"
    assert repr(dual.float()[0]) == "tensor(1., tangent=10.0)"


@pytest.mark.parametrize(
    ("primal", "tangent", "error", "match"),
    [
        (T.tensor([1]), t(1.0), ValueError, "^Expected primal to be floating point or complex, but got: torch.int64"),
        (t(1.0), T.tensor([1]), ValueError, "^Expected tangent to be floating point or complex, but got: torch.int64"),
        (
            t(*X),
            t(1.0),
            RuntimeError,
            r"^Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            r"supported. Tensor is of size \[3\] while the given forward gradient is of size \[1\].",
        ),
        (
            T.ones(1).expand(3),
            T.ones(3),
            RuntimeError,
            "^unsupported operation: more than one element of the written-to tensor refers to a single memory location",
        ),
        (1.0, t(1.0), AttributeError, "is_floating_point"),
    ],
)
def test_what_cannot_be_dual(level, primal, tangent, error, match):
    with pytest.raises(error, match=match):
        fw.make_dual(primal, tangent)


def test_a_dual_tensor_is_dual_once(dual):
    with pytest.raises(
        RuntimeError, match="^Making a dual Tensor based on a Tensor that already has a forward gradient at the"
    ):
        fw.make_dual(dual, t(*V))
    with pytest.raises(RuntimeError, match="^Setting a forward grad that itself has a forward gradient at the same level"):
        fw.make_dual(t(*X), dual)
    with pytest.raises(RuntimeError, match="^Invalid level given to _make_dual"):
        fw.make_dual(t(*X), t(*V), level=1)


def test_outside_of_levels():
    with pytest.raises(RuntimeError, match="^Trying to create a dual Tensor for forward AD but no level exists, make sure to"):
        fw.make_dual(t(*X), t(*V))
    with pytest.raises(RuntimeError, match="^Dual level must be a positive number"):
        fw.exit_dual_level()
    x = t(*X)
    assert fw.unpack_dual(x) == (x, None)
    with fw.dual_level(), pytest.raises(TypeError, match=r"_unpack_dual\(\): argument 'dual'"):
        fw.unpack_dual(3.0)


# --- modes ---


def test_no_grad_does_not_concern_tangents(dual):
    with T.no_grad():
        assert_values(tangent(dual * 2), [20.0, 40.0, 60.0])


def test_forward_mode_can_be_switched_off(dual):
    with fw._set_fwd_grad_enabled(False):
        assert tangent(dual) is None
        inside = dual * 2
    assert tangent(inside) is None
    with T.inference_mode():
        assert tangent(dual * 2) is None
    assert_values(tangent(dual), list(V))


def test_detach_and_data_leave_tangents_behind(dual):
    assert tangent(dual.detach()) is tangent(dual.data) is None
    copy = dual.clone()
    assert tangent(copy.detach_()) is None
    assert tangent(dual.long()) is tangent(dual.argmax()) is tangent(dual > 1) is None


def test_out_is_refused(dual):
    for x, out in ((dual, T.empty(3, dtype=T.float64)), (t(*X), dual.clone())):
        with pytest.raises(
            NotImplementedError, match="^Trying to use forward AD with add_out that does not support it because"
        ):
            T.add(x, 1, out=out)


# --- operators ---


def test_tangents_of_a_result_are_its_own(dual):
    v = tangent(dual)
    for result in (dual + 1, dual.clone(), dual * 1, 0 - dual, dual.double()):
        if result is not dual:
            result.mul_(3)
    assert_values(v, list(V))


def test_broadcasts_and_numbers(dual):
    rows = T.ones(2, 3, dtype=T.float64)
    assert_values(tangent(rows + dual), [list(V)] * 2)
    assert_values(tangent(2 - dual), [-10.0, -20.0, -30.0])
    assert_values(tangent(dual**2), [20.0, 80.0, 180.0])
    assert_values(tangent(dual / dual), [0.0, 0.0, 0.0])
    assert_values(tangent(T.where(dual > 1.5, dual, 0.0)), [0.0, 20.0, 30.0])


def test_random_operators(dual):
    assert_values(tangent(T.bernoulli(dual * 0.1)), [0.0, 0.0, 0.0])
    assert tangent(T.randn_like(dual)) is None
    dropped = T.nn.functional.dropout(dual, 0.5)
    assert_values(tangent(dropped), [a / b * c for a, b, c in zip(dropped.tolist(), X, V)])
    assert_values(tangent(dual.clone().normal_()), [0.0, 0.0, 0.0])


def test_random_operators_draw_once(level):
    T.manual_seed(3)
    expected = [T.bernoulli(T.full((4,), 0.5)).tolist() for _ in range(2)]
    T.manual_seed(3)
    dual = fw.make_dual(T.full((4,), 0.5), T.ones(4))
    assert [T.bernoulli(dual).tolist() for _ in range(2)] == expected


def test_several_outputs(dual):
    values, indices = dual.sort(descending=True)
    assert_values(tangent(values), [30.0, 20.0, 10.0])
    assert tangent(indices) is None
    assert_values(tangent(dual.max(0).values), 30.0)
    assert [tangent(p).tolist() for p in dual.split(2)] == [[10.0, 20.0], [30.0]]
    assert [tangent(p).item() for p in dual.unbind()] == list(V)
    low, high = dual.aminmax()
    assert (tangent(low).item(), tangent(high).item()) == (10.0, 30.0)
    var, mean = T.var_mean(dual)
    assert_values(tangent(var), 20.0)
    assert_values(tangent(mean), 20.0)


def test_an_operator_with_a_single_dual_operand(level):
    a, b = T.randn(2, 3, dtype=T.float64), T.randn(3, 2, dtype=T.float64)
    v = T.randn(2, 3, dtype=T.float64)
    assert_values(tangent(fw.make_dual(a, v) @ b), v @ b)
    assert_values(tangent(b @ fw.make_dual(a, v)), b @ v)
    assert_values(tangent(T.cat([a, fw.make_dual(a, v)])), T.cat([T.zeros_like(v), v]))


# --- views and writes in place ---


def test_a_views_tangent_is_a_view(dual):
    part = dual[1:]
    assert tangent(part).data_ptr() == tangent(dual)[1:].data_ptr()
    part.mul_(2)
    assert_values(tangent(dual), [10.0, 40.0, 60.0])
    assert_values(dual, [1.0, 4.0, 6.0])


def test_a_write_in_place_writes_the_tangent(level):
    v = t(*V)
    dual = fw.make_dual(t(*X), v)
    dual.mul_(fw.make_dual(t(*X), t(*V)))
    assert tangent(dual) is v
    assert_values(v, [20.0, 80.0, 180.0])
    dual.sin_().add_(1)
    assert_values(v, [a * T.tensor(b * b, dtype=T.float64).cos().item() for a, b in zip((20.0, 80.0, 180.0), X)])


@pytest.mark.gradiron
def test_a_target_that_is_its_own_operand(dual):
    """PyTorch reads the tangent that it has just written."""
    dual.mul_(dual)
    assert_values(tangent(dual), [20.0, 80.0, 180.0])


def test_a_dual_operand_makes_the_target_dual(dual):
    x = t(*X)
    x.mul_(dual)
    assert_values(tangent(x), [10.0, 40.0, 90.0])
    x = t(*X)
    x.copy_(dual)
    assert_values(tangent(x), list(V))
    x.cumsum_(0)
    assert_values(tangent(x), [10.0, 30.0, 60.0])


def test_constants_end_a_tangent(dual):
    for write in (lambda x: x.zero_(), lambda x: x.fill_(2), lambda x: x.copy_(t(*X))):
        x = dual.clone()
        write(x)
        assert_values(tangent(x), [0.0, 0.0, 0.0])
    x = dual.clone()
    x[1] = 7
    assert_values(tangent(x), [10.0, 0.0, 30.0])
    x = dual.clone()
    x[T.tensor([True, False, True])] = 7
    assert_values(tangent(x), [0.0, 20.0, 0.0])


def test_a_dual_part_of_a_plain_tensor(dual):
    x = T.zeros(3, dtype=T.float64)
    x[1] = dual[2]
    assert_values(tangent(x), [0.0, 30.0, 0.0])
    x = T.zeros(3, dtype=T.float64)
    x[T.tensor([2, 0])] = dual[:2]
    assert_values(tangent(x), [20.0, 0.0, 10.0])
    x = T.zeros(2, 3, dtype=T.float64).t()
    x[:, 1] += dual
    assert_values(tangent(x), [[0.0, 10.0], [0.0, 20.0], [0.0, 30.0]])


def test_views_of_a_tensor_that_becomes_dual(dual):
    x = T.zeros(3, dtype=T.float64)
    before = x[1:]
    x.copy_(dual)
    assert_values(tangent(before), [20.0, 30.0])
    assert_values(tangent(before * 2), [40.0, 60.0])
    assert_values(tangent(x.view(3, 1) * 2), [[20.0], [40.0], [60.0]])


def test_the_unpacked_parts_are_not_dual(dual):
    primal = fw.unpack_dual(dual).primal
    assert tangent(primal * 2) is None and tangent(primal[1:]) is None


def test_changes_of_layout_in_place(level):
    x, v = T.randn(2, 3, dtype=T.float64), T.randn(2, 3, dtype=T.float64)
    dual = fw.make_dual(x, v).clone()
    dual.t_()
    assert_values(tangent(dual), v.t())
    dual.unsqueeze_(0)
    assert tuple(tangent(dual).shape) == (1, 3, 2)


# --- with reverse mode ---


def test_reverse_over_forward(level):
    x, v = t(*X, grad=True), t(*V, grad=True)
    slope = tangent((fw.make_dual(x, v) ** 3).sum())
    gx, gv = T.autograd.grad(slope, (x, v))
    assert_values(gx, [6 * a * b for a, b in zip(X, V)])
    assert_values(gv, [3 * a * a for a in X])


def test_forward_over_reverse(level):
    dual = fw.make_dual(t(*X, grad=True), t(*V))
    (gradient,) = T.autograd.grad((dual**3).sum(), dual, create_graph=True)
    assert_values(tangent(gradient), [6 * a * b for a, b in zip(X, V)])


def test_forward_over_reverse_without_create_graph(level):
    dual = fw.make_dual(t(*X, grad=True), t(*V))
    (gradient,) = T.autograd.grad(T.softmax(dual.exp(), 0).log().sum(), dual)
    assert not gradient.requires_grad
    x = t(*X, grad=True)
    (first,) = T.autograd.grad(T.softmax(x.exp(), 0).log().sum(), x, create_graph=True)
    (expected,) = T.autograd.grad(first, x, t(*V))
    assert_values(tangent(gradient), expected, rtol=1e-9, atol=1e-9)


def test_grad_takes_no_tangent_along(level):
    x = t(*X, grad=True)
    dual = fw.make_dual(x, t(*V))
    dual.sin().sum().backward()
    assert tangent(x.grad) is None
    assert_values(x.grad, t(*X).cos())


def test_in_place_writes_and_both_modes(level):
    def function(x):
        y = x * 1
        y.mul_(x)
        y[1:] *= x[:2].sin()
        return y.sum()

    x = t(*X, grad=True)
    (first,) = T.autograd.grad(function(x), x, create_graph=True)
    (expected,) = T.autograd.grad(first, x, t(*V))
    dual = fw.make_dual(t(*X, grad=True), t(*V))
    (gradient,) = T.autograd.grad(function(dual), dual, create_graph=True)
    assert_values(tangent(gradient), expected, rtol=1e-9, atol=1e-9)


# --- custom Functions ---


class Product(T.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_forward(a, b)
        ctx.save_for_backward(a, b)
        assert tangent(a) is None
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b, g * a

    @staticmethod
    def jvp(ctx, va, vb):
        a, b = ctx.saved_tensors
        return va * b + a * vb


def test_a_functions_jvp(dual):
    assert_values(tangent(Product.apply(dual, t(*W))), [5.0, -20.0, 60.0])
    assert_values(tangent(Product.apply(dual, dual)), [20.0, 80.0, 180.0])
    assert tangent(Product.apply(t(*X), t(*W))) is None


def test_a_functions_jvp_and_backward(level):
    x, v, w = t(*X, grad=True), t(*V, grad=True), t(*W)
    dual = fw.make_dual(x, v)
    y = Product.apply(Product.apply(dual, dual), w)
    gx, gv = T.autograd.grad(tangent(y).sum(), (x, v), retain_graph=True)
    assert_values(gx, [2 * b * c for b, c in zip(V, W)])
    assert_values(gv, [2 * a * c for a, c in zip(X, W)])
    (gradient,) = T.autograd.grad(y.sum(), dual, create_graph=True)
    assert_values(tangent(gradient), [2 * b * c for b, c in zip(V, W)])


def test_setup_context_and_saved_outputs(dual):
    class Cube(T.autograd.Function):
        @staticmethod
        def forward(x):
            return x**3, x**2

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_forward(output[1], None)
            ctx.mark_non_differentiable(output[1])

        @staticmethod
        def jvp(ctx, v):
            square, nothing = ctx.saved_tensors
            assert nothing is None
            assert_values(ctx.saved_for_forward[0], square.tolist())
            assert len(ctx.saved_for_forward) == 2 and ctx.saved_for_forward[1] is None
            contexts.append(ctx)
            return 3 * square * v, None

    contexts = []
    cube, square = Cube.apply(dual)
    assert not contexts[0].saved_for_forward
    assert_values(tangent(cube), [30.0, 240.0, 810.0])
    assert tangent(square) is None


def test_missing_tangents_come_as_zeros_or_none(dual):
    seen = []

    class Watch(T.autograd.Function):
        @staticmethod
        def forward(ctx, a, b, n, materialize):
            ctx.set_materialize_grads(materialize)
            return a * n + b

        @staticmethod
        def jvp(ctx, va, vb, *rest):
            seen.append((vb is None or vb.tolist(), rest))
            return va * 2

    Watch.apply(dual, t(*X), 2, True)
    Watch.apply(dual, t(*X), 2, False)
    assert seen == [([0.0, 0.0, 0.0], (None, None)), (True, (None, None))]


def make(forward, jvp):
    return type("Made", (T.autograd.Function,), {"forward": staticmethod(forward), "jvp": staticmethod(jvp)})


def half_differentiable(ctx, x):
    plain = x + 1
    ctx.mark_non_differentiable(plain)
    return x * 2, plain


def dirty(ctx, x):
    ctx.mark_dirty(x)
    return x.mul_(2)


@pytest.mark.parametrize(
    ("forward", "jvp", "error", "match"),
    [
        (lambda c, x: x * 2, lambda c, v: v[:2], RuntimeError, "^Trying to set a forward gradient that has a different size"),
        (
            lambda c, x: x * 2,
            lambda c, v: (v, v),
            RuntimeError,
            r"^Function's jvp returned an invalid number of forward gradients \(expected 1 but got 2\)",
        ),
        (
            half_differentiable,
            lambda c, v: (v * 2, v),
            RuntimeError,
            "^Function's jvp returned a gradient at position 1, but  the corresponding forward output is not a differentiable",
        ),
        (lambda c, x: x * 2, lambda c, v: 3, RuntimeError, r"^expected Variable or None \(got int\) for grad output 0"),
        (
            dirty,
            lambda c, v: v * 2,
            RuntimeError,
            "^An inplace custom Function is not modifying the forward mode gradients inplace",
        ),
        (
            lambda c, x: x.view(-1),
            lambda c, v: v * 1,
            RuntimeError,
            r"^A custom Function's forward is returning a view \(or an input as-is\) but the jvp is not returning a view",
        ),
        (lambda c, x: x, lambda c, v: v, RuntimeError, "^A custom Function's forward is returning a view"),
    ],
)
def test_what_a_jvp_may_not_return(dual, forward, jvp, error, match):
    with pytest.raises(error, match=match):
        make(forward, jvp).apply(dual.clone())


def test_what_a_jvp_may_return(dual):
    x = dual.clone()
    y = make(dirty, lambda c, v: v.mul_(2)).apply(x)
    assert y is x
    assert_values(tangent(x), [20.0, 40.0, 60.0])
    y = make(lambda c, x: x.view(-1), lambda c, v: v.view(-1)).apply(x)
    assert tangent(y).data_ptr() == tangent(x).data_ptr()
    y = make(lambda c, x: x, lambda c, v: v.view_as(v)).apply(x)
    assert_values(tangent(y), [20.0, 40.0, 60.0])


def test_a_function_without_jvp(dual):
    class Plain(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(
        NotImplementedError, match="^You must implement the jvp function for custom autograd.Function to use it"
    ):
        Plain.apply(dual)
    assert_values(Plain.apply(t(*X)), [2.0, 4.0, 6.0])


def test_a_jvp_that_raises(dual):
    def fails(ctx, v):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        make(lambda c, x: x * 2, fails).apply(dual)
    assert_values(tangent(dual * 2), [20.0, 40.0, 60.0])


# --- func ---


def cubes(x):
    return x**3


@pytest.mark.parametrize("inner", ["jvp", "jacfwd", "hessian", "linearize", "functional"])
def test_a_level_bars_transforms_by_forward_mode(level, inner):
    calls = {
        "jvp": lambda x: T.func.jvp(cubes, (x,), (x,)),
        "jacfwd": T.func.jacfwd(cubes),
        "hessian": T.func.hessian(lambda x: cubes(x).sum()),
        "linearize": lambda x: T.func.linearize(cubes, x),
        "functional": lambda x: T.autograd.functional.jacobian(cubes, x, vectorize=True, strategy="forward-mode"),
    }
    with pytest.raises(RuntimeError, match="Nested forward mode AD"):
        calls[inner](t(*X))


def test_a_transform_is_a_level():
    x, v = t(*X), t(*V)
    seen = []

    def f(y):
        seen.append(T.func.debug_unwrap(fw.unpack_dual(y).tangent).tolist())
        with pytest.raises(RuntimeError, match="already has a forward gradient"):
            fw.make_dual(y, v)
        with pytest.raises(RuntimeError, match="Nested forward mode AD"), fw.dual_level():
            pass
        return y * 2

    T.func.jvp(f, (x,), (v,))
    T.func.jvp(lambda y: T.func.jvp(f, (y,), (v,))[1], (x,), (v,))
    assert seen == [list(V), list(V)]
    # Inside of a gradient's layer duals are that layer's own.
    slopes = T.func.jvp(T.func.grad(lambda y: fw.unpack_dual(fw.make_dual(y, y).sin()).tangent.sum()), (x,), (v,))
    assert_values(slopes[0], [math.cos(a) - a * math.sin(a) for a in X])
    assert_values(slopes[1], [b * (-2 * math.sin(a) - a * math.cos(a)) for a, b in zip(X, V)])
    assert T.func.jvp(T.func.grad(lambda y: (seen.append(fw.unpack_dual(y).tangent), y.sum())[1]), (x,), (v,))
    assert seen.pop() is None
    with pytest.raises(RuntimeError, match="no level exists"):
        fw.make_dual(x, v)


def test_samples_are_no_duals(level):
    dual = fw.make_dual(t(*X), t(*V))
    with pytest.raises(RuntimeError, match="Batching rule not implemented for aten::_make_dual"):
        T.vmap(lambda x: fw.make_dual(x, x))(t(*X))
    with pytest.raises(RuntimeError, match="Batching rule not implemented for aten::_make_dual"):
        T.vmap(lambda v: fw.make_dual(t(*X), v))(t(*X)[None])
    with pytest.raises(RuntimeError, match="Batching rule not implemented for aten::_unpack_dual"):
        T.vmap(fw.unpack_dual)(dual)
    assert_values(tangent(T.vmap(cubes)(dual)), [3 * a * a * b for a, b in zip(X, V)])


NARROW = T.tensor([1.0, 2.0], dtype=T.float32)


@pytest.mark.parametrize(
    "name, f",
    {
        "view": lambda x: x.view(2, 1),
        "sum": lambda x: x.sum(),
        "mul": lambda x: x * 2,
        "sin": T.sin,
        "add": lambda x: x + NARROW,
        "softmax": lambda x: x.softmax(0),
        "prod": lambda x: x.prod(),
        "cat": lambda x: T.cat([x, NARROW]),
        "where": lambda x: T.where(x > 1, x, NARROW),
    }.items(),
)
def test_a_wider_tangent_stays_wide(level, name, f):
    dual = fw.make_dual(NARROW, NARROW.double() / 3)
    assert fw.unpack_dual(dual).tangent.dtype == T.float64
    primal, moved = fw.unpack_dual(f(dual))
    assert (primal.dtype, moved.dtype) == (T.float32, T.float64)
    exact = tangent(f(fw.make_dual(NARROW.double(), NARROW.double() / 3)))
    assert_values(moved, exact, rtol=1e-5, atol=1e-6)


def test_a_copied_tangent_has_the_dtype_of_its_tensor(level):
    x = T.ones(2, 3)
    assert tangent(fw.make_dual(x, T.ones(3, 2, dtype=T.float64).t())).dtype == T.float32
    assert tangent(fw.make_dual(x, T.ones(2, 3, dtype=T.float64))).dtype == T.float64
    assert tangent(fw.make_dual(x, T.ones(2, 3, dtype=T.float64)).t() * 2).dtype == T.float64


def test_tangents_of_other_dtypes(level):
    for primal, given, made in ((T.float64, T.float32, T.float64), (T.float32, T.float16, T.float32)):
        dual = fw.make_dual(NARROW.to(primal), NARROW.to(given))
        assert tangent(dual.sin()).dtype == made and tangent(dual * 2).dtype == made
        assert tangent(dual.sum()).dtype == given


@pytest.mark.gradiron
def test_memory_stays_flat_within_a_level():
    with fw.dual_level():
        x = fw.make_dual(t(*X, grad=True), t(*V))

        def step():
            (x.exp() * x).sum().backward(inputs=[x])

        for _ in range(10):
            step()
        gc.collect()
        before = T._core.live_nodes()
        for _ in range(300):
            step()
        gc.collect()
        assert T._core.live_nodes() - before < 200


def test_a_functions_tangent_is_what_its_jvp_returned():
    given = []

    class Double(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def jvp(ctx, tangent):
            given.append(tangent * 2)
            return given[-1]

    x = T.tensor([1.0, 2.0], requires_grad=True)
    with T.autograd.forward_ad.dual_level():
        dual = T.autograd.forward_ad.make_dual(x, T.tensor([3.0, 4.0], requires_grad=True))
        tangent = T.autograd.forward_ad.unpack_dual(Double.apply(dual)).tangent
        assert tangent.data_ptr() == given[0].data_ptr()
        assert tangent.tolist() == [6.0, 8.0]
        assert tangent.grad_fn.name() == "MulBackward0"


@pytest.mark.parametrize("conj", [(False, True), (True, False), (True, True)])
def test_a_tangent_is_conjugated_as_its_tensor_is(conj):
    """Parts of both are views of the same kind then."""
    x, v = T.tensor([1.0 + 2.0j]), T.tensor([3.0 + 5.0j])
    x, v = (t.conj() if lazy else t for t, lazy in zip((x, v), conj, strict=True))
    with fw.dual_level():
        dual = fw.make_dual(x, v)
        tangent = fw.unpack_dual(dual).tangent
        assert tangent.is_conj() == x.is_conj() and (tangent is v) == (conj[0] == conj[1])
        assert fw.unpack_dual(dual.real).tangent.tolist() == [v[0].item().real]
        assert fw.unpack_dual(dual.imag).tangent.tolist() == [v[0].item().imag]


def test_a_functions_jvp_writes_what_its_forward_wrote():
    class Wrong(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx, v):
            return v

    with fw.dual_level():
        with pytest.raises(
            RuntimeError, match="An inplace custom Function is not modifying the forward mode gradients inplace"
        ):
            Wrong.apply(fw.make_dual(t(1.0), t(1.0)))


@pytest.mark.parametrize(
    ("jvp", "viewed", "message"),
    [
        (lambda v: v[:1].clone(), False, "forward is returning a view .or an input as-is. but the jvp is not returning a view"),
        (lambda v: v[:1].clone()[:], False, "is returning a view but the jvp is not returning a view of the given grad input"),
        (lambda v: v[:1].clone()[:], True, "not returning a view of the same base as the given grad input"),
    ],
)
def test_a_functions_jvp_returns_a_view_of_its_tangent(jvp, viewed, message):
    class Part(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[:1]

    Part.jvp = staticmethod(lambda ctx, v: jvp(v))
    with fw.dual_level():
        x = fw.make_dual(t(1.0, 2.0), t(3.0, 4.0))
        with pytest.raises(RuntimeError, match=message):
            Part.apply(x.view_as(x) if viewed else x)


@pytest.mark.parametrize("order", ["std", 1.5, 2, 3])
def test_the_tangent_of_a_root_of_nothing_is_zero(order):
    with fw.dual_level():
        x = fw.make_dual(T.zeros(3), T.ones(3))
        y = x.std() if order == "std" else T.linalg.vector_norm(x, order)
        assert fw.unpack_dual(y).tangent.item() == 0.0
