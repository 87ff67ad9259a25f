"""Single operators on one thread that were once slower than PyTorch's."""

from __future__ import annotations

from typing import Any

from . import Names, group

job = group("single")


def line(T: Any) -> Names:
    T.manual_seed(0)
    return {"T": T, "F": T.nn.functional, "a": T.randn(100_000), "column": T.randn(1000, 1), "m": T.randn(1000, 100)}


def gathered(T: Any) -> Names:
    T.manual_seed(0)
    index = T.randint(0, 1000, (1000, 100))
    return {"x": T.randn(1000, 100), "i": index, "j": index % 100, "z": T.zeros(1000, 100)}


def stacked(T: Any) -> Names:
    T.manual_seed(0)
    return {"T": T, "parts": [T.randn(1000) for _ in range(100)]}


def normed(T: Any) -> Names:
    T.manual_seed(0)
    return {"F": T.nn.functional, "x": T.randn(1000, 1000), "w": T.randn(1000), "b": T.randn(1000)}


def classes(recorded: bool) -> Any:
    def setup(T: Any) -> Names:
        T.manual_seed(0)
        x, y = T.randn(4096, 1000).requires_grad_(recorded), T.randint(0, 1000, (4096,))
        return {"T": T, "F": T.nn.functional, "x": x, "y": y}

    return setup


job("gelu, 1e5", "F.gelu(a)", line, 1)
job("gelu with tanh, 1e5", "F.gelu(a, approximate='tanh')", line, 1)
job("sigmoid, 1e5", "a.sigmoid()", line, 1)
job("column times matrix, 1e5", "column * m", line, 1)
job("norm, 1e5", "a.norm()", line, 1)
job("norm of rows, 1e5", "m.norm(dim=1)", line, 1)
job("norm of columns, 1e5", "m.norm(dim=0)", line, 1)
job("gather, dim 0, 1e5", "x.gather(0, i)", gathered, 1)
job("gather, dim 1, 1e5", "x.gather(1, j)", gathered, 1)
job("scatter_add, dim 0, 1e5", "z.scatter_add(0, i, x)", gathered, 1)
job("scatter_add_, dim 0, 1e5", "z.scatter_add_(0, i, x)", gathered, 1)
job("stack, 100 of 1000", "T.stack(parts)", stacked, 1)
job("stack along the last, 100 of 1000", "T.stack(parts, 1)", stacked, 1)
job("layer_norm, 1000x1000", "F.layer_norm(x, (1000,), w, b)", normed, 1)
job("cross_entropy, 4096x1000", "F.cross_entropy(x, y)", classes(False), 1)
job("cross_entropy, 4096x1000, with its gradient", "T.autograd.grad(F.cross_entropy(x, y), x)", classes(True), 1)
