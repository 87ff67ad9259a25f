"""Values that the graph keeps: pack and unpack hooks, where they may not be set, writes over saved tensors, `_saved_…`."""

import gc
import weakref

import pytest

from library import IS_GRADIRON, T, assert_values, leaf, tensor

graph = T.autograd.graph
FREED = "Trying to backward through the graph a second time"


class Log(graph.saved_tensors_hooks):
    """Hooks that keep a detached copy and write down what they see."""

    def __init__(self, tag="", log=None):
        self.log = [] if log is None else log
        super().__init__(
            lambda t: (self.log.append((tag + "pack", t.tolist())), t.detach())[1],
            lambda t: (self.log.append((tag + "unpack", t.tolist())), t)[1],
        )

    def names(self):
        return [name for name, _ in self.log]


def run(function, x, *hooks):
    with graph.saved_tensors_hooks(*hooks):
        y = function(x)
    y.sum().backward()
    return y


# When values are packed.


class Refused(Exception):
    pass


def refuse(_):
    raise Refused


@pytest.mark.parametrize(
    "write, written",
    [
        (lambda x, y: x.mul_(y), False),
        (lambda x, y: x.div_(2), None),
        (lambda x, y: x.pow_(3), False),
        (lambda x, y: x.pow_(y), False),
        (lambda x, y: x.sin_(), False),
        (lambda x, y: x.addcdiv_(y, y), False),
        (lambda x, y: x.hypot_(y), False),
        (lambda x, y: x.cumprod_(0), False),
        (lambda x, y: x[:1].mul_(y[:1]), False),
        (lambda x, y: x.__ipow__(2), False),
        (lambda x, y: x.exp_(), True),
        (lambda x, y: x.sqrt_(), True),
        (lambda x, y: x.relu_(), True),
        (lambda x, y: x.tanh_(), True),
    ],
)
def test_a_refused_input_is_not_written(write, written):
    x, y = leaf([0.5, -2.0]) * 1, leaf([3.0, 4.0])
    with graph.saved_tensors_hooks(refuse, lambda t: t):
        if written is None:  # a factor is no tensor
            write(x, y)
        else:
            with pytest.raises(Refused):
                write(x, y)
    if written is False:
        assert x._version == 0 and x.tolist() == [0.5, -2.0] and x.grad_fn.name() == "MulBackward0"
    else:
        assert x._version == 1


@pytest.mark.parametrize(
    "act, sizes",
    [
        (lambda x, y: x.pow(y), [2, 3]),
        (lambda x, y: x.pow_(y), [2, 3]),
        (lambda x, y: x.hypot(y), [2, 3]),
        (lambda x, y: x.hypot_(y), [2, 3]),
        (lambda x, y: x.copysign(y), [3]),
        (lambda x, y: x.mul(y), [2, 3]),
        (lambda x, y: x.add(y), []),
    ],
)
def test_what_is_packed_of_a_call_that_fails(act, sizes):
    x, y, seen = leaf([1.0, 2.0, 3.0]) * 1, leaf([1.0, 2.0]), []
    with (
        graph.saved_tensors_hooks(lambda t: (seen.append(len(t)), t)[1], lambda t: t),
        pytest.raises(RuntimeError, match="size of tensor|doesn't match"),
    ):
        act(x, y)
    assert seen == sizes


# Which values are packed, and how they look.


