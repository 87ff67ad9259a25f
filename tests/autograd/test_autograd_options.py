"""Options of the public functions of autograd that no other topic asks for, with what they refuse."""

import importlib

import pytest

from library import NAME, T, assert_values, leaf

AG = T.autograd
checks = importlib.import_module(f"{NAME}.autograd.gradcheck")
checkpoints = importlib.import_module(f"{NAME}.utils.checkpoint")
profiler = importlib.import_module(f"{NAME}.profiler")
old_profiler = importlib.import_module(f"{NAME}.autograd.profiler")
assert_close = T.testing.assert_close


def doubles(*shape):
    return T.full(shape, 0.7, dtype=T.float64, requires_grad=True)


# --- backward and grad ---


@pytest.mark.filterwarnings("error")
def test_older_names_of_arguments():
    x = leaf([1.0, 2.0])
    with pytest.warns(FutureWarning, match="`grad_variables` is deprecated"):
        AG.backward(x * 2, grad_variables=[T.ones(2)])
    assert_values(x.grad, [2.0, 2.0])
    message = "both passed to `backward\\(\\)`. Please only use `grad_tensors`"
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match=message):
        AG.backward(x * 2, T.ones(2), grad_variables=[T.ones(2)])
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated and is ignored now"):
        (gradient,) = AG.grad((x * 3).sum(), x, only_inputs=False)
    assert_values(gradient, [3.0, 3.0])
    assert_values(AG.grad((x * 3).sum(), x, only_inputs=True)[0], [3.0, 3.0])


@pytest.mark.filterwarnings("error")
def test_volatile_variables():
    with pytest.warns(UserWarning, match="volatile was removed and now has no effect"):
        assert not AG.Variable(T.ones(2), volatile=True).requires_grad
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="can't be volatile and require_grad at the same time"):
        AG.Variable(T.ones(2), True, True)


def test_an_edge_of_one_s_own():
    y = leaf([1.0]) * 2
    edge = AG.graph.get_gradient_edge(y)
    assert edge._fields == ("node", "output_nr", "ownership_token")
    assert AG.graph.GradientEdge(edge.node, 0).ownership_token is None
    assert AG.graph.GradientEdge(edge.node, 0, ownership_token=3).ownership_token == 3


def test_levels_of_tangents():
    x, v = leaf([1.0]), T.ones(1)
    with AG.forward_ad.dual_level():
        dual = AG.forward_ad.make_dual(x, v)
        assert_values(AG.forward_ad.unpack_dual(dual, level=0).tangent, [1.0])
        assert AG.forward_ad.unpack_dual(dual, level=-1).tangent is None
        assert AG.forward_ad.unpack_dual(x, level=3).tangent is None
    assert AG.forward_ad.unpack_dual(x, level=0).tangent is None


# --- gradcheck ---


def test_the_function_wins_over_its_module():
    assert AG.gradcheck is checks.gradcheck and AG.gradgradcheck is checks.gradgradcheck


class Passes(AG.Function):
    """Hands on a gradient that it may not get, or makes one up."""

    made_up = False

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 1

    @classmethod
    def backward(cls, ctx, g):
        return T.ones(2, dtype=T.float64) if g is None else g * 1


class FailsOnNothing(Passes):
    @staticmethod
    def backward(ctx, g):
        return g * 1


@pytest.mark.filterwarnings("ignore:Backwards compatibility")
def test_undefined_gradients():
    message = "Expected all input grads to be undefined or zero when all output grads are undefined or zero"
    with pytest.raises(checks.GradcheckError, match=message):
        AG.gradcheck(lambda x: Passes.apply(x), doubles(2))
    with pytest.raises(TypeError, match="unsupported operand"):
        AG.gradcheck(FailsOnNothing.apply, doubles(2))
    for function in (Passes, FailsOnNothing):
        assert AG.gradcheck(function.apply, doubles(2), check_undefined_grad=False)


