"""vmap: where samples lie and go, writing in place, random numbers, what cannot be batched, custom Functions."""

from collections import OrderedDict, namedtuple

import pytest

from library import IS_GRADIRON, T, assert_values

vmap = T.func.vmap
Pair = namedtuple("Pair", "first second")


def grid(*shape, kind="float32"):
    n = 1
    for s in shape:
        n *= s
    return (T.arange(n, dtype=T.float64) * 0.37 - 1).reshape(shape).to(getattr(T, kind))


def loop(f, *args, dims=0, out=0):
    dims = dims if isinstance(dims, tuple) else (dims,) * len(args)
    count = next(a.shape[d] for a, d in zip(args, dims) if d is not None)
    return T.stack([f(*(a if d is None else a.select(d, i) for a, d in zip(args, dims))) for i in range(count)], out)


# --- where samples lie and go ---


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("out", [0, 1, -1])
def test_every_dimension_in_and_out(dim, out):
    x, y = grid(2, 3, 4), grid(3, 4, 2)[:2, :2, :2]
    f = lambda a: a.sin().sum(0)
    assert_values(vmap(f, in_dims=dim, out_dims=out)(x), loop(f, x, dims=dim, out=out))
    g = lambda a, b: (a * b).sum(1)
    assert_values(vmap(g, in_dims=(dim, 1), out_dims=out)(y, y), loop(g, y, y, dims=(dim, 1), out=out))


def test_shared_inputs():
    x, w = grid(3, 2), grid(2, 4)
    assert_values(vmap(lambda a, b: a @ b, in_dims=(0, None))(x, w), x @ w)
    assert_values(vmap(lambda a, b: a @ b, in_dims=(None, 1), out_dims=1)(x, w), x @ w)


def test_an_output_that_depends_on_no_sample_is_repeated():
    assert_values(vmap(lambda a: T.ones(2))(grid(3, 1)), T.ones(3, 2))
    assert_values(vmap(lambda a: T.tensor([1.0, 2.0]), out_dims=1)(grid(3, 1)), [[1.0] * 3, [2.0] * 3])
    assert_values(vmap(lambda a: T.ones(2), out_dims=None)(grid(3, 1)), T.ones(2))


def test_numbers_and_keywords_pass_by():
    x = grid(3, 2)
    assert_values(vmap(lambda a, n, k=1: a * n + k, in_dims=(0, None))(x, 3, k=2), x * 3 + 2)
    assert_values(vmap(lambda a, k: a + k.sum())(x, k=x), x + x.sum())


def test_containers():
    x, y = grid(3, 2), grid(2, 3)
    d = {"a": x, "b": (y, [x, 2.0])}
    f = lambda t: {"sum": t["a"] + t["b"][0], "all": [t["a"] * t["b"][1][0], t["b"][1][1] * t["a"]]}
    got = vmap(f, in_dims=({"a": 0, "b": (1, [0, None])},))(d)
    assert list(got) == ["sum", "all"]
    assert_values(got["sum"], x + y.t())
    assert_values(got["all"][0], x * x)
    assert_values(got["all"][1], x * 2)
    got = vmap(lambda p: Pair(p.second, p.first.sum()), in_dims=(Pair(0, 1),))(Pair(x, y))
    assert isinstance(got, Pair)
    assert_values(got.first, y.t())
    assert_values(got.second, x.sum(1))
    got = vmap(lambda o: OrderedDict(z=o["z"] + 1))(OrderedDict(z=x))
    assert isinstance(got, OrderedDict)
    assert_values(got["z"], x + 1)
    got = vmap(lambda a: (a, (a.sum(), a * 2)), out_dims=(1, (0, 1)))(x)
    assert_values(got[0], x.t())
    assert_values(got[1][0], x.sum(1))
    assert_values(got[1][1], (x * 2).t())
    got = vmap(lambda a: (a, a), out_dims=1)(x)
    assert_values(got[1], x.t())
    assert_values(vmap(lambda a: a, out_dims=(1,))(x), x.t())


