"""What a launch is asked for, and the launch of a function or a command."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..elastic.multiprocessing.api import DefaultLogsSpecs
from .agent import Agent

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]


@dataclass
class LaunchConfig:
    """What a launch is asked for: PyTorch's fields."""

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: DefaultLogsSpecs | None = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "static"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    local_addr: str | None = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    shutdown_timeout: float | None = None
    name: str | None = None  # Of the program, in the table of failures.

    def __post_init__(self) -> None:
        if self.min_nodes != self.max_nodes:
            raise ValueError(
                f"--nnodes {self.min_nodes}:{self.max_nodes} asks for a number of machines that changes, which gradiron does "
                f"not have: give one number, --nnodes {self.max_nodes}"
            )
        if self.max_nodes < 1:
            raise ValueError(f"--nnodes must be at least 1, but is {self.max_nodes}")
        if self.rdzv_backend not in ("static", "c10d"):
            raise ValueError(f"--rdzv-backend {self.rdzv_backend}: gradiron has static and c10d")
        if self.nproc_per_node < 1:
            raise ValueError(f"--nproc-per-node must be at least 1, but is {self.nproc_per_node}")
        if self.monitor_interval <= 0:
            raise ValueError(f"--monitor-interval must be above 0, but is {self.monitor_interval}")
        if self.logs_specs is None:
            self.logs_specs = DefaultLogsSpecs()
        if self.run_id in ("", "none"):
            # Launchers of several machines agree on one when they meet.
            self.run_id = str(uuid.uuid4()) if self.max_nodes == 1 else "none"


def launch_agent(config: LaunchConfig, entrypoint: Callable[..., Any] | str | None, args: list[Any]) -> dict[int, Any]:
    """Runs a function or a command in the workers of this machine; what each rank returns."""
    return Agent(config, entrypoint or sys.executable, args).run()


class elastic_launch:
    """`elastic_launch(config, entrypoint)(*args)` runs `entrypoint` in all workers of this machine; its results by rank."""

    def __init__(self, config: LaunchConfig, entrypoint: Callable[..., Any] | str | None) -> None:
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args: Any) -> dict[int, Any]:
        return launch_agent(self._config, self._entrypoint, list(args))


def count_processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
