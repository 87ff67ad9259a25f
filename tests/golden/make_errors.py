"""Writes errors.json: run under PyTorch, `python tests/golden/make_errors.py`."""

import error_cases
import golden_file
import torch

table = {}
for group in error_cases.CASES:
    for code in error_cases.source(group):
        kinds, message = error_cases.outcome(code, torch)
        if kinds is None:
            print("raises nothing:", code)
        else:
            table.setdefault(group, []).append([code, kinds[0], error_cases.first_sentence(message)])
golden_file.write("errors.json", table)
print(sum(map(len, table.values())), "errors")