def test_one_sample_and_no_sample():
    assert_values(vmap(lambda a: a * 2)(grid(1, 2)), grid(1, 2) * 2)
    if IS_GRADIRON:
        assert vmap(lambda a: a * 2)(T.ones(0, 2)).shape == (0, 2)


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 100])
def test_chunks(chunk):
    x, w = grid(5, 2), grid(2)
    f = lambda a, b: (a * b, {"s": a.sum()})
    got = vmap(f, in_dims=(0, None), out_dims=(1, 0), chunk_size=chunk)(x, w)
    assert_values(got[0], (x * w).t())
    assert_values(got[1]["s"], x.sum(1))


def test_nested():
    x, y = grid(2, 3), grid(4)
    outer = vmap(lambda a: vmap(lambda b: a * b)(y))(x)
    assert_values(outer, x[:, None, :] * y[None, :, None])
    table = vmap(vmap(lambda a, b: (a - b).abs(), in_dims=(None, 0)), in_dims=(0, None))(y, y)
    assert_values(table, (y[:, None] - y[None, :]).abs())
    three = vmap(vmap(vmap(lambda a: a.exp() + 1)))(grid(2, 3, 4))
    assert_values(three, grid(2, 3, 4).exp() + 1)
    assert_values(
        vmap(vmap(lambda a: a.cumsum(0), in_dims=1, out_dims=1), in_dims=2)(grid(2, 3, 4)),
        grid(2, 3, 4).cumsum(0).permute(2, 0, 1),
    )


def test_what_a_function_sees():
    seen = []

    def f(a):
        seen.append(
            (a.shape, a.dim(), a.numel(), a.dtype, a.device.type, len(a), a.is_contiguous(), a.stride(), a.requires_grad)
        )
        return a

    vmap(f, in_dims=1)(grid(2, 3))
    assert seen == [((2,), 1, 2, T.float32, "cpu", 2, False, (3,), False)]


def test_promotion_is_that_of_the_samples():
    x, n = T.ones(3), T.ones(3, dtype=T.float64)
    assert vmap(lambda a, b: a.expand(2) * b)(x, n).dtype == T.float32
    assert vmap(lambda a, b: a * b)(x, n).dtype == T.float64
    assert vmap(lambda a: a * 2.5)(T.ones(3, dtype=T.int64)).dtype == T.float32
    assert vmap(lambda a, b: T.where(a > 0, a, b))(x, n).dtype == T.float64


def test_broadcasting_is_that_of_the_samples():
    x, y = grid(3, 2), grid(3, 4, 1)
    assert_values(vmap(lambda a, b: a + b)(x, y), x[:, None, :] + y)
    assert_values(vmap(lambda a, b: b - a)(x, y), y - x[:, None, :])
    assert_values(vmap(lambda a: a + T.ones(5, 2))(x), x[:, None, :] + T.ones(5, 2))
    with pytest.raises(RuntimeError):
        vmap(lambda a: a + T.ones(3))(x)


# --- in place ---


def test_in_place_on_samples():
    x, y = grid(3, 2), grid(3, 2)
    kept = x.clone()
    out = vmap(lambda a, b: a.mul_(b).add_(1))(x, y)
    assert_values(out, kept * y + 1)
    assert_values(x, kept * y + 1)
    z = T.zeros(3, 2)
    vmap(lambda a, b: a.copy_(b))(z, y)
    assert_values(z, y)
    vmap(lambda a: a.zero_())(z)
    assert_values(z, T.zeros(3, 2))
    vmap(lambda a: a.fill_(3.0))(z)
    assert_values(z, T.full((3, 2), 3.0))


def test_writing_into_parts():
    x = grid(3, 4)

    def f(a):
        b = T.zeros_like(a)
        b[0] = a[1]
        b[1:3] = a[:2] * 2
        b[-1] += 1
        return b

    assert_values(vmap(f)(x), loop(f, x))
    g = lambda a: a.clone().index_put((T.tensor([0, 2]),), T.ones(2))
    assert_values(vmap(g)(x), loop(g, x))

    def h(a):
        b = a.clone()
        b[T.tensor([0, 2])] = a[:2]
        return b

    assert_values(vmap(h)(x), loop(h, x))


