"""What works with sparse tensors, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._creation import sparse_csc, sparse_csr
from . import _arithmetic as arithmetic
from . import _build as build
from . import _compressed as compressed
from . import _convert as convert
from . import _products as products
from . import _reductions as reductions
from . import _views as views
from ._tensor import CompressedTensor, CooTensor


def refuse(kind: type[Exception], text: str) -> Callable[..., Any]:
    def refused(*args: Any, **kwargs: Any) -> Any:
        raise kind(text)

    return refused


def truth(x: Any) -> bool:
    if x.numel() > 1:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    return bool(x.to_dense())


def item(x: Any) -> Any:
    if x.numel() != 1:
        raise RuntimeError(f"a Tensor with {x.numel()} elements cannot be converted to Scalar")
    return x.to_dense().item()


_no_storage = refuse(NotImplementedError, "Cannot access storage of SparseTensorImpl")
_no_pointer = refuse(RuntimeError, "Cannot access data pointer of Tensor that doesn't have storage")
_no_array = refuse(TypeError, "can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")
_no_shape = refuse(RuntimeError, "reshape is not implemented for sparse tensors")
_no_strides = refuse(RuntimeError, "Sparse CSR tensors do not have strides")
_no_layout = refuse(RuntimeError, "unsupported tensor layout: SparseCsr")

# What does not depend on how the places are told.
_SHARED: dict[str, Callable[..., Any]] = {
    "_values": lambda x: x._held,
    "to": convert.to,
    "cpu": lambda x, memory_format=None: convert.to(x, "cpu"),
    "cuda": convert.cuda,
    "type_as": lambda x, other: convert.to(x, other.dtype),
    "get_device": lambda x: x._held.get_device(),
    "is_pinned": lambda x, device=None: False,
    "pin_memory": lambda x, device=None: x,
    "is_inference": lambda x: x._held.is_inference(),
    "requires_grad_": convert.requires_grad_,
    "detach": lambda x: x._with(x._held.detach()),
    "detach_": convert.detach_,
    "clone": convert.clone,
    "register_hook": lambda x, hook: x._held.register_hook(lambda g: convert.hooked(x, hook, g)),
    "storage_offset": lambda x: 0,
    "__bool__": truth,
    "item": item,
    "data_ptr": _no_pointer,
    "tolist": _no_pointer,
    "apply_": _no_pointer,
    "storage": _no_storage,
    "untyped_storage": _no_storage,
    "share_memory_": _no_storage,
    **{
        name: convert.cast(kind)
        for name, kind in {
            "float": "float32",
            "double": "float64",
            "half": "float16",
            "bfloat16": "bfloat16",
            "int": "int32",
            "long": "int64",
            "short": "int16",
            "char": "int8",
            "byte": "uint8",
            "bool": "bool",
            "cfloat": "complex64",
            "cdouble": "complex128",
        }.items()
    },
}

CooTensor.functions = {
    **_SHARED,
    "indices": build.indices,
    "values": build.values,
    "_indices": lambda x: x._at,
    "new": build.new,
    "_nnz": lambda x: x._at.shape[1],
    "sparse_dim": build.sparse_dim,
    "dense_dim": build.dense_dim,
    "is_coalesced": build.is_coalesced,
    "coalesce": build.coalesce,
    "to_dense": build.to_dense,
    "to_sparse": build.from_dense,
    "to_sparse_coo": build.from_dense,
    "to_sparse_csr": compressed.to_csr,
    "to_sparse_csc": compressed.to_csc,
    **{name: compressed.only(name) for name in ("crow_indices", "col_indices", "ccol_indices", "row_indices")},
    "sparse_mask": build.sparse_mask,
    "permute": views.permute,
    "transpose": views.transpose,
    "swapaxes": views.transpose,
    "t": views.t,
    "unsqueeze": views.unsqueeze,
    "select": views.select,
    "__getitem__": views.getitem,
    "index_select": views.index_select,
    "unbind": views.unbind,
    "cat": views.cat,
    "concat": views.cat,
    "stack": views.stack,
    "add": arithmetic.add,
    "add_": arithmetic.add_in_place,
    "sub": arithmetic.sub,
    "sub_": lambda x, other, *, alpha=1: arithmetic.add_in_place(x, other, alpha=-alpha),
    "mul": arithmetic.mul,
    "multiply": arithmetic.mul,
    "mul_": arithmetic.in_place(arithmetic.mul),
    "div": arithmetic.div,
    "true_divide": arithmetic.div,
    "div_": arithmetic.in_place(arithmetic.div),
    "floor_divide": lambda x, other: arithmetic.div(x, other, rounding_mode="floor"),
    "pow": arithmetic.power,
    "sum": reductions.reduce_sum,
    "norm": reductions.norm,
    "linalg_vector_norm": lambda x, ord=2, dim=None, keepdim=False, *, dtype=None: reductions.norm(x, ord, dim),
    "any": lambda x: build.coalesce(x)._held.any(),
    "mm": products.mm,
    "matmul": products.matmul,
    "mv": products.mv,
    "addmm": products.addmm,
    "linear": products.linear,
    "type": convert.type_name,
    "copy_": convert.copy_,
    "zero_": convert.zero_,
    "resize_as_": convert.resize_as_,
    "resize_as_sparse_": convert.resize_as_,
    "is_contiguous": lambda x, memory_format=None: False,
    "contiguous": refuse(RuntimeError, "unsupported memory format option Contiguous"),
    "stride": lambda x, dim=None: (0,) * x.dim() if dim is None else 0,
    "numpy": _no_array,
    "__array__": _no_array,
    "reshape": _no_shape,
    "flatten": _no_shape,
    "einsum": _no_shape,
    "expand": refuse(RuntimeError, "expand is unsupported for Sparse tensors"),
}

CompressedTensor.functions = {
    **_SHARED,
    "crow_indices": lambda x: compressed.starts(x, sparse_csr),
    "col_indices": lambda x: compressed.across(x, sparse_csr),
    "ccol_indices": lambda x: compressed.starts(x, sparse_csc),
    "row_indices": lambda x: compressed.across(x, sparse_csc),
    "values": lambda x: x._held,
    "_nnz": lambda x: x._across.shape[0],
    "sparse_dim": lambda x: 2,
    "dense_dim": lambda x: x._held.dim() - 1,
    "indices": lambda x: build.indices(x),
    "is_coalesced": build.is_coalesced,
    "coalesce": build.coalesce,
    "to_dense": lambda x, dtype=None, *, masked_grad=None: build.to_dense(compressed.to_coo(x), dtype),
    "to_sparse": build.from_dense,
    "to_sparse_coo": compressed.to_coo,
    "to_sparse_csr": compressed.to_csr,
    "to_sparse_csc": compressed.to_csc,
    "sparse_mask": compressed.sparse_mask,
    "t": compressed.transpose,
    "transpose": compressed.transpose,
    "swapaxes": compressed.transpose,
    "select": lambda x, dim, index: compressed.to_coo(x).select(dim, index),
    "__getitem__": lambda x, index: compressed.to_coo(x)[index],
    "unbind": lambda x, dim=0: compressed.to_coo(x).unbind(dim),
    "add": compressed.add,
    "sub": _no_layout,
    "mul": compressed.mul,
    "multiply": compressed.mul,
    "mul_": compressed.mul_,
    "div": _no_layout,
    "true_divide": _no_layout,
    "pow": _no_layout,
    "exp": _no_layout,
    "fill_": compressed.fill_,
    "zero_": compressed.zero_,
    "copy_": compressed.copy_,
    "sum": compressed.reduce_sum,
    "mm": compressed.matmul,
    "matmul": compressed.matmul,
    "mv": compressed.matmul,
    "addmm": compressed.addmm,
    "addmv": compressed.addmm,
    "linear": compressed.linear,
    "stride": _no_strides,
    "is_contiguous": refuse(RuntimeError, "Sparse CSR tensors do not have is_contiguous"),
    "contiguous": refuse(RuntimeError, "Sparse CSR tensors do not have is_contiguous"),
    "as_strided": _no_strides,
    "numpy": refuse(TypeError, "can't convert SparseCsr layout tensor to numpy. Use Tensor.to_dense() first."),
    "__array__": refuse(TypeError, "can't convert SparseCsr layout tensor to numpy. Use Tensor.to_dense() first."),
    "type": refuse(RuntimeError, "Unimplemented backend SparseCsrCPU"),
}
