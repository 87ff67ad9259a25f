"""What all optimizers share: groups, states, hooks, saving, and optimizers that others write."""

import copy
import pickle
import warnings

import pytest

from library import IS_GRADIRON, T

O = T.optim  # noqa: E741


def leaf(*values):
    return T.tensor(values, requires_grad=True)


def with_gradients(*params):
    for p in params:
        p.grad = T.ones_like(p)
    return list(params)


def test_groups_and_defaults():
    p, q = leaf(1.0), leaf(2.0)
    optim = O.SGD([{"params": p}, {"params": [q], "lr": 0.5}], lr=0.1, momentum=0.9)
    assert [group["lr"] for group in optim.param_groups] == [0.1, 0.5]
    assert [len(group["params"]) for group in optim.param_groups] == [1, 1]
    assert optim.defaults["momentum"] == 0.9
    with_gradients(p, q)
    optim.step()
    assert [round(x.item(), 6) for x in (p, q)] == [0.9, 1.5]
    r = leaf(3.0)
    optim.add_param_group({"params": (x for x in [r]), "momentum": 0.0})
    with_gradients(r)
    optim.step()
    assert optim.state[r] == {}
    assert round(r.item(), 6) == 2.9


def test_named_parameters():
    p, q = leaf(1.0), leaf(2.0)
    optim = O.Adam([("first", p), ("second", q)])
    assert optim.param_groups[0]["param_names"] == ["first", "second"]
    assert optim.param_groups[0]["params"][1] is q
    assert optim.state_dict()["param_groups"][0]["param_names"] == ["first", "second"]
    other = O.Adam([("a", leaf(1.0)), ("b", leaf(2.0))])
    other.load_state_dict(optim.state_dict())
    assert other.param_groups[0]["param_names"] == ["first", "second"]
    other.load_state_dict(O.Adam([leaf(1.0), leaf(2.0)]).state_dict())
    assert other.param_groups[0]["param_names"] == ["first", "second"]


def test_warnings():
    p = leaf(1.0)
    with pytest.warns(UserWarning, match="optimizer contains a parameter group with duplicate parameters"):
        optim = O.SGD([p, p], lr=0.1)
    with_gradients(p)
    optim.step()
    assert round(p.item(), 6) == 0.8
    with pytest.warns(FutureWarning, match="optimizer parameters need to be organized in ordered collections"):
        O.SGD({p}, lr=0.1)


def test_repr():
    optim = O.SGD([leaf(1.0)], lr=0.1)
    assert repr(optim) == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach: None\n    fused: None\n"
        "    lr: 0.1\n    maximize: False\n    momentum: 0\n    nesterov: False\n    weight_decay: 0\n)"
    )


def test_zero_grad():
    p, q = leaf(1.0), leaf(2.0)
    optim = O.SGD([p, q], lr=0.1)
    with_gradients(p)
    before = p.grad
    optim.zero_grad(set_to_none=False)
    assert p.grad is before and p.grad.item() == 0 and q.grad is None
    optim.zero_grad()
    assert p.grad is None
    (p * p).backward(create_graph=True)
    optim.zero_grad(set_to_none=False)
    assert p.grad.grad_fn is None and not p.grad.requires_grad and p.grad.item() == 0


def test_closures_are_recorded_whatever_is_around():
    p = leaf(3.0)
    optim = O.SGD([p], lr=0.1)

    def closure():
        optim.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with T.no_grad():
        loss = optim.step(closure)
    assert loss.item() == 9.0 and round(p.item(), 5) == 2.4
    assert optim.step() is None
    assert T.is_grad_enabled()


def test_an_error_in_a_closure_leaves_recording_as_it_was():
    optim = O.Adam([leaf(1.0)])
    with pytest.raises(ZeroDivisionError):
        optim.step(lambda: 1 / 0)
    assert T.is_grad_enabled()


def test_hooks_of_steps():
    seen = []
    p = leaf(1.0)
    optim = O.SGD([p], lr=0.1)
    module = __import__(f"{O.__name__}.optimizer", fromlist=["x"])
    handles = [
        optim.register_step_pre_hook(lambda o, args, kwargs: seen.append("pre")),
        optim.register_step_post_hook(lambda o, args, kwargs: seen.append("post")),
        module.register_optimizer_step_pre_hook(lambda o, args, kwargs: seen.append("all pre")),
        module.register_optimizer_step_post_hook(lambda o, args, kwargs: seen.append("all post")),
    ]
    optim.step()
    assert seen == ["all pre", "pre", "post", "all post"]
    for handle in handles:
        handle.remove()
    optim.step()
    assert len(seen) == 4


