"""How a tensor prints: PyTorch's text to the letter, because tutorials, doctests and eyes depend on it.

All values are brought over in one read, formatted once, and then laid out; a summarised tensor gives only its edges.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil, inf, isfinite
from typing import TYPE_CHECKING, Any

import gradiron

if TYPE_CHECKING:
    from gradiron import Tensor

__all__ = ["get_printoptions", "printoptions", "set_printoptions", "tensor_str"]


class PrintOptions:
    """What `set_printoptions` sets."""

    def __init__(self) -> None:
        self.precision = 4
        self.threshold: float = 1000
        self.edgeitems = 3
        self.linewidth = 80
        self.sci_mode: bool | None = None


PRINT_OPTS = PrintOptions()

PROFILES: dict[str, dict[str, float]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed.

    Args:
        precision: number of digits after the point; 4 at first.
        threshold: number of elements above which a tensor is summarized; 1000 at first.
        edgeitems: number of elements at each end of a dimension in a summary; 3 at first.
        linewidth: number of characters per line; 80 at first.
        profile: `"default"`, `"short"` or `"full"`, which sets all of the above.
        sci_mode: use scientific notation; chosen by the values if `None`.

    Examples:
        >>> torch.set_printoptions(precision=2)
        >>> torch.tensor(0.12345)
        tensor(0.12)
        >>> torch.set_printoptions(profile="default")
    """
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    chosen = PROFILES.get(profile, {}) if profile is not None else {}
    for name, value in {**chosen, **{k: v for k, v in given.items() if v is not None}}.items():
        setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The options in force, as keyword arguments for `set_printoptions`."""
    return dict(vars(PRINT_OPTS))


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Set print options for the length of a `with` block."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


def show(self: Tensor, *, tensor_contents: object = None) -> str:
    """Implement `Tensor.__repr__`."""
    return tensor_str(self)


def tensor_str(t: Tensor) -> str:
    """The text of `repr(t)`."""
    layer = gradiron._core.layer(t)
    return _text(t) if layer is None else _layered(layer)


def _layered(layer: tuple[int, int | None, Tensor], tracked: bool = False) -> str:
    """What transforms put around a tensor, the innermost of them first, and its values."""
    depth, dim, value = layer
    tracked = tracked or dim is None
    deeper = gradiron._core.layer(value, depth)
    if deeper is not None:
        inner = _layered(deeper, tracked)
    else:
        inner = _text(gradiron._core.unrecorded(value) if tracked else value)
    inner = "\n".join("    " * bool(line) + line for line in inner.split("\n")).strip()
    head = f"GradTrackingTensor(lvl={depth}" if dim is None else f"BatchedTensor(lvl={depth}, bdim={dim}"
    return f"{head}, value=\n    {inner}\n)"


def _text(t: Tensor) -> str:
    opening = "tensor(" if _is_plain(t) else f"{type(t).__name__}("
    text = _with_notes(opening + _tensor_str(t.detach(), len(opening)), _notes(t), len(opening))
    return f"Parameter({text})" if getattr(t, "_is_param", False) else text


def sparse_str(t: Any) -> str:
    """The text of a sparse tensor: where its values are, its values, and what neither tells."""
    indent = len("tensor(")
    parts = []
    if t.is_sparse:
        places = {"indices": t._indices()}
    else:
        first, other = ("ccol", "row") if t.layout == gradiron.sparse_csc else ("crow", "col")
        places = {f"{name}_indices": getattr(t, f"{name}_indices")() for name in (first, other)}
    for name, of in {**places, "values": t._values().detach()}.items():
        start = f"{name}=tensor("
        text = _tensor_str(of, indent + len(start))
        parts.append(start + text + (f", size={tuple(of.shape)}" if of.numel() == 0 else "") + ")")
    notes = [*_device_note(t), f"size={tuple(t.shape)}", f"nnz={t._nnz()}", *_dtype_note(t, t._nnz() == 0)]
    notes += [f"layout={t.layout}", *_history_note(t)]
    return _with_notes("tensor(" + (",\n" + " " * indent).join(parts), notes, indent, below=t.is_sparse)


def _is_plain(t: Tensor) -> bool:
    """Whether `t` prints as `tensor(...)`, as a parameter does too, and not under the name of its class."""
    return type(t) is gradiron.Tensor or type(t).__name__ == "Parameter"


# --- what follows the values ---


def _notes(t: Tensor) -> list[str]:
    """The remarks after the values: only what the values do not tell."""
    notes = _device_note(t)
    empty = t.numel() == 0 or t.is_meta
    if t.is_meta or (t.dim() != 1 if empty else not PRINT_OPTS.edgeitems):
        notes.append(f"size={tuple(t.shape)}")
    notes += [*_dtype_note(t, empty), *_history_note(t)]
    tangent = _tangent(t)
    if tangent is not None:
        notes.append(f"tangent={_tangent_text(tangent)}")
    return notes


def _device_note(t: Tensor) -> list[str]:
    return [f"device='{t.device}'"] if t.device.type != "cpu" else []


def _dtype_note(t: Tensor, empty: bool) -> list[str]:
    default = gradiron.get_default_dtype()
    numbers = gradiron.complex128 if default == gradiron.float64 else gradiron.complex64
    usual = (default,) if empty else (default, numbers, gradiron.int64, gradiron.bool)
    return [] if t.dtype in usual else [f"dtype={t.dtype}"]


def _history_note(t: Tensor) -> list[str]:
    origin = _origin(t)
    if origin is not None:
        return [f"grad_fn=<{origin}>"]
    return ["requires_grad=True"] if t.requires_grad else []


def _tangent(t: Tensor) -> Tensor | None:
    forward_ad = sys.modules.get("gradiron.autograd.forward_ad")
    return None if forward_ad is None else forward_ad._tangent(t)


def _tangent_text(t: Tensor) -> str:
    if gradiron._core.is_batched(t):
        return repr(t)
    return format(t, "") if t.dim() == 0 else _text(gradiron._core.unrecorded(t))


def _origin(t: Tensor) -> str | None:
    try:
        node = t.grad_fn
    except RuntimeError:
        return "Invalid"  # a view that was rewritten in place outside of recording has no history to tell
    return None if node is None else node.name().rsplit("::", 1)[-1]


def _with_notes(text: str, notes: list[str], indent: int, below: bool = False) -> str:
    column = PRINT_OPTS.linewidth if below else len(text) - text.rfind("\n") + 1
    for note in notes:
        if column + len(note) + 2 > PRINT_OPTS.linewidth:
            text += ",\n" + " " * indent + note
            column = indent + len(note)
        else:
            text += ", " + note
            column += len(note) + 2
    return text + ")"


# --- the values ---


def _tensor_str(t: Tensor, indent: int) -> str:
    if t.is_meta:
        return "..."
    if t.numel() == 0:
        return "[]"
    edge = PRINT_OPTS.edgeitems
    summarised = t.numel() > PRINT_OPTS.threshold
    if summarised and edge <= 0 and t.dim() > 0:
        return "[...]"
    gaps = [summarised and size > 2 * edge for size in t.shape]
    shown = _edges(t, gaps, edge)
    values = shown.reshape(-1).tolist()
    if t.dtype.is_complex:
        cells, width = _complex_cells(values)
    else:
        cells, width = _float_cells(values) if t.dtype.is_floating_point else _plain_cells(values)
    if t.dim() == 0:
        return cells[0]
    return _Page(cells, list(shown.shape), gaps, width).block(0, indent)


def _edges(t: Tensor, gaps: list[bool], edge: int) -> Tensor:
    """The part of `t` that is shown, the two ends of each long dimension joined."""
    for dim, gap in enumerate(gaps):
        if gap:
            size = t.shape[dim]
            t = gradiron.cat([t.narrow(dim, 0, edge), t.narrow(dim, size - edge, edge)], dim)
    return t


def _plain_cells(values: list[Any]) -> tuple[list[str], int]:
    cells = [str(value) for value in values]
    width = max(map(len, cells))
    return [cell.rjust(width) for cell in cells], width


def _float_cells(values: list[float]) -> tuple[list[str], int]:
    """Numbers as equally wide texts. Zeros, infinities and NaN have no say in the notation and the width."""
    telling = [value for value in values if value and isfinite(value)]
    whole = all(value == ceil(value) for value in telling)
    scientific = bool(telling) and _is_scientific(telling)
    style = f".{PRINT_OPTS.precision}e" if scientific else ".0f" if whole else f".{PRINT_OPTS.precision}f"
    point = whole and not scientific
    # Zeros and non-finite values may be wider than the rest: they then stick out, as they do in PyTorch.
    width = max((len(format(value, style)) for value in telling), default=0) + point
    cells = [format(value, style) for value in values]
    if point:
        cells = [cell + "." if isfinite(value) else cell for cell, value in zip(cells, values, strict=True)]
    return [cell.rjust(width) for cell in cells], max(width, 1)


def _complex_cells(values: list[complex]) -> tuple[list[str], int]:
    """Each part in its own notation; the real ones are as wide as each other, and so fill the width up."""
    reals, real_width = _float_cells([value.real for value in values])
    imags, imag_width = _float_cells([value.imag for value in values])
    signed = (imag.strip() if imag.strip().startswith("-") else "+" + imag.strip() for imag in imags)
    cells = [f"{real}{imag}j" for real, imag in zip(reals, signed, strict=True)]
    return cells, real_width + imag_width + 1


def _is_scientific(values: list[float]) -> bool:
    if PRINT_OPTS.sci_mode is not None:
        return PRINT_OPTS.sci_mode
    sizes = [abs(value) for value in values]
    least, greatest = min(sizes), max(sizes)
    return greatest / least > 1000.0 or greatest > 1.0e8 or least < 1.0e-4


class _Page:
    """Lays finished cells out in nested brackets, in the order of the elements."""

    def __init__(self, cells: list[str], shape: list[int], gaps: list[bool], width: int) -> None:
        self.cells = cells
        self.shape = shape
        self.gaps = gaps
        self.width = width
        self.next = 0

    def block(self, dim: int, indent: int) -> str:
        depth = len(self.shape) - dim
        if depth == 1:
            return self.row(indent)
        parts = [self.block(dim + 1, indent + 1) for _ in range(self.shape[dim])]
        if self.gaps[dim]:
            parts.insert(PRINT_OPTS.edgeitems, "...")
        return "[" + ("," + "\n" * (depth - 1) + " " * (indent + 1)).join(parts) + "]"

    def row(self, indent: int) -> str:
        start, self.next = self.next, self.next + self.shape[-1]
        cells = self.cells[start : self.next]
        if self.gaps[-1]:
            cells.insert(PRINT_OPTS.edgeitems, " ...")
        a_line = max(1, (PRINT_OPTS.linewidth - indent) // (self.width + 2))
        lines = [", ".join(cells[i : i + a_line]) for i in range(0, len(cells), a_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
