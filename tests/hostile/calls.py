"""One hostile call per seed: what is called, with what, and what must be true afterwards."""

import inspect
import random
import types
import warnings

import gradiron as T

from . import made
from .values import INTS, Source

# They end the process, wait for something, write files, or are asked for on purpose.
LEFT_OUT = {
    *"annotations cuda viz profiler load save hub compile jit distributed multiprocessing _core breakpoint".split(),
    *"set_num_threads set_num_interop_threads set_printoptions emit_nvtx emit_itt detect_anomaly profile".split(),
    *"__init_subclass__ __subclasshook__ __new__ __init__ __class__ __del__ __dir__ __getattribute__".split(),
    *"set_warn_always seed register_multi_grad_hook swap_tensors".split(),
}
# Loops as long as these say, in PyTorch too, which Ctrl-C ends.
COUNTS = {"niter"}
# What they write is what they are called for, whether or not they finish.
WRITERS = {"backward", "grad", "jacobian", "hessian", "gradcheck", "gradgradcheck", "checkpoint", "apply_", "map_"}
ROWS = {(row["name"], row["nn"]): row for row in T._core.rows()}
OPERATORS = """
__getitem__ __setitem__ __add__ __radd__ __iadd__ __sub__ __isub__ __mul__ __imul__ __truediv__ __itruediv__ __floordiv__ __mod__
__pow__ __rpow__ __ipow__ __matmul__ __rmatmul__ __and__ __or__ __xor__ __iand__ __lshift__ __rshift__ __eq__ __ne__ __lt__ __ge__
__neg__ __pos__ __abs__ __invert__ __bool__ __int__ __float__ __complex__ __index__ __len__ __iter__ __contains__ __reversed__
__array__ __dlpack__ __dlpack_device__ __deepcopy__ __reduce_ex__ __format__ __repr__ __hash__ __rsub__ __rtruediv__ __rfloordiv__
""".split()


def _public(module):
    names = [n for n in dir(module) if not n.startswith("_") and n not in LEFT_OUT]
    things = [(n, getattr(module, n)) for n in names]
    ours = lambda thing: (getattr(thing, "__module__", None) or "gradiron").startswith("gradiron")
    return [(n, thing) for n, thing in things if not isinstance(thing, types.ModuleType) and ours(thing)]


def _modules():
    paths = """nn.functional autograd autograd.functional autograd.forward_ad autograd.graph func random linalg fft special
        testing autograd.variable utils.dlpack""".split()
    found = [("", T)]
    for path in paths:
        module = T
        for part in path.split("."):
            module = getattr(module, part, None)
        if module is not None:
            found.append((path, module))
    return found


def catalogue():
    """Everything that can be called: (kind, module or class, name)."""
    all_ = []
    for path, module in _modules():
        all_ += [("function", path, name) for name, thing in _public(module) if callable(thing)]
    methods = {n for n in dir(T.Tensor) if not n.startswith("__") and n not in LEFT_OUT} | set(OPERATORS)
    for name in sorted(methods):
        thing = inspect.getattr_static(T.Tensor, name, None)
        attribute = isinstance(thing, (types.GetSetDescriptorType, property, types.MemberDescriptorType))
        all_.append(("attribute" if attribute else "method", "Tensor", name))
    all_ += [("object", "object", str(i)) for i in range(60)]
    return all_


CATALOGUES = {"calls": catalogue, "made": made.catalogue}


def _make_objects(source):
    x = source.fresh((2, 3), "float32").detach().requires_grad_()
    y = (x * 2).exp()
    makers = [
        lambda: y.grad_fn,
        lambda: x.sum().grad_fn.next_functions[0][0],
        lambda: y.grad_fn._raw_saved_result,
        lambda: T.Generator(),
        lambda: y.untyped_storage(),
        lambda: y.shape,
        lambda: y.dtype,
        lambda: y.device,
        lambda: y.register_hook(lambda g: g),
        lambda: T.no_grad(),
        lambda: T.finfo(T.float32),
        lambda: T.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
        lambda: T.max(x, 0),
        lambda: T.autograd.graph.get_gradient_edge(y),
        lambda: y.grad_fn.metadata,
    ]
    return source.one(makers)()


class Seed:
    """The calls of one seed: mostly one, sometimes a few on the same tensors and on what was made of them."""

    def __init__(self, seed, catalogue):
        _start_over()
        self.source = Source(random.Random(seed))
        self.catalogue = catalogue
        self.left = 1 if self.source.chance(0.7) else self.source.one([2, 3, 5])
        self.calls = []

    def __iter__(self):
        """Draws each call when the one before it was made; what could not be drawn is none."""
        while self.left:
            self.left -= 1
            try:
                call = Call(self.source, self.catalogue)
            except Exception:
                continue
            self.calls.append(call)
            yield call

    def __str__(self):
        return " ; ".join(map(str, self.calls))


