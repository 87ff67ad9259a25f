"""Calls: what an operator costs when there is nothing to compute."""

from __future__ import annotations

from typing import Any

from . import Names, group

job = group("calls")


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
