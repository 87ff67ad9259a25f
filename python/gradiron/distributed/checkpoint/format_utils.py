"""From checkpoint folders to files of `torch.save`, and back."""

from __future__ import annotations

import os

from ...serialization import load, save
from .filesystem import FileSystemReader, FileSystemWriter

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]) -> None:
    """Writes a checkpoint folder's state as one file."""
    save(FileSystemReader(dcp_checkpoint_dir).read(), os.fspath(torch_save_path))


def torch_save_to_dcp(torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]) -> None:
    """Writes a file of `torch.save` as a checkpoint folder."""
    FileSystemWriter(dcp_checkpoint_dir).write(load(os.fspath(torch_save_path), map_location="cpu", weights_only=True))
