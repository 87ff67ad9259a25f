"""Programs under `gradiron-run`, for the tests of it."""

import os
import pathlib
import subprocess
import sys
import textwrap
import time
import uuid

from pool import free_port

import library

RUN = [sys.executable, "-m", f"{library.NAME}.distributed.run"]
# Before a script that asks nothing of gradiron: it starts sooner.
PLAIN = ("--no-python", sys.executable, "-u")

REDUCE = """
import os, signal, sys, time
import torch, torch.distributed as dist
dist.init_process_group()
x = torch.ones(3)
dist.all_reduce(x)
assert x.tolist() == [dist.get_world_size()] * 3
"""


class Launches:
    """Starts launchers, and knows what they have started."""

    def __init__(self, folder):
        self.folder = folder
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.mark = f"GRADIRON_TEST_LAUNCH={uuid.uuid4().hex}"
        self.started = []

    def script(self, *parts):
        path = self.folder / "train.py"
        path.write_text("".join(map(textwrap.dedent, parts)))
        return str(path)

    def start(self, *words, command=RUN, ignores=None, **environment):
        name, _, mark = self.mark.partition("=")
        own = {key: value for key, value in os.environ.items() if key not in ("OMP_NUM_THREADS", "TORCHELASTIC_ERROR_FILE")}
        own.update({"TMPDIR": str(self.temporary), name: mark, **environment})
        launcher = subprocess.Popen(
            [*command, *map(str, words)],
            env=own,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=ignores,
        )
        self.started.append(launcher)
        return launcher

    def run(self, *words, seconds=40, **options):
        """Runs a launcher to its end: its status, output and errors."""
        return finish(self.start(*words, **options), seconds)

    def nodes(self, *words, each=(), **options):
        """One launcher for each of the lists of words in `each`; a port is chosen for them."""
        meet = ["--nnodes", str(len(each)), "--master-port", str(free_port())]
        return [self.start(*meet, "--node-rank", node, *own, *words, **options) for node, own in enumerate(each)]

    def processes(self):
        found = []
        for number in filter(str.isdigit, os.listdir("/proc")):
            try:
                has_mark = self.mark.encode() in pathlib.Path(f"/proc/{number}/environ").read_bytes()
                state = pathlib.Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if has_mark and state != "Z":
                found.append(int(number))
        return found

    def wait_for_the_last(self, seconds=15):
        """The processes that are left after a while."""
        end = time.monotonic() + seconds
        while self.processes() and time.monotonic() < end:
            time.sleep(0.02)
        return self.processes()


def finish(launcher, seconds=40):
    out, err = launcher.communicate(timeout=seconds)
    return launcher.returncode, out, err


def root_cause(errors):
    """What a table says last, of the failure that was first."""
    return errors[errors.index("Root Cause (first observed failure):") :]
