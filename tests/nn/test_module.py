"""Modules: what they register, list, change, print, copy and pickle, and what they refuse."""

import copy
import pickle
import warnings

import pytest

from library import T, assert_values, python_ok

nn = T.nn


class Scale(nn.Module):
    def __init__(self, size=2):
        super().__init__()
        self.weight = nn.Parameter(T.ones(size))
        self.register_buffer("count", T.zeros(1))
        self.register_buffer("cache", T.zeros(2, dtype=T.int64), persistent=False)

    def forward(self, x):
        return x * self.weight

    def extra_repr(self):
        return f"size={self.weight.numel()}"


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Scale()
        self.second = Scale(3)
        self.again = self.first
        self.nothing = None
        self.register_module("later", None)
        self.register_parameter("bias", None)


def test_names():
    m = Pair()
    assert [n for n, _ in m.named_parameters()] == ["first.weight", "second.weight"]
    assert [n for n, _ in m.named_parameters(remove_duplicate=False)] == ["first.weight", "second.weight", "again.weight"]
    assert [n for n, _ in m.named_parameters(prefix="p")] == ["p.first.weight", "p.second.weight"]
    assert [n for n, _ in m.named_parameters(recurse=False)] == []
    assert [n for n, _ in m.named_buffers()] == ["first.count", "first.cache", "second.count", "second.cache"]
    assert [n for n, _ in m.named_children()] == ["first", "second"]
    assert [n for n, _ in m.named_modules()] == ["", "first", "second"]
    assert [n for n, _ in m.named_modules(remove_duplicate=False)] == ["", "first", "second", "again"]
    assert list(m.modules()) == [m, m.first, m.second] and list(m.children()) == [m.first, m.second]
    assert [p.numel() for p in m.parameters()] == [2, 3] and len(list(m.buffers())) == 4


def test_by_dotted_names():
    m = Pair()
    assert m.get_submodule("") is m and m.get_submodule("second") is m.second
    assert m.get_parameter("second.weight") is m.second.weight
    assert m.get_buffer("first.count") is m.first.count
    m.set_submodule("second", nn.Module())
    assert type(m.second) is nn.Module
    m.set_submodule("new", Scale())
    assert isinstance(m.new, Scale)
    for call, kind, text in [
        (lambda: m.get_submodule("no.where"), AttributeError, "Pair has no attribute `no`"),
        (lambda: m.get_submodule("first.weight"), AttributeError, "`weight` is not an nn.Module"),
        (lambda: m.get_parameter("first.count"), AttributeError, "`count` is not an nn.Parameter"),
        (lambda: m.get_parameter("first.no"), AttributeError, "Scale has no attribute `no`"),
        (lambda: m.get_buffer("first.weight"), AttributeError, "`weight` is not a buffer"),
        (lambda: m.set_submodule("", nn.Module()), ValueError, "Cannot set the submodule without a target name!"),
        (lambda: m.set_submodule("first", 3), ValueError, "`module` is not an nn.Module, found <class 'int'>"),
        (lambda: m.set_submodule("first.weight", nn.Module()), AttributeError, "`weight` is not an nn.Module"),
        (lambda: m.set_submodule("first.no", nn.Module(), strict=True), AttributeError, "Scale has no attribute `no`"),
    ]:
        with pytest.raises(kind) as error:
            call()
        assert str(error.value) == text


