"""Functions that PyTorch has at the top besides those of `nn.functional`, `signal.windows`, and low-rank decompositions."""

import math

import pytest

from library import T


@pytest.mark.parametrize("shape", [(8, 5), (5, 8), (2, 6, 6)])
def test_low_rank_decompositions(shape):
    T.manual_seed(0)
    a = T.randn(*shape)
    u, s, v = T.svd_lowrank(a, q=5)
    whole = T.linalg.svdvals(a)[..., :5]
    assert u.shape[-1] == s.shape[-1] == v.shape[-1] == 5
    assert T.allclose(s[..., 0], whole[..., 0], atol=1e-3)
    assert T.allclose(u.mT @ u, T.eye(5).expand(u.mT.shape[:-2] + (5, 5)), atol=1e-5)
    if min(shape[-2:]) == 5:
        assert T.allclose(u @ T.diag_embed(s) @ v.mT, a, atol=1e-5)


def test_principal_directions():
    T.manual_seed(0)
    a = T.randn(8, 3) @ T.randn(3, 5)
    u, s, v = T.pca_lowrank(a)
    assert T.allclose(u @ T.diag(s) @ v.mT, a - a.mean(0), atol=1e-5)
    b = T.randn(8, 5)
    shifted = T.svd_lowrank(b, q=5, M=b.mean(0, keepdim=True))
    assert T.allclose(shifted[1], T.linalg.svdvals(b - b.mean(0)), atol=1e-5)
    with pytest.raises(ValueError, match=r"q\(=9\) must be non-negative integer and not greater than min\(m, n\)=5"):
        T.pca_lowrank(b, q=9)
    with pytest.raises(ValueError, match=r"niter\(=-1\) must be non-negative integer"):
        T.pca_lowrank(b, niter=-1)


def test_windows():
    w = T.signal.windows
    for name in ("bartlett", "blackman", "hamming", "hann"):
        old = getattr(T, f"{name}_window")
        for n in (0, 1, 2, 7):
            assert T.allclose(getattr(w, name)(n), old(n, periodic=False), atol=1e-6)
            assert T.allclose(getattr(w, name)(n, sym=False), old(n, periodic=True), atol=1e-6)
    assert T.allclose(w.kaiser(9), T.kaiser_window(9, periodic=False, beta=12.0), atol=1e-6)
    assert T.allclose(w.cosine(3), T.tensor([0.5, 1.0, 0.5]))
    assert T.allclose(w.gaussian(3, std=2.0), T.tensor([math.exp(-1 / 8), 1.0, math.exp(-1 / 8)]))
    assert T.allclose(w.exponential(3, tau=2.0), T.tensor([math.exp(-0.5), 1.0, math.exp(-0.5)]))
    assert T.allclose(w.exponential(3, center=0.0, sym=False), T.tensor([1.0, math.exp(-1), math.exp(-2)]))
    assert T.allclose(w.nuttall(3)[:2], T.tensor([3.628e-4, 1.0]), atol=1e-6)
    assert T.allclose(w.general_cosine(3, a=[0.3, 0.2, 0.5]), T.tensor([0.6, 1.0, 0.6]))
    assert w.hann(4, dtype=T.float64).dtype == T.float64


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda w: w.gaussian(-1), ValueError, "gaussian requires non-negative window length, got M=-1"),
        (lambda w: w.gaussian(3, std=0), ValueError, "Standard deviation must be positive, got: 0 instead."),
        (lambda w: w.exponential(3, tau=-1), ValueError, "Tau must be positive, got: -1 instead."),
        (lambda w: w.exponential(3, center=1.0), ValueError, "Center must be None for symmetric windows"),
        (lambda w: w.kaiser(3, beta=-1), ValueError, "beta must be non-negative, got: -1 instead."),
        (lambda w: w.general_cosine(3, a=[]), ValueError, "Coefficients cannot be empty"),
        (lambda w: w.general_cosine(3, a=2), TypeError, "Coefficients must be a list/tuple"),
        (lambda w: w.bartlett(3, dtype=T.int64), ValueError, "bartlett expects float32 or float64 dtypes, got: torch.int64"),
    ],
)
def test_windows_refuse(call, kind, message):
    with pytest.raises(kind) as caught:
        call(T.signal.windows)
    assert str(caught.value).replace("gradiron", "torch") == message


