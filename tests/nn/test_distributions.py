"""Distributions: what they say is what PyTorch says (tests/golden/make_distributions.py)."""

import math
import warnings

import distribution_cases as cases
import golden_file
import pytest

from library import T

D = T.distributions
TOLD = golden_file.read("distributions.json.gz")

# What the distribution function of gamma numbers needs and is not there yet.
LACKS = ("AttributeError: module 'torch.special'", "AttributeError: module 'torch' has no attribute 'special'")


def apart(name, question):
    """PyTorch takes good samples of this one for singular, draws them again, and cannot go backward through that."""
    return name == "wishart" and "sample" in question


pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name, code, value", cases.rows(cases.CASES))
def test_answers(name, code, value):
    theirs = TOLD["answers"][name]
    mine = cases.answers(T, code, value)
    assert mine.keys() == theirs.keys()
    for question in theirs:
        if apart(name, question) or str(mine[question]).startswith(LACKS):
            continue
        assert cases.close(mine[question], theirs[question]), (question, mine[question], theirs[question])


@pytest.mark.parametrize("name, code, value", cases.rows(cases.CASES))
def test_gradients(name, code, value):
    theirs = TOLD["gradients"][name]
    mine = cases.gradients(T, code, value)
    for question in theirs:
        if apart(name, question):
            continue
        # PyTorch's derivatives of gamma samples are approximations.
        assert cases.close(mine[question], theirs[question], 1e-3), (question, mine[question], theirs[question])


@pytest.mark.parametrize("p, q", cases.pairs())
def test_divergences(p, q):
    theirs = TOLD["divergences"][f"{p} | {q}"]
    assert cases.close(cases.divergence(T, p, q), theirs), (cases.divergence(T, p, q), theirs)


@pytest.mark.parametrize("code", [code for (code,) in cases.rows(cases.REFUSED)])
def test_refusals(code):
    assert cases.refusal(T, code) == TOLD["refused"][code]


def test_validation_can_be_turned_off():
    assert D.Normal(T.tensor(0.0), T.tensor(-1.0), validate_args=False).scale == -1
    D.Distribution.set_default_validate_args(False)
    try:
        assert D.Uniform(T.tensor(1.0), T.tensor(0.0)).low == 1
    finally:
        D.Distribution.set_default_validate_args(True)


def test_samples_of_wishart_have_its_mean():
    T.manual_seed(0)
    mine = D.Wishart(T.tensor(6.0), T.tensor([[2.0, 0.5], [0.5, 1.0]]))
    assert T.allclose(mine.sample((4000,)).mean(0), mine.mean, rtol=0.05, atol=0.1)


def test_sampling_keeps_no_history_and_rsample_does():
    loc = T.zeros(3, requires_grad=True)
    assert not D.Normal(loc, 1.0).sample().requires_grad
    assert D.Normal(loc, 1.0).rsample((2,)).grad_fn is not None


def test_a_rule_of_ones_own():
    class Mine(D.Normal):
        pass

    class Other(D.Normal):
        pass

    p, q = Mine(T.tensor(0.0), T.tensor(1.0)), Other(T.tensor(1.0), T.tensor(1.0))
    assert D.kl_divergence(p, q).item() == pytest.approx(0.5)

    @D.register_kl(Mine, Other)
    def rule(p, q):
        return T.tensor(7.0)

    assert D.kl_divergence(p, q).item() == 7
    with pytest.raises(TypeError):
        D.register_kl(3, Mine)
    with pytest.raises(NotImplementedError, match="Subclass Odd of Normal that defines a custom __init__"):

        class Odd(D.Normal):
            def __init__(self):
                super().__init__(0.0, 1.0)

        Odd().expand((2,))


def test_ambiguous_rules_warn():
    class Base(D.Normal):
        pass

    class Left(Base):
        pass

    D.register_kl(Left, D.Normal)(lambda p, q: T.tensor(1.0))
    D.register_kl(D.Normal, Left)(lambda p, q: T.tensor(2.0))
    pair = [Left(T.tensor(0.0), T.tensor(1.0)) for _ in range(2)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        D.kl_divergence(*pair)
    assert any("Ambiguous kl_divergence(Left, Left)" in str(w.message) for w in caught)


def test_transforms_remember_the_last_pair():
    transform = D.AffineTransform(1.0, T.tensor([2.0, -3.0]), cache_size=1)
    x = T.tensor([0.5, 0.25])
    assert transform.inv(transform(x)) is x
    assert transform.inv.inv is transform
    assert D.ComposeTransform([D.ExpTransform(), transform]) == D.ComposeTransform([D.ExpTransform(), transform])


@pytest.mark.parametrize("concentration", [math.inf, 2.0**62, 0.0, math.nan])
def test_angles_of_no_spread_are_drawn_in_time(concentration):
    if T.__name__ == "torch":
        pytest.skip("it draws for ever")
    angles = T.distributions.VonMises(T.tensor([1.0, 2.0]), concentration, validate_args=False).sample((3,))
    assert angles.shape == (3, 2)
    if concentration > 1:
        assert T.allclose(angles, T.tensor([1.0, 2.0]), atol=1e-3)
