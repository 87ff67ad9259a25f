"""Indexing for reading and writing, against a model in plain Python and against golden cases."""

import itertools

import golden_file
import pytest
from hypothesis import given
from hypothesis import strategies as st

from library import T, assert_values, gpu_is_software, leaf, tensor

ROWS = golden_file.read("indexing.json")


def space(device="cpu"):
    x = T.arange(24.0, device=device).reshape(2, 3, 4).clone()
    return {
        "T": T,
        "x": x,
        "v": T.arange(5.0, device=device),
        "s": T.tensor(7.0, device=device),
        "e": T.zeros(0, 3, device=device),
        "i": tensor([1, 0, 1], "int64", device),
        "j": tensor([2, -1, 0], "int64", device),
        "one": tensor([1], "int64", device),
        "z": tensor(1, "int64", device),
        "m": tensor([True, False], "bool", device),
        "k": tensor([True, False, True], "bool", device),
        "mm": tensor([[True, False, True], [False, False, True]], "bool", device),
        "b": x % 5 == 2,
        "ee": tensor([], "int64", device),
        "ij": tensor([[0, 1], [1, 0]], "int64", device),
        "no": tensor(False, "bool", device),
        "yes": tensor(True, "bool", device),
        "w": T.arange(1.0, 13.0, device=device).reshape(3, 4),
    }


@pytest.mark.parametrize("row", ROWS["read"], ids=lambda row: row[0])
def test_reading(row, device):
    code, shape, values = row
    result = eval(code, space(device))
    assert list(result.shape) == shape and result.reshape(-1).tolist() == values


@pytest.mark.parametrize("row", ROWS["write"], ids=lambda row: row[0])
def test_writing(row, device):
    code, values = row
    names = space(device)
    # Of dimension 1, 2 and -1 are one place.
    if device == "cuda" and code.startswith(("x[0, j]", "x[:, j]")) and not gpu_is_software():
        pytest.skip("which of several values for one place stays is left open on a GPU")
    exec(code, names)
    assert names["x"].reshape(-1).tolist() == values


@pytest.mark.parametrize("row", [r for r in ROWS["read"] if r[0].startswith("x")], ids=lambda row: row[0])
def test_gradients_of_reads(row, device):
    """The gradient counts how often each element was read."""
    names = space(device)
    names["x"] = x = names["x"].requires_grad_()
    result = eval(row[0], names)
    if result.requires_grad:
        result.sum().backward()
        counts = [0.0] * 24
        for value in row[2]:
            counts[int(value)] += 1
        assert x.grad.reshape(-1).tolist() == counts


@pytest.mark.parametrize(
    "code", [r[0] for r in ROWS["write"] if " = " in r[0] and r[0].startswith("x[") and r[0].count("x") == 1]
)
def test_gradients_of_writes(code):
    """What was overwritten gets no gradient; what was written gets all of it."""
    names = space()
    before = names["x"].requires_grad_()
    names["x"] = x = before * 1
    exec(code, names)
    x.sum().backward()
    changed = [a != b for a, b in zip(x.reshape(-1).tolist(), before.reshape(-1).tolist())]
    kept = [g == 1 for g in before.grad.reshape(-1).tolist()]
    assert all(c != k or (not c and not k) for c, k in zip(changed, kept))
    assert all(g in (0, 1) for g in before.grad.reshape(-1).tolist())


def test_gradient_reaches_the_written_value(device):
    x, w = T.zeros(4, device=device), leaf([1.0, 2.0], device)
    x[tensor([3, 0], "int64", device)] = w
    (x * T.arange(4.0, device=device)).sum().backward()
    assert_values(w.grad, [3.0, 0.0])


def test_broadcast_value_collects_its_gradient():
    x, w = T.zeros(3, 2), leaf([5.0])
    x[T.tensor([0, 2])] = w
    x.sum().backward()
    assert_values(w.grad, [4.0])


