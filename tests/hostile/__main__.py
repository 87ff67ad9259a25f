"""Runs hostile calls by the thousand, each batch in a process of its own under a memory cap: a death is reported with its
seed and call, and so are panics, hangs, and arguments that a refused call changed.

    PYTHONPATH=python:tests python -m hostile -n 100000            # seeds 0 to 99,999, on all cores
    PYTHONPATH=python:tests python -m hostile --seed 1234          # one call, told in full
"""

import argparse
import collections
import os
import resource
import select
import subprocess
import sys
import time


def worker(start, stop, cap, of):
    """Makes the calls of these seeds; says on standard output which one is next, and what was wrong."""
    import faulthandler

    import gradiron as T

    from .calls import CATALOGUES, Seed

    faulthandler.enable()
    T.set_num_threads(2)
    T.rand(100_000).sort()
    if cap:
        resource.setrlimit(resource.RLIMIT_AS, (cap << 20, resource.RLIM_INFINITY))
    catalogue = CATALOGUES[of]()
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for seed in range(start, stop):
        out.write(f"{seed}\n")
        calls = Seed(seed, catalogue)
        for call in calls:
            wrong = call.run()
            out.write("r\n" if call.raised else "c\n")
            if wrong:
                out.write(f"! {seed} {' '.join(wrong.split())} {' '.join(str(calls).split())[:900]}\n")
                break
        del calls
    out.write("done\n")


class Batch:
    """A worker and what is known of it."""

    def __init__(self, start, stop, args, env):
        self.next, self.stop = start, stop
        command = [sys.executable, "-m", "hostile", "--worker", str(start), str(stop), "--cap", str(args.cap), "--of", args.of]
        self.log = open(f"/tmp/hostile-{os.getpid()}-{start}.log", "w+")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, env=env, bufsize=0)
        self.rest = b""
        self.seen = time.monotonic()

    def died(self):
        self.log.flush()
        self.log.seek(0)
        text = self.log.read()[-4000:]
        self.log.close()
        os.unlink(self.log.name)
        return text


def run(args):
    env = {**os.environ, "RUST_BACKTRACE": "0", "OMP_NUM_THREADS": "2"}
    env.pop("GRADIRON_SOFTWARE_GPU", None)
    counts, begun = collections.Counter(), time.monotonic()
    todo = collections.deque(
        (at, min(at + args.batch, args.first + args.n)) for at in range(args.first, args.first + args.n, args.batch)
    )
    live = []
    trouble = []

    def tell(kind, seed, text):
        counts[kind] += 1
        trouble.append((kind, seed, text))
        print(f"{kind} {seed}: {text}", flush=True)

    while todo or live:
        while todo and len(live) < args.jobs:
            start, stop = todo.popleft()
            live.append(Batch(start, stop, args, env))
        ready, _, _ = select.select([b.process.stdout for b in live], [], [], 0.5)
        for batch in list(live):
            ended = False
            if batch.process.stdout in ready:
                data = os.read(batch.process.stdout.fileno(), 1 << 16)
                batch.seen = time.monotonic()
                *lines, batch.rest = (batch.rest + data).split(b"\n")
                for line in map(bytes.decode, lines):
                    if line.isdigit():
                        batch.next = int(line) + 1
                        counts["seeds"] += 1
                    elif line in ("r", "c"):
                        counts["calls"] += 1
                        counts["refused"] += line == "r"
                    elif line.startswith("! "):
                        _, seed, text = line.split(" ", 2)
                        tell(text.split(":")[0].split(",")[0], int(seed), text)
                ended = not data
            hangs = time.monotonic() - batch.seen > args.patience
            if hangs:
                batch.process.kill()
            if ended or hangs:
                code = batch.process.wait()
                live.remove(batch)
                text = batch.died()
                if hangs:
                    tell("hang", batch.next - 1, f"no answer for {args.patience} s")
                elif code != 0:
                    last = [line for line in text.splitlines() if line.strip()][:12]
                    tell("death", batch.next - 1, f"exit code {code}: " + " | ".join(last)[:700])
                if batch.next < batch.stop and (code != 0 or hangs):
                    todo.appendleft((batch.next, batch.stop))
    took = time.monotonic() - begun
    rate = counts["calls"] / max(took, 1e-9)
    wrong = {kind: n for kind, n in counts.items() if kind not in ("seeds", "calls", "refused")}
    print(
        f"{counts['seeds']} seeds, {counts['calls']} calls, {counts['refused']} refused, {took:.0f} s, {rate:.0f}/s; wrong: {wrong or 'none'}"
    )
    return trouble


def one(seed, of):
    """One call, told before it is made."""
    from .calls import CATALOGUES, Seed

    for call in Seed(seed, CATALOGUES[of]()):
        print(call, flush=True)
        print(call.run() or ("refused" if call.raised else "done"), flush=True)


def main():
    parser = argparse.ArgumentParser(prog="hostile", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=10_000, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--batch", type=int, default=2_000, help="seeds in a process")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--cap", type=int, default=3_000, help="MiB of address space for a process; 0: no cap")
    parser.add_argument("--patience", type=float, default=20.0, help="seconds until a seed hangs")
    parser.add_argument("--seed", type=int, help="make the calls of this seed only, and tell them")
    parser.add_argument(
        "--of", choices=["calls", "made"], default="calls", help="functions and methods, or what is made and used"
    )
    parser.add_argument("--worker", type=int, nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker(*args.worker, args.cap, args.of)
    elif args.seed is not None:
        one(args.seed, args.of)
    else:
        sys.exit(1 if run(args) else 0)


main()
