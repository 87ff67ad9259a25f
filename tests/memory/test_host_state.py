"""Attributes of tensors last as long as the tensor, though nobody holds its Python object."""

import gc
import weakref

import pytest

from library import IS_GRADIRON, T, leaf

freed = pytest.mark.skipif(not IS_GRADIRON, reason="PyTorch never frees such a cycle")


class Tagged(T.Tensor):
    pass


class Token:
    pass


def test_attributes_of_a_gradient_stay():
    x = leaf([1.0, 2.0])
    x.sum().backward()
    x.grad.note = "mine"
    assert x.grad.note == "mine"
    gc.collect()
    assert x.grad.note == "mine" and vars(x.grad) == {"note": "mine"}
    x.sum().backward()
    assert x.grad.note == "mine" and x.grad.tolist() == [2.0, 2.0]
    x.grad.more = 1
    del x.grad.note
    assert vars(x.grad) == {"more": 1}
    x.grad = None
    x.sum().backward()
    assert not hasattr(x.grad, "more")


def test_attributes_of_a_given_gradient_stay():
    x, g = leaf([1.0]), T.ones(1)
    g.note = 1
    x.grad = g
    del g
    assert x.grad.note == 1
    g = x.grad
    x.grad = None
    assert g.note == 1


def test_attributes_of_a_base_stay():
    base = T.ones(2, 2)
    base.note = 3
    view = base[0]
    del base
    assert view._base.note == 3 and view._base.note == 3


def test_the_class_of_a_gradient_stays():
    x = leaf([1.0, 2.0])
    x.grad = T.ones(2).as_subclass(Tagged)
    assert type(x.grad) is Tagged
    x.grad.note = 1
    gc.collect()
    assert type(x.grad) is Tagged and x.grad.note == 1


def test_attributes_go_with_the_tensor():
    x = leaf([1.0])
    x.sum().backward()
    token = x.grad.token = Token()
    seen = weakref.ref(token)
    del token
    gc.collect()
    assert seen() is x.grad.token
    del x
    gc.collect()
    assert seen() is None


def test_setting_none_drops_attributes():
    x = leaf([1.0])
    x.sum().backward()
    x.grad.token = Token()
    seen = weakref.ref(x.grad.token)
    x.grad = None
    gc.collect()
    assert seen() is None


@freed
@pytest.mark.parametrize("hops", [1, 2])
def test_an_attribute_that_holds_its_tensor(hops):
    x = leaf([1.0])
    x.sum().backward()
    token = Token()
    x.grad.back = x if hops == 1 else [token, x]
    token.x = x
    x.grad.token = token
    seen = weakref.ref(token)
    del token
    for _ in range(3):
        gc.collect()
        assert seen() is x.grad.token and x.grad.back is not None
    del x
    gc.collect()
    assert seen() is None


@freed
def test_a_graph_in_an_attribute_is_seen():
    x = leaf([1.0])
    x.sum().backward()
    token = Token()
    y = x * 2
    y.register_hook(lambda grad, kept=(token, x): None)
    x.grad.y = y
    seen = weakref.ref(token)
    del token, y
    gc.collect()
    assert seen() is not None and x.grad.y.tolist() == [2.0]
    del x
    gc.collect()
    assert seen() is None
