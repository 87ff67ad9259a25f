"""Tensors of inference mode: they count no versions, and nothing that is recorded may need them."""

import threading

import pytest

from library import T, assert_values, leaf

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
    a, b = made(), made()
    with pytest.raises(RuntimeError, match=WRITE):
        WRITES[name](a)
    with T.inference_mode():
        WRITES[name](b)
    # The write has happened by the time it is refused: it is the count of it that fails.
    if name != "normal_":
        assert a.tolist() == b.tolist() and a.shape == b.shape
    with T.no_grad(), pytest.raises(RuntimeError, match=WRITE):
        WRITES[name](made())


def test_what_else_is_wrong_with_a_write_is_told_first():
    a = made()
    for wrong in (lambda: a.add_(T.ones(3)), lambda: a.index_fill_(3, T.tensor([0]), 1.0), lambda: a.tril_()):
        with pytest.raises((RuntimeError, IndexError)) as told:
            wrong()
        assert WRITE not in str(told.value)
    assert a.tolist() == [1.0, 2.0]


def test_a_write_of_recorded_values_is_refused_as_such():
    x, a = leaf([3.0, 4.0]), made()
    for write in (lambda: a.mul_(x), lambda: a.copy_(x), lambda: a.pow_(x), lambda: a.__setitem__(0, x[1])):
        with pytest.raises(RuntimeError, match=WRITE):
            write()
    assert not a.requires_grad and a.is_leaf


def test_what_is_detached_of_them_counts_its_writes():
    a = made()
    for detached in (a.detach(), a.data):
        assert detached.is_inference() and detached._version == 0
        detached.add_(1)
        assert detached._version == 1 and not detached._is_view()
        with pytest.raises(RuntimeError, match=WRITE):
            detached[:1].add_(1)
        with pytest.raises(RuntimeError, match=SAVE):
            leaf([1.0, 1.0]) * detached
    assert a.tolist() == [5.0, 4.0]
    with T.inference_mode(), pytest.raises(RuntimeError, match="do not track version counter"):
        _ = a.detach()._version


def test_detach_in_place_does_nothing_inside():
    x = leaf([1.0])
    y, z = x * 2, x.view(1)
    with T.inference_mode():
        assert x.detach_() is x and y.detach_() is y and z.detach_() is z
    assert x.requires_grad and y.grad_fn is not None and z.requires_grad


def test_a_gradient_of_inference_mode_is_added_to_but_not_counted():
    x = leaf([1.0, 2.0])
    x.grad = made()
    with pytest.raises(RuntimeError, match=WRITE):
        (x * 3).sum().backward()
    assert x.grad.tolist() == [4.0, 5.0]


def test_transforms_take_them():
    a = made()
    f = lambda x: (x * x * x).sum()  # noqa: E731
    assert_values(T.func.grad(f)(a), [3.0, 12.0])
    assert_values(T.func.hessian(f)(a), [[6.0, 0.0], [0.0, 12.0]])
    assert_values(T.func.jacrev(lambda x: x * a)(a), [[1.0, 0.0], [0.0, 2.0]])
    assert_values(T.func.grad(lambda x: (x * a).sum())(T.ones(2)), [1.0, 2.0])
    assert_values(T.func.jvp(f, (a,), (a,))[1], 27.0)
    value, pull = T.func.vjp(lambda x: x * x, a)
    assert not value.is_inference()
    assert_values(pull(a)[0], [2.0, 8.0])
    assert not T.func.grad(lambda x: (setattr(f, "seen", x.is_inference()), x.sum())[1])(a).is_inference() and not f.seen


def test_a_checkpoint_does_not_keep_them():
    checkpoint = T.utils.checkpoint.checkpoint
    x, a = leaf([1.0, 2.0]), made()
    for call in (
        lambda: checkpoint(lambda x: x * 1, a, use_reentrant=False),
        lambda: checkpoint(T.mul, x, a, use_reentrant=True),
    ):
        with pytest.raises(RuntimeError, match=SAVE):
            call()
    with T.no_grad():
        assert_values(checkpoint(lambda x: x * x, a, use_reentrant=False), [1.0, 4.0])


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


