"""What `compare.py` times. Each job is one statement, written once against the interface that both libraries share.

`T` is the library; the set-up returns the names that the statement uses. `goal` is how many times as fast as PyTorch
gradiron wants to be; `numpy` is the same work in NumPy, on the arrays of the names, where that makes sense.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

Names = dict[str, Any]


@dataclass(frozen=True)
class Job:
    name: str
    statement: str
    setup: Callable[[Any], Names]
    goal: float | None = None
    numpy: str | None = None
    slow: bool = False  # one call a round


JOBS: list[Job] = []


def job(
    name: str,
    statement: str,
    setup: Callable[[Any], Names],
    goal: float | None = None,
    numpy: str | None = None,
    slow: bool = False,
) -> None:
    JOBS.append(Job(name, statement, setup, goal, numpy, slow))


# Calls: what an operator costs when there is nothing to compute.


def small(T: Any) -> Names:
    return {"T": T, "a": T.ones(4), "b": T.ones(4), "m": T.ones(4, 4), "s": T.tensor(2.0), "no_grad": T.no_grad}


def recording(T: Any) -> Names:
    return {"T": T, "a": T.ones(4, requires_grad=True), "b": T.ones(4), "x": T.tensor(2.0, requires_grad=True)}


def hooked(T: Any) -> Names:
    x = T.tensor(2.0, requires_grad=True)
    y = x * 2
    y.register_hook(lambda grad: grad)
    return {"y": y}


def with_function(T: Any) -> Names:
    class Double(T.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (_x,) = ctx.saved_tensors
            return grad * 2

    return {"double": Double.apply, "x": T.tensor(2.0, requires_grad=True)}


job("add, 4 elements", "a + b", small, 4, numpy="a + b")
job("add, 4 elements, recording", "a + b", recording, 5)
job("mul by a number", "a * 2.0", small, 4, numpy="a * 2.0")
job("exp, 4 elements", "a.exp()", small, 4)
job("sum, 4 elements", "a.sum()", small, numpy="a.sum()")
job("x.add_(y), 4 elements", "a.add_(b)", small, numpy="T.add(a, b, out=a)")
job("matmul 4x4", "m @ m", small, numpy="m @ m")
job("x[i]", "a[2]", small, 3, numpy="a[2]")
job("x[i, j] = v", "m[1, 2] = 3.0", small, numpy="m[1, 2] = 3.0")
job("x[:, 1:3]", "m[:, 1:3]", small, 3, numpy="m[:, 1:3]")
job("view", "a.view(2, 2)", small, 3, numpy="a.reshape(2, 2)")
job("transpose", "m.t()", small, 3, numpy="m.T")
job("view, recording", "a.view(2, 2)", recording, 3)
job("item", "s.item()", small, 3, numpy="s.item()")
job("shape", "m.shape", small)
job("detach", "a.detach()", recording)
job("zeros(4)", "T.zeros(4)", small, numpy="T.zeros(4)")
job("tensor([1.0, 2.0])", "T.tensor([1.0, 2.0])", small, numpy="T.array([1.0, 2.0])")
job("no_grad enter and exit", "with no_grad(): pass", small, 3)
job("hook called in a backward", "y.backward(retain_graph=True)", hooked, 3)
job("Function.apply", "double(x)", with_function, 3)
job("Function, forward and backward", "double(x).backward()", with_function, 3)
job("backward of one operator", "(x * 2.0).backward()", recording)
job("grad of one operator", "T.autograd.grad(x * 2.0, x)", recording)
job("second derivative", "g, = T.autograd.grad(x * x * x, x, create_graph=True); T.autograd.grad(g, x)", recording)


# Graphs: many small operators, forward and backward.


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


# Autograd beyond a plain backward.


def mlp(T: Any) -> Names:
    """Small enough that operators cost more than arithmetic."""
    T.manual_seed(0)
    x, target = T.randn(16, 8), T.randn(16, 1)
    params = [T.randn(8, 16) * 0.3, T.zeros(16), T.randn(16, 1) * 0.3, T.zeros(1)]
    w1, b1, w2, b2 = params = [p.requires_grad_() for p in params]
    vectors = [T.randn(p.shape) for p in params]

    def loss() -> Any:
        return (((x @ w1 + b1).tanh() @ w2 + b2 - target) ** 2).mean()

    def product() -> Any:
        grads = T.autograd.grad(loss(), params, create_graph=True)
        return T.autograd.grad(grads, params, vectors)

    return {"T": T, "loss": loss, "params": params, "product": product}


def hooked_leaves(T: Any) -> Names:
    """Twenty leaves, each with a hook on its gradient, one after it, and one on its node."""
    leaves = [T.tensor(float(i), requires_grad=True) for i in range(20)]
    kept = []
    for x in leaves:
        x.register_hook(lambda grad: None)
        x.register_post_accumulate_grad_hook(lambda x: None)
    total = leaves[0] * 1.0
    for x in leaves[1:]:
        total = total + x
        total.grad_fn.register_hook(lambda inputs, outputs: None)
        kept.append(total.grad_fn)
    return {"total": total, "kept": kept}


def functions(T: Any) -> Names:
    """A chain of custom Functions with two tensors, a saved value and an argument that is no tensor."""

    class Blend(T.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, share: float) -> Any:
            ctx.save_for_backward(x, y)
            ctx.share = share
            return x * share + y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (_x, _y) = ctx.saved_tensors
            return grad * ctx.share, grad, None

    x, y = T.ones(4, requires_grad=True), T.ones(4, requires_grad=True)

    def run() -> None:
        z = x
        for _ in range(20):
            z = Blend.apply(z, y, 0.5)
        z.sum().backward()

    return {"run": run}


def mapped(T: Any) -> Names:
    T.manual_seed(0)
    w, x = T.randn(16, 16), T.randn(16)

    def f(v: Any) -> Any:
        return (w @ v).tanh() * v.sin()

    return {"F": T.autograd.functional, "f": f, "x": x}


def checked(T: Any) -> Names:
    T.manual_seed(0)
    x = T.rand(4, dtype=T.float64, requires_grad=True)
    y = T.rand(4, dtype=T.float64, requires_grad=True)
    return {"A": T.autograd, "f": lambda x, y: (x * y).sin() + x.exp(), "inputs": (x, y)}


def checkpointed(T: Any) -> Names:
    """Ten blocks, each computed again in the backward."""
    from importlib import import_module

    checkpoint = import_module(f"{T.__name__}.utils.checkpoint").checkpoint
    x, w = T.ones(8, 8, requires_grad=True), T.ones(8, 8, requires_grad=True)

    def block(y: Any) -> Any:
        return (y @ w).tanh() + y

    def run() -> None:
        y = x
        for _ in range(10):
            y = checkpoint(block, y, use_reentrant=False)
        y.sum().backward()

    return {"run": run}


job("60 hooks in a backward of 20 leaves", "total.backward(retain_graph=True)", hooked_leaves, 3)
job("20 custom Functions, forward and backward", "run()", functions, 3)
job("grad of an MLP with create_graph", "T.autograd.grad(loss(), params, create_graph=True)", mlp, 3)
job("Hessian-vector product of an MLP", "product()", mlp, 3)
job("jacobian of 16 outputs, one by one", "F.jacobian(f, x)", mapped, 3)
job("jacobian of 16 outputs, vectorised", "F.jacobian(f, x, vectorize=True)", mapped, 3)
job("gradcheck of a small function", "A.gradcheck(f, inputs)", checked, 3)
job("gradgradcheck of a small function", "A.gradgradcheck(f, inputs)", checked, 3)
job("10 checkpointed blocks, forward and backward", "run()", checkpointed, 3)


# Kernels: many elements.


def vectors(n: int) -> Callable[[Any], Names]:
    def setup(T: Any) -> Names:
        T.manual_seed(0)
        return {"T": T, "a": T.rand(n), "b": T.rand(n)}

    return setup


def into(n: int) -> Callable[[Any], Names]:
    """Memory for the result is at hand: what is left is the way of the bytes through it."""
    return lambda T: vectors(n)(T) | {"out": T.empty(n)}


def rows(T: Any) -> Names:
    T.manual_seed(0)
    return {"T": T, "a": T.randn(1000, 10_000), "t": T.randn(3000, 3000)}


def index(T: Any) -> Names:
    T.manual_seed(0)
    return {"a": T.randn(100_000, 16), "i": T.randint(0, 100_000, (50_000,)), "mask": T.rand(100_000, 16) > 0.5}


def matrices(n: int, dtype: str) -> Callable[[Any], Names]:
    def setup(T: Any) -> Names:
        T.manual_seed(0)
        return {f"{c}": T.rand(n, n, dtype=getattr(T, dtype)) for c in "ab"}

    return setup


job("add, 1e7", "a + b", vectors(10_000_000), 1.5, numpy="a + b")
job("mul, 1e7", "a * b", vectors(10_000_000), 1.5, numpy="a * b")
job("exp, 1e7", "a.exp()", vectors(10_000_000), 1.1, numpy="T.exp(a)")
job("tanh, 1e7", "a.tanh()", vectors(10_000_000), 1.1, numpy="T.tanh(a)")
job("sum, 1e7", "a.sum()", vectors(10_000_000), 1, numpy="a.sum()")
job("add into out=, 1e7", "T.add(a, b, out=out)", into(10_000_000), numpy="T.add(a, b, out=out)")
job("a.add_(b), 1e7", "a.add_(b)", vectors(10_000_000), numpy="T.add(a, b, out=a)")
job("softmax, 1000 x 10,000", "a.softmax(1)", rows, 1)
job("sum over rows, 1000 x 10,000", "a.sum(1)", rows, numpy="a.sum(1)")
job("sum over columns, 1000 x 10,000", "a.sum(0)", rows, numpy="a.sum(0)")
job("add of a transpose, 3000 x 3000", "t + t.t()", rows, numpy="t + t.T")
job("a[i], 50,000 rows of 16", "a[i]", index, numpy="a[i]")
job("a[mask], 1,600,000", "a[mask]", index, numpy="a[mask]")
job("add, 1e5", "a + b", vectors(100_000), numpy="a + b")
job("exp, 1e5", "a.exp()", vectors(100_000), numpy="T.exp(a)")
for dtype in ("float32", "float64"):
    for size in (32, 64, 128, 256, 512, 1024, 2048):
        job(f"matmul {size}, {dtype}", "a @ b", matrices(size, dtype), 1, numpy="a @ b")
