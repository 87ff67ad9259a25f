"""Window functions, by the names of SciPy; `sym=False` makes them periodic."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .. import _core
from .._core import Tensor
from .._creation import strided, tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _checked(name: str, M: int, dtype: Any, layout: Any) -> Any:
    """The dtype that is meant."""
    dtype = _core.get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (_core.float32, _core.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return dtype


def _short(M: int, options: dict[str, Any]) -> Tensor:
    """A window of no element, or of one."""
    return _core.ones(M, **options)


def _steps(M: int, sym: bool) -> int:
    """From the first element to the one that mirrors it."""
    return M - 1 if sym or M == 1 else M


def _places(M: int, start: float, step: float, options: dict[str, Any]) -> Tensor:
    return _core.linspace(start, start + (M - 1) * step, M, **options)


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create an exponential window, `exp(-abs(n - center) / tau)`.

    Args:
        M: number of elements.
        center: center of the window, if it is periodic; its middle if `None`.
        tau: decay constant. Default: `1.0`
        sym: make a symmetric window; false gives a periodic one, for spectral analysis. Default: `True`
        dtype: float32 or float64; the default dtype if `None`.
        layout: must be `torch.strided`. Default: `torch.strided`
        device: device of the result.
        requires_grad: whether the result requires a gradient. Default: `False`

    Examples:
        >>> torch.signal.windows.exponential(3)
        tensor([0.3679, 1.0000, 0.3679])
    """
    dtype = _checked("exponential", M, dtype, layout)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    if M == 0:
        return _short(M, options)
    middle = _steps(M, sym) / 2 if center is None else center
    return _core.exp(-_core.abs(_places(M, -middle / tau, 1 / tau, options)))


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a cosine (sine) window, half a period of a sine.

    Args:
        M: number of elements.
        sym: make a symmetric window; false gives a periodic one, for spectral analysis. Default: `True`
        dtype: float32 or float64; the default dtype if `None`.
        layout: must be `torch.strided`. Default: `torch.strided`
        device: device of the result.
        requires_grad: whether the result requires a gradient. Default: `False`

    Examples:
        >>> torch.signal.windows.cosine(3)
        tensor([0.5000, 1.0000, 0.5000])
    """
    dtype = _checked("cosine", M, dtype, layout)
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    if M == 0:
        return _short(M, options)
    step = math.pi / (_steps(M, sym) + 1)
    return _core.sin(_places(M, step / 2, step, options))


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a Gaussian window, `exp(-((n - center) / std)**2 / 2)`.

    Args:
        M: number of elements.
        std: standard deviation in elements. Default: `1.0`
        sym: make a symmetric window; false gives a periodic one, for spectral analysis. Default: `True`
        dtype: float32 or float64; the default dtype if `None`.
        layout: must be `torch.strided`. Default: `torch.strided`
        device: device of the result.
        requires_grad: whether the result requires a gradient. Default: `False`

    Examples:
        >>> torch.signal.windows.gaussian(3)
        tensor([0.6065, 1.0000, 0.6065])
    """
    dtype = _checked("gaussian", M, dtype, layout)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    if M == 0:
        return _short(M, options)
    step = 1 / (std * math.sqrt(2))
    return _core.exp(-(_places(M, -_steps(M, sym) / 2 * step, step, options) ** 2))


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a Kaiser window, by the modified Bessel function of order 0.

    Args:
        M: number of elements.
        beta: shape parameter; the larger, the wider the main lobe and the lower the side lobes. Default: `12.0`
        sym: make a symmetric window; false gives a periodic one, for spectral analysis. Default: `True`
        dtype: float32 or float64; the default dtype if `None`.
        layout: must be `torch.strided`. Default: `torch.strided`
        device: device of the result.
        requires_grad: whether the result requires a gradient. Default: `False`

    Examples:
        >>> torch.signal.windows.kaiser(3, beta=1.0)
        tensor([0.7898, 1.0000, 0.7898])
    """
    dtype = _checked("kaiser", M, dtype, layout)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    if M < 2:
        return _short(M, options)
    at = _places(M, -beta, 2 * beta / _steps(M, sym), options)
    height = tensor(float(beta), dtype=dtype, device=device)
    # The last element may lie a rounding beyond the end.
    return _core.i0(_core.sqrt((height * height - at * at).clamp(min=0))) / _core.i0(height)


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a window that is a sum of cosines, with the coefficients `a` of alternating sign.

    Args:
        M: number of elements.
        a: coefficients.
        sym: make a symmetric window; false gives a periodic one, for spectral analysis. Default: `True`
        dtype: float32 or float64; the default dtype if `None`.
        layout: must be `torch.strided`. Default: `torch.strided`
        device: device of the result.
        requires_grad: whether the result requires a gradient. Default: `False`

    Examples:
        >>> torch.signal.windows.general_cosine(3, a=[0.5, 0.5])
        tensor([0., 1., 0.])
    """
    dtype = _checked("general_cosine", M, dtype, layout)
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    if M < 2:
        return _short(M, options)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    factors = list(a)
    if not factors:
        raise ValueError("Coefficients cannot be empty")
    at = _places(M, 0.0, 2 * math.pi / _steps(M, sym), options)
    signed = tensor([(-1) ** i * factor for i, factor in enumerate(factors)], dtype=dtype, device=device)
    order = _core.arange(len(factors), dtype=dtype, device=device)
    return (signed[:, None] * _core.cos(order[:, None] * at)).sum(0)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a generalized Hamming window, `alpha - (1 - alpha) * cos(2 * pi * n / (M - 1))`.

    Args:
        M: number of elements.
        alpha: coefficient. Default: `0.54`
        sym: make a symmetric window; false gives a periodic one, for spectral analysis. Default: `True`
        dtype: float32 or float64; the default dtype if `None`.
        layout: must be `torch.strided`. Default: `torch.strided`
        device: device of the result.
        requires_grad: whether the result requires a gradient. Default: `False`

    Examples:
        >>> torch.signal.windows.general_hamming(3, alpha=0.75)
        tensor([0.5000, 1.0000, 0.5000])
    """
    a = [alpha, 1.0 - alpha]
    return general_cosine(M, a=a, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a Hamming window, `0.54 - 0.46 * cos(2 * pi * n / (M - 1))`.

    Args:
        M: number of elements.
        sym: make a symmetric window; false gives a periodic one, for spectral analysis. Default: `True`
        dtype: float32 or float64; the default dtype if `None`.
        layout: must be `torch.strided`. Default: `torch.strided`
        device: device of the result.
        requires_grad: whether the result requires a gradient. Default: `False`

    Examples:
        >>> torch.signal.windows.hamming(3)
        tensor([0.0800, 1.0000, 0.0800])
    """
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a Hann window, `0.5 - 0.5 * cos(2 * pi * n / (M - 1))`.

    Args:
        M: number of elements.
        sym: make a symmetric window; false gives a periodic one, for spectral analysis. Default: `True`
        dtype: float32 or float64; the default dtype if `None`.
        layout: must be `torch.strided`. Default: `torch.strided`
        device: device of the result.
        requires_grad: whether the result requires a gradient. Default: `False`

    Examples:
        >>> torch.signal.windows.hann(3)
        tensor([0., 1., 0.])
    """
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a Blackman window, a sum of three cosine terms.

    Args:
        M: number of elements.
        sym: make a symmetric window; false gives a periodic one, for spectral analysis. Default: `True`
        dtype: float32 or float64; the default dtype if `None`.
        layout: must be `torch.strided`. Default: `torch.strided`
        device: device of the result.
        requires_grad: whether the result requires a gradient. Default: `False`

    Examples:
        >>> torch.signal.windows.blackman(5)[1:4]
        tensor([0.3400, 1.0000, 0.3400])
    """
    _checked("blackman", M, dtype, layout)
    a = [0.42, 0.5, 0.08]
    return general_cosine(M, a=a, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a Bartlett (triangular) window.

    Args:
        M: number of elements.
        sym: make a symmetric window; false gives a periodic one, for spectral analysis. Default: `True`
        dtype: float32 or float64; the default dtype if `None`.
        layout: must be `torch.strided`. Default: `torch.strided`
        device: device of the result.
        requires_grad: whether the result requires a gradient. Default: `False`

    Examples:
        >>> torch.signal.windows.bartlett(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    dtype = _checked("bartlett", M, dtype, layout)
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    if M < 2:
        return _short(M, options)
    return 1 - _core.abs(_places(M, -1.0, 2 / _steps(M, sym), options))


def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a Nuttall window, a sum of four cosine terms with very low side lobes.

    Args:
        M: number of elements.
        sym: make a symmetric window; false gives a periodic one, for spectral analysis. Default: `True`
        dtype: float32 or float64; the default dtype if `None`.
        layout: must be `torch.strided`. Default: `torch.strided`
        device: device of the result.
        requires_grad: whether the result requires a gradient. Default: `False`

    Examples:
        >>> torch.signal.windows.nuttall(5)[1:4]
        tensor([0.2270, 1.0000, 0.2270])
    """
    a = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return general_cosine(M, a=a, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
