"""`torch.compile` as programs use it: its options, what it gives back, what is captured anew."""

import copy
import gc
import inspect
import threading
import weakref

import gradiron as torch
import gradiron.nn.functional as F
import pytest
from gradiron import nn


def calls(compiled, *args, times=4):
    return [compiled(*args) for _ in range(times)]


def info(compiled):
    return compiled._compiled


def test_a_compiled_function_keeps_name_and_signature():
    @torch.compile
    def scaled(x, factor: float = 2.0, *, shift=0):
        """Its words."""
        return x * factor + shift

    assert scaled.__name__ == "scaled" and scaled.__doc__ == "Its words."
    assert list(inspect.signature(scaled).parameters) == ["x", "factor", "shift"]
    x = torch.ones(2)
    for _ in range(4):
        assert scaled(x, shift=1).tolist() == [3.0, 3.0]
    assert info(scaled).replays == 2
    assert torch.compile(scaled)._torchdynamo_orig_callable is scaled._torchdynamo_orig_callable


def test_options_are_checked_as_by_pytorch():
    def f(x):
        return x

    with pytest.raises(RuntimeError, match="Either mode or options"):
        torch.compile(f, mode="default", options={})
    with pytest.raises(RuntimeError, match="Unrecognized mode=fast, should be one of: default, lite"):
        torch.compile(f, mode="fast")
    with pytest.raises(RuntimeError, match="Unexpected optimization option nope"):
        torch.compile(f, options={"nope": 1})
    with pytest.raises(RuntimeError, match="Unexpected type of attr max_autotune, got str should be bool"):
        torch.compile(f, options={"max_autotune": "yes"})
    with pytest.raises(torch._dynamo.exc.InvalidBackend, match="Invalid backend: 'nope'"):
        torch.compile(f, backend="nope")
    with pytest.raises(NotImplementedError, match="gradiron makes no FX graphs"):
        torch.compile(f, backend=lambda graph, inputs: graph)
    with pytest.raises(AssertionError, match="A callable function is expected, but <class 'int'>"):
        torch.compile(3)
    with pytest.raises(AssertionError, match="Expected enable to be a bool"):
        torch.compile(f, dynamic="yes")
    assert torch.compile(f, disable=True) is f and torch.compile(f, backend="eager") is f
    for mode in ("default", "lite", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"):
        assert calls(torch.compile(f, mode=mode), 3) == [3] * 4
    assert torch.compile(f, options={"max_autotune": True}, backend="cudagraphs")(1) == 1


def test_each_shape_dtype_and_value_is_captured_once():
    compiled = torch.compile(lambda x, k=1: x * k + 1)
    for _ in range(4):
        for x in (torch.ones(2), torch.ones(3), torch.ones(2, dtype=torch.float64), torch.ones(2, 2).t(), torch.ones(4)[::2]):
            for k in (1, 2, 2.0, True):
                assert torch.equal(compiled(x, k), x * k + 1)
    # Ints that differ share one capture.
    assert sum(map(len, info(compiled).captures.values())) == 15 and not info(compiled).reasons


def test_structures_of_arguments_and_results():
    @torch.compile
    def f(pair, *rest, table=None):
        a, b = pair
        return {"sum": a + b, "list": [a, (b * 2, None, "s")], "rest": rest}, table["x"] - 1

    one, two = torch.ones(2), torch.full((2,), 2.0)
    for k in range(4):
        made, last = f((one, two + k), 3, table={"x": one * k})
        assert made["sum"].tolist() == [3.0 + k] * 2 and made["rest"] == (3,)
        assert made["list"][0] is one and made["list"][1][0].tolist() == [4.0 + 2 * k] * 2
        assert last.tolist() == [k - 1.0] * 2
    assert info(f).replays == 2


def test_one_tensor_given_twice_is_another_capture():
    compiled = torch.compile(lambda x, y: x.mul_(2) + y)
    for _ in range(3):
        x = torch.ones(2)
        assert compiled(x, x).tolist() == [4.0, 4.0]
        assert compiled(torch.ones(2), torch.ones(2)).tolist() == [3.0, 3.0]
        whole = torch.ones(4)
        assert compiled(whole[:2], whole[1:3]).tolist() == [4.0, 3.0]


def test_results_are_never_overwritten():
    compiled = torch.compile(lambda x: x * 2)
    made = [compiled(torch.full((2,), float(k))) for k in range(6)]
    assert [y.tolist() for y in made] == [[2.0 * k] * 2 for k in range(6)]


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_a_training_step(optimizer):
    def build():
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        opt = getattr(torch.optim, optimizer)(model.parameters(), lr=0.05)

        def step(x, y):
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            return loss

        return model, opt, step

    plain_model, plain_opt, plain = build()
    model, opt, step = build()
    compiled = torch.compile(step)
    plain_schedule, schedule = (torch.optim.lr_scheduler.StepLR(each, 2, 0.5) for each in (plain_opt, opt))
    for _ in range(12):
        x, y = torch.randn(5, 4), torch.randint(0, 2, (5,))
        expected, found = plain(x, y), compiled(x, y)
        assert torch.equal(expected, found)
        for one, other in zip(plain_model.parameters(), model.parameters(), strict=True):
            assert torch.equal(one, other) and torch.equal(one.grad, other.grad)
        plain_schedule.step()
        schedule.step()
    assert not info(compiled).reasons
    # The learning rate is read anew: a scheduler recaptures nothing.
    assert info(compiled).replays >= 8, torch._dynamo.explain(compiled)


def test_momentum_dropout_and_batch_norm():
    def build():
        torch.manual_seed(5)
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
        opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)

        def step(x):
            opt.zero_grad(set_to_none=False)
            loss = model(x).square().mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            return loss.detach()

        return model, step

    plain_model, plain = build()
    model, step = build()
    compiled = torch.compile(step)
    for k in range(8):
        x = torch.randn(6, 4)
        torch.manual_seed(k)
        expected = plain(x)
        torch.manual_seed(k)
        assert torch.equal(expected, compiled(x))
    for one, other in zip(plain_model.state_dict().values(), model.state_dict().values(), strict=True):
        assert torch.equal(one, other)


