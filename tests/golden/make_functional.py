"""Writes functional.json: run under PyTorch, `python tests/golden/make_functional.py`."""

import functional_cases as cases
import golden_file
import torch

values = [[code, cases.plain(cases.evaluate(code, torch))] for code in cases.lines(cases.CALLS)]
errors = [[code, *cases.error(code, torch)] for code in cases.lines(cases.ERRORS)]
golden_file.write("functional.json", {"values": values, "errors": errors})
