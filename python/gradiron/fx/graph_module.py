"""Modules that run a graph, by code that is generated of it."""

from __future__ import annotations

import contextlib
import copy
import itertools
import linecache
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .. import nn
from .._core import Tensor
from ..nn.modules.module import _addindent
from ..serialization import save
from ._compatibility import compatibility
from ._names import custom_builtins, import_line
from ._source import function_of, function_of_imports, import_block
from ._tracer import Tracer
from .graph import Graph, PythonCode, _BoxedCodeGen, _PyTreeCodeGen
from .node import Node

__all__ = ["GraphModule", "reduce_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"

# The hooks of a graph module, each in a list of its own.
_HOOKS = ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")
_STATE_HOOKS = ("_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks")


class _CodeOnlyModule(nn.Module):
    """A module of given attributes, which is traced again when a graph module is loaded or copied."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


@compatibility(is_backward_compatible=True)
def reduce_graph_module(body: dict[str, Any], import_block: str) -> nn.Module:
    """Return the graph module that a pickle holds.

    Args:
        body: attributes of it.
        import_block: lines that define the global names of its code.

    Examples:
        >>> function, arguments = torch.fx.symbolic_trace(torch.nn.ReLU()).__reduce__()
        >>> function(*arguments)(torch.ones(1))
        tensor([1.])
    """
    code = body.get("_code") or body["code"]
    return _deserialize_graph_module(function_of_imports(import_block, code), body)


def _deserialize_graph_module(forward: Callable[..., Any], body: dict[str, Any], graph_module_cls: Any = None) -> nn.Module:
    class Loaded(_CodeOnlyModule):
        pass

    Loaded.forward = forward
    tracer_cls: Any = body.get("_tracer_cls") or Tracer

    class KeepModules(tracer_cls):  # type: ignore[misc]
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return True

    bare = Loaded(body)
    graph = KeepModules._graph_module_deserialization_tracer(bare).trace(bare, **body.get("_tracer_extras", {}))
    graph._tracer_cls = tracer_cls
    made = (graph_module_cls or GraphModule)(bare, graph, class_name=body.get("_graphmodule_cls_name", "GraphModule"))
    for key, value in body.items():
        if not hasattr(made, key):
            setattr(made, key, value)
    return made


def _place(module: nn.Module, path: list[str]) -> nn.Module:
    """The module at a path, made on the way where there is none."""
    for part in path:
        if getattr(module, part, None) is None:
            setattr(module, part, nn.Module())
        module = getattr(module, part)
    return module


def _set_attr(module: nn.Module, name: str, value: Any, persistent: bool = True) -> None:
    """Sets an attribute, as a buffer where it is a plain tensor."""
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        module.register_buffer(name, value, persistent=persistent)
    else:
        setattr(module, name, value)


def _copy_attr(from_module: nn.Module, to_module: nn.Module, target: str) -> None:
    """Gives a module the attribute of another, by its path, which is made where it is not there."""
    *path, name = target.split(".")
    for part in path:
        source, made = getattr(from_module, part), getattr(to_module, part, None)
        if source is made:
            return  # The whole module has been taken over already.
        from_module, to_module = source, _place(to_module, [part])
    _set_attr(to_module, name, getattr(from_module, name), name not in from_module._non_persistent_buffers_set)


def _assign_attr(from_obj: Any, to_module: nn.Module, target: str) -> None:
    """Gives a module an attribute, by its path, which is made where it is not there."""
    *path, name = target.split(".")
    _set_attr(_place(to_module, path), name, from_obj)


def _get_attr(model: Any, attr_name: str) -> Any:
    """The attribute of a module at a path."""
    for part in attr_name.split("."):
        model = getattr(model, part)
    return model


def _del_attr(model: nn.Module, attr_name: str) -> None:
    """Removes the attribute of a module at a path."""
    above, _, name = attr_name.rpartition(".")
    delattr(_get_attr(model, above) if above else model, name)


def _has_attr(model: nn.Module, attr_name: str) -> bool:
    """Whether a module has an attribute at a path."""
    try:
        _get_attr(model, attr_name)
    except AttributeError:
        return False
    return True


def _referenced(graph: Graph) -> list[str]:
    return [str(node.target) for node in graph.nodes if node.op in ("get_attr", "call_module")]


def _shown_error(frame: traceback.FrameSummary) -> str:
    """The lines of generated code around the one that raised an error, below the error itself."""
    number, line = frame.lineno or 1, frame.line or ""
    lines = linecache.getlines(frame.filename)
    head = f"Call using an FX-traced Module, line {number} of the traced Module's generated forward function:"
    marker = "~" * len(line) + "~~~ <--- HERE"
    before, after = "".join(lines[max(number - 2, 0) : number]), "\n".join(lines[number : number + 2])
    return "\n".join([traceback.format_exc(), head, before, marker, after])


class _WrappedCall:
    """Calls a graph module, and shows the generated code where an error comes from it."""

    def __init__(self, cls: Any, cls_call: Callable[..., Any] | None) -> None:
        self.cls, self.cls_call = cls, cls_call

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            above: Any = super(self.cls, obj)
            return above.__call__(*args, **kwargs)
        except Exception as error:
            innermost = traceback.extract_tb(error.__traceback__)[-1]
            if "eval_with_key" not in innermost.filename:
                raise
            print(_shown_error(innermost), file=sys.stderr)
            raise error.with_traceback(None) from error.__cause__


@compatibility(is_backward_compatible=True)
class GraphModule(nn.Module):
    """A module whose `forward` is generated of a graph.

    Assign `graph`, or change it and call `recompile`, to have other code generated.

    Args:
        root: module that holds the parameters and modules that the graph refers to, or a dict of them by path.
        graph: graph.
        class_name: name of the class.

    Attributes:
        graph: graph.
        code: code that was generated of it.
        meta: what programs note of the module.

    Examples:
        >>> traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()))
        >>> print(traced.code.strip())
        def forward(self, input):
            input_1 = input
            _0 = getattr(self, "0")(input_1);  input_1 = None
            _1 = getattr(self, "1")(_0);  _0 = None
            return _1
    """

    meta: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        # Every instance has a class of its own, which holds the `forward` generated for it.
        base = next(each for each in cls.__mro__ if each.__qualname__.split(".")[-1] != "GraphModuleImpl")

        class GraphModuleImpl(base):  # type: ignore[misc,valid-type]
            pass

        made: GraphModule = super().__new__(GraphModuleImpl)
        return made

    def __init__(self, root: nn.Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, nn.Module):
            self.training = getattr(root, "training", self.training)
            paths = _referenced(graph)
            if isinstance(root, _CodeOnlyModule):
                named = itertools.chain(root.named_children(), root.named_buffers(), root.named_parameters())
                paths = [path for path, _ in named] + paths
            for path in paths:
                _copy_attr(root, self, path)
        elif isinstance(root, dict):
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module") and node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not provided in ``root``!"
                    )
            for path in sorted(_referenced(graph), key=lambda path: path.count(".")):
                _assign_attr(root[path], self, path)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        # A class that is defined inside of a function cannot be found again.
        tracer = graph._tracer_cls
        self._tracer_cls: type[Tracer] | None = tracer if tracer and "<locals>" not in tracer.__qualname__ else None
        self._tracer_extras = graph._tracer_extras or {}
        self.meta = {}
        for hooks in _HOOKS:
            setattr(self, hooks, [])

    @property
    def _boxed_call(self) -> bool:
        return isinstance(self._graph._codegen, _BoxedCodeGen)

    @property
    def graph(self) -> Graph:
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    # Code.

    @property
    def code(self) -> str:
        if "_code" not in self.__dict__:
            raise RuntimeError("Code has not been generated!")
        return str(self._code)

    def recompile(self) -> PythonCode:
        """Generate the code again: after the graph has been changed.

        Examples:
            >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x))
            >>> for node in traced.graph.nodes:
            ...     if node.target is torch.relu:
            ...         node.target = torch.neg
            >>> code = traced.recompile()
            >>> traced(torch.ones(1))
            tensor([-1.])
        """
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec, self._out_spec = codegen.pytree_info.in_spec, codegen.pytree_info.out_spec
        code = self._graph.python_code(root_module="self")
        self._code, self._lineno_map, self._prologue_start = code.src, code._lineno_map, code._prologue_start
        cls: Any = type(self)
        cls.forward = function_of(code.src, code.globals, self._graph._co_fields)
        if "_wrapped_call" not in vars(cls):
            cls._wrapped_call = _WrappedCall(cls, vars(cls).get("__call__"))

        def call_wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self._wrapped_call(self, *args, **kwargs)

        cls.__call__ = call_wrapped
        for module in self.children():
            if isinstance(module, GraphModule):
                module.recompile()
        return code

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: bool = False,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:
        """Print the code with shapes and places in the traced program where they are known, and return it.

        Args:
            print_output: whether it is printed.
            include_stride, include_device, colored: whether strides and devices are shown, and in colors.
            fast_sympy_print: ignored, as there are no symbolic shapes.
            expanded_def: whether each parameter stands on a line of its own.
            additional_meta: entries of the nodes' `meta` to show.

        Examples:
            >>> text = torch.fx.symbolic_trace(lambda x: x + 1).print_readable(print_output=False)
            >>> text.splitlines()[0]
            'class <lambda>(torch.nn.Module):'
        """
        options = {
            "include_stride": include_stride,
            "include_device": include_device,
            "colored": colored,
            "expanded_def": expanded_def,
            "additional_meta": additional_meta,
        }
        text = _readable(self, self._get_name(), options)
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        reminder = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, reminder])

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Write the module as a Python package: its code, and its parameters in files.

        Args:
            folder: folder, which is made if it is not there.
            module_name: name of the class in it.

        Examples:
            >>> traced = torch.fx.symbolic_trace(torch.nn.Linear(2, 3))
            >>> traced.to_folder("linear", "Linear")  # doctest: +SKIP
        """
        folder = Path(folder)
        folder.mkdir(exist_ok=True)
        save(self.state_dict(), folder / "state_dict.pt")
        lines, pickled = [], []
        for name, module in self.named_children():
            shown = repr(module)
            if type(module) not in _WRITTEN_AS_CODE:
                pickled.append(name)
                save(module, folder / f"{name}.pt")
                comment = shown.replace("\r", " ").replace("\n", " ")
                shown = f"torch.load(r'{folder / name}.pt', weights_only=False) # {comment}"
                lines.append(f"setattr(self, '{name}', {shown.split(' # ')[0]}) # {comment}")
            else:
                lines.append(f"setattr(self, '{name}', {shown})")
        for name, buffer in self._buffers.items():
            if buffer is not None:
                lines.append(f"self.register_buffer('{name}', torch.empty({list(buffer.shape)}, dtype={buffer.dtype}))")
        for name, parameter in self._parameters.items():
            if parameter is not None:
                empty = f"torch.empty({list(parameter.shape)}, dtype={parameter.dtype})"
                lines.append(f"setattr(self, '{name}', torch.nn.Parameter({empty}))")
        lines.append(f"self.load_state_dict(torch.load(r'{folder}/state_dict.pt'))")
        imports = "\n".join(map(import_line, custom_builtins))
        head = f"{imports}\n\nfrom {nn.__name__} import *\n\nclass {module_name}(torch.nn.Module):\n    def __init__(self):"
        body = "".join(f"\n        {line}" for line in ["super().__init__()", *lines])
        (folder / "module.py").write_text(f"{head}{body}\n{_addindent(self.code, 4)}\n")
        (folder / "__init__.py").write_text("from .module import *")
        if pickled:
            warnings.warn(
                f"Was not able to save the following children modules as reprs -saved as pickled files instead: {pickled}",
                stacklevel=2,
            )

    # Submodules.

    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Add a module, and return whether the path leads through modules only.

        Args:
            target: path of it. Empty modules are added on the way.
            m: module.
        """
        *path, name = target.split(".")
        module: nn.Module = self
        for part in path:
            if getattr(module, part, None) is None:
                setattr(module, part, nn.Module())
            module = getattr(module, part)
            if not isinstance(module, nn.Module):
                return False
        module.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove a module, and return whether it was there.

        Args:
            target: path of it.
        """
        *path, name = target.split(".")
        module: Any = self
        for part in path:
            module = getattr(module, part, None)
            if not isinstance(module, nn.Module):
                return False
        if not isinstance(getattr(module, name, None), nn.Module):
            return False
        delattr(module, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that the graph does not refer to.

        Examples:
            >>> traced = torch.fx.symbolic_trace(torch.nn.Linear(2, 3))
            >>> traced.add_submodule("extra", torch.nn.ReLU())
            True
            >>> traced.delete_all_unused_submodules()
            >>> hasattr(traced, "extra")
            False
        """
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            path = str(node.target)
            used.update(itertools.accumulate(path.split("."), "{}.{}".format))
            if node.op == "call_module" and _has_attr(self, path):
                used.update(f"{path}.{inner}" for inner, _ in self.get_submodule(path).named_modules() if inner)
        for name in [name for name, _ in self.named_modules() if name not in used]:
            self.delete_submodule(name)

    # Copies and pickles.

    def __reduce__(self) -> Any:
        body = self.__dict__.copy()
        code = self.recompile()
        del body["_graph"]
        body["_graphmodule_cls_name"] = type(self).__name__
        return reduce_graph_module, (body, import_block(code.globals))

    def _deepcopy_init(self) -> Callable[..., None]:
        return GraphModule.__init__

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        bare = _CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        self._deepcopy_init()(made, bare, bare.__dict__["_graph"])
        type(made).__name__ = type(self).__name__
        for hooks in (*_STATE_HOOKS, *_HOOKS):
            if hooks in self.__dict__:
                setattr(made, hooks, copy.deepcopy(self.__dict__[hooks], memo))
        made.meta = copy.deepcopy(self.__dict__.get("meta", {}), memo)
        for name, value in made.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(made, name, value)
        for hook in self.__dict__.get("_deepcopy_hooks", ()):
            hook(made)
        return made

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, self.graph)
        made.meta = self.__dict__.get("meta", {})
        return made

    def _replicate_for_data_parallel(self) -> GraphModule:
        made = copy.copy(self)
        object.__setattr__(made, "_is_replica", True)
        return made

    # Hooks.

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    def _register_replace_node_hook(self, f: Callable[..., Any]) -> None:
        self._hooked("_replace_hooks", f).append(f)

    def _unregister_replace_node_hook(self, f: Callable[..., Any]) -> None:
        self._hooked("_replace_hooks", f).remove(f)

    def _register_create_node_hook(self, f: Callable[[Node], Any]) -> None:
        self._hooked("_create_node_hooks", f).append(f)

    def _unregister_create_node_hook(self, f: Callable[[Node], Any]) -> None:
        self._hooked("_create_node_hooks", f).remove(f)

    def _register_erase_node_hook(self, f: Callable[[Node], Any]) -> None:
        self._hooked("_erase_node_hooks", f).append(f)

    def _unregister_erase_node_hook(self, f: Callable[[Node], Any]) -> None:
        self._hooked("_erase_node_hooks", f).remove(f)

    def _register_deepcopy_hook(self, f: Callable[[GraphModule], Any]) -> None:
        self._hooked("_deepcopy_hooks", f).append(f)

    def _unregister_deepcopy_hook(self, f: Callable[[GraphModule], Any]) -> None:
        self._hooked("_deepcopy_hooks", f).remove(f)

    def _hooked(self, name: str, hook: Any) -> list[Any]:
        if not callable(hook):
            raise AssertionError(f"{name[1:-6].replace('_', ' ').capitalize()} hook must be a callable.")
        hooks: list[Any] = self.__dict__[name]
        return hooks


# Modules whose representation is the code that makes them.
_WRITTEN_AS_CODE = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def _readable(module: GraphModule, name: str, options: dict[str, Any]) -> str:
    """The code of a module and of the graph modules in it, each as a class."""
    code = module.graph.python_code(root_module="self", verbose=True, **options).src.lstrip("\n")
    parts = [_addindent(f"class {name}(torch.nn.Module):\n{code}", 4)]
    for child_name, child in module.named_children():
        if isinstance(child, GraphModule):
            parts.append(_addindent(f"\n{_readable(child, child_name, options)}", 4))
    return "".join(parts)
