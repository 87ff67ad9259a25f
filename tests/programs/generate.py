"""Makes random programs. Each line is drawn with the tensors that the program has so far in sight, so that most lines
make sense; some are wrong on purpose."""

from random import Random

SHAPES = ((), (2,), (3,), (4,), (2, 2), (2, 3), (3, 2), (1, 3), (2, 1), (2, 2, 3), (0,), (6,), (2, 2, 2))
UNARY = (
    "sin() cos() exp() tanh() sigmoid() relu() neg() abs() square() log() sqrt() clone() rsqrt() reciprocal() expm1() log1p() "
    "erf() sign() floor() round() frac() atan() sinh() softplus* gelu* silu* elu* leaky_relu* clamp(-0.5,0.5) clamp(min=0.25) "
    "pow(2) pow(3) pow(0.5) mul(2) add(1) div(3) sub(0.5) contiguous() nan_to_num() isnan() trunc() "
    "tril() triu() flip(0) roll(1) double() float() long() "
).split()
BINARY = "+ - * / **".split()
TWO = "add sub mul div maximum minimum atan2 fmod remainder hypot logaddexp".split()
COMPARE = "> < >= <= == !=".split()
REDUCE = (
    "sum mean prod amax amin max min std var norm logsumexp cumsum cumprod argmax softmax log_softmax median sort cummax "
    "any all argsort nansum"
).split()
IN_PLACE = (
    "mul_(2) add_(1) sub_(0.25) div_(2) exp_() sin_() neg_() zero_() fill_(0.5) relu_() sigmoid_() tanh_() abs_() square_() "
    "clamp_(-1,1) pow_(2) sqrt_() round_() t_() unsqueeze_(0) squeeze_() transpose_(0,-1) tril_() cumsum_(0) requires_grad_() "
    "requires_grad_(False) detach_() reciprocal_() clamp_(min=0) mul_(-1) floor_() log1p_()"
).split()
WITH = "add_ sub_ mul_ div_ copy_ atan2_ maximum".split()
FUNCTIONS = (
    "Double.apply({a})",
    "Product.apply({a}, {b})",
    "Exponential.apply({a})",
    "Triple_.apply({a})",
    "Parts.apply({a})[{n}]",
    "Same.apply({a}, {b})[{n}]",
    "Once.apply({a})",
    "Once.apply({a}, 3)",
    "Wrong.apply({a}, {how!r})",
)


