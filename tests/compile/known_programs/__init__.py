"""Well-known small programs, as people write them: each trains with its step compiled, or with its model compiled."""

from .registry import PROGRAMS, Program

from . import control, generative, graphs_and_sets, language, methods, pictures, science  # noqa: F401  # isort: skip

__all__ = ["PROGRAMS", "Program"]
