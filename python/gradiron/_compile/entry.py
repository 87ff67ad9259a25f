"""`torch.compile` itself: its options, and what it gives back."""

from __future__ import annotations

from typing import Any

from ..nn import Module
from .errors import InvalidBackend
from .function import CompiledFunction, as_function
from .module import OptimizedModule
from .settings import BACKENDS, MODES, default_backend

__all__ = ["check_options", "compile_with"]

# Options of PyTorch's compiler that are accepted, and the types of their values.
_OPTIONS: dict[str, type] = {
    **dict.fromkeys(
        """
        triton.cudagraphs triton.cudagraph_trees triton.unique_kernel_names max_autotune max_autotune_gemm
        max_autotune_pointwise coordinate_descent_tuning epilogue_fusion prologue_fusion shape_padding fallback_random
        trace.enabled trace.graph_diagram trace.save_real_tensors fx_graph_cache freezing cpp_wrapper debug size_asserts dce
        inplace_buffers allow_buffer_reuse benchmark_kernel aggressive_fusion
        """.split(),
        bool,
    ),
    "max_autotune_gemm_backends": str,
    "compile_threads": int,
    "cpp.threads": int,
    "cpp.simdlen": object,
    "guard_filter_fn": object,
}


def check_options(fullgraph: Any, dynamic: Any, backend: Any, mode: Any, options: Any) -> str:
    """Return the name of the backend, or refuse the options as PyTorch does."""
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if dynamic not in (None, True, False):
        raise AssertionError(f"Expected enable to be a bool, got {type(dynamic)}")
    backend = default_backend.name if backend is None else backend
    if callable(backend):
        raise NotImplementedError("torch.compile: gradiron makes no FX graphs, so a backend cannot be a function")
    if backend not in BACKENDS:
        raise InvalidBackend(backend)
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    for option, value in (options or {}).items():
        kind = _OPTIONS.get(option.replace("-", "_"))
        if kind is None:
            raise RuntimeError(f"Unexpected optimization option {option}, known options are {sorted(_OPTIONS)}")
        if not isinstance(value, kind):
            words = f"got {type(value).__name__} should be {kind.__name__}"
            raise RuntimeError(f"Unexpected type of attr {option}, {words}")
    return str(backend)


def compile_with(
    model: Any,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: Any = None,
    name: str | None = None,
    disable: bool = False,
    limit: int | None = None,
) -> Any:
    """Do what `torch.compile` does.

    Args:
        model: function or module, or `None` for a decorator.
        fullgraph, dynamic, backend, mode, options, name, disable: as those of `torch.compile`.
        limit: how many captures are kept.
    """
    chosen = check_options(fullgraph, dynamic, backend, mode, options)
    if model is None:
        return lambda given: compile_with(given, fullgraph, dynamic, backend, mode, options, name, disable, limit)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if disable or chosen == "eager":
        return model
    fuses = chosen != "aot_eager"
    if isinstance(model, OptimizedModule):
        model = model._orig_mod
    if isinstance(model, Module):
        return OptimizedModule(model, fullgraph=fullgraph, limit=limit, name=name, fuses=fuses)
    model = getattr(model, "_torchdynamo_orig_callable", model)
    compiled = CompiledFunction(model, fullgraph, limit, name, fuses)
    return compiled if isinstance(model, type) else as_function(compiled)
