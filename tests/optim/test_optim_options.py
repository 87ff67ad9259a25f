"""What optimizers and schedules refuse, and in which words; options that must not change anything."""

import pytest

from library import IS_GRADIRON, T

O = T.optim  # noqa: E741
S = O.lr_scheduler


def leaf(*shape):
    return T.ones(*shape, requires_grad=True)


REFUSED = [
    ("O.SGD([p], lr=-0.1)", ValueError, "Invalid learning rate: -0.1"),
    ("O.SGD([p], momentum=-1)", ValueError, "Invalid momentum value: -1"),
    ("O.SGD([p], weight_decay=-1)", ValueError, "Invalid weight_decay value: -1"),
    ("O.SGD([p], nesterov=True)", ValueError, "Nesterov momentum requires a momentum and zero dampening"),
    ("O.SGD([p], lr=T.tensor([1.0, 2.0]))", ValueError, "Tensor lr must be 1-element"),
    ("O.SGD([p], fused=True, foreach=True)", RuntimeError, "`fused` and `foreach` cannot be `True` together."),
    ("O.SGD([p], fused=True, differentiable=True)", RuntimeError, "`fused` does not support `differentiable`"),
    ("O.Adam([p], lr=-1)", ValueError, "Invalid learning rate: -1"),
    ("O.Adam([p], betas=(1.0, 0.9))", ValueError, "Invalid beta parameter at index 0: 1.0"),
    ("O.Adam([p], betas=(0.9, -0.1))", ValueError, "Invalid beta parameter at index 1: -0.1"),
    ("O.Adam([p], betas=(0, 0.9))", ValueError, "betas must be either both floats or both Tensors"),
    ("O.Adam([p], eps=-1)", ValueError, "Invalid epsilon value: -1"),
    ("O.Adam([p], weight_decay=-1)", ValueError, "Invalid weight_decay value: -1"),
    ("O.Adam([p], lr=T.tensor(0.1), foreach=True)", ValueError, "lr as a Tensor is not supported for capturable=False"),
    ("O.Adam([p], lr=T.tensor([0.1, 0.2]))", ValueError, "Tensor lr must be 1-element"),
    ("O.AdamW([p], betas=(0.9, 1.0))", ValueError, "Invalid beta parameter at index 1: 1.0"),
    ("O.Adamax([p], betas=(0.0, 1.0))", ValueError, "Invalid beta parameter at index 1: 1.0"),
    ("O.NAdam([p], momentum_decay=-0.2)", ValueError, "Invalid momentum_decay value: -0.2"),
    ("O.RAdam([p], weight_decay=-1)", ValueError, "Invalid weight_decay value: -1"),
    ("O.Adagrad([p], lr_decay=-0.5)", ValueError, "Invalid lr_decay value: -0.5"),
    ("O.Adagrad([p], initial_accumulator_value=-1)", ValueError, "Invalid initial_accumulator_value value: -1"),
    ("O.Adadelta([p], rho=1.1)", ValueError, "Invalid rho value: 1.1"),
    ("O.ASGD([p], lambd=-1)", ValueError, "Invalid lambd value: -1"),
    ("O.ASGD([p], weight_decay=-0.5)", ValueError, "Invalid weight_decay value: -0.5"),
    ("O.RMSprop([p], momentum=-1.0)", ValueError, "Invalid momentum value: -1.0"),
    ("O.RMSprop([p], alpha=-1)", ValueError, "Invalid alpha value: -1"),
    ("O.Rprop([p], etas=(1.0, 0.5))", ValueError, "Invalid eta values: 1.0, 0.5"),
    ("O.Adafactor([p], lr=-1)", ValueError, "Learning rate should be >= 0 but is: -1"),
    ("O.Adafactor([p], beta2_decay=0.8)", ValueError, "beta2_decay should be <= 0 but is: 0.8"),
    ("O.Adafactor([p], d=0.5)", ValueError, "Clipping threshold d should be >= 1 but is: 0.5"),
    ("O.Adafactor([p], eps=(-1, 1))", ValueError, "epsilon1 should be >= 0 but is: -1"),
    ("O.Muon([p])", ValueError, "Muon only supports 2D parameters whereas we found a parameter with size: torch.Size([3])"),
    ("O.Muon([p], adjust_lr_fn='arbitrary')", ValueError, "Adjust learning rate function arbitrary is not supported"),
    ("O.LBFGS([{'params': [p]}, {'params': [q]}])", ValueError, "LBFGS doesn't support per-parameter options"),
    (
        "O.SGD(p)",
        TypeError,
        "params argument given to the optimizer should be an iterable of Tensors or dicts, but got torch.FloatTensor",
    ),
    ("O.SGD([])", ValueError, "optimizer got an empty parameter list"),
    ("O.SGD([1])", TypeError, "optimizer can only optimize Tensors, but one of the params is int"),
    ("O.SGD([{'params': {p}}])", TypeError, "optimizer parameters need to be organized in ordered collections"),
    ("O.SGD([p * 2])", ValueError, "can't optimize a non-leaf Tensor"),
    ("O.SGD([{'params': [p]}, {'params': [p]}])", ValueError, "some parameters appear in more than one parameter group"),
    ("O.SGD([('p', p), q])", ValueError, "all optimizer params should be with/without names. Some param names are missing"),
    (
        "O.SGD([{'params': [('p', p)]}, {'params': [q]}])",
        ValueError,
        "all optimizer param groups should be with/without names.",
    ),
    ("O.SGD([p]).add_param_group([q])", TypeError, "param_group must be a dict, but got <class 'list'>"),
    (
        "O.Optimizer([p], {'lr': O_required})",
        ValueError,
        "parameter group didn't specify a value of required optimization parameter lr",
    ),
    (
        "O.SGD([p]).load_state_dict(O.SGD([p, q]).state_dict())",
        ValueError,
        "loaded state dict contains a parameter group that doesn't match",
    ),
    (
        "O.SGD([p]).load_state_dict(O.SGD([{'params': [p]}, {'params': [q]}]).state_dict())",
        ValueError,
        "loaded state dict has a different number of",
    ),
    ("S.StepLR(p, 2)", TypeError, "Tensor is not an Optimizer"),
    (
        "S.StepLR(o, 2, last_epoch=3)",
        KeyError,
        "param 'initial_lr' is not specified in param_groups[0] when resuming scheduler",
    ),
    ("S.LambdaLR(o, [len, len])", ValueError, "Expected 1 lr_lambdas, but got 2"),
    ("S.MultiplicativeLR(o, 0.5)", TypeError, "lr_lambda should be a function, but got float"),
    ("S.ConstantLR(o, 1.5)", ValueError, "Constant multiplicative factor expected to be between 0 and 1."),
    ("S.LinearLR(o, 0.0)", ValueError, "Starting multiplicative factor expected to be greater than 0 and less or equal to 1."),
    ("S.LinearLR(o, end_factor=2)", ValueError, "Ending multiplicative factor expected to be between 0 and 1."),
    ("S.CyclicLR(o, 0.1, 0.2, mode='x')", ValueError, "mode is invalid and scale_fn is None"),
    ("S.CyclicLR(O.Adagrad([p]), 0.1, 0.2)", ValueError, "optimizer must support momentum or beta1 with `cycle_momentum`"),
    ("S.CyclicLR(o, [0.1, 0.2], 0.2)", ValueError, "base_lr must have the same length as optimizer.param_groups."),
    ("S.OneCycleLR(o, 0.1)", ValueError, "You must define either total_steps OR (epochs AND steps_per_epoch)"),
    ("S.OneCycleLR(o, 0.1, total_steps=0)", ValueError, "Expected positive integer total_steps, but got 0"),
    ("S.OneCycleLR(o, 0.1, epochs=-1, steps_per_epoch=2)", ValueError, "Expected positive integer epochs, but got -1"),
    ("S.OneCycleLR(o, 0.1, total_steps=2, pct_start=2.0)", ValueError, "Expected float between 0 and 1 pct_start, but got 2.0"),
    (
        "S.OneCycleLR(o, 0.1, total_steps=2, anneal_strategy='x')",
        ValueError,
        "anneal_strategy must be one of 'cos' or 'linear'",
    ),
    ("S.CosineAnnealingWarmRestarts(o, 0)", ValueError, "Expected positive integer T_0, but got 0"),
    ("S.CosineAnnealingWarmRestarts(o, 2, T_mult=0)", ValueError, "Expected integer T_mult >= 1, but got 0"),
    ("S.ReduceLROnPlateau(o, factor=1.0)", ValueError, "Factor should be < 1.0."),
    ("S.ReduceLROnPlateau(o, mode='x')", ValueError, "mode x is unknown!"),
    ("S.ReduceLROnPlateau(o, threshold_mode='x')", ValueError, "threshold mode x is unknown!"),
    ("S.ReduceLROnPlateau(o, min_lr=[1, 2])", ValueError, "expected 1 min_lrs, got 2"),
    ("S.SequentialLR(o, [], [])", ValueError, "SequentialLR expects at least one scheduler, but got no scheduler."),
    (
        "S.SequentialLR(o, [S.StepLR(o, 2)], [1])",
        ValueError,
        "Sequential Schedulers expects number of schedulers provided to be one",
    ),
    (
        "S.SequentialLR(o, [S.ReduceLROnPlateau(o)], [])",
        ValueError,
        "SequentialLR does not support `ReduceLROnPlateau` scheduler",
    ),
    ("S.ChainedScheduler([])", ValueError, "ChainedScheduler expects at least one scheduler to be chained"),
    (
        "S.ChainedScheduler([S.StepLR(o, 2), S.StepLR(O.SGD([q]), 2)])",
        ValueError,
        "ChainedScheduler expects all schedulers to belong to the same",
    ),
    (
        "O.swa_utils.SWALR(o, 0.1, anneal_strategy='x')",
        ValueError,
        "anneal_strategy must be one of 'cos' or 'linear', instead got x",
    ),
    ("O.swa_utils.SWALR(o, 0.1, anneal_epochs=-1)", ValueError, "anneal_epochs must be equal or greater than 0, got -1"),
    ("O.swa_utils.get_ema_avg_fn(1.5)", ValueError, "Invalid decay value 1.5 provided."),
    ("O.swa_utils.get_ema_multi_avg_fn(-1)", ValueError, "Invalid decay value -1 provided."),
]


