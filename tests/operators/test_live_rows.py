"""Every operator's sample, captured with a living graph: gradients outside of the replay, twice, have the bits of the operator."""

import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_capture_rows import outputs, same_bits
from test_gradients import by_row

from library import T

# What a capture refuses, in words: elements that the host reads, and the kinds of graphs that a replay cannot make.
REFUSALS = re.compile(
    "reads or writes elements|keeps edges of operands|changed afterwards|is older than the call|another place in the graph"
    "|which a replay cannot make|a kernel"
)
refused, replayed = set(), set()


def gradients(results, wants):
    """The gradients of results with respect to `wants`, and those of the squares of these."""
    ends = [t for t in results if t.requires_grad]
    if not ends or not wants:
        return []
    grads = T.autograd.grad(ends, wants, [T.ones_like(t) for t in ends], create_graph=True, allow_unused=True)
    found = [g for g in grads if g is not None]
    again = [g for g in found if g.requires_grad]
    if again:
        try:
            total = sum(g.abs().square().sum() for g in again)
            found += [g for g in T.autograd.grad(total, wants, allow_unused=True) if g is not None]
        except RuntimeError as error:
            found.append(str(error).split("\n", 1)[0])
    return found


def compare(name, operands, call):
    operands = [x.detach() if isinstance(x, T.Tensor) else x for x in operands]

    def fresh(flip=False):
        made = [x.flip(list(range(x.ndim))).clone() if flip else x.clone() for x in operands]
        return [x.requires_grad_(x.is_floating_point() or x.is_complex()) for x in made]

    def outcome(results, inputs):
        return results + gradients(results, [x for x in inputs if x.requires_grad])

    inputs = fresh()
    T._core.begin_capture(True)
    try:
        results = outputs(call(*inputs))
    except BaseException:
        T._core.discard_capture()
        raise
    try:
        program = T._core.end_program(inputs, results)
    except RuntimeError as error:
        assert REFUSALS.search(str(error)), (name, error)
        refused.add(name)
        return
    for flip in (False, True):
        mine, eager = fresh(flip), fresh(flip)
        T.manual_seed(3)
        got = program.replay(tuple(mine), ())
        assert isinstance(got, list), (name, got)
        found = outcome(got, mine)
        T.manual_seed(3)
        expected = outcome(outputs(call(*eager)), eager)
        assert len(found) == len(expected), name
        for a, b in zip(found, expected):
            assert a == b if isinstance(b, str) else same_bits(a, b), (name, a, b)
        for a, b in zip(got, expected):
            assert (a.requires_grad, a.is_leaf) == (b.requires_grad, b.is_leaf), name
            assert type(a.grad_fn) is type(b.grad_fn) and a.stride() == b.stride() and a._version == b._version, name
    replayed.add(name)


@by_row
def test_gradients_outside_of_a_replay_have_the_bits_of_the_operator(name, sampler):
    @settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data):
        operands, call = sampler(data.draw)
        T.manual_seed(3)
        compare(name, operands, call)

    check()
