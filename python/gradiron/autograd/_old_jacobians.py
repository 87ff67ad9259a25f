"""Jacobians as `gradcheck`'s module once handed them out, by the old names."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gradiron

from ._jacobian import as_tuple, backward_mode, matrix, numerical

if TYPE_CHECKING:
    from gradiron import Tensor

Jacobians = tuple["Tensor", ...]
COMPLEX = "Expected output to be non-complex. {} no longer supports functions that return complex outputs."


def _warn(name: str) -> None:
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be removed "
        "in a future version of PyTorch.",
        FutureWarning,
        stacklevel=3,
    )


def _refuse(name: str, grad_out: float) -> None:
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")


def _wanted(values: Any) -> list[Tensor]:
    """The tensors among `values`, however nested, that require a gradient."""
    if isinstance(values, gradiron.Tensor):
        return [values] if values.requires_grad else []
    return [x for value in values for x in _wanted(value)] if isinstance(values, (tuple, list)) else []


def _measured(outputs_of: Callable[[], list[Tensor]], x: Tensor, eps: float) -> list[Tensor]:
    """Central differences; over complex numbers those of both parts, as one number."""
    if not x.is_complex():
        return numerical(outputs_of, x, eps)
    over_parts = numerical(outputs_of, gradiron.view_as_real(x.detach()), eps)
    return [gradiron.complex(rows[0::2], rows[1::2]) for rows in over_parts]


def get_numerical_jacobian(
    fn: Callable[..., Any], inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> Jacobians:
    """Return the numerical Jacobians of the first output of `fn(inputs)` with respect to each of `target`."""
    _warn("get_numerical_jacobian")
    _refuse("get_numerical_jacobian", grad_out)
    packed = as_tuple(inputs)
    outputs = as_tuple(fn(packed))
    if any(out.is_complex() for out in outputs):
        raise ValueError(COMPLEX.format("get_numerical_jacobian"))
    sources = _wanted(inputs if target is None else target)
    return tuple(_measured(lambda: list(as_tuple(fn(packed))), x, eps)[0] for x in sources)


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable[..., Any],
    input_idx: int,
    inputs: Any,
    outputs: Any,
    eps: float,
    input: Tensor | None = None,
    is_forward_ad: bool = False,
) -> Jacobians:
    """Return the numerical Jacobians of all outputs of `fn(*inputs)` with respect to one input."""
    x = inputs[input_idx] if input is None else input
    if not x.requires_grad:
        raise AssertionError("Expected input to have requires_grad=True")
    return tuple(_measured(lambda: list(as_tuple(fn(*inputs))), x, eps))


def get_analytical_jacobian(
    inputs: Any, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[Jacobians, bool, bool, bool]:
    """Return the Jacobians of `output` from the graph, and whether they are reproducible and of the right sizes and
    dtypes.
    """
    _warn("get_analytical_jacobian")
    _refuse("get_analytical_jacobian", grad_out)
    if output.is_complex():
        raise ValueError(COMPLEX.format("get_analytical_jacobian"))
    sources = _wanted(inputs)
    first, second = backward_mode(output, sources), backward_mode(output, sources)
    sizes = types = True
    for columns, x in zip(first, sources, strict=True):
        for g in columns:
            if g is not None:
                sizes &= g.shape == x.shape
                types &= g.dtype == x.dtype
    jacobians = tuple(matrix(columns, x, x.dtype) for columns, x in zip(first, sources, strict=True))
    again = (matrix(columns, x, x.dtype) for columns, x in zip(second, sources, strict=True))
    same = all(not a.numel() or (a - b).abs().max().item() <= nondet_tol for a, b in zip(jacobians, again, strict=True))
    return jacobians, same, sizes, types
