"""Functions of functions: derivatives and batches, in any nesting."""

from ._forward import jacfwd, jvp, linearize
from ._module import functional_call, stack_module_state
from ._reverse import grad, grad_and_value, hessian, jacrev, vjp
from ._vmap import vmap

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]
