"""Window functions and short-time Fourier transforms."""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._core import Tensor
from .._creation import layout as layout_type
from .._creation import strided
from .settings import tell_once

_NO_WINDOW = "A window was not provided. A rectangular window will be applied"
_LEAKS = (
    ",which is known to cause spectral leakage. Other windows such as torch.hann_window or torch.hamming_window are "
    "recommended to reduce spectral leakage."
)
_LOSES = ".Please provide the same window used by stft to make the inversion lossless."
_TO_KEEP = "To suppress this warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`."


def _window(name: str, length: int, periodic: bool, formula: Any, options: dict[str, Any]) -> Tensor:
    dtype = options["dtype"] or _core.get_default_dtype()
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    if not isinstance(options["layout"], (layout_type, type(None))):
        raise TypeError(f"{name}(): argument 'layout' must be torch.layout, not {type(options['layout']).__name__}")
    if options["layout"] not in (None, strided):
        raise RuntimeError(f"{name} is not implemented for sparse types, got: {options['layout']}")
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")
    made: Tensor
    if length <= 1:
        made = _core.ones(length, dtype=dtype, device=options["device"])
    else:
        steps = length if periodic else length - 1
        # In double precision, as rounding errors would show at the ends.
        wide = _core.arange(length, dtype=_core.float64, device=options["device"]) / steps
        made = formula(wide).to(dtype)
    return made.requires_grad_(options["requires_grad"])


def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Create a Hann window, `0.5 - 0.5 * cos(2 * pi * n / N)`.

    Args:
        window_length: number of elements.
        periodic: make a periodic window, `N = window_length`, rather than a symmetric one, `N = window_length - 1`.
            Default: `True`
        dtype: dtype of the result; the default dtype if `None`.
        layout: must be `torch.strided` or `None`.
        device: device of the result.
        pin_memory: accepted for compatibility. Default: `False`
        requires_grad: whether the result requires a gradient. Default: `False`

    Examples:
        >>> torch.hann_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    return _window("hann_window", window_length, periodic, lambda x: 0.5 - 0.5 * (2 * math.pi * x).cos(), options)


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Create a Hamming window, `alpha - beta * cos(2 * pi * n / N)`.

    Args:
        window_length: number of elements.
        periodic: make a periodic window, `N = window_length`, rather than a symmetric one, `N = window_length - 1`.
            Default: `True`
        alpha, beta: coefficients of the formula. Default: `0.54` and `0.46`
        dtype: dtype of the result; the default dtype if `None`.
        layout: must be `torch.strided` or `None`.
        device: device of the result.
        pin_memory: accepted for compatibility. Default: `False`
        requires_grad: whether the result requires a gradient. Default: `False`

    Examples:
        >>> torch.hamming_window(4)
        tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    return _window("hamming_window", window_length, periodic, lambda x: alpha - beta * (2 * math.pi * x).cos(), options)


