"""Transforms of functions by forward mode: `jvp`, `jacfwd` and `linearize`.

Each call has a level of its own, so that they nest: in one another, in reverse mode and in `vmap`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from .. import _core
from .._core import Tensor
from ..autograd import forward_ad
from ..autograd._jacobian import unit_batches
from ..utils import _pytree as tree
from ._reverse import Argnums, Recording, Reversing, checked_argnums, gradients, lent, with_aux
from ._vmap import vmap

JVP = "jvp(f, primals, tangents)"

_open = SimpleNamespace(levels=0)


class Level:
    """A level of forward mode, in which operators carry tangents on whatever was chosen outside.

    The outermost one is what users of `forward_ad` enter, too; those inside stand in its place while they last.
    """

    def __enter__(self) -> int:
        if not _open.levels:
            forward_ad.enter_dual_level()
        _open.levels += 1
        self.within = forward_ad._Within()
        number = self.within.__enter__()
        self.inference = _core.swap_inference_mode(False)
        self.enabled = _core.is_fwd_grad_enabled()
        _core.set_fwd_grad_enabled(True)
        _core.begin_transform(False, True)
        return number

    def __exit__(self, *_: object) -> None:
        _core.end_transform()
        _core.set_fwd_grad_enabled(self.enabled)
        _core.swap_inference_mode(self.inference)
        self.within.__exit__()
        _open.levels -= 1
        if not _open.levels:
            forward_ad.exit_dual_level()


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """Compute the value of a function and its Jacobian-vector product, by forward mode.

    Args:
        func: function of tensors.
        primals: tuple of inputs at which to evaluate.
        tangents: tuple of vectors of the same structure.
        strict: raise an error if an output does not depend on the inputs, instead of returning zeros. Default: `False`
        has_aux: `func` returns a pair of an output and of auxiliary data, which is returned as a third result.
            Default: `False`

    Examples:
        >>> torch.func.jvp(lambda x: x**2, (torch.tensor([1.0, 2.0]),), (torch.ones(2),))
        (tensor([1., 4.]), tensor([2., 4.]))
    """
    return _pushed(func, primals, tangents, None, strict, has_aux)


def _pushed(
    func: Callable[..., Any], primals: Any, tangents: Any, argnums: Argnums, strict: bool, has_aux: bool
) -> tuple[Any, ...]:
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    numbers = range(len(primals)) if argnums is None else checked_argnums(argnums, len(primals))
    points, structure = tree.flatten(tuple(primals[n] for n in numbers))
    directions, own = tree.flatten(tangents)
    if structure != own:
        raise RuntimeError(
            f"{JVP}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple of 3 "
            f"tensors, tangents also must be. Got primals with structure {structure} and tangents with structure {own}"
        )
    _only_tensors(points, "primals")
    _only_tensors(directions, "tangents")
    with Level() as level:
        duals = [_dual(x, v, level) for x, v in zip(points, directions, strict=True)]
        rest, rest_tree = tree.flatten([None if n in numbers else primal for n, primal in enumerate(primals)])
        others = [lent(leaf) for leaf in rest]
        _core.set_transform_inputs(duals, [leaf for leaf in others if isinstance(leaf, Tensor)])
        call = tree.unflatten(others, rest_tree)
        for number, value in zip(numbers, tree.unflatten(duals, structure), strict=True):
            call[number] = value
        value, aux = func(*call), None
        if has_aux:
            value, aux = with_aux(value, JVP)
            leaves, aux_tree = tree.flatten(aux)
            aux = tree.unflatten([_core.unpack_dual(leaf, level)[0] for leaf in leaves], aux_tree)
        outputs, shape = tree.flatten(value)
        if not outputs or (len(outputs) == 1 and outputs[0] is None):
            raise RuntimeError(f"{JVP}: Expected f to be a function that has non-empty output (got output = {outputs})")
        pairs = [_unpacked(out, level, strict) for out in outputs]
    values, moved = (tree.unflatten([pair[i] for pair in pairs], shape) for i in (0, 1))
    return (values, moved, aux) if has_aux else (values, moved)


def _only_tensors(values: list[Any], name: str) -> None:
    if not values:
        raise RuntimeError(f"{JVP}: Expected {name} to contain at least one Tensor.")
    for value in values:
        if not isinstance(value, Tensor):
            raise RuntimeError(f"{JVP}: Expected {name} to only contain Tensors, got {type(value)}")


def _dual(x: Tensor, v: Tensor, level: int) -> Tensor:
    _check_moving("primal", x)
    _check_moving("tangent", v)
    # Inside of a transform no tensor is of inference mode.
    own = _core.unrecorded(x, True) if x.is_inference() and not _core.wants_grad(x) else x
    return _core.make_dual(own, v, level)


def _check_moving(name: str, part: Tensor) -> None:
    if not (part.dtype.is_floating_point or part.dtype.is_complex):
        raise ValueError(f"Expected {name} to be floating point or complex, but got: {part.dtype}")


def _unpacked(out: Any, level: int, strict: bool) -> tuple[Tensor, Tensor]:
    if not isinstance(out, Tensor):
        raise RuntimeError(f"{JVP}: expected f(*primals) to return only tensors, got unsupported type {type(out)}")
    value, tangent = _core.unpack_dual(out, level)
    if tangent is None:
        if strict:
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed "
                "with strict=True."
            )
        tangent = _core.zeros_like(value)
    return value, tangent


def jacfwd(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `func` by forward mode, vectorized over the inputs.

    Prefer it over `jacrev` when there are fewer inputs than outputs.

    Args:
        func: function of tensors.
        argnums: index of the argument to differentiate, or a tuple of indices. Default: `0`
        has_aux: `func` returns a pair of an output and of auxiliary data, which is passed on. Default: `False`
        randomness: what random operators do: `"error"`, `"different"` or `"same"`, as for `vmap`. Default: `"error"`

    Examples:
        >>> torch.func.jacfwd(lambda x: x**2)(torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """

    @functools.wraps(func)
    def wrapper(*args: Any) -> Any:
        numbers = checked_argnums(argnums, len(args))
        points, structure = tree.flatten(tuple(args[n] for n in numbers))
        for index, x in enumerate(points):
            if isinstance(x, Tensor) and x.dtype.is_complex:
                raise RuntimeError(
                    f"jacfwd: Expected all inputs to be real but received complex tensor at flattened input idx: {index}"
                )
        units, sizes = unit_batches(points), [x.numel() for x in points]

        def push(*directions: Tensor) -> Any:
            moved = tree.unflatten(list(directions), structure)
            _, tangents, *aux = _pushed(func, args, moved, argnums, False, has_aux)
            return (tangents, *aux) if has_aux else tangents

        if sum(sizes) == 0:
            found, aux = _nothing(push(*(x.new_zeros(x.shape) for x in points)), has_aux), None
            if has_aux:
                found, aux = found
        else:
            found, aux = vmap(push, randomness=randomness)(*units), None
            if has_aux:
                found, aux = found
                leaves, aux_tree = tree.flatten(aux)
                aux = tree.unflatten([leaf[0] for leaf in leaves], aux_tree)
        columns, shape = tree.flatten(found)
        for index, column in enumerate(columns):
            if column.dtype.is_complex:
                raise RuntimeError(
                    f"jacfwd: Expected all outputs to be real but received complex tensor at flattened input idx: {index}"
                )
        blocks = [_blocks(column, points, sizes, structure, isinstance(argnums, int)) for column in columns]
        jacobian = tree.unflatten(blocks, shape)
        return (jacobian, aux) if has_aux else jacobian

    return wrapper


