"""Measures what a deployment pays: `deployment.py WHEEL [--torch PYTHON]` prints a Markdown table.

The wheel is installed into a virtual environment of its own. A function as AWS Lambda runs it answers once in a new process; a
server answers over HTTP. Times of starts are the fastest of several. `cold` means that the files of the library are not in the
system's page cache.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

MODEL = """
import {library} as torch
model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
model.load_state_dict(torch.load("model.pt", weights_only=True))
model.eval()

def answer(body):
    with torch.no_grad():
        return int(model(torch.tensor(json.loads(body))).argmax())
"""
MAKE = """
import {library} as torch
model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
torch.save(model.state_dict(), "model.pt")
"""
HANDLER = """
import json, resource
{model}
print(answer(json.dumps([0.5] * 784)), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
SERVER = """
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
{model}
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        text = str(answer(self.rfile.read(int(self.headers["Content-Length"])))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass

HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
PORT = 8765


def forget(folder: Path) -> None:
    """Asks the system to drop the files of a folder from its page cache."""
    for path in folder.rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.fdatasync(file.fileno())  # what is not yet written cannot be dropped
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def used() -> float:
    """Processor seconds of all processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


class Library:
    """One of the two, in its Python."""

    def __init__(self, name: str, python: Path, work: Path) -> None:
        self.name, self.python, self.work = name, python, work
        told = subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True, check=True
        )
        self.packages = Path(told.stdout.strip())
        self.model = MODEL.format(library=name)
        work.mkdir()
        self.run(MAKE.format(library=name))

    def run(self, program: str) -> tuple[float, float, str]:
        """Seconds from the start of a new process to its end, those of the processor, and what it printed."""
        begin, before = time.perf_counter(), used()
        done = subprocess.run([self.python, "-c", program], cwd=self.work, capture_output=True, text=True, check=True)
        return time.perf_counter() - begin, used() - before, done.stdout

    def handler(self, cold: bool, runs: int) -> tuple[float, float, int]:
        """The fewest seconds from the start of a process to its first answer, those of the processor, and its peak memory."""
        times, worked, memory = [], [], 0
        for _ in range(runs):
            if cold:
                forget(self.packages)
            passed, processor, printed = self.run(HANDLER.format(model=self.model))
            times.append(passed)
            worked.append(processor)
            memory = int(printed.split()[1]) * 1024
        return min(times), min(worked), memory

    def server(self, requests: int = 2000) -> tuple[float, float]:
        """Seconds from the start of a server to its first answer, and the median of the later ones."""
        begin = time.perf_counter()
        process = subprocess.Popen([self.python, "-c", SERVER.format(model=self.model), str(PORT)], cwd=self.work)
        body = json.dumps([0.5] * 784)
        try:
            while True:
                connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
                try:
                    connection.request("POST", "/", body)
                    break
                except ConnectionRefusedError:
                    time.sleep(0.002)
            connection.getresponse().read()
            first = time.perf_counter() - begin
            times = []
            for _ in range(requests):
                start = time.perf_counter()
                connection.request("POST", "/", body)
                connection.getresponse().read()
                times.append(time.perf_counter() - start)
            return first, statistics.median(times)
        finally:
            process.terminate()
            process.wait()


def measure(library: Library, runs: int) -> dict[str, str]:
    warm, processor, memory = library.handler(False, runs)
    cold, _, _ = library.handler(True, max(3, runs // 3))
    first, later = library.server()
    skipped = ("pip", "setuptools", "wheel", "_distutils_hack", "__pycache__")
    parts = [path for path in library.packages.iterdir() if not path.name.startswith(skipped)]
    installed = sum(size(path) if path.is_dir() else path.stat().st_size for path in parts)
    return {
        "installed, with all that it requires": f"{installed / 1e6:,.0f} MB",
        "a new process answers once": f"{warm:.2f} s",
        "its processor time": f"{processor:.2f} s",
        "a new process answers once, cold": f"{cold:.2f} s",
        "peak memory after the first answer": f"{memory / 1e6:.0f} MB",
        "a server's first answer after its start": f"{first:.2f} s",
        "a later answer (median)": f"{1e6 * later:.0f} us",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--torch", type=Path, help="a Python that has PyTorch")
    parser.add_argument("--runs", type=int, default=9)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        venv.create(work / "venv", with_pip=True)
        python = work / "venv/bin/python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", given.wheel], check=True)
        columns = {"gradiron": measure(Library("gradiron", python, work / "gradiron"), given.runs)}
        if given.torch:
            columns["PyTorch"] = measure(Library("torch", given.torch, work / "torch"), given.runs)
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {given.wheel.name}\n")
    print(f"| | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}")
    print(f"| wheel | {given.wheel.stat().st_size / 1e6:.1f} MB |{' |' * (len(columns) - 1)}")
    for row in columns["gradiron"]:
        print(f"| {row} | {' | '.join(column[row] for column in columns.values())} |")


if __name__ == "__main__":
    sys.exit(main())
