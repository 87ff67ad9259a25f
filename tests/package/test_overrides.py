"""Classes and modes with `__torch_function__`."""

import random

import pytest

from library import IS_GRADIRON, T, python_ok

F = T.nn.functional


class Wrapper:
    """Not a tensor, but takes what tensors take."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func, types, args, kwargs


class Logged(T.Tensor):
    """A tensor that notes what is done with it."""

    seen = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(func)
        return super().__torch_function__(func, types, args, kwargs)


class Plain(T.Tensor):
    pass


class Below(Plain):
    pass


class Refusing:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


def logged(*shape):
    return T.ones(*shape).as_subclass(Logged)


@pytest.fixture(autouse=True)
def empty():
    Logged.seen.clear()


def test_functions_are_the_wrappers_to_carry_out():
    w, x = Wrapper(), T.ones(2)
    for func, args, kwargs in [
        (T.sum, (w,), {}),
        (T.add, (x, w), {"alpha": 2}),
        (T.stack, ([x, w],), {}),
        (T.where, (x > 0, w, x), {}),
        (F.gelu, (w,), {"approximate": "tanh"}),
        (F.linear, (w, x), {}),
        (T.Tensor.add, (x, w), {}),
    ]:
        found, types, given, named = func(*args, **kwargs)
        assert (found, types, (named or {})) == (func, (Wrapper,), kwargs)
        assert len(given) == len(args) and all(a is b for a, b in zip(given, args))


def test_operators_between_a_tensor_and_a_wrapper():
    w, x = Wrapper(), T.ones(2)
    for done, func in [
        (x + w, T.Tensor.add),
        (x * w, T.Tensor.mul),
        (x - w, T.Tensor.sub),
        (x / w, T.Tensor.div),
        (x @ w, T.Tensor.matmul),
        (x < w, T.Tensor.lt),
        (w + x, T.Tensor.add),
    ]:
        assert done[0] == func and done[2][0] is x and done[2][1] is w
    for done, name in [(x**w, "pow"), (w**x, "__rpow__"), (x // w, "__floordiv__")]:
        assert done[0].__name__ == name and done[2][0] is x and done[2][1] is w
    assert (w / x)[2] == (x, w)


def test_indices_and_values_that_override():
    seen = []

    class Asked:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func, types, args))
            return 5

    class Mine(T.Tensor):
        pass

    x, a = T.ones(2), Asked()
    for _ in range(2):  # Without and with a class of tensors that overrides.
        assert x[a] == 5 and x[None, a] == 5
        x[0] = a
        x[a] = 1
        x[..., a] = 1
        x **= a
        x = T.ones(2)
        assert [call[0].__name__ for call in seen] == ["__getitem__"] * 2 + ["__setitem__"] * 3 + ["pow_"]
        assert all(call[1] == (Asked,) for call in seen[:5])
        assert [call[2][1:] for call in seen[:5]] == [(a,), ((None, a),), (0, a), (a, 1), ((..., a), 1)]
        assert x.tolist() == [1, 1]
        seen.clear()
        index = T.tensor([1]).as_subclass(Mine)
        assert type(x[index]) is Mine and type(x**index) is Mine and type(x[1]) is T.Tensor
    with pytest.raises(IndexError):
        x[5]
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.Tensor.__getitem__'"):
        x[Refusing()]


def test_nobody_takes_the_call():
    with pytest.raises(TypeError, match=r"^Multiple dispatch failed for 'torch.sum'; all __torch_function__ handlers returned"):
        T.sum(Refusing())
    with pytest.raises(TypeError, match=r"^unsupported operand type"):
        T.ones(2) + Refusing()
    # What never overrides keeps its error.
    with pytest.raises(TypeError, match="must be Tensor, not str"):
        T.sum("a")


def test_results_are_of_the_subclass():
    p, x = T.ones(2, 2).as_subclass(Plain), T.ones(2, 2)
    results = [
        p + 1,
        1 - p,
        p.sum(),
        p[0],
        p.data,
        p.T,
        p.clone(),
        p.split(1)[0],
        p.max(0).values,
        x + p,
        x @ p,
        T.stack([x, p]),
    ]
    results += [p > 0, -p, p.to(T.float64), T.nn.Parameter(x) * p, p.unbind()[1], F.relu(p), T.exp(p)]
    assert [type(r) for r in results] == [Plain] * len(results)
    assert type(p.shape) is T.Size and p.sum().item() == 4 and p.tolist() == [[1, 1], [1, 1]]
    assert type(p.max(0)).__name__ == "max"
    assert type(T.nn.Parameter(x) * 2) is T.Tensor
    below = x.as_subclass(Below)
    assert type(p + below) is Below and type(below + p) is Below


def test_gradients_flow_through_subclasses():
    x = T.tensor([1.0, 2.0], requires_grad=True)
    p = x.as_subclass(Plain)
    (p * p).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0] and type(x.grad) is T.Tensor
    leaf = T.ones(2).as_subclass(Plain).requires_grad_()
    leaf.exp().sum().backward()
    assert type(leaf.grad) is T.Tensor and leaf.grad is not None


def test_a_write_is_seen_through_every_class():
    x = T.ones(3).as_subclass(Plain).requires_grad_()
    y = x * 1
    y.view(-1).mul_(3)
    y[:2].mul_(2)
    y.as_subclass(T.Tensor).mul_(5)
    y.sum().backward()
    assert x.grad.tolist() == [30.0, 30.0, 15.0]
    base, weight = T.zeros(2), T.ones(2, requires_grad=True)
    base.view(2).as_subclass(Plain).copy_(weight * 4)
    base.sum().backward()
    assert weight.grad.tolist() == [4.0, 4.0]
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        x.as_subclass(T.Tensor).mul_(2)


MAKES = [
    lambda a, b: a.reshape(-1),
    lambda a, b: a.t(),
    lambda a, b: a[1:],
    lambda a, b: a.unbind()[0],
    lambda a, b: a * b if a.shape == b.shape else a * 2,
    lambda a, b: a.unsqueeze(0).as_subclass(T.Tensor).squeeze(0),
]
WRITES = [
    lambda a, b: a.mul_(2),
    lambda a, b: a.sin_(),
    lambda a, b: a.add_(b),
    lambda a, b: a.copy_(b),
    lambda a, b: a[:1].zero_(),
    lambda a, b: a.__setitem__(0, 1.5),
]


def gradients(seed, kind):
    """Of a program of random steps, and what of it is refused."""
    draw = random.Random(seed)
    leaves = [(T.arange(9.0, dtype=T.float64).view(3, 3) / n).as_subclass(kind).requires_grad_() for n in (7, 5)]
    pool = [*(leaf * 1 for leaf in leaves), T.zeros(3, 3, dtype=T.float64).as_subclass(kind)]
    refused = []
    for _ in range(draw.randint(3, 9)):
        step, a, b = draw.choice(MAKES + WRITES), draw.choice(pool), draw.choice(pool)
        try:
            made = step(a, b)
        except (RuntimeError, IndexError) as error:
            refused.append(type(error))
        else:
            pool += [made] if step in MAKES else []
    try:
        sum(x.sum() for x in pool).backward()
    except RuntimeError as error:
        refused.append(type(error))
    return [None if leaf.grad is None else leaf.grad.mul(1e6).round().tolist() for leaf in leaves], refused


def test_subclasses_have_the_gradients_of_plain_tensors():
    for seed in range(100):
        assert gradients(seed, Plain) == gradients(seed, T.Tensor), seed


def test_in_place_methods_return_what_they_wrote():
    p = T.ones(2).as_subclass(Plain)
    assert p.add_(1) is p and p.tolist() == [2.0, 2.0]
    x = T.ones(2)
    x += p
    assert x.tolist() == [3.0, 3.0]
    p += 1
    assert type(p) is Plain and p.tolist() == [3.0, 3.0]
    p[0] = 5
    assert p.tolist() == [5.0, 3.0]


def test_a_class_sees_functions_methods_and_attributes():
    s = logged(2)
    s.shape, s + 1, s.sum(), T.exp(s), s[0], s.requires_grad
    names = [f for f in Logged.seen]
    assert names == [
        T.Tensor.shape.__get__,
        T.Tensor.add,
        T.Tensor.sum,
        T.exp,
        T.Tensor.__getitem__,
        T.Tensor.requires_grad.__get__,
    ]
    Logged.seen.clear()
    s.requires_grad = True
    len(s), repr(s), s.to(T.float64), s.dim()
    assert T.Tensor.requires_grad.__set__ in Logged.seen and T.Tensor.to in Logged.seen and T.Tensor.dim in Logged.seen


def test_classes_are_asked_no_more_inside():
    s = logged(2)
    with T._C.DisableTorchFunctionSubclass() if not IS_GRADIRON else T.DisableTorchFunctionSubclass():
        assert type(s + 1) is T.Tensor and type(T.exp(s)) is T.Tensor and s.shape == (2,)
    assert Logged.seen == [] and type(s + 1) is Logged


def test_overriding_a_function_by_a_table():
    handled = {}

    class Scalar:
        def __init__(self, value, n):
            self.value, self.n = value, n

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func not in handled or not all(issubclass(t, (T.Tensor, cls)) for t in types):
                return NotImplemented
            return handled[func](*args, **(kwargs or {}))

    handled[T.mean] = lambda s: s.value / s.n
    handled[T.add] = lambda a, b: "sum"
    assert T.mean(Scalar(6, 3)) == 2.0 and T.add(T.ones(2), Scalar(1, 1)) == "sum"
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.mul'"):
        T.mul(Scalar(1, 1), 2)


def test_the_most_derived_class_comes_first():
    order = []

    def make(name, *bases):
        def torch_function(cls, func, types, args=(), kwargs=None):
            order.append(name)
            return NotImplemented

        return type(name, bases, {"__torch_function__": classmethod(torch_function)})

    a = make("A", object)
    b, c = make("B", a), make("C", object)
    with pytest.raises(TypeError):
        T.stack([a(), c(), b(), a()])
    assert order == ["B", "A", "C"]


def test_a_disabled_class_is_a_tensor():
    impl = T._C._disabled_torch_function_impl if not IS_GRADIRON else T._core._disabled_torch_function_impl

    class Still(T.Tensor):
        __torch_function__ = impl

    s = T.ones(2).as_subclass(Still)
    assert type(s + 1) is T.Tensor and type(s.data) is T.Tensor and type(s + T.ones(2).as_subclass(Plain)) is Plain


def test_modes_see_every_operator():
    seen = []

    class Mode(T.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = T.ones(2)
    with Mode():
        T.add(x, 1)
        x.exp()
        T.zeros(2)
    assert seen == [T.add, T.Tensor.exp, T.zeros]
    T.add(x, 1)
    assert len(seen) == 3
    with Mode() as outer, Mode():
        T.add(x, 1)
    assert isinstance(outer, Mode) and len(seen) == 5
    seen.clear()
    with Mode():
        x[0] = x[1]
        x**2, 2**x, 2 / x, -x, abs(x), ~(x > 0)
    names = "__getitem__ __setitem__ pow __rpow__ __rdiv__ neg abs gt __invert__"
    assert [func.__name__.replace("__rtruediv__", "__rdiv__") for func in seen] == names.split()


def test_helpers():
    o, p, x = T.overrides, T.ones(2).as_subclass(Plain), T.ones(2)
    assert o.has_torch_function((x, p)) and not o.has_torch_function((x, 2, T.nn.Parameter(x)))
    assert o.is_tensor_like(x) and o.is_tensor_like(Wrapper()) and not o.is_tensor_like(3)
    assert o.resolve_name(T.add) == "torch.add" and o.resolve_name(T.Tensor.add) == "torch.Tensor.add"

    @o.wrap_torch_function(lambda a, b=None: (a, b))
    def function(a, b=None):
        return a

    assert function(x) is x and function(x, Wrapper())[0] is function
    with pytest.raises(TypeError, match="^no implementation found for '.*function' on types that implement __torch_function__"):
        function(Refusing())
    assert T.add in o.get_overridable_functions()[T] and T.is_tensor in o.get_ignored_functions()


def test_subclasses_copy_and_pickle():
    import copy

    p = T.ones(2).as_subclass(Plain)
    assert type(p.detach()) is Plain and type(copy.copy(p)) is Plain


@pytest.mark.gradiron
def test_the_plain_path_asks_nobody_until_there_is_a_class():
    code = """
