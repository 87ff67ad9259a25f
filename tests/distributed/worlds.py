"""Fresh worlds: ranks that are started for one test, as programs."""

import os
import subprocess
import sys
import textwrap
import time

from pool import free_port

import library

HEAD = """
import os, sys, time, signal, datetime
import {name} as torch
import {name}.distributed as dist
torch.set_num_threads(1)
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
"""


def orphans():
    """Shared memory of ranks that no process has any more."""
    found = {name for name in os.listdir("/dev/shm") if name.startswith("mpich_shm_")}
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/maps") as maps:
                text = maps.read()
        except OSError:
            continue
        found = {name for name in found if name not in text}
    return found


def stay_after(before, seconds=20):
    """What is left since then, when all has had its time."""
    end = time.monotonic() + seconds
    while (left := orphans() - before) and time.monotonic() < end:
        time.sleep(0.1)
    return left


class World:
    """`size` processes that run one program, given in parts; RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set."""

    def __init__(self, *parts, size=2, **environment):
        program = HEAD.format(name=library.NAME) + "".join(map(textwrap.dedent, parts))
        port = str(free_port())
        self.begin = time.monotonic()
        self.ranks = []
        for rank in range(size):
            own = {
                **os.environ,
                "RANK": str(rank),
                "WORLD_SIZE": str(size),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": port,
                **environment,
            }
            command = [sys.executable, "-c", program]
            self.ranks.append(
                subprocess.Popen(
                    command, env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
                )
            )

    def read_line(self, rank):
        return self.ranks[rank].stdout.readline().strip()

    def finish(self, seconds=30):
        """The exit status, output and errors of each rank, all of which must end in time."""
        end = time.monotonic() + seconds
        ends = []
        try:
            for process in self.ranks:
                out, err = process.communicate(timeout=max(0.1, end - time.monotonic()))
                ends.append((process.returncode, out, err))
        finally:
            for process in self.ranks:
                process.kill()
                process.wait()
        return ends


def run(*parts, size=2, seconds=30, **environment):
    """Runs a program on fresh ranks, all of which must succeed; what each has printed."""
    ends = World(*parts, size=size, **environment).finish(seconds)
    assert all(code == 0 for code, _, _ in ends), "\n".join(f"exit {code}\n{out}\n{err}" for code, out, err in ends)
    return [out for _, out, _ in ends]