def test_registration_errors():
    m = Scale()
    for call, kind, text in [
        (lambda: m.register_buffer(1, None), TypeError, "buffer name should be a string. Got int"),
        (lambda: m.register_buffer("a.b", None), KeyError, 'buffer name can\'t contain "."'),
        (lambda: m.register_buffer("", None), KeyError, 'buffer name can\'t be empty string ""'),
        (lambda: m.register_buffer("weight", None), KeyError, "attribute 'weight' already exists"),
        (
            lambda: m.register_buffer("b", 3),
            TypeError,
            "cannot assign 'int' object to buffer 'b' (torch Tensor or None required)",
        ),
        (lambda: m.register_parameter(1, None), TypeError, "parameter name should be a string. Got int"),
        (lambda: m.register_parameter("a.b", None), KeyError, 'parameter name can\'t contain "."'),
        (lambda: m.register_parameter("", None), KeyError, 'parameter name can\'t be empty string ""'),
        (lambda: m.register_parameter("count", None), KeyError, "attribute 'count' already exists"),
        (
            lambda: m.register_parameter("p", T.ones(1)),
            TypeError,
            "cannot assign 'torch.FloatTensor' object to parameter 'p' (torch.nn.Parameter or None required)",
        ),
        (lambda: m.add_module(1, None), TypeError, "module name should be a string. Got int"),
        (lambda: m.add_module("a.b", None), KeyError, 'module name can\'t contain ".", got: a.b'),
        (lambda: m.add_module("", None), KeyError, 'module name can\'t be empty string ""'),
        (lambda: m.add_module("weight", None), KeyError, "attribute 'weight' already exists"),
        (lambda: m.add_module("x", 3), TypeError, "int is not a Module subclass"),
        (
            lambda: setattr(m, "weight", T.ones(2)),
            TypeError,
            "cannot assign 'torch.FloatTensor' as parameter 'weight' (torch.nn.Parameter or None expected)",
        ),
        (
            lambda: setattr(m, "count", 3),
            TypeError,
            "cannot assign 'int' as buffer 'count' (torch.nn.Buffer, torch.Tensor or None expected)",
        ),
        (lambda: m.nothing, AttributeError, "'Scale' object has no attribute 'nothing'"),
        (lambda: delattr(m, "nothing"), AttributeError, "'Scale' object has no attribute 'nothing'"),
        (lambda: nn.Module()(1), NotImplementedError, 'Module [Module] is missing the required "forward" function'),
        (lambda: nn.Module(1), TypeError, "Module.__init__() takes 1 positional argument but 2 were given"),
        (lambda: nn.Module(a=1), TypeError, "Module.__init__() got an unexpected keyword argument 'a'"),
    ]:
        with pytest.raises(kind) as error:
            call()
        assert error.value.args[0] == text
    m.sub = nn.Module()
    with pytest.raises(TypeError, match=r"cannot assign 'int' as child module 'sub' \(torch.nn.Module or None expected\)"):
        m.sub = 3


def test_a_parameter_must_be_a_leaf():
    class Marked(T.Tensor):
        pass

    m = nn.Module()
    made = (T.ones(1, requires_grad=True) * 2).as_subclass(Marked)
    made._is_param = True
    with pytest.raises(ValueError, match="^Cannot assign non-leaf Tensor to parameter 'w'. Model parameters must be created"):
        m.register_parameter("w", made)


@pytest.mark.parametrize(
    "value, kind",
    [(lambda: nn.Parameter(T.ones(1)), "parameters"), (nn.Module, "module"), (lambda: nn.Buffer(T.ones(1)), "buffer")],
)
def test_before_init(value, kind):
    class Early(nn.Module):
        def __init__(self):
            self.early = value()

    with pytest.raises(AttributeError, match=rf"^cannot assign {kind} before Module.__init__\(\) call"):
        Early()


def test_assignment_moves_between_stores():
    m = nn.Module()
    m.x = 3
    m.x = nn.Parameter(T.ones(1))
    assert "x" in m._parameters and "x" not in m.__dict__
    m.x = None
    assert m.x is None and "x" in m._parameters
    del m.x
    m.x = nn.Module()
    assert "x" in m._modules and "x" not in m._parameters
    m.x = None
    assert m.x is None and "x" in m._modules
    m.x = nn.Parameter(T.ones(1))
    assert "x" in m._parameters and "x" not in m._modules
    del m.x
    assert not hasattr(m, "x")
    m.y = T.ones(1)
    assert "y" not in m._buffers
    with pytest.raises(KeyError, match="attribute 'y' already exists"):
        m.y = nn.Buffer(T.ones(2), persistent=False)
    m.register_buffer("z", T.ones(1), persistent=False)
    m.z = T.zeros(3)
    assert m._buffers["z"].shape == (3,) and "z" in m._non_persistent_buffers_set
    del m.z
    assert not m._non_persistent_buffers_set


def test_buffers_that_know_whether_they_persist():
    m = nn.Module()
    m.a = nn.Buffer(T.ones(1))
    m.b = nn.Buffer(T.ones(1), persistent=False)
    assert isinstance(m.a, nn.Buffer) and isinstance(m.a, T.Tensor) and not isinstance(T.ones(1), nn.Buffer)
    assert list(m.state_dict()) == ["a"] and [n for n, _ in m.named_buffers()] == ["a", "b"]


def test_register_buffer_that_is_overridden():
    class Old(nn.Module):
        def register_buffer(self, name, tensor):
            super().register_buffer(name, tensor)

    m = Old()
    m.a = nn.Buffer(T.ones(1))
    assert "a" in m._buffers
    with pytest.raises(RuntimeError, match="^Registering a non-persistent buffer on a Module subclass that implements"):
        m.b = nn.Buffer(T.ones(1), persistent=False)


