"""Runs a program, a list of lines of Python over `T`, and says what can be seen of it after each line.

A line that raises leaves the program running: what an error leaves behind must agree, too.
"""

import math
import re
import warnings

FUNCTIONS = """
class Double(T.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2

class Product(T.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        log("needs", ctx.needs_input_grad)
        return (g * b).sum_to_size(a.shape), (g * a).sum_to_size(b.shape)

class Exponential(T.autograd.Function):
    @staticmethod
    def forward(x):
        return x.exp()
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y

class Triple_(T.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3)
    @staticmethod
    def backward(ctx, g):
        return g * 3

class Parts(T.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        whole = x.long() if x.is_floating_point() else x
        ctx.mark_non_differentiable(whole)
        ctx.save_for_backward(x)
        return x * x, x + 1, whole
    @staticmethod
    def backward(ctx, g, h, _):
        (x,) = ctx.saved_tensors
        return 2 * x * g + h

class Same(T.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        return x, y.view_as(y)
    @staticmethod
    def backward(ctx, g, h):
        log("same", g is None, h is None)
        return g, h

class Once(T.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale=2):
        ctx.scale = scale
        ctx.save_for_backward(x)
        return x.sin() * scale
    @staticmethod
    @T.autograd.function.once_differentiable
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].cos() * ctx.scale, None

class Part(T.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x[..., :1]
    @staticmethod
    def backward(ctx, g):
        return g.expand(ctx.shape)

class Alias(T.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)
    @staticmethod
    def backward(ctx, g):
        return g * 5

class Dirty_(T.autograd.Function):
    @staticmethod
    def forward(x):
        return x.add_(1)
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_dirty(*inputs)
        ctx.save_for_backward(output)
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y.cos()

class Tangent(T.autograd.Function):
    generate_vmap_rule = True
    @staticmethod
    def forward(x):
        return x.sin()
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.cos()
    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return t * x.cos()

class Shared(T.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        z = x * y
        ctx.save_for_backward(x, y, z)
        return z, z
    @staticmethod
    def backward(ctx, g, h):
        x, y, z = ctx.saved_tensors
        log("shared", g, h)
        return ((g + h) * y).sum_to_size(x.shape), None

class Nested(T.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        with T.enable_grad():
            ctx.inner = x.detach().requires_grad_()
            ctx.outer = ctx.inner * ctx.inner
        return ctx.outer.detach()
    @staticmethod
    def backward(ctx, g):
        return T.autograd.grad(ctx.outer, ctx.inner, g, retain_graph=True)[0]

class Kept(T.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, None, y)
        return (x * y.exp()).sum()
    @staticmethod
    def backward(ctx, g):
        x, _, y = ctx.saved_tensors
        return (g * y.exp()).expand_as(x) if ctx.needs_input_grad[0] else None, (g * x * y.exp()).sum_to_size(y.shape)

class Both_(T.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        x.mul_(2)
        y.add_(1)
        ctx.mark_dirty(x, y)
        return x, y
    @staticmethod
    def backward(ctx, g, h):
        return g * 2, h

class Inner_(T.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.view(-1)[:1].mul_(2)
        ctx.mark_dirty(x)
        return x
    @staticmethod
    def backward(ctx, g):
        g = g.clone()
        g.view(-1)[:1].mul_(2)
        return g

class Sliced(T.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x[..., :1], x[..., 1:].clone()
    @staticmethod
    def backward(ctx, g, h):
        return T.cat([g, h], -1).expand(ctx.shape)

class Halves(T.autograd.Function):
    @staticmethod
    def forward(x):
        return tuple((x * 2).view(-1).tensor_split(2))
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.shape = inputs[0].shape
    @staticmethod
    def backward(ctx, g, h):
        return T.cat([g, h]).view(ctx.shape) * 2

class Unused(T.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(y)
        return x * y, y.detach() * 1
    @staticmethod
    def backward(ctx, g, h):
        log("unused", g, h, ctx.needs_input_grad)
        (y,) = ctx.saved_tensors
        return (g * y).sum_to_size(y.shape) if g.shape == y.shape else None, None

class Deferred(T.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.x, ctx.y = x.detach(), y.detach()
        return x + y
    @staticmethod
    def backward(ctx, g):
        log("deferred", ctx.x._version, T.is_grad_enabled())
        return g.sum_to_size(ctx.x.shape).mul(2), g.sum_to_size(ctx.y.shape)

def forward_mode(f, x, tangent):
    with T.autograd.forward_ad.dual_level():
        return T.autograd.forward_ad.unpack_dual(f(T.autograd.forward_ad.make_dual(x, tangent)))

class Wrong(T.autograd.Function):
    @staticmethod
    def forward(ctx, x, how):
        ctx.how = how
        return x * 1
    @staticmethod
    def backward(ctx, g):
        if ctx.how == "raise":
            raise ValueError("backward said no. Really")
        return {"count": g, "type": (3, None), "shape": (T.ones(7, 5), None), "none": (None, None), "extra": (g, g)}[ctx.how]
"""

NAME = re.compile(r"v\d+")


