"""What a Function and its context may ask for: dtypes of gradients, one list of them, saved tensors read once, and the sums
that its results are added to."""

import pytest

from library import T, assert_values, leaf


def doubled(**attributes):
    """A Function of two results whose `backward` notes what it was given."""

    class Double(T.autograd.Function):
        seen = []
        declared = None
        marked = False

        @staticmethod
        def forward(ctx, x):
            if Double.declared is not None:
                ctx.set_output_grad_dtype(*Double.declared)
            results = x * 2, x * 3
            if Double.marked:
                ctx.mark_non_differentiable(results[1])
                ctx._materialize_non_diff_grads = False
            return results

        @staticmethod
        def backward(ctx, *grads):
            Double.seen.append([g if g is None else (str(g.dtype), g.tolist()) for g in grads])
            return sum((g.real if g.is_complex() else g).to(T.float32) for g in grads if g is not None)

    for name, value in attributes.items():
        setattr(Double, name, value)
    return Double


# --- set_output_grad_dtype ---


@pytest.mark.parametrize("name", ["float64", "float16", "bfloat16", "complex64"])
def test_backward_gets_gradients_in_the_declared_dtype(name):
    function = doubled(declared=(getattr(T, name), None))
    x = leaf([1.0, 2.0])
    a, b = function.apply(x)
    assert a.dtype == b.dtype == T.float32
    (a.sum() + b.sum()).backward()
    one = 1 + 0j if name == "complex64" else 1.0
    assert function.seen == [[(f"torch.{name}", [one, one]), ("torch.float32", [1.0, 1.0])]]


def test_hooks_and_kept_gradients_have_the_declared_dtype():
    a, _ = doubled(declared=(T.float64, None)).apply(leaf([1.0]))
    seen = []
    a.register_hook(lambda g: seen.append(g.dtype))
    a.retain_grad()
    a.sum().backward()
    assert seen == [T.float64]
    assert a.grad.dtype == T.float64
    assert [m.dtype for m in a.grad_fn._input_metadata] == [T.float32, T.float32]


def test_none_leaves_a_gradient_as_it_comes():
    function = doubled(declared=(None, None))
    x = leaf([1.0])
    T.autograd.grad(function.apply(x)[0], x, T.ones(1, dtype=T.float64))
    T.autograd.grad(function.apply(x)[0], x, T.ones(1, dtype=T.float16))
    assert [given[0][0] for given in function.seen] == ["torch.float64", "torch.float16"]


def test_missing_gradients_are_zeros_of_the_output_s_own_dtype():
    function = doubled(declared=(T.float64, T.float64))
    function.apply(leaf([1.0]))[0].sum().backward()
    assert function.seen == [[("torch.float64", [1.0]), ("torch.float32", [0.0])]]


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ((), "expected the number of declarations to match the number of outputs"),
        (("f", None), "expects each declaration to be a torch.dtype or None, but got str"),
        ((None,), "the Function returned 2 values but 1 declarations were provided"),
    ],
)
def test_declarations_that_do_not_fit(declared, message):
    with pytest.raises(RuntimeError, match=message):
        doubled(declared=declared).apply(leaf([1.0]))
    with T.no_grad(), pytest.raises(RuntimeError, match=message):
        doubled(declared=declared).apply(leaf([1.0]))


def test_an_output_without_gradient_can_declare_none():
    with pytest.raises(RuntimeError, match="got a concrete dtype for output 1, but that output is not a differentiable tensor"):
        doubled(declared=(T.float64, T.float64), marked=True).apply(leaf([1.0]))


