"""Well-known programs train compiled to the same bits as they are: losses, parameters and the state of the generator."""

import functools

import pytest
from known_programs import PROGRAMS

from library import T

# nn.Transformer warns of itself.
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")


def plain(function):
    return function


def trained(name, step, model):
    """The losses of a program, what it trained, and the generator's state."""
    T.manual_seed(0)
    run, losses = PROGRAMS[name].run(step, model), []
    while True:
        try:
            loss = next(run)
        except StopIteration as end:
            made = end.value if isinstance(end.value, tuple) else (end.value,)
            break
        losses.append(loss.detach().clone() if isinstance(loss, T.Tensor) else T.tensor(loss, dtype=T.float64))
    tensors = [
        each for part in made for each in (part.state_dict().values() if isinstance(part, T.nn.Module) else [part.detach()])
    ]
    return losses, tensors, T.get_rng_state()


@functools.cache
def as_it_is(name):
    return trained(name, plain, plain)


def same(one, other):
    return (
        one.dtype == other.dtype and one.shape == other.shape and bool(((one == other) | (one != one) & (other != other)).all())
    )


def check(name, step, model):
    losses, tensors, state = as_it_is(name)
    own_losses, own_tensors, own_state = trained(name, step, model)
    assert len(losses) == len(own_losses) >= 6
    assert [number for number, pair in enumerate(zip(losses, own_losses, strict=True)) if not same(*pair)] == []
    assert len(tensors) == len(own_tensors) > 0
    assert all(map(same, tensors, own_tensors))
    assert T.equal(state, own_state)


def compiling(made):
    def compiled(function):
        made.append(T.compile(function))
        return made[-1]

    return compiled


def reasons(made):
    return "; ".join(str(each) for one in made for each in T._dynamo.explain(one).break_reasons)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_with_each_step_compiled(name):
    made, program = [], PROGRAMS[name]
    check(name, compiling(made), plain)
    if program.step is not None:
        assert program.step in reasons(made)
        return
    assert reasons(made) == ""
    for each in map(T._dynamo.explain, made):
        assert 1 <= each.graph_count <= program.captures
        assert each.replays >= 3 and each.op_count > 0


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_with_each_model_compiled(name):
    made, program = [], PROGRAMS[name]
    check(name, plain, compiling(made))
    if program.model is not None:
        assert program.model in reasons(made)
        return
    assert reasons(made) == ""
    assert all(each.replays >= 3 for each in map(T._dynamo.explain, made))
