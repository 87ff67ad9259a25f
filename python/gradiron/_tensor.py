"""Methods of `Tensor` that are written in Python, installed when gradiron is imported."""

# Methods that are only forwarded have no bodies here.
# mypy: disable-error-code="empty-body"

from __future__ import annotations

import copyreg

from . import _core
from ._core import Generator, Tensor, device, dtype
from ._creation import memory_format, new_tensor, strided
from ._types import Size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

    _Function = TypeVar("_Function", bound=Callable[..., Any])

    from ._storage import UntypedStorage
    from .storage import TypedStorage


def forward_to(path: str) -> Callable[[_Function], _Function]:
    """Decorate a signature, to call the function at `path` in this package, whose module the first call loads."""

    def decorate(signature: _Function) -> _Function:
        function: Any = None

        def forward(*args: Any, **kwargs: Any) -> Any:
            nonlocal function
            if function is None:
                from importlib import import_module

                module, _, target = path.rpartition(".")
                function = getattr(import_module(f"{__package__}.{module}"), target)
            return function(*args, **kwargs)

        # What `functools.wraps` does, which importing gradiron does not load.
        for name in ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__"):
            setattr(forward, name, getattr(signature, name))
        forward.__wrapped__ = signature  # type: ignore[attr-defined]
        return forward  # type: ignore[return-value]

    return decorate


# Kinds of tensors that gradiron does not have: `is_mps` and the like are false.
KINDS = "ipu maia mkldnn mps mtia nested quantized sparse sparse_csr vulkan xla xpu".split()


# The parameters of `to`, by its first argument.
_TO = {
    "device": ("device", "dtype", "non_blocking", "copy"),
    "dtype": ("dtype", "non_blocking", "copy"),
    "tensor": ("tensor", "non_blocking", "copy"),
}


def _is_dtype(value: Any) -> bool:
    """Whether it is a dtype, or one of the types of Python's that stand for one."""
    return isinstance(_core.dtype_of(value), dtype)


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Convert to a dtype or device: `to(dtype)`, `to(device)`, `to(device, dtype)` or `to(other)`.

    Returns the tensor itself if nothing changes, unless `copy=True`.
    """
    if len(args) == 1 and not kwargs:
        (arg,) = args  # As in nearly every call.
        if isinstance(arg, dtype):
            return _core.convert(self, arg, None, False)
        if isinstance(arg, (str, device)) and not isinstance(arg, memory_format):
            return _core.convert(self, None, arg, False)
        if isinstance(arg, Tensor):
            return _core.convert(self, arg.dtype, arg.device, False)
    kind, place, copy, order = parse_to(args, kwargs)
    return _core.convert(self, kind, place, copy, order)


def parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool, Any]:
    """Return the dtype, device, copy flag and memory format that the arguments of `to` mean."""
    first = args[0] if args else kwargs.get("tensor")
    names = _TO["tensor" if isinstance(first, Tensor) else "dtype" if _is_dtype(first) else "device"]
    if len(args) > 4:
        raise TypeError(f"to() takes from 0 to 4 positional arguments but {len(args)} were given")
    given = dict(zip(names, args, strict=False))
    known = {*names, "memory_format"} - given.keys()
    given.update(kwargs)
    if len(args) > len(names) or not known.issuperset(kwargs) or not all(map(_fits_to, given, given.values())):
        raise _unlike_to(args, kwargs)
    other = given.get("tensor")
    kind, place = (given.get("dtype"), given.get("device")) if other is None else (other.dtype, other.device)
    return _core.dtype_of(kind), place, given.get("copy", False), given.get("memory_format")


def _fits_to(name: str, value: Any) -> bool:
    if name in ("non_blocking", "copy"):
        return isinstance(value, bool)
    if name == "device":
        return value is None or (isinstance(value, (str, int, device)) and not isinstance(value, (bool, memory_format)))
    if name == "memory_format":
        return value is None or isinstance(value, memory_format)
    return name == "tensor" or value is None or _is_dtype(value)


def _unlike_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    def of(value: Any) -> str:
        name = type(value).__name__
        return f"torch.{name}" if isinstance(value, (dtype, device, memory_format)) else name

    named = ", ".join(f"{name}={of(value)}" for name, value in sorted(kwargs.items()))
    given = ", ".join(map(of, args)) + (", " if args else "") * bool(named) + named + ", " * (not args)
    options = "bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None"
    firsts = ("torch.device device = None, torch.dtype dtype = None", "torch.dtype dtype", "Tensor tensor")
    expected = "".join(f"\n * ({first}, {options})" for first in firsts)
    return TypeError(f"to() received an invalid combination of arguments - got ({given}), but expected one of:{expected}\n")


def cast(kind: dtype) -> Any:
    def convert(self: Tensor, memory_format: str | None = None) -> Tensor:
        return _core.convert(self, kind, None, False, memory_format)

    convert.__doc__ = f"Convert to `{kind}`; returns the tensor itself if it has that dtype."
    return convert


def cpu(self: Tensor, memory_format: str | None = None) -> Tensor:
    """Copy to the CPU; returns the tensor itself if it is there."""
    return _core.convert(self, None, "cpu", False, memory_format)


def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: str | None = None) -> Tensor:
    """Copy to a GPU; returns the tensor itself if it is there."""
    return _core.convert(self, None, "cuda:0" if device is None else device, False, memory_format)


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Return the tensor itself: copies to the GPU go through staging memory, so pinning has no use."""
    return self


