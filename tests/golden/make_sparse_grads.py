"""Writes sparse_grads.json: PyTorch's sparse gradients of tables of vectors, and its optimizers' steps by them.

`PYTHONPATH=tests/golden python tests/golden/make_sparse_grads.py`
"""

import warnings

import golden_file
import torch
from sparse_grad_cases import all_cases, attempt


def main():
    warnings.simplefilter("ignore")
    golden_file.write("sparse_grads.json", {key: attempt(lambda: case(torch)) for key, case in all_cases()})  # noqa: B023


main()
