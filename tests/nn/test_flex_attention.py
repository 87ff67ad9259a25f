"""Attention with scores and masks that are functions."""

import importlib

import pytest

from library import IS_GRADIRON, T, assert_values

flex = importlib.import_module(f"{T.__name__}.nn.attention.flex_attention")
F = T.nn.functional
# PyTorch would rather have it compiled.
pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), pytest.mark.filterwarnings("ignore::FutureWarning")]


def heads(count=4, n=8, shared=None):
    T.manual_seed(0)
    return (T.randn(2, count, n, 16), T.randn(2, shared or count, n, 16), T.randn(2, shared or count, n, 16))


def causal(b, h, i, j):
    return i >= j


def test_plain_and_causal():
    q, k, v = heads()
    assert_values(flex.flex_attention(q, k, v), F.scaled_dot_product_attention(q, k, v))
    mask = flex.create_block_mask(causal, None, None, 8, 8, device="cpu", BLOCK_SIZE=2)
    assert mask.shape == (1, 1, 8, 8) and mask.sparsity() == 37.5
    assert_values(flex.flex_attention(q, k, v, block_mask=mask), F.scaled_dot_product_attention(q, k, v, is_causal=True))


def test_scores():
    q, k, v = heads()
    found = flex.flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + (i - j) * 0.5 * h)
    bias = (T.arange(8)[:, None] - T.arange(8)) * 0.5 * T.arange(4)[:, None, None]
    assert_values(found, F.scaled_dot_product_attention(q, k, v, attn_mask=bias))


def test_rows_that_see_nothing():
    q, k, v = heads()
    mask = flex.create_block_mask(lambda b, h, i, j: (i >= j) & (i != 3), None, None, 8, 8, device="cpu")
    found, lse = flex.flex_attention(q, k, v, block_mask=mask, return_lse=True)
    assert found[:, :, 3].abs().sum().item() == 0 and lse[0, 0, 3].item() == -float("inf")


def test_shared_heads():
    q, k, v = heads(4, 8, 2)
    assert_values(flex.flex_attention(q, k, v, enable_gqa=True), F.scaled_dot_product_attention(q, k, v, enable_gqa=True))
    with pytest.raises(ValueError, match="Expect query and key/value to have the same number of heads but got Hq=4 and Hkv=2"):
        flex.flex_attention(q, k, v)


def test_masks():
    b = h = T.tensor(0)
    i, j = T.tensor(3), T.tensor(2)
    assert flex.and_masks(causal, flex.noop_mask)(b, h, i, j).item() and not flex.and_masks(causal)(b, h, j, i).item()
    assert flex.or_masks(causal, lambda b, h, i, j: j > i)(b, h, j, i).item()
    assert flex.create_mask(causal, 1, 1, 3, 3, device="cpu")[0, 0].tolist() == [
        [True, False, False],
        [True, True, False],
        [True] * 3,
    ]


@pytest.mark.skipif(not IS_GRADIRON, reason="PyTorch derives nothing on the CPU")
def test_gradients():
    q, k, v = (x.double().requires_grad_() for x in heads(2, 4))
    mask = flex.create_block_mask(lambda b, h, i, j: (i >= j) & (i != 2), None, None, 4, 4, device="cpu")
    T.autograd.gradcheck(lambda q, k, v: flex.flex_attention(q, k, v, block_mask=mask), (q[:1, :1], k[:1, :1], v[:1, :1]))
