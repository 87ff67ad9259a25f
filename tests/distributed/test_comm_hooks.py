"""Communication hooks of `DistributedDataParallel`."""

import importlib
import pickle

import pytest
from ddp_models import assert_close, make, train

import library

T = library.T
dist = T.distributed
nn = T.nn
hooks = importlib.import_module(f"{library.NAME}.distributed.algorithms.ddp_comm_hooks")
default_hooks = importlib.import_module(f"{hooks.__name__}.default_hooks")
post_local = importlib.import_module(f"{hooks.__name__}.post_localSGD_hook")
power = importlib.import_module(f"{hooks.__name__}.powerSGD_hook")
debugging_hooks = importlib.import_module(f"{hooks.__name__}.debugging_hooks")


def average_by_hand(state, bucket):
    """Gathers the buffers of all ranks, and waits."""
    everybody = [T.empty_like(bucket.buffer()) for _ in range(4)]
    dist.all_gather(everybody, bucket.buffer())
    future = T.futures.Future()
    future.set_result(T.stack(everybody).mean(0))
    return future


def average_in_steps(state, bucket):
    """Reduces twice, the second time when the first is done."""
    first = dist.all_reduce(bucket.buffer() / 8, async_op=True).get_future()

    def again(future):
        half = future.value()[0]
        rest = dist.all_reduce(bucket.buffer() / 8, async_op=True).get_future().wait()[0]
        return half + rest

    return first.then(again)


def average_by_set_buffer(state, bucket):
    bucket.set_buffer(bucket.buffer() * 0.25)
    return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda future: future.value()[0])


HOOKS = {
    "allreduce": (default_hooks.allreduce_hook, 1e-12),
    "fp16": (default_hooks.fp16_compress_hook, 2e-3),
    "bf16": (default_hooks.bf16_compress_hook, 3e-2),
    "fp16 of allreduce": (default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook), 2e-3),
    "bf16 of allreduce": (default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook), 3e-2),
    "gathered": (average_by_hand, 1e-12),
    "set_buffer": (average_by_set_buffer, 1e-12),
}


def train_hooked(rank, name, options):
    model = nn.parallel.DistributedDataParallel(make(), **options)
    model.register_comm_hook(None, HOOKS[name][0])
    return train(model, rank, 4, steps=3)[0]


@pytest.mark.parametrize(
    "options", [{}, {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.0001}], ids=["plain", "many views"]
)
@pytest.mark.parametrize("name", HOOKS)
def test_hooks_average(four, name, options):
    expected, _ = train(make(), 0, 1, steps=3)
    for own in four.run(train_hooked, name, options):
        assert_close(own, expected, HOOKS[name][1])


def train_in_steps(rank):
    model = nn.parallel.DistributedDataParallel(make())
    model.register_comm_hook(None, average_in_steps)
    return train(model, rank, 4, steps=3)[0]


def test_a_hook_that_waits_for_a_collective_in_a_callback(four):
    expected, _ = train(make(), 0, 1, steps=3)
    for own in four.run(train_in_steps):
        assert_close(own, expected)


def look_at_buckets(rank):
    layer = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2)).to(memory_format=T.contiguous_format)
    model = nn.parallel.DistributedDataParallel(layer)
    seen = []

    def hook(state, bucket):
        params, gradients = bucket.parameters(), bucket.gradients()
        flat = T.cat([gradient.reshape(-1) for gradient in gradients])
        gradients[0].mul_(10)
        seen.append(
            {
                "state": state,
                "index": bucket.index(),
                "is_last": bucket.is_last(),
                "shapes": [tuple(p.shape) for p in params] == [tuple(g.shape) for g in gradients],
                "count": len(params),
                "own": all(any(p is own for own in layer.parameters()) for p in params),
                "views": bool((bucket.buffer()[: gradients[0].numel()] == flat[: gradients[0].numel()] * 10).all()),
                "rest": bool((bucket.buffer()[gradients[0].numel() :] == flat[gradients[0].numel() :]).all()),
            }
        )
        future = T.futures.Future()
        future.set_result(bucket.buffer() * 0 + rank)
        return future

    model.register_comm_hook("mine", hook)
    model(T.ones(1, 2)).sum().backward()
    return seen, [sorted(set(p.grad.reshape(-1).tolist())) for p in layer.parameters()]


