"""gradiron and PyTorch (and NumPy) side by side: `compare.py --torch-python /path/to/python [--only matmul]`.

One process per library, each with the Python that has it, takes turns at the same job with the same number of
threads, so that a busy machine slows all of them. Each job has processes of its own: what a large result costs depends
on the memory that earlier jobs left with malloc. The table shows the median of the rounds and the ratio of the fastest
ones.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import itertools
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jobs import JOBS, Job

LIBRARIES = ("gradiron", "torch", "numpy")
MINIMUM = 0.02  # seconds a round takes at least
PAUSE = 0.02  # seconds until the other library's threads have stopped waiting actively


# The worker: one library, jobs by number.


def arrays(names: dict[str, Any]) -> dict[str, Any]:
    """PyTorch's names with its tensors turned into arrays."""
    numpy = importlib.import_module("numpy")
    tensors = {name: value for name, value in names.items() if hasattr(value, "numel")}
    return names | {name: value.detach().numpy() for name, value in tensors.items() if name != "T"} | {"T": numpy}


def prepare(library: str, job: Job) -> tuple[timeit.Timer, int]:
    """A timer for the job, and how many calls make a round."""
    if library == "numpy":
        # NumPy borrows the inputs of whichever library its Python has.
        module = importlib.import_module("torch" if importlib.util.find_spec("torch") else "gradiron")
        timer = timeit.Timer(job.numpy or "pass", globals=arrays(job.setup(module)))
    else:
        module = importlib.import_module(library)
        timer = timeit.Timer(job.statement, globals=job.setup(module))
    if job.slow:
        return timer, 1
    timer.timeit(1)
    for calls in (base * 10**power for power in range(9) for base in (1, 2, 5)):
        if timer.timeit(calls) >= MINIMUM:
            return timer, calls
    return timer, calls


def work(library: str, threads: int) -> None:
    """Answers `open N`, `time` and `version`, a line of JSON each."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # What a library prints must not get between the replies.
    module = importlib.import_module(library)
    if library == "torch":
        module.set_num_threads(threads)
    timer, calls = timeit.Timer("pass"), 1
    for line in sys.stdin:
        command, *rest = line.split()
        try:
            if command == "open":
                timer, calls = prepare(library, JOBS[int(rest[0])])
                reply: Any = calls
            elif command == "time":
                reply = timer.timeit(calls) / calls
            else:
                reply = getattr(module, "__version__", "?")
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(reply), file=replies, flush=True)


class Worker:
    """A library in its process."""

    def __init__(self, library: str, python: str, threads: int) -> None:
        count = str(threads)
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GRADIRON_NUM_THREADS")
        self.library = library
        self.process = subprocess.Popen(
            [python, __file__, "--worker", library, "--threads", count],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | dict.fromkeys(names, count),
        )

    def ask(self, *words: object) -> Any:
        assert self.process.stdin and self.process.stdout
        try:
            print(*words, file=self.process.stdin, flush=True)
            return json.loads(self.process.stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError):
            return {"error": f"the process of {self.library} ended ({self.process.wait()})"}

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


@contextlib.contextmanager
def crew(pythons: dict[str, str], threads: int) -> Iterator[list[Worker]]:
    """A fresh process of each library."""
    workers = [Worker(library, python, threads) for library, python in pythons.items()]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.close()


# The driver: rounds in turn, then the table.


def failed(reply: Any) -> bool:
    return isinstance(reply, dict)


def compare(number: int, job: Job, workers: list[Worker], rounds: int) -> dict[str, list[float] | str]:
    """Seconds a call for each library, one figure a round; or why there are none."""
    result: dict[str, list[float] | str] = {}
    running = []
    for worker in workers:
        if worker.library == "numpy" and not job.numpy:
            continue
        reply = worker.ask("open", number)
        if failed(reply):
            result[worker.library] = reply["error"]
        else:
            running.append(worker)
            result[worker.library] = []
    order = itertools.cycle([running, running[::-1]])
    for _ in range(max(rounds // 3, 2) if job.slow else rounds):
        for worker in next(order):
            time.sleep(PAUSE)
            reply = worker.ask("time")
            times = result[worker.library]
            if failed(reply):
                result[worker.library] = reply["error"]
            elif isinstance(times, list):
                times.append(reply)
    return result


def show(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def row(job: Job, result: dict[str, list[float] | str], libraries: list[str]) -> list[str]:
    cells = [job.name]
    for library in libraries:
        times = result.get(library, "")
        cells.append(show(statistics.median(times)) if isinstance(times, list) and times else "error" if times else "")
    ours, theirs = result.get("gradiron"), result.get("torch")
    if isinstance(ours, list) and isinstance(theirs, list) and ours and theirs:
        fastest = min(theirs) / min(ours)
        verdict = "" if job.goal is None else "yes" if fastest >= job.goal else "no"
        cells += [f"{fastest:.2f}", f"{statistics.median(theirs) / statistics.median(ours):.2f}"]
        cells += [f"{job.goal:g}" if job.goal else "", verdict]
    return cells


def processor() -> str:
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        found = None
    return found.group(1) if found else platform.processor() or platform.machine()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch-python", default=os.environ.get("TORCH_PYTHON"), help="a Python that has torch")
    parser.add_argument("--python", default=sys.executable, help="a Python that has gradiron")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="a regular expression for the jobs' names")
    parser.add_argument("--no-numpy", action="store_true")
    parser.add_argument("--no-slow", action="store_true")
    parser.add_argument("--json", help="also write all figures to this file")
    parser.add_argument("--worker", choices=LIBRARIES, help=argparse.SUPPRESS)
    return parser.parse_args()


TITLES = {"gradiron": "gradiron", "torch": "PyTorch", "numpy": "NumPy"}


def main() -> int:
    chosen = arguments()
    if chosen.worker:
        work(chosen.worker, chosen.threads)
        return 0
    if not chosen.torch_python or not shutil.which(chosen.torch_python):
        print(
            "PyTorch lives in a virtual environment of its own, so that gradiron's stays small:\n"
            "  python3 -m venv /somewhere && /somewhere/bin/pip install torch numpy\n"
            "  make bench TORCH_PYTHON=/somewhere/bin/python",
            file=sys.stderr,
        )
        return 2
    pythons = {"gradiron": chosen.python, "torch": chosen.torch_python}
    if not chosen.no_numpy:
        pythons["numpy"] = chosen.torch_python
    with crew(pythons, chosen.threads) as workers:
        versions = [f"{TITLES[worker.library]} {worker.ask('version')}" for worker in workers]
    print(f"{', '.join(versions)}; {chosen.threads} threads, {chosen.rounds} rounds; {processor()}\n")
    libraries = list(pythons)
    heads = ["job", *(TITLES[library] for library in libraries), "times as fast", "by medians", "goal", "met"]
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads), flush=True)

    record, missed, errors = {}, [], []
    for number, job in enumerate(JOBS):
        if not re.search(chosen.only, job.name) or (job.slow and chosen.no_slow):
            continue
        with crew(pythons, chosen.threads) as workers:
            result = record[job.name] = compare(number, job, workers, chosen.rounds)
        cells = row(job, result, libraries)
        print("| " + " | ".join(cells) + " |", flush=True)
        missed += [job.name] if cells[-1] == "no" else []
        errors += [f"{job.name}: {TITLES[who]}: {what}" for who, what in result.items() if isinstance(what, str)]
    print(f"\ngoals missed: {', '.join(missed) or 'none'}")
    for error in errors:
        print(error, file=sys.stderr)
    if chosen.json:
        Path(chosen.json).write_text(json.dumps(record), encoding="utf-8")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