@pytest.mark.parametrize("code, kind, message", REFUSED, ids=[case[0] for case in REFUSED])
def test_refused(code, kind, message):
    p, q = leaf(3), leaf(2)
    import_required = __import__(f"{O.__name__}.optimizer", fromlist=["required"]).required
    names = {"O": O, "S": S, "T": T, "p": p, "q": q, "o": O.SGD([p], lr=0.1), "O_required": import_required}
    with pytest.raises(kind) as caught:
        eval(code, names)
    told = str(caught.value.args[0] if kind is KeyError else caught.value)
    assert told.startswith(message), told


def stepped(make, grads=True):
    p = T.tensor([1.0, -2.0, 3.0], requires_grad=True)
    optim = make(p)
    for k in range(5):
        p.grad = (p.detach() * 0.5 + k) if grads else None
        optim.step()
    return p.detach().tolist(), optim


@pytest.mark.parametrize(
    "name", ["SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta", "ASGD", "RMSprop", "Rprop", "Adafactor"]
)
def test_kinds_of_kernels_give_the_same(name):
    plain, _ = stepped(lambda p: getattr(O, name)([p]))
    listed, _ = stepped(lambda p: getattr(O, name)([p], foreach=True))
    assert listed == pytest.approx(plain, rel=1e-6)
    if name in ("SGD", "Adam", "AdamW", "Adagrad"):
        fused, _ = stepped(lambda p: getattr(O, name)([p], fused=True))
        assert fused == pytest.approx(plain, rel=1e-6)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adadelta", "ASGD", "RMSprop", "Rprop"])
