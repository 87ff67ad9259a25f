"""`gradiron-run`, torchrun's namesake: starts a program in several processes, on one machine or on several."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from .elastic.multiprocessing.api import DefaultLogsSpecs, SignalException
from .elastic.multiprocessing.errors import ChildFailedError, record
from .elastic.multiprocessing.std import Std
from .launcher.api import LaunchConfig, count_processors, launch_agent

__all__ = ["config_from_args", "get_args_parser", "main", "parse_args", "run"]


def _from_environment(name: str, default: Any) -> Any:
    return os.environ.get(f"PET_{name.upper()}", default)


def get_args_parser() -> argparse.ArgumentParser:
    """The launcher's options. The variable PET_NNODES gives --nnodes another default, and so on."""
    parser = argparse.ArgumentParser(
        "gradiron-run", description="Starts a program in several processes. The options are torchrun's."
    )

    def option(name: str, default: Any = None, help: str = "", short: tuple[str, ...] = (), **rest: Any) -> None:
        plain = name.replace("-", "_")
        names = [*short, f"--{name}", *([f"--{plain}"] if plain != name else [])]
        default = _from_environment(plain, default)
        if rest.get("action") == "store_true":
            default = str(default).lower() in ("true", "1", "yes", "y", "t")
        parser.add_argument(*names, default=default, help=help, **rest)

    option("nnodes", "1:1", "how many machines: N, or N:N")
    option("nproc-per-node", "1", "processes on this machine: a number, cpu (as many as processors), gpu, or auto")
    option("rdzv-backend", "static", "how the machines meet: static (they are numbered) or c10d (they are not)")
    option("rdzv-endpoint", "", "host:port where the machines meet")
    option("rdzv-id", "none", "the job's name")
    option("rdzv-conf", "", "more about the meeting, as key=value,…: timeout, join_timeout (seconds), is_host, rank")
    option("standalone", False, "one machine, and any port that is free", action="store_true")
    option("max-restarts", 0, "how often all processes are started again after a failure", type=int)
    option("monitor-interval", 0.1, "seconds between looks at the processes", type=float)
    option("start-method", "spawn", "how a function's processes are started", choices=["spawn", "fork", "forkserver"])
    option("role", "default", "a name for the processes")
    option("module", False, "the program is a module, as in `python -m`", ("-m",), action="store_true")
    option("no-python", False, "the program is a command, and no Python script", action="store_true")
    option("run-path", False, "the program is a script, whatever --no-python says", action="store_true")
    option("log-dir", None, "the folder in which each run makes one for its outputs")
    option("redirects", "0", "which outputs go to files: 1 (out), 2 (err), 3 (both), or by local rank: 0:1,1:3", ("-r",))
    option("tee", "0", "which outputs go to files and to the console", ("-t",))
    option("log-line-prefix-template", None, "before each line of --tee; has ${role_name}, ${local_rank}, ${rank}, ${hostname}")
    option("local-ranks-filter", "", "the local ranks whose outputs come to the console, as 0,1")
    option("node-rank", 0, "the number of this machine (static)", type=int)
    option("master-addr", "127.0.0.1", "the address of machine 0 (static)")
    option("master-port", None, "its port (static); 29500 if there are several machines, else one that is free", type=int)
    option("local-addr", None, "taken for torchrun's sake: the machines meet at the endpoint")
    option("signals-to-handle", "SIGTERM,SIGINT,SIGHUP,SIGQUIT", "the signals that are passed on to the processes")
    option("shutdown-timeout", None, "seconds that processes have to end, before they are killed; 30", type=float)
    parser.add_argument("training_script", help="the program: a script, with -m a module, with --no-python a command")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def parse_args(args: list[str] | None) -> argparse.Namespace:
    """Reads the options."""
    return get_args_parser().parse_args(args)


def _count_processes(text: str) -> int:
    if text.isdecimal():
        return int(text)
    if text not in ("cpu", "gpu", "auto"):
        raise ValueError(f"Unsupported nproc_per_node value: {text}")
    if text != "cpu":
        from .. import cuda

        if cuda.is_available():
            return cuda.device_count()
        if text == "gpu":
            raise ValueError("Cuda is not available.")
    return count_processors()


