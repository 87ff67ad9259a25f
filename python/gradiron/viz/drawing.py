"""Base class of the drawings: how they appear in a notebook, and how they are written to files."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from .picture import Picture
from .png import png
from .svg import svg


class Drawing:
    """A picture that a notebook shows, and that `.svg(path)` and `.png(path)` write to a file."""

    @property
    def _picture(self) -> Picture:
        raise NotImplementedError

    def svg(self, path: str | PathLike[str] | None = None) -> str:
        """The drawing as SVG, also written to `path` if that is given."""
        text = svg(self._picture)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def png(self, path: str | PathLike[str] | None = None, *, scale: float = 2.0) -> bytes:
        """The drawing as PNG, `scale` pixels to a unit (fewer if it is huge), also written to `path` if that is given."""
        data = png(self._picture, scale)
        if path is not None:
            Path(path).write_bytes(data)
        return data

    def _repr_svg_(self) -> str:
        return self.svg()
