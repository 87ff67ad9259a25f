"""Writes ops.json: for each operator of op_table.py its results, dtypes, shapes, forms and gradients under PyTorch."""

import random
import re
import warnings

import golden_file
import op_codec
import op_table
import torch

warnings.simplefilter("ignore")
FLOAT = ("float32", "float64")
SPECIAL = [float("nan"), float("inf"), float("-inf"), -0.0, 1e-40, 1.5, -2.5, 88.0, 3e38, 0.0]
DRAW = {
    "normal": lambda r: round(r.gauss(0, 1), 3),
    "positive": lambda r: round(r.uniform(0.2, 3), 3),
    "unit": lambda r: round(r.uniform(-0.9, 0.9), 3),
    "above_one": lambda r: round(r.uniform(1.1, 4), 3),
    "halves": lambda r: r.randint(-5, 5) / 2,
    "small": lambda r: r.randint(-9, 9),
    "nonzero": lambda r: r.choice([-7, -3, -2, -1, 1, 2, 3, 7]),
    "tiny": lambda r: r.randint(0, 4),
    "coin": lambda r: r.random() < 0.5,
    "index2": lambda r: r.randint(0, 1),
}


def inputs():
    r = random.Random(5)
    result = {}
    for line in op_table.INPUTS.strip().splitlines():
        name, kind, shape, draw = line.split()
        shape = eval(shape)
        n = torch.Size(shape).numel()
        values = SPECIAL[:n] if draw == "special" else [DRAW[draw](r) for _ in range(n)]
        result[name] = torch.tensor(values, dtype=getattr(torch, kind)).reshape(shape)
    return result


def function(op, where):
    if where == "nn.functional":
        return getattr(torch.nn.functional, op)
    return (lambda x, *a, **k: getattr(x, op)(*a, **k)) if where == "method" else getattr(torch, op)


def record(name, text, tensors):
    op, where = op_codec.split_name(name)
    call = function(op, where)
    fresh = lambda: op_codec.arguments(text, {k: v.clone() for k, v in tensors.items()}, torch)  # noqa: E731
    args, kwargs = fresh()
    try:
        results = op_codec.flatten(call(*args, **kwargs))
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        return {"in": text, "error": type(error).__name__}
    row = {"in": text, "out": [op_codec.encode(r) for r in results], "forms": ""}
    if not where:
        row["forms"] += "f"
    if torch.is_tensor(args[0]) and hasattr(torch.Tensor, op):
        try:
            same = op_codec.flatten(getattr(args[0], op)(*args[1:], **kwargs))
            if str(op_codec.encode(same)) == str(row["out"]):
                row["forms"] += "m"
        except (TypeError, RuntimeError):
            pass  # a function only, or a method with other arguments (x.where)
    if not where:
        args, kwargs = fresh()
        out = [torch.empty(0, dtype=r.dtype) if torch.is_tensor(r) else None for r in results]
        try:
            call(*args, **kwargs, out=out[0] if len(out) == 1 else tuple(out))
            row["forms"] += "o"
        except (RuntimeError, TypeError, ValueError):
            pass
    args, kwargs = fresh()
    # Written while another operand reads the same bytes, the result would depend on the order of the kernel's steps.
    place = lambda t: (t.untyped_storage().data_ptr(), t.shape)  # noqa: E731
    others = [place(a) for a in args if torch.is_tensor(a)]
    shared = any(a[0] == others[0][0] and a != others[0] for a in others)
    if torch.is_tensor(args[0]) and not shared and hasattr(torch.Tensor, op + "_") and "m" in row["forms"]:
        try:
            after = getattr(args[0], op + "_")(*args[1:], **kwargs)
            row["inplace"] = op_codec.encode(after)
        except Exception as error:
            row["inplace"] = type(error).__name__
    wanted = [
        n
        for n in tensors
        if re.search(rf"\b{n}\b", text) and str(tensors[n].dtype)[6:] in FLOAT and tensors[n].isfinite().all()
    ]
    if wanted:
        try:
            grads = op_codec.gradients(
                lambda space: (lambda a, k: call(*a, **k))(*op_codec.arguments(text, space, torch)), wanted, tensors, torch
            )
        except RuntimeError:
            grads = None
        if grads is not None:
            row["grads"] = {n: None if g is None else op_codec.encode(g) for n, g in zip(wanted, grads)}
    return row


tensors = inputs()
table, failed = {}, []
for name, text in op_table.CASES.items():
    rows = [record(name, case.strip(), tensors) for case in text.split(" | ")]
    failed += [(name, r["in"]) for r in rows if "error" in r]
    table[name] = rows
golden_file.write("ops.json", {"inputs": {name: op_codec.encode(given) for name, given in tensors.items()}, "cases": table})
print(len(table), "operators,", sum(map(len, table.values())), "cases; refused:", failed)
