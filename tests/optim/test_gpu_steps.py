"""Steps on the GPU: the numbers of the CPU, one launch a parameter, and nothing read back."""

import copy

import optim_cases as cases
import pytest

from library import NO_GPU, T, compare, flat

pytestmark = [pytest.mark.gradiron, pytest.mark.skipif(NO_GPU, reason="asked for")]
O = T.optim  # noqa: E741
STEPPED = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1, "maximize": True}),
    ("AdamW", {"lr": 0.1, "fused": True}),
    ("Adamax", {"lr": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.1, "betas": (0.8, 0.9)}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}),
    ("Adadelta", {}),
    ("ASGD", {"lr": 0.1, "t0": 1}),
    ("RMSprop", {"lr": 0.1, "centered": True, "momentum": 0.9}),
    ("Rprop", {"lr": 0.1}),
    ("Adafactor", {"lr": 0.1}),
]


def walked(name, options, device, dtype=T.float32, steps=3, shapes=cases.SHAPES):
    params = cases.parameters(T, dtype, device, shapes)
    optim = getattr(O, name)(params, **options)
    for step in range(steps):
        cases.set_gradients(T, params, step)
        optim.step()
    return params, optim


@pytest.mark.parametrize("name, options", STEPPED, ids=str)
def test_the_numbers_of_the_cpu(name, options):
    here, _ = walked(name, options, "cpu")
    there, optim = walked(name, options, "cuda")
    for a, b in zip(there, here):
        assert a.device.type == "cuda" and a.stride() == b.stride()
        compare(flat(a), flat(b), 2e-4 if options.get("fused") else 1e-5, 1e-6, name)
    for p in there:
        kinds = {key: value.device.type for key, value in optim.state[p].items()}
        beside = name not in ("ASGD",) and not options.get("fused")
        assert kinds.pop("step", "cpu") == ("cpu" if beside else "cuda")
        assert all(kind == "cuda" for key, kind in kinds.items() if key != "mu_product")


CAPTURABLE = ["Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adadelta", "ASGD", "RMSprop", "Rprop"]


@pytest.mark.parametrize("name", CAPTURABLE)
def test_numbers_that_stay_on_the_gpu(name):
    here, _ = walked(name, {"lr": 0.1}, "cpu")
    rate = T.tensor(0.1, device="cuda") if name != "Rprop" else 0.1
    there, optim = walked(name, {"lr": rate, "capturable": True}, "cuda")
    for a, b in zip(there, here):
        # 1 - 0.999 is not much of a float32.
        compare(flat(a), flat(b), 1e-3, 1e-4, name)
    for state in optim.state.values():
        assert state["step"].device.type == "cuda" and state["step"].item() == 3.0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64"])
def test_other_dtypes(dtype):
    kind = getattr(T, dtype)
    for name, options in (("SGD", {"lr": 0.5, "momentum": 0.9}), ("Adam", {"lr": 0.5, "eps": 1e-2})):
        here, _ = walked(name, options, "cpu", kind)
        there, _ = walked(name, options, "cuda", kind)
        loose = {"float16": 2e-3, "bfloat16": 1.6e-2, "complex64": 1e-5}.get(dtype, 1e-13)
        for a, b in zip(there, here):
            compare(cases.few(a), cases.few(b), loose, loose, f"{name} {dtype}")
    if dtype in ("float16", "bfloat16"):
        here, _ = walked("Adam", {"lr": 0.5}, "cpu", kind)
        there, _ = walked("Adam", {"lr": 0.5, "capturable": True}, "cuda", kind)
        compare(cases.few(there[0]), cases.few(here[0]), 0.05, 0.05, dtype)


def test_one_launch_for_all_parameters_and_nothing_read():
    params = [T.ones(n, device="cuda", requires_grad=True) for n in (3, 64, 1000)]
    for p in params:
        p.grad = T.ones_like(p)
    for name, options, launches in (
        ("SGD", {}, 1),
        ("AdamW", {}, 1),
        ("RMSprop", {"momentum": 0.9}, 1),
        ("Adam", {"capturable": True}, 6),
    ):
        optim = getattr(O, name)(params, **options)
        optim.step()
        T.cuda.synchronize()
        before, submits = T.cuda.dispatches(), T.cuda.submits()
        optim.step()
        assert (T.cuda.dispatches() - before, T.cuda.submits() - submits) == (launches, 0), name


def test_parameters_that_share_a_buffer():
    buffer = T.zeros(64, device="cuda")
    parts = [part.requires_grad_() for part in buffer.split(16)]
    optim = O.SGD(parts, lr=1.0, momentum=0.5)
    for k, part in enumerate(parts):
        part.grad = T.full_like(part, float(k))
    optim.step(), optim.step()
    assert flat(buffer)[::16] == [-k * 2.5 for k in range(4)]


def test_parameters_on_both_devices():
    here, there = T.ones(3, requires_grad=True), T.ones(3, device="cuda", requires_grad=True)
    optim = O.Adam([here, there], lr=0.5)
    for _ in range(2):
        here.grad, there.grad = T.ones(3), T.ones(3, device="cuda")
        optim.step()
    assert flat(there) == pytest.approx(flat(here))
    param = T.ones(3, requires_grad=True)
    with T.no_grad(), pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        O.functional.sgd(
            [param],
            [T.ones(3, device="cuda")],
            [],
            weight_decay=0,
            momentum=0,
            lr=1.0,
            dampening=0,
            nesterov=False,
            maximize=False,
        )


def test_states_go_between_devices():
    here, optim = walked("Adam", {"lr": 0.1}, "cpu")
    there = [p.detach().to("cuda").requires_grad_() for p in here]
    other = O.Adam(there, lr=0.1)
    # The count of steps is taken over as it is, not copied.
    other.load_state_dict(copy.deepcopy(optim.state_dict()))
    assert other.state[there[0]]["exp_avg"].device.type == "cuda" and other.state[there[0]]["step"].device.type == "cpu"
    for params, own in ((here, optim), (there, other)):
        cases.set_gradients(T, params, 4)
        own.step()
    for a, b in zip(there, here):
        compare(flat(a), flat(b), 1e-5, 1e-6, "")


def test_a_capturable_step_of_doubles():
    p = T.ones(3, device="cuda", dtype=T.float64, requires_grad=True)
    p.grad = T.ones_like(p)
    O.Adam([p], capturable=True).step()
    assert flat(p) == pytest.approx([0.999] * 3, abs=1e-10)
