"""Derivatives of operators, each as one call that a graph can hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradiron

from ..._core import Tensor, run_grad, wants_grad
from ...autograd.grad_mode import enable_grad
from ...func._reverse import alias
from ...utils import _pytree as pytree

__all__ = ["operator_vjp"]


def called(path: str) -> Callable[..., Any]:
    """The function at a path below `torch`; a method or attribute of tensors as a function of the tensor."""
    name = path.removeprefix("torch.Tensor.")
    if name != path:

        def method(owner: Tensor, *args: Any, **kwargs: Any) -> Any:
            found = getattr(owner, name)
            return found(*args, **kwargs) if callable(found) else found

        return method
    found: Any = gradiron
    for part in path.split(".")[1:]:
        found = getattr(found, part)
    return found


def operator_vjp(path: str, wrt: tuple[int, ...], cotangents: Any, args: Any, kwargs: Any) -> Any:
    """Return the product of a vector with the Jacobian of an operator: one tensor, or a tuple of several.

    Graphs of `make_fx` hold these where the traced function computes a derivative. The operator runs again.

    Args:
        path: path of the operator below `torch`.
        wrt: positions, among all leaves of the arguments, of the tensors to differentiate with respect to.
        cotangents: vector, one tensor or None for each tensor that the operator returns.
        args, kwargs: arguments of the operator.

    Examples:
        >>> operator_vjp = torch.fx.experimental.proxy_tensor.operator_vjp
        >>> x = torch.tensor([1.0, 2.0])
        >>> operator_vjp("torch.square", (0,), [torch.ones(2)], [x], {})
        tensor([2., 4.])
    """
    leaves, structure = pytree.tree_flatten((list(args), dict(kwargs)))
    goes_on = gradiron.is_grad_enabled() and any(
        isinstance(leaf, Tensor) and wants_grad(leaf) for leaf in (*leaves, *pytree.tree_leaves(cotangents))
    )
    with enable_grad():
        # Each tensor as an input of its own: one that is passed twice has a derivative at each place.
        own = {at: alias(leaves[at]) for at in wrt}
        args, kwargs = pytree.tree_unflatten([own.get(at, leaf) for at, leaf in enumerate(leaves)], structure)
        outputs = [leaf for leaf in pytree.tree_leaves(called(path)(*args, **kwargs)) if isinstance(leaf, Tensor)]
    pairs = [
        (output, cotangent)
        for output, cotangent in zip(outputs, cotangents, strict=True)
        if cotangent is not None and wants_grad(output)
    ]
    inputs = list(own.values())
    found: Any = [None] * len(inputs)
    if pairs:
        found = run_grad([output for output, _ in pairs], inputs, [cotangent for _, cotangent in pairs], goes_on, goes_on)
    made = tuple(gradiron.zeros_like(leaf) if grad is None else grad for grad, leaf in zip(found, inputs, strict=True))
    return made[0] if len(made) == 1 else made
