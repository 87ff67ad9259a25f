"""Hooks of modules, of one and of all: when they are called, with what, and what they may change."""

import copy
import gc
import pickle
import weakref

import pytest

from library import T, assert_values

nn = T.nn
M = nn.modules.module


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(T.full((2,), 3.0))

    def forward(self, x, plus=0.0):
        return x * self.weight + plus


def ones(grad=False):
    return T.ones(2, requires_grad=grad)


def double(module, args):
    return (args[0] * 2,)


def test_forward_pre_hooks():
    m = Scale()
    seen = []
    m.register_forward_pre_hook(lambda module, args: seen.append((module is m, args)) or args[0] * 2)
    assert_values(m(ones()), [6.0, 6.0])
    assert seen[0][0] and len(seen[0][1]) == 1
    handle = m.register_forward_pre_hook(lambda module, args, kwargs: (args, {"plus": kwargs["plus"] + 1}), with_kwargs=True)
    assert_values(m(ones(), plus=1.0), [8.0, 8.0])
    handle.remove()
    assert not m._forward_pre_hooks_with_kwargs
    m.register_forward_pre_hook(lambda module, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(
        RuntimeError, match=r"^forward pre-hook must return None or a tuple of \(new_args, new_kwargs\), but got 3"
    ):
        m(ones())


def test_order_and_prepend():
    m, seen = Scale(), []

    def note(name):
        return lambda *args: seen.append(name)

    for name, prepend in (("a", False), ("b", True)):
        m.register_forward_pre_hook(note("pre " + name), prepend=prepend)
        m.register_forward_hook(note("post " + name), prepend=prepend)
        m.register_full_backward_pre_hook(note("back pre " + name), prepend=prepend)
        m.register_full_backward_hook(note("back " + name), prepend=prepend)
    m(ones(True)).sum().backward()
    assert seen == ["pre b", "pre a", "post b", "post a", "back pre b", "back pre a", "back b", "back a"]


def test_forward_hooks():
    m, seen = Scale(), []
    m.register_forward_hook(lambda module, args, out: out + 1)
    m.register_forward_hook(lambda module, args, kwargs, out: seen.append((len(args), kwargs)), with_kwargs=True)
    assert_values(m(ones(), plus=1.0), [5.0, 5.0])
    assert seen == [(1, {"plus": 1.0})]
    with m.register_forward_hook(lambda module, args, out: None):
        assert len(m._forward_hooks) == 3
    assert len(m._forward_hooks) == 2


def test_hooks_that_are_always_called():
    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    m, seen = Fails(), []
    m.register_forward_hook(lambda *args: seen.append("plain"))
    m.register_forward_hook(lambda module, args, out: seen.append(("always", out)), always_call=True)
    m.register_forward_hook(
        lambda module, args, kwargs, out: seen.append(("kwargs", kwargs)), always_call=True, with_kwargs=True
    )
    with pytest.raises(ValueError, match="^no$"):
        m(1)
    assert seen == [("always", None), ("kwargs", {})]
    m.register_forward_hook(lambda *args: 1 / 0, always_call=True)
    with pytest.warns(
        UserWarning, match="^module forward hook with ``always_call=True`` raised an exception that was silenced"
    ):
        with pytest.raises(ValueError, match="^no$"):
            m(1)


def test_an_always_called_hook_is_called_once():
    m, seen = Scale(), []
    m.register_forward_hook(lambda *args: seen.append(1), always_call=True)
    m.register_forward_hook(lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        m(ones())
    assert seen == [1]


def test_full_backward_hooks():
    m, seen = Scale(), []
    m.register_full_backward_hook(lambda module, gi, go: seen.append((gi[0].tolist(), go[0].tolist())))
    x = ones(True)
    (m(x) * 2).sum().backward()
    assert seen == [([6.0, 6.0], [2.0, 2.0])]
    assert_values(x.grad, [6.0, 6.0])
    assert_values(m.weight.grad, [2.0, 2.0])


def test_full_backward_hooks_change_gradients():
    m = Scale()
    m.register_full_backward_pre_hook(lambda module, go: (go[0] * 10,))
    m.register_full_backward_hook(lambda module, gi, go: (gi[0] + 1,))
    x = ones(True)
    m(x).sum().backward()
    assert_values(x.grad, [31.0, 31.0])
    assert_values(m.weight.grad, [10.0, 10.0])
    m = Scale()
    m.register_full_backward_hook(lambda module, gi, go: [gi[0] * 0])
    x = ones(True)
    m(x).sum().backward()
    assert_values(x.grad, [0.0, 0.0])


def test_full_backward_hooks_of_inputs_without_gradients():
    m, seen = Scale(), []
    m.register_full_backward_hook(lambda module, gi, go: seen.append((gi, go[0].tolist())))
    with pytest.warns(UserWarning, match="^Full backward hook is firing when gradients are computed with respect to module"):
        m(ones()).sum().backward()
    assert seen == [((None,), [1.0, 1.0])]
    m.register_full_backward_hook(lambda module, gi, go: (ones(),))
    with pytest.raises(
        RuntimeError, match="^Backward hook for Modules where no input requires gradient should always return None"
    ):
        with pytest.warns(UserWarning):
            m(ones()).sum().backward()


def test_full_backward_hooks_count_gradients():
    m = Scale()
    m.register_full_backward_hook(lambda module, gi, go: (gi[0], gi[0]))
    with pytest.raises(RuntimeError, match="^Backward hook returned an invalid number of grad_input, got 2, but expected 1"):
        m(ones(True)).sum().backward()
    m = Scale()
    m.register_full_backward_pre_hook(lambda module, go: (go[0], go[0]))
    with pytest.raises(
        RuntimeError, match="^Backward pre hook returned an invalid number of grad_output, got 2, but expected 1"
    ):
        m(ones(True)).sum().backward()


def test_full_backward_hooks_with_other_values():
    class Several(nn.Module):
        def forward(self, name, x, y):
            return x * y, name, y * 2

    m, seen = Several(), []
    m.register_full_backward_hook(lambda module, gi, go: seen.append(([g is None for g in gi], [g is None for g in go])))
    x, y = ones(True), ones()
    out = m("n", x, y)
    assert out[1] == "n" and type(out) is tuple and out[2].requires_grad is False
    out[0].sum().backward()
    assert seen[0][0][:2] == [True, False] and seen[0][1] == [False, True, True]
    m = nn.Module()
    m.forward = lambda x: {"a": x}
    m.register_full_backward_hook(lambda *args: None)
    with pytest.warns(UserWarning, match="^For backward hooks to be called, module output should be a Tensor or a tuple"):
        m(ones(True))


def test_nothing_is_hooked_without_recording():
    m, seen = Scale(), []
    m.register_full_backward_hook(lambda *args: seen.append(1))
    with T.no_grad():
        assert m(ones(True)).grad_fn is None
    assert not seen


def test_backward_hooks_of_the_old_kind():
    m, seen = Scale(), []
    m.register_backward_hook(lambda module, gi, go: seen.append((module is m, len(gi), go[0].tolist())))
    m.forward = lambda x: x * m.weight
    with pytest.warns(FutureWarning, match="^Using a non-full backward hook when the forward contains multiple autograd Nodes"):
        m(ones(True)).sum().backward()
    assert seen == [(True, 2, [1.0, 1.0])]
    with pytest.raises(
        RuntimeError, match="^Cannot use both regular backward hooks and full backward hooks on a single Module"
    ):
        m.register_full_backward_hook(lambda *args: None)
    m = Scale()
    m.register_full_backward_hook(lambda *args: None)
    with pytest.raises(
        RuntimeError, match="^Cannot use both regular backward hooks and full backward hooks on a single Module"
    ):
        m.register_backward_hook(lambda *args: None)


def test_hooks_of_all_modules():
    m, seen = nn.Sequential(Scale()), []

    def note(name):
        return lambda module, *args: seen.append((name, type(module).__name__))

    handles = [
        M.register_module_forward_pre_hook(note("pre")),
        M.register_module_forward_hook(note("post")),
        M.register_module_full_backward_pre_hook(note("back pre")),
        M.register_module_full_backward_hook(note("back")),
    ]
    try:
        assert M._has_any_global_hook()
        with pytest.raises(RuntimeError, match="^Cannot use both regular backward hooks and full backward hooks as a global"):
            M.register_module_backward_hook(note("old"))
        m(ones(True)).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    names = ["pre", "pre", "post", "post", "back pre", "back pre", "back", "back"]
    assert [name for name, _ in seen] == names
    assert [kind for _, kind in seen] == ["Sequential", "Scale", "Scale", "Sequential"] + ["Sequential", "Scale"] + [
        "Scale",
        "Sequential",
    ]
    m(ones())
    assert len(seen) == 8 and not M._has_any_global_hook()


def test_global_forward_hooks_have_marks():
    class Fails(nn.Module):
        def forward(self, x, key=None):
            raise ValueError("no")

    seen = []
    handle = M.register_module_forward_hook(lambda module, args, out: seen.append(args), always_call=True)
    other = M.register_module_forward_hook(lambda module, args, kwargs, out: seen.append(kwargs), with_kwargs=True)
    try:
        with pytest.raises(ValueError):
            Fails()(1, key=2)
        Scale()(ones(), plus=1.0)
    finally:
        handle.remove()
        other.remove()
    assert seen[0] == (1,) and seen[2] == {"plus": 1.0}


def test_hooks_of_registration():
    seen = []

    def note(kind, replace=None):
        def hook(module, name, value):
            seen.append((kind, name))
            return replace

        return hook

    other = nn.Parameter(T.zeros(3))
    handles = [
        M.register_module_buffer_registration_hook(note("buffer")),
        M.register_module_module_registration_hook(note("module")),
        M.register_module_parameter_registration_hook(note("parameter", other)),
    ]
    try:
        m = nn.Module()
        m.p = nn.Parameter(T.ones(1))
        m.register_buffer("b", T.ones(1))
        m.b = T.zeros(1)
        m.s = nn.Module()
        m.add_module("t", None)
    finally:
        for handle in handles:
            handle.remove()
    assert seen == [("parameter", "p"), ("buffer", "b"), ("buffer", "b"), ("module", "s"), ("module", "t")]
    assert m.p is other


def test_hooks_are_copied_and_pickled():
    m = Scale()
    m.register_forward_pre_hook(double)
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert_values(other(ones()), [6.0, 6.0])


def test_hooks_do_not_keep_a_module_alive():
    m = Scale()
    m.register_full_backward_hook(lambda *args: None)
    out = m(ones(True))
    gone = weakref.ref(m)
    out.sum().backward()
    del m, out
    gc.collect()
    assert gone() is None


def test_hooks_come_in_their_order_and_may_go_first():
    seen = []
    m = nn.Linear(1, 1)
    for kind in ("forward_pre_hook", "forward_hook", "full_backward_pre_hook", "full_backward_hook"):
        register = getattr(m, f"register_{kind}")
        for name, prepend in (("a", False), ("b", False), ("first", True)):
            register(lambda *_, kind=kind, name=name: seen.append((kind, name)), prepend=prepend)
    m(T.ones(1, 1, requires_grad=True)).sum().backward()
    order = ("forward_pre_hook", "forward_hook", "full_backward_pre_hook", "full_backward_hook")
    assert seen == [(kind, name) for kind in order for name in ("first", "a", "b")]


def test_a_hook_that_removes_itself_during_the_call():
    seen = []
    m = nn.Linear(1, 1)

    def once(*_):
        seen.append("once")
        handle.remove()

    handle = m.register_forward_hook(once)
    m.register_forward_hook(lambda *_: seen.append("always"))
    m(T.ones(1))
    m(T.ones(1))
    assert seen.count("once") == 1 and seen[-1] == "always"


def test_hooks_that_are_always_called_follow_a_failure():
    class Fails(nn.Module):
        def forward(self, x):
            raise ArithmeticError("no")

    seen = []
    m = Fails()
    m.register_forward_hook(lambda *_: seen.append("usual"))
    m.register_forward_hook(lambda *_: seen.append("always"), always_call=True)
    with pytest.raises(ArithmeticError, match="no"):
        m(1)
    assert seen == ["always"]


def test_what_backward_hooks_saw_may_not_be_written_over():
    m = nn.Identity()
    m.register_full_backward_hook(lambda *_: None)
    made = m(T.ones(2, requires_grad=True).clone())
    with pytest.raises(RuntimeError, match="Output 0 of BackwardHookFunction.* is a view and is being modified inplace"):
        made.mul_(2)
