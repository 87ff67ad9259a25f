"""What holds for every optimizer, whatever its options: which way it goes, what it leaves alone, states that travel."""

import copy
import io
import math

import optim_cases as cases
import pytest

from library import T

O = T.optim  # noqa: E741

# Two of the options of each, and the one whose step asks for the loss itself.
SOME = {}
for name, options in cases.CASES:
    if not {"fused", "foreach"} & options.keys() and options.get("lr") != "tensor":
        SOME.setdefault(name, []).append({k: tuple(v) if isinstance(v, list) else v for k, v in options.items()})
ALL = [(name, options) for name, found in SOME.items() for options in (found[0], found[-1])]
ALL += [("LBFGS", {"max_iter": 3}), ("LBFGS", {"max_iter": 3, "line_search_fn": "strong_wolfe", "maximize": True})]
FUSED = ("SGD", "Adam", "AdamW", "Adagrad")
every = pytest.mark.parametrize(("name", "options"), ALL, ids=lambda value: value if isinstance(value, str) else "")
named = pytest.mark.parametrize("name", [*SOME, "LBFGS"])


class Bowl:
    """A loss over two parameters, contiguous or not."""

    def __init__(self, contiguous=True, dtype=T.float32):
        w, b = (T.tensor(cases.values(count, seed), dtype=dtype) for count, seed in ((12, 1), (4, 2)))
        self.w, self.b = w.reshape(4, 3), b
        if not contiguous:
            self.w, self.b = T.stack([self.w, self.w], -1)[..., 0], T.stack([b, b], -1)[..., 0]
        self.params = [self.w.requires_grad_(), self.b.requires_grad_()]
        if not contiguous:
            self.params = [p.detach().requires_grad_() for p in self.params]
        self.w, self.b = self.params
        self.x = T.tensor([0.5, -1.0, 0.25], dtype=dtype)

    def loss(self):
        return (self.w.mv(self.x) + self.b).pow(2).sum()

    def down(self, optim, steps, schedules=()):
        """Steps, and the loss before each."""

        def closure():
            optim.zero_grad()
            loss = self.loss()
            loss.backward()
            return loss

        losses = []
        for _ in range(steps):
            losses.append(optim.step(closure).item())
            for schedule in schedules:
                schedule.step(losses[-1]) if isinstance(schedule, O.lr_scheduler.ReduceLROnPlateau) else schedule.step()
        return losses


def make(name, params, options=()):
    return getattr(O, name)(params, **dict(options))


@pytest.mark.parametrize("contiguous", [True, False])
@every
def test_which_way_it_goes(name, options, contiguous):
    bowl = Bowl(contiguous)
    optim = make(name, bowl.params, options)
    S = O.lr_scheduler
    schedules = [] if contiguous else [S.StepLR(optim, 4, gamma=0.9), S.ReduceLROnPlateau(optim), S.LinearLR(optim, 0.5)]
    first, *_, last = bowl.down(optim, 8, schedules)
    assert last > first if options.get("maximize") else last < first
    assert repr(optim).startswith(f"{name} (\nParameter Group 0\n") and all(f"    {key}: " in repr(optim) for key in options)


@every
def test_groups_are_optimizers_of_their_own(name, options):
    if name == "LBFGS":
        return  # It has no groups.
    other = {**options, "lr": 0.003, "weight_decay": 0.0 if "weight_decay" in options else None}
    other = {key: value for key, value in other.items() if value is not None}
    together, apart = Bowl(), Bowl()
    both = make(name, [{"params": [together.w], **options}, {"params": [together.b], **other}])
    one, two = make(name, [apart.w], options), make(name, [apart.b], other)
    for _ in range(4):
        for bowl, optims in ((together, [both]), (apart, [one, two])):
            [optim.zero_grad() for optim in optims]
            bowl.loss().backward()
            [optim.step() for optim in optims]
    assert all(T.equal(a, b) for a, b in zip(together.params, apart.params))
    assert [list(both.state[p]) for p in together.params] == [list(one.state[apart.w]), list(two.state[apart.b])]


@every
def test_nothing_to_do(name, options):
    params = [T.ones(2, 3), T.ones(2)]
    optim = make(name, params, options)
    assert optim.step(lambda: T.tensor(5.0)).item() == 5.0
    assert all((p == 1).all() for p in params)
    if not options.get("weight_decay", {"AdamW": 0.01, "Adafactor": 0.0}.get(name, 0)):
        p = T.ones(2, 3, requires_grad=True)
        optim = make(name, [p], options)
        p.grad = T.zeros(2, 3)
        assert optim.step(lambda: T.tensor([5.0])).item() == 5.0
        # ASGD has a small decay of its own.
        assert T.allclose(p, T.ones(2, 3), rtol=0, atol=2e-6 if name == "ASGD" else 0)
        assert bool(optim.state[p]) == (name != "SGD" or "momentum" in options)