def test_dtypes_of_gradients():
    for check in (AG.gradcheck, AG.gradgradcheck):
        assert check(lambda x: x**3, doubles(2), check_grad_dtypes=True)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_masked(fast_mode):
    for check in (AG.gradcheck, AG.gradgradcheck):
        assert check(lambda x: x * x, doubles(2), masked=True, fast_mode=fast_mode)


def test_steps_and_tolerances_of_the_second_order():
    with pytest.raises(checks.GradcheckError, match="Jacobian mismatch"):
        AG.gradgradcheck(lambda x: x**5, doubles(2), eps=1.0)
    assert AG.gradgradcheck(lambda x: x**5, doubles(2), eps=0.1, rtol=10.0)
    assert AG.gradgradcheck(lambda x: x**2, doubles(2), nondet_tol=1e-3)
    assert not AG.gradgradcheck(lambda x: x**5, doubles(2), eps=1.0, raise_exception=False)


# --- assert_close, assert_allclose, make_tensor ---


def test_subclasses():
    parameter = T.nn.Parameter(T.ones(2))
    assert_close(parameter, T.ones(2), allow_subclasses=True)
    with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
        assert_close(parameter, T.ones(2), allow_subclasses=False)


def test_what_beside_values_is_compared():
    assert_close(T.ones(2, 3), T.ones(3, 2).t())
    with pytest.raises(AssertionError, match="The values for attribute 'stride\\(\\)' do not match"):
        assert_close(T.ones(2, 3), T.ones(3, 2).t(), check_stride=True)
    assert_close(T.ones(2), T.ones(2), check_layout=False, check_device=False)
    assert_close(T.ones(2), T.ones(2, dtype=T.float64), check_dtype=False)
    with pytest.raises(AssertionError, match="attribute 'dtype' do not match"):
        assert_close(T.ones(2), T.ones(2, dtype=T.float64))


def test_messages():
    with pytest.raises(AssertionError, match="^mine$"):
        assert_close(T.ones(2), T.zeros(2), msg="mine")
    with pytest.raises(AssertionError, match="^before: Tensor-likes are not close"):
        assert_close(T.ones(2), T.zeros(2), msg=lambda text: f"before: {text}")
    with pytest.raises(AssertionError, match="(?s)^before: .*The failure occurred for item \\[0\\]$"):
        assert_close([T.ones(2)], [T.zeros(2)], msg=lambda text: f"before: {text}")


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_assert_allclose():
    nan = T.tensor([float("nan")])
    T.testing.assert_allclose(nan, nan)
    with pytest.raises(AssertionError):
        T.testing.assert_allclose(nan, nan, equal_nan=False)
    with pytest.raises(AssertionError, match="^mine$"):
        T.testing.assert_allclose(T.tensor([1.0]), T.tensor([2.0]), msg="mine")


def test_make_tensor_in_channels_last():
    made = T.testing.make_tensor(2, 3, 4, 5, dtype=T.float32, device="cpu", memory_format=T.channels_last)
    assert made.stride() == (60, 1, 15, 3)
    with pytest.raises(ValueError, match="mutually exclusive"):
        T.testing.make_tensor(2, 3, 4, 5, dtype=T.float32, device="cpu", memory_format=T.channels_last, noncontiguous=True)
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        T.testing.make_tensor(2, 3, dtype=T.float32, device="cpu", memory_format=T.channels_last)


# --- checkpoints ---


def test_kinds_of_devices():
    kinds = checkpoints.DefaultDeviceType
    before = kinds.get_device_type()
    kinds.set_device_type("cpu")
    assert kinds.get_device_type() == "cpu"
    kinds.set_device_type(before)
    assert checkpoints.get_device_states(T.ones(2)) == ([], [])
    checkpoints.set_device_states([], [], device_type="cpu")


def test_contexts_that_do_nothing():
    first, second = checkpoints.noop_context_fn()
    x = leaf([1.0])
    with first, second:
        y = checkpoints.checkpoint(lambda t: t * 3, x, use_reentrant=False, context_fn=checkpoints.noop_context_fn)
    y.backward()
    assert_values(x.grad, [3.0])


