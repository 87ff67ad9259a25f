"""Where the parts of a tensor lie."""

from .._refused import _SHARDED, refused

compute_local_shape_and_global_offset = refused("tensor._utils.compute_local_shape_and_global_offset", _SHARDED)
