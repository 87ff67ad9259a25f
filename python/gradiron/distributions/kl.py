"""Kullback-Leibler divergences, by a rule for each pair of classes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import gradiron as torch

from .._core import Tensor
from ..nn import functional as F
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal, _distance, _log_det
from .multivariate_normal import MultivariateNormal, _half_log_det, _mahalanobis
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import euler_constant, sum_rightmost

__all__ = ["kl_divergence", "register_kl"]

_Rule = Callable[[Any, Any], Tensor]
_RULES: dict[tuple[type, type], _Rule] = {}
# What was found for pairs that were asked for.
_FOUND: dict[tuple[type, type], _Rule | None] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[_Rule], _Rule]:
    """Decorate a function that computes `kl_divergence` for a pair of classes and their subclasses.

    Args:
        type_p: class of the first distribution.
        type_q: class of the second distribution.

    Examples:
        >>> class Standard(torch.distributions.Normal):
        ...     pass
        >>> @torch.distributions.register_kl(Standard, Standard)
        ... def _standard(p, q):
        ...     return torch.zeros(p.batch_shape)
        >>> torch.distributions.kl_divergence(Standard(0.0, 1.0), Standard(0.0, 1.0))
        tensor(0.)
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
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
    """Compute the Kullback-Leibler divergence `E_p[log p(x) - log q(x)]` of two distributions.

    Args:
        p: first distribution, under which the mean is taken.
        q: second distribution.

    Raises:
        NotImplementedError: if no rule is registered for the two classes.

    Examples:
        >>> p, q = torch.distributions.Normal(0.0, 1.0), torch.distributions.Normal(1.0, 1.0)
        >>> torch.distributions.kl_divergence(p, q)
        tensor(0.5000)
    """
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


@register_kl(Beta, Beta)
def _beta_beta(p: Any, q: Any) -> Tensor:
    total_p, total_q = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    sizes = q.concentration1.lgamma() + q.concentration0.lgamma() + total_p.lgamma()
    sizes = sizes - (p.concentration1.lgamma() + p.concentration0.lgamma() + total_q.lgamma())
    one = (p.concentration1 - q.concentration1) * torch.digamma(p.concentration1)
    zero = (p.concentration0 - q.concentration0) * torch.digamma(p.concentration0)
    return sizes + one + zero + (total_q - total_p) * torch.digamma(total_p)


@register_kl(Binomial, Binomial)
def _binomial_binomial(p: Any, q: Any) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    coin = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return (p.total_count * coin).masked_fill(p.total_count > q.total_count, torch.inf)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_continuous(p: Any, q: Any) -> Tensor:
    mine = p._log_constant() + torch.log1p(-p.probs)
    return p.mean * (p.logits - q.logits) + mine - q._log_constant() - torch.log1p(-q.probs)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet_dirichlet(p: Any, q: Any) -> Tensor:
    total_p, total_q = p.concentration.sum(-1), q.concentration.sum(-1)
    sizes = total_p.lgamma() - total_q.lgamma() - (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    away = p.concentration.digamma() - total_p.digamma().unsqueeze(-1)
    return sizes + ((p.concentration - q.concentration) * away).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential_exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Gamma, Gamma)
def _gamma_gamma(p: Any, q: Any) -> Tensor:
    rates = q.concentration * (p.rate / q.rate).log()
    sizes = torch.lgamma(q.concentration) - torch.lgamma(p.concentration)
    shapes = (p.concentration - q.concentration) * torch.digamma(p.concentration)
    return rates + sizes + shapes + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Gumbel, Gumbel)
def _gumbel_gumbel(p: Any, q: Any) -> Tensor:
    ratio, p_loc, q_loc = p.scale / q.scale, p.loc / q.scale, q.loc / q.scale
    moment = torch.exp(q_loc + torch.lgamma(1 + ratio) - p_loc)
    return p_loc - q_loc - ratio.log() + ratio * euler_constant + moment - (1 + euler_constant)


@register_kl(Geometric, Geometric)
def _geometric_geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _half_half(p: Any, q: Any) -> Tensor:
    return _normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace_laplace(p: Any, q: Any) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * torch.exp(-away / p.scale) - 1


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _lowrank_lowrank(p: Any, q: Any) -> Tensor:
    factor, diagonal = q._parts()
    sizes = _log_det(q._unbroadcasted_cov_diag, q._capacitance_tril) - _log_det(p._unbroadcasted_cov_diag, p._capacitance_tril)
    away = _distance(factor, diagonal, q.loc - p.loc, q._capacitance_tril)
    # The trace of inv(Wq Wq' + Dq) (Wp Wp' + Dp), by Woodbury's formula.
    scaled = factor.mT / diagonal.unsqueeze(-2)
    inner = torch.linalg.solve_triangular(q._capacitance_tril, scaled, upper=False)
    p_factor, p_diagonal = p._parts()
    trace = (p_diagonal / diagonal).sum(-1) + _trace_of_square(p_factor * diagonal.rsqrt().unsqueeze(-1))
    trace = trace - _trace_of_square(inner * p_diagonal.sqrt().unsqueeze(-2)) - _trace_of_square(inner.matmul(p_factor))
    return 0.5 * (sizes + away + trace - p.event_shape[0])


