"""What holds for every schedule: two together, schedules of schedules, going on from a saved state, and whose tensors are whose."""

import copy
import gc
import importlib
import io
import math
import pickle
import warnings
import weakref

import pytest

from library import T

O = T.optim  # noqa: E741
S = O.lr_scheduler
W = importlib.import_module(O.__name__ + ".swa_utils")
BASE = (0.05, 0.5)

# Those that start from where the rates are, so that two of them multiply.
CHAINABLE = {
    "StepLR": {"step_size": 3, "gamma": 0.5},
    "MultiStepLR": {"milestones": [2, 5, 9], "gamma": 0.1},
    "ExponentialLR": {"gamma": 0.9},
    "ConstantLR": {"factor": 0.4, "total_iters": 6},
    "LinearLR": {"start_factor": 0.4, "end_factor": 0.9, "total_iters": 4},
    "PolynomialLR": {"total_iters": 14, "power": 0.9},
    "MultiplicativeLR": {"lr_lambda": lambda e: 0.8},
    "CosineAnnealingLR": {"T_max": 14},
}
OTHERS = {
    "LambdaLR": {"lr_lambda": lambda e: 0.9**e},
    "CosineAnnealingWarmRestarts": {"T_0": 5},
    "CyclicLR": {"base_lr": 0.1, "max_lr": 0.5, "step_size_up": 4, "cycle_momentum": False},
    "OneCycleLR": {"max_lr": 0.5, "total_steps": 14},
}


def optimizer(kind="SGD", wrap=float, **options):
    groups = [{"params": [T.ones(1, requires_grad=True)], "lr": wrap(lr)} for lr in BASE]
    return getattr(O, kind)(groups, **options)


def rates(optim):
    return [float(group["lr"]) for group in optim.param_groups]


def steps(optim, schedules, count, measures=()):
    """The rates before each step."""
    seen = []
    for i in range(count):
        seen.append(rates(optim))
        optim.step()
        for schedule in schedules:
            schedule.step(measures[i]) if isinstance(schedule, S.ReduceLROnPlateau) else schedule.step()
    return seen


def alone(name, **options):
    optim = optimizer(momentum=0.9)
    return steps(optim, [getattr(S, name)(optim, **({**CHAINABLE, **OTHERS}[name] | options))], 12)


@pytest.mark.parametrize("second", CHAINABLE)
@pytest.mark.parametrize("first", CHAINABLE)
def test_two_schedules_multiply(first, second):
    if first >= second:
        return
    optim = optimizer()
    found = steps(optim, [getattr(S, name)(optim, **CHAINABLE[name]) for name in (first, second)], 12)
    for both, one, other in zip(found, alone(first), alone(second)):
        assert both == pytest.approx([a * b / base for a, b, base in zip(one, other, BASE)], rel=1e-9)


def test_a_plateau_beside_another_schedule():
    optim = optimizer()
    schedules = [S.ReduceLROnPlateau(optim, patience=1, factor=0.1), S.StepLR(optim, 3, gamma=0.5)]
    found = [pair[0] for pair in steps(optim, schedules, 8, [1.0] * 8)]
    assert found == pytest.approx([0.05 * factor for factor in (1, 1, 1, 0.05, 0.05, 0.005, 0.0025, 0.00025)])


@pytest.mark.parametrize("name", [*CHAINABLE, *OTHERS])
def test_a_schedule_goes_on_where_another_was(name):
    options = {**CHAINABLE, **OTHERS}[name]
    first, second = optimizer(momentum=0.9), optimizer(momentum=0.9)
    schedule = getattr(S, name)(first, **options)
    steps(first, [schedule], 4)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    # It makes a step of its own when it is made.
    other = getattr(S, name)(second, **options, last_epoch=schedule.last_epoch - 1)
    assert other.last_epoch == schedule.last_epoch
    for found, expected in zip(steps(second, [other], 5), steps(first, [schedule], 5)):
        assert found == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("name", [*CHAINABLE, *OTHERS])
