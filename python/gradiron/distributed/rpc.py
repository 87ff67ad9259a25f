"""Calls of other processes' functions: not there, as in a PyTorch that was built without them."""

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether there are remote calls: no."""
    return False
