"""What `importlib.metadata` is told of PyTorch while `torch` means gradiron: programs ask it for the version."""

from __future__ import annotations

import importlib.metadata
import os
from typing import Any

import gradiron

from .alias import ROOT


class Distribution(importlib.metadata.Distribution):
    """A distribution named torch, of which there is only the version."""

    def read_text(self, filename: str) -> str | None:
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {gradiron.__version__}\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return os.path.join(ROOT, path)
