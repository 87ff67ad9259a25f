"""Discrete Fourier transforms and their frequencies."""

from __future__ import annotations

from typing import Any

from . import _core
from ._core import Tensor

_ROWS = {name.removeprefix("fft_"): function for name, function in vars(_core).items() if name.startswith("fft_")}
globals().update(_ROWS)

__all__ = sorted(["fftfreq", "fftshift", "ifftshift", "rfftfreq", *_ROWS])


def _check_place(out: Tensor | None, device: Any) -> None:
    if out is not None and device is not None and _core.device(device).type != out.device.type:
        kind = _core.device(device).type
        raise RuntimeError(f"device type {kind} does not match device type of out parameter ({out.device.type})")


def _spaced(first: int, last: int, n: int, d: float, out: Tensor | None, options: dict[str, Any]) -> Tensor:
    requires_grad = options.pop("requires_grad")
    _check_place(out, options["device"])
    made = _core.arange(first, last, dtype=options.pop("dtype") or _core.get_default_dtype(), **options) * (1.0 / (n * d))
    if out is not None:
        return out.resize_(made.shape).copy_(made)
    return made.requires_grad_(requires_grad)


def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the frequencies of the results of `fft`, in cycles per unit of the sample spacing.

    The order is `[0, 1, ..., (n - 1) // 2, -(n // 2), ..., -1] / (n * d)`.

    Args:
        n: length of the transform.
        d: sample spacing. Default: `1.0`
        out: tensor to write to.
        dtype: dtype of the result; the default dtype if `None`.
        layout: must be `torch.strided` or `None`.
        device: device of the result.
        requires_grad: whether the result requires a gradient. Default: `False`

    Examples:
        >>> torch.fft.fftfreq(4)
        tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    half = (n - 1) // 2 + 1
    _check_place(out, device)
    made = _spaced(0, n, n, d, None, {**options, "requires_grad": False})
    with_negative = _core.cat([made[:half], made[half:] - 1.0 / d])
    if out is not None:
        return out.resize_(made.shape).copy_(with_negative)
    return with_negative.requires_grad_(requires_grad)


def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the frequencies of the results of `rfft`, in cycles per unit of the sample spacing.

    They are `[0, 1, ..., n // 2] / (n * d)`.

    Args:
        n: length of the real signal.
        d: sample spacing. Default: `1.0`
        out: tensor to write to.
        dtype: dtype of the result; the default dtype if `None`.
        layout: must be `torch.strided` or `None`.
        device: device of the result.
        requires_grad: whether the result requires a gradient. Default: `False`

    Examples:
        >>> torch.fft.rfftfreq(4)
        tensor([0.0000, 0.2500, 0.5000])
    """
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    return _spaced(0, n // 2 + 1, n, d, out, options)


def _rolled(input: Tensor, dim: Any, by: Any) -> Tensor:
    dims = range(input.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    return _core.roll(input, [by(input.size(d)) for d in dims], list(dims))


def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """Shift the zero frequency to the center of the spectrum.

    Args:
        input: results of a Fourier transform, or their frequencies.
        dim: dimension or dimensions to shift; all if `None`.

    Examples:
        >>> torch.fft.fftshift(torch.fft.fftfreq(4))
        tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _rolled(input, dim, lambda n: n // 2)


def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """Undo `fftshift`.

    Args:
        input: shifted tensor.
        dim: dimension or dimensions to shift; all if `None`.

    Examples:
        >>> torch.fft.ifftshift(torch.fft.fftshift(torch.arange(5)))
        tensor([0, 1, 2, 3, 4])
    """
    return _rolled(input, dim, lambda n: (n + 1) // 2)
