"""gradiron and PyTorch (and NumPy) side by side: `compare.py --torch-python /path/to/python [--group steps] [--only matmul]`.

One process per library, each with the Python that has it, takes turns at the same job with the same number of
threads, so that a busy machine slows all of them. Each job has processes of its own: what a large result costs depends
on the memory that earlier jobs left with malloc. The table shows the median of the rounds and the ratio of the fastest
ones; a job that misses its goal gets more rounds of both libraries in fresh processes, and is named. (For seconds, a virtual
machine's two cores can be the two threads of one core, which slows that library more which waits less for memory.) A group
that has goals gets the geometric mean of these ratios and the worst of them, and where it asks for that, the most memory
that a process took for its set-up and three calls. With `--cpu` the clock is that of the process, for a machine that others
use (all its threads count: `--threads 1`). With `--device cuda` both libraries make their tensors on the GPU, a round ends
when the GPU has done its work, and the table tells of gradiron's kernel launches.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import itertools
import json
import math
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jobs import GROUPS, JOBS, Job

Clock = Callable[[], float]
Peak = dict[str, int | dict[str, str] | None]
Result = dict[str, list[float] | str]

LIBRARIES = ("gradiron", "torch", "numpy")
EVERY = {"cpu": [name for name in GROUPS if name != "gpu"], "cuda": ["gpu", "steps"]}
MINIMUM = 0.02  # seconds a round takes at least
TRIES = 3  # pairs of processes for a job that misses its goal
PAUSE = 0.02  # seconds until the other library's threads have stopped waiting actively


# The worker: one library, jobs by number.


def arrays(names: dict[str, Any]) -> dict[str, Any]:
    """PyTorch's names with its tensors turned into arrays."""
    numpy = importlib.import_module("numpy")
    tensors = {name: value for name, value in names.items() if hasattr(value, "numel")}
    return names | {name: value.detach().numpy() for name, value in tensors.items() if name != "T"} | {"T": numpy}


def held() -> dict[str, int]:
    """Bytes of this process: `VmHWM` is the most it had, `RssAnon` what it has and `RssFile` what files are of that."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    sizes = (line.split() for line in lines if line.startswith(("VmHWM", "RssAnon", "RssFile")))
    return {name.rstrip(":"): int(size) * 1024 for name, size, _unit in sizes}


def peak(library: str, job: Job) -> int | None:
    """The most memory that the set-up and three calls took, without the library's own code; `None` off Linux."""
    module = importlib.import_module(library)
    try:
        before = held()["RssAnon"]
    except OSError:
        return None
    timeit.Timer(job.statement, globals=job.setup(module)).timeit(3)
    after = held()
    return after["VmHWM"] - after["RssFile"] - before


def seconds(module: Any, timer: timeit.Timer, calls: int, clock: Clock, device: str) -> float:
    """Of so many calls, until the device has done them."""
    if device == "cpu":
        return timer.timeit(calls)
    module.cuda.synchronize()
    start = clock()
    timer.timeit(calls)
    module.cuda.synchronize()
    return clock() - start


def prepare(library: str, job: Job, clock: Clock, device: str) -> tuple[timeit.Timer, int]:
    """A timer for the job, and how many calls make a round."""
    if library == "numpy":
        # NumPy borrows the inputs of whichever library its Python has.
        module = importlib.import_module("torch" if importlib.util.find_spec("torch") else "gradiron")
        timer = timeit.Timer(job.numpy or "pass", globals=arrays(job.setup(module)), timer=clock)
    else:
        module = importlib.import_module(library)
        timer = timeit.Timer(job.statement, globals=job.setup(module), timer=clock)
    if device != "cpu":
        # The first calls compile kernels and choose among them.
        seconds(module, timer, 3, clock, device)
    if job.slow:
        return timer, 1
    if device == "cpu":
        timer.timeit(1)
    for calls in (base * 10**power for power in range(9) for base in (1, 2, 5)):
        if seconds(module, timer, calls, clock, device) >= MINIMUM:
            return timer, calls
    return timer, calls


def launches(module: Any, timer: timeit.Timer) -> int | None:
    """Kernels that a call hands to the GPU; PyTorch does not count them."""
    if not hasattr(module.cuda, "dispatches"):
        return None
    before = module.cuda.dispatches()
    timer.timeit(1)
    return int(module.cuda.dispatches() - before)


