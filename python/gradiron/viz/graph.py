"""`graph`, the door of this package, and the object that it returns."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradiron

from .dot import dot
from .drawing import Drawing
from .model import Model, Named, Names, describe, is_named
from .picture import Picture, draw
from .tree import tree

if TYPE_CHECKING:
    from gradiron import Tensor


def graph(*results: Tensor, names: Mapping[str, Any] | Named | None = None, saved: bool = False) -> Graph:
    """The graph of `results`: the operators that made them, back to the leaves.

    `names` says what things are called: a dict of tensors, of lists of them, of modules (`locals()` will do), or a module,
    whose parameters have names. Left out, it is the variables of the caller. With `saved=True` each operator also tells what
    it keeps for its derivative.

    The answer shows itself: as a drawing in a notebook, as a tree in a terminal. `.svg(path)`, `.png(path)` and
    `.dot(path)` write files.

    >>> print(graph(y))
    y () ← MulBackward0
    ├─ x ()
    └─ w ()
    """
    if not results:
        raise TypeError("graph() needs at least one tensor")
    for result in results:
        if not isinstance(result, gradiron.Tensor):
            raise TypeError(f"graph() takes tensors, not {type(result).__name__}")
    if names is None:
        caller = sys._getframe(1)
        names = {**caller.f_locals, **caller.f_globals, **caller.f_locals}
    elif not (isinstance(names, Mapping) or is_named(names)):
        raise TypeError(f"graph(): names is a dict of names and tensors, or a module, not {type(names).__name__}")
    return Graph(describe(list(results), Names(names, gradiron.Tensor), saved))


class Graph(Drawing):
    """A drawn history. It holds names and shapes only, and so keeps no tensor alive."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @cached_property
    def _picture(self) -> Picture:
        return draw(self._model)

    def tree(self) -> str:
        """The graph as text, results at the left."""
        return tree(self._model)

    def dot(self, path: str | PathLike[str] | None = None) -> str:
        """The graph in Graphviz' language, also written to `path` if that is given."""
        text = dot(self._model)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def __str__(self) -> str:
        return self.tree()

    def __repr__(self) -> str:
        return self.tree()

    def _repr_html_(self) -> str:
        # What is higher than the box is scrolled to its end, where the results are: a reversed column begins there.
        box = "display:flex;flex-direction:column-reverse;align-items:flex-start;overflow:auto;max-height:50em"
        return f'<div style="{box}"><div>{self.svg()}</div></div>'