@pytest.mark.parametrize(
    "function, saved",
    [
        (lambda x: x * x, [[1.0, 2.0], [1.0, 2.0]]),
        (lambda x: x.square(), [[1.0, 2.0]]),
        (lambda x: x.pow(3), [[1.0, 2.0]]),
        (lambda x: x.sigmoid().sum(), None),
        (lambda x: x + x, []),
        (lambda x: x.clone() - 1, []),
        (lambda x: x.reshape(2, 1).sum(), []),
        (lambda x: x * T.tensor([3.0, 4.0]), [[3.0, 4.0]]),
        (lambda x: T.where(T.tensor([True, False]), x, x), [[True, False]]),
        (lambda x: x.unsqueeze(0) @ T.ones(2, 2), [[[1.0, 1.0], [1.0, 1.0]]]),
        (lambda x: x.abs().max(0)[0], None),
    ],
)
def test_packed_at_save_and_unpacked_at_use(function, saved):
    log, x = Log(), leaf([1.0, 2.0])
    with log:
        y = function(x)
    packed = [value for _, value in log.log]
    assert set(log.names()) <= {"pack"}
    if saved is not None:
        assert packed == saved
    y.sum().backward()
    expected = leaf([1.0, 2.0])
    function(expected).sum().backward()
    assert_values(x.grad, expected.grad)
    assert log.names() == ["pack"] * len(packed) + ["unpack"] * len(packed)


def test_pack_sees_leaves_inputs_and_outputs():
    seen = []

    def pack(t):
        seen.append((t.requires_grad, t.is_leaf, None if t.grad_fn is None else t.grad_fn.name()))
        return t.detach()

    x = leaf([1.0, 2.0])
    middle = x + 1
    constant = tensor([3.0, 4.0])
    with graph.saved_tensors_hooks(pack, lambda t: t):
        x.sin()
        middle.sin()
        x * constant
        x.exp()
    assert seen == [
        (True, True, None),
        (True, False, "AddBackward0"),
        (False, True, None),
        (True, False, "ExpBackward0"),
    ]


def test_pack_is_given_the_very_input():
    x = leaf([1.0, 2.0])
    middle = x * 2
    seen = []
    with graph.saved_tensors_hooks(lambda t: seen.append(t), lambda t: t):
        x.sin()
        middle.cos()
    assert seen[0] is x and seen[1] is middle


def test_pack_runs_without_recording():
    states = []
    with graph.saved_tensors_hooks(lambda t: (states.append(T.is_grad_enabled()), t.detach() * 1)[1], lambda t: t):
        leaf([1.0]).sin()
    assert states == [False]


def test_indices_have_no_history():
    seen = []
    with graph.saved_tensors_hooks(lambda t: (seen.append((t.dtype, t.requires_grad)), t)[1], lambda t: t):
        leaf([1.0, 3.0, 2.0]).max(0)
    assert seen == [(T.int64, False)]


def test_anything_may_be_packed():
    store = {}

    def pack(t):
        store[len(store)] = t.detach().clone()
        return len(store) - 1

    x = leaf([1.0, 2.0])
    run(lambda x: (x.exp() * x).tanh(), x, pack, store.__getitem__)
    plain = leaf([1.0, 2.0])
    (plain.exp() * plain).tanh().sum().backward()
    assert_values(x.grad, plain.grad)


def test_unpacked_values_count():
    x = leaf([1.0, 2.0])
    run(lambda x: x * x, x, lambda t: t.detach(), lambda t: t * 10)
    assert_values(x.grad, [20.0, 40.0])


def test_no_hooks_without_recording():
    log = Log()
    with log, T.no_grad():
        leaf([1.0]).sin()
    with log:
        tensor([1.0]).sin()
    assert log.log == []


def test_unpacked_at_each_use():
    log, x = Log(), leaf([1.0, 2.0])
    with log:
        y = x.sin().sum()
    y.backward(retain_graph=True)
    y.backward()
    assert log.names() == ["pack", "unpack", "unpack"]
    with pytest.raises(RuntimeError, match=FREED):
        y.backward()


def test_hooks_in_force_at_save_time():
    log, x = Log(), leaf([1.0])
    before = x.sin()
    with log:
        within = x.cos()
    after = x.exp()
    (before + within + after).backward()
    assert [value for _, value in log.log] == [[1.0], [1.0]]


