"""Draws from more of autograd than `generate`: hooks of saved values, transforms, forward mode, checkpoints, inference mode,
batched gradients, other dtypes. The programs of the plain generator stay what they are."""

from .generate import Generator

# Functions of one tensor, elementwise or not, for transforms.
MAPS = (
    "x * x",
    "x.sin() * 2",
    "x.exp().sum()",
    "(x * x).sum()",
    "x.tanh().mean()",
    "x.relu() + 1",
    "x.sigmoid() / (x * x + 1)",
    "x.flatten()",
    "x.clamp(-0.5, 0.5)",
    "x.unsqueeze(0) * x",
    "x.square().sqrt()",
    "x.softmax(-1)",
    "x.cumsum(-1)",
    "x.clone().mul_(3)",
    "x.detach() * x",
    "T.where(x > 0, x, -x)",
    "x @ x.mT",
    "x.reshape(-1)[0]",
    "x.std()",
    "x ** 3",
    "x.abs().log1p()",
)
PAIRS = (
    "x * y",
    "x - y.sin()",
    "T.maximum(x, y)",
    "(x * y).sum()",
    "x / (y * y + 1)",
    "T.hypot(x, y)",
    "x @ y.mT",
    "x.exp() + y",
)
FUNCTIONS = (
    "Part.apply({a})",
    "Alias.apply({a})",
    "Dirty_.apply({a})",
    "Tangent.apply({a})",
    "Shared.apply({a}, {b})[{n}]",
    "Nested.apply({a})",
    "Kept.apply({a}, {b})",
)


