"""What checkpoints are made of, for PyTorch and gradiron alike, and a description of it that can be compared."""

import collections
import enum

DTYPES = "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128".split()


def dtypes(T):
    return {name: (T.arange(6) % 5 - 1).to(getattr(T, name)).reshape(2, 3) for name in DTYPES}


def views(T):
    base = T.arange(24.0).reshape(4, 6)
    return {
        "base": base,
        "rows": base[1:3],
        "columns": base[:, ::2],
        "turned": base.t(),
        "expanded": base[0, :1].expand(4, 3),
        "number": base[2, 3],
        "wanted": base[3].detach().requires_grad_(),
        "empty": T.zeros(0, 3),
        "none of much": base[:0],
        "integers": T.arange(3),
        "same": base,
    }


def lazy(T):
    z = T.tensor([1 + 2j, 3 - 1j])
    return {"conjugated": z.conj(), "negated": T.tensor([1 - 2j]).conj().imag, "plain": z}


def parameters(T):
    p = T.nn.Parameter(T.ones(2, 2))
    marked = T.nn.Parameter(T.zeros(1), requires_grad=False)
    marked.note = "kept"
    told = T.zeros(2)
    told.note = {"a": 1}
    return [p, marked, told, p[0].detach()]


def values(T):
    state = collections.OrderedDict(weight=T.ones(1))
    state._metadata = {"": {"version": 2}}
    cycle = [1]
    cycle.append(cycle)
    return {
        "size": T.Size([2, 3]),
        "device": [T.device("cpu"), T.device("cuda:0"), T.device("cuda")],
        "dtype": [T.float32, T.bfloat16, T.bool],
        "layout": T.strided,
        "numbers": [0, -1, 255, 256, 65536, -(2**40), 2**90, 0.5, float("inf"), 1 + 2j],
        "words": ["", "x" * 300, "ß→\ud800", b"bytes\xff", bytearray(b"abc")],
        "flags": (None, True, False, ()),
        "sets": [set(), {1, 2, 3}],
        "counter": collections.Counter("aab"),
        "state": state,
        (1, "pair"): {"nested": [{"deep": (1, (2, (3, 4)))}]},
        "a name": "cgradiron\nTensor\n",
    }


def legacy(T):
    return {"views": views(T), "dtypes": dtypes(T), "parameters": parameters(T)[:1]}


def network(T):
    T.manual_seed(3)
    nn = T.nn
    parts = nn.ModuleDict({"list": nn.ModuleList([nn.Conv2d(1, 2, 3)]), "weights": nn.ParameterList([T.ones(2)])})
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.BatchNorm1d(3), parts, nn.LSTM(2, 3), nn.Dropout(0.1))


OPTIMIZERS = {
    "sgd": lambda T, p: T.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda T, p: T.optim.Adam([{"params": p[:2], "lr": 0.01}, {"params": p[2:]}], amsgrad=True),
    "adamw": lambda T, p: T.optim.AdamW(p, lr=0.01),
    "rmsprop": lambda T, p: T.optim.RMSprop(p, momentum=0.5, centered=True),
    "adagrad": lambda T, p: T.optim.Adagrad(p),
}


class Training:
    """A module with buffers, an optimizer and a schedule, whose gradients are made up."""

    def __init__(self, T, name):
        self.T = T
        self.module = T.nn.Sequential(T.nn.Linear(2, 3), T.nn.BatchNorm1d(3)).double()
        with T.no_grad():
            for p in self.module.parameters():
                p.copy_(self.numbers(p, 1))
        self.optimizer = OPTIMIZERS[name](T, list(self.module.parameters()))
        self.schedule = T.optim.lr_scheduler.StepLR(self.optimizer, 2, 0.5)

    def numbers(self, p, step):
        return self.T.arange(p.numel(), dtype=p.dtype).reshape(p.shape).sub(step).div(4)

    def steps(self, first, last):
        for step in range(first, last):
            for p in self.module.parameters():
                p.grad = self.numbers(p, step)
            self.module[1].running_mean += step
            self.module[1].num_batches_tracked += 1
            self.optimizer.step()
            self.schedule.step()
        return self

    def state(self):
        return [part.state_dict() for part in (self.module, self.optimizer, self.schedule)]

    def load(self, state):
        for part, its in zip((self.module, self.optimizer, self.schedule), state):
            part.load_state_dict(its)
        return self


def training(T):
    return {name: Training(T, name).steps(0, 3).state() for name in OPTIMIZERS}


def further(T):
    """The same, three steps later."""
    return {name: Training(T, name).steps(0, 6).state() for name in OPTIMIZERS}


CASES = {case.__name__: case for case in (dtypes, views, lazy, parameters, values, legacy, training, further)}


def describe(obj, T):
    """The object as plain values: tensors by their numbers, layout and the memory that they share."""
    storages, seen, kept = {}, {}, []

    def walk(x):
        if isinstance(x, T.Tensor):
            storage = storages.setdefault(x.untyped_storage().data_ptr() or -len(storages), len(storages))
            numbers = x.detach().to(T.complex128).resolve_conj().resolve_neg().tolist()
            place = (tuple(x.shape), x.stride(), x.storage_offset(), x.untyped_storage().nbytes(), storage)
            state = walk({k: v for k, v in vars(x).items() if not k.startswith("_")})
            marks = (type(x).__name__, str(x.dtype), str(x.device), x.requires_grad, x.is_conj(), x.is_neg())
            return ("tensor", *marks, place, numbers, state)
        if isinstance(x, (list, tuple, set, dict)) and not isinstance(x, T.Size):
            if id(x) in seen:
                return ("seen", seen[id(x)])
            seen[id(x)] = len(seen)
            kept.append(x)
            if isinstance(x, dict):
                attributes = sorted(vars(x).items()) if hasattr(x, "__dict__") else []
                return (type(x).__name__, [(walk(k), walk(v)) for k, v in x.items()], walk(attributes))
            return (type(x).__name__, sorted(map(walk, x)) if isinstance(x, set) else [walk(y) for y in x])
        return (type(x).__name__, repr(x.value if isinstance(x, enum.Enum) else x))

    return walk(obj)
