"""Groups of pointwise rows: one pass over memory gives the bits of the operators one after the other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library import T

pytestmark = pytest.mark.gradiron

FLOATS = [T.float32, T.float64, T.bfloat16, T.float16]
INTEGERS = [T.int64, T.int32, T.int16, T.uint8]
# A row, its operator, the number of its operands, and whether it takes integers.
ROWS = {
    "add": (lambda a, b: a + b, 2, True),
    "sub": (lambda a, b: a - b, 2, True),
    "mul": (lambda a, b: a * b, 2, True),
    "div": (lambda a, b: a / b, 2, False),
    "maximum": (T.maximum, 2, True),
    "minimum": (T.minimum, 2, True),
    "atan2": (T.atan2, 2, False),
    "neg": (T.neg, 1, True),
    "abs": (T.abs, 1, True),
    "sign": (T.sign, 1, True),
    "exp": (T.exp, 1, False),
    "sin": (T.sin, 1, False),
    "tanh": (T.tanh, 1, False),
    "sqrt": (T.sqrt, 1, False),
    "lt": (T.lt, 2, True),
    "eq": (T.eq, 2, True),
    "choose": (lambda yes, no, condition: T.where(condition != 0, yes, no), 3, True),
    "lerp": (T.lerp, 3, False),
    "bitwise_xor": (T.bitwise_xor, 2, "only"),
}
TENSORS_ONLY = {"maximum", "minimum", "atan2", "lerp"}
NUMBER_OPERANDS = {"add": 1, "sub": 1, "mul": 1, "div": 1, "lt": 1, "eq": 1, "lerp": 2, "choose": 1}


def draw_tensor(draw, shape, dtype):
    """A tensor that broadcasts to `shape`, in some layout."""
    own = [1 if draw(st.integers(0, 3)) == 0 else n for n in shape]
    own = own[draw(st.integers(0, len(own) - 1)) if draw(st.booleans()) else 0 :]
    values = T.randn(own) * 3 if dtype.is_floating_point else T.randint(0, 9, own)
    if draw(st.booleans()):
        # Every second element of a larger tensor, in reversed order of memory.
        values = values.mT if values.dim() > 1 else values
        values = values.repeat_interleave(2, dim=-1)[..., ::2]
        values = values.mT if values.dim() > 1 else values
    return values.to(dtype)


@given(st.data())
def test_a_group_is_its_operators(data):
    draw = data.draw
    T.manual_seed(draw(st.integers(0, 2**31)))
    shape = draw(st.sampled_from([(7,), (3, 5), (1, 4), (600,), (2, 3, 130), (40, 33)]))
    integers = draw(st.booleans())
    dtypes = INTEGERS if integers else FLOATS
    dtypes = draw(st.lists(st.sampled_from(dtypes), min_size=1, max_size=4))
    tensors = [draw_tensor(draw, shape, dtype) for dtype in dtypes]
    nodes = [("operand", k + 1) for k in range(len(tensors))]
    values = list(tensors)
    for _ in range(draw(st.integers(1, 6))):
        name = draw(
            st.sampled_from([name for name, row in ROWS.items() if row[2] is True or row[2] == ("only" if integers else False)])
        )
        of, count, _ = ROWS[name]
        chosen = [draw(st.sampled_from([k for k, value in enumerate(values) if value is not None])) for _ in range(count)]
        args = [values[k] for k in chosen]
        if name == "lerp" and len({arg.dtype for arg in args}) > 1 or any(arg.dtype == T.bool for arg in args[:2]):
            continue
        dtype = args[0].dtype
        for arg in args[1 : 2 if name in ("choose", "lerp") else count]:
            dtype = T.promote_types(dtype, arg.dtype)
        at = NUMBER_OPERANDS.get(name)
        if at is not None and draw(st.booleans()):
            number = draw(st.integers(-3, 3)) if integers else draw(st.sampled_from([0.5, -1.75, 0.1, 3.0]))
            dtype = args[0].dtype
            if dtype == T.uint8:
                number = abs(number)
            nodes.append(("constant", float(number)))
            values.append(None)
            chosen[at], args[at] = len(nodes) - 1, number
        nodes.append((name, chosen, None, dtype))
        values.append(of(*args))
    last = max(k for k, value in enumerate(values) if value is not None)
    if last < len(tensors):
        return
    expected = values[last].broadcast_to(shape)
    out = T.zeros(shape, dtype=expected.dtype)
    program = T._core.Program(nodes, len(tensors) + 1, 0, 0, [(0, last)], [])
    assert program.run([[out], *([tensor] for tensor in tensors)], [], [], True)
    T.testing.assert_close(out, expected, rtol=0, atol=0, equal_nan=True)


def test_results_that_are_operands():
    a, b = T.tensor([1.0, 2.0]), T.tensor([3.0, 4.0])
    nodes = [("operand", 0), ("operand", 1), ("add", [0, 1], None)]
    T._core.Program(nodes, 2, 0, 0, [(0, 2), (1, 0)], []).run([[a], [b]], [], [], True)
    assert a.tolist() == [4, 6]
    assert b.tolist() == [1, 2]
    circle = T._core.Program
    with pytest.raises(RuntimeError, match="copied to each other in a circle"):
        circle(nodes, 2, 0, 0, [(0, 1), (1, 0)], [])


def test_complex_sums_over_an_operand():
    """Complex loops may not write over what they read: such a result passes through tiles, whatever its length."""
    a = T.randn(5000, dtype=T.complex64)
    b = T.randn(5000, dtype=T.complex64)
    expected = a + b
    nodes = [("operand", 0), ("operand", 1), ("add", [0, 1], None, T.complex64)]
    assert T._core.Program(nodes, 2, 0, 0, [(0, 2)], []).run([[a], [b]], [], [], True)
    assert T.equal(a, expected)


def test_errors():
    with pytest.raises(RuntimeError, match="a program has no operation `softmax`"):
        T._core.Program([("operand", 0), ("softmax", [0], None)], 1, 0, 0, [(0, 1)], [])
    with pytest.raises(RuntimeError, match="uses a value, tensor or number that does not exist"):
        T._core.Program([("operand", 0), ("exp", [0, 0], None)], 1, 0, 0, [(0, 1)], [])
    with pytest.raises(RuntimeError, match="does not depend on the elements of a tensor"):
        T._core.Program([("operand", 0), ("constant", 1.0), ("exp", [1], None)], 1, 0, 0, [(0, 2)], [])
