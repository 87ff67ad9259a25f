"""Dynamic axes: what the caller declares, and example inputs of other sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import gradiron

from .._core import Tensor
from ..fx.proxy import TraceError
from .errors import OnnxExporterError

__all__ = ["axes_by_name", "axes_by_shape", "other_sizes"]

# For each dynamic axis of an input, its name.
Axes = dict[int, str]


def axes_by_name(declared: Mapping[str, Any], names: Iterable[str], ranks: Mapping[str, int]) -> dict[str, Axes]:
    """Return the dynamic axes of inputs or outputs that a `dynamic_axes` declares.

    Args:
        declared: for a name of an input or output, names by axis or a list of axes.
        names: names of the inputs or outputs.
        ranks: number of dimensions by name.
    """
    found: dict[str, Axes] = {}
    for name in names:
        axes = declared.get(name)
        if axes is None:
            continue
        named = axes if isinstance(axes, Mapping) else {axis: f"{name}_dynamic_axes_{at + 1}" for at, axis in enumerate(axes)}
        found[name] = {_counted(axis, ranks[name], f"'{name}'"): str(label) for axis, label in named.items()}
    return found


def _counted(axis: Any, rank: int, what: str) -> int:
    """The axis, counted from the first."""
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise ValueError(f"dynamic axes: {what} has {rank} dimensions and no axis {axis!r}")
    return axis % rank


def axes_by_shape(spec: Any, value: Any, name: Callable[[], str]) -> Iterator[Axes]:
    """Yield the dynamic axes of each tensor among nested inputs, as a `dynamic_shapes` of the same structure declares them.

    Args:
        spec: what is declared: None, or for a tensor names by axis or a sequence of names.
        value: inputs.
        name: function that returns a name for an axis that has none.
    """
    if isinstance(value, Tensor):
        pairs = spec.items() if isinstance(spec, Mapping) else enumerate(spec or ())
        what = f"a tensor of shape {list(value.shape)}"
        yield {_counted(axis, value.dim(), what): _label(label, name) for axis, label in pairs if _is_dynamic(label)}
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from axes_by_shape(None if spec is None else spec.get(key), item, name)
    elif isinstance(value, (list, tuple)):
        for at, item in enumerate(value):
            yield from axes_by_shape(None if spec is None else spec[at], item, name)


def _is_dynamic(label: Any) -> bool:
    return label is not None and not isinstance(label, int) and getattr(label, "name", "") != "STATIC"


def _label(label: Any, name: Callable[[], str]) -> str:
    return label if isinstance(label, str) else getattr(label, "__name__", None) or name()


def _resized(tensor: Tensor, axes: Axes, change: Callable[[int], int]) -> Tensor:
    """The example with other sizes: its elements, again and again."""
    for axis in axes:
        size = tensor.size(axis)
        wanted = change(size)
        if wanted < 1 or size == 0:
            raise ValueError(f"an axis of size {size} has no other size to try")
        tensor = tensor.index_select(axis, gradiron.arange(wanted, device=tensor.device) % size)
    return tensor


# A second example is one larger, a third twice as large: what only one of them can run still has one to compare with.
_CHANGES: Sequence[Sequence[Callable[[int], int]]] = (
    (lambda size: size + 1, lambda size: 2 * size),
    (lambda size: size - 1, lambda size: size // 2),
)


def other_sizes(inputs: Sequence[Tensor], axes: Sequence[Axes], run: Callable[[list[Tensor]], Any]) -> list[Any]:
    """Run something on inputs of other sizes, and return the results, one at least.

    Args:
        inputs: example inputs.
        axes: dynamic axes of each.
        run: what to run. An error other than a trace's means that the module takes no such sizes.
    """
    for changes in _CHANGES:
        results = []
        for change in changes:
            try:
                resized = [_resized(*pair, change) for pair in zip(inputs, axes, strict=True)]
                results.append(run(resized))
            except (TraceError, OnnxExporterError):
                raise
            except Exception as error:
                failure = error
        if results:
            return results
    sizes = ", ".join(str(list(each.shape)) for each in inputs)
    raise OnnxExporterError(
        f"axes are declared dynamic, but the module runs on no other sizes than those of its example inputs, {sizes}: {failure}"
    ) from failure
