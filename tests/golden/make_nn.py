"""Writes nn.json: run under PyTorch, `python tests/golden/make_nn.py`."""

import json
import pathlib
import warnings

import nn_cases
import torch
import training_cases

warnings.simplefilter("ignore")


def line(value):
    return json.dumps(value, separators=(",", ":"))


inits = ",\n".join(
    f"{line(code + ' of ' + shape)}: {line(nn_cases.first_values(torch, shape, code))}" for shape, code in nn_cases.INITS
)
layers = ",\n".join(
    f"{line(' | '.join([code, *inputs]))}: {line(nn_cases.run(torch, code, inputs))}" for code, *inputs in nn_cases.LAYERS
)
signatures = ",\n".join(f"{line(k)}: {line(v)}" for k, v in sorted(nn_cases.signatures(torch).items()))
errors = ",\n".join(f"{line(code)}: {line(nn_cases.complaint(torch, code))}" for code in nn_cases.ERRORS)
training = line({name: training_cases.losses(torch, name) for name in training_cases.PROGRAMS})
path = pathlib.Path(__file__).with_name("nn.json")
path.write_text(
    f'{{"version": "{torch.__version__}",\n"inits": {{{inits}}},\n"layers": {{{layers}}},\n"errors": {{{errors}}},\n"training": {training},\n"signatures": {{{signatures}}}}}\n'
)
