"""Records what PyTorch shows of random programs, and of those that once showed a difference, in programs.json.gz.

`PYTHONPATH=tests python tests/golden/make_programs.py`
"""

import pathlib

import torch
from programs.__main__ import generate
from programs.deep import Deep
from programs.found import PROGRAMS
from programs.record import pack, record

HERE = pathlib.Path(__file__).parent
RANDOM, DEEP = 250, 100


def main():
    torch.set_num_threads(1)
    programs = [record(p.strip().splitlines(), torch) for p in PROGRAMS]
    programs += [record(generate(seed, 22, torch), torch, seed % 2 == 0) for seed in range(RANDOM)]
    programs += [record(generate(seed, 22, torch, Deep), torch, seed % 2 == 0) for seed in range(DEEP)]
    (HERE / "programs.json.gz").write_bytes(pack(programs))


main()
