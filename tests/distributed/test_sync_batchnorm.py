"""`SyncBatchNorm`: the batches of all ranks normalised as one."""

import pytest
from ddp_models import assert_close, first_ranks

import library

T = library.T
dist = T.distributed
nn = T.nn
pytestmark = pytest.mark.gradiron  # PyTorch has it on GPUs only.

SHAPES = {"vectors": (8, 3), "sequences": (8, 3, 5), "images": (8, 3, 4, 2), "volumes": (8, 3, 2, 2, 2)}
OPTIONS = {
    "plain": {},
    "no affine": {"affine": False},
    "no bias": {"bias": False},
    "no running": {"track_running_stats": False},
    "mean of all": {"momentum": None},
}
# How many rows of the batch each of 4 ranks has.
SHARES = {"even": (2, 2, 2, 2), "uneven": (1, 4, 2, 1), "one has none": (3, 0, 4, 1)}


def layers(shape):
    return {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}[len(shape)]


def batch(shape, dtype):
    generator = T.Generator().manual_seed(4)
    x = T.randn(shape, generator=generator, dtype=T.float64) * 3 + 100  # A mean far from zero: no digits may be lost.
    return x.to(dtype), T.randn(shape, generator=generator, dtype=T.float64).to(dtype)


def run_layer(layer, x, weights, steps=2):
    seen = []
    for step in range(steps):
        x = x.detach().requires_grad_()
        y = layer(x * (step + 1))
        (y * weights).sum().backward()
        state = [value.tolist() for value in layer.state_dict().values()]
        seen.append((y.tolist(), x.grad.tolist(), [p.grad.tolist() for p in layer.parameters()], state))
        layer.zero_grad()
    return seen


def run_part(rank, shape, options, shares, dtype):
    x, weights = batch(shape, library.dtype(dtype))
    begin = sum(shares[:rank])
    mine = slice(begin, begin + shares[rank])
    layer = nn.SyncBatchNorm(shape[1], dtype=library.dtype(dtype), **options)
    return run_layer(layer, x[mine], weights[mine])


def compare(results, expected, tolerance):
    for step, (y, grad, params, state) in enumerate(expected):
        own = [result[step] for result in results]
        assert_close([row for each in own for row in each[0]], y, tolerance)
        assert_close([row for each in own for row in each[1]], grad, tolerance)
        for at, of_whole in enumerate(params):  # Of its own part of the batch, each rank has its own share.
            summed = [sum(values) for values in zip(*(each[2][at] for each in own), strict=True)]
            assert_close(summed, of_whole, tolerance * 10)
        for each in own:
            assert_close(each[3], state, tolerance)


CASES = [(shape, "plain", shares) for shape in SHAPES for shares in SHARES] + [
    ("images", options, "uneven") for options in OPTIONS
]


@pytest.mark.parametrize("shape, options, shares", CASES)
def test_ranks_together_are_as_one(four, shape, options, shares):
    shape = SHAPES[shape]
    x, weights = batch(shape, T.float64)
    expected = run_layer(layers(shape)(shape[1], dtype=T.float64, **OPTIONS[options]), x, weights)
    compare(four.run(run_part, shape, OPTIONS[options], SHARES[shares], "float64"), expected, 1e-9)


def test_float32_and_half_precision(four):
    shape = SHAPES["images"]
    for dtype, tolerance in (("float32", 2e-4), ("bfloat16", 0.3)):
        x, weights = batch(shape, library.dtype(dtype))
        expected = run_layer(nn.BatchNorm2d(3, dtype=library.dtype(dtype)), x, weights, steps=1)
        results = [result[:1] for result in four.run(run_part, shape, {}, SHARES["even"], dtype)]
        compare(results, expected, tolerance)


def in_a_group(rank):
    group = first_ranks(2)
    if group is None:
        return None
    layer = nn.SyncBatchNorm(1, process_group=group)
    return layer(T.tensor([[float(rank)], [float(rank)]])).tolist()


def test_a_group_of_its_own(four):
    low, high = four.run(in_a_group)[:2]
    assert_close(low, [[-1.0]] * 2, 1e-4)
    assert_close(high, [[1.0]] * 2, 1e-4)


def evaluate(rank):
    layer = nn.SyncBatchNorm(1).eval()
    own = layer(T.full((1, 1), float(rank))).item()
    no_statistics = nn.SyncBatchNorm(1, track_running_stats=False).eval()
    alone = no_statistics(T.tensor([[rank - 1.0], [rank + 1.0]])).tolist()
    return own, alone


def test_evaluation_stays_in_the_process(four):
    for rank, (own, alone) in enumerate(four.run(evaluate)):
        assert own == pytest.approx(rank, rel=1e-4)
        assert_close(alone, [[-1.0], [1.0]], 1e-4)


def one_value(rank):
    nn.SyncBatchNorm(2)(T.ones(1 if rank == 0 else 0, 2))


def test_too_few_values(four):
    kinds, values = four.outcomes(one_value)
    assert kinds == ["raised"] * 4
    assert all(
        error == "ValueError" and "Expected more than 1 value per channel when training" in text for error, text, _ in values
    )


def train_converted(rank):
    T.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Sequential(nn.ReLU(), nn.Flatten(), nn.Linear(8, 1))
    ).double()
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert isinstance(converted[1], nn.SyncBatchNorm)
    if rank is None:
        return gradients(model, 0, 1)
    return gradients(nn.parallel.DistributedDataParallel(converted), rank, 4)


def gradients(model, rank, size):
    x = T.randn(8, 1, 4, 4, generator=T.Generator().manual_seed(1), dtype=T.float64)
    seen = []
    for _ in range(2):
        model.zero_grad()
        each = 8 // size
        (model(x[rank * each : (rank + 1) * each]) ** 2).mean().backward()
        seen.append([p.grad.tolist() for p in model.parameters()])
    return seen


def test_a_converted_network_trains_as_one_process(four):
    expected = train_converted(None)
    for own in four.run(train_converted):
        assert_close(own, expected, 1e-9)