def work(library: str, threads: int, clock: Clock, device: str) -> None:
    """Answers `open N`, `time`, `launches`, `peak N` and `version`, a line of JSON each."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # What a library prints must not get between the replies.
    module = importlib.import_module(library)
    if library == "torch":
        module.set_num_threads(threads)
    if device != "cpu":
        module.set_default_device(device)
    timer, calls = timeit.Timer("pass"), 1
    for line in sys.stdin:
        command, *rest = line.split()
        try:
            if command == "open":
                timer, calls = prepare(library, JOBS[int(rest[0])], clock, device)
                reply: Any = calls
            elif command == "peak":
                reply = peak(library, JOBS[int(rest[0])])
            elif command == "time":
                reply = seconds(module, timer, calls, clock, device) / calls
            elif command == "launches":
                reply = launches(module, timer)
            else:
                reply = getattr(module, "__version__", "?")
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(reply), file=replies, flush=True)


class Worker:
    """A library in its process."""

    def __init__(self, library: str, python: str, threads: int, options: list[str]) -> None:
        count = str(threads)
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GRADIRON_NUM_THREADS")
        self.library = library
        self.process = subprocess.Popen(
            [python, __file__, "--worker", library, "--threads", count, *options],
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
def crew(pythons: dict[str, str], threads: int, options: list[str]) -> Iterator[list[Worker]]:
    """A fresh process of each library."""
    workers = [Worker(library, python, threads, options) for library, python in pythons.items()]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.close()


# The driver: rounds in turn, then the table.


def failed(reply: Any) -> bool:
    return isinstance(reply, dict)


def compare(number: int, job: Job, workers: list[Worker], rounds: int) -> Result:
    """Seconds a call for each library, one figure a round; or why there are none."""
    result: Result = {}
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


def fastest(result: Result) -> float | None:
    """How many times as fast as PyTorch the fastest round was."""
    ours, theirs = result.get("gradiron"), result.get("torch")
    return min(theirs) / min(ours) if isinstance(ours, list) and isinstance(theirs, list) and ours and theirs else None


def misses(job: Job, result: Result) -> bool:
    """Whether the job is below its goal, or below the worst that its group allows."""
    ratio = fastest(result)
    return ratio is not None and ratio < max(job.goal or 0, GROUPS[job.group].worst or 0)


def tried(number: int, job: Job, pythons: dict[str, str], threads: int, options: list[str], rounds: int) -> tuple[Result, int]:
    """The rounds of a pair of processes, or of several while the goal is missed; and how many pairs."""
    result: Result = {}
    tries = 0
    while tries == 0 or (tries < TRIES and misses(job, result)):
        with crew(pythons, threads, options) as workers:
            for library, times in compare(number, job, workers, rounds).items():
                before = result.get(library, [])
                result[library] = before + times if isinstance(before, list) and isinstance(times, list) else times
        tries += 1
    return result, tries


def row(job: Job, result: Result, libraries: list[str]) -> list[str]:
    cells = [job.name]
    for library in libraries:
        times = result.get(library, "")
        cells.append(show(statistics.median(times)) if isinstance(times, list) and times else "error" if times else "")
    ratio = fastest(result)
    if ratio is not None:
        ours, theirs = (statistics.median(result[library]) for library in ("gradiron", "torch"))
        verdict = "" if job.goal is None else "yes" if ratio >= job.goal else "no"
        cells += [f"{ratio:.2f}", f"{theirs / ours:.2f}", f"{job.goal:g}" if job.goal else "", verdict]
    return cells


def memory(number: int, pythons: dict[str, str], threads: int) -> Peak:
    """The job's most memory with each library but NumPy."""
    pair = {library: python for library, python in pythons.items() if library != "numpy"}
    with crew(pair, threads, []) as workers:
        return {worker.library: worker.ask("peak", number) for worker in workers}


def show_peaks(peaks: list[tuple[str, Peak]]) -> None:
    if peaks:
        print("\n| most memory | gradiron | PyTorch | at most PyTorch's |\n|---|---|---|---|")
    for name, sizes in peaks:
        ours, theirs = sizes.get("gradiron"), sizes.get("torch")
        if isinstance(ours, int) and isinstance(theirs, int):
            print(f"| {name} | {ours / 1e6:.1f} MB | {theirs / 1e6:.1f} MB | {'yes' if ours <= theirs else 'no'} |")


