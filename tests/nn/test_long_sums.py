"""Long sums in float32 beside the same in float64: no register sums so many terms that digits are lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from library import IS_GRADIRON, T

pytestmark = pytest.mark.skipif(not IS_GRADIRON, reason="PyTorch's convolutions err by up to five times as much")
F = T.nn.functional

Function = Callable[..., Any]


def gru(x: Any, *weights: Any) -> Any:
    state = T.zeros(1, x.shape[1], weights[1].shape[1], dtype=x.dtype)
    return T.gru(x, state, [w * 0.1 for w in weights], False, 1, 0.0, True, False, False)[0]


def far_from_singular(a: Any) -> Any:
    return a + 30 * T.eye(a.shape[-1], dtype=a.dtype)


# What is computed, of which shapes, and the largest root of the mean square error, of the result and of each gradient, in
# units of 2**-24 of what they are: it grows as the root of how many terms a register sums.
CASES: list[tuple[str, Function, list[tuple[int, ...]], float]] = [
    ("matmul, inner", lambda a, b: a @ b, [(24, 4096), (4096, 20)], 5.2),
    ("matmul, rows", lambda a, b: a @ b, [(4096, 24), (24, 20)], 5.2),
    ("linear", F.linear, [(3000, 20), (30, 20), (30,)], 5.2),
    ("linear, some terms", F.linear, [(1000, 20), (30, 20), (30,)], 3.1),
    ("gru", gru, [(20, 16, 32), (192, 32), (192, 64)], 4.2),
    ("linear, few terms", F.linear, [(320, 64), (24, 64)], 2.9),
    ("conv2d, few channels", lambda x, w: F.conv2d(x, w, padding=1), [(1, 3, 9, 9), (64, 3, 3, 3)], 2.9),
    ("conv2d, many positions", lambda x, w: F.conv2d(x, w, padding=1), [(2, 16, 48, 48), (16, 16, 3, 3)], 2.9),
    ("conv2d, 1x1", F.conv2d, [(4, 48, 32, 32), (24, 48, 1, 1)], 2.9),
    ("conv2d, stem", lambda x, w: F.conv2d(x, w, stride=2, padding=3), [(1, 3, 20, 20), (64, 3, 7, 7)], 2.9),
    ("conv1d, few terms", lambda x, w: F.conv1d(x, w, padding=1), [(1, 64, 200), (64, 64, 3)], 1.9),
    ("conv3d", lambda x, w: F.conv3d(x, w, padding=1), [(1, 4, 16, 16, 16), (12, 4, 3, 3, 3)], 2.9),
    ("conv_transpose2d", lambda x, w: F.conv_transpose2d(x, w, stride=2), [(1, 128, 6, 6), (128, 3, 4, 4)], 2.9),
    ("batch_norm, short runs", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), [(32, 16, 4, 4), (16,), (16,)], 1.4),
    ("batch_norm, long runs", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), [(8, 8, 32, 32), (8,), (8,)], 2.6),
    ("instance_norm", F.instance_norm, [(4, 16, 32, 32)], 0.78),
    ("pdist", lambda x: F.pdist(x, 1.0), [(4, 256)], 1.5),
    ("sum", lambda x: x.sum(0), [(20000, 4)], 1.4),
    ("solve", lambda a, b: T.linalg.solve(far_from_singular(a), b), [(4, 40, 40), (4, 40, 3)], 1.3),
    (
        "solve_triangular",
        lambda a, b: T.linalg.solve_triangular(far_from_singular(a).triu(), b, upper=True),
        [(4, 40, 40), (4, 40, 3)],
        1.2,
    ),
    ("cholesky", lambda a: T.linalg.cholesky(far_from_singular(a + a.mT)), [(4, 40, 40)], 2.1),
    ("qr", lambda a: T.linalg.qr(far_from_singular(a))[1], [(4, 40, 40)], 3),
    ("nuclear norm", lambda a: T.linalg.matrix_norm(a, "nuc"), [(4, 40, 30)], 2.2),
    ("bilinear", F.bilinear, [(64, 20), (64, 30), (10, 20, 30)], 2.6),
    ("interpolate", lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), [(2, 3, 20, 20)], 0.75),
]


@pytest.mark.parametrize(("function", "shapes", "most"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_error(function: Function, shapes: list[tuple[int, ...]], most: float) -> None:
    T.manual_seed(0)
    inputs = [T.randn(*shape) for shape in shapes]
    g = T.randn(*function(*inputs).shape)

    def run(dtype: Any) -> list[Any]:
        given = [x.to(dtype).requires_grad_() for x in inputs]
        result = function(*given)
        return [part.detach().double() for part in (result, *T.autograd.grad(result, given, g.to(dtype)))]

    for found, exact in zip(run(T.float32), run(T.float64), strict=True):
        error = ((found - exact).square().mean() / exact.square().mean()).sqrt().item() * 2**24
        assert error <= most