def test_states_are_small_and_safe_to_load(name):
    optim = O.SGD([T.zeros(500_000, requires_grad=True)], lr=0.1, momentum=0.9)
    schedule = getattr(S, name)(optim, **{**CHAINABLE, **OTHERS}[name])
    file = io.BytesIO()
    T.save(schedule.state_dict(), file)
    assert file.tell() < 10_000
    file.seek(0)
    state = T.load(file)
    assert state["base_lrs"] == schedule.base_lrs and state["last_epoch"] == 0
    for other in (
        copy.deepcopy(schedule),
        *([] if "lambda" in str(vars(schedule)) else [pickle.loads(pickle.dumps(schedule))]),
    ):
        assert other.get_last_lr() == schedule.get_last_lr() and other.optimizer is not optim


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")  # Parts step again when the whole is made.
def test_schedules_of_schedules():
    optim = optimizer()
    inner = S.SequentialLR(optim, [S.ConstantLR(optim, 0.5, 2), S.ExponentialLR(optim, 0.9)], milestones=[2])
    outer = S.SequentialLR(optim, [inner], milestones=[])
    assert outer.get_last_lr() == inner.get_last_lr() == rates(optim) == [0.025, 0.25]

    optim = optimizer()
    chain = S.ChainedScheduler([S.LinearLR(optim, 0.1, total_iters=5), S.ConstantLR(optim, 0.1, 5)])
    both = S.SequentialLR(optim, [chain, S.ConstantLR(optim, 0.5, 5)], milestones=[5])
    assert [pair[0] for pair in steps(optim, [both], 7)] == pytest.approx(
        [0.0005, 0.0014, 0.0023, 0.0032, 0.0041, 0.025, 0.025]
    )
    optim = optimizer()
    parts = [S.LinearLR(optim, 0.4, total_iters=3), S.MultiStepLR(optim, [4], gamma=0.1)]
    assert S.ChainedScheduler(parts).get_last_lr() == parts[-1].get_last_lr() == pytest.approx([0.02, 0.2])


def test_schedules_that_wait_change_nothing():
    optim = optimizer()
    S.SequentialLR(optim, [S.ConstantLR(optim, 1.0), S.ConstantLR(optim, 0.1)], milestones=[10])
    assert rates(optim) == list(BASE)


@pytest.mark.parametrize(
    ("mult", "places"), [(1, [(2, 10)] * 6), (2, [(2, 20), (15, 20), (10, 80), (3, 10), (4.5, 10), (0, 20)])]
)
def test_restarts_at_any_epoch(mult, places):
    epochs = [12, 25, 80, 3, 4.5, 10] if mult == 2 else [2, 12, 22, 102, 2, 12]
    optim = optimizer()
    schedule = S.CosineAnnealingWarmRestarts(optim, 10, T_mult=mult, eta_min=0.01)
    for epoch, (now, length) in zip(epochs, places):
        schedule.step(epoch)
        wave = (1 + math.cos(math.pi * now / length)) / 2
        assert rates(optim) == pytest.approx([0.01 + (base - 0.01) * wave for base in BASE])
        assert (schedule.T_cur, schedule.T_i, schedule.last_epoch) == (now, length, math.floor(epoch))
    with pytest.raises(ValueError, match="Expected non-negative epoch, but got -1"):
        schedule.step(-1)


def test_a_cycle_after_a_cosine():
    optim = optimizer()
    first, second = S.CosineAnnealingLR(optim, 20, eta_min=0.1), S.CyclicLR(optim, 0.1, 0.3, 1, 3, cycle_momentum=False)
    steps(optim, [first], 21)
    found = steps(optim, [second], 9)[1:]
    assert [pair[0] for pair in found] == pytest.approx([0.3, 0.7 / 3, 0.5 / 3, 0.1] * 2)


