"""Custom Functions at their edges: marks, inputs and views as outputs, what is saved, how they are called."""

import traceback

import pytest

from library import T, assert_values, leaf


def function(forward, backward=lambda ctx, *g: g[0], name="F"):
    return type(name, (T.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def double_in_place(ctx, x):
    ctx.mark_dirty(x)
    return x.mul_(2)


INSIDE = "Output {} of F is a view and {} modified inplace. This view was created inside a custom Function"
BEING, BEHIND = "is being", "its base or another view of its base has been"


# Inputs and views as outputs


class Plain(T.Tensor):
    pass


class Told(T.Tensor):
    names = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.names.append(getattr(func, "__name__", ""))
        return super().__torch_function__(func, types, args, kwargs or {})


class Silent(T.Tensor):
    __torch_function__ = T._C._disabled_torch_function_impl


@pytest.mark.parametrize("wants", [True, False])
def test_an_input_comes_out_in_its_class(wants):
    F = function(lambda ctx, x, z: (x, z * 2, x), lambda ctx, g, h, k: (g * 7 + k, h * 2))
    for kind, expected in ((Plain, Plain), (Told, Told), (Silent, T.Tensor), (T.nn.Parameter, T.Tensor)):
        x = T.ones(2).as_subclass(kind).requires_grad_(wants)
        Told.names.clear()
        y, _, again = F.apply(x, T.ones(2))
        assert [type(y), type(again)] == [expected, expected] and y is not x and y.data_ptr() == x.data_ptr()
        assert kind is not Told or Told.names[:2] == ["view_as", "view_as"]
        assert y.requires_grad == wants and y._is_view()
        with T.no_grad():
            assert type(F.apply(x, T.ones(2))[0]) is (T.Tensor if wants else expected)
        if wants:
            (y * 2).sum().backward()
            assert_values(x.grad, [14.0, 14.0])
            with pytest.raises(RuntimeError, match=INSIDE.format(0, BEING)):
                function(lambda ctx, x: x, lambda ctx, g: g).apply(x).mul_(2)


def test_an_input_comes_out_as_a_view_of_itself():
    F = function(lambda ctx, x: x, lambda ctx, g: g * 7)
    for make in (lambda: leaf([1.0, 2.0]), lambda: leaf([1.0, 2.0]) * 1):
        x = make()
        y = F.apply(x)
        assert y is not x and y._base is x and y.grad_fn.name() == "FBackward"
        with pytest.raises(RuntimeError, match=INSIDE.format(0, BEING)):
            y.mul_(2)
        assert_values(T.autograd.grad(y.sum(), x)[0], [7.0, 7.0])
    t = T.ones(2)
    assert F.apply(t) is not t and F.apply(t)._base is t
    x = leaf([1.0, 2.0])
    with T.no_grad():
        y = F.apply(x)
    assert y is not x and not y.requires_grad and y.data_ptr() == x.data_ptr()


def test_a_view_of_an_input_keeps_the_functions_gradient():
    F = function(lambda ctx, x: x[0], lambda ctx, g: T.stack([g * 5, g]))
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * 1
    v = F.apply(y)
    assert v._base is y and v.grad_fn.name() == "FBackward"
    with pytest.raises(RuntimeError, match=INSIDE.format(0, BEING)):
        v.mul_(2)
    v.sum().backward()
    assert_values(x.grad, [[5.0, 5.0], [1.0, 1.0]])
    v = F.apply(y)
    y.mul_(2)
    for use in (lambda: v.grad_fn, lambda: v + 1):
        with pytest.raises(RuntimeError, match=INSIDE.format(0, BEHIND)):
            use()


def test_several_views_are_several_views():
    F = function(lambda ctx, x: (x[0], x[1]), lambda ctx, g, h: T.stack([g, h]))
    a, _ = F.apply(leaf([[1.0, 2.0], [3.0, 4.0]]) * 1)
    with pytest.raises(
        RuntimeError, match="Output 0 of F is a view .* This view is the output of a function that returns multiple"
    ):
        a.mul_(2)


def test_one_tensor_as_two_outputs():
    F = function(lambda ctx, x: (x, x), lambda ctx, g, h: g * 7 + h)
    a, b = F.apply(leaf([1.0, 2.0]))
    assert a is not b and a.output_nr == 0 and b.output_nr == 1


def test_a_tensor_from_elsewhere_gets_the_functions_history():
    w = leaf([5.0, 6.0]) * 2
    F = function(lambda ctx, x: w, lambda ctx, g: g * 3)
    x = leaf([1.0, 2.0])
    y = F.apply(x)
    assert y is w and w.grad_fn.name() == "FBackward"
    y.sum().backward()
    assert_values(x.grad, [3.0, 3.0])


def test_what_was_recorded_inside_is_cut_off():
    def forward(ctx, x):
        with T.enable_grad():
            return (x * 2) ** 2

    x = leaf([1.0, 2.0])
    y = function(forward, lambda ctx, g: g * 3).apply(x)
    assert y.grad_fn.name() == "FBackward"
    y.sum().backward()
    assert_values(x.grad, [3.0, 3.0])


@pytest.mark.parametrize("value", [3, None, "a", [1, 2]])
def test_what_is_no_tensor_goes_through(value):
    assert function(lambda ctx, x: value).apply(leaf([1.0])) == value
    y, other, k = function(lambda ctx, x: (x * 2, value, x.long()), lambda ctx, *g: g[0]).apply(leaf([1.0]))
    assert y.requires_grad and other == value and not k.requires_grad


def test_missing_gradients_of_non_tensors_are_none():
    seen = []

    def backward(ctx, *grads):
        seen.extend(grads)
        return grads[0]

    y, *_ = function(lambda ctx, x: (x * 2, x * 3, None, "a"), backward).apply(leaf([1.0, 2.0]))
    y.sum().backward()
    assert seen[0].tolist() == [1.0, 1.0] and seen[1].tolist() == [0.0, 0.0] and seen[2:] == [None, None]


# Marks


def test_a_write_is_counted_twice():
    x = leaf([1.0, 2.0])
    y = x * 1
    F = function(double_in_place, lambda ctx, g: g * 2)
    assert F.apply(y) is y and y._version == 2 and y.grad_fn.name() == "FBackward"
    y.sum().backward()
    assert_values(x.grad, [2.0, 2.0])


def test_a_write_through_a_view_reaches_the_base():
    x = leaf([1.0, 2.0])
    y = x * 1
    v = y[0]
    assert function(double_in_place, lambda ctx, g: g * 2).apply(v) is v
    assert_values(y, [2.0, 2.0])
    y.sum().backward()
    assert_values(x.grad, [2.0, 1.0])


def test_wrong_marks():
    def elsewhere(ctx, x):
        ctx.mark_dirty(T.ones(2))
        return x * 1

    def unreturned(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2) * 1

    for forward in (elsewhere, unreturned):
        with pytest.raises(
            RuntimeError, match="Some elements marked as dirty during the forward method were not returned as output"
        ):
            function(forward).apply(leaf([1.0, 2.0]) * 1)
    F = function(double_in_place)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation"):
        F.apply(leaf([1.0]))
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        F.apply(leaf([1.0, 2.0])[0])
    with pytest.raises(RuntimeError, match="This view is the output of a function that returns multiple views"):
        F.apply((leaf([1.0, 2.0]) * 1).unbind()[0])
    with pytest.raises(RuntimeError, match="mark_dirty can only accept variables, but argument 0 is of type int"):
        function(lambda ctx, x: ctx.mark_dirty(1) or x * 1).apply(leaf([1.0]))
    with pytest.raises(RuntimeError, match="mark_non_differentiable only accepts variable arguments, but got int"):
        function(lambda ctx, x: ctx.mark_non_differentiable(1) or x * 1).apply(leaf([1.0]))


def test_a_written_view_must_come_alone():
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2), x * 3

    with pytest.raises(RuntimeError, match="If your Function modifies inplace an input that is a view of another Tensor"):
        function(forward).apply((leaf([1.0, 2.0]) * 1)[0])


def test_an_input_marked_as_not_differentiable():
    x = leaf([1.0])
    y = function(lambda ctx, x: ctx.mark_non_differentiable(x) or x).apply(x)
    assert not y.requires_grad and x.requires_grad


# Saving


def test_only_tensors_and_none_are_saved():
    F = function(lambda ctx, x, values: ctx.save_for_backward(*values) or x * 2, lambda ctx, g: (g, None))
    x = leaf([1.0])
    y = F.apply(x, (None, x))
    assert y.grad_fn.saved_tensors[0] is None and y.grad_fn.saved_tensors[1] is x
    with pytest.raises(TypeError, match="save_for_backward can only save variables, but argument 1 is of type int"):
        F.apply(x, (x, 1))
    assert_values(F.apply(T.ones(1), (1,)), [2.0])


def test_a_saved_output_that_was_written_is_named_after_the_function():
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    F = function(forward, lambda ctx, g: g * ctx.saved_tensors[0])
    y = F.apply(leaf([1.0, 2.0]))
    y.mul_(2)
    with pytest.raises(RuntimeError, match=r"\[2\]\], which is output 0 of F, is at version 1; expected version 0 instead"):
        y.sum().backward()


# Calling


def test_next_functions_are_those_of_tensors():
    F = function(lambda ctx, x, k, y: x * k, lambda ctx, g: (g, None, None))
    y = F.apply(leaf([1.0]), 3, T.ones(1))
    assert [n and type(n).__name__ for n, _ in y.grad_fn.next_functions] == ["AccumulateGrad", None]


def test_arguments_by_name():
    F = function(lambda ctx, x, k=2: x * k, lambda ctx, g: (g, None))
    x = leaf([1.0])
    assert_values(F.apply(x, k=5), [5.0])
    assert F.apply(x, k=5).grad_fn.needs_input_grad == (True, False)
    with pytest.raises(TypeError):
        F.apply(x, z=1)


@pytest.mark.parametrize(
    "args, kwargs, message",
    [
        (0, {"k": 1, "z": 2}, "unexpected keyword argument 'z'"),
        (0, {"named": 1}, "unexpected keyword argument 'named'"),  # by name only: there is no place for it
        (2, {"j": 1, "k": 2}, "multiple values for argument 'j'"),
        (0, {"k": 1}, r"missing required argument: 'j' \(position 1\)"),
        (4, {}, "positional arguments but"),
    ],
)
def test_arguments_that_have_no_place(args, kwargs, message):
    def forward(ctx, x, j=1, k=2, *, named=3):
        return x * j * k * named

    with pytest.raises(TypeError, match=message):
        function(forward).apply(leaf([1.0]), *range(args), **kwargs)


def test_arguments_are_given_as_far_as_they_came():
    F = function(lambda ctx, x, j=2, k=3: x * j * k, lambda ctx, g: (g,) + (None,) * (len(ctx.needs_input_grad) - 1))
    x = leaf([1.0])
    for y, count, value in ((F.apply(x=x), 1, 6.0), (F.apply(j=4, x=x), 2, 12.0), (F.apply(x, k=1, j=1), 3, 1.0)):
        assert len(y.grad_fn.needs_input_grad) == count
        assert_values(y, [value])


@pytest.mark.parametrize(
    "forward, args, kwargs, message",
    [
        (lambda x, k: x * k, 0, {}, "missing a required argument: 'k'"),
        (lambda x, k: x * k, 2, {}, "too many positional arguments"),
        (lambda x, k: x * k, 1, {"x": 1}, "multiple values for argument 'x'"),
        (lambda x, *, k=1: x * k, 0, {"k": 2}, "unexpected keyword argument 'k'"),
        (lambda x, *, k=1: x * k, 0, {}, "unexpected keyword argument 'k'"),
        (lambda x, k: x * len(k), 1, {}, "object of type 'int' has no len"),
    ],
)
def test_arguments_of_a_forward_without_a_context(forward, args, kwargs, message):
    F = function(forward)
    F.setup_context = staticmethod(lambda ctx, inputs, output: None)
    F = type("F", (F,), {"setup_context": F.setup_context})
    with pytest.raises(TypeError, match=message):
        F.apply(leaf([1.0]), *range(args), **kwargs)


def test_a_context_made_by_hand_notes_what_it_is_told():
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x, None)
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(x, x)
        ctx.set_materialize_grads(False)
        ctx.k = k
        return x * k

    ctx, x = T.autograd.function.FunctionCtx(), leaf([2.0])
    assert_values(function(forward).forward(ctx, x, 3), [6.0])
    assert ctx.__dict__ == {
        "to_save": (x,),
        "saved_for_forward": (x, None),
        "dirty_tensors": (x,),
        "non_differentiable": (x, x),
        "materialize_grads": False,
        "k": 3,
    }
    with pytest.raises(AssertionError, match="save_for_forward expects all arguments to be tensors"):
        ctx.save_for_forward(3)
    with pytest.raises(AttributeError):
        ctx.saved_tensors  # noqa: B018


