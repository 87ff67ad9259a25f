"""Models that ranks train on their own, and average now and then."""

import importlib

import pytest

import library

T = library.T
dist = T.distributed
nn = T.nn
averaging = f"{library.NAME}.distributed.algorithms.model_averaging"
averagers = importlib.import_module(f"{averaging}.averagers")
hierarchical = importlib.import_module(f"{averaging}.hierarchical_model_averager")
optim = importlib.import_module(f"{library.NAME}.distributed.optim")


def average_now_and_then(rank):
    weight, unused = nn.Parameter(T.full((2,), float(rank))), nn.Parameter(T.full((1,), float(rank)))
    wide = nn.Parameter(T.full((1,), float(rank), dtype=T.float64))
    weight.grad, wide.grad = T.zeros(2), T.zeros(1, dtype=T.float64)
    averager = averagers.PeriodicModelAverager(period=2, warmup_steps=1)
    seen = []
    for _ in range(4):
        averager.average_parameters([weight, unused, wide])
        seen.append((weight.tolist(), wide.item()))
        with T.no_grad():
            weight.copy_(T.full((2,), float(rank * 2)))
    return seen, unused.item(), averager.step


def test_every_second_step_after_the_first(four):
    for rank, (seen, unused, step) in enumerate(four.run(average_now_and_then)):
        assert seen == [([rank] * 2, rank), ([3.0] * 2, 1.5), ([rank * 2.0] * 2, 1.5), ([3.0] * 2, 1.5)]
        assert unused == rank and step == 4


def average_in_groups(rank):
    weight = nn.Parameter(T.zeros(1))
    weight.grad = T.zeros(1)
    averager = hierarchical.HierarchicalModelAverager({2: 2, 4: 4})
    seen = []
    for _ in range(5):
        with T.no_grad():
            weight.fill_(rank)
        averager.average_parameters([{"params": [weight]}])
        seen.append(weight.item())
    return seen


def test_groups_of_growing_size(four):
    for rank, seen in enumerate(four.run(average_in_groups)):
        assert seen == [1.5, rank, 0.5 if rank < 2 else 2.5, rank, 1.5]


def train_locally(rank):
    layer = nn.Linear(1, 1, bias=False)
    with T.no_grad():
        layer.weight.fill_(10.0)
    optimizer = optim.PostLocalSGDOptimizer(T.optim.SGD(layer.parameters(), 1.0), averagers.PeriodicModelAverager(2, 1))
    seen = []
    for _ in range(3):
        optimizer.zero_grad()
        layer(T.full((1, 1), float(rank))).sum().backward()
        optimizer.step()
        seen.append(layer.weight.item())
    state = optimizer.state_dict()
    other = optim.PostLocalSGDOptimizer(T.optim.SGD(layer.parameters(), 2.0), averagers.PeriodicModelAverager(2, 1))
    other.load_state_dict(state)
    return seen, state["step"], other.averager.step, other.optim.param_groups[0]["lr"]


def test_post_local_sgd_optimizer(four):
    for rank, result in enumerate(four.run(train_locally)):
        assert result == ([10.0 - rank, 7.0, 7.0 - rank], 3, 3, 1.0)


def test_refused():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        with pytest.raises(ValueError, match="Arg ``period`` must be a positive value"):
            averagers.PeriodicModelAverager(0)
        with pytest.raises(ValueError, match="Arg ``warmup_steps`` must be a non-negative number"):
            averagers.PeriodicModelAverager(2, -1)
        with pytest.warns(UserWarning, match="When period is 1, no need to use model averaging"):
            averagers.PeriodicModelAverager(1)
        with pytest.raises(ValueError, match="Arg ``period_group_size_dict`` must not be empty"):
            hierarchical.HierarchicalModelAverager({})
        with pytest.raises(ValueError, match="must be equal to the size of arg ``process_group`` 1"):
            hierarchical.HierarchicalModelAverager({2: 2})
        parameter = nn.Parameter(T.ones(1))
        optimizer = optim.PostLocalSGDOptimizer(T.optim.SGD([parameter], 0.1), averagers.PeriodicModelAverager(2))
        state = optimizer.state_dict()
        del state["step"]
        with pytest.warns(UserWarning, match="does not contain a step counter for an averager"):
            optimizer.load_state_dict(state)
    finally:
        dist.destroy_process_group()
