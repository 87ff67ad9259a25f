"""The older name of `torch.distributed.run`."""

from .run import get_args_parser, main, parse_args, run

__all__ = ["get_args_parser", "main", "parse_args", "run"]

if __name__ == "__main__":
    main()