def test_convolution_with_time_first():
    T.manual_seed(0)
    x, weight, bias = T.randn(5, 3, 4), T.randn(2, 4, 6), T.randn(6)
    expected = T.nn.functional.conv1d(x.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=1).permute(2, 0, 1)
    found = T.conv_tbc(x, weight, bias, 1)
    assert T.allclose(found, expected, atol=1e-5)
    assert found.is_contiguous() and T.equal(T.nn.functional.conv_tbc(x, weight, bias, 1), found)
    with pytest.raises(RuntimeError, match="Bias size must equal dim 2 in the weight tensor"):
        T.conv_tbc(x, weight, T.ones(4))


def test_sampling_by_the_number_of_dimensions():
    T.manual_seed(0)
    image, grid = T.randn(1, 2, 4, 4), T.rand(1, 3, 3, 2)
    assert T.equal(T.grid_sampler_2d(image, grid, 0, 0, False), T.grid_sampler(image, grid, 0, 0, False))
    volume, places = T.randn(1, 2, 3, 4, 4), T.rand(1, 2, 3, 3, 3)
    assert T.equal(T.grid_sampler_3d(volume, places, 0, 1, True), T.grid_sampler(volume, places, 0, 1, True))
    with pytest.raises(RuntimeError, match=r"expected 4D input and grid with same number of dimensions"):
        T.grid_sampler_2d(volume, places, 0, 0, False)


def test_dropout_and_what_it_kept():
    T.manual_seed(0)
    found, kept = T.native_dropout(T.ones(100), 0.25, True)
    assert T.allclose(found, kept / 0.75)
    assert 50 < kept.sum() < 95
    x = T.ones(3)
    found, kept = T.native_dropout(x, 0.5, False)
    assert found is not x
    assert found.tolist() == [1.0] * 3
    assert kept.all()


def test_group_norm_with_its_statistics():
    T.manual_seed(0)
    x, weight, bias = T.randn(2, 6, 4), T.randn(6), T.randn(6)
    found, mean, factor = T.native_group_norm(x, weight, bias, 2, 6, 4, 3, 1e-5)
    assert T.allclose(found, T.nn.functional.group_norm(x, 3, weight, bias), atol=1e-6)
    groups = x.reshape(2, 3, -1)
    assert T.allclose(mean, groups.mean(-1), atol=1e-6)
    assert T.allclose(factor, (groups.var(-1, correction=0) + 1e-5).rsqrt(), atol=1e-5)

    found, mean, _ = T.native_group_norm(T.ones(0, 2), None, None, 0, 2, 1, 1, 1e-5)
    assert found.shape == (0, 2)
    assert mean.shape == (0, 1)


def test_other_names():
    v = T.tensor([[3.0, 4.0], [6.0, 8.0]])
    assert T.norm_except_dim(v).tolist() == [[5.0], [10.0]]
    assert T.allclose(T.norm_except_dim(v, 2, 1), v.norm(2, 0, keepdim=True))
    assert T.allclose(T.norm_except_dim(v, 2, -1), v.norm())
    places = T.tensor([[0, 1], [2, 0]])
    assert T.nonzero_static(places, size=1).tolist() == [[0, 1]]
    assert T.nonzero_static(places, size=3).tolist() == [[0, 1], [1, 0], [-1, -1]]
    assert T.nonzero_static(places, size=3, fill_value=7)[2].tolist() == [7, 7]
    with pytest.raises(RuntimeError, match="'size' must be an non-negative integer"):
        T.nonzero_static(places, size=-1)
    T.manual_seed(0)
    x, y, weight = T.randn(3, 2), T.randn(3, 4), T.randn(5, 2, 4)
    assert T.equal(T.bilinear(x, y, weight), T.nn.functional.bilinear(x, y, weight))
    loss = T.nn.functional.binary_cross_entropy_with_logits
    assert T.equal(T.binary_cross_entropy_with_logits(x, x.sigmoid()), loss(x, x.sigmoid(), reduction="none"))
    assert T.equal(T.binary_cross_entropy_with_logits(x, x.sigmoid(), reduction=2), loss(x, x.sigmoid(), reduction="sum"))
    assert T.gcd_(T.tensor([4]), T.tensor([6])).tolist() == [2]
