"""Selective checkpointing: a policy says which operators' results are kept, and those are not made again."""

import importlib

import pytest

from library import NAME, T, assert_values, leaf

ck = importlib.import_module(f"{NAME}.utils.checkpoint")
checkpoint = ck.checkpoint
aten = T.ops.aten
Policy = ck.CheckpointPolicy
SAVE, AGAIN = Policy.MUST_SAVE, Policy.PREFER_RECOMPUTE
A, B = [[1.0, 2.0], [3.0, 4.0]], [[0.5, -1.0], [2.0, 0.1]]


def product(x, y):
    return T.sigmoid(T.mm(T.mm(x, y), y)) * y


def selective(what, function=product, **options):
    x, y = leaf(A), leaf(B)
    contexts = lambda: ck.create_selective_checkpoint_contexts(what, **options)  # noqa: E731
    return x, y, checkpoint(function, x, y, use_reentrant=False, context_fn=contexts)


def plain_product():
    x, y = leaf(A), leaf(B)
    product(x, y).sum().backward()
    return x.grad, y.grad


@pytest.mark.parametrize(
    "what",
    [
        [aten.mm.default],
        [aten.mm.default, aten.sigmoid.default],
        [],
        lambda ctx, op, *args, **kwargs: SAVE,
        lambda ctx, op, *args, **kwargs: AGAIN,
        lambda ctx, op, *args, **kwargs: Policy.PREFER_SAVE if op == aten.mm.default else Policy.MUST_RECOMPUTE,
        lambda ctx, op, *args, **kwargs: op is aten.mm.default,
    ],
)
def test_selective_gradients(what):
    x, y, out = selective(what)
    out.sum().backward()
    expected = plain_product()
    assert_values(x.grad, expected[0])
    assert_values(y.grad, expected[1])


def overwritten(x, y):
    product = T.mm(x, y)
    product.mul_(2)
    return T.sigmoid(product)


def test_kept_results_must_not_be_written():
    *_, out = selective([aten.mm.default], overwritten)
    with pytest.raises(RuntimeError, match="Tensor cached during selective activation checkpoint has been mutated"):
        out.sum().backward()


def test_kept_results_may_be_written_where_that_is_allowed():
    """Then the change is the caller's: what was kept shows it, and gets it again."""
    x, y, out = selective([aten.mm.default], overwritten, allow_cache_entry_mutation=True)
    out.sum().backward()
    s = T.sigmoid(4 * (x @ y).detach())
    expected = 2 * (s * (1 - s)) @ y.detach().t()
    assert_values(x.grad, expected)


def test_policy_is_asked():
    asked = []

    def policy(ctx, op, *args, **kwargs):
        asked.append((str(op), ctx.is_recompute, tuple(ctx.op_output.shape), [tuple(a.shape) for a in args]))
        return AGAIN

    *_, out = selective(policy)
    forward = [a for a in asked if "detach" not in a[0]]
    assert forward == [
        ("aten.mm.default", False, (2, 2), [(2, 2), (2, 2)]),
        ("aten.mm.default", False, (2, 2), [(2, 2), (2, 2)]),
        ("aten.sigmoid.default", False, (2, 2), [(2, 2)]),
        ("aten.mul.Tensor", False, (2, 2), [(2, 2), (2, 2)]),
    ]
    count = len(asked)
    out.sum().backward()
    assert len(asked) == count


@pytest.mark.parametrize("size", [2, 64])
def test_kept_results_are_not_made_again(size):
    """What a kept operator made in the forward is changed behind its back: the recomputation shows the change."""
    seen = []

    def function(x, y):
        product = T.mm(x, y)
        seen.append(product.detach())
        return product.exp() * y

    x = T.ones(size, size, requires_grad=True)
    y = T.ones(size, size, requires_grad=True)
    contexts = lambda: ck.create_selective_checkpoint_contexts([aten.mm.default], True)  # noqa: E731
    out = checkpoint(function, x, y, use_reentrant=False, context_fn=contexts, early_stop=False)
    with T.no_grad():
        seen[0].zero_()
    out.sum().backward()
    assert seen[1].tolist() == [[0.0] * size] * size


def test_kept_results_must_not_change():
    kept = []

    def function(x, y):
        kept.append(T.mm(x, y))
        return kept[-1].exp() * y

    *_, out = selective([aten.mm.default], function)
    with T.no_grad():
        kept[0].zero_()
    with pytest.raises(RuntimeError, match="Tensor cached during selective activation checkpoint has been mutated"):
        out.sum().backward()