IN_PLACE = [
    lambda a: a.relu_(),
    lambda a: a.clamp_(0, 1),
    lambda a: a.pow_(2),
    lambda a: a.tril_(),
    lambda a: a.unsqueeze_(-1),
    lambda a: a.t_(),
    lambda a: a.transpose_(0, 1),
    lambda a: a.swapaxes_(0, 1),
    lambda a: a.cumsum_(0),
    lambda a: a.index_add_(0, T.tensor([1, 0]), a[:2].clone()),
    lambda a: a.scatter_(0, T.tensor([[0, 2, 1]]), 5.0),
    lambda a: a.masked_fill_(a > 0, 2.0),
    lambda a: a.addmm_(a.clone(), a.clone()),
    lambda a: a.index_fill_(0, T.tensor([1]), 2.0),
    lambda a: a.index_copy_(0, T.tensor([1, 0]), a[:2].clone()),
    lambda a: a.index_put_((T.tensor([1, 0]),), a[:2].clone()),
    lambda a: a.copy_(a[0].clone()),
    lambda a: a.lerp_(a * 2, 0.5),
    lambda a: a.addcmul_(a.clone(), a.clone()),
    lambda a: a.detach().mul_(2),
    lambda a: (a[0].add_(a[1]), a.t()[1].mul_(3), a)[2],
    lambda a: (a.select(0, 1).zero_(), a)[1],
    lambda a: (a.diagonal().zero_(), a)[1],
    lambda a: (a.__setitem__(T.tensor([True, False, True]), 0.0), a)[1],
    lambda a: (a.__setitem__(a[:, 0] > 0, 7.0), a)[1],
    lambda a: (a.__setitem__((slice(1, 3), 2), 7.0), a)[1],
    lambda a: a[None].squeeze_(0).add_(1),
]


if IS_GRADIRON:
    # PyTorch cannot fill with a number of each sample's own.
    IN_PLACE.append(lambda a: a.fill_(a[0, 1].clone()))


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("write", IN_PLACE)
def test_every_way_of_writing(write):
    x = grid(3, 3, 3, kind="float64").sin()
    f = lambda a: write(a.clone())
    assert_values(vmap(f)(x), loop(f, x))
    assert_values(vmap(f, in_dims=2, out_dims=1)(x), loop(f, x, dims=2, out=1))
    assert_values(vmap(vmap(f))(T.stack([x, x * 2]))[1], loop(f, x * 2))


def test_bytes_seen_as_another_dtype():
    x = grid(2, 4)
    assert_values(vmap(lambda a: a.view(T.int32))(x), x.view(T.int32))
    assert_values(vmap(lambda a: a.as_strided((2, 2), (1, 1)))(x), loop(lambda a: a.as_strided((2, 2), (1, 1)), x))


def test_gradients_through_writes():
    x = grid(3, 4).requires_grad_()

    def f(a):
        b = a * 1
        b[1:] *= a[:3]
        b.tanh_()
        return b

    found = T.autograd.grad((vmap(f)(x) * grid(3, 4)).sum(), x)[0]
    assert_values(found, T.autograd.grad((loop(f, x) * grid(3, 4)).sum(), x)[0])


def test_writing_samples_into_a_shared_tensor_is_refused():
    x = grid(3, 2)
    for write in (lambda a: T.zeros(2).mul_(a), lambda a: T.zeros(2).copy_(a) if not IS_GRADIRON else T.zeros(2).add_(a)):
        with pytest.raises(RuntimeError):
            vmap(write)(x)
    with pytest.raises(RuntimeError, match="vmap: inplace arithmetic"):
        vmap(lambda a, b: a.mul_(b), in_dims=(None, 0))(T.ones(2), x)

    def part(a):
        y = T.zeros(2)
        y[0] = a[0]
        return y

    with pytest.raises(RuntimeError, match="vmap: inplace arithmetic"):
        vmap(part)(x)