def summary(name: str, ratios: dict[str, float]) -> list[str]:
    """What a group reached beside its goals; what it missed is said in capitals."""
    group = GROUPS[name]
    if not ratios or group.mean is None or group.worst is None:
        return []
    mean = math.exp(statistics.fmean(map(math.log, ratios.values())))
    worst = min(ratios, key=lambda job: ratios[job])
    below = [f"{job} ({ratio:.2f})" for job, ratio in sorted(ratios.items(), key=lambda item: item[1]) if ratio < group.worst]
    lines = [
        f"{name}: geometric mean {mean:.2f}, goal {group.mean:g}: {'met' if mean >= group.mean else 'MISSED'}",
        f"{name}: worst {ratios[worst]:.2f} ({worst}), goal {group.worst:g}: {'MISSED' if below else 'met'}",
    ]
    return lines + ([f"{name}: below the goal: {', '.join(below)}"] if below else [])


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
    parser.add_argument("--cpu", action="store_true", help="the time that the processor worked, not the clock's")
    parser.add_argument("--device", default="cpu", choices=EVERY, help="where the tensors are")
    parser.add_argument("--group", action="append", choices=GROUPS, help="only this group's jobs (again for more)")
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
        work(chosen.worker, chosen.threads, time.process_time if chosen.cpu else time.perf_counter, chosen.device)
        return 0
    if not chosen.torch_python or not shutil.which(chosen.torch_python):
        print(
            "PyTorch lives in a virtual environment of its own, so that gradiron's stays small:\n"
            "  python3 -m venv /somewhere && /somewhere/bin/pip install torch numpy\n"
            "  make bench TORCH_PYTHON=/somewhere/bin/python",
            file=sys.stderr,
        )
        return 2
    options = [*(["--cpu"] if chosen.cpu else []), "--device", chosen.device]
    pythons = {"gradiron": chosen.python, "torch": chosen.torch_python}
    if not chosen.no_numpy and chosen.device == "cpu":
        pythons["numpy"] = chosen.torch_python
    with crew(pythons, chosen.threads, options) as workers:
        versions = [f"{TITLES[worker.library]} {worker.ask('version')}" for worker in workers]
    print(f"{', '.join(versions)}; {chosen.threads} threads, {chosen.rounds} rounds; {processor()}\n")
    libraries = list(pythons)
    heads = ["job", *(TITLES[library] for library in libraries), "times as fast", "by medians"]
    heads += ["goal", "met"] if chosen.device == "cpu" else ["launches"]
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads), flush=True)

    everything = contextlib.ExitStack()
    shared = everything.enter_context(crew(pythons, chosen.threads, options)) if chosen.device != "cpu" else None
    record: dict[str, Result] = {}
    missed, repeated, errors, peaks = [], [], [], []
    ratios: dict[str, dict[str, float]] = {name: {} for name in GROUPS}
    for number, job in enumerate(JOBS):
        if (
            job.group not in (chosen.group or EVERY[chosen.device])
            or not re.search(chosen.only, job.name)
            or (job.slow and chosen.no_slow)
        ):
            continue
        threads = GROUPS[job.group].threads or chosen.threads
        if shared:
            # A GPU's memory is the library's own, and its drivers are slow to start. The goals are the CPU's.
            result = compare(number, job, shared, chosen.rounds)
            cells = [*row(job, result, libraries)[: 3 + len(libraries)], str(shared[0].ask("launches"))]
        else:
            result, tries = tried(number, job, pythons, threads, options, chosen.rounds)
            cells = row(job, result, libraries)
            repeated += [job.name] if tries > 1 else []
        record[job.name] = result
        print("| " + " | ".join(cells) + " |", flush=True)
        missed += [job.name] if cells[-1] == "no" else []
        errors += [f"{job.name}: {TITLES[who]}: {what}" for who, what in result.items() if isinstance(what, str)]
        ratio = fastest(result)
        if ratio is not None:
            ratios[job.group][job.name] = ratio
        if GROUPS[job.group].memory and chosen.device == "cpu":
            peaks.append((job.name, memory(number, pythons, threads)))
    everything.close()
    for name, reached in ratios.items() if chosen.device == "cpu" else []:
        for line in summary(name, reached):
            print(f"\n{line}")
    show_peaks(peaks)
    if chosen.device == "cpu":
        print(f"\nmeasured again: {', '.join(repeated) or 'none'}")
        print(f"\ngoals missed: {', '.join(missed) or 'none'}")
    for error in errors:
        print(error, file=sys.stderr)
    if chosen.json:
        Path(chosen.json).write_text(json.dumps(record), encoding="utf-8")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