def test_the_reentrant_checkpoint_itself():
    x = leaf([1.0])
    for preserve_rng_state in (True, False):
        y = checkpoints.CheckpointFunction.apply(lambda t: t * 2, preserve_rng_state, x)
        assert y.grad_fn.name() == "CheckpointFunctionBackward"
        y.backward()
    assert_values(x.grad, [4.0])


def test_what_a_policy_is_told():
    context = checkpoints.SelectiveCheckpointContext(is_recompute=True)
    assert context.is_recompute and context.op_output is None
    assert checkpoints.SelectiveCheckpointContext(is_recompute=False, op_output=3).op_output == 3


# --- transforms ---


@pytest.mark.parametrize("chunk_size", [None, 1, 2])
def test_jacobians_written_at_once(chunk_size):
    found = T.func.jacrev(lambda x: (x * 2, x.sum()), chunk_size=chunk_size, _preallocate_and_copy=True)(T.ones(3))
    assert_values(found[0], 2 * T.eye(3))
    assert_values(found[1], T.ones(3))


def test_places_of_outputs_are_checked_first():
    calls = []
    for options in ({}, {"chunk_size": 1}):
        with pytest.raises(ValueError, match="`out_dims` must be an int, None or a python collection of ints"):
            T.func.vmap(calls.append, out_dims=(0, "x"), **options)(T.ones(2))
    assert calls == []


def test_several_gradients_and_the_value():
    a, b = T.tensor([1.0, 2.0]), T.tensor([3.0, 4.0])
    gradients, value = T.func.grad_and_value(lambda p, q: (p * q).sum(), argnums=(0, 1))(a, b)
    assert_values(gradients[0], b)
    assert_values(gradients[1], a)
    assert_values(value, 11.0)


def test_a_pullback_that_frees_its_graph():
    x, v = T.tensor([0.5, 1.5]), T.ones(2)
    for f in (lambda a: a**2, T.exp, T.func.grad(lambda b: (b**3).sum())):
        _, pull = T.func.vjp(f, x)
        first = pull(v, retain_graph=True)[0]
        assert_values(pull(v, retain_graph=False)[0], first)
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            pull(v)


# --- the profiler ---


def test_before_and_after_a_profile():
    profile = old_profiler.profile()
    assert repr(profile) == "<unfinished torch.autograd.profile>"
    with profile:
        assert str(profile) == "<unfinished torch.autograd.profile>"
        T.ones(2) * 2
    assert "aten::mul" in repr(profile)


def test_devices_of_a_profile():
    with pytest.warns(UserWarning, match="The zz is not a valid device option."):
        assert old_profiler.profile(use_device="zz").use_device is None


@pytest.fixture(scope="module")
def profile():
    with old_profiler.profile(with_stack=True, record_shapes=True) as p:
        T.ones(2) * 2
    return p


@pytest.mark.parametrize(("unit", "shown"), [("s", "s"), ("ms", "ms"), ("us", "us"), (None, ("us", "ms")), ("ns", "us")])
def test_units_of_a_table(profile, unit, shown):
    (line,) = (line for line in profile.function_events.table(time_unit=unit).splitlines() if "aten::mul" in line)
    number = line.split()[2]
    assert number.endswith(shown) and number.rstrip("mus").replace(".", "").isdecimal()


@pytest.mark.parametrize("option", ["group_by_input_shape", "group_by_overload_name", "include_python_functions"])
def test_sums_by_more(profile, option):
    assert "aten::mul" in [event.key for event in profile.key_averages(**{option: True})]


def test_measures_of_stacks(profile, tmp_path):
    measures = profile.function_events.supported_export_stacks_metrics()
    assert "self_cpu_time_total" in measures
    with pytest.raises(ValueError, match="metric should be one of"):
        profile.export_stacks(str(tmp_path / "stacks"), "zz")


