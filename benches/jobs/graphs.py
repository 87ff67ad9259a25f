"""Graphs: many small operators, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from . import Names, group

job = group("graphs")


def chain(length: int) -> Callable[[Any], Names]:
    def setup(T: Any) -> Names:
        x = T.tensor(1.0, requires_grad=True)

        def run() -> None:
            y = x
            for _ in range(length):
                y = y * 1.0000001
            y.backward()

        return {"run": run}

    return setup


def scalar_mlp(T: Any) -> Names:
    """Neurons of single numbers, as in a first lesson on autograd: about a thousand 0-d tensors a pass."""
    T.manual_seed(0)
    sizes = [4, 16, 16, 1]

    def number() -> Any:
        return T.rand(()).requires_grad_()

    layers = [[([number() for _ in range(before)], number()) for _ in range(after)] for before, after in pairwise(sizes)]
    inputs = [T.tensor(0.1 * i) for i in range(sizes[0])]

    def run() -> None:
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

    return {"run": run}


def mlp_step(T: Any) -> Names:
    T.manual_seed(0)
    x, target = T.randn(64, 32), T.randn(64, 1)
    params = [T.randn(32, 64) * 0.1, T.zeros(64), T.randn(64, 1) * 0.1, T.zeros(1)]
    w1, b1, w2, b2 = params = [p.requires_grad_() for p in params]

    def run() -> None:
        loss = (((x @ w1 + b1).tanh() @ w2 + b2 - target) ** 2).mean()
        loss.backward()
        with T.no_grad():
            for p in params:
                p -= 0.01 * p.grad
                p.grad = None

    return {"run": run}


job("100 scalar multiplications, forward and backward", "run()", chain(100), 7)
job("MLP of 0-d tensors, forward and backward", "run()", scalar_mlp, 6)
job("MLP 32-64-1, batch 64, a training step", "run()", mlp_step)
job("chain of 10,000", "run()", chain(10_000))
job("chain of 1,000,000", "run()", chain(1_000_000), slow=True)
