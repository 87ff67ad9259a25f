"""A batch shared out among devices, of which there is one here."""

from __future__ import annotations

from itertools import chain
from typing import Any

from ... import _core, cuda
from ..modules.module import Module
from .scatter_gather import moved

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """A module under the name `module`, on the GPU if there is one."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module: Any = module
        self.dim = dim
        if not cuda.is_available():
            self.device_ids: list[int] = []
            return
        ids = [0] if device_ids is None else [_core.device(i).index or 0 for i in device_ids]
        if len(ids) > 1:
            raise RuntimeError(f"DataParallel was given {len(ids)} devices, but there is one GPU: device_ids={device_ids}")
        if not ids:
            raise RuntimeError("no available devices were found")
        self.device_ids = ids
        self.output_device = ids[0] if output_device is None else _core.device(output_device).index or 0
        self.src_device_obj = _core.device("cuda", ids[0])
        self.module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        for tensor in chain(self.module.parameters(), self.module.buffers()):
            if tensor.device != self.src_device_obj:
                raise RuntimeError(
                    f"module must have its parameters and buffers on device {self.src_device_obj} (device_ids[0]) but found "
                    f"one of them on device: {tensor.device}"
                )
        return self.module(*moved(inputs, self.src_device_obj), **moved(kwargs, self.src_device_obj))


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """The module of the inputs, on the GPU if there is one."""
    inputs = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))
