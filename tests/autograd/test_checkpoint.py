"""Recomputing instead of keeping: both variants of `checkpoint`, its options and errors, and `checkpoint_sequential`."""

import contextlib
import gc
import importlib
import warnings
import weakref

import pytest

from library import IS_GRADIRON, NAME, T, assert_values, leaf, tensor

ck = importlib.import_module(f"{NAME}.utils.checkpoint")
checkpoint = ck.checkpoint
VARIANTS = pytest.mark.parametrize("reentrant", [True, False], ids=["reentrant", "plain"])
TIP = "Tip: To see a more detailed error message"


def work(x, factor=1.0):
    y = x.sin() * factor
    return (y.exp() * y).cos()


class Counted:
    def __init__(self, function=work):
        self.function, self.calls = function, 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.function(*args, **kwargs)


def plain_grad(function, *values):
    leaves = [leaf(v) for v in values]
    function(*leaves).sum().backward()
    return leaves[0].grad


# What both variants do.


@VARIANTS
def test_gradients_and_calls(reentrant, device):
    function, x = Counted(), leaf([1.0, 2.0, 3.0], device)
    y = checkpoint(function, x, use_reentrant=reentrant)
    assert function.calls == 1
    assert_values(y, work(tensor([1.0, 2.0, 3.0])))
    y.sum().backward()
    assert function.calls == 2
    assert_values(x.grad, plain_grad(work, [1.0, 2.0, 3.0]))
    assert y.grad_fn.name() == ("CheckpointFunctionBackward" if reentrant else "CosBackward0")


@VARIANTS
def test_several_arguments_and_results(reentrant):
    def function(x, options, text, w, nothing):
        return x.sin() * w, text, (x * 2).cos(), nothing

    x, w, hidden = leaf([1.0, 2.0]), leaf([3.0, 4.0]), leaf([1.0, 1.0])
    a, text, b, nothing = checkpoint(function, x, {"w": hidden}, "text", w, None, use_reentrant=reentrant)
    assert (text, nothing) == ("text", None)
    (a * b).sum().backward()
    x2, w2 = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (x2.sin() * w2 * (x2 * 2).cos()).sum().backward()
    assert_values(x.grad, x2.grad)
    assert_values(w.grad, w2.grad)


@VARIANTS
@pytest.mark.parametrize("preserve", [True, False])
def test_random_numbers(reentrant, preserve):
    drawn = []

    def function(x):
        drawn.append(T.rand(3))
        return x.sin() * drawn[-1]

    T.manual_seed(5)
    x = leaf([1.0, 2.0, 3.0])
    y = checkpoint(
        function, x, use_reentrant=reentrant, preserve_rng_state=preserve, **({} if reentrant else {"early_stop": False})
    )
    between = T.rand(2)
    y.sum().backward()
    after = T.rand(2)
    T.manual_seed(5)
    first, second, third = T.rand(3), T.rand(2), T.rand(2)
    assert_values(drawn[0], first)
    assert_values(between, second)
    assert (drawn[1].tolist() == drawn[0].tolist()) == preserve
    assert (after.tolist() == third.tolist()) == preserve


@VARIANTS
@pytest.mark.parametrize("on", [True, False])
def test_autocast_comes_back(reentrant, on):
    kinds = []

    def function(x, w):
        y = x @ w
        kinds.append((y.dtype, T.is_autocast_enabled("cpu"), T.get_autocast_dtype("cpu")))
        return y @ w

    x, w = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([[0.5, -1.0], [2.0, 0.25]])
    with T.autocast("cpu", dtype=T.float16, enabled=on):
        y = checkpoint(function, x, w, use_reentrant=reentrant)
    with T.autocast("cpu", dtype=T.bfloat16, enabled=not on):
        y.backward(T.ones_like(y))
    dtype = T.float16 if on else T.float32
    assert y.dtype is dtype and kinds == [(dtype, on, T.float16)] * 2
    assert not T.is_autocast_enabled("cpu")
    assert_values(x.grad, (w @ w).detach().sum(1).expand(2, 2))


@VARIANTS
def test_errors_inside_the_function(reentrant):
    def fail(x):
        raise ValueError("oops")

    with pytest.raises(ValueError, match="^oops$"):
        checkpoint(fail, leaf([1.0]), use_reentrant=reentrant)
    state = Counted(lambda x: work(x) if state.calls == 1 else fail(x))
    y = checkpoint(state, leaf([1.0]), use_reentrant=reentrant)
    with pytest.raises(ValueError, match="^oops$"):
        y.backward()
    x = leaf([1.0])
    checkpoint(work, x, use_reentrant=reentrant).backward()
    assert_values(x.grad, plain_grad(work, [1.0]))


