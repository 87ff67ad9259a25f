"""Runs random programs on gradiron and on PyTorch, and prints each difference as a short program.

`PYTHONPATH=python:tests python -m programs -n 10000`
"""

import argparse
import itertools
import math
import re
import sys
import time

from .deep import Deep
from .generate import Generator
from .known import BY_PROCESSOR, CRASHES, KNOWN
from .machine import ROUGH, Machine, difference
from .wide import Wide

KINDS = {"random": Generator, "wide": Wide, "deep": Deep}
LENGTH = 22  # lines of a program


def first_difference(lines, libraries, each=True, strict=False):
    """(line number, what differs) of the first difference that a program shows, or None."""
    expected, actual = (Machine(T) for T in libraries)
    # What was computed in float32 is no more exact in float64.
    rtol = max((rough for dtype, rough in ROUGH.items() if any(dtype[6:] in line for line in lines)), default=1e-6)
    for i, line in enumerate(lines):
        errors = [m.run(line) for m in (expected, actual)]
        found = difference({"error": errors[0]}, {"error": errors[1]}, strict=strict)
        if not found and (each or i == len(lines) - 1):
            found = difference(expected.see(), actual.see(), rtol=rtol, strict=strict)
        if found:
            return i, found
    return None


def differs(lines, libraries, each=True, strict=False):
    """The same, unless the difference is rounding."""

    def is_meant(at, found):
        return is_rounding(found, lines[: at + 1], libraries[0])

    first = first_difference(lines, libraries, each, strict)
    if first is None or is_meant(*first):
        return None
    # Where nobody looked before the end, the line that did it shows by looking after each.
    closer = None if each else first_difference(lines, libraries)
    return None if closer and is_meant(*closer) else first


VALUE = re.compile(r"\.(v\d+)(\.grad)?\.values((?:\[\d+\])*): (\S+), but (\S+)$")
NARROW = ("float32", "float16", "bfloat16"), (".float()", ".half()", ".bfloat16()")
EPSILON = dict(zip(zip(*NARROW), (2.0**-24, 2.0**-11, 2.0**-8)))


def is_rounding(found, lines, reference):
    """Whether the number that differs is one that the reference itself gets about as wrong: of what was narrower than
    float64, compared with the same in float64. Or no further off than the last bits of the largest number in sight."""
    place = VALUE.match(found)
    if not place or not any(word in line for line in lines for words in NARROW for word in words):
        return False
    name, grad, indices, theirs, ours = place.groups()
    truth = Machine(reference)
    for line in lines:
        for wide, words in zip(("float64", ".to(T.float64, copy=True)"), NARROW):
            for word in words:
                line = line.replace(word, wide)
        truth.run(line)
    try:
        seen = truth.see()[name]
        exact = (seen["grad"] if grad else seen)["values"]
        for index in re.findall(r"\d+", indices):
            exact = exact[int(index)]
        theirs, ours = abs(float(theirs) - exact), abs(float(ours) - exact)
        bits = max(EPSILON[dtype] for dtype in EPSILON if any(dtype[0] in line or dtype[1] in line for line in lines))
        facts = [fact for fact in truth.see().values() if isinstance(fact, dict)]
        largest = max((abs(v) for fact in facts for v in numbers(fact.get("values"))), default=0.0)
    except (KeyError, IndexError, TypeError, ValueError):
        return False
    return ours <= max(4 * theirs, 4 * bits * largest)


def numbers(values):
    """The finite real numbers in nested lists."""
    if isinstance(values, list):
        for value in values:
            yield from numbers(value)
    elif isinstance(values, (int, float)) and math.isfinite(values):
        yield values


def generate(seed, length, library, kind=Generator):
    machine = Machine(library)
    generator = kind(seed, machine)
    lines = []
    for _ in range(length):
        lines.append(generator.line())
        machine.run(lines[-1])
    return lines


def sort_of(found):
    """The kind of a difference: what it is about, whichever tensor it is."""
    where = found.partition(":")[0].split("[")[0]
    return where.split(".")[-1] if "error" not in where else found


def minimise(lines, libraries, each, strict):
    """The lines without which there would be no such difference."""
    first = differs(lines, libraries, each, strict)
    if first is None:
        return lines, "a difference that was there once only"
    at, found = first
    lines, want = lines[: at + 1], sort_of(found)
    changed = True
    while changed:
        changed = False
        for i in reversed(range(len(lines) - 1)):
            fewer = lines[:i] + lines[i + 1 :]
            now = differs(fewer, libraries, each, strict)
            if now and sort_of(now[1]) == want:
                lines, changed, found = fewer[: now[0] + 1], True, now[1]
                break
    return lines, found


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("-n", type=int, default=1000, help="how many programs")
    options.add_argument("--first", type=int, default=0, help="the first seed")
    options.add_argument("--strict", action="store_true", help="compare the words of errors and the names of nodes, too")
    options.add_argument("--wide", action="store_true", help="draw from more of autograd")
    options.add_argument("--deep", action="store_true", help="draw more writes through views, hooks that act, parts of graphs")
    options.add_argument("--length", type=int, default=LENGTH)
    options.add_argument("--show", type=int, default=10, help="how many differences to show")
    chosen = options.parse_args()
    import gradiron
    import torch

    torch.set_num_threads(1)
    libraries = (torch, gradiron)
    kind = "deep" if chosen.deep else "wide" if chosen.wide else "random"
    start, count, shown, met, tight = time.time(), 0, set(), 0, True
    seeds = (seed for seed in itertools.count(chosen.first) if seed not in CRASHES)
    for seed in itertools.islice(seeds, chosen.n):
        lines = generate(seed, chosen.length, torch, KINDS[kind])
        # Looking may itself renew what is seen (a view's history): half of the programs are looked at only once.
        each = seed % 2 == 0
        found = differs(lines, libraries, each, chosen.strict)
        if f"{kind} {seed}" in KNOWN and chosen.length == LENGTH:
            met += 1
            if not found and f"{kind} {seed}" not in BY_PROCESSOR:
                tight = False
                print(f"# seed {seed} is known to differ, but does not", flush=True)
        elif found:
            count += 1
            if len(shown) < chosen.show:
                short, found = minimise(lines, libraries, each, chosen.strict)
                sort = sort_of(found), re.sub(r"v\d+|[\d.-]+", "", short[-1])
                if sort not in shown:
                    shown.add(sort)
                    print(f"# seed {seed}: {found}", *short, "", sep="\n", flush=True)
    print(f"{chosen.n} programs, {count} with a difference beside {met} known, {time.time() - start:.0f} s")
    return count > 0 or not tight


if __name__ == "__main__":
    sys.exit(main())
