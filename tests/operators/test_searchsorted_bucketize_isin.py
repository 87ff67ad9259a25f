"""`searchsorted`, `bucketize` and `isin`, against Python's bisect and sets."""

import bisect

import pytest

from library import T, python_ok, tensor

LINE = [1.0, 3.0, 3.0, 5.0, 7.0]
VALUES = [0.0, 1.0, 3.0, 4.0, 7.0, 9.0]
KINDS = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8")
SIDES = {False: bisect.bisect_left, True: bisect.bisect_right}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("right", [False, True])
def test_one_line(kind, right, device):
    line, values = tensor(LINE, kind, device), tensor(VALUES, kind, device)
    wanted = [SIDES[right](LINE, value) for value in VALUES]
    for found in (
        T.searchsorted(line, values, right=right),
        T.searchsorted(line, values, side="right" if right else "left"),
        T.bucketize(values, line, right=right),
    ):
        assert found.dtype is T.int64 and found.tolist() == wanted and found.device == values.device
    assert T.searchsorted(line, values.reshape(2, 3), right=right).tolist() == [wanted[:3], wanted[3:]]
    assert T.bucketize(values, line, right=right, out_int32=True).dtype is T.int32


def test_a_line_for_each(device):
    lines = T.tensor([LINE, [2.0, 2.0, 2.0, 8.0, 8.0]], device=device)
    values = T.tensor([[3.0, 6.0, 0.0], [2.0, 8.0, 9.0]], device=device)
    assert T.searchsorted(lines, values).tolist() == [[1, 4, 0], [0, 3, 5]]
    assert T.searchsorted(lines, values, right=True).tolist() == [[3, 4, 0], [3, 5, 5]]
    assert T.searchsorted(lines[:, None], values[:, None]).tolist() == [[[1, 4, 0]], [[0, 3, 5]]]


