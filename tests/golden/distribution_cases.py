"""Distributions: what each is made of, values to ask about, pairs to compare. `D` is `distributions`, `T` the library."""

# Name: code, then values at which it is asked.
CASES = """
normal | D.Normal(t(0.5, -1, 2), t(1, 0.3, 2.5)) | t(0.2, -1.3, 4)
normal_numbers | D.Normal(0.5, 2) | t(0.2, -1.3, 4)
normal_double | D.Normal(t(0.5, -1).double(), 1.5) | t(0.2, -1.3).double()
normal_many | D.Normal(T.zeros(4, 5), T.linspace(0.1, 3, 5)) | T.linspace(-2, 2, 5)
normal_expanded | D.Normal(t(0.5), t(1.5)).expand((2, 3)) | t(0.2, -1.3, 4)
uniform | D.Uniform(t(-1, 0), t(1, 5)) | t(0.25, 3)
uniform_numbers | D.Uniform(1, 3) | t(1.5, 2.9)
bernoulli | D.Bernoulli(t(0.2, 0.5, 0.9)) | t(1, 0, 1)
bernoulli_sure | D.Bernoulli(t(0, 1)) | t(0, 1)
bernoulli_logits | D.Bernoulli(logits=t(-1, 0.5, 2)) | t(1, 0, 1)
bernoulli_expanded | D.Bernoulli(logits=t(-1, 2)).expand((3, 2)) | t(0, 1)
categorical | D.Categorical(t(0.1, 2, 0.5, 1)) | T.tensor([0, 2, 3])
categorical_rows | D.Categorical(T.tensor([[0.1, 0.9], [0.5, 0.5], [1.0, 0.0]])) | T.tensor([1, 0, 0])
categorical_logits | D.Categorical(logits=t(0.1, 2, -0.5, 1)) | T.tensor([0, 2, 3])
categorical_expanded | D.Categorical(logits=t(0.1, 2, -0.5)).expand((4,)) | T.tensor([0, 1, 2, 2])
independent | D.Independent(D.Normal(T.zeros(2, 3), t(1, 2, 3)), 1) | T.linspace(-1, 1, 3)
independent_coins | D.Independent(D.Bernoulli(T.full((2, 3), 0.3)), 2) | T.ones(2, 3)
transformed | D.TransformedDistribution(D.Normal(t(0, 1), 1), [D.ExpTransform()]) | t(0.5, 2)
squashed | D.TransformedDistribution(D.Normal(t(0, 1), 0.5), [D.TanhTransform(), D.AffineTransform(1, -2)]) | t(0.5, 2)
sigmoid | D.TransformedDistribution(D.Uniform(t(0), t(1)), [D.SigmoidTransform().inv, D.AffineTransform(1, 2)]) | t(0.5, 2)
exponential | D.Exponential(t(0.5, 2)) | t(0.2, 3)
gamma | D.Gamma(t(0.5, 1, 7), t(1, 2, 0.5)) | t(0.2, 3, 9)
gamma_numbers | D.Gamma(0.5, 2) | t(0.2, 3, 9)
chi2 | D.Chi2(t(1, 3)) | t(0.5, 2)
beta | D.Beta(t(0.5, 2), t(0.5, 5)) | t(0.2, 0.7)
beta_numbers | D.Beta(2, 3.5) | t(0.2, 0.7)
dirichlet | D.Dirichlet(T.tensor([[0.3, 2.0, 5.0], [0.5, 0.5, 0.2]])) | t(0.2, 0.5, 0.3)
poisson | D.Poisson(t(0.5, 3, 40)) | t(0, 2, 37)
binomial | D.Binomial(10, t(0.2, 0.5, 0.9)) | t(3, 5, 10)
binomial_logits | D.Binomial(t(3, 5, 70), logits=t(-1, 0, 3)) | t(3, 2, 66)
negative_binomial | D.NegativeBinomial(t(2, 5), t(0.3, 0.8)) | t(1, 17)
geometric | D.Geometric(t(0.2, 1)) | t(3, 0)
geometric_logits | D.Geometric(logits=t(-1, 1)) | t(3, 0)
laplace | D.Laplace(t(0, 1), t(1, 3)) | t(-0.5, 2)
cauchy | D.Cauchy(t(0, 1), t(1, 3)) | t(-0.5, 2)
half_normal | D.HalfNormal(t(1, 3)) | t(0.5, 2)
half_cauchy | D.HalfCauchy(t(1, 3)) | t(0.5, 2)
log_normal | D.LogNormal(t(0, 1), t(1, 0.5)) | t(0.5, 2)
logistic_normal | D.LogisticNormal(t(0, 1), t(1, 0.5)) | t(0.2, 0.3, 0.5)
gumbel | D.Gumbel(t(0, 1), t(1, 0.5)) | t(0.5, 2)
student | D.StudentT(t(0.8, 1.5, 5), 1, t(1, 2, 3)) | t(0.5, 2, -1)
fisher | D.FisherSnedecor(t(1, 3), t(2, 7)) | t(0.5, 2)
weibull | D.Weibull(t(1, 2), t(0.7, 3)) | t(0.5, 2)
pareto | D.Pareto(t(1, 2), t(0.7, 3)) | t(1.5, 2)
kumaraswamy | D.Kumaraswamy(t(1, 2), t(0.7, 3)) | t(0.5, 0.2)
inverse_gamma | D.InverseGamma(t(1, 3), t(0.7, 3)) | t(0.5, 2)
one_hot | D.OneHotCategorical(t(0.2, 1, 3)) | t(0, 0, 1)
straight_through | D.OneHotCategoricalStraightThrough(logits=t(0.2, 1, 3)) | t(0, 0, 1)
multinomial | D.Multinomial(7, t(0.2, 1, 3)) | t(1, 2, 4)
multinomial_rows | D.Multinomial(5, logits=T.tensor([[0.0, 1.0], [2.0, 0.5]])) | t(1, 4)
relaxed_bernoulli | D.RelaxedBernoulli(t(0.7), t(0.2, 0.8)) | t(0.5, 0.2)
relaxed_one_hot | D.RelaxedOneHotCategorical(t(0.7), t(0.2, 0.8, 1)) | t(0.5, 0.2, 0.3)
mixture | D.MixtureSameFamily(D.Categorical(t(1, 2)), D.Normal(t(0, 3), t(1, 0.5))) | t(0.5)
mixture_vectors | D.MixtureSameFamily(D.Categorical(t(1, 2)), D.Independent(D.Normal(T.zeros(2, 3), t(1, 2, 3)), 1)) | t(0.5, 1, 2)
continuous_bernoulli | D.ContinuousBernoulli(t(0.2, 0.5, 0.9)) | t(0.3, 0.5, 0.1)
continuous_bernoulli_logits | D.ContinuousBernoulli(logits=t(-1, 0, 4)) | t(0.3, 0.5, 0.1)
von_mises | D.VonMises(t(0, 1), t(0.5, 6)) | t(0.3, 2)
generalized_pareto | D.GeneralizedPareto(t(0, 1), t(1, 2), t(0.3, 0.9)) | t(0.5, 2)
generalized_pareto_bounded | D.GeneralizedPareto(t(0, 1), t(1, 2), t(-0.3, 0)) | t(0.5, 2)
multivariate | D.MultivariateNormal(t(0, 1), T.tensor([[2.0, 0.5], [0.5, 1.0]])) | t(0.5, 2)
multivariate_tril | D.MultivariateNormal(T.zeros(3, 2), scale_tril=T.tensor([[2.0, 0.0], [0.5, 1.0]])) | t(0.5, 2)
multivariate_precision | D.MultivariateNormal(t(0, 1), precision_matrix=T.tensor([[2.0, 0.5], [0.5, 1.0]])) | t(0.5, 2)
lowrank | D.LowRankMultivariateNormal(t(0, 1, 2), T.tensor([[2.0, 0.5], [0.5, 1.0], [1.0, 0.0]]), t(1, 2, 0.5)) | t(0.5, 2, 1)
lkj | D.LKJCholesky(3, t(0.7, 2)) | T.tensor([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]])
wishart | D.Wishart(t(3, 5), T.tensor([[2.0, 0.5], [0.5, 1.0]])) | T.tensor([[1.0, 0.2], [0.2, 3.0]])
"""