class Call:
    """One call."""

    def __init__(self, source, catalogue):
        self.source = source
        self.kind, self.where, self.name = source.one(catalogue)
        self.args, self.keywords, self.raised = [], {}, False
        self.like = source.shape() if source.chance(0.6) else None
        self.dtype = source.one(["float32", "float64", "int64", "complex64"]) if source.chance(0.6) else None
        getattr(self, f"_draw_{self.kind}")()

    def _draw_function(self):
        self.target = getattr(made._module(self.where), self.name)
        if self.where in made.FUNCTIONS_OF:
            self.args, self.keywords = made.arguments(self.source, self.target)
        else:
            self._arguments(ROWS.get((self.name, self.where == "nn.functional")), self.target)

    def _draw_method(self):
        receiver = self._tensor()
        self.target = getattr(receiver, self.name)
        self.receiver = receiver
        row = ROWS.get((self.name.rstrip("_"), False)) or ROWS.get((self.name, False))
        self._arguments(row, self.target, skip=1)

    def _draw_attribute(self):
        receiver, name = self._tensor(), self.name
        how = self.source.random.random()
        if how < 0.3:
            self.target = lambda: getattr(receiver, name)
        elif how < 0.9:
            self.target, self.args = (lambda value: setattr(receiver, name, value)), [self.source.anything()]
        else:
            self.target = lambda: delattr(receiver, name)

    def _draw_object(self):
        thing = _make_objects(self.source)
        names = [n for n in dir(thing) if n not in LEFT_OUT]
        self.name = f"{type(thing).__name__}.{self.source.one(names)}"
        target = getattr(thing, self.name.split(".")[1])
        if callable(target):
            self.target = target
            self._arguments(None, target)
        else:
            self.target = lambda: getattr(thing, self.name.split(".")[1])

    def _draw_made(self):
        cls, source = getattr(made._module(self.where), self.name), self.source
        self.target = lambda *args, **keywords: made.use(source, cls(*args, **keywords))
        self.args, self.keywords = made.arguments(source, cls)

    def _draw_file(self):
        self.target = made.file(self.source, self.where)

    def _draw_sparse(self):
        self.receiver = made.sparse(self.source)
        self.target = getattr(self.receiver, self.name)
        others = [made.sparse(self.source) for _ in range(2)]
        row = ROWS.get((self.name.rstrip("_"), False)) or ROWS.get((self.name, False))
        self._arguments(row, self.target, skip=1)
        if self.source.chance(0.4):
            self.args = [self.source.one(others) if isinstance(a, T.Tensor) else a for a in self.args]

    def _tensor(self):
        if self.like is None:
            return self.source.tensor()
        shape = self.like
        if self.source.chance(0.15):
            shape = shape[self.source.random.randrange(len(shape) + 1) :]
        return self.source.tensor(shape, self.dtype if self.source.chance(0.8) else None)

    def _argument(self, kind, name):
        source = self.source
        if source.chance(0.12):
            return source.anything()
        if self.like is not None:
            if kind == "Tensor" and name in ("index", "indices", "target") and source.chance(0.8):
                return source.fresh(self.like, "int64")
            if kind == "Tensor" and name in ("mask", "condition") and source.chance(0.8):
                return source.fresh(self.like, "bool")
            if kind in ("Tensor", "Operand") and source.chance(0.85):
                return self._tensor()
            if kind in ("Int", "Ints") and name.startswith("dim") and source.chance(0.7):
                return source.random.randrange(-3, 3)
            if kind == "Int" and source.chance(0.6):
                return source.one(INTS)
        return source.of_kind(kind)

    def _arguments(self, row, target, skip=0):
        source = self.source
        if row is None:
            params = _params(target)
        else:
            params = [(name, kind, default is not None) for name, kind, _, default in row["params"]][skip:]
        if params is None or source.chance(0.05):
            self.args = [source.anything() for _ in range(source.one([0, 1, 1, 2, 2, 3, 4]))]
        else:
            by_name = False
            for name, kind, optional in params:
                if optional and source.chance(0.55):
                    by_name = True
                    continue
                by_name = by_name or source.chance(0.08)
                value = self._argument(kind, name)
                if by_name:
                    self.keywords[name] = value
                else:
                    self.args.append(value)
        if (row is not None and row["out"] and source.chance(0.3)) or source.chance(0.01):
            self.keywords["out"] = self._out()
        if source.chance(0.02):
            self.keywords[source.one(["dim", "input", "out", "dtype", "nonsense", "axis", "self", "generator"])] = (
                source.anything()
            )
        if source.chance(0.02) and self.args:
            self.args.pop()

    def _out(self):
        source = self.source
        if source.chance(0.7):
            return self._tensor() if source.chance(0.8) else source.anything()
        return tuple(self._tensor() if source.chance(0.9) else source.anything() for _ in range(source.one([1, 2, 2, 3])))

    def __str__(self):
        parts = [show(a) for a in self.args] + [f"{k}={show(v)}" for k, v in self.keywords.items()]
        receiver = f"{show(self.receiver)}." if hasattr(self, "receiver") else f"{self.kind} {self.where}."
        return f"{receiver}{self.name}({', '.join(parts)})"

    def run(self):
        """Makes the call; gives what is wrong, or nothing."""
        before = [(t, state(t)) for t in _distinct(self.source.tensors)]
        try:
            made = self.target(*self.args, **self.keywords)
        except BaseException as error:
            if wrong := broken(error):
                return wrong
            self.raised = True
            text = f"{type(error).__name__}: {error}"
            # A write into what cannot count it is refused when it is done, as in PyTorch.
            uncounted = "Inplace update to inference tensor" in text
            error = None
            # A list is written tensor by tensor, as in PyTorch.
            listed = self.where == "_foreach"
            if (
                not uncounted
                and not listed
                and self.name.split(".")[-1] not in WRITERS
                and self.where not in ("func", "autograd.functional")
            ):
                for t, was in before:
                    now = state(t)
                    if was is not None and now is not None and now != was:
                        return f"changed an argument, and raised {text[:200]}"
            return None
        try:
            if self.source.chance(0.5):
                look_at(made)
            self.source.keep(made)
        except BaseException as error:
            # To look at a part of a split raises where its base was written since, as in PyTorch.
            return broken(error)
        return None


