"""Jacobians, Hessians and their products with vectors, computed from functions.

`jvp` and `hvp` use reverse mode twice: the gradient is linear in the gradient of the output, and differentiating it
with
respect to that yields the product with the Jacobian from the right. The values of that gradient do not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import gradiron

from . import forward_ad
from ._jacobian import unit_batches

if TYPE_CHECKING:
    from gradiron import Tensor

Function = Callable[..., Any]
Tensors = tuple[Any, ...]

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

STRICT = "This is not allowed in strict mode"


def vjp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Compute the value of a function and the product of a vector with its Jacobian.

    Args:
        func: function from tensors to one or several tensors.
        inputs: tensor or tuple of tensors at which to evaluate.
        v: vector of the structure of the outputs; may be `None` if there is one output of one element.
        create_graph: record the computation, so that the results can be differentiated. Default: `False`
        strict: raise an error if an output does not depend on an input, instead of returning zeros. Default: `False`

    Returns:
        The outputs, and the product with the structure of the inputs.

    Examples:
        >>> torch.autograd.functional.vjp(lambda x: x**2, torch.tensor([1.0, 2.0]), torch.ones(2))
        (tensor([1., 4.]), tensor([2., 4.]))
    """
    call = _Call(inputs, "vjp", create_graph, strict).evaluate(func)
    start = call.vector(v, call.outputs, not call.one_output)
    if start is None and not _is_scalar(call.outputs):
        raise RuntimeError(
            "The vector v can only be None if the user-provided function returns a single Tensor with a single element."
        )
    found = _gradients(call.outputs, call.inputs, start, create_graph)
    product = call.filled(found, call.inputs, "output", "jacobian", "input {}")
    return call.value(), call.like_inputs(product)


def jvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Compute the value of a function and the product of its Jacobian with a vector.

    It takes two backward passes; `torch.func.jvp` takes one forward pass.

    Args:
        func: function from tensors to one or several tensors.
        inputs: tensor or tuple of tensors at which to evaluate.
        v: vector of the structure of the inputs; may be `None` if there is one input of one element.
        create_graph: record the computation, so that the results can be differentiated. Default: `False`
        strict: raise an error if an output does not depend on an input, instead of returning zeros. Default: `False`

    Returns:
        The outputs, and the product with the structure of the outputs.

    Examples:
        >>> torch.autograd.functional.jvp(lambda x: x**2, torch.tensor([1.0, 2.0]), torch.ones(2))
        (tensor([1., 4.]), tensor([2., 4.]))
    """
    call = _Call(inputs, "jvp", create_graph, strict)
    direction = call.vector_like_inputs(v)
    call.evaluate(func)
    start = tuple(gradiron.zeros_like(out, requires_grad=True) for out in call.outputs)
    gradient = _gradients(call.outputs, call.inputs, start, True)
    call.require_dependence(gradient)
    found = _gradients(gradient, start, direction, create_graph)
    product = call.filled(found, call.outputs, "gradient", "jacobian", "entry {} in the grad_outputs")
    return call.value(), call.like_outputs(product)


def vhp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Compute the value of a scalar function and the product of a vector with its Hessian.

    Args:
        func: function from tensors to a tensor of one element.
        inputs: tensor or tuple of tensors at which to evaluate.
        v: vector of the structure of the inputs; may be `None` if there is one input of one element.
        create_graph: record the computation, so that the results can be differentiated. Default: `False`
        strict: raise an error if the gradient does not depend on an input, instead of returning zeros. Default:
            `False`

    Returns:
        The output, and the product with the structure of the inputs.

    Examples:
        >>> torch.autograd.functional.vhp(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]), torch.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    call = _Call(inputs, "vhp", create_graph, strict)
    direction = call.vector_like_inputs(v)
    call.evaluate(func)
    gradient = call.gradient_of_scalar()
    call.require_curvature(gradient)
    found = _gradients(gradient, call.inputs, direction, create_graph)
    product = call.filled(found, call.inputs, "jacobian", "hessian", "input {}")
    return call.value(), call.like_inputs(product)


def hvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Compute the value of a scalar function and the product of its Hessian with a vector.

    For functions with continuous second derivatives, `vhp` gives the same with less work.

    Args:
        func: function from tensors to a tensor of one element.
        inputs: tensor or tuple of tensors at which to evaluate.
        v: vector of the structure of the inputs; may be `None` if there is one input of one element.
        create_graph: record the computation, so that the results can be differentiated. Default: `False`
        strict: raise an error if the gradient does not depend on an input, instead of returning zeros. Default:
            `False`

    Returns:
        The output, and the product with the structure of the inputs.

    Examples:
        >>> torch.autograd.functional.hvp(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]), torch.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    call = _Call(inputs, "hvp", create_graph, strict)
    direction = call.vector_like_inputs(v)
    call.evaluate(func)
    gradient = call.gradient_of_scalar()
    call.require_curvature(gradient)
    start = tuple(gradiron.zeros_like(x, requires_grad=True) for x in call.inputs)
    back = _gradients(gradient, call.inputs, start, True)
    found = _gradients(back, start, direction, create_graph)
    product = call.filled(found, call.inputs, "hessian", "hessian", "entry {} in the grad_jacobian")
    return call.value(), call.like_inputs(product)


def jacobian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Compute the Jacobian of a function.

    For one output and one input it is a tensor of shape `output.shape + input.shape`; several outputs or inputs give
    (nested) tuples.

    Args:
        func: function from tensors to one or several tensors.
        inputs: tensor or tuple of tensors at which to evaluate.
        create_graph: record the computation, so that the result can be differentiated. Default: `False`
        strict: raise an error if an output does not depend on an input, instead of returning zeros. Default: `False`
        vectorize: compute all rows or columns in one pass, by `vmap`. Default: `False`
        strategy: `"reverse-mode"` computes rows, `"forward-mode"` columns (with `vectorize` only). Default:
            `"reverse-mode"`

    Examples:
        >>> torch.autograd.functional.jacobian(lambda x: x**2, torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    for option, asked, kind in (("create_graph", create_graph, NotImplementedError), ("strict", strict, RuntimeError)):
        if asked and strategy == "forward-mode":
            raise kind(
                f'torch.autograd.functional.jacobian: `{option}=True` and `strategy="forward-mode"` '
                f'are not supported together (yet). Please either set `{option}=False` or `strategy="reverse-mode"`.'
            )
    if strategy == "forward-mode":
        if not vectorize:
            raise NotImplementedError(
                "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for `vectorize=True`."
            )
        return _columns_at_once(func, inputs)
    call = _Call(inputs, "jacobian", create_graph, strict).evaluate(func)
    if vectorize and strict:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
            "Please either set `strict=False` or `vectorize=False`."
        )
    with gradiron.enable_grad():
        at_once = _rows_at_once(call) if vectorize else None
        blocks = []
        for number, out in enumerate(call.outputs):
            rows = _rows(call, number, out) if at_once is None else at_once[number]
            pairs = zip(rows, call.inputs, strict=True)
            blocks.append(tuple(row.reshape(tuple(out.shape) + tuple(x.shape)) for row, x in pairs))
    return call.like_outputs(tuple(call.like_inputs(block) for block in blocks))


def hessian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Compute the Hessian of a scalar function.

    For one input it is a tensor of shape `input.shape + input.shape`; several inputs give nested tuples.

    Args:
        func: function from tensors to a tensor of one element.
        inputs: tensor or tuple of tensors at which to evaluate.
        create_graph: record the computation, so that the result can be differentiated. Default: `False`
        strict: raise an error if the gradient does not depend on an input, instead of returning zeros. Default:
            `False`
        vectorize: compute all rows or columns in one pass, by `vmap`. Default: `False`
        outer_jacobian_strategy: mode that differentiates the gradient, `"forward-mode"` or `"reverse-mode"`. Default:
            `"reverse-mode"`

    Examples:
        >>> torch.autograd.functional.hessian(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    single = not isinstance(inputs, tuple)
    _tensors(inputs, "inputs", "hessian")

    def gradient(*xs: Tensor) -> Tensors:
        if outer_jacobian_strategy == "forward-mode":
            xs = tuple(gradiron._core.tracked(x) for x in xs)
        call = _Call(xs, "hessian", True, strict, inner=True).evaluate(func)
        found = zip(call.gradient_of_scalar(), call.inputs, strict=True)
        filled = tuple(gradiron.zeros_like(x) if g is None else g for g, x in found)
        call.require_curvature(filled)
        return filled

    found = jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return found[0] if single else found


# --- the common part ---


class _Call:
    """A function called on fresh copies of its inputs, so that only what goes through the arguments counts."""

    def __init__(self, inputs: Any, name: str, create_graph: bool, strict: bool, inner: bool = False) -> None:
        self.name, self.create_graph, self.strict = name, create_graph, strict
        self.one_input = not isinstance(inputs, tuple)
        given = _tensors(inputs, "inputs", name)
        if not inner:
            gradiron._core.refuse_leaves()
        with gradiron.enable_grad():
            self.inputs = tuple(
                x.view(x.shape) if create_graph and gradiron._core.wants_grad(x) else gradiron._core.tracked(x.detach())
                for x in given
            )
        self.one_output = True
        self.outputs: Tensors = ()

    def evaluate(self, func: Function) -> _Call:
        with gradiron.enable_grad():
            outputs = func(*self.inputs)
        self.one_output = not isinstance(outputs, tuple)
        self.outputs = _tensors(outputs, "outputs of the user-provided function", self.name)
        for number, out in enumerate(self.outputs):
            if self.strict and not gradiron._core.wants_grad(out):
                raise RuntimeError(
                    f"Output {number} of the user-provided function does not require gradients. The outputs must "
                    "be computed in a differentiable manner from the input when running in strict mode."
                )
        return self

    def vector(self, v: Any, like: Tensors, many: bool) -> Tensors | None:
        """The user's `v`, whose parts have to have the shapes of `like`."""
        if v is None:
            return None
        parts = _tensors(v, "v", self.name)
        if len(parts) != len(like):
            raise RuntimeError(
                f"v is a tuple of invalid length: should be {len(like)} but got {len(parts)}."
                if many
                else "The given v should contain a single Tensor."
            )
        for number, (part, other) in enumerate(zip(parts, like, strict=True)):
            if part.shape != other.shape:
                where = f"Entry {number} in " if many else ""
                raise RuntimeError(f"{where}v has invalid size: should be {other.shape} but got {part.shape}.")
        return tuple(
            part.view(part.shape) if self.create_graph and gradiron._core.wants_grad(part) else part.detach() for part in parts
        )

    def vector_like_inputs(self, v: Any) -> Tensors | None:
        if v is None and not _is_scalar(self.inputs):
            raise RuntimeError(
                "The vector v can only be None if the input to the user-provided function is a single Tensor "
                "with a single element."
            )
        return self.vector(v, self.inputs, not self.one_input)

    def gradient_of_scalar(self) -> Tensors:
        """The gradient of a function with one output of one element, None where it does not depend on an input."""
        if not self.one_output:
            raise RuntimeError(f"The function given to {self.name} should return a single Tensor")
        if self.outputs[0].numel() != 1:
            raise RuntimeError(f"The Tensor returned by the function given to {self.name} should contain a single element")
        return _gradients(self.outputs, self.inputs, None, True)

    def require_curvature(self, gradient: Tensors) -> None:
        for number, g in enumerate(gradient):
            if self.strict and g is None:
                text = f"The output of the user-provided function is independent of input {number}."
                raise RuntimeError(f"{text} {STRICT}.")
            if self.strict and not gradiron._core.wants_grad(g):
                raise RuntimeError(
                    "While computing the hessian, found that the jacobian of the user-provided function with respect "
                    f"to input {number} is independent of the input. {STRICT}. You should ensure that your function "
                    "is twice differentiable and that the jacobian depends on the inputs (this would be violated by "
                    "a linear function for example)."
                )

    def require_dependence(self, gradient: Tensors) -> None:
        for number, g in enumerate(gradient):
            if self.strict and g is None:
                raise RuntimeError(f"The output of the user-provided function is independent of input {number}. {STRICT}.")
            if self.strict and not gradiron._core.wants_grad(g):
                raise RuntimeError(
                    f"The gradient with respect to input {number} is independent of the inputs of the "
                    f"user-provided function. {STRICT}."
                )

    def filled(self, found: Tensors, like: Tensors, what: str, derived: str, of: str) -> Tensors:
        """Zeros for what is missing; in strict mode an error that names it."""
        for number, g in enumerate(found):
            if self.strict and g is None:
                subject = "gradient with respect to the" if what == "gradient" else f"{what} of the user-provided"
                noun = "input" if what == "gradient" else "function"
                raise RuntimeError(f"The {subject} {noun} is independent of {of.format(number)}. {STRICT}.")
            if self.strict and self.create_graph and not gradiron._core.wants_grad(g):
                raise RuntimeError(
                    f"The {derived} of the user-provided function is independent of input {number}. "
                    f"{STRICT} when create_graph=True."
                )
        return tuple(gradiron.zeros_like(x) if g is None else g for g, x in zip(found, like, strict=True))

    # what the user gets: with a history only if asked for, and a tuple only where there was one

    def value(self) -> Any:
        return self.like_outputs(self.outputs)

    def like_inputs(self, parts: Tensors) -> Any:
        return self._given(parts, self.one_input)

    def like_outputs(self, parts: Tensors) -> Any:
        return self._given(parts, self.one_output)

    def _given(self, parts: Tensors, one: bool) -> Any:
        if not self.create_graph:
            parts = tuple(part if isinstance(part, tuple) else part.detach() for part in parts)
        return parts[0] if one else parts