def test_solver_under_no_grad():
    field = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))

    def solve(x, dt=0.1):
        with torch.no_grad():
            for _ in range(5):
                k1 = field(x)
                k2 = field(x + dt / 2 * k1)
                k3 = field(x + dt / 2 * k2)
                k4 = field(x + dt * k3)
                x = x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return x

    compiled = torch.compile(solve, fullgraph=True)
    for _ in range(4):
        x = torch.randn(3, 2)
        assert torch.equal(compiled(x), solve(x))
    assert info(compiled).replays == 2


def test_a_method_is_compiled_for_each_object():
    class Scaled:
        def __init__(self, factor):
            self.factor = factor

        @torch.compile
        def go(self, x):
            return x * self.factor

    one, two = Scaled(2), Scaled(3)
    for _ in range(4):
        assert one.go(torch.ones(1)).item() == 2.0 and two.go(torch.ones(1)).item() == 3.0
    one.factor = 5
    assert one.go(torch.ones(1)).item() == 5.0


def test_a_module_becomes_an_optimized_module():
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
    compiled = torch.compile(model)
    assert isinstance(compiled, torch._dynamo.OptimizedModule) and isinstance(compiled, nn.Module)
    assert compiled._orig_mod is model and list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    compiled.eval()
    assert not model.training and not compiled.training
    x = torch.ones(2, 3)
    with torch.no_grad():
        assert all(torch.equal(y, model(x)) for y in calls(compiled, x))
        compiled.tag = 3
    assert model.tag == 3 and info(compiled).replays == 2
    assert [name for name, _ in compiled.named_parameters()] == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert torch.compile(compiled)._orig_mod is model
    assert copy.deepcopy(compiled)._orig_mod is not model


def test_a_model_in_anybody_s_loop_gives_gradients():
    model = nn.Linear(3, 2)
    compiled = torch.compile(model)
    for _ in range(4):
        x = torch.randn(4, 3)
        model.zero_grad()
        model(x).square().sum().backward()
        expected = [p.grad.clone() for p in model.parameters()]
        model.zero_grad()
        compiled(x).square().sum().backward()
        assert all(torch.equal(p.grad, grad) for p, grad in zip(model.parameters(), expected, strict=True))


def test_module_compile_in_place():
    model = nn.Linear(3, 2)
    x = torch.ones(1, 3)
    expected = model(x)
    model.compile(fullgraph=False)
    assert all(torch.equal(model(x), expected) for _ in range(4))