@named
def test_kinds_of_steps_agree_where_gradients_come_and_go(name):
    if name == "LBFGS":
        return
    found = []
    for kind in ({}, {"foreach": False}, {"foreach": True}, *([{"fused": True}, {"fused": False}] if name in FUSED else [])):
        bowl = Bowl(dtype=T.float64)
        number, none = T.tensor(0.5, dtype=T.float64).requires_grad_(), T.empty(0, 3, dtype=T.float64).requires_grad_()
        params = [*bowl.params, number, *([none] if name != "Adafactor" else [])]  # It divides by the count.
        optim = make(name, params, SOME[name][-1] | kind)
        for step in range(7):
            optim.zero_grad()
            bowl.b.requires_grad_(step not in (3, 4))
            if step != 2:
                (bowl.loss() + number**2 + none.sum()).backward()
            optim.step()
        found.append([*params, *(optim.state[p][key] for p in params for key in sorted(optim.state[p]))])
    for other in found[1:]:
        assert len(other) == len(found[0])
        for mine, plain in zip(other, found[0]):
            if isinstance(plain, T.Tensor):
                assert mine.shape == plain.shape and T.allclose(
                    mine.double(), plain.double(), rtol=1e-6 if name == "ASGD" else 1e-9, atol=1e-12, equal_nan=True
                )
            else:
                assert mine == plain


@pytest.mark.parametrize("name", FUSED)
def test_fused_steps_need_numbers(name):
    with T.device("meta"):
        p = T.ones(2, requires_grad=True)
        p.grad = T.ones(2)
    optim = make(name, [p], {"fused": True})
    with pytest.raises(
        RuntimeError, match="`fused=True` requires all the params to be floating point Tensors of supported devices"
    ):
        optim.step()


def plain(value):
    if isinstance(value, T.Tensor):
        return str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("told", [(False, False), (False, True), (True, False), (True, True)], ids=str)
@every
def test_states_travel(name, options, told):
    def given(bowl, with_names):
        return list(zip(("w", "b"), bowl.params)) if with_names else bowl.params

    here, there = Bowl(), Bowl()
    optim = make(name, given(here, told[0]), options)
    here.down(optim, 3)
    with T.no_grad():
        for p, q in zip(there.params, here.params):
            p.copy_(q)
    other = make(name, given(there, told[1]), options)
    file = io.BytesIO()
    T.save(optim.state_dict(), file)
    file.seek(0)
    state = T.load(file)
    assert plain(state) == plain(optim.state_dict())
    other.load_state_dict(state)
    assert other.param_groups[0].get("param_names") == (["w", "b"] if any(told) else None)
    assert there.down(other, 3) == here.down(optim, 3)
    mine, its = optim.state_dict(), other.state_dict()
    for group in (*mine["param_groups"], *its["param_groups"]):
        group.pop("param_names", None)
    assert plain(mine) == plain(its)
    # The same parameters have the same numbers.
    other.param_groups.extend(other.param_groups)
    first, second = other.state_dict()["param_groups"]
    assert first == second
    shown = [{key for key in vars(one) if not key.startswith("_")} for one in (optim, copy.deepcopy(optim))]
    assert shown[0] == shown[1]


@every
def test_states_of_old_days(name, options):
    bowl = Bowl()
    optim = make(name, bowl.params, options)
    bowl.down(optim, 3)
    old = copy.deepcopy(optim.state_dict())
    for group in old["param_groups"]:
        # Adafactor is not that old.
        for flag in (
            ()
            if name == "Adafactor"
            else ("maximize", "foreach", "fused", "differentiable", "capturable", "decoupled_weight_decay", "amsgrad")
        ):
            if not options.get(flag):
                group.pop(flag, None)
    for state in old["state"].values():
        if isinstance(state.get("step"), T.Tensor):
            state["step"] = state["step"].item()
    again = copy.deepcopy(bowl)
    other = make(name, again.params, options)
    other.load_state_dict(old)
    assert again.down(other, 3) == bowl.down(optim, 3)
    assert plain(other.state_dict()["state"]) == plain(optim.state_dict()["state"])


