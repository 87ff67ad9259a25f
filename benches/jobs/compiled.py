"""Compiled steps: `torch.compile` captures them in gradiron; PyTorch runs them as they are.

`STEPS` has the steps before they are compiled; compare_compiled.py also times them eagerly, by PyTorch's compiler, and in JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from . import Names, Setup, group, steps

job = group("compiled")

STEPS: dict[str, Setup] = {}


def scalars(T: Any) -> Names:
    x = T.tensor(1.0, requires_grad=True)

    def run() -> Any:
        x.grad = None
        y = x
        for _ in range(100):
            y = y * 1.0000001
        y.backward()
        return y

    return {"run": run}


def scalar_mlp(T: Any) -> Names:
    """Neurons of single numbers: 2, 16, 16 and 1, with 337 parameters."""
    T.manual_seed(0)

    def number() -> Any:
        return (T.rand(()) - 0.5).requires_grad_()

    sizes = [2, 16, 16, 1]
    layers = [[([number() for _ in range(before)], number()) for _ in range(after)] for before, after in pairwise(sizes)]
    parameters = [p for layer in layers for weights, bias in layer for p in (*weights, bias)]
    inputs = [T.tensor(0.3), T.tensor(-0.2)]

    def run() -> Any:
        for p in parameters:
            p.grad = None
        values = inputs
        for layer in layers:
            outputs = []
            for weights, bias in layer:
                total = bias
                for weight, value in zip(weights, values, strict=True):
                    total = total + weight * value
                outputs.append(total.tanh())
            values = outputs
        values[0].backward()
        return values[0]

    return {"run": run}


def mlp(T: Any) -> Names:
    T.manual_seed(0)
    nn = T.nn
    model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = T.optim.SGD(model.parameters(), lr=0.01)
    x, y = T.randn(64, 32), T.randn(64, 1)

    def run() -> Any:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return {"run": run}


def adam(T: Any) -> Names:
    T.manual_seed(0)
    parameters = [T.randn(16, 16).requires_grad_() for _ in range(100)]
    for p in parameters:
        p.grad = T.randn(16, 16)
    return {"run": T.optim.Adam(parameters).step}


def policy(T: Any) -> Names:
    """One action drawn for one observation."""
    T.manual_seed(0)
    nn = T.nn
    model = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
    observation = T.randn(1, 4)

    def run() -> Any:
        with T.no_grad():
            return T.multinomial(model(observation).softmax(1), 1)

    return {"run": run}


def runge_kutta(T: Any) -> Names:
    """100 steps over the vector field of a small network, and the gradient of where they end."""
    T.manual_seed(0)
    nn = T.nn
    field = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
    start, dt = T.randn(16, 2), 0.01

    def run() -> Any:
        field.zero_grad()
        y = start
        for _ in range(100):
            k1 = field(y)
            k2 = field(y + dt / 2 * k1)
            k3 = field(y + dt / 2 * k2)
            k4 = field(y + dt * k3)
            y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        loss = (y**2).mean()
        loss.backward()
        return loss

    return {"run": run}


def lstm(T: Any) -> Names:
    T.manual_seed(0)
    nn = T.nn
    width, batch = 64, 32
    of_input, of_state = nn.Linear(width, 4 * width), nn.Linear(width, 4 * width)
    x = T.randn(64, batch, width)

    def run() -> Any:
        of_input.zero_grad()
        of_state.zero_grad()
        h = c = T.zeros(batch, width)
        for at in range(64):
            i, f, g, o = (of_input(x[at]) + of_state(h)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        loss = (h**2).mean()
        loss.backward()
        return loss

    return {"run": run}


def pinn(T: Any) -> Names:
    return {"run": steps.pinn(T)["step"]}


def chain(numel: int) -> Setup:
    """Ten elementwise operators and a sum, forward and backward."""

    def setup(T: Any) -> Names:
        T.manual_seed(0)
        x = T.randn(numel).requires_grad_()

        def run() -> Any:
            x.grad = None
            y = ((x * 2 + 1).sigmoid() * x - 0.5).tanh() * 3 + x * x
            loss = (y.abs() + 1).sum()
            loss.backward()
            return loss

        return {"run": run}

    return setup


def compiled(setup: Setup) -> Setup:
    """The set-up with its step compiled, where the library is gradiron."""

    def compile_step(T: Any) -> Names:
        names = setup(T)
        return {"run": T.compile(names["run"])} if T.__name__ == "gradiron" else names

    return compile_step


def step(name: str, setup: Callable[[Any], Names], goal: float, slow: bool = False) -> None:
    STEPS[name] = setup
    job(f"compiled: {name}", "run()", compiled(setup), goal, slow=slow)


step("100 scalar multiplications, forward and backward", scalars, 150)
step("MLP of 0-d tensors, forward and backward", scalar_mlp, 300)
step("MLP 32-64-1, batch 64, SGD", mlp, 11)
step("Adam over 100 parameters of 16x16", adam, 120)
step("policy, one action", policy, 10)
step("RK4, 100 steps, forward and backward", runge_kutta, 28)
step("LSTM by hand, 64 steps, forward and backward", lstm, 4)
step("PINN of second order, 512 points, Adam", pinn, 4)
step("chain of 10, 1e3 elements, forward and backward", chain(1_000), 30)
step("chain of 10, 1e5 elements, forward and backward", chain(100_000), 4)
step("chain of 10, 1e7 elements, forward and backward", chain(10_000_000), 15, slow=True)