def _trace_of_square(matrix: Tensor) -> Tensor:
    """The trace of `matrix @ matrix.T`."""
    return matrix.pow(2).sum((-2, -1))


def _normal_vectors(p: Any, q: Any, sizes: Tensor, away: Tensor, root: Tensor) -> Tensor:
    """`root` is a factor of `p`'s covariance; `q` has a Cholesky factor."""
    n = p.event_shape[0]
    tril = q._unbroadcasted_scale_tril
    batch = torch.broadcast_shapes(tril.shape[:-2], root.shape[:-2])
    spread = torch.linalg.solve_triangular(tril.expand((*batch, n, n)), root.expand((*batch, *root.shape[-2:])), upper=False)
    return sizes + 0.5 * (_trace_of_square(spread) + away - n)


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _multivariate_lowrank(p: Any, q: Any) -> Tensor:
    factor, diagonal = q._parts()
    sizes = _log_det(diagonal, q._capacitance_tril) - 2 * _half_log_det(p._unbroadcasted_scale_tril)
    away = _distance(factor, diagonal, q.loc - p.loc, q._capacitance_tril)
    inner = torch.linalg.solve_triangular(q._capacitance_tril, factor.mT / diagonal.unsqueeze(-2), upper=False)
    trace = _trace_of_square(p._unbroadcasted_scale_tril * diagonal.rsqrt().unsqueeze(-1))
    trace = trace - _trace_of_square(inner.matmul(p._unbroadcasted_scale_tril))
    return 0.5 * (sizes + away + trace - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _lowrank_multivariate(p: Any, q: Any) -> Tensor:
    sizes = _half_log_det(q._unbroadcasted_scale_tril) - 0.5 * _log_det(p._unbroadcasted_cov_diag, p._capacitance_tril)
    away = _mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    factor, diagonal = p._parts()
    return _normal_vectors(p, q, sizes, away, torch.cat([factor, diagonal.sqrt().diag_embed()], -1))


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_multivariate(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError("KL-divergence between two Multivariate Normals with different event shapes cannot be computed")
    sizes = _half_log_det(q._unbroadcasted_scale_tril) - _half_log_det(p._unbroadcasted_scale_tril)
    away = _mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    return _normal_vectors(p, q, sizes, away, p._unbroadcasted_scale_tril)


@register_kl(OneHotCategorical, OneHotCategorical)
def _onehot_onehot(p: Any, q: Any) -> Tensor:
    return _categorical_categorical(p._categorical, q._categorical)


@register_kl(Pareto, Pareto)
def _pareto_pareto(p: Any, q: Any) -> Tensor:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return result.masked_fill(p.support.lower_bound < q.support.lower_bound, torch.inf)


@register_kl(Poisson, Poisson)
def _poisson_poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Cauchy, Cauchy)
def _cauchy_cauchy(p: Any, q: Any) -> Tensor:
    both = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return both - (4 * p.scale * q.scale).log()


# Different kinds. `E` is a mean under `p`; what `p` gives and `q` does not makes it infinite.


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


def _infinite(type_p: type, types_q: list[type], of: Callable[[Any], Tensor]) -> None:
    for type_q in types_q:
        register_kl(type_p, type_q)(lambda p, q: torch.full_like(of(p), torch.inf))


_infinite(Beta, [Pareto], lambda p: p.concentration1)
_infinite(ContinuousBernoulli, [Pareto], lambda p: p.probs)
_infinite(Exponential, [Beta, ContinuousBernoulli, Pareto, Uniform], lambda p: p.rate)
_infinite(Gamma, [Beta, ContinuousBernoulli, Pareto, Uniform], lambda p: p.concentration)
_infinite(Gumbel, [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform], lambda p: p.loc)
_infinite(Laplace, [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform], lambda p: p.loc)
_infinite(Normal, [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform], lambda p: p.loc)
_infinite(Pareto, [Beta, ContinuousBernoulli, Uniform], lambda p: p.scale)
_infinite(Poisson, [Bernoulli, Binomial], lambda p: p.rate)


def _to_normal(p: Any, q: Any) -> Tensor:
    """From anything that has a mean, a variance and an entropy."""
    away = (p.mean - q.loc) / q.scale
    spread = p.variance / q.scale.pow(2)
    return -p.entropy() + 0.5 * (math.log(2 * math.pi) + spread + away.pow(2)) + q.scale.log()


for _kind in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Uniform):
    register_kl(_kind, Normal)(_to_normal)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Any, q: Any) -> Tensor:
    return _to_normal(p, q).masked_fill(p.alpha <= 2, torch.inf)


