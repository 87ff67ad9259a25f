"""Reasons why a function runs as it is: what could not be captured, and where."""

from __future__ import annotations

import os
import sys
import types
from typing import Any

__all__ = ["Reason", "Unrewritable", "log", "logs"]

_OWN = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.dirname(_OWN)


class Reason:
    """What could not be captured.

    Attributes:
        words: what it is.
        file, line: the innermost line outside of gradiron that led to it, where there is one.
    """

    def __init__(self, words: str, file: str | None = None, line: int | None = None) -> None:
        self.words = words
        self.file = file
        self.line = line

    @classmethod
    def here(cls, words: str, frame: types.FrameType | None = None) -> Reason:
        """Return a reason with the line that is running.

        Args:
            words: what could not be captured.
            frame: the innermost frame to consider; that of the caller if `None`.
        """
        at: types.FrameType | None = sys._getframe(1) if frame is None else frame
        inner: types.FrameType | None = None
        while at is not None:
            file = at.f_code.co_filename
            if not file.startswith(_PACKAGE):
                return cls(words, file, at.f_lineno)
            if inner is None and not file.startswith(_OWN):
                inner = at
            at = at.f_back
        return cls(words) if inner is None else cls(words, inner.f_code.co_filename, inner.f_lineno)

    def __str__(self) -> str:
        return self.words if self.file is None else f"{self.words} ({self.file}:{self.line})"

    def __repr__(self) -> str:
        return f"Reason({str(self)!r})"


class Unrewritable(Exception):
    """A function whose syntax tree cannot be rewritten, with the words of the reason."""


def logs(topic: str) -> bool:
    """Return whether `TORCH_LOGS` asks for a topic."""
    asked = os.environ.get("TORCH_LOGS", "")
    return bool(asked) and topic in (part.strip().lstrip("+") for part in asked.split(","))


def log(topic: str, message: str, *details: Any) -> None:
    """Print a line to standard error if `TORCH_LOGS` asks for the topic."""
    if logs(topic):
        print(f"[{topic}] {message}", *details, file=sys.stderr)
