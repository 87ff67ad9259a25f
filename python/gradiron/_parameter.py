"""Tensors that modules register: the contents of `nn.parameter`, apart from `nn` so that pickling need not load that."""

from __future__ import annotations

import functools
from typing import Any

from . import _core
from ._core import Tensor
from ._creation import strided


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    """Makes `isinstance(t, Parameter)` true for parameters made from tensors of other subclasses, too."""

    def __instancecheck__(cls, other: Any) -> bool:
        if cls is Parameter and isinstance(other, Tensor) and getattr(other, "_is_param", False):
            return True
        return super().__instancecheck__(other)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a module registers as a parameter when it is assigned as an attribute.

    Registered parameters are listed by `Module.parameters`, saved, and moved with the module.

    Args:
        data: the values.
        requires_grad: whether autograd computes a gradient for it. Default: `True`

    Examples:
        >>> nn.Parameter(torch.ones(2))
        Parameter containing:
        tensor([1., 1.], requires_grad=True)
    """

    # Results of operations are plain tensors.
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
        """Return a copy with its own memory and without the gradient."""
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        made: Parameter = memo[id(self)]
        return made

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Parameter containing:\n{super().__repr__()}"

    __str__ = __repr__  # type: ignore[assignment]


class UninitializedTensorMixin:
    """A tensor whose shape is unknown until `materialize` is called; no operator accepts it before.

    Examples:
        >>> issubclass(nn.UninitializedParameter, torch.nn.parameter.UninitializedTensorMixin)
        True
    """

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
        """Become an ordinary tensor of the given shape, whose values are not initialized.

        Args:
            shape: shape of the tensor.
            device, dtype: device and data type; those given at construction if `None`.
        """
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
        # Pickles dtype and device only.
        return _rebuild, (type(self), self.requires_grad, str(self.device), self.dtype)  # type: ignore[attr-defined]


@functools.lru_cache(None)
def _without_shape() -> set[Any]:
    """Return the functions that accept tensors without a shape."""
    names = """
        __hash__ size copy_ is_complex is_floating_point half float double char short int long cuda cpu to get_device bfloat16
        __deepcopy__ __reduce_ex__ __repr__ __str__
    """
    return {getattr(Tensor, name) for name in names.split()}


def _asking(made: Any) -> Any:
    """Have operators ask the class of this tensor, which refuses them while it has no shape."""
    from .overrides import prepare

    prepare(type(made))
    _core.expect_overrides(True)
    return made


def _rebuild(cls: Any, requires_grad: bool, device: str, dtype: Any) -> Any:
    return cls(requires_grad, device=device, dtype=dtype)


def is_lazy(param: Any) -> bool:
    """Return whether a tensor is an uninitialized parameter or buffer.

    Args:
        param: the tensor.

    Examples:
        >>> torch.nn.parameter.is_lazy(nn.LazyLinear(3).weight)
        True
    """
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A parameter whose shape is not known yet, as lazy modules have before their first call.

    Args:
        requires_grad: whether autograd computes a gradient for it. Default: `True`
        device, dtype: device and data type of the parameter.

    Examples:
        >>> weight = nn.UninitializedParameter()
        >>> weight.materialize((2, 3))
        >>> weight.shape
        torch.Size([2, 3])
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> UninitializedParameter:
        return _asking(_core.make_subclass(cls, _core.empty([0], dtype=dtype, device=device), requires_grad))

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedParameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        made: UninitializedParameter = memo[id(self)]
        return made


class _BufferMeta(type(Tensor)):  # type: ignore[misc]
    """Makes `isinstance(t, Buffer)` true for tensors made by `Buffer`, which are marked by an attribute."""

    def __instancecheck__(cls, other: Any) -> bool:
        if cls is Buffer and isinstance(other, Tensor) and getattr(other, "_is_buffer", False):
            return True
        return super().__instancecheck__(other)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a module registers as a buffer when it is assigned as an attribute.

    Buffers move with the module, but are no parameters: running statistics, for example.

    Args:
        data: the values.
        persistent: whether the buffer is part of `Module.state_dict`. Default: `True`

    Examples:
        >>> module = nn.Module()
        >>> module.scale = nn.Buffer(torch.ones(2))
        >>> list(module.state_dict())
        ['scale']
    """

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
    """A buffer whose shape is not known yet, as lazy modules have before their first call.

    Args:
        requires_grad: whether autograd computes a gradient for it. Default: `False`
        device, dtype: device and data type of the buffer.
        persistent: whether the buffer is part of `Module.state_dict`. Default: `True`

    Examples:
        >>> mean = nn.UninitializedBuffer()
        >>> mean.materialize((3,))
        >>> mean.shape
        torch.Size([3])
    """

    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> UninitializedBuffer:
        made: Any = _asking(_core.make_subclass(cls, _core.empty([0], dtype=dtype, device=device), requires_grad))
        made.persistent = persistent
        made._is_buffer = True
        return made

    # Parameters are converted in place, but buffers are replaced.
    to = _still_without_shape("to")
    cuda = _still_without_shape("cuda")
    cpu = _still_without_shape("cpu")
    float = _still_without_shape("float")
    double = _still_without_shape("double")
    half = _still_without_shape("half")
    bfloat16 = _still_without_shape("bfloat16")


# Pickles and `repr` name PyTorch's module.
for _thing in (Buffer, Parameter, UninitializedBuffer, UninitializedParameter, UninitializedTensorMixin, _rebuild, is_lazy):
    _thing.__module__ = f"{__package__}.nn.parameter"
