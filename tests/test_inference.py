"""Tensors of inference mode: they count no versions, and nothing that is recorded may need them."""

import threading

import pytest

from library import IS_GRADIRON, T, assert_values, leaf

WRITE = "Inplace update to inference tensor outside InferenceMode is not allowed"
SAVE = "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode"


def made(values=(1.0, 2.0)):
    with T.inference_mode():
        return T.tensor(list(values))


def test_what_is_made_inside_is_one():
    x = leaf([1.0, 2.0])
    with T.inference_mode():
        for t in (T.ones(2), x * 2, x.clone(), T.ones(2)[0], T.add(x, 1, out=T.ones(2))):
            assert t.is_inference() and T.is_inference(t) and not t.requires_grad and t.is_leaf
        assert not x.is_inference()
    assert not T.ones(2).is_inference()


def test_views_share_what_their_base_is():
    x, a = leaf([1.0, 2.0]), made()
    assert a[0].is_inference() and a.detach().is_inference() and a.view(2, 1).is_inference()
    assert not a.clone().is_inference() and not (a * 1).is_inference() and not (a + T.ones(2)).is_inference()
    with T.inference_mode():
        assert not x[0].is_inference() and not x.detach().is_inference()


def test_they_have_no_version():
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        _ = made()._version


WRITES = {
    "mul_": lambda a: a.mul_(2),
    "+=": lambda a: a.__iadd__(1),
    "setitem": lambda a: a.__setitem__(0, 5.0),
    "all": lambda a: a.__setitem__(..., 5.0),
    "index": lambda a: a.__setitem__(T.tensor([0]), 5.0),
    "zero_": lambda a: a.zero_(),
    "fill_": lambda a: a.fill_(1),
    "copy_": lambda a: a.copy_(T.ones(2)),
    "normal_": lambda a: a.normal_(),
    "clamp_": lambda a: a.clamp_(0),
    "exp_": lambda a: a.exp_(),
    "unsqueeze_": lambda a: a.unsqueeze_(0),
    "set_": lambda a: a.set_(T.ones(2)),
    "index_fill_": lambda a: a.index_fill_(0, T.tensor([0]), 1.0),
    "out": lambda a: T.add(T.ones(2), 1, out=a),
    "view": lambda a: a[0].mul_(2),
}


@pytest.mark.parametrize("name", WRITES)
def test_they_are_not_written_outside(name):
    a = made()
    with pytest.raises(RuntimeError, match=WRITE):
        WRITES[name](a)
    with T.no_grad(), pytest.raises(RuntimeError, match=WRITE):
        WRITES[name](a)
    if IS_GRADIRON:  # PyTorch has written by the time it refuses.
        assert a.tolist() == [1.0, 2.0]
    with T.inference_mode():
        WRITES[name](a)


def test_they_do_not_start_to_want_gradients_outside():
    a = made()
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode"):
        a.requires_grad_()
    assert not a.requires_grad
    with T.inference_mode():
        assert T.ones(2).requires_grad_().requires_grad


def test_they_cannot_be_saved_for_backward():
    x, a = leaf([1.0, 2.0]), made()
    for use in (lambda: x * a, lambda: x @ a, lambda: (x * 1).mul_(a), lambda: T.where(a > 1, x, x) * a):
        with pytest.raises(RuntimeError, match=SAVE):
            use()


def test_a_function_cannot_save_them():
    class Scale(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, by):
            ctx.save_for_backward(by)
            return x * by

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0], None

    with pytest.raises(RuntimeError, match=SAVE):
        Scale.apply(leaf([1.0, 2.0]), made())
    assert_values(Scale.apply(T.ones(2), made()), [1.0, 2.0])


def test_what_saves_nothing_takes_them():
    x, a = leaf([1.0, 2.0]), made()
    (x + a).sum().backward()
    T.cat([x, a]).sum().backward()
    (x * 1).add_(a).sum().backward()
    (x.exp() * a.clone()).sum().backward()
    x.grad = None
    x.backward(a)
    assert_values(x.grad, [1.0, 2.0])
    assert_values(T.ones(2).mul_(a), [1.0, 2.0])


def test_views_of_others_made_inside():
    x = leaf([1.0, 2.0])
    y = x * 1
    for base in (x, y):
        with T.inference_mode():
            v = base[0]
        assert v.requires_grad and v._is_view() and v._version == 0
        with pytest.raises(
            RuntimeError, match="A view was created in inference mode and is being modified inplace in normal mode"
        ):
            v.mul_(2)


def test_writes_inside_are_counted_for_others():
    x, z = leaf([1.0, 2.0]), T.zeros(2)
    with T.inference_mode():
        x.mul_(2)
        z.add_(x)
    assert x._version == 1 and z._version == 1 and not z.is_inference()
    assert_values(z, [2.0, 4.0])


def test_the_switches_are_two():
    x = leaf([1.0])
    with T.inference_mode():
        assert not T.is_grad_enabled()
        with T.enable_grad():
            assert T.is_grad_enabled() and not (x * 2).requires_grad and (x * 2).is_inference()
        with T.inference_mode(False):
            assert T.is_grad_enabled() and (x * 2).requires_grad and not T.ones(1).is_inference()
        assert T.is_inference_mode_enabled()
    assert (x * 2).requires_grad
    with T.no_grad():
        assert not T.ones(1).is_inference()


def test_a_leaf_made_inside_may_want_gradients():
    with T.inference_mode():
        d = T.ones(2, requires_grad=True)
        assert d.requires_grad and d.is_inference() and not (d * 2).requires_grad
    (d + 1).sum().backward()
    assert_values(d.grad, [1.0, 1.0])


def test_backward_inside():
    x = leaf([1.0, 2.0])
    y, z = (x * x).sum(), (x * x).sum()
    with T.inference_mode():
        y.backward()
        (g,) = T.autograd.grad(z, x)
        assert g.is_inference()
    assert_values(x.grad, [2.0, 4.0])
    assert x.grad.is_inference()


def test_as_decorators():
    @T.inference_mode
    def bare(x):
        return x * 2

    @T.inference_mode()
    def called(x):
        return x * 2

    @T.inference_mode(False)
    def normal(x):
        return x * 2

    x = leaf([1.0])
    assert bare(x).is_inference() and called(x).is_inference()
    with T.inference_mode():
        assert not normal(x).is_inference() and normal(x).requires_grad


def test_the_mode_belongs_to_the_thread_and_ends_with_an_exception():
    seen = []
    with pytest.raises(ValueError), T.inference_mode():
        thread = threading.Thread(target=lambda: seen.append((T.is_inference_mode_enabled(), T.ones(1).is_inference())))
        thread.start()
        thread.join()
        raise ValueError
    assert seen == [(False, False)] and not T.is_inference_mode_enabled() and not T.ones(1).is_inference()
