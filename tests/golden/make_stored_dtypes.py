"""Writes stored_dtypes.json.gz: what PyTorch does with unsigned integers, floats of one byte and complex numbers of halves."""

import base64

import golden_file
import stored_dtype_cases as cases
import torch

answers = {name: {case: cases.answer(case, name, torch) for case in cases.CASES} for name in cases.DTYPES}
files = {name: base64.b64encode(cases.file(name, torch)).decode() for name in cases.DTYPES}
golden_file.write("stored_dtypes.json.gz", {"answers": answers, "files": files})