def test_marks_are_looked_at_when_forward_is_done():
    seen = []

    def forward(ctx, x):
        ctx.mark_dirty(1)
        ctx.mark_dirty()
        ctx.mark_non_differentiable(1)
        seen.extend([ctx.dirty_tensors, ctx.non_differentiable])
        ctx.mark_non_differentiable()
        ctx.to_save = (x,)
        return x * x

    y = function(forward).apply(leaf([2.0]))
    assert seen == [(), (1,)] and len(y.grad_fn.saved_tensors) == 1

    def wrong(ctx, x):
        ctx.to_save = 3
        return x * 1

    with pytest.raises(RuntimeError, match="to_save attribute is expected to be a tuple but is int"):
        function(wrong).apply(leaf([2.0]))
    with pytest.raises(TypeError, match="set_materialize_grads"):
        function(lambda ctx, x: ctx.set_materialize_grads(3) or x * 1).apply(leaf([2.0]))


def test_setup_context_sees_defaults():
    class F(T.autograd.Function):
        @staticmethod
        def forward(x, k=3):
            return x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            _, ctx.k = inputs

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k, None

    for call, slope in ((lambda x: F.apply(x), 3.0), (lambda x: F.apply(x, 4), 4.0), (lambda x: F.apply(x, k=5), 5.0)):
        x = leaf([1.0])
        call(x).backward()
        assert_values(x.grad, [slope])
    with pytest.raises(TypeError):
        F.apply()


