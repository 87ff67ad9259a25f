"""Notes of each node the shapes that it has on an example."""

from __future__ import annotations

from typing import Any, NamedTuple

import gradiron

from ..._core import Tensor
from ...nn import Module
from .._compatibility import compatibility
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


@compatibility(is_backward_compatible=True)
class TensorMetadata(NamedTuple):
    """What a tensor was on an example.

    Args:
        shape, dtype, requires_grad, stride, memory_format: as the tensor's own.
        is_quantized: False.
        qparams: empty.

    Examples:
        >>> traced = torch.fx.symbolic_trace(torch.nn.ReLU())
        >>> out = torch.fx.passes.shape_prop.ShapeProp(traced).propagate(torch.ones(4, 2))
        >>> traced.graph.output_node().meta["tensor_meta"].stride
        (2, 1)
    """

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _memory_format(value: Tensor) -> Any:
    kinds = [gradiron.contiguous_format]
    kinds += [gradiron.channels_last] if value.dim() == 4 else [gradiron.channels_last_3d] if value.dim() == 5 else []
    return next((kind for kind in kinds if value.is_contiguous(memory_format=kind)), None)


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """What a tensor is besides its values."""
    strided = result.layout == gradiron.strided
    return TensorMetadata(
        shape=result.shape,
        dtype=result.dtype,
        requires_grad=result.requires_grad,
        stride=result.stride() if strided else (),
        memory_format=_memory_format(result) if strided and include_contiguity else None,
        is_quantized=False,
        qparams={},
    )


@compatibility(is_backward_compatible=True)
class ShapeProp(Interpreter):
    """Runs a module on an example, and notes what each node's value was in `meta["tensor_meta"]` and `meta["type"]`.

    Args:
        gm: graph module.
        fake_mode: not supported: pass None. Shapes come from running the module.

    Examples:
        >>> ShapeProp = torch.fx.passes.shape_prop.ShapeProp
        >>> traced = torch.fx.symbolic_trace(torch.nn.Linear(2, 3))
        >>> out = ShapeProp(traced).propagate(torch.ones(4, 2))
        >>> traced.graph.output_node().meta["tensor_meta"].shape
        torch.Size([4, 3])
    """

    def __init__(self, gm: Module, fake_mode: Any = None) -> None:
        super().__init__(gm)
        if fake_mode is not None:
            raise NotImplementedError("ShapeProp: there are no fake tensors; run it on an example, on device 'meta' if need be")

    def run_node(self, n: Node) -> Any:
        """Run one node, and note what its value is.

        Args:
            n: node.
        """
        try:
            result = super().run_node(n)
        except Exception as error:
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        tensors = []

        def extract(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            tensors.append(value)
            return _extract_tensor_metadata(value)

        noted = map_aggregate(result, extract)
        if tensors:
            n.meta["tensor_meta"] = noted
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the module on an example, and return the result.

        Args:
            args: inputs.
        """
        return self.run(*args)