def _to_exponential(p: Any, q: Any) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


for _kind in (Beta, ContinuousBernoulli, Gamma):
    register_kl(_kind, Exponential)(_to_exponential)


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Any, q: Any) -> Tensor:
    return _to_exponential(p, q).masked_fill(p.alpha <= 1, torch.inf)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Tensor:
    return _to_exponential(p, q).masked_fill(p.low < q.support.lower_bound, torch.inf)


def _to_gamma(p: Any, q: Any, mean_log: Tensor) -> Tensor:
    size = q.concentration.lgamma() - q.concentration * q.rate.log()
    return -p.entropy() + size - (q.concentration - 1) * mean_log + q.rate * p.mean


@register_kl(Beta, Gamma)
def _beta_gamma(p: Any, q: Any) -> Tensor:
    return _to_gamma(p, q, p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma())


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Tensor:
    return _to_gamma(p, q, -euler_constant - p.rate.log())


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Any, q: Any) -> Tensor:
    return _to_gamma(p, q, p.scale.log() + p.alpha.reciprocal()).masked_fill(p.alpha <= 1, torch.inf)


def _uniform_mean_log(p: Any, low: Tensor, high: Tensor) -> Tensor:
    """The mean of the logarithm between two numbers."""
    return (_xlogx(high) - _xlogx(low)) / (high - low) - 1


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Tensor:
    result = _to_gamma(p, q, _uniform_mean_log(p, p.low, p.high))
    return result.masked_fill(p.low < q.support.lower_bound, torch.inf)


@register_kl(Beta, Uniform)
def _beta_uniform(p: Any, q: Any) -> Tensor:
    result = -p.entropy() + (q.high - q.low).log()
    return result.masked_fill((q.low > p.support.lower_bound) | (q.high < p.support.upper_bound), torch.inf)


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_uniform(p: Any, q: Any) -> Tensor:
    result = -p.entropy() + (q.high - q.low).log()
    outside = torch.ge(q.low, p.support.lower_bound) | torch.le(q.high, p.support.upper_bound)
    return torch.where(outside, torch.ones_like(result) * torch.inf, result)


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous(p: Any, q: Any) -> Tensor:
    return -p.entropy() - p.mean * q.logits - torch.log1p(-q.probs) - q._log_constant()


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous(p: Any, q: Any) -> Tensor:
    result = -p.entropy() - p.mean * q.logits - torch.log1p(-q.probs) - q._log_constant()
    outside = (p.high > q.support.upper_bound) | (p.low < q.support.lower_bound)
    return result.masked_fill(outside, torch.inf)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Tensor:
    size = q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    one = (q.concentration1 - 1) * _uniform_mean_log(p, p.low, p.high)
    zero = (q.concentration0 - 1) * _uniform_mean_log(p, 1 - p.high, 1 - p.low)
    outside = (p.high > q.support.upper_bound) | (p.low < q.support.lower_bound)
    return (-p.entropy() + size - one - zero).masked_fill(outside, torch.inf)


def _to_gumbel(p: Any, q: Any, mean_exp: Tensor) -> Tensor:
    """`mean_exp` is `E exp(-x / scale)`."""
    away = (p.mean - q.loc) / q.scale
    return -p.entropy() + q.scale.log() + away + torch.exp(q.loc / q.scale) * mean_exp


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Any, q: Any) -> Tensor:
    product = p.rate * q.scale
    return _to_gumbel(p, q, product / (product + 1))


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Any, q: Any) -> Tensor:
    return _to_gumbel(p, q, (1 + (p.rate * q.scale).reciprocal()).pow(-p.concentration))


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> Tensor:
    return _to_gumbel(p, q, torch.exp(-p.loc / q.scale + 0.5 * (p.scale / q.scale).pow(2)))


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Any, q: Any) -> Tensor:
    ends = torch.exp(-p.low / q.scale) - torch.exp(-p.high / q.scale)
    return _to_gumbel(p, q, q.scale / (p.high - p.low) * ends)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Tensor:
    away, ratio = p.loc - q.loc, p.scale / q.scale
    turns = away / p.scale
    mean = math.sqrt(2 / math.pi) * p.scale * torch.exp(-0.5 * turns.pow(2)) + away * torch.erf(math.sqrt(0.5) * turns)
    return -ratio.log() + mean / q.scale - (0.5 + 0.5 * math.log(0.5 * math.pi))


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Tensor:
    size = (q.alpha * q.scale.pow(q.alpha)).log()
    result = (q.alpha + 1) * _uniform_mean_log(p, p.low, p.high) - size - p.entropy()
    return result.masked_fill(p.low < q.support.lower_bound, torch.inf)
