"""Functions that create tensors from data, and rules of dtypes.

`zeros`, `arange`, `rand` and the like are operators of the core.
"""

from __future__ import annotations

from . import _core
from ._core import Tensor, device, dtype
from ._types import Size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "as_tensor",
    "asarray",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_shapes",
    "can_cast",
    "cartesian_prod",
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "einsum",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
    "is_complex",
    "is_floating_point",
    "is_tensor",
    "layout",
    "legacy_contiguous_format",
    "memory_format",
    "preserve_format",
    "sparse_bsc",
    "sparse_bsr",
    "sparse_coo",
    "sparse_csc",
    "sparse_csr",
    "strided",
    "tensor",
    "tensordot",
]


class layout(str):
    """Type of the layouts of tensors: `torch.strided`, `torch.sparse_coo`, `torch.sparse_csr` and `torch.sparse_csc`.

    Examples:
        >>> torch.ones(2).layout
        torch.strided
    """

    def __repr__(self) -> str:
        return "torch." + str.__str__(self)

    __str__ = __repr__


class memory_format(str):
    """Type of memory formats, such as `torch.contiguous_format` and `torch.channels_last`.

    Examples:
        >>> torch.zeros(1, 2, 3, 3).contiguous(memory_format=torch.channels_last).stride()
        (18, 1, 6, 2)
    """

    def __repr__(self) -> str:
        return "torch." + str.__str__(self)

    __str__ = __repr__


class _SparseLayout(layout):
    """A layout that the core does not know: what is called with one comes here."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from .sparse._layouts import create

        return create(func, args, kwargs or {})


strided = layout("strided")
sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc = map(
    _SparseLayout, ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
)
contiguous_format = memory_format("contiguous_format")
legacy_contiguous_format = contiguous_format
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")


_NOTHING: Any = object()


def tensor(
    data: Any = _NOTHING,
    *,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Create a tensor with a copy of `data`.

    Args:
        data: number, nested sequences of numbers, NumPy array, or another library's tensor. Default: none, it is
            required
        dtype: dtype; inferred from `data` if `None`.
        device: device of the result.
        requires_grad: whether the result requires a gradient. Default: `False`
        pin_memory: accepted for compatibility. Default: `False`

    Examples:
        >>> torch.tensor([[1, 2], [3, 4]])
        tensor([[1, 2],
                [3, 4]])
    """
    if data is _NOTHING:
        raise TypeError('tensor() missing 1 required positional arguments: "data"')
    if data is ...:
        raise TypeError('tensor() missing 1 required positional arguments: "data"')
    if isinstance(data, Tensor):
        import warnings

        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
    if type(data) not in _PLAIN and _shares_by_dlpack(data):
        data = from_dlpack(data)
    return _core.make_tensor(data, dtype, device, requires_grad)


_PLAIN = frozenset((list, tuple, int, float, bool, complex))


def _shares_by_dlpack(data: Any) -> bool:
    """Tells whether `data` is another library's tensor or array."""
    return not isinstance(data, Tensor) and hasattr(type(data), "__dlpack__") and not hasattr(data, "__array_interface__")


def _dtype_argument(function: str, given: Any) -> Any:
    """A dtype, the one that a type of Python's stands for, or None."""
    found = _core.dtype_of(given)
    if found is None or isinstance(found, dtype):
        return found
    raise TypeError(f"{function}(): argument 'dtype' must be torch.dtype, not {type(given).__name__}")


