"""Compiled steps in one run: gradiron eager and compiled, PyTorch eager and compiled, and JAX, each in its own process.

`compare_compiled.py --torch-python PYTHON [--jax-python PYTHON] [--torch-compile] [--only REGEX]`. The processes take turns,
on one thread each; the table has the fastest round of each and what gradiron's compiled step is ahead by.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time
import timeit
from typing import Any

from jobs import compiled

KINDS = ("eager", "compiled", "torch", "torch.compile", "jax")
ROUND = 0.05  # seconds a round takes at least
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GRADIRON_NUM_THREADS")


def prepare(kind: str, number: int) -> Any:
    """The step, and the seconds until it was compiled."""
    if kind == "jax":
        return importlib.import_module("jobs.compiled_jax").STEPS[number]()
    module = importlib.import_module("torch" if kind.startswith("torch") else "gradiron")
    if kind.startswith("torch"):
        module.set_num_threads(1)
    run = list(compiled.STEPS.values())[number](module)["run"]
    return module.compile(run) if kind in ("compiled", "torch.compile") else run


def work(kind: str, number: int) -> None:
    """Prints the seconds of the first three calls, then those of a call in each round that is asked for."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    run = prepare(kind, number)
    timer, calls = timeit.Timer(run), 1
    first = timer.timeit(3)
    while timer.timeit(calls) < ROUND and calls < 1_000_000:
        calls *= 2
    print(json.dumps(first), file=replies, flush=True)
    for _line in sys.stdin:
        print(json.dumps(timer.timeit(calls) / calls), file=replies, flush=True)


class Worker:
    """One kind of one step in its process."""

    def __init__(self, kind: str, python: str, number: int) -> None:
        command = [python, __file__, "--worker", kind, "--number", str(number)]
        environment = os.environ | dict.fromkeys(THREADS, "1")
        environment["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        self.kind = kind
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def read(self) -> float:
        assert self.process.stdout
        return float(json.loads(self.process.stdout.readline()))

    def ask(self) -> float:
        assert self.process.stdin
        print("time", file=self.process.stdin, flush=True)
        return self.read()

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def measure(number: int, pythons: dict[str, str], rounds: int) -> dict[str, tuple[float, float]]:
    """The seconds of the fastest round and of the first three calls, by kind."""
    workers, first = [], {}
    for kind, python in pythons.items():  # One after the other, so that no compiler is in another's way.
        worker = Worker(kind, python, number)
        try:
            first[kind] = worker.read()
            workers.append(worker)
        except ValueError:
            print(f"{kind} failed", file=sys.stderr)
    times: dict[str, list[float]] = {worker.kind: [] for worker in workers}
    for _ in range(rounds):
        for worker in workers:
            time.sleep(0.01)
            times[worker.kind].append(worker.ask())
    for worker in workers:
        worker.close()
    return {kind: (min(found), first[kind]) for kind, found in times.items()}


def show(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e6:,.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="a Python that has gradiron")
    parser.add_argument("--torch-python", help="a Python that has torch")
    parser.add_argument("--jax-python", help="a Python that has jax")
    parser.add_argument("--torch-compile", action="store_true", help="also PyTorch's compiler, which wants one for C++")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="a regular expression for the steps' names")
    parser.add_argument("--worker", choices=KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--number", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker:
        work(chosen.worker, chosen.number)
        return
    pythons = {"eager": chosen.python, "compiled": chosen.python}
    if chosen.torch_python:
        pythons["torch"] = chosen.torch_python
        if chosen.torch_compile:
            pythons["torch.compile"] = chosen.torch_python
    if chosen.jax_python:
        pythons["jax"] = chosen.jax_python
    heads = [*(f"{kind}, us" for kind in pythons), *(f"{kind} / compiled" for kind in pythons if kind != "compiled")]
    print("| step | " + " | ".join(heads) + " | first calls, ms |\n|" + "---|" * (len(heads) + 2), flush=True)
    ahead: dict[str, list[float]] = {}
    for number, name in enumerate(compiled.STEPS):
        if not re.search(chosen.only, name):
            continue
        found = measure(number, pythons, chosen.rounds)
        fastest = {kind: seconds for kind, (seconds, _) in found.items()}
        cells = [show(fastest.get(kind)) for kind in pythons]
        for kind in pythons:
            if kind != "compiled":
                ratio = fastest[kind] / fastest["compiled"] if {kind, "compiled"} <= set(fastest) else None
                cells.append("" if ratio is None else f"{ratio:.1f}")
                ahead.setdefault(kind, []).extend([] if ratio is None else [ratio])
        cells.append(" ".join(f"{kind} {seconds * 1e3:.0f}" for kind, (_, seconds) in found.items()))
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    for kind, ratios in ahead.items():
        if ratios:
            print(f"\n{kind} / compiled: geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.2f}")


if __name__ == "__main__":
    main()