def test_dtypes():
    m = Scale()
    m.weight.grad = T.ones(2)
    assert m.double() is m and m.weight.dtype == m.count.dtype == m.weight.grad.dtype == T.float64
    assert m.cache.dtype == T.int64
    weight = m.weight
    assert m.half().weight is weight and weight.dtype == T.float16 and m.float().bfloat16().count.dtype == T.bfloat16
    assert m.to(T.float32).weight.dtype == T.float32 and m.to(dtype=T.float64).count.dtype == T.float64
    assert m.to(T.zeros(1)).weight.dtype == T.float32 and m.to("cpu", T.float64).weight.dtype == T.float64
    assert m.type(T.float32).cache.dtype == T.float32
    assert isinstance(weight, nn.Parameter) and weight.requires_grad and weight.is_leaf
    with pytest.raises(
        TypeError, match="^nn.Module.to only accepts floating point or complex dtypes, but got desired dtype=torch.int64"
    ):
        m.to(T.int64)
    with pytest.warns(UserWarning, match="^Complex modules are a new feature"):
        m.to(T.complex64)
    with pytest.raises(RuntimeError, match="copy"):
        m.to("cpu", copy=True)


def test_memory_format():
    m = nn.Module()
    m.four, m.two = nn.Parameter(T.ones(2, 3, 4, 4)), nn.Parameter(T.ones(2, 3))
    m.to(memory_format=T.channels_last)
    assert m.four.is_contiguous(memory_format=T.channels_last) and m.two.is_contiguous()


def test_to_empty():
    m = Pair()
    m.to_empty(device="cpu")
    assert m.first.weight.shape == (2,) and m.first.cache.dtype == T.int64


def test_devices(device):
    m = Scale().to(device)
    assert {t.device.type for t in (m.weight, m.count, m.cache)} == {device}
    assert_values(m(T.tensor([2.0, 3.0], device=device)), [2.0, 3.0])
    assert m.cpu().weight.device.type == "cpu"


def test_overwriting_and_swapping_conversions():
    try:
        m = Scale()
        m.weight.grad = T.ones(2)
        old = m.weight
        T.__future__.set_overwrite_module_params_on_conversion(True)
        m.double()
        assert m.weight is not old and old.dtype == T.float32 and m.weight.grad.dtype == T.float64
        T.__future__.set_overwrite_module_params_on_conversion(False)
        T.__future__.set_swap_module_params_on_conversion(True)
        old = m.weight
        m.float()
        assert m.weight is old and old.dtype == T.float32 and isinstance(old, nn.Parameter) and old.grad.dtype == T.float32
    finally:
        T.__future__.set_overwrite_module_params_on_conversion(False)
        T.__future__.set_swap_module_params_on_conversion(False)


def test_modes_and_gradients():
    m = Pair()
    assert m.training and not m.eval().first.training and m.train().second.training
    with pytest.raises(ValueError, match="^training mode is expected to be boolean"):
        m.train(1)
    m.first(T.ones(2)).sum().backward()
    grad = m.first.weight.grad
    m.zero_grad(set_to_none=False)
    assert m.first.weight.grad is grad and grad.sum() == 0
    m.zero_grad()
    assert m.first.weight.grad is None
    m.requires_grad_(False)
    assert not m.first.weight.requires_grad and m.requires_grad_().second.weight.requires_grad


def test_apply_goes_from_the_leaves_up():
    seen = []
    m = Pair()
    assert m.apply(lambda module: seen.append(type(module).__name__)) is m
    assert seen == ["Scale", "Scale", "Pair"]