def broken(error):
    """What no exception may be: a panic, or an end of the process."""
    text = f"{type(error).__name__}: {error}"[:300]
    if type(error).__name__ == "PanicException" or "internal check of gradiron failed" in text:
        return f"panic: {text}"
    if isinstance(error, (SystemExit, KeyboardInterrupt)):
        return f"left by {text}"
    return None


def _distinct(tensors):
    return list({id(t): t for t in tensors}.values())


def state(t):
    """What a refused call must leave as it is."""
    try:
        place = (tuple(t.shape), t.stride(), t.storage_offset(), t.dtype, t.requires_grad)
        if t.numel() <= 100:
            plain = t.detach().resolve_conj().resolve_neg()
            return place, T._core.to_bytes(plain)
        return place
    except Exception:
        return None


def look_at(made, depth=0):
    """Reads what a call gave, so that memory that is not there is noticed."""
    if isinstance(made, T.Tensor):
        if made.numel() < 100_000:
            T._core.to_bytes(made.detach().cpu().resolve_conj().resolve_neg())
        if made.numel() < 20:
            repr(made)
    elif isinstance(made, (tuple, list)) and depth < 3:
        for part in made[:20]:
            look_at(part, depth + 1)


_SIGNATURES = {}


def _params(target):
    key = getattr(target, "__func__", target)
    try:
        known = _SIGNATURES.get(key, 0)
    except TypeError:
        return None
    if known == 0:
        try:
            parameters = list(inspect.signature(target).parameters.values())
        except (TypeError, ValueError):
            parameters = None
        known = parameters and [
            (p.name, _guess(p.name), p.default is not p.empty)
            for p in parameters
            if p.kind in (0, 1, 3) and p.name not in COUNTS
        ]
        if parameters and any(p.kind == 2 for p in parameters):
            known = (known or []) + [("more", "Any", False), ("still_more", "Any", True)]
        _SIGNATURES[key] = known
    return known


def _guess(name):
    if name in ("input", "other", "tensor", "self", "target", "weight", "x", "output", "outputs", "inputs", "a", "b", "mat"):
        return "Tensor"
    if name in ("func", "function", "fn", "f"):
        return "Function"
    if name.startswith("dim") or name in ("k", "n", "size", "chunk_size", "level"):
        return "Int"
    return "Any"


def show(value, depth=0):
    """An argument as text, without asking it much."""
    if isinstance(value, T.Tensor):
        try:
            lazy = "".join(f" {n}" for n in ("is_conj", "is_neg") if getattr(value, n)())
            values = value.detach().reshape(-1)[:6].tolist() if value.numel() <= 64 else "…"
            return (
                f"<{type(value).__name__} {tuple(value.shape)} {value.dtype} stride {value.stride()} at {value.storage_offset()}"
                f"{' grad' if value.requires_grad else ''}{lazy} {values}>"
            )
        except BaseException as error:
            return f"<tensor, {error}>"
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        if depth > 3:
            return "[…]"
        return "[" + ", ".join(show(v, depth + 1) for v in value[:8]) + (f", … {len(value)}" if len(value) > 8 else "") + "]"
    try:
        return repr(value)[:100]
    except BaseException:
        return f"<{type(value).__name__}>"


def _start_over():
    """What one call may have left for the next."""
    warnings.simplefilter("ignore")
    T.set_default_dtype(T.float32)
    T.set_grad_enabled(True)
    T.manual_seed(0)
