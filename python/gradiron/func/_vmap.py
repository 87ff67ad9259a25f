"""`vmap`: a function of one sample, vectorized over a batch dimension that the function does not see."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from ..random import get_rng_state, set_rng_state
from ..utils import _pytree as tree

In = Any


def vmap(
    func: Callable[..., Any],
    in_dims: In = 0,
    out_dims: In = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Vectorize a function over a batch dimension of its inputs.

    Args:
        func: function of one sample.
        in_dims: batch dimension of each input, `None` for inputs that all samples share. Default: `0`
        out_dims: where the batch dimension goes in each output. Default: `0`
        randomness: what random operators do: `"error"`, `"different"` or `"same"` numbers for all samples. Default:
            `"error"`
        chunk_size: number of samples that are computed at once; all if `None`.

    Examples:
        >>> torch.func.vmap(torch.dot)(torch.ones(3, 2), torch.ones(3, 2))
        tensor([2., 2., 2.])
        >>> torch.func.vmap(torch.dot, in_dims=(0, None))(torch.ones(3, 2), torch.ones(2)).shape
        torch.Size([3])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        call = _Call(func, in_dims, out_dims, args)
        if chunk_size is not None and call.size > 0:
            return call.in_chunks(kwargs, randomness, chunk_size)
        return call.run(call.leaves, call.size, kwargs, randomness)

    return functools.wraps(func)(wrapped) if hasattr(func, "__name__") else wrapped


def name_of(func: Any) -> str:
    return getattr(func, "__name__", None) or repr(func)


class _Call:
    """A call's arguments taken apart, with the batched dimension of each."""

    def __init__(self, func: Callable[..., Any], in_dims: In, out_dims: In, args: tuple[Any, ...]) -> None:
        self.func, self.out_dims, self.name = func, out_dims, name_of(func)
        if not isinstance(out_dims, int) and not all(d is None or isinstance(d, int) for d in tree.flatten(out_dims)[0]):
            raise ValueError(
                f"vmap({self.name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints "
                "representing where in the outputs the vmapped dimension should appear."
            )
        call = f"vmap({self.name}, in_dims={in_dims}, ...)(<inputs>)"
        if not isinstance(in_dims, (int, tuple)):
            raise ValueError(
                f"{call}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
                f"got: {type(in_dims)}."
            )
        if not args:
            raise ValueError(
                f"vmap({self.name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over "
                "a function with no inputs. The latter is unsupported."
            )
        self.leaves, self.tree = tree.flatten(args)
        dims = tree.spread(in_dims, self.tree)
        if dims is None:
            raise ValueError(
                f"{call}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
                f"{tree.flatten(in_dims)[1]} but inputs has structure {self.tree}."
            )
        self.dims = [self._checked(call, leaf, dim) for leaf, dim in zip(self.leaves, dims, strict=True)]
        sizes = [leaf.shape[dim] for leaf, dim in zip(self.leaves, self.dims, strict=True) if dim is not None]
        if not sizes:
            raise ValueError("vmap: Expected at least one Tensor to vmap over")
        if any(size != sizes[0] for size in sizes):
            raise ValueError(
                f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped "
                "dimension"
            )
        self.size = sizes[0]

    @staticmethod
    def _checked(call: str, leaf: Any, dim: Any) -> int | None:
        if dim is None:
            return None
        if not isinstance(dim, int):
            raise ValueError(f"{call}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None.")
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{call}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over non-Tensor "
                "arguments, please use None as the respective in_dim"
            )
        rank: int = leaf.dim()
        if dim < -rank or dim >= rank:
            raise ValueError(
                f"{call}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {rank} so expected "
                f"in_dim to satisfy -{rank} <= in_dim < {rank}."
            )
        return dim % rank

    def run(self, leaves: list[Any], size: int, kwargs: dict[str, Any], randomness: str) -> Any:
        level = _core.vmap_enter(size, randomness)
        try:
            batched = [
                leaf if dim is None else _core.add_batch_dim(leaf, dim, level)
                for leaf, dim in zip(leaves, self.dims, strict=True)
            ]
            outputs = self.func(*tree.unflatten(batched, self.tree), **kwargs)
            return self._unwrapped(outputs, level, size)
        finally:
            _core.vmap_leave()

    def _unwrapped(self, outputs: Any, level: int, size: int) -> Any:
        found, structure = tree.flatten(outputs)
        dims = self._out_dims(structure)
        made = []
        for out, dim in zip(found, dims, strict=True):
            if not isinstance(out, Tensor):
                if dim is None:
                    made.append(out)
                    continue
                raise ValueError(
                    f"vmap({self.name}, ...): `{self.name}` must only return Tensors, got type {type(out)}. Did you mean to "
                    "set out_dims= to None for output?"
                )
            if dim is None and _core.is_batched(out, level):
                raise ValueError(f"vmap({self.name}, ...): `{self.name}` can not return a BatchedTensor when out_dim is None")
            made.append(out if dim is None else _core.remove_batch_dim(out, level, size, dim))
        return tree.unflatten(made, structure)

    def _out_dims(self, structure: tree.Tree) -> list[Any]:
        given = self.out_dims
        # A tuple of one dimension stands for the only output.
        alone = structure.is_leaf() and isinstance(given, tuple) and len(given) == 1
        dims = tree.spread(given[0] if alone else given, structure)
        if dims is None:
            raise ValueError(
                f"vmap({self.name}, ..., out_dims={given})(<inputs>): out_dims is not compatible with the structure of "
                f"`outputs`. out_dims has structure {tree.flatten(given)[1]} but outputs has structure {structure}."
            )
        return dims

    def in_chunks(self, kwargs: dict[str, Any], randomness: str, chunk_size: int) -> Any:
        parts, structure = [], tree.LEAF
        state = get_rng_state() if randomness == "same" else None
        for start in range(0, self.size, chunk_size):
            length = min(chunk_size, self.size - start)
            leaves = [
                leaf if dim is None else leaf.narrow(dim, start, length)
                for leaf, dim in zip(self.leaves, self.dims, strict=True)
            ]
            if state is not None:
                set_rng_state(state)
            found, structure = tree.flatten(self.run(leaves, length, kwargs, randomness))
            parts.append(found)
        dims = self._out_dims(structure)
        joined = [
            pieces[0] if dim is None else _core.cat(list(pieces), dim)
            for pieces, dim in zip(zip(*parts, strict=True), dims, strict=True)
        ]
        return tree.unflatten(joined, structure)