def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Return `False`, as memory is never pinned."""
    return False


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
    "complex64": "ComplexFloatTensor",
    "complex128": "ComplexDoubleTensor",
    "uint16": "UInt16Tensor",
    "uint32": "UInt32Tensor",
    "uint64": "UInt64Tensor",
    "float8_e4m3fn": "Float8_e4m3fnTensor",
    "float8_e5m2": "Float8_e5m2Tensor",
    "complex32": "ComplexHalfTensor",
}


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """Return the name of the type, such as `"torch.FloatTensor"`, or convert to another type."""
    if self.layout is not strided:
        return _of_class(self, "type", dtype, non_blocking, **kwargs)
    if dtype is None:
        prefix = "torch.cuda." if self.is_cuda else "torch.meta." if self.is_meta else "torch."
        return prefix + _NAMES[str(self.dtype).removeprefix("torch.")]
    if isinstance(dtype, str):
        module, _, name = dtype.rpartition(".")
        found = next((k for k, v in _NAMES.items() if v == name), None)
        if found is None or module not in ("torch", "torch.cuda"):
            raise ValueError(f"invalid type: '{dtype}'")
        place = "cuda:0" if ".cuda." in dtype else "cpu"
        return _core.convert(self, getattr(_core, found), place, False)
    if dtype is Tensor:
        return _core.convert(self, _core.get_default_dtype(), "cpu", False)
    kind = getattr(dtype, "dtype", dtype)
    if isinstance(kind, type):
        raise ValueError(f"invalid type: '{kind.__name__}'")
    if not isinstance(kind, _core.dtype):
        raise TypeError("dtype must be a type, str, or dtype object")
    return _core.convert(self, kind, getattr(dtype, "place", None), False)


def numpy(self: Tensor, *, force: bool = False) -> Any:
    """Return a NumPy array that shares the tensor's memory; with `force`, of a detached copy on the CPU if needed."""
    try:
        import numpy as np
    except ImportError as error:
        raise RuntimeError("Numpy is not available. Install it with: pip install gradiron[numpy]") from error
    if force:
        self = self.detach().cpu().resolve_conj().resolve_neg()
    if self.requires_grad and _core.is_grad_enabled():
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    return np.asarray(_core.shared(self))


def array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """Return the array that `numpy.asarray` asks for."""
    shared = numpy(self)
    if dtype is None or dtype == shared.dtype:
        return shared.copy() if copy else shared
    if copy is False:
        raise ValueError(f"unable to avoid a copy: {shared.dtype} becomes {dtype}")
    return shared.astype(dtype)


def iterate(self: Tensor) -> Iterator[Tensor]:
    if self.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


def contains(self: Tensor, element: Any) -> bool:
    if isinstance(element, (Tensor, int, float, complex, bool)):
        return bool((self == element).any().item())
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")


def reversed_(self: Tensor) -> Tensor:
    return self if self.dim() == 0 else self.flip(0)


@forward_to("_tensor_str.show")
def show(self: Tensor, *, tensor_contents: object = None) -> str: ...


def format_(self: Tensor, spec: str) -> str:
    """The text of `format(t, spec)`: a 0-d tensor formats as its number, so that `f"{loss:.3f}"` works."""
    if self.dim() == 0 and type(self) is Tensor and not self.is_meta:
        return format(self.item(), spec)
    return object.__format__(self, spec)


@forward_to("_storage.deepcopy")
def deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor: ...


