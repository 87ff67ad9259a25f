"""What runs passes in order."""

from . import pass_base, pass_manager

__all__ = ["pass_base", "pass_manager"]
