"""The state of modules: what is in it, loading it, and what is said of a state that does not fit."""

import pytest

from library import T, assert_values

nn = T.nn


class Inner(nn.Module):
    _version = 3

    def __init__(self, size=2):
        super().__init__()
        self.weight = nn.Parameter(T.ones(size))
        self.register_buffer("count", T.zeros(()))
        self.register_buffer("cache", T.zeros(2), persistent=False)


class Outer(nn.Module):
    def __init__(self, size=2):
        super().__init__()
        self.inner = Inner(size)
        self.register_parameter("bias", None)


class Extra(nn.Module):
    def __init__(self):
        super().__init__()
        self.extra = 1

    def get_extra_state(self):
        return {"extra": self.extra}

    def set_extra_state(self, state):
        self.extra = state["extra"]


def test_state_dict():
    m = Outer()
    state = m.state_dict()
    assert list(state) == ["inner.weight", "inner.count"] and type(state).__name__ == "OrderedDict"
    assert dict(state._metadata) == {"": {"version": 1}, "inner": {"version": 3}}
    assert not state["inner.weight"].requires_grad and type(state["inner.weight"]) is T.Tensor
    assert state["inner.weight"].data_ptr() == m.inner.weight.data_ptr()
    assert m.state_dict(keep_vars=True)["inner.weight"] is m.inner.weight
    assert list(m.state_dict(prefix="a.")) == ["a.inner.weight", "a.inner.count"]
    given = {"x": 1}
    assert m.state_dict(destination=given) is given and list(given) == ["x", "inner.weight", "inner.count"]
    with pytest.warns(FutureWarning, match="^Positional args are being deprecated, use kwargs instead"):
        assert list(m.state_dict({}, "b.")) == ["b.inner.weight", "b.inner.count"]


def test_loading():
    m, other = Outer(), Outer()
    weight = m.inner.weight
    with T.no_grad():
        other.inner.weight.fill_(5)
    keys = m.load_state_dict(other.state_dict())
    assert repr(keys) == "<All keys matched successfully>" and keys == ([], [])
    assert m.inner.weight is weight
    assert_values(weight, [5.0, 5.0])


def test_assigning():
    m, other = Outer(), Outer().double()
    m.inner.weight.requires_grad_(False)
    state = other.state_dict()
    m.load_state_dict(state, assign=True)
    assert m.inner.weight.dtype == T.float64 and isinstance(m.inner.weight, nn.Parameter)
    assert not m.inner.weight.requires_grad and m.inner.count is state["inner.count"]
    assert m.inner.weight.data_ptr() == other.inner.weight.data_ptr()


def test_what_does_not_fit():
    m = Outer()
    with pytest.raises(RuntimeError) as error:
        m.load_state_dict({"inner.weight": T.ones(3), "inner.more": T.ones(1), "a.b": T.ones(1), "c": 1})
    assert str(error.value) == (
        "Error(s) in loading state_dict for Outer:\n"
        '\tMissing key(s) in state_dict: "inner.count". \n'
        '\tUnexpected key(s) in state_dict: "a.b", "c", "inner.more". \n'
        "\tsize mismatch for inner.weight: copying a param with shape torch.Size([3]) from checkpoint, the shape in current "
        "model is torch.Size([2])."
    )
    keys = m.load_state_dict({"inner.weight": T.full((2,), 7.0), "c": 1}, strict=False)
    assert keys.missing_keys == ["inner.count"] and keys.unexpected_keys == ["c"]
    assert repr(keys) == "_IncompatibleKeys(missing_keys=['inner.count'], unexpected_keys=['c'])"
    assert_values(m.inner.weight, [7.0, 7.0])
    with pytest.raises(RuntimeError, match="size mismatch for inner.weight"):
        m.load_state_dict({"inner.weight": T.ones(3)}, strict=False)
    with pytest.raises(RuntimeError) as error:
        m.load_state_dict({"inner.weight": 3, "inner.count": T.ones(())})
    assert str(error.value).endswith(
        'While copying the parameter named "inner.weight", expected torch.Tensor or Tensor-like object from checkpoint but '
        "received <class 'int'>"
    )
    with pytest.raises(TypeError, match="^Expected state_dict to be dict-like, got <class 'int'>."):
        m.load_state_dict(3)


def test_a_copy_that_fails_is_told():
    m = Inner()
    m.weight.requires_grad_(False)
    m._parameters["weight"] = nn.Parameter(T.zeros(()).expand(2), requires_grad=False)
    with pytest.raises(RuntimeError) as error:
        m.load_state_dict({"weight": T.ones(2), "count": T.ones(())})
    assert 'While copying the parameter named "weight", whose dimensions in the model are torch.Size([2]) and whose' in str(
        error.value
    )


def test_one_element_from_old_states():
    m = Inner()
    m.load_state_dict({"weight": T.ones(2), "count": T.full((1,), 4.0)})
    assert m.count.item() == 4.0 and m.count.shape == ()


