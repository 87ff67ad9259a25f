"""Writes functional.json: run under PyTorch, `python tests/golden/make_functional.py`."""

import json
import pathlib

import functional_cases as cases
import torch

values = [[code, cases.plain(cases.evaluate(code, torch))] for code in cases.lines(cases.CALLS)]
errors = [[code, *cases.error(code, torch)] for code in cases.lines(cases.ERRORS)]
groups = (
    f"{json.dumps(name)}: [\n" + ",\n".join(map(json.dumps, rows)) + "\n]"
    for name, rows in (("values", values), ("errors", errors))
)
pathlib.Path(__file__).with_name("functional.json").write_text("{" + ",\n".join(groups) + "}\n")