def test_one_cycle_ends():
    optim = optimizer(momentum=0.9)
    schedule = S.OneCycleLR(optim, 1.0, total_steps=3)
    steps(optim, [schedule], 3)
    with pytest.raises(ValueError, match="Tried to step 4 times. The specified number of total steps is 3"):
        schedule.step()


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_momenta_go_the_other_way(kind):
    optim = optimizer(kind, **({"momentum": 0.9} if kind == "SGD" else {}))
    schedule = S.OneCycleLR(
        optim, 25, final_div_factor=2, base_momentum=1, max_momentum=22, total_steps=10, anneal_strategy="linear"
    )
    found = []
    for _ in range(10):
        group = optim.param_groups[1]
        found.append((group["lr"], group["momentum"] if kind == "SGD" else group["betas"][0]))
        optim.param_groups[0]["params"][0].grad = None
        optim.step()
        schedule.step()
    assert [lr for lr, _ in found] == pytest.approx([1, 13, 25, 21.5, 18, 14.5, 11, 7.5, 4, 0.5])
    assert [momentum for _, momentum in found] == pytest.approx([22, 11.5, 1, 4, 7, 10, 13, 16, 19, 22])
    assert kind == "SGD" or optim.param_groups[1]["betas"][1] == 0.999


@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_averaged_rates_after_another_schedule(strategy):
    optim = optimizer()
    before, after = S.MultiplicativeLR(optim, lambda e: 0.9), W.SWALR(optim, [0.01, 0.02], 4, strategy)
    start = steps(optim, [before], 6)[-1]
    start = [lr * 0.9 for lr in start]
    found = steps(optim, [after], 7)
    for t, pair in enumerate(found):
        left = 1 - t / 4 if strategy == "linear" else (1 + math.cos(math.pi * t / 4)) / 2
        left = left if t < 4 else 0.0
        assert pair == pytest.approx([lr * left + low * (1 - left) for lr, low in zip(start, (0.01, 0.02))])


@pytest.mark.parametrize("name", [*CHAINABLE, *OTHERS])
def test_rates_that_are_tensors_belong_to_one(name):
    optim = optimizer(wrap=T.tensor, momentum=0.9)
    mine = [group["lr"] for group in optim.param_groups]
    schedule = getattr(S, name)(optim, **{**CHAINABLE, **OTHERS}[name])
    last, base = schedule.get_last_lr(), [float(lr) for lr in schedule.base_lrs]
    before = [float(lr) for lr in last]
    found = steps(optim, [schedule], 6)
    assert [group["lr"] for group in optim.param_groups] == mine and [float(lr) for lr in last] == before
    assert all(group["lr"] is lr is not group["initial_lr"] for group, lr in zip(optim.param_groups, mine))
    assert [float(lr) for lr in schedule.base_lrs] == base
    for pair, expected in zip(found, alone(name)):
        assert pair == pytest.approx(expected, rel=1e-5)


def test_sequences_of_rates_that_are_tensors():
    optim = O.SGD([T.ones(1)], lr=T.tensor(2.0))
    schedule = S.SequentialLR(optim, [S.LinearLR(optim, 0.1, 0.8, 4), S.LinearLR(optim, 0.8, 0.1, 4)], milestones=[4])
    found = [rate for (rate,) in steps(optim, [schedule], 8)]
    assert found == pytest.approx([0.2, 0.55, 0.9, 1.25, 1.6, 1.25, 0.9, 0.55])
    assert optim.param_groups[0]["initial_lr"].item() == 2.0


def test_what_was_told_of_the_rates_stays():
    optim = optimizer()
    schedule = S.StepLR(optim, 1)
    told = schedule.get_last_lr()
    steps(optim, [schedule], 2)
    assert told == list(BASE)


