"""`kl_divergence`: a rule for each pair of classes, the nearest one where a pair has none of its own."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import gradiron as torch

from .._core import Tensor
from ..nn import functional as F
from .bernoulli import Bernoulli
from .categorical import Categorical
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .independent import Independent
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import sum_rightmost

__all__ = ["kl_divergence", "register_kl"]

_Rule = Callable[[Any, Any], Tensor]
_RULES: dict[tuple[type, type], _Rule] = {}
# What was found for pairs that were asked for.
_FOUND: dict[tuple[type, type], _Rule | None] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[_Rule], _Rule]:
    """Makes a function the rule for this pair of classes and those that are made from them."""
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type) or not issubclass(kind, Distribution):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def decorate(rule: _Rule) -> _Rule:
        _RULES[type_p, type_q] = rule
        _FOUND.clear()
        return rule

    return decorate


def _search(type_p: type, type_q: type) -> _Rule | None:
    pairs = [pair for pair in _RULES if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not pairs:
        return None

    def distance(kind: type, base: type) -> int:
        return kind.__mro__.index(base)

    # The nearest by the first class, and by the second: they should agree.
    left = min(pairs, key=lambda pair: (distance(type_p, pair[0]), distance(type_q, pair[1])))
    right = min(pairs, key=lambda pair: (distance(type_q, pair[1]), distance(type_p, pair[0])))
    if _RULES[left] is not _RULES[right]:
        names = [type_p.__name__, type_q.__name__, left[0].__name__, right[1].__name__]
        warnings.warn(
            "Ambiguous kl_divergence({}, {}). Please register_kl({}, {})".format(*names), RuntimeWarning, stacklevel=3
        )
    return _RULES[left]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """How far `q` is from `p`: the mean under `p` of the difference of their log-probabilities."""
    pair = type(p), type(q)
    if pair not in _FOUND:
        _FOUND[pair] = _search(*pair)
    rule = _FOUND[pair]
    if rule is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {p.__class__.__name__} and q type {q.__class__.__name__}"
        )
    return rule(p, q)


def _add_kl_info() -> None:
    """Adds to this function's doc the pairs that have a rule."""
    rows = [f"* :class:`{p.__name__}` and :class:`{q.__name__}`" for p, q in sorted(_RULES, key=lambda pair: str(pair))]
    kl_divergence.__doc__ = "\n    ".join([kl_divergence.__doc__ or "", "", "Pairs:", "", *rows])


def _infinite_like(value: Tensor) -> Tensor:
    return torch.full_like(value, torch.inf)


def _xlogx(value: Tensor) -> Tensor:
    return torch.xlogy(value, value)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli_bernoulli(p: Any, q: Any) -> Tensor:
    # softplus of the log-odds is minus the logarithm of the other outcome.
    one = p.probs * (F.softplus(-q.logits) - F.softplus(-p.logits))
    other = (1 - p.probs) * (F.softplus(q.logits) - F.softplus(p.logits))
    one = one.masked_fill(q.probs == 0, torch.inf).masked_fill(p.probs == 0, 0)
    other = other.masked_fill(q.probs == 1, torch.inf).masked_fill(p.probs == 1, 0)
    return one + other


@register_kl(Categorical, Categorical)
def _categorical_categorical(p: Any, q: Any) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = terms.masked_fill((q.probs == 0).expand_as(terms), torch.inf)
    return terms.masked_fill((p.probs == 0).expand_as(terms), 0).sum(-1)


@register_kl(ExponentialFamily, ExponentialFamily)
def _family_family(p: Any, q: Any) -> Tensor:
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman divergences"
        )
    natural = [parameter.detach().requires_grad_() for parameter in p._natural_params]
    theirs = q._natural_params
    normalizer = p._log_normalizer(*natural)
    gradients = torch.autograd.grad(normalizer.sum(), natural, create_graph=True)
    result = q._log_normalizer(*theirs) - normalizer
    for mine, other, gradient in zip(natural, theirs, gradients, strict=True):
        result = result - sum_rightmost((other - mine) * gradient, len(q.event_shape))
    return result


@register_kl(Normal, Normal)
def _normal_normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Uniform, Uniform)
def _uniform_uniform(p: Any, q: Any) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return result.masked_fill((q.low > p.low) | (q.high < p.high), torch.inf)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed_transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    more = len(p.event_shape) - len(p.base_dist.event_shape)
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), more)


@register_kl(Independent, Independent)
def _independent_independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
