"""Arguments of the wrong kind: a number is no list of one, and a line with one element is no number."""

import pytest

from library import T

X = T.arange(4.0)
SQUARE = T.arange(4.0).view(2, 2)
WANTED = "argument '{}'.* must be tuple of ints, not int"


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda: X.as_strided(2, 1), "size"),
        (lambda: T.as_strided(X, (2,), 1), "stride"),
        (lambda: X.new_full(3, 3), "size"),
        (lambda: T.full(3, 3), "size"),
        (lambda: T.full(size=3, fill_value=3), "size"),
        (lambda: T.empty_strided(3, 1), "size"),
        (lambda: X.new_empty_strided(3, 1), "size"),
        (lambda: SQUARE.rot90(1, 0), "dims"),
        (lambda: T.flip(X, 0), "dims"),
        (lambda: X.flip(dims=0), "dims"),
        (lambda: T.tile(X, 2), "dims"),
        (lambda: X.repeat(repeats=2), "repeats"),
        (lambda: T.permute(X, 0), "dims"),
        (lambda: X.unflatten(0, 4), "sizes"),
        (lambda: T.reshape(X, 4), "shape"),
        (lambda: T.broadcast_to(X, 4), "size"),
        (lambda: T.zeros(size=3), "size"),
        (lambda: X.new_zeros(size=3), "size"),
        (lambda: X.split_with_sizes(4), "split_sizes"),
        (lambda: T.nn.functional.layer_norm(X, 4), "normalized_shape"),
    ],
)
def test_a_number_is_no_list(call, name):
    with pytest.raises(TypeError, match=WANTED.format(name)):
        call()


def test_where_numbers_stand_for_a_list():
    one = T.ones(1)
    assert one.expand(3).shape == one.repeat(3).shape == one.tile(3).shape == one.broadcast_to(3).shape == (3,)
    assert T.zeros(3).shape == T.empty(3).shape == X.new_zeros(3).shape == T.rand(3).shape == (3,)
    assert X.reshape(4).shape == X.view(4).shape == X.permute(0).shape == X.flip(0).shape == (4,)
    assert X.sum(0) == T.sum(X, dim=0) == 6 and T.roll(X, 1, 0).tolist() == X.roll(shifts=1, dims=0).tolist() == [3, 0, 1, 2]
    assert X.amax(0) == T.amax(X, dim=0) == 3 and SQUARE.movedim(0, 1).tolist() == [[0, 2], [1, 3]]


def test_several_numbers_are_one_list_where_the_list_is_the_only_parameter():
    assert T.ones(1, 1, 3).squeeze(0, 1).shape == (3,) and SQUARE.permute(1, 0).tolist() == [[0, 2], [1, 3]]
    assert [part.shape for part in SQUARE.hsplit(1, 2)] == [(2, 1), (2, 1), (2, 0)] and SQUARE.count_nonzero(0, 1) == 3
    for call in (SQUARE.var, SQUARE.std):
        with pytest.raises(TypeError, match="received an invalid combination of arguments"):
            call(0, 1)


LINE = T.tensor([1])


@pytest.mark.parametrize(
    "call, name, wanted",
    [
        (lambda: SQUARE.transpose(0, LINE), "dim1", "int"),
        (lambda: SQUARE.unsqueeze(LINE), "dim", "int"),
        (lambda: SQUARE.softmax(LINE), "dim", "int"),
        (lambda: SQUARE.cumsum(LINE), "dim", "int"),
        (lambda: T.cat([SQUARE], LINE), "dim", "int"),
        (lambda: SQUARE.chunk(LINE), "chunks", "int"),
        (lambda: SQUARE.diagonal(LINE), "offset", "int"),
        (lambda: SQUARE.unbind(LINE), "dim", "int"),
        (lambda: T.full((2,), LINE), "fill_value", "Number"),
        (lambda: T.nn.functional.dropout(X, T.tensor([0.5])), "p", "float"),
        (lambda: T.full((2,), T.tensor(1.0, requires_grad=True)), "fill_value", "Number"),
    ],
)
def test_a_line_is_no_number(call, name, wanted):
    with pytest.raises(TypeError, match=f"argument '{name}' \\(position .\\) must be {wanted}, not Tensor"):
        call()


def test_tensors_without_dimensions_are_numbers():
    one = T.tensor(1)
    assert SQUARE.transpose(0, one).tolist() == [[0, 2], [1, 3]] and SQUARE.sum(one).tolist() == [1, 5]
    assert T.full((2,), one).tolist() == [1, 1] and T.add(X, X, alpha=T.tensor(2)).tolist() == [0, 3, 6, 9]
    # Where sizes are wanted, so are lines with one element.
    assert T.zeros(LINE).shape == (1,) and SQUARE.select(0, LINE).tolist() == [2, 3] and T.eye(LINE).tolist() == [[1]]


@pytest.mark.parametrize("name", ["sum", "prod"])
def test_out_is_for_sums_over_dimensions(name):
    call, out = getattr(T, name), T.empty(())
    for options in ({"out": out}, {"out": None}):
        with pytest.raises(TypeError, match=f"^{name}\\(\\) received an invalid combination of arguments"):
            call(X, **options)
    assert call(X, 0, out=out) is out


def test_numpys_names_of_two_operands():
    assert T.add(x1=T.ones(2), x2=T.ones(2)).tolist() == T.maximum(x1=T.ones(2), x2=T.full((2,), 2.0)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_medians_along_a_dimension_take_out(name):
    x, call = T.tensor([[3.0, 1.0, 2.0], [5.0, 4.0, 6.0]]), getattr(T, name)
    out = T.empty(2, 1), T.empty(2, 1, dtype=T.int64)
    values, indices = call(x, 1, True, out=out)
    assert values is out[0] and indices is out[1]
    assert values.tolist() == [[2.0], [5.0]] and indices.tolist() == [[2], [0]]
    assert call(x, 1, keepdim=False, out=None).values.tolist() == [2.0, 5.0]


def test_parts_of_complex_numbers_are_real():
    x = T.ones(2, dtype=T.complex64)
    for part in ("real", "imag"):
        with pytest.raises(RuntimeError, match="^value cannot be converted to type float without overflow"):
            setattr(x, part, 1j)
        for value, kind in (("s", "str"), ([1, 2], "list")):
            with pytest.raises(TypeError, match=f"^can't assign a {kind} to a torch.FloatTensor"):
                setattr(x, part, value)
        setattr(x, part, 2)
        setattr(x, part, x.real * 2)
    assert x.tolist() == [4 + 8j, 4 + 8j]


def test_none_is_given_where_something_must_be():
    x = T.tensor([[1.0, 2.0], [3.0, 5.0]])
    assert T.equal(T.std(x, None, True, True), T.std(x).reshape(1, 1))
    assert T.equal(T.var(x, dim=None, unbiased=False), T.var(x, correction=0))
