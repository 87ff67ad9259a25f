"""What is made with arguments and then used (layers, optimizers, schedules, loaders, distributions), and files with wrong bytes."""

import inspect
import io
import itertools
from contextlib import suppress

import gradiron as T

from .values import DTYPES, FUNCTIONS, INTS, TEXTS

PLACES = """nn optim optim.lr_scheduler optim.swa_utils utils.data distributions distributions.transforms amp nn.utils.prune
    nn.utils.parametrizations quasirandom""".split()
FUNCTIONS_OF = """_foreach sparse signal.windows nn.init nn.utils nn.utils.rnn nn.utils.prune nn.utils.parametrizations
    nn.utils.parametrize nn.grad nn.attention.flex_attention utils.data utils._pytree utils.checkpoint nn.modules.utils
    distributions.kl""".split()
# They would start processes, or what they take is a program.
LEFT_OUT = {"DataParallel", "DistributedDataParallel", "SyncBatchNorm", "data_parallel", "annotations", "get_worker_info"}
# It draws until all numbers are inside its bounds, in PyTorch too, however far those are.
LEFT_OUT |= {"trunc_normal_"}
# Loops as long as these say, in PyTorch too, which Ctrl-C ends.
COUNTS = """num_layers num_encoder_layers num_decoder_layers total_iters total_steps T_max T_0 T_mult step_size_up step_size
    num_samples n_power_iterations last_epoch dimension max_iter max_eval history_size epochs steps_per_epoch batch_size
    num_replicas rank prefetch_factor cache_size total_count drop_last milestones""".split()


def _module(path):
    import importlib

    return importlib.import_module(f"gradiron.{path}" if path else "gradiron")


def catalogue():
    """Everything that is made, and the functions that stand beside it."""
    found = []
    for path in PLACES:
        module = _module(path)
        names = [n for n in dir(module) if not n.startswith("_") and n not in LEFT_OUT]
        found += [("made", path, n) for n in names if inspect.isclass(getattr(module, n))]
    for path in FUNCTIONS_OF:
        module = _module(path)
        names = [n for n in dir(module) if n not in LEFT_OUT and (n.startswith("_foreach_") or not n.startswith("_"))]
        ours = [n for n in names if (getattr(getattr(module, n), "__module__", None) or "").startswith("gradiron")]
        found += [("function", path, n) for n in ours if inspect.isroutine(getattr(module, n))]
    found += [("file", how, "load") for how in ("zip", "legacy", "safetensors")] * 20
    methods = [n for n in dir(T.Tensor) if not n.startswith("_") and callable(getattr(T.Tensor, n))]
    found += [("sparse", "Tensor", n) for n in methods]
    return found


def sparse(source):
    """A sparse tensor, sound or not."""
    size = source.one([(3,), (3, 3), (2, 3), (4, 4, 2), (0, 3), (2**12, 2**12)])
    dims = 2 if max(size) > 5 else source.random.randint(1, len(size))
    count = source.one([0, 1, 3, 5])
    places = [[source.random.randrange(max(min(n, 5), 1)) for _ in range(count)] for n in size[:dims]]
    values = source.fresh((count, *size[dims:]), source.one(["float32", "float64", "int64", "complex64", "bool"]))
    made = T.sparse_coo_tensor(T.tensor(places, dtype=T.int64).reshape(dims, count), values.detach(), size)
    return made.coalesce() if source.chance(0.4) else made


def _leaves(source):
    return [source.fresh(source.shape(), "float32").detach().requires_grad_() for _ in range(source.one([1, 1, 2, 3]))]


def _optimizer(source):
    kind = source.one([T.optim.SGD, T.optim.Adam, T.optim.Adagrad, T.optim.RMSprop])
    return kind(_leaves(source), lr=0.1)


def _layer(source):
    makers = [
        lambda: T.nn.Linear(3, 2),
        lambda: T.nn.Conv1d(1, 2, 2),
        lambda: T.nn.Sequential(T.nn.Linear(3, 3), T.nn.BatchNorm1d(3)),
        lambda: T.nn.LSTM(3, 2),
        lambda: T.nn.Identity(),
        lambda: T.nn.Embedding(3, 3),
    ]
    return source.one(makers)()


def _dataset(source):
    makers = [
        lambda: list(range(5)),
        lambda: T.utils.data.TensorDataset(source.fresh((4, 2), "float32")),
        lambda: [source.anything() for _ in range(3)],
        lambda: source.tensor(),
        lambda: [{"a": 1, "b": source.tensor()}] * 3,
        lambda: source.odd(),
    ]
    return source.one(makers)()


