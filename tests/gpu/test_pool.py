"""GPU memory is used again: little more is held than was needed at most, and a program in its stride asks for none."""

import pytest

from library import NO_GPU, python_ok

pytestmark = [pytest.mark.gradiron, pytest.mark.skipif(NO_GPU, reason="GRADIRON_TEST_NO_GPU is set")]

# Tensors of random sizes that live for a while.
PROGRAM = """
import random

def random_life(seed, count, size):
    draw, held = random.Random(seed), []
    for _ in range(count):
        held.append(T.empty(size(draw), dtype=T.uint8, device='cuda'))
        while len(held) > 1 + 20 * draw.random():
            held.pop(draw.randrange(len(held)))
        assert T.cuda.memory_reserved() <= 2 * T.cuda.max_memory_allocated() or T.cuda.memory_reserved() <= 16 << 20

creations = lambda: T._core._gpu.memory()['creations']
"""
SIZES = {"even": "lambda draw: draw.randint(1 << 16, 1 << 23)", "octaves": "lambda draw: int(2 ** draw.uniform(4, 23))"}


@pytest.mark.parametrize("sizes", SIZES)
def test_random_sizes(sizes):
    out = python_ok(f"{PROGRAM}\nrandom_life(1, 2000, {SIZES[sizes]})\nprint(creations())")
    assert int(out) < 150


@pytest.mark.parametrize("sizes", SIZES)
def test_what_is_repeated_makes_no_buffers(sizes):
    rounds = f"""
for seed in range(4):
    for step in range(12):
        before = creations()
        random_life(seed, 200, {SIZES[sizes]})
    print(creations() - before)
"""
    assert python_ok(PROGRAM + rounds).split() == ["0"] * 4


def test_what_is_asked_for_is_what_is_counted():
    out = python_ok(
        """
for bytes in (1 << 10, 3 << 10, 1 << 20, 5 << 20):
    T.cuda.empty_cache()
    x = T.empty(bytes, dtype=T.uint8, device='cuda')
    print(T.cuda.memory_allocated() - bytes, T.cuda.memory_reserved() - bytes)
    del x
"""
    )
    assert out.split() == ["0"] * 8


def test_an_emptied_cache_forgets_the_peak():
    out = python_ok(
        f"""{PROGRAM}
big = T.empty(100 << 20, dtype=T.uint8, device='cuda')
del big
T.cuda.empty_cache()
T.cuda.reset_peak_memory_stats()
for seed in range(4):
    random_life(seed, 1000, {SIZES["octaves"]})
print(T.cuda.memory_reserved() <= 2 * T.cuda.max_memory_allocated())
"""
    )
    assert out.split() == ["True"]
