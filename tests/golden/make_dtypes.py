"""Writes dtypes.json: PyTorch's result dtypes for every pair of operands, and its casts at the edges."""

import warnings

import golden_file
import promotion
import torch

warnings.simplefilter("ignore")
table = {
    "binary": {op: [promotion.result(op, a, b, torch) for a, b in promotion.pairs()] for op in promotion.OPS},
    "unary": {op: [promotion.unary(op, kind, torch) for kind in promotion.KINDS] for op in promotion.UNARY},
    "promote_types": [
        str(torch.promote_types(getattr(torch, a), getattr(torch, b)))[6:] for a in promotion.DTYPES for b in promotion.DTYPES
    ],
    "can_cast": [torch.can_cast(getattr(torch, a), getattr(torch, b)) for a in promotion.DTYPES for b in promotion.DTYPES],
    "casts": {f"{a} {b}": repr(promotion.cast(a, b, torch)) for a in promotion.DTYPES for b in promotion.DTYPES},
}
golden_file.write("dtypes.json", table)