def _nothing(pushed: Any, has_aux: bool) -> Any:
    """No columns at all, for inputs without elements."""
    tangents, *aux = pushed if has_aux else (pushed,)
    leaves, structure = tree.flatten(tangents)
    empty = tree.unflatten([leaf.new_zeros((0, *leaf.shape)) for leaf in leaves], structure)
    return (empty, *aux) if has_aux else empty


def _blocks(column: Tensor, points: list[Tensor], sizes: list[int], structure: tree.Tree, single: bool) -> Any:
    """The Jacobian of one output, cut into one block for each input."""
    parts = column.movedim(0, -1).split(sizes, -1)
    blocks = [part.reshape((*column.shape[1:], *x.shape)) for part, x in zip(parts, points, strict=True)]
    found = tree.unflatten(blocks, structure)
    return found[0] if single else found


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Compute the value of a function and its linear approximation, a function of tangents.

    Each call of that function is cheaper than `jvp` at the same point, as `func` does not run again.

    Args:
        func: function of tensors.
        primals: inputs at which to evaluate.

    Examples:
        >>> value, push = torch.func.linearize(lambda x: x**2, torch.tensor([1.0, 2.0]))
        >>> push(torch.ones(2))
        tensor([2., 4.])
    """
    output = func(*primals)
    keep = _core.is_grad_enabled() and any(isinstance(out, Tensor) and _core.wants_grad(out) for out in tree.flatten(output)[0])
    points, structure = tree.flatten(primals)
    makers = [x.new_empty for x in points]
    for x in points:
        _check_moving("primal", x)
    # What PyTorch traces may write where it likes.
    with forward_ad.dual_level(), Recording(guards=False):
        # Their values do not matter; zero would be a corner of some formulas.
        directions = [_core.tracked(make(x.shape).fill_(1)) for make, x in zip(makers, points, strict=True)]
        duals = [forward_ad.make_dual(x, v.clone()) for x, v in zip(points, directions, strict=True)]
        leaves, shape = tree.flatten(func(*tree.unflatten(duals, structure)))
        moved = [_tangent(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        moving = [at for at, t in enumerate(moved) if isinstance(t, Tensor) and _core.wants_grad(t)]
        ends = [moved[at] for at in moving]
        starts = [_core.tracked(_core.ones_like(end)) for end in ends]
        pulled_back = gradients(ends, directions, starts, True, True)
        _core.retire_inputs(directions + starts)
    fixed = [_core.unrecorded(t) if isinstance(t, Tensor) else t for t in moved]

    def jvp_fn(*tangents: Any) -> Any:
        given, own = tree.flatten(tangents)
        if own != structure:
            raise RuntimeError(f"Expected the tangents {own} to have the same argspec as the primals {structure}")
        for index, (v, x) in enumerate(zip(given, points, strict=True)):
            for name in ("shape", "device", "dtype"):
                one, other = getattr(v, name), getattr(x, name)
                if one != other:
                    raise RuntimeError(
                        f"tangent:{index} with {name} {one} in flattened pytree doesn't match the {name} {other} of the "
                        "corresponding primal."
                    )
        record = _core.is_grad_enabled() and (keep or any(_core.wants_grad(v) for v in given))
        found = list(fixed)
        with Reversing():
            for at, t in zip(moving, gradients(pulled_back, starts, given, record, True), strict=True):
                found[at] = t
        return tree.unflatten(found, shape)

    return output, jvp_fn


def _tangent(output: Tensor) -> Tensor:
    value, tangent = forward_ad.unpack_dual(output)
    return _core.zeros_like(value) if tangent is None else tangent