def test_print():
    assert repr(nn.Module()) == "Module()"
    assert repr(Scale()) == "Scale(size=2)"
    assert repr(Pair()) == (
        "Pair(\n  (first): Scale(size=2)\n  (second): Scale(size=3)\n  (again): Scale(size=2)\n  (later): None\n)"
    )

    class Lines(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Pair()

        def extra_repr(self):
            return "one\ntwo"

    shown = repr(Lines())
    assert shown.startswith("Lines(\n  one\n  two\n  (inner): Pair(\n    (first): Scale(size=2)\n")
    assert shown.endswith("    (later): None\n  )\n)")


def test_dir_and_hasattr():
    m = Pair()
    assert {"first", "second", "forward", "training"} <= set(dir(m)) and hasattr(m, "bias") and not hasattr(m, "beta")
    assert not any(name.isdigit() for name in dir(nn.Sequential(nn.Module())))


def test_copies():
    m = Pair()
    m.first.weight.grad = T.ones(2)
    other = copy.deepcopy(m)
    assert other.first is other.again and other.first.weight is not m.first.weight
    assert isinstance(other.first.weight, nn.Parameter) and other.first.weight.grad is None
    with T.no_grad():
        other.first.weight.add_(1)
    assert_values(m.first.weight, [1.0, 1.0])
    assert copy.copy(m).first is m.first


def test_pickles():
    m = Pair().double()
    other = pickle.loads(pickle.dumps(m))
    assert repr(other) == repr(m) and other.first is other.again
    assert isinstance(other.first.weight, nn.Parameter) and other.first.weight.dtype == T.float64
    assert "cache" in other.first._non_persistent_buffers_set


def test_older_pickles_lack_dictionaries():
    m = Scale()
    state = m.__getstate__()
    for name in ("_forward_pre_hooks_with_kwargs", "_non_persistent_buffers_set", "_load_state_dict_post_hooks"):
        del state[name]
    new = Scale.__new__(Scale)
    new.__setstate__(state)
    assert_values(new(T.ones(2)), [1.0, 1.0])


def test_call_super_init():
    class Other:
        def __init__(self, value):
            self.value = value

    class Both(nn.Module, Other):
        call_super_init = True

    assert Both(3).value == 3


def test_forward_may_be_an_attribute():
    m = Scale()
    m.forward = lambda x: x + 1
    assert_values(m(T.ones(1)), [2.0])


def test_compile():
    if not hasattr(T, "compile"):
        pytest.skip("compile is missing")
    m = Scale()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ours says once that there is no compiler
        m.compile(backend="eager")
    assert_values(m(T.ones(2)), [1.0, 1.0])
    assert copy.deepcopy(m)._compiled_call_impl is None


@pytest.mark.gradiron
def test_layers_are_loaded_when_they_are_first_asked_for():
    python_ok(
        "assert not any(m.startswith('gradiron.nn') for m in sys.modules)\nT.nn\nassert 'gradiron.nn.modules' in sys.modules"
    )


@pytest.mark.parametrize(("kind", "size"), [("Linear", (2, 3)), ("Conv2d", (2, 3, 4, 4)), ("BatchNorm1d", (4, 3))])
def test_lazy_modules_from_pickles(kind, size):
    made = getattr(nn, f"Lazy{kind}")(*{"Linear": (2,), "Conv2d": (2, 3), "BatchNorm1d": ()}[kind])
    for _ in range(2):  # before it knows its shapes, and after
        made = pickle.loads(pickle.dumps(made))
        expected = made(T.ones(size))
    assert type(made) is getattr(nn, kind) and not made._forward_pre_hooks and not made._load_state_dict_pre_hooks
    assert T.equal(copy.deepcopy(made)(T.ones(size)), expected)


def test_shapes_that_come_late():
    waiting = nn.parameter.UninitializedParameter()
    optimizer = T.optim.SGD([waiting], lr=0.5)
    waiting.materialize(2)
    assert waiting.shape == (2,) and type(waiting) is nn.Parameter
    nn.init.ones_(waiting)
    waiting.sum().backward()
    optimizer.step()
    assert waiting.tolist() == [0.5, 0.5]


def test_modules_in_shared_memory():
    m = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1))
    assert m.share_memory() is m
    assert all(x.is_shared() for x in (*m.parameters(), *m.buffers()))


def test_training_is_a_truth():
    with pytest.raises(ValueError, match="training mode is expected to be boolean"):
        nn.Linear(1, 1).train("eval")


def test_buffers_change_between_kept_and_not():
    m = nn.Module()
    m.register_buffer("a", T.ones(1), persistent=False)
    m.register_buffer("b", T.ones(1))
    assert list(m.state_dict()) == ["b"]
    m.register_buffer("a", T.ones(1))
    m.register_buffer("b", None, persistent=False)
    assert list(m.state_dict()) == ["a"]
    m.b = T.ones(1)
    assert list(m.state_dict()) == ["a"] and [name for name, _ in m.named_buffers()] == ["a", "b"]


def test_names_set_again():
    m = nn.Module()
    m.x = nn.Parameter(T.ones(1))
    m.x = None
    assert dict(m.named_parameters()) == {} and "x" in m._parameters
    m.x = nn.Parameter(T.ones(1))
    with pytest.raises(TypeError, match="cannot assign .* as parameter 'x'"):
        m.x = T.ones(1)
    m.child = nn.Linear(1, 1)
    m.child = None
    assert list(m.children()) == [] and "child" in m._modules
    with pytest.raises(KeyError, match="attribute 'x' already exists"):
        m.register_buffer("x", T.ones(1))
    with pytest.raises(KeyError, match='module name can.{1,2}t contain "."'):
        m.add_module("a.b", nn.Linear(1, 1))
