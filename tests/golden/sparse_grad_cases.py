"""What sparse gradients hold and where optimizers go by them, for `make_sparse_grads.py` and its test."""

import itertools

NUMBERS = [3, 1, 3, 0, 1, 4]
LOOKUPS = [
    {},
    {"padding_idx": 1},
    {"padding_idx": -2},
    {"max_norm": 2.0},
    {"max_norm": 1.5, "norm_type": 1.0, "padding_idx": 0},
    {"scale_grad_by_freq": True},
]
BAGS = [
    {"mode": mode, **rest}
    for mode, rest in itertools.product(
        ("sum", "mean", "max"),
        (
            {},
            {"padding_idx": 3},
            {"max_norm": 2.0},
            {"include_last_offset": True},
            {"scale_grad_by_freq": True},
            {"per_sample_weights": [1.0, -2.0, 0.5, 3.0, 0.0, 1.5]},
        ),
    )
]
OPTIMIZERS = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9}),
    ("SGD", {"momentum": 0.9, "nesterov": True}),
    ("SGD", {"momentum": 0.5, "dampening": 0.25, "maximize": True}),
    ("SGD", {"weight_decay": 0.1}),
    ("SGD", {"fused": True}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adagrad", {"eps": 0.1, "maximize": True}),
    ("Adagrad", {"weight_decay": 0.1}),
    ("Adagrad", {"fused": True}),
    ("SparseAdam", {}),
    ("SparseAdam", {"betas": (0.5, 0.75), "eps": 0.01}),
    ("SparseAdam", {"maximize": True}),
    ("LBFGS", {"lr": 0.1}),
    *((name, {}) for name in "Adam AdamW RMSprop Adadelta Adamax ASGD NAdam RAdam Rprop Adafactor Muon".split()),
]


def table(t, dtype="float64"):
    values = [[(7 * i + 3 * j) % 5 - 1.5 for j in range(3)] for i in range(5)]
    return t.tensor(values, dtype=getattr(t, dtype), requires_grad=True)


def told(t, x):
    """A tensor as lists: a sparse one as its indices and values."""
    if isinstance(x, t.Tensor):
        return [x._indices().tolist(), x._values().tolist()] if x.is_sparse else x.tolist()
    return x


def attempt(call):
    """What a call returns, or the class and first line of its error."""
    try:
        return call()
    except (RuntimeError, ValueError, NotImplementedError) as error:
        return [type(error).__name__, str(error).split("\n")[0]]


def weighted(t, y):
    return (y * y * t.arange(1, y.numel() + 1, dtype=y.dtype).reshape(y.shape)).sum()


def lookup(t, options, shape):
    w = table(t)
    index = t.tensor(NUMBERS).reshape(shape)
    weighted(t, t.nn.functional.embedding(index, w, sparse=True, **options)).backward()
    return [told(t, w.grad), w.tolist()]


def bag(t, options):
    w = table(t)
    rest = dict(options)
    share = rest.pop("per_sample_weights", None)
    if share is not None:
        share = rest["per_sample_weights"] = t.tensor(share, dtype=t.float64, requires_grad=True)
    offsets = t.tensor([0, 2, 2, 6] if rest.get("include_last_offset") else [0, 2, 2])
    weighted(t, t.nn.functional.embedding_bag(t.tensor(NUMBERS), w, offsets, sparse=True, **rest)).backward()
    return [told(t, w.grad), w.tolist(), None if share is None else share.grad.tolist()]


def sums(t, kinds, together):
    """The gradient after several lookups, sparse or dense ones, in one backward or in one each."""
    w = table(t)
    losses = [
        weighted(t, t.nn.functional.embedding(t.tensor([i, 4 - i]), w, sparse=kind == "sparse")) for i, kind in enumerate(kinds)
    ]
    for loss in [sum(losses)] if together else losses:
        loss.backward()
    return told(t, w.grad)


def path(t, name, options):
    """A table after each of four steps; the second has another set of rows, the third none."""
    w = table(t)
    optimizer = getattr(t.optim, name)([w], **{"lr": 0.1, **options})
    passed = []
    for numbers in ([3, 1, 3], [0, 1], [], [3]):

        def closure(numbers=numbers):
            optimizer.zero_grad()
            index = t.tensor(numbers, dtype=t.int64)
            loss = (t.nn.functional.embedding(index, w, sparse=True) ** 2).sum()
            loss.backward()
            return loss

        if name == "LBFGS":
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
        passed.append(w.tolist())
    return passed


def clipped(t, norm_type):
    w, v = table(t), table(t)
    weighted(t, t.nn.functional.embedding(t.tensor(NUMBERS), w, sparse=True)).backward()
    weighted(t, v).backward()
    total = t.nn.utils.clip_grad_norm_([w, v], 1.0, norm_type)
    return [told(t, total), told(t, w.grad), told(t, v.grad)]


def all_cases():
    """A key for each case, and the function that runs it with a library."""
    for i, options in enumerate(LOOKUPS):
        for shape in ((6,), (2, 3)):
            yield f"lookup {i} {shape}", lambda t, o=options, s=shape: lookup(t, o, s)
    for i, options in enumerate(BAGS):
        yield f"bag {i}", lambda t, o=options: bag(t, o)
    for count in (2, 3):
        for kinds in itertools.product(("sparse", "dense"), repeat=count):
            for together in (False, True):
                yield f"sums {' '.join(kinds)} {together}", lambda t, k=kinds, b=together: sums(t, k, b)
    for i, (name, options) in enumerate(OPTIMIZERS):
        yield f"path {name} {i}", lambda t, n=name, o=options: path(t, n, o)
    for norm_type in (1.0, 2.0, float("inf")):
        yield f"clipped {norm_type}", lambda t, n=norm_type: clipped(t, n)