def test_what_a_hook_is_given(four):
    for rank, (seen, gradients) in enumerate(four.run(look_at_buckets)):
        assert seen == [
            {"state": "mine", "index": 0, "is_last": True, "shapes": True, "count": 4, "own": True, "views": True, "rest": True}
        ]
        assert gradients == [[rank]] * 4  # What the hook's future holds is taken as it is.


def register(rank, kind):
    layer = nn.Linear(1, 1)
    model = nn.parallel.DistributedDataParallel(layer)
    if kind == "builtin":
        model._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)
    else:
        hooks.register_ddp_comm_hook(getattr(hooks.DDPCommHookType, kind), model, None)
    seen = []
    for _ in range(3):
        model.zero_grad()
        model(T.full((1, 1), float(rank))).sum().backward()
        seen.append(layer.weight.grad.item())
    return seen


@pytest.mark.parametrize(
    "kind", ["ALLREDUCE", "FP16_COMPRESS", "BF16_COMPRESS", "POWER_SGD", "BATCHED_POWER_SGD_RANK2", "builtin"]
)
def test_hooks_by_name(four, kind):
    assert four.run(register, kind) == [[1.5] * 3] * 4


def test_a_hook_that_does_nothing(four):
    assert four.run(register, "NOOP") == [[float(rank)] * 3 for rank in range(4)]


# PowerSGD.


def low_rank_gradients(rank, batched, options):
    """Gradients of one outer product per rank: two of them together have rank 2, so that PowerSGD of rank 2 loses nothing."""
    layer = nn.Linear(24, 16, dtype=T.float64)
    model = nn.parallel.DistributedDataParallel(layer)
    state = power.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2, **options)
    model.register_comm_hook(state, power.batched_powerSGD_hook if batched else power.powerSGD_hook)
    generator = T.Generator().manual_seed(5)
    xs, ys = T.randn(2, 24, generator=generator, dtype=T.float64), T.randn(2, 16, generator=generator, dtype=T.float64)
    exact = sum(T.outer(ys[at], xs[at]) for at in (0, 1)) * 2 / 4
    worst = []
    for _ in range(6):
        model.zero_grad()
        (model(xs[rank % 2][None]) * ys[rank % 2]).sum().backward()
        worst.append((layer.weight.grad - exact).abs().max().item())
    bias = (layer.bias.grad - ys.mean(0)).abs().max().item()
    return worst, bias, layer.weight.grad.tolist(), state.compression_stats()


@pytest.mark.parametrize(
    "options", [{}, {"warm_start": False}, {"use_error_feedback": False}], ids=["both", "cold", "no feedback"]
)
def test_power_sgd_is_exact_for_gradients_of_its_rank(four, options):
    results = four.run(low_rank_gradients, False, options)
    for worst, bias, gradient, (rate, before, after) in results:
        assert max(worst) < 1e-10 and bias < 1e-12
        assert gradient == results[0][2]  # The same bits on all ranks.
        assert before == 4 * (24 * 16 + 16) and after == 4 * (2 * (24 + 16) + 16) and rate == before / after


def mean_of_compressed(rank, batched):
    """Gradients of full rank; error feedback makes their sum over the steps come right."""
    layer = nn.Linear(12, 12, dtype=T.float64)
    model = nn.parallel.DistributedDataParallel(layer)
    state = power.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2, min_compression_rate=1)
    model.register_comm_hook(state, power.batched_powerSGD_hook if batched else power.powerSGD_hook)
    x = T.randn(4, 32, 12, generator=T.Generator().manual_seed(2), dtype=T.float64)
    exact = 2 * sum(part.t() @ part for part in x) / 4
    total, single = T.zeros_like(exact), None
    steps = 60
    for step in range(steps):
        model.zero_grad()
        with T.no_grad():
            layer.weight.copy_(T.eye(12, dtype=T.float64))
            layer.bias.zero_()
        (model(x[rank]) ** 2).sum().backward()
        if step >= 2:
            total += layer.weight.grad
            single = (layer.weight.grad - exact).norm().item() / exact.norm().item()
    return single, (total / (steps - 2) - exact).norm().item() / exact.norm().item()