class Generator:
    def __init__(self, seed, machine):
        self.r, self.machine, self.count = Random(seed), machine, 0
        self.hooks = 0
        self.kinds = (
            (self.leaf, 10),
            (self.unary, 10),
            (self.binary, 12),
            (self.reduce, 6),
            (self.view, 14),
            (self.read, 6),
            (self.write, 8),
            (self.in_place, 12),
            (self.matmul, 2),
            (self.no_grad, 3),
            (self.state, 5),
            (self.hook, 5),
            (self.function, 5),
            (self.backward, 9),
            (self.grad, 5),
            (self.join, 3),
            (self.gradient_slot, 3),
            (self.alias, 2),
        )

    def line(self):
        tensors = self.machine.tensors()
        if len(tensors) < 2:
            return self.leaf()
        kinds, weights = zip(*self.kinds)
        return self.r.choices(kinds, weights)[0]()

    def new(self):
        self.count += 1
        return f"v{self.count}"

    def pick(self, wanted=lambda t: True, tries=4):
        """A tensor's name; one that is `wanted` if luck will have it."""
        tensors = self.machine.tensors()
        names = list(tensors)
        for _ in range(tries):
            # Later tensors are likelier: graphs grow deep.
            name = names[max(self.r.randrange(len(names)), self.r.randrange(len(names)))]
            try:
                if wanted(tensors[name]):
                    return name
            except RuntimeError:  # a view that must not be used any more
                continue
        return name

    def floating(self):
        return self.pick(lambda t: t.is_floating_point())

    def recorded(self):
        return self.pick(lambda t: t.requires_grad)

    def get(self, name):
        return self.machine.env[name]

    def mate(self, name):
        """A tensor that broadcasts with this one, mostly."""
        shape = tuple(self.get(name).shape)
        return self.pick(lambda t: not t.shape or not shape or tuple(t.shape) == shape or tuple(t.shape) == shape[-1:], 8)

    def dim(self, name):
        n = self.get(name).dim()
        return self.r.randrange(-n, n) if n and self.r.random() < 0.96 else self.r.choice((0, 1, -1, 3))

    def values(self, shape, kind):
        if not shape:
            if kind == "bool":
                return self.r.random() < 0.5
            return self.r.randrange(-16, 17) / 8 if kind.startswith("float") else self.r.randrange(-3, 4)
        return [self.values(shape[1:], kind) for _ in range(shape[0])]

    def literal(self, shape, kind="float64"):
        return f"T.tensor({self.values(tuple(shape), kind)}, dtype=T.{kind})"

    def leaf(self):
        kind = self.r.choices(("float64", "float32", "int64", "bool"), (14, 4, 2, 1))[0]
        tensors = list(self.machine.tensors().values())
        shape = tuple(self.r.choice(tensors).shape) if tensors and self.r.random() < 0.5 else self.r.choice(SHAPES)
        grad = self.r.random() < (0.75 if kind.startswith("float") else 0.03)
        return f"{self.new()} = {self.literal(shape, kind)}" + (".requires_grad_()" if grad else "")

    def unary(self):
        a, op = self.floating(), self.r.choice(UNARY)
        if op.endswith("*"):
            return f"{self.new()} = T.nn.functional.{op[:-1]}({a})"
        return f"{self.new()} = {a}.{op}"

    def binary(self):
        a = self.pick()
        b = self.mate(a) if self.r.random() < 0.8 else self.r.choice(("2", "0.5", "-1.25", "True"))
        roll = self.r.random()
        if roll < 0.5:
            a, b = self.r.choice(((a, b), (b, a)))
            return f"{self.new()} = {a} {self.r.choice(BINARY)} {b}"
        if roll < 0.8:
            return f"{self.new()} = T.{self.r.choice(TWO)}({a}, {b})" if b.startswith("v") else f"{self.new()} = {a}.add({b})"
        if roll < 0.9:
            return f"{self.new()} = {a} {self.r.choice(COMPARE)} {b}"
        if b.startswith("v"):
            return f"{self.new()} = T.where({a} > 0, {a}, {b})"
        return f"{self.new()} = T.lerp({a}, {a}, 0.5)"

    def reduce(self):
        a, op = self.floating(), self.r.choice(REDUCE)
        d, keep = self.dim(a), self.r.choice((", keepdim=True", ""))
        if op in ("cumsum", "cumprod", "softmax", "log_softmax", "argsort"):
            return f"{self.new()} = {a}.{op}({d})"
        if op in ("sort", "cummax"):
            return f"{self.new()} = {a}.{op}({d})[{self.r.randrange(2)}]"
        if op in ("max", "min", "median") and self.r.random() < 0.6:
            return f"{self.new()} = {a}.{op}({d}{keep})[0]"
        if op == "norm":
            p = self.r.choice(("2", "1", "3", "float('inf')", "0"))
            return f"{self.new()} = {a}.norm({p}, {d}{keep})"
        if op == "logsumexp" or self.r.random() < 0.5:
            return f"{self.new()} = {a}.{op}({'dim=' if op in ('std', 'var') else ''}{d}{keep})"
        return f"{self.new()} = {a}.{op}()"

    def view(self):
        a = self.pick()
        t, d = self.get(a), self.dim(a)
        n = t.shape[d] if t.dim() and -t.dim() <= d < t.dim() else 1
        e = self.dim(a)
        start = self.r.randrange(n + 1)
        total = t.numel()
        sizes = self.r.choice(
            [s for s in ((-1,), (total,), (1, -1), (-1, 1), (2, -1), (total, 1), (-1, 2), (2, 2, -1), (3, -1)) if s]
        )
        order = list(range(t.dim()))
        self.r.shuffle(order)
        choices = [
            f"{a}.view({', '.join(map(str, sizes))})",
            f"{a}.reshape({', '.join(map(str, sizes))})",
            f"{a}.t()",
            f"{a}.transpose({d}, {e})",
            f"{a}.permute({', '.join(map(str, order)) or '()'})",
            f"{a}.unsqueeze({d})",
            f"{a}.squeeze()",
            f"{a}.squeeze({d})",
            f"{a}.expand(2, {', '.join(map(str, t.shape)) or '-1'})".replace(", -1)", ")" if not t.shape else ", -1)"),
            f"{a}.narrow({d}, {start}, {self.r.randrange(max(n - start, 0) + 1)})",
            f"{a}.select({d}, {self.r.randrange(max(n, 1))})",
            f"{a}.diagonal()",
            f"{a}.flatten()",
            f"{a}.unfold({d}, 1, 2)",
            f"{a}.view_as({self.pick()})",
            f"{a}.movedim({d}, {e})",
            f"{a}.detach()",
            f"{a}.unbind({d})[{self.r.randrange(max(n, 1))}]",
            f"{a}.split(1, {d})[{self.r.randrange(max(n, 1))}]",
            f"{a}.chunk(2, {d})[0]",
            f"{a}[{self.index(t)}]",
            f"{a}[{self.index(t)}]",
            f"{a}.mT",
            f"{a}.view({a}.shape)",
            f"{a}.as_strided((2,), (1,))" if total >= 2 and t.is_contiguous() else f"{a}.flatten(0)",
            f"{a}.expand_as({self.mate(a)})",
            f"{a}.unflatten({d}, (1, {n}))",
        ]
        return f"{self.new()} = {self.r.choice(choices)}"

    def index(self, t):
        """A basic index into `t`."""
        parts = []
        for n in t.shape[: self.r.randrange(t.dim() + 1)]:
            parts.append(self.r.choice((":", f"{self.r.randrange(max(n, 1))}", "1:", ":-1", "::2", "-1", "None", ":1")))
        if self.r.random() < 0.2:
            parts.append("...")
        if self.r.random() < 0.03:
            parts.append("7")
        return ", ".join(parts) or "..."

    def fancy(self, name):
        """An advanced index into a tensor."""
        t = self.get(name)
        n = t.shape[0] if t.dim() else 1
        some = [self.r.randrange(-n, n) if n else 0 for _ in range(self.r.randrange(1, 4))]
        return self.r.choice(
            (
                f"{name} > 0",
                f"T.tensor({some})",
                f"{some}",
                f"[{some[0]}, 0]",
                f"..., T.tensor({some})",
                f"T.tensor({some[0]})",
                f"T.tensor({some}), None",
                "None, True",
                f":, {some}",
            )
        )

    def read(self):
        a = self.floating()
        d = self.dim(a)
        t = self.get(a)
        n = t.shape[d] if t.dim() and -t.dim() <= d < t.dim() else 1
        some = [self.r.randrange(max(n, 1)) for _ in range(self.r.randrange(1, 4))]
        choices = [
            f"{a}[{self.fancy(a)}]",
            f"{a}[{self.fancy(a)}]",
            f"{a}.index_select({d}, T.tensor({some}))",
            f"{a}.gather({d}, T.zeros_like({a}, dtype=T.int64))",
            f"{a}.masked_fill({a} > 0.5, {self.r.choice(('0', '-1.5'))})",
            f"{a}.masked_select({a} < 0.5)",
            f"{a}.take_along_dim(T.zeros_like({a}, dtype=T.int64), {d})",
            f"{a}.index_add({d}, T.tensor({some}), {a}.index_select({d}, T.tensor({some})))",
            f"{a}.scatter_add({d}, T.zeros_like({a}, dtype=T.int64), {self.mate(a)})",
            f"{a}.repeat(2, 1)" if t.dim() < 3 else f"{a}.repeat_interleave(2)",
            f"{a}.to(T.{self.r.choice(('float32', 'float64', 'int64'))})",
        ]
        return f"{self.new()} = {self.r.choice(choices)}"

    def write(self):
        a = self.pick()
        t = self.get(a)
        where = self.index(t) if self.r.random() < 0.7 else self.fancy(a)
        source = self.r.choice(("0.5", "2", self.pick(), self.mate(a), f"{self.mate(a)}[{where}]", "T.tensor(1.5)"))
        d = self.dim(a)
        return self.r.choice(
            (
                f"{a}[{where}] = {source}",
                f"{a}[{where}] = {source}",
                f"{a}[{where}] {self.r.choice(('+=', '*=', '-='))} {source}",
                f"{a}[{where}].{self.r.choice(IN_PLACE)}",
                f"{a}.masked_fill_({a} > 0, 0.25)",
                f"{a}.index_fill_({d}, T.tensor([0]), 1.5)",
                f"{a}.scatter_({d}, T.zeros_like({a}, dtype=T.int64), {self.mate(a)})",
                f"{a}.index_add_({d}, T.tensor([0]), {self.mate(a)})",
                f"{a}.index_copy_({d}, T.tensor([0]), {self.mate(a)})",
                f"{a}.index_put_((T.tensor([0]),), T.tensor(0.5, dtype=T.float64), accumulate=True)",
            )
        )

    def in_place(self):
        a = self.pick(lambda t: t.is_floating_point() and not (t.is_leaf and t.requires_grad), 3)
        roll = self.r.random()
        if roll < 0.6:
            line = f"{a}.{self.r.choice(IN_PLACE)}"
        elif roll < 0.85:
            op = self.r.choice(WITH)
            line = f"{a}.{op}({self.mate(a)})" if op.endswith("_") else f"T.{op}({a}, {self.mate(a)}, out={self.mate(a)})"
        else:
            line = f"{a} {self.r.choice(('+=', '*=', '-=', '/='))} {self.r.choice((self.mate(a), '2', '0.5'))}"
        # The result of the call is another way to the same tensor.
        return f"{self.new()} = {line}" if roll < 0.1 else line

    def matmul(self):
        a = self.pick(lambda t: t.dim() > 0 and t.is_floating_point())
        b = self.pick(lambda t: t.dim() > 0 and t.dtype == self.get(a).dtype)
        return f"{self.new()} = " + self.r.choice(
            (
                f"{a} @ {b}",
                f"{a} @ {a}.mT",
                f"{a} @ {a}.transpose(-1, -2)",
                f"T.outer({a}.flatten(), {b}.flatten())",
                f"T.dot({a}.flatten(), {a}.flatten())",
                f"T.einsum('i,j->ij', {a}.flatten(), {b}.flatten())",
            )
        )

    def no_grad(self):
        guard = self.r.choices(("no_grad()", "set_grad_enabled(False)", "enable_grad()"), (6, 2, 1))[0]
        line = self.r.choice((self.view, self.view, self.in_place, self.write, self.unary, self.function, self.leaf))()
        return f"with T.{guard}: {line}"

    def state(self):
        a, b = self.pick(), self.pick()
        return self.r.choice(
            (
                f"{a}.requires_grad_()",
                f"{a}.requires_grad_(False)",
                f"{a}.requires_grad = True",
                f"{a}.retain_grad()",
                f"{a}.retain_grad()",
                f"{a}.detach_()",
                f"{self.new()} = {a}.detach()",
                f"{self.new()} = {a}.detach().requires_grad_()",
                f"{a}.data = {self.literal(self.get(a).shape)}.to({a}.dtype)",
                f"del {a}",
                f"{a}.set_({b})" if self.r.random() < 0.3 else f"{a}.detach().mul_(2)",
            )
        )

    def hook(self):
        a = self.recorded()
        self.hooks += 1
        h = f"h{self.hooks}"
        return self.r.choice(
            (
                f"{h} = {a}.register_hook(lambda g: log({h!r}, g))",
                f"{h} = {a}.register_hook(lambda g: g * 2)",
                f"{h} = {a}.register_hook(lambda g: g + 1)",
                f"{h} = {a}.register_hook(lambda g: log({h!r}, g, g.requires_grad))",
                f"{h} = {a}.register_hook(lambda g: {self.r.choice(('3', 'g.sum()', 'g.float()', '[g]', '1 / 0'))})",
                f"{h} = {a}.register_post_accumulate_grad_hook(lambda t: log({h!r}, t.grad))",
                f"{h} = {a}.grad_fn.register_hook(lambda gi, go: log({h!r}, len(gi), go))",
                f"{h} = {a}.grad_fn.register_prehook(lambda go: log({h!r}, go))",
                f"{h} = {a}.grad_fn.register_hook(lambda gi, go: tuple(None if g is None else g * 2 for g in gi))",
                f"{h} = {a}.grad_fn.register_prehook(lambda go: tuple(None if g is None else g * 2 for g in go))",
                f"h{self.r.randrange(1, self.hooks + 1)}.remove()",
            )
        )

    def function(self):
        a = self.floating()
        how = self.r.choice(("raise", "count", "type", "shape", "none", "extra"))
        line = self.r.choice(FUNCTIONS).format(a=a, b=self.mate(a), n=self.r.randrange(2), how=how)
        return f"{self.new()} = {line}"

    def backward(self):
        a = self.recorded()
        options = self.r.choice(
            (
                "",
                "retain_graph=True",
                "retain_graph=True",
                "create_graph=True",
                f"inputs=[{self.recorded()}]",
                f"inputs=[{self.recorded()}, {self.recorded()}], retain_graph=True",
            )
        )
        roll = self.r.random()
        if roll < 0.55:
            return f"{a}.sum().backward({options})"
        if roll < 0.65:
            return f"{a}.backward({options})"
        if roll < 0.85:
            comma = ", " if options else ""
            return f"{a}.backward({self.literal(self.get(a).shape)}{comma}{options})"
        b = self.recorded()
        return f"T.autograd.backward([{a}.sum(), {b}.sum()]{', ' + options if options else ''})"

    def grad(self):
        a, b, c = self.recorded(), self.recorded(), self.recorded()
        options = self.r.choice(
            (
                "",
                ", create_graph=True",
                ", create_graph=True, allow_unused=True",
                ", retain_graph=True, allow_unused=True",
                ", materialize_grads=True, retain_graph=True",
            )
        )
        if self.r.random() < 0.5:
            return f"{self.new()}, = T.autograd.grad({a}.sum(), {b}{options})"
        return f"{self.new()}, {self.new()} = T.autograd.grad({a}.sum(), [{b}, {c}]{options})"

    def join(self):
        a = self.floating()
        b = self.pick(lambda t: t.shape == self.get(a).shape)
        d = self.dim(a)
        return f"{self.new()} = " + self.r.choice(
            (
                f"T.cat([{a}, {b}], {d})",
                f"T.stack([{a}, {b}], {d})",
                f"T.stack([{a}, {a}])",
                f"T.cat([{a}.flatten(), {b}.flatten()])",
                f"T.addcmul({a}, {b}, {a})",
                f"T.nn.functional.mse_loss({a}, {b})",
                f"T.lerp({a}, {b}, 0.25)",
            )
        )

    def gradient_slot(self):
        a = self.recorded()
        return self.r.choice(
            (
                f"{a}.grad = None",
                f"{a}.grad = {self.literal(self.get(a).shape)}",
                f"{a}.grad = {self.mate(a)}",
                f"{a}.grad.zero_()",
                f"{self.new()} = {a}.grad",
                f"{a}.grad *= 2",
                f"with T.no_grad(): {a} -= 0.1 * {a}.grad",
            )
        )

    def alias(self):
        a = self.pick()
        return self.r.choice((f"{self.new()} = {a}", f"{a} = {self.pick()}", f"{a} = {a} * 2"))
