"""Autocast on the CPU, the scaler of gradients, and the default device."""

import copy
import pickle
import threading
import warnings

import pytest

from library import IS_GRADIRON, NO_GPU, T, assert_values, python_ok

amp, F = T.amp, T.nn.functional
bf16, f32, f64 = T.bfloat16, T.float32, T.float64


def square(kind=f32):
    return T.arange(9, dtype=f32).reshape(3, 3).to(kind) / 8


def kinds(*tensors):
    return [t.dtype for t in tensors]


def test_products_are_computed_in_the_lower_dtype():
    x = square()
    with T.autocast("cpu"):
        made = kinds(
            x @ x,
            T.mm(x, x),
            x.matmul(x),
            F.linear(x, x, x[0]),
            T.einsum("ij,jk->ik", x, x),
            T.addmm(x, x, x),
            T.bmm(x[None], x[None]),
            T.inner(x, x),
            T.tensordot(x, x, 1),
            input_named(x),
        )
        assert made == [bf16] * len(made)
        assert (x.double() @ x.double()).dtype is f64
        assert (x.half() @ x.half()).dtype is bf16
        assert T.arange(4).reshape(2, 2).matmul(T.arange(4).reshape(2, 2)).dtype is T.int64
    assert (x @ x).dtype is f32
    with T.autocast("cpu", dtype=T.float16):
        assert (x @ x).dtype is T.float16


def input_named(x):
    return T.mm(input=x, mat2=x)


def test_losses_are_computed_in_float32():
    x, y = square(bf16), T.tensor([0, 1, 2])
    with T.autocast("cpu"):
        made = kinds(F.mse_loss(x, x), F.cross_entropy(x, y), F.nll_loss(x, y), F.smooth_l1_loss(x, x), x.prod(), T.trace(x))
        assert made == [f32] * len(made)
        # What is on no list stays as it is.
        assert kinds(T.softmax(x, 0), x.exp(), x + x, x + x.float(), F.gelu(x), x.sum()) == [bf16, bf16, bf16, f32, bf16, bf16]
        assert F.mse_loss(x.double(), x.double()).dtype is f64


def test_what_is_joined_gets_the_widest_dtype():
    x = square()
    with T.autocast("cpu"):
        assert kinds(T.cat([x, x.to(bf16)]), T.stack([x.to(bf16)] * 2), T.cat([x, x])) == [f32, bf16, f32]


def test_what_is_written_to_keeps_its_dtype():
    x, out = square(), T.empty(3, 3)
    with T.autocast("cpu"):
        assert x.clone().addmm_(x, x).dtype is f32
        assert T.mm(x, x, out=out) is out and out.dtype is f32


def test_gradients_have_the_dtype_of_their_leaves():
    x, w = square(), square().requires_grad_()
    with T.autocast("cpu"):
        y = x @ w
        loss = F.mse_loss(y, T.zeros(3, 3))
    assert (y.dtype, loss.dtype) == (bf16, f32)
    loss.backward()
    assert w.grad.dtype is f32
    exact = square().requires_grad_()
    F.mse_loss(x @ exact, T.zeros(3, 3)).backward()
    assert_values(w.grad, exact.grad, rtol=2e-2, atol=2e-2)


def test_weights_are_converted_once():
    x, w = square(), square().requires_grad_()

    def source(y):
        # The weight's end: the node that converted it.
        return [n for n, _ in y.grad_fn.next_functions if n is not None][-1]

    with T.autocast("cpu"):
        assert source(x @ w) is source(x @ w)
        with T.autocast("cpu", cache_enabled=False):
            assert source(x @ w) is not source(x @ w)
        first = source(x @ w)
        T.clear_autocast_cache()
        assert source(x @ w) is not first
    with T.autocast("cpu"):
        assert source(x @ w) is not first


def test_what_was_converted_without_history_is_not_kept():
    x, w = square(), square().requires_grad_()
    with T.autocast("cpu"):
        with T.no_grad():
            x @ w
        y = x @ w
    assert y.requires_grad or not IS_GRADIRON


@pytest.mark.gradiron
def test_a_weight_that_was_written_is_converted_anew():
    x, w = T.eye(3), square().requires_grad_()
    with T.autocast("cpu"):
        x @ w
        with T.no_grad():
            w.zero_()
        assert (x @ w).abs().sum() == 0


