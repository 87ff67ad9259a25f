"""Writes random.json: run under PyTorch."""

import golden_file
import random_cases
import torch

table = {}
for code in random_cases.CASES.strip().splitlines():
    sizes = random_cases.SIZES
    table[code] = {
        "digests": [random_cases.digest(random_cases.draw(code, n, 0, torch)) for n in sizes],
        "seeds": [random_cases.digest(random_cases.draw(code, 21, seed, torch)) for seed in random_cases.SEEDS],
        "shown": {str(n): random_cases.draw(code, n, 0, torch) for n in random_cases.SHOWN},
    }
golden_file.write("random.json", table)
