"""The older name of `torch.distributed.run`: programs are told their local rank by an argument, unless --use-env is given."""

from __future__ import annotations

import argparse

from .run import get_args_parser as get_run_parser
from .run import run, run_options

__all__ = ["get_args_parser", "launch", "main", "parse_args", "run"]


def get_args_parser() -> argparse.ArgumentParser:
    """The options of `torch.distributed.run`, and --use-env."""
    parser = get_run_parser()
    parser.add_argument(
        "--use-env",
        "--use_env",
        action="store_true",
        help="programs read LOCAL_RANK; without it, they are given the argument --local-rank",
    )
    return parser


def parse_args(args: list[str] | None) -> argparse.Namespace:
    """Reads the options."""
    return get_args_parser().parse_args(args)


def launch(args: argparse.Namespace) -> None:
    """Runs what options ask for."""
    run(args)


def main(args: list[str] | None = None) -> None:
    """The command `python -m torch.distributed.launch`."""
    run_options(parse_args(args))


if __name__ == "__main__":
    main()
