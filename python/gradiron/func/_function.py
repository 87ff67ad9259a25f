"""Custom Functions under `vmap`: by their own `vmap` staticmethod, or by running their methods over samples themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from .. import _core
from .._core import Tensor
from ..autograd.function import Function
from ..utils import _pytree as tree
from ._vmap import vmap

# Stands for the next tensor among results.
TENSOR = object()
GUIDE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """What a `vmap` staticmethod is told."""

    batch_size: int
    randomness: str


def check_support(cls: Any, batched: bool) -> None:
    """Refuses a Function that transforms, of which one may be a `vmap`, cannot go through."""
    own = cls.vmap is not Function.vmap
    if not cls._own_setup:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override "
            f"the setup_context staticmethod. {GUIDE}"
        )
    if batched and own and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
            f"ambiguity. {GUIDE}"
        )
    if batched and not own and not cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement the "
            f"vmap staticmethod or set generate_vmap_rule=True. {GUIDE}"
        )


@contextmanager
def without_rules() -> Iterator[None]:
    """Inside, custom Functions need no rule: the samples are gradients or tangents that the library itself has batched."""
    before = _core.set_without_rules(True)
    try:
        yield
    finally:
        _core.set_without_rules(before)


def leaves_for_rule(cls: Any, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tree.TreeSpec | None]:
    """The leaves of the arguments, and their structure. A rule sees the samples inside of containers, too; methods that run
    over samples get containers as they are."""
    if not cls._own_setup or cls.vmap is Function.vmap:
        return args, None
    leaves, structure = tree.flatten(args)
    return tuple(leaves), structure


def apply_batched(
    cls: Any, given: tuple[Any, ...], arguments: tree.TreeSpec | None, level: int, size: int, randomness: str
) -> Any:
    """`cls.apply` on arguments with these leaves, of which some are batched, at most at `level`."""
    leaves, dims = [], []
    for leaf in given:
        value = _core.unwrap_batched(leaf, level) if isinstance(leaf, Tensor) else None
        leaves.append(leaf if value is None else value)
        dims.append(None if value is None else 0)
    if arguments is not None:
        in_dims = tree.unflatten(dims, arguments)
        made = cls.vmap(VmapInfo(size, randomness), in_dims, *tree.unflatten(leaves, arguments))
        if not (isinstance(made, tuple) and len(made) == 2):
            raise RuntimeError(
                "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible "
                f"with the output. Got {f'{len(made)} returns' if isinstance(made, tuple) else f'a {type(made)}'} instead"
            )
        outputs, out_dims = made
    else:
        outputs, out_dims = generated(cls, tuple(dims), randomness).apply(*leaves), 0
    leaves, structure = tree.flatten(outputs)
    places = tree.spread(out_dims, structure)
    if places is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
            f"out_dims={out_dims} to be compatible with the structure of `output`. out_dims has structure "
            f"{tree.flatten(out_dims)[1]} but output has structure {structure}. {GUIDE}"
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
        self._saved: dict[str, tuple[Any, ...]] = {}
        self._marked: dict[str, tuple[Any, ...]] = {}
        self._materialize = True

    def save_for_backward(self, *tensors: Any) -> None:
        self._saved["backward"] = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        self._saved["forward"] = tensors

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


def over(function: Any, in_dims: tuple[Any, ...], values: tuple[Any, ...], randomness: str) -> list[Any]:
    """The results of a function over samples, those that are no tensors left alone."""
    shape: list[Any] = []

    def run(*given: Any) -> tuple[Any, ...]:
        shape[:] = function(*given)
        tensors = tuple(r for r in shape if isinstance(r, Tensor))
        shape[:] = [TENSOR if isinstance(r, Tensor) else r for r in shape]
        return tensors

    if all(dim is None for dim in in_dims):
        return list(function(*values))
    found = iter(vmap(run, in_dims=in_dims, randomness=randomness)(*values))
    return [next(found) if r is TENSOR else r for r in shape]


def _made(cls: Any, dims: tuple[Any, ...], randomness: str) -> Any:
    class Over(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*args: Any) -> Any:
            many = False

            def run(*seen: Any) -> tuple[Any, ...]:
                nonlocal many
                made = cls.forward(*seen)
                many = isinstance(made, tuple)
                return made if many else (made,)

            found = over(run, dims, args, randomness)
            return tuple(found) if many else found[0]

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            sample = ctx.sample = SampleContext(ctx.needs_input_grad)
            made = output if isinstance(output, tuple) else (output,)
            whole = (*inputs, *made)
            all_dims = (*dims, *(0 if isinstance(out, Tensor) else None for out in made))
            saved: dict[str, list[Any]] = {}

            def run(*seen: Any) -> tuple[Any, ...]:
                outs = seen[len(inputs) :]
                cls.setup_context(sample, seen[: len(inputs)], outs if isinstance(output, tuple) else outs[0])
                # What was saved is an input or an output, or it was made here.
                place = {id(value): at for at, value in enumerate(seen) if isinstance(value, Tensor)}
                for name, tensors in sample._marked.items():
                    chosen = [whole[place[id(t)]] for t in tensors]
                    (ctx.mark_dirty if name == "dirty" else ctx.mark_non_differentiable)(*chosen)
                fresh: list[Tensor] = []
                for name, tensors in sample._saved.items():
                    saved[name] = [place.get(id(t), -1) if isinstance(t, Tensor) else None for t in tensors]
                    fresh.extend(t for t, at in zip(tensors, saved[name], strict=True) if at == -1)
                sample._saved.clear()
                return tuple(fresh)

            new = iter(vmap(run, in_dims=all_dims, randomness=randomness)(*whole))
            ctx.dims = {}
            for name, save in (("backward", ctx.save_for_backward), ("forward", ctx.save_for_forward)):
                places = saved.get(name, ())
                ctx.dims[name] = tuple(None if at is None else 0 if at < 0 else all_dims[at] for at in places)
                if places:
                    save(*(None if at is None else next(new) if at < 0 else whole[at] for at in places))
            ctx.set_materialize_grads(sample._materialize)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            own = ctx.dims["backward"]
            count = len(own)

            def run(*given: Any) -> tuple[Any, ...]:
                ctx.sample.saved_tensors = given[:count]
                found = cls.backward(ctx.sample, *given[count:])
                ctx.sample.saved_tensors = ()
                return found if isinstance(found, tuple) else (found,)

            starts = tuple(None if g is None else 0 for g in grads)
            found = over(run, (*own, *starts), (*ctx.saved_tensors, *grads), randomness)
            if len(found) != len(dims):
                return tuple(found)
            return tuple(g if g is None or dim == 0 else g.sum(0) for g, dim in zip(found, dims, strict=True))

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            own = ctx.dims["forward"] or ctx.dims["backward"]
            count = len(own)

            def run(*given: Any) -> tuple[Any, ...]:
                ctx.sample.saved_tensors = given[:count]
                found = cls.jvp(ctx.sample, *given[count:])
                ctx.sample.saved_tensors = ()
                return found if isinstance(found, tuple) else (found,)

            moving = tuple(dim if t is not None else None for t, dim in zip(tangents, dims, strict=True))
            found = over(run, (*own, *moving), (*ctx.saved_tensors, *tangents), randomness)
            return tuple(found) if len(found) > 1 else found[0]

    Over.__name__ = Over.__qualname__ = f"Vmapped{cls.__name__}"
    Over._backward_cls.__name__ = f"{Over.__name__}Backward"
    return Over
