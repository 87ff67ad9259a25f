"""What well-known packages ask for when they are imported, and what they get."""

import importlib
import pickle
import sys

import pytest

from library import IS_GRADIRON, T, python_ok

ours = pytest.mark.gradiron


def module(name):
    return importlib.import_module(f"{T.__name__}.{name}")


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
def test_unsigned_integers_have_limits(name):
    kind = getattr(T, name)
    info = T.iinfo(kind)
    assert (info.min, info.max, info.bits) == (0, 2**info.bits - 1, 8 * kind.itemsize)
    assert (str(kind), kind.is_signed, kind.is_floating_point, kind.is_complex) == (f"torch.{name}", False, False, False)
    assert kind != T.int32 and pickle.loads(pickle.dumps(kind)) is kind and {kind: 1}[kind] == 1


@pytest.mark.parametrize(
    "name, limits",
    [
        ("float8_e4m3fn", (0.125, 448.0, -448.0, 2**-6)),
        ("float8_e4m3fnuz", (0.125, 240.0, -240.0, 2**-7)),
        ("float8_e5m2", (0.25, 57344.0, -57344.0, 2**-14)),
        ("float8_e5m2fnuz", (0.25, 57344.0, -57344.0, 2**-15)),
    ],
)
def test_floats_of_one_byte_have_limits(name, limits):
    kind = getattr(T, name)
    info = T.finfo(kind)
    assert (info.eps, info.max, info.min, info.tiny) == limits and kind.is_floating_point and kind.itemsize == 1


@ours
def test_tensors_of_types_that_are_not_there_are_refused():
    for call in (
        lambda: T.zeros(2, dtype=T.float8_e8m0fnu),
        lambda: T.ones(2).to(T.float8_e5m2fnuz),
        lambda: T.tensor([1], dtype=T.float4_e2m1fn_x2),
    ):
        with pytest.raises(NotImplementedError, match="gradiron has no tensors of this type"):
            call()


def test_the_name_of_the_device_meta():
    meta = T.device("meta")
    assert (meta.type, meta.index, str(meta)) == ("meta", None, "meta")
    assert meta == T.device("meta") and meta != T.device("cpu") and T.ones(1).device != meta
    assert pickle.loads(pickle.dumps(meta)) == meta and hash(meta) == hash(T.device("meta"))


class Box:
    def __init__(self, inner):
        self.inner = inner


def test_containers_of_a_programs_own():
    tree = module("utils._pytree")
    if Box not in tree.SUPPORTED_NODES:
        tree.register_pytree_node(Box, lambda box: ([box.inner], None), lambda items, _: Box(*items))
    with pytest.raises(ValueError, match="is already registered as pytree node"):
        tree.register_pytree_node(Box, lambda box: ([box.inner], None), lambda items, _: Box(*items))
    leaves, spec = tree.tree_flatten({"a": Box(3), "b": 4})
    assert leaves == [3, 4] and tree.tree_unflatten([5, 6], spec)["a"].inner == 5
    made = T.func.vmap(lambda box: Box(box.inner * 2))(Box(T.arange(3)))
    assert made.inner.tolist() == [0, 2, 4]
    assert tree.tree_is_leaf(3) and not tree.tree_is_leaf(Box(3))


def test_more_containers():
    from collections import defaultdict, deque

    tree = module("utils._pytree")
    value = {"a": defaultdict(list, x=[1, 2]), "b": deque([3, 4], maxlen=5)}
    made = tree.tree_map(lambda leaf: leaf + 1, value)
    assert made == {"a": {"x": [2, 3]}, "b": deque([4, 5])}
    assert made["a"].default_factory is list and made["b"].maxlen == 5


def test_an_assertion_for_compilers():
    T._assert(True, "fine")
    with pytest.raises(AssertionError, match="wrong"):
        T._assert(False, "wrong")


def test_transforms_are_told():
    assert not T._C._are_functorch_transforms_active() and T._C._get_tracing_state() is None
    seen = []
    T.func.vmap(lambda x: seen.append(T._C._are_functorch_transforms_active()) or x)(T.ones(2))
    assert seen == [True]


def test_libraries_of_operators_do_not_load():
    with pytest.raises(OSError, match="Could not load this library"):
        T.ops.load_library("/nowhere/lib.so")
    with pytest.raises(AttributeError, match="'_OpNamespace' 'nowhere' object has no attribute 'f'"):
        T.ops.nowhere.f


def test_stubs_of_quantisation():
    stub = module("ao.quantization").QuantStub()
    x = T.ones(2)
    assert stub(x) is x and list(stub.parameters()) == []


def test_streams_as_contexts():
    assert module("cuda").StreamContext(None) is not None
    with T.cuda.stream(None):
        pass


def test_weights_that_were_fetched(tmp_path):
    hub = module("hub")
    T.save({"w": T.ones(2)}, tmp_path / "net-abc.pth")
    found = hub.load_state_dict_from_url("https://example.org/models/net-abc.pth?x=1", model_dir=str(tmp_path))
    assert found["w"].tolist() == [1.0, 1.0]
    assert module("utils.model_zoo").load_url is hub.load_state_dict_from_url
    if IS_GRADIRON:
        with pytest.raises(NotImplementedError, match="fetches nothing"):
            hub.load_state_dict_from_url("https://example.org/models/other.pth", model_dir=str(tmp_path))


