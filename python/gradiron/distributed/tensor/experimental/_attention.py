"""Attention over sequences that are cut over ranks."""

from ..._refused import _SHARDED, refused

context_parallel = refused("tensor.experimental.context_parallel", _SHARDED)
set_rotate_method = refused("tensor.experimental._attention.set_rotate_method", _SHARDED)
