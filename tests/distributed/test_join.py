"""`Join`: ranks with different numbers of batches."""

import importlib

import pytest
from ddp_models import assert_close

import library

T = library.T
dist = T.distributed
nn = T.nn
join = importlib.import_module(f"{library.NAME}.distributed.algorithms.join")

COUNTS = {"uneven": (3, 1, 4, 2), "even": (2, 2, 2, 2), "rank 0 has none": (0, 2, 1, 3), "one trains alone": (1, 1, 1, 4)}
WEIGHT = 2.0


class Scale(nn.Module):
    """A weight, and a buffer that counts forwards."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(T.full((1,), WEIGHT, dtype=T.float64))
        self.bias = nn.Parameter(T.zeros(1, dtype=T.float64))
        self.register_buffer("count", T.zeros(1))

    def forward(self, x):
        self.count += 1
        return self.weight * x + self.bias


def train_unevenly(rank, counts, options, joining):
    model = nn.parallel.DistributedDataParallel(Scale(), **options)
    optimizer = T.optim.SGD(model.parameters(), 0.1)
    gradients = []
    with model.join(**joining):
        for step in range(counts[rank]):
            optimizer.zero_grad()
            model(T.full((1,), float(rank + step + 1), dtype=T.float64)).sum().backward()
            gradients.append(model.module.weight.grad.item())
            optimizer.step()
    ends = [tensor.item() for tensor in model.module.state_dict().values()]
    model(T.ones(1, dtype=T.float64)).sum().backward()  # Training goes on as before.
    return gradients, ends


def expected_of(counts, divide_by_initial):
    """Each step's gradient, and the parameters at the end."""
    gradients, bias, weight = [], 0.0, WEIGHT
    for step in range(max(counts)):
        active = [rank for rank in range(4) if counts[rank] > step]
        size = 4 if divide_by_initial else len(active)
        gradients.append(sum(rank + step + 1 for rank in active) / size)
        weight -= 0.1 * gradients[-1]
        bias -= 0.1 * len(active) / size
    return gradients, [weight, bias]


OPTIONS = {
    "plain": {},
    "views": {"gradient_as_bucket_view": True},
    "many buckets": {"bucket_cap_mb": 0.000001},
    "search": {"find_unused_parameters": True},
    "no buffers": {"forward_sync_buffers": False},
}


@pytest.mark.filterwarnings("ignore:find_unused_parameters=True")
@pytest.mark.parametrize("divide_by_initial", [True, False])
@pytest.mark.parametrize("counts, options", [
    *((counts, "plain") for counts in COUNTS),
    *(("uneven", options) for options in OPTIONS if options != "plain"),
])  # fmt: skip
def test_uneven_inputs(four, counts, options, divide_by_initial):
    counts = COUNTS[counts]
    gradients, ends = expected_of(counts, divide_by_initial)
    results = four.run(train_unevenly, counts, OPTIONS[options], {"divide_by_initial_world_size": divide_by_initial})
    for rank, (own, state) in enumerate(results):
        assert_close(own, gradients[: counts[rank]])
        assert_close(state[:2], ends)  # Also of ranks that were through early: they get the model of the last.
        assert state == results[0][1] or options == "no buffers"


def test_without_it_even_inputs_need_no_join(four):
    counts = COUNTS["even"]
    gradients, _ = expected_of(counts, True)
    for own, _ in four.run(train_unevenly, counts, {}, {"enable": False}):
        assert_close(own, gradients)


def accumulate(rank):
    """Gradients of two batches are reduced together; ranks have 2 or 4 batches."""
    model = nn.parallel.DistributedDataParallel(Scale())
    with model.join():
        for step in range(2 if rank < 2 else 4):
            if step % 2 == 0:
                model.zero_grad()
                with model.no_sync():
                    model(T.ones(1, dtype=T.float64)).sum().backward()
            else:
                model(T.ones(1, dtype=T.float64)).sum().backward()
    return model.module.weight.grad.item()