# --- indexing ---


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0), (1, 0)])
@pytest.mark.parametrize(
    "f",
    [
        lambda x, i: x[i],
        lambda x, i: x[:, i],
        lambda x, i: x[i, i],
        lambda x, i: x[i, :, i],
        lambda x, i: x[:, i, i],
        lambda x, i: x[i[:1], 1],
        lambda x, i: x[None, i],
        lambda x, i: x[..., i],
        lambda x, i: x[1:, i[:, None], i],
        lambda x, i: x[i[0]],
        lambda x, i: x.index_select(1, i),
        lambda x, i: x.gather(0, i[:, None, None].expand(2, 3, 3)),
        lambda x, i: x.take(i),
        lambda x, i: x.index_add(0, i, x[:2]),
        lambda x, i: x.index_copy(0, i, x[:2] * 2),
        lambda x, i: x.index_fill(2, i, 5.0),
        lambda x, i: x.index_put((i, i), x[0, :1]),
        lambda x, i: x.index_put((i,), x[:2], accumulate=True),
        lambda x, i: T.take_along_dim(x, i[:, None, None], 0),
    ],
)
def test_indexing(f, dims):
    # Fewer positions than places, all different: what is written twice has no order.
    x = grid(3, 3, 3) if dims[0] is None else grid(3, 3, 3, 3)
    i = T.tensor([0, 2]) if dims[1] is None else T.tensor([[0, 2], [1, 0], [2, 1]])
    assert_values(vmap(f, in_dims=dims)(x, i), loop(f, x, i, dims=dims))


# --- random numbers ---


def test_random_operators_are_refused_unless_asked_for():
    x = grid(3, 2)
    for draw in (
        lambda a: T.rand(2),
        lambda a: T.randn_like(a),
        lambda a: T.randint(0, 9, (2,)),
        lambda a: T.randperm(3),
        lambda a: T.nn.functional.dropout(a),
        lambda a: T.bernoulli(a.sigmoid()),
        lambda a: a.clone().normal_(),
        lambda a: T.normal(a, 1.0),
    ):
        with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
            vmap(draw)(x)
    with pytest.raises(RuntimeError, match="Only allowed values for randomness"):
        vmap(lambda a: a, randomness="often")(x)


def test_different_and_same_randomness():
    x = T.zeros(4, 50)
    for draw in (
        lambda a: T.rand(50),
        lambda a: T.randn(50),
        lambda a: T.randn_like(a),
        lambda a: T.randperm(50),
        lambda a: T.nn.functional.dropout(a + 1),
        lambda a: T.bernoulli(a + 0.5),
        lambda a: a.clone().uniform_(),
        lambda a: T.normal(a, 1.0),
    ):
        different = vmap(draw, randomness="different")(x)
        assert different.shape == (4, 50)
        assert not any(T.equal(different[i], different[j]) for i in range(4) for j in range(i))
    made = [lambda a: T.rand(50), lambda a: T.randn(50), lambda a: T.randperm(50), lambda a: T.randint(0, 1000, (50,))]
    if IS_GRADIRON:
        # PyTorch does not draw once for all samples of a batched operand.
        made += [
            lambda a: T.randn_like(a),
            lambda a: T.bernoulli(a + 0.5),
            lambda a: a.clone().uniform_(),
            lambda a: T.normal(a, 1.0),
        ]
    for draw in made:
        same = vmap(draw, randomness="same")(x)
        assert same.shape == (4, 50) and all(T.equal(same[0], same[i]) for i in range(4))
    with pytest.raises(RuntimeError, match="Cannot ask for different inplace randomness on an unbatched tensor"):
        vmap(lambda a: T.empty(3).normal_(), randomness="different")(x)


# --- what cannot be batched ---


def message(call, *args):
    with pytest.raises(Exception) as found:
        call(*args)
    return f"{type(found.value).__name__}: {found.value}"


def test_wrong_arguments():
    x = grid(2, 3)

    def f(a):
        return a

    def g(a, b):
        return a

    assert message(vmap(f), 3) == (
        "ValueError: vmap(f, in_dims=0, ...)(<inputs>): Got in_dim=0 for an input but the input is of type <class 'int'>. We "
        "cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
    )
    assert "got no inputs" in message(vmap(f))
    for dims in (None, "a", [0]):
        assert "expected `in_dims` to be int or a (potentially nested) tuple" in message(vmap(f, in_dims=dims), x)
    assert "so expected in_dim to satisfy -2 <= in_dim < 2." in message(vmap(f, in_dims=2), x)
    assert (
        "in_dims is not compatible with the structure of `inputs`. in_dims has structure TreeSpec(tuple, None, [*"
        in message(vmap(f, in_dims=(0, 0)), x)
    )
    assert "in_dim must be either an integer dimension or None" in message(vmap(f, in_dims=(0.5,)), x)
    assert message(vmap(g), x, T.ones(3)) == (
        "ValueError: vmap: Expected all tensors to have the same size in the mapped dimension, got sizes [2, 3] for the mapped "
        "dimension"
    )
    assert "ValueError: vmap: chunk_size should be None or greater than 0. (got 0)" == message(lambda: vmap(f, chunk_size=0)(x))
    assert message(vmap(lambda a: a, out_dims=2), x).startswith("IndexError: Dimension out of range")
    assert "out_dims is not compatible with the structure of `outputs`" in message(vmap(lambda a: a, out_dims=(0, 0)), x)
    assert "`out_dims` must be an int, None or a python collection of ints" in message(vmap(f, out_dims="a"), x)
    assert "`f` can not return a BatchedTensor when out_dim is None" in message(vmap(f, out_dims=None), x)