@VARIANTS
def test_intermediates_are_not_kept(reentrant):
    alive = []

    def function(x):
        y = x.exp()
        alive.append(weakref.ref(y))
        return y.sin().cos()

    y = checkpoint(function, leaf([1.0]), use_reentrant=reentrant)
    gc.collect()
    assert alive[0]() is None
    y.backward()
    gc.collect()
    assert all(reference() is None for reference in alive)


@VARIANTS
def test_in_no_grad(reentrant):
    with T.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = checkpoint(work, leaf([1.0]), use_reentrant=reentrant)
    assert not y.requires_grad


@VARIANTS
def test_modules_and_hidden_leaves(reentrant):
    w = leaf([2.0, 3.0])
    x = leaf([1.0, 2.0])
    checkpoint(lambda x: (x * w).sin(), x, use_reentrant=reentrant).sum().backward()
    assert_values(w.grad, [2.0 * 0 + 1.0 * -0.4161468, 2.0 * 0.9601703])
    assert_values(x.grad, [2.0 * -0.4161468, 3.0 * 0.9601703])


# The reentrant variant.


def test_unset_variant_warns():
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly") as caught:
        y = checkpoint(work, leaf([1.0]))
    assert y.grad_fn.name() == "CheckpointFunctionBackward"
    assert len(caught) == 1


def test_reentrant_without_gradients_warns():
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True. Gradients will be None"):
        y = checkpoint(work, tensor([1.0]), use_reentrant=True)
    assert not y.requires_grad