def test_double_backward_through_packed_values():
    x = leaf([1.0, 2.0], kind="float64")
    with graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
        y = x.pow(3) + x.exp()
    (g,) = T.autograd.grad(y.sum(), x, create_graph=True)
    (gg,) = T.autograd.grad(g.sum(), x)
    assert_values(gg, (6 * x + x.exp()).detach())


def test_hooks_during_a_recorded_backward():
    log, x = Log(), leaf([1.0])
    y = x.sin()
    with log:
        T.autograd.grad(y, x, create_graph=True)
    assert "pack" in log.names()


# Nesting, order, switching off.


def test_innermost_pair_wins():
    log = []
    x = leaf([1.0])
    with Log("a", log):
        with Log("b", log):
            y = x.sin()
        z = y.sin()
    z.backward()
    assert [name for name, _ in log] == ["bpack", "apack", "aunpack", "bunpack"]


def test_one_manager_entered_twice():
    log = Log()
    with log, log:
        leaf([1.0]).sin()
    leaf([1.0]).sin()
    assert log.names() == ["pack"]


def test_hooks_end_with_an_exception():
    log = Log()
    with pytest.raises(KeyError), log:
        raise KeyError
    leaf([1.0]).sin()
    assert log.log == []


def test_disabled():
    with graph.disable_saved_tensors_hooks("not now"):
        with pytest.raises(RuntimeError, match="^not now"):
            Log().__enter__()
        with graph.disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="^not here"):
            graph.save_on_cpu().__enter__()
        with pytest.raises(RuntimeError, match="^not now"):
            Log().__enter__()
    with Log():
        pass


def test_disabling_under_hooks_is_an_error():
    with Log(), pytest.raises(RuntimeError, match="^too late"), graph.disable_saved_tensors_hooks("too late"):
        raise AssertionError("not reached")
    with Log():
        pass


# Errors.


def fail(*args):
    raise ValueError("oops")


@pytest.mark.parametrize(
    "pack, unpack, error, words",
    [
        (fail, lambda t: t, ValueError, "oops"),
        (lambda t: t.detach(), fail, ValueError, "oops"),
        (lambda: 1, lambda t: t, TypeError, "takes 0 positional arguments but 1 was given"),
        (lambda t: t.detach(), lambda: 1, TypeError, "takes 0 positional arguments but 1 was given"),
        (
            lambda t: t.detach(),
            lambda t: 1,
            TypeError,
            "Output of saved tensor unpack_hook expected to be a Tensor but got result of type int",
        ),
        (lambda t: t.detach(), lambda t: None, TypeError, "expected to be a Tensor but got result of type NoneType"),
        (lambda t: t.mul_(2), lambda t: t, RuntimeError, "A saved tensor pack hook is modifying its input in place."),
    ],
)
def test_hooks_that_fail(pack, unpack, error, words):
    with pytest.raises(error, match=words):
        run(lambda x: (x * 2).sin(), leaf([1.0]), pack, unpack)
    x = leaf([2.0])
    (x * x).backward()
    assert_values(x.grad, [4.0])


@pytest.mark.parametrize("hooks", [(1, lambda t: t), (lambda t: t, None)])
def test_hooks_must_be_callable(hooks):
    with pytest.raises(TypeError):
        graph.saved_tensors_hooks(*hooks).__enter__()


def test_a_failing_pack_leaves_no_half_done_call():
    x, state = leaf([1.0, 2.0]), {"fail": True}
    y = x * 2

    def pack(t):
        if state["fail"]:
            raise ValueError("oops")
        return t.detach()

    with graph.saved_tensors_hooks(pack, lambda t: t):
        with pytest.raises(ValueError, match="oops"):
            y.sin()
        state["fail"] = False
        z = y.sin()
    z.sum().backward()
    assert_values(x.grad, 2 * (2 * x.detach()).cos())


