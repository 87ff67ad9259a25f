"""The base classes of pipes, and how functions join them as methods."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from ..dataset import Dataset, IterableDataset

__all__ = ["DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe"]


class _Pipe:
    functions: ClassVar[dict[str, Callable[..., Any]]]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        for module in ("iter", "map"):
            importlib.import_module(f"{__package__}.{module}")  # The pipes in it become methods.
        function = type(self).functions.get(name)
        if function is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return functools.partial(function, self)

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Make a function of a pipe one of its methods."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(cls, function_name: str, cls_to_register: Any) -> None:
        """Make a class of pipes a method of others: `pipe.name(...)` is `cls_to_register(pipe, ...)`."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")
        cls.functions[function_name] = cls_to_register

    def __repr__(self) -> str:
        return type(self).__qualname__

    __str__ = __repr__

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *type(self).functions]


def _lacks_length(pipe: Any) -> TypeError:
    return TypeError(f"{type(pipe).__name__} instance doesn't have valid length")


class IterDataPipe(_Pipe, IterableDataset[Any]):
    """Base class of pipes whose samples come as a stream.

    Examples:
        >>> from gradiron.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(3)).map(lambda x: x * 10))
        [0, 10, 20]
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")

    def reset(self) -> None:
        """Begin anew; called for each pass over the pipe by those who override it."""


class MapDataPipe(_Pipe, Dataset[Any]):
    """Base class of pipes whose samples are accessed by index.

    Examples:
        >>> from gradiron.utils.data.datapipes.map import SequenceWrapper
        >>> SequenceWrapper([1, 2]).map(lambda x: x * 10)[1]
        20
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}


class DataChunk(list[Any]):
    """A batch of samples: a list.

    Args:
        iterable: the samples. Default: `()`

    Examples:
        >>> torch.utils.data.datapipes.datapipe.DataChunk([1, 2]).raw_iterator().__next__()
        1
    """

    def as_str(self, indent: str = "") -> str:
        """Return the samples as text, one line."""
        return indent + "[" + ", ".join(str(item) for item in self) + "]"

    def raw_iterator(self) -> Iterator[Any]:
        """Return an iterator over the samples."""
        return super().__iter__()


class functional_datapipe:
    """Decorator that makes a class of pipes a method of others.

    Args:
        name: name of the method.
        enable_df_api_tracing: accepted for compatibility. Default: `False`

    Examples:
        >>> from gradiron.utils.data.datapipes.iter import IterableWrapper
        >>> @torch.utils.data.functional_datapipe("doubled")
        ... class Doubled(torch.utils.data.IterDataPipe):
        ...     def __init__(self, source):
        ...         self.source = source
        ...     def __iter__(self):
        ...         return (2 * x for x in self.source)
        >>> list(IterableWrapper([1, 2]).doubled())
        [2, 4]
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: Any) -> Any:
        for base in (IterDataPipe, MapDataPipe):
            if isinstance(cls, type) and issubclass(cls, base):
                base.register_datapipe_as_function(self.name, cls)
                return cls
        raise TypeError("functional_datapipe can only decorate IterDataPipe or MapDataPipe")
