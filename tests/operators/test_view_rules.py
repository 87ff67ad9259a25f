"""What may be done to views, by how they were made, and whose history follows a write."""

import pytest

from library import T, assert_values, leaf

NO_GRAD = "A view was created in no_grad mode and {} modified inplace with grad mode enabled"
MULTI = "Output {} of {} is a view and {} modified inplace. This view is the output of a function that returns multiple views."
BEING, BEHIND = "is being", "its base or another view of its base has been"


def plain(values=(1.0, 2.0, 3.0, 4.0)):
    """A tensor that wants gradients and is no leaf."""
    return leaf(list(values)) * 1


PARTS = {
    "Split": lambda y: y.split(2),
    "SplitWithSizes": lambda y: y.split([1, 3]),
    "Unbind": lambda y: y.unbind(),
}


@pytest.mark.parametrize("name", PARTS)
def test_one_of_several_views_may_not_be_written(name):
    part = PARTS[name](plain())[1]
    with pytest.raises(RuntimeError, match=MULTI.format(1, name, BEING)):
        part.mul_(2)


@pytest.mark.parametrize("name", PARTS)
def test_nor_used_after_its_base_was(name):
    y = plain()
    part = PARTS[name](y)[1]
    y.mul_(2)
    message = MULTI.format(1, name, BEHIND)
    for use in (lambda: part + 1, lambda: part.grad_fn, lambda: part.sum().backward(), lambda: part.register_hook(print)):
        with pytest.raises(RuntimeError, match=message):
            use()


def test_nor_after_a_sister_was_written_under_no_grad():
    a, b = plain().split(2)
    with T.no_grad():
        a.mul_(2)
    with pytest.raises(RuntimeError, match=MULTI.format(1, "Split", BEHIND)):
        _ = b * 2


def test_a_view_of_one_of_several_views_tells_its_own_maker():
    part = plain().split(2)[0].view(1, 2)
    with pytest.raises(RuntimeError, match=MULTI.format(0, "View", BEING)):
        part.mul_(2)


def test_several_views_without_gradients_are_free():
    y = T.ones(4)
    a, b = y.split(2)
    a.mul_(3)
    assert y.tolist() == [3.0, 3.0, 1.0, 1.0] and b.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("cut", ["unsafe_chunk", "unsafe_split"])
def test_unsafe_parts_may_be_written(cut):
    x = leaf([1.0, 2.0, 3.0, 4.0])
    y = x * 1
    a, b = getattr(y, cut)(2)
    assert not a._is_view()
    a.mul_(2)
    (a.sum() + b.sum()).backward()
    assert_values(x.grad, [2.0, 2.0, 1.0, 1.0])


def test_a_view_made_under_no_grad_wants_gradients_as_its_base_does():
    x = leaf([1.0, 2.0])
    with T.no_grad():
        v = x[0]
    assert v.requires_grad and v.is_leaf and v.grad_fn is None and v._base is x
    (v * 3).backward()
    assert v.grad is None and x.grad is None


def test_a_view_made_under_no_grad_may_not_be_written_outside():
    for base in (leaf([1.0, 2.0]), plain()):
        with T.no_grad():
            v = base[0]
        with pytest.raises(RuntimeError, match=NO_GRAD.format(BEING)):
            v.mul_(2)
        with T.no_grad():
            v.mul_(2)


def test_a_view_made_under_no_grad_loses_its_history_to_a_write():
    y = plain()
    with T.no_grad():
        v = y[0]
    y.mul_(2)
    with pytest.raises(RuntimeError, match=NO_GRAD.format(BEHIND)):
        _ = v.grad_fn
    free = T.ones(2)
    with T.no_grad():
        v = free[0]
    with pytest.raises(RuntimeError, match=NO_GRAD.format(BEING)):
        v.mul_(leaf(3.0))
    free.mul_(leaf(3.0))
    with pytest.raises(RuntimeError, match=NO_GRAD.format(BEHIND)):
        _ = v * 2


def test_a_view_of_a_view_made_under_no_grad():
    y = plain()
    with T.no_grad():
        v = y[:2]
    with pytest.raises(RuntimeError, match="Output 0 of View is a view of a view which was created in no_grad mode"):
        v.view(2, 1).mul_(2)


def test_views_of_leaves():
    x = leaf([1.0, 2.0])
    for view in (lambda: x[0], lambda: x.view(2, 1), lambda: x[None]):
        with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
            view().mul_(2)
    # What covers the whole is the leaf itself.
    for index in (slice(None), ..., slice(0, 2)):
        with pytest.raises(RuntimeError, match="^a leaf Variable that requires grad is being used in an in-place"):
            x[index] = 1.0
    with pytest.raises(RuntimeError, match="a view of a leaf"):
        x[0] = 1.0