# In place.


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.clone().mul_(x),
        lambda x: x.clone().exp_(),
        lambda x: x.clone().sin_(),
        lambda x: x.clone().sigmoid_() * x,
        lambda x: (x * 1).pow_(3),
        lambda x: x.clone().cumprod_(0),
    ],
)
@pytest.mark.parametrize("pack", [lambda t: t, lambda t: t.detach(), lambda t: t.detach().clone()])
def test_writes_in_place_are_packed_when_done(function, pack):
    x, plain = leaf([0.5, 2.0]), leaf([0.5, 2.0])
    run(function, x, pack, lambda t: t)
    function(plain).sum().backward()
    assert_values(x.grad, plain.grad)


def test_packed_copies_do_not_mind_later_writes():
    x = leaf([1.0, 2.0])
    with graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        y = x * 1
        z = y.sin()
    y.mul_(5)
    z.sum().backward()
    assert_values(x.grad, [0.5403023, -0.4161468])


# Views, leaves that are gone, memory.


def test_a_leaf_that_is_gone():
    x = leaf([1.0, 2.0])
    with graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
        y = x.sin() * x
    hook = []
    x.register_hook(lambda g: hook.append(g.tolist()))
    y.sum().backward()
    assert len(hook) == 1 and x.grad is not None


def test_saved_leaf_leads_to_the_leaf():
    x = leaf([1.0, 2.0])
    with graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        y = x.sin()
    again = y.grad_fn._saved_self
    assert again.is_leaf and again.requires_grad and again is not x
    (again * 3).sum().backward()
    assert_values(x.grad, [3.0, 3.0])


def test_packed_views():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    run(lambda x: x.t()[0].sin() * x[:, 1], x, lambda t: t.detach(), lambda t: t)
    plain = leaf([[1.0, 2.0], [3.0, 4.0]])
    (plain.t()[0].sin() * plain[:, 1]).sum().backward()
    assert_values(x.grad, plain.grad)


def test_backward_frees_what_was_packed():
    class Box:
        def __init__(self, t):
            self.t = t.detach()

    boxes = []

    def pack(t):
        box = Box(t)
        boxes.append(weakref.ref(box))
        return box

    x = leaf([1.0])
    with graph.saved_tensors_hooks(pack, lambda box: box.t):
        y = x.sin().exp()
    assert all(box() is not None for box in boxes)
    y.backward()
    gc.collect()
    assert boxes and all(box() is None for box in boxes)


@pytest.mark.skipif(not IS_GRADIRON, reason="a known leak of PyTorch")
@pytest.mark.parametrize("pack", [lambda t: t, lambda t: (t, 1), lambda t: [t], lambda t: {"t": t}])
def test_an_output_that_packs_itself_is_freed(pack):
    live = T._core.live_nodes()
    for _ in range(20):
        with graph.saved_tensors_hooks(pack, lambda t: t):
            leaf([1.0]).exp().tanh().sigmoid()
    gc.collect()
    assert T._core.live_nodes() <= live + 3


# save_on_cpu.


@pytest.mark.parametrize("pinned", [False, True])
def test_save_on_cpu(pinned, device):
    x = leaf([1.0, 2.0], device)
    with graph.save_on_cpu(pin_memory=pinned):
        y = x.exp() * x
    saved = y.grad_fn._saved_self
    assert saved.device == x.device
    y.sum().backward()
    assert_values(x.grad, [5.436564, 22.167168])


def test_save_on_cpu_takes_a_device_type():
    with graph.save_on_cpu(pin_memory=False, device_type="cuda"):
        y = leaf([2.0]).square()
    y.backward()


# Custom Functions.


class Twice(T.autograd.Function):
    @staticmethod
    def forward(ctx, x, extra):
        y = x * 2
        ctx.save_for_backward(x, y, None, x + extra)
        return y

    @staticmethod
    def backward(ctx, g):
        Twice.seen = [None if t is None else (t.tolist(), t.requires_grad) for t in ctx.saved_tensors]
        return g * 2, None