def test_stances():
    seen = []

    def f(x):
        seen.append(torch.compiler.is_compiling())
        return x * 2

    compiled = torch.compile(lambda x: x * 2)
    x = torch.ones(2)
    with torch.compiler.set_stance("force_eager"):
        calls(compiled, x)
        assert not info(compiled).captures
    calls(compiled, x)
    assert info(compiled).captures
    with torch.compiler.set_stance("fail_on_recompile"):
        compiled(x)
        with pytest.raises(RuntimeError, match="fail_on_recompile"):
            compiled(torch.ones(3))
    with torch.compiler.set_stance("eager_on_recompile"):
        compiled(torch.ones(3))
    assert len(info(compiled).captures) == 1
    with pytest.raises(RuntimeError, match="invalid torch.compile stance 'nope'"):
        torch.compiler.set_stance("nope")
    torch.compiler.reset()
    assert not info(compiled).captures
    calls(torch.compile(f), x)
    assert seen[:2] == [False, True]


def test_the_least_recently_used_capture_goes():
    compiled = torch.compile(lambda x: x + 1, recompile_limit=3)
    for size in range(1, 6):
        calls(compiled, torch.ones(size), times=2)
    assert len(info(compiled).captures) == 3
    assert torch._dynamo.config.recompile_limit == 64
    with torch._dynamo.config.patch(recompile_limit=2):
        compiled = torch.compile(lambda x: x + 1)
        for size in range(1, 6):
            calls(compiled, torch.ones(size), times=2)
    assert len(info(compiled).captures) == 2 and torch._dynamo.config.recompile_limit == 64


def test_stores_into_older_objects_are_repeated():
    class Holder:
        last, count = None, 0

    holder, history, table = Holder(), [], {}

    @torch.compile
    def f(x):
        y = x * 2
        holder.last = y
        history.append(y + 1)
        table["sum"] = (y.sum(), "words")
        return y

    for k in range(5):
        x = torch.full((2,), float(k))
        y = f(x)
        assert holder.last is y
        assert history[-1].tolist() == [2.0 * k + 1] * 2 and len(history) == k + 1
        assert table["sum"][0].item() == 4.0 * k and table["sum"][1] == "words"
    assert info(f).replays == 3


def test_an_error_leaves_nothing_behind():
    def f(x, y):
        z = x * 2
        return z @ y

    compiled = torch.compile(f)
    for _ in range(3):
        with pytest.raises(RuntimeError) as plain:
            f(torch.ones(2, 3), torch.ones(2, 3))
        with pytest.raises(RuntimeError) as seen:
            compiled(torch.ones(2, 3), torch.ones(2, 3))
        assert str(seen.value) == str(plain.value)
    assert not info(compiled).captures
    assert torch.compiler.is_compiling() is False and not torch._core.is_capturing()
    for _ in range(3):
        assert torch.equal(compiled(torch.eye(2), torch.eye(2)), torch.eye(2) * 2)


def test_captures_go_with_their_function():
    model = nn.Linear(3, 3)

    def f(x):
        with torch.no_grad():
            return model(x)

    compiled = torch.compile(f)
    calls(compiled, torch.ones(2, 3))
    assert info(compiled).replays
    gone = weakref.ref(model)
    compiled = f = model = None
    gc.collect()
    assert gone() is None


def test_two_threads():
    compiled = torch.compile(lambda x: (x * 2).sum())
    found = []

    def work(k):
        for _ in range(50):
            found.append(compiled(torch.full((3,), float(k))).item() == 6.0 * k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 200 and all(found)


def test_compiled_functions_inside_others_and_recursion():
    inner = torch.compile(lambda x: x + 1)
    outer = torch.compile(lambda x: inner(x) * 2)
    for k in range(4):
        assert outer(torch.full((1,), float(k))).item() == 2.0 * (k + 1)
    assert info(outer).replays == 2 and not info(outer).reasons

    @torch.compile
    def countdown(x, n):
        return x if n == 0 else countdown(x * 2, n - 1)

    assert [countdown(torch.ones(1), 3).item() for _ in range(4)] == [8.0] * 4


def test_functions_of_autograd_and_checkpoint():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 3 * x**2

    def f(x):
        y = Cube.apply(x).sum() + torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False).sum()
        return torch.autograd.grad(y, x)[0]

    compiled = torch.compile(f)
    for _ in range(6):
        x = torch.randn(3, requires_grad=True)
        assert torch.equal(compiled(x), f(x))


