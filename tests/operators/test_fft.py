"""Fourier transforms: sums by the definition, ways back, halves of real numbers, short-time transforms and their inverse."""

import cmath
import math

import pytest

from library import T, assert_values

K = T.fft
LENGTHS = [1, 2, 3, 4, 5, 7, 12, 16, 30, 67]


def draw(*shape, kind=T.float64, seed=0):
    T.manual_seed(seed)
    return T.randn(*shape, dtype=kind)


def by_definition(values, sign):
    n = len(values)
    turn = [cmath.exp(sign * 2j * cmath.pi * k / n) for k in range(n)]
    return [sum(v * turn[q * k % n] for k, v in enumerate(values)) for q in range(n)]


def close(actual, expected, loose=1e-10):
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    assert T.allclose(actual, expected, rtol=loose, atol=loose)


@pytest.mark.parametrize("n", LENGTHS)
def test_one_dimension(n):
    z, x = draw(2, n, kind=T.complex128), draw(2, n)
    for row, found in zip(z.tolist(), K.fft(z)):
        close(found, T.tensor(by_definition(row, -1), dtype=T.complex128))
    close(K.ifft(K.fft(z)), z)
    close(K.fft(z, norm="ortho"), K.fft(z) / math.sqrt(n))
    close(K.fft(z, norm="forward"), K.fft(z) / n)
    close(K.fft(x), K.fft(x.to(T.complex128)))
    close(K.ifft(x), K.ifft(x.to(T.complex128)))
    close(K.rfft(x), K.fft(x)[:, : n // 2 + 1])
    close(K.irfft(K.rfft(x), n), x)
    close(K.ihfft(x), K.ifft(x)[:, : n // 2 + 1])
    close(K.hfft(K.ihfft(x), n), x)


def test_lengths_and_dimensions():
    x = draw(3, 4)
    close(K.fft(x, 6), K.fft(T.nn.functional.pad(x, (0, 2))))
    close(K.fft(x, 2), K.fft(x[:, :2]))
    close(K.fft(x, dim=0), K.fft(x.T).T)
    close(K.rfft(x, 5, dim=0), K.fft(x, 5, dim=0)[:3])
    close(K.irfft(K.rfft(x)), x)


def test_several_dimensions():
    z, x = draw(2, 3, 4, kind=T.complex128), draw(2, 3, 4)
    close(K.fft2(z), K.fft(K.fft(z, dim=-1), dim=-2))
    close(K.fftn(z), K.fft(K.fft2(z), dim=0))
    close(K.ifftn(K.fftn(z)), z)
    close(K.ifft2(K.fft2(z)), z)
    close(K.rfft2(x), K.fft2(x)[..., :3])
    close(K.irfft2(K.rfft2(x)), x)
    close(K.rfftn(x, dim=(0, 2)), K.fftn(x, dim=(0, 2))[..., :3])
    close(K.irfftn(K.rfftn(x), s=(2, 3, 4)), x)
    close(K.fftn(z, s=(2, 2)), K.fft2(z[:, :2, :2]))


def test_helpers():
    assert_values(K.fftfreq(5, 0.5), [0.0, 0.4, 0.8, -0.8, -0.4])
    assert_values(K.rfftfreq(4), [0.0, 0.25, 0.5])
    x = T.arange(6).reshape(2, 3)
    assert K.fftshift(x, dim=1).tolist() == [[2, 0, 1], [5, 3, 4]] and K.fftshift(x).tolist() == [[5, 3, 4], [2, 0, 1]]
    assert T.equal(K.ifftshift(K.fftshift(x)), x)


def test_dtypes():
    assert K.fft(T.ones(4)).dtype is T.complex64 and K.rfft(T.ones(4, dtype=T.int64)).dtype is T.complex64
    assert K.irfft(T.ones(3, dtype=T.complex128)).dtype is T.float64


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("onesided", [True, False])
def test_short_time(center, onesided):
    x, window = draw(2, 40), T.hann_window(8, dtype=T.float64)
    options = {"n_fft": 8, "hop_length": 2, "window": window, "center": center, "onesided": onesided}
    z = T.stft(x, **options, return_complex=True)
    frames = 40 // 2 + 1 if center else (40 - 8) // 2 + 1
    assert z.shape == (2, 5 if onesided else 8, frames)
    if not center:
        close(z[:, :, 3], K.rfft(x[:, 6:14] * window) if onesided else K.fft(x[:, 6:14] * window))
    else:
        close(T.istft(z, **options, length=40), x)
        close(x.stft(**options, return_complex=True), z)


REFUSED = [
    (lambda: K.fft(T.ones(0)), "Invalid number of data points (0) specified"),
    (lambda: K.fft(T.ones(2), norm="x"), 'Invalid normalization mode: "x"'),
    (lambda: K.rfft(T.ones(2, dtype=T.complex64)), "rfft expects a real input tensor, but got ComplexFloat"),
    (lambda: K.fftn(T.ones(2, 2), dim=(0, 0)), "FFT dims must be unique"),
    (lambda: K.fftn(T.ones(2), s=(1, 1)), "Got shape with 2 values but input tensor only has 1 dimensions."),
    (lambda: K.fft(T.tensor(1.0)), "Dimension specified as -1 but tensor has no dimensions"),
    (lambda: K.rfft(T.tensor(1.0)), "Dimension specified as -1 but tensor has no dimensions"),
    (lambda: K.fft2(T.tensor(1.0), dim=0), "Dimension specified as 0 but tensor has no dimensions"),
    (lambda: T.stft(T.ones(20), 8, window=T.ones(8)), "stft requires the return_complex parameter be given for real inputs"),
]


@pytest.mark.parametrize("at", range(len(REFUSED)))
def test_refusals(at):
    call, text = REFUSED[at]
    with pytest.raises((RuntimeError, TypeError, IndexError)) as caught:
        call()
    assert str(caught.value).startswith(text)


def test_windows():
    assert_values(T.hann_window(4), [0.0, 0.5, 1.0, 0.5])
    assert_values(T.hamming_window(4, False), [0.08, 0.77, 0.77, 0.08])
    assert_values(T.bartlett_window(5), [0.0, 0.4, 0.8, 0.8, 0.4])
    assert_values(T.blackman_window(4), [0.0, 0.34, 1.0, 0.34], atol=1e-6)
    assert_values(T.kaiser_window(4, True, 12.0), [5.2773e-05, 0.21567, 1.0, 0.21567], rtol=1e-4)
    assert T.hann_window(0).tolist() == [] and T.hann_window(1).tolist() == [1.0]
    with pytest.raises(RuntimeError, match="^hann_window requires non-negative window_length, got window_length=-1"):
        T.hann_window(-1)


def test_where_results_lie():
    # The transformed dimensions vary fastest.
    x = T.rand(5, 6, 7)
    for name, options, strides in (
        ("fft", {"dim": 1}, (42, 1, 6)),
        ("rfft", {"dim": 1}, (28, 1, 4)),
        ("irfft", {"dim": 1}, (70, 1, 10)),
        ("fft", {"dim": -1}, (42, 7, 1)),
        ("fft2", {"dim": (0, 1)}, (6, 1, 30)),
        ("fftn", {}, (42, 7, 1)),
        ("hfft", {"dim": 0}, (1, 56, 8)),
    ):
        assert getattr(T.fft, name)(x, **options).stride() == strides, name
