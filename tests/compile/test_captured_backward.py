"""Backwards outside of compiled functions, which are captured in their turn: the bits, errors and effects of the usual engine."""

import copy
import gc
import resource
import threading
import warnings

import gradiron as torch
import gradiron.nn.functional as F
import pytest
from gradiron import nn
from gradiron.utils.checkpoint import checkpoint
from test_live_gradients import MODELS, equal
from test_random_programs import function, near, program, same

from library import NO_GPU


def explained(compiled):
    return torch._dynamo.explain(compiled)


def replays(compiled):
    """How often a captured backward was replayed."""
    found = explained(compiled)
    assert not found.break_reasons, found
    return found.backward_replays


def perceptron(*sizes):
    layers = []
    for before, after in zip(sizes, sizes[1:], strict=False):
        layers += [nn.Linear(before, after), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


def pair(make, seed=0):
    """Two equal models, the second compiled."""
    torch.manual_seed(seed)
    model = make()
    other = copy.deepcopy(model)
    return model, other, torch.compile(other)


def gradients(model):
    return [p.grad for p in model.parameters()]


def check(model, other):
    assert all(map(equal, gradients(other), gradients(model)))


# Bits.


@pytest.mark.parametrize("name", MODELS)
def test_captured_backwards_give_the_bits_of_the_engine(name):
    make, batch, loss_of, _ = MODELS[name]
    model, other, compiled = pair(make)
    for at in range(8):
        torch.manual_seed(at)
        x, y = batch()
        for call, own in ((model, model), (compiled, other)):
            torch.manual_seed(at)
            own.zero_grad()
            loss_of(call(x), y).backward()
        check(model, other)
    assert replays(compiled) == 4 and explained(compiled).backward_count == 1


def test_what_explain_tells():
    model = perceptron(4, 8, 1)
    compiled, x = torch.compile(model), torch.randn(5, 4)
    for _ in range(6):
        compiled(x).sum().backward()
    found = explained(compiled)
    assert (found.backward_count, found.backward_replays, found.backward_reason) == (1, 2, None)
    assert found.backward_op_count >= found.backward_unit_count > 3
    assert "backwards outside: 1 captures, 2 replays; kernels: " in str(found)


def test_gradients_are_added_to_those_that_are_there():
    model, other, compiled = pair(lambda: perceptron(4, 8, 1))
    for at in range(12):
        x = torch.randn(3, 4)
        if at % 3 == 0:
            model.zero_grad(set_to_none=at % 2 == 0)
            other.zero_grad(set_to_none=at % 2 == 0)
        model(x).square().sum().backward()
        compiled(x).square().sum().backward()
        check(model, other)
    # Whether there is a .grad is guarded: two captures of the forward.
    assert replays(compiled) > 3


def test_a_gradient_that_is_there_is_written_in_place():
    model = perceptron(4, 8, 1)
    compiled, x = torch.compile(model), torch.randn(3, 4)
    compiled(x).sum().backward()
    kept = gradients(model)
    versions = [grad._version for grad in kept]
    for _ in range(5):
        compiled(x).sum().backward()
    assert all(one is other for one, other in zip(gradients(model), kept, strict=True))
    assert [grad._version - version for grad, version in zip(kept, versions, strict=True)] == [5] * 4
    assert replays(compiled) == 2


class Tied(nn.Module):
    """One weight that is used three times, beside its uses outside."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4) * 0.5)
        self.scale = nn.Parameter(torch.randn(4))

    def forward(self, x):
        for _ in range(3):
            x = (x @ self.weight * self.scale).tanh()
        return x


def test_sums_of_gradients_have_the_order_of_the_engine():
    model, other, compiled = pair(Tied)
    for _ in range(8):
        x = torch.randn(5, 4)
        for call, own in ((model, model), (compiled, other)):
            own.zero_grad()
            before = own.weight.sin() * 1.1
            y = call(x + before[:1])
            ((y * own.scale.exp()).sum() + (own.weight * 0.3).cos().sum() + (y @ own.weight).square().sum()).backward()
        check(model, other)
    assert replays(compiled) == 4


@pytest.mark.parametrize("order", [None, (2, 0, 1), (0, 1, 2)])
def test_forwards_before_their_backwards(order):
    model, other, compiled = pair(lambda: perceptron(4, 8, 8, 1))
    for _ in range(5):
        inputs = [torch.randn(3, 4) for _ in range(3)]
        for call, own in ((model, model), (compiled, other)):
            own.zero_grad()
            losses = [call(x).square().sum() for x in inputs]
            if order is None:
                sum(losses).backward()
            for at in order or ():
                losses[at].backward()
        check(model, other)
    assert replays(compiled) > 6


def test_a_result_that_goes_through_the_function_again():
    model, other, compiled = pair(lambda: perceptron(4, 8, 4))
    for _ in range(5):
        start = torch.randn(3, 4)
        for call, own in ((model, model), (compiled, other)):
            own.zero_grad()
            x = start
            for _ in range(3):
                x = call(x) + x
            x.square().sum().backward()
        check(model, other)
    assert replays(compiled) > 6


def test_two_backwards_through_one_graph():
    model, other, compiled = pair(lambda: perceptron(4, 8, 1))
    for _ in range(5):
        x = torch.randn(3, 4)
        for call, own in ((model, model), (compiled, other)):
            own.zero_grad()
            loss = call(x).square().sum()
            loss.backward(retain_graph=True)
            loss.backward()
            with pytest.raises(RuntimeError, match="backward through the graph a second time"):
                loss.backward()
        check(model, other)
    assert replays(compiled) == 4


def test_gradients_of_inputs():
    model, other, compiled = pair(lambda: perceptron(4, 8, 1))
    for _ in range(6):
        start = torch.randn(3, 4)
        for is_leaf in (True, False):
            found = []
            for call, own in ((model, model), (compiled, other)):
                leaf = start.clone().requires_grad_()
                x = leaf if is_leaf else leaf.sin()
                found.append(torch.autograd.grad(call(x).square().sum(), [leaf, *own.parameters()]))
            assert all(map(equal, *found))
    assert replays(compiled) == 5


def test_some_of_the_inputs():
    model, other, compiled = pair(lambda: perceptron(4, 8, 1))
    for _ in range(6):
        start = torch.randn(3, 4)
        found = []
        for call, own in ((model, model), (compiled, other)):
            x = start.clone().requires_grad_()
            loss = call(x).square().sum()
            (of_input,) = torch.autograd.grad(loss, x, retain_graph=True)
            own.zero_grad()
            loss.backward(inputs=[own[0].weight])
            found.append([of_input, own[0].weight.grad, own[0].bias.grad, x.grad])
        assert all(map(equal, *found)) and found[0][2] is None and found[0][3] is None
    assert replays(compiled) == 0


def test_results_that_are_used_in_different_ways():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = perceptron(4, 6), perceptron(6, 5, 3)

        def forward(self, x):
            y = self.first(x).tanh()
            return y, self.second(y), y.detach()

    model, other, compiled = pair(Two)
    for at in range(30):
        x = torch.randn(3, 4)
        for call, own in ((model, model), (compiled, other)):
            own.zero_grad()
            y, z, w = call(x)
            loss = (y.sum(), z.square().sum(), y.square().sum() + (z * w.sum()).sum())[at % 3]
            loss.backward()
        check(model, other)
    found = explained(compiled)
    assert found.backward_count == 3 and found.backward_replays == 22


def test_gradients_of_other_layouts():
    model, other, compiled = pair(lambda: perceptron(4, 6, 6))
    grads = [
        torch.ones(5, 6),
        torch.ones(6, 5).t(),
        torch.ones(()).expand(5, 6),
        torch.ones(5, 12)[:, ::2],
        torch.ones(5, 13)[:, 3:9],
    ]
    for _ in range(4):
        x = torch.randn(5, 4)
        for grad in grads:
            for call, own in ((model, model), (compiled, other)):
                own.zero_grad()
                call(x).backward(grad)
            check(model, other)
    assert explained(compiled).backward_count == 5 and replays(compiled) == 8


def test_a_gradient_that_shares_memory_with_what_was_saved():
    model, other, compiled = pair(lambda: perceptron(4, 6, 4))
    for at in range(12):
        x = torch.randn(5, 4)
        for call, own in ((model, model), (compiled, other)):
            own.zero_grad()
            y = call(x)
            y.backward(x if at % 2 else (y.detach() if at % 3 else x.clone()))
        check(model, other)


def test_the_given_gradient_stays_as_it_is():
    model, other, compiled = pair(Tied)
    grad = torch.randn(5, 4)
    before, version = grad.clone(), grad._version
    for _ in range(5):
        x = torch.randn(5, 4)
        for call, own in ((model, model), (compiled, other)):
            own.zero_grad()
            y = call(x)
            torch.autograd.backward([y, y], [grad, grad])
        check(model, other)
    assert equal(grad, before) and grad._version == version and replays(compiled) == 1


def test_numbers_of_no_dimension():
    w, v = (torch.tensor(value, requires_grad=True) for value in (0.3, 1.2))

    def f(x):
        for _ in range(20):
            x = (x * w).sin() + v
        return x

    compiled = torch.compile(f)
    for at in range(6):
        found = [torch.autograd.grad(call(torch.tensor(0.1 * at)), (w, v)) for call in (f, compiled)]
        assert all(map(equal, *found))
    assert replays(compiled) == 2 and explained(compiled).backward_group_count == 1


def test_data_types():
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        model, other, compiled = pair(lambda dtype=dtype: nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).to(dtype))
        for _ in range(5):
            x = torch.randn(3, 4).to(dtype)
            for call, own in ((model, model), (compiled, other)):
                own.zero_grad()
                call(x).abs().sum().backward()
            check(model, other)
        assert replays(compiled) == 1


def test_the_strides_of_gradients():
    model, other, compiled = pair(lambda: perceptron(4, 8, 3))
    for at in range(10):
        x = torch.randn(5, 4)
        found = []
        for call, own in ((model, model), (compiled, other)):
            own.zero_grad()
            if at % 2:
                found.append(torch.autograd.grad(call(x).square().sum(), list(own.parameters())))
            else:
                call(x).square().sum().backward()
                found.append(gradients(own))
        assert all(map(equal, *found)) and [g.stride() for g in found[0]] == [g.stride() for g in found[1]]
    assert explained(compiled).backward_count == 2 and replays(compiled) == 4


# What is not captured is as ever.


def test_second_derivatives_beside_first_ones():
    model, other, compiled = pair(lambda: perceptron(3, 8, 1))
    for at in range(10):
        start, found = torch.randn(5, 3), []
        for call, own in ((model, model), (compiled, other)):
            own.zero_grad()
            x = start.clone().requires_grad_()
            if at % 2:
                (grad,) = torch.autograd.grad(call(x).sum(), x, create_graph=True)
                (grad.norm(dim=1) - 1).square().sum().backward()
            else:
                call(x).sum().backward()
            found.append(x.grad)
        assert equal(*found)
        check(model, other)
    assert replays(compiled) >= 3


def test_hooks_on_results_and_parameters():
    model, other, compiled = pair(lambda: perceptron(3, 8, 1))
    seen = {}

    def steps(call, own, hooks):
        notes, x = seen.setdefault(call, []), torch.ones(5, 3)
        own.zero_grad()
        y = call(x)
        handles = []
        if hooks == "result":
            y.register_hook(lambda grad: (notes.append(grad.clone()), grad * 2)[1])
        elif hooks == "node":
            y.grad_fn.register_hook(lambda inputs, outputs: notes.extend(each.clone() for each in inputs if each is not None))
        elif hooks == "retain":
            y.retain_grad()
        elif hooks == "parameter":
            handles = [p.register_hook(lambda grad: (notes.append(grad.clone()), grad + 1)[1]) for p in own.parameters()]
        elif hooks == "accumulated":
            handles = [p.register_post_accumulate_grad_hook(lambda p: notes.append(p.grad.clone())) for p in own.parameters()]
        y.square().sum().backward()
        if hooks == "retain":
            notes.append(y.grad)
        for handle in handles:
            handle.remove()

    kinds = [None, "result", "node", "retain", "accumulated", "parameter"]
    for at in range(24):
        for call, own in ((model, model), (compiled, other)):
            steps(call, own, kinds[at % 6] if at > 5 else None)
        check(model, other)
        assert len(seen[model]) == len(seen[compiled]) and all(map(equal, seen[model], seen[compiled]))
    assert len(seen[model]) > 20 and not explained(compiled).break_reasons


def test_an_optimizer_in_hooks():
    model, other, compiled = pair(lambda: perceptron(3, 8, 1))

    def descend(parameter):
        with torch.no_grad():
            parameter -= 0.1 * parameter.grad
        parameter.grad = None

    for parameter in (*model.parameters(), *other.parameters()):
        parameter.register_post_accumulate_grad_hook(descend)
    for _ in range(8):
        x = torch.randn(5, 3)
        model(x).square().mean().backward()
        compiled(x).square().mean().backward()
        assert all(map(equal, model.parameters(), other.parameters()))


def test_sparse_gradients():
    model, other, compiled = pair(lambda: nn.Sequential(nn.Embedding(6, 3, sparse=True), nn.Tanh(), nn.Linear(3, 2)))
    for _ in range(6):
        x = torch.randint(6, (4,))
        for call, own in ((model, model), (compiled, other)):
            own.zero_grad()
            call(x).square().sum().backward()
        assert other[0].weight.grad.is_sparse and equal(other[0].weight.grad.to_dense(), model[0].weight.grad.to_dense())
        assert all(map(equal, gradients(other[2]), gradients(model[2])))
    assert replays(compiled) == 0


def test_data_types_of_gradients():
    model, other, compiled = pair(lambda: perceptron(4, 8, 1))
    for at in range(9):
        x = torch.randn(5, 4)
        for call, own in ((model, model), (compiled, other)):
            own.zero_grad()
            y = call(x)
            own[0].weight.grad_dtype = torch.float64 if at % 3 == 2 else torch.float32
            y.square().sum().backward()
            assert own[0].weight.grad.dtype == (torch.float64 if at % 3 == 2 else torch.float32)
        check(model, other)


def raised(f):
    with pytest.raises(RuntimeError) as caught:
        f()
    return str(caught.value).split("\n")[0]


@pytest.mark.parametrize("what", ["argument", "result", "parameter", "alias"])
def test_a_write_to_what_was_saved_raises(what):
    def write(call, own, x):
        y = call(x)
        if what == "argument":
            x.mul_(2)
        elif what == "result":
            with torch.no_grad():
                y.mul_(2)
        elif what == "parameter":
            with torch.no_grad():
                own[2].weight.mul_(1)
        else:
            y.detach().mul_(2)
        y.sum().backward()

    model, other, compiled = pair(lambda: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh()))
    for at in range(8):
        x = torch.randn(2, 3)
        if at < 5 or at == 7:
            for call, own in ((model, model), (compiled, other)):
                own.zero_grad()
                call(x).sum().backward()
            check(model, other)
        else:
            messages = [
                raised(lambda call=call, own=own: write(call, own, x.clone()))
                for call, own in ((model, model), (compiled, other))
            ]
            assert "modified by an inplace operation" in messages[0] and "modified by an inplace operation" in messages[1]
    assert replays(compiled) >= 1


def test_data_that_was_given_to_a_parameter():
    model, other, compiled = pair(lambda: perceptron(3, 4, 2))
    for at in range(9):
        x = torch.randn(2, 3)
        for call, own in ((model, model), (compiled, other)):
            own.zero_grad()
            y = call(x)
            if at == 5:
                own[0].weight.data = own[0].weight.data * 2
            if at == 7:
                own[2].weight.data.mul_(3)
            y.square().sum().backward()
        check(model, other)
    assert replays(compiled) >= 2


def test_frozen_parameters_and_modes():
    model, other, compiled = pair(lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2)))
    for at in range(24):
        x = torch.randn(5, 3)
        for call, own in ((model, model), (compiled, other)):
            own.zero_grad()
            own.train(at // 6 % 2 == 0)
            own[0].requires_grad_(at // 12 == 0)
            with torch.no_grad():
                assert call(x).grad_fn is None
            call(x).square().sum().backward()
        check(model, other)
    assert not explained(compiled).break_reasons


def test_a_parameter_is_frozen_between_forward_and_backward():
    model, other, compiled = pair(lambda: perceptron(3, 4, 2))
    for at in range(9):
        x = torch.randn(5, 3)
        for call, own in ((model, model), (compiled, other)):
            own.zero_grad()
            y = call(x)
            own[0].weight.requires_grad_(at != 5)
            y.square().sum().backward()
            own[0].weight.requires_grad_(True)
        check(model, other)


def test_a_checkpoint_inside():
    class Checked(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.last = perceptron(4, 8, 4), nn.Linear(4, 1)

        def forward(self, x):
            y = checkpoint(self.inner, x, use_reentrant=False, preserve_rng_state=False)
            return self.last(y.tanh())

    model, other, compiled = pair(Checked)
    for _ in range(6):
        x = torch.randn(5, 4)
        for call, own in ((model, model), (compiled, other)):
            own.zero_grad()
            call(x).square().sum().backward()
        check(model, other)


def test_custom_functions_around():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    model, other, compiled = pair(lambda: perceptron(4, 8, 4))
    scale = torch.randn(4, requires_grad=True)
    for _ in range(6):
        start, found = torch.randn(5, 4), []
        for call, own in ((model, model), (compiled, other)):
            own.zero_grad()
            scale.grad = None
            Twice.apply(call(Twice.apply(start * scale))).square().sum().backward()
            found.append(scale.grad)
        check(model, other)
        assert equal(*found)
    assert replays(compiled) == 2


def test_errors_leave_nothing_behind():
    model, other, compiled = pair(lambda: perceptron(4, 8, 1))

    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, fails):
            ctx.fails = fails
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            if ctx.fails:
                raise ValueError("on purpose")
            return grad, None

    for at in range(10):
        x = torch.randn(5, 4)
        for call, own in ((model, model), (compiled, other)):
            own.zero_grad()
            for fails in (at % 2 == 1, False):
                leaf = x.clone().requires_grad_()
                loss = Fails.apply(call(Fails.apply(leaf, fails)), False).sum()
                if fails:
                    with pytest.raises(ValueError, match="on purpose"):
                        loss.backward()
                else:
                    loss.backward()
        check(model, other)
    assert replays(compiled) >= 6


def test_modes_of_the_thread():
    model, other, compiled = pair(lambda: perceptron(4, 8, 1))
    for at in range(12):
        x = torch.randn(5, 4)
        for call, own in ((model, model), (compiled, other)):
            own.zero_grad()
            loss = call(x).square().sum()
            if at % 4 == 1:
                with torch.autograd.set_detect_anomaly(True):
                    loss.backward()
            elif at % 4 == 2:
                with torch.autocast("cpu", torch.bfloat16):
                    loss.backward()
            else:
                loss.backward()
        check(model, other)
    assert replays(compiled) == 6


def test_a_graph_that_another_thread_goes_on_with():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = perceptron(4, 6), perceptron(6, 5, 3)

        def forward(self, x):
            y = self.first(x).tanh()
            return y, self.second(y)

    model, other, compiled = pair(Two)
    for _ in range(6):
        x = torch.randn(3, 4)
        for call, own in ((model, model), (compiled, other)):
            own.zero_grad()
            y, z = call(x)
            made = []
            thread = threading.Thread(target=lambda y=y, made=made: made.append(y.sin() * 3))
            thread.start()
            thread.join()
            (made[0].sum() + z.square().sum()).backward()
        check(model, other)


def test_backwards_in_threads():
    model, other, compiled = pair(lambda: perceptron(4, 32, 1))
    inputs = [torch.randn(16, 4) for _ in range(4)]
    expected = [torch.autograd.grad(model(x).square().sum(), list(model.parameters())) for x in inputs]
    for x in inputs[:2]:
        for _ in range(4):
            compiled(x).square().sum().backward()
    wrong = []

    def run(x, grads):
        for _ in range(50):
            found = torch.autograd.grad(compiled(x).square().sum(), list(other.parameters()))
            wrong.extend(0 for one, two in zip(found, grads, strict=True) if not equal(one, two))

    threads = [threading.Thread(target=run, args=each) for each in zip(inputs, expected, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# Memory.


def test_results_and_gradients_that_are_kept():
    model, other, compiled = pair(lambda: perceptron(4, 8, 3))
    kept = []
    for at in range(8):
        x = torch.randn(5, 4) + at
        found = []
        for call, own in ((model, model), (compiled, other)):
            y = call(x)
            found.append([y, *torch.autograd.grad(y.square().sum(), list(own.parameters()))])
        kept.append((found, [each.detach().clone() for each in found[0]]))
    for (plain, own), copies in kept:
        assert all(map(equal, plain, copies)) and all(
            equal(one.detach(), other) for one, other in zip(own, copies, strict=True)
        )
    assert replays(compiled) == 4


def test_loops_need_no_more_memory():
    model = perceptron(4, 8, 1)
    compiled, x = torch.compile(model), torch.randn(5, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def loop(times):
        for _ in range(times):
            optimizer.zero_grad()
            compiled(x).square().mean().backward()
            optimizer.step()

    loop(2000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    loop(20_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2000
    assert replays(compiled) > 20_000


def test_captures_go_with_their_graphs():
    model = perceptron(4, 8, 1)
    compiled, x = torch.compile(model), torch.randn(5, 4)
    for _ in range(5):
        y = compiled(x)
        y.sum().backward(retain_graph=True)
    del compiled
    torch._dynamo.reset()
    gc.collect()
    model.zero_grad()
    y.sum().backward()
    expected = torch.autograd.grad(model(x).sum(), list(model.parameters()))
    assert all(map(equal, gradients(model), expected))


# Random programs, and the GPU.


def first_order(f, args, seed):
    """The results of a call with the gradients that flow in from outside, by `grad` and by `backward`, or an error."""
    torch.manual_seed(seed)
    for leaf in args:
        leaf.grad = None
    try:
        results = f(*args)
        ends = [t for t in results if t.requires_grad]
        wants = [t for t in args if t.requires_grad]
        if not ends or not wants:
            return [t.detach() for t in results]
        ones = [torch.ones_like(t) for t in ends]
        grads = torch.autograd.grad(ends, wants, ones, retain_graph=True, allow_unused=True)
        torch.autograd.backward(ends, ones)
        return [None if t is None else t.detach() for t in (*results, *grads, *(leaf.grad for leaf in args))]
    except Exception as error:
        return f"{type(error).__name__}: {error}".split("\n", 1)[0]
    finally:
        torch.set_grad_enabled(True)


def compare(seed, device, alike):
    """Call a program and its compiled form seven times, with gradients from outside, and return the compiled form."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines, made = program(seed, 10)
        names = list(made.tensors())
        leaves = {name: f"{name} = T.tensor(" for name in names if made.env[name].is_floating_point() and made.env[name].dim()}
        args = [name for name, begin in leaves.items() if any(line.startswith(begin) for line in lines)][:2]
        kept = [line for line in lines if "backward" not in line and not any(line.startswith(leaves[name]) for name in args)]
        plain = function(kept, names, args, f"plain-outside{seed}", "")
        compiled = torch.compile(function(kept, names, args, f"compiled-outside{seed}", ""))
        with torch.device(device):
            for call in range(7):
                given = []
                for name in args:
                    start = made.env[name].detach().to(device) + call * 0.25
                    given.append([start.clone().requires_grad_(made.env[name].is_leaf) for _ in range(2)])
                expected = first_order(plain, [one for one, _ in given], call)
                found = first_order(compiled, [other for _, other in given], call)
                assert alike(expected, found), "\n".join(kept)
        return compiled


@pytest.mark.parametrize("seed", range(200, 280))
def test_random_programs_with_gradients_from_outside(seed):
    compare(seed, "cpu", same)


def test_enough_random_programs_have_captured_backwards():
    assert sum(explained(compare(seed, "cpu", same)).backward_replays > 0 for seed in range(200, 230)) >= 5


@pytest.mark.skipif(NO_GPU, reason="GRADIRON_TEST_NO_GPU is set")
@pytest.mark.parametrize("seed", range(200, 210))
def test_random_programs_with_gradients_from_outside_on_the_gpu(seed):
    compare(seed, "cuda", near)


@pytest.mark.skipif(NO_GPU, reason="GRADIRON_TEST_NO_GPU is set")
@pytest.mark.parametrize("name", ["mlp", "cnn", "block"])
def test_models_on_the_gpu(name):
    block = (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
        lambda: (torch.randn(2, 5, 8), torch.randn(2, 5, 8)),
        F.mse_loss,
    )
    make, batch, loss_of = block if name == "block" else MODELS[name][:3]
    model, other, compiled = pair(lambda: make().to("cuda").eval())
    for at in range(6):
        torch.manual_seed(at)
        x, y = (each.to("cuda") for each in batch())
        for call, own in ((model, model), (compiled, other)):
            own.zero_grad()
            loss_of(call(x), y).backward()
        for one, two in zip(gradients(other), gradients(model), strict=True):
            torch.testing.assert_close(one.cpu(), two.cpu(), rtol=2e-4, atol=2e-5)
    assert replays(compiled) >= 1
