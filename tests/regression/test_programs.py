"""Random programs see on gradiron what they saw on PyTorch: values, gradients, shapes, strides, versions, errors."""

import os

import golden_file
import pytest
from programs.deep import Deep
from programs.generate import Generator
from programs.machine import Machine, difference
from programs.record import apply, changes, record, replay
from programs.wide import Wide

from library import T

RECORDED = golden_file.read("programs.json.gz")
BATCH = 25
# How many more random programs to run only for crashes: 40, or as many as one has time for.
MORE = int(os.environ.get("GRADIRON_TEST_PROGRAMS", "40"))


@pytest.mark.parametrize("first", range(0, len(RECORDED), BATCH))
def test_programs_do_what_they_did_on_pytorch(first):
    found = [replay(program, T) for program in RECORDED[first : first + BATCH]]
    assert not any(found), "\n\n".join(f for f in found if f)


@pytest.mark.parametrize("kind", (Generator, Wide, Deep))
@pytest.mark.parametrize("part", range(4))
def test_programs_are_the_same_when_run_again(part, kind):
    """Whatever a program does, it ends, and twice in the same way, to the last bit; it never shows an error of ours."""
    for seed in range(10_000 + part, 10_000 + MORE, 4):
        machine = Machine(T)
        generator, lines, seen = kind(seed, machine), [], []
        for _ in range(20):
            line = generator.line()
            # What a tensor gains that way is memory that nobody wrote.
            if ".resize_" in line:
                continue
            lines.append(line)
            seen.append([machine.run(lines[-1]), machine.see()])
            assert "internal" not in str(seen[-1][0]), "\n".join(lines)
        again = Machine(T)
        for line, expected in zip(lines, seen):
            now = [again.run(line), again.see()]
            assert repr(now) == repr(expected), "\n".join(lines)


def test_a_recording_is_undone_by_its_replay():
    lines = ["v1 = T.tensor([1.0, 2.0]).requires_grad_()", "v1.sum().backward()", "del v1"]
    steps = record("two lines", lines, T)["steps"]
    seen = apply(apply({}, steps[0][1]), steps[1][1])
    assert seen["v1"]["grad"]["values"] == [1.0, 1.0] and seen["v1"]["requires_grad"] is True
    assert apply(seen, steps[2][1])["v1"] is None
    assert changes(seen, seen) == {}


def test_differences_are_found():
    assert difference({"a": [1.0, float("nan")]}, {"a": [1.0 + 1e-9, float("nan")]}) is None
    assert difference({"a": [1.0]}, {"a": [1.1]}) == ".a[0]: 1.0, but 1.1"
    assert difference({"a": 1}, {"a": 1.0}) == ".a: 1, but 1.0"
    assert difference({"e": ["ValueError", "one"]}, {"e": ["ValueError", "two"]}) is None
    assert difference({"e": ["ValueError", "one"]}, {"e": ["ValueError", "two"]}, strict=True) is not None
    assert difference({"e": ["ValueError", "one"]}, {"e": ["TypeError", "one"]}) is not None
