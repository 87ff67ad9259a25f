"""Names of `torch.hub`. gradiron downloads nothing: files have to be fetched by hand."""

from __future__ import annotations

import os
import re
from typing import Any, NoReturn
from urllib.parse import urlparse

from . import serialization
from ._as_torch.refused import refuse

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # The hash in a file's name: `resnet18-f37072fd.pth`.
_dir: str | None = None


def _get_torch_home() -> str:
    """The folder of everything that is kept from the internet."""
    home = os.environ.get("TORCH_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch")
    return os.path.expanduser(home)


def get_dir() -> str:
    """Return the directory where downloads would be kept.

    Examples:
        >>> import os
        >>> os.path.basename(torch.hub.get_dir())
        'hub'
    """
    return _dir or os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Set the directory where downloads would be kept.

    Args:
        d: path of the directory.

    Examples:
        >>> torch.hub.set_dir(torch.hub.get_dir())
    """
    global _dir
    _dir = os.path.expanduser(d)


def _refuse(name: str) -> NoReturn:
    refuse(f"hub.{name}", "gradiron fetches nothing; torch.load reads a file that you have fetched")


def load(repo_or_dir: Any, model: str, *args: Any, **options: Any) -> Any:
    """Load a model from a repository, which is not supported.

    Args:
        repo_or_dir: name of the repository.
        model: name of the model.
        args, options: ignored.

    Examples:
        >>> torch.hub.load("owner/repository", "model")
        Traceback (most recent call last):
        NotImplementedError: torch.hub.load: gradiron fetches nothing
    """
    _refuse("load")


def list(github: str, *args: Any, **options: Any) -> Any:
    """List the models of a repository, which is not supported.

    Args:
        github: name of the repository.
        args, options: ignored.

    Examples:
        >>> torch.hub.list("owner/repository")
        Traceback (most recent call last):
        NotImplementedError: torch.hub.list: gradiron fetches nothing
    """
    _refuse("list")


def help(github: str, model: str, *args: Any, **options: Any) -> Any:
    """Show the documentation of a model of a repository, which is not supported.

    Args:
        github: name of the repository.
        model: name of the model.
        args, options: ignored.

    Examples:
        >>> torch.hub.help("owner/repository", "model")
        Traceback (most recent call last):
        NotImplementedError: torch.hub.help: gradiron fetches nothing
    """
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
    """Load a checkpoint of the given URL from the local directory; it is never downloaded.

    Args:
        url: URL, whose last part is the name of the file.
        model_dir: directory of the file; `checkpoints` in `get_dir()` if `None`.
        map_location: as for `torch.load`.
        progress, check_hash: accepted for compatibility. Default: `True` and `False`
        file_name: name of the file, instead of that in the URL.
        weights_only: as for `torch.load`. Default: `False`

    Raises:
        NotImplementedError: if the file is not there.

    Examples:
        >>> torch.hub.load_state_dict_from_url("https://example.org/missing.pth")
        Traceback (most recent call last):
        NotImplementedError: torch.hub.load_state_dict_from_url: gradiron fetches nothing
    """
    path = os.path.join(model_dir or os.path.join(get_dir(), "checkpoints"), file_name or os.path.basename(urlparse(url).path))
    if not os.path.exists(path):
        refuse("hub.load_state_dict_from_url", f"gradiron fetches nothing; {url} can be put to {path} by hand")
    return serialization.load(path, map_location=map_location, weights_only=weights_only)


def __getattr__(name: str) -> Any:
    if name != "tqdm":
        raise AttributeError(f"module 'gradiron.hub' has no attribute '{name}'")
    import importlib

    # Not that of `tqdm.auto`, which asks for an iterator once more: a loader would draw another order.
    return importlib.import_module("tqdm").tqdm


def download_url_to_file(url: str, dst: str, *args: Any, **options: Any) -> Any:
    """Download a file, which is not supported.

    Args:
        url: URL of the file.
        dst: path to write to.
        args, options: ignored.

    Examples:
        >>> torch.hub.download_url_to_file("https://example.org/file", "file")
        Traceback (most recent call last):
        NotImplementedError: torch.hub.download_url_to_file: gradiron fetches nothing
    """
    _refuse("download_url_to_file")
