"""Function transforms that can be nested: derivatives, Jacobians, Hessians and vectorization."""

from ._effects import debug_unwrap, functionalize
from ._forward import jacfwd, jvp, linearize
from ._module import functional_call, replace_all_batch_norm_modules_, stack_module_state
from ._rearrange import rearrange
from ._reverse import grad, grad_and_value, hessian, jacrev, vjp
from ._vmap import vmap

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
