"""Draws from what changes tensors and graphs behind each other's back: writes through chains of views, `out=` into views,
other memory under a tensor, hooks that act, gradients of parts of a graph. The other generators' programs stay what they are."""

from .generate import IN_PLACE
from .wide import PAIRS, Wide

FUNCTIONS = (
    "Triple_.apply({part})",
    "Dirty_.apply({part})",
    "Both_.apply({a}, {b})[{n}]",
    "Both_.apply({part}, {b})[{n}]",
    "Inner_.apply({part})",
    "Sliced.apply({a})[{n}]",
    "Halves.apply({a})[{n}]",
    "Unused.apply({a}, {b})[{n}]",
    "Deferred.apply({a}, {b})",
)


class Deep(Wide):
    def __init__(self, seed, machine):
        super().__init__(seed, machine)
        others = (self.forward_mode, self.transform, self.jacobian, self.more_dtypes, self.introspection)
        self.kinds = (
            *(kind for kind in self.kinds if kind[0] not in others),
            (self.chain, 6),
            (self.write_part, 14),
            (self.write_into, 6),
            (self.memory, 4),
            (self.acting_hook, 6),
            (self.odd_function, 5),
            (self.part_of_backward, 6),
            (self.part_of_gradient, 6),
            (self.region, 5),
        )

    def part(self, name):
        """Views of views of a tensor, as an expression."""
        t, text = self.get(name), name
        for _ in range(self.r.randrange(1, 4)):
            step = self.step(t)
            try:
                # The views of a copy that nobody else has: the shape is all that is asked for.
                t = eval("t" + step, {"t": t.detach().clone(), "T": self.machine.T})
            except Exception:
                return text + step
            text += step
        return text

    def step(self, t):
        d = self.r.randrange(-t.dim(), t.dim()) if t.dim() else 0
        n = t.shape[d] if t.dim() else 1
        return self.r.choice(
            (
                f"[{self.index(t)}]",
                f"[{self.index(t)}]",
                ".t()" if t.dim() < 3 else ".mT",
                f".transpose({d}, 0)",
                ".view(-1)",
                ".flatten()",
                f".unsqueeze({d})",
                ".squeeze()",
                f".narrow({d}, 0, {max(n - 1, 0)})",
                f".select({d}, {self.r.randrange(max(n, 1))})",
                f".split(1, {d})[0]",
                f".unbind({d})[0]",
                f".chunk(2, {d})[0]",
                ".diagonal()",
                ".detach()",
                f".expand(2, *{tuple(t.shape)})",
                ".data",
                f".unflatten({d}, (1, {n}))",
                f".movedim({d}, 0)",
                f".view({tuple(t.shape)})",
            )
        )

    def chain(self):
        return f"{self.new()} = {self.part(self.pick())}"

    def write_part(self):
        a = self.pick()
        part, other = self.part(a), self.mate(a)
        number = self.r.choice(("0.5", "2", "-1"))
        line = self.r.choice(
            (
                f"{part}.{self.r.choice(IN_PLACE)}",
                f"{part}.{self.r.choice(IN_PLACE)}",
                f"{part}.{self.r.choice(('add_', 'mul_', 'sub_', 'copy_', 'div_'))}({other})",
                f"{part}.{self.r.choice(('add_', 'mul_', 'sub_', 'copy_', 'div_'))}({self.part(other)})",
                f"{part}.copy_({other}.{self.r.choice(('float()', 'long()', 'double()', 'bool()', 'half()'))})",
                f"{part}.fill_({number})",
                f"{part}.fill_({other}.sum())",
                f"{part}.masked_fill_({part} > 0, {number})",
                f"{part}.masked_fill_({part} > 0, {other}.sum())",
                f"{part}.masked_scatter_({part} > 0, {other})",
                f"{part}.index_put_((T.tensor([0]),), {other})",
                f"{part}.index_put_((T.tensor([0]),), {other}, accumulate=True)",
                f"{part}.index_add_(0, T.tensor([0]), {other})",
                f"{part}.index_fill_(0, T.tensor([0]), {number})",
                f"{part}.index_copy_(0, T.tensor([0]), {other})",
                f"{part}.put_(T.tensor([0]), T.tensor([0.5], dtype={a}.dtype))",
                f"{part}.addcmul_({other}, {other}, value=0.5)",
                f"{part}.lerp_({other}, 0.5)",
                f"{part}.clamp_(min=0).mul_(2)",
                f"{part}.scatter_(0, T.zeros_like({part}, dtype=T.int64), {number})",
                f"{part}[{self.index(self.get(a))}] = {other}",
                f"{part}[...] = {self.part(other)}",
                f"{part}.where({part} > 0, {other}).mul_(2)",
            )
        )
        return line if self.r.random() < 0.85 else f"with T.no_grad(): {line}"

    def write_into(self):
        a, b = self.pick(), self.pick()
        into = self.r.choice((b, self.part(b), self.part(b)))
        line = self.r.choice(
            (
                f"T.add({a}, {self.mate(a)}, out={into})",
                f"T.mul({a}, 2, out={into})",
                f"T.exp({a}, out={into})",
                f"T.sum({a}, 0, out={into})",
                f"T.cat([{a}, {a}], out={into})",
                f"T.stack([{a}], out={into})",
                f"T.matmul({a}, {a}.mT, out={into})",
                f"T.gt({a}, 0, out={into})",
            )
        )
        return line if self.r.random() < 0.5 else f"with T.no_grad(): {line}"

    def memory(self):
        a, b = self.pick(), self.pick()
        return self.r.choice(
            (
                f"{a}.data = {b}.data",
                f"{a}.data = {self.part(b)}.data",
                f"{a}.data = {self.literal(self.get(b).shape)}",
                f"{self.part(a)}.data = {b}.data",
                f"{a}.data.add_(1)",
                f"{a}.detach()[...] = 0.5",
                f"{a}.set_({b}.detach())",
                f"with T.no_grad(): {a}.set_({b})",
                f"{a}.detach().resize_({self.r.randrange(4)})",
                f"with T.no_grad(): {a}.resize_({max(self.get(a).numel() - 1, 0)})",
                f"{a}.grad = {self.part(b)}",
                f"{a}.grad.detach_()",
                f"{a}.grad.data.mul_(2)",
                f"{self.new()} = {a}.grad.clone()",
                f"{a}.requires_grad_({self.r.choice(('True', 'False'))}).mul_(2)",
                f"{self.new()} = {self.part(a)}.clone().requires_grad_()",
                f"{self.new()} = {a}.detach().clone().requires_grad_()",
            )
        )

    def acting_hook(self):
        a, b = self.recorded(), self.recorded()
        self.hooks += 1
        h, old = f"h{self.hooks}", f"h{self.r.randrange(1, self.hooks + 1)}"
        log = f"log({h!r}, g)"
        return self.r.choice(
            (
                f"{h} = {a}.register_hook(lambda g: {old}.remove())",
                f"{h} = {a}.register_hook(lambda g: {a}.register_hook(lambda g: {log}) and None)",
                f"{h} = {a}.register_hook(lambda g: T.autograd.grad(({b} * 2).sum(), {b})[0].sum() * g)",
                f"{h} = {a}.register_hook(lambda g: (g * 3).requires_grad_())",
                f"{h} = {a}.register_hook(lambda g: g.view(g.shape))",
                f"{h} = {a}.register_hook(lambda g: log({h!r}, {a}.grad, {b}.requires_grad))",
                f"{h} = {a}.register_hook(lambda g: {b}.detach().mul_(2) and None)",
                f"{h} = {a}.register_post_accumulate_grad_hook(lambda t: 1 / 0)",
                f"{h} = {a}.register_post_accumulate_grad_hook(lambda t: t.detach().sub_(t.grad * 0.1) is None or None)",
                f"{h} = {a}.register_post_accumulate_grad_hook(lambda t: setattr(t, 'grad', t.grad * 2))",
                f"{h} = {a}.register_post_accumulate_grad_hook(lambda t: log({h!r}, T.autograd.grad((t * t).sum(), t)))",
                f"{h} = {a}.grad_fn.register_hook(lambda gi, go: 1 / 0)",
                f"{h} = {a}.grad_fn.register_hook(lambda gi, go: tuple(None for g in gi))",
                f"{h} = {a}.grad_fn.register_hook(lambda gi, go: (gi[0],) * (len(gi) + 1))",
                f"{h} = {a}.grad_fn.register_hook(lambda gi, go: log({h!r}, [g is None for g in gi], [g is None for g in go]))",
                f"{h} = {a}.grad_fn.register_prehook(lambda go: (go[0],) * (len(go) + 1))",
                f"{h} = {a}.grad_fn.register_prehook(lambda go: log({h!r}, [g is None for g in go]))",
                f"{h} = {a}.grad_fn.register_prehook(lambda go: 1 / 0)",
                f"{h} = T.autograd.graph.register_multi_grad_hook([{a}, {b}], lambda gs: log({h!r}, [g is None for g in gs]))",
                f"{h} = T.autograd.graph.register_multi_grad_hook([{a}, {b}], lambda g: 1 / 0, mode='any')",
                f"{old}.remove()",
                f"{old}.remove()",
                f"{a}.retain_grad()",
                f"{self.part(a)}.retain_grad()",
            )
        )

    def odd_function(self):
        a = self.floating()
        line = self.r.choice(FUNCTIONS).format(a=a, b=self.mate(a), n=self.r.randrange(2), part=self.part(a))
        line = f"{self.new()} = {line}"
        return line if self.r.random() < 0.9 else f"with T.no_grad(): {line}"

    def part_of_backward(self):
        a, b, c = self.recorded(), self.recorded(), self.recorded()
        keep = self.r.choice((", retain_graph=True", ", retain_graph=True", ", create_graph=True", ""))
        return self.r.choice(
            (
                f"{a}.sum().backward(inputs=[{b}, {c}]{keep})",
                f"{a}.sum().backward(inputs={b}{keep})",
                f"{a}.backward(T.ones_like({a}), inputs=[{b}]{keep})",
                f"T.autograd.backward([{a}, {b}], [T.ones_like({a}), {b}.detach()]{keep})",
                f"T.autograd.backward([{a}.sum(), {a}.sum()], inputs=[{b}]{keep})",
                f"T.autograd.backward([{a}.sum(), {b}.sum()], [None, T.tensor(2.0, dtype={b}.dtype)]{keep})",
                f"({a}.sum() * {b}.sum()).backward({keep[2:]})",
                f"with T.no_grad(): {a}.sum().backward({keep[2:]})",
                f"with T.inference_mode(): {a}.backward(T.ones_like({a}){keep})",
            )
        )

    def part_of_gradient(self):
        a, b, c = self.recorded(), self.recorded(), self.recorded()
        keep = self.r.choice(("retain_graph=True", "retain_graph=True", "create_graph=True"))
        unused = self.r.choice(("", ", allow_unused=True", ", allow_unused=True", ", materialize_grads=True"))
        two = f"{self.new()}, {self.new()} = "
        return self.r.choice(
            (
                f"{two}T.autograd.grad([{a}.sum(), {c}.sum()], [{b}, {a}], {keep}{unused})",
                f"{two}T.autograd.grad({a}, [{b}, {b}], T.ones_like({a}), {keep}{unused})",
                f"{two}T.autograd.grad({a}.sum(), ({c}, {self.part(b)}), {keep}{unused})",
                f"{self.new()}, = T.autograd.grad({a}, {b}, {self.mate(a)}, {keep}{unused})",
                f"{self.new()}, = T.autograd.grad([{a}, {b}], [{c}], [{a}.detach(), None], {keep}{unused})",
                f"{self.new()}, = T.autograd.grad({a}.sum(), T.autograd.graph.get_gradient_edge({b}), {keep}{unused})",
                f"{self.new()}, = T.autograd.grad({a}, {b}, T.eye({a}.numel(), dtype={a}.dtype).view(-1, *{a}.shape), "
                f"{keep}{unused}, is_grads_batched=True)",
                f"{self.new()} = sum(g.sum() for g in T.autograd.grad(({a} * {a}).sum(), [{b}, {c}], {keep}{unused}))",
            )
        )

    def region(self):
        """A line, or two, in a place where other rules hold."""
        a = self.floating()
        line = self.r.choice((self.write_part, self.write_into, self.odd_function, self.chain, self.in_place, self.backward))()
        while line.startswith("with "):
            line = self.in_place()
        self.hooks += 1
        guard = self.r.choice(
            (
                "T.no_grad(), T.enable_grad()",
                "T.set_grad_enabled(False)",
                "T.inference_mode()",
                "T.inference_mode(False)",
                f"T.autograd.graph.saved_tensors_hooks(lambda t: log('k{self.hooks}', t) or t, lambda t: t)",
                "T.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t)",
                "T.autograd.graph.save_on_cpu()",
                "T.autograd.set_multithreading_enabled(False)",
                "T.autograd.detect_anomaly(check_nan=False)",
            )
        )
        if self.r.random() < 0.25:
            body = f"lambda x, y: {self.r.choice((*PAIRS, 'x.clone().mul_(y)', 'x[...].mul(y)', 'x.clone()[...].add_(y)'))}"
            reentrant = self.r.choice(("True", "False", "False"))
            line = f"{self.new()} = T.utils.checkpoint.checkpoint({body}, {a}, {self.mate(a)}, use_reentrant={reentrant})"
        return f"with {guard}: {line}"