class Machine:
    def __init__(self, T):
        self.T, self.events, self.born = T, [], {}
        self.env = {"T": T, "log": self.log}
        exec(compile(FUNCTIONS, "functions", "exec"), self.env)

    def log(self, *what):
        self.events.append([self.plain(w) for w in what])

    def plain(self, value):
        if isinstance(value, self.T.Tensor):
            return [str(value.dtype), list(value.shape), value.detach().tolist()]
        if isinstance(value, (tuple, list)):
            return [self.plain(v) for v in value]
        return value

    def run(self, line):
        """None, or what the line raised: the type and the first sentence."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(line, "program", "exec"), self.env)
        except Exception as error:
            return [type(error).__name__, first_sentence(str(error))]
        finally:
            self.T.set_grad_enabled(True)
        return None

    def tensors(self):
        return {n: v for n, v in self.env.items() if NAME.fullmatch(n) and isinstance(v, self.T.Tensor)}

    def see(self):
        """Everything that can be seen of the program's tensors, and what its hooks said since the last look."""
        tensors = self.tensors()
        seen = {name: self.look(name, t, tensors) for name, t in tensors.items()}
        seen["events"], self.events = self.events, []
        return seen

    def look(self, name, t, tensors):
        def first(other):
            return next((n for n, o in tensors.items() if o is other), "?")

        def facts(which, t):
            seen = {key: attempt(look, t) for key, look in FACTS.items()}
            # How often an operator writes to its own result before anybody sees it is its own business.
            known, version = self.born.setdefault(which, (t, seen["version"]))
            if known is t and isinstance(version, int):
                seen["version"] -= version
            else:
                self.born[which] = (t, seen["version"])
                seen["version"] = 0
            return seen

        def grad():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                seen = None if t.grad is None else facts(("grad", name), t.grad)
            if seen:
                # A gradient may be a part of a larger one that nobody else holds.
                del seen["offset"]
            return seen

        seen = facts(name, t)
        seen["is"] = first(t)
        base = attempt(lambda: first(t._base) if t._is_view() else None)
        seen["base"] = base
        seen["grad"] = attempt(grad)
        return seen


FACTS = {
    "dtype": lambda t: str(t.dtype),
    "shape": lambda t: list(t.shape),
    "stride": lambda t: strides(t),
    "offset": lambda t: t.storage_offset() if t.numel() else None,
    "requires_grad": lambda t: t.requires_grad,
    "is_leaf": lambda t: t.is_leaf,
    "grad_fn": lambda t: None if t.grad_fn is None else t.grad_fn.name(),
    "output_nr": lambda t: t.output_nr,
    "version": lambda t: t._version,
    "retains_grad": lambda t: t.retains_grad,
    "values": lambda t: t.detach().tolist(),
}


# How far values of these may lie apart.
ROUGH = {"torch.float32": 2e-4, "torch.complex64": 2e-4, "torch.float16": 1e-2, "torch.bfloat16": 8e-2}


def attempt(look, *args):
    """What a look shows; looking at a view that must not be used any more raises."""
    try:
        return look(*args)
    except Exception as error:
        return [type(error).__name__, first_sentence(str(error))]


def strides(t):
    """The strides that matter: over a dimension of one element nobody steps."""
    return [s if n > 1 and t.numel() else None for n, s in zip(t.shape, t.stride())]


def is_error(seen):
    return len(seen) == 2 and all(isinstance(s, str) for s in seen)


def first_sentence(text):
    return re.split(r"\. |\.?\n", text.strip(), maxsplit=1)[0].rstrip(".").replace("gradiron", "torch")


def difference(expected, actual, where="", rtol=1e-6, strict=False):
    """The first place at which two observations differ, in words; None when they agree. Unless `strict`, the words of
    errors and the names of nodes may differ."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(k for k in actual if k not in expected)]:
            if not strict and key == "grad_fn":
                continue
            # Whether a gradient is a view of something that nobody has is the engine's own business.
            if key == "base" and "?" in (expected.get(key), actual.get(key)):
                continue
            if key not in actual or key not in expected:
                return f"{where}.{key}: {expected.get(key)!r}, but {actual.get(key)!r}"
            loose = max(rtol, ROUGH.get(expected.get("dtype"), 0))
            found = difference(expected[key], actual[key], f"{where}.{key}", loose, strict)
            if found:
                return found
        return None
    if isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        if not strict and is_error(expected) and is_error(actual):
            expected, actual = expected[:1], actual[:1]
        if len(expected) == len(actual):
            found = (difference(e, a, f"{where}[{i}]", rtol, strict) for i, (e, a) in enumerate(zip(expected, actual)))
            return next((f for f in found if f), None)
    elif isinstance(expected, complex) and isinstance(actual, complex):
        found = difference([expected.real, expected.imag], [actual.real, actual.imag], where, rtol, strict)
        return None if found is None else f"{where}: {expected!r}, but {actual!r}"
    elif isinstance(expected, float) and isinstance(actual, float):
        if expected == actual or (math.isnan(expected) and math.isnan(actual)):
            return None
        if abs(expected - actual) <= 1e-6 + rtol * abs(expected):
            return None
    elif expected == actual and type(expected) is type(actual):
        return None
    return f"{where}: {expected!r}, but {actual!r}"
