"""Optimizers and schedules with their options, and how each is run: the same for PyTorch and gradiron."""

import io

STEPS = 100
# The steps after which parameters are recorded.
SEEN = (1, 2, 3, 10, 30, 100)
# An optimizer and its options. `lr="tensor"` makes 0.1 a tensor.
CASES = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.05, "momentum": 0.8, "nesterov": True, "weight_decay": 0.01, "maximize": True}),
    ("SGD", {"lr": "tensor", "momentum": 0.5}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "fused": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "foreach": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.1, "betas": [0.8, 0.99], "eps": 1e-3, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "maximize": True}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Adam", {"lr": "tensor", "amsgrad": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "fused": True}),
    ("Adam", {"lr": 0.1, "foreach": True}),
    ("AdamW", {"lr": 0.1}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.3, "amsgrad": True}),
    ("AdamW", {"lr": "tensor"}),
    ("Adamax", {"lr": 0.1}),
    ("Adamax", {"lr": 0.05, "betas": [0.7, 0.9], "weight_decay": 0.1, "maximize": True}),
    ("Adamax", {"lr": "tensor"}),
    ("NAdam", {"lr": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "momentum_decay": 0.02}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("NAdam", {"lr": "tensor"}),
    ("RAdam", {"lr": 0.1}),
    ("RAdam", {"lr": 0.1, "betas": [0.8, 0.9], "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RAdam", {"lr": "tensor"}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.3, "lr_decay": 0.01, "weight_decay": 0.1, "initial_accumulator_value": 0.2, "eps": 1e-5}),
    ("Adagrad", {"lr": 0.3, "maximize": True}),
    ("Adagrad", {"lr": 0.3, "fused": True}),
    ("Adagrad", {"lr": "tensor"}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "eps": 1e-4, "weight_decay": 0.1, "maximize": True}),
    ("Adadelta", {"lr": "tensor"}),
    ("ASGD", {}),
    ("ASGD", {"lr": 0.1, "lambd": 0.01, "alpha": 0.5, "t0": 20, "weight_decay": 0.1}),
    ("ASGD", {"lr": "tensor", "t0": 10, "maximize": True}),
    ("RMSprop", {}),
    ("RMSprop", {"lr": 0.05, "alpha": 0.9, "eps": 1e-4, "weight_decay": 0.1, "momentum": 0.9}),
    ("RMSprop", {"lr": 0.05, "centered": True, "maximize": True}),
    ("RMSprop", {"lr": "tensor", "centered": True, "momentum": 0.5}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": [0.3, 1.5], "step_sizes": [1e-3, 1.0], "maximize": True}),
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.1, "beta2_decay": -0.5, "eps": [1e-3, 1e-2], "d": 2.0, "weight_decay": 0.1, "maximize": True}),
]
# Those that take complex parameters, with other options than above.
COMPLEX = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.1}),
    ("Adamax", {"lr": 0.1}),
    ("NAdam", {"lr": 0.1}),
    ("RAdam", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "initial_accumulator_value": 0.1}),
    ("Adadelta", {}),
    ("ASGD", {"lr": 0.1, "t0": 10}),
    ("RMSprop", {"lr": 0.1, "centered": True, "momentum": 0.5}),
    ("Rprop", {"lr": 0.1}),
]
SHAPES = ((3,), (2, 3), ())
# PyTorch rounds the last elements of a list of halves differently: there are none.
HALF_SHAPES = ((64,), (2, 64))

