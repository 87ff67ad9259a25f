"""What optimizers do with sparse gradients."""

from __future__ import annotations

from collections.abc import Sequence

import gradiron as torch

from .._core import Tensor


def sparse_places(grads: Sequence[Tensor | None]) -> list[int]:
    """Return the positions of sparse tensors in a list."""
    # Comparing the classes is faster than asking each tensor.
    if {*map(type, grads)} <= {Tensor}:
        return []
    return [i for i, grad in enumerate(grads) if grad is not None and grad.is_sparse]


def values_at(dense: Tensor, grad: Tensor) -> Tensor:
    """Return the elements of `dense` of which a coalesced `grad` has values."""
    return dense.sparse_mask(grad)._values()


def add_at(dense: Tensor, grad: Tensor, values: Tensor, alpha: float = 1) -> None:
    """Add `alpha` times these values to the elements of which a coalesced `grad` has values."""
    change = torch.sparse_coo_tensor(grad._indices(), values, grad.shape, is_coalesced=True, check_invariants=False)
    dense.add_(change, alpha=alpha)
