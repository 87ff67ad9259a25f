"""Records what PyTorch shows of random programs, and of those that once showed a difference, in programs.json.gz.

`PYTHONPATH=tests python tests/golden/make_programs.py`
"""

import gzip
import json
import pathlib

import torch
from programs.__main__ import generate
from programs.found import PROGRAMS
from programs.record import record

HERE = pathlib.Path(__file__).parent
RANDOM = 250


def main():
    torch.set_num_threads(1)
    programs = [record(p.strip().splitlines(), torch) for p in PROGRAMS]
    programs += [record(generate(seed, 22, torch), torch, seed % 2 == 0) for seed in range(RANDOM)]
    text = json.dumps(programs, separators=(",", ":"))
    with gzip.GzipFile(HERE / "programs.json.gz", "wb", mtime=0) as file:
        file.write(text.encode())


main()
