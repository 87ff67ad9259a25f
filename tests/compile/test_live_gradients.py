"""Compiled functions and models whose gradients are taken outside: the same bits, errors and graphs as without."""

import copy
import gc
import pickle
import warnings
import weakref

import gradiron as torch
import gradiron.nn.functional as F
import pytest
from gradiron import nn
from test_random_programs import function, program, same


def reasons(compiled):
    return [str(reason) for reason in torch._dynamo.explain(compiled).break_reasons]


def is_replayed(compiled, times):
    found = torch._dynamo.explain(compiled)
    return not found.break_reasons and found.replays >= times


def equal(a, b):
    return (a is None and b is None) or (a.dtype == b.dtype and torch.equal(a, b))


# Models in a loop.


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layer, self.head = kind(6, 8, num_layers=2), nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.layer(x)[0][-1])


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        self.block = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, batch_first=True)
        self.head = nn.Linear(16, 20)

    def forward(self, x):
        return self.head(self.block(self.embedding(x))).flatten(0, 1)


def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Dropout(0.2), nn.Linear(16, 1))


def cnn():
    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 5)]
    return nn.Sequential(*layers)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=0.01)


MODELS = {
    "mlp": (mlp, lambda: (torch.randn(16, 8), torch.randn(16, 1)), F.mse_loss, sgd),
    "cnn": (cnn, lambda: (torch.randn(4, 3, 8, 8), torch.randint(5, (4,))), F.cross_entropy, adam),
    "lstm": (lambda: Recurrent(nn.LSTM), lambda: (torch.randn(5, 3, 6), torch.randn(3, 1)), F.mse_loss, adam),
    "gru": (lambda: Recurrent(nn.GRU), lambda: (torch.randn(5, 3, 6), torch.randn(3, 1)), F.mse_loss, sgd),
    "words": (Words, lambda: (torch.randint(20, (2, 6)), torch.randint(20, (12,))), F.cross_entropy, adam),
}


