"""Compiled functions that decide by elements of tensors, or hand single elements to Python."""

import math

import gradiron as torch
import gradiron.nn.functional as F
import pytest
from gradiron import nn


def info(compiled):
    return torch._dynamo.explain(compiled)


def replayed(compiled, call):
    """Return the result of a call that must be a replay."""
    before = info(compiled).replays
    found = call()
    assert info(compiled).replays == before + 1, info(compiled)
    return found


def clipped(x):
    norm = x.norm()
    if norm > 1:
        x = x / norm
    return x * 2


def test_both_ways_are_captured_and_replayed():
    small, large = torch.tensor([0.1, 0.2]), torch.tensor([3.0, 4.0])
    compiled = torch.compile(clipped, fullgraph=True)
    for x in (small, small, large):
        assert torch.equal(compiled(x), clipped(x))
    for x in (small, large, large, small, 2 * small, 2 * large):
        assert torch.equal(replayed(compiled, lambda x=x: compiled(x)), clipped(x))
    assert info(compiled).graph_count == 2 and "decisions" in str(info(compiled))


def test_a_loop_that_ends_at_a_tolerance():
    def root(a):
        x, steps = a, 0
        while (x * x - a).abs().max() > 1e-5:
            x, steps = 0.5 * (x + a / x), steps + 1
        return x, steps

    compiled = torch.compile(root, fullgraph=True)
    for value in (2.0, 2.5, 100.0, 2.0, 101.0, 1.0, 2.2):
        a = torch.tensor([value, value / 2])
        (found, steps), (expected, expected_steps) = compiled(a), root(a)
        assert torch.equal(found, expected) and steps == expected_steps
    assert info(compiled).replays > 0


@pytest.mark.parametrize("test", [bool, lambda t: t.item(), lambda t: t.any(), lambda t: int(t) == 1])
def test_every_way_to_ask(test):
    def choose(x):
        return x + 1 if test(x[0] > 0) else x - 1

    compiled = torch.compile(choose, fullgraph=True)
    for value in (1.0, 1.0, 1.0, -1.0, -1.0, 1.0, -1.0):
        x = torch.tensor([value, 5.0])
        assert torch.equal(compiled(x), choose(x))
    assert info(compiled).replays >= 3


def test_an_integer_decides_by_its_value():
    def head(x):
        n = int((x > 0).sum())
        return x[:n] * n

    compiled = torch.compile(head, fullgraph=True)
    for positive in (2, 2, 2, 3, 3, 2, 3, 1):
        x = torch.tensor([1.0] * positive + [-1.0] * (4 - positive))
        assert torch.equal(compiled(x), head(x)), positive
    assert info(compiled).replays >= 3


def make_training():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []

    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        if not loss.isfinite():
            return None
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        return loss.item()

    return model, losses, step


def test_a_training_step_that_skips_what_is_not_finite_and_returns_its_loss():
    (model, losses, step), (plain, expected_losses, plain_step) = make_training(), make_training()
    compiled = torch.compile(step, fullgraph=True)
    torch.manual_seed(1)
    for number in range(12):
        x, y = torch.randn(5, 3), torch.randn(5, 1)
        if number in (3, 7, 8, 10):
            y[0] = math.inf
        held = model[0].weight.grad
        kept = None if held is None else held.clone()
        found, expected = compiled(x, y), plain_step(x, y)
        assert found == expected and type(found) is type(expected), number
        assert held is None or torch.equal(held, kept), "a gradient that somebody holds stays as it is"
        for mine, other in zip(model.parameters(), plain.parameters(), strict=True):
            assert torch.equal(mine, other)
            assert (mine.grad is None) == (other.grad is None)
            assert mine.grad is None or torch.equal(mine.grad, other.grad)
    assert losses == expected_losses and {type(loss) for loss in losses} == {float}
    assert info(compiled).replays >= 5, info(compiled)


def test_numbers_that_are_returned_are_read_anew():
    def summary(x):
        total = x.sum()
        found = {"sum": total.item(), "parts": [x[0].item(), (x.max().item(), "max")]}
        total.add_(100)
        return found, float(total)

    compiled = torch.compile(summary, fullgraph=True)
    for value in range(6):
        x = torch.tensor([float(value), 2.0])
        found = compiled(x)
        assert found == summary(x)
        assert type(found[1]) is float and type(found[0]["sum"]) is float and type(found[0]["parts"][1][0]) is float
    assert info(compiled).replays == 4


def test_numbers_that_are_stored_are_read_anew():
    class Meter:
        def __init__(self):
            self.last, self.all, self.table = 0.0, [], {}

        def __call__(self, x):
            self.last = x.mean().item()
            self.all.append(x[0].item())
            self.table["last"] = x[1].item()
            return x * 2

    meter = Meter()
    compiled = torch.compile(meter, fullgraph=True)
    for value in range(5):
        compiled(torch.tensor([float(value), 1.0]))
        assert meter.last == (value + 1) / 2 and type(meter.last) is float
        assert meter.table == {"last": 1.0} and type(meter.table["last"]) is float
    assert meter.all == [0.0, 1.0, 2.0, 3.0, 4.0] and {type(each) for each in meter.all} == {float}


