"""Traces: a module or function is called with proxies, and what it does with them becomes a graph."""

from __future__ import annotations

import copy
import functools
import inspect
import math
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from types import FunctionType, ModuleType
from typing import Any

from .._core import Tensor
from .._functions.settings import _assert
from ..nn import Module, Parameter, Sequential
from ..utils import _pytree as pytree
from . import _patching
from ._compatibility import compatibility
from ._names import is_of_library
from ._patching import _maybe_revert_all_patches as _maybe_revert_all_patches
from ._wrap import wrap
from .graph import Graph, _PyTreeCodeGen, _PyTreeInfo
from .node import Argument, base_types
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase

__all__ = ["PH", "PHBase", "PHWithMeta", "ProxyableClassMeta", "Tracer", "is_fx_tracing"]


@wrap
def _assert_is_none(value: Any, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


_VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS

_orig_module_call = Module.__call__
_orig_module_getattr = Module.__getattr__
_proxyable_classes: dict[type, None] = {}


class _Going(threading.local):
    flag = False


_going = _Going()


@contextmanager
def _tracing() -> Iterator[None]:
    before, _going.flag = _going.flag, True
    try:
        yield
    finally:
        _going.flag = before


def is_fx_tracing() -> bool:
    """Return whether a trace goes on in this thread."""
    return _going.flag


is_fx_symbolic_tracing = is_fx_tracing


@compatibility(is_backward_compatible=True)
class ProxyableClassMeta(type):
    """Metaclass of classes whose construction from proxies becomes a node.

    Args:
        name, bases, attrs: as for `type`.

    Examples:
        >>> class Pair(metaclass=torch.fx.ProxyableClassMeta):
        ...     def __init__(self, left, right):
        ...         self.left, self.right = left, right
        >>> traced = torch.fx.symbolic_trace(lambda x: Pair(x, x + 1).right)
        >>> traced(torch.zeros(1))
        tensor([1.])
    """

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        proxy = _patching.find_proxy(args, kwargs) if is_fx_tracing() else None
        if proxy is not None:
            return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        made = cls.__new__(cls)  # type: ignore[call-overload]
        cls.__init__(made, *args, **kwargs)  # type: ignore[misc]
        return made


@compatibility(is_backward_compatible=False)
class PHBase:
    """Marks an input in `concrete_args` that stays an input."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


@compatibility(is_backward_compatible=False)
class PHWithMeta(PHBase):
    """Such a mark whose attributes the input's node gets.

    Args:
        ph_key: what distinguishes the input.
    """

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


def _transfer_attrs(fr: Any, to: Any) -> None:
    for name in dir(fr):
        value = getattr(fr, name)
        if not callable(value) and not name.startswith("__") and not hasattr(to, name):
            setattr(to, name, value)


def _patch_function(fn: FunctionType, count: int) -> FunctionType:
    """The function with all its parameters positional, `*args` and `**kwargs` among them: each takes one proxy."""
    code = fn.__code__
    code = code.replace(co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=code.co_flags & ~_VARIADIC)
    return FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


@compatibility(is_backward_compatible=True)
class Tracer(TracerBase):
    """Traces modules and functions. Subclasses decide what is recorded, and how.

    Args:
        autowrap_modules: modules whose functions are recorded when they are called on proxies. Default: `math` alone
        autowrap_functions: further functions that are. Default: none
        param_shapes_constant: whether the shapes of parameters are constants of the trace, and may decide conditions. Default:
            `False`

    Examples:
        >>> class Flat(torch.fx.Tracer):
        ...     def is_leaf_module(self, m, module_qualified_name):
        ...         return False
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
        >>> [node.op for node in Flat().trace(model).nodes]
        ['placeholder', 'get_attr', 'get_attr', 'call_function', 'call_function', 'output']
    """

    root: Module
    tensor_attrs: dict[Any, str]
    _qualname_counter: dict[str, int]

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        named = chain.from_iterable(vars(module).items() for module in autowrap_modules)
        self._autowrap_function_ids = {id(value) for name, value in named if not name.startswith("_") and callable(value)}
        self._autowrap_function_ids.update(map(id, autowrap_functions))
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope = {}
        self._qualname_counter = {}

    @classmethod
    def _graph_module_deserialization_tracer(cls, root: Module) -> Tracer:
        return cls()

    def get_fresh_qualname(self, prefix: str) -> str:
        """Return the name of an attribute that the root does not have.

        Args:
            prefix: what it begins with.
        """
        number = self._qualname_counter.get(prefix, 0) if hasattr(self.root, f"{prefix}0") else 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        self._qualname_counter[prefix] = number
        return f"{prefix}{number}"

    # Arguments.

    def create_arg(self, a: Any) -> Argument:
        """Return an argument as a node holds it: with nodes for proxies, parameters, modules and other tensors.

        Args:
            a: argument.
        """
        if isinstance(a, Parameter):
            for name, parameter in self.root.named_parameters():
                if a is parameter:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        held: Any = (
            self.root.named_buffers() if isinstance(a, Tensor) else self.root.named_modules() if isinstance(a, Module) else ()
        )
        for name, value in held:
            if a is value:
                return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(map(self.create_arg, a)), {})
        if isinstance(a, Tensor):
            path = self.tensor_attrs.get(a)
            if not path:
                path = self.tensor_attrs[a] = self.get_fresh_qualname("_tensor_constant")
                setattr(self.root, path, a)
            return self.create_node("get_attr", path, (), {})
        if isinstance(a, pytree.TreeSpec) or type(a) in _proxyable_classes:
            prefix = "_tree_spec_constant" if isinstance(a, pytree.TreeSpec) else f"_{type(a).__name__}_constant_"
            path = self.get_fresh_qualname(prefix)
            setattr(self.root, path, a)
            return self.create_node("get_attr", path, (), {})
        return super().create_arg(a)

    # Modules.

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Return whether a module becomes one node rather than being traced through: those of `torch.nn` but `Sequential` do.

        Args:
            m: module.
            module_qualified_name: path of it.
        """
        library = is_of_library(m.__module__) and m.__module__.split(".")[1:2] == ["nn"]
        return library and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """Return the path of a module below the root.

        Args:
            mod: module.
        """
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
        else:
            path = next((name for name, module in self.root.named_modules() if module is mod), None)
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a call of a module: a proxy of its node, or what tracing through it gives.

        Args:
            m: module.
            forward: function that calls it.
            args, kwargs: arguments.
        """
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            calls = self.num_calls.get(path, 0)
            self.num_calls[path] = calls + 1
            key = f"{scope.module_path}@{calls}" if calls else scope.module_path
            self.module_stack[key] = (path, scope.module_type)
            leaf = self.is_leaf_module(m, path)
            made = self.create_proxy("call_module", path, args, kwargs) if leaf else forward(*args, **kwargs)
            self.module_stack.popitem(last=True)
        return made

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """Return what a traced module sees for one of its attributes: a proxy for a parameter.

        Args:
            attr: name of the attribute.
            attr_val: value of it.
            parameter_proxy_cache: proxies made so far, by path.
        """
        if isinstance(attr_val, Parameter):
            held: Any = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            held = self.root.named_buffers()
        else:
            return attr_val
        path = next((name for name, value in held if value is attr_val), None)
        if path is None:
            return attr_val
        if path not in parameter_proxy_cache:
            options: dict[str, Any] = {}
            if self.param_shapes_constant and "proxy_factory_fn" in inspect.signature(self.create_proxy).parameters:
                options["proxy_factory_fn"] = lambda node: ParameterProxy(self, node, path, attr_val)
            parameter_proxy_cache[path] = self.create_proxy("get_attr", path, (), {}, **options)
        return parameter_proxy_cache[path]

    # The trace.

    def create_args_for_root(
        self, root_fn: Any, is_module: bool, concrete_args: dict[str, Any] | tuple[Any, ...] | None = None
    ) -> tuple[Any, list[Any]]:
        """Return the function to trace, and a proxy for each of its parameters.

        Args:
            root_fn: function.
            is_module: whether it is a method of the root.
            concrete_args: inputs that are not proxies but have these values.
        """
        inner = inspect.unwrap(root_fn)
        code = inner.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames)
        if is_module and count == 0:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        args: list[Any] = [self.root] if is_module else []
        only_star = bool(code.co_flags & _VARIADIC) and count == 1
        if isinstance(concrete_args, tuple) and concrete_args and only_star:
            for number, value in enumerate(concrete_args):
                args.append(self.create_proxy("placeholder", f"input_{number}", (), {}))
                if isinstance(value, PHBase) and value is not PH:
                    _transfer_attrs(fr=value, to=args[-1].node)
            return root_fn, args
        parameters = names[1 if is_module else 0 : count]
        if isinstance(concrete_args, tuple):
            if len(parameters) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(parameters)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(parameters, concrete_args, strict=True))
        signature = inspect.signature(inner)
        args += [self._proxy_placeholder(name, concrete_args, signature, inner) for name in parameters]
        if code.co_kwonlyargcount > 0 or code.co_flags & _VARIADIC:
            rest = iter(names[count:])
            for flag, stars in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")):
                if code.co_flags & flag:
                    args.append(self._proxy_placeholder(stars + next(rest), concrete_args, signature, inner))
            root_fn = _patch_function(root_fn, len(args))
        return self._flattened(root_fn, args, names[:count])

    def _flattened(self, root_fn: Any, args: list[Any], names: list[str]) -> tuple[Any, list[Any]]:
        """The function of the leaves of its inputs, where some of these are nested."""
        leaves, in_spec = pytree.tree_flatten(tuple(args))
        if len(leaves) == len(args) and all(child.is_leaf() for child in in_spec.children()):
            return root_fn, args
        codegen = self.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(names, in_spec, None))

        def of_leaves(*leaves: Any) -> Any:
            outs, out_spec = pytree.tree_flatten(root_fn(*pytree.tree_unflatten(list(leaves), in_spec)))
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return outs

        return of_leaves, leaves

    def _proxy_placeholder(self, name: str, concrete_args: Any, signature: inspect.Signature, inner: Any) -> Any:
        parameter = None if name.startswith("*") else signature.parameters[name]
        default = () if parameter is None or parameter.default is inspect.Parameter.empty else (parameter.default,)
        if concrete_args is None or name not in concrete_args:
            # gradiron's own modules say what they take for a reader of the source: it is no annotation of a graph.
            kind = None if is_of_library(inner.__module__) else inner.__annotations__.get(name)
            return self.create_proxy("placeholder", name, default, {}, type_expr=kind)
        count = 0

        def place(value: Any) -> Any:
            nonlocal count
            count += 1
            made = self.create_proxy("placeholder", f"{name}_{count}", default, {})
            if isinstance(value, PHBase):
                if value is not PH:
                    _transfer_attrs(fr=value, to=made.node)
                return made
            if type(value) is bool or (type(value) in base_types and not isinstance(value, Tensor)):
                message = f"{name} has been specialized to have value {value} but got another value"
                self.create_proxy("call_function", _assert, (made == value, message), {})
            elif value is None:
                message = f"{name} has been specialized to have value None but got another value"
                self.create_proxy("call_function", _assert_is_none, (made, message), {})
            else:
                warnings.warn(
                    f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the "
                    "user to make sure that your inputs match the inputs you specialized the function with.",
                    stacklevel=2,
                )
            return value

        return pytree.tree_map(place, concrete_args[name])

    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """Return the graph of a module or function.

        Args:
            root: module or function.
            concrete_args: inputs that are not proxies but have these values.
        """
        with _tracing():
            if isinstance(root, Module):
                self.root = root
                if not hasattr(type(root), self.traced_func_name):
                    raise AssertionError(f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}")
                fn: Any = getattr(type(root), self.traced_func_name)
                self.root_module_name = root._get_name()
                self.submodule_paths = {module: name for name, module in root.named_modules()}
            else:
                self.root, fn = Module(), root
            self.graph = Graph(tracer_cls=type(self))
            if not isinstance(fn, FunctionType):
                raise AssertionError(f"Expected FunctionType, got {type(fn)}")
            code = fn.__code__
            self.graph._co_fields = {
                "co_name": code.co_name,
                "co_filename": code.co_filename,
                "co_firstlineno": code.co_firstlineno,
            }
            self.tensor_attrs = {
                value: ".".join(filter(None, (path, name)))
                for path, module in self.root.named_modules()
                for name, value in vars(module).items()
                if isinstance(value, Tensor)
            }
            names = fn.__globals__
            fn, args = self.create_args_for_root(fn, isinstance(root, Module), concrete_args)
            self._record(fn, args, names)
            self.submodule_paths = None
        return self.graph

    def _record(self, fn: Any, args: list[Any], names: dict[str, Any]) -> None:
        """Calls the function on proxies, with what it calls replaced by what records."""
        proxies: dict[str, Proxy] = {}

        @functools.wraps(_orig_module_getattr)
        def read(module: Module, name: str) -> Any:
            return self.getattr(name, _orig_module_getattr(module, name), proxies)

        @functools.wraps(_orig_module_call)
        def call(module: Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return _orig_module_call(module, *args, **kwargs)

            _patching.autowrap(patcher, getattr(module.forward, "__globals__", {}), self._autowrap_function_ids)
            return self.call_module(module, forward, args, kwargs)

        with _patching.Patcher() as patcher:
            patcher.patch_method(Module, "__getattr__", read, deduplicate=False)
            patcher.patch_method(Module, "__call__", call, deduplicate=False)
            _patching.patch_functions(patcher)
            for searched in (names, *map(vars, self._autowrap_search)):
                _patching.autowrap(patcher, searched, self._autowrap_function_ids)
            result = self.create_arg(fn(*args))
            inner = inspect.unwrap(fn)
            kind = None if is_of_library(inner.__module__) else inspect.get_annotations(inner).get("return")
            self.create_node("output", "output", (result,), {}, type_expr=kind)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        made = type(self).__new__(type(self))
        for key, value in vars(self).items():
            # Modules of Python's cannot be copied.
            vars(made)[key] = copy.copy(value) if key == "_autowrap_search" else copy.deepcopy(value, memo)
        return made
