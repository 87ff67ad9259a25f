"""gradiron and PyTorch's gloo side by side: `compare_distributed.py --torch-python /path/to/python [--ranks 4] [--only step]`.

Each library has a world of processes of its own, with one thread each. The worlds take turns at the same job, so that a busy
machine slows both. The table shows the least and the median of the rounds, and the ratio of gloo's time to gradiron's in both.
What `DistributedDataParallel` adds is the time of a step with it, less that of the same step without it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Step = Callable[[], object]

LIBRARIES = ("gradiron", "torch")
ROUND = 0.4  # seconds a round takes about

# Name of a job: the ratio of gloo's time to gradiron's that is the goal, by the least of the rounds.
GOALS = {
    "all_reduce 4 B": 10.0,
    "all_reduce 4 MB": 1.5,
    "all_reduce 40 MB": 1.3,
    "step: MLP 784-256-10, batch 64": 2.0,
    "DDP adds: MLP 1024 x 3": 1.3,
    "DDP adds: ResNet-18's gradients": 1.5,
    "first all_reduce after the command": 5.0,
}


# The worker: one rank of one library.


def channels_of_resnet18() -> list[tuple[int, ...]]:
    """The shapes of ResNet-18's 62 parameters."""
    shapes: list[tuple[int, ...]] = [(64, 3, 7, 7), (64,), (64,)]
    width = 64
    for channels in (64, 128, 256, 512):
        for block in range(2):
            shapes += [(channels, width, 3, 3), (channels,), (channels,), (channels, channels, 3, 3), (channels,), (channels,)]
            if block == 0 and channels != width:
                shapes += [(channels, width, 1, 1), (channels,), (channels,)]
            width = channels
    return [*shapes, (1000, 512), (1000,)]


def steps_of(lib: Any, job: str) -> dict[str, Any]:
    """What is timed: one function, or one with `DistributedDataParallel` and one without, and what the former has measured."""
    nn, dist = lib.nn, lib.distributed
    wrap = importlib.import_module(f"{lib.__name__}.nn.parallel").DistributedDataParallel
    kind, _, what = job.partition(" ")
    if kind == "all_reduce":
        count = {"4 B": 1, "4 MB": 1 << 20, "40 MB": 10 << 20}[what]
        tensor = lib.zeros(count)
        return {"": lambda: dist.all_reduce(tensor)}
    if kind == "step:":
        x, y = lib.randn(64, 784), lib.randint(0, 10, (64,))
        model = wrap(nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)))
        optimizer = lib.optim.SGD(model.parameters(), 0.1)

        def step() -> None:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()

        return {"": step}

    def backward(model: Any, x: Any) -> Step:
        def run() -> None:
            model.zero_grad()
            model(x).sum().backward()

        return run

    if "MLP" in job:

        def make() -> Any:
            return nn.Sequential(*(layer for _ in range(3) for layer in (nn.Linear(1024, 1024), nn.ReLU())))

        x = lib.randn(16, 1024)
    else:

        class Parameters(nn.Module):  # type: ignore[misc, name-defined]
            """Parameters whose gradients cost little."""

            def __init__(self) -> None:
                super().__init__()
                self.all = nn.ParameterList(nn.Parameter(lib.zeros(shape)) for shape in channels_of_resnet18())

            def forward(self, x: Any) -> Any:
                total = x.sum()
                for param in self.all:
                    total = total + (param * x).sum()
                return total

        make, x = Parameters, lib.ones(1)
    model = wrap(make())
    measured = getattr(model, "_get_ddp_logging_data")  # noqa: B009
    return {"with": backward(model, x), "without": backward(make(), x), "measured": measured}