def test_gradients_that_are_not_reduced(four):
    assert four.run(accumulate) == [2.0, 2.0, 1.0, 1.0]


def end_early(rank):
    model = nn.parallel.DistributedDataParallel(Scale())
    seen = 0
    with model.join(throw_on_early_termination=True):
        for _ in range(3 if rank == 1 else 5):
            model(T.ones(1, dtype=T.float64)).sum().backward()
            seen += 1


def test_all_end_with_the_first(four):
    kinds, values = four.outcomes(end_early)
    assert kinds == ["raised"] * 4
    for rank, (error, text, _) in enumerate(values):
        assert error == "RuntimeError"
        expected = (
            "Rank 1 exhausted all inputs." if rank == 1 else "Detected at least one rank that exhausted inputs. Throwing across"
        )
        assert expected in text


def join_with_a_hook(rank, raises):
    """Compression by a communication hook goes on when ranks have joined."""
    default_hooks = importlib.import_module(f"{library.NAME}.distributed.algorithms.ddp_comm_hooks.default_hooks")
    model = nn.parallel.DistributedDataParallel(Scale())
    model.register_comm_hook(None, default_hooks.allreduce_hook)
    seen = []
    try:
        with model.join():
            for step in range(rank + 1):
                model.zero_grad()
                model(T.full((1,), 4.0, dtype=T.float64)).sum().backward()
                seen.append(model.module.weight.grad.item())
                if raises and step == 0:
                    raise KeyError("mine")
    except KeyError:
        model.zero_grad()
        model(T.full((1,), 4.0, dtype=T.float64)).sum().backward()
        seen.append(model.module.weight.grad.item())
    return seen


def test_hooks_and_errors(four):
    assert four.run(join_with_a_hook, False) == [[4.0], [4.0, 3.0], [4.0, 3.0, 2.0], [4.0, 3.0, 2.0, 1.0]]


@pytest.mark.gradiron
def test_an_error_ends_the_context(four):
    assert four.run(join_with_a_hook, True) == [[4.0, 4.0]] * 4


# Objects of the user's own.


class Counter(join.Joinable):
    """Sums over all ranks how often each has counted."""

    class Hook(join.JoinHook):
        def __init__(self, counter, told):
            self.counter, self.told = counter, told

        def main_hook(self):
            dist.all_reduce(T.zeros(1))
            self.told.append("main")

        def post_hook(self, is_last_joiner):
            self.told.append(f"post {is_last_joiner}")

    def __init__(self):
        super().__init__()
        self.count = T.zeros(1)

    def __call__(self):
        join.Join.notify_join_context(self)
        one = T.ones(1)
        dist.all_reduce(one)
        self.count += one

    def join_hook(self, **kwargs):
        return Counter.Hook(self, kwargs["told"])

    @property
    def join_device(self):
        return T.device("cpu")

    @property
    def join_process_group(self):
        return dist.group.WORLD


def count(rank):
    counter, told = Counter(), []
    with join.Join([counter], told=told):
        for _ in range(rank + 1):
            counter()
    return counter.count.item(), told


def test_joinables_of_the_user(four):
    assert four.run(count) == [
        (4.0, ["main"] * 3 + ["post False"]),
        (7.0, ["main"] * 2 + ["post False"]),
        (9.0, ["main", "post False"]),
        (10.0, ["post True"]),
    ]


def test_joins_that_are_refused():
    with pytest.raises(ValueError, match="The join context manager requires at least one joinable"):
        join.Join([])
    with pytest.raises(TypeError, match="abstract"):
        join.Joinable()


def join_two_groups(rank):
    everybody = nn.parallel.DistributedDataParallel(Scale())
    alone = nn.parallel.DistributedDataParallel(Scale(), process_group=dist.new_group(list(range(4))))
    join.Join([everybody, alone])


def test_one_group_for_all(four):
    kinds, values = four.outcomes(join_two_groups)
    assert kinds == ["raised"] * 4
    assert all("Using join context manager with multiple process groups" in text for _, text, _ in values)