@pytest.mark.parametrize("wrap", [float, T.tensor])
def test_plateaus(wrap):
    optim = optimizer(wrap=wrap)
    schedule = S.ReduceLROnPlateau(optim, patience=0, min_lr=[0.01, 0.02])
    assert [float(lr) for lr in schedule.get_last_lr()] == pytest.approx(BASE)
    schedule.step(float("nan"))
    assert rates(optim) == pytest.approx([0.01, 0.05]) and schedule.best == math.inf  # What is no number is never better.
    schedule.step(2.0), schedule.step(T.tensor([2.0]))
    assert rates(optim) == pytest.approx([0.01, 0.02]) and schedule.best == 2.0
    assert all(type(group["lr"]) is (float if wrap is float else T.Tensor) for group in optim.param_groups)
    other = S.ReduceLROnPlateau(optim, mode="max", factor=0.5, patience=10)
    other.load_state_dict(schedule.state_dict())
    hidden = {"optimizer", "is_better"}
    assert {k: v for k, v in vars(other).items() if k not in hidden} == {
        k: v for k, v in vars(schedule).items() if k not in hidden
    }
    optim.add_param_group({"params": [T.ones(1, requires_grad=True)]})
    with pytest.raises(RuntimeError, match="The number of param groups in the `optimizer` .3. differs from when"):
        schedule.step(3.0)


def test_schedules_of_others():
    class Halved(S.LRScheduler):
        def __init__(self, optim, factor, last_epoch=-1):
            self.factor = factor
            super().__init__(optim, last_epoch)

        def get_lr(self):
            return [base * self.factor**self.last_epoch for base in self.base_lrs]

    class Closed(Halved):
        def _get_closed_form_lr(self):
            return [base * 7 for base in self.base_lrs]

    class Asking(S.LRScheduler):
        def get_lr(self, epoch):
            return self.base_lrs

    optim = optimizer()
    assert [pair[0] for pair in steps(optim, [Halved(optim, 0.5)], 3)] == [0.05, 0.025, 0.0125]
    optim = optimizer()
    schedule = Closed(optim, 0.5)
    optim.step()
    with pytest.warns(UserWarning, match="The epoch parameter in `scheduler.step"):
        schedule.step(3)
    assert rates(optim) == pytest.approx([0.35, 3.5])
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'epoch'"):
        Asking(optimizer())
    with pytest.raises(TypeError, match="unexpected keyword argument 'verbose'"):
        S.StepLR(optim, 1, verbose=True)


def test_schedules_that_are_stepped_in_order_do_not_warn():
    optim = optimizer()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parts = [S.LinearLR(optim, 0.5, 0.1, 5), S.ExponentialLR(optim, 0.9)]
        steps(optim, [S.SequentialLR(optim, parts, milestones=[5])], 10)
        steps(optim, [S.StepLR(optim, 3)], 35)
    for group in optim.param_groups:
        group["initial_lr"] = 0.01
    optim = copy.deepcopy(optim)  # It has not stepped yet.
    schedule = S.StepLR(optim, 3, last_epoch=10)
    with pytest.warns(UserWarning, match="how-to-adjust-learning-rate"):
        schedule.step()


@pytest.mark.parametrize("name", [*CHAINABLE, *OTHERS])
def test_a_schedule_is_in_no_cycle(name):
    gc.disable()
    try:
        optim = optimizer(momentum=0.9)
        schedule = getattr(S, name)(optim, **{**CHAINABLE, **OTHERS}[name])
        steps(optim, [schedule], 2)
        seen = weakref.ref(schedule)
        del schedule
        assert seen() is None
    finally:
        gc.enable()


def test_objects_that_schedules_call():
    class Times:
        def __init__(self, by):
            self.by = by

        def __call__(self, epoch):
            return self.by * epoch

    schedule, other = S.LambdaLR(optimizer(), Times(10)), S.LambdaLR(optimizer(), Times(-1))
    other.load_state_dict(schedule.state_dict())
    assert other.lr_lambdas[0].by == 10
    assert S.LambdaLR(optimizer(), lambda e: 1).state_dict()["lr_lambdas"] == [None, None]
    scaled, restored = (
        S.CyclicLR(optimizer("Adam"), 1, 5, cycle_momentum=False, **kind) for kind in ({"mode": "triangular2"}, {})
    )
    restored.load_state_dict(scaled.state_dict())
    assert restored.mode == "triangular2" and restored.scale_fn(3) == 0.25
