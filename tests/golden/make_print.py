"""Writes print.json: what PyTorch prints for a few hundred tensors. Run it under PyTorch, from any folder."""

import math
import random

import golden_file
import torch

FLOATS = ["float32", "float32", "float64", "float16", "bfloat16"]
INTS = {"int64": 63, "int32": 31, "int16": 15, "int8": 7, "uint8": 8}
ODD = [math.nan, math.inf, -math.inf, 0.0, -0.0]
EDGES = [0.5, 1e-4, 9.9995, 999.99995, 1e8, 1e-5, 123456.5, 1.0, -0.0, 99999.99999, 1e30, 3e-39]


def shape(rng):
    dims = rng.choice([0, 1, 1, 1, 2, 2, 2, 3, 3, 4])
    sizes = [rng.choice([1, 2, 3, 4, 5, 8]) for _ in range(dims)]
    if dims == 1 and rng.random() < 0.5:
        sizes = [rng.randint(6, 30)]
    if dims and rng.random() < 0.06:
        sizes[rng.randrange(dims)] = 0
    return sizes if math.prod(sizes) <= 120 else sizes[:2]


def floats(rng, count):
    kind, size = rng.random(), 10 ** rng.uniform(-10, 10)
    spread, constant = rng.uniform(0, 4), rng.choice(EDGES)

    def one():
        if kind < 0.35:
            return rng.gauss(0, 1)
        if kind < 0.55:
            return rng.gauss(0, 1) * size
        if kind < 0.7:
            return float(round(rng.gauss(0, 1) * min(size, 1e6)))
        if kind < 0.9:
            return rng.gauss(0, 1) * 10 ** (rng.gauss(0, 1) * spread)
        return constant

    values = [float(f"{one():.6g}") for _ in range(count)]
    share = rng.choice([0, 0, 0, 0.2, 0.9])
    odd = rng.choice([ODD, ODD[:1], ODD[1:2], ODD[3:]])
    return [rng.choice(odd) if rng.random() < share else value for value in values]


def values(rng, dtype, count):
    if dtype == "bool":
        return [rng.random() < 0.5 for _ in range(count)]
    if dtype in INTS:
        top = rng.choice([2, 10, 100, 2 ** INTS[dtype] - 1])
        top = min(top, 2 ** INTS[dtype] - 1)
        return [rng.randint(0 if dtype == "uint8" else -top, top) for _ in range(count)]
    return floats(rng, count)


def options(rng):
    if rng.random() < 0.6:
        return {}
    found = {}
    if rng.random() < 0.5:
        found["precision"] = rng.randint(0, 9)
    if rng.random() < 0.5:
        found["threshold"] = rng.choice([0, 5, 10, 50])
        found["edgeitems"] = rng.choice([0, 1, 2, 3])
    if rng.random() < 0.3:
        found["linewidth"] = rng.choice([20, 40, 120])
    if rng.random() < 0.3:
        found["profile"] = rng.choice(["short", "full"])
    if rng.random() < 0.3:
        found["sci_mode"] = rng.random() < 0.5
    return found


def case(rng):
    dtype = rng.choice([*FLOATS, *FLOATS, *INTS, "bool"])
    sizes = shape(rng)
    found = {"dtype": dtype, "shape": sizes, "values": values(rng, dtype, math.prod(sizes))}
    if dtype in FLOATS and rng.random() < 0.4:
        found["then"] = rng.choice(["requires_grad_", "requires_grad_", "clone", "neg", "t"])
        if found["then"] == "t" and len(sizes) != 2:
            found["then"] = "abs"
    return found | ({"options": options(rng)} if rng.random() < 0.9 else {})


def long_case(dtype, sizes):
    return {"dtype": dtype, "shape": sizes, "range": math.prod(sizes)}


def build(found):
    """The tensor that a case describes; the test builds it in the same way."""
    dtype = getattr(torch, found["dtype"])
    if "range" in found:
        return torch.arange(found["range"]).to(dtype).reshape(found["shape"])
    x = torch.tensor(found["values"], dtype=dtype).reshape(found["shape"])
    if then := found.get("then"):
        x.requires_grad_()
        x = x if then == "requires_grad_" else getattr(x, then)()
    return x


def main():
    rng = random.Random(20)
    cases = [case(rng) for _ in range(390)]
    for dtype, sizes in [("float32", [1001]), ("int64", [3000]), ("float32", [40, 40]), ("float64", [7, 200]),
                         ("bool", [1200]), ("int32", [2, 30, 30]), ("float32", [11, 11, 11]), ("float32", [4, 5, 6, 10]),
                         ("uint8", [5, 1000]), ("bfloat16", [1200])]:  # fmt: skip
        cases.append(long_case(dtype, sizes))
    for found in cases:
        torch.set_printoptions(profile="default")
        torch.set_printoptions(**found.get("options", {}))
        found["text"] = repr(build(found))
    golden_file.write("print.json", cases)


main()