def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Create a Blackman window, `0.42 - 0.5 * cos(2 * pi * n / N) + 0.08 * cos(4 * pi * n / N)`.

    Args:
        window_length: number of elements.
        periodic: make a periodic window, `N = window_length`, rather than a symmetric one, `N = window_length - 1`.
            Default: `True`
        dtype: dtype of the result; the default dtype if `None`.
        layout: must be `torch.strided` or `None`.
        device: device of the result.
        pin_memory: accepted for compatibility. Default: `False`
        requires_grad: whether the result requires a gradient. Default: `False`

    Examples:
        >>> torch.blackman_window(4)[1:]
        tensor([0.3400, 1.0000, 0.3400])
    """
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    formula = lambda x: 0.42 - 0.5 * (2 * math.pi * x).cos() + 0.08 * (4 * math.pi * x).cos()
    return _window("blackman_window", window_length, periodic, formula, options)


def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Create a Bartlett (triangular) window, `1 - abs(2 * n / N - 1)`.

    Args:
        window_length: number of elements.
        periodic: make a periodic window, `N = window_length`, rather than a symmetric one, `N = window_length - 1`.
            Default: `True`
        dtype: dtype of the result; the default dtype if `None`.
        layout: must be `torch.strided` or `None`.
        device: device of the result.
        pin_memory: accepted for compatibility. Default: `False`
        requires_grad: whether the result requires a gradient. Default: `False`

    Examples:
        >>> torch.bartlett_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    return _window("bartlett_window", window_length, periodic, lambda x: 1.0 - (2.0 * x - 1.0).abs(), options)


def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Create a Kaiser window, `i0(beta * sqrt(1 - (2 * n / N - 1)**2)) / i0(beta)`.

    Args:
        window_length: number of elements.
        periodic: make a periodic window, `N = window_length`, rather than a symmetric one, `N = window_length - 1`.
            Default: `True`
        beta: shape parameter. Default: `12.0`
        dtype: dtype of the result; the default dtype if `None`.
        layout: must be `torch.strided` or `None`.
        device: device of the result.
        pin_memory: accepted for compatibility. Default: `False`
        requires_grad: whether the result requires a gradient. Default: `False`

    Examples:
        >>> torch.kaiser_window(5, periodic=False).argmax()
        tensor(2)
    """
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    whole = _core.i0(_core.full((), beta, dtype=_core.float64, device=device))
    formula = lambda x: _core.i0(beta * (1.0 - (2.0 * x - 1.0) ** 2).clamp(min=0.0).sqrt()) / whole
    return _window("kaiser_window", window_length, periodic, formula, options)


def _centered(window: Tensor, n_fft: int) -> Tensor:
    before = (n_fft - window.size(0)) // 2
    return _core.constant_pad_nd(window, (before, n_fft - window.size(0) - before))


