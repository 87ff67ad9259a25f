"""Where checkpoints lie: folders."""

from __future__ import annotations

import os
from typing import Any

from ...serialization import load, save

__all__ = ["FileSystemReader", "FileSystemWriter"]

FILE = "state.pt"


class FileSystemWriter:
    """Writes a checkpoint into a folder."""

    def __init__(self, path: str | os.PathLike[str], *args: Any, **options: Any) -> None:
        self.path = os.fspath(path)

    @property
    def checkpoint_id(self) -> str:
        """The folder."""
        return self.path

    def write(self, state: dict[str, Any]) -> None:
        """Writes the whole state; a file that is there already is replaced at the end, not before."""
        os.makedirs(self.path, exist_ok=True)
        save(state, os.path.join(self.path, FILE))


class FileSystemReader:
    """Reads a checkpoint from a folder."""

    def __init__(self, path: str | os.PathLike[str], *args: Any, **options: Any) -> None:
        self.path = os.fspath(path)

    @property
    def checkpoint_id(self) -> str:
        """The folder."""
        return self.path

    def read(self) -> dict[str, Any]:
        """The whole state."""
        file = os.path.join(self.path, FILE)
        if not os.path.exists(file):
            if os.path.exists(os.path.join(self.path, ".metadata")):
                raise NotImplementedError(
                    f"{self.path} is a checkpoint of PyTorch's torch.distributed.checkpoint, which gradiron does not read: "
                    "convert it with PyTorch's dcp_to_torch_save"
                )
            raise FileNotFoundError(f"no checkpoint in {self.path}: there is no {FILE}")
        return load(file, map_location="cpu", weights_only=False)