@ours
def test_all_distributions_stand_in_the_module():
    code = "import gradiron.distributions as d; print(isinstance(vars(d).get('Bernoulli'), type), 'kl' in vars(d))"
    assert python_ok(code).split() == ["True", "True"]


@ours
def test_the_alias_is_called_torch():
    code = "import gradiron\nwith gradiron.as_torch():\n    import torch\n    print(torch.__name__, torch.fft.__name__)\nprint(gradiron.__name__)"
    assert python_ok(code).split() == ["torch", "torch.fft", "gradiron"]
    assert "torch" not in sys.modules or sys.modules["torch"] is not T


def test_products_are_counted():
    counter = module("utils.flop_counter").FlopCounterMode(display=False)
    x, w = T.ones(3, 4), T.ones(4, 5, requires_grad=True)
    with counter:
        (x @ w).sum().backward()
    assert counter.get_total_flops() == 2 * 3 * 4 * 5 * 2


@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda p: p("cpu"), (T.device("cpu"), None, False, None)),
        (lambda p: p(T.float64), (None, T.float64, False, None)),
        (lambda p: p("cpu", T.half, True), (T.device("cpu"), T.half, True, None)),
        (lambda p: p(T.ones(1, dtype=T.double)), (T.device("cpu"), T.float64, False, None)),
        (lambda p: p(device="cpu", memory_format=T.channels_last), (T.device("cpu"), None, False, T.channels_last)),
        (lambda p: p(), (None, None, False, None)),
    ],
)
def test_what_modules_are_moved_to(call, expected):
    assert call(T._C._nn._parse_to) == expected


def test_tensors_tell_which_they_are():
    x = T.ones(2)
    assert x._cdata == x._cdata != x.detach()._cdata
    holder = T.nn.Linear(1, 1)
    assert holder.weight._cdata == holder.weight._cdata != holder.bias._cdata


def test_sobol_sequences():
    engine = module("quasirandom").SobolEngine
    assert engine.MAXDIM == 21201
    with pytest.raises(ValueError, match="Supported range of dimensionality for SobolEngine is"):
        engine(30000)
    if IS_GRADIRON:
        with pytest.raises(NotImplementedError, match="gradiron knows 1111 dimensions, not 1112"):
            engine(1112)


def test_the_package_holds_itself():
    assert T.torch is T


def test_tensors_have_elements():
    assert not module("_subclasses.fake_tensor").is_fake(T.ones(1))
    assert not isinstance(T.ones(1), module("_subclasses").FakeTensor)


def test_types_of_data_loaders():
    loader = module("utils.data.dataloader")
    assert T.Tensor | loader._collate_fn_t and loader._worker_init_fn_t


def test_names_that_kornia_asks_for():
    from importlib import import_module

    fx = import_module(f"{T.__name__}.fx.experimental.proxy_tensor")
    assert fx.get_proxy_mode() is None
    assert not isinstance(1, (T.SymInt, T.SymFloat, T.SymBool))
    assert (str(T.complex32), T.complex32.is_complex, T.complex32.itemsize) == ("torch.complex32", True, 4)
    assert T._assert_async(T.tensor(True)) is None
    for args, text in (((), "Expected Tensor with single nonzero value, but got zero"), (("no",), "no")):
        with pytest.raises(RuntimeError, match=text):
            T._assert_async(T.tensor(0), *args)


def test_the_older_place_of_functions():
    functional = module("functional")
    assert T.functional is functional and functional.einsum is T.einsum and functional.stft is T.stft
    assert set(functional.__all__) <= set(dir(T)) and functional.tensordot is T.tensordot


@ours
def test_names_of_many_machines():
    # Types that programs write, which nothing here is one of.
    assert T.distributed.device_mesh.DeviceMesh is T.distributed.DeviceMesh is not T.distributed.ProcessGroup
    with pytest.raises(ValueError, match="environment variable RANK expected, but not set"):
        T.distributed.init_device_mesh("cpu", (2,))
    assert module("distributed._tensor").DTensor is module("distributed.tensor").DTensor
    with module("distributed._tensor.experimental").implicit_replication():
        assert T.ones(1).item() == 1.0


def test_interfaces_of_scripts_stay_classes():
    @T.jit.interface
    class Shape:
        def forward(self, x: T.Tensor) -> T.Tensor:
            pass

    assert isinstance(Shape, type)


def test_mappings_of_a_programs_own_as_trees():
    tree = module("utils._pytree")

    class Output(dict):
        pass

    tree.register_pytree_node(Output, tree._dict_flatten, lambda items, keys: Output(**tree._dict_unflatten(items, keys)))
    made = tree.tree_map(lambda x: x + 1, [Output(a=1, b=2)])
    assert type(made[0]) is Output and made == [{"a": 2, "b": 3}]


