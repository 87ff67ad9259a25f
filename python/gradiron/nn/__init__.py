"""Neural network modules, parameters and functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import functional as functional
from . import modules as modules
from . import parameter as parameter
from .modules import *
from .modules.container import Container as Container
from .parameter import Buffer as Buffer
from .parameter import Parameter as Parameter
from .parameter import UninitializedBuffer as UninitializedBuffer
from .parameter import UninitializedParameter as UninitializedParameter


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Return canonical keyword arguments for creating tensors: `device`, `dtype` and `memory_format`.

    Args:
        kwargs: these options, given directly or in a dictionary under `"factory_kwargs"`; `None` gives none.

    Raises:
        TypeError: if there are other options, or one is given twice.

    Examples:
        >>> nn.factory_kwargs({"factory_kwargs": {"device": "cpu"}})
        {'device': 'cpu'}
    """
    if kwargs is None:
        return {}
    known = {"device", "dtype", "memory_format"}
    if set(kwargs) - known - {"factory_kwargs"}:
        raise TypeError(f"unexpected kwargs {set(kwargs) - known - {'factory_kwargs'}}")
    made = dict(kwargs.get("factory_kwargs", {}))
    for name in known & set(kwargs):
        if name in made:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        made[name] = kwargs[name]
    return made


# Imported on first access.
_MODULES = ("attention", "common_types", "grad", "init", "parallel", "utils")


if TYPE_CHECKING:
    from . import attention as attention
    from . import common_types as common_types
    from . import grad as grad
    from . import init as init
    from . import parallel as parallel
    from . import utils as utils
    from .parallel import DataParallel as DataParallel
else:

    def __getattr__(name: str) -> Any:
        import importlib

        if name in _MODULES:
            return importlib.import_module(f".{name}", __name__)
        if name == "DataParallel":
            return importlib.import_module(".parallel", __name__).DataParallel
        raise AttributeError(f"module 'gradiron.nn' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, "DataParallel"})