def argument(source, name, default):
    """A value for a parameter, by its name and by what it is otherwise."""
    if name == "num_workers":
        return source.one([0, 0, -1, 1.5, None, "a"])
    if source.chance(0.12) and name not in COUNTS:
        return source.anything()
    if name in ("params", "parameters", "tensors"):
        given = _leaves(source)
        return source.one([given, iter(given), [{"params": given, "lr": source.number()}], given[0], []])
    if name in ("sequences", "tensor_list", "batch"):
        like = source.shape()
        return [source.tensor(like) for _ in range(source.one([0, 1, 2, 3]))]
    if name in ("lengths", "batch_sizes", "permutation"):
        few = [source.one([1, 1, 2, 3, 0, -1, 2**62]) for _ in range(source.one([0, 1, 2, 3]))]
        return source.one([few, T.tensor(few), T.tensor(few).cumsum(0)])
    if name in ("optimizer", "schedulers"):
        return _optimizer(source)
    if name in ("module", "model", "base_optimizer", "modules"):
        return _layer(source)
    if name in ("dataset", "data_source", "datasets", "sampler"):
        return _dataset(source)
    if name in ("base_distribution", "base_dist", "mixture_distribution", "component_distribution", "p", "q"):
        return T.distributions.Normal(source.tensor(), 1.0) if source.chance(0.5) else T.distributions.Categorical(T.ones(3))
    if name == "device":
        return source.one(["cpu", None, "meta", "cuda:7", 3])
    if name == "dtype":
        return getattr(T, source.one(DTYPES)) if source.chance(0.8) else source.one([int, float, None])
    if name in COUNTS:
        return source.one([*INTS[:9], -3, 1.5, None, [1, 2], True])
    if isinstance(default, bool):
        return source.chance(0.5) if source.chance(0.9) else source.number()
    if isinstance(default, str):
        return source.one(TEXTS)
    if isinstance(default, float):
        return source.number()
    if isinstance(default, tuple) and default:
        return tuple(source.number() for _ in default) if source.chance(0.8) else source.sequence()
    if "fn" in name or "lambda" in name or "func" in name:
        return source.one(FUNCTIONS)
    if any(
        word in name for word in ("loc", "scale", "probs", "logits", "rate", "concentration", "low", "high", "matrix", "tril")
    ):
        return source.tensor() if source.chance(0.7) else source.number()
    if any(word in name for word in ("input", "tensor", "weight", "x", "grad", "mask", "values")) and not isinstance(
        default, int
    ):
        return source.tensor()
    r = source.random.random()
    if r < 0.75:
        return source.one([1, 2, 3, 4, 0, 5, 8, (2, 2), (1, 2, 2), [3], -1, 2**15, 2**31, 2**62, 2**63, 10**30])
    return source.number() if r < 0.9 else source.sequence()


def parameters(target):
    """Names and defaults, or nothing where they cannot be asked for; those of a class that takes whatever its base takes."""
    for each in [target, *getattr(target, "__mro__", ())[1:3]]:
        with suppress(TypeError, ValueError):
            found = [p for p in inspect.signature(each).parameters.values() if p.kind in (0, 1, 3)]
            if found or not inspect.isclass(each):
                return [(p.name, p.default, p.kind == 3) for p in found]
    return []


def _lists(source):
    """Lists of tensors that go together, mostly, and what stands beside them."""
    shapes = [source.shape() for _ in range(source.one([0, 1, 2, 3]))]

    def tensors():
        given = [source.tensor(shape) if source.chance(0.95) else source.anything() for shape in shapes]
        return given if source.chance(0.9) else tuple(given[1:])

    makers = [tensors, tensors, source.number, lambda: [source.number() for _ in shapes], source.tensor, source.anything]
    return [tensors(), *(source.one(makers)() for _ in range(source.one([0, 1, 1, 2, 3])))]


def arguments(source, target):
    args, keywords = [], {}
    if getattr(target, "__name__", "").startswith("_foreach_"):
        return _lists(source), {}
    by_name = False
    for name, default, named in parameters(target):
        optional = default is not inspect.Parameter.empty
        if optional and source.chance(0.5):
            by_name = True
            continue
        value = argument(source, name, default)
        if by_name or named:
            keywords[name] = value
        else:
            args.append(value)
    if not args and not keywords:
        args = [source.one([1, 2, 3, 4]) if source.chance(0.6) else source.anything() for _ in range(source.one([0, 1, 2, 3]))]
    return args, keywords


