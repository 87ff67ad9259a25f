"""Traces of another kind, and passes that PyTorch calls experimental."""

from . import const_fold, optimization, proxy_tensor, rewriter

__all__ = ["const_fold", "optimization", "proxy_tensor", "rewriter"]