@forward_to("_pickling.reduce.reduce")
def reduce(self: Tensor, protocol: Any) -> Any: ...


@forward_to("_pickling.rebuild.set_state")
def setstate(self: Tensor, state: Any) -> None:
    """Takes what a pickle holds of a tensor: long ago a storage and how the tensor lies in it, else what hangs on it."""


@forward_to("utils.dlpack.export")
def dlpack(
    self: Tensor,
    *,
    stream: Any = -1,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[Any, int] | None = None,
    copy: bool | None = None,
    read_only: bool = False,
) -> Any:
    """A DLPack capsule over the tensor's memory, or over a copy of it."""


dlpack.__qualname__ = "Tensor.__dlpack__"


@forward_to("utils.dlpack.export_device")
def dlpack_device(self: Tensor) -> tuple[Any, int]:
    """Where DLPack finds the tensor: the kind of device and its number."""


def polygamma(self: Tensor, n: int) -> Tensor:
    """Compute the `n`-th derivative of the digamma function."""
    return _core.polygamma(n, self)


def polygamma_(self: Tensor, n: int) -> Tensor:
    """In-place version of `polygamma`."""
    return self.copy_(_core.polygamma(n, self.clone())) if self.requires_grad else _core.polygamma(n, self, out=self)


def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """In-place version of `float_power`, for a tensor of the dtype of its result."""
    turned = self.is_complex() or (exponent.is_complex() if isinstance(exponent, Tensor) else isinstance(exponent, complex))
    dtype = _core.complex128 if turned else _core.float64
    if self.dtype != dtype:
        own, needed = (str(self.new_empty(0, dtype=kind).type())[6:-6] for kind in (self.dtype, dtype))
        raise RuntimeError(f"the base given to float_power_ has dtype {own} but the operation's result requires dtype {needed}")
    return self.pow_(exponent.to(dtype) if isinstance(exponent, Tensor) else exponent)


