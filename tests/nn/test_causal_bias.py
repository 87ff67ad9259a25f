"""`nn.attention.bias`: masks that stand for a diagonal."""

import pytest

from library import T

F = T.nn.functional
bias = __import__(f"{T.__name__}.nn.attention.bias", fromlist=["CausalBias"])


@pytest.mark.parametrize("rows, columns", [(3, 3), (2, 4)])
@pytest.mark.parametrize("name", ["causal_upper_left", "causal_lower_right"])
def test_attention_under_it(name, rows, columns):
    q, k, v = (T.randn(2, 3, n, 4, requires_grad=True) for n in (rows, columns, columns))
    mask = getattr(bias, name)(rows, columns)
    shown = T.ones(rows, columns, dtype=T.bool).tril(columns - rows if name == "causal_lower_right" else 0)
    assert T.equal(mask._materialize(), shown) and repr(mask) == repr(shown)
    for given in ((mask,), ()):
        made = F.scaled_dot_product_attention(q, k, v, *given, **({} if given else {"attn_mask": mask}))
        wanted = F.scaled_dot_product_attention(q, k, v, shown)
        assert T.allclose(made, wanted, atol=1e-6)
        for one, other in zip(T.autograd.grad(made.sum(), (q, k, v)), T.autograd.grad(wanted.sum(), (q, k, v)), strict=True):
            assert T.allclose(one, other, atol=1e-6)


def test_its_properties():
    mask = bias.causal_lower_right(2, 3)
    assert (mask.variant, mask.seq_len_q, mask.seq_len_kv) == (bias.CausalVariant.LOWER_RIGHT, 2, 3)
    assert isinstance(mask, T.Tensor) and isinstance(mask, bias.CausalBias)


def test_what_is_refused():
    q = T.ones(1, 2, 4)
    with pytest.raises(ValueError, match="CausalBias should not be used with causal=True"):
        F.scaled_dot_product_attention(q, q, q, bias.causal_upper_left(2, 2), is_causal=True)
    with pytest.raises(AssertionError, match="causal_lower_right only supports 2D tensors"):
        bias.causal_lower_right(2)
    with pytest.raises(AssertionError, match="variant must be a CausalVariant, got int"):
        bias.CausalBias(1, 2, 3)
    with pytest.warns(UserWarning, match="will produce NaNs in the output when seq_len_q > seq_len_kv"):
        bias.causal_lower_right(3, 2)