def test_outputs_must_be_tensors():
    x = grid(2, 3)
    for f in (lambda a: 3, lambda a: None, lambda a: (a, "text")):
        assert "must only return Tensors, got type" in message(vmap(f), x)


def test_values_cannot_be_read():
    x = T.ones(3)
    item = "RuntimeError: vmap: It looks like you're calling .item() on a Tensor."
    assert message(vmap(lambda a: a.item()), x).startswith(item)
    assert message(vmap(lambda a: float(a)), x).startswith(item)
    branch = "RuntimeError: vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow."
    assert message(vmap(lambda a: a if a > 0 else -a), x).startswith(branch)
    storage = "RuntimeError: Cannot access data pointer of Tensor that doesn't have storage"
    assert message(vmap(lambda a: a.numpy()), x) == storage
    assert message(vmap(lambda a: a.data_ptr()), x) == storage
    assert message(vmap(lambda a: a.tolist()), x[None]) in (storage,)
    for f in (T.nonzero, lambda a: a[a > 1], lambda a: T.masked_select(a, a > 1), T.unique):
        assert message(vmap(f), grid(2, 3)).startswith("RuntimeError: vmap: ")


def test_backward_inside_is_refused():
    x = T.ones(3, requires_grad=True)
    assert message(vmap(lambda a: (a * 2).backward()), x).startswith("RuntimeError: backward() called inside a functorch")


def test_an_error_leaves_no_level_behind():
    with pytest.raises(ZeroDivisionError):
        vmap(lambda a: 1 / 0)(T.ones(2))
    text = []
    vmap(lambda a: (text.append(repr(a)), a)[1])(T.ones(2))
    assert text[0].startswith("BatchedTensor(lvl=1,")


# --- gradients in batches ---


def test_gradients_of_batched_outputs():
    x, w = grid(3, 2).requires_grad_(), grid(2, 4).requires_grad_()
    y = vmap(lambda a, b: (a @ b).tanh(), in_dims=(0, None))(x, w)
    expected = T.autograd.grad((x @ w).tanh().sum(), (x, w))
    for found, e in zip(T.autograd.grad(y.sum(), (x, w)), expected):
        assert_values(found, e)


def test_is_grads_batched():
    x, z = grid(3).requires_grad_(), grid(2).requires_grad_()
    y = x**3
    assert_values(T.autograd.grad(y, x, T.eye(3), is_grads_batched=True, retain_graph=True)[0], T.diag(3 * x.detach() ** 2))
    g = T.autograd.grad(y, x, T.eye(3), is_grads_batched=True, create_graph=True)[0]
    assert_values(T.autograd.grad(g.sum(), x)[0], 6 * x.detach())
    found = T.autograd.grad(y, (x, z), T.eye(3), is_grads_batched=True, allow_unused=True, retain_graph=True)
    assert found[1] is None
    both = T.autograd.grad((y, x * 2), x, (T.eye(3), T.ones(3, 3)), is_grads_batched=True, retain_graph=True)[0]
    assert_values(both, T.diag(3 * x.detach() ** 2) + 2)
    with pytest.raises(RuntimeError, match="If `is_grads_batched=True`, we interpret the first dimension"):
        T.autograd.grad(y, x, T.eye(4), is_grads_batched=True, retain_graph=True)
    with pytest.raises(RuntimeError, match="appears to not have been used"):
        T.autograd.grad(y, (x, z), T.eye(3), is_grads_batched=True, retain_graph=True)