def test_repeated_indices_add_their_gradients(device):
    x = leaf([1.0, 2.0, 3.0], device)
    y = x[tensor([0, 0, 2, 0], "int64", device)]
    y.backward(tensor([1.0, 2.0, 3.0, 4.0], device=device))
    assert_values(x.grad, [7.0, 0.0, 3.0])


def test_second_derivative_through_an_index():
    x = leaf([1.0, 2.0, 3.0])
    (g,) = T.autograd.grad((x[T.tensor([0, 0, 1])] ** 3).sum(), x, create_graph=True)
    (h,) = T.autograd.grad(g.sum(), x)
    assert_values(h, [12.0, 12.0, 0.0])


def test_basic_indexing_gives_views_and_advanced_gives_copies():
    x = T.zeros(3, 3)
    x[0][0] = 1
    x[:, 1][2] = 2
    x[T.tensor([1])][0, 0] = 3
    assert_values(x, [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 2.0, 0.0]])


@pytest.mark.parametrize("kind", ["int64", "int32", "int16", "int8"])
def test_index_dtypes(kind):
    x = T.arange(5)
    if kind in ("int16", "int8"):
        with pytest.raises(IndexError, match="tensors used as indices must be long, int, byte or bool"):
            x[tensor([0, -1], kind)]
    else:
        assert x[tensor([0, -1], kind)].tolist() == [0, 4]


def test_a_list_and_a_tuple_of_indices():
    x = T.arange(12).reshape(3, 4)
    assert x[[0, 2]].tolist() == x[T.tensor([0, 2])].tolist() == [[0, 1, 2, 3], [8, 9, 10, 11]]
    assert x[(0, 2)].item() == 2 and x[[True, False, True]].shape == (2, 4) and x[[0, 2], [1, 3]].tolist() == [1, 11]
    assert x[range(2)].shape == (2, 4) and x[True].shape == (1, 3, 4) and x[False].shape == (0, 3, 4)


slices = st.builds(slice, st.none() | st.integers(-6, 6), st.none() | st.integers(-6, 6), st.none() | st.integers(1, 3))


@st.composite
def keys(draw, shape):
    """One index a dimension, some left out: integers, slices, lists (of one length) and at most one ellipsis."""
    length = draw(st.integers(1, 3))
    parts = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        kind = draw(st.sampled_from("isl"))
        if kind == "i":
            parts.append(draw(st.integers(-size, size - 1)))
        elif kind == "s":
            parts.append(draw(slices))
        else:
            parts.append(draw(st.lists(st.integers(-size, size - 1), min_size=length, max_size=length)))
    return parts


def model(shape, key):
    """The flat positions that `key` selects, and the shape of the selection, by the book."""
    lists = [d for d, part in enumerate(key) if isinstance(part, list)]
    axes = []  # per dimension: the choices, or None where the lists run together
    for d, size in enumerate(shape):
        part = key[d] if d < len(key) else slice(None)
        axes.append(list(range(size))[part] if isinstance(part, slice) else part)
    if not lists:
        loops = [(d, len(a)) for d, a in enumerate(axes) if isinstance(a, list)]
        at = 0
        length = None
    else:
        advanced = [d for d, part in enumerate(key) if not isinstance(part, slice)]
        together = advanced == list(range(advanced[0], advanced[-1] + 1))
        loops = [(d, len(a)) for d, a in enumerate(axes) if isinstance(a, list) and d not in lists]
        at = sum(1 for d, _ in loops if d < advanced[0]) if together else 0
        length = len(key[lists[0]])
    sizes = [n for _, n in loops]
    if length is not None:
        sizes.insert(at, length)
    positions = []
    for where in itertools.product(*map(range, sizes)):
        where = list(where)
        run = where.pop(at) if length is not None else None
        chosen = dict(zip([d for d, _ in loops], where))
        flat = 0
        for d, size in enumerate(shape):
            a = axes[d]
            n = a if isinstance(a, int) else a[run] if d in lists else a[chosen[d]]
            flat = flat * size + n % size
        positions.append(flat)
    return positions, tuple(sizes)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_any_key_reads_as_the_model_says(shape, data):
    key = data.draw(keys(shape))
    positions, wanted = model(shape, key)
    n = T.Size(shape).numel()
    x = T.arange(n).reshape(shape)
    result = x[tuple(T.tensor(p) if isinstance(p, list) else p for p in key)]
    assert result.shape == wanted and result.reshape(-1).tolist() == positions
    turned = T.arange(n).reshape(shape[::-1]).permute(*reversed(range(len(shape))))
    strided = turned[tuple(T.tensor(p) if isinstance(p, list) else p for p in key)]
    flat = turned.reshape(-1).tolist()
    assert strided.reshape(-1).tolist() == [flat[p] for p in positions]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_any_key_writes_as_the_model_says(shape, data):
    key = data.draw(keys(shape))
    positions, wanted = model(shape, key)
    x = T.zeros(shape)
    value = T.arange(1.0, len(positions) + 1).reshape(wanted)
    x[tuple(T.tensor(p) if isinstance(p, list) else p for p in key)] = value
    expected = [0.0] * x.numel()
    for k, p in enumerate(positions):
        expected[p] = k + 1.0
    assert x.reshape(-1).tolist() == expected