def test_pauses_of_a_recording():
    cpu, gpu = profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA
    x = T.ones(2)
    for made in (profiler.profile(activities=[cpu]), old_profiler.profile(use_kineto=True)):
        with made as profile:
            x * 2
            profile.toggle_collection_dynamic(False, [cpu])
            x.exp()
            profile.toggle_collection_dynamic(False, [cpu])
            profile.toggle_collection_dynamic(True, {cpu})
            x.sin()
            profile.toggle_collection_dynamic(False, [])
            profile.toggle_collection_dynamic(False, [gpu])
            x.cos()
            with pytest.raises(TypeError):
                profile.toggle_collection_dynamic(False, ["x"])
            with pytest.raises(TypeError):
                profile.toggle_collection_dynamic(False, 3)
            profile.toggle_collection_dynamic(False, [cpu])
            x.tan()
        events = profile.events() if hasattr(profile, "events") else profile.function_events
        names = [event.name for event in events]
        assert [name for name in names if name in ("aten::mul", "aten::exp", "aten::sin", "aten::cos", "aten::tan")] == [
            "aten::mul",
            "aten::sin",
            "aten::cos",
        ]
    profiler.profile().toggle_collection_dynamic(True, [cpu])


def test_schedules_that_wait_once():
    def actions(**options):
        plan = profiler.schedule(wait=1, warmup=1, active=1, repeat=2, skip_first=2, **options)
        return [plan(i).name for i in range(8)]

    none, warm, save = "NONE", "WARMUP", "RECORD_AND_SAVE"
    assert actions() == [none, none, none, warm, save, none, warm, save]
    assert actions(skip_first_wait=1) == [none, none, warm, save, none, warm, save, none]


def test_generators_and_their_copies():
    generator = T.Generator(device="cpu")
    assert str(generator.device) == "cpu"
    generator.manual_seed(7)
    other = generator.clone_state()
    first = T.rand(3, generator=generator)
    assert_values(T.rand(3, generator=other), first)
    assert T.rand(3, generator=generator).tolist() == T.rand(3, generator=other).tolist() != first.tolist()
    with pytest.raises(RuntimeError, match="has size 3 in dim -1 and second has size 4 in dim 1"):
        T.tensordot(T.ones(2, 3), T.ones(2, 4), 2)


# --- tensors ---


@pytest.mark.parametrize("descending", [False, True])
def test_stable_sorts(descending):
    x = T.tensor([1, 0] * 20)
    values, places = x.sort(stable=True, descending=descending)
    expected = sorted(range(40), key=lambda i: -x[i].item() if descending else x[i].item())
    assert places.tolist() == x.argsort(stable=True, descending=descending).tolist() == expected
    assert values.tolist() == sorted(x.tolist(), reverse=descending)


def test_the_most_unsorted():
    assert sorted(T.tensor([3.0, 1.0, 2.0]).topk(2, sorted=False).values.tolist()) == [2.0, 3.0]
    assert T.tensor([3.0, 1.0, 2.0]).topk(2, largest=False).values.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("counts", [False, True])
def test_what_unique_returns(inverse, counts):
    x = T.tensor([3, 1, 3, 3])
    expected = [[1, 3]] + [[1, 0, 1, 1]] * inverse + [[1, 3]] * counts
    found = x.unique(return_inverse=inverse, return_counts=counts)
    assert [t.tolist() for t in (found if inverse or counts else [found])] == expected
    expected = [[3, 1, 3]] + [[0, 1, 2, 2]] * inverse + [[1, 1, 2]] * counts
    found = x.unique_consecutive(return_inverse=inverse, return_counts=counts)
    assert [t.tolist() for t in (found if inverse or counts else [found])] == expected


def test_what_replaces_infinities():
    x = T.tensor([float("nan"), float("inf"), float("-inf")])
    assert x.nan_to_num(1.0, posinf=2.0, neginf=-3.0).tolist() == [1.0, 2.0, -3.0]
    assert x.clone().nan_to_num_(posinf=2.0, neginf=-3.0).tolist() == [0.0, 2.0, -3.0]


def test_formats_of_conversions():
    x = T.ones(2, 3, 4, 5)
    for convert in (x.half, x.bfloat16, x.double, x.long, x.cfloat, x.cdouble):
        assert convert(memory_format=T.channels_last).stride() == (60, 1, 15, 3)
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        T.ones(2).half(memory_format=T.channels_last)


