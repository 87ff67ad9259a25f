"""Steps of the optimisers alone, over many small parameters and over few large ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import Names, group

job = group("optimizers")


def step(name: str, count: int, *shape: int, **options: Any) -> Callable[[Any], Names]:
    def setup(T: Any) -> Names:
        T.manual_seed(0)
        parameters = [T.nn.Parameter(T.randn(shape)) for _ in range(count)]
        for parameter in parameters:
            parameter.grad = T.randn(shape)
        optimizer = getattr(T.optim, name)(parameters, lr=1e-3, **options)
        optimizer.step()
        return {"step": optimizer.step, "zero": lambda: optimizer.zero_grad(set_to_none=False)}

    return setup


def clipped(T: Any) -> Names:
    parameters = [T.nn.Parameter(T.randn(128, 128)) for _ in range(100)]
    for parameter in parameters:
        parameter.grad = T.randn(128, 128)
    return {"clip": T.nn.utils.clip_grad_norm_, "parameters": parameters}


for name, options in (
    ("SGD", {}),
    ("SGD", {"momentum": 0.9}),
    ("Adam", {}),
    ("AdamW", {}),
    ("RMSprop", {}),
    ("Adagrad", {}),
):
    words = f"{name} with momentum" if options else name
    job(f"{words}, 100 parameters of 16x16", "step()", step(name, 100, 16, 16, **options), 1)
    job(f"{words}, 100 parameters of 128x128", "step()", step(name, 100, 128, 128, **options), 1)
    job(f"{words}, 10 parameters of 1e6", "step()", step(name, 10, 1_000_000, **options), 1)
job("zero_grad in place, 100 parameters of 128x128", "zero()", step("SGD", 100, 128, 128), 1)
job("clip_grad_norm_, 100 parameters of 128x128", "clip(parameters, 1.0)", clipped, 1)
