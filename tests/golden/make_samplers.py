"""Writes samplers.json: run under PyTorch."""

import json
import pathlib

import sampler_cases
import torch
import torch.utils.data

found = sampler_cases.orders(torch, torch.utils.data)
lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(order, separators=(',', ':'))}" for name, order in found.items())
pathlib.Path(__file__).with_name("samplers.json").write_text(f"{{\n{lines}\n}}\n")