def test_hooks_may_change_arguments():
    optim = O.SGD([leaf(1.0)], lr=0.1)
    handle = optim.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: "other"), {}))
    assert optim.step(lambda: "own") == "other"
    handle.remove()
    optim.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match=r"must return None or a tuple of \(new_args, new_kwargs\), but got 3"):
        optim.step()


def test_hooks_of_states():
    seen = []
    optim = O.SGD([leaf(1.0)], lr=0.1)
    optim.register_state_dict_pre_hook(lambda o: seen.append("pre"))
    optim.register_state_dict_pre_hook(lambda o: seen.append("first"), prepend=True)
    optim.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
    state = optim.state_dict()
    assert seen == ["first", "pre"] and state["more"] == 1

    def other_rate(optim, state):
        state["param_groups"][0]["lr"] = 0.7

    optim.register_load_state_dict_pre_hook(lambda o, state: copy.deepcopy(state))
    optim.register_load_state_dict_pre_hook(other_rate)
    optim.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    optim.load_state_dict(state)
    assert optim.param_groups[0]["lr"] == 0.7 and seen[-1] == "loaded"
    assert state["param_groups"][0]["lr"] == 0.1


def test_state_dicts_number_parameters():
    p, q, r = leaf(1.0), leaf(2.0), leaf(3.0)
    optim = O.Adam([{"params": [p, q]}, {"params": [r], "lr": 0.5}])
    with_gradients(p, r)
    optim.step()
    optim.state["global"] = {"count": 3}
    state = optim.state_dict()
    assert [group["params"] for group in state["param_groups"]] == [[0, 1], [2]]
    assert sorted(map(str, state["state"])) == ["0", "2", "global"]
    assert state["state"][0]["exp_avg"] is optim.state[p]["exp_avg"]


def test_loaded_states_fit_the_parameters():
    p = leaf(1.0, 2.0)
    optim = O.Adam([p], amsgrad=True)
    with_gradients(p)
    optim.step()
    wide = T.tensor([1.0, 2.0], dtype=T.float64, requires_grad=True)
    other = O.Adam([wide], amsgrad=True)
    other.load_state_dict(optim.state_dict())
    state = other.state[wide]
    assert state["exp_avg"].dtype == T.float64 and state["step"].dtype == T.float32
    assert state["exp_avg"].tolist() == pytest.approx(optim.state[p]["exp_avg"].tolist())
    assert other.param_groups[0]["params"][0] is wide


def test_old_checkpoints_hold_numbers():
    p = leaf(1.0)
    optim = O.Adam([p])
    with_gradients(p)
    optim.step()
    old = copy.deepcopy(optim.state_dict())
    old["state"][0]["step"] = 7
    for name in ("maximize", "foreach", "capturable", "differentiable", "fused", "decoupled_weight_decay", "amsgrad"):
        del old["param_groups"][0][name]
    fresh = O.Adam([p])
    fresh.load_state_dict(old)
    assert fresh.state[p]["step"].item() == 7.0 and fresh.param_groups[0]["maximize"] is False
    fresh.step()
    assert fresh.state[p]["step"].item() == 8.0


def test_copies_and_pickles():
    p = leaf(1.0, 2.0)
    optim = O.AdamW([p], lr=0.1)
    with_gradients(p)
    optim.step()
    for other in (copy.deepcopy(optim), pickle.loads(pickle.dumps(optim))):
        (q,) = other.param_groups[0]["params"]
        assert q is not p and q.tolist() == p.tolist()
        assert list(other.state) == [q]
        with_gradients(q)
        other.step()
        assert other.state[q]["step"].item() == 2.0
    with_gradients(p)
    optim.step()
    assert q.tolist() == p.tolist()


def test_state_of_a_copied_optimizer_is_its_own():
    p = leaf(1.0)
    optim = O.SGD([p], lr=0.1, momentum=0.9)
    with_gradients(p)
    optim.step()
    other = O.SGD([leaf(1.0)], lr=0.1, momentum=0.9)
    other.load_state_dict(copy.deepcopy(optim.state_dict()))
    with_gradients(*other.param_groups[0]["params"])
    other.step()
    assert optim.state[p]["momentum_buffer"].item() == 1.0


class Halving(O.Optimizer):
    """As others write them: over the state and the groups."""

    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})

    @T.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with T.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["step"], state["sum"] = 0, T.zeros_like(p)
                state["step"] += 1
                state["sum"].add_(p.grad)
                p.data.add_(state["sum"], alpha=-group["lr"] / 2 ** state["step"])
        return loss