# `p` and `q`.
PAIRS = """
D.Normal(t(0, 1), 1) | D.Normal(t(0.5, -1), t(2, 0.3))
D.Uniform(0, t(1, 3)) | D.Uniform(-1, 2)
D.Bernoulli(t(0, 0.3, 1, 0.5)) | D.Bernoulli(t(0.2, 0.6, 0.5, 1))
D.Categorical(t(0.1, 2, 0)) | D.Categorical(t(1, 2, 3))
D.Categorical(t(0.1, 2, 1)) | D.Categorical(t(1, 0, 3))
D.Independent(D.Normal(T.zeros(2, 3), 1), 1) | D.Independent(D.Normal(T.ones(2, 3), 2), 1)
D.Normal(0, 1) | D.Bernoulli(0.5)
D.Multinomial(3, t(1, 2)) | D.Multinomial(3, t(1, 2))
D.OneHotCategorical(t(0.1, 2, 0)) | D.OneHotCategorical(t(1, 2, 3))
D.Binomial(5, t(0.3, 0.6)) | D.Binomial(t(5, 3), t(0.2, 0.9))
D.Binomial(3, t(0.3, 0.6)) | D.Binomial(5, t(0.2, 0.9))
D.LogNormal(t(0, 1), 1) | D.LogNormal(t(0.5, -1), t(2, 0.3))
D.HalfNormal(t(1, 2)) | D.HalfNormal(t(0.5, 3))
D.Chi2(t(1, 2)) | D.Chi2(t(0.5, 3))
D.Chi2(t(1, 2)) | D.Gamma(t(0.5, 3), 2)
D.Geometric(t(0.3, 0.6)) | D.Geometric(t(0.2, 0.9))
D.Dirichlet(t(0.3, 1, 2)) | D.Dirichlet(t(1, 2, 0.5))
D.MultivariateNormal(t(0, 1), T.tensor([[2.0, 0.5], [0.5, 1.0]])) | D.MultivariateNormal(t(1, 1), T.tensor([[1.0, 0.1], [0.1, 3.0]]))
D.MultivariateNormal(t(0, 1), T.tensor([[2.0, 0.5], [0.5, 1.0]])) | D.LowRankMultivariateNormal(t(1, 1), T.tensor([[1.0], [0.1]]), t(1, 2))
D.LowRankMultivariateNormal(t(1, 1), T.tensor([[1.0], [0.1]]), t(1, 2)) | D.MultivariateNormal(t(0, 1), T.tensor([[2.0, 0.5], [0.5, 1.0]]))
D.LowRankMultivariateNormal(t(1, 1), T.tensor([[1.0], [0.1]]), t(1, 2)) | D.LowRankMultivariateNormal(t(0, 1), T.tensor([[0.5], [0.3]]), t(2, 2))
"""

