"""`torch.onnx.export`."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import os
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import gradiron

from .._core import Tensor
from ..nn import Module
from ..random import default_generator
from ..utils import _pytree as pytree
from ._dynamic import Axes, axes_by_name, axes_by_shape, other_sizes
from ._modes import OperatorExportTypes, TrainingMode, select_model_mode_for_export
from ._program import ONNXProgram, position
from ._tracing import named_tensors, trace
from ._translation import axes_of_outputs, is_constant, merge, translate
from ._writer import Value, Writer, load_onnx
from .errors import OnnxExporterError

__all__ = ["export"]

_OPSETS = range(13, 22)
_DEFAULT_OPSET = 20


class _Function(Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.forward = function


class _Inputs:
    """The example inputs: those that are tensors are inputs of the graph, anything else is a constant."""

    def __init__(self, model: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        signature = inspect.signature(model.forward)
        self.bound = signature.bind(*args, **kwargs).arguments
        # Inputs by name are in the order of the parameters, however they are given.
        self.order = list(signature.parameters)
        kwargs = dict(sorted(kwargs.items(), key=lambda item: position(self.order, item[0])))
        self.leaves, self.structure = pytree.tree_flatten((list(args), kwargs))
        self.at = [at for at, leaf in enumerate(self.leaves) if isinstance(leaf, Tensor)]
        self.tensors: list[Tensor] = [self.leaves[at] for at in self.at]
        if not self.tensors:
            raise ValueError("torch.onnx.export: the example inputs contain no tensor")
        self.model = model

    def call(self, *tensors: Any) -> Any:
        leaves = list(self.leaves)
        for at, tensor in zip(self.at, tensors, strict=True):
            leaves[at] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self.structure)
        return self.model(*args, **kwargs)

    def parts(self) -> Iterator[tuple[str, Any]]:
        """Each argument by its name, several of one `*args` or `**kwargs` one by one."""
        kinds = inspect.signature(self.model.forward).parameters
        for name, value in self.bound.items():
            kind = kinds[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                yield from ((f"{name}_{at}", item) for at, item in enumerate(value))
            elif kind is inspect.Parameter.VAR_KEYWORD:
                yield from value.items()
            else:
                yield name, value

    def names(self, given: Sequence[str]) -> list[str]:
        """The names of the tensors, first those that the caller gives."""
        if len(given) > len(self.tensors):
            raise RuntimeError(f"number of input names provided ({len(given)}) exceeded number of inputs ({len(self.tensors)})")
        found = []
        for name, value in self.parts():
            count = sum(isinstance(leaf, Tensor) for leaf in pytree.tree_leaves(value))
            found += [name] if isinstance(value, Tensor) else [f"{name}_{at}" for at in range(count)]
        # An input that has the name of a parameter gets another one, unless the caller chose it.
        names, taken = list(given), {*named_tensors(self.model), *given}
        for name in found[len(given) :]:
            wishes = itertools.chain((name,), (f"{name}_{at}" for at in itertools.count(1)))
            names.append(next(wish for wish in wishes if wish not in taken))
            taken.add(names[-1])
        return names

    def axes(self, shapes: Any) -> list[Axes]:
        """The dynamic axes of each tensor, as a `dynamic_shapes` declares them."""
        count = itertools.count()
        label = lambda: f"s{next(count)}"
        parts = list(self.parts())
        if isinstance(shapes, Mapping):
            unknown = sorted(shapes.keys() - {name for name, _ in parts})
            if unknown:
                raise ValueError(f"dynamic_shapes names {unknown[0]!r}, which is no argument of the module")
            shapes = [shapes.get(name) for name, _ in parts]
        specs = list(shapes)
        if len(specs) != len(parts):
            raise ValueError(f"dynamic_shapes has {len(specs)} entries for {len(parts)} arguments")
        return [axes for spec, (_, value) in zip(specs, parts, strict=True) for axes in axes_by_shape(spec, value, label)]


def _named_outputs(writer: Writer, outputs: Sequence[Any], names: Sequence[str]) -> list[Value]:
    """The outputs under their names, each a value of its own."""
    if len(names) > len(outputs):
        raise RuntimeError(f"number of output names provided ({len(names)}) exceeded number of outputs ({len(outputs)})")
    produced = {name: node for node in writer.nodes for name in node.output}
    taken: set[str] = set()
    renamed: dict[str, str] = {}
    found: list[Value] = []
    for at, value in enumerate(outputs):
        if is_constant(value):
            value = writer.constant(value if isinstance(value, Tensor) else gradiron.tensor(value))
        wish = names[at] if at < len(names) else value.name
        if value.name not in produced or value.name in taken:
            # An input, a constant or a second name of an output has to be computed.
            copied = writer.add("Identity", (value,), 1, value.dtype, {})[0]
            wish = names[at] if at < len(names) else copied.name
            renamed[copied.name] = wish
        else:
            taken.add(value.name)
            renamed[value.name] = wish
        found.append(Value(wish, value.dtype, value.sizes))
    for node in writer.nodes:
        for side in (node.input, node.output):
            side[:] = [renamed.get(name, name) for name in side]
    return found


def _require_distinct(*groups: Iterable[str]) -> None:
    """Raises an error if inputs, outputs and parameters share a name."""
    seen: set[str] = set()
    for name in itertools.chain(*groups):
        if name in seen:
            raise ValueError(f"two of the inputs, outputs and parameters are named '{name}'; give others in input_names")
        seen.add(name)


def _same_sizes(tensors: Sequence[Tensor], axes: Sequence[Axes]) -> None:
    """Raises an error if two axes of one name have two sizes."""
    sizes: dict[str, int] = {}
    for tensor, named in zip(tensors, axes, strict=True):
        for axis, label in named.items():
            if sizes.setdefault(label, tensor.size(axis)) != tensor.size(axis):
                raise ValueError(f"the axes named '{label}' have different sizes, {sizes[label]} and {tensor.size(axis)}")


@contextlib.contextmanager
def _same_random_numbers() -> Iterator[None]:
    """A `with` block after which the generator goes on as if nothing had been drawn."""
    state = default_generator.get_state()
    try:
        yield
    finally:
        default_generator.set_state(state)


def _program(
    model: Module,
    inputs: _Inputs,
    opset: int,
    input_names: Sequence[str],
    output_names: Sequence[str],
    dynamic_axes: Mapping[str, Any],
    dynamic_shapes: Any,
    fold: bool,
) -> ONNXProgram:
    names = inputs.names(input_names)
    ranks = {name: tensor.dim() for name, tensor in zip(names, inputs.tensors, strict=True)}
    if dynamic_shapes is not None:
        axes = inputs.axes(dynamic_shapes)
    else:
        declared = axes_by_name(dynamic_axes, names, ranks)
        axes = [declared.get(name, {}) for name in names]
    _same_sizes(inputs.tensors, axes)
    with _same_random_numbers():
        tracer = trace(model, names, inputs.tensors, inputs.call)
        others: list[Any] = []
        if any(axes):
            others = other_sizes(inputs.tensors, axes, lambda resized: trace(model, names, resized, inputs.call))
    same = axes_of_outputs([tracer, *others], axes)
    merge(tracer, others)
    writer, given, results = translate(tracer, opset, fold, output_names)
    outputs = _named_outputs(writer, results, output_names)
    writer.prune(value.name for value in outputs)
    _require_distinct(names, writer.initializers, (value.name for value in outputs))
    for name in dynamic_axes:
        if name not in names and all(name != value.name for value in outputs):
            warnings.warn(f"Provided key {name} for dynamic axes is not a valid input/output name", UserWarning, stacklevel=4)
    labels = axes_by_name(dynamic_axes, [value.name for value in outputs], {value.name: value.ndim for value in outputs})
    return ONNXProgram(
        writer.nodes,
        list(zip(given, axes, strict=True)),
        [
            (value, _labelled(value, {**named, **labels.get(value.name, {})}))
            for value, named in zip(outputs, same, strict=True)
        ],
        writer.initializers,
        frozenset(tracer.held),
        opset,
        inputs.order,
    )


def _labelled(value: Value, labels: Axes) -> Axes:
    """A name for each dynamic axis of an output: a size without one would be unknown to a reader."""
    own = {dim: f"{value.name}_dim_{dim}" for dim, size in enumerate(value.shape) if size is None}
    return {**own, **labels}


def _verify(program: ONNXProgram, inputs: _Inputs) -> None:
    with gradiron.no_grad(), _same_random_numbers():
        expected = [leaf for leaf in pytree.tree_leaves(inputs.call(*inputs.tensors)) if leaf is not None]
    for value, other in zip(program(*inputs.tensors), expected, strict=True):
        wanted = gradiron.as_tensor(other)
        if not gradiron.allclose(value, wanted.cpu(), rtol=1e-4, atol=1e-5, equal_nan=True):
            raise OnnxExporterError("verify=True: onnxruntime computes something else than the module")


def export(
    model: Module | Callable[..., Any],
    args: tuple[Any, ...] | Tensor = (),
    f: str | os.PathLike[str] | None = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: dict[str, Any] | tuple[Any, ...] | list[Any] | None = None,
    custom_translation_table: dict[Callable[..., Any], Callable[..., Any]] | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | os.PathLike[str] = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Mapping[int, str]] | Mapping[str, Sequence[int]] | None = None,
    training: TrainingMode = TrainingMode.EVAL,
    operator_export_type: OperatorExportTypes = OperatorExportTypes.ONNX,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[type[Module]] = False,
    autograd_inlining: bool = True,
) -> ONNXProgram | None:
    """Export a module to ONNX, by the package `onnx`: `pip install "gradiron[onnx]"`.

    The module runs on the example inputs, and the operators that it executes become the graph: conditions are decided as on
    the example. A condition on a tensor's values raises `torch.fx.proxy.TraceError`, an operator that has no form in ONNX
    `torch.onnx.errors.UnsupportedOperatorError`. Where an axis is declared dynamic, the module also runs on inputs of other
    sizes, and an export that would only be right for the example is refused. The module is left as it was.

    Args:
        model: module.
        args: example inputs, a tuple or one tensor. Nested lists, tuples and dictionaries of tensors are flattened; what is no
            tensor is a constant. Default: `()`
        f: path to save to. Default: `None`
        kwargs: example inputs given by name. Default: none
        verbose: whether to print the graph. Default: `False`
        input_names, output_names: names of inputs and outputs, in order. Default: those of the module's parameters, and of
            the operators that return the outputs
        opset_version: version of ONNX's operators, 13 to 21. Default: `20`
        dynamo: whether to export the module in the mode it is in, and to return the program; otherwise `training` decides on
            the mode and nothing is returned. Default: `True`
        external_data: whether weights are saved in a file beside `f`, with `.data` at the end of its name. Default: `True`
        dynamic_shapes: for each argument, by name or position, what is dynamic: names by axis. Default: `None`
        verify: whether to compare with the module's result by onnxruntime. Default: `False`
        export_params: whether parameters and buffers are saved. Default: `True`
        keep_initializers_as_inputs: whether they are inputs of the graph, too. Default: `False`
        dynamic_axes: for an input's or output's name, names by axis or a list of axes. Default: `None`
        training: mode of the module if not `dynamo`. Default: `TrainingMode.EVAL`
        do_constant_folding: whether what depends on no input and no parameter is computed by the export. Default: `True`
        optimize, autograd_inlining: ignored. Default: `True`
        operator_export_type, custom_opsets, export_modules_as_functions, artifacts_dir: ignored. Default: as in PyTorch
        custom_translation_table, report, profile, dump_exported_program: not supported. Default: `False`

    Returns:
        The program, or None if not `dynamo`.

    Examples:
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU()).eval()
        >>> x = torch.randn(2, 4)
        >>> program = torch.onnx.export(model, (x,), input_names=["x"], dynamic_axes={"x": {0: "batch"}})
        >>> [node.op_type for node in program.model_proto.graph.node]
        ['Gemm', 'Relu']
    """
    unsupported = {
        "custom_translation_table": custom_translation_table,
        "report": report,
        "profile": profile,
        "dump_exported_program": dump_exported_program,
    }
    for name, value in unsupported.items():
        if value:
            raise NotImplementedError(f"torch.onnx.export: {name} is not supported")
    opset = _DEFAULT_OPSET if opset_version is None else opset_version
    if opset not in _OPSETS:
        raise ValueError(f"Unsupported ONNX opset version: {opset}; 13 to 21 can be written")
    if not dynamo and f is None:
        raise TypeError("torch.onnx.export: dynamo=False returns nothing, so f has to be a path")
    load_onnx()
    args = (args,) if isinstance(args, Tensor) else tuple(args)
    if not dynamo and kwargs is None and args and isinstance(args[-1], dict):
        *rest, kwargs = args
        args = tuple(rest)
    # The module that `torch.compile` was given.
    model = getattr(model, "_orig_mod", model)
    module = model if isinstance(model, Module) else _Function(model)
    if dynamo and module.training and not isinstance(module, _Function):
        warnings.warn(
            "Exporting a model while it is in training mode. Please ensure that this is intended, as it may lead to different "
            "behavior during inference. Calling model.eval() before export is recommended.",
            UserWarning,
            stacklevel=2,
        )
    inputs = _Inputs(module, args, kwargs or {})
    with select_model_mode_for_export(module, TrainingMode.PRESERVE if dynamo else training):
        program = _program(
            module,
            inputs,
            opset,
            input_names or (),
            output_names or (),
            dynamic_axes or {},
            dynamic_shapes,
            do_constant_folding,
        )
        if verify:
            _verify(program, inputs)
    if verbose:
        print(program)
    if f is not None:
        program.save(
            f,
            include_initializers=export_params,
            keep_initializers_as_inputs=keep_initializers_as_inputs or not (export_params or dynamo),
            external_data=external_data and dynamo and not hasattr(f, "write"),
        )
    return program if dynamo else None
