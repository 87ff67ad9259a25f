"""How tensors and the other arguments of an operator look in JSON, both ways, for either library."""

import math

DIGITS = {"float32": 9, "float16": 6, "bfloat16": 6}


def encode(value):
    if hasattr(value, "tolist") and hasattr(value, "dtype"):
        kind = str(value.dtype).split(".")[-1]
        flat = value.detach().reshape(-1).tolist()
        return {"t": kind, "s": list(value.shape), "v": [number(v, DIGITS.get(kind, 17)) for v in flat]}
    if isinstance(value, (tuple, list)):
        return [encode(v) for v in value]
    return number(value)


def number(v, digits=17):
    """JSON has no infinities: these become text. Digits beyond the dtype's are dropped."""
    if isinstance(v, float):
        return float(f"{v:.{digits}g}") if math.isfinite(v) else repr(v)
    return v


def plain(v):
    return float(v) if isinstance(v, str) else v


def decode(value, T, device="cpu"):
    if isinstance(value, dict):
        data = [plain(v) for v in value["v"]]
        return T.tensor(data, dtype=getattr(T, value["t"]), device=device).reshape(value["s"]).clone()
    if isinstance(value, list):
        return [decode(v, T, device) for v in value]
    return plain(value)


def weights(shape, T, dtype, device="cpu"):
    """The fixed gradient that is sent backwards: no two neighbours alike, none zero."""
    n = math.prod(shape)
    return T.tensor([(k * 7 % 5 - 2) / 2 + 0.25 for k in range(n)], dtype=dtype, device=device).reshape(tuple(shape))


def arguments(text, inputs, T):
    """The positional and keyword arguments that `text` stands for."""
    return eval(f"call({text})", {"call": lambda *a, **k: (a, k), "T": T, **inputs})


def split_name(name):
    """`softplus:nn.functional` lives in nn.functional; `view:method` is a method only."""
    op, _, where = name.partition(":")
    return op, where


def flatten(result):
    """Every tensor or number of a result, in order."""
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in flatten(part)]
    return [result]


def gradients(call, names, inputs, T, device="cpu"):
    """Runs `call(inputs)` on leaves and gives the gradient of each input in `names` for the fixed weights."""
    leaves = {n: inputs[n].detach().clone().requires_grad_() for n in names}
    outputs = [r for r in flatten(call({**inputs, **leaves})) if hasattr(r, "requires_grad") and r.requires_grad]
    if not outputs:
        return None
    seeds = [weights(r.shape, T, r.dtype, device) for r in outputs]
    return T.autograd.grad(outputs, list(leaves.values()), seeds, allow_unused=True)