def test_extra_state():
    m, other = nn.Sequential(Extra()), nn.Sequential(Extra())
    m[0].extra = 7
    state = m.state_dict()
    assert state == {"0._extra_state": {"extra": 7}}
    other.load_state_dict(state)
    assert other[0].extra == 7
    with pytest.raises(RuntimeError, match='Missing key.s. in state_dict: "0._extra_state"'):
        other.load_state_dict({})
    with pytest.raises(RuntimeError, match='Unexpected key.s. in state_dict: "_extra_state"'):
        nn.Module().load_state_dict({"_extra_state": 1})
    with pytest.raises(RuntimeError, match=r"Reached a code path in Module.get_extra_state\(\) that should never be called."):
        nn.Module().get_extra_state()


def test_hooks_of_saving():
    m, seen = Outer(), []
    m.register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen.append((prefix, keep_vars)))

    def change(module, state, prefix, metadata):
        state["new"] = metadata

    m.register_state_dict_post_hook(change)
    m.inner._register_state_dict_hook(lambda module, state, prefix, metadata: seen.append((prefix, metadata)))
    state = m.state_dict()
    assert seen == [("", False), ("inner.", {"version": 3})] and state["new"] == {"version": 1}
    m._register_state_dict_hook(lambda module, state, prefix, metadata: {"only": 1})
    assert m.state_dict() == {"only": 1}
    with pytest.raises(
        RuntimeError, match="^Cannot register the same function as the state dict post hook that was previously"
    ):
        m._register_state_dict_hook(change)
    m.register_state_dict_post_hook(lambda *args: 3)
    with pytest.raises(RuntimeError, match="^state_dict post-hook must return None"):
        m.state_dict()


def test_hooks_of_loading():
    m, seen = Outer(), []

    def rename(module, state, prefix, metadata, strict, missing, unexpected, errors):
        assert module is m.inner and strict and metadata == {"version": 3}
        state[prefix + "weight"] = state.pop(prefix + "old")

    m.inner.register_load_state_dict_pre_hook(rename)
    m.inner._register_load_state_dict_pre_hook(lambda state, prefix, *rest: seen.append(prefix))
    m.register_load_state_dict_post_hook(lambda module, keys: seen.append(list(keys.missing_keys)) or keys.missing_keys.clear())
    state = m.state_dict()
    state["inner.old"] = T.full((2,), 9.0)
    del state["inner.weight"], state["inner.count"]
    m.load_state_dict(state)
    assert seen == ["inner.", ["inner.count"]]
    assert_values(m.inner.weight, [9.0, 9.0])
    m.register_load_state_dict_post_hook(lambda module, keys: 3)
    with pytest.raises(AssertionError, match="^Hooks registered with ``register_load_state_dict_post_hook`` are not expected"):
        m.load_state_dict(state, strict=False)


def test_hooks_and_dead_modules():
    m = Inner()
    m.register_load_state_dict_pre_hook(lambda *args: None)
    (hook,) = m._load_state_dict_pre_hooks.values()
    del m
    with pytest.raises(RuntimeError, match="^You are trying to call the hook of a dead Module!"):
        hook({}, "", {}, True, [], [], [])


def test_subclasses_mend_old_states():
    class Newer(nn.Module):
        _version = 2

        def __init__(self):
            super().__init__()
            self.register_buffer("count", T.zeros(()))

        def _load_from_state_dict(self, state, prefix, metadata, *rest):
            if metadata.get("version", 1) < 2:
                state.setdefault(prefix + "count", T.ones(()))
            super()._load_from_state_dict(state, prefix, metadata, *rest)

    m = nn.Sequential(Newer())
    m.load_state_dict({})
    assert m[0].count.item() == 1
    with pytest.raises(RuntimeError, match="Missing"):
        state = m.state_dict()
        del state["0.count"]
        m.load_state_dict(state)


def test_swapping():
    m, other = Outer(), Outer().double()
    weight = m.inner.weight
    try:
        T.__future__.set_swap_module_params_on_conversion(True)
        m.load_state_dict(other.state_dict())
        assert m.inner.weight is weight and weight.dtype == T.float32 and isinstance(weight, nn.Parameter)
        m.load_state_dict(other.state_dict(), assign=True)
        assert m.inner.weight is weight and weight.dtype == T.float64
    finally:
        T.__future__.set_swap_module_params_on_conversion(False)


