"""A write through a view is one node of its base: which gradients it takes and gives, and which hooks it passes by."""

import pytest

from library import T


def leaf(*values):
    return T.tensor(values or (1.0, 2.0, 3.0), dtype=T.float64, requires_grad=True)


def inputs_of(node):
    return [None if n is None else type(n).__name__ for n, _ in node.next_functions]


def seen(node):
    """What a hook of this node is called with: how many gradients, and which are there."""
    calls = []
    node.register_hook(lambda gi, go: calls.append(([g is not None for g in gi], [g.tolist() for g in go])))
    return calls


WRITES = {
    "one operand": (lambda v, w: v.exp_(), ["MulBackward0"], [True]),
    "two operands": (lambda v, w: v.mul_(w), ["MulBackward0", "AccumulateGrad"], [True, True]),
    "a number": (lambda v, w: v.mul_(3), ["MulBackward0", None], [True, False]),
    "a copy": (lambda v, w: v.copy_(w), ["MulBackward0", "AccumulateGrad"], [True, True]),
    "a fill": (lambda v, w: v.fill_(2), ["MulBackward0"], [True]),
    "a fill with a tensor": (lambda v, w: v.fill_(w[0]), ["MulBackward0", "SelectBackward0"], [True, True]),
    "places": (lambda v, w: v.index_fill_(0, T.tensor([0]), 2), ["MulBackward0"], [True]),
    "a sum over places": (lambda v, w: v.cumsum_(0), ["MulBackward0"], [True]),
    "three operands": (
        lambda v, w: v.addcmul_(w, w),
        ["MulBackward0", "AccumulateGrad", "AccumulateGrad"],
        [True, True, True],
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_the_node_has_the_edges_of_what_wrote(name):
    write, names, given = WRITES[name]
    x, w = leaf(), leaf(4.0, 5.0)
    base = x * 1
    view = base[1:]
    write(view, w)
    assert base.grad_fn.name() == "torch::autograd::CopySlices" and type(base.grad_fn).__name__ == "CopySlices"
    assert inputs_of(base.grad_fn) == names
    calls = seen(base.grad_fn)
    base.sum().backward()
    assert calls == [(given, [[1.0, 1.0, 1.0]])]


@pytest.mark.parametrize("name", WRITES)
def test_the_gradients_are_those_of_the_same_without_a_view(name):
    write = WRITES[name][0]
    factors = T.tensor([2.0, 3.0, 5.0], dtype=T.float64)
    x, w = leaf(), leaf(4.0, 5.0)
    base = x * 1
    write(base[1:], w)
    (base * factors).sum().backward()
    a, b = leaf(), leaf(4.0, 5.0)
    part = a[1:] * 1
    write(part, b)
    (T.cat([a[:1], part]) * factors).sum().backward()
    assert x.grad.tolist() == pytest.approx(a.grad.tolist())
    assert (w.grad is None) == (b.grad is None)
    if b.grad is not None:
        assert w.grad.tolist() == pytest.approx(b.grad.tolist())


def test_second_derivatives():
    x, w = leaf(), leaf(4.0, 5.0)
    base = x * 1
    base[1:].mul_(w).pow_(2)
    gx, gw = T.autograd.grad((base * base).sum(), (x, w), create_graph=True)
    assert gx.tolist() == [2.0, 4 * 8 * 256, 4 * 27 * 625] and gw.tolist() == [4 * 16 * 64, 4 * 81 * 125]
    (hx,) = T.autograd.grad(gx.sum(), x, retain_graph=True)
    assert hx.tolist() == [2.0, 12 * 4 * 256, 12 * 9 * 625]
    (hw,) = T.autograd.grad(gx.sum(), w)
    assert hw.tolist() == [16 * 8 * 64, 16 * 27 * 125]


def test_hooks_of_the_view_stay_with_what_it_was():
    x = leaf()
    base = x * 1
    view = base[1:]
    called = []
    view.register_hook(lambda g: called.append("view") or g * 100)
    view.grad_fn.register_hook(lambda gi, go: called.append("node"))
    view.grad_fn.register_prehook(lambda go: (called.append("before"), tuple(g * 100 for g in go))[1])
    view.mul_(2)
    (base.sum() + view.sum()).backward()
    assert x.grad.tolist() == [1.0, 4.0, 4.0] and called == []


def test_hooks_of_the_base_stay_with_what_it_was():
    x = leaf()
    base = x * 1
    called = []
    base.register_hook(lambda g: called.append(g.tolist()))
    base[1:].mul_(2)
    base.sum().backward()
    assert called == [[1.0, 2.0, 2.0]]


def test_the_old_history_of_a_view_is_not_passed():
    x = leaf()
    base = x * 1
    view = base[1:]
    edge = T.autograd.graph.get_gradient_edge(view)
    view.mul_(2)
    assert T.autograd.grad(base.sum(), edge, allow_unused=True, retain_graph=True) == (None,)
    assert T.autograd.grad(base.sum(), x)[0].tolist() == [1.0, 2.0, 2.0]


def test_what_is_read_before_the_write_keeps_the_old_history():
    x = leaf()
    base = x * 1
    view = base[1:]
    before = view * 10
    view.mul_(2)
    (base.sum() + before.sum()).backward()
    assert x.grad.tolist() == [1.0, 12.0, 12.0]


def test_only_what_is_wanted_is_computed():
    x, w = leaf(), leaf(4.0, 5.0)
    base = x * 1
    base[1:].mul_(w)
    calls = seen(base.grad_fn)
    (g,) = T.autograd.grad(base.sum(), w, retain_graph=True)
    assert g.tolist() == [2.0, 3.0] and x.grad is None
    (g,) = T.autograd.grad(base.sum(), x)
    assert g.tolist() == [1.0, 4.0, 5.0] and w.grad is None
    assert len(calls) == 2


def test_the_write_is_freed_with_the_graph():
    x, w = leaf(), leaf(4.0, 5.0)
    base = x * 1
    base[1:].mul_(w)
    base.sum().backward(retain_graph=True)
    total = base.sum()
    total.backward()
    assert x.grad.tolist() == [2.0, 8.0, 10.0]
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        base.backward(T.ones(3, dtype=T.float64))


def test_a_write_without_saved_values_is_freed_too():
    base = leaf() * 1
    base[1:].fill_(2)
    base.sum().backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        base.sum().backward()


def test_a_base_without_history():
    w = leaf(4.0, 5.0)
    base = T.zeros(3, dtype=T.float64)
    view = base[1:]
    view.copy_(w)
    assert inputs_of(base.grad_fn) == [None, "AccumulateGrad"]
    view.mul_(w)
    (base * base).sum().backward()
    assert w.grad.tolist() == [4 * 64.0, 4 * 125.0]


def test_operands_that_are_the_view_itself():
    x = leaf()
    base = x * 1
    view = base[1:]
    view.mul_(view.detach().clone())
    view.add_(view.clone())
    base.sum().backward()
    assert x.grad.tolist() == [1.0, 4.0, 6.0]


def test_set_of_a_view_that_is_recorded():
    x = leaf()
    base = x * 2
    view = base[:2]
    view.set_(T.zeros(2, dtype=T.float64))
    assert type(base.grad_fn).__name__ == "CopySlices" and type(view.grad_fn).__name__ == "AsStridedBackward0"
    with pytest.raises(RuntimeError):
        base.sum().backward()


def test_a_function_that_writes_a_view():
    class Thrice(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.mark_dirty(x)
            ctx.save_for_backward(w)
            return x.mul_(3 * w)

        @staticmethod
        def backward(ctx, g):
            (w,) = ctx.saved_tensors
            return 3 * w * g, None

    x, w = leaf(), leaf(4.0, 5.0)
    base = x * 1
    Thrice.apply(base[1:], w)
    assert inputs_of(base.grad_fn) == ["MulBackward0", "AccumulateGrad"]
    base.sum().backward()
    assert x.grad.tolist() == [1.0, 12.0, 15.0] and w.grad is None


def test_kept_gradients_of_tensors_that_show_themselves_otherwise_are_of_the_old_shape():
    x = T.ones(1, 3, dtype=T.float64, requires_grad=True)
    a = x * 1
    a.retain_grad()
    a.transpose_(0, 1)
    (a * T.tensor([[1.0], [2.0], [3.0]], dtype=T.float64)).sum().backward()
    assert a.grad.tolist() == [[1.0, 2.0, 3.0]]


def test_a_hook_of_a_leaf_that_nobody_names_any_more():
    x = leaf()
    grads = []
    x.register_post_accumulate_grad_hook(lambda t: grads.append((t.grad.tolist(), t.tolist(), t.requires_grad, t.is_leaf)))
    y = x * 2
    del x
    y.sum().backward()
    assert grads == [([2.0, 2.0, 2.0], [1.0, 2.0, 3.0], True, True)]


def test_kept_gradients_of_what_was_detached_in_place():
    x = leaf()
    y = x * 1
    y.retain_grad()
    z = y + 1
    z.sum().backward(retain_graph=True)
    y.detach_()
    z.sum().backward()
    assert y.is_leaf and y.grad.tolist() == [2.0, 2.0, 2.0]


def test_a_leaf_that_was_written_meanwhile_takes_no_gradient():
    x = leaf()
    view = x.view(3)
    x.requires_grad_(False)
    x.copy_(view)
    with pytest.raises(RuntimeError, match="leaf variable has been moved into the graph interior"):
        view.mul_(-1).sum().backward()


# --- views that cannot follow a write ---


def stale():
    base = leaf() * 1
    part = base.unbind(0)[1]
    base.mul_(2)
    return part


STALE = "its base or another view of its base has been modified inplace"
USES = {
    "retain_grad": lambda t: t.retain_grad(),
    "register_hook": lambda t: t.register_hook(print),
    "post_accumulate": lambda t: t.register_post_accumulate_grad_hook(print),
    "argsort": lambda t: t.argsort(0),
    "is_leaf": lambda t: t.is_leaf,
    "grad_fn": lambda t: t.grad_fn,
}


@pytest.mark.parametrize("name", USES)
def test_a_view_that_cannot_follow_a_write_is_refused(name):
    with pytest.raises(RuntimeError, match=STALE):
        USES[name](stale())


def test_a_part_may_be_written_into_its_base():
    base = leaf(1.0, 2.0) * 1
    part = base.view(2, 1).split(1)[0]
    base.view(2, 1)[-1] = part
    base.sum().backward()
    assert base.tolist() == [1.0, 1.0]


def test_a_write_that_gets_no_gradient_may_run_again():
    class First(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.set_materialize_grads(False)
            return x.clone(), y.clone()

        @staticmethod
        def backward(ctx, g, h):
            return g, h

    x = T.ones(1, 3, requires_grad=True)
    y = x.round()
    y[:, 1:] = 0.5
    y.sum().backward()
    First.apply(x + y, x)[1].sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        First.apply(x + y, x)[0].sum().backward()


def test_a_function_that_writes_passes_by_what_the_view_was_made_of():
    class Twice(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    called = []
    x = leaf(1.0, 2.0, 3.0, 4.0)
    view = (x * 3).view(4)
    part = view.view(2, 2)
    view.register_hook(lambda g: called.append("view"))
    part.grad_fn.register_prehook(lambda g: called.append("part"))
    Twice.apply(part)
    view.sum().backward()
    assert x.grad.tolist() == [6.0] * 4 and called == []


def complex_rows(values):
    return T.view_as_complex(values.view(-1, 2))


LYING_AS_THEY_LIKE = {
    "transposed": (lambda s: s[:12].view(3, 4).t(), lambda b: b[1:]),
    "with gaps": (lambda s: s[:12].view(3, 4)[:, :2], lambda b: b[1:]),
    "with gaps, transposed": (lambda s: s[:12].view(3, 4)[:, :2].t(), lambda b: b[:, 1:]),
    "every other": (lambda s: s[:12:2], lambda b: b[1:3]),
    "complex numbers of reals with gaps": (lambda s: s[:12].view(3, 4)[:, :2], lambda b: T.view_as_complex(b[1:])),
    "complex numbers of reals": (lambda s: s[:12], lambda b: complex_rows(b[2:])[1:]),
    "reals of complex numbers": (lambda s: complex_rows(s[:12]), lambda b: T.view_as_real(b)[1:, 1]),
}


@pytest.mark.parametrize("start", [0, 2])
@pytest.mark.parametrize("how", LYING_AS_THEY_LIKE)
def test_a_write_into_a_base_that_lies_in_any_way(how, start):
    if T.__name__ == "torch" and start and "complex" in how:
        pytest.skip("PyTorch looks for the part as far from the start of the gradient as it is from that of the storage")
    make, part = LYING_AS_THEY_LIKE[how]
    base = make(T.arange(1.0, 17.0, dtype=T.float64)[start:]).detach()
    factor = leaf(2.0)
    squares = lambda t: ((T.view_as_real(t) if t.is_complex() else t) ** 2).sum()
    of_part = squares(part(base)).item()
    strides = base.stride()
    part(base).mul_(factor)
    loss = squares(base)
    (above,) = T.autograd.grad(loss, base, retain_graph=True)
    assert above.stride() == strides or "gaps" in how or "every" in how
    (g,) = T.autograd.grad(loss, factor, create_graph=True)
    assert g.item() == 2 * 2 * of_part
    assert T.autograd.grad(g, factor)[0].item() == 2 * of_part


def test_a_part_beyond_its_base_has_no_gradient():
    base = T.arange(16.0)[4:8].detach()
    factor = leaf(2.0)
    base.as_strided((2,), (1,), 0).mul_(factor)
    with pytest.raises(RuntimeError, match="^Tensor: invalid storage offset -4"):
        base.sum().backward()
