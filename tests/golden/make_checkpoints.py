"""Writes checkpoints.json, files that PyTorch wrote: run under PyTorch."""

import base64
import io
import json
import pathlib
import zlib

import checkpoint_cases
import torch

files = {}
for name, case in {**checkpoint_cases.CASES, "network": checkpoint_cases.network}.items():
    file = io.BytesIO()
    torch.save(case(torch), file, _use_new_zipfile_serialization=name != "legacy")
    files[name] = base64.b85encode(zlib.compress(file.getvalue(), 9)).decode()
pathlib.Path(__file__).with_name("checkpoints.json").write_text(json.dumps(files, indent=0) + "\n")
