"""Transforms of functions by reverse mode: `grad`, `vjp`, `jacrev` and what is built on them.

A transform gives the function an alias of each input on a node of its own, and asks the one tape for the gradients of these
aliases. Its results stay connected to the tape only where the output depends on something else that wants a gradient: a
transform around this one, or the user's own leaves.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gradiron

from .. import _core
from .._core import Tensor
from ..autograd import forward_ad
from ..autograd._jacobian import unit_batches
from ..utils import _pytree as tree
from ._vmap import vmap

Argnums = Any


def alias(x: Any) -> Tensor:
    """`x` as an input of its own."""
    if not isinstance(x, Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
    return _core.aliased(x) if _core.wants_grad(x) else _core.tracked(_core.unrecorded(x, True))


def lent(x: Any) -> Any:
    """An argument that is not differentiated, which may be written: its values are the caller's, its history is not."""
    return _core.unrecorded(x, True) if isinstance(x, Tensor) and not _core.wants_grad(x) else x


class Reversing:
    """What runs inside is differentiated by a transform that began here: by itself for each sample of a `vmap` around it."""

    def __enter__(self) -> None:
        self.inference = _core.swap_inference_mode(False)
        _core.count_reverse(True)

    def __exit__(self, *_: object) -> None:
        _core.count_reverse(False)
        _core.swap_inference_mode(self.inference)


class Recording:
    """Inside a transform recording is on, whatever it was outside, and which tensors want gradients is its own affair.

    Inference mode outside is none inside, too.
    """

    def __init__(self, guards: bool = True) -> None:
        self.guards = guards

    def __enter__(self) -> Recording:
        self.outside = _core.is_grad_enabled()
        self.inference = _core.swap_inference_mode(False)
        self.within = forward_ad._Within()
        self.within.__enter__()
        self.since = _core.begin_transform(True, self.guards)
        _core.set_recording(True)
        _core.count_reverse(True)
        return self

    def __exit__(self, *_: object) -> None:
        _core.count_reverse(False)
        _core.end_transform()
        _core.set_recording(self.outside)
        self.within.__exit__()
        _core.swap_inference_mode(self.inference)

    def goes_on(self, outputs: list[Any], own: list[Tensor]) -> bool:
        """Whether the history of any output belongs to somebody else than these inputs, too, and somebody records it."""
        return self.outside and any(isinstance(out, Tensor) and _core.reaches_others(out, own, self.since) for out in outputs)

    def released(self, value: Any, inputs: Inputs) -> Any:
        """What a transform hands out: without a history, unless that goes on."""
        leaves, structure = tree.flatten(value)
        out = [
            inputs.outside(leaf, self.goes_on([leaf], inputs.aliases)) if isinstance(leaf, Tensor) else leaf for leaf in leaves
        ]
        return tree.unflatten(out, structure)


def gradients(
    outputs: list[Tensor],
    inputs: list[Tensor],
    starts: list[Any],
    create_graph: bool,
    retain_graph: bool,
    recorded: bool = False,
) -> list[Tensor]:
    """The gradients of the inputs, zeros where nothing depends on one; `recorded`: whether the caller records operators."""
    pairs = [(out, start) for out, start in zip(outputs, starts, strict=True) if _core.wants_grad(out)]
    found: tuple[Any, ...] = (None,) * len(inputs)
    if pairs:
        roots, starts = [out for out, _ in pairs], [start for _, start in pairs]
        found = _core.run_grad(roots, inputs, starts, retain_graph, create_graph)
        if recorded:
            _core.allow_view_writes(found)
    return [_core.zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True)]


