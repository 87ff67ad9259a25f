"""What functions that make tensors do where they are told a layout that is not `strided`, or take after a sparse tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from .._creation import layout as layout_type
from .._creation import sparse_coo, sparse_csc, sparse_csr, strided
from . import _build, _compressed
from ._tensor import SparseTensor

# What such functions write a new tensor with, which no sparse one can be written with.
_WRITES = {
    "rand": "uniform_",
    "randn": "normal_",
    "normal": "normal_",
    "randint": "random_.from",
    "randperm": "randperm.generator_out",
    "arange": "arange.start_out",
    "range": "range.out",
    "linspace": "linspace.out",
    "logspace": "logspace.out",
    "eye": "eye.m_out",
    "new_ones": "fill_.Scalar",
    "new_full": "fill_.Scalar",
    "new_empty_strided": "empty_strided",
    "ones_like": "fill_.Scalar",
    "full_like": "fill_.Scalar",
    "rand_like": "uniform_",
    "randn_like": "normal_",
    "randint_like": "random_.from",
}
TAKE_AFTER = frozenset(
    """zeros_like empty_like ones_like full_like rand_like randn_like randint_like new_zeros new_empty new_ones new_full
    new_empty_strided""".split()
)


def create(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """The call of a function that makes a tensor."""
    name: str = func.__name__
    rest = dict(kwargs)
    like = args[0] if name in TAKE_AFTER else None
    layout = rest.pop("layout", None) or (strided if like is None else like.layout)
    if like is not None:
        # The function is asked of a tensor without memory.
        rest["device"] = rest.get("device") or like.device
        rest["dtype"] = rest.get("dtype") or like.dtype
        args = (_core.empty(list(like.shape), device="meta"), *args[1:])
        told = {} if isinstance(layout, layout_type) else {"layout": layout}
        func(*args, **{**rest, **told, "device": "meta"})  # Refuses what the function does not take.
    if layout == strided or name == "scalar_tensor":
        # (One number is a strided tensor, whatever is asked.)
        dense: Tensor = func(*args, **rest)
        return dense
    check(name, layout)
    plain = layout == sparse_coo
    if name in ("ones", "full") and plain:
        raise RuntimeError("full(...) is not implemented for sparse layout")
    kernel = _WRITES.get(name, name)
    if like is not None and like.layout == strided and name.endswith("_like") and name != "zeros_like":
        kernel = "empty_strided"
    pinned = rest.pop("pin_memory", None)
    if pinned and kernel != "empty_strided":
        raise RuntimeError("Only dense CPU tensors can be pinned")
    if name == "ones_like" and not plain and isinstance(like, SparseTensor) and like.layout == layout:
        ones: Tensor = like._with(_core.ones_like(like._held.detach(), dtype=rest["dtype"], device=rest["device"]))
        return ones.to(rest["device"]).requires_grad_(rest.get("requires_grad", False))
    if kernel == "empty_strided" or name not in ("zeros", "empty", "new_zeros", "new_empty", "zeros_like", "empty_like"):
        raise could_not(kernel, layout)
    if rest.get("out") is not None:
        raise NotImplementedError(f"{name}(): out= is not there for sparse tensors")
    if rest.get("memory_format") is not None:
        raise RuntimeError("memory format option is only supported by strided tensors")
    wanted, device = rest.pop("requires_grad", False), rest.pop("device", None)
    shape = func(*args, **rest, device="meta")
    if not plain:
        return _compressed.empty(layout, shape.shape, shape.dtype, device).requires_grad_(wanted)
    dense_dim = like.dense_dim() if isinstance(like, SparseTensor) and name.endswith("_like") else 0
    return _build.empty(shape.shape, shape.dtype, device, dense_dim).requires_grad_(wanted)


def could_not(kernel: str, layout: Any) -> NotImplementedError:
    backend = "SparseCPU" if layout == sparse_coo else "SparseCsrCPU"
    return NotImplementedError(
        f"Could not run 'aten::{kernel}' with arguments from the '{backend}' backend. It is not there for sparse tensors: make "
        "a dense one, then use `to_sparse()`"
    )


def check(name: str, layout: Any) -> None:
    """Refuses the layouts that gradiron does not have."""
    if layout not in (sparse_coo, sparse_csr, sparse_csc):
        raise NotImplementedError(
            f"{name}: gradiron has the layouts torch.strided, torch.sparse_coo, torch.sparse_csr and torch.sparse_csc only, "
            f"not {layout}"
        )
