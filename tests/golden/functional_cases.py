"""Calls of `autograd.functional`, by name; `make_functional.py` records what PyTorch gives for them."""

SETUP = """
x = T.tensor([0.5, -1.25, 2.0]); y = T.tensor([1.5, 0.25, -0.75]); s = T.tensor(1.5)
m = T.tensor([[0.5, -1.0, 2.0], [1.0, 0.25, -0.5]]); d = x.to(T.float64)
cube = lambda a: (a ** 3).sum()
two = lambda a, b: (a * b, (a.exp() + b ** 2).sum())
mixed = lambda a, b: (a ** 2 * b ** 3).sum()
first = lambda a, b: (a ** 2).sum()
twice = lambda a: (2 * a).sum()
constant = lambda a: T.ones(2)
F = T.autograd.functional
"""

CALLS = """
F.jacobian(T.exp, x)
F.jacobian(T.exp, d)
F.jacobian(two, (x, y))
F.jacobian(first, (x, y))
F.jacobian(constant, x)
F.jacobian(lambda a: a @ m.t(), m)
F.jacobian(lambda a: (a * 2,), (x,))
F.jacobian(T.sin, s)
F.jacobian(T.exp, x, create_graph=True)
F.jacobian(T.exp, x.requires_grad_(), create_graph=True)
F.hessian(cube, x)
F.hessian(mixed, (x, y))
F.hessian(first, (x, y))
F.hessian(twice, x)
F.hessian(lambda a: (a.t() @ a).sum(), m)
F.hessian(cube, x.requires_grad_(), create_graph=True)
F.vjp(two, (x, y), (T.ones(3), s))
F.vjp(cube, x)
F.vjp(T.exp, x, y, create_graph=True)
F.vjp(constant, x, T.ones(2))
F.jvp(two, (x, y), (y, x))
F.jvp(T.sin, s)
F.jvp(first, (x, y), (x, y))
F.jvp(constant, x, y)
F.jvp(T.exp, x.requires_grad_(), y, create_graph=True)
F.vhp(cube, x, y)
F.vhp(mixed, (x, y), (y, x))
F.vhp(twice, x, y)
F.hvp(cube, x, y)
F.hvp(mixed, (x, y), (y, x))
F.hvp(lambda a: a ** 4, s)
F.hvp(mixed, (x, y), (y, x), create_graph=True)
"""

ERRORS = """
F.jacobian(T.exp, 3)
F.jacobian(T.exp, (x, 3))
F.jacobian(lambda a: 3, x)
F.jacobian(constant, x, strict=True)
F.jacobian(first, (x, y), strict=True)
F.jacobian(twice, x, strict=True, create_graph=True)
F.jacobian(T.exp, x, strategy='sideways')
F.jacobian(T.exp, x, strategy='forward-mode', strict=True)
F.jacobian(T.exp, x, strategy='forward-mode', create_graph=True)
F.jacobian(T.exp, x, vectorize=True, strict=True)
F.hessian(T.exp, x)
F.hessian(lambda a: (a.sum(),), x)
F.hessian(twice, x, strict=True)
F.hessian(cube, [x])
F.vjp(T.exp, x)
F.vjp(T.exp, x, T.ones(2))
F.vjp(T.exp, x, (x, y))
F.vjp(two, (x, y), (T.ones(3),))
F.vjp(two, (x, y), (T.ones(3), T.ones(2)))
F.vjp(first, (x, y), strict=True)
F.jvp(T.exp, x)
F.jvp(two, (x, y), x)
F.jvp(first, (x, y), (x, y), strict=True)
F.vhp(T.exp, x, y)
F.vhp(two, (x, y), (x, y))
F.vhp(first, (x, y), (x, y), strict=True)
F.hvp(cube, x, s)
F.hvp(twice, x, y, strict=True)
"""


def lines(table):
    return table.strip().splitlines()


def evaluate(code, T):
    """The value of a call, a fresh set of variables at its disposal."""
    scope = {"T": T}
    exec(SETUP, scope)
    return eval(code, scope)


def plain(value):
    """Tensors as lists, with what matters besides the numbers."""
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    return {"dtype": str(value.dtype), "grad": value.requires_grad, "values": value.detach().tolist()}


def error(code, T):
    """The kind and the first sentence of what the call raises."""
    try:
        evaluate(code, T)
    except Exception as e:
        return [type(e).__name__, str(e).split(". ")[0].rstrip(".")]
    return None