def from_numpy(array: Any) -> Tensor:
    """Create a tensor that shares memory with a NumPy array.

    Args:
        array: writable array of a supported dtype.

    Examples:
        >>> import numpy
        >>> array = numpy.zeros(2)
        >>> torch.from_numpy(array).fill_(1)
        tensor([1., 1.], dtype=torch.float64)
        >>> array
        array([1., 1.])
    """
    return _core.from_numpy(array)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Create a tensor that shares memory with another library's, by the DLPack protocol.

    Args:
        ext_tensor: object with `__dlpack__`, or a DLPack capsule.
        device: device to copy to, if it is another one.
        copy: always copy (true), never copy (false), or only if needed (`None`).

    Examples:
        >>> x = torch.ones(2)
        >>> torch.from_dlpack(x).data_ptr() == x.data_ptr()
        True
    """
    from .utils.dlpack import from_dlpack

    return from_dlpack(ext_tensor, device=device, copy=copy)


def as_tensor(data: Any, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Convert data to a tensor, which shares memory with it where possible.

    Args:
        data: tensor, array, number or nested sequences of numbers.
        dtype: dtype of the result; that of `data` if `None`.
        device: device of the result.

    Examples:
        >>> x = torch.ones(2)
        >>> torch.as_tensor(x) is x
        True
    """
    dtype = _dtype_argument("as_tensor", dtype)
    if isinstance(data, Tensor):
        return data if dtype is None and device is None else data.to(device=device, dtype=dtype)
    if hasattr(type(data), "__array_interface__") and getattr(data, "shape", None) is not None:
        shared = _core.from_numpy(data)
        return shared if dtype is None and device is None else _core.convert(shared, dtype, device, False)
    if _shares_by_dlpack(data):
        return _core.convert(from_dlpack(data), dtype, device, False)
    if not isinstance(data, (list, tuple, int, float, complex)) and (vector := _share_vector(data)) is not None:
        return _core.convert(vector, dtype or _inferred_dtype(vector), device, False)
    return _core.make_tensor(data, dtype, device, False)


def _share_vector(data: Any) -> Tensor | None:
    """A tensor over the memory of a buffer of one dimension that may be written; None where `data` is none."""
    if not _has_buffer(data):
        return None
    view = memoryview(data)
    if view.ndim != 1 or not view.nbytes or view.readonly or view.format not in _VECTORS:
        return None
    return frombuffer(data, dtype=_dtype_of_buffer(view))


_VECTORS = ("B", *"bhilqfd")


def _inferred_dtype(vector: Tensor) -> dtype:
    """The dtype of a list of these numbers."""
    return _core.get_default_dtype() if vector.is_floating_point() else _core.int64


def _share_elements(obj: Any, dtype: dtype | None) -> Tensor | None:
    """A tensor over the memory of a storage or of an object with the buffer protocol; None where `obj` is neither."""
    from ._storage import UntypedStorage

    if isinstance(obj, UntypedStorage):
        return None if dtype is None else obj._as(dtype)
    if hasattr(obj, "__array_interface__") or not _has_buffer(obj):
        return None
    if dtype is None:
        dtype = _dtype_of_buffer(memoryview(obj))
    return frombuffer(obj, dtype=dtype) if memoryview(obj).nbytes else _core.empty([0], dtype=dtype)


def _has_buffer(obj: Any) -> bool:
    try:
        memoryview(obj).release()
    except TypeError:
        return False
    return True


def _dtype_of_buffer(view: memoryview) -> dtype:
    """The dtype of a buffer's elements; bytes where its format is no dtype's."""
    kind = view.format.lstrip("@=<")
    if kind in "bhilqn":
        return getattr(_core, f"int{8 * view.itemsize}")
    return {"f": _core.float32, "d": _core.float64, "e": _core.float16, "?": _core.bool}.get(kind, _core.uint8)