def serve(library: str, rank: int, size: int, port: int) -> None:
    """Runs the jobs that the controller asks for, on its lines; rank 0 answers."""
    lib = importlib.import_module(library)
    lib.set_num_threads(1)
    dist = lib.distributed
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    dist.all_reduce(lib.ones(1))
    steps: dict[str, Any] = {}
    measured = dict
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.exists() else []
    memory = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS")), None)
    print(json.dumps(memory), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "job" in request:
            steps = steps_of(lib, request["job"])
            measured = steps.pop("measured", dict)
            answer: Any = {}
            for name, step in steps.items():
                for _ in range(3):
                    step()
                dist.barrier()
                begin = time.perf_counter()
                step()
                once = lib.tensor([time.perf_counter() - begin])
                dist.all_reduce(once, op=dist.ReduceOp.MAX)
                answer[name] = max(1, min(2000, round(ROUND / once.item() / len(steps))))
        else:
            answer = {}
            for name, step in steps.items():
                dist.barrier()
                begin = time.perf_counter()
                for _ in range(request["calls"][name]):
                    step()
                dist.barrier()
                answer[name] = (time.perf_counter() - begin) / request["calls"][name]
                if name == "with":
                    last = measured()
                    answer["hidden"] = last["backward_compute_comm_overlap_time"] / max(1, last["backward_comm_time"])
        if rank == 0:
            print(json.dumps(answer), flush=True)
    dist.destroy_process_group()


# The controller.


class World:
    """The processes of one library."""

    def __init__(self, library: str, python: str, size: int) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}
        begin = time.perf_counter()
        self.ranks = [
            subprocess.Popen(
                [python, __file__, "--worker", library, str(rank), str(size), str(port)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
            for rank in range(size)
        ]
        self.memory = max(json.loads(self._read(rank)) or 0 for rank in range(size))
        self.start = time.perf_counter() - begin

    def _read(self, rank: int) -> str:
        stdout = self.ranks[rank].stdout
        assert stdout is not None
        while line := stdout.readline():
            if line.startswith(("{", "null")) or line.strip().isdigit():
                return line
        raise SystemExit(f"rank {rank} of {self.ranks[rank].args} has ended")

    def ask(self, **request: Any) -> Any:
        """Rank 0's answer to what all ranks are asked."""
        for process in self.ranks:
            assert process.stdin is not None
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        return json.loads(self._read(0))

    def stop(self) -> None:
        """Lets the processes end."""
        for process in self.ranks:
            assert process.stdin is not None
            process.stdin.close()
        for process in self.ranks:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()


def taken(times: dict[str, float]) -> float:
    """The time of a round: what the first function takes more than the second, where there are two."""
    return times["with"] - times["without"] if "with" in times else times[""]


def report(job: str, times: dict[str, list[float]], unit: float = 1e3, name: str = "ms") -> None:
    """One line of the table."""
    ours, theirs = times["gradiron"], times["torch"]
    least, median = min(theirs) / min(ours), statistics.median(theirs) / statistics.median(ours)
    goal = GOALS.get(job)
    verdict = "" if goal is None else f"  goal {goal:g}{'' if least >= goal else '  MISSED'}"
    columns = "  ".join(f"{min(t) * unit:9.3f} {statistics.median(t) * unit:9.3f}" for t in (ours, theirs))
    print(f"{job:36} {columns} {name:3} {least:7.2f} {median:7.2f}{verdict}", flush=True)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch-python", default=sys.executable, help="a Python that has PyTorch")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="jobs whose name contains this")
    options = parser.parse_args()
    pythons = {"gradiron": sys.executable, "torch": options.torch_python}
    head = "".join(f"{library + ' least':>12} {'median':>7}" for library in LIBRARIES)
    print(f"{options.ranks} ranks{'':30}{head}     ratio of least, medians")
    worlds = {library: World(library, pythons[library], options.ranks) for library in LIBRARIES}
    try:
        for job in GOALS:
            if options.only not in job or job.startswith("first"):
                continue
            calls = {library: world.ask(job=job) for library, world in worlds.items()}
            times: dict[str, list[float]] = {library: [] for library in LIBRARIES}
            pairs: dict[str, list[dict[str, float]]] = {library: [] for library in LIBRARIES}
            for _ in range(options.rounds):
                for library, world in worlds.items():
                    pairs[library].append(world.ask(calls=calls[library]))
                    times[library].append(taken(pairs[library][-1]))
            if "with" in pairs["gradiron"][0]:  # The least of a difference would be that of a round without its noise.
                for part in ("with", "without"):
                    report(f"  {part}", {library: [pair[part] for pair in own] for library, own in pairs.items()})
                for library, own in pairs.items():
                    without = min(pair["without"] for pair in own)
                    times[library] = [pair["with"] - without for pair in own]
                hidden = {library: statistics.median(pair["hidden"] for pair in own) for library, own in pairs.items()}
                print("  communication while the backward went on: " + ", ".join(f"{k} {v:.0%}" for k, v in hidden.items()))
            report(job, times)
    finally:
        for world in worlds.values():
            world.stop()
    if options.only in "first all_reduce after the command":
        starts: dict[str, list[float]] = {library: [] for library in LIBRARIES}
        memory: dict[str, int] = {}
        for _ in range(3):
            for library in LIBRARIES:
                world = World(library, pythons[library], options.ranks)
                starts[library].append(world.start)
                memory[library] = world.memory
                world.stop()
        report("first all_reduce after the command", starts, 1.0, "s")
        print("memory of a rank without a model: " + ", ".join(f"{name} {size >> 20} MiB" for name, size in memory.items()))


if __name__ == "__main__":
    if "--worker" in sys.argv:
        name, rank, size, port = sys.argv[sys.argv.index("--worker") + 1 :]
        serve(name, int(rank), int(size), int(port))
    else:
        main()
