"""Tensors that modules register: parameters, buffers, and those whose shape is not known yet."""

from __future__ import annotations

import functools
from typing import Any

from .. import _core
from .._core import Tensor
from .._creation import strided

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin", "is_lazy"]


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    """Tensors of other subclasses can be parameters as well."""

    def __instancecheck__(cls, other: Any) -> bool:
        if cls is Parameter and isinstance(other, Tensor) and getattr(other, "_is_param", False):
            return True
        return super().__instancecheck__(other)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A leaf that wants a gradient, prints as what it is, and is registered by the module that it is assigned to."""

    # What is computed from it is a plain tensor.
    __torch_function__ = _core._disabled_torch_function_impl

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = _core.empty([0])
        if type(data) in (Tensor, Parameter):
            return _core.make_subclass(cls, data, requires_grad)
        values = data.detach()
        if data.layout is not strided:
            raise NotImplementedError("a sparse tensor cannot be a parameter: make one of its values")
        made = _core.make_subclass(type(data), values, requires_grad)
        made._is_param = True
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        """A parameter with memory of its own, and without the gradient."""
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        made: Parameter = memo[id(self)]
        return made

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Parameter containing:\n{super().__repr__()}"

    __str__ = __repr__  # type: ignore[assignment]


class UninitializedTensorMixin:
    """A tensor without a shape, until `materialize` gives it one; no operator takes it before."""

    cls_to_become: type[Any] = Tensor

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _without_shape() or type(func).__name__ == "method-wrapper":
            return super().__torch_function__(func, types, args, kwargs)  # type: ignore[misc]
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when a lazy module was not called yet: "
            "its parameters get their shapes in the first call of `forward`."
        )

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Becomes an ordinary tensor of `shape`, not initialised, and stays the object that it is."""
        old: Any = self
        place = old.data.device if device is None else device
        kind = old.data.dtype if dtype is None else dtype
        old.data = _core.empty(shape, dtype=kind, device=place)
        self.__class__ = self.cls_to_become
        _core.expect_overrides(False)

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in `load_state_dict` "
            "when trying to load an uninitialized parameter into an initialized one. Call `forward` to initialize the "
            "parameters before accessing their attributes."
        )

    def share_memory_(self) -> Any:
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters before "
            "calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    __str__ = __repr__

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Of the empty tensor only what counts is kept.
        return _rebuild, (type(self), self.requires_grad, str(self.device), self.dtype)  # type: ignore[attr-defined]


@functools.lru_cache(None)
def _without_shape() -> set[Any]:
    """What can be asked of a tensor that has no shape yet."""
    names = """
        __hash__ size copy_ is_complex is_floating_point half float double char short int long cuda cpu to get_device bfloat16
        __deepcopy__ __reduce_ex__ __repr__ __str__
    """
    return {getattr(Tensor, name) for name in names.split()}


def _asking(made: Any) -> Any:
    """Operators ask this tensor's class as long as it has no shape."""
    from ..overrides import prepare

    prepare(type(made))
    _core.expect_overrides(True)
    return made


def _rebuild(cls: Any, requires_grad: bool, device: str, dtype: Any) -> Any:
    return cls(requires_grad, device=device, dtype=dtype)


def is_lazy(param: Any) -> bool:
    """Whether a tensor still waits for its shape."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A parameter of a lazy module before its first call."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> UninitializedParameter:
        return _asking(_core.make_subclass(cls, _core.empty([0], dtype=dtype, device=device), requires_grad))

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedParameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        made: UninitializedParameter = memo[id(self)]
        return made


class _BufferMeta(type(Tensor)):  # type: ignore[misc]
    """What `Buffer` makes are tensors with a mark."""

    def __instancecheck__(cls, other: Any) -> bool:
        if cls is Buffer and isinstance(other, Tensor) and getattr(other, "_is_buffer", False):
            return True
        return super().__instancecheck__(other)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that is registered as a buffer by the module that it is assigned to; part of its state if `persistent`."""

    __torch_function__ = _core._disabled_torch_function_impl

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = _core.empty([0])
        bare = data.detach()
        made: Any = bare if type(data) is Tensor else _core.make_subclass(type(data), bare, False)
        made.requires_grad_(data.requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made


def _still_without_shape(name: str) -> Any:
    convert = getattr(Tensor, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = convert(self, *args, **kwargs)
        if made is self:
            return made
        made = _core.make_subclass(type(self), made, self.requires_grad)
        made.__dict__.update(self.__dict__)
        return made

    return method


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # type: ignore[misc]
    """A buffer of a lazy module before its first call."""

    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> UninitializedBuffer:
        made: Any = _asking(_core.make_subclass(cls, _core.empty([0], dtype=dtype, device=device), requires_grad))
        made.persistent = persistent
        made._is_buffer = True
        return made

    # Parameters are converted in place; buffers are replaced.
    to = _still_without_shape("to")
    cuda = _still_without_shape("cuda")
    cpu = _still_without_shape("cpu")
    float = _still_without_shape("float")
    double = _still_without_shape("double")
    half = _still_without_shape("half")
    bfloat16 = _still_without_shape("bfloat16")
