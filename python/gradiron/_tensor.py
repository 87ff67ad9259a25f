"""Methods of Tensor that are compositions of others, hung on the class when gradiron is imported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import _core
from ._core import Tensor, device, dtype
from ._tensor_str import tensor_format, tensor_str


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`to(dtype)`, `to(device)`, `to(device, dtype)`, `to(other)`; `copy=True` copies always."""
    kind, place, copy = kwargs.pop("dtype", None), kwargs.pop("device", None), kwargs.pop("copy", False)
    kwargs.pop("non_blocking", None)
    kwargs.pop("memory_format", None)
    other = kwargs.pop("other", None)
    if kwargs:
        raise TypeError(f"to() got an unexpected keyword argument '{next(iter(kwargs))}'")
    for arg in (*args, *([other] if other is not None else [])):
        if isinstance(arg, dtype):
            kind = arg
        elif isinstance(arg, Tensor):
            kind, place = arg.dtype, arg.device
        elif isinstance(arg, bool):
            continue
        elif isinstance(arg, (str, device, int)):
            place = arg
        elif arg is not None:
            raise TypeError(f"to() received an invalid combination of arguments - got ({type(arg).__name__})")
    return _core.convert(self, kind, place, copy)


def cast(kind: dtype) -> Any:
    def convert(self: Tensor, memory_format: object = None) -> Tensor:
        return _core.convert(self, kind, None, False)

    return convert


def cpu(self: Tensor, memory_format: object = None) -> Tensor:
    return _core.convert(self, None, "cpu", False)


def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: object = None) -> Tensor:
    return _core.convert(self, None, "cuda:0" if device is None else device, False)


_NAMES = {
    "float32": "FloatTensor",
    "float64": "DoubleTensor",
    "float16": "HalfTensor",
    "bfloat16": "BFloat16Tensor",
    "uint8": "ByteTensor",
    "int8": "CharTensor",
    "int16": "ShortTensor",
    "int32": "IntTensor",
    "int64": "LongTensor",
    "bool": "BoolTensor",
}


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """The type's name, or the tensor converted to another."""
    if dtype is None:
        prefix = "torch.cuda." if self.is_cuda else "torch."
        return prefix + _NAMES[str(self.dtype).removeprefix("torch.")]
    if isinstance(dtype, str):
        name = dtype.rpartition(".")[2]
        found = next((k for k, v in _NAMES.items() if v == name), None)
        if found is None:
            raise ValueError(f"invalid type: '{dtype}'")
        place = "cuda:0" if ".cuda." in dtype else "cpu"
        return _core.convert(self, getattr(_core, found), place, False)
    return _core.convert(self, getattr(dtype, "dtype", dtype), None, False)


class _Shared:
    """Shows NumPy a tensor's memory and keeps the tensor."""

    __slots__ = ("__array_interface__", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.__array_interface__ = _core.array_interface(tensor)


def numpy(self: Tensor, *, force: bool = False) -> Any:
    """The tensor as a NumPy array over the same memory."""
    if force:
        self = self.detach().cpu()
    if self.requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    import numpy as np

    return np.asarray(_Shared(self))


def array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    out = numpy(self)
    return out if dtype is None else out.astype(dtype, copy=False)


def iterate(self: Tensor) -> Iterator[Tensor]:
    if self.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


def contains(self: Tensor, element: Any) -> bool:
    if isinstance(element, (Tensor, int, float, bool)):
        return bool((element == self).any().item())
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")


def reversed_(self: Tensor) -> Tensor:
    return self if self.dim() == 0 else self.flip(0)


def deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
            "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(self) in memo:
        return memo[id(self)]  # type: ignore[no-any-return]
    copy = self.detach().clone().requires_grad_(self.requires_grad)
    if self.grad is not None:
        copy.grad = deepcopy(self.grad, memo)
    memo[id(self)] = copy
    return copy


def rebuild(data: list[Any], kind: dtype, shape: tuple[int, ...], requires_grad: bool) -> Tensor:
    return _core.make_tensor(data, kind, None, False).reshape(shape).requires_grad_(requires_grad)


def reduce(self: Tensor) -> Any:
    flat = self.detach().cpu().reshape(-1).tolist()
    return rebuild, (flat, self.dtype, tuple(self.shape), self.requires_grad and self.is_leaf)


def apply_(self: Tensor, callable: Any) -> Tensor:
    values = [callable(v) for v in self.reshape(-1).tolist()]
    self.data.copy_(_core.make_tensor(values, self.dtype, None, False).reshape(self.shape))
    return self


def install() -> None:
    methods = {
        "to": to,
        "type": type_,
        "numpy": numpy,
        "cpu": cpu,
        "cuda": cuda,
        "apply_": apply_,
        "float": cast(_core.float32),
        "double": cast(_core.float64),
        "half": cast(_core.float16),
        "bfloat16": cast(_core.bfloat16),
        "int": cast(_core.int32),
        "long": cast(_core.int64),
        "short": cast(_core.int16),
        "char": cast(_core.int8),
        "byte": cast(_core.uint8),
        "bool": cast(_core.bool),
        "__array__": array,
        "__iter__": iterate,
        "__contains__": contains,
        "__reversed__": reversed_,
        "__repr__": lambda self, *, tensor_contents=None: tensor_str(self),
        "__str__": lambda self: tensor_str(self),
        "__format__": tensor_format,
        "__deepcopy__": deepcopy,
        "__reduce_ex__": lambda self, protocol: reduce(self),
        "__array_priority__": 1000,
    }
    for name, method in methods.items():
        if callable(method) and not name.startswith("__"):
            method.__name__ = name
        setattr(Tensor, name, method)


install()
