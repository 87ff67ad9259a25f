"""What each operator keeps for its derivative, as it shows: who writes over it meanwhile is told so in the backward, whichever
gradients are wanted, and a second backward wants it again."""

import pytest

from library import T

F = T.nn.functional
# A call; the inputs that want gradients; those (`y` is the result) that must not be written over; whether the graph is used up.
CALLS = """
a + b | ab | - | again
a * b | a | b | once
a * b | b | a | once
a * b | ab | ab | once
a * 2 | a | - | once
a / p | a | p | once
a / p | p | ap | once
a / p | ap | ap | once
T.div(a, p, rounding_mode='floor') | a | p | once
T.div(a, p, rounding_mode='floor') | p | ap | once
T.div(a, p, rounding_mode='floor') | ap | ap | once
T.remainder(a, p) | a | - | again
T.remainder(a, p) | p | ap | once
T.remainder(a, p) | ap | ap | once
T.fmod(a, p) | ap | ap | once
p ** a | p | apy | once
p ** a | a | apy | once
p ** a | pa | apy | once
p ** 2 | p | p | once
p ** 3 | p | p | once
p ** 0 | p | p | once
2 ** a | a | ay | once
T.atan2(a, b) | ab | ab | once
T.hypot(a, b) | ab | aby | once
T.copysign(a, b) | a | ay | once
T.copysign(a, b) | b | y | once
T.copysign(a, b) | ab | ay | once
T.maximum(a, b) | a | ab | once
T.maximum(a, b) | ab | ab | once
T.logaddexp(a, b) | ab | ab | once
T.lerp(a, b, u) | a | u | once
T.lerp(a, b, u) | u | abu | once
T.lerp(a, b, u) | ab | u | once
T.lerp(a, b, u) | abu | abu | once
T.addcmul(a, b, p) | a | - | again
T.addcmul(a, b, p) | b | p | once
T.addcmul(a, b, p) | ab | p | once
T.addcmul(a, b, p) | bp | bp | once
T.addcmul(a, b, p) | abp | bp | once
T.addcdiv(a, b, p) | a | p | once
T.addcdiv(a, b, p) | b | p | once
T.addcdiv(a, b, p) | p | bp | once
T.addcdiv(a, b, p) | abp | bp | once
T.where(k, a, b) | ab | k | once
a.exp() | a | y | once
a.sin() | a | a | once
p.sqrt() | p | y | once
u.erfinv() | u | u | once
a.sigmoid() | a | y | once
F.logsigmoid(a) | a | a | once
F.softplus(a) | a | a | once
a.relu() | a | y | once
a.clamp(-0.5, 0.5) | a | a | once
a.sum(0) | a | - | again
a.mean() | a | - | again
a.prod() | a | ay | once
a.prod(1) | a | ay | once
a.amax(0) | a | ay | once
a.max(0) | a | - | once
a.median(0) | a | - | once
a.std() | a | ay | once
a.var(0) | a | a | once
T.var_mean(a, 0) | a | a | once
a.norm() | a | ay | once
a.norm(0, 0) | a | ay | once
a.logsumexp(0) | a | ay | once
a.softmax(1) | a | y | once
a.cumsum(0) | a | - | again
a.cumprod(0) | a | ay | once
a.cummax(0) | a | a | once
a.sort(0) | a | - | once
a @ s | a | s | once
a @ s | s | a | once
a @ s | as | as | once
a[0].dot(b[0]) | ab | ab | once
F.mse_loss(a, b) | a | ab | once
F.mse_loss(a, b) | ab | ab | once
F.nll_loss(a, l) | a | al | once
a.gather(0, i) | a | ai | once
a.scatter_add(0, i, b) | a | - | again
a.scatter_add(0, i, b) | b | i | once
a.scatter_add(0, i, b) | ab | i | once
a.scatter(0, i, b) | ab | i | once
a.index_select(0, l) | a | l | once
a.index_add(0, l, b) | a | - | again
a.index_add(0, l, b) | b | bl | once
a.index_add(0, l, b) | ab | bl | once
a.index_copy(0, l, b) | a | l | once
a.index_copy(0, l, b) | b | bl | once
a.index_copy(0, l, b) | ab | bl | once
a.index_fill(0, l, 1.0) | a | l | once
a.masked_fill(k, 1.0) | a | k | once
a.masked_select(k) | a | ak | once
a.take(i) | a | ai | once
a[l] | a | l | once
a.take_along_dim(i, 0) | a | a | once
T.cat([a, b]) | ab | - | again
"""


def inputs(wanted):
    """Fresh inputs by name; those that are wanted are not leaves, so that they may be written over."""
    made = {
        "a": T.tensor([[0.5, -1.0, 2.0], [1.5, -0.25, 0.75]]),
        "b": T.tensor([[1.25, 0.5, -0.75], [-2.0, 1.0, 0.25]]),
        "p": T.tensor([[0.5, 1.0, 2.0], [1.5, 0.25, 0.75]]),
        "u": T.tensor([[0.5, -0.5, 0.1], [0.2, -0.25, 0.75]]),
        "s": T.tensor([[1.0, 2.0, 0.5], [0.5, 1.5, 1.0], [2.0, 1.0, 0.5]]),
        "i": T.tensor([[0, 1, 1], [1, 0, 0]]),
        "l": T.tensor([0, 1]),
        "k": T.tensor([[True, False, True], [False, True, True]]),
    }
    return made | {name: made[name].requires_grad_() * 1 for name in wanted}


def result(call, values):
    out = eval(call, {"T": T, "F": F} | values)
    return out if isinstance(out, T.Tensor) else out[0]


def run(y, values, wanted, keep=True):
    """The first words of the error, if any."""
    try:
        T.autograd.grad(y, [values[name] for name in wanted], T.ones_like(y), allow_unused=True, retain_graph=keep)
    except RuntimeError as error:
        return "written" if "modified by an inplace operation" in str(error) else str(error)[:32]
    return None


def observe(call, wanted):
    noticed = []
    for name in [*inputs(""), "y"]:
        values = inputs(wanted)
        y = result(call, values)
        with T.no_grad():
            (values | {"y": y})[name].mul_(True)
        # Whichever is wanted.
        errors = {run(y, values, [one]) for one in wanted}
        assert len(errors) == 1, (name, errors)
        if errors == {"written"}:
            noticed.append(name)
    values = inputs(wanted)
    y = result(call, values)
    assert run(y, values, wanted, keep=False) is None
    again = run(y, values, wanted, keep=False)
    assert again in (None, "Trying to backward through the g")
    return "".join(noticed) or "-", "once" if again else "again"


@pytest.mark.parametrize("line", CALLS.strip().splitlines())
def test_what_is_kept(line):
    call, wanted, noticed, times = (part.strip() for part in line.split("|"))
    assert observe(call, wanted) == (noticed, times)
