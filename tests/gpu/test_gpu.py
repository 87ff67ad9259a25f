"""The GPU: nothing moves to the CPU by itself, work is batched, memory is counted, and what goes wrong is an exception."""

import pytest

from library import DTYPES, NO_GPU, T, assert_values, dtype, leaf, python_ok, tensor

pytestmark = [pytest.mark.gradiron, pytest.mark.skipif(NO_GPU, reason="GRADIRON_TEST_NO_GPU is set")]


def test_it_is_there():
    assert T.cuda.is_available() is True and T.cuda.device_count() >= 1 and T.cuda.current_device() == 0


def test_what_the_adapter_is():
    name = T.cuda.get_device_name()
    assert isinstance(name, str) and name and T.cuda.get_device_name(0) == T.cuda.get_device_name("cuda:0") == name
    properties = T.cuda.get_device_properties(0)
    assert properties.name == name and properties.total_memory >= 0
    with pytest.raises((RuntimeError, AssertionError, ValueError), match="[Ii]nvalid device"):
        T.cuda.get_device_properties(99)


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "gpu", "wgpu", "mps"])
def test_names_of_the_device(name):
    x = T.ones(2, device=name)
    assert x.is_cuda or x.device.type == name.split(":")[0]
    assert x.sum().item() == 2.0 and (T.ones(2).to(name) + x).tolist() == [2.0, 2.0]


def test_the_names_are_of_one_device():
    named = [T.device(name) for name in ("cuda", "gpu", "wgpu", "mps")]
    assert len(set(named)) == 1 and all(a == b for a in named for b in named)
    numbered = [T.device(f"{name}:0") for name in ("cuda", "gpu", "wgpu", "mps")]
    assert len(set(numbered)) == 1 and T.device("gpu") != T.device("gpu:0") and T.device("gpu") != T.device("cpu")
    assert [str(device) for device in named] == ["cuda", "gpu", "wgpu", "mps"]
    a, b = T.ones(2, 2, device="gpu"), T.ones(2, 2, device="cuda")
    assert a.to("cuda") is a and b.to("gpu:0") is b and a.device == b.device == T.device("mps", 0)
    # What is made from both goes by PyTorch's name, whichever comes first.
    for make in (T.add, T.mm, lambda x, y: T.cat([x, y]), lambda x, y: T.stack([x, y]), lambda x, y: x @ y[0]):
        assert [str(make(x, y).device) for x, y in ((a, b), (b, a), (a, a))] == ["cuda:0", "cuda:0", "gpu:0"]


def test_a_device_that_is_not_there():
    with pytest.raises(RuntimeError, match="invalid device ordinal|device"):
        T.ones(1, device="cuda:17")


def test_printing():
    assert repr(T.ones(2, device="cuda")) == "tensor([1., 1.], device='cuda:0')"
    x = T.ones(1, device="cuda", requires_grad=True)
    assert repr(x) == "tensor([1.], device='cuda:0', requires_grad=True)"
    assert repr(x * 2) == "tensor([2.], device='cuda:0', grad_fn=<MulBackward0>)"


def test_moving():
    x = T.arange(6.0).reshape(2, 3)
    y = x.cuda()
    assert y.is_cuda and y.device == T.device("cuda", 0) and y.get_device() == 0 and x.get_device() == -1
    assert y.cuda() is y and x.cpu() is x and y.cpu().tolist() == x.tolist() and x.to("cuda").is_cuda
    assert y.to(x).device.type == "cpu" and x.to(y).is_cuda and y.to("cpu", T.int64).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.t().cuda().tolist() == x.t().tolist() and y.t().cpu().tolist() == x.t().tolist()
    assert x.to(y.device) is not x and x.type() == "torch.FloatTensor" and y.type() == "torch.cuda.FloatTensor"


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_travels(name):
    x = T.tensor([[0, 1, 1], [1, 0, 1]], dtype=dtype(name))
    try:
        y = x.cuda()
    except (RuntimeError, TypeError) as error:
        assert "float64" in str(error) or "Double" in str(error), "only float64 may be refused"
        return
    assert y.dtype is x.dtype and y.is_cuda and y.cpu().tolist() == x.tolist()
    assert y[1:, ::2].cpu().tolist() == x[1:, ::2].tolist() and y.t().contiguous().cpu().tolist() == x.t().tolist()


def test_copies_between_devices_are_differentiable():
    x = leaf([1.0, 2.0])
    y = x.cuda() * 3
    assert y.is_cuda and (x.cuda()).grad_fn.name() == "ToCopyBackward0"
    y.sum().backward()
    assert x.grad.device.type == "cpu"
    assert_values(x.grad, [3.0, 3.0])