from gradiron import nn
m = nn.Linear(2, 2)
m(T.ones(1, 2)).sum().backward()
assert "gradiron.overrides" not in sys.modules
"""
    python_ok(code)


def test_writing_with_an_operand_that_overrides():
    seen = []

    class Asked(T.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    x, other = T.ones(2), T.ones(2).as_subclass(Asked)
    x += other
    x *= other
    assert seen == ["add_", "mul_"] and x.tolist() == [2, 2]


def test_the_class_itself_is_changed_without_asking():
    seen = []

    class Asked(T.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

        def clone(self, *, memory_format=T.preserve_format):
            return self.as_subclass(T.Tensor).clone(memory_format=memory_format).as_subclass(type(self))

    x = T.ones(2, requires_grad=True).as_subclass(Asked)
    plain = x.as_subclass(T.Tensor)
    assert type(plain) is T.Tensor and type(x.as_subclass(Plain)) is Plain and plain.grad_fn is not None
    assert type(T.Tensor._make_subclass(Plain, x)) is Plain and seen == []
    assert type(x.clone()) is Asked and seen == []


def test_a_subclass_of_a_tensor_keeps_its_history():
    class Own(T.Tensor):
        pass

    x = T.ones(2, requires_grad=True)
    made = Own(x * 2)
    assert type(made) is Own and made.requires_grad and not made.is_leaf
    made.sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert Own(x).data_ptr() == x.data_ptr() and T.nn.Parameter(Own(x)).is_leaf


def test_a_recorded_write_reaches_the_tensor_of_another_class():
    x, weight = T.zeros(2), T.ones(2, requires_grad=True)
    x.as_subclass(Plain).copy_(weight * 4)
    x.sum().backward()
    assert weight.grad.tolist() == [4.0, 4.0]
    p = T.ones(3).as_subclass(Plain).requires_grad_()
    with T.no_grad():
        part = p[:2]
    # The leaf is itself a view, of a tensor that wants no gradient.
    part.mul_(2)
    assert p.tolist() == [2.0, 2.0, 1.0] and not part.requires_grad
