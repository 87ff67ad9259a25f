"""Models from the internet. Nothing is fetched here: every call says so."""

from __future__ import annotations

import os
from typing import Any, NoReturn

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

_dir: str | None = None


def get_dir() -> str:
    """The folder that downloads would be kept in."""
    home = os.environ.get("TORCH_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch")
    return _dir or os.path.join(os.path.expanduser(home), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    global _dir
    _dir = os.path.expanduser(d)


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(f"torch.hub.{name}: gradiron fetches nothing; torch.load reads a file that you have fetched")


def load(repo_or_dir: Any, model: str, *args: Any, **options: Any) -> Any:
    _refuse("load")


def list(github: str, *args: Any, **options: Any) -> Any:
    _refuse("list")


def help(github: str, model: str, *args: Any, **options: Any) -> Any:
    _refuse("help")


def load_state_dict_from_url(url: str, *args: Any, **options: Any) -> Any:
    _refuse("load_state_dict_from_url")


def download_url_to_file(url: str, dst: str, *args: Any, **options: Any) -> Any:
    _refuse("download_url_to_file")