# Each of these against each.
MIXED = """
D.Normal(t(0, 1.5), t(1, 0.5))
D.Uniform(t(0.2, -1), t(0.7, 3))
D.Uniform(t(1, 2), t(3, 5))
D.Beta(t(0.5, 2), t(0.5, 3))
D.Gamma(t(0.5, 2), t(0.5, 3))
D.Exponential(t(0.5, 2))
D.Laplace(t(0, 1.5), t(1, 0.5))
D.Gumbel(t(0, 1.5), t(1, 0.5))
D.Cauchy(t(0, 1.5), t(1, 0.5))
D.Pareto(t(1, 1.5), t(1.5, 3))
D.Poisson(t(1.5, 3))
D.Bernoulli(t(0.5, 0.3))
D.Binomial(5, t(0.5, 0.3))
D.ContinuousBernoulli(t(0.5, 0.3))
"""

# What is refused, in PyTorch's words.
REFUSED = """
D.Normal(t(0), t(-1))
D.Normal(T.tensor(T.nan), 1.0)
D.Normal(T.zeros(2), T.ones(3))
D.Normal("0", 1)
D.Uniform(t(1), t(0))
D.Bernoulli(t(1.5))
D.Bernoulli()
D.Bernoulli(t(0.5), t(0.5))
D.Categorical(T.tensor(0.5))
D.Categorical(t(-1, 2))
D.Normal(0, 1).log_prob(1.0)
D.Normal(T.zeros(3), 1).log_prob(T.zeros(2))
D.Normal(0, 1).log_prob(t(T.nan))
D.Bernoulli(t(0.5)).log_prob(t(0.5))
D.Bernoulli(t(0.5)).rsample()
D.Bernoulli(t(0.5)).cdf(t(0.5))
D.Categorical(t(1, 2)).log_prob(t(2))
D.Categorical(t(1, 2)).log_prob(t(0.5))
D.Independent(D.Normal(t(0), 1), 2)
D.Independent(D.Normal(t(0), 1), 1).log_prob(T.zeros(2))
D.TransformedDistribution(D.Normal(0, 1), 3)
D.kl_divergence(D.Normal(0, 1), D.Bernoulli(0.5))
D.Normal(0, 1).enumerate_support()
"""

