"""Data parallelism over the GPUs of one process, of which one is supported."""

from __future__ import annotations

from itertools import chain
from typing import Any

from ... import _core, cuda
from ..modules.module import Module
from .scatter_gather import moved

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Run a module on the GPU if there is one, with the interface of data parallelism in a single process.

    The module is stored as `module`, as in PyTorch, but its inputs are not split: several GPUs are not supported. For
    several processes use `DistributedDataParallel`.

    Args:
        module: module to run.
        device_ids: GPUs to use; only one is supported, the first by default.
        output_device: device of the output; kept for compatibility.
        dim: dimension to split along; kept for compatibility. Default: `0`

    Raises:
        RuntimeError: if there are several devices, or if tensors of the module are on another device.

    Examples:
        >>> model = nn.DataParallel(nn.Linear(4, 2))
        >>> model(torch.randn(3, 4)).shape
        torch.Size([3, 2])
    """

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
    """Call a module on the GPU if there is one, with the interface of data parallelism in a single process.

    Args:
        module: module to call.
        inputs: its positional arguments: a tuple, a single one, or `None`.
        device_ids: GPUs to use; only one is supported, the first by default.
        output_device: device of the output; kept for compatibility.
        dim: dimension to split along; kept for compatibility. Default: `0`
        module_kwargs: its keyword arguments.

    Examples:
        >>> torch.nn.parallel.data_parallel(nn.Linear(4, 2), torch.randn(3, 4)).shape
        torch.Size([3, 2])
    """
    inputs = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))