COMPLEX = [(name, options) for name, options in ALL if name not in ("Adafactor", "LBFGS")]


@pytest.mark.parametrize(("name", "options"), COMPLEX, ids=lambda value: value if isinstance(value, str) else "")
def test_complex_parameters_are_pairs_of_real_ones(name, options):
    z = T.complex(T.tensor(cases.values(6, 1)), T.tensor(cases.values(6, 5))).reshape(2, 3)
    pairs = T.view_as_real(z).clone().requires_grad_()
    z.requires_grad_()
    real = T.tensor(cases.values(4, 3)).requires_grad_()
    same = real.detach().clone().requires_grad_()
    optim, other = make(name, [z, real], options), make(name, [pairs, same], options)
    for step in range(4):
        z.grad = T.complex(T.tensor(cases.values(6, step)), T.tensor(cases.values(6, step + 3))).reshape(2, 3)
        pairs.grad = T.view_as_real(z.grad).clone()
        real.grad = same.grad = T.tensor(cases.values(4, step))
        optim.step(), other.step()
        assert T.allclose(T.view_as_real(z), pairs, rtol=1e-6, atol=1e-7) and T.equal(real, same)


def test_lbfgs_returns_what_the_closure_does():
    for limit in (math.inf, -math.inf):
        optim = O.LBFGS([T.ones(10, 5), T.ones(10)], 0.01, tolerance_grad=limit)
        assert isinstance(optim.step(lambda: T.tensor([10.0])), T.Tensor)


def trained():
    w, b = T.ones(2, 2, requires_grad=True), T.ones(2, requires_grad=True)
    optim = O.AdamW([{"params": [w], "lr": 0.1}, {"params": [b]}])
    w.grad, b.grad = T.ones(2, 2), T.ones(2)
    optim.step()
    return optim, {"w": T.zeros(2, 2, requires_grad=True), "b": T.zeros(2, requires_grad=True)}


WRONG = {
    "uninitialized": (lambda state: None, "requires initialized optimizer state."),
    "names": (
        lambda state: state["param_groups"][0].update(params=["w"]),
        r"param_groups\[\*\]\['params'\] entries keyed by packed",
    ),
    "state": (lambda state: state.update(state=[]), r"swapin_optim_state\['state'\] to be a dict"),
    "groups": (lambda state: state.update(param_groups={}), r"swapin_optim_state\['param_groups'\] to be a list"),
    "fewer groups": (lambda state: state["param_groups"].pop(), "different number of parameter groups"),
    "fewer parameters": (
        lambda state: state["param_groups"][0]["params"].pop(),
        "has a different number of params than the live optimizer param group",
    ),
    "a number": (
        lambda state: state["state"].update({0: T.tensor(1.0)}),
        "per-parameter optimizer state entries to be dictionaries",
    ),
    "more": (lambda state: state["state"].update(count=42), r"got extra keys \['count'\]"),
}


@pytest.mark.parametrize("case", WRONG)
def test_states_that_cannot_be_swapped_in(case):
    change, message = WRONG[case]
    optim, params = trained()
    if case == "uninitialized":
        optim = O.AdamW([{"params": [T.ones(2, 2, requires_grad=True)]}, {"params": [T.ones(2, requires_grad=True)]}])
    state = copy.deepcopy(optim.state_dict())
    change(state)
    with pytest.raises(RuntimeError, match=message):
        with swapping(optim, params, state):
            pass


def swapping(*args):
    return O.swap_in_optimizer_params_and_state(*args)


def test_what_was_swapped_out_comes_back():
    optim, params = trained()
    live, before, lists = optim.state, plain(optim.state_dict()), [group["params"] for group in optim.param_groups]
    state = copy.deepcopy(optim.state_dict())
    moments = state["state"][0]["exp_avg"].clone()
    with pytest.raises(KeyError), swapping(optim, params, state):
        p = optim.param_groups[0]["params"][0]
        assert p is params["w"] and optim.state is not live
        optim.state[p]["exp_avg"].add_(1)
        optim.state[p]["step"] = T.tensor(9.0)
        optim.param_groups[0]["lr"] = 5.0
        raise KeyError
    assert optim.state is live and plain(optim.state_dict()) == before
    assert all(group["params"] is old for group, old in zip(optim.param_groups, lists))
    # Tensors are shared with what was swapped in, dictionaries are not.
    assert T.equal(state["state"][0]["exp_avg"], moments + 1) and state["state"][0]["step"] == 1.0
    assert state["param_groups"][0]["lr"] == 0.1