def test_a_base_that_comes_to_want_gradients():
    b = T.ones(3)
    v = b[0]
    b.requires_grad_()
    assert v.requires_grad and v.is_leaf
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        v.mul_(2)
    assert b.tolist() == [1.0, 1.0, 1.0]


def test_a_view_that_comes_to_want_gradients():
    b = T.ones(3)
    v = b[0].requires_grad_()
    assert v.is_leaf and not b.requires_grad
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        v.mul_(2)


def test_detaching_a_base_in_place_leaves_its_views_alone():
    x = leaf([1.0, 2.0])
    y = x * 3
    v = y[0]
    y.detach_()
    assert y.is_leaf and not y.requires_grad and v.grad_fn.name() == "SelectBackward0"
    v.backward()
    assert_values(x.grad, [3.0, 0.0])
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        v.mul_(2)


@pytest.mark.parametrize("base", [lambda: leaf([1.0, 2.0]), plain, lambda: T.ones(2)])
def test_views_cannot_be_detached_in_place(base):
    with pytest.raises(RuntimeError, match="Can't detach views in-place. Use detach\\(\\) instead"):
        base()[0].detach_()


def names(tensor):
    return [None if node is None else node.name() for node, _ in tensor.grad_fn.next_functions]


def test_a_write_through_a_view_is_one_node_on_the_base():
    w = leaf(2.0)
    y = plain()
    accumulate = "torch::autograd::AccumulateGrad"
    y[0].mul_(w)
    assert y.grad_fn.name() == "torch::autograd::CopySlices" and type(y.grad_fn).__name__ == "CopySlices"
    assert names(y) == ["MulBackward0", accumulate]
    y[1] = w
    assert names(y) == ["torch::autograd::CopySlices", accumulate]
    y[1].fill_(3)
    assert names(y) == ["torch::autograd::CopySlices"]
    y[1].exp_()
    assert names(y) == ["torch::autograd::CopySlices"]
    y[1].mul_(3)
    assert names(y) == ["torch::autograd::CopySlices", None]
    fresh = T.ones(2)
    fresh[0] = w
    assert names(fresh) == [None, accumulate]


def test_a_write_to_the_whole_is_no_write_through_a_view():
    x = leaf([1.0, 2.0])
    y = x * 1
    y[...] = x
    assert y.grad_fn.name() == "torch::autograd::CopyBackwards"
    assert names(y) == ["MulBackward0", "torch::autograd::AccumulateGrad"]
    y[:] = 3.0
    assert y.grad_fn.name() == "FillBackward2"
    y.fill_(leaf(2.0))
    assert y.grad_fn.name() == "FillBackward3" and y.tolist() == [2.0, 2.0]
    y[None] = x
    assert y.grad_fn.name() == "torch::autograd::CopySlices"


def test_the_gradient_of_a_filled_value(device):
    x, w = leaf([1.0, 2.0, 3.0], device), leaf(5.0, device)
    y = x * 2
    y.fill_(w)
    y[0] = w * w
    (y * T.tensor([1.0, 10.0, 100.0], device=device)).sum().backward()
    assert_values(x.grad, [0.0, 0.0, 0.0])
    assert_values(w.grad, 110.0 + 2 * 5.0)


def test_copying_converts_and_stretches_the_gradient(device):
    x = leaf([[1.0], [2.0]], device)
    y = T.zeros(3, 2, 2, dtype=T.float64, device=device)
    y.copy_(x)
    assert y.grad_fn.name() == "torch::autograd::CopyBackwards" and y.dtype == T.float64
    y.sum().backward()
    assert x.grad.dtype == T.float32
    assert_values(x.grad, [[6.0], [6.0]])


def test_copying_twice_differentiates():
    x = leaf([1.0, 2.0])
    y = T.zeros(2)
    y.copy_(x * x)
    (g,) = T.autograd.grad((y * y).sum(), x, create_graph=True)
    g.sum().backward()
    assert_values(x.grad, [12.0, 48.0])


def test_a_freed_write_through_a_view_says_so():
    y = plain()
    y[0].mul_(3)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.sum().backward()


RELAYOUTS = {
    "t": ["t_()"],
    "twice": ["t_()", "transpose_(0, 1)"],
    "stretch": ["unsqueeze_(0)", "squeeze_()", "t_()"],
    "strided": ["as_strided_((2, 2), (1, 2))"],
    "strided after": ["t_()", "as_strided_((2, 2), (1, 2))"],
    "swaps": ["swapaxes_(0, 1)", "swapdims_(0, 1)", "t_()", "unsqueeze_(1)"],
}


