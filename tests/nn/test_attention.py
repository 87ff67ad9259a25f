"""Attention: tiles beside the whole matrix of scores, masks, derivatives of both orders, and what is refused."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library import IS_GRADIRON, NO_GPU, T

F = T.nn.functional
attend = F.scaled_dot_product_attention


def drawn(*shape, seed=0, dtype=T.float64):
    return T.randn(*shape, dtype=dtype, generator=T.Generator().manual_seed(seed))


def operands(batch=2, heads=2, queries=5, keys=6, width=4, dtype=T.float64):
    shapes = [(batch, heads, queries, width), (batch, heads, keys, width), (batch, heads, keys, width)]
    return [drawn(*s, seed=i, dtype=dtype).requires_grad_() for i, s in enumerate(shapes)]


def whole(q, k, v, mask=None, scale=None):
    """By all scores at once."""
    scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.size(-1)) if scale is None else scale)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == T.bool else scores + mask
    weights = scores.softmax(-1)
    return weights.nan_to_num(0.0) @ v


SIZES = [(1, 1), (5, 6), (64, 256), (65, 257), (70, 600), (300, 20)]


@pytest.mark.parametrize("queries, keys", SIZES)
@pytest.mark.parametrize("mask", [None, "causal", "seen", "added", "per head"])
def test_tiles_are_the_whole(queries, keys, mask):
    q, k, v = operands(queries=queries, keys=keys)
    causal = T.ones(queries, keys, dtype=T.bool).tril()
    own = {
        "seen": drawn(queries, keys, seed=7) > -1,
        "added": drawn(queries, keys, seed=7),
        "per head": drawn(1, 2, 1, keys, seed=7),
    }.get(mask)
    y = attend(q, k, v, own, is_causal=mask == "causal", scale=0.4)
    assert y.grad_fn.name() == "ScaledDotProductFlashAttentionForCpuBackward0"
    expected = whole(q, k, v, causal if mask == "causal" else own, 0.4)
    assert T.allclose(y, expected)
    weight = drawn(*y.shape, seed=9)
    for a, b in zip(*(T.autograd.grad((t * weight).sum(), (q, k, v)) for t in (y, expected))):
        assert T.allclose(a, b, 1e-8, 1e-10)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 5), st.integers(0, 2**16))
def test_weights_sum_to_one(queries, keys, width, seed):
    q, k = drawn(1, 1, queries, width, seed=seed), drawn(1, 1, keys, width, seed=seed + 1)
    y = attend(q * 30, k, T.ones(1, 1, keys, width, dtype=T.float64))
    assert T.allclose(y, T.ones_like(y))


@pytest.mark.parametrize("width", [4, 3])
def test_queries_that_see_nothing_get_zeros(width):
    q, k, _ = operands()
    v = drawn(2, 2, 6, width, seed=3).requires_grad_()
    mask = T.ones(5, 6, dtype=T.bool)
    mask[2] = False
    y = attend(q, k, v, mask)
    assert y[:, :, 2].eq(0).all() and y.isfinite().all()
    for g in T.autograd.grad(y.sum(), (q, k, v)):
        assert g.isfinite().all()


def test_how_the_result_lies():
    q, k, v = operands()
    assert attend(q, k, v).stride() == (40, 20, 4, 1)
    turned = q.detach().transpose(1, 2).contiguous().transpose(1, 2)
    assert attend(turned, k, v).stride() == (40, 4, 8, 1)
    assert T.allclose(attend(turned, k, v), attend(q, k, v))
    node = attend(q, k, v, is_causal=True, scale=0.3).grad_fn
    assert (node._saved_scale, node._saved_dropout_p, node._saved_is_causal, node._saved_attn_mask) == (0.3, 0, True, None)


def test_heads_that_share_keys():
    q = drawn(2, 6, 5, 4).requires_grad_()
    k, v = drawn(2, 2, 7, 4, seed=1).requires_grad_(), drawn(2, 2, 7, 4, seed=2).requires_grad_()
    expected = whole(q, k.repeat_interleave(3, 1), v.repeat_interleave(3, 1))
    y = attend(q, k, v, enable_gqa=True)
    assert T.allclose(y, expected)
    for a, b in zip(*(T.autograd.grad(t.sum() + (t * t).sum(), (q, k, v)) for t in (y, expected))):
        assert T.allclose(a, b)


def test_other_shapes():
    q, k, v = operands()
    assert T.allclose(attend(q[0], k[0], v[0]), attend(q, k, v)[0])
    assert T.allclose(attend(q[0, 0], k[0, 0], v[0, 0]), attend(q, k, v)[0, 0])
    assert T.allclose(attend(q[None], k[None], v[None])[0], attend(q, k, v))
    assert T.allclose(attend(q, k, v[..., :3]), whole(q, k, v[..., :3]))
    assert attend(q[:, :, :0], k, v).shape == (2, 2, 0, 4)
    assert attend(q, k[:, :, :0], v[:, :, :0]).eq(0).all()


@pytest.mark.parametrize("mask", [None, "causal", "seen"])
@pytest.mark.gradiron  # PyTorch has none
def test_second_derivatives(mask):
    own = drawn(3, 4, seed=7) > -1 if mask == "seen" else None

    def f(q, k, v):
        return attend(q, k, v, own, is_causal=mask == "causal")

    small = operands(1, 2, 3, 4, 2)
    assert T.autograd.gradcheck(f, small) and T.autograd.gradgradcheck(f, small)


def test_the_gradient_of_a_mask():
    q, k, v = operands()
    mask = drawn(5, 6, seed=5).requires_grad_()
    (a,), (b,) = (T.autograd.grad((t * t).sum(), mask) for t in (attend(q, k, v, mask), whole(q, k, v, mask)))
    assert T.allclose(a, b)


def test_dropout():
    q, k, v = operands(queries=200, keys=300)
    T.manual_seed(0)
    y = attend(q, k, T.ones_like(v), dropout_p=0.5)
    assert abs(y.mean().item() - 1) < 0.02 and y.std().item() > 0.01


@pytest.mark.parametrize("dtype", [T.float16, T.bfloat16, T.float32])
def test_narrower_dtypes(dtype):
    q, k, v = (t.detach().to(dtype).requires_grad_() for t in operands())
    y = attend(q, k, v)
    assert y.dtype == dtype
    assert T.allclose(y.double(), whole(q.double(), k.double(), v.double()), 2e-2, 2e-2)
    assert all(g.dtype == dtype for g in T.autograd.grad(y.sum(), (q, k, v)))


Q, K, V = (t.detach() for t in operands(dtype=T.float32))
SEEN = T.ones(5, 6, dtype=T.bool)
REFUSED = [
    (lambda: attend(Q, K, V, SEEN, is_causal=True), RuntimeError, "_scaled_dot_product_attention: Explicit attn_mask should"),
    (lambda: attend(Q, K, V, SEEN.int()), RuntimeError, "Expected attn_mask dtype to be bool or float or to match query"),
    (lambda: attend(Q, K.double(), V), RuntimeError, "Expected query, key, and value to have the same dtype, but got query"),
    (lambda: attend(Q[0, 0, 0], K, V), RuntimeError, "Expected query, key, and value to all be  at least 2 dimensional"),
    (lambda: attend(Q, K, V, dropout_p=1.5), RuntimeError, "dropout probability has to be between 0 and 1, but got 1.5"),
    (lambda: attend(Q, K[..., :3], V), RuntimeError, r"Expected size for first two dimensions of batch2 tensor to be"),
    (
        lambda: attend(T.randn(2, 3, 5, 4), K, V, enable_gqa=True),
        RuntimeError,
        "Number of heads in key and value must divide the number of heads in query",
    ),
    (lambda: attend(Q, K, V, SEEN[:, :5]), RuntimeError, r"The size of tensor a \(6\) must match the size of tensor b \(5\)"),
]


@pytest.mark.parametrize("call, kind, text", REFUSED)
def test_what_is_refused(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.skipif(NO_GPU or not IS_GRADIRON, reason="without the GPU")
@pytest.mark.parametrize("mask", [None, "causal", "seen"])
def test_on_the_gpu(mask):
    found = []
    for device in ("cpu", "cuda"):
        q, k, v = (t.detach().to(device).requires_grad_() for t in operands(dtype=T.float32))
        own = (drawn(5, 6, seed=7) > -1).to(device) if mask == "seen" else None
        y = attend(q, k, v, own, is_causal=mask == "causal")
        assert y.device.type == device
        found.append([t.detach().cpu() for t in (y, *T.autograd.grad(y.pow(2).sum(), (q, k, v)))])
    for a, b in zip(*found):
        assert T.allclose(a, b, 1e-4, 1e-5)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("batch_first", [True, False])
def test_transformers_without_batches(batch_first):
    nn = T.nn
    options = {"nhead": 2, "dim_feedforward": 8, "batch_first": batch_first}
    x = T.rand((0, 3, 8) if batch_first else (3, 0, 8), requires_grad=True)
    encoder, decoder = nn.TransformerEncoderLayer(8, **options), nn.TransformerDecoderLayer(8, **options)
    for call in (
        encoder,
        lambda x: nn.TransformerEncoder(encoder, 2, enable_nested_tensor=False)(x),
        lambda x: decoder(x, x),
        lambda x: nn.TransformerDecoder(decoder, 2)(x, x),
        lambda x: nn.Transformer(8, 2, 1, 1, 8, batch_first=batch_first)(x, x),
        lambda x: encoder(x, T.zeros(3, 3)),
    ):
        made = call(x)
        made.sum().backward()
        assert made.shape == x.shape and x.grad.shape == x.shape


@pytest.mark.parametrize("kind", [T.bfloat16, T.float16])
def test_scores_of_halves_are_not_rounded(kind):
    q, k, v = [(drawn(2, 6, 8, seed=i) * 8).to(kind) for i in range(3)]
    T.manual_seed(0)
    made = attend(q, k, v, dropout_p=0.5)
    T.manual_seed(0)
    wanted = attend(q.double(), k.double(), v.double(), dropout_p=0.5)
    assert made.dtype is kind and T.allclose(made.double(), wanted, rtol=0.01, atol=0.01)


@pytest.mark.skipif(NO_GPU or not IS_GRADIRON, reason="without the GPU")
@pytest.mark.parametrize("mask", [None, "causal", "seen"])
def test_a_gpu_makes_many_weights_block_by_block(mask):
    queries, keys = 1200, 1250
    masks = {"attn_mask": drawn(queries, keys, seed=7) > -1} if mask == "seen" else {"is_causal": mask == "causal"}
    got = []
    for device in ("cpu", "cuda"):
        shape = {"batch": 1, "heads": 3, "queries": queries, "keys": keys, "dtype": T.float32}
        q, k, v = (t.detach().to(device).requires_grad_() for t in operands(**shape))
        own = {name: m.to(device) if T.is_tensor(m) else m for name, m in masks.items()}
        y = attend(q, k, v, **own)
        assert y.device.type == device
        y.backward(drawn(*y.shape, seed=9, dtype=T.float32).to(device))
        got.append([t.cpu() for t in (y.detach(), q.grad, k.grad, v.grad)])
    for ours, theirs in zip(*got, strict=True):
        T.testing.assert_close(theirs, ours, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(NO_GPU or not IS_GRADIRON, reason="without the GPU")
def test_a_gpu_never_holds_all_weights():
    n = 5000
    q, k, v = (t.detach().cuda() for t in operands(batch=1, heads=1, queries=n, keys=n, dtype=T.float32))
    before = T.cuda.memory_allocated()
    T.cuda.reset_peak_memory_stats()
    attend(q, k, v).sum().item()
    assert T.cuda.max_memory_allocated() - before < 4 * n * n
