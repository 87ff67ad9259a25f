"""Writes distributions.json.gz: what PyTorch's distributions say. Run under PyTorch."""

import warnings

import distribution_cases
import golden_file
import torch

warnings.simplefilter("ignore")
golden_file.write("distributions.json.gz", distribution_cases.all_answers(torch))
