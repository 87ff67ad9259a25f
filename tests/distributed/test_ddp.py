"""`DistributedDataParallel`: the gradients of 1, 2 and 4 ranks beside those of one process with the whole batch."""

import copy

import pytest
from ddp_models import assert_close, first_ranks, make, part_of, train

import library

T = library.T
dist = T.distributed
nn = T.nn

OPTIONS = {
    "plain": {},
    "views": {"gradient_as_bucket_view": True},
    "many buckets": {"bucket_cap_mb": 0.0001},
    "many buckets, views": {"bucket_cap_mb": 0.0001, "gradient_as_bucket_view": True},
    "search": {"find_unused_parameters": True},
    "search, many buckets": {"find_unused_parameters": True, "bucket_cap_mb": 0.0001, "gradient_as_bucket_view": True},
    "static": {"static_graph": True},
    "static, many buckets": {"static_graph": True, "bucket_cap_mb": 0.0001, "gradient_as_bucket_view": True},
    "lazy": {"lazy_bucket_allocation": True},
    "batched": {"batched_grad_copy": True},
    "no buffers": {"forward_sync_buffers": False},
}


def wrap(model, size=4, **options):
    return nn.parallel.DistributedDataParallel(model, process_group=first_ranks(size), **options)


def train_wrapped(rank, size, options, training):
    group = first_ranks(size)
    if group is None:
        return None
    model = wrap(make(seed=rank), size, **options)  # Only rank 0's parameters count.
    return train(model, rank, size, **training)


@pytest.mark.parametrize("set_to_none", [True, False], ids=["none", "zeros"])
@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("options", OPTIONS)
def test_gradients_are_those_of_the_whole_batch(four, options, size, set_to_none):
    expected, losses = train(make(), 0, 1, set_to_none=set_to_none)
    results = four.run(train_wrapped, size, OPTIONS[options], {"set_to_none": set_to_none})[:size]
    for gradients, _ in results:
        assert_close(gradients, expected)
    for step, loss in enumerate(losses):
        assert sum(own[step] for _, own in results) / size == pytest.approx(loss, rel=1e-12)


@pytest.mark.parametrize("options", ["plain", "views", "many buckets", "search"])
def test_accumulated_gradients(four, options):
    expected, _ = train(make(), 0, 1)
    for gradients, _ in four.run(train_wrapped, 4, OPTIONS[options], {"accumulate": 2}):
        assert_close(gradients, expected)


def train_in_float32(rank, size):
    group = first_ranks(size)
    return (
        None
        if group is None
        else train(wrap(make(dtype=T.float32), size, bucket_cap_mb=0.0001), rank, size, dtype=T.float32)[0]
    )


@pytest.mark.parametrize("size", [2, 4])
def test_the_same_bits_on_all_ranks_and_in_each_run(four, size):
    first = four.run(train_in_float32, size)[:size]
    again = four.run(train_in_float32, size)[:size]
    assert all(own == first[0] for own in first + again)


# Parameters that are not used.


