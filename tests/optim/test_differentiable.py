"""Differentiating through the steps of an optimizer."""

import pytest

from library import IS_GRADIRON, T

O = T.optim  # noqa: E741

OPTIONS = [
    ("SGD", {"lr": 0.9}),
    ("SGD", {"lr": 0.9, "momentum": 0.9, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.9, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {"lr": 0.9}),
    ("Adam", {"lr": 0.9, "amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.9, "maximize": True}),
    ("Adamax", {"lr": 0.9, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.9, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.9, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.9, "weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.9, "weight_decay": 0.1}),
    ("Adadelta", {"lr": 0.9, "weight_decay": 0.1}),
    ("ASGD", {"lr": 0.9, "t0": 1}),
    ("RMSprop", {"lr": 0.9, "maximize": True, "momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("Rprop", {"lr": 0.9}),
]


def begun(name, options):
    """A state as it is in the middle of a run: whole numbers first, then tensors that are differentiated, too."""
    vector = lambda *values: T.tensor(values, dtype=T.float64)
    ten, one = T.tensor(10.0, dtype=T.float64), T.tensor(0.9, dtype=T.float64)
    moments = {"exp_avg": vector(0.3, -0.2, 0.5), "exp_avg_sq": vector(0.4, 0.6, 0.2)}
    found = {
        "SGD": ({}, {"momentum_buffer": vector(0.3, -0.2, 0.5)} if "momentum" in options else {}),
        "Adam": ({"step": ten}, moments),
        "Adamax": ({"step": ten}, {"exp_avg": moments["exp_avg"], "exp_inf": vector(0.2, 3.0, 0.1)}),
        "NAdam": ({"step": ten, "mu_product": one}, moments),
        "Adagrad": ({"step": ten}, {"sum": vector(0.4, 0.6, 0.2)}),
        "Adadelta": ({"step": ten}, {"square_avg": vector(0.4, 0.6, 0.2), "acc_delta": vector(0.1, 0.2, 0.3)}),
        "ASGD": ({"step": ten, "eta": one, "mu": one}, {"ax": vector(0.1, 0.2, 0.3)}),
        "RMSprop": ({"step": ten}, {"square_avg": vector(4.0, 6.0, 2.0)}),
        "Rprop": ({"step": ten}, {"prev": vector(0.3, -0.2, 0.5), "step_size": vector(0.4, 0.6, 0.2)}),
    }
    found["AdamW"] = found["RAdam"] = found["Adam"]
    numbers, tensors = found[name]
    if options.get("amsgrad"):
        tensors = {**tensors, "max_exp_avg_sq": vector(0.3, 0.9, 0.1)}
    if options.get("centered"):
        tensors = {**tensors, "grad_avg": vector(0.1, 0.2, 0.3), "momentum_buffer": vector(0.3, -0.2, 0.5)}
    return numbers, tensors


def after(name, options, p, grad, state=(), steps=1, whole=False):
    """The parameter, or it and the state, after some steps: a function of its first value, the gradient, the state, options."""
    numbers, tensors = begun(name, options)
    p = p.clone()
    optim = getattr(O, name)([p], differentiable=True, **options)
    optim.state[p].update({key: value.clone() for key, value in numbers.items()})
    optim.state[p].update({key: value.clone() for key, value in zip(tensors, state or tensors.values())})
    for k in range(steps):
        p.grad = grad * (k + 1)
        optim.step()
    return (p, *(value for value in optim.state[p].values() if value.requires_grad)) if whole else p


def start():
    return (
        T.tensor([0.3, -1.2, 2.0], dtype=T.float64, requires_grad=True),
        T.tensor([0.7, 1.1, -0.4], dtype=T.float64, requires_grad=True),
    )


@pytest.mark.parametrize("steps", [1, pytest.param(2, marks=pytest.mark.gradiron)])
@pytest.mark.parametrize("name, options", OPTIONS, ids=str)
def test_gradients(name, options, steps):
    state = [value.requires_grad_() for value in begun(name, options)[1].values()]
    whole = IS_GRADIRON or name != "ASGD"  # PyTorch writes over what it needs of that one's state.
    assert T.autograd.gradcheck(lambda p, grad, *state: after(name, options, p, grad, state, steps, whole), (*start(), *state))


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_gradients_of_rates(name):
    p = T.tensor([0.3, -1.2, 2.0], dtype=T.float64)
    grad = T.tensor([0.7, 1.1, -0.4], dtype=T.float64)
    lr = T.tensor(0.1, dtype=T.float64, requires_grad=True)
    assert T.autograd.gradcheck(lambda lr: after(name, {"lr": lr}, p, grad), (lr,))
    if name == "SGD":
        decay = T.tensor(0.1, dtype=T.float64, requires_grad=True)
        assert T.autograd.gradcheck(lambda decay: after(name, {"lr": lr.detach(), "weight_decay": decay}, p, grad), (decay,))


def test_gradients_of_betas():
    p = T.tensor([0.3, -1.2, 2.0], dtype=T.float64)
    grad = T.tensor([0.7, 1.1, -0.4], dtype=T.float64)
    betas = [T.tensor(beta, dtype=T.float64, requires_grad=True) for beta in (0.8, 0.9)]
    rate = T.tensor(0.1, dtype=T.float64)
    assert T.autograd.gradcheck(lambda *betas: after("Adam", {"lr": rate, "betas": betas}, p, grad), betas)


def test_the_same_numbers_as_without():
    for name, options in OPTIONS:
        recorded = after(name, options, *start())
        assert recorded.requires_grad
        plain = start()[0]
        optim = getattr(O, name)([plain], **options)
        for values in begun(name, options):
            optim.state[plain].update(values)
        plain.grad = start()[1].detach()
        optim.step()
        assert recorded.tolist() == pytest.approx(plain.tolist(), rel=1e-5), name


def test_complex_parameters():
    p = T.tensor([0.3 + 1j, -1.2 - 0.5j], dtype=T.complex128, requires_grad=True)
    grad = T.tensor([0.7 - 1j, 1.1 + 0.2j], dtype=T.complex128, requires_grad=True)
    state = [T.tensor([0.1 + 0.2j, 0.3 - 0.1j], dtype=T.complex128), T.tensor([0.5 + 0.2j, 0.3 + 0.6j], dtype=T.complex128)]
    assert T.autograd.gradcheck(lambda p, grad: after("Adam", {"lr": 0.9}, p, grad, state), (p, grad))


def test_a_learned_rate():
    """Hypergradient descent: the rate itself is trained through the steps."""
    lr = T.tensor(0.01, requires_grad=True)
    rates = O.Adam([lr], lr=0.05)
    for _ in range(20):
        w = T.tensor([3.0, -2.0], requires_grad=True)
        x = w.clone()
        inner = O.SGD([x], lr=lr, differentiable=True)
        for _ in range(3):
            (x.grad,) = T.autograd.grad((x * x).sum(), x, create_graph=True)
            inner.step()
        rates.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        rates.step()
    assert lr.item() > 0.3 and loss.item() < 0.1


def test_steps_are_refused_in_differentiable_mode_where_they_want_gradients():
    p = T.ones(2, requires_grad=True).clone()
    optim = O.Adam([p], differentiable=True)
    p.grad = T.ones(2)
    optim.step()
    optim.state[p]["step"].requires_grad_()
    with pytest.raises(RuntimeError, match="`requires_grad` is not supported for `step` in differentiable mode"):
        optim.step()
