"""Names of `xpu`, by the module that PyTorch has them in."""

from __future__ import annotations

import gradiron.xpu as _xpu

globals().update(
    {
        name: getattr(_xpu, name)
        for name in "XPUGraph graph graph_pool_handle is_current_stream_capturing make_graphed_callables".split()
    }
)
