"""An exported model: saved, run and read."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import gradiron

from .._core import Tensor
from ..utils import _pytree as pytree
from ._writer import Value, element_type, load_onnx
from .errors import OnnxExporterWarning

__all__ = ["ONNXProgram"]

# Protocol buffers hold no more than 2 GB: weights of larger models stand in a file of their own.
_LARGE = 1_800_000_000
# Constants smaller than this stay in the file of the model.
_SMALL = 1024


def position(order: Sequence[str], name: str) -> int:
    """Return where a name stands in a list; at its end, if it does not.

    Args:
        order: names.
        name: name to find.
    """
    return order.index(name) if name in order else len(order)


def _bytes(tensor: Tensor) -> bytes:
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == gradiron.bfloat16:
        tensor = tensor.view(gradiron.int16)
    return tensor.numpy().tobytes()


class ONNXProgram:
    """A model as ONNX, which `torch.onnx.export` returns.

    Calling it with the arguments of the module runs it by onnxruntime, and returns a tuple of tensors.

    Args:
        nodes: nodes of the graph.
        inputs, outputs: values that the graph takes and returns, with the names of dynamic axes.
        weights: tensors of the graph by name.
        parameters: names of those that are parameters or buffers of the module.
        opset: version of the operators.
        order: names of the module's parameters, which arguments by name are sorted by. Default: `()`

    Examples:
        >>> program = torch.onnx.export(nn.Linear(3, 2).eval(), (torch.ones(1, 3),))
        >>> [node.op_type for node in program.model_proto.graph.node]
        ['Gemm']
        >>> sorted(each.name for each in program.model_proto.graph.initializer)
        ['bias', 'weight']
    """

    exported_program = None

    def __init__(
        self,
        nodes: Sequence[Any],
        inputs: Sequence[tuple[Value, Mapping[int, str]]],
        outputs: Sequence[tuple[Value, Mapping[int, str]]],
        weights: dict[str, Tensor],
        parameters: frozenset[str],
        opset: int,
        order: Sequence[str] = (),
    ) -> None:
        self._onnx = load_onnx()
        self._nodes, self._opset, self._order = nodes, opset, order
        self._inputs = [self._info(*each) for each in inputs]
        self._outputs = [self._info(*each) for each in outputs]
        self._weights, self._parameters = weights, parameters
        self._session: Any = None

    def __repr__(self) -> str:
        return f"ONNXProgram(\n{self._onnx.printer.to_text(self._proto(self._bare()))}\n)"

    def _info(self, value: Value, axes: Mapping[int, str]) -> Any:
        sizes = [axes.get(dim, size) for dim, size in enumerate(value.shape)]
        return self._onnx.helper.make_tensor_value_info(value.name, element_type(value.dtype), sizes)

    # The model as a protocol buffer.

    def _filled(self) -> Iterator[Any]:
        for name, tensor in self._weights.items():
            yield self._onnx.helper.make_tensor(name, element_type(tensor.dtype), tuple(tensor.shape), _bytes(tensor), raw=True)

    def _bare(self) -> Iterator[Any]:
        """The weights without their elements, which a text would not be readable with."""
        for name, tensor in self._weights.items():
            made = self._onnx.TensorProto(name=name, data_type=element_type(tensor.dtype), dims=tuple(tensor.shape))
            made.data_location = made.EXTERNAL
            yield made

    def _external(self, place: Path) -> Iterator[Any]:
        """The weights, whose elements are written into another file."""
        with open(place, "wb") as file:
            for name, tensor in self._weights.items():
                content = _bytes(tensor)
                made = self._onnx.TensorProto(name=name, data_type=element_type(tensor.dtype), dims=tuple(tensor.shape))
                if len(content) < _SMALL:
                    made.raw_data = content
                else:
                    made.data_location = made.EXTERNAL
                    entries = {"location": place.name, "offset": file.tell(), "length": len(content)}
                    for key, value in entries.items():
                        made.external_data.add(key=key, value=str(value))
                    file.write(content)
                yield made

    def _proto(self, initializers: Iterator[Any], include: bool = True, as_inputs: bool = False) -> Any:
        helper = self._onnx.helper
        kept = [each for each in initializers if include or each.name not in self._parameters]
        added = [
            helper.make_tensor_value_info(name, element_type(tensor.dtype), tuple(tensor.shape))
            for name, tensor in self._weights.items()
            if as_inputs and name in self._parameters
        ]
        graph = helper.make_graph(self._nodes, "main_graph", [*self._inputs, *added], self._outputs, kept)
        opsets = [helper.make_operatorsetid("", self._opset)]
        return helper.make_model(
            graph,
            producer_name="gradiron",
            producer_version=gradiron.__version__,
            opset_imports=opsets,
            ir_version=helper.find_min_ir_version_for(opsets),
        )

    @property
    def model_proto(self) -> Any:
        """The model as an `onnx.ModelProto`."""
        return self._proto(self._filled())

    @property
    def model(self) -> NoReturn:
        """Raises NotImplementedError: PyTorch has an `onnx_ir.Model` here."""
        raise NotImplementedError(
            "ONNXProgram.model: there is no onnx_ir.Model; ONNXProgram.model_proto is the onnx.ModelProto"
        )

    def save(
        self,
        destination: str | os.PathLike[str],
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Save the model.

        Args:
            destination: path, or a file to write into.
            include_initializers: whether parameters and buffers are saved. Default: `True`
            keep_initializers_as_inputs: whether they are inputs of the graph, too, so that a runtime may be given others.
                Default: `False`
            external_data: whether their elements stand in a file beside, `destination` with `.data` at its end. Default: if
                they are too large for one file

        Examples:
            >>> import io
            >>> file = io.BytesIO()
            >>> torch.onnx.export(nn.ReLU(), (torch.ones(2),)).save(file)
            >>> len(file.getvalue()) > 50
            True
        """
        options = (include_initializers, keep_initializers_as_inputs)
        if external_data is None:
            external_data = sum(each.nbytes for each in self._weights.values()) > _LARGE
        if hasattr(destination, "write"):
            if external_data:
                raise TypeError("external_data=True needs a path: the weights are saved in a file beside it")
            destination.write(self._proto(self._filled(), *options).SerializeToString())
            return
        path = Path(destination)
        held = include_initializers and any(each.nbytes >= _SMALL for each in self._weights.values())
        beside = path.with_name(f"{path.name}.data")
        found = self._external(beside) if external_data and held else self._filled()
        path.write_bytes(self._proto(found, *options).SerializeToString())

    def optimize(self) -> None:
        """Do nothing: what depends on no input has been computed by the export, and runtimes optimize on their own."""

    def apply_weights(self, state_dict: Mapping[str, Tensor]) -> None:
        """Replace parameters and buffers.

        Args:
            state_dict: tensors by name.

        Examples:
            >>> program = torch.onnx.export(nn.Linear(3, 2).eval(), (torch.ones(1, 3),))
            >>> program.apply_weights({"bias": torch.zeros(2)})
        """
        for name, tensor in state_dict.items():
            if name not in self._parameters or name not in self._weights:
                message = f"Weight '{name}' not found in the model. Skipped applying."
                warnings.warn(message, OnnxExporterWarning, stacklevel=2)
                continue
            old = self._weights[name]
            if tensor.shape != old.shape or tensor.dtype != old.dtype:
                raise ValueError(
                    f"'{name}' is {old.dtype} of shape {list(old.shape)}, got {tensor.dtype} of shape {list(tensor.shape)}"
                )
            self._weights[name] = tensor.detach()
        self.release()

    # Running it.

    def initialize_inference_session(self, initializer: Any = None) -> None:
        """Make the session of onnxruntime that calls use.

        Args:
            initializer: function of the serialized model that returns a session. Default: one on the CPU
        """
        initializer = initializer or _cpu_session
        self._session = initializer(self.model_proto.SerializeToString())

    def release(self) -> None:
        """Drop the session."""
        self._session = None

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        if self._session is None:
            self.initialize_inference_session()
        return tuple(gradiron.from_numpy(each) for each in self._session.run(None, self._feed(args, kwargs)))

    def call_reference(self, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        """Run the model by the interpreter of the package `onnx`, operator by operator.

        Args:
            args, kwargs: arguments of the module.
        """
        reference = importlib.import_module("onnx.reference")
        results = reference.ReferenceEvaluator(self.model_proto).run(None, self._feed(args, kwargs))
        return tuple(gradiron.from_numpy(each) for each in results)

    def _feed(self, args: Any, kwargs: Any) -> dict[str, Any]:
        named = sorted(kwargs.items(), key=lambda item: position(self._order, item[0]))
        tensors = [leaf for leaf in pytree.tree_leaves((args, named)) if isinstance(leaf, Tensor)]
        if len(tensors) != len(self._inputs):
            raise ValueError(f"the model takes {len(self._inputs)} tensors, got {len(tensors)}")
        return {info.name: tensor.detach().cpu().numpy() for info, tensor in zip(self._inputs, tensors, strict=True)}


def _cpu_session(model: bytes) -> Any:
    try:
        runtime = importlib.import_module("onnxruntime")
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            "ONNXProgram is run by the package onnxruntime, which is not installed: pip install onnxruntime", name="onnxruntime"
        ) from missing
    return runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