@pytest.mark.parametrize("name", ["TensorType", "ListType", "OptionalType", "AnyType", "NoneType", "ClassType"])
def test_types_of_scripts_can_be_named_not_made(name):
    kind = getattr(T, name)
    assert getattr(module("_C"), name) is kind and issubclass(kind, T.Type) and not isinstance(T.ones(1), kind)
    assert kind.__name__ == name
    with pytest.raises(TypeError):
        kind()


def test_no_tensor_wraps_others():
    dispatch = module("utils._python_dispatch")
    assert not dispatch.is_traceable_wrapper_subclass(T.ones(1)) and not dispatch.is_traceable_wrapper_subclass(3)
    assert not dispatch.is_traceable_wrapper_subclass_type(T.Tensor)


@ours
def test_progress_is_shown_by_the_plain_bar(monkeypatch):
    bars = type(sys)("tqdm")
    bars.tqdm = lambda loader: loader
    monkeypatch.setitem(sys.modules, "tqdm", bars)
    assert T.hub.tqdm is bars.tqdm


def test_a_batch_for_one_device():
    parts = module("nn.parallel.scatter_gather")
    if not T.cuda.is_available():
        pytest.skip("there is no GPU")
    x = T.ones(2, 3)
    (there,) = parts.scatter(x, [0])
    assert there.is_cuda and there.shape == (2, 3)
    ((one, name),) = parts.scatter((x, "name"), [0])
    assert one.is_cuda and name == "name"
    (given,), (named,) = parts.scatter_kwargs((x,), {"y": x}, [0])
    assert given[0].is_cuda and named["y"].is_cuda
    assert parts.gather([there], "cpu").device.type == "cpu"


@ours
def test_a_batch_for_several_devices_is_refused():
    parts = module("nn.parallel.scatter_gather")
    for call in (lambda: parts.scatter(T.ones(2), [0, 1]), lambda: parts.gather([T.ones(1), T.ones(1)], 0)):
        with pytest.raises(RuntimeError, match="was given 2 devices, but gradiron has one GPU"):
            call()


def test_names_that_captum_and_ultralytics_ask_for():
    assert issubclass(T.jit.TracerWarning, Warning)
    assert T.utils.deterministic.fill_uninitialized_memory is True
    assert isinstance(T.futures.Future(), T.Future)


@pytest.mark.parametrize("dtype", [T.float32, T.float64])
def test_a_sigmoid_that_keeps_away_from_its_ends(dtype):
    x = T.tensor([-1000.0, 0.0, 1000.0], dtype=dtype)
    made = module("distributions.transforms")._clipped_sigmoid(x)
    assert made[1] == 0.5 and made[2] == 1 - T.finfo(dtype).eps and 0 < made[0] < 1e-37


@pytest.mark.parametrize("name", ["relu", "relu6", "leaky_relu", "sigmoid", "tanh"])
def test_activations_take_attributes(name):
    function = getattr(T.nn.functional, name)
    function.__default_init__ = T.nn.init.kaiming_uniform_
    try:
        assert getattr(T.nn.functional, name).__default_init__ is T.nn.init.kaiming_uniform_
    finally:
        del function.__default_init__
    x = T.tensor([-2.0, 7.0], requires_grad=True)
    method = {"relu6": lambda x: x.clamp(0, 6), "leaky_relu": lambda x: T.where(x > 0, x, 0.01 * x)}.get(
        name, getattr(T, name, None)
    )
    assert function(x).tolist() == pytest.approx(method(x).tolist()) and function(x).grad_fn is not None
    with pytest.raises(TypeError):
        function(x, 0.1, False, 3)


def test_tensors_in_one_row():
    utils = module("_utils")
    parts = [T.ones(2, 3, requires_grad=True), T.arange(3.0), T.tensor(2.0)]
    row = utils._flatten_dense_tensors(parts)
    assert row.tolist() == [1.0] * 6 + [0.0, 1.0, 2.0, 2.0] and row.grad_fn is not None
    back = utils._unflatten_dense_tensors(row, parts)
    assert [t.shape for t in back] == [t.shape for t in parts] and back[1]._base is row


@ours
def test_exchanges_with_gradients_need_a_group():
    exchanges = module("distributed.nn")
    with pytest.raises(ValueError, match="^Default process group has not been initialized"):
        exchanges.all_reduce(T.ones(1))


@pytest.mark.filterwarnings("ignore")
def test_the_machine_tells_of_itself():
    collect = module("utils.collect_env")
    text = collect.get_pretty_env_info()
    assert (
        f"PyTorch version: {T.__version__}\n" in text
        and "\nPython version: " in text
        and f"Is CUDA available: {T.cuda.is_available()}" in text
    )
    assert collect.pretty_str(collect.get_env_info()) == text


@ours
def test_older_names_of_the_gpus_memory():
    assert T.cuda.memory_cached() == T.cuda.memory_reserved() and T.cuda.max_memory_cached() == T.cuda.max_memory_reserved()
    T.cuda.reset_max_memory_allocated()
    T.cuda.ipc_collect()