def test_what_computes_with_a_number_runs_as_it_is():
    cases = [
        lambda x: x * x.sum().item(),
        lambda x: torch.full((2,), x.sum().item()),
        lambda x: torch.tensor([x.sum().item(), 1.0]),
        lambda x: x + 1 if x.sum().item() > 1 else x,
        lambda x: x.clamp(max=x.mean().item()),
        lambda x: (x, f"{x.sum().item():.2f}"),
        lambda x: x.new_tensor([x[0].item()]),
    ]
    for case in cases:
        compiled = torch.compile(case)
        for value in (0.0, 0.25, -0.5, -1.0):
            x = torch.tensor([value, 1.0])
            found, expected = compiled(x), case(x)
            assert repr(found) == repr(expected)
        assert info(compiled).graph_count == 0 and "it read from a tensor" in str(info(compiled).break_reasons[0])


def test_a_learning_rate_that_was_read_from_a_tensor_is_not_kept():
    parameter = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.SGD([parameter], lr=1.0)

    def step(rate):
        optimizer.param_groups[0]["lr"] = rate.item()
        parameter.grad = torch.ones(2)
        optimizer.step()
        return parameter.detach().clone()

    compiled = torch.compile(step)
    total = 0.0
    for rate in (1.0, 2.0, 3.0, 4.0):
        total -= rate
        assert torch.equal(compiled(torch.tensor(rate)), torch.full((2,), total))


def test_running_statistics_are_not_updated_twice():
    def build():
        layer = nn.BatchNorm1d(2)

        def call(x):
            y = layer(x)
            return y + 1 if y.max() > 1.2 else y - 1

        return layer, call

    (layer, call), (plain, plain_call) = build(), build()
    compiled = torch.compile(call)
    torch.manual_seed(0)
    for _ in range(12):
        x = torch.randn(3, 2)
        assert torch.equal(compiled(x), plain_call(x))
        assert torch.equal(layer.running_mean, plain.running_mean)
        assert layer.num_batches_tracked == plain.num_batches_tracked


def test_gradients_that_are_summed_before_a_decision_are_not_summed_twice():
    def build():
        w = torch.ones(2, requires_grad=True)

        def call(x):
            (w * x).sum().backward()
            return x + 1 if w.grad.sum() > 10 else x

        return w, call

    (w, call), (plain, plain_call) = build(), build()
    compiled = torch.compile(call)
    for value in (1.0, 1.0, 1.0, 5.0, -20.0, 1.0, 30.0):
        x = torch.tensor([value, 1.0])
        assert torch.equal(compiled(x), plain_call(x)) and torch.equal(w.grad, plain.grad)


def test_a_write_after_a_decision_is_not_moved_before_it():
    def build():
        total = torch.zeros(3)

        def call(x):
            y = x * 2
            if x[0] > 0:
                total.add_(y)
                return y + 1
            return y - 1

        return total, call

    (total, call), (plain, plain_call) = build(), build()
    compiled = torch.compile(call, fullgraph=True)
    for value in (1.0, 1.0, 1.0, -1.0, -1.0, 2.0, -2.0, 3.0):
        x = torch.tensor([value, 1.0, 2.0])
        assert torch.equal(compiled(x), plain_call(x)) and torch.equal(total, plain)
    assert info(compiled).replays >= 4


@pytest.mark.parametrize("own", [False, True])
def test_a_decision_after_draws_puts_the_generators_back(own):
    generator = torch.Generator() if own else None

    def step(x):
        noise = torch.randn(3, generator=generator)
        if noise.sum() > 0:
            x = x + noise
        else:
            x = x - F.dropout(x, 0.5) * torch.rand(3, generator=generator)
        return x * torch.bernoulli(torch.full((3,), 0.5), generator=generator), torch.rand(2)

    compiled = torch.compile(step, fullgraph=True)
    found, states = [], []
    for f in (step, compiled):
        torch.manual_seed(3)
        if own:
            generator.manual_seed(4)
        rows = []
        for k in range(40):
            rows.append(torch.cat(f(torch.full((3,), float(k)))))
        found.append(torch.stack(rows))
        states.append((torch.get_rng_state(), *([generator.get_state()] if own else [])))
    assert torch.equal(*found)
    assert all(map(torch.equal, *states))
    assert info(compiled).graph_count == 2 and info(compiled).replays >= 30, info(compiled)


def test_a_decision_by_chance_with_many_ways_runs_as_it_is_in_the_end():
    def crop(x):
        at = int(torch.randint(0, 1000, ()))
        return x[at : at + 2] * 2

    compiled, x = torch.compile(crop), torch.arange(1002.0)
    for seed in range(30):
        torch.manual_seed(seed)
        expected = crop(x)
        torch.manual_seed(seed)
        assert torch.equal(compiled(x), expected)
    assert info(compiled).graph_count <= 9 and "another way differs" in str(info(compiled).break_reasons[-1])