def test_copy_into():
    x, y = T.zeros(2, 3, device="cuda"), T.arange(6.0).reshape(2, 3)
    x.copy_(y)
    x[:, 1].copy_(T.tensor([70.0, 71.0]))
    z = T.zeros(3, 2)
    z.t().copy_(x)
    assert z.t().tolist() == [[0.0, 70.0, 2.0], [3.0, 71.0, 5.0]]


def test_two_devices_do_not_mix():
    a, b = T.ones(2, device="cuda"), T.ones(2)
    for call in (
        lambda: a + b,
        lambda: T.cat([a, b]),
        lambda: a.add_(b),
        lambda: T.mm(a[None], b[:, None]),
        lambda: T.where(a > 0, a, b),
    ):
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device, but (found|got)"):
            call()
    assert (a + T.tensor(1.0)).tolist() == [2.0, 2.0]  # a 0-d tensor goes along
    assert a.tolist() == [1.0, 1.0]


UNARY = """
abs neg sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square reciprocal sin cos tan asin acos atan sinh cosh tanh
asinh acosh atanh erf erfc
erfinv lgamma digamma sigmoid relu floor ceil round trunc frac isnan isinf isfinite logical_not bitwise_not sum mean
prod max min amax amin argmax
argmin any all norm var std logsumexp cumsum cumprod count_nonzero tril triu softmax log_softmax sort topk nonzero flip
t contiguous clone
""".split()


@pytest.mark.parametrize("name", UNARY)
def test_right_or_refused_never_elsewhere(name):
    """Every operator and dtype gives the CPU's numbers on the GPU, or an error that names both. It never runs elsewhere."""
    wrong = []
    for kind in DTYPES:
        x = T.tensor([[1, 0], [1, 1]], dtype=dtype(kind))
        args = {
            "cumsum": (0,),
            "cumprod": (0,),
            "logsumexp": (0,),
            "softmax": (0,),
            "log_softmax": (0,),
            "topk": (1,),
            "flip": (0,),
        }.get(name, ())
        try:
            expected = getattr(T, name)(x, *args) if hasattr(T, name) else getattr(x, name)(*args)
        except (RuntimeError, TypeError):
            continue
        try:
            y = x.cuda()
            got = getattr(T, name)(y, *args) if hasattr(T, name) else getattr(y, name)(*args)
        except (RuntimeError, TypeError) as error:
            if "not implemented" not in str(error).lower() or kind in ("float32", "int64", "bool"):
                wrong.append(f"{kind}: {error}")
            continue
        pairs = [(got, expected)] if T.is_tensor(got) else list(zip(got, expected))
        for g, e in pairs:
            if not g.is_cuda or g.dtype is not e.dtype:
                wrong.append(f"{kind}: {g.device} {g.dtype}")
            try:
                assert_values(g, e, rtol=1e-3, atol=1e-4)
            except AssertionError as error:
                wrong.append(f"{kind}: {error}")
    assert wrong == []


def test_a_missing_shader_names_the_operator_and_the_dtype():
    refusals = []
    for kind in ("float64", "int8", "bfloat16"):
        try:
            x = T.ones(3, dtype=dtype(kind)).cuda()
        except (RuntimeError, TypeError):
            continue
        for name in ("lgamma", "digamma", "erfinv", "sort", "exp"):
            try:
                getattr(T, name)(x)
            except (RuntimeError, TypeError) as error:
                refusals.append((name, str(error)))
    for name, message in refusals:
        assert (
            "not implemented" in message
            and name in message
            and ("Double" in message or "Char" in message or "BFloat16" in message)
        )


def test_many_operators_are_one_submission():
    x = T.ones(64, device="cuda")
    x.sum().item()
    submits, dispatches = T.cuda.submits(), T.cuda.dispatches()
    for _ in range(200):
        x = x * 1.0 + 0.5
    value = x[0].item()
    assert value == 101.0
    assert T.cuda.dispatches() - dispatches >= 200
    assert T.cuda.submits() - submits <= 30


def test_a_whole_step_reads_nothing_back():
    w = T.randn(8, 8, device="cuda", requires_grad=True)
    x = T.randn(4, 8, device="cuda")
    for _ in range(2):
        loss = ((x @ w).tanh() ** 2).mean()
        loss.backward()
        with T.no_grad():
            w -= 0.1 * w.grad
            w.grad = None
        T.cuda.synchronize()
    before = T.cuda.submits()
    loss = ((x @ w).tanh() ** 2).mean()
    loss.backward()
    with T.no_grad():
        w -= 0.1 * w.grad
    assert T.cuda.submits() - before <= 3
    assert loss.item() > 0