# --- custom Functions ---


class Cube(T.autograd.Function):
    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return g * 3 * ctx.saved_tensors[0] ** 2


class OwnRule(Cube):
    calls = []

    @staticmethod
    def vmap(info, in_dims, x):
        OwnRule.calls.append((info.batch_size, info.randomness, in_dims, tuple(x.shape)))
        return OwnRule.apply(x), in_dims[0]


class Generated(Cube):
    generate_vmap_rule = True


def test_function_with_its_own_rule():
    x = grid(2, 3)
    OwnRule.calls.clear()
    assert_values(vmap(OwnRule.apply)(x), x**3)
    assert OwnRule.calls == [(2, "error", (0,), (2, 3))]
    assert_values(vmap(vmap(OwnRule.apply))(x), x**3)
    y = x.clone().requires_grad_()
    assert_values(T.autograd.grad(vmap(OwnRule.apply)(y).sum(), y)[0], 3 * x**2)


def test_function_with_a_generated_rule():
    x = grid(2, 3)
    assert_values(vmap(Generated.apply)(x), x**3)
    assert_values(vmap(vmap(Generated.apply))(x), x**3)
    y = x.clone().requires_grad_()
    assert_values(T.autograd.grad(vmap(Generated.apply)(y).sum(), y)[0], 3 * x**2)
    assert_values(vmap(vmap(T.func.grad(Generated.apply)))(x), 3 * x**2)
    assert_values(vmap(vmap(T.func.grad(T.func.grad(Generated.apply))))(x), 6 * x)


class Pair2(T.autograd.Function):
    """Two inputs, two outputs, one of them saved, an input that is no tensor."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, w, power):
        y = (x * w) ** power
        return y, y.sum()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, power = inputs
        ctx.power = power
        ctx.save_for_backward(x, None, w, output[0])

    @staticmethod
    def backward(ctx, g, s):
        x, nothing, w, y = ctx.saved_tensors
        assert nothing is None and y.shape == x.shape
        slope = (g + s) * ctx.power * (x * w) ** (ctx.power - 1)
        return slope * w, slope * x, None


def test_generated_rule_with_several_inputs_and_outputs():
    x, w = grid(3, 2, kind="float64"), grid(2, kind="float64") + 2
    plain = lambda a, b: ((a * b) ** 3, ((a * b) ** 3).sum())
    for dims in ((0, None), (None, 0), (0, 0)):
        args = (x if dims[0] is not None else x[0], w if dims[1] is None else x + 3)
        leaves = [a.clone().requires_grad_() for a in args], [a.clone().requires_grad_() for a in args]
        found = vmap(lambda a, b: Pair2.apply(a, b, 3), in_dims=dims)(*leaves[0])
        expected = vmap(plain, in_dims=dims)(*leaves[1])
        for f, e in zip(found, expected):
            assert_values(f, e)
        total = lambda outs: outs[0].sin().sum() + (outs[1] ** 2).sum()
        first = [T.autograd.grad(total(o), ls, create_graph=True) for o, ls in ((found, leaves[0]), (expected, leaves[1]))]
        for f, e in zip(*first):
            assert_values(f, e)
        second = [T.autograd.grad(sum((g**2).sum() for g in gs), ls) for gs, ls in zip(first, leaves)]
        for f, e in zip(*second):
            assert_values(f, e)


def test_function_without_a_rule():
    with pytest.raises(RuntimeError, match="You tried to vmap over Cube, but it does not have vmap support"):
        vmap(Cube.apply)(grid(2, 3))

    class Both(OwnRule):
        generate_vmap_rule = True

    with pytest.raises(RuntimeError, match="it has both generate_vmap_rule=True and an overridden vmap staticmethod"):
        vmap(Both.apply)(grid(2, 3))

    class Wrong(Cube):
        @staticmethod
        def vmap(info, in_dims, x):
            return x

    with pytest.raises(RuntimeError, match="Expected the vmap staticmethod to have two returns"):
        vmap(Wrong.apply)(grid(2, 3))

    class Old(T.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx, x):
            return x

    with pytest.raises(RuntimeError, match="it must override the setup_context staticmethod"):
        vmap(Old.apply)(grid(2, 3))