SCHEDULES = [
    "S.LambdaLR(o, lambda e: 0.9**e)",
    "S.LambdaLR(o, [lambda e: 1 / (e + 1), lambda e: e % 3])",
    "S.MultiplicativeLR(o, lambda e: 1 - e / 50)",
    "S.StepLR(o, 3, gamma=0.5)",
    "S.MultiStepLR(o, [2, 5, 5, 11], gamma=0.3)",
    "S.ConstantLR(o, 0.25, total_iters=4)",
    "S.LinearLR(o, 0.2, 0.9, total_iters=7)",
    "S.LinearLR(o)",
    "S.ExponentialLR(o, 0.8)",
    "S.PolynomialLR(o, total_iters=9, power=2.0)",
    "S.CosineAnnealingLR(o, 6, eta_min=0.01)",
    "S.CosineAnnealingWarmRestarts(o, 4)",
    "S.CosineAnnealingWarmRestarts(o, 3, T_mult=2, eta_min=0.02)",
    "S.CyclicLR(o, 0.01, 0.2, step_size_up=4)",
    "S.CyclicLR(o, [0.01, 0.02], [0.2, 0.3], step_size_up=3, step_size_down=5, mode='triangular2')",
    "S.CyclicLR(o, 0.01, 0.2, step_size_up=4, mode='exp_range', gamma=0.9, base_momentum=0.5)",
    "S.CyclicLR(o, 0.01, 0.2, step_size_up=4, scale_fn=lambda x: 1 / x, cycle_momentum=False)",
    "S.OneCycleLR(o, 0.5, total_steps=24)",
    "S.OneCycleLR(o, [0.5, 0.7], epochs=6, steps_per_epoch=4, anneal_strategy='linear', three_phase=True)",
    "S.OneCycleLR(o, 0.5, total_steps=30, pct_start=0.1, cycle_momentum=False, div_factor=10.0, final_div_factor=5.0)",
    "S.ChainedScheduler([S.ConstantLR(o, 0.1, 3), S.ExponentialLR(o, 0.9)])",
    "S.ChainedScheduler([S.LinearLR(o, 0.1, 1.0, 4), S.StepLR(o, 5)])",
    "S.SequentialLR(o, [S.ConstantLR(o, 0.1, 3), S.ExponentialLR(o, 0.9)], milestones=[5])",
    "S.SequentialLR(o, [S.LinearLR(o, 0.1, 1.0, 4), S.CosineAnnealingLR(o, 8), S.ConstantLR(o, 0.5, 2)], milestones=[4, 12])",
    "S.SequentialLR(o, [S.ChainedScheduler([S.ConstantLR(o, 0.1, 3), S.ExponentialLR(o, 0.9)]), S.StepLR(o, 2)], milestones=[6])",
    "W.SWALR(o, 0.05, anneal_epochs=5)",
    "W.SWALR(o, [0.05, 0.2], anneal_epochs=4, anneal_strategy='linear')",
    "W.SWALR(o, 0.05, anneal_epochs=0)",
]
ROUNDS = 24
# The same with the epoch named, where that is another formula.
CLOSED = [case for case in SCHEDULES if not any(word in case for word in ("Sequential", "Chained", "SWALR"))]
PLATEAUS = [
    "S.ReduceLROnPlateau(o, patience=2)",
    "S.ReduceLROnPlateau(o, mode='max', factor=0.5, patience=1, cooldown=2, min_lr=[0.01, 0.02])",
    "S.ReduceLROnPlateau(o, threshold=0.2, threshold_mode='abs', patience=0, eps=1e-3)",
    "S.ReduceLROnPlateau(o, mode='max', threshold=0.1, threshold_mode='abs', patience=0, factor=0.3)",
]


def values(count, seed):
    return [((i * 37 + seed * 11) % 17 - 8) / 5 for i in range(count)]


def parameters(T, dtype, device="cpu", shapes=SHAPES):
    """Some of each shape, and one whose elements lie in another order."""
    made = []
    for seed, shape in enumerate(shapes):
        count = 1
        for n in shape:
            count *= n
        made.append(T.tensor(values(count, seed), dtype=T.float64).reshape(shape))
    if shapes is SHAPES:
        made.append(T.tensor(values(12, 9), dtype=T.float64).reshape(3, 4).t())
    if dtype.is_complex:
        made = [T.complex(p, 0.5 - p) for p in made]
    return [p.to(device=device, dtype=dtype).requires_grad_() for p in made]


def set_gradients(T, params, step):
    """Gradients that depend on where the parameters are, but for rounding by nothing else."""
    with T.no_grad():
        for k, p in enumerate(params):
            shift = ((step * 7 + k * 3) % 13 - 6) / 4
            p.grad = p * (0.5 + k / 4) + (complex(shift, -shift) if p.is_complex() else shift)


def optimizer(T, name, options, params):
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
    lr = options.get("lr")
    if lr == "tensor":
        options["lr"] = T.tensor(0.1, dtype=params[0].dtype if params[0].dtype == T.float64 else T.float32)
    groups = [{"params": params[:2]}, {"params": params[2:]}] if len(params) > 2 else params
    if isinstance(lr, float) and len(params) > 2:
        groups[1]["lr"] = lr / 2
    return getattr(T.optim, name)(groups, **options)


def few(tensor):
    """The first elements, as numbers."""
    tensor = tensor.detach().cpu()
    if tensor.is_complex():
        tensor = (tensor.real.double(), tensor.imag.double())
        return [x for part in tensor for x in part.reshape(-1)[:2].tolist()]
    return tensor.double().reshape(-1)[:3].tolist()