def test_vjp_is_another_name():
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            return g * 5

    x = leaf([1.0])
    F.apply(x).backward()
    assert_values(x.grad, [5.0])

    class Both(F):
        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp' for a custom Function is not allowed"):
        Both.apply(x).backward()


def test_gradients_where_no_tensor_went_in():
    F = function(lambda ctx, x, k: x * k, lambda ctx, g: (g, g))
    with pytest.raises(RuntimeError, match="function FBackward returned a gradient different than None at position 2, but the"):
        F.apply(leaf([1.0]), 3).backward()
    F = function(lambda ctx, x, y: x * 1, lambda ctx, g: (g, "q"))
    with pytest.raises(RuntimeError, match=r"expected Variable or None \(got str\)"):
        F.apply(leaf([1.0]), T.ones(1)).backward()


def test_an_exception_keeps_its_traceback():
    class Mine(Exception):
        pass

    def backward(ctx, g):
        raise Mine("as raised")

    with pytest.raises(Mine, match="^as raised") as caught:
        function(lambda ctx, x: x * 1, backward).apply(leaf([1.0])).backward()
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "backward"


def test_the_modules_names():
    module = T.autograd.function
    for name in ("FunctionCtx", "BackwardCFunction", "FunctionMeta", "Function", "once_differentiable", "InplaceFunction"):
        assert name in module.__all__ and hasattr(module, name)
    node = function(lambda ctx, x: x * 1).apply(leaf([1.0])).grad_fn
    assert isinstance(node, module.BackwardCFunction) and isinstance(node, module.FunctionCtx) and node.to_save is None