ASKED = """
repr(d)
d.batch_shape
d.event_shape
d.has_rsample
d.has_enumerate_support
d.support
d.mean
d.mode
d.variance
d.stddev
d.entropy()
d.perplexity()
d.log_prob(value)
d.cdf(value)
d.icdf(T.linspace(0.1, 0.9, 3).unsqueeze(-1))
d.enumerate_support()
d.enumerate_support(expand=False)
d.sample()
d.sample((2,))
d.rsample((3,))
d.expand((5, *d.batch_shape)).log_prob(value)
d.expand((2, *d.batch_shape)).sample()
""".strip().splitlines()


def rows(text):
    return [[part.strip() for part in line.split("|")] for line in text.strip().splitlines()]


def pairs():
    mixed = MIXED.strip().splitlines()
    return rows(PAIRS) + [[p, q] for p in mixed for q in mixed]


def names(T, **more):
    return {"T": T, "D": T.distributions, "t": lambda *v: T.tensor([float(x) for x in v]), **more}


def told(T, value):
    """What JSON holds of a result."""
    if isinstance(value, T.Tensor):
        return {"dtype": str(value.dtype), "shape": list(value.shape), "values": value.detach().double().reshape(-1).tolist()}
    return str(value).replace("gradiron", "torch")


def first_sentence(error):
    # Spaces are not compared: some of PyTorch's messages hold the source's indentation.
    words = " ".join(str(error).partition("\n")[0].split())
    return f"{type(error).__name__}: {words}".replace("gradiron", "torch")


def outcome(T, make):
    try:
        return told(T, make())
    except Exception as error:
        return first_sentence(error)


def answers(T, code, value):
    """Everything that is asked of a distribution, each draw after the same seed."""
    told_of = {}
    for question in ASKED:
        T.manual_seed(3)
        told_of[question] = outcome(T, lambda q=question: eval(q, ask(T, code, value)))
    return told_of


def ask(T, code, value):
    known = names(T)
    return {**known, "d": eval(code, known), "value": eval(value, known)}


def gradients(T, code, value):
    """What `log_prob` and `rsample` give the tensors that a distribution was made of."""
    found = {}
    for question in ("d.log_prob(value).sum()", "d.rsample((4,)).square().sum()", "d.entropy().sum()"):
        leaves = []

        def t(*v):
            leaves.append(T.tensor([float(x) for x in v], requires_grad=True))
            return leaves[-1]

        known = names(T, t=t)
        T.manual_seed(3)
        try:
            known["d"] = eval(code, known)
            made = list(leaves)
            known["value"] = eval(value, known)
            result = eval(question, known)
            found[question] = [told(T, g) if g is not None else None for g in T.autograd.grad(result, made, allow_unused=True)]
        except Exception as error:
            found[question] = type(error).__name__
    return found


def divergence(T, p, q):
    known = names(T)
    return outcome(T, lambda: T.distributions.kl_divergence(eval(p, known), eval(q, known)))


def refusal(T, code):
    return outcome(T, lambda: eval(code, names(T)))


def close(mine, theirs, tolerance=2e-5):
    """Whether two results are the same up to rounding; not-a-numbers and infinities must be where they are."""
    if isinstance(theirs, dict) and isinstance(mine, dict):
        return all(close(mine.get(key), theirs[key], tolerance) for key in theirs)
    if isinstance(theirs, list) and isinstance(mine, list):
        return len(mine) == len(theirs) and all(close(m, t, tolerance) for m, t in zip(mine, theirs))
    if isinstance(theirs, float) and isinstance(mine, float):
        return mine == theirs or (mine != mine and theirs != theirs) or abs(mine - theirs) <= tolerance * max(1, abs(theirs))
    return mine == theirs


def all_answers(T):
    return {
        "answers": {name: answers(T, code, value) for name, code, value in rows(CASES)},
        "gradients": {name: gradients(T, code, value) for name, code, value in rows(CASES)},
        "divergences": {f"{p} | {q}": divergence(T, p, q) for p, q in pairs()},
        "refused": {code: refusal(T, code) for (code,) in rows(REFUSED)},
    }
