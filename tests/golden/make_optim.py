"""Writes optim.json.gz: where PyTorch's optimizers go, what its schedules give, and states that it saved.

`PYTHONPATH=tests/golden python tests/golden/make_optim.py`
"""

import base64
import warnings

import golden_file
import torch
from optim_cases import (
    CASES,
    CLOSED,
    COMPLEX,
    LBFGS,
    MUON,
    PLATEAUS,
    SAVED,
    SCHEDULES,
    lbfgs,
    muon,
    saved,
    schedule,
    trajectory,
)


def steps():
    for name, options in CASES:
        # What grows without end shows how each library rounds norms of halves.
        half = options.get("lr") == "tensor" or options.get("foreach") or (name == "Adafactor" and options)
        for dtype in ("float32", "float64", *(() if half else ("bfloat16", "float16"))):
            yield [name, options, dtype, trajectory(torch, name, options, dtype)]
    for name, options in COMPLEX:
        for dtype in ("complex64", "complex128"):
            yield [name, options, dtype, trajectory(torch, name, options, dtype)]


def main():
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    made = {
        "steps": list(steps()),
        "schedules": {code: schedule(torch, code) for code in SCHEDULES + PLATEAUS},
        "closed": {code: schedule(torch, code, True) for code in CLOSED},
        "lbfgs": [[options, dtype, lbfgs(torch, options, dtype)] for options in LBFGS for dtype in ("float32", "float64")],
        "muon": [[options, dtype, muon(torch, options, dtype)] for options in MUON for dtype in ("float32", "float64")],
        "saved": [],
    }
    for name, options in SAVED:
        found = saved(torch, name, options)
        made["saved"].append([name, options, {**found, "file": base64.b64encode(found["file"]).decode()}])
    golden_file.write("optim.json.gz", made)


main()
