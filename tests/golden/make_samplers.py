"""Writes samplers.json: run under PyTorch."""

import golden_file
import sampler_cases
import torch
import torch.utils.data

golden_file.write("samplers.json", sampler_cases.orders(torch, torch.utils.data))