def asarray(
    obj: Any,
    *,
    dtype: dtype | None = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """Convert an object to a tensor, with control over copying and the graph.

    Args:
        obj: tensor, array, DLPack capsule, buffer, number or nested sequences of numbers.
        dtype: dtype of the result; inferred if `None`.
        device: device of the result.
        copy: always copy (true), never copy (false), or only if needed (`None`).
        requires_grad: whether the result requires a gradient; false detaches a tensor, `None` keeps its graph.

    Examples:
        >>> torch.asarray(bytearray([1, 2, 3]), dtype=torch.uint8)
        tensor([1, 2, 3], dtype=torch.uint8)
    """
    dtype = _dtype_argument("asarray", dtype)
    if type(obj).__name__ == "PyCapsule" or _shares_by_dlpack(obj):
        obj = from_dlpack(obj)
    shared = None if isinstance(obj, Tensor) else _share_elements(obj, dtype)
    if shared is not None:
        result = _core.convert(shared, dtype, device, bool(copy))
    else:
        if copy is False:
            _check_alias(obj, dtype, device)
        result = as_tensor(obj, dtype, device)
        if copy and (isinstance(obj, Tensor) or hasattr(obj, "__array_interface__")):
            result = result.clone()
    if requires_grad and not result.requires_grad:
        return _core.tracked(result.detach())
    if requires_grad is False and result.requires_grad:
        return result.requires_grad_(False) if result.is_leaf else result.detach()
    return result


def _check_alias(obj: Any, dtype: dtype | None, device: Any) -> None:
    """Whether `obj` can be shared as it is."""
    if not isinstance(obj, Tensor):
        if hasattr(obj, "__array_interface__"):
            if not hasattr(obj, "__setitem__"):
                raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray.")
            obj = _core.from_numpy(obj)
        else:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
    if device is not None and _core.device(device) != obj.device:
        raise ValueError(f"can't alias tensor from device '{obj.device}' to '{device}'.")
    if dtype is not None and dtype != obj.dtype:
        own, other = (t.type().split(".")[-1].removesuffix("Tensor") for t in (obj, _core.make_tensor([], dtype, None, False)))
        raise ValueError(f"can't alias tensor with dtype '{own}' into dtype '{other}'.")


class _Buffer:
    """Shows the core a buffer's memory, and keeps it."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, owner: memoryview, code: str, count: int, address: int) -> None:
        self.owner = owner
        self.__array_interface__ = {"version": 3, "typestr": code, "shape": (count,), "data": (address, owner.readonly)}


# NumPy has no type codes for these.
_SEEN_AS = {
    "bfloat16": _core.int16,
    "float8_e4m3fn": _core.uint8,
    "float8_e5m2": _core.uint8,
    "complex32": _core.int32,
}

_CODES = {
    "float32": "<f4",
    "float64": "<f8",
    "float16": "<f2",
    "complex64": "<c8",
    "complex128": "<c16",
    "int64": "<i8",
    "int32": "<i4",
    "int16": "<i2",
    "int8": "|i1",
    "uint8": "|u1",
    "uint16": "<u2",
    "uint32": "<u4",
    "uint64": "<u8",
    "bool": "|b1",
}


def frombuffer(buffer: Any, *, dtype: dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """Create a vector that shares memory with an object of Python's buffer protocol.

    Args:
        buffer: object such as `bytearray`; a read-only one is copied, with a warning.
        dtype: dtype of the elements.
        count: number of elements; all if negative. Default: `-1`
        offset: number of bytes to skip. Default: `0`
        requires_grad: whether the result requires a gradient. Default: `False`

    Examples:
        >>> torch.frombuffer(bytearray([1, 0, 2, 0]), dtype=torch.int16)
        tensor([1, 2], dtype=torch.int16)
    """
    import ctypes

    dtype = _dtype_argument("frombuffer", dtype)
    try:
        view = memoryview(buffer).cast("B")
    except TypeError as error:
        raise ValueError("object does not implement Python buffer protocol.") from error
    name = str(dtype).removeprefix("torch.")
    if name in _SEEN_AS:
        made = frombuffer(buffer, dtype=_SEEN_AS[name], count=count, offset=offset)
        return made.view(dtype).requires_grad_(requires_grad)
    if name not in _CODES:
        raise ValueError(f"frombuffer() does not share memory as {dtype}")
    size = dtype.itemsize
    if not view.nbytes or not count:
        raise ValueError(f"both buffer length ({view.nbytes}) and count ({count}) must not be 0")
    if not 0 <= offset < view.nbytes:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({view.nbytes} bytes) minus 1"
        )
    left = view.nbytes - offset
    if count < 0:
        if left % size:
            raise ValueError(
                f"buffer length ({left} bytes) after offset ({offset} bytes) must be a multiple of element size ({size})"
            )
        count = left // size
    if count * size > left:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than actual "
            f"buffer length ({view.nbytes} bytes)"
        )
    if view.readonly:
        import warnings

        warnings.warn("The given buffer is not writable, and gradiron does not support non-writable tensors.", stacklevel=2)
        view = memoryview(bytearray(view))
    address = ctypes.addressof(ctypes.c_char.from_buffer(view))
    result = _core.from_numpy(_Buffer(view, _CODES[name], count, address + offset))
    return _core.tracked(result) if requires_grad else result


def new_tensor(
    self: Tensor, data: Any, *, dtype: dtype | None = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Create a tensor with a copy of `data`, of this tensor's dtype and device unless given."""
    if isinstance(data, Tensor):
        import warnings

        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than tensor.new_tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
    dtype = _dtype_argument("new_tensor", dtype)
    place = self.device if device is None else device
    return _core.make_tensor(data, self.dtype if dtype is None else dtype, place, requires_grad)


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Contract two tensors over several dimensions.

    Args:
        a, b: tensors.
        dims: number of last dimensions of `a` and first ones of `b`, or a pair of lists of dimensions. Default: `2`
        out: tensor to write to.

    Examples:
        >>> torch.tensordot(torch.ones(2, 3, 4), torch.ones(3, 4, 5)).shape
        torch.Size([2, 5])
        >>> torch.tensordot(torch.ones(2, 3), torch.ones(2, 5), dims=([0], [0])).shape
        torch.Size([3, 5])
    """
    if isinstance(dims, Tensor):
        if dims.numel() > 1 and dims.shape[0] != 2:
            raise AssertionError(f"dims tensor must have size 2 in first dimension, got {dims.shape[0]}")
        dims = dims.tolist() if dims.numel() > 1 else int(dims.item())
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        left, right = list(range(-dims, 0)), list(range(dims))
    elif isinstance(dims, (tuple, list)):
        left, right = dims
    else:
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] containing two lists, but got "
            f"dims={dims}"
        )
    return _core.tensordot(a, b, left, right, out=out)


def atleast_1d(*tensors: Any) -> Any:
    """Return views with at least one dimension.

    Args:
        tensors: one or several tensors, or a sequence of them; several give a tuple.

    Examples:
        >>> torch.atleast_1d(torch.tensor(1))
        tensor([1])
    """
    return _each(_core.atleast_1d, tensors)


def atleast_2d(*tensors: Any) -> Any:
    """Return views with at least two dimensions, which are added in front.

    Args:
        tensors: one or several tensors, or a sequence of them; several give a tuple.

    Examples:
        >>> torch.atleast_2d(torch.ones(3)).shape
        torch.Size([1, 3])
    """
    return _each(_core.atleast_2d, tensors)


def atleast_3d(*tensors: Any) -> Any:
    """Return views with at least three dimensions.

    A vector of size `n` becomes `(1, n, 1)`, a matrix `(m, n, 1)`.

    Args:
        tensors: one or several tensors, or a sequence of them; several give a tuple.

    Examples:
        >>> torch.atleast_3d(torch.ones(3)).shape
        torch.Size([1, 3, 1])
    """
    return _each(_core.atleast_3d, tensors)


def _each(view: Any, tensors: tuple[Any, ...]) -> Any:
    if len(tensors) != 1:
        return tuple(view(t) for t in tensors)
    (only,) = tensors
    if not isinstance(only, (tuple, list)):
        return view(only)
    for at, item in enumerate(only):
        if not isinstance(item, Tensor):
            raise TypeError(f"expected Tensor as element {at} in argument 0, but got {type(item).__name__}")
    return tuple(view(t) for t in only)


def einsum(*args: Any) -> Tensor:
    """Sum products of elements along dimensions named by Einstein's summation convention.

    Call it with an equation and operands, or with operands each followed by a list of subscripts, and optionally by
    the
    list of the output. Dimensions that are missing in the output are summed.

    Args:
        args: equation such as `"ij,jk->ik"`, and the operands.

    Examples:
        >>> torch.einsum("ij,jk->ik", torch.ones(2, 3), torch.ones(3, 4)).shape
        torch.Size([2, 4])
        >>> torch.einsum("ii", torch.eye(3))
        tensor(3.)
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    if isinstance(args[0], Tensor):
        equation = ",".join(_subscripts(part) for part in args[1::2])
        if len(args) % 2:
            equation += "->" + _subscripts(args[-1])
        return _core.einsum(equation, *args[: len(args) & ~1 : 2])
    return _core.einsum(*args)


def _subscripts(numbers: Any) -> str:
    """A list of subscripts as an equation spells it: capital letters, then small ones."""
    text = ""
    for number in numbers:
        if number is Ellipsis:
            text += "..."
        elif 0 <= number < 52:
            text += chr(ord("A") + number if number < 26 else ord("a") + number - 26)
        else:
            raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    return text


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return the Cartesian product of vectors, one combination per row.

    Args:
        tensors: vectors.

    Examples:
        >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))
        tensor([[1, 3],
                [1, 4],
                [2, 3],
                [2, 4]])
    """
    if len(tensors) == 1:
        return tensors[0]
    grids = _core.meshgrid(tensors, indexing="ij")
    return _core.stack([g.reshape(-1) for g in grids], dim=1)


def broadcast_shapes(*shapes: Any) -> Size:
    """Return the shape that the given shapes broadcast to.

    Args:
        shapes: shapes, or integers for shapes of one dimension.

    Raises:
        RuntimeError: if they do not broadcast.

    Examples:
        >>> torch.broadcast_shapes((2, 1), (3,))
        torch.Size([2, 3])
    """
    result: list[int] = []
    for at, shape in enumerate(shapes):
        shape = [shape] if isinstance(shape, int) else list(shape)
        if any(n < 0 for n in shape):
            raise ValueError("Attempting to broadcast a dimension with negative length!")
        result = [1] * (len(shape) - len(result)) + result
        for i in range(-1, -1 - len(shape), -1):
            if result[i] == 1:
                result[i] = shape[i]
            elif shape[i] not in (1, result[i]):
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[i]} at {i}! Mismatching argument at index {at} had "
                    f"{tuple(shape)}; but expected shape should be broadcastable to {result}"
                )
    return Size(result)


def is_tensor(obj: Any) -> bool:
    """Return whether an object is a tensor.

    Args:
        obj: object to test.

    Examples:
        >>> torch.is_tensor(torch.ones(1)), torch.is_tensor(1.0)
        (True, False)
    """
    return isinstance(obj, Tensor)


def _need_tensor(function: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"{function}(): argument 'input' (position 1) must be Tensor, not {type(value).__name__}")


def _tensor_argument(name: str, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(value).__name__}")


def is_floating_point(input: Tensor) -> bool:
    """Return whether the dtype of a tensor is a floating point one.

    Args:
        input: tensor.

    Examples:
        >>> torch.is_floating_point(torch.ones(1))
        True
    """
    _need_tensor("is_floating_point", input)
    return _tensor_argument("is_floating_point", input).dtype.is_floating_point


def is_complex(input: Tensor) -> bool:
    """Return whether the dtype of a tensor is complex.

    Args:
        input: tensor.

    Examples:
        >>> torch.is_complex(torch.ones(1))
        False
    """
    _need_tensor("is_complex", input)
    return _tensor_argument("is_complex", input).dtype.is_complex


def can_cast(from_: dtype, to: dtype) -> bool:
    """Return whether a result of one dtype may be written to a tensor of another.

    Args:
        from_: dtype of the result.
        to: dtype of the tensor.

    Examples:
        >>> torch.can_cast(torch.int64, torch.float32), torch.can_cast(torch.float32, torch.int64)
        (True, False)
    """
    return _core.can_cast(from_, to)


class _LegacyType(type):
    """The class of `FloatTensor` and its sisters: makers of tensors that `isinstance` understands."""

    kind: dtype
    place: str

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype == cls.kind and instance.is_cpu == (cls.place == "cpu")

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        return _core.legacy_tensor(args, cls.kind, cls.place if device is None else device)


def legacy_type(name: str, place: str) -> Any:
    """`FloatTensor` or one of its sisters, for tensors on `place`."""
    kind = getattr(_core, LEGACY[name])
    doc = f"Former type of tensors of {kind} on {place}: `isinstance` works, and calls create tensors."
    module = "torch" if place == "cpu" else "torch.cuda"
    return _LegacyType(name, (), {"kind": kind, "dtype": kind, "place": place, "__doc__": doc, "__module__": module})


LEGACY = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "LongTensor": "int64",
    "IntTensor": "int32",
    "ShortTensor": "int16",
    "CharTensor": "int8",
    "ByteTensor": "uint8",
    "BoolTensor": "bool",
}
for _name in LEGACY:
    globals()[_name] = legacy_type(_name, "cpu")
    __all__.append(_name)