def checked_argnums(argnums: Argnums, count: int) -> tuple[int, ...]:
    """The positions that are differentiated, counted from the front."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    given = (argnums,) if isinstance(argnums, int) else argnums
    if not given:
        raise RuntimeError("argnums must be non-empty")
    for number in given:
        if not isinstance(number, int):
            raise RuntimeError(f"argnum must be int, got: {type(number)}")
        if not -count <= number < count:
            raise RuntimeError(f"Got argnum={number}, but only {count} positional inputs")
    wrapped = tuple(number % count for number in given)
    if len(set(wrapped)) != len(wrapped):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return wrapped


class Inputs:
    """The differentiated ones among a call's arguments, as aliases, the others as they are lent, and the call with them all."""

    def __init__(self, args: tuple[Any, ...], argnums: Argnums, kwargs: dict[str, Any] | None = None) -> None:
        numbers = checked_argnums(argnums, len(args))
        chosen = args[numbers[0]] if isinstance(argnums, int) else tuple(args[n] for n in numbers)
        leaves, self.tree = tree.flatten(chosen)
        self.aliases = [alias(leaf) for leaf in leaves]
        placed = tree.unflatten(self.aliases, self.tree)
        own = set(numbers)
        rest, structure = tree.flatten(([None if n in own else arg for n, arg in enumerate(args)], kwargs or {}))
        others = [lent(leaf) for leaf in rest]
        call, self.kwargs = tree.unflatten(others, structure)
        for number, value in zip(numbers, (placed,) if isinstance(argnums, int) else placed, strict=True):
            call[number] = value
        self.args = tuple(call)
        self.lent = [leaf for leaf in others if isinstance(leaf, Tensor)]
        self.given = leaves + [leaf for leaf in rest if isinstance(leaf, Tensor)]

    def adopt(self) -> None:
        """Says to the innermost transform what it was given."""
        _core.set_transform_inputs(self.aliases, self.lent)

    def outside(self, out: Tensor, keep: bool) -> Tensor:
        """What the caller sees of an output: an input is the caller's own, a view of it is a view of that."""
        base = out._base
        for own, given in zip((*self.aliases, *self.lent), self.given, strict=True):
            if out is own:
                return given
            if base is own and not (keep or _core.is_batched(given)):
                with gradiron.no_grad():
                    return given.as_strided(out.shape, out.stride(), out.storage_offset())
        return out if keep else _core.unrecorded(out)

    def shaped(self, found: list[Any]) -> Any:
        return tree.unflatten(found, self.tree)


def with_aux(value: Any, where: str) -> tuple[Any, Any]:
    if not (isinstance(value, tuple) and len(value) == 2):
        raise RuntimeError(f"{where}: output of function f should be a tuple: (output, aux) if has_aux is True")
    aux = tree.flatten(value[1])[0]
    for leaf in aux:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")
    return value


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of a scalar function and its value.

    Args:
        func: function whose (first) output is a tensor of one element.
        argnums: index of the argument to differentiate, or a tuple of indices. Default: `0`
        has_aux: `func` returns a pair of an output and of auxiliary data; the result is `(gradient, (value, data))`.
            Default: `False`

    Examples:
        >>> torch.func.grad_and_value(lambda x: x**3)(torch.tensor(2.0))
        (tensor(12.), tensor(8.))
    """
    where = "grad_and_value(f)(*args)"

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with Recording() as recording:
            inputs = Inputs(args, argnums, kwargs)
            inputs.adopt()
            output, aux = func(*inputs.args, **inputs.kwargs), None
            if has_aux:
                output, aux = with_aux(output, where)
            if not isinstance(output, Tensor):
                raise RuntimeError(f"{where}: Expected f(*args) to return a Tensor, got {type(output)}")
            if output.dim() != 0:
                raise RuntimeError(
                    f"{where}: Expected f(*args) to return a scalar Tensor, got tensor with {output.dim()} dims. Maybe you "
                    "wanted to use the vjp or jacrev APIs instead?"
                )
            keep = recording.goes_on([output], inputs.aliases)
            # A history that goes on belongs to others as well: their backward comes later.
            found = gradients([output], inputs.aliases, [None], keep, True, recording.outside)
            _core.retire_inputs(inputs.aliases)
            value = inputs.outside(output, keep)
            gradient = inputs.shaped(found)
            if has_aux:
                return gradient, (value, recording.released(aux, inputs))
            return gradient, value

    return wrapper


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of a scalar function.

    Args:
        func: function whose (first) output is a tensor of one element.
        argnums: index of the argument to differentiate, or a tuple of indices. Default: `0`
        has_aux: `func` returns a pair of an output and of auxiliary data, which is passed on. Default: `False`

    Examples:
        >>> torch.func.grad(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
        tensor([ 3., 12.])
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


VJP = "vjp(f, *primals)"


class Pulled:
    """A function evaluated at a point, and the way back from its outputs to its inputs."""

    def __init__(self, func: Callable[..., Any], inputs: Inputs, has_aux: bool) -> None:
        self.inputs = inputs
        with Recording() as recording:
            inputs.adopt()
            value, aux = func(*inputs.args), None
            if has_aux:
                value, aux = with_aux(value, VJP)
            self.outputs, self.tree = tree.flatten(value)
            nothing = not self.outputs or (len(self.outputs) == 1 and self.outputs[0] is None)
            if nothing:
                raise RuntimeError(
                    f"{VJP}: Expected f to be a function that has non-empty output (got output = {self.outputs})"
                )
            for out in self.outputs:
                if not isinstance(out, Tensor):
                    raise RuntimeError(f"{VJP}: expected f(*primals) to return only tensors, got unsupported type {type(out)}")
                if not (out.dtype.is_floating_point or out.dtype.is_complex):
                    raise RuntimeError(
                        "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                        f"{out.dtype}"
                    )
            self.keep = recording.goes_on(self.outputs, inputs.aliases)
            self.aux = recording.released(aux, inputs) if has_aux else None
            _core.retire_inputs(inputs.aliases)

    def value(self) -> Any:
        return tree.unflatten([self.inputs.outside(out, self.keep) for out in self.outputs], self.tree)

    def back(self, outputs: list[Tensor], starts: list[Tensor], create_graph: bool, retain_graph: bool = True) -> list[Tensor]:
        return gradients(outputs, self.inputs.aliases, starts, create_graph, retain_graph, _core.is_grad_enabled())


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Compute the value of a function and return it with its vector-Jacobian product function.

    Args:
        func: function of tensors.
        primals: inputs at which to evaluate.
        has_aux: `func` returns a pair of an output and of auxiliary data, which is returned as a third result.
            Default: `False`

    Returns:
        The output, and a function from gradients of the outputs to a tuple of gradients of the inputs.

    Examples:
        >>> value, pull = torch.func.vjp(lambda x: x**2, torch.tensor([1.0, 2.0]))
        >>> pull(torch.ones(2))
        (tensor([2., 4.]),)
    """
    with Recording():
        inputs = Inputs(primals, tuple(range(len(primals))))
    pulled = Pulled(func, inputs, has_aux)
    if not _core.is_grad_enabled():
        pulled.keep = False

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given, structure = tree.flatten(cotangents)
        if structure != pulled.tree:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                f"cotangents: {structure.short()}, primal output: {pulled.tree.short()}"
            )
        record = create_graph
        if record is None:
            moving = any(isinstance(g, Tensor) and _core.wants_grad(g) for g in given)
            record = _core.is_grad_enabled() and (pulled.keep or moving)
        with Reversing():
            return inputs.shaped(pulled.back(pulled.outputs, given, record, retain_graph))

    if has_aux:
        return pulled.value(), vjp_fn, pulled.aux
    return pulled.value(), vjp_fn


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `func` by reverse mode, vectorized over the outputs.

    Prefer it over `jacfwd` when there are fewer outputs than inputs.

    Args:
        func: function of tensors.
        argnums: index of the argument to differentiate, or a tuple of indices. Default: `0`
        has_aux: `func` returns a pair of an output and of auxiliary data, which is passed on. Default: `False`
        chunk_size: number of rows that are computed at once; all if `None`.

    Examples:
        >>> torch.func.jacrev(lambda x: x**2)(torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: Any) -> Any:
        with Recording():
            inputs = Inputs(args, argnums)
        _only_real(inputs.aliases, "inputs")
        pulled = Pulled(func, inputs, has_aux)
        _only_real(pulled.outputs, "outputs")
        record = _core.is_grad_enabled() and pulled.keep
        with Reversing():
            rows = _rows(pulled, record, chunk_size)
        jacobian = tree.unflatten([inputs.shaped(row) for row in rows], pulled.tree)
        return (jacobian, pulled.aux) if has_aux else jacobian

    return wrapper


