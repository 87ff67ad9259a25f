"""Models from the internet. Nothing is fetched here: every call says so."""

from __future__ import annotations

import os
import re
from typing import Any, NoReturn
from urllib.parse import urlparse

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # The hash in a file's name: `resnet18-f37072fd.pth`.
_dir: str | None = None


def _get_torch_home() -> str:
    """The folder of everything that is kept from the internet."""
    home = os.environ.get("TORCH_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch")
    return os.path.expanduser(home)


def get_dir() -> str:
    """The folder that downloads would be kept in."""
    return _dir or os.path.join(_get_torch_home(), "hub")


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


def load_state_dict_from_url(
    url: str,
    model_dir: str | os.PathLike[str] | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """What `load` reads from the file of that name, if it has been fetched into the folder of checkpoints."""
    path = os.path.join(model_dir or os.path.join(get_dir(), "checkpoints"), file_name or os.path.basename(urlparse(url).path))
    if not os.path.exists(path):
        raise NotImplementedError(
            f"torch.hub.load_state_dict_from_url: gradiron fetches nothing; {url} can be put to {path} by hand"
        )
    from .serialization import load

    return load(path, map_location=map_location, weights_only=weights_only)


def __getattr__(name: str) -> Any:
    if name != "tqdm":
        raise AttributeError(f"module 'gradiron.hub' has no attribute '{name}'")
    import importlib

    # Not that of `tqdm.auto`, which asks for an iterator once more: a loader would draw another order.
    return importlib.import_module("tqdm").tqdm


def download_url_to_file(url: str, dst: str, *args: Any, **options: Any) -> Any:
    _refuse("download_url_to_file")
