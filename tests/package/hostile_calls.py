"""Calls what the package keeps for itself with arguments that nobody would give it: `hostile_calls.py SEED COUNT`.

Whatever is raised is fine; a panic is told, and a crash tells itself.
"""

import faulthandler
import inspect
import os
import random
import resource
import signal
import sys
import warnings
from contextlib import suppress

import gradiron as T
from gradiron import _core

# What takes a mode away that others have put on.
UNDO = "pop_chooser pop_saved_hooks pop_creation_hook vmap_leave end_transform exit_dual_level profiler_stop".split()
PLAIN = {"set_recording": True, "swap_inference_mode": False, "set_fwd_grad_enabled": True, "vmap_swap_calls": []}
PLAIN |= {"set_thread_device": None, "swap_overrides_off": 0, "set_override_modes": 0}
USES = [
    repr,
    lambda t: t + 1,
    lambda t: (t * t).sum().backward(),
    lambda t: t.tolist(),
    lambda t: t.view(-1),
    lambda t: t.add_(1),
    lambda t: t[0],
    lambda t: T.stack([t, t]),
    lambda t: t.to(T.float64).clone(),
    lambda t: T.func.vmap(T.sin)(t),
    lambda t: t.numpy(),
    lambda t: T.autograd.grad(t.sum(), [t]),
]


class Double(T.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def reset():
    for name in UNDO:
        for _ in range(50):
            try:
                getattr(_core, name)()
            except BaseException:
                break
    for name, value in PLAIN.items():
        with suppress(Exception):
            getattr(_core, name)(value)
    _core.swap_autocast(None, True, False)


def values():
    x = T.ones(2, requires_grad=True)
    y = x * 3
    numbers = [None, True, False, 0, 1, -1, 2, 7, 2**31, 2**32, 2**62, 2**63, -(2**63), 2**64, 1.5, float("nan")]
    texts = ["", "x", "error", "different", "cpu", "cuda:0", "preserve_format", b"abc", b"\0" * 64, bytearray(8)]
    lists = [(), [], {}, [1], [0, -5, 2**40], (2, 3), [2**62, 4], [x], [y], (x, y), [None], [x, None], [(5, 2**62, "error")]]
    tensors = [
        T.ones(2),
        T.ones(2, 3),
        T.zeros(0),
        T.tensor(3.0),
        T.tensor([1, 2]),
        T.ones(2, 3).t(),
        T.ones(1).expand(4),
        x,
        y,
    ]
    tensors += [T.ones(3, dtype=T.complex64).conj(), T.arange(5)[1:3]]
    kinds = [T.float32, T.int64, T.complex64, T.device("cpu"), T.Tensor, T.nn.Parameter, Double, int, object, print, object()]
    calls = [lambda *args: None, lambda *args: args[0], y.grad_fn, y.grad_fn._raw_saved_self, T.Generator()]
    others = [T.ones(2).untyped_storage(), x.register_hook(lambda g: None), T.autograd.graph.get_gradient_edge(y)]
    return numbers + texts + lists + tensors + kinds + calls + others


def arity(function):
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 0, 5
    least = sum(p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)
    return least, max(least, len(parameters))


def is_fault(error):
    return "internal check" in str(error) or "Panic" in type(error).__name__ or isinstance(error, (SystemError, TimeoutError))


def hung(*_):
    raise TimeoutError("a call hangs")


def cap(more):
    """Sizes that are legal but huge are refused at once: to fill them would look like a hang."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + more, resource.RLIM_INFINITY))


def main(seed, count):
    chance = random.Random(seed)
    inside = [(n, v) for n, v in vars(_core).items() if n not in _core.__all__ and not n.startswith("__") and callable(v)]
    inside += [(f"_gpu.{n}", v) for n, v in vars(getattr(_core, "_gpu", T)).items() if callable(v) and hasattr(_core, "_gpu")]
    inside = [(name, value, arity(value)) for name, value in inside]
    faults, made = [], []
    signal.signal(signal.SIGALRM, hung)
    if sys.platform == "linux":
        cap(6 << 30)
    for _ in range(count):
        name, function, (least, most) = chance.choice(inside)
        if chance.random() < 0.1:
            reset()
        try:
            pool = values()
        except BaseException:
            reset()
            pool = values()
        pool += made[-12:] * 2
        given = [chance.choice(pool) for _ in range(chance.randint(least, most))]
        signal.alarm(20)
        try:
            result = function(*given)
            for t in result if isinstance(result, (tuple, list)) else [result]:
                if isinstance(t, T.Tensor):
                    made.append(t)
                    try:
                        chance.choice(USES)(t)
                    except BaseException as error:
                        if is_fault(error):
                            raise
        except BaseException as error:
            if is_fault(error):
                faults.append(f"{name}{tuple(type(g).__name__ for g in given)}: {type(error).__name__} {str(error)[:100]}")
        signal.alarm(0)
    reset()
    print("\n".join(sorted(set(faults))) or "no faults")


if __name__ == "__main__":
    faulthandler.enable()
    warnings.simplefilter("ignore")
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (what is called may print)
    main(int(sys.argv[1]), int(sys.argv[2]))