def test_second_derivatives():
    def f(x):
        (grad,) = torch.autograd.grad(x.sin().sum(), x, create_graph=True)
        return torch.autograd.grad(grad.sum(), x)[0]

    compiled = torch.compile(f, fullgraph=True)
    for _ in range(4):
        x = torch.randn(3, requires_grad=True)
        assert torch.equal(compiled(x), f(x))
    assert info(compiled).replays == 2


def test_transforms_inside():
    def f(x):
        return torch.func.vmap(torch.func.grad(lambda v: (v**3).sum()))(x)

    compiled = torch.compile(f)
    for _ in range(4):
        x = torch.randn(4, 3)
        assert torch.equal(compiled(x), f(x))


def test_random_draws_are_those_of_eager():
    def f(x):
        return x + torch.rand(3) + torch.randn(3)

    compiled = torch.compile(f)
    torch.manual_seed(0)
    expected = [f(torch.zeros(3)) for _ in range(5)]
    torch.manual_seed(0)
    found = [compiled(torch.zeros(3)) for _ in range(5)]
    assert all(map(torch.equal, found, expected)) and info(compiled).replays == 3


def test_collections_do_not_disturb_a_capture():
    phases = []

    def note(phase, info):
        phases.append(phase)

    model, x = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), torch.randn(3, 4)
    threshold = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(3)
    try:
        for _ in range(20):
            compiled = torch.compile(lambda x: model(x).detach().sum())
            calls(compiled, x)
            assert info(compiled).replays == 2 and gc.isenabled()
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*threshold)
    assert phases


def test_aot_eager_joins_no_kernels():
    def f(x):
        return (x * 2 + 1).tanh() * x.sum(), x.exp().mul(3)

    whole, apart = torch.compile(f), torch.compile(f, backend="aot_eager")
    x = torch.arange(12.0).reshape(3, 4)
    for _ in range(4):
        assert all(torch.equal(a, b) and torch.equal(a, c) for a, b, c in zip(f(x), whole(x), apart(x), strict=True))
    one, other = torch._dynamo.explain(whole), torch._dynamo.explain(apart)
    assert other.op_count == other.unit_count == one.op_count > one.unit_count
    assert other.group_count == 0 and other.traffic == other.traffic_apart == one.traffic_apart


def test_the_random_state_is_kept_and_restored():
    kept = {}

    def f(x):
        state = torch.get_rng_state()
        a = torch.rand(3)
        torch.set_rng_state(state)
        b = torch.rand(3)
        if "start" in kept:
            torch.set_rng_state(kept["start"])
        return x + a, x + b, state

    torch.manual_seed(1)
    compiled = torch.compile(f, fullgraph=True)
    for _ in range(5):
        start = torch.get_rng_state()
        expected = f(torch.ones(3))
        end = torch.get_rng_state()
        torch.set_rng_state(start)
        found = compiled(torch.ones(3))
        assert all(map(torch.equal, found, expected)) and torch.equal(torch.get_rng_state(), end)
        assert torch.equal(found[0], found[1])
    assert info(compiled).replays == 3
    kept["start"] = torch.get_rng_state()
    first = [compiled(torch.ones(3))[0] for _ in range(6)]
    assert all(torch.equal(first[1], each) for each in first[2:])


def test_an_optimizer_s_tuples_are_read_anew_without_python():
    def trained(compiles):
        torch.manual_seed(0)
        parameters = [torch.randn(3).requires_grad_() for _ in range(2)]
        for p in parameters:
            p.grad = torch.randn(3)
        optimizer = torch.optim.Adam(parameters)
        step = torch.compile(optimizer.step) if compiles else optimizer.step
        for k in range(10):
            optimizer.param_groups[0]["betas"] = (0.9 - 0.01 * k, 0.99)
            step()
        return parameters, step

    (expected, _), (found, step) = trained(False), trained(True)
    assert all(map(torch.equal, expected, found))
    assert step._compiled.direct.replays == 8, torch._dynamo.explain(step)
