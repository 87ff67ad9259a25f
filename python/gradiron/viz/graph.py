"""`graph` and the drawing that it returns."""

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
    """Draw the graph of tensors: the operators that computed them, back to the leaves.

    A notebook shows the result as a drawing, a terminal as a tree. Its `svg(path)`, `png(path)` and `dot(path)` write
    files.

    Args:
        results: tensors at the end of the graph.
        names: names of tensors: a dict (of tensors, lists and modules) or a module; the caller's variables if `None`.
        saved: show what each operator saves for the backward pass. Default: `False`

    Examples:
        >>> w, x = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        >>> print(torch.viz.graph(x * w, names={"x": x, "w": w}))
        result (2,) ← MulBackward0
        ├─ x (2,)
        └─ w (2,)
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
    """A drawn graph, which `graph` returns; it keeps no tensors alive.

    Args:
        model: description of the graph.

    Examples:
        >>> x = torch.ones(2, requires_grad=True)
        >>> torch.viz.graph(x.sum(), names={"x": x})
        result () ← SumBackward0 ← x (2,)
    """

    def __init__(self, model: Model) -> None:
        self._model = model

    @cached_property
    def _picture(self) -> Picture:
        return draw(self._model)

    def tree(self) -> str:
        """Return the graph as text, with the results at the left."""
        return tree(self._model)

    def dot(self, path: str | PathLike[str] | None = None) -> str:
        """Return the graph in the language of Graphviz.

        Args:
            path: file to write it to.
        """
        text = dot(self._model)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def __str__(self) -> str:
        return self.tree()

    def __repr__(self) -> str:
        return self.tree()

    def _repr_html_(self) -> str:
        # A reversed column, so that a tall drawing is scrolled to its end, where the results are.
        box = "display:flex;flex-direction:column-reverse;align-items:flex-start;overflow:auto;max-height:50em"
        return f'<div style="{box}"><div>{self.svg()}</div></div>'
