"""Writes complex.json: values on both sides of branch cuts, dtypes, refusals and printed forms. Run it under PyTorch."""

import warnings

import complex_cases as cases
import golden_file
import torch

warnings.simplefilter("ignore")


def number(value):
    if isinstance(value, complex):
        return [repr(value.real), repr(value.imag)]
    return repr(value)


def values(result):
    return [number(v) for v in result.tolist()]


points = torch.tensor(cases.POINTS, dtype=torch.complex128)
infinite = torch.tensor(cases.INFINITE, dtype=torch.complex128)
printed = cases.printed_cases()
for case in printed:
    case["text"] = cases.printed(torch, case)
    # A conjugate prints as what it is, but torch's own is lazy: both are recorded as printed.
golden = {
    "unary": {name: values(torch.stack([getattr(torch, name)(p) for p in points]).resolve_conj()) for name in cases.UNARY},
    "beyond": {name: values(getattr(torch, name)(infinite)) for name in cases.BEYOND},
    "promotion": {op: [cases.promoted(torch, op, a, b) for a, b in cases.PAIRS] for op in cases.PROMOTING},
    "errors": {text: cases.failure(torch, text) for text in cases.ERRORS},
    "printed": printed,
}
missing = [text for text, found in golden["errors"].items() if found is None]
assert not missing, missing
golden_file.write("complex.json", golden)