def test_optimizers_of_others():
    p = leaf(1.0)
    optim = Halving([p])
    seen = []
    optim.register_step_post_hook(lambda *a: seen.append(1))
    schedule = O.lr_scheduler.StepLR(optim, 1)
    for _ in range(2):
        with_gradients(p)
        optim.step()
        schedule.step()
    assert round(p.item(), 6) == round(1 - 0.05 - 0.01 * 2 / 4, 6) and len(seen) == 2
    other = Halving([p])
    other.load_state_dict(optim.state_dict())
    assert other.state[p]["step"] == 2
    with pytest.raises(NotImplementedError):
        O.Optimizer([p], {}).step()


class Clipped(O.Adam):
    """As others extend Adam: with a step, and names, of their own."""

    def __init__(self, params, limit, **options):
        super().__init__(params, **options)
        self.limit, self._step, self._update = limit, 0, None

    def step(self, closure=None):
        self._step += 1
        for group in self.param_groups:
            for p in group["params"]:
                p.grad.clamp_(-self.limit, self.limit)
        return super().step(closure)


def test_subclasses_of_adam():
    p, q = leaf(1.0, 2.0), leaf(1.0, 2.0)
    optim, plain = Clipped([p], 1.0, lr=0.1, amsgrad=True), O.Adam([q], lr=0.1, amsgrad=True)
    for _ in range(3):
        p.grad, q.grad = T.tensor([5.0, -0.5]), T.tensor([1.0, -0.5])
        assert optim.step(lambda: T.tensor(2.0)).item() == 2.0
        plain.step()
    assert p.tolist() == q.tolist() and optim._step == 3
    assert list(optim.state[p]) == ["step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"]
    other = Clipped([leaf(1.0, 2.0)], 1.0)
    other.load_state_dict(optim.state_dict())
    assert other.param_groups[0]["amsgrad"] and repr(other).startswith("Clipped (")


def test_steps_count_as_writes():
    p = leaf(1.0)
    optim = O.Adam([p])
    with_gradients(p)
    y = p * p
    before = p._version
    optim.step()
    assert p._version > before and p.is_leaf and p.requires_grad
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_swapped_parameters_and_state():
    p = leaf(1.0)
    optim = O.Adam([p], lr=0.1)
    with_gradients(p)
    optim.step()
    state = copy.deepcopy(optim.state_dict())
    state["param_groups"][0]["lr"] = 0.5
    q = leaf(5.0)
    with_gradients(q)
    with O.swap_in_optimizer_params_and_state(optim, {"p": q}, state):
        optim.step()
        assert optim.param_groups[0]["lr"] == 0.5
    assert round(q.item(), 4) == 4.5 and round(p.item(), 4) == 0.9
    assert optim.param_groups[0]["lr"] == 0.1 and optim.param_groups[0]["params"][0] is p
    assert state["state"][0]["step"].item() == 2.0 and optim.state[p]["step"].item() == 1.0
    with pytest.raises(RuntimeError, match="match optimizer.param_groups ordering"):
        with O.swap_in_optimizer_params_and_state(optim, {}, state):
            pass
    del state["param_groups"][0]["eps"]
    with pytest.raises(RuntimeError, match=r"for group 0. Keys only in swap-in: \[\]. Keys only in live: \['eps'\]."):
        with O.swap_in_optimizer_params_and_state(optim, {"p": q}, state):
            pass


def test_functions_over_lists():
    F = O.functional
    p, grad = T.tensor([1.0]), T.tensor([0.5])
    exp_avg, exp_avg_sq, step = T.zeros(1), T.zeros(1), T.tensor(0.0)
    options = dict(amsgrad=False, beta1=0.9, beta2=0.999, lr=0.1, weight_decay=0, eps=1e-8, maximize=False)
    F.adam([p], [grad], [exp_avg], [exp_avg_sq], [], [step], **options)
    assert round(p.item(), 5) == 0.9 and step.item() == 1.0
    with pytest.raises(RuntimeError, match="API has changed, `state_steps` argument must contain a list of singleton"):
        F.adam([p], [grad], [exp_avg], [exp_avg_sq], [], [1], **options)
    buffers = [None]
    F.sgd([p], [grad], buffers, weight_decay=0, momentum=0.9, lr=0.1, dampening=0, nesterov=False, maximize=False)
    assert buffers[0].item() == 0.5
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        F.sgd([leaf(1.0)], [grad], [], weight_decay=0, momentum=0, lr=0.1, dampening=0, nesterov=False, maximize=False)