@given(st.lists(st.integers(0, 4), min_size=1, max_size=3), st.data())
def test_masks(shape, data):
    n = T.Size(shape).numel()
    mask = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    m = T.tensor(mask, dtype=T.bool).reshape(shape)
    x = T.arange(float(n)).reshape(shape)
    chosen = [float(k) for k, b in enumerate(mask) if b]
    assert x[m].tolist() == x.masked_select(m).tolist() == chosen
    x[m] = -1.0
    assert x.reshape(-1).tolist() == [-1.0 if b else float(k) for k, b in enumerate(mask)]
    x[m] = T.arange(float(len(chosen)))
    assert x[m].tolist() == [float(k) for k in range(len(chosen))]


def test_index_put_accumulates(device):
    x = T.zeros(3, device=device)
    x.index_put_((tensor([0, 0, 2], "int64", device),), tensor([1.0, 2.0, 3.0], device=device), accumulate=True)
    assert_values(x, [3.0, 0.0, 3.0])
    y = x.index_put((tensor([1], "int64", device),), tensor([9.0], device=device))
    assert_values(y, [3.0, 9.0, 3.0])


def test_scatter_and_gather_are_each_others_transpose(device):
    index = tensor([[0, 2, 1], [1, 1, 0]], "int64", device)
    x = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device)
    g = x.gather(1, index)
    assert_values(g, [[1.0, 3.0, 2.0], [5.0, 5.0, 4.0]])
    w = T.arange(1.0, 7.0, device=device).reshape(2, 3)
    (g * w).sum().backward()
    assert_values(x.grad, T.zeros(2, 3, device=device).scatter_add(1, index, w))


def test_gather_takes_the_option_of_sparse_gradients():
    x, index = leaf([[1.0, 2.0]]), T.tensor([[1, 1]])
    assert T.gather(x, 1, index, sparse_grad=False).tolist() == x.gather(1, index, sparse_grad=False).tolist() == [[2.0, 2.0]]


def test_a_complex_number_fills_no_real_tensor():
    for dtype in (T.float32, T.int64, T.bool):
        x = T.ones(2, dtype=dtype)
        for call in (x.index_fill, x.index_fill_):
            with pytest.raises(RuntimeError, match="Converting complex Scalar to non-complex type is not supported"):
                call(0, T.tensor([0]), 1 + 1j)
        assert x.tolist() == [1, 1]


@pytest.mark.filterwarnings("ignore:The reduce argument of torch.scatter")
def test_scatter_modes():
    index = T.tensor([0, 0, 1])
    src = T.tensor([2.0, 3.0, 4.0])
    assert T.ones(2).scatter_(0, index, src, reduce="add").tolist() == [6.0, 5.0]
    assert T.ones(2).scatter_(0, index, src, reduce="multiply").tolist() == [6.0, 4.0]


def test_take_and_put_along_a_dimension():
    x = T.tensor([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]])
    order = x.argsort(1)
    assert T.equal(T.take_along_dim(x, order, 1), x.sort(1)[0]) and T.equal(x.gather(1, order), x.sort(1).values)