def _tensors(value: Any, what: str, name: str) -> Tensors:
    parts = value if isinstance(value, tuple) else (value,)
    for number, part in enumerate(parts):
        if not isinstance(part, gradiron.Tensor):
            which = f"value at index {number}" if isinstance(value, tuple) else f"given {what}"
            raise TypeError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the"
                f" {which} has type {type(part)}."
            )
    return parts


def _is_scalar(tensors: Tensors) -> bool:
    return len(tensors) == 1 and tensors[0].numel() == 1


def _gradients(outputs: Tensors, inputs: Sequence[Tensor], start: Tensors | None, create_graph: bool) -> Tensors:
    """The gradients for `inputs`, None where nothing depends on one. Outputs without a history give nothing."""
    starts = start or (None,) * len(outputs)
    pairs = [(out, g) for out, g in zip(outputs, starts, strict=True) if out is not None and gradiron._core.wants_grad(out)]
    if not pairs:
        return (None,) * len(inputs)
    return gradiron._core.run_grad([out for out, _ in pairs], list(inputs), [g for _, g in pairs], create_graph, create_graph)


# --- by the names that packages import ---


def _as_tuple(inp: Any, arg_name: str | None = None, fn_name: str | None = None) -> Any:
    """A value as a tuple; by names of an argument and a function also whether it was one, and checked to be of tensors."""
    if arg_name is None and fn_name is None:
        return inp if isinstance(inp, tuple) else tuple(inp) if isinstance(inp, list) else (inp,)
    return isinstance(inp, tuple), _tensors(inp, str(arg_name), str(fn_name))


