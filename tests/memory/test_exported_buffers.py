"""Memory that is lent to somebody outside is not given back while it is: resizing it is refused, or it stays with its borrower."""

import pytest

from library import T

numpy = pytest.importorskip("numpy")

REFUSED = "Trying to resize storage that is not resizable"
LENDERS = {
    "numpy": lambda t: t.numpy(),
    "asarray": lambda t: numpy.asarray(t),
    "array protocol": lambda t: t.__array__(),
    "of a view": lambda t: t[1:].numpy(),
    "of detached": lambda t: t.detach().numpy(),
    "of data": lambda t: t.data.numpy(),
}
GROWTHS = {
    "resize_": lambda t: t.resize_(10_000_000),
    "resize_as_": lambda t: t.resize_as_(T.empty(100)),
    "storage": lambda t: t.untyped_storage().resize_(4_000_000),
    "smaller storage": lambda t: t.untyped_storage().resize_(4),
    "out": lambda t: T.add(T.ones(100), 1, out=t.resize_(0)),
    "set_": lambda t: t.set_(t.untyped_storage(), 0, (100,), (1,)),
}


@pytest.mark.parametrize("lender", LENDERS)
@pytest.mark.parametrize("growth", GROWTHS)
def test_what_numpy_has_is_not_resized(lender, growth):
    t = T.arange(10.0)
    array = LENDERS[lender](t)
    before = array.copy()
    with pytest.raises(RuntimeError, match=REFUSED):
        GROWTHS[growth](t)
    assert (array == before).all()
    t.resize_(10)
    t.fill_(7)
    assert (array == 7).all()


def test_fewer_elements_need_no_other_memory():
    t = T.arange(10.0)
    array = t.numpy()
    assert t.resize_(4).tolist() == [0.0, 1.0, 2.0, 3.0] and t.resize_(2, 5).shape == (2, 5)
    assert array.tolist() == list(range(10)) and not t.untyped_storage().resizable()


def test_other_memory_may_come_in_its_place():
    t = T.arange(10.0)
    array = t.numpy()
    t.set_(T.ones(3))
    t.resize_(1000)
    u = T.arange(10.0)
    other = u.numpy()
    u.data = T.ones(3)
    assert array.tolist() == other.tolist() == list(range(10))


@pytest.mark.gradiron
def test_what_dlpack_lent_stays_with_its_borrower():
    # Large enough that its pages would go back to the system.
    n = 1 << 20
    for smaller in (False, True):
        t = T.ones(n)
        array = numpy.from_dlpack(t)
        if smaller:
            t.untyped_storage().resize_(40)
        t.resize_(10)
        t.resize_(10 * n)
        t.fill_(3)
        del t
        assert (array == 1).all()


def test_arrays_and_buffers_have_their_size():
    for t in (T.from_numpy(numpy.ones(5)), T.frombuffer(bytearray(20), dtype=T.float32), T.from_dlpack(numpy.ones(5))):
        with pytest.raises(RuntimeError, match=REFUSED):
            t.resize_(1000)
        assert t.shape == (5,)