def test_nesting_and_decorators():
    x = square()
    with T.autocast("cpu"):
        with T.autocast("cpu", enabled=False):
            assert (x @ x).dtype is f32 and not T.is_autocast_enabled("cpu")
        assert (x @ x).dtype is bf16 and T.is_autocast_enabled("cpu")
    scope = T.autocast("cpu", dtype=T.float16)
    with scope:
        assert T.get_autocast_dtype("cpu") is T.float16
    assert T.get_autocast_dtype("cpu") is bf16 and not T.is_autocast_enabled("cpu")

    @T.autocast("cpu")
    def product(a):
        """Its text."""
        return a @ a

    assert product(x).dtype is bf16 and product.__name__ == "product" and product.__doc__ == "Its text."
    with pytest.raises(ZeroDivisionError), T.autocast("cpu"):
        1 / 0  # noqa: B018
    assert (x @ x).dtype is f32


def test_each_thread_has_its_own():
    found = []
    with T.autocast("cpu"):
        thread = threading.Thread(target=lambda: found.append((square() @ square()).dtype))
        thread.start()
        thread.join()
    assert found == [f32]


def test_a_module_trains():
    T.manual_seed(0)
    model = T.nn.Sequential(T.nn.Linear(3, 8), T.nn.ReLU(), T.nn.Linear(8, 1))
    optimizer = T.optim.SGD(model.parameters(), lr=0.1)
    x = T.randn(64, 3)
    y = x.sum(1, keepdim=True)
    losses = []
    for _ in range(40):
        with T.autocast("cpu"):
            out = model(x)
            assert out.dtype is bf16
            loss = F.mse_loss(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert all(p.dtype is f32 and p.grad.dtype is f32 for p in model.parameters()) and losses[-1] < losses[0] / 10


def test_what_autocast_refuses():
    with pytest.raises(ValueError, match="^Expected `device_type` of type `str`, got: `<class 'int'>`"):
        T.autocast(3)
    with pytest.raises(RuntimeError, match="^Expected one of cpu, cuda"):
        T.autocast("nope")
    with pytest.warns(UserWarning, match="^In CPU autocast, but the target dtype is not supported"):
        scope = T.autocast("cpu", dtype=f32)
    with scope:
        assert (square() @ square()).dtype is f32


@pytest.mark.gradiron
@pytest.mark.skipif(NO_GPU, reason="needs a GPU")
def test_the_gpu_computes_in_float32_and_says_so():
    code = """
import warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for _ in range(2):
        with T.autocast("cuda"):
            x = T.ones(2, 2, device="cuda")
            assert (x @ x).dtype is T.float32 and not T.is_autocast_enabled("cuda")
assert ["computes in float32" in str(w.message) for w in told] == [True], told
"""
    python_ok(code)


def test_old_names():
    with pytest.warns(FutureWarning, match="torch.cpu.amp.autocast"):
        scope = T.cpu.amp.autocast()
    with scope:
        assert (square() @ square()).dtype is bf16
    with pytest.warns(FutureWarning, match="torch.cuda.amp.GradScaler"):
        T.cuda.amp.GradScaler(enabled=False)
    with pytest.warns(DeprecationWarning):
        assert T.is_autocast_cpu_enabled() is False
    assert T.is_autocast_enabled() is False and T.is_autocast_cache_enabled() and T.get_autocast_dtype("cuda") is T.float16
    assert amp.autocast is T.autocast and T.amp.is_autocast_available("cpu")


def test_custom_functions_say_how_they_run():
    seen = []

    class Product(T.autograd.Function):
        @staticmethod
        @amp.custom_fwd(device_type="cpu")
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            seen.append((g @ b.t()).dtype)
            return g @ b.t(), a.t() @ g

    class Exact(T.autograd.Function):
        @staticmethod
        @amp.custom_fwd(device_type="cpu", cast_inputs=f32)
        def forward(ctx, a):
            seen.append((a @ a).dtype)
            return a * 1

        @staticmethod
        @amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            seen.append((g @ g).dtype)
            return g

    x = square().requires_grad_()
    with T.autocast("cpu"):
        y = Product.apply(x, x)
    assert y.dtype is bf16
    y.float().sum().backward()
    with T.autocast("cpu"):
        z = Exact.apply(x.to(bf16))
    assert z.dtype is f32
    z.sum().backward()
    assert seen == [bf16, f32, f32]


def scaler(**options):
    return amp.GradScaler("cpu", **{"init_scale": 4.0, **options})


def steps(s, p, optimizer, factor):
    optimizer.zero_grad()
    s.scale((p * factor).sum()).backward()
    s.step(optimizer)
    s.update()


def test_the_scaler_scales_and_skips():
    s, p = scaler(growth_interval=2), T.nn.Parameter(T.ones(2))
    optimizer = T.optim.SGD([p], lr=1.0)
    s.scale((p * 2).sum()).backward()
    assert p.grad.tolist() == [8.0, 8.0]
    s.unscale_(optimizer)
    assert p.grad.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match=r"^unscale_\(\) has already been called on this optimizer since the last update"):
        s.unscale_(optimizer)
    s.step(optimizer)
    with pytest.raises(RuntimeError, match=r"^step\(\) has already been called"):
        s.step(optimizer)
    with pytest.raises(RuntimeError, match=r"^unscale_\(\) is being called after step\(\)"):
        s.unscale_(optimizer)
    s.update()
    assert p.tolist() == [-1.0, -1.0] and s.get_scale() == 4.0
    steps(s, p, optimizer, 1.0)
    assert s.get_scale() == 8.0 and p.tolist() == [-2.0, -2.0]
    steps(s, p, optimizer, float("inf"))
    assert s.get_scale() == 4.0 and p.tolist() == [-2.0, -2.0]
    steps(s, p, optimizer, float("nan"))
    assert s.get_scale() == 2.0 and p.tolist() == [-2.0, -2.0]