class Branches(nn.Module):
    """Uses one of its layers; `never` is not used by anybody."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.never = nn.Linear(3, 2), nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, x, branch):
        return (self.first, self.second)[branch](x)


def use_branches(rank, choices, options, set_to_none):
    """The gradients after each step; `choices` says for each step which rank takes which branch."""
    T.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(Branches().double(), find_unused_parameters=True, **options)
    model.module.never.weight.grad = T.full((2, 3), 5.0, dtype=T.float64)
    seen = []
    for ranks in choices:
        for name, param in model.module.named_parameters():
            if not name.startswith("never"):
                param.grad = None if set_to_none or param.grad is None else param.grad.zero_()
        model(T.full((1, 3), rank + 1.0, dtype=T.float64), ranks[rank]).sum().backward()
        seen.append([None if p.grad is None else p.grad.tolist() for p in model.module.parameters()])
    return seen


@pytest.mark.parametrize("set_to_none", [True, False], ids=["none", "zeros"])
@pytest.mark.parametrize(
    "options", [{}, {"gradient_as_bucket_view": True}, {"bucket_cap_mb": 0.00001}], ids=["plain", "views", "small"]
)
def test_unused_parameters(four, options, set_to_none):
    choices = [[0, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    never = [[[5.0] * 3] * 2, None]
    known = [False, False]
    expected = []
    for ranks in choices:
        step = []
        for branch in (0, 1):
            mean = sum(rank + 1.0 for rank in range(4) if ranks[rank] == branch) / 4
            known[branch] |= branch in ranks
            used = branch in ranks or (known[branch] and not set_to_none)
            bias = ranks.count(branch) / 4
            step += [[[mean] * 3] * 2, [bias] * 2] if used else [None, None]
        expected.append(step + never)
    for own in four.run(use_branches, choices, options, set_to_none):
        assert_close(own, expected)


def skip_unused(rank):
    T.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(
        Branches().double(), find_unused_parameters=True, skip_all_reduce_unused_params=True, bucket_cap_mb=0.00001
    )
    for _ in range(2):
        model.zero_grad()
        model(T.full((1, 3), rank + 1.0, dtype=T.float64), 0).sum().backward()
    gradients = [None if p.grad is None else p.grad.tolist() for p in model.module.parameters()]
    return gradients, model._get_ddp_logging_data()["num_buckets_reduced"]


@pytest.mark.gradiron
def test_buckets_of_unused_parameters_are_not_reduced(four):
    for gradients, reduced in four.run(skip_unused):
        assert_close(gradients, [[[2.5] * 3] * 2, [1.0] * 2, None, None, None, None])
        assert reduced == 2


class TwoResults(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x):
        return {"a": self.a(x), "rest": (self.b(x), None)}


def use_one_result(rank):
    model = nn.parallel.DistributedDataParallel(TwoResults(), find_unused_parameters=True)
    for _ in range(2):
        model(T.ones(1, 2))["a"].sum().backward()
    with model.no_sync():
        model(T.ones(1, 2))["rest"][0].sum().backward()
    before = model.module.b.weight.grad.tolist()
    model(T.ones(1, 2))["a"].sum().backward()
    return before, model.module.b.weight.grad.tolist(), model.module.a.weight.grad.tolist()


@pytest.mark.filterwarnings("ignore:find_unused_parameters=True")
def test_results_that_the_loss_leaves_out(four):
    for before, b, a in four.run(use_one_result):
        assert before == b == [[1.0, 1.0]] * 2
        assert a == [[3.0, 3.0]] * 2


# Graphs.


class Checkpointed(nn.Module):
    def __init__(self, reentrant, times):
        super().__init__()
        self.first, self.block = nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3), nn.Tanh())
        self.last = nn.Linear(3, 1)
        self.reentrant, self.times = reentrant, times

    def forward(self, x):
        x = self.first(x)
        for _ in range(self.times):
            if self.reentrant is None:
                x = self.block(x)
            else:
                x = T.utils.checkpoint.checkpoint(self.block, x, use_reentrant=self.reentrant)
        return self.last(x)


def squares_of(model, rows, steps=3):
    seen = []
    for _ in range(steps):
        model.zero_grad()
        (model(rows) ** 2).mean().backward()
        seen.append([p.grad.tolist() for p in model.parameters()])
    return seen


def rows():
    return T.arange(24, dtype=T.float64).reshape(8, 3) / 10


def use_checkpoints(rank, reentrant, times, options):
    model = make(Checkpointed, reentrant=reentrant, times=times)
    return squares_of(nn.parallel.DistributedDataParallel(model, **options), part_of(rows(), rank, 4))


@pytest.mark.parametrize("reentrant, times, options", [
    (False, 1, {}),
    (True, 1, {}),
    (False, 2, {}),
    (True, 2, {"static_graph": True}),
    (False, 2, {"static_graph": True}),
    (False, 1, {"find_unused_parameters": True}),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:find_unused_parameters=True")
def test_checkpoints(four, reentrant, times, options):
    expected = squares_of(make(Checkpointed, reentrant=None, times=times), rows())
    for own in four.run(use_checkpoints, reentrant, times, options):
        assert_close(own, expected)


def use_twice(rank):
    """Two forwards, and one backward of both."""
    model = nn.parallel.DistributedDataParallel(make(nn.Linear, in_features=3, out_features=2))
    x = part_of(rows(), rank, 4)
    seen = []
    for _ in range(3):
        model.zero_grad()
        ((model(x) ** 2).mean() + (model(x * 2) ** 2).mean()).backward()
        seen.append([p.grad.tolist() for p in model.parameters()])
    return seen


def test_two_forwards_and_one_backward(four):
    model = make(nn.Linear, in_features=3, out_features=2)
    ((model(rows()) ** 2).mean() + (model(rows() * 2) ** 2).mean()).backward()
    expected = [p.grad.tolist() for p in model.parameters()]
    for own in four.run(use_twice):
        assert_close(own, [expected] * 3)


def order_of_events(rank):
    """What happens in a backward: buckets that are reduced, and layers that have their gradient."""
    layers = [nn.Linear(40, 40) for _ in range(4)]
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=0.006)
    events = []

    def hook(state, bucket):
        events.append(f"bucket {bucket.index()}{' last' if bucket.is_last() else ''}")
        work = dist.all_reduce(bucket.buffer().div_(4), async_op=True)
        return work.get_future().then(lambda future: future.value()[0])

    model.register_comm_hook(None, hook)
    for at, layer in enumerate(layers):
        layer.register_full_backward_hook(lambda *_, at=at: events.append(f"layer {at}"))
    for _ in range(3):
        del events[:]
        model(T.ones(2, 40, requires_grad=True)).sum().backward()
    return events


@pytest.mark.gradiron
def test_buckets_are_reduced_while_the_backward_goes_on(four):
    for events in four.run(order_of_events):
        assert events.index("bucket 0") < events.index("layer 2")
        assert events.index("bucket 1") < events.index("layer 1")
        assert [event for event in events if event.startswith("bucket")] == [
            "bucket 0",
            "bucket 1",
            "bucket 2",
            "bucket 3 last",
        ]


class Sum(nn.Module):
    """Its gradients come in an order that the rank says."""

    def __init__(self, rank):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(4))
        self.order = [0, 1, 2, 3] if rank == 0 else [3, 1, 0, 2]

    def forward(self, x):
        for at in self.order:
            x = T.tanh(self.layers[at](x))
        return x


def rebuilt_buckets(rank):
    model = nn.parallel.DistributedDataParallel(make(Sum, rank=rank), bucket_cap_mb=0.00001)
    for _ in range(3):
        model(T.ones(1, 2, dtype=T.float64)).sum().backward()
    data = model._get_ddp_logging_data()
    return data["rebuilt_per_bucket_param_indices"], [p.grad.tolist() for p in model.parameters()]


def test_buckets_are_rebuilt_in_the_order_of_rank_0(four):
    results = four.run(rebuilt_buckets)
    assert all(result == results[0] for result in results)
    order = results[0][0].replace(",", " ").split()
    assert [int(index) // 2 for index in order] == [3, 3, 2, 2, 1, 1, 0, 0]


# What is sent at the start and before each forward.


def start(rank, sync):
    layer = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    with T.no_grad():
        for tensor in layer.state_dict().values():
            tensor.fill_(rank + 1)
    nn.parallel.DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(layer, ["0.bias", "1.running_var"])
    nn.parallel.DistributedDataParallel(layer, init_sync=sync)
    return {name: tensor.reshape(-1)[0].item() for name, tensor in layer.state_dict().items()}


@pytest.mark.parametrize("sync", [True, False])
def test_parameters_and_buffers_of_rank_0_are_sent_at_the_start(four, sync):
    for rank, state in enumerate(four.run(start, sync)):
        ignored = ("0.bias", "1.running_var")
        assert state == {name: rank + 1 if name in ignored or not sync else 1 for name in state}


def running_means(rank, options):
    layer = nn.BatchNorm1d(2, momentum=1.0)
    model = nn.parallel.DistributedDataParallel(layer, **options)
    x = T.tensor([[rank, 0.0], [rank + 2.0, 1.0]])
    model(x).sum().backward()
    after_training = layer.running_mean[0].item()
    with T.no_grad():
        model.eval()(x)
    model.train()
    model(x).sum().backward()
    layer.momentum = 0.0
    model(x).sum().backward()
    return after_training, layer.running_mean[0].item()


def test_buffers_of_rank_0_are_sent_before_each_forward(four):
    assert four.run(running_means, {}) == [(rank + 1.0, 1.0) for rank in range(4)]
    assert four.run(running_means, {"forward_sync_buffers": False}) == [(rank + 1.0, rank + 1.0) for rank in range(4)]


# Parameters of all kinds.


class Kinds(nn.Module):
    def __init__(self):
        super().__init__()
        self.single, self.double_ = nn.Linear(3, 3), nn.Linear(3, 3).double()
        self.complex_ = nn.Parameter(T.ones(3, dtype=T.complex64))
        self.half_ = nn.Parameter(T.ones(3, dtype=T.bfloat16))
        self.frozen = nn.Linear(3, 3).requires_grad_(False)

    def forward(self, x):
        y = self.double_(self.frozen(self.single(x)).double()).float()
        return (y * (self.complex_ * (1 + 2j)).abs() * self.half_.float()).sum()


def gradients_of_kinds(rank):
    T.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(Kinds(), bucket_cap_mb=0.00002)
    for _ in range(2):
        model.zero_grad()
        model(T.full((2, 3), rank + 1.0)).backward()
    kinds = [str(p.grad.dtype) for p in model.parameters() if p.requires_grad]
    grads = [
        T.view_as_real(p.grad).tolist() if p.is_complex() else p.grad.tolist() for p in model.parameters() if p.requires_grad
    ]
    return kinds, grads


def test_parameters_of_several_dtypes(four):
    T.manual_seed(0)
    model = Kinds()
    (sum(model(T.full((2, 3), rank + 1.0)) for rank in range(4)) / 4).backward()
    expected = [
        T.view_as_real(p.grad).tolist() if p.is_complex() else p.grad.tolist() for p in model.parameters() if p.requires_grad
    ]
    for kinds, own in four.run(gradients_of_kinds):
        assert kinds == [str(p.dtype) for p in model.parameters() if p.requires_grad]
        assert_close(own[:-1], expected[:-1], 1e-5)
        assert_close(own[-1], expected[-1], 2e-2)


def strides_of_gradients(rank, options):
    layer = nn.Conv2d(3, 2, 2, dtype=T.float64).to(memory_format=T.channels_last)
    with T.no_grad():
        layer.weight.fill_(0.5)
    transposed = nn.Parameter(T.ones(3, 2, dtype=T.float64).t())
    layer.transposed = transposed
    layer.register_forward_hook(lambda _, __, out: out * transposed.sum())
    model = nn.parallel.DistributedDataParallel(layer, **options)
    x = T.full((1, 3, 3, 3), rank + 1.0, dtype=T.float64).contiguous(memory_format=T.channels_last)
    for _ in range(3):
        model.zero_grad()
        model(x).sum().backward()
    return layer.weight.grad.stride(), transposed.grad.stride(), layer.weight.grad.tolist()


@pytest.mark.parametrize("options", [{}, {"gradient_as_bucket_view": True}], ids=["plain", "views"])
def test_gradients_have_the_strides_of_their_parameters(four, options):
    for conv, transposed, values in four.run(strides_of_gradients, options):
        assert conv == (12, 1, 6, 3) and transposed == (1, 2)
        assert_close(values, [[[[60.0] * 2] * 2] * 3] * 2)


# Who holds gradients.


def keep_gradients(rank, options):
    layer = nn.Linear(2, 2)
    model = nn.parallel.DistributedDataParallel(layer, **options)
    kept, arrays = [], []
    for step in range(4):
        model.zero_grad()
        (model(T.full((1, 2), rank + 1.0)) * (step + 1)).sum().backward()
        kept.append(layer.weight.grad)
        arrays.append(layer.bias.grad.numpy())
    return [k[0, 0].item() for k in kept], [float(a[0]) for a in arrays]


def test_gradients_that_somebody_keeps_stay(four):
    for kept, arrays in four.run(keep_gradients, {}):
        assert kept == [2.5, 5.0, 7.5, 10.0] and arrays == [1.0, 2.0, 3.0, 4.0]


def gradients_in_memory_of_the_users(rank):
    layer, flat = nn.Linear(2, 2), T.zeros(6)
    layer.weight.grad, layer.bias.grad = flat[:4].view(2, 2), flat[4:]
    model = nn.parallel.DistributedDataParallel(layer)
    seen = []
    for _ in range(3):
        flat.zero_()
        model(T.full((1, 2), rank + 1.0)).sum().backward()
        seen.append(flat.tolist())
    return seen


def test_gradients_in_memory_of_the_users(four):
    assert four.run(gradients_in_memory_of_the_users) == [[[2.5] * 4 + [1.0] * 2] * 3] * 4


def memory_of_gradients(rank, options):
    """How many places gradients have had."""
    layer = nn.Linear(2, 2)
    model = nn.parallel.DistributedDataParallel(layer, **options)
    places = []
    for _ in range(6):
        model.zero_grad()
        model(T.ones(1, 2)).sum().backward()
        places.append(layer.weight.grad.data_ptr())
    return len(set(places[2:])), layer.weight.grad._base is not None


@pytest.mark.gradiron
def test_the_memory_of_gradients_is_used_again(four):
    for options in ({}, {"gradient_as_bucket_view": True}):
        assert four.run(memory_of_gradients, options) == [(1, True)] * 4


# Beside other parts.


def scale_gradients(rank):
    layer = nn.Linear(2, 1)
    with T.no_grad():
        layer.weight.fill_(1)
    model = nn.parallel.DistributedDataParallel(layer)
    optimizer = T.optim.SGD(model.parameters(), 1.0)
    scaler = T.amp.GradScaler("cpu", init_scale=4.0, growth_interval=100)
    scales, weights = [], []
    for step in range(3):
        optimizer.zero_grad()
        x = T.full((1, 2), float("inf") if step == 1 and rank == 2 else 1.0)
        scaler.scale(model(x).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        weights.append(layer.weight[0, 0].item())
    return scales, weights


def test_all_ranks_see_that_a_gradient_of_one_is_infinite(four):
    assert four.run(scale_gradients) == [([4.0, 2.0, 2.0], [0.0, 0.0, -1.0])] * 4


def in_subgroups(rank):
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    layer = nn.Linear(1, 1)
    model = nn.parallel.DistributedDataParallel(layer, process_group=pairs[rank // 2])
    seen = []
    for _ in range(2):
        model.zero_grad()
        model(T.full((1, 1), float(rank))).sum().backward()
        seen.append(layer.weight.grad.item())
    return seen


def test_groups(four):
    assert four.run(in_subgroups) == [[0.5, 0.5]] * 2 + [[2.5, 2.5]] * 2


def delayed(rank, everything):
    layer = make(nn.Sequential, dtype=T.float32)
    layer.append(nn.Linear(2, 2))
    layer.append(nn.Linear(2, 2))
    with T.no_grad():
        for param in layer.parameters():
            param.fill_(1.0)
    names = [(name, param) for name, param in layer.named_parameters() if everything or name == "1.weight"]
    model = nn.parallel.DistributedDataParallel(
        layer, delay_all_reduce_named_params=names, param_to_hook_all_reduce=layer[0].bias if everything else layer[0].weight
    )
    x = T.full((1, 2), rank + 1.0)
    for _ in range(2):
        model.zero_grad()
        model(x).sum().backward()
    return layer[1].weight.grad[0, 0].item(), layer[1].bias.grad[0].item()


@pytest.mark.gradiron
def test_delayed_parameters(four):
    assert four.run(delayed, False) == [(6.0, 1.0)] * 4


def copy_and_pickle(rank):
    import pickle

    model = nn.parallel.DistributedDataParallel(nn.Linear(1, 1))
    copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    seen = []
    for each in (*copies, model):
        each(T.full((1, 1), float(rank))).sum().backward()
        seen.append(each.module.weight.grad.item())
    return seen, list(model.state_dict())


def test_copies_reduce_their_own_gradients(four):
    assert four.run(copy_and_pickle) == [([1.5] * 3, ["module.weight", "module.bias"])] * 4


def prepare_by_hand(rank):
    """As Accelerate and Lightning do: the forward is not announced, the backward is."""
    model = nn.parallel.DistributedDataParallel(nn.Linear(1, 1))
    x = T.full((1, 1), float(rank))
    seen = []
    for _ in range(3):
        model.zero_grad()
        with model.no_sync():
            loss = model(x).sum()
        model.reducer._rebuild_buckets()
        model.reducer.prepare_for_backward([])
        loss.backward()
        seen.append(model.module.weight.grad.item())
    return seen


def test_backwards_that_are_announced_by_hand(four):
    assert four.run(prepare_by_hand) == [[1.5] * 3] * 4


def own_default_sampler(rank):
    sampler = T.utils.data.DistributedSampler(range(8), shuffle=False)
    return sampler.num_replicas, sampler.rank, list(sampler)


def test_samplers_know_their_rank(four):
    assert four.run(own_default_sampler) == [(4, rank, [rank, rank + 4]) for rank in range(4)]


def on_the_gpu(rank, options):
    group = first_ranks(2)
    if group is None:
        return None
    layer = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2, affine=False).eval()).to("cuda")
    model = nn.parallel.DistributedDataParallel(layer, device_ids=[0], process_group=group, **options)
    kept = []
    for step in range(3):
        model.zero_grad()
        (model(T.full((1, 2), rank + 1.0)).sum() * (step + 1)).backward()
        kept.append(layer[0].weight.grad)
    return [(str(grad.device), grad[0, 0].item()) for grad in kept]


@pytest.mark.skipif(library.NO_GPU or not library.IS_GRADIRON, reason="without the GPU")
def test_gpu(four):
    for seen in four.run(on_the_gpu, {})[:2]:
        assert [device for device, _ in seen] == ["cuda:0"] * 3
        assert [value for _, value in seen] == pytest.approx([1.5, 3.0, 4.5], rel=1e-4)


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 8, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(128, 4),
        )

    def forward(self, x):
        return self.body(x)


def learn_corners(rank, size, steps):
    """The losses of a network that learns which quarter of an image is bright."""
    if size > 1 and first_ranks(size) is None:
        return None
    model = make(ConvNet, dtype=T.float32)
    if size > 1:
        model = wrap(model, size, bucket_cap_mb=0.001)
    optimizer = T.optim.Adam(model.parameters(), 0.01)
    generator = T.Generator().manual_seed(3)
    losses = []
    for _ in range(steps):
        y = T.randint(0, 4, (16,), generator=generator)
        x = T.rand(16, 1, 8, 8, generator=generator)
        for at, corner in enumerate(y.tolist()):
            top, left = corner // 2 * 4, corner % 2 * 4
            x[at, 0, top : top + 4, left : left + 4] += 0.5
        x, y = part_of(x, rank, size), part_of(y, rank, size)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_loss_curves_of_1_2_and_4_ranks_agree(four):
    steps = 25
    alone = learn_corners(0, 1, steps)
    assert alone[-1] < 0.5 * alone[0]
    for size in (2, 4):
        curves = four.run(learn_corners, size, steps)[:size]
        mean = [sum(curve[step] for curve in curves) / size for step in range(steps)]
        assert mean == pytest.approx(alone, rel=1e-3)