def test_functions_pack_too():
    log, x = Log(), leaf([1.0, 2.0])
    with log:
        y = Twice.apply(x, 1)
    assert [value for _, value in log.log] == [[1.0, 2.0], [2.0, 4.0], [2.0, 3.0]]
    assert [None if t is None else t.tolist() for t in y.grad_fn.saved_tensors] == [[1.0, 2.0], [2.0, 4.0], None, [2.0, 3.0]]
    y.sum().backward()
    assert Twice.seen == [([1.0, 2.0], True), ([2.0, 4.0], True), None, ([2.0, 3.0], False)]
    assert log.names() == ["pack"] * 3 + ["unpack"] * 6
    with pytest.raises(RuntimeError, match=FREED):
        y.grad_fn.saved_tensors


def test_function_with_hooks_that_fail():
    with pytest.raises(ValueError, match="oops"), graph.saved_tensors_hooks(fail, lambda t: t):
        Twice.apply(leaf([1.0]), 1)
    with graph.saved_tensors_hooks(lambda t: 1, lambda t: t):
        y = Twice.apply(leaf([1.0]), 1)
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor but got result of type int"):
        y.backward()


def test_raw_saved_tensors_of_a_function():
    x = leaf([1.0, 2.0])
    y = Twice.apply(x, 1)
    raw = y.grad_fn._raw_saved_tensors
    assert len(raw) == 4
    raw[0].register_hooks(lambda t: t.detach() * 1, lambda t: t + 100)
    assert y.grad_fn.saved_tensors[0].tolist() == [101.0, 102.0]
    with pytest.raises(RuntimeError, match="value None is forbidden"):
        raw[2].register_hooks(lambda t: t, lambda t: t)


def test_a_backward_leaves_the_hooks_as_it_found_them():
    """What an unpack hook sets stays set until the end of the backward at most, and what it takes off comes back."""
    plain = graph.saved_tensors_hooks(lambda x: x, lambda x: x)
    seen = []
    outer = graph.saved_tensors_hooks(lambda x: seen.append("outer") or x, lambda x: x)

    def entered(x):
        plain.__enter__()
        return x

    with graph.saved_tensors_hooks(lambda x: x, entered):
        y = leaf([1.0, 2.0]).sin().sum()
    y.backward()
    assert leaf([1.0]).exp().grad_fn._raw_saved_result.register_hooks(lambda x: x, lambda x: x) is None

    with outer:

        def left(x):
            outer.__exit__(None, None, None)
            return x

        with graph.saved_tensors_hooks(lambda x: x, left):
            y = leaf([1.0, 2.0]).sin().sum()
        y.backward()
        leaf([1.0]).exp()
    assert seen == ["outer"]


@pytest.mark.parametrize(
    "again", [lambda w: w.detach(), lambda w: w.t().detach(), lambda w: w.data], ids=["detach", "view", "data"]
)
def test_a_leaf_made_of_the_same_memory_is_not_what_was_saved(again):
    """The transpose that was saved is gone, and the new leaf may lie where it was."""
    w = leaf([[1.0, 2.0], [3.0, 4.0]])
    for _ in range(20):
        y = w @ w.transpose(-1, -2)
        other = again(w).requires_grad_()
        (g,) = T.autograd.grad(y.sum(), w)
        assert_values(g, [[8.0, 12.0], [8.0, 12.0]])
        del other


def test_detached_in_place_stays_known_after_requires_grad():
    x = leaf([1.0, 2.0])
    y = x * 2
    z = y * y
    y.detach_().requires_grad_()
    with pytest.raises(RuntimeError, match="detached in-place"):
        z.sum().backward()


def test_saved_values_have_a_class_by_name():
    x = T.ones(2, requires_grad=True)
    assert type((x * x).grad_fn._raw_saved_self) is T.autograd.SavedTensor and T.autograd.torch is T
    with pytest.raises(RuntimeError, match="Trying to create a SavedTensor object from Python is forbidden"):
        T.autograd.SavedTensor()
