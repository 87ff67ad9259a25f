"""What people write in training steps is captured, and does what it does uncompiled."""

import collections
import copy
import dataclasses
import warnings

import gradiron as torch
import pytest
from gradiron import nn
from gradiron.nn import functional as F

CASES = []


def case(function):
    """Register a function that makes the step to compile, and what else may be compared."""
    CASES.append(function)
    return function


@case
def gradients_by_data():
    net = nn.Linear(3, 2)

    def step(x):
        net.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        for p in net.parameters():
            p.data -= 0.1 * p.grad.data
        return loss

    return step, net.parameters


@case
def gradients_that_go_at_the_end():
    net = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        loss = net(x).square().mean()
        loss.backward()
        norm = sum(p.grad.norm() for p in net.parameters())
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss, norm

    return step, net.parameters


@case
def a_history_in_a_list():
    history, recent = [], collections.deque(maxlen=2)

    def step(x):
        loss = x.square().mean()
        history.extend([loss, loss.item()])
        recent.append(loss)
        return loss

    return step, lambda: [*history, *recent]


@case
def a_global_list_that_grows():
    history = [0.0]

    def step(x):
        nonlocal history
        history += [x.sum()]
        return x * 2

    return step, lambda: history


@dataclasses.dataclass
class Output:
    loss: torch.Tensor
    logits: torch.Tensor = None
    parts: list = dataclasses.field(default_factory=list)


class Policy:
    def __init__(self, logits):
        self.logits, self.kind = logits, "policy"


@case
def results_in_a_dataclass():
    net = nn.Linear(3, 2)

    def step(x):
        y = net(x)
        output = Output(loss=y.mean(), logits=y)
        output.parts.append(y * 2)
        return output

    return step, net.parameters


@case
def results_in_objects():
    def step(x):
        return Policy(x * 2), {"distribution": torch.distributions.Normal(x, x.exp())}

    return step, list


@case
def named_tuples_and_sizes():
    def step(x):
        values, indices = x.max(1)
        top = x.topk(2)
        return values, indices, top.values, x.new_zeros(torch.Size([2]) + x.shape[1:]), x.sort(descending=True)[1]

    return step, list


@case
def one_hot():
    def step(x):
        x = F.dropout(x, 0.2)
        return F.one_hot(x.argmax(1), 3)

    return step, list


@case
def a_draw_and_its_probability():
    def step(x):
        chosen = torch.distributions.Categorical(x.softmax(1))
        action = chosen.sample()
        return action, chosen.log_prob(action), chosen.entropy()

    return step, list


@case
def a_read_number_before_the_optimizer():
    net = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        shown = loss.item()
        loss.backward()
        optimizer.step()
        optimizer.param_groups[0]["lr"]
        return shown

    def change():
        optimizer.param_groups[0]["lr"] *= 0.9
        return net.parameters()

    return step, change


@case
def betas_that_cycle():
    net = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=20)

    def step(x):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()

    def change():
        scheduler.step()
        return net.parameters()

    return step, change


@case
def weights_in_place_of_a_model_s():
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

    def step(x):
        weights = {name: p * 2 for name, p in net.named_parameters()}
        found = torch.func.functional_call(net, weights, (x,))
        return found + net(x)

    return step, net.parameters


@case
def labels_for_the_profiler():
    def step(x):
        with torch.profiler.record_function("forward"):
            return x * 2

    return step, list


@case
def hessians_by_hand():
    def step(x):
        grad = torch.func.grad(lambda y: (y * y * y).sum())
        return torch.func.jacfwd(grad)(x[0]), torch.func.jvp(grad, (x[0],), (x[1],))[1]

    return step, list


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [part for each in value.values() for part in flat(each)]
    if isinstance(value, (list, tuple)):
        return [part for each in value for part in flat(each)]
    if type(value).__module__ in (__name__, torch.distributions.Normal.__module__):
        return [type(value).__name__, *flat(vars(value))]
    return [value]


def same(one, other):
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other) and one.requires_grad == other.requires_grad
    return one == other


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_captured_and_the_same(make):
    found = []
    for compiles in (False, True):
        torch.manual_seed(0)
        step, others = make()
        step = torch.compile(step, fullgraph=True) if compiles else step
        log = []
        for _ in range(6):
            log += flat(step(torch.randn(4, 3)))
            log += copy.deepcopy([each.detach() if isinstance(each, torch.Tensor) else each for each in flat(list(others()))])
        found.append(log)
    explained = torch._dynamo.explain(step)
    assert explained.graph_count == 1 and explained.replays >= 3, explained
    assert len(found[0]) == len(found[1])
    assert all(map(same, *found))


def test_a_compiled_model_under_autocast():
    for compiles in (False, True):
        torch.manual_seed(0)
        net = nn.Linear(3, 2)
        model = torch.compile(net) if compiles else net
        scaler, optimizer = torch.amp.GradScaler("cpu"), torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(5):
            with torch.autocast("cpu"):
                loss = model(torch.randn(4, 3)).float().square().mean()
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        if not compiles:
            weights = [p.detach().clone() for p in net.parameters()]
    assert torch._dynamo.explain(model).replays == 3
    assert all(map(torch.equal, weights, net.parameters()))


def test_a_scaler_that_meets_an_infinity_and_one_that_grows():
    def train(compiles):
        torch.manual_seed(0)
        net = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=3)

        def step(x):
            optimizer.zero_grad()
            scaler.scale(net(x).square().mean()).backward()
            scaler.step(optimizer)
            scaler.update()

        step = torch.compile(step) if compiles else step
        scales = []
        for number in range(12):
            step(torch.full((4, 3), float("inf") if number in (4, 5, 9) else 0.1))
            scales.append(scaler.get_scale())
        assert scaler.state_dict()["_growth_tracker"] == 2
        return scales, [p.detach().clone() for p in net.parameters()], step

    scales, weights, _ = train(False)
    own_scales, own_weights, step = train(True)
    assert scales == own_scales == [4.0, 4.0, 8.0, 8.0, 4.0, 2.0, 2.0, 2.0, 4.0, 2.0, 2.0, 2.0]
    assert all(map(torch.equal, weights, own_weights))
    assert torch._dynamo.explain(step).graph_count == 2 and torch._dynamo.explain(step).replays >= 6


def test_stores_that_are_put_back_are_no_effects():
    class Model:
        mode, kept = "train", 0.0

    model = Model()
    model.mode = "train"

    @torch.compile(fullgraph=True)
    def step(x):
        before = model.mode
        model.mode = "eval"
        y = x * (2 if model.mode == "eval" else 3)
        model.mode = before
        model.kept = y.sum()
        model.kept = y.mean()
        return y

    for _ in range(4):
        x = torch.randn(3)
        assert torch.equal(step(x), x * 2) and model.mode == "train" and torch.equal(model.kept, (x * 2).mean())
    assert torch._dynamo.explain(step).effects == ["set_item 'kept'"]
    model.mode = "other"
    assert torch.equal(step(x), x * 2) and model.mode == "other"


def test_one_hot_refuses_wrong_classes_in_a_replay():
    step = torch.compile(lambda x: F.one_hot(x, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            assert step(torch.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    for wrong in ([0, 3], [-1, 0]):
        with pytest.raises((RuntimeError, IndexError)):
            step(torch.tensor(wrong))
        with pytest.raises(RuntimeError, match="Class values must be"):
            F.one_hot(torch.tensor(wrong), 3)
    assert torch.func.vmap(lambda x: F.one_hot(x, 3))(torch.tensor([[0, 2]])).tolist() == [[[1, 0, 0], [0, 0, 1]]]
