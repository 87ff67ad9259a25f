"""Programs as graphs of calls: traced, read, changed, and run as code that is generated of them."""

from . import (
    annotate,
    config,
    experimental,
    graph,
    graph_module,
    immutable_collections,
    interpreter,
    node,
    operator_schemas,
    passes,
    proxy,
    subgraph_rewriter,
    tensor_type,
    traceback,
)
from ._symbolic_trace import symbolic_trace
from ._tracer import PH, ProxyableClassMeta, Tracer
from ._wrap import wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = [
    "PH",
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "Transformer",
    "annotate",
    "config",
    "experimental",
    "graph",
    "graph_module",
    "has_side_effect",
    "immutable_collections",
    "interpreter",
    "map_arg",
    "node",
    "operator_schemas",
    "passes",
    "proxy",
    "replace_pattern",
    "subgraph_rewriter",
    "symbolic_trace",
    "tensor_type",
    "traceback",
    "wrap",
]