def test_memory_is_counted():
    T.cuda.synchronize()
    T.cuda.empty_cache()
    before = T.cuda.memory_allocated()
    x = T.zeros(1 << 20, device="cuda")
    during = T.cuda.memory_allocated()
    assert during - before >= 4 << 20
    assert T.cuda.max_memory_allocated() >= during
    del x
    assert T.cuda.memory_allocated() == before
    assert T.cuda.memory_reserved() >= T.cuda.memory_allocated()
    T.cuda.reset_peak_memory_stats()
    assert T.cuda.max_memory_allocated() <= during


def test_buffers_are_used_again():
    def step():
        x = T.ones(1 << 18, device="cuda")
        return ((x * 2 + 1) * x).sum().item()

    step()
    reserved = T.cuda.memory_reserved()
    for _ in range(50):
        step()
    assert T.cuda.memory_reserved() <= 2 * reserved + (8 << 20)


def test_out_of_memory_is_an_exception_and_one_recovers():
    out = python_ok(
        """
small = T.ones(1000, device='cuda')
try:
    T.zeros(40_000_000, device='cuda')
except T.cuda.OutOfMemoryError as error:
    assert isinstance(error, RuntimeError)
    print('out of memory' in str(error).lower())
held = [T.zeros(1_000_000, device='cuda') for _ in range(10)]
try:
    while True:
        held.append(T.zeros(1_000_000, device='cuda'))
except RuntimeError as error:
    print('out of memory' in str(error).lower())
held.clear()
print((T.zeros(10_000_000, device='cuda') + 1).sum().item(), (small + 1)[0].item())
""",
        env={"GRADIRON_GPU_MEMORY_CAP": str(100 << 20)},
    )
    assert out.split() == ["True", "True", "10000000.0", "2.0"]


def test_a_bad_index_is_an_exception_at_the_next_read():
    x = T.zeros(3, device="cuda")
    index = tensor([0, 7], "int64", "cuda")
    with pytest.raises((IndexError, RuntimeError), match="out of bounds|out of range"):
        y = x[index]
        T.cuda.synchronize()
        y.tolist()
    with pytest.raises((IndexError, RuntimeError), match="out of bounds|out of range"):
        x[index] = 1.0
        x.tolist()
    assert all(v in (0.0, 1.0) for v in x.tolist())
    assert (x * 0 + 2).tolist() == [2.0] * 3


@pytest.mark.parametrize("shape", [(1,), (255,), (256,), (257,), (1000, 3), (3, 1000), (7, 11, 13), (70_000,)])
def test_sizes_around_the_workgroups(shape):
    x = T.arange(float(T.Size(shape).numel())).reshape(shape)
    y = x.cuda()
    assert T.equal((y * 2 + 1).cpu(), x * 2 + 1)
    assert y.max().item() == x.max().item() and y.argmax().item() == x.argmax().item()
    assert_values(y.sum(-1), x.sum(-1), rtol=1e-5)
    assert_values(y.sum(0), x.sum(0), rtol=1e-5)
    assert T.equal(y.transpose(0, -1).contiguous().cpu(), x.transpose(0, -1))
    assert T.equal((y + y.reshape(-1)[0]).cpu(), x)


@pytest.mark.parametrize(
    "m, k, n", [(1, 1, 1), (3, 5, 7), (16, 16, 16), (33, 17, 65), (64, 128, 64), (128, 1, 128), (1, 100, 1), (130, 70, 5)]
)
def test_products(m, k, n):
    a, b = T.randn(m, k), T.randn(n, k).t()
    assert_values(a.cuda() @ b.cuda(), a @ b, rtol=1e-4, atol=1e-4)
    assert_values(a.cuda().t().contiguous().t() @ b.cuda(), a @ b, rtol=1e-4, atol=1e-4)


