"""Discrete Fourier transforms, their frequencies and the order of those."""

from __future__ import annotations

from typing import Any

from . import _core
from ._core import Tensor
from ._core import fft_fft as fft
from ._core import fft_fft2 as fft2
from ._core import fft_fftn as fftn
from ._core import fft_hfft as hfft
from ._core import fft_hfft2 as hfft2
from ._core import fft_hfftn as hfftn
from ._core import fft_ifft as ifft
from ._core import fft_ifft2 as ifft2
from ._core import fft_ifftn as ifftn
from ._core import fft_ihfft as ihfft
from ._core import fft_ihfft2 as ihfft2
from ._core import fft_ihfftn as ihfftn
from ._core import fft_irfft as irfft
from ._core import fft_irfft2 as irfft2
from ._core import fft_irfftn as irfftn
from ._core import fft_rfft as rfft
from ._core import fft_rfft2 as rfft2
from ._core import fft_rfftn as rfftn

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


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
    """The frequencies of a transform's results in their order: from 0 up, then the negative ones."""
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
    """The frequencies of half a transform's results."""
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    return _spaced(0, n // 2 + 1, n, d, out, options)


def _rolled(input: Tensor, dim: Any, by: Any) -> Tensor:
    dims = range(input.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    return _core.roll(input, [by(input.size(d)) for d in dims], list(dims))


def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """Results in the order of their frequencies, 0 in the middle."""
    return _rolled(input, dim, lambda n: n // 2)


def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """What `fftshift` moved, back."""
    return _rolled(input, dim, lambda n: (n + 1) // 2)