def trajectory(T, name, options, dtype, device="cpu"):
    """The parameters after some of the steps, and the state in the end."""
    kind = getattr(T, dtype)
    params = parameters(T, kind, device, HALF_SHAPES if kind.itemsize == 2 else SHAPES)
    optim = optimizer(T, name, options, params)
    seen = []
    for step in range(1, STEPS + 1):
        set_gradients(T, params, step)
        optim.step()
        if step in SEEN:
            seen.append([few(p) for p in params])
    state = [{key: few(value) for key, value in sorted(optim.state[p].items())} for p in params]
    return {"seen": seen, "state": state}


def schedule(T, code, closed=False):
    """What an optimizer of two groups has after each step of a schedule."""
    params = [T.zeros(1, requires_grad=True), T.zeros(2, requires_grad=True)]
    optim = T.optim.SGD([{"params": params[:1]}, {"params": params[1:], "lr": 0.3}], lr=0.1, momentum=0.9)
    S = T.optim.lr_scheduler
    made = eval(code, {"S": S, "W": T.optim.swa_utils, "o": optim})
    optim.step()
    seen = []
    for step in range(ROUNDS):
        seen.append([[group["lr"], group["momentum"]] for group in optim.param_groups])
        if "Plateau" in code:
            made.step([3.0, 2.9, 2.9, 2.95, 3.0, 2.5][step % 6] + step / 20)
        elif closed:
            made.step(step * 5 % 11)
        else:
            made.step()
    assert made.get_last_lr() == [group["lr"] for group in optim.param_groups]
    return seen


# Optimizers whose state PyTorch has saved: loaded, they go on as there.
SAVED = [
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("Adam", {"lr": 0.1, "amsgrad": True}),
    ("AdamW", {"lr": 0.1, "fused": True}),
    ("NAdam", {"lr": 0.1}),
    ("RMSprop", {"lr": 0.1, "momentum": 0.5, "centered": True}),
    ("LBFGS", {"lr": 0.5, "max_iter": 3, "history_size": 2}),
]


def advance(T, optim, params, steps):
    """Some steps down a bowl, by a closure."""

    def closure():
        optim.zero_grad()
        loss = sum(((p - k) ** 2 * (1 + k)).sum() for k, p in enumerate(params))
        loss.backward()
        return loss

    return [optim.step(closure).item() for _ in range(steps)]


def saved(T, name, options):
    """An optimizer's state after five steps as a file, the parameters there, and the losses of five more steps."""
    # What lies in another order LBFGS refuses there.
    params = parameters(T, T.float64, shapes=list(SHAPES))
    groups = params if name == "LBFGS" else [{"params": params[:2]}, {"params": params[2:], "lr": 0.05}]
    optim = getattr(T.optim, name)(groups, **options)
    advance(T, optim, params, 5)
    file = io.BytesIO()
    T.save(optim.state_dict(), file)
    before = [p.detach().reshape(-1).tolist() for p in params]
    return {"file": file.getvalue(), "params": before, "losses": advance(T, optim, params, 5)}


def lbfgs(T, options, dtype):
    """The losses, and the parameters in the end, down a curved valley."""
    x = T.tensor([-1.5, 2.0], dtype=getattr(T, dtype), requires_grad=True)
    optim = T.optim.LBFGS([x], **options)

    def closure():
        optim.zero_grad()
        loss = (1 - x[0]) ** 2 + 10 * (x[1] - x[0] ** 2) ** 2
        loss = -loss if options.get("maximize") else loss
        loss.backward()
        return loss

    losses = [optim.step(closure).item() for _ in range(6)]
    state = optim.state[x]
    return {"losses": losses, "x": x.tolist(), "evals": [state["func_evals"], state["n_iter"]]}


LBFGS = [
    {},
    {"lr": 0.1, "max_iter": 5},
    {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "history_size": 3, "max_iter": 4, "maximize": True},
    {"lr": 0.5, "max_eval": 7, "tolerance_change": 1e-3},
]


def muon(T, options, dtype):
    """Two matrices after each of five steps."""
    params = [
        T.tensor(values(rows * columns, rows), dtype=getattr(T, dtype)).reshape(rows, columns)
        for rows, columns in ((4, 3), (2, 5))
    ]
    params = [p.requires_grad_() for p in params]
    optim = T.optim.Muon(params, **{k: tuple(v) if isinstance(v, list) else v for k, v in options.items()})
    for step in range(5):
        set_gradients(T, params, step)
        optim.step()
    return [few(p) for p in params]


MUON = [
    {},
    {"lr": 0.1, "momentum": 0.5, "nesterov": False, "adjust_lr_fn": "match_rms_adamw"},
    {"lr": 0.1, "weight_decay": 0.0, "ns_steps": 3, "adjust_lr_fn": "spectral_unclamped"},
    {"lr": 0.1, "ns_coefficients": [3.0, -4.0, 2.0], "adjust_lr_fn": "original"},
]
