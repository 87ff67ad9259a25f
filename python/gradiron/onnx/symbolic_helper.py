"""Marks on functions that write operators of TorchScript, and what such functions call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._as_torch.refused import refused

__all__ = ["parse_args", "quantized_args"]


def parse_args(*arg_descriptors: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Says what a function's arguments are; it stays what it is, and nobody calls it."""
    return lambda fn: fn


def quantized_args(
    *arg_q_descriptors: bool, scale: float | None = None, zero_point: int | None = None, quantize_output: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Says which arguments of a function may be quantized; it stays what it is, and nobody calls it."""
    return lambda fn: fn


def refused_function(module: str, name: str) -> Callable[..., Any]:
    """The function of a module by a name, which refuses to be called; names of Python's own are not there."""
    if name.startswith("__"):
        raise AttributeError(f"module 'gradiron.onnx.{module}' has no attribute '{name}'")
    return refused(
        f"onnx.{module}.{name}", "there is no TorchScript to write operators of; torch.onnx.export has forms of its own"
    )


def __getattr__(name: str) -> Callable[..., Any]:
    return refused_function("symbolic_helper", name)