@pytest.mark.parametrize("name", RELAYOUTS)
def test_tensors_that_change_their_layout_in_place(name):
    def weighted(y):
        return (y * T.arange(1.0, y.numel() + 1).reshape(y.shape)).sum()

    x, z = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    inside, outside = x * 1, z * 1
    for call in RELAYOUTS[name]:
        assert eval(f"y.{call}", {"y": inside}) is inside
        outside = eval(f"y.{call.replace('_(', '(', 1)}", {"y": outside})
    assert inside.stride() == outside.stride() and inside._version == len(RELAYOUTS[name])
    assert_values(inside, outside)
    weighted(inside).backward()
    weighted(outside).backward()
    assert_values(x.grad, z.grad)


def test_views_follow_a_base_that_does_not_lie_in_order():
    x = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    y = x.t() * 1
    v = y[0]
    y.mul_(2)
    (v * T.tensor([1.0, 10.0])).sum().backward()
    assert_values(x.grad, [[2.0, 0.0, 0.0], [20.0, 0.0, 0.0]])
    x.grad = None
    y = x * 1
    v = y[0]
    y.t_()
    v.mul_(2)
    (v * T.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert_values(x.grad, [[2.0, 4.0, 6.0], [0.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.t().as_strided((2, 3), (1, 2), 1),
        lambda x: x[1:].as_strided((2, 2), (4, 1)),
        lambda x: x.as_strided((3, 3), (1, 1)),
        lambda x: x[0].expand(3, 4).as_strided((4,), (1,)),
        lambda x: x[:, ::2].as_strided((2, 2), (2, 2), 2),
    ],
)
def test_the_gradient_of_a_strided_reading_is_that_of_the_storage(view):
    """However the tensor lies that it is read from: each place of the storage counts as often as it is read."""
    x = T.arange(12.0, dtype=T.float64).view(3, 4).requires_grad_()
    part = x * 1.0
    y = view(part)
    weights = T.arange(1.0, y.numel() + 1, dtype=T.float64).view(y.shape)
    (found,) = T.autograd.grad((y * weights).sum(), part)
    places = T.zeros(12, dtype=T.float64)
    marks = view(T.arange(12.0, dtype=T.float64).view(3, 4))  # each place holds its own number
    places.index_add_(0, marks.reshape(-1).long(), weights.reshape(-1))
    assert_values(found, places.view(3, 4))


def test_a_strided_reading_gives_nothing_to_what_its_input_does_not_show():
    x = T.arange(12.0, dtype=T.float64).view(3, 4).requires_grad_()
    (found,) = T.autograd.grad((x * 1.0)[:, 0].as_strided((3, 4), (4, 1)).sum(), x)
    assert_values(found, [[1.0, 0, 0, 0]] * 3)


def unrecorded():
    y = plain()
    with T.no_grad():
        view = y[:2]
    y.mul_(2)
    return view


@pytest.mark.parametrize("make", [unrecorded, lambda: outdated_part()])
@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.mul_(2),
        lambda t: t.zero_(),
        lambda t: t.fill_(1),
        lambda t: t.round_(),
        lambda t: t.eq_(1),
        lambda t: t.uniform_(),
        lambda t: t.index_fill_(0, T.tensor([0]), 1.0),
    ],
)
def test_a_write_to_an_outdated_view_is_refused_as_a_write(make, write):
    with pytest.raises(RuntimeError, match="is being modified inplace"):
        write(make())


LOGICAL = [lambda t: t.logical_not_(), lambda t: t.logical_and_(t), lambda t: t.logical_or_(t), lambda t: t.logical_xor_(t)]


@pytest.mark.parametrize("write", LOGICAL)
def test_logical_operators_write_as_if_nothing_were_recorded(write):
    """Over leaves and over views of any kind, whose histories stay as they were."""
    x = leaf([1.0, 0.0])
    assert write(x) is x and x.requires_grad and x.is_leaf and x._version == 1
    y = plain()
    assert write(y).grad_fn.name() == "MulBackward0"
    assert write(leaf([1.0, 2.0])[:1])._version == 1
    for make in (unrecorded, outdated_part):
        t = make()
        assert write(t)._version == 2
        with pytest.raises(RuntimeError, match=BEHIND):
            _ = t.grad_fn


@pytest.mark.parametrize("make", [unrecorded, lambda: outdated_part()])
def test_allclose_of_an_outdated_view(make):
    assert T.allclose(make(), T.tensor([2.0, 4.0]))


def outdated_part():
    y = plain()
    part = y.split(2)[0]
    y.mul_(2)
    return part
