"""`gradiron-run`, torchrun's namesake: starts a program in several processes, on one machine or on several."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from .elastic.multiprocessing.errors import ChildFailedError
from .elastic.multiprocessing.std import Std
from .launcher.agent import SignalException
from .launcher.api import LaunchConfig, count_processors, launch_agent

__all__ = ["config_from_args", "get_args_parser", "main", "parse_args", "run"]


def _from_environment(name: str, default: Any) -> Any:
    return os.environ.get(f"PET_{name.upper()}", default)


def get_args_parser() -> argparse.ArgumentParser:
    """The launcher's options."""
    parser = argparse.ArgumentParser("gradiron-run", description="Starts a program in several processes (torchrun's options).")

    def option(name: str, default: Any = None, help: str = "", short: tuple[str, ...] = (), **rest: Any) -> None:
        plain = name.replace("-", "_")
        names = [f"--{name}", *([f"--{plain}"] if plain != name else []), *short]
        default = _from_environment(plain, default)
        if rest.get("action") == "store_true":
            default = default in (True, "1", "true", "True")
        parser.add_argument(*names, default=default, help=help, **rest)

    option("nnodes", "1:1", "machines, as N or N:N")
    option("nproc-per-node", "1", "processes on each machine: a number, cpu, gpu or auto")
    option("rdzv-backend", "static", "how machines meet: static or c10d")
    option("rdzv-endpoint", "", "host:port where they meet")
    option("rdzv-id", "none", "the job's name")
    option("rdzv-conf", "", "more options, as key=value,…")
    option("standalone", False, "one machine, with a port that is free", action="store_true")
    option("max-restarts", 0, "how often all processes are started again after a failure", type=int)
    option("monitor-interval", 0.1, "seconds between looks at the processes", type=float)
    option("start-method", "spawn", "for functions", choices=["spawn", "fork", "forkserver"])
    option("role", "default", "a name for the processes")
    option("module", False, "runs a module, as python -m does", ("-m",), action="store_true")
    option("no-python", False, "runs a command that is no Python program", action="store_true")
    option("run-path", False, "runs a script by runpy", action="store_true")
    option("log-dir", None, "the folder for outputs")
    option("redirects", "0", "outputs that go to files: 1 out, 2 err, 3 both, or for each local rank 0:1,1:3", ("-r",))
    option("tee", "0", "outputs that go to files and to the console", ("-t",))
    option("local-ranks-filter", "", "local ranks whose output is shown, as 0,1")
    option("signals-to-handle", "SIGTERM,SIGINT,SIGHUP,SIGQUIT", "signals that end the processes first")
    option("node-rank", 0, "the number of this machine", type=int)
    option("master-addr", "127.0.0.1", "the address of machine 0")
    option("master-port", None, "its port; for one machine one that is free, for several 29500", type=int)
    option("local-addr", None, "this machine's address")
    parser.add_argument("training_script", help="the program, or the module with -m")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def parse_args(args: list[str] | None) -> argparse.Namespace:
    """Reads the options."""
    return get_args_parser().parse_args(args)


def _count_processes(text: str) -> int:
    if text.isdigit():
        return int(text)
    if text in ("cpu", "auto"):
        return count_processors()
    if text == "gpu":
        raise ValueError("--nproc-per-node gpu: gradiron uses one GPU; give a number of processes")
    raise ValueError(f"Unsupported nproc_per_node value: {text}")


def _count_nodes(text: str) -> tuple[int, int]:
    low, _, high = text.partition(":")
    try:
        return int(low), int(high or low)
    except ValueError:
        raise RuntimeError(f'nnodes={text} is not in "MIN:MAX" format') from None


def config_from_args(args: argparse.Namespace) -> tuple[LaunchConfig, Any, list[str]]:
    """The launch that options ask for, the command, and its arguments."""
    low, high = _count_nodes(str(args.nnodes))
    confs = dict(pair.split("=", 1) for pair in args.rdzv_conf.split(",") if "=" in pair)
    endpoint = args.rdzv_endpoint
    if args.standalone:
        low, high, endpoint = 1, 1, ""
    elif not endpoint and (high > 1 or args.master_port is not None):
        endpoint = f"{args.master_addr}:{29500 if args.master_port is None else args.master_port}"
    if args.rdzv_backend == "static":
        confs["rank"] = str(args.node_rank)
    filtered = {int(rank) for rank in args.local_ranks_filter.split(",")} if args.local_ranks_filter else None
    config = LaunchConfig(
        min_nodes=low,
        max_nodes=high,
        nproc_per_node=_count_processes(str(args.nproc_per_node)),
        run_id="" if args.rdzv_id == "none" else args.rdzv_id,
        role=args.role,
        rdzv_endpoint=endpoint,
        rdzv_backend=args.rdzv_backend,
        rdzv_configs=confs,
        rdzv_timeout=int(confs.get("timeout", -1)),
        max_restarts=args.max_restarts,
        monitor_interval=args.monitor_interval,
        start_method=args.start_method,
        log_dir=args.log_dir,
        redirects=Std.from_str(args.redirects),
        tee=Std.from_str(args.tee),
        local_addr=args.local_addr,
        local_ranks_filter=filtered,
        signals_to_handle=args.signals_to_handle,
    )
    rest = list(args.training_script_args)
    if args.no_python:
        if args.module:
            raise ValueError("Don't use both the '--no_python' flag and the '--module' flag at the same time.")
        return config, args.training_script, rest
    # The launcher of gradiron gives the program `torch`.
    head = ["-u", "-m", "gradiron", *(["-m"] if args.module else []), args.training_script]
    return config, os.getenv("PYTHON_EXEC", sys.executable), [*head, *rest]


def run(args: argparse.Namespace) -> None:
    """Runs what options ask for."""
    config, command, rest = config_from_args(args)
    launch_agent(config, command, rest)


def main(args: list[str] | None = None) -> None:
    """The command `gradiron-run`."""
    try:
        run(parse_args(args))
    except ChildFailedError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    except SignalException as error:
        print(f"gradiron-run: {error}", file=sys.stderr)
        sys.exit(128 + error.sigval)
    except (ValueError, OSError) as error:
        sys.exit(f"gradiron-run: {error}")


if __name__ == "__main__":
    main()