SQUARES = {
    "grad": lambda x: T.func.grad(lambda x: (x**2).sum())(x),
    "vjp": lambda x: T.func.vjp(lambda x: (x**2).sum(), x)[1](T.tensor(1.0))[0],
    "jvp": lambda x: T.func.jvp(lambda x: x**2, (x,), (T.ones(2),))[1],
    "jacrev": lambda x: T.func.jacrev(lambda x: x**2)(x).diagonal(),
    "jacfwd": lambda x: T.func.jacfwd(lambda x: x**2)(x).diagonal(),
    "vmap of grad": lambda x: T.func.vmap(T.func.grad(lambda x: x**2))(x),
    "grad of grad": lambda x: T.func.grad(lambda x: T.func.grad(lambda x: (x**3).sum() / 3)(x).sum())(x),
}


@pytest.mark.parametrize("how", SQUARES)
@pytest.mark.parametrize("inside", [True, False])
def test_transforms_differentiate_in_inference_mode(how, inside):
    x = made() if inside else T.tensor([1.0, 2.0])
    with T.inference_mode():
        found = SQUARES[how](x)
        assert T.is_inference_mode_enabled()
    assert found.tolist() == [2.0, 4.0] and not found.is_inference()


def test_what_a_transforms_function_does_in_inference_mode_is_a_constant():
    def f(x):
        with T.inference_mode():
            c = x**2
        return (x - c).sum()

    assert T.func.grad(f)(T.tensor([1.0, 2.0])).tolist() == [1.0, 1.0]
    with T.inference_mode():
        with pytest.raises(ZeroDivisionError):
            T.func.grad(lambda x: 1 // 0)(T.ones(2))
        assert T.is_inference_mode_enabled()


def test_the_history_of_a_view_is_renewed_in_inference_mode_too():
    leaf = T.tensor([1.0, 2.0, 3.0], requires_grad=True)
    base = leaf * 2
    view = base[1:]
    base.mul_(2)
    with T.inference_mode():
        assert not view.is_leaf and view.requires_grad
        assert not (view * 2).requires_grad
    assert view.grad_fn is not None and not view.is_leaf
    assert T.autograd.grad(view.sum(), leaf)[0].tolist() == [0.0, 4.0, 4.0]


def test_the_mode_tells_what_it_switches_to():
    assert T.inference_mode().mode is True and T.inference_mode(False).mode is False


def test_transforms_of_inference_tensors_are_recorded_outside_as_without_them():
    x, c = T.tensor([1.0, 2.0], requires_grad=True), made()
    product = {
        "an input, of inference mode": lambda: T.func.grad(lambda t: (t * x).sum())(c),
        "captured": lambda: T.func.grad(lambda t: (t * c).sum())(x),
        "moved": lambda: T.func.jvp(lambda t: t * x, (c,), (c,)),
        "nested": lambda: T.func.grad(lambda t: T.func.grad(lambda t: (t * x).sum())(t).sum())(c),
    }
    for call in product.values():
        with pytest.raises(RuntimeError, match=SAVE):
            call()
        with T.no_grad():
            call()
    plain = x.detach()
    assert T.func.grad(lambda t: (t * plain).sum())(c).tolist() == [1.0, 2.0]
    assert T.func.grad(lambda t: (t * c).sum())(plain).tolist() == c.tolist()
    assert T.func.grad(lambda t: (t.sin() * t).sum())(c).shape == (2,)


def test_inside_of_a_transform_no_input_is_of_inference_mode():
    c, seen = made(), []

    def f(t):
        seen.append((t.is_inference(), t.detach().is_inference(), (t * 2).is_inference()))
        return t.sum()

    T.func.grad(f)(c), T.func.jvp(f, (c,), (c,)), T.func.vjp(f, c)
    assert seen == [(False, False, False)] * 3 and c.is_inference()


def test_a_view_of_an_inference_tensor_is_not_recorded():
    with T.inference_mode():
        c = T.ones(2).requires_grad_()
    assert not c.view(1, 2).requires_grad and c.view(1, 2).is_leaf
