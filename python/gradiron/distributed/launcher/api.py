"""What a launch is asked for, and the launch of a function or a command."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..elastic.multiprocessing.std import Std
from .agent import Agent

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]


@dataclass
class LaunchConfig:
    """What a launch is asked for: PyTorch's fields."""

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    run_id: str = ""
    role: str = "default"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "static"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 0
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_dir: str | None = None
    redirects: Any = Std.NONE
    tee: Any = Std.NONE
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None
    local_ranks_filter: set[int] | None = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    logs_specs: Any = None

    def __post_init__(self) -> None:
        if self.min_nodes != self.max_nodes:
            raise ValueError(
                f"--nnodes {self.min_nodes}:{self.max_nodes} asks for a number of machines that changes, which gradiron does "
                f"not have: give one number, --nnodes {self.max_nodes}"
            )
        if self.rdzv_backend not in ("static", "c10d", ""):
            raise ValueError(f"--rdzv-backend {self.rdzv_backend} is not there: gradiron has static and c10d")
        if self.nproc_per_node < 1:
            raise ValueError(f"--nproc-per-node must be at least 1, but is {self.nproc_per_node}")
        self.run_id = self.run_id or str(uuid.uuid4().int)


def launch_agent(config: LaunchConfig, entrypoint: Callable[..., Any] | str, args: list[Any]) -> dict[int, Any]:
    """Runs a function or a command in the workers of this machine; what each local rank returns."""
    return Agent(config, entrypoint, args).run()


class elastic_launch:
    """`elastic_launch(config, entrypoint)(*args)` runs `entrypoint` in all workers, and returns results by local rank."""

    def __init__(self, config: LaunchConfig, entrypoint: Callable[..., Any] | str | None) -> None:
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args: Any) -> dict[int, Any]:
        return launch_agent(self._config, self._entrypoint or sys.executable, list(args))


def count_processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
