"""Operators that pick and put by indices, on the GPU as on the CPU: numbers without dimensions, and empty tensors."""

import pytest

from library import NO_GPU, T

pytestmark = [pytest.mark.gradiron, pytest.mark.skipif(NO_GPU, reason="GRADIRON_TEST_NO_GPU is set")]


def outcome(function, device):
    try:
        out = function(lambda *values: T.tensor(*values, device=device))
    except (RuntimeError, IndexError) as error:
        return str(error).split("\n")[0]
    outs = out if isinstance(out, (tuple, list)) else [out]
    assert all(o.device.type == device for o in outs)
    return [(tuple(o.shape), o.tolist()) for o in outs]


NUMBERS = {
    "gather": lambda t: t(3.0).gather(0, t([0])),
    "gather with a number": lambda t: t(3.0).gather(0, t(0)),
    "gather from a line": lambda t: t([3.0, 4.0]).gather(0, t(1)),
    "gather again": lambda t: t(3.0).gather(0, t([0, 0])),
    "gather what is not there": lambda t: t(3.0).gather(0, t([0, 0]) + t([0, 1])).tolist(),
    "index_select": lambda t: t(3.0).index_select(0, t([0])),
    "index_select with a number": lambda t: t([3.0, 4.0]).index_select(0, t(1)),
    "take": lambda t: t(3.0).take(t([0, 0])),
    "take_along_dim": lambda t: T.take_along_dim(t(3.0), t([0]), 0),
    "scatter": lambda t: t(3.0).scatter(0, t([0]), t([5.0])),
    "scatter with a number": lambda t: t(3.0).scatter(0, t(0), t(5.0)),
    "scatter one": lambda t: t(3.0).scatter(0, t(0), 5.0),
    "scatter_add": lambda t: t(3.0).scatter_add(0, t([0]), t([5.0])),
    "scatter_reduce": lambda t: [t(3.0).scatter_reduce(0, t([0]), t([5.0]), how) for how in ("sum", "prod", "amax", "amin")],
    "index_add": lambda t: t(3.0).index_add(0, t([0]), t([5.0])),
    "index_copy": lambda t: t(3.0).index_copy(0, t(0), t(5.0)),
    "index_fill": lambda t: t(3.0).index_fill(0, t([0]), 5.0),
    "masked_fill": lambda t: t(3.0).masked_fill(t(True), 5.0),
    "masked_select": lambda t: t(3.0).masked_select(t(True)),
    "masked_scatter": lambda t: t(3.0).masked_scatter(t(True), t([5.0])),
    "put": lambda t: t(3.0).put_(t([0]), t([5.0])),
    "a mask": lambda t: t(3.0)[t(True)],
    "nonzero": lambda t: t(3.0).nonzero(),
    "sort": lambda t: t(3.0).sort(),
    "cummax": lambda t: t(3.0).cummax(0),
    "flip": lambda t: [t(3.0).flip(0), t(3.0).flip(())],
    "roll": lambda t: t(3.0).roll(1),
    "repeat_interleave": lambda t: t(3.0).repeat_interleave(2),
    "unfold": lambda t: t(3.0).unfold(0, 1, 1),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name):
    assert outcome(NUMBERS[name], "cuda") == outcome(NUMBERS[name], "cpu")


def picks(x):
    return T.tensor([1, 1], device=x.device)


EMPTY = {
    "unfold": lambda x: x.unfold(0, 2, 1),
    "unfold twice": lambda x: x.unfold(0, 2, 1).unfold(2, 2, 1),
    "as_strided": lambda x: x.as_strided((2, 0), (1, 1)),
    "expand": lambda x: x.expand(2, 4, 0, 3),
    "diagonal": lambda x: x.diagonal(),
    "index": lambda x: x[picks(x)],
    "index_select": lambda x: x.index_select(0, picks(x)),
    "gather": lambda x: x.gather(0, T.zeros(2, 0, 3, dtype=T.int64, device=x.device)),
    "flip": lambda x: x.flip(0),
    "cumsum": lambda x: x.cumsum(0),
    "sort": lambda x: x.sort(0)[0],
    "softmax": lambda x: x.softmax(0),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 0),
    "matmul": lambda x: x.transpose(1, 2) @ x,
    "max": lambda x: x.max(0)[0],
    "take": lambda x: x.take(T.zeros(0, dtype=T.int64, device=x.device)),
    "topk": lambda x: x.topk(2, 0)[0],
}


@pytest.mark.parametrize("name", EMPTY)
def test_gradients_of_what_is_empty(name):
    for device in ("cpu", "cuda"):
        x = T.zeros(4, 0, 3, device=device, requires_grad=True)
        EMPTY[name](x).sum().backward()
        T.cuda.synchronize()
        assert x.grad.shape == x.shape and x.grad.device.type == device


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x, i: x.gather(0, i), RuntimeError),
        (lambda x, i: x.scatter(0, i, x[:1]), RuntimeError),
        (lambda x, i: x.scatter_add(0, i, x[:1]), RuntimeError),
        (lambda x, i: x[i], IndexError),
    ],
)
def test_the_class_of_an_error_is_that_of_the_cpu(call, error):
    for device in ("cpu", "cuda"):
        with pytest.raises(error, match="index 9 is out of bounds for dimension 0 with size 3"):
            call(T.ones(3, device=device), T.tensor([9], device=device)).cpu()


@pytest.mark.parametrize("name", ["cholesky", "inv", "eigh", "lu_factor", "solve", "det", "slogdet", "qr", "svd"])
def test_factors_of_empty_matrices(name):
    x = T.ones(0, 0, device="cuda")
    function = getattr(T.linalg, name)
    made = function(x, T.ones(0, 2, device="cuda")) if name == "solve" else function(x)
    for part in made if isinstance(made, tuple) else (made,):
        assert part.device.type == "cuda"


def test_a_complex_value_does_not_fit_whole_numbers():
    for device in ("cpu", "cuda"):
        mask = T.tensor([True, False], device=device)
        with pytest.raises(RuntimeError, match="value cannot be converted to type int64_t without overflow"):
            T.ones(2, dtype=T.int64, device=device).masked_fill(mask, T.tensor(1j, device=device))


def test_a_refusal_names_the_operator():
    with pytest.raises(NotImplementedError, match='^"i0" is not implemented on the GPU'):
        T.special.i0(T.ones(2, device="cuda"))
