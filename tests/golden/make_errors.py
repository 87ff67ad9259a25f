"""Writes errors.json: run under PyTorch, `python tests/golden/make_errors.py`."""

import json
import pathlib

import error_cases
import torch

table = {}
for group in error_cases.CASES:
    for code in error_cases.source(group):
        kinds, message = error_cases.outcome(code, torch)
        if kinds is None:
            print("raises nothing:", code)
        else:
            table.setdefault(group, []).append([code, kinds[0], error_cases.first_sentence(message)])
lines = (f"{json.dumps(g)}: [\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]" for g, rows in table.items())
pathlib.Path(__file__).with_name("errors.json").write_text("{" + ",\n".join(lines) + "}\n")
print(sum(map(len, table.values())), "errors")
