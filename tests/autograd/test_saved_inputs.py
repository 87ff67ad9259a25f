"""What a derivative saved of an input is that tensor as it is when the backward comes; of a result, its values then."""

import pytest

from library import Square, T


def leaf(*values):
    return T.tensor(values or (1.0, 2.0, 3.0), dtype=T.float64, requires_grad=True)


def plain(*values):
    return T.tensor(values or (1.0, 2.0, 3.0), dtype=T.float64)


NEW = (10.0, 20.0, 30.0)


def test_a_leaf_with_other_data():
    x = leaf()
    y = x * x
    x.data = plain(*NEW)
    y.sum().backward()
    assert x.grad.tolist() == [20.0, 40.0, 60.0]


def test_a_leaf_whose_new_data_is_written():
    x = leaf()
    y = x * x
    x.data = plain(*NEW)
    x.data.add_(1)
    y.sum().backward()
    assert x.grad.tolist() == [22.0, 42.0, 62.0]


def test_a_leaf_with_other_data_twice():
    x = leaf()
    y = x * x
    x.data = plain(*NEW)
    z = x * x
    x.data = plain(5.0, 5.0, 5.0)
    (y + z).sum().backward()
    assert x.grad.tolist() == [20.0, 20.0, 20.0]


def test_a_leaf_that_is_gone_shows_what_it_showed_last():
    x, w = leaf(), leaf()
    y = x * w
    w.data = plain(*NEW)
    del w
    y.sum().backward()
    assert x.grad.tolist() == list(NEW)


def test_a_result_that_is_an_input_with_other_data():
    x = leaf()
    a = x * 2
    y = a * a
    a.data = plain(*NEW)
    assert y.grad_fn._saved_self.tolist() == list(NEW)
    y.sum().backward()
    assert x.grad.tolist() == [40.0, 80.0, 120.0]


def test_a_constant_with_other_data():
    x, w = leaf(), plain()
    y = x * w
    w.data = plain(*NEW)
    y.sum().backward()
    assert x.grad.tolist() == list(NEW)


def test_other_data_through_a_detached_tensor():
    x = leaf()
    constant = x.detach()
    y = constant * x
    constant.data = T.zeros(3, dtype=T.float64)
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_each_of_two_tensors_of_one_memory_has_its_own_data():
    x, w = leaf(), plain()
    same = w.view(3)
    y = x * w + 10 * x * same
    same.data = T.zeros(3, dtype=T.float64)
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 3.0]


def test_an_index_with_other_data():
    x = leaf()
    index = T.tensor([0, 1])
    y = x[index]
    index.data = T.tensor([2, 2])
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 2.0]


def test_a_view_keeps_its_data_when_its_base_gets_other():
    x = leaf()
    a = x * 2
    view = a[:2]
    y = view * view
    a.data = plain(*NEW)
    y.sum().backward()
    assert x.grad.tolist() == [8.0, 16.0, 0.0]


def test_a_saved_result_keeps_its_values():
    x = leaf(1.0, 4.0)
    y = x.sqrt()
    y.data = plain(10.0, 20.0)
    assert y.grad_fn._saved_result.tolist() == [1.0, 2.0]
    y.sum().backward()
    assert x.grad.tolist() == [0.5, 0.25]


def test_a_saved_result_is_spoilt_by_a_write_to_the_new_data():
    y = leaf().exp()
    y.data = plain(*NEW)
    y.add_(1)
    with pytest.raises(RuntimeError, match="output 0 of .*is at version 1; expected version 0"):
        y.sum().backward()


def test_set_spoils_what_was_saved():
    x = leaf()
    a = x * 2
    y = a * a
    with T.no_grad():
        a.set_(plain(*NEW))
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        y.sum().backward()


def test_data_of_another_shape():
    x = leaf()
    y = x * x
    x.data = plain(10.0, 20.0)
    with pytest.raises(RuntimeError, match="size of tensor a .3. must match the size of tensor b .2."):
        y.sum().backward()


@pytest.mark.parametrize("rank, expected", [(2, 200.0), (3, 2.0)])
def test_batches_of_matrices_are_multiplied_as_views(rank, expected):
    a, b = (T.ones((3, 2, 2)[3 - rank :], dtype=T.float64, requires_grad=True) for _ in range(2))
    y = a @ b
    b.data = b.data * 100
    y.sum().backward()
    assert a.grad.unique().tolist() == [expected]


def test_a_function_saves_its_inputs_so_too():
    x = leaf()
    y = Square.apply(x)
    x.data = plain(*NEW)
    y.sum().backward()
    assert x.grad.tolist() == [20.0, 40.0, 60.0]


@pytest.mark.parametrize("pack, expected", [(lambda t: t, [40.0, 80.0, 120.0]), (lambda t: t.clone(), [8.0, 16.0, 24.0])])
def test_pack_hooks_decide_themselves(pack, expected):
    x = leaf()
    with T.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = x * 2
        z = y * y
    y.data = plain(*NEW)
    z.sum().backward()
    assert x.grad.tolist() == expected


# --- requires_grad, later ---


def test_a_constant_that_wants_gradients_later_has_second_ones():
    x, w = leaf(), plain()
    y = x * w
    w.requires_grad_()
    (g,) = T.autograd.grad(y.sum(), x, create_graph=True)
    assert g.requires_grad and not g.is_leaf
    assert T.autograd.grad(g.sum(), w)[0].tolist() == [1.0, 1.0, 1.0]


def test_a_constant_that_wants_gradients_later_has_no_first_ones():
    x, w = leaf(), plain()
    view = w.view(3)
    y = x * w
    w.requires_grad_()
    y.sum().backward()
    assert w.grad is None and x.grad.tolist() == [1.0, 2.0, 3.0] and view.requires_grad


def test_a_leaf_that_wants_none_any_more_is_a_constant():
    x, w = leaf(), leaf()
    y = x * w
    w.requires_grad_(False)
    (g,) = T.autograd.grad(y.sum(), x, create_graph=True)
    assert not g.requires_grad


def test_a_constant_that_wanted_gradients_and_is_gone_is_none():
    x, w = leaf(), plain()
    other = w.view(3)
    y = x * w
    w.requires_grad_()
    del w
    (g,) = T.autograd.grad(y.sum(), x, create_graph=True)
    assert g.requires_grad and other.requires_grad


def test_others_of_the_same_memory_do_not_count():
    x, w = leaf(), plain()
    kept = [w.detach().requires_grad_() for _ in range(3)]
    y = x * w
    kept += [w.detach().requires_grad_() for _ in range(3000)]
    del kept[10:]
    (g,) = T.autograd.grad(y.sum(), x, create_graph=True)
    assert not g.requires_grad


# --- detach_ ---

DETACHED = "Trying to use a saved tensor that has been detached in-place"


def test_a_saved_input_that_was_detached_cannot_be_used():
    x = leaf()
    a = x * 2
    y = a * a
    a.detach_()
    with pytest.raises(RuntimeError, match=DETACHED):
        y.sum().backward()


def test_nor_when_it_is_gone():
    x = leaf()
    a = x * 2
    y = a * a
    a.detach_()
    del a
    with pytest.raises(RuntimeError, match=DETACHED):
        y.sum().backward()


def test_a_saved_result_that_was_detached_can():
    x = leaf(1.0)
    y = x.exp()
    z = y.sum()
    y.detach_()
    z.backward()
    assert x.grad.tolist() == pytest.approx([2.718281828459045])


def test_what_was_not_saved_may_be_detached():
    x = leaf()
    a = x * 2
    y = a + 1
    a.detach_()
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
