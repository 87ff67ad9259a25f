"""Writes bad_input.json.gz, and in bad_input_known.txt the calls of which gradiron says something else.

Run under a Python that has PyTorch and gradiron, whose rows say which operators there are.
"""

import bad_input_cases as cases
import error_cases
import golden_file
import gradiron
import torch


def raised(code, library):
    space = {"T": library}
    exec(cases.SETUP, space)
    return cases.raised(code, space)


def works(code):
    return raised(code, torch) is None


table, without, known = {}, [], []
for function, choices, kinds, inplace in cases.operators(gradiron._core.rows()):
    args = cases.good(function, choices, works)
    if args is None:
        without.append(function)
        continue
    found = []
    for code in cases.spoiled(function, args, kinds, inplace):
        error = raised(code, torch)
        if error is None or "INTERNAL ASSERT" in str(error):
            continue
        kind, sentence = type(error).__name__, error_cases.first_sentence(str(error))
        found.append([code, kind, sentence])
        if cases.difference(raised(code, gradiron), kind, sentence):
            known.append(code)
    table[function] = {"good": args, "bad": found}
golden_file.write("bad_input.json.gz", {"without": without, "operators": table})
(golden_file.HOME / "bad_input_known.txt").write_text("\n".join(known) + "\n")
print(len(table), "operators,", sum(len(one["bad"]) for one in table.values()), "errors,", len(known), "known to differ")
print("no call found of", *without)