def test_many_values(device):
    line = T.arange(0.0, 3000.0, 3.0, device=device)
    values = T.arange(100_000, device=device) % 3100
    found = T.searchsorted(line, values.float())
    assert T.equal(found.cpu(), ((values.cpu() + 2) // 3).clamp(max=1000))
    assert T.equal(T.bucketize(values.float(), line), found)


def test_a_sorter(device):
    line, order = T.tensor([7.0, 1.0, 5.0, 3.0], device=device), T.tensor([1, 3, 2, 0], device=device)
    values = T.tensor([2.0, 5.0, 9.0], device=device)
    assert T.searchsorted(line, values, sorter=order).tolist() == [1, 2, 4]
    assert T.searchsorted(line, values, sorter=order, right=True, out_int32=True).tolist() == [1, 3, 4]
    lines, orders = T.stack([line, line]), T.stack([order, order])
    assert T.searchsorted(lines, T.stack([values, values]), sorter=orders).tolist() == [[1, 2, 4]] * 2


def test_numbers():
    line = T.tensor([1.0, 3.0])
    for value, wanted in ((3, 1), (3.5, 2), (True, 0), (T.tensor(2), 1)):
        found = T.searchsorted(line, value)
        assert found.shape == () and found.item() == wanted
        assert T.bucketize(value, line).item() == wanted
    # Whole numbers are compared as what they are beside the value.
    assert T.searchsorted(line.long(), 2.5).item() == 1 and T.searchsorted(line.half(), 3.5).item() == 2
    assert T.searchsorted(line, self=2).item() == 1 and T.bucketize(self=2, boundaries=line).item() == 1


def test_no_number_comes_last(device):
    nan, inf = float("nan"), float("inf")
    line = T.tensor([1.0, inf, nan], device=device)
    values = T.tensor([nan, inf, 0.0, -inf], device=device)
    assert T.searchsorted(line[:2], values).tolist() == [2, 1, 0, 0]
    assert T.searchsorted(line[:2], values, right=True).tolist() == [2, 2, 0, 0]
    assert T.searchsorted(T.zeros(0, device=device), values).tolist() == [0, 0, 0, 0]
    assert T.searchsorted(line, T.zeros(0, 3, device=device)).shape == (0, 3)


def test_dtypes_are_joined():
    line = T.tensor([1, 3, 5])
    assert T.searchsorted(line, T.tensor([3.5])).tolist() == [2]
    assert T.searchsorted(line.float(), T.tensor([3], dtype=T.float64)).tolist() == [1]
    for kind, name in ((T.bool, "Bool"), (T.complex64, "ComplexFloat")):
        with pytest.raises(NotImplementedError, match=f"\"searchsorted_out_cpu\" not implemented for '{name}'"):
            T.searchsorted(line.to(kind), line.to(kind))


def test_out():
    line, values = T.tensor([1.0, 3.0]), T.tensor([2.0, 4.0])
    out = T.empty(0, dtype=T.int64)
    assert T.searchsorted(line, values, out=out) is out and out.tolist() == [1, 2]
    narrow = T.empty(2, dtype=T.int32)
    assert T.bucketize(values, line, out_int32=True, out=narrow) is narrow and narrow.tolist() == [1, 2]
    with pytest.raises(RuntimeError, match=r"torch.searchsorted\(\): output tensor's dtype is wrong.*dtype Int"):
        T.searchsorted(line, values, out=narrow)
    values.requires_grad_()
    assert not T.searchsorted(line, values).requires_grad and T.searchsorted(line, values, out=out).tolist() == [1, 2]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda b: T.searchsorted(b, b, side="foo"), "side can only be 'left' or 'right' but got foo"),
        (lambda b: T.searchsorted(b, b, side="left", right=True), "side and right can't be set to opposites"),
        (lambda b: T.searchsorted(b[0], b), "boundaries tensor should have positive dimension, but got 0 dimension"),
        (
            lambda b: T.searchsorted(T.stack([b, b]), 3),
            "input value can be a scalar only when boundaries tensor dimension is 1",
        ),
        (lambda b: T.searchsorted(T.stack([b, b]), b), "boundaries tensor should be 1 dimension or the first N-1 dimensions"),
        (lambda b: T.searchsorted(b, b, sorter=T.tensor([0])), "boundary and sorter must have the same size"),
        (lambda b: T.searchsorted(b, b, sorter=T.tensor([0, 1, 2]).int()), "sorter must be a tensor of long dtype"),
        (lambda b: T.searchsorted(b, b, sorter=T.tensor([0, 1, 9])), "sorter index out of range"),
        (lambda b: T.searchsorted(b, b, sorter=T.tensor([0, -1, 1])), "sorter index out of range"),
        (lambda b: T.bucketize(b, T.stack([b, b])), r"boundaries tensor must be 1 dimension, but got dim\(2\)"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(T.tensor([1.0, 2.0, 3.0]))


def test_wrong_types():
    b = T.tensor([1.0])
    for call in (
        lambda: T.searchsorted(b, None),
        lambda: T.searchsorted(b, [1.0]),
        lambda: T.bucketize([1.0], b),
        lambda: T.isin(b, [1.0]),
        lambda: T.isin(2, 2),
        lambda: T.isin(b, b, True),
    ):
        with pytest.raises(TypeError, match="received an invalid combination of arguments"):
            call()


def test_copies_are_told_once():
    """In a process of its own: it is told once in each."""
    told = python_ok(
        "import warnings\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    for _ in range(2):\n"
        "        T.searchsorted(T.arange(4.0), T.ones(2, 3).t())\n"
        "print(len(seen), seen[0].message)"
    )
    assert told.startswith("1 torch.searchsorted(): input value tensor is non-contiguous, this will lower the performance")


@pytest.mark.filterwarnings("ignore:torch.searchsorted")
def test_samples():
    line, values = T.tensor(LINE), T.tensor([VALUES, VALUES[::-1]])
    one = [T.searchsorted(line, v).tolist() for v in values]
    assert T.func.vmap(lambda v: T.searchsorted(line, v))(values).tolist() == one
    lines = T.stack([line, line + 1])
    each = [T.searchsorted(a, v).tolist() for a, v in zip(lines, values)]
    assert T.func.vmap(T.searchsorted)(lines, values).tolist() == each
    assert T.func.vmap(lambda a: T.searchsorted(a, values[0]))(lines).tolist() == [
        T.searchsorted(a, values[0]).tolist() for a in lines
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [0, 1, 3, 60])
def test_membership(kind, count, device):
    elements, among = [i % 100 for i in range(120)], [3 * i % 100 for i in range(count)]
    x, y = tensor(elements, kind, device), tensor(among, kind, device)
    wanted = [e in among for e in elements]
    assert T.isin(x, y).tolist() == wanted and T.isin(x, y).dtype is T.bool
    assert T.isin(x, y, invert=True).tolist() == [not w for w in wanted]
    assert T.isin(x[:100], y[:20], assume_unique=True).tolist() == [e in among[:20] for e in elements[:100]]
    assert T.isin(x.reshape(4, 30), y).tolist() == [wanted[i : i + 30] for i in range(0, 120, 30)]


def test_membership_of_numbers():
    x = T.tensor([1, 2, 3])
    assert T.isin(x, 2).tolist() == [False, True, False] and T.isin(2, x).item() is True
    assert T.isin(x, 2.5).tolist() == [False] * 3 and T.isin(x, test_element=3).tolist() == [False, False, True]
    assert T.isin(element=9, test_elements=x).item() is False
    assert T.isin(x.double(), T.tensor([2, 7])).tolist() == [False, True, False]


def test_no_number_is_a_member(device):
    nan, inf = float("nan"), float("inf")
    x = T.tensor([nan, 1.0, inf, 5.0], device=device)
    few, many = T.tensor([nan], device=device), T.tensor([nan] * 50 + [1.0] * 50, device=device)
    assert T.isin(x, few).tolist() == [False] * 4 and T.isin(x, many).tolist() == [False, True, False, False]
    assert T.isin(x, T.cat([many, few, T.tensor([inf], device=device)])).tolist() == [False, True, True, False]


def test_membership_refused():
    x = T.tensor([1, 2])
    for call, name in (
        (lambda: T.isin(x > 1, x > 1), "Bool"),
        (lambda: T.isin(x, True), "Bool"),
        (lambda: T.isin(x, 1j), "ComplexDouble"),
        (lambda: T.isin(x.to(T.complex64), x), "ComplexFloat"),
    ):
        with pytest.raises(NotImplementedError, match=rf"Unsupported input type encountered for isin\(\): {name}"):
            call()
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype bool, but got float instead"):
        T.isin(x, x, out=T.empty(0))
    out = T.empty(0, dtype=T.bool)
    assert T.isin(x, x, out=out) is out and out.tolist() == [True, True]