def test_lazy_parameters_take_shapes_from_a_state():
    class Lazy(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.UninitializedParameter()

        def initialize_parameters(self, x):
            self.weight.materialize(x.shape)

        def forward(self, x):
            return x * self.weight

    m = Lazy()
    assert m.has_uninitialized_params() and nn.parameter.is_lazy(m.state_dict()["weight"])
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter"):
        Inner().load_state_dict(m.state_dict(), strict=False)
    m.load_state_dict({"weight": T.full((2,), 2.0)})
    assert_values(m.weight, [2.0, 2.0])
    m = Lazy()
    m.load_state_dict(Lazy().state_dict())
    assert m.has_uninitialized_params()
    assert m(T.ones(3)).shape == (3,) and not m.has_uninitialized_params() and not m._forward_pre_hooks
    unable = type("Unable", (Lazy,), {"initialize_parameters": lambda self, x: None})()
    with pytest.raises(RuntimeError, match="^module Unable has not been fully initialized"):
        unable(T.ones(2))
    unable = type("Bare", (nn.modules.lazy.LazyModuleMixin, nn.Module), {})()
    with pytest.raises(NotImplementedError, match="^initialize_parameters is not implemented for Bare"):
        unable(T.ones(2))


@pytest.fixture
def swapping():
    T.__future__.set_swap_module_params_on_conversion(True)
    yield
    T.__future__.set_swap_module_params_on_conversion(False)


def test_loading_over_no_memory_is_told_where_tensors_are_swapped(swapping):
    with pytest.warns(UserWarning, match="for weight: copying from a non-meta parameter in the checkpoint to a meta parameter"):
        nn.Linear(2, 2, bias=False, device="meta").load_state_dict({"weight": T.ones(2, 2)})


def test_what_is_loaded_says_what_is_made_of_it(swapping):
    class Told(T.Tensor):
        answer = staticmethod(lambda own, given: given)

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is T.Tensor.module_load:
                return cls.answer(*args)
            return super().__torch_function__(func, types, args, kwargs)

    m = nn.Linear(2, 2, bias=False)
    state = {"weight": T.ones(2, 2).as_subclass(Told)}
    for answer in (lambda own, given: given, lambda own, given: own):
        Told.answer = staticmethod(answer)
        with pytest.raises(RuntimeError, match="While swapping .*module_load returned one of self or other"):
            m.load_state_dict(state)
    Told.answer = staticmethod(lambda own, given: T.full((2, 2), 3.0))
    own = m.weight
    m.load_state_dict(state)
    assert m.weight is own and isinstance(own, nn.Parameter) and own.tolist() == [[3, 3], [3, 3]]


def test_spectral_norms_of_old_states():
    """What the first version saved: the weight with and without its largest singular value, and one singular vector."""
    T.manual_seed(0)
    m = nn.utils.spectral_norm(nn.Linear(3, 5, bias=False))
    for _ in range(5):
        m(T.ones(1, 3))
    expected = m.eval()(T.eye(3))
    old = m.state_dict()
    v = old.pop("weight_v")
    old["weight"] = m.weight.detach().clone()
    for metadata in ({"version": 1}, {"version": 1, "spectral_norm": {}}):
        new = nn.utils.spectral_norm(nn.Linear(3, 5, bias=False)).eval()
        given = type(old)(old)
        given._metadata = type(old)({"": metadata})
        new.load_state_dict(given)
        assert_values(new.weight_v, v.tolist(), 1e-3, 1e-4)
        assert_values(new(T.eye(3)), expected.tolist(), 1e-3, 1e-4)
    given = type(old)(old)
    del given["weight_u"]
    with pytest.raises(RuntimeError, match="Missing key.s. in state_dict: .*weight_u"):
        new.load_state_dict(given)


@pytest.mark.parametrize("swap", [False, True])
def test_keys_below_a_parameter_and_of_nobody(swap, request):
    if swap:
        request.getfixturevalue("swapping")
    m = nn.Sequential(nn.Linear(1, 1))
    state = m.state_dict()
    state["0.weight.more"] = T.ones(1)
    state["1.weight"] = T.ones(1)
    del state["0.bias"]
    found = m.load_state_dict(state, strict=False)
    assert found.missing_keys == ["0.bias"] and set(found.unexpected_keys) == {"0.weight.more", "1.weight"}
    with pytest.raises(RuntimeError, match="Missing key.*0.bias.*[\\s\\S]*Unexpected key.*0.weight.more"):
        m.load_state_dict(state)


def test_hooks_before_loading_see_what_is_the_childs():
    class Child(nn.Linear):
        def _load_from_state_dict(self, state_dict, prefix, *rest):
            seen.append((prefix, sorted(state_dict)))
            super()._load_from_state_dict(state_dict, prefix, *rest)

    seen = []
    m = nn.ModuleDict({"a": Child(1, 1), "ab": Child(1, 1)})
    m.load_state_dict(m.state_dict())
    assert seen == [(f"{name}.", [f"{name}.bias", f"{name}.weight"]) for name in ("a", "ab")]


def test_a_loaded_module_is_freed_without_the_collector():
    import gc
    import weakref

    gc.disable()
    try:
        m = nn.Sequential(nn.Linear(1, 1))
        m.load_state_dict(m.state_dict())
        ended = weakref.ref(m)
        del m
        assert ended() is None
    finally:
        gc.enable()


def test_assigned_parameters_keep_what_the_model_asks_of_gradients():
    m = nn.Linear(2, 1, device="meta")
    m.bias.requires_grad_(False)
    m.load_state_dict({"weight": T.ones(1, 2), "bias": nn.Parameter(T.ones(1))}, assign=True)
    assert m.weight.requires_grad and not m.bias.requires_grad and isinstance(m.weight, nn.Parameter)
    assert m(T.ones(1, 2)).item() == 3
    with pytest.warns(UserWarning, match="copying from a non-meta parameter in the checkpoint to a meta parameter"):
        nn.Linear(2, 1, device="meta").load_state_dict(m.state_dict())
