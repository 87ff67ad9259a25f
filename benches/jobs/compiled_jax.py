"""The steps of compiled.py as a user of JAX writes them: pure functions under `jax.jit`, which return what changes."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from itertools import pairwise
from typing import Any

Run = Callable[[], Any]

jax: Any = importlib.import_module("jax")
jnp: Any = importlib.import_module("jax.numpy")


def normal(seed: int, *shape: int) -> Any:
    return jax.random.normal(jax.random.PRNGKey(seed), shape, dtype=jnp.float32)


def linear(seed: int, before: int, after: int) -> tuple[Any, Any]:
    return normal(seed, before, after) / before**0.5, jnp.zeros(after)


def network(sizes: list[int]) -> list[tuple[Any, Any]]:
    return [linear(seed, *pair) for seed, pair in enumerate(pairwise(sizes))]


def apply(layers: list[tuple[Any, Any]], x: Any) -> Any:
    *hidden, (w, b) = layers
    for weight, bias in hidden:
        x = jnp.tanh(x @ weight + bias)
    return x @ w + b


def scalars() -> Run:
    def loss(x: Any) -> Any:
        for _ in range(100):
            x = x * 1.0000001
        return x

    step, x = jax.jit(jax.value_and_grad(loss)), jnp.float32(1)
    return lambda: jax.block_until_ready(step(x))


def scalar_mlp() -> Run:
    sizes = [2, 16, 16, 1]
    layers = [[([jnp.float32(0.1)] * before, jnp.float32(0.1)) for _ in range(after)] for before, after in pairwise(sizes)]

    def loss(layers: Any) -> Any:
        values = [jnp.float32(0.3), jnp.float32(-0.2)]
        for layer in layers:
            outputs = []
            for weights, total in layer:
                for weight, value in zip(weights, values, strict=True):
                    total = total + weight * value
                outputs.append(jnp.tanh(total))
            values = outputs
        return values[0]

    step = jax.jit(jax.value_and_grad(loss))
    return lambda: jax.block_until_ready(step(layers))


def descend(step: Any, *state: Any) -> Run:
    """Calls a step with what it returned the last time."""
    held = list(state)

    def run() -> Any:
        held[:] = jax.block_until_ready(step(*held))
        return held

    return run


def mlp() -> Run:
    x, y = normal(1, 64, 32), normal(2, 64, 1)

    def loss(layers: Any) -> Any:
        return ((apply(layers, x) - y) ** 2).mean()

    @jax.jit
    def step(layers: Any) -> tuple[Any]:
        gradients = jax.grad(loss)(layers)
        return (jax.tree.map(lambda p, g: p - 0.01 * g, layers, gradients),)

    return descend(step, network([32, 64, 1]))


def adam_update(parameters: Any, gradients: Any, means: Any, squares: Any, count: Any) -> tuple[Any, Any, Any, Any]:
    count = count + 1
    means = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, means, gradients)
    squares = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, squares, gradients)

    def move(p: Any, m: Any, s: Any) -> Any:
        return p - 1e-3 * (m / (1 - 0.9**count)) / (jnp.sqrt(s / (1 - 0.999**count)) + 1e-8)

    return jax.tree.map(move, parameters, means, squares), means, squares, count


def adam() -> Run:
    parameters, gradients = ([normal(seed + at, 16, 16) for at in range(100)] for seed in (0, 100))
    zeros = [jnp.zeros((16, 16))] * 100

    @jax.jit
    def step(parameters: Any, means: Any, squares: Any, count: Any) -> Any:
        return adam_update(parameters, gradients, means, squares, count)

    return descend(step, parameters, zeros, zeros, jnp.float32(0))


def policy() -> Run:
    layers, observation = network([4, 64, 64, 2]), normal(9, 1, 4)

    @jax.jit
    def act(key: Any, _action: Any) -> Any:
        key, own = jax.random.split(key)
        return key, jax.random.categorical(own, apply(layers, observation))

    return descend(act, jax.random.PRNGKey(0), jnp.zeros(1, dtype=jnp.int32))


def runge_kutta() -> Run:
    start, dt = normal(9, 16, 2), 0.01

    def loss(layers: Any) -> Any:
        y = start
        for _ in range(100):
            k1 = apply(layers, y)
            k2 = apply(layers, y + dt / 2 * k1)
            k3 = apply(layers, y + dt / 2 * k2)
            k4 = apply(layers, y + dt * k3)
            y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return (y**2).mean()

    step, layers = jax.jit(jax.value_and_grad(loss)), network([2, 16, 2])
    return lambda: jax.block_until_ready(step(layers))


def lstm() -> Run:
    width, batch = 64, 32
    layers, x = (linear(0, width, 4 * width), linear(1, width, 4 * width)), normal(2, 64, batch, width)

    def loss(layers: Any) -> Any:
        (wi, bi), (wh, bh) = layers
        h = c = jnp.zeros((batch, width))
        for at in range(64):
            i, f, g, o = jnp.split(x[at] @ wi + bi + h @ wh + bh, 4, 1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h**2).mean()

    step = jax.jit(jax.value_and_grad(loss))
    return lambda: jax.block_until_ready(step(layers))


def pinn() -> Run:
    x, t = jax.random.uniform(jax.random.PRNGKey(9), (2, 512))

    def loss(layers: Any) -> Any:
        def u(x: Any, t: Any) -> Any:
            return apply(layers, jnp.stack([x, t]))[0]

        def residual(x: Any, t: Any) -> Any:
            return jax.grad(u, 1)(x, t) + u(x, t) * jax.grad(u)(x, t) - 0.01 * jax.grad(jax.grad(u))(x, t)

        return (jax.vmap(residual)(x, t) ** 2).mean()

    @jax.jit
    def step(layers: Any, means: Any, squares: Any, count: Any) -> Any:
        return adam_update(layers, jax.grad(loss)(layers), means, squares, count)

    layers = network([2, 32, 32, 32, 1])
    zeros = jax.tree.map(jnp.zeros_like, layers)
    return descend(step, layers, zeros, zeros, jnp.float32(0))


def chain(numel: int) -> Callable[[], Run]:
    def setup() -> Run:
        x = normal(0, numel)

        def loss(x: Any) -> Any:
            y = jnp.tanh(jax.nn.sigmoid(x * 2 + 1) * x - 0.5) * 3 + x * x
            return (jnp.abs(y) + 1).sum()

        step = jax.jit(jax.value_and_grad(loss))
        return lambda: jax.block_until_ready(step(x))

    return setup


# In the order of compiled.STEPS.
STEPS = [scalars, scalar_mlp, mlp, adam, policy, runge_kutta, lstm, pinn, chain(1_000), chain(100_000), chain(10_000_000)]