def use(source, thing):
    """Does with a thing what it was made for, and asks it some more."""
    uses = [lambda: repr(thing)]
    if isinstance(thing, T.nn.Module):
        inputs = [source.tensor() for _ in range(source.one([1, 1, 2, 3]))]
        uses += [
            lambda: thing.double() and None,
            lambda: thing.load_state_dict(thing.state_dict()),
            lambda: thing.load_state_dict(source.anything()),
            lambda: thing(*inputs),
            lambda: thing(source.fresh((2, 3), "float32")).sum().backward(),
            lambda: thing(source.fresh((2, 4, 8, 8), "float32")),
        ]
    elif isinstance(thing, T.optim.Optimizer):
        for group in thing.param_groups:
            for p in group["params"]:
                with suppress(Exception):
                    p.grad = source.fresh(tuple(p.shape), "float32").detach() if p.numel() < 10_000 else None
        uses += [
            thing.step,
            thing.step,
            lambda: thing.step(lambda: T.ones(())),
            lambda: thing.load_state_dict(source.anything()),
            lambda: thing.load_state_dict(thing.state_dict()),
            lambda: thing.add_param_group(source.anything()),
            thing.zero_grad,
        ]
    elif isinstance(thing, T.optim.lr_scheduler.LRScheduler):
        uses += [thing.step, thing.step, thing.get_last_lr, lambda: thing.step(source.one(INTS)), thing.state_dict]
    elif isinstance(thing, T.distributions.Distribution):
        value = source.tensor()
        uses += [
            lambda: thing.sample(),
            lambda: thing.sample([source.one([0, 1, 2, 3, -1, 2**62, 1.5]) for _ in range(source.one([0, 1, 2]))]),
            lambda: thing.rsample((2,)),
            lambda: thing.log_prob(value),
            lambda: thing.cdf(value),
            lambda: thing.entropy(),
            lambda: thing.expand(source.one([(2,), (3, 3), 4])),
            lambda: (thing.mean, thing.variance, thing.mode),
        ]
    elif isinstance(thing, T.distributions.Transform):
        value = source.tensor()
        uses += [lambda: thing(value), lambda: thing.inv(value), lambda: thing.log_abs_det_jacobian(value, value)]
    elif hasattr(thing, "__iter__") or hasattr(thing, "__getitem__"):
        uses += [lambda: len(thing), lambda: list(itertools.islice(iter(thing), 3)), lambda: thing[source.integer()]]
    elif isinstance(thing, T.quasirandom.SobolEngine):
        uses += [lambda: thing.draw(source.one(INTS)), lambda: thing.fast_forward(source.one(INTS)), thing.reset]
    random = source.random
    given = None
    for do in [do for do in uses if random.random() < 0.8]:
        try:
            given = do()
        except Exception as error:
            if type(error).__name__ == "PanicException" or "internal check of gradiron failed" in str(error):
                raise
    return given


def file(source, how):
    """The bytes of a file with some wrong, and what reads them."""
    value = source.one(
        [
            lambda: {"a": source.fresh((2, 3)), "b": [1, "x", source.fresh((3,))]},
            lambda: T.nn.Linear(3, 2).state_dict(),
            lambda: source.tensor(),
            lambda: sparse(source),
            lambda: _optimizer(source).state_dict(),
        ]
    )()
    if how == "safetensors":
        tensors = {f"t{i}": source.fresh((2, 3)).detach().contiguous() for i in range(2)}
        data = bytearray(T.utils.safetensors.save(tensors))
    else:
        file = io.BytesIO()
        T.save(value, file, _use_new_zipfile_serialization=how == "zip")
        data = bytearray(file.getvalue())
    r = source.random
    for _ in range(source.one([0, 1, 1, 2, 5, 20])):
        at = r.randrange(len(data))
        kind = r.random()
        if kind < 0.5:
            data[at] = source.one([0, 1, 255, 127, 128, r.randrange(256)])
        elif kind < 0.7:
            end = min(at + 8, len(data))
            data[at:end] = source.one([b"\xff" * 8, b"\0" * 8, b"\xff" * 7 + b"\x7f", b"99999999"])[: end - at]
        elif kind < 0.8:
            del data[at : at + r.randrange(1, 100)]
        elif kind < 0.9:
            data[at:at] = data[: r.randrange(1, 100)]
        else:
            del data[at:]
        if not data:
            break
    if how == "safetensors":
        return lambda: T.utils.safetensors.load(bytes(data))
    return lambda: T.load(io.BytesIO(bytes(data)), weights_only=True)