def test_nothing_is_captured_on_the_cpu(name):
    with pytest.raises(AssertionError, match="If capturable=True, params"):
        stepped(lambda p: getattr(O, name)([p], capturable=True))


def test_lists_are_not_differentiated():
    for name in ("Adam", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta", "ASGD", "RMSprop", "Rprop"):
        with pytest.raises(AssertionError, match="_foreach ops don't support autograd"):
            stepped(lambda p: getattr(O, name)([p], foreach=True, differentiable=True))


def test_what_has_no_gradient_stays_and_has_no_state():
    values, optim = stepped(lambda p: O.Adam([p]), grads=False)
    assert values == [1.0, -2.0, 3.0] and not optim.state


def test_rates_as_tensors_of_one_element():
    plain, _ = stepped(lambda p: O.Adam([p], lr=0.1))
    for rate in (T.tensor(0.1), T.tensor([0.1]), T.tensor([[0.1]])):
        other, optim = stepped(lambda p: O.Adam([p], lr=rate))
        assert other == pytest.approx(plain, rel=1e-6)
        assert optim.param_groups[0]["lr"] is rate


def test_betas_as_tensors():
    plain, _ = stepped(lambda p: O.Adam([p], lr=0.1, betas=(0.8, 0.9)))
    betas = T.tensor(0.8), T.tensor([0.9])
    other, optim = stepped(lambda p: O.Adam([p], lr=T.tensor(0.1), betas=betas))
    assert other == pytest.approx(plain, rel=1e-5)
    assert [beta.dim() for beta in optim.param_groups[0]["betas"]] == [0, 0]


def test_gradient_scalers_of_fused_optimizers():
    for name in ("SGD", "Adam", "AdamW", "Adagrad"):
        p = T.tensor([1.0, 2.0], requires_grad=True)
        q = T.tensor([1.0, 2.0], requires_grad=True)
        scaled, plain = getattr(O, name)([p], lr=0.1, fused=True), getattr(O, name)([q], lr=0.1, fused=True)
        assert scaled._step_supports_amp_scaling
        scaled.grad_scale, scaled.found_inf = T.tensor(4.0), T.tensor(0.0)
        p.grad, q.grad = T.tensor([4.0, -8.0]), T.tensor([1.0, -2.0])
        scaled.step(), plain.step()
        assert p.tolist() == pytest.approx(q.tolist())
        assert p.grad.tolist() == [1.0, -2.0]
        scaled.found_inf = T.tensor(1.0)
        p.grad = T.tensor([float("inf"), 1.0])
        before = p.tolist()
        scaled.step()
        assert p.tolist() == before
        if name != "SGD":
            assert scaled.state[p]["step"].item() == 1.0


def test_default_dtype_of_steps():
    T.set_default_dtype(T.float64)
    p = leaf(2)
    optim = O.NAdam([p])
    p.grad = T.ones(2)
    optim.step()
    assert optim.state[p]["step"].dtype == optim.state[p]["mu_product"].dtype == T.float64


def test_names_are_pytorchs():
    assert issubclass(O.AdamW, O.Adam) and issubclass(S._LRScheduler, S.LRScheduler)
    assert S._LRScheduler.__name__ == "_LRScheduler"
    assert not IS_GRADIRON or not hasattr(O, "adam")