def _count_nodes(text: str) -> tuple[int, int]:
    numbers = text.split(":")
    if len(numbers) > 2 or not all(map(str.isdecimal, numbers)):
        raise RuntimeError(f'nnodes={text} is not in "MIN:MAX" format')
    return int(numbers[0]), int(numbers[-1])


def _read_conf(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",")] if text else []
    if not all(key and equals and value for key, equals, value in pairs):
        raise ValueError("The rendezvous configuration string must be in format <key1>=<value1>,...,<keyN>=<valueN>.")
    return {key.strip(): value.strip() for key, _, value in pairs}


def _read_ranks(text: str) -> set[int] | None:
    try:
        return {int(rank) for rank in text.split(",")} if text else None
    except ValueError:
        raise ValueError(
            "--local_ranks_filter must be a comma-separated list of integers e.g. --local_ranks_filter=0,1,2"
        ) from None


def _endpoint(args: argparse.Namespace, nodes: int) -> str:
    """Where the machines meet; empty: at a port of this machine that is free."""
    if args.standalone:
        return ""
    if args.rdzv_endpoint or args.rdzv_backend != "static":
        return str(args.rdzv_endpoint)
    if nodes == 1 and args.master_port is None:
        return ""
    host = args.master_addr
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return f"{host}:{29500 if args.master_port is None else args.master_port}"


def _command(args: argparse.Namespace) -> tuple[str, list[str]]:
    """The command that a worker runs: gradiron's own launcher of programs gives it `torch`."""
    script, rest = args.training_script, list(args.training_script_args)
    if args.no_python and not args.run_path:
        if args.module:
            raise ValueError("Don't use both the '--no_python' flag and the '--module' flag at the same time.")
        return script, rest
    if not getattr(args, "use_env", True):
        rest.insert(0, "--local-rank=${local_rank}")
    head = ["-u", "-m", "gradiron", *(["-m"] if args.module else [])]
    return os.getenv("PYTHON_EXEC", sys.executable), [*head, script, *rest]


def config_from_args(args: argparse.Namespace) -> tuple[LaunchConfig, str, list[str]]:
    """The launch that options ask for, the command, and its arguments."""
    low, high = (1, 1) if args.standalone else _count_nodes(str(args.nnodes))
    confs: dict[str, Any] = _read_conf(args.rdzv_conf)
    if args.rdzv_backend == "static":
        confs.setdefault("rank", args.node_rank)
    config = LaunchConfig(
        min_nodes=low,
        max_nodes=high,
        nproc_per_node=_count_processes(str(args.nproc_per_node)),
        logs_specs=DefaultLogsSpecs(
            log_dir=args.log_dir,
            redirects=Std.from_str(args.redirects),
            tee=Std.from_str(args.tee),
            local_ranks_filter=_read_ranks(args.local_ranks_filter),
        ),
        run_id="" if args.standalone else args.rdzv_id,
        role=args.role,
        rdzv_endpoint=_endpoint(args, high),
        rdzv_backend="static" if args.standalone else args.rdzv_backend,
        rdzv_configs=confs,
        rdzv_timeout=int(confs.get("timeout", -1)),
        max_restarts=args.max_restarts,
        monitor_interval=args.monitor_interval,
        start_method=args.start_method,
        log_line_prefix_template=args.log_line_prefix_template,
        local_addr=args.local_addr,
        signals_to_handle=args.signals_to_handle,
        shutdown_timeout=args.shutdown_timeout,
        name=args.training_script,
    )
    return config, *_command(args)


def run(args: argparse.Namespace) -> None:
    """Runs what options ask for."""
    config, command, rest = config_from_args(args)
    launch_agent(config, command, rest)


def main(args: list[str] | None = None) -> None:
    """The command `gradiron-run`."""
    run_options(parse_args(args))


def run_options(options: argparse.Namespace) -> None:
    """Runs what options ask for; what goes wrong is told without the launcher's own traceback."""
    try:
        record(run)(options)
    except ChildFailedError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    except (ValueError, RuntimeError, OSError, SignalException) as error:
        sys.exit(f"gradiron-run: {error}")


if __name__ == "__main__":
    main()
