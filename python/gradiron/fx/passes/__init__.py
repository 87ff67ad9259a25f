"""Passes over graphs."""

from . import dialect, graph_drawer, infra, param_fetch, shape_prop, split_module, utils

__all__ = ["dialect", "graph_drawer", "infra", "param_fetch", "shape_prop", "split_module", "utils"]
