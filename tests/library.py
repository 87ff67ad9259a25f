"""The library under test, as `T`, and the few helpers that every topic needs.

gradiron's interface is PyTorch's, so PyTorch itself can take the stand: `GRADIRON_TEST_LIB=torch pytest tests`
proves the expectations before they judge gradiron.
"""

import functools
import importlib
import math
import os
import pathlib
import subprocess
import sys

os.environ.setdefault("GRADIRON_SOFTWARE_GPU", "1")
NAME = os.environ.get("GRADIRON_TEST_LIB", "gradiron")
T = importlib.import_module(NAME)
IS_GRADIRON = NAME == "gradiron"
GOLDEN = pathlib.Path(__file__).parent / "golden"
NO_GPU = os.environ.get("GRADIRON_TEST_NO_GPU") == "1"

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTS = ("int64", "int32", "int16", "int8", "uint8")
DTYPES = (*FLOATS, *INTS, "bool")
GPU_DTYPES = ("float32", "int64", "bool")
TOLERANCE = {"float64": (1e-9, 1e-10), "float32": (1.3e-5, 2e-6), "float16": (2e-3, 1e-3), "bfloat16": (1.6e-2, 1e-2)}


class Square(T.autograd.Function):
    """The square, which saves what it is given."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


def dtype(name):
    return getattr(T, name)


def dtype_name(t):
    return str(t.dtype).removeprefix("torch.")


def devices():
    """The GPU is part of gradiron's contract; PyTorch's is used where there is one."""
    if IS_GRADIRON:
        return ["cpu"] if NO_GPU else ["cpu", "cuda"]
    return ["cpu", "cuda"] if T.cuda.is_available() else ["cpu"]


@functools.cache
def gpu_is_software():
    return bool(T._core._gpu.properties()["is_software"])


@functools.cache
def gpu_flushes():
    """Whether float32 numbers below the smallest normal one count as zero on the GPU: Vulkan leaves that to the driver."""
    return (T.tensor(1e-40, device="cuda") * 2).item() == 0


def subnormal(x):
    return isinstance(x, float) and 0 < abs(x) < 2.0**-126


def near_subnormal(x):
    """A number, or its reciprocal, that has a subnormal one on the way to it."""
    return isinstance(x, float) and (0 < abs(x) < 2.0**-118 or 2.0**126 <= abs(x) < float("inf"))


def tensor(data, kind="float32", device="cpu", grad=False):
    return T.tensor(data, dtype=dtype(kind), device=device, requires_grad=grad)


def leaf(data, device="cpu", kind="float32"):
    return tensor(data, kind, device, grad=True)


def flat(t):
    return t.detach().cpu().reshape(-1).tolist()


def same_number(a, b, rtol=0.0, atol=0.0):
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        if math.isinf(a) or math.isinf(b):
            return a == b
    return a == b or abs(a - b) <= atol + rtol * abs(b)


def assert_values(actual, expected, rtol=None, atol=None):
    """`actual` is a tensor; `expected` a number, a nested list or a tensor. The shape must agree, too."""
    if hasattr(expected, "tolist"):
        assert tuple(actual.shape) == tuple(expected.shape)
        expected = expected.detach().cpu().tolist()
    loose = TOLERANCE.get(dtype_name(actual), (0.0, 0.0))
    rtol = loose[0] if rtol is None else rtol
    atol = loose[1] if atol is None else atol
    compare(actual.detach().cpu().tolist(), expected, rtol, atol, "")


def compare(actual, expected, rtol, atol, where):
    if isinstance(expected, (list, tuple)):
        assert isinstance(actual, list) and len(actual) == len(expected), f"shapes differ at {where or 'top'}"
        for i, (a, e) in enumerate(zip(actual, expected)):
            compare(a, e, rtol, atol, f"{where}[{i}]")
    else:
        assert same_number(actual, expected, rtol, atol), f"at {where or 'top'}: {actual!r}, expected {expected!r}"


def python(code, *, timeout=120, env=None):
    """Runs `code` in a fresh interpreter with `T` imported; returns the finished process."""
    script = f"import importlib, sys, gc, os, time\nT = importlib.import_module({NAME!r})\n{code}"
    full = {**os.environ, "OMP_NUM_THREADS": "2", **(env or {})}
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=timeout, env=full)


def python_ok(code, **options):
    done = python(code, **options)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
