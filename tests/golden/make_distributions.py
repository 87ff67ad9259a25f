"""Writes distributions.json.gz: what PyTorch's distributions say. Run under PyTorch."""

import gzip
import json
import pathlib
import warnings

import distribution_cases
import torch

warnings.simplefilter("ignore")
made = json.dumps(distribution_cases.all_answers(torch), separators=(",", ":"))
pathlib.Path(__file__).with_name("distributions.json.gz").write_bytes(gzip.compress(made.encode(), mtime=0))
