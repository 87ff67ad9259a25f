"""What a large GPU is for: many bytes, many products, and small kernels in a row. For `compare.py --device cuda`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import Names, group

job = group("gpu")


def vectors(n: int, dtype: str = "float32") -> Callable[[Any], Names]:
    return lambda T: {"T": T, **{name: (100 * T.rand(n)).to(getattr(T, dtype)) for name in "ab"}}


def matrix(rows: int, columns: int) -> Callable[[Any], Names]:
    return lambda T: {"T": T, "F": T.nn.functional, "a": T.randn(rows, columns), "w": T.randn(columns)}


def products(m: int, k: int, n: int, batch: tuple[int, ...] = (), dtype: str = "float32") -> Callable[[Any], Names]:
    def setup(T: Any) -> Names:
        return {"a": T.randn(*batch, m, k).to(getattr(T, dtype)), "b": T.randn(*batch, k, n).to(getattr(T, dtype))}

    return setup


def pictures(batch: int, channels: int, size: int, out: int, kernel: int, **options: int) -> Callable[[Any], Names]:
    def setup(T: Any) -> Names:
        layer = T.nn.Conv2d(channels, out, kernel, padding=kernel // 2, **options)
        x = T.randn(batch, channels, size, size, requires_grad=True)
        return {"layer": layer, "x": x, "g": T.ones_like(layer(x).detach())}

    return setup


def heads(T: Any) -> Names:
    q, k, v = (T.randn(16, 16, 1024, 64, requires_grad=True) for _ in range(3))
    return {"F": T.nn.functional, "q": q, "k": k, "v": v, "g": T.randn(16, 16, 1024, 64)}


def places(T: Any) -> Names:
    return {"T": T, "a": T.randn(1_000_000, 64), "i": T.randint(0, 1_000_000, (500_000,)), "x": T.randn(500_000, 64)}


def block(T: Any) -> Names:
    """A layer of a transformer of width 768, forward and backward."""
    T.manual_seed(0)
    layer = T.nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.0, batch_first=True, activation="gelu", norm_first=True)
    x = T.randn(8, 512, 768)
    return {"step": lambda: layer(x).sum().backward()}


job("add, 4 elements", "a + b", vectors(4))
job("add, 1e6", "a + b", vectors(1_000_000))
job("add, 1e8", "a + b", vectors(100_000_000))
job("a.add_(1), 1e8", "a.add_(1)", vectors(100_000_000))
job("exp, 1e8", "a.exp()", vectors(100_000_000))
job("tanh, 1e8", "a.tanh()", vectors(100_000_000))
job("add of bfloat16, 1e8", "a + b", vectors(100_000_000, "bfloat16"))
job("add of int64, 1e7", "a + b", vectors(10_000_000, "int64"))
job("sum, 1e8", "a.sum()", vectors(100_000_000))
job("cumsum, 1e7", "a.cumsum(0)", vectors(10_000_000))
job("sort, 1e6", "a.sort()", vectors(1_000_000))
job("sum over rows, 10,000 x 10,000", "a.sum(1)", matrix(10_000, 10_000))
job("sum over columns, 10,000 x 10,000", "a.sum(0)", matrix(10_000, 10_000))
job("add of a transpose, 10,000 x 10,000", "a + a.t()", matrix(10_000, 10_000))
job("softmax, 8192 x 8192", "a.softmax(1)", matrix(8192, 8192))
job("softmax, 100,000 x 64", "a.softmax(1)", matrix(100_000, 64))
job("layer_norm, 32,768 x 1024", "F.layer_norm(a, (1024,), w, w)", matrix(32_768, 1024))
job("a[i], 500,000 rows of 64", "a[i]", places)
job("index_add of 500,000 rows of 64", "a.index_add(0, i, x)", places)
for size in (512, 1024, 2048, 4096, 8192):
    job(f"matmul {size}", "a @ b", products(size, size, size))
job("matmul 4096 x 4096 transposed", "a @ b.t()", products(4096, 4096, 4096))
job("matmul 4095 x 4093 x 4097", "a @ b", products(4095, 4093, 4097))
job("matmul 4096, bfloat16", "a @ b", products(4096, 4096, 4096, dtype="bfloat16"))
job("matmul 4096, float16", "a @ b", products(4096, 4096, 4096, dtype="float16"))
job("matmul 1 x 4096 x 4096", "a @ b", products(1, 4096, 4096))
job("matmul 16 x 4096 x 4096", "a @ b", products(16, 4096, 4096))
job("bmm 256 of 128", "a @ b", products(128, 128, 128, (256,)))
job("conv2d 64 -> 64, 3 x 3, 32 pictures of 56", "layer(x)", pictures(32, 64, 56, 64, 3))
job("the same, backward", "layer(x).backward(g)", pictures(32, 64, 56, 64, 3))
job("conv2d 256 -> 256, 3 x 3, 32 pictures of 14", "layer(x)", pictures(32, 256, 14, 256, 3))
job("conv2d of each channel, 64, 3 x 3, 32 pictures of 56", "layer(x)", pictures(32, 64, 56, 64, 3, groups=64))
job("attention, 16 x 16 heads of 1024 x 64", "F.scaled_dot_product_attention(q, k, v)", heads)
job("attention, causal, and backward", "F.scaled_dot_product_attention(q, k, v, is_causal=True).backward(g)", heads)
job("layer of a transformer, 8 x 512 x 768, and backward", "step()", block)
