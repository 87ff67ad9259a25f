"""Writes nn_functions.json.gz: run under PyTorch, `python tests/golden/make_nn_functions.py`."""

import warnings

import golden_file
import nn_function_cases as cases
import torch

warnings.simplefilter("ignore")


def recorded(code):
    try:
        return cases.record(code, torch)
    except RuntimeError as e:
        # What PyTorch cannot differentiate twice.
        assert "not implemented" in str(e), (code, e)
        return cases.record(code, torch, second=False)


calls = [*cases.lines(cases.CALLS), *cases.RESIZES, *cases.GRIDS]
values = [[code, recorded(code)] for code in calls]
errors = [[code, cases.error(code, torch)] for code in cases.lines(cases.ERRORS)]
golden_file.write("nn_functions.json.gz", {"values": values, "errors": errors})
