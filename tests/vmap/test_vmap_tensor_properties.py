"""What samples tell of themselves inside of `vmap`: of the tape, of their memory, in print; and what comes out again."""

import pytest

from library import T, assert_values

# PyTorch warns of what its own tracer does.
pytestmark = pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr")
func = T.func
X = T.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def inside(f, x, **options):
    """What `f` returns of a sample."""
    seen = []
    func.vmap(lambda t: (seen.append(f(t)), t)[1], **options)(x)
    return seen[0]


def tape(t):
    return t.requires_grad, t.grad_fn, t.is_leaf, t.output_nr, t.retains_grad, t._version


@pytest.mark.parametrize("f", [lambda t: t, lambda t: t * 2, lambda t: t.view(2, 1), lambda t: t.clone().mul_(2)])
@pytest.mark.parametrize("x", [X, X.clone().requires_grad_(), X.clone().requires_grad_() * 2])
def test_samples_know_no_tape(x, f):
    assert inside(lambda t: tape(f(t)), x, in_dims=1) == (False, None, True, 0, False, 0)


def test_the_tape_goes_through_all_the_same():
    x = X.clone().requires_grad_()
    func.vmap(lambda t: t * t.detach() * (2 if t.requires_grad else 3), in_dims=1)(x).sum().backward()
    assert_values(x.grad, 3 * X)


def test_a_gradient_inside_has_its_own_tape():
    seen = []

    def f(t):
        seen.append((t.requires_grad, t.is_leaf, (t * 2).requires_grad, (t * 2).grad_fn.name(), t.detach().requires_grad))
        return (t * t).sum()

    func.vmap(func.grad(f), in_dims=1)(X)
    assert seen == [(True, True, True, "MulBackward0", False)]


TURNED = "tensor([[1., 4.],\n            [2., 5.],\n            [3., 6.]])"


@pytest.mark.parametrize(
    ("f", "place", "value"),
    [
        (lambda t: t, 1, "tensor([[1., 2., 3.],\n            [4., 5., 6.]])"),
        (lambda t: -t, 1, "tensor([[-1., -2., -3.],\n            [-4., -5., -6.]])"),
        (lambda t: t**2, 1, "tensor([[ 1.,  4.,  9.],\n            [16., 25., 36.]])"),
        (lambda t: t * 1, 0, TURNED),
        (lambda t: t + t - t, 0, TURNED),
        (lambda t: t.sum(), 0, "tensor([5., 7., 9.])"),
        (lambda t: t[None], 0, "tensor([[[1., 4.]],\n\n            [[2., 5.]],\n\n            [[3., 6.]]])"),
    ],
)
def test_where_the_samples_lie_is_printed(f, place, value):
    assert inside(lambda t: repr(f(t)), X, in_dims=1) == f"BatchedTensor(lvl=1, bdim={place}, value=\n    {value}\n)"


def test_samples_of_samples_in_print():
    text = inside(lambda t: inside(str, t), T.tensor([[1.0], [2.0]]))
    assert text.splitlines()[:3] == [
        "BatchedTensor(lvl=2, bdim=0, value=",
        "    BatchedTensor(lvl=1, bdim=0, value=",
        "        tensor([[1.],",
    ]


def test_the_tensor_behind_is_printed_as_it_is():
    text = inside(repr, X.clone().requires_grad_(), in_dims=1)
    assert "bdim=1" in text and "requires_grad=True" in text
    text = inside(repr, X.clone().requires_grad_() * 2, in_dims=1)
    assert "grad_fn=<MulBackward0>" in text


@pytest.mark.parametrize(
    ("f", "options", "same"),
    [
        (lambda t: t, {}, True),
        (lambda t: t.flatten(), {}, True),
        (lambda t: t, {"in_dims": 1, "out_dims": 1}, True),
        (lambda t: t, {"in_dims": 1, "out_dims": -1}, True),
        (lambda t: t, {"in_dims": 1}, False),
        (lambda t: t, {"out_dims": 1}, False),
        (lambda t: t.view_as(t), {}, False),
        (lambda t: t * 1, {}, False),
    ],
)
def test_an_input_comes_out_as_it_went_in(f, options, same):
    for x in (X, X.clone().requires_grad_() * 2):
        assert (func.vmap(f, **options)(x) is x) is same


def test_strides_of_single_operands():
    spread = T.ones(()).expand(2, 3, 4)
    assert func.vmap(lambda t: t**3, in_dims=-1)(spread).stride() == (1, 12, 4)
    assert func.vmap(lambda t: t * 3, in_dims=-1)(spread).stride() == (6, 3, 1)
    assert func.vmap(lambda t: t.sin(), in_dims=1)(X).stride() == (1, 3)


def test_what_masked_scatter_fills_is_dense():
    assert X.t().masked_scatter(X.t() > 2, T.zeros(6)).stride() == (2, 1)


def test_gradients_of_numbers_start_apart():
    x = T.tensor([1.0, 2.0])
    assert func.vmap(func.grad(lambda t: t.cumsum(-1).sum()))(x).stride() == (1,)
    assert func.vmap(func.grad(lambda t: t.flatten().sum()))(x).stride() == (1,)


@pytest.mark.parametrize("f", [lambda t: t * 2, lambda t: t + T.ones(3), lambda t: T.maximum(t, T.ones(2)), lambda t: t / 2])
def test_no_first_sample_to_look_at(f):
    with pytest.raises(IndexError, match=r"select\(\): index 0 out of range for tensor of size \[0\] at dimension 0"):
        func.vmap(f)(T.ones(0))
    assert func.vmap(f)(T.ones(0, 1)).shape[0] == 0