@forward_to("_functions.indices.as_strided_scatter")
def as_strided_scatter(self: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """See `torch.as_strided_scatter`."""


def nonzero_static(self: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """See `torch.nonzero_static`."""
    from ._functions.indices import nonzero_static

    return nonzero_static(self, size=size, fill_value=fill_value)


@forward_to("_functions.spectral.stft")
def stft(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Compute the short-time Fourier transform, see `torch.stft`."""


@forward_to("_functions.histograms.histogram")
def histogram(self: Tensor, bins: Any = 100, **options: Any) -> Any:
    """Compute a histogram, see `torch.histogram`."""


@forward_to("_functions.spectral.istft")
def istft(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Compute the inverse short-time Fourier transform, see `torch.istft`."""


@forward_to("_storage.untyped_storage")
def untyped_storage(self: Tensor) -> UntypedStorage:
    """Return the memory that this tensor and its views share."""


def is_shared(self: Tensor) -> bool:
    """Return whether the memory is shared with other processes."""
    return self.is_cuda or self.untyped_storage().is_shared()


def share_memory_(self: Tensor) -> Tensor:
    """Move the elements into memory that other processes can share, together with views of the tensor."""
    self.untyped_storage().share_memory_()
    return self


@forward_to("storage.typed_storage")
def storage(self: Tensor) -> TypedStorage:
    """Return the memory that this tensor and its views share, as a `TypedStorage`."""


@forward_to("storage.storage_type")
def storage_type(self: Tensor) -> type[TypedStorage]:
    """Return the former class of storages of this dtype."""


def as_subclass(self: Tensor, cls: type[Tensor]) -> Tensor:
    """Return the same values with the same graph as an instance of `cls`."""
    _check_subclass(cls)
    return _core.as_subclass(self, cls)


def make_subclass(cls: type[Tensor], data: Tensor, require_grad: bool = False) -> Tensor:
    """Return a leaf of class `cls` that shares the memory of `data`."""
    if not isinstance(data, Tensor):
        raise TypeError(f"_make_subclass(): argument 'data' (position 2) must be Tensor, not {type(data).__name__}")
    _check_subclass(cls)
    return _core.make_subclass(cls, _core.as_subclass(data, Tensor).detach(), require_grad)


def _check_subclass(cls: type) -> None:
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your class "
            "inherits from Tensor."
        )
    if hasattr(cls, "__torch_dispatch__"):
        _refuse_dispatch(cls)


def _refuse_dispatch(cls: type, *args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError(f"{cls.__name__} defines __torch_dispatch__, which no operator would call: not supported")


def init_subclass(cls: type[Tensor], /, **kwargs: Any) -> None:
    """Classes that override operators are asked from now on."""
    if "__torch_dispatch__" in vars(cls):
        # Packages define such classes that their users may never ask for.
        cls.__new__ = staticmethod(_refuse_dispatch)  # type: ignore[method-assign]
    super(Tensor, cls).__init_subclass__(**kwargs)
    # (Our own tensors without a shape are asked while there are any.)
    if cls.__torch_function__ is not _core._disabled_torch_function_impl and not cls.__module__.startswith("gradiron."):
        from .overrides import prepare

        prepare(cls)
        _core.expect_overrides(True)


@forward_to("overrides.default")
def torch_function(cls: type[Tensor], func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """What a subclass does with functions that are called with it: as ever, and results are of its class."""


@forward_to("sparse._build.from_dense")
def to_sparse(
    self: Tensor, sparse_dim: Any = None, *, layout: Any = None, blocksize: Any = None, dense_dim: Any = None
) -> Tensor:
    """Convert to a sparse tensor of its nonzero elements; `sparse_dim` is the number of dimensions that are sparse."""


def to_sparse_coo(self: Tensor) -> Tensor:
    """Convert to the sparse COO layout."""
    return to_sparse(self)


@forward_to("sparse._compressed.to_csr")
def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """Convert to the sparse CSR layout."""


@forward_to("sparse._compressed.to_csc")
def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """Convert to the sparse CSC layout."""


def _of_class(self: Tensor, name: str, *args: Any, **kwargs: Any) -> Any:
    """A sparse tensor's own method, called by way of `Tensor`."""
    kind = type(self)
    return kind.__torch_function__(getattr(Tensor, name), (kind,), (self, *args), kwargs)


def to_dense(self: Tensor, dtype: dtype | None = None, *, masked_grad: bool | None = None) -> Tensor:
    """The tensor with its zeros: the tensor itself if it is not sparse."""
    if self.layout is not strided:
        made: Tensor = _of_class(self, "to_dense", dtype, masked_grad=masked_grad)
        return made
    return self if dtype is None else self.to(dtype)


@forward_to("sparse._build.sparse_mask")
def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """The elements where a sparse tensor has any."""


def dim_order(self: Tensor, *, ambiguity_check: bool | list[Any] = False) -> tuple[int, ...]:
    """The dimensions as they lie in memory, the one that varies slowest first."""
    formats = ambiguity_check if isinstance(ambiguity_check, list) else []
    if not isinstance(ambiguity_check, (bool, list)) or not all(isinstance(f, memory_format) for f in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    strides = self.stride()
    wide = [d for d, n in enumerate(self.shape) if n != 1]
    ambiguous = len({strides[d] for d in wide}) < len(wide) or len(wide) < self.dim()
    if ambiguity_check is not False and ambiguous:
        matching = [f for f in formats if self.is_contiguous(memory_format=f)]
        if len(matching) != 1:
            raise RuntimeError(
                "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
            )
    return tuple(sorted(range(self.dim()), key=lambda d: -strides[d]))


def sparse_only(name: str, says: str = "coordinate ") -> Any:
    """A method of sparse tensors, as others have it."""

    def method(self: Tensor) -> Any:
        if self.layout is not strided:
            return _of_class(self, name)
        raise RuntimeError(f"{name} expected sparse {says}tensor layout but got Strided")

    method.__doc__ = "Of sparse tensors only."
    return method


def no_backend(name: str) -> Any:
    def method(self: Tensor) -> Any:
        if self.layout is not strided:
            return _of_class(self, name)
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the '{'CUDA' if self.is_cuda else 'CPU'}' backend. It is of "
            "sparse tensors only"
        )

    method.__doc__ = "Of sparse tensors only."
    return method


def dense_dim(self: Tensor) -> int:
    """Return the number of dense dimensions: all of a dense tensor."""
    return self.dim() if self.layout is strided else int(_of_class(self, "dense_dim"))


def sparse_dim(self: Tensor) -> int:
    """Return the number of sparse dimensions: 0 for a dense tensor."""
    return 0 if self.layout is strided else int(_of_class(self, "sparse_dim"))


def apply_(self: Tensor, callable: Any) -> Tensor:
    """Replace each element by the result of a Python function; slow."""
    values = [callable(v) for v in self.reshape(-1).tolist()]
    self.data.copy_(_core.make_tensor(values, self.dtype, None, False).reshape(self.shape))
    return self


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """Return what replaces this parameter or buffer when `load_state_dict` swaps tensors."""
    from .overrides import handle_torch_function, has_torch_function_variadic

    # What is loaded may have a class of its own that says how.
    if has_torch_function_variadic(self, other):
        made: Tensor = handle_torch_function(Tensor.module_load, (self, other), self, other, assign=assign)
        return made
    return other.detach() if assign else self.copy_(other).detach()


def ndimension(self: Tensor) -> int:
    """Return the number of dimensions, like `dim`."""
    return self.dim()


def fill_diagonal_(self: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Fill the main diagonal with a number; with `wrap`, it starts again below the last column of a tall matrix."""
    shape, step = self.shape, sum(self.stride())
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    parts = [self.as_strided((min(shape),), (step,), self.storage_offset())]
    height, width = shape[:2]
    if wrap and len(shape) == 2 and height > width + 1:
        rest = -(-self.numel() // (width + 1)) - width
        start = self.storage_offset() + self.stride(0) * (width + 1)
        parts.append(self.as_strided((rest,), (step,), start))
    # A number that a half cannot hold is refused for several elements, but not for one: the longer part comes first.
    for part in sorted(parts, key=Tensor.numel, reverse=True):
        part.fill_(fill_value)
    return self


def new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Create a tensor of this dtype and device from sizes or data; prefer `new_empty` or `new_tensor`."""
    place = kwargs.pop("device", None)
    if place is not None and device(place).type != self.device.type:
        kinds = f"{self.device.type} but device type: {device(place).type} was passed"
        raise RuntimeError(f"legacy constructor expects device type: {kinds}")
    if not args and kwargs.keys() == {"size"}:
        args = (Size(kwargs.pop("size")),)
    if kwargs or (len(args) > 1 and not all(hasattr(arg, "__index__") and not isinstance(arg, Tensor) for arg in args)):
        given = [type(arg).__name__ for arg in args] + [f"{name}={type(value).__name__}" for name, value in kwargs.items()]
        raise TypeError(f"new() received an invalid combination of arguments - got ({', '.join(given)})")
    return _core.legacy_tensor(args, self.dtype, self.device)


def history(self: Tensor) -> Any:
    return self.grad_fn


def forget(self: Tensor, value: None) -> None:
    if value is not None:
        raise RuntimeError("_grad_fn can be only set to None")
    self.detach_()


def keep_history(self: Tensor) -> None:
    raise RuntimeError("Deletion of _grad_fn not allowed. Detach tensor instead!")


def lu(self: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """Compute the LU factorization; deprecated in favour of `torch.linalg.lu_factor`.

    A singular matrix raises no error.

    Args:
        self: matrix or batch of matrices.
        pivot: pivot rows; false works on the GPU only. Default: `True`
        get_infos: return a tensor of error codes too. Default: `False`

    Returns:
        A tuple of the packed factors and the pivots, and of the error codes if asked for.

    Examples:
        >>> LU, pivots = torch.lu(torch.eye(2))
        >>> pivots
        tensor([1, 2], dtype=torch.int32)
    """
    from ._functions.settings import tell_once

    tell_once(
        "lu",
        "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in a future "
        "PyTorch release.",
    )
    made = _core.linalg_lu_factor_ex(self, pivot=pivot)
    return made if get_infos else tuple(made)[:2]


def array_wrap(self: Tensor, array: Any, *how: Any) -> Tensor:
    """What NumPy's functions make of a tensor is a tensor; truth values are bytes, as in PyTorch."""
    return _core.from_numpy(array.astype("uint8") if array.dtype == bool else array)


def _mapped(name: str, self: Tensor, others: tuple[Tensor, ...], function: Any) -> Tensor:
    if self.requires_grad:
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    lists = [t.expand(self.shape).reshape(-1).tolist() for t in (self, *others)]
    return self.copy_(self.new_tensor(list(map(function, *lists))).reshape(self.shape))


def map_(self: Tensor, tensor: Tensor, callable: Any) -> Tensor:
    """Replace each element by a Python function of it and an element of another tensor; slow."""
    return _mapped("map_", self, (tensor,), callable)


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Any) -> Tensor:
    """Replace each element by a Python function of it and elements of two other tensors; slow."""
    return _mapped("map2_", self, (x, y), callable)


def record_stream(self: Tensor, stream: Any) -> None:
    """Do nothing: a GPU has one stream, so memory is not reused too early."""
    if not self.is_cuda:
        backend = "Meta" if self.is_meta else "CPU"
        raise NotImplementedError(f"Could not run 'aten::record_stream' with arguments from the '{backend}' backend.")


def volatile(self: Tensor) -> bool:
    """Return `False`, with a warning: `no_grad` replaces it."""
    import warnings

    warnings.warn("volatile was removed (Variable.volatile is always False)", stacklevel=2)
    return False


def is_distributed(self: Tensor) -> bool:
    """Return `False`: no tensor is distributed.

    Args:
        self: tensor.

    Examples:
        >>> torch.is_distributed(torch.ones(1))
        False
    """
    return False


@forward_to("random.reduce_generator")
def pickled_generator(generator: Generator) -> tuple[Any, ...]:
    """A generator of random numbers that goes on where this one is."""


def install() -> None:
    methods = {
        "to": to,
        "type": type_,
        "numpy": numpy,
        "cpu": cpu,
        "cuda": cuda,
        "pin_memory": pin_memory,
        "is_pinned": is_pinned,
        "apply_": apply_,
        "fill_diagonal_": fill_diagonal_,
        "module_load": module_load,
        "ndimension": ndimension,
        "float": cast(_core.float32),
        "double": cast(_core.float64),
        "half": cast(_core.float16),
        "chalf": cast(_core.complex32),
        "cfloat": cast(_core.complex64),
        "cdouble": cast(_core.complex128),
        "bfloat16": cast(_core.bfloat16),
        "int": cast(_core.int32),
        "long": cast(_core.int64),
        "short": cast(_core.int16),
        "char": cast(_core.int8),
        "byte": cast(_core.uint8),
        "bool": cast(_core.bool),
        "__array__": array,
        "__dlpack__": dlpack,
        "__dlpack_device__": dlpack_device,
        "__iter__": iterate,
        "__contains__": contains,
        "__reversed__": reversed_,
        "__repr__": show,
        "__str__": show,
        "__format__": format_,
        "__deepcopy__": deepcopy,
        "__init_subclass__": classmethod(init_subclass),
        "__torch_function__": classmethod(torch_function),
        "__reduce_ex__": reduce,
        "__setstate__": setstate,
        "new": new,
        "new_tensor": new_tensor,
        "untyped_storage": untyped_storage,
        "is_shared": is_shared,
        "share_memory_": share_memory_,
        "storage": storage,
        "storage_type": storage_type,
        "as_subclass": as_subclass,
        "_make_subclass": staticmethod(make_subclass),
        "dim_order": dim_order,
        "to_sparse": to_sparse,
        "to_sparse_coo": to_sparse_coo,
        "to_sparse_csr": to_sparse_csr,
        "to_sparse_csc": to_sparse_csc,
        "to_dense": to_dense,
        "sparse_mask": sparse_mask,
        "sparse_dim": sparse_dim,
        "dense_dim": dense_dim,
        **{name: sparse_only(name) for name in ("coalesce", "is_coalesced", "indices")},
        "values": sparse_only("values", ""),
        **{name: sparse_only(name, "row compressed ") for name in ("crow_indices", "col_indices")},
        **{name: sparse_only(name, "column compressed ") for name in ("ccol_indices", "row_indices")},
        **{name: no_backend(name) for name in ("_nnz", "_indices", "_values")},
        "lu": lu,
        "__array_wrap__": array_wrap,
        "map_": map_,
        "map2_": map2_,
        "record_stream": record_stream,
        "is_distributed": is_distributed,
        "polygamma": polygamma,
        "polygamma_": polygamma_,
        "float_power_": float_power_,
        "as_strided_scatter": as_strided_scatter,
        "nonzero_static": nonzero_static,
        "stft": stft,
        "istft": istft,
        "histogram": histogram,
        "layout": strided,
        "volatile": property(volatile),
        "_cdata": property(id, doc="A number that identifies the tensor."),
        "_grad": Tensor.grad,
        "_grad_fn": property(history, forget, keep_history, "Same as `grad_fn`; may be set to None."),
        **dict.fromkeys((f"is_{kind}" for kind in KINDS), False),
        "__array_priority__": 1000,
    }
    for name, method in methods.items():
        if callable(method) and not name.startswith("__"):
            method.__name__ = name
        setattr(Tensor, name, method)
    copyreg.pickle(Generator, pickled_generator)


install()
