"""Records what PyTorch shows of random programs, and of those that once showed a difference, in programs.json.gz.

`PYTHONPATH=tests python tests/golden/make_programs.py`
"""

import golden_file
import torch
from programs.__main__ import KINDS, LENGTH, generate
from programs.found import PROGRAMS
from programs.record import record


def main():
    torch.set_num_threads(1)
    programs = [record(name, program.strip().splitlines(), torch) for name, program in PROGRAMS.items()]
    for kind, count in (("random", 250), ("deep", 100)):
        for seed in range(count):
            lines = generate(seed, LENGTH, torch, KINDS[kind])
            programs.append(record(f"{kind} {seed}", lines, torch, seed % 2 == 0))
    golden_file.write("programs.json.gz", programs)


main()
