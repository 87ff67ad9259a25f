"""Checkpoints of programs with several processes, whose states every rank has whole: one rank writes them, all read them.

A checkpoint is a folder with one file, `state.pt`, which `torch.load` reads. State that is spread over ranks is not there.
"""

from __future__ import annotations

from . import state_dict
from .default_planner import DefaultLoadPlanner, DefaultSavePlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .state_dict_io import CheckpointException, async_save, load, save

__all__ = [
    "CheckpointException",
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "FileSystemReader",
    "FileSystemWriter",
    "async_save",
    "load",
    "save",
    "state_dict",
]