def test_dtypes_are_declared_once():
    class Once(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            assert ctx.output_grad_dtypes is None
            ctx.set_output_grad_dtype(T.float64)
            assert ctx.output_grad_dtypes == (T.float64,)
            with pytest.raises(RuntimeError, match="can only be called once"):
                ctx.set_output_grad_dtype(T.float64)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf([1.0])
    y = Once.apply(x)
    assert y.grad_fn.output_grad_dtypes is None
    y.sum().backward()
    assert x.grad.dtype == T.float32


def test_gradients_that_are_not_materialized_stay_none_for_plain_outputs():
    function = doubled(marked=True)
    function.apply(leaf([1.0]))[0].sum().backward()
    assert function.seen == [[("torch.float32", [1.0]), None]]


# --- boxed_grads_call ---


def boxed():
    class Boxed(T.autograd.Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, grads):
            assert type(grads) is list
            first, second = grads
            grads.clear()
            return first * 2 + second * 3

    return Boxed


def test_boxed_gradients_come_in_one_list():
    x = leaf([1.0, 1.0])
    a, b = boxed().apply(x)
    (a.sum() + b.sum()).backward(retain_graph=True)
    assert_values(x.grad, [5.0, 5.0])
    a.sum().backward()
    assert_values(x.grad, [7.0, 7.0])


def test_a_class_may_be_boxed_later_and_its_subclasses_are():
    function = doubled()

    class Heir(function):
        @staticmethod
        def backward(ctx, grads):
            return grads[0]

    function.boxed_grads_call = True
    x = leaf([1.0])
    Heir.apply(x)[0].sum().backward()
    assert_values(x.grad, [1.0])


def test_methods_of_a_context_call_backward_by_hand():
    a, _ = boxed().apply(leaf([1.0, 1.0]))
    assert_values(a.grad_fn.apply(T.ones(2), T.ones(2)), [5.0, 5.0])
    assert_values(a.grad_fn.apply_boxed([T.ones(2), T.ones(2)]), [5.0, 5.0])
    with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
        a.grad_fn.apply_jvp(T.ones(2))


# --- clear_saved_tensors_on_access ---

ONCE = "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True"


def saving(once):
    class Saving(T.autograd.Function):
        clear_saved_tensors_on_access = once

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, x.exp())
            return x * 2

        @staticmethod
        def backward(ctx, g):
            assert len(ctx.saved_tensors) == 2
            return g * 2

    return Saving


def test_saved_tensors_are_given_up_when_read():
    y = saving(True).apply(leaf([1.0]))
    assert len(y.grad_fn._raw_saved_tensors) == 2
    assert len(y.grad_fn.saved_tensors) == 2
    assert y.grad_fn._raw_saved_tensors == ()
    with pytest.raises(RuntimeError, match=ONCE):
        _ = y.grad_fn.saved_tensors
    with pytest.raises(RuntimeError, match=ONCE):
        y.sum().backward()


def test_a_kept_graph_reads_once_all_the_same():
    y = saving(True).apply(leaf([1.0])).sum()
    y.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match=ONCE):
        y.backward()


def test_without_the_mark_reading_keeps():
    y = saving(False).apply(leaf([1.0]))
    y.grad_fn.maybe_clear_saved_tensors()
    assert len(y.grad_fn.saved_tensors) == len(y.grad_fn.saved_tensors) == 2
    y.sum().backward()


def test_the_mark_is_a_bool():
    with pytest.raises(RuntimeError, match="clear_saved_tensors_on_access must be a bool, got int"):
        saving(1).apply(leaf([1.0]))


# --- attributes of the context that may be set ---