def test_a_slice_may_overshoot():
    x = T.arange(5)
    assert x[2:100].tolist() == [2, 3, 4] and x[-100:2].tolist() == [0, 1] and x[4:2].tolist() == []


def test_writing_a_tensor_of_another_dtype_casts():
    x = T.zeros(3)
    x[T.tensor([0, 1])] = T.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match"):
        x[T.tensor([0, 1])] = T.tensor([1, 2])
    x[0:2] = T.tensor([7, 8])
    assert_values(x, [7.0, 8.0, 0.0])


def test_writing_rows_from_themselves():
    x = T.arange(6.0).reshape(3, 2).clone()
    x[T.tensor([0, 2])] = x[T.tensor([2, 0])]
    assert_values(x, [[4.0, 5.0], [2.0, 3.0], [0.0, 1.0]])


def test_an_index_that_was_written_over_is_refused():
    x, i = T.tensor([1.0, 2.0], requires_grad=True), T.tensor([0, 1])
    for use in (lambda: x[i], lambda: (x * 1).index_put((i,), x)):
        y = use().sum()
        i.zero_()
        with pytest.raises(
            RuntimeError, match="modified by an inplace operation: \\[torch.LongTensor \\[2\\]\\] is at version"
        ):
            y.backward()
    y = x[i].sum()
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_gradients_of_what_was_put_in_are_views():
    m = T.zeros(3, 4, dtype=T.float64, requires_grad=True)
    row, part, line = (T.ones(*n, dtype=T.float64, requires_grad=True) for n in ((3,), (3, 2), (3,)))
    weight = T.arange(12.0, dtype=T.float64).reshape(3, 4)
    for made, source, place, strides in [
        (m.select_scatter(row, 1, 2), row, lambda t: t[:, 2], (4,)),
        (m.slice_scatter(part, 1, 0, 4, 2), part, lambda t: t[:, ::2], (4, 2)),
        (m.diagonal_scatter(line, 1), line, lambda t: t.diagonal(1), (5,)),
    ]:
        whole, mine = T.autograd.grad(made, (m, source), weight)
        assert mine.tolist() == place(weight).tolist() and mine.stride() == strides
        rest = weight.clone()
        place(rest).zero_()
        assert whole.tolist() == rest.tolist()


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("how", ["sum", "prod", "mean", "amax", "amin"])
def test_scatter_reduce_in_one_node(how, include_self):
    x = T.tensor([1.5, -2.0, 3.0], dtype=T.float64, requires_grad=True)
    s = T.tensor([2.0, 0.5, -1.0, 4.0], dtype=T.float64, requires_grad=True)
    index = T.tensor([0, 2, 0, 2])

    def call(x, s):
        return x.scatter_reduce(0, index, s, how, include_self=include_self)

    node = call(x, s).grad_fn
    assert (node.name(), node._saved_reduce, node._saved_include_self) == ("ScatterReduceBackward0", how, include_self)
    assert T.autograd.gradcheck(call, (x, s)) and T.autograd.gradgradcheck(call, (x, s))
    y = x.clone().scatter_reduce_(0, index, s, how, include_self=include_self)
    for found, expected in zip(T.autograd.grad(y.sum(), (x, s)), T.autograd.grad(call(x, s).sum(), (x, s))):
        assert found.tolist() == expected.tolist()


def test_scatter_reduce_knows_five_ways():
    with pytest.raises(RuntimeError, match="reduce argument must be either sum, prod, mean, amax or amin, got add"):
        T.ones(2).scatter_reduce(0, T.tensor([0]), T.ones(1), "add")
    with pytest.raises(NotImplementedError, match="scatter_reduce does not support automatic differentiation"):
        z = T.ones(2, dtype=T.complex64, requires_grad=True)
        z.scatter_reduce(0, T.tensor([0]), z[:1], "sum")
    whole = T.tensor([7, 8]).scatter_reduce(0, T.tensor([0, 0]), T.tensor([2, -4]), "mean", include_self=False)
    assert whole.tolist() == [-1, 8]