def test_long_integers_are_exact():
    big = 2**40 + 3
    x = T.tensor([big, -big, 7], device="cuda")
    assert (x + 1).tolist() == [big + 1, 1 - big, 8] and (x * 3).tolist() == [3 * big, -3 * big, 21]
    assert (x // 7).tolist() == [big // 7, -big // 7, 1] and (x % 7).tolist() == [big % 7, -big % 7, 0] and x.sum().item() == 7


def test_nan_and_infinity_survive():
    x = T.tensor([float("nan"), float("inf"), float("-inf"), -0.0, 1.0], device="cuda")
    assert x.isnan().tolist() == [True, False, False, False, False] and x.isinf().tolist() == [False, True, True, False, False]
    assert (x != x).tolist() == [True, False, False, False, False] and (x == x).tolist() == [False, True, True, True, True]
    assert str((x * 0).tolist()) == "[nan, nan, nan, -0.0, 0.0]" and str((x - x).tolist()) == "[nan, nan, nan, 0.0, 0.0]"
    assert str(T.maximum(x, T.zeros_like(x)).tolist()[:2]) == "[nan, inf]" and str(x.max().item()) == "nan"
    assert str(x.clamp(min=0.0).tolist()[0]) == "nan" and str(x.relu().tolist()[0]) == "nan"


def test_the_generator_of_the_device():
    T.cuda.manual_seed(3)
    a = T.rand(5, device="cuda").tolist()
    T.cuda.manual_seed_all(3)
    assert T.rand(5, device="cuda").tolist() == a
    T.manual_seed(3)
    assert T.rand(5, device="cuda").tolist() == a
    assert T.rand(5).tolist() != a


def test_work_from_several_threads():
    import threading

    results = []

    def work(k):
        x = T.full((100,), float(k), device="cuda", requires_grad=True)
        y = x
        for _ in range(20):
            y = y * 1.0 + 1.0
        y.sum().backward()
        results.append((k, y[0].item(), x.grad[0].item()))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(results) == [(k, k + 20.0, 1.0) for k in range(4)]


def test_a_forked_child_is_refused():
    out = python_ok("""
T.ones(1, device='cuda').item()
pid = os.fork()
if pid == 0:
    try:
        T.ones(1, device='cuda').item()
    except RuntimeError as error:
        os._exit(0 if 'fork' in str(error) else 2)
    os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), (T.ones(1, device='cuda') + 1).item())
""")
    assert out.split() == ["0", "2.0"]


def test_nothing_of_the_gpu_is_touched_before_it_is_asked_for():
    out = python_ok("x = T.ones(2) + 1\nprint(any('vulkan' in line for line in open('/proc/self/maps')))")
    assert out == "False\n"


def test_without_permission_a_software_adapter_is_not_used():
    out = python_ok(
        "print(T.cuda.is_available(), 'llvmpipe' in (T.cuda.get_device_name() if T.cuda.is_available() else ''))",
        env={"GRADIRON_SOFTWARE_GPU": "0"},
    )
    assert out.split()[1] == "False"


def test_without_an_adapter_the_error_says_what_was_looked_for():
    out = python_ok(
        """
if T.cuda.is_available():
    print('there is one')
else:
    for call in (lambda: T.ones(1, device='cuda'), lambda: T.ones(1).cuda(), T.cuda.init, T.cuda.get_device_name):
        try:
            call()
            print('no error')
        except RuntimeError as error:
            text = str(error)
            print('No CUDA GPUs are available' in text and 'Vulkan' in text and 'GRADIRON_SOFTWARE_GPU' in text)
    print(T.cuda.device_count(), T.cuda.memory_allocated(), T.cuda.is_initialized(), len(T.cuda.memory_stats()))
""",
        env={"GRADIRON_SOFTWARE_GPU": "0"},
    )
    assert out in ("there is one\n", "True\n" * 4 + "0 0 False 0\n")


def test_the_generator_can_be_saved_and_restored():
    T.cuda.manual_seed(11)
    assert T.cuda.initial_seed() == 11
    T.randn(7, device="cuda")
    state = T.cuda.get_rng_state()
    assert state.dtype is T.uint8 and state.device.type == "cpu" and state.numel() == 16
    a = T.randn(5, device="cuda")
    T.cuda.set_rng_state(state)
    assert T.equal(T.randn(5, device="cuda"), a) and not T.equal(T.randn(5, device="cuda"), a)
    with pytest.raises(RuntimeError, match="wrong size"):
        T.cuda.set_rng_state(state[:3])
    T.cuda.seed()
    assert not T.equal(T.randn(5, device="cuda"), a)


def test_streams_and_events_are_the_one_queue():
    stream, event = T.cuda.Stream(), T.cuda.Event()
    with T.cuda.stream(stream), T.cuda.device(0):
        x = T.ones(3, device="cuda") * 2
        event.record()
    stream.wait_stream(T.cuda.current_stream())
    x.record_stream(T.cuda.current_stream())
    event.synchronize()
    assert event.query() and stream == T.cuda.default_stream() and x.tolist() == [2.0] * 3
    with pytest.raises(ValueError, match="enable_timing=True"):
        event.elapsed_time(T.cuda.Event())


def test_choosing_a_device():
    T.cuda.set_device(0)
    T.cuda.set_device("cuda:0")
    for wrong in (9, "cuda:9"):
        with pytest.raises(RuntimeError, match="invalid device ordinal"):
            T.cuda.set_device(wrong)
    for call in (lambda: T.ones(1).to(9), lambda: T.ones(1).cuda(9), lambda: T.zeros(1, device="cuda:9")):
        with pytest.raises(RuntimeError, match="invalid device ordinal"):
            call()
    with pytest.raises(ValueError, match="cuda device"):
        T.cuda.set_device("cpu")


def test_figures_by_their_names():
    x = T.ones(1000, device="cuda")
    stats = T.cuda.memory_stats()
    assert stats["allocated_bytes.all.current"] == T.cuda.memory_allocated() >= x.nbytes
    assert stats["reserved_bytes.all.peak"] == T.cuda.max_memory_reserved() >= T.cuda.memory_reserved()
    assert "allocated_bytes" in T.cuda.memory_summary() and T.cuda.is_initialized()
    free, total = T.cuda.mem_get_info()
    assert 0 <= free <= total
    assert repr(T.cuda.get_device_properties()).startswith(
        "_CudaDeviceProperties(name='"
    ) and T.cuda.get_device_capability() == (0, 0)


def test_gradients_do_not_change_devices():
    x = T.ones(2, device="cuda", requires_grad=True)
    with pytest.raises(RuntimeError, match="expected device cuda:0 but got cpu"):
        (x * 3).backward(T.ones(2))
    with pytest.raises(RuntimeError, match="different device"):
        x.grad = T.ones(2)

    class Moves(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g.cpu()

    with pytest.raises(
        RuntimeError, match="MovesBackward returned an invalid gradient at index 0 - expected device cuda:0 but got cpu"
    ):
        Moves.apply(x).sum().backward()
    assert x.grad is None


def test_indices_lie_beside_what_they_address():
    x, index = T.arange(6.0, device="cuda").reshape(2, 3), T.tensor([[0], [2]])
    with pytest.raises(RuntimeError, match="same device"):
        x.gather(1, index)
    with pytest.raises(RuntimeError, match="indices should be either on cpu or on the same device"):
        T.ones(3)[T.tensor([1], device="cuda")]
    assert x[T.tensor([1])].tolist() == [[3.0, 4.0, 5.0]]  # from the CPU they are brought along, as in PyTorch
    with pytest.raises(IndexError, match="size 0"):
        T.empty(0, device="cuda")[T.tensor([0])]


def test_pickles_and_copies_keep_the_device():
    import copy
    import pickle

    x = T.arange(6.0, device="cuda").reshape(2, 3).t()
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), x.clone(), T.zeros_like(x) + x):
        assert y.is_cuda and y.tolist() == x.tolist()


