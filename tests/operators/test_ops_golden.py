"""Every operator against PyTorch's results: values, dtypes, shapes, all its forms, and gradients."""

import math
import re
import warnings

import golden_file
import op_codec
import pytest

from library import GPU_DTYPES, IS_GRADIRON, TOLERANCE, T, compare, dtype_name, gpu_flushes, gpu_is_software, subnormal

TABLE = golden_file.read("ops.json")
GIVEN, CASES = TABLE["inputs"], TABLE["cases"]
SUBNORMAL = {name for name, value in GIVEN.items() if any(map(subnormal, value["v"]))}
ON_GPU = {name for name, value in GIVEN.items() if value["t"] in GPU_DTYPES}
OTHER_DTYPES = ("float64", "float16", "bfloat16", "int32", "int16", "int8", "uint8", "double", "half")
LOOSE = {"lgamma": 10, "digamma": 10, "erfinv": 10, "gelu": 4, "pow": 4, "tan": 4, "prod": 4, "var": 4, "std": 4, "norm": 4}


def inputs(device, text):
    """Fresh copies of the inputs that `text` mentions."""
    return {name: op_codec.decode(GIVEN[name], T, device) for name in set(re.findall(r"\w+", text)) if name in GIVEN}


def function(op, where):
    if where == "nn.functional":
        return getattr(T.nn.functional, op)
    return (lambda x, *a, **k: getattr(x, op)(*a, **k)) if where == "method" else getattr(T, op)


def check(actual, expected, op, what, on_gpu=False, loose=1):
    if hasattr(actual, "is_cuda"):
        assert actual.is_cuda == on_gpu, f"{what} is on {actual.device}"
    if not isinstance(expected, dict):
        if isinstance(expected, str):
            assert math.isnan(actual) if expected == "nan" else actual == float(expected), what
        else:
            assert actual == expected and type(actual) is type(expected), f"{what}: {actual!r}, expected {expected!r}"
        return
    assert dtype_name(actual) == expected["t"], f"{what}: dtype {actual.dtype}, expected {expected['t']}"
    assert list(actual.shape) == expected["s"], f"{what}: shape {tuple(actual.shape)}, expected {expected['s']}"
    rtol, atol = TOLERANCE.get(expected["t"], (0.0, 0.0))
    factor = loose * LOOSE.get(op, 1)
    compare(
        actual.detach().cpu().reshape(-1).tolist(),
        [op_codec.plain(v) for v in expected["v"]],
        rtol * factor,
        atol * factor,
        f"{what} ",
    )


def check_all(results, expected, op, what, on_gpu):
    results = op_codec.flatten(results)
    assert len(results) == len(expected), f"{what}: {len(results)} results, expected {len(expected)}"
    for k, (actual, wanted) in enumerate(zip(results, expected)):
        check(actual, wanted, op, f"{what}, result {k}", on_gpu)


def runs_on(row, device):
    """On the GPU: the calls whose inputs and results are of the dtypes that it has, and that make no tensor themselves."""
    if device == "cpu":
        return True
    words = set(re.findall(r"\w+", row["in"]))
    if words & SUBNORMAL and gpu_flushes():
        return False
    kinds = {out["t"] for out in row.get("out", []) if isinstance(out, dict)}
    return not words & ((set(GIVEN) - ON_GPU) | {*OTHER_DTYPES, "tensor", "cpu", "zeros"}) and kinds <= set(GPU_DTYPES)


@pytest.mark.parametrize("name", CASES)
def test_operator(name, device):
    op, where = op_codec.split_name(name)
    failures = []
    for row in CASES[name]:
        if not runs_on(row, device):
            continue
        if op == "scatter" and device == "cuda" and not gpu_is_software():
            continue  # Which of several values for one place stays is left open on a GPU.
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check_row(op, where, row, device)
        except Exception as error:
            failures.append(f"{op}({row['in']}): {type(error).__name__}: {error}")
    assert not failures, f"{len(failures)} of {len(CASES[name])} cases\n" + "\n".join(failures)


def check_row(op, where, row, device):
    call, text, on_gpu = function(op, where), row["in"], device == "cuda"
    if "error" in row:
        args, kwargs = op_codec.arguments(text, inputs(device, text), T)
        with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)):
            call(*args, **kwargs)
        return
    if where or "f" in row["forms"]:
        args, kwargs = op_codec.arguments(text, inputs(device, text), T)
        check_all(call(*args, **kwargs), row["out"], op, "function", on_gpu)
    if "m" in row["forms"]:
        args, kwargs = op_codec.arguments(text, inputs(device, text), T)
        check_all(getattr(args[0], op)(*args[1:], **kwargs), row["out"], op, "method", on_gpu)
    if "o" in row["forms"]:
        args, kwargs = op_codec.arguments(text, inputs(device, text), T)
        out = [T.empty(0, dtype=getattr(T, e["t"]), device=device) for e in row["out"]]
        call(*args, **kwargs, out=out[0] if len(out) == 1 else tuple(out))
        check_all(out, row["out"], op, "out=", on_gpu)
    if "inplace" in row:
        check_in_place(op, text, row["inplace"], device)
    if "grads" in row:
        space = inputs(device, text)
        names = list(row["grads"])
        grads = op_codec.gradients(
            lambda given: (lambda a, k: call(*a, **k))(*op_codec.arguments(text, given, T)), names, space, T, device
        )
        assert grads is not None, "the result does not require grad"
        for n, g in zip(names, grads):
            wanted = row["grads"][n]
            assert (g is None) == (wanted is None), f"gradient of {n} is {g}, expected {wanted}"
            if wanted is not None:
                check(g, wanted, op, f"gradient of {n}", on_gpu, loose=4)


def check_in_place(op, text, expected, device):
    args, kwargs = op_codec.arguments(text, inputs(device, text), T)
    target = args[0]
    before = target.tolist()
    method = getattr(target, op + "_")
    if isinstance(expected, dict):
        result = method(*args[1:], **kwargs)
        assert result is target, "in place returned another tensor"
        check(target, expected, op, "in place", device == "cuda")
        return
    with pytest.raises(Exception) as caught:
        method(*args[1:], **kwargs)
    assert expected in [c.__name__ for c in type(caught.value).__mro__], f"in place raised {caught.value!r}"
    if IS_GRADIRON:
        assert repr(target.tolist()) == repr(before), "the refused write changed the tensor"