def test_unique_values_have_no_derivative():
    x = T.tensor([2.0, 1.0, 1.0], requires_grad=True)
    values, inverse = x.unique(return_inverse=True)
    assert values.requires_grad and not inverse.requires_grad and not inverse._is_view()
    with pytest.raises(NotImplementedError, match="the derivative for '_unique2' is not implemented."):
        values.sum().backward()
    with pytest.raises(NotImplementedError, match="the derivative for 'unique_consecutive' is not implemented."):
        x.unique_consecutive().sum().backward()
    assert not T.tensor([1, 1]).unique().requires_grad


@pytest.mark.parametrize("options, name", (({}, "_unique2"), ({"dim": 0}, "unique_dim")))
def test_unique_values_have_no_tangent(options, name):
    fw = T.autograd.forward_ad
    with fw.dual_level():
        x = fw.make_dual(T.tensor([2.0, 1.0]), T.ones(2))
        with pytest.raises(NotImplementedError, match=f"Trying to use forward AD with {name} that does not support it"):
            x.unique(**options)
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with unique_consecutive that does not"):
            x.unique_consecutive()


def test_places_lie_one_behind_the_other():
    rows, columns = T.ones(2, 3).nonzero(as_tuple=True)
    assert (rows.stride(), columns.stride(), columns.storage_offset()) == ((1,), (1,), 6)
    assert [t.tolist() for t in T.where(T.eye(2) > 0)] == [[0, 1], [0, 1]]


def test_ldexp():
    x, k = (
        T.tensor([1.0, -3.0], dtype=T.float64, requires_grad=True),
        T.tensor([10.0, -2.0], dtype=T.float64, requires_grad=True),
    )
    assert T.ldexp(x, k).tolist() == [1024.0, -0.75] and T.ldexp(T.tensor([3]), T.tensor([30])).dtype == T.float32
    assert T.autograd.gradcheck(T.ldexp, (x, k * 0.1)) and x.ldexp(k).grad_fn._saved_result.tolist() == [1024.0, -0.75]


def test_real_numbers_are_their_own_conjugates():
    x = T.ones(2, requires_grad=True)
    assert x.conj_physical() is x and x.sin().conj_physical().grad_fn.name() == "SinBackward0"


def test_unique_slices():
    x = T.tensor([[3.0, 1.0, 3.0], [2.0, 0.0, 2.0], [3.0, 1.0, 3.0]], requires_grad=True)
    rows, inverse, counts = x.unique(dim=0, return_inverse=True, return_counts=True)
    assert rows.tolist() == [[2.0, 0.0, 2.0], [3.0, 1.0, 3.0]] and rows.grad_fn.name() == "UniqueDimBackward0"
    assert inverse.tolist() == [1, 0, 1] and counts.tolist() == [1, 2]
    columns, counts = x.unique(dim=-1, return_counts=True)
    assert columns.tolist() == [[1.0, 3.0], [0.0, 2.0], [1.0, 3.0]] and counts.tolist() == [1, 2]
    runs, inverse, counts = x.detach().unique_consecutive(dim=0, return_inverse=True, return_counts=True)
    assert (runs.tolist(), inverse.tolist(), counts.tolist()) == (x.tolist(), [0, 1, 2], [1, 1, 1])
    block = T.tensor([[[1, 2], [0, 1]], [[1, 2], [0, 0]], [[1, 2], [0, 1]]])
    assert block.unique(dim=0).tolist() == [[[1, 2], [0, 0]], [[1, 2], [0, 1]]]
    assert T.unique_consecutive(block[[0, 2, 1]], dim=0, return_counts=True)[1].tolist() == [2, 1]
    assert T.zeros(0, 3).unique(dim=0).shape == (0, 3)