def test_a_view_that_a_function_wrote_leads_back_through_it():
    class Triple(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(3)

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    for use_the_view in (True, False):
        x = T.ones(2, requires_grad=True)
        base = x * 1.0
        view = base.unsqueeze(-1)
        assert Triple.apply(view) is view
        (view if use_the_view else base).pow(3).sum().backward()
        assert x.grad.tolist() == [81.0, 81.0]


def test_a_view_that_no_gradient_leads_to_is_a_functions_all_the_same():
    F = function(lambda ctx, x: x.view_as(x))
    message = (
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. This view was created inside"
    )
    with pytest.raises(RuntimeError, match=message):
        F.apply(T.ones(2)).add_(leaf([1.0, 1.0]))
    with T.no_grad():
        y = F.apply(leaf([1.0, 2.0]))
    with pytest.raises(RuntimeError, match=message):
        y.zero_()


def test_what_is_marked_as_written_was_an_input():
    message = r"ctx.mark_dirty\(\) received a tensor that was not an input. Only input Tensors that have been mutated"

    def marked(view):
        def forward(ctx, x):
            out = x.clone().view_as(x) if view else x.clone()
            ctx.mark_dirty(out)
            return out

        return function(forward)

    with pytest.warns(UserWarning, match=message):
        marked(False).apply(leaf([1.0]) * 1)
    with pytest.raises(RuntimeError, match=message):
        marked(True).apply(leaf([1.0]) * 1)


@pytest.mark.parametrize("kept", ["save_for_backward", "save_for_forward"])
@pytest.mark.parametrize("wants", [True, False])
def test_setup_context_saves_no_input_that_comes_out_as_it_is(kept, wants):
    class Same(T.autograd.Function):
        @staticmethod
        def forward(x):
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            getattr(ctx, kept)(inputs[0])

        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.raises(RuntimeError, match="An input that has been returned as-is as output is being saved for backward"):
        Same.apply(T.ones(2, requires_grad=wants))
    assert function(lambda ctx, x: ctx.save_for_backward(x) or x).apply(leaf([1.0])).tolist() == [1.0]


MARKED = "mark_dirty can only accept variables, but argument {} is of type int"
NOT_RETURNED = "Some elements marked as dirty during the forward method were not returned as output"


@pytest.mark.parametrize(
    "others, message, writes, name",
    [
        (lambda x, y: (x, 3), MARKED.format(1), 2, "MulBackward0"),
        (lambda x, y: (3, x), MARKED.format(0), 1, "MulBackward0"),
        (lambda x, y: (x, y), NOT_RETURNED, 2, "FBackward"),
        (lambda x, y: (y, x), NOT_RETURNED, 2, "FBackward"),
        (lambda x, y: (x, y.detach()), NOT_RETURNED, 2, "FBackward"),
    ],
)
def test_what_was_marked_beside_something_wrong(others, message, writes, name):
    """A write that was marked is counted, and recorded where the other one is missed only among the outputs."""

    def forward(ctx, x, y):
        ctx.mark_dirty(*others(x, y))
        return x.mul_(2)

    x, y = leaf([1.0]) * 1, leaf([1.0])
    with pytest.raises(RuntimeError, match=f"^{message}"):
        function(forward, lambda ctx, g: (g * 2, None)).apply(x, y)
    assert (x._version, x.grad_fn.name()) == (writes, name)


def test_a_write_is_recorded_before_a_later_output_is_refused():
    def forward(ctx, x, y):
        ctx.mark_dirty(x, y)
        return x.mul_(2), y.mul_(2)

    def both(*grads):
        return None

    x, y = leaf([1.0]) * 1, leaf([1.0])
    with pytest.raises(RuntimeError, match="^a leaf Variable that requires grad has been used in an in-place operation"):
        function(forward, both).apply(x, y)
    assert (x.grad_fn.name(), x._version, y.is_leaf, y._version) == ("FBackward", 2, True, 2)
    x, y = leaf([1.0]) * 1, (leaf([1.0, 2.0]) * 1)[:1]
    with pytest.raises(RuntimeError, match="^If your Function modifies inplace an input that is a view"):
        function(forward, both).apply(x, y)
    assert x.grad_fn.name() == "FBackward"
