"""Autograd beyond a plain backward."""

from __future__ import annotations

from typing import Any

from . import Names, group

job = group("derivatives")


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

    return {"F": T.autograd.functional, "func": T.func, "f": f, "loss": lambda v: f(v).sum(), "x": x}


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
job("jacobian of 16 outputs, forward mode", "F.jacobian(f, x, vectorize=True, strategy='forward-mode')", mapped, 1)
job("jacrev of 16 outputs", "func.jacrev(f)(x)", mapped, 1)
job("jacfwd of 16 outputs", "func.jacfwd(f)(x)", mapped, 1)
job("hessian of 16 inputs", "func.hessian(loss)(x)", mapped, 1)
job("hessian of 16 inputs, vectorised", "F.hessian(loss, x, vectorize=True)", mapped, 1)
job("gradcheck of a small function", "A.gradcheck(f, inputs)", checked, 3)
job("gradgradcheck of a small function", "A.gradgradcheck(f, inputs)", checked, 3)
job("10 checkpointed blocks, forward and backward", "run()", checkpointed, 3)