def test_selective_only_once():
    *_, out = selective([aten.mm.default])
    out.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time. You are only allowed to backward once"):
        out.sum().backward()


def test_selective_with_another_run():
    state = []

    def function(x, y):
        state.append(1)
        z = T.mm(x, y) if len(state) == 1 else T.mm(T.mm(x, y), y)
        return z.exp() * y

    *_, out = selective([aten.mm.default], function)
    with pytest.raises(RuntimeError, match="encountered during backward but not found in storage"):
        out.sum().backward()


def test_selective_with_the_users_hooks():
    log = []
    hooks = T.autograd.graph.saved_tensors_hooks(lambda t: (log.append("pack"), t)[1], lambda t: (log.append("unpack"), t)[1])
    contexts = lambda: ck.create_selective_checkpoint_contexts([aten.mm.default])  # noqa: E731
    for respects, names in ((True, ["pack", "pack"]), (False, [])):
        log.clear()
        x, y = leaf(A), leaf(B)
        a, b = x * 1, y * 1
        with hooks:
            out = checkpoint(product, a, b, use_reentrant=False, context_fn=contexts, respect_saved_tensors_hooks=respects)
        assert log == names + ["pack", "pack"] or log == ["pack", "pack"] + names
        out.sum().backward()
        assert_values(x.grad, plain_product()[0])
    with hooks, pytest.warns(FutureWarning, match="is active around a selective activation checkpoint region"):
        checkpoint(product, leaf(A), leaf(B), use_reentrant=False, context_fn=contexts)


def test_selective_in_place():
    def function(x, y):
        z = T.mm(x, y)
        w = z * 2
        w.sin_()
        return w.exp() * y

    x, y, out = selective([aten.mm.default], function)
    out.sum().backward()
    a, b = leaf(A), leaf(B)
    function(a, b).sum().backward()
    assert_values(x.grad, a.grad)
    assert_values(y.grad, b.grad)


def test_selective_mistakes():
    with pytest.raises(
        ValueError, match="Expected op in `op_list` to be an OpOverload but got: aten.mm of type .*specific OpOverload"
    ):
        ck.create_selective_checkpoint_contexts([aten.mm])
    with pytest.raises(ValueError, match="Expected op in `op_list` to be an OpOverload but got: 3"):
        ck.create_selective_checkpoint_contexts([3])
    with pytest.raises(TypeError, match="policy_fn_or_list must be either a function or a list of ops."):
        ck.create_selective_checkpoint_contexts(3)


def test_names_of_operators():
    assert str(aten.mm.default) == "aten.mm.default" and aten.mm.default is aten.mm.default
    assert repr(aten.add.Tensor) == "<OpOverload(op='aten.add', overload='Tensor')>"
    assert (aten.add.Tensor.name(), aten.mm.default.name()) == ("aten::add.Tensor", "aten::mm")


def test_variances_are_asked_about_by_their_form():
    asked = []

    def policy(ctx, op, *args, **kwargs):
        asked.append(op)
        return AGAIN

    def f(x):
        var, mean = T.var_mean(x)
        return (var * mean + T.std(x)).exp()

    x = leaf([1.0, 2.0, 4.0])
    contexts = lambda: ck.create_selective_checkpoint_contexts(policy)  # noqa: E731
    checkpoint(f, x, use_reentrant=False, context_fn=contexts).backward()
    assert aten.var_mean.correction in asked and aten.std.correction in asked


def test_forms_with_numbers_have_names_of_their_own():
    asked = []

    def policy(ctx, op, *args, **kwargs):
        asked.append(str(op))
        return SAVE

    def f(x, y):
        powers = 2**x + x**2 + x**y
        return (powers + x % 2 + x % y + x.clamp_min(0.5) + T.where(x > 2, x, y)).softmax(0).sum()

    x, y = leaf([1.5, 2.5]), leaf([2.0, 3.0])
    contexts = lambda: ck.create_selective_checkpoint_contexts(policy)  # noqa: E731
    checkpoint(f, x, y, use_reentrant=False, context_fn=contexts).backward()
    kinds = {
        "pow.Scalar",
        "pow.Tensor_Scalar",
        "pow.Tensor_Tensor",
        "remainder.Scalar",
        "remainder.Tensor",
        "clamp_min.default",
    }
    assert {f"aten.{kind}" for kind in kinds | {"where.self", "_softmax.default", "add.Tensor"}} <= set(asked)