@pytest.mark.parametrize("how", ["grad", "inputs"])
def test_reentrant_only_with_a_whole_backward(how):
    x = leaf([1.0])
    y = checkpoint(work, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad()"):
        if how == "grad":
            T.autograd.grad(y, x)
        else:
            y.backward(inputs=[x])


def test_reentrant_that_needs_no_gradient():
    with pytest.raises(RuntimeError, match="none of output has requires_grad=True, this checkpoint"):
        checkpoint(lambda x: x.detach(), leaf([1.0]), use_reentrant=True).backward()


def test_reentrant_takes_no_keywords():
    with pytest.raises(ValueError, match="Unexpected keyword arguments: factor"):
        checkpoint(work, leaf([1.0]), use_reentrant=True, factor=2)


@pytest.mark.parametrize("option", [{"debug": True}, {"context_fn": lambda: None}, {"respect_saved_tensors_hooks": True}])
def test_reentrant_takes_no_such_option(option):
    with pytest.raises(ValueError, match="is only supported when use_reentrant=False"):
        checkpoint(work, leaf([1.0]), use_reentrant=True, **option)


# The other one.


def test_keyword_arguments():
    x = leaf([1.0, 2.0])
    checkpoint(work, x, use_reentrant=False, factor=3.0).sum().backward()
    assert_values(x.grad, plain_grad(lambda x: work(x, 3.0), [1.0, 2.0]))


def test_grad_and_inputs():
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = checkpoint(lambda x: (x * w).sin().exp(), x, use_reentrant=False)
    (g,) = T.autograd.grad(y.sum(), x, retain_graph=True)
    y.sum().backward(inputs=[w])
    x2, w2 = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (x2 * w2).sin().exp().sum().backward()
    assert_values(g, x2.grad)
    assert_values(w.grad, w2.grad)
    assert x.grad is None


def test_no_input_wants_a_gradient():
    w = leaf([3.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checkpoint(lambda x: (x * w).sin(), tensor([1.0]), use_reentrant=False).backward()
    assert_values(w.grad, [-0.9899925])


def test_each_backward_recomputes_once():
    function, x = Counted(), leaf([1.0, 2.0])
    y = checkpoint(function, x, use_reentrant=False)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert function.calls == 3
    assert_values(x.grad, 2 * plain_grad(work, [1.0, 2.0]))


def test_double_backward():
    x, plain = leaf([0.5, 1.0], kind="float64"), leaf([0.5, 1.0], kind="float64")
    second = []
    for leaf_, y in ((x, checkpoint(work, x, use_reentrant=False)), (plain, work(plain))):
        (g,) = T.autograd.grad(y.sum(), leaf_, create_graph=True)
        second.append(T.autograd.grad((g * g).sum(), leaf_)[0])
    assert_values(second[0], second[1])


@pytest.mark.parametrize("early, runs", [(True, 1), (False, 2)])
@pytest.mark.parametrize("how", ["argument", "context"])
def test_early_stop(early, runs, how):
    ends = []

    def function(x):
        y = x.sin().exp() + 1
        ends.append(1)
        return y

    x = leaf([1.0])
    if how == "argument":
        y = checkpoint(function, x, use_reentrant=False, early_stop=early)
    else:
        with ck.set_checkpoint_early_stop(early):
            y = checkpoint(function, x, use_reentrant=False, early_stop=not early)
    y.backward()
    assert len(ends) == runs
    assert_values(x.grad, plain_grad(function, [1.0]))


@pytest.mark.parametrize("depth", [2, 3, 4])
@pytest.mark.parametrize("early", [True, False])
def test_nested(depth, early):
    def nest(level):
        def function(x):
            y = x.sin() * 2
            if level > 1:
                y = checkpoint(nest(level - 1), y, use_reentrant=False)
            return y.exp().cos()

        return function

    x, plain = leaf([0.3, 0.7]), leaf([0.3, 0.7])
    with ck.set_checkpoint_early_stop(early):
        checkpoint(nest(depth), x, use_reentrant=False).sum().backward()

    def flat(level, x):
        y = x.sin() * 2
        return (flat(level - 1, y) if level > 1 else y).exp().cos()

    flat(depth, plain).sum().backward()
    assert_values(x.grad, plain.grad)


def test_reentrant_inside_plain():
    x = leaf([0.3])
    inner = lambda y: checkpoint(work, y, use_reentrant=True)  # noqa: E731
    checkpoint(lambda x: inner(x * 2).sin(), x, use_reentrant=False).backward()
    assert_values(x.grad, plain_grad(lambda x: work(x * 2).sin(), [0.3]))


@pytest.mark.parametrize("retain", [True, False])
@pytest.mark.parametrize("early", [True, False])
def test_backward_inside_the_function(retain, early):
    def function(x):
        y = x.sin()
        z = y.cos()
        (g,) = T.autograd.grad(z.sum(), x, retain_graph=retain)
        return x.cos() * g

    x = leaf([1.0, 2.0])
    checkpoint(function, x, use_reentrant=False, early_stop=early).sum().backward()
    assert_values(x.grad, plain_grad(function, [1.0, 2.0]))


def test_saved_values_can_be_looked_at():
    x = leaf([1.0, 2.0])
    y = checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False)
    assert_values(y.grad_fn._saved_self, x.detach().exp())
    assert_values(y.grad_fn._saved_self, x.detach().exp())
    y.sum().backward()


def test_functions_inside():
    class Cube(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * x * x * g

    x = leaf([1.0, 2.0])
    checkpoint(lambda x: Cube.apply(x.sin()).exp(), x, use_reentrant=False).sum().backward()
    assert_values(x.grad, plain_grad(lambda x: (x.sin() ** 3).exp(), [1.0, 2.0]))


def test_a_value_unpacked_twice():
    class Greedy(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x * 1)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return ctx.saved_tensors[0] * ctx.saved_tensors[0] * g

    y = checkpoint(Greedy.apply, leaf([1.0]), use_reentrant=False)
    with pytest.raises(ck.CheckpointError, match="Unpack is being triggered for a tensor that was already unpacked once."):
        y.backward()


def test_in_place_inside():
    def function(x):
        y = x * 2
        y.sin_()
        y.mul_(x)
        return y.exp()

    x = leaf([1.0, 2.0])
    checkpoint(function, x, use_reentrant=False).sum().backward()
    assert_values(x.grad, plain_grad(function, [1.0, 2.0]))


def test_input_written_over_before_the_backward():
    x = leaf([1.0, 2.0]) * 1
    y = checkpoint(work, x, use_reentrant=False)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_many_backwards_leave_nothing_behind():
    x = leaf([1.0])
    y = checkpoint(work, x, use_reentrant=False)
    for _ in range(3):
        y.backward(retain_graph=True)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(50):
        y.backward(retain_graph=True)
    gc.collect()
    if IS_GRADIRON:
        assert len(gc.get_objects()) <= before + 10


def test_under_the_users_hooks():
    log = []
    x = leaf([1.0])
    with T.autograd.graph.saved_tensors_hooks(lambda t: (log.append("pack"), t.detach())[1], lambda t: t):
        y = checkpoint(work, x * 1, use_reentrant=False)
    assert log == ["pack"]
    y.backward()
    assert_values(x.grad, plain_grad(work, [1.0]))


# What happens when the function does something else.


def alternating(first, second):
    state = Counted()
    state.function = lambda x: first(x) if state.calls % 2 else second(x)
    return state


LONG, SHORT = (lambda x: x.sin().exp().sin()), (lambda x: x.sin())


def test_fewer_values():
    function = alternating(LONG, SHORT)
    with pytest.raises(
        ck.CheckpointError, match="A different number of tensors was saved during the original forward and recomputation"
    ) as e:
        checkpoint(function, leaf([1.0]), use_reentrant=False).backward()
    assert "saved during forward: 3" in str(e.value) and "saved during recomputation: 1" in str(e.value)
    assert TIP in str(e.value)


def test_more_values():
    function = alternating(SHORT, LONG)
    checkpoint(function, leaf([1.0]), use_reentrant=False).backward()
    function = alternating(SHORT, LONG)
    with pytest.raises(
        ck.CheckpointError, match="trying to save more tensors during recomputation than during the original forward pass."
    ):
        checkpoint(function, leaf([1.0]), use_reentrant=False, early_stop=False).backward()


@pytest.mark.parametrize(
    "first, second",
    [
        (lambda x: x[:2].clone().sin(), lambda x: x[:1].clone().sin()),
        (lambda x: x.sin(), lambda x: x.double().sin()),
    ],
)
def test_other_metadata(first, second):
    function = alternating(first, second)
    with pytest.raises(ck.CheckpointError, match="Recomputed values for the following tensors have different metadata") as e:
        checkpoint(function, leaf([1.0, 2.0, 3.0]), use_reentrant=False).sum().backward()
    assert "tensor at position 0:\nsaved metadata: {'shape': torch.Size(" in str(e.value)
    assert "recomputed metadata: {'shape': torch.Size(" in str(e.value)


def test_no_determinism_check():
    function = alternating(lambda x: x[:2].clone().sin(), lambda x: x[1:].clone().sin())
    x = leaf([1.0, 2.0, 3.0])
    checkpoint(function, x, use_reentrant=False, determinism_check="none").sum().backward()
    assert_values(x.grad, [-0.4161468, -0.9899925, 0.0])


def test_determinism_check_is_known():
    with pytest.raises(ValueError, match=r"determinism_check should be one of \['default', 'none'\], but got bad"):
        checkpoint(work, leaf([1.0]), use_reentrant=False, determinism_check="bad")


@pytest.mark.parametrize("how", ["argument", "context"])
def test_debug(how):
    function = alternating(LONG, SHORT)
    context = ck.set_checkpoint_debug_enabled(True) if how == "context" else contextlib.nullcontext()
    with context:
        y = checkpoint(function, leaf([1.0]), use_reentrant=False, debug=how == "argument")
    with pytest.raises(
        ck.CheckpointError, match="An error happened while unpacking tensors; dumping logs of latest computation"
    ) as e:
        y.backward()
    assert "test_checkpoint.py" in str(e.value)
    assert isinstance(e.value.__cause__, ck.CheckpointError)


def test_debug_takes_no_context_fn():
    with (
        ck.set_checkpoint_debug_enabled(True),
        pytest.raises(ValueError, match="debug=True is incompatible with non-default context_fn"),
    ):
        checkpoint(work, leaf([1.0]), use_reentrant=False, context_fn=lambda: (1, 2))
    with ck.set_checkpoint_debug_enabled(False):
        checkpoint(work, leaf([1.0]), use_reentrant=False, context_fn=ck.noop_context_fn, debug=True).backward()


# context_fn.


class Mark(contextlib.AbstractContextManager):
    def __init__(self, log, name, swallow=False):
        self.log, self.name, self.swallow = log, name, swallow

    def __enter__(self):
        self.log.append("enter " + self.name)

    def __exit__(self, *args):
        self.log.append("exit " + self.name)
        return self.swallow


def test_context_fn():
    log = []
    y = checkpoint(work, leaf([1.0]), use_reentrant=False, context_fn=lambda: (Mark(log, "forward"), Mark(log, "again")))
    assert log == ["enter forward", "exit forward"]
    y.backward()
    assert log[2:] == ["enter again", "exit again"]


def test_context_that_swallows_errors():
    def fail(x):
        raise ValueError("oops")

    with pytest.raises(RuntimeError, match="the forward context provided by context_fn suppressed an exception"):
        checkpoint(fail, leaf([1.0]), use_reentrant=False, context_fn=lambda: (Mark([], "", True), Mark([], "")))


# As a decorator.


def test_decorator():
    @checkpoint(use_reentrant=False)
    def function(x, factor):
        """What it does."""
        calls.append(1)
        return (x * factor).sin()

    calls = []
    assert (function.__name__, function.__doc__) == ("function", "What it does.")
    x = leaf([1.0])
    function(x, factor=2.0).backward()
    assert len(calls) == 2
    assert_values(x.grad, [2 * -0.4161468])


def test_decorated_method():
    class Model:
        factor = 3.0

        @checkpoint(use_reentrant=False, preserve_rng_state=False)
        def run(self, x):
            return (x * self.factor).sin()

    x = leaf([1.0])
    Model().run(x).backward()
    assert_values(x.grad, [3 * -0.9899925])


def test_decorator_takes_no_other_keywords():
    with pytest.raises(ValueError, match="Unexpected keyword arguments: other"):
        checkpoint(other=1)


# checkpoint_sequential.


@VARIANTS
@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_sequential(reentrant, segments):
    counts = [Counted(f) for f in (T.sin, T.exp, T.cos, T.tanh, T.sigmoid)]
    x = leaf([0.5, 1.0])
    ck.checkpoint_sequential(counts, segments, x, use_reentrant=reentrant).sum().backward()
    assert_values(x.grad, plain_grad(lambda x: x.sin().exp().cos().tanh().sigmoid(), [0.5, 1.0]))
    twice = len(counts) // segments * (segments - 1)
    assert [c.calls for c in counts] == [2] * twice + [1] * (5 - twice)


def test_sequential_options():
    x = leaf([1.0])
    with pytest.warns(UserWarning, match="torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter"):
        ck.checkpoint_sequential([T.sin, T.exp], 2, x)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: other"):
        ck.checkpoint_sequential([T.sin], 1, x, use_reentrant=False, other=1)
    ck.checkpoint_sequential([T.sin, T.exp], 2, x, use_reentrant=False, preserve_rng_state=False).backward()


# Small things.


def test_detach_variable():
    x = leaf([1.0]) * 2
    a, b, c = ck.detach_variable((x, 3, tensor([1.0])))
    assert a.is_leaf and a.requires_grad and b == 3 and not c.requires_grad
    with pytest.raises(RuntimeError, match="Only tuple of tensors is supported. Got Unsupported input type: list"):
        ck.detach_variable([x])


def test_check_backward_validity():
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        ck.check_backward_validity([tensor([1.0]), 3])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ck.check_backward_validity([leaf([1.0])])


def test_device_states():
    assert ck.get_device_states(tensor([1.0]), {"a": 3}) == ([], [])
    ck.set_device_states([], [])
    assert isinstance(ck.DefaultDeviceType.get_device_type(), str)


def test_group_recomputes_once():
    def function(x):
        calls.append(1)
        return x.sin(), x.cos().exp()

    calls = []
    x = leaf([1.0, 2.0])
    a, b = checkpoint(function, x, use_reentrant=False, early_stop=False)
    with ck.GraphExecGroup():
        a.sum().backward(retain_graph=True)
        b.sum().backward()
    assert len(calls) == 2
    assert_values(x.grad, plain_grad(lambda x: x.sin() + x.cos().exp(), [1.0, 2.0]))


def test_group_with_overlap():
    y = checkpoint(work, leaf([1.0]), use_reentrant=False)
    with ck.GraphExecGroup():
        y.backward(retain_graph=True)
        with pytest.raises(ck.CheckpointError, match="Performing two backward calls that overlap"):
            y.backward()


def test_groups_do_not_nest():
    with (
        ck.GraphExecGroup(),
        pytest.raises(RuntimeError, match="GraphExecGroup contexts cannot be nested. Already inside group"),
    ):
        ck.GraphExecGroup().__enter__()


# random.fork_rng.


def test_fork_rng():
    T.manual_seed(1)
    with T.random.fork_rng():
        inside = T.rand(2)
    assert T.rand(2).tolist() == inside.tolist()
    with T.random.fork_rng(enabled=False):
        inside = T.rand(2)
    assert T.rand(2).tolist() != inside.tolist()
    with pytest.raises(KeyError), T.random.fork_rng(devices=[]):
        state = T.get_rng_state()
        T.rand(1)
        raise KeyError
    assert T.get_rng_state().tolist() == state.tolist()


def test_gpu_numbers_come_back(device):
    if device == "cpu":
        pytest.skip("needs a GPU")
    x = leaf([1.0, 2.0], device)
    drawn = []

    def function(x):
        drawn.append(T.rand(2, device=device))
        return (x * drawn[-1]).sin()

    checkpoint(function, x, use_reentrant=False).sum().backward()
    assert drawn[0].tolist() == drawn[1].tolist()