def test_copies_that_need_not_wait():
    assert T.zeros(2).copy_(T.ones(2), non_blocking=True).tolist() == [1.0, 1.0]
    assert T.zeros(2).to(T.float64, non_blocking=True, copy=True).dtype == T.float64


@pytest.mark.parametrize("name", ["new_zeros", "new_ones", "new_empty", "new_full"])
def test_new_tensors_of_another_kind(name):
    value = (7,) if name == "new_full" else ()
    x = T.ones(2, dtype=T.float64)
    made = getattr(x, name)((3,), *value)
    assert made.dtype == T.float64 and made.shape == (3,) and not made.requires_grad
    options = {"dtype": T.float32, "layout": T.strided, "device": "cpu", "pin_memory": False, "requires_grad": True}
    made = getattr(x, name)((3,), *value, **options)
    assert made.dtype == T.float32 and made.requires_grad and made.is_leaf


def test_names_that_few_use():
    x = T.arange(16.0).reshape(2, 2, 4)
    assert [t.shape for t in x.dsplit(2)] == [(2, 2, 2)] * 2
    assert [t.shape for t in x.vsplit(2)] == [(1, 2, 4)] * 2
    assert x.moveaxis(0, 2).shape == (2, 4, 2) and x.swapdims(0, 2).shape == (4, 2, 2)
    assert_values(x.flipud(), x.flip(0))
    assert_values(T.tensor([float("nan"), 2.0, 4.0]).nanmean(), 3.0)
    assert x.flatten(start_dim=0, end_dim=1).shape == (4, 4)
    assert not x.is_pinned() and x.ndimension() == 3
    assert x.new_empty_strided((2, 3), (1, 2)).stride() == (1, 2)
    assert not any(getattr(x, f"is_{kind}") for kind in ("mps", "xla", "xpu", "vulkan", "sparse_csr", "meta"))


# --- what tensors are made of and given ---


def test_variables_and_parameters():
    assert AG.Variable().shape == T.nn.Parameter().shape == (0,)
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got int"):
        AG.Variable(3)
    with pytest.raises(AttributeError, match="'int' object has no attribute 'detach'"):
        T.nn.Parameter(3)
    parameter = T.nn.Parameter(T.ones(2))
    assert repr(parameter) == str(parameter) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert isinstance(parameter, T.nn.Parameter) and not isinstance(T.ones(2), T.nn.Parameter)


def test_parameters_of_another_class():
    class Tagged(T.Tensor):
        pass

    parameter = T.nn.Parameter(T.ones(2).as_subclass(Tagged))
    assert type(parameter) is Tagged and isinstance(parameter, T.nn.Parameter)
    assert parameter.requires_grad and parameter.is_leaf


def test_none_is_no_flag():
    message = "argument 'requires_grad' \\(position 1\\) must be bool, not NoneType"
    with pytest.raises(TypeError, match=message):
        T.ones(2).requires_grad_(None)
    assert T.ones(2).requires_grad_().requires_grad and not leaf([1.0]).requires_grad_(requires_grad=False).requires_grad


def test_gradients_in_a_sequence():
    for given in ([T.ones(2)], (T.ones(2), 3)):
        x = leaf([1.0, 2.0])
        (x * 2).backward(given)
        assert_values(x.grad, [2.0, 2.0])
    with pytest.raises(RuntimeError, match="got 1 tensors and 0 gradients"):
        (leaf([1.0, 2.0]) * 2).backward([])
    with pytest.raises(TypeError, match="'int' object is not iterable"):
        (leaf([1.0, 2.0]) * 2).backward(3)


def test_the_node_of_a_function_over_samples():
    class Doubles(AG.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g * 2

    y = T.func.vmap(Doubles.apply)(leaf([1.0, 2.0]))
    assert y.grad_fn.name() == "VmappedDoublesBackward"


def test_no_parameter_of_whole_numbers():
    with pytest.raises(RuntimeError, match="^Only Tensors of floating point and complex dtype can require gradients"):
        T.nn.Parameter(T.ones(2, dtype=T.int64))
    assert T.nn.Parameter(T.ones(2, dtype=T.int64), requires_grad=False).dtype == T.int64