def test_schedules_warn():
    p = leaf(1.0)
    optim = O.SGD([p], lr=0.1)
    schedule = O.lr_scheduler.StepLR(optim, 2)
    with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        schedule.step()
    with pytest.warns(UserWarning, match="To get the last learning rate computed by the scheduler"):
        schedule.get_lr()
    with pytest.warns(UserWarning, match="The epoch parameter in `scheduler.step"):
        schedule.step(5)
    optim = O.SGD([p], lr=0.1)
    schedule = O.lr_scheduler.ExponentialLR(optim, 0.5)
    optim.step = lambda: None
    with pytest.warns(UserWarning, match=r"Seems like `optimizer.step\(\)` has been overridden"):
        schedule.step()
    optim = O.SGD([p], lr=0.1)
    schedule = O.lr_scheduler.ExponentialLR(optim, 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optim.step()
        schedule.step()
        schedule.step()


def test_states_of_schedules():
    S = O.lr_scheduler

    class Scale:
        def __init__(self, k):
            self.k = k

        def __call__(self, epoch):
            return self.k / (epoch + 1)

    def optimizer():
        return O.SGD([leaf(1.0)], lr=0.1, momentum=0.9)

    makers = [
        lambda o: S.StepLR(o, 2),
        lambda o: S.MultiStepLR(o, [1, 3]),
        lambda o: S.LambdaLR(o, Scale(0.5)),
        lambda o: S.MultiplicativeLR(o, lambda e: 0.9),
        lambda o: S.CosineAnnealingLR(o, 5),
        lambda o: S.CosineAnnealingWarmRestarts(o, 2),
        lambda o: S.CyclicLR(o, 0.1, 0.2, step_size_up=2, mode="exp_range", gamma=0.9),
        lambda o: S.CyclicLR(o, 0.1, 0.2, step_size_up=2, scale_fn=Scale(0.5)),
        lambda o: S.OneCycleLR(o, 0.3, total_steps=9),
        lambda o: S.SequentialLR(o, [S.ConstantLR(o, 0.1, 2), S.ExponentialLR(o, 0.9)], [2]),
        lambda o: S.ChainedScheduler([S.ConstantLR(o, 0.1, 2), S.ExponentialLR(o, 0.9)]),
        lambda o: O.swa_utils.SWALR(o, 0.05, anneal_epochs=4),
    ]
    for make in makers:
        first, second = optimizer(), optimizer()
        schedule, other = make(first), make(second)
        first.step(), second.step()
        for _ in range(3):
            schedule.step()
        state = pickle.loads(pickle.dumps(schedule.state_dict()))
        assert "optimizer" not in state
        other.load_state_dict(state)
        second.load_state_dict(first.state_dict())
        for _ in range(3):
            schedule.step(), other.step()
            assert schedule.get_last_lr() == other.get_last_lr()
        assert schedule.last_epoch == other.last_epoch if hasattr(schedule, "last_epoch") else True


def test_plateaus_take_new_groups():
    p, q = leaf(1.0), leaf(2.0)
    optim = O.SGD([p], lr=0.1)
    schedule = O.lr_scheduler.ReduceLROnPlateau(optim, patience=0, factor=0.5)
    optim.add_param_group({"params": [q]})
    schedule.step(1.0), schedule.step(T.tensor(1.0))
    assert schedule.get_last_lr() == [0.05, 0.05] and schedule.num_bad_epochs == 0
    assert schedule.state_dict()["best"] == 1.0


def test_rates_that_are_tensors_stay_the_same_tensors():
    rate = T.tensor(0.5)
    optim = O.SGD([leaf(1.0)], lr=rate)
    schedule = O.lr_scheduler.ExponentialLR(optim, 0.5)
    optim.step()
    schedule.step()
    assert optim.param_groups[0]["lr"] is rate and rate.item() == 0.25
    last = schedule.get_last_lr()[0]
    assert last is not rate and last.item() == 0.25
    assert optim.param_groups[0]["initial_lr"].item() == 0.5


def test_a_schedule_lets_its_optimizer_go():
    import gc
    import weakref

    optim = O.SGD([leaf(1.0)], lr=0.1)
    schedule = O.lr_scheduler.StepLR(optim, 1)
    seen = weakref.ref(optim)
    del optim, schedule
    if not IS_GRADIRON:
        gc.collect()
    assert seen() is None
