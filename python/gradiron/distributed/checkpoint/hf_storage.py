"""Checkpoints in safetensors files: names that packages import."""

from __future__ import annotations

from .._refused import Refused

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

_INSTEAD = "checkpoints of several safetensors files are not there. Use safetensors.torch.save_file on the first rank"


class HuggingFaceStorageReader(Refused):
    """Would read safetensors files."""

    _full_name, _instead = "checkpoint.hf_storage.HuggingFaceStorageReader", _INSTEAD


class HuggingFaceStorageWriter(Refused):
    """Would write safetensors files."""

    _full_name, _instead = "checkpoint.hf_storage.HuggingFaceStorageWriter", _INSTEAD
