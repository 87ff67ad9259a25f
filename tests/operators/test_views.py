"""Views share memory and gradients; shapes that cannot be viewed are refused or copied."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library import T, assert_values, leaf


def base(device="cpu"):
    return T.arange(24.0, device=device).reshape(2, 3, 4).clone()


VIEWS = {
    "view": (lambda x: x.view(6, 4), (6, 4), (4, 1), 0),
    "view_infer": (lambda x: x.view(-1, 2), (12, 2), (2, 1), 0),
    "reshape": (lambda x: x.reshape(4, 6), (4, 6), (6, 1), 0),
    "transpose": (lambda x: x.transpose(0, 2), (4, 3, 2), (1, 4, 12), 0),
    "permute": (lambda x: x.permute(1, 2, 0), (3, 4, 2), (4, 1, 12), 0),
    "permute_tuple": (lambda x: x.permute((2, 0, 1)), (4, 2, 3), (1, 12, 4), 0),
    "t": (lambda x: x[0].t(), (4, 3), (1, 4), 0),
    "T": (lambda x: x[1].T, (4, 3), (1, 4), 12),
    "mT": (lambda x: x.mT, (2, 4, 3), (12, 1, 4), 0),
    "H": (lambda x: x[0].H, (4, 3), (1, 4), 0),
    "swapaxes": (lambda x: x.swapaxes(0, 1), (3, 2, 4), (4, 12, 1), 0),
    "movedim": (lambda x: x.movedim(2, 0), (4, 2, 3), (1, 12, 4), 0),
    "movedim_many": (lambda x: x.movedim((0, 1), (2, 0)), (3, 4, 2), (4, 1, 12), 0),
    "select": (lambda x: x.select(1, 2), (2, 4), (12, 1), 8),
    "select_negative": (lambda x: x.select(-1, -1), (2, 3), (12, 4), 3),
    "narrow": (lambda x: x.narrow(1, 1, 2), (2, 2, 4), (12, 4, 1), 4),
    "slice": (lambda x: x[:, 1:, ::2], (2, 2, 2), (12, 4, 2), 4),
    "index_none": (lambda x: x[:, None, 0], (2, 1, 4), (12, 12, 1), 0),
    "squeeze": (lambda x: x[:, :1].squeeze(1), (2, 4), (12, 1), 0),
    "squeeze_all": (lambda x: x[:1, :1].squeeze(), (4,), (1,), 0),
    "unsqueeze": (lambda x: x.unsqueeze(1), (2, 1, 3, 4), (12, 12, 4, 1), 0),
    "unsqueeze_end": (lambda x: x.unsqueeze(-1), (2, 3, 4, 1), (12, 4, 1, 1), 0),
    "expand": (lambda x: x[:, :1].expand(2, 5, 4), (2, 5, 4), (12, 0, 1), 0),
    "expand_front": (lambda x: x[0, 0].expand(3, -1), (3, 4), (0, 1), 0),
    "expand_as": (lambda x: x[0, 0].expand_as(x), (2, 3, 4), (0, 0, 1), 0),
    "broadcast_to": (lambda x: x[0, 0].broadcast_to((2, 4)), (2, 4), (0, 1), 0),
    "diagonal": (lambda x: x.diagonal(0, 1, 2), (2, 3), (12, 5), 0),
    "diagonal_offset": (lambda x: x.diagonal(1, -1, -2), (2, 2), (12, 5), 4),
    "as_strided": (lambda x: x.as_strided((2, 2), (5, 3), 2), (2, 2), (5, 3), 2),
    "unfold": (lambda x: x.unfold(2, 3, 1), (2, 3, 2, 3), (12, 4, 1, 1), 0),
    "flatten": (lambda x: x.flatten(), (24,), (1,), 0),
    "flatten_some": (lambda x: x.flatten(1), (2, 12), (12, 1), 0),
    "unflatten": (lambda x: x.unflatten(2, (2, 2)), (2, 3, 2, 2), (12, 4, 2, 1), 0),
    "ravel": (lambda x: x.ravel(), (24,), (1,), 0),
    "chunk": (lambda x: x.chunk(2, 2)[1], (2, 3, 2), (12, 4, 1), 2),
    "split": (lambda x: x.split([1, 2], 1)[1], (2, 2, 4), (12, 4, 1), 4),
    "unbind": (lambda x: x.unbind(1)[2], (2, 4), (12, 1), 8),
    "detach": (lambda x: x.detach(), (2, 3, 4), (12, 4, 1), 0),
    "view_as": (lambda x: x.view_as(T.ones(4, 6)), (4, 6), (6, 1), 0),
    "alias": (lambda x: x.view(x.shape), (2, 3, 4), (12, 4, 1), 0),
    "real_t": (lambda x: x[0, 0].t(), (4,), (1,), 0),
    "hsplit": (lambda x: x.tensor_split(3, 2)[0], (2, 3, 2), (12, 4, 1), 0),
}


@pytest.mark.parametrize("name", VIEWS)
def test_geometry(name):
    view, shape, stride, offset = VIEWS[name]
    x = base()
    v = view(x)
    assert (v.shape, v.stride(), v.storage_offset()) == (shape, stride, offset)
    assert v.data_ptr() == x.data_ptr() + 4 * offset


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_reads_and_writes_its_base(name, device):
    view, shape, stride, offset = VIEWS[name]
    if device == "cuda" and name == "view_as":
        pytest.skip("mixes devices")
    x = base(device)
    v = view(x)
    numbers = [offset + sum(i * s for i, s in zip(at, stride)) for at in itertools.product(*map(range, shape))]
    assert v.reshape(-1).tolist() == [float(n) for n in numbers]
    x.mul_(10)
    assert v.reshape(-1).tolist() == [10.0 * n for n in numbers]
    if len(set(numbers)) == len(numbers):
        v.fill_(-1)
        assert sorted(i for i, n in enumerate(x.reshape(-1).tolist()) if n == -1) == sorted(numbers)


@pytest.mark.parametrize("name", [n for n in VIEWS if n != "detach"])
def test_gradient_of_a_view_is_a_scatter(name):
    view, shape, stride, offset = VIEWS[name]
    x = base().requires_grad_()
    v = view(x)
    w = T.arange(1.0, v.numel() + 1).reshape(shape)
    (v * w).sum().backward()
    expected = [0.0] * 24
    for at, weight in zip(itertools.product(*map(range, shape)), itertools.count(1)):
        expected[offset + sum(i * s for i, s in zip(at, stride))] += weight
    assert x.grad.reshape(-1).tolist() == expected


@pytest.mark.parametrize("name", [n for n in VIEWS if n != "detach"])
def test_second_derivative_through_a_view(name):
    x = base().requires_grad_()
    (g,) = T.autograd.grad((VIEWS[name][0](x) ** 3).sum(), x, create_graph=True)
    (h,) = T.autograd.grad(g.sum(), x)
    y = base().requires_grad_()
    VIEWS[name][0](y).sum().backward()
    counts = y.grad
    assert_values(h, 6 * base() * counts)


def test_view_needs_compatible_strides():
    x = base()
    with pytest.raises(RuntimeError, match="view size is not compatible with input tensor's size and stride"):
        x.transpose(0, 1).view(24)
    assert x.transpose(1, 2).view(2, 2, 2, 3).shape == (2, 2, 2, 3)
    copy = x.transpose(0, 1).reshape(24)
    assert copy.data_ptr() != x.data_ptr() and copy[4].item() == 12


def test_contiguous_copies_only_when_it_must():
    x = base()
    assert x.contiguous() is x
    y = x.transpose(0, 1).contiguous()
    assert y.is_contiguous() and y.data_ptr() != x.data_ptr() and y.tolist() == x.transpose(0, 1).tolist()


def test_clone_keeps_dense_strides():
    x = base().transpose(0, 2)
    assert x.clone().stride() == x.stride()
    assert x[:, :1].expand(4, 3, 2).clone().stride() == (1, 4, 12)
    assert x.clone(memory_format=T.contiguous_format).is_contiguous()


def test_layout_of_results():
    x = base().transpose(0, 2)
    assert (x + 1).stride() == x.stride() and (x * x).stride() == x.stride()
    assert T.ones_like(x).stride() == x.stride()


@pytest.mark.parametrize(
    "split, sizes",
    [
        (lambda x: x.split(3), [3, 3, 3, 1]),
        (lambda x: x.split([4, 6]), [4, 6]),
        (lambda x: x.chunk(3), [4, 4, 2]),
        (lambda x: x.chunk(20), [1] * 10),
        (lambda x: x.chunk(4), [3, 3, 3, 1]),
        (lambda x: x.tensor_split(4), [3, 3, 2, 2]),
        (lambda x: x.tensor_split((2, 7)), [2, 5, 3]),
    ],
)
def test_pieces(split, sizes):
    x = T.arange(10)
    parts = split(x)
    assert isinstance(parts, tuple) and [len(p) for p in parts] == sizes and T.cat(parts).tolist() == list(range(10))
    parts[0][0] = 99
    assert x[0].item() == 99


def test_split_of_empty():
    assert [p.shape for p in T.zeros(0, 3).split(2)] == [(0, 3)]
    assert T.zeros(0).chunk(3)[0].shape == (0,)


@given(st.lists(st.integers(0, 3), max_size=4), st.data())
def test_permutations_compose(shape, data):
    x = T.arange(float(T.Size(shape).numel())).reshape(shape)
    order = data.draw(st.permutations(range(len(shape))))
    back = sorted(range(len(order)), key=order.__getitem__)
    y = x.permute(order)
    assert y.shape == tuple(shape[d] for d in order)
    assert T.equal(y.permute(back), x) and y.permute(back).stride() == x.stride()
    assert T.equal(y.contiguous().permute(back), x)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_reshape_keeps_the_order_of_elements(shape, data):
    n = T.Size(shape).numel()
    x = T.arange(float(n)).reshape(shape)
    d = data.draw(st.sampled_from([k for k in range(1, n + 1) if n % k == 0]))
    y = x.permute(*reversed(range(len(shape))))
    assert y.reshape(d, -1).shape == (d, n // d)
    assert y.reshape(d, -1).reshape(-1).tolist() == y.contiguous().reshape(-1).tolist()


def test_broadcasting_helpers():
    a, b = T.broadcast_tensors(T.ones(3), T.ones(2, 1))
    assert a.shape == b.shape == (2, 3) and a.stride() == (0, 1)
    assert T.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    assert T.atleast_2d(T.ones(3)).shape == (1, 3)


def test_views_of_zero_dimensions_and_empties():
    s = T.tensor(5.0)
    assert (
        s.view(1).shape == (1,)
        and s.reshape(1, 1).shape == (1, 1)
        and s.unsqueeze(0).shape == (1,)
        and s.expand(2).tolist() == [5.0, 5.0]
    )
    assert s.transpose(0, 0).shape == () and s.permute(()).shape == () and s.squeeze().shape == () and s.flatten().shape == (1,)
    e = T.zeros(2, 0, 3)
    assert e.view(0, 6).shape == (0, 6) and e.transpose(0, 2).shape == (3, 0, 2) and e.reshape(5, 0).shape == (5, 0)
    assert e.flatten().shape == (0,) and e.sum((0, 1)).tolist() == [0.0, 0.0, 0.0]


def test_view_as_another_dtype():
    x = T.tensor([1.0, -2.0])
    assert x.view(T.int32).tolist() == [0x3F800000, -0x40000000]
    assert x.view(T.uint8).shape == (8,) and x.view(T.int32).data_ptr() == x.data_ptr()
    assert T.tensor([1, 2], dtype=T.int64).view(T.int32).tolist() == [1, 0, 2, 0]


def test_base_and_is_view():
    x = base()
    assert x[0]._base is x and x[0][0]._base is x and x._base is None
    assert x.clone()._base is None and (x + 1)._base is None and x.reshape(24)._base is x


def test_a_view_keeps_its_base_alive():
    v = base()[1, 2]
    assert v.tolist() == [20.0, 21.0, 22.0, 23.0]


def test_views_record_only_when_asked():
    x = leaf([[1.0, 2.0]])
    assert x.t().requires_grad and not x.detach().t().requires_grad
    with T.no_grad():
        assert x.t().grad_fn is None and not (x + 1).requires_grad


@pytest.mark.parametrize(
    "turned", (lambda x: x, lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[1:], lambda x: x[0].expand(3, 3))
)
def test_copies_with_a_part_put_over_lie_as_what_they_copy(turned):
    x = turned(T.arange(9.0, dtype=T.float64).view(3, 3))
    part = T.full((x.shape[1],), 7.0, dtype=T.float64)
    expected = x.clone()
    expected[0] = part
    for made in (x.select_scatter(part, 0, 0), x.slice_scatter(part[None], 0, 0, 1)):
        assert_values(made, expected)
        lies = x if x.stride(0) else x.contiguous()
        assert (made.stride(), made.storage_offset()) == (lies.stride(), lies.storage_offset())
    assert x.diagonal_scatter(x.diagonal() * 2).stride() == lies.stride()


def test_the_derivative_of_a_part_is_a_view_again():
    v = T.arange(6.0, dtype=T.float64).view(2, 3)
    for part in (
        lambda x: x[0],
        lambda x: x[:, 1:],
        lambda x: x.diagonal(),
        lambda x: x.unfold(1, 2, 1),
        lambda x: x.reshape(-1)[1:3],
    ):
        moved = T.autograd.functional.jvp(part, T.ones(2, 3, dtype=T.float64), v)[1]
        assert_values(moved, part(v))
        assert moved.stride() == part(v).stride() and moved.data_ptr() == part(v).data_ptr()


def test_what_has_the_shape_already_is_not_broadcast():
    x, y = leaf([1.0, 2.0]), T.ones(3, 2)
    a, b = T.broadcast_tensors(x, T.ones(2))
    assert a is x and not b._is_view()
    c, d = T.broadcast_tensors(x, y)
    assert c.shape == (3, 2) and c._is_view() and d is y


def test_split_names_its_argument_as_a_method_and_as_a_function():
    x = T.arange(4)
    assert [list(part) for part in x.split(split_size=[1, 3])] == [[0], [1, 2, 3]]
    assert len(T.split(tensor=x, split_size_or_sections=2)) == 2
    for call in (lambda: x.split(split_size_or_sections=2), lambda: T.split(x, split_size=2)):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            call()