@pytest.mark.parametrize("batched", [False, pytest.param(True, marks=pytest.mark.gradiron)], ids=["matrices", "batched"])
def test_error_feedback_makes_up_for_what_compression_loses(four, batched):
    for single, over_all in four.run(mean_of_compressed, batched):
        assert single > 0.2 and over_all < 0.15


def test_power_sgd_states():
    with pytest.raises(ValueError, match="Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled"):
        power.PowerSGDState(None, start_powerSGD_iter=1)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        state = power.PowerSGDState(None, start_powerSGD_iter=3)
        state.iter = 7
        state.error_dict[0] = T.ones(3)
        again = pickle.loads(pickle.dumps(state))
        assert again.iter == 7 and again.start_powerSGD_iter == 3 and again.error_dict[0].tolist() == [1.0] * 3
        assert again.process_group is dist.group.WORLD
    finally:
        dist.destroy_process_group()


# Averaging within a subgroup.


def average_locally(rank, post_local):
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    layer = nn.Linear(1, 1)
    model = nn.parallel.DistributedDataParallel(layer)
    state = post_local_state(pairs[rank // 2], post_local)
    model.register_comm_hook(state, post_local_hook())
    seen = []
    for _ in range(4):
        model.zero_grad()
        model(T.full((1, 1), float(rank))).sum().backward()
        seen.append(layer.weight.grad.item())
    return seen


def post_local_state(subgroup, post_local_gradient_allreduce):
    return post_local.PostLocalSGDState(None, subgroup, 2, post_local_gradient_allreduce)


def post_local_hook():
    return post_local.post_localSGD_hook


def test_post_local_sgd(four):
    assert four.run(average_locally, True) == [[1.5, 1.5, own, own] for own in (0.5, 0.5, 2.5, 2.5)]
    assert four.run(average_locally, False) == [[1.5, 1.5, own, own] for own in (0.0, 1.0, 2.0, 3.0)]


# Refused.


@pytest.fixture
def alone():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def wrongly_annotated(state, bucket: int):
    return None


def wrongly_returning(state, bucket) -> int:
    return 1


def test_hooks_that_are_refused(alone):
    model = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
    with pytest.raises(TypeError, match="Communication hook must be callable"):
        model.register_comm_hook(None, 1)
    with pytest.raises(ValueError, match="bucket annotation should be dist.GradBucket"):
        model.register_comm_hook(None, wrongly_annotated)
    with pytest.raises(ValueError, match=r"return annotation should be torch.futures.Future\[torch.Tensor\]"):
        model.register_comm_hook(None, wrongly_returning)
    model.register_comm_hook(None, debugging_hooks.noop_hook)
    with pytest.raises(RuntimeError, match="can only be called once"):
        model.register_comm_hook(None, debugging_hooks.noop_hook)


@pytest.mark.gradiron
@pytest.mark.parametrize("returned, message", [
    (lambda bucket: None, "callback must return a torch.futures.Future object, but got NoneType"),
    (lambda bucket: bucket.buffer(), "but got Tensor"),
    (lambda bucket: future_of(1), "expected the future of the communication hook to hold a tensor, but it holds int"),
    (lambda bucket: future_of(T.ones(2)), "to return 6 elements for bucket 0, but it returned 2"),
    (lambda bucket: bucket.set_buffer(T.ones(2)), "set_buffer: expected a tensor of 6 elements, but got 2"),
])  # fmt: skip
def test_what_hooks_return(alone, returned, message):
    model = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
    model.register_comm_hook(None, lambda state, bucket: returned(bucket))
    with pytest.raises(RuntimeError, match=message):
        model(T.ones(1, 2)).sum().backward()


def future_of(value):
    future = T.futures.Future()
    future.set_result(value)
    return future