def test_classes_of_tensors_say_where_they_lie():
    x, y = T.ones(2), T.ones(2, device="cuda")
    assert x.type(T.cuda.FloatTensor).is_cuda and x.double().type(T.cuda.LongTensor).type() == "torch.cuda.LongTensor"
    assert y.type(T.FloatTensor).is_cpu and y.type(T.Tensor).is_cpu and y.type(T.float64).is_cuda
    assert y.type(T.cuda.FloatTensor) is y and x.type(T.FloatTensor) is x is x.type(T.Tensor)


def test_types_of_the_device():
    x = T.cuda.FloatTensor([1, 2])
    assert x.is_cuda and x.tolist() == [1.0, 2.0] and T.cuda.LongTensor(2, 3).shape == (2, 3)
    assert isinstance(x, T.cuda.FloatTensor) and not isinstance(x, T.FloatTensor) and not isinstance(x, T.cuda.LongTensor)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.cumsum(0),
        lambda x: x.softmax(1),
        lambda x: x.flip(0).sort(1)[0],
        lambda x: x.as_strided((3, 3), (3, 1)),
        lambda x: x.topk(2)[0],
        lambda x: x.std(0),
        lambda x: x.gather(1, T.zeros(6, 2, dtype=T.int64, device=x.device)),
        lambda x: T.nn.functional.cross_entropy(x, T.ones(6, dtype=T.int64, device=x.device)),
    ],
)
def test_backward_is_one_submission_too(call):
    x = T.randn(6, 5).cuda().requires_grad_()
    call(x).sum().backward()
    T.cuda.synchronize()
    before = T.cuda.submits()
    call(x).sum().backward()
    T.cuda.synchronize()
    assert T.cuda.submits() - before <= 1