@pytest.mark.parametrize(
    "call, error, sentence",
    [
        (lambda: T.zeros(3, 0).unique(dim=0), RuntimeError, "There are 0 sized dimensions, and they aren't selected"),
        (lambda: T.zeros(0, 3).unique(dim=1), RuntimeError, "There are 0 sized dimensions, and they aren't selected"),
        (lambda: T.ones(2, 2).unique(dim=2), IndexError, "Dimension out of range"),
        (lambda: T.tensor(1.0).unique(dim=0), IndexError, "Dimension specified as 0 but tensor has no dimensions"),
        (lambda: T.ones(2, dtype=T.complex64).unique(dim=0), NotImplementedError, '"unique_dim" not implemented'),
        (lambda: T.ones(2, dtype=T.complex64).unique_consecutive(), NotImplementedError, '"unique" not implemented'),
    ],
)
def test_unique_slices_that_cannot_be(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()


def test_what_is_laid_over_itself_otherwise_is_refused():
    """A value of another shape loses its leading ones and is stretched: then it lies otherwise than its target."""
    x = T.ones(1)
    for value in (x.view(1, 1), x.unflatten(0, (1, 1))[:]):
        with pytest.raises(RuntimeError, match="refer to a single memory location"):
            x[:] = value
    x[:] = x.view(1, 1)[0]
    x[0] = x.view(1, 1)
    y = T.zeros(2, 3)
    y[:] = T.tensor([[[1.0, 2.0, 3.0]]])
    assert y.tolist() == [[1.0, 2.0, 3.0]] * 2
    with pytest.raises(RuntimeError, match="must match the existing size|cannot be broadcast"):
        y[:] = T.ones(1, 2)


@pytest.mark.parametrize(
    ("index", "same"),
    [
        ([[0, 1], [1, 0]], ([0, 1], [1, 0])),
        ([[0, 1]], ([0, 1],)),
        ([0, slice(1, 2)], (0, slice(1, 2))),
        ([None, 0], (None, 0)),
        ([..., 0], (..., 0)),
        ([T.tensor([0, 1]), T.tensor([1, 0])], (T.tensor([0, 1]), T.tensor([1, 0]))),
        ([(0, 1), (1, 0)], ([0, 1], [1, 0])),
        ([[True, False]], ([True, False],)),
        ([[[0, 1]]], ([[0, 1]],)),
    ],
    ids=str,
)
def test_a_list_of_more_than_numbers_is_a_tuple_of_indices(index, same):
    x, y = T.arange(24.0).view(2, 3, 4), T.arange(24.0).view(2, 3, 4)
    with pytest.warns(UserWarning, match="Using a non-tuple sequence for multidimensional indexing is deprecated"):
        found = x[index]
    assert found.tolist() == x[same].tolist() and found.shape == x[same].shape
    with pytest.warns(UserWarning, match="Using a non-tuple sequence"):
        x[index] = -1.0
    y[same] = -1.0
    assert x.tolist() == y.tolist()


def test_a_list_of_numbers_is_one_index():
    x = T.arange(24.0).view(2, 3, 4)
    for index in ([1, 0], [True, False], [[1, 0]] * 32):
        assert x[index].tolist() == x[T.tensor(index)].tolist()


def test_numpys_integers_are_integers():
    np = pytest.importorskip("numpy")
    x = T.arange(6.0).view(2, 3)
    for one in (np.int64(1), np.int32(1), np.uint8(1)):
        assert x[one]._is_view() and x[one].tolist() == [3.0, 4.0, 5.0] and x[0, one].item() == 1.0
    x[np.int64(1)][0] = 7.0
    assert x.tolist() == [[0.0, 1.0, 2.0], [7.0, 4.0, 5.0]]


def test_masks_without_dimensions_in_index_put():
    x, yes, value = T.ones(3, 4), T.tensor(True), tensor(5.0)
    with pytest.raises(IndexError, match=r"^too many indices for tensor of dimension 2 \(got 3\)"):
        x.index_put((yes, yes, T.tensor([1])), value)
    assert x.index_put((yes, T.tensor([1])), value).tolist() == x.index_put((T.tensor([1]),), value).tolist()
    with pytest.raises((IndexError, RuntimeError)):
        x.index_put((yes, yes), value)
