"""Weights that are left out by masks."""

import importlib
import pickle

import pytest

from library import NAME, T, assert_values

nn = T.nn
prune = importlib.import_module(f"{NAME}.nn.utils.prune")


def linear(values=None):
    m = nn.Linear(3, 2)
    with T.no_grad():
        m.weight.copy_(T.tensor([[1.0, -2.0, 3.0], [-4.0, 5.0, -6.0]]))
    return m


def test_by_size():
    m = linear()
    assert prune.l1_unstructured(m, "weight", 2) is m
    assert_values(m.weight_mask, [[0.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    assert_values(m.weight, [[0.0, 0.0, 3.0], [-4.0, 5.0, -6.0]])
    assert [n for n, _ in m.named_parameters()] == ["bias", "weight_orig"] and "weight_mask" in m._buffers
    m(T.ones(1, 3)).sum().backward()
    assert_values(m.weight_orig.grad, [[0.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    prune.l1_unstructured(m, "weight", 0.5)
    assert_values(m.weight, [[0.0, 0.0, 0.0], [0.0, 5.0, -6.0]])
    assert len(m._forward_pre_hooks) == 1 and prune.is_pruned(m)
    assert pickle.loads(pickle.dumps(m))(T.ones(1, 3)).shape == (1, 2)
    prune.remove(m, "weight")
    assert isinstance(m.weight, nn.Parameter) and not prune.is_pruned(m) and list(m.state_dict()) == ["bias", "weight"]
    assert_values(m.weight, [[0.0, 0.0, 0.0], [0.0, 5.0, -6.0]])


def test_other_scores():
    m = linear()
    prune.l1_unstructured(m, "weight", 1, importance_scores=T.tensor([[5.0, 4.0, 3.0], [2.0, 1.0, 9.0]]))
    assert_values(m.weight, [[1.0, -2.0, 3.0], [-4.0, 0.0, -6.0]])


def test_at_random():
    m = linear()
    prune.random_unstructured(m, "weight", 0.5)
    assert m.weight_mask.sum() == 3
    m = linear()
    prune.random_structured(m, "weight", 1, dim=1)
    assert m.weight_mask.sum(0).tolist().count(0) == 1 and m.weight_mask.sum() == 4
    prune.identity(m, "bias")
    assert m.bias_mask.sum() == 2


def test_channels():
    m = linear()
    prune.ln_structured(m, "weight", 1, n=2, dim=0)
    assert_values(m.weight, [[0.0, 0.0, 0.0], [-4.0, 5.0, -6.0]])
    prune.ln_structured(m, "weight", 1, n=1, dim=1)
    assert_values(m.weight_mask, [[0.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    m = linear()
    prune.ln_structured(m, "weight", 0.3, n=float("inf"), dim=-1)
    assert_values(m.weight, [[0.0, -2.0, 3.0], [0.0, 5.0, -6.0]])


def test_by_hand_and_globally():
    m = linear()
    prune.custom_from_mask(m, "bias", T.tensor([0.0, 1.0]))
    assert m.bias[0] == 0
    a, b = linear(), linear()
    with T.no_grad():
        b.weight.mul_(10)
    prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, amount=6)
    assert a.weight.abs().sum() == 0 and b.weight_mask.sum() == 6
    with pytest.raises(TypeError, match='^Only "unstructured" PRUNING_TYPE supported for the `pruning_method`'):
        prune.global_unstructured([(a, "weight")], prune.LnStructured, amount=1, n=1)


def test_own_methods():
    class Middle(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask.view(-1)[1] = 0
            return mask

    m = linear()
    Middle.apply(m, "weight")
    assert m.weight[0, 1] == 0
    assert_values(Middle().prune(T.ones(3)), [1.0, 0.0, 1.0])


def test_what_is_refused():
    m = linear()
    for amount, kind, text in (
        (-1, ValueError, "amount=-1 should either be a float in the range [0, 1] or a non-negative integer"),
        (1.5, ValueError, "amount=1.5 should either be a float in the range [0, 1] or a non-negative integer"),
        ("a", TypeError, "Invalid type for amount: a. Must be int or float."),
        (7, ValueError, "amount=7 should be smaller than the number of parameters to prune=6"),
    ):
        with pytest.raises(kind) as error:
            prune.l1_unstructured(m, "weight", amount)
        assert str(error.value) == text and not prune.is_pruned(m)
        assert isinstance(m.weight, nn.Parameter)
    with pytest.raises(ValueError, match="^Structured pruning can only be applied to multidimensional tensors"):
        prune.random_structured(m, "bias", 1, 0)
    with pytest.raises(IndexError, match="^Invalid index 2 for tensor of size"):
        prune.random_structured(m, "weight", 1, 2)
    with pytest.raises(
        ValueError, match="^Parameter 'weight' of module Linear.* has to be pruned before pruning can be removed"
    ):
        prune.remove(m, "weight")


def test_how_many():
    assert [prune._compute_nparams_toprune(a, n) for a, n in ((0, 15), (10, 15), (1, 15), (1.0, 15), (0.4, 17))] == [
        0,
        10,
        1,
        15,
        7,
    ]
    with pytest.raises(ValueError, match="amount=20 should be smaller than the number of parameters to prune=19"):
        prune._validate_pruning_amount(20, 19)
    prune._validate_pruning_amount(0.3, 0)


def test_one_that_fails_leaves_the_module_as_it_was():
    class Failing(prune.L1Unstructured):
        def compute_mask(self, t, default_mask):
            raise OSError("lost")

    m = nn.Linear(3, 2)
    with pytest.raises(OSError, match="lost"):
        Failing.apply(m, "weight", 0.5)
    assert {name for name, _ in m.named_parameters()} == {"weight", "bias"}
    assert not dict(m.named_buffers()) and not prune.is_pruned(m)


def test_the_weights_of_recurrent_layers():
    layer = nn.LSTM(2, 3)
    prune.l1_unstructured(layer, "weight_ih_l0", 0.5)
    assert sum(isinstance(w, nn.Parameter) for w in layer._flat_weights) == 3
    layer(T.ones(1, 1, 2))[0].sum().backward()
    assert (layer.weight_ih_l0_orig.grad == 0).sum() >= 12
    prune.remove(layer, "weight_ih_l0")
    assert layer._flat_weights[0] is layer.weight_ih_l0 and isinstance(layer.weight_ih_l0, nn.Parameter)


def test_pruned_modules_are_saved_with_their_masks():
    import io

    m = nn.Sequential(nn.Linear(4, 3))
    prune.l1_unstructured(m[0], "weight", 0.5)
    file = io.BytesIO()
    T.save(m, file)
    file.seek(0)
    loaded = T.load(file, weights_only=False)
    assert list(loaded.state_dict()) == ["0.bias", "0.weight_orig", "0.weight_mask"]
    assert T.equal(loaded(T.ones(1, 4)), m(T.ones(1, 4)))