def test_a_context_s_lists_may_be_set():
    class Set(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.to_save = (x,)
            ctx.needs_input_grad = (False,)
            ctx.materialize_grads = False
            plain = x + 1
            ctx.non_differentiable = (plain,)
            with pytest.raises(AttributeError, match="not readable"):
                _ = ctx.materialize_grads
            return x * 2, plain

        @staticmethod
        def backward(ctx, g, nothing):
            assert nothing is None
            assert ctx.needs_input_grad == (False,)
            (x,) = ctx.saved_tensors
            return g * x

    x = leaf([3.0])
    y, plain = Set.apply(x)
    assert not plain.requires_grad
    y.sum().backward()
    assert_values(x.grad, [3.0])


@pytest.mark.parametrize("name", ["to_save", "dirty_tensors", "non_differentiable"])
def test_lists_of_a_context_are_tuples(name):
    class Wrong(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            setattr(ctx, name, [x])
            return x * 2

    with pytest.raises(RuntimeError, match=f"{name} attribute is expected to be a tuple but is list"):
        Wrong.apply(leaf([1.0]))


# --- input_grad_buffers ---


def product(act):
    """x * w; `act(ctx, buffers)` is asked in the backward, and may say that it added x's part itself."""

    class Product(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            done = act(ctx, g * w)
            return None if done else g * w, g * x

    return Product.apply


def pair():
    return leaf([1.0, 2.0]), leaf([3.0, 4.0])


def test_a_sum_that_waits_is_shown_and_may_be_added_to():
    seen = []

    def add(ctx, part):
        first, second = ctx.input_grad_buffers
        seen.append((first.tolist(), second))
        first.add_(part)
        return True

    x, w = pair()
    y = product(add)(x, w)
    (y.sum() + (x * 5).sum() + (x * 7).sum()).backward()
    assert seen == [([12.0, 12.0], None)]
    assert_values(x.grad, [15.0, 16.0])
    assert_values(w.grad, [1.0, 2.0])


def test_an_inner_node_s_sum_and_grad():
    def add(ctx, part):
        ctx.input_grad_buffers[0].add_(part)
        return True

    x, w = pair()
    h = x * 2
    y = product(add)(h, w)
    found = T.autograd.grad(y.sum() + (h * 5).sum(), (x, w))
    assert_values(found[0], [16.0, 18.0])
    assert_values(found[1], [2.0, 4.0])


def test_nothing_is_shown_where_nothing_waits_or_others_can_see_it():
    seen = []

    def look(ctx, _):
        seen.append(ctx.input_grad_buffers)

    x, w = pair()
    (product(look)(x, w).sum()).backward()
    x, w = pair()
    y = product(look)(x, w)
    (y.sum() + x.sum()).backward()  # a stretched gradient
    x, w = pair()
    y = product(look)(x, w)
    T.autograd.grad(y.sum() + (x * 5).sum(), w)  # nobody asked for x's
    assert seen == [(None, None)] * 3


def test_a_shown_sum_kept_for_later_changes_nothing():
    kept = []
    x, w = pair()
    y = product(lambda ctx, _: kept.extend(ctx.input_grad_buffers))(x, w)
    (y.sum() + (x * 5).sum()).backward()
    assert_values(x.grad, [8.0, 9.0])
    assert_values(kept[0], [5.0, 5.0])


def test_no_backward_while_a_sum_is_shown():
    def again(ctx, _):
        assert ctx.input_grad_buffers[0] is not None
        with pytest.raises(RuntimeError, match="reentrantly after accessing a non-None ctx.input_grad_buffers entry"):
            leaf([1.0]).backward()

    x, w = pair()
    y = product(again)(x, w)
    (y.sum() + (x * 5).sum()).backward()
    assert_values(x.grad, [8.0, 9.0])


def refused(match):
    def act(ctx, _):
        with pytest.raises(RuntimeError, match=match):
            _ = ctx.input_grad_buffers

    return act


def test_where_sums_cannot_be_shown():
    outside = "can only be accessed while autograd is executing backward"
    x, w = pair()
    y = product(refused("does not support create_graph=True"))(x, w)
    T.autograd.grad(y.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=outside):
        _ = y.grad_fn.input_grad_buffers
    y = product(refused("does not support post-hooks on the producing autograd node"))(x, w)
    y.grad_fn.register_hook(lambda inputs, outputs: None)
    y.sum().backward()
    with T.autograd.set_detect_anomaly(True):
        product(refused("does not support anomaly detection"))(x, w).sum().backward()


def test_what_cannot_be_differentiated_twice_is_one_node():
    class Once(T.autograd.Function):
        @staticmethod
        def forward(ctx, a, scale, b):
            ctx.save_for_backward(a, b)
            return a * b * scale

        @staticmethod
        @T.autograd.function.once_differentiable
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g * b * 2, None, g * a * 2

    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    ga, gb = T.autograd.grad(Once.apply(a, 2, b), (a, b), T.ones(2, requires_grad=True), create_graph=True)
    assert ga.grad_fn is gb.grad_fn and type(ga.grad_fn).__name__ == "Error" and (ga.output_nr, gb.output_nr) == (0, 2)
    with pytest.raises(
        RuntimeError, match="trying to differentiate twice a function that was marked with @once_differentiable"
    ):
        ga.sum().backward()