@pytest.mark.parametrize("f", [lambda t: t.exp(), lambda t: t + t, lambda t: t**2, lambda t: t > 0, lambda t: 1 - t])
def test_no_samples(f):
    assert func.vmap(f)(T.ones(0)).shape == (0,)


# --- what transforms hand out of their inputs ---

OUT = {
    "vjp": lambda f, x: func.vjp(f, x)[0],
    "aux of grad": lambda f, x: func.grad(lambda t: (t.sum(), f(t)), has_aux=True)(x)[1],
    "aux of vjp": lambda f, x: func.vjp(lambda t: (t * 2, f(t)), x, has_aux=True)[2],
    "aux of jacrev": lambda f, x: func.jacrev(lambda t: (t * 2, f(t)), has_aux=True)(x)[1],
}


@pytest.mark.parametrize("run", OUT.values(), ids=OUT)
def test_inputs_and_views_of_them_come_out_as_such(run):
    for x in (X.clone(), X.clone().requires_grad_(), X.clone().requires_grad_() * 2):
        assert run(lambda t: t, x) is x
        part = run(lambda t: t[:, 1:], x)
        assert part._base is x and part.stride() == (3, 1) and part.storage_offset() == 1
        assert run(lambda t: t * 1, x)._base is None


def test_writes_through_what_came_out():
    x = X.clone()
    func.vjp(lambda t: t.view(-1), x)[0][0] = 9.0
    assert x[0, 0] == 9.0 and x._version == 1


def test_inner_transforms_leave_no_history_behind():
    v = T.tensor([1.0, 2.0])

    def f(x):
        return func.grad(lambda y: (T.cat([y * x, y]) ** 2).sum())(v).sum()

    assert not func.grad(f)(v).requires_grad
    assert not func.vjp(f, v)[0].requires_grad
    assert not func.jacrev(f)(v).requires_grad


@pytest.mark.parametrize(
    "f", [lambda t: (t * 1).unsqueeze_(0).squeeze_(0), lambda t: (t * 1)[None].t_()[:, 0], lambda t: t @ T.ones(3, 3)]
)
def test_tangents_of_samples_change_shape_with_them(f):
    moved = func.vmap(lambda t: func.jvp(f, (t,), (t,))[1])(X)
    assert_values(moved, T.stack([f(t) for t in X]))


# --- linearize ---


class Cube(T.autograd.Function):
    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx, tangent):
        return 3 * ctx.saved_tensors[0] ** 2 * tangent


V = T.tensor([3.0, 4.0])
P = T.tensor([1.0, 2.0])


def test_linearize_goes_forward():
    calls = []
    value, push = func.linearize(lambda x: (calls.append(1), Cube.apply(x) + 1)[1], P)
    assert_values(value, [2.0, 9.0])
    for direction in (V, 2 * V, V):
        assert_values(push(direction), 3 * P**2 * direction)
    assert len(calls) == 2
    backward = type("Backward", (Cube,), {"jvp": T.autograd.Function.jvp, "backward": staticmethod(lambda ctx, g: g)})
    with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
        func.linearize(backward.apply, P)


def test_linearize_of_what_does_not_move():
    value, push = func.linearize(lambda x: (x.long(), T.ones(2), x * 2, 3), P)
    moved = push(V)
    assert moved[0].tolist() == [0, 0] and moved[0].dtype == T.int64
    assert moved[1].tolist() == [0, 0] and moved[2].tolist() == [6.0, 8.0] and moved[3] == value[3] == 3
    assert func.linearize(lambda x: None, P)[1](V) is None
    assert func.linearize(lambda x: (), P)[1](V) == ()


@pytest.mark.parametrize(("point", "direction"), [(p, d) for p in (False, True) for d in (False, True)])
def test_what_a_linear_map_records(point, direction):
    x, v = P.clone().requires_grad_(point), V.clone().requires_grad_(direction)
    value, push = func.linearize(lambda x: x.sin() * x, x)
    assert (value.requires_grad, push(v).requires_grad) == (point, point or direction)
    with T.no_grad():
        assert not push(v).requires_grad
        value, push = func.linearize(lambda x: x.sin() * x, x)
        assert not value.requires_grad and not push(v).requires_grad


def test_linearize_through_writes():
    x, count = P.clone(), T.zeros(2)
    assert_values(func.linearize(lambda t: t.mul_(2), x)[1](V), [6.0, 8.0])
    assert_values(x, [4.0, 8.0])
    func.linearize(lambda t: count.add_(t), P)
    assert_values(count, [2.0, 4.0])
    inner = func.linearize(func.grad(lambda t: t.sin().sum()), P)[1](V)
    assert_values(inner, -P.sin() * V, rtol=1e-5)
    assert not inner.requires_grad


def test_where_linearize_does_not_go():
    with pytest.raises(RuntimeError, match="Batching rule not implemented for aten::_make_dual"):
        func.vmap(lambda x: func.linearize(T.sin, x)[0])(P)
    with pytest.raises(RuntimeError, match="Nested forward mode AD"):
        func.linearize(lambda x: func.jvp(T.sin, (x,), (x,))[1], P)
    with pytest.raises(AttributeError, match="'int' object has no attribute 'new_empty'"):
        func.linearize(lambda x: x, 3)
    with pytest.raises(ZeroDivisionError):
        func.linearize(lambda x: 1 / 0, P)
    assert T.autograd.forward_ad._current_level == -1