def _only_real(tensors: list[Tensor], what: str) -> None:
    for index, t in enumerate(tensors):
        if t.dtype.is_complex:
            raise RuntimeError(
                f"jacrev: Expected all {what} to be real but received complex tensor at flattened input idx: {index}"
            )


def _rows(pulled: Pulled, record: bool, chunk_size: int | None) -> list[list[Tensor]]:
    """For each output and each input, the gradients of all elements of the output."""
    outputs, inputs = pulled.outputs, pulled.inputs.aliases
    counts = [out.numel() for out in outputs]
    if sum(counts) == 0:
        found = [g.unsqueeze(0)[:0] for g in pulled.back(outputs, [_core.zeros_like(out) for out in outputs], record)]
    else:
        pull = vmap(lambda *units: tuple(pulled.back(outputs, list(units), record)), chunk_size=chunk_size)
        found = pull(*unit_batches(outputs))
    columns = zip(*(column.split(counts) for column in found), strict=True)
    return [
        [rows.reshape((*out.shape, *x.shape)) for rows, x in zip(block, inputs, strict=True)]
        for out, block in zip(outputs, columns, strict=True)
    ]


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return a function that computes the Hessian of `func`, by forward over reverse mode.

    Args:
        func: function of tensors.
        argnums: index of the argument to differentiate, or a tuple of indices. Default: `0`

    Examples:
        >>> torch.func.hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    from . import jacfwd

    return jacfwd(jacrev(func, argnums), argnums)
