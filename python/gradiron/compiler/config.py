"""Options of the compiler that need not be set: `torch._dynamo.config` has the others."""

from __future__ import annotations

__all__ = ["force_disable_caches", "job_id"]

job_id: str | None = None
force_disable_caches: bool = False
