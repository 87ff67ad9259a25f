"""How steps walk over memory: layouts, shared memory, sizes, dtypes, threads, and what they leave alone."""

import pytest

from library import IS_GRADIRON, T, compare, flat, python_ok

O = T.optim  # noqa: E741
NAMES = ["SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta", "ASGD", "RMSprop", "Rprop", "Adafactor"]


def numbers(*shape, seed=0, dtype=None):
    count = 1
    for n in shape:
        count *= n
    made = T.tensor([((i * 29 + seed * 7) % 23 - 11) / 4 for i in range(count)], dtype=T.float64)
    return made.reshape(shape).to(dtype or T.float32)


def walk(name, param, grads, **options):
    """The values of a parameter after a step along each of the gradients."""
    optim = getattr(O, name)([param], **options)
    for grad in grads:
        param.grad = grad
        optim.step()
    return optim


def gradients(*shape, dtype=None):
    return [numbers(*shape, seed=k, dtype=dtype) for k in range(1, 4)]


LAYOUTS = {
    "transposed": lambda x: x.t().contiguous().t(),
    "with gaps": lambda x: T.stack([x, x + 1], -1)[..., 0],
    "a part": lambda x: T.cat([x + 5, x, x - 5])[x.shape[0] : 2 * x.shape[0]],
    "columns": lambda x: T.cat([x + 5, x], 1)[:, x.shape[1] :],
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", LAYOUTS)
def test_layouts(name, kind):
    plain = numbers(5, 7).requires_grad_()
    walk(name, plain, gradients(5, 7), lr=0.1)
    param = LAYOUTS[kind](numbers(5, 7)).detach().requires_grad_()
    optim = walk(name, param, gradients(5, 7), lr=0.1)
    if name == "Adafactor":
        assert flat(param) == pytest.approx(flat(plain), rel=1e-5)
    else:
        assert flat(param) == flat(plain)
    other = numbers(5, 7).requires_grad_()
    walk(name, other, [LAYOUTS[kind](grad) for grad in gradients(5, 7)], lr=0.1)
    assert flat(other) == pytest.approx(flat(plain), rel=1e-5 if name == "Adafactor" else 0, abs=0)
    if kind == "transposed" and name == "Adam":
        assert optim.state[param]["exp_avg"].stride() == param.stride()


def test_what_lies_beside_a_parameter_stays():
    whole = numbers(6, 4)
    before = whole.clone()
    part = whole[2:4, 1:3].requires_grad_()
    walk("Adam", part, [T.ones(2, 2)], lr=0.5)
    changed = whole.detach() != before
    assert changed.sum().item() == 4 and changed[2:4, 1:3].all()


def test_parameters_that_share_a_buffer():
    buffer = T.zeros(100_000)
    parts = [part.requires_grad_() for part in buffer.split(10_000)]
    optim = O.SGD(parts, lr=1.0, momentum=0.5)
    for k, part in enumerate(parts):
        part.grad = T.full_like(part, float(k))
    optim.step(), optim.step()
    assert [part[0].item() for part in parts] == [-k * 2.5 for k in range(10)]
    assert buffer.detach().sum().item() == -45 * 2.5 * 10_000


def test_the_same_memory_twice():
    base = T.zeros(40_000)
    one, two = base.view(-1).detach().requires_grad_(), base.view(-1).detach().requires_grad_()
    optim = O.SGD([one, two], lr=1.0)
    one.grad = two.grad = T.ones(40_000)
    optim.step()
    assert base.min().item() == base.max().item() == -2.0


@pytest.mark.gradiron
def test_a_gradient_that_is_the_parameter():
    for size in (8, 50_000):
        base = T.ones(size)
        param = base.detach().requires_grad_()
        param.grad = base.detach()
        O.SGD([param], lr=0.25).step()
        assert base.min().item() == base.max().item() == 0.75
        # The gradient in another order: all of it is read before any of it is written.
        square = T.arange(4.0).reshape(2, 2)
        param = square.detach().requires_grad_()
        param.grad = square.detach().t()
        O.SGD([param], lr=1.0).step()
        assert square.tolist() == [[0.0, -1.0], [1.0, 0.0]]


def test_elements_that_stand_for_several_are_refused():
    param = T.zeros(1).expand(3).requires_grad_()
    param.grad = T.ones(3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        O.SGD([param], lr=1.0).step()
    param = T.zeros(3, requires_grad=True)
    param.grad = T.ones(1).expand(3)
    O.SGD([param], lr=1.0).step()
    assert param.tolist() == [-1.0] * 3


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 511, 512, 513, 1025, 40_000, 70_001])
def test_sizes(size):
    for name in ("Adam", "RMSprop", "SGD"):
        param = numbers(size).requires_grad_()
        places = sorted({0, size // 2, size - 1} & {*range(size)})
        single = [numbers(size)[i : i + 1].clone().requires_grad_() for i in places]
        walk(name, param, gradients(size), lr=0.1)
        for i, one in zip(places, single):
            walk(name, one, [grad[i : i + 1] for grad in gradients(size)], lr=0.1)
            if IS_GRADIRON:
                assert one.item() == param[i].item()
            else:
                assert one.item() == pytest.approx(param[i].item(), rel=1e-4)


@pytest.mark.gradiron
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["SGD", "Adam", "Rprop"])
def test_halves_of_any_layout(name, dtype):
    kind = getattr(T, dtype)
    plain = numbers(8, 64, dtype=kind).requires_grad_()
    walk(name, plain, gradients(8, 64, dtype=kind), lr=0.1)
    param = LAYOUTS["transposed"](numbers(8, 64, dtype=kind)).detach().requires_grad_()
    walk(name, param, gradients(8, 64, dtype=kind), lr=0.1)
    compare(flat(param), flat(plain), 0, 0, name)
    assert param.dtype == kind


@pytest.mark.gradiron
def test_any_number_of_threads_gives_the_same_bits():
    code = (
        "ps = [T.linspace(-1, 1, n).requires_grad_() for n in (10, 100_000, 3, 70_000)]\n"
        "o = T.optim.NAdam(ps)\n"
        "for p in ps * 3:\n    p.grad = p.detach().cos()\n    o.step()\n"
        "print([p.detach().double().sum().item().hex() for p in ps])"
    )
    assert len({python_ok(code, env={"OMP_NUM_THREADS": str(n)}) for n in (1, 2, 5)}) == 1


def test_gradients_are_not_written():
    for name in NAMES:
        param, grad = numbers(6).requires_grad_(), numbers(6, seed=3)
        before = grad.clone()
        walk(name, param, [grad], maximize=True)
        assert grad.tolist() == before.tolist() and grad._version == 0, name


def test_conjugated_and_negated_gradients():
    param = T.zeros(3, dtype=T.complex64, requires_grad=True)
    param.grad = T.tensor([1 + 2j, 3 - 1j, 2j]).conj()
    O.SGD([param], lr=1.0).step()
    assert param.tolist() == [-1 + 2j, -3 - 1j, 2j]
    real = T.zeros(3, requires_grad=True)
    real.grad = T.tensor([1 + 2j, 3 - 1j, 2j]).conj().imag
    O.Adam([real], lr=1.0).step()
    assert real.tolist() == pytest.approx([1.0, -1.0, 1.0])


def test_gradients_of_another_shape_or_kind_are_refused():
    param = T.zeros(3, requires_grad=True)
    sgd = O.functional.sgd
    options = dict(weight_decay=0, momentum=0, lr=1.0, dampening=0, nesterov=False, maximize=False)
    with T.no_grad():
        with pytest.raises(RuntimeError, match=r"The size of tensor a \(3\) must match the size of tensor b \(2\)"):
            sgd([param], [T.ones(2)], [], **options)
        sgd([param], [T.ones(1)], [], **options)
        assert param.tolist() == [-1.0] * 3
        sgd([param], [T.ones(3, dtype=T.float64)], [], **options)
        assert param.tolist() == [-2.0] * 3 and param.dtype == T.float32


@pytest.mark.gradiron
def test_a_step_that_is_refused_has_done_nothing():
    good, bad = T.zeros(3, requires_grad=True), T.zeros(1).expand(3).requires_grad_()
    optim = O.Adam([good, bad])
    good.grad = bad.grad = T.ones(3)
    with pytest.raises(RuntimeError, match="single memory location"):
        optim.step()
    assert good.tolist() == [0.0] * 3 and optim.state[good]["step"].item() == 0
    assert optim.state[good]["exp_avg"].tolist() == [0.0] * 3


def test_parameters_of_inference_mode():
    with T.inference_mode():
        param = T.zeros(2)
        param.grad = T.ones(2)
        O.SGD([param], lr=1.0).step()
        assert param.tolist() == [-1.0, -1.0]
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"):
        with T.no_grad():
            O.functional.sgd(
                [param], [T.ones(2)], [], weight_decay=0, momentum=0, lr=1.0, dampening=0, nesterov=False, maximize=False
            )


def test_special_values_pass_as_in_pytorch():
    nan, inf = float("nan"), float("inf")
    for name, expected in (
        ("Adam", ["nan", "nan", "nan", "0.0"]),
        ("SGD", ["nan", "-inf", "inf", "0.0"]),
        ("Adamax", ["nan", "nan", "nan", "0.0"]),
    ):
        param = T.zeros(4, requires_grad=True)
        walk(name, param, [T.tensor([nan, inf, -inf, 0.0])], lr=1.0)
        assert [str(abs(x) if x == 0 else x) for x in param.tolist()] == expected, name
