"""What packages ask of tracing without tracing."""

from . import proxy_tensor

__all__ = ["proxy_tensor"]
