"""Containers of modules and parameters: sequences, lists and dictionaries."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import chain
from typing import Any, TypeVar

from ..._core import Tensor
from ..parameter import Parameter
from .module import Module, _addindent

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]

L = TypeVar("L", bound="_Numbered")
PL = TypeVar("PL", bound="ParameterList")


def _position(index: Any, size: int) -> int:
    at = operator.index(index)
    if not -size <= at < size:
        raise IndexError(f"index {at} is out of range")
    return at % size


class Container(Module):
    """Deprecated container of named modules; subclass `Module` instead.

    Args:
        **kwargs: modules by name.

    Examples:
        >>> list(nn.Container(first=nn.ReLU(), second=nn.Tanh())._modules)
        ['first', 'second']
    """

    def __init__(self, **kwargs: Any) -> None:
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. Subclass that instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class _Numbered(Module):
    """What `Sequential` and `ModuleList` share."""

    def _renumber(self, modules: Iterable[Any]) -> None:
        self._modules = {str(at): module for at, module in enumerate(modules)}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def pop(self, key: Any) -> Any:
        """Remove the module at an index and return it."""
        found = self[key]  # type: ignore[index]
        del self[key]
        return found

    def append(self: L, module: Module) -> L:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self


class Sequential(_Numbered):
    """Chain modules: each takes the output of the previous one.

    It can be indexed, sliced, extended and added like a list.

    Args:
        *args: the modules in order, or a single `OrderedDict` of modules by name.

    Examples:
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> model(torch.randn(3, 4)).shape
        torch.Size([3, 2])
        >>> model[1]
        ReLU()
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            self.extend(args)

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input

    def _name_at(self, index: Any) -> str:
        return list(self._modules)[_position(index, len(self))]

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._name_at(idx)]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._name_at(idx), module)

    def __delitem__(self, idx: Any) -> None:
        for name in list(self._modules)[idx] if isinstance(idx, slice) else [self._name_at(idx)]:
            delattr(self, name)
        self._renumber(self._modules.values())

    def _need_sequential(self, other: Any) -> None:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")

    def __add__(self, other: Any) -> Sequential:
        self._need_sequential(other)
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Any:
        self._need_sequential(other)
        return self.extend(list(other))

    def _need_factor(self, factor: Any) -> None:
        if not isinstance(factor, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(factor)}")
        if factor <= 0:
            raise ValueError(f"Non-positive multiplication factor {factor} for {type(self)}")

    def __mul__(self, other: int) -> Sequential:
        self._need_factor(other)
        return Sequential(*list(self) * other)

    def __rmul__(self, other: int) -> Sequential:
        return self * other

    def __imul__(self, other: int) -> Any:
        self._need_factor(other)
        return self.extend(list(self) * (other - 1))

    def insert(self, index: int, module: Module) -> Sequential:
        """Insert a module before the one at `index`."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        size = len(self)
        if not -size <= index <= size:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def extend(self, sequential: Iterable[Module]) -> Sequential:
        """Add modules at the end."""
        for module in sequential:
            self.append(module)
        return self


class ModuleList(_Numbered):
    """A list of modules, whose parameters are registered with the module that owns it.

    It cannot be called; the owner's `forward` uses the modules.

    Args:
        modules: the modules in order.

    Examples:
        >>> layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        >>> len(layers), len(list(layers.parameters()))
        (3, 6)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self)[idx])
        return self._modules[str(_position(idx, len(self)))]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, str(_position(idx, len(self))), module)

    def __delitem__(self, idx: Any) -> None:
        for at in range(len(self))[idx] if isinstance(idx, slice) else [_position(idx, len(self))]:
            delattr(self, str(at))
        self._renumber(self._modules.values())

    def __iadd__(self, other: Iterable[Module]) -> ModuleList:
        return self.extend(other)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def insert(self, index: int, module: Module) -> None:
        """Insert a module before the one at `index`."""
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Add modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for at, module in enumerate(modules, len(self)):
            self.add_module(str(at), module)
        return self

    def __repr__(self) -> str:
        """Return the text of a module, with runs of modules that print alike as one line with their number."""
        runs: list[list[Any]] = []
        for at, module in enumerate(self):
            text = repr(module)
            if runs and runs[-1][2] == text:
                runs[-1][1] = at
            else:
                runs.append([at, at, text])
        if not runs:
            return f"{self._get_name()}()"
        lines = [
            f"({first}): {_addindent(text, 2)}"
            if first == last
            else f"({first}-{last}): {last - first + 1} x {_addindent(text, 2)}"
            for first, last, text in runs
        ]
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """A dictionary of modules, whose parameters are registered with the module that owns it.

    It keeps the order of insertion.

    Args:
        modules: a mapping from names to modules, or pairs of both.

    Examples:
        >>> choices = nn.ModuleDict({"relu": nn.ReLU(), "pool": nn.MaxPool1d(2)})
        >>> choices["relu"](torch.tensor([-1.0, 1.0]))
        tensor([0., 1.])
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Remove the module under `key` and return it."""
        return self._modules.pop(key)

    def keys(self) -> KeysView[str]:
        """Return the names."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Any]:
        """Return pairs of names and modules."""
        return self._modules.items()

    def values(self) -> ValuesView[Any]:
        """Return the modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add the modules of a mapping, or pairs of names and modules."""
        for name, module in _pairs(modules, "ModuleDict", "ModuleDict"):
            self[name] = module


def _pairs(given: Any, kind: str, method_of: str) -> Iterable[tuple[str, Any]]:
    """Return the pairs of names and values that `update` was given."""
    if not isinstance(given, Iterable):
        raise TypeError(
            f"{method_of}.update should be called with an iterable of key/value pairs, but got {type(given).__name__}"
        )
    if isinstance(given, (Mapping, ModuleDict, ParameterDict)):
        return given.items()
    pairs = []
    for at, pair in enumerate(given):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{kind} update sequence element #{at} should be Iterable; is{type(pair).__name__}")
        pair = list(pair)
        if len(pair) != 2:
            raise ValueError(f"{kind} update sequence element #{at} has length {len(pair)}; 2 is required")
        pairs.append((pair[0], pair[1]))
    return pairs


class ParameterList(Module):
    """A list of parameters, which are registered with the module that owns it.

    Tensors that are added become parameters; other objects may be stored, too.

    Args:
        values: the values in order.

    Examples:
        >>> weights = nn.ParameterList([torch.randn(2, 2) for _ in range(3)])
        >>> len(list(weights.parameters()))
        3
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            made = type(self)()
            for at in range(len(self))[idx]:
                made.append(self[at])
            return made
        return getattr(self, str(_position(idx, len(self))))

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, str(_position(idx, len(self))), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter(self[at] for at in range(len(self)))

    def __iadd__(self, parameters: Iterable[Any]) -> Any:
        return self.extend(parameters)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self: PL, value: Any) -> PL:
        """Add a value at the end."""
        self._size += 1
        self[-1] = value
        return self

    def extend(self: PL, values: Iterable[Any]) -> PL:
        """Add values at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return _listed(enumerate(self), lambda t: str(t.dtype))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _listed(items: Iterable[tuple[Any, Any]], kind: Any) -> str:
    lines = []
    for name, value in items:
        if isinstance(value, Tensor):
            size = "x".join(str(n) for n in value.shape)
            place = f" ({value.device})" if value.is_cuda else ""
            title = "Parameter" if isinstance(value, Parameter) else "Tensor"
            lines.append(f"  ({name}): {title} containing: [{kind(value)} of size {size}{place}]")
        else:
            lines.append(f"  ({name}): Object of type: {type(value).__name__}")
    return "\n".join(lines)


class ParameterDict(Module):
    """A dictionary of parameters, which are registered with the module that owns it.

    Tensors that are added become parameters; other objects may be stored, too.

    Args:
        parameters: a mapping from names to values, or pairs of both.

    Examples:
        >>> weights = nn.ParameterDict({"left": torch.randn(2), "right": torch.randn(3)})
        >>> weights["right"].shape
        torch.Size([3])
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                f"Index given to ParameterDict cannot be used as a key as it is not a string (type is '{type(key).__name__}')."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key: str, value: Any) -> None:
        # Values that are no tensors are ordinary attributes.
        self._keys[key] = None
        setattr(self, self._key_to_attr(key), _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Return a new dictionary of the same values."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value under `key`, after setting it to `default` if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all values."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove the value under `key` and return it."""
        found = self[key]
        del self[key]
        return found

    def popitem(self) -> tuple[str, Any]:
        """Remove the value added last and return it with its name."""
        key, _ = self._keys.popitem()
        self._keys[key] = None  # `pop` removes it again
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value under `key`, or `default` if there is none."""
        return self[key] if key in self else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a dictionary with the same value under all `keys`."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> KeysView[str]:
        """Return the names."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return pairs of names and values."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """Return the values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add the values of a mapping, sorted by name if it is not an `OrderedDict`, or pairs of both."""
        pairs = _pairs(parameters, "ParameterDict", "ParametersDict")
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            pairs = sorted(pairs)
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        return _listed(self.items(), Tensor.type)

    def __call__(self, input: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: ParameterDict) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: Any) -> Any:
        made = other.copy()
        made.update(self)
        return made

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc]
        self.update(other)
        return self