def _check_parts(length: int, n_fft: int, hop: int, width: int, window: Tensor | None) -> None:
    if not 0 < n_fft <= length:
        raise RuntimeError(f"stft: expected 0 < n_fft < {length}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"stft: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"stft: expected 0 < win_length <= n_fft, but got win_length={width}")
    if window is not None and (window.dim() != 1 or window.size(0) != width):
        raise RuntimeError(
            f"stft: expected a 1D window tensor of size equal to win_length={width}, but got window with size "
            f"{list(window.shape)}"
        )


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Compute the short-time Fourier transform of a signal.

    Args:
        input: signal of shape `(L)`, or a batch of shape `(B, L)`.
        n_fft: size of each Fourier transform.
        hop_length: distance between frames; `n_fft // 4` if `None`.
        win_length: size of the window, which is centered in the frame; `n_fft` if `None`.
        window: window; a rectangular one, with a warning, if `None`.
        center: pad the signal, so that frames are centered. Default: `True`
        pad_mode: mode of the padding, as for `nn.functional.pad`. Default: `"reflect"`
        normalized: divide by `sqrt(n_fft)`. Default: `False`
        onesided: return half of the frequencies; true for real inputs if `None`.
        return_complex: return a complex tensor, rather than a real one with a last dimension of size 2.
        align_to_window: must be `None` if `center` is true.

    Shape:
        - Output: `(B, N, T)` for `N` frequencies and `T` frames, without `B` for a single signal.

    Examples:
        >>> torch.stft(torch.randn(64), 16, window=torch.hann_window(16), return_complex=True).shape
        torch.Size([9, 17])
    """
    if window is None:
        tell_once("stft", f"{_NO_WINDOW}{_LEAKS}{_TO_KEEP}")
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    complex_input = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        if not complex_input:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that "
                "return_complex=True in a future PyTorch release."
            )
        return_complex = True
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if input.dim() > 2 or input.dim() < 1:
        raise RuntimeError(f"stft: expected a 1D or 2D tensor, but got {input.dim()}D tensor")
    x = input if input.dim() == 2 else input.unsqueeze(0)
    if center:
        x = _core._nn.pad(x.unsqueeze(0), (n_fft // 2, n_fft // 2), pad_mode).squeeze(0)
    _check_parts(x.size(-1), n_fft, hop, width, window)
    if onesided is None:
        onesided = not complex_input
    if onesided and complex_input:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    frames = x.unfold(-1, n_fft, hop)
    if window is None and width < n_fft:
        window = _core.ones(width, dtype=x.dtype, device=x.device)
    if window is not None:
        frames = frames * (_centered(window, n_fft) if width < n_fft else window)
    norm = "ortho" if normalized else None
    made = _core.fft_rfft(frames, norm=norm) if onesided else _core.fft_fft(frames, norm=norm)
    made = made.transpose(1, 2)
    if input.dim() == 1:
        made = made.squeeze(0)
    return made if return_complex else _core.view_as_real(made)


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Compute the inverse short-time Fourier transform, by the overlap-add method.

    The arguments are those of the `stft` to invert.

    Args:
        input: complex tensor of shape `(N, T)` or `(B, N, T)`.
        n_fft: size of each Fourier transform.
        hop_length: distance between frames; `n_fft // 4` if `None`.
        win_length: size of the window; `n_fft` if `None`.
        window: window; a rectangular one, with a warning, if `None`.
        center: whether the frames were centered. Default: `True`
        normalized: whether the transform was normalized. Default: `False`
        onesided: whether `input` has half of the frequencies; found from its shape if `None`.
        length: length of the result; the whole signal if `None`.
        return_complex: return a complex signal, from all frequencies. Default: `False`

    Examples:
        >>> x, window = torch.randn(64), torch.hann_window(16)
        >>> y = torch.istft(torch.stft(x, 16, window=window, return_complex=True), 16, window=window)
        >>> torch.allclose(x, y, atol=1e-5)
        True
    """
    if window is None:
        tell_once("istft", f"{_NO_WINDOW}{_LOSES}{_TO_KEEP}")
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if not input.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if input.dim() not in (2, 3):
        raise RuntimeError(f"istft: expected a tensor with 2 or 3 dimensions, but got {input.dim()}")
    if not 0 < hop <= width <= n_fft:
        raise RuntimeError(f"istft: expected 0 < hop_length <= win_length <= n_fft, but got {hop}, {width} and {n_fft}")
    if onesided is None:
        onesided = input.size(-2) != n_fft
    if input.size(-2) != (n_fft // 2 + 1 if onesided else n_fft):
        raise RuntimeError(
            "istft: expected the frequency dimension (3rd to the last) of the input tensor to match "
            f"{'n_fft / 2 + 1' if onesided else 'n_fft'} when onesided={onesided}, but got {input.size(-2)}"
        )
    if return_complex and onesided:
        raise RuntimeError("cannot have onesided output if window or input is complex")
    if window is not None and (window.dim() != 1 or window.size(0) != width):
        raise RuntimeError("Invalid window shape. window has to be 1D and length of `win_length`")
    frames = (input if input.dim() == 3 else input.unsqueeze(0)).transpose(1, 2)
    norm = "ortho" if normalized else None
    # For a real signal, the second half of the frequencies mirrors the first.
    real = not return_complex
    parts = _core.fft_irfft(frames[..., : n_fft // 2 + 1], n_fft, norm=norm) if real else _core.fft_ifft(frames, norm=norm)
    if window is None:
        window = _core.ones(width, dtype=parts.dtype, device=parts.device)
    if width < n_fft:
        window = _centered(window, n_fft)
    count, whole = parts.size(1), n_fft + hop * (parts.size(1) - 1)
    starts = _core.arange(count, device=parts.device) * hop
    places = (starts.unsqueeze(1) + _core.arange(n_fft, device=parts.device)).reshape(-1)
    flat = (parts * window).reshape((parts.size(0), -1))
    signal = flat.new_zeros((parts.size(0), whole)).index_add(1, places, flat)
    shares = (window * window).expand((count, n_fft)).reshape(-1)
    weight = shares.new_zeros(whole).index_add(0, places, shares)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else whole - n_fft // 2 if center else whole
    signal, weight = signal[:, start:end], weight[start:end]
    if weight.numel() and not weight.abs().min().item() > 1e-11:
        raise RuntimeError(f"window overlap add min: {weight.abs().min().item()}")
    signal = signal / weight
    if length is not None and signal.size(1) < length:
        signal = _core.constant_pad_nd(signal, (0, length - signal.size(1)))
    return signal if input.dim() == 3 else signal.squeeze(0)
