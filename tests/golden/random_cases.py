"""Draws after `manual_seed`: code with a size `n`, whose numbers must be PyTorch's, bit for bit."""

import struct
import zlib

SIZES = [*range(1, 41), 1000, 100_003]
SHOWN = (1, 2, 15, 16, 17, 33)
SEEDS = (0, 1, 42, 2**40 + 7, -3)

CASES = """
T.rand(n)
T.rand(n, dtype=T.float64)
T.randn(n)
T.randn(n, dtype=T.float64)
T.randn(n, dtype=T.float16)
T.randn(n, dtype=T.bfloat16)
T.rand(n, dtype=T.float16)
T.rand(n, dtype=T.bfloat16)
T.randint(10, (n,))
T.randint(-5, 1000, (n,), dtype=T.int32)
T.randint(0, 2**40, (n,))
T.randint(0, 2**62, (n,))
T.randint(3, 9, (n,), dtype=T.float32)
T.randperm(n)
T.empty(n).uniform_(-2, 3)
T.empty(n, dtype=T.float64).uniform_(-2, 3)
T.empty(n).normal_(1, 2)
T.empty(n, dtype=T.float64).normal_(1, 2)
T.empty(n).bernoulli_(0.3)
T.empty(n).bernoulli_()
T.empty(n, dtype=T.bool).bernoulli_(0.5)
T.bernoulli(T.full((n,), 0.7))
T.bernoulli(T.linspace(0, 1, n, dtype=T.float64))
T.empty(n).exponential_()
T.poisson(T.full((n,), 3.5))
T.poisson(T.linspace(0, 50, n, dtype=T.float64))
T.poisson(T.linspace(0, 20, n).half())
T.binomial(T.full((n,), 40.0), T.linspace(0, 1, n))
T.binomial(T.linspace(0, 99, n, dtype=T.float64).floor(), T.full((n,), 0.3, dtype=T.float64))
T._standard_gamma(T.linspace(0.01, 20, n))
T._standard_gamma(T.linspace(0.01, 20, n, dtype=T.float64))
T._standard_gamma(T.ones(2, n).t())
T._sample_dirichlet(T.full((n, 3), 0.4))
T._sample_dirichlet(T.full((n, 3), 0.4, dtype=T.float64))
T.empty(n, dtype=T.int64).random_()
T.empty(n, dtype=T.int64).random_(7)
T.empty(n, dtype=T.int8).random_()
T.empty(n, dtype=T.uint8).random_()
T.empty(n).random_()
T.empty(n, dtype=T.bool).random_()
T.normal(0.0, 1.0, (n,))
T.normal(T.zeros(n), T.ones(n) * 2)
T.normal(T.arange(float(n)))
T.rand(n, 2)[:, 0]
T.empty(n, 2).normal_()[:, 1]
T.empty(2, n).t().normal_()
T.empty(n, 3)[:, 1].uniform_()
T.rand_like(T.ones(n, 1))
T.randn_like(T.ones(2, n).t())
T.randint_like(T.ones(n), 100)
T.cat([T.randn(n), T.randn(n + 1)])
T.cat([T.randn(1), T.rand(n), T.randn(1)])
T.cat([T.randn(3), T.rand(n).double(), T.randn(3, dtype=T.float64), T.randn(n)])
"""


def draw(code, n, seed, library):
    library.manual_seed(seed)
    return eval(code, {"T": library, "n": n}).reshape(-1).tolist()


def digest(values):
    return zlib.crc32(struct.pack(f"<{len(values)}d", *values))
