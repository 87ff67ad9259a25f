"""Custom Functions under `vmap`: by their own `vmap` staticmethod, or by running their methods over samples themselves."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _core
from .._core import Tensor
from ..autograd.function import Function
from ..utils import _pytree as tree
from ._vmap import vmap

GUIDE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """What a `vmap` staticmethod is told."""

    batch_size: int
    randomness: str


def apply_batched(cls: Any, args: tuple[Any, ...], level: int, size: int, randomness: str) -> Any:
    """`cls.apply(*args)` where some of the arguments are batched, at most at `level`."""
    own = cls.vmap is not Function.vmap
    if not cls._own_setup:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override "
            f"the setup_context staticmethod. {GUIDE}"
        )
    if own and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
            f"ambiguity. {GUIDE}"
        )
    if not own and not cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement the "
            f"vmap staticmethod or set generate_vmap_rule=True. {GUIDE}"
        )
    physical, dims = [], []
    for arg in args:
        value = _core.unwrap_batched(arg, level) if isinstance(arg, Tensor) else None
        physical.append(arg if value is None else value)
        dims.append(None if value is None else 0)
    if own:
        made = cls.vmap(VmapInfo(size, randomness), tuple(dims), *physical)
        if not (isinstance(made, tuple) and len(made) == 2):
            raise RuntimeError(
                "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible "
                f"with the output. Got a {type(made)} instead"
            )
        outputs, out_dims = made
    else:
        outputs, out_dims = generated(cls, tuple(dims), randomness).apply(*physical), 0
    leaves, structure = tree.flatten(outputs)
    places = tree.spread(out_dims, structure)
    if places is None:
        raise RuntimeError(
            f"{cls.__name__}.vmap: out_dims has structure {tree.flatten(out_dims)[1]} but the output has structure {structure}"
        )
    wrapped = [
        _core.add_batch_dim(leaf, dim, level) if isinstance(leaf, Tensor) and dim is not None else leaf
        for leaf, dim in zip(leaves, places, strict=True)
    ]
    return tree.unflatten(wrapped, structure)


class SampleContext:
    """The context that a Function's methods see when they run over samples."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self.saved_tensors: tuple[Any, ...] = ()
        self._marked: dict[str, tuple[Any, ...]] = {}
        self._materialize = True

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        self.saved_tensors = self.saved_tensors or tensors

    def mark_dirty(self, *tensors: Any) -> None:
        self._marked["dirty"] = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        self._marked["plain"] = tensors

    def set_materialize_grads(self, value: bool) -> None:
        self._materialize = value


def generated(cls: Any, dims: tuple[Any, ...], randomness: str) -> Any:
    """A Function over many samples whose methods are those of `cls`, each over one; made once for each kind of call."""
    if "_vmapped" not in cls.__dict__:
        cls._vmapped = {}
    key = (dims, randomness)
    if key not in cls._vmapped:
        cls._vmapped[key] = _made(cls, dims, randomness)
    return cls._vmapped[key]


def _made(cls: Any, dims: tuple[Any, ...], randomness: str) -> Any:

    def over(function: Any, in_dims: tuple[Any, ...], values: tuple[Any, ...]) -> list[Any]:
        """The function's results, those that are None left alone."""
        there: list[bool] = []

        def run(*given: Any) -> tuple[Any, ...]:
            results = function(*given)
            there.extend(isinstance(r, Tensor) for r in results)
            return tuple(r for r in results if isinstance(r, Tensor))

        if all(dim is None for dim in in_dims):
            return list(function(*values))
        found = iter(vmap(run, in_dims=in_dims, randomness=randomness)(*values))
        return [next(found) if some else None for some in there]

    class Over(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*args: Any) -> Any:
            return vmap(cls.forward, in_dims=dims, randomness=randomness)(*args)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            sample = ctx.sample = SampleContext(ctx.needs_input_grad)
            made = output if isinstance(output, tuple) else (output,)
            whole = (*inputs, *made)
            all_dims = (*dims, *(0 for _ in made))
            saved: list[Any] = []

            def run(*seen: Any) -> tuple[Any, ...]:
                outs = seen[len(inputs) :]
                cls.setup_context(sample, seen[: len(inputs)], outs if isinstance(output, tuple) else outs[0])
                # What was saved is an input or an output, or it was made here.
                place = {id(value): at for at, value in enumerate(seen) if isinstance(value, Tensor)}
                for name, tensors in sample._marked.items():
                    chosen = [whole[place[id(t)]] for t in tensors]
                    (ctx.mark_dirty if name == "dirty" else ctx.mark_non_differentiable)(*chosen)
                saved[:] = [place.get(id(t), -1) if isinstance(t, Tensor) else None for t in sample.saved_tensors]
                return tuple(t for t, at in zip(sample.saved_tensors, saved, strict=True) if at == -1)

            new = iter(vmap(run, in_dims=all_dims, randomness=randomness)(*whole))
            tensors = [None if at is None else next(new) if at < 0 else whole[at] for at in saved]
            sample.saved_tensors = ()
            ctx.dims = tuple(None if at is None else 0 if at < 0 else all_dims[at] for at in saved)
            ctx.save_for_backward(*tensors)
            ctx.set_materialize_grads(sample._materialize)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            count = len(ctx.dims)

            def run(*given: Any) -> tuple[Any, ...]:
                ctx.sample.saved_tensors = given[:count]
                found = cls.backward(ctx.sample, *given[count:])
                ctx.sample.saved_tensors = ()
                return found if isinstance(found, tuple) else (found,)

            starts = tuple(None if g is None else 0 for g in grads)
            found = over(run, (*ctx.dims, *starts), (*ctx.saved_tensors, *grads))
            return tuple(g if g is None or dim == 0 else g.sum(0) for g, dim in zip(found, dims, strict=True))

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            count = len(ctx.dims)

            def run(*given: Any) -> tuple[Any, ...]:
                ctx.sample.saved_tensors = given[:count]
                found = cls.jvp(ctx.sample, *given[count:])
                ctx.sample.saved_tensors = ()
                return found if isinstance(found, tuple) else (found,)

            moving = tuple(dim if t is not None else None for t, dim in zip(tangents, dims, strict=True))
            found = over(run, (*ctx.dims, *moving), (*ctx.saved_tensors, *tangents))
            return tuple(found) if len(found) > 1 else found[0]

    Over.__name__ = Over.__qualname__ = f"Vmapped{cls.__name__}"
    return Over