def _construct_standard_basis_for(tensors: Sequence[Tensor], tensor_numels: Sequence[int]) -> Tensors:
    """The unit vectors of the space of all tensors together, as one batch for each."""
    if len(tensors) != len(tensor_numels):
        raise AssertionError(f"len(tensors)={len(tensors)} != len(tensor_numels)={len(tensor_numels)}")
    if not tensors:
        raise AssertionError("Expected at least one tensor")
    batches = zip(unit_batches(tensors), tensor_numels, strict=True)
    return tuple(batch.reshape(-1, numel) for batch, numel in batches)


def _grad_postprocess(inputs: Any, create_graph: bool) -> Any:
    """Tensors without their history, however nested in tuples; as they are where a graph is wanted."""
    if create_graph:
        return inputs
    if isinstance(inputs, gradiron.Tensor):
        return inputs.detach()
    return tuple(_grad_postprocess(part, create_graph) for part in inputs)


def _tuple_postprocess(res: Any, to_unpack: bool | tuple[bool, bool]) -> Any:
    """A result with only the tuples the user knows: `to_unpack` says whether he gave the outer and the inner ones."""
    outer, inner = to_unpack if isinstance(to_unpack, tuple) else (to_unpack, True)
    if not inner:
        res = tuple(part[0] for part in res)
    return res if outer else res[0]


