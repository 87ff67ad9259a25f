"""Jacobians as matrices, one row an element of the input, one column an element of the output; for `gradcheck`.

`numerical` measures them by central differences, `backward_mode` and `forward_mode` ask the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import gradiron

from .. import _core
from . import forward_ad

if TYPE_CHECKING:
    from gradiron import Tensor

Function = Callable[..., Any]
Tensors = tuple[Any, ...]


def as_tuple(value: Any) -> Tensors:
    """What a function takes or gives, as a tuple."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def is_float(value: Any) -> bool:
    return isinstance(value, gradiron.Tensor) and value.dtype.is_floating_point


def differentiable(values: Any) -> list[Tensor]:
    """The tensors among `values` that want a gradient."""
    return [v for v in as_tuple(values) if v.requires_grad]


def vector_like(x: Tensor, values: list[float]) -> Tensor:
    """A vector on the device and of the dtype of `x`."""
    return gradiron.tensor(values, dtype=x.dtype, device=x.device)


def unit_vector(x: Tensor, place: int) -> Tensor:
    """A vector as long as `x`, of zeros and one 1."""
    unit = gradiron.zeros(x.numel(), dtype=x.dtype, device=x.device)
    unit[place] = 1
    return unit


# --- by differences ---


def numerical(outputs_of: Function, x: Tensor, eps: float) -> list[Tensor]:
    """How each of the outputs depends on `x`, whose elements are moved a little, one after the other."""
    rows: list[list[Tensor]] = []
    count = len(outputs_of())
    for index in product(*map(range, x.shape)):
        with _moved(x, index) as move:
            rows.append(_slopes(outputs_of, move, eps, f"on index {index} "))
    if not rows:
        return [x.new_zeros((0, out.numel())) for out in outputs_of()]
    return [gradiron.stack([row[i] for row in rows]) for i in range(count)]


def numerical_along(outputs_of: Function, x: Tensor, direction: Tensor, eps: float) -> list[Tensor]:
    """How each of the outputs changes as `x` moves along `direction`."""
    step, values = direction.reshape(x.shape), x.data
    before = values.clone()

    def move(by: float) -> None:
        values.copy_(before + step * by)

    try:
        return _slopes(outputs_of, move, eps, "")
    finally:
        values.copy_(before)


class _moved:
    """Moves one element, and puts it back."""

    def __init__(self, x: Tensor, index: tuple[int, ...]) -> None:
        self.values, self.index = x.data, index
        self.before: float = self.values[index].item()

    def __enter__(self) -> Callable[[float], None]:
        return self._move

    def _move(self, by: float) -> None:
        self.values[self.index] = self.before + by

    def __exit__(self, *_: object) -> None:
        self.values[self.index] = self.before


def _slopes(outputs_of: Function, move: Callable[[float], None], eps: float, where: str) -> list[Tensor]:
    move(-eps)
    below = [out.detach().clone() for out in outputs_of()]
    move(eps)
    above = [out.detach().clone() for out in outputs_of()]
    for a, b in zip(below, above, strict=True):
        for name, one, other in (("shape", a.shape, b.shape), ("dtype", a.dtype, b.dtype)):
            if one != other:
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {name} when inputs are perturbed "
                    f"{where}by {eps}, but got: {name}s {one} and {other}."
                )
    return [((b - a) / (2 * eps)).reshape(-1) for a, b in zip(below, above, strict=True)]


# --- by the graph ---


def gradients(output: Tensor, inputs: Sequence[Tensor], grad_output: Tensor) -> list[Tensor | None]:
    """The gradient of one output for each input; the graph is kept."""
    found = gradiron.autograd.grad(output, list(inputs), grad_output, retain_graph=True, allow_unused=True)
    return list(found)


def backward_mode(output: Tensor, inputs: Sequence[Tensor]) -> list[list[Tensor | None]]:
    """For each input, the gradients of each element of `output`."""
    columns: list[list[Tensor | None]] = [[] for _ in inputs]
    count = output.numel()
    for place in range(count):
        unit = unit_vector(output, place).reshape(output.shape)
        for column, g in zip(columns, gradients(output, inputs, unit), strict=True):
            column.append(None if g is None else g.clone())
    return columns


def matrix(columns: Sequence[Tensor | None], x: Tensor, dtype: Any) -> Tensor:
    """The columns side by side; None stands for zeros, and so does a column of the wrong size."""
    size = x.numel()
    full = [
        gradiron.zeros(size, dtype=dtype, device=x.device) if g is None or g.numel() != size else g.reshape(-1).to(dtype)
        for g in columns
    ]
    return gradiron.stack(full, 1) if full else gradiron.zeros((size, 0), dtype=dtype, device=x.device)


def forward_mode(func: Function, inputs: Tensors, chosen: int, direction: Tensor) -> list[Tensor]:
    """The tangent of each float output as input number `chosen` moves along `direction`."""
    with forward_ad.dual_level():
        dual = [x.detach() if isinstance(x, gradiron.Tensor) else x for x in inputs]
        for number in [i for i, x in enumerate(inputs) if i == chosen or (isinstance(x, gradiron.Tensor) and x.requires_grad)]:
            x = dual[number]
            tangent = direction.reshape(x.shape) if number == chosen else gradiron.zeros_like(x)
            # Not the users' own function: directions come in batches.
            dual[number] = _core.make_dual(x, tangent, forward_ad._number)
        tangents = []
        for output in as_tuple(func(*dual)):
            if is_float(output):
                value, moved = _core.unpack_dual(output, forward_ad._number)
                tangents.append(gradiron.zeros_like(value) if moved is None else moved)
        return [tangent.detach().reshape(-1).clone() for tangent in tangents]


def units(x: Tensor) -> Iterator[Tensor]:
    """The unit vectors of the space of `x`."""
    count = x.numel()
    for place in range(count):
        yield unit_vector(x, place)


def unit_batches(points: Sequence[Tensor]) -> list[Tensor]:
    """For each tensor a batch of directions: together, the unit vectors of the space of all of them."""
    if len(points) == 1:
        (x,) = points
        count = x.numel()
        return [gradiron.eye(count, dtype=x.dtype, device=x.device).reshape((count, *x.shape))]
    total, start, batches = sum(x.numel() for x in points), 0, []
    for x in points:
        batch = gradiron.zeros((total, x.numel()), dtype=x.dtype, device=x.device)
        batch.diagonal(-start).fill_(1)
        batches.append(batch.reshape((total, *x.shape)))
        start += x.numel()
    return batches