class Wide(Generator):
    def __init__(self, seed, machine):
        super().__init__(seed, machine)
        self.kinds = (
            *self.kinds,
            (self.more_hooks, 4),
            (self.saved_hooks, 4),
            (self.inference, 2),
            (self.checkpoint, 4),
            (self.more_functions, 5),
            (self.batched_gradient, 2),
            (self.forward_mode, 4),
            (self.transform, 6),
            (self.jacobian, 2),
            (self.more_indexing, 5),
            (self.resized, 2),
            (self.more_dtypes, 4),
            (self.introspection, 2),
        )

    def full(self):
        """A tensor with elements, if luck will have it: transforms of nothing differ in which error comes first."""
        return self.pick(lambda t: t.is_floating_point() and t.numel() > 0, 12)

    def map(self):
        return f"lambda x: {self.r.choice(MAPS)}"

    def more_hooks(self):
        a, b = self.recorded(), self.recorded()
        self.hooks += 1
        h = f"h{self.hooks}"
        return self.r.choice(
            (
                f"{h} = T.autograd.graph.register_multi_grad_hook(({a}, {b}), lambda gs: log({h!r}, [g for g in gs]))",
                f"{h} = T.autograd.graph.register_multi_grad_hook(({a}, {b}), lambda g: log({h!r}, g), mode='any')",
                f"{h} = {a}.register_hook(lambda g: g.mul_(2))",
                f"{h} = {a}.register_hook(lambda g: g.clone().zero_())",
                f"{h} = {a}.register_post_accumulate_grad_hook(lambda t: t.grad.mul_(2))",
                f"{h} = {a}.register_post_accumulate_grad_hook(lambda t: setattr(t, 'grad', None))",
                f"{h} = {a}.register_hook(lambda g: log({h!r}, {b}.grad))",
                f"{h} = {a}.register_hook(lambda g: ({b} * 1).sum().backward(retain_graph=True))",
                f"{h} = {a}.grad_fn.next_functions[0][0].register_hook(lambda gi, go: log({h!r}, len(gi), len(go)))",
                f"{h} = {a}.grad_fn.next_functions[0][0].register_prehook(lambda go: tuple(g if g is None else g * 2 for g in go))",
            )
        )

    def plain_line(self):
        return self.r.choice((self.unary, self.binary, self.reduce, self.matmul, self.join, self.function, self.read))()

    def saved_hooks(self):
        self.hooks += 1
        pack, unpack = self.r.choice(
            (
                ("lambda t: t", "lambda t: t"),
                ("lambda t: t.clone()", "lambda t: t"),
                ("lambda t: t.detach()", "lambda t: t"),
                ("lambda t: [t]", "lambda p: p[0]"),
                (f"lambda t: log('p{self.hooks}', t) or t", "lambda t: t"),
                ("lambda t: t", f"lambda t: log('u{self.hooks}', t) or t"),
                ("lambda t: t", "lambda t: t * 2"),
                ("lambda t: 1 / 0", "lambda t: t"),
            )
        )
        guard = self.r.choice(
            (
                f"saved_tensors_hooks({pack}, {unpack})",
                f"saved_tensors_hooks({pack}, {unpack})",
                f"saved_tensors_hooks({pack}, {unpack})",
                "save_on_cpu()",
                "disable_saved_tensors_hooks('no')",
                "allow_mutation_on_saved_tensors()",
            )
        )
        return f"with T.autograd.graph.{guard}: {self.plain_line()}"

    def inference(self):
        line = self.r.choice((self.view, self.unary, self.binary, self.in_place, self.write, self.function))()
        return f"with T.inference_mode(): {line}"

    def checkpoint(self):
        a = self.floating()
        reentrant = self.r.choice(("True", "False", "False"))
        if self.r.random() < 0.5:
            body, arguments = self.map(), a
        else:
            body, arguments = f"lambda x, y: {self.r.choice(PAIRS)}", f"{a}, {self.mate(a)}"
        line = f"{self.new()} = T.utils.checkpoint.checkpoint({body}, {arguments}, use_reentrant={reentrant})"
        return line if self.r.random() < 0.85 else f"with T.no_grad(): {line}"

    def more_functions(self):
        a = self.floating()
        line = self.r.choice(FUNCTIONS).format(a=a, b=self.mate(a), n=self.r.randrange(2))
        return f"{self.new()} = {line}"

    def batched_gradient(self):
        a, b = self.recorded(), self.recorded()
        options = self.r.choice(("retain_graph=True", "create_graph=True", "retain_graph=True, allow_unused=True"))
        return (
            f"{self.new()}, = T.autograd.grad({a}, {b}, T.stack([T.ones_like({a}), {a}.detach() * 2]), {options}, "
            "is_grads_batched=True)"
        )

    def forward_mode(self):
        a = self.floating()
        tangent = self.r.choice((f"T.ones_like({a})", f"{a}.detach() * 2", self.mate(a)))
        body = self.r.choice((self.map(), f"lambda x: x * {self.mate(a)}", f"lambda x: T.atan2({self.mate(a)}, x)"))
        part = self.r.choice(("tangent", "tangent", "primal"))
        return f"{self.new()} = forward_mode({body}, {a}, {tangent}).{part}"

    def transform(self):
        a = self.full()
        f, g = self.map(), self.map()
        return f"{self.new()} = " + self.r.choice(
            (
                f"T.func.grad(lambda x: ({f})(x).sum())({a})",
                f"T.func.grad_and_value({f})({a})[{self.r.randrange(2)}]",
                f"T.func.vmap({f})({a})",
                f"T.func.vmap({f}, in_dims={self.dim(a)})({a})",
                f"T.func.vmap({f}, out_dims={self.dim(a)})({a})",
                f"T.func.vmap(T.func.grad(lambda x: ({f})(x).sum()))({a})",
                f"T.func.jvp({f}, ({a},), (T.ones_like({a}),))[{self.r.randrange(2)}]",
                f"T.func.vjp({f}, {a})[0]",
                f"T.func.vjp({f}, {a})[1]({a})[0]",
                f"T.func.jacrev({f})({a})",
                f"T.func.jacfwd({f})({a})",
                f"T.func.hessian(lambda x: ({f})(x).sum())({a})",
                f"T.func.grad(lambda x: (T.func.grad(lambda x: ({g})(x).sum())(x) * x).sum())({a})",
                f"T.func.vmap(lambda x, y: {self.r.choice(PAIRS)}, in_dims=(0, None))({a}, {self.mate(a)})",
                f"T.func.grad(lambda x: (x * {self.mate(a)}).sum())({a})",
            )
        )

    def jacobian(self):
        a = self.full()
        kind = self.r.choice(("jacobian", "hessian", "vjp", "jvp", "hvp", "vhp"))
        scalar = kind in ("hessian", "hvp", "vhp")
        body = f"lambda x: ({self.map()})(x)" + (".sum()" if scalar else "")
        options = self.r.choice(("", ", create_graph=True", ", strict=True"))
        if kind in ("jacobian", "hessian"):
            return f"{self.new()} = T.autograd.functional.{kind}({body}, {a}{options})"
        return f"{self.new()} = T.autograd.functional.{kind}({body}, {a}, {a}{options})[1]"

    def more_indexing(self):
        a = self.floating()
        t, d = self.get(a), self.dim(a)
        n = t.shape[d] if t.dim() and -t.dim() <= d < t.dim() else 1
        at = f"T.tensor({[self.r.randrange(max(n, 1)) for _ in range(n or 1)]})"
        where = (
            f"{at}.view({', '.join('-1' if i == d % max(t.dim(), 1) else '1' for i in range(t.dim())) or '()'}).expand_as({a})"
        )
        how = self.r.choice(("sum", "prod", "mean", "amax", "amin"))
        return f"{self.new()} = " + self.r.choice(
            (
                f"{a}.gather({d}, {where})",
                f"{a}.scatter({d}, {where}, {self.mate(a)})",
                f"{a}.scatter({d}, {where}, 1.5)",
                f"{a}.scatter_reduce({d}, {where}, {self.mate(a)}, {how!r})",
                f"{a}.scatter_add({d}, {where}, {self.mate(a)})",
                f"{a}.index_put(({at},), {self.mate(a)})",
                f"{a}.index_put(({at},), {self.mate(a)}, accumulate=True)",
                f"{a}.take(T.tensor([0, -1]))",
                f"{a}.put_(T.tensor([0]), T.tensor([0.5], dtype={a}.dtype))",
                f"{a}.index_copy({d}, {at}, {self.mate(a)})",
                f"{a}.index_fill({d}, {at}, 0.5)",
                f"{a}.masked_scatter({a} > 0, {self.mate(a)})",
                f"{a}.index_select({d}, {at})",
                f"{a}.tile(2)",
                f"{a}.rot90()",
                f"{a}.topk(1, {d})[0]",
                f"{a}.kthvalue(1, {d})[0]",
                f"{a}.diagonal_scatter(T.ones(2, dtype={a}.dtype))",
                f"{a}.select_scatter(T.ones(2, dtype={a}.dtype), 0, 0)",
                f"T.meshgrid({a}, {a}, indexing='ij')[0]",
                f"T.diag({a})",
            )
        )

    def resized(self):
        a, b = self.pick(), self.pick()
        return self.r.choice(
            (
                f"{a}.resize_(2)",
                f"{a}.resize_as_({b})",
                f"{a}.data = {b}.data",
                f"T.autograd.graph.increment_version({a})",
                f"{a}.data.mul_(2)",
                f"{self.new()} = {a}.data",
                f"{a}.swapaxes_(0, -1)",
                f"T.add({a}, {a}, out={b})",
                f"T.cat([{a}, {a}], out={b})",
                f"{a}.unsqueeze_(-1)",
            )
        )

    def more_dtypes(self):
        roll = self.r.random()
        a = self.pick()
        if roll < 0.35:
            kind = self.r.choice(("complex128", "complex64", "float16", "bfloat16", "int32", "uint8"))
            return f"{self.new()} = {a}.to(T.{kind})"
        a = self.pick(lambda t: t.is_complex(), 12)
        return f"{self.new()} = " + self.r.choice(
            (
                f"{a}.real",
                f"{a}.imag",
                f"{a}.conj()",
                f"{a}.abs()",
                f"{a}.angle()",
                f"{a} * {a}.conj()",
                f"{a} * 1j",
                f"T.view_as_real({a})",
                f"T.complex({a}, {a})",
                f"T.polar({a}, {a})",
                f"({a} * {a}).sum()",
                f"{a}.exp()",
                f"{a} @ {a}.mH",
                f"{a}.double()",
                f"{a}.resolve_conj()",
            )
        )

    def introspection(self):
        a, b = self.recorded(), self.recorded()
        return self.r.choice(
            (
                f"log([n is None for n, _ in {a}.grad_fn.next_functions])",
                f"log([i for _, i in {a}.grad_fn.next_functions])",
                f"{self.new()}, = T.autograd.grad({a}.sum(), T.autograd.graph.get_gradient_edge({b}), retain_graph=True)",
                f"T.autograd.backward(T.autograd.graph.get_gradient_edge({a}), T.ones_like({a}), retain_graph=True)",
                f"log(T.is_grad_enabled(), {a}.is_inference(), {a}.is_leaf, {a}.output_nr)",
                f"log({a}.grad_fn({a}.detach()) is None)",
                f"with T.autograd.set_grad_enabled(False): log({a}.requires_grad, ({a} * 2).requires_grad)",
                f"with T.autograd.detect_anomaly(check_nan=False): {a}.sum().backward(retain_graph=True)",
            )
        )