# --- the rows and columns of a Jacobian ---


def _rows(call: _Call, number: int, out: Tensor) -> list[Tensor]:
    """For each input, the gradients of the elements of an output, one backward pass for each."""
    rows: list[list[Tensor]] = [[] for _ in call.inputs]
    with gradiron.enable_grad():
        elements = out.reshape(-1)
        for i in range(out.numel()):
            found: Tensors = (None,) * len(call.inputs)
            if gradiron._core.wants_grad(elements):
                found = gradiron.autograd.grad(
                    elements[i], call.inputs, retain_graph=True, create_graph=call.create_graph, allow_unused=True
                )
            for position, (g, x) in enumerate(zip(found, call.inputs, strict=True)):
                if call.strict and g is None:
                    text = f"Output {number} of the user-provided function is independent of input {position}."
                    raise RuntimeError(f"{text} {STRICT}.")
                if call.strict and call.create_graph and not gradiron._core.wants_grad(g):
                    text = f"The jacobian of the user-provided function is independent of input {position}."
                    raise RuntimeError(f"{text} {STRICT} when create_graph=True.")
                rows[position].append(gradiron.zeros_like(x) if g is None else g)
        return [gradiron.stack(row) for row in rows]


def _rows_at_once(call: _Call) -> list[tuple[Tensor, ...]]:
    """The same for all outputs in one batched pass."""
    counts = [out.numel() for out in call.outputs]
    total = sum(counts)
    if not total:
        raise IndexError("index 0 is out of bounds for dimension 0 with size 0")
    found: Tensors = (None,) * len(call.inputs)
    pairs = [
        (out, start)
        for out, start in zip(call.outputs, unit_batches(call.outputs), strict=True)
        if gradiron._core.wants_grad(out)
    ]
    if pairs:
        found = gradiron.autograd.grad(
            [out for out, _ in pairs],
            call.inputs,
            [start for _, start in pairs],
            retain_graph=True,
            create_graph=call.create_graph,
            allow_unused=True,
            is_grads_batched=True,
        )
    columns = [x.new_zeros((total, *x.shape)) if g is None else g for g, x in zip(found, call.inputs, strict=True)]
    return list(zip(*(column.split(counts) for column in columns), strict=True))


def _columns_at_once(func: Function, inputs: Any) -> Any:
    """By forward mode, all columns in one batched pass."""
    from ..func import jacfwd
    from ..func._function import without_rules

    given = _tensors(inputs, "inputs", "jacobian")
    forward_ad._refuse_nested()
    one_output = True

    def checked(*xs: Tensor) -> Tensors:
        nonlocal one_output
        outputs = func(*xs)
        one_output = not isinstance(outputs, tuple)
        return _tensors(outputs, "outputs", "None")

    with without_rules():
        found = jacfwd(checked, argnums=tuple(range(len(given))))(*given)
    # The containers are those that PyTorch's own way through leaves behind.
    blocks = [list(row) for row in found] if isinstance(inputs, tuple) else tuple(row[0] for row in found)
    return blocks[0] if one_output else blocks
