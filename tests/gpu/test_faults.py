"""What kernels find wrong with values: nobody waits for it, but it is told, with the operator and the line that asked."""

import pytest

from library import NO_GPU, T, python

pytestmark = [pytest.mark.gradiron, pytest.mark.skipif(NO_GPU, reason="GRADIRON_TEST_NO_GPU is set")]

F = T.nn.functional


def gpu(*values, kind=None):
    return T.tensor(*values, dtype=kind, device="cuda")


X, BAD = [[1.0, 2.0], [3.0, 4.0]], [0, 5]
WRONG = {
    "index": lambda x, i: x[i],
    "index_put": lambda x, i: x.index_put((i,), gpu(1.0)),
    "index_add": lambda x, i: x.index_add(0, i, x),
    "index_select": lambda x, i: x.index_select(0, i),
    "index_copy": lambda x, i: x.index_copy(0, i, x),
    "index_fill": lambda x, i: x.index_fill(0, i, 1.0),
    "gather": lambda x, i: x.gather(0, i[:, None]),
    "scatter": lambda x, i: x.scatter(0, i[:, None], x),
    "take": lambda x, i: x.take(i),
}


@pytest.fixture(autouse=True)
def nothing_untold():
    yield
    T.cuda.synchronize()


@pytest.mark.parametrize("op", WRONG)
def test_a_bad_index_names_its_operator(op):
    WRONG[op](gpu(X), gpu(BAD))
    kind = RuntimeError if op in ("index_add", "gather", "scatter") else IndexError  # As on the CPU.
    with pytest.raises(
        kind, match=f"^index 5 is out of bounds for dimension 0 with size [24]\n  operator: {op}\n  where: "
    ) as told:
        T.cuda.synchronize()
    assert type(told.value) is kind
    T.cuda.synchronize()  # told once


def test_it_is_told_with_any_value_that_is_read():
    x, y = gpu(X), gpu([1.0])
    x[gpu(BAD)]
    with pytest.raises(IndexError, match="operator: index\n"):
        (y + 1).item()


def test_the_first_of_several_is_told():
    x = gpu(X)
    x.index_select(0, gpu([7]))
    x.gather(0, gpu([[9, 9]]))
    with pytest.raises(IndexError, match="index 7 .*\n  operator: index_select"):
        x.tolist()
    assert x.tolist() == X


def test_the_line_where_lines_are_kept():
    T.autograd.set_source_lines(True)
    try:
        x = gpu(X).index_select(0, gpu(BAD))  # the line
    finally:
        T.autograd.set_source_lines(False)
    with pytest.raises(IndexError) as error:
        x.tolist()
    text = str(error.value)
    number = text.split("test_faults.py:")[1].split("\n")[0]
    assert "operator: index_select at " in text and "where" not in text
    with open(__file__) as file:
        assert "# the line" in file.read().split("\n")[int(number) - 1]


def test_in_a_backward():
    x = gpu(X).requires_grad_()
    i = gpu([0, 1])
    y = x[i].sum()
    i.data.fill_(5)
    y.backward()
    with pytest.raises(IndexError, match="operator: index_put"):
        T.cuda.synchronize()


def test_what_is_never_read_is_told_at_the_end():
    program = "import gradiron as T\nx = T.ones(2, device='cuda')\nx[T.tensor([3], device='cuda')]\n"
    done = python(program)
    assert done.returncode == 0
    assert "RuntimeWarning: The GPU reported an error" in done.stderr
    assert "index 3 is out of bounds for dimension 0 with size 2" in done.stderr and "operator: index" in done.stderr
    done = python(program.replace("[3]", "[1]"))
    assert done.returncode == 0 and "reported an error" not in done.stderr


PROBABILITIES = "Expected p_in >= 0 && p_in <= 1 to be true, but got false.|all elements of input should be between 0 and 1"


@pytest.mark.parametrize("value", [1.5, -0.25, float("nan")])
@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_what_is_no_probability(value, device, kind):
    p = T.tensor([[0.0, 1.0], [0.5, value]], dtype=getattr(T, kind), device=device)
    target = T.zeros_like(p)
    for draw in (T.bernoulli, lambda p: T.zeros_like(p).bernoulli_(p), lambda p: F.binary_cross_entropy(p.t(), target)):
        with pytest.raises(RuntimeError, match=PROBABILITIES):
            draw(p)
            T.cuda.synchronize()
    inside = p[0]
    T.bernoulli(inside)
    F.binary_cross_entropy(inside, target[0])
    T.cuda.synchronize()


def test_what_is_no_probability_names_its_operator():
    F.binary_cross_entropy(gpu([2.0]), gpu([1.0]))
    with pytest.raises(RuntimeError, match="between 0 and 1\n  operator: binary_cross_entropy\n"):
        T.cuda.synchronize()


def test_waits():
    """One wait for each value that is read, however many were read before."""
    x = T.ones(4, device="cuda")
    T.cuda.synchronize()
    count = T._core._gpu.waits
    for _ in range(20):
        before = count()
        (x + 1).sum().item()
        assert count() - before == 1
    for _ in range(20):
        before = count()
        x = x + 1
        T.cuda.synchronize()
        assert count() - before == 1