def trained(name, compiled, steps=20):
    make, batch, loss_of, optimizer_of = MODELS[name]
    torch.manual_seed(0)
    model = make()
    called = model
    if compiled == "compile":
        called = torch.compile(model)
    elif compiled == "in place":
        model.compile()
    optimizer, losses = optimizer_of(model.parameters()), []
    for _ in range(steps):
        x, y = batch()
        optimizer.zero_grad()
        loss = loss_of(called(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [*model.parameters(), *model.buffers()], model._compiled_call_impl if compiled == "in place" else called


@pytest.mark.parametrize("how", ["compile", "in place"])
@pytest.mark.parametrize("name", MODELS)
def test_models_train_to_the_same_bits_in_anybody_s_loop(name, how):
    losses, tensors, _ = trained(name, None)
    found, own, compiled = trained(name, how)
    assert found == losses and all(map(equal, own, tensors))
    assert is_replayed(compiled, 17), torch._dynamo.explain(compiled)


@pytest.mark.parametrize("name", ["mlp", "lstm", "words"])
def test_forwards_before_one_backward_keep_values_of_their_own(name):
    make, batch, loss_of, _ = MODELS[name]
    torch.manual_seed(0)
    model = make()
    compiled = torch.compile(model)

    def gradients(call, order):
        torch.manual_seed(1)
        model.zero_grad()
        losses = [loss_of(call(x), y) for x, y in [batch() for _ in range(3)]]
        if order is None:
            sum(losses).backward()
        for at in order or ():
            losses[at].backward()
        return [p.grad for p in model.parameters()]

    for order in (None, None, (2, 0, 1), (0, 1, 2)):
        expected = gradients(model, order)
        assert all(map(equal, gradients(compiled, order), expected))
    assert is_replayed(compiled, 6)


def test_gradients_are_accumulated():
    model = nn.Linear(3, 2)
    compiled, x = torch.compile(model), torch.randn(4, 3)

    def gradients(call):
        model.zero_grad()
        for at in range(6):
            (call(x + at).square().mean() + model.weight.sum()).backward()
        return [p.grad for p in model.parameters()]

    expected = gradients(model)
    assert all(map(equal, gradients(compiled), expected)) and is_replayed(compiled, 4)


# Graphs.


def outer(f, *args):
    """The results of four calls with what follows from them."""
    return [f(*args) for _ in range(4)]


def test_differentiating_twice():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    compiled = torch.compile(model)

    def penalty(call, x):
        model.zero_grad()
        x = x.clone().requires_grad_()
        (grad,) = torch.autograd.grad(call(x).sum(), x, create_graph=True)
        (third,) = torch.autograd.grad(grad.square().sum(), x, create_graph=True)
        (grad.norm(dim=1).sum() + third.pow(3).sum()).backward()
        return [x.grad, *(p.grad for p in model.parameters())]

    for _ in range(4):
        x = torch.randn(5, 3)
        expected = penalty(model, x)
        assert all(map(equal, penalty(compiled, x), expected))
    assert is_replayed(compiled, 2)


def test_some_results_are_used():
    w = torch.randn(3, requires_grad=True)
    v = torch.randn(3, requires_grad=True)

    @torch.compile
    def f(x):
        y = x * w
        return y, {"exp": (y * v).exp(), "kept": y.detach()}, x + 1

    for used in range(5):
        x = torch.randn(3)
        first, rest, last = f(x)
        assert last.grad_fn is None and not rest["kept"].requires_grad
        if used % 2:
            grads = torch.autograd.grad(first.sum(), (w, v), allow_unused=True)
            assert equal(grads[0], x) and grads[1] is None
        else:
            grads = torch.autograd.grad(rest["exp"].sum(), (w, v))
            assert equal(grads[0], x_grad(x, w, v)[0]) and equal(grads[1], x_grad(x, w, v)[1])
    assert is_replayed(f, 3)


def x_grad(x, w, v):
    return torch.autograd.grad(((x * w) * v).exp().sum(), (w, v))


@pytest.mark.parametrize("leaf", [True, False])
def test_gradients_flow_to_arguments(leaf):
    model = nn.Linear(3, 3)
    compiled = torch.compile(lambda x: model(x).tanh())
    for _ in range(4):
        start = torch.randn(2, 3, requires_grad=True)
        x = start if leaf else start.sin()
        grads = torch.autograd.grad((compiled(x) * 3).square().sum(), (start, model.weight), retain_graph=True)
        x = start if leaf else start.sin()
        expected = torch.autograd.grad((model(x).tanh() * 3).square().sum(), (start, model.weight))
        assert all(map(equal, grads, expected))
    assert is_replayed(compiled, 2)


def raised(f):
    with pytest.raises(RuntimeError) as caught:
        f()
    return str(caught.value).split("\n")[0]


def test_a_write_between_forward_and_backward_raises_as_ever():
    w = torch.ones(3, requires_grad=True)
    x = torch.ones(3)

    def f(x):
        return (x * w).exp()

    compiled = torch.compile(f)

    def write_result(call):
        y = call(x)
        y.add_(1)
        y.sum().backward()

    def write_argument(call):
        given = x.clone()
        y = call(given)
        given.zero_()
        y.sum().backward()

    def write_parameter(call):
        y = call(x.clone().requires_grad_())
        with torch.no_grad():
            w.add_(1)
        y.sum().backward()

    for write in (write_result, write_argument, write_parameter):
        for _ in range(4):
            message = raised(lambda write=write: write(f))
            assert "modified by an inplace operation" in message
            found = raised(lambda write=write: write(compiled))
            if write is not write_parameter:  # whose versions go on
                assert found == message
            assert "modified by an inplace operation" in found
    assert is_replayed(compiled, 4)


def test_a_graph_is_freed_by_its_backward():
    w = torch.ones(3, requires_grad=True)
    f = torch.compile(lambda: (w * 2).exp())
    for _ in range(4):
        y = f()
        y.sum().backward(retain_graph=True)
        y.sum().backward()
        assert "second time" in raised(lambda y=y: y.sum().backward())
    assert is_replayed(f, 2)


def test_hooks_and_retained_gradients_of_results():
    w = torch.ones(3, requires_grad=True)
    f = torch.compile(lambda x: w * x)
    for at in range(4):
        seen = []
        y = f(torch.full((3,), float(at)))
        y.register_hook(lambda grad, seen=seen: (seen.append(grad.clone()), grad * 2)[1])
        y.retain_grad()
        w.grad = None
        (y * 5).sum().backward()
        assert seen[0].tolist() == [5.0] * 3 and y.grad.tolist() == [10.0] * 3 and w.grad.tolist() == [10.0 * at] * 3
        assert type(y.grad_fn).__name__ == "MulBackward0"
    assert is_replayed(f, 2)


def test_hooks_of_parameters_run_in_a_backward_outside():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    compiled, seen = torch.compile(model), []

    def descend(parameter):
        seen.append(parameter)
        with torch.no_grad():
            parameter -= 0.1 * parameter.grad
        parameter.grad = None

    model[0].weight.register_hook(lambda grad: grad * 2)
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(descend)
    other = copy.deepcopy(model)
    other[0].weight.register_hook(lambda grad: grad * 2)
    for parameter in other.parameters():
        parameter.register_post_accumulate_grad_hook(descend)
    for _ in range(5):
        x = torch.randn(5, 3)
        other(x).square().mean().backward()
        del seen[:]
        compiled(x).square().mean().backward()
        assert len(seen) == 4 and all(map(equal, model.parameters(), other.parameters()))
    assert is_replayed(compiled, 3)


def test_results_that_are_views_are_written_in_place():
    w = torch.randn(4, 4, requires_grad=True)

    def f(x):
        y = w * x
        return y, y[1], y.t()

    compiled = torch.compile(f)

    def gradient(call, x):
        w.grad = None
        y, row, turned = call(x)
        row.mul_(3)
        turned[0].add_(row)
        (y.square().sum() + turned.sum()).backward()
        return y.grad_fn.name(), row.detach(), w.grad

    for _ in range(4):
        x = torch.randn(4, 4)
        name, row, grad = gradient(f, x)
        found = gradient(compiled, x)
        assert found[0] == name and equal(found[1], row) and equal(found[2], grad)
    assert is_replayed(compiled, 2)


def test_writes_through_views_inside():
    w = torch.randn(4, requires_grad=True)

    def f(x):
        y = x * 2
        y[1:3] = w[:2]
        y[0] *= w[3]
        return y.sigmoid()

    compiled = torch.compile(f)
    for _ in range(4):
        x, again = (torch.randn(4).requires_grad_() for _ in range(2))
        with torch.no_grad():
            again.copy_(x)
        expected = torch.autograd.grad(f(x).square().sum(), (x, w))
        assert all(map(equal, torch.autograd.grad(compiled(again).square().sum(), (again, w)), expected))
    assert is_replayed(compiled, 2)


def test_modes_and_frozen_parameters_are_captured_apart():
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    compiled, x = torch.compile(model), torch.randn(6, 3)
    for _ in range(3):
        for mode in (True, False):
            compiled.train(mode)
            for _ in range(3):
                compiled(x).sum().backward()
                with torch.no_grad():
                    assert compiled(x).grad_fn is None
    model.eval()
    model[0].requires_grad_(False)
    for _ in range(4):
        model.zero_grad()
        compiled(x).sum().backward()
        assert model[0].weight.grad is None and model[2].weight.grad is not None
    assert not reasons(compiled)


def test_state_and_stored_results_carry_gradients():
    w = torch.ones(2, requires_grad=True)
    state = {}

    @torch.compile
    def f(x):
        state["h"] = w * x
        return state["h"].sum()

    for at in range(1, 5):
        w.grad = None
        f(torch.full((2,), float(at)))
        (state["h"] * 2).sum().backward()
        assert w.grad.tolist() == [2.0 * at] * 2


def test_a_graph_older_than_the_call_is_no_part_of_a_capture():
    w = torch.ones(2, requires_grad=True)

    @torch.compile
    def f(y):
        w.grad = None
        y.backward()
        return w.grad * 1

    for factor in (3.0, 3.0, 3.0, 5.0, 7.0):
        assert f((w * factor).sum()).tolist() == [factor] * 2
    assert "backward through SumBackward0, which is older than the call" in reasons(f)[0]


def test_graphs_that_a_replay_cannot_make_are_reasons():
    w = torch.ones(2, requires_grad=True)

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    def custom(x):
        return Twice.apply(w * x)

    def leaf(x):
        own = torch.ones(2, requires_grad=True)
        return own * x

    def hooked(x):
        y = w * x
        y.register_hook(lambda grad: grad * 3)
        return y.exp()

    for f, words in ((custom, "Twice"), (leaf, "leads to a leaf"), (hooked, "hooks")):
        compiled = torch.compile(f)
        for _ in range(4):
            x = torch.randn(2, requires_grad=True)
            found = torch.autograd.grad(compiled(x).sum(), x)[0]
            assert equal(found, torch.autograd.grad(f(x).sum(), x)[0])
        assert words in " ".join(reasons(compiled)), reasons(compiled)
        strict = torch.compile(f, fullgraph=True)
        with pytest.raises(torch._dynamo.exc.Unsupported):
            outer(strict, torch.ones(2, requires_grad=True))


@pytest.mark.parametrize("seed", range(100, 160))
def test_random_programs_carry_their_graphs_out(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines, made = program(seed, 10)
        names = list(made.tensors())
        leaves = {name: f"{name} = T.tensor(" for name in names if made.env[name].is_floating_point() and made.env[name].dim()}
        args = [name for name, begin in leaves.items() if any(line.startswith(begin) for line in lines)][:2]
        kept = [line for line in lines if "backward" not in line and not any(line.startswith(leaves[name]) for name in args)]
        plain = function(kept, names, args, f"plain-live{seed}", "")
        compiled = torch.compile(function(kept, names, args, f"compiled-live{seed}", ""))
        for call in range(5):
            given = []
            for name in args:
                value = made.env[name]
                given.append([(value.detach() + call * 0.25).requires_grad_(value.is_leaf) for _ in range(2)])
            expected = gradients_of(plain, [one for one, _ in given], call)
            found = gradients_of(compiled, [other for _, other in given], call)
            assert same(expected, found), "\n".join(kept)


def gradients_of(f, args, seed):
    """The results of a call with their first and second gradients, or an error."""
    torch.manual_seed(seed)
    try:
        results = f(*args)
        ends = [t for t in results if t.requires_grad]
        wants = [t for t in args if t.requires_grad]
        if not ends or not wants:
            return [t.detach() for t in results]
        grads = torch.autograd.grad(ends, wants, [torch.ones_like(t) for t in ends], create_graph=True, allow_unused=True)
        again = [g for g in grads if g is not None and g.requires_grad]
        second = torch.autograd.grad([g.square().sum() for g in again], wants, allow_unused=True) if again else ()
        return [None if t is None else t.detach() for t in (*results, *grads, *second)]
    except Exception as error:
        return f"{type(error).__name__}: {error}".split("\n", 1)[0]
    finally:
        torch.set_grad_enabled(True)


def test_captures_go_with_their_functions():
    model = nn.Linear(3, 3)
    compiled = torch.compile(model)
    for _ in range(5):
        compiled(torch.ones(2, 3)).sum().backward()
    gone = weakref.ref(model)
    del model, compiled
    gc.collect()
    assert gone() is None


# `OptimizedModule`.


def test_an_optimized_module_is_its_module():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    compiled = torch.compile(model)
    assert list(compiled.state_dict())[:2] == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert [name for name, _ in compiled.named_children()] == ["_orig_mod"]
    compiled.load_state_dict({name: torch.zeros_like(value) for name, value in compiled.state_dict().items()})
    assert model[0].weight.eq(0).all()
    with pytest.raises(RuntimeError, match='Missing key.*"_orig_mod.0.weight"'):
        compiled.load_state_dict(model.state_dict())
    assert len(compiled) == 2 and compiled.append.__self__ is model and "append" in dir(compiled)
    with pytest.raises(TypeError, match="Linear does not support len"):
        len(torch.compile(model[0]))
    compiled.tag, compiled.extra = 3, nn.Parameter(torch.ones(1))
    assert model.tag == 3 and list(model._parameters) == ["extra"] and not compiled._parameters
    del compiled.tag
    assert not hasattr(model, "tag") and repr(compiled).startswith("OptimizedModule(\n  (_orig_mod): Sequential(")
    model.eval()
    assert compiled.training is False
    compiled.train()
    assert model.training and model[1].training and compiled.training
    compiled.training = False
    assert not model.training and model[1].training
    assert compiled.double() is compiled and model[0].weight.dtype == torch.float64


def test_hooks_of_an_optimized_module_run_around_it():
    compiled, seen = torch.compile(nn.Linear(2, 2)), []
    handle = compiled.register_forward_hook(lambda module, args, result: seen.append(module))
    for _ in range(4):
        compiled(torch.ones(2)).sum().backward()
    handle.remove()
    compiled(torch.ones(2))
    assert len(seen) == 4 and all(module is compiled for module in seen) and not compiled._orig_mod._forward_hooks
    assert is_replayed(compiled, 3)


def test_optimized_modules_are_pickled_and_copied():
    compiled = torch.compile(nn.Linear(2, 2), fullgraph=True)
    x = torch.ones(2)
    for other in (pickle.loads(pickle.dumps(compiled)), copy.deepcopy(compiled)):
        assert type(other) is torch._dynamo.OptimizedModule and other._orig_mod is not compiled._orig_mod
        for _ in range(4):
            assert equal(other(x).detach(), compiled(x).detach())
        assert other._compiled.fullgraph and is_replayed(other, 2)


def test_a_model_compiled_in_place_is_pickled_without_its_captures():
    model, x = nn.Linear(2, 2), torch.ones(2)
    model.compile()
    for _ in range(4):
        model(x).sum().backward()
    assert is_replayed(model._compiled_call_impl, 2)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert other._compiled_call_impl is None and equal(other(x).detach(), model(x).detach())


def test_a_compiled_model_inside_of_a_compiled_step():
    model = nn.Linear(3, 1)
    compiled, optimizer = torch.compile(model), torch.optim.SGD(model.parameters(), lr=0.1)

    @torch.compile
    def step(x):
        optimizer.zero_grad()
        loss = compiled(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    other = copy.deepcopy(model)
    own = torch.optim.SGD(other.parameters(), lr=0.1)
    for _ in range(5):
        x = torch.randn(4, 3)
        own.zero_grad()
        other(x).square().mean().backward()
        own.step()
        step(x)
        assert all(map(equal, model.parameters(), other.parameters()))
    assert is_replayed(step, 3)
