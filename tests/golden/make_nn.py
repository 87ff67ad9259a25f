"""Writes nn.json: run under PyTorch, `python tests/golden/make_nn.py`."""

import warnings

import golden_file
import nn_cases
import torch
import training_cases

warnings.simplefilter("ignore")


golden_file.write(
    "nn.json",
    {
        "inits": {f"{code} of {shape}": nn_cases.first_values(torch, shape, code) for shape, code in nn_cases.INITS},
        "layers": {" | ".join([code, *inputs]): nn_cases.run(torch, code, inputs) for code, *inputs in nn_cases.LAYERS},
        "errors": {code: nn_cases.complaint(torch, code) for code in nn_cases.ERRORS},
        "training": {name: training_cases.losses(torch, name) for name in training_cases.PROGRAMS},
        "signatures": dict(sorted(nn_cases.signatures(torch).items())),
    },
)
