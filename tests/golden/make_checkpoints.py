"""Writes checkpoints.json, files that PyTorch wrote: run under PyTorch."""

import base64
import io
import zlib

import checkpoint_cases
import golden_file
import torch

files = {}
for name, case in {**checkpoint_cases.CASES, "network": checkpoint_cases.network}.items():
    file = io.BytesIO()
    torch.save(case(torch), file, _use_new_zipfile_serialization=name != "legacy")
    files[name] = base64.b85encode(zlib.compress(file.getvalue(), 9)).decode()
golden_file.write("checkpoints.json", files)