def test_the_scaler_and_its_checkpoints():
    s, p = scaler(), T.nn.Parameter(T.ones(2))
    state = {"scale": 4.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000, "_growth_tracker": 0}
    assert s.state_dict() == state and s.is_enabled()
    steps(s, p, T.optim.SGD([p], lr=1.0), 1.0)
    assert s.state_dict() == {**state, "_growth_tracker": 1}
    other = scaler(init_scale=2.0)
    other.load_state_dict(s.state_dict())
    assert other.state_dict() == s.state_dict() == pickle.loads(pickle.dumps(s)).state_dict() == copy.deepcopy(s).state_dict()
    s.update(16.0)
    assert s.get_scale() == 16.0
    with pytest.raises(RuntimeError, match="^The source state dict is empty"):
        s.load_state_dict({})


def test_the_scaler_refuses():
    s, p = scaler(), T.nn.Parameter(T.ones(2))
    optimizer = T.optim.SGD([p], lr=1.0)
    with pytest.raises(AssertionError, match="^Attempted step but _scale is None"):
        s.step(optimizer)
    with pytest.raises(AssertionError, match="^Attempted update but _scale is None"):
        s.update()
    with pytest.raises(ValueError, match="^outputs must be a Tensor or an iterable of Tensors"):
        s.scale(3)
    with pytest.raises(AssertionError, match="^The growth factor must be > 1.0"):
        scaler(growth_factor=1.0)
    assert [t.tolist() for t in s.scale([T.ones(1), T.ones(1)])] == [[4.0], [4.0]]


def test_a_scaler_that_is_off():
    s, p = scaler(enabled=False), T.nn.Parameter(T.ones(2))
    optimizer = T.optim.SGD([p], lr=1.0)
    loss = p.sum()
    assert s.scale(loss) is loss and s.get_scale() == 1.0 and s.state_dict() == {}
    loss.backward()
    s.unscale_(optimizer)
    s.step(optimizer)
    s.update()
    assert p.tolist() == [0.0, 0.0]


def place():
    return "cuda" if IS_GRADIRON else "meta"


@pytest.mark.skipif(NO_GPU, reason="needs a GPU")
def test_the_default_device():
    before = T.get_default_device()
    try:
        T.set_default_device(place())
        made = [T.ones(1), T.tensor(1.0), T.as_tensor([1.0]), T.arange(3), T.rand(2), T.empty(0), T.eye(2), T.full((1,), 2.0)]
        made += [T.nn.Linear(2, 2).weight, T.ones(1, device=None), T.randperm(3), T.linspace(0, 1, 3), T.zeros(2)]
        assert [t.device.type for t in made] == [place()] * len(made)
        assert T.get_default_device().type == place()
        cpu = T.ones(1, device="cpu")
        assert [t.device.type for t in (cpu, T.zeros_like(cpu), cpu.new_zeros(1), T.normal(T.zeros_like(cpu), 1.0))] == [
            "cpu"
        ] * 4
        with T.device("cpu"):
            assert T.ones(1).device.type == "cpu" and T.tensor(1).device.type == "cpu"
        assert T.ones(1).device.type == place()
    finally:
        T.set_default_device(None)
    assert T.get_default_device() == before == T.device("cpu") and T.ones(1).device.type == "cpu"
    with T.device(place()):
        assert T.ones(1).device.type == place()
        with T.device("cpu"):
            assert T.ones(1).device.type == "cpu"
        assert T.zeros(1).device.type == place()
    assert T.ones(1).device.type == "cpu"


def test_no_warnings_where_nothing_is_wrong():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with T.autocast("cpu"):
            square() @ square()
        scaler()
