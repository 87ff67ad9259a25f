"""Reports of checkpoints with `debug=True`: the saved tensors of both runs, and the calls that saved them."""

from __future__ import annotations

import sys

from .. import _core
from .._core import Tensor

_PACKAGE = __name__.split(".")[0] + "."


def entry(x: Tensor) -> str:
    """The operator that is saving `x`, and the user's lines that called it, innermost first."""
    node = _core.packing_node()
    kind = f"{str(x.dtype).removeprefix('torch.')}{list(x.shape)}"
    lines = [f"{node.name() if node is not None else 'checkpoint'} saves {kind}"]
    frame = sys._getframe(1)
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith(_PACKAGE):
            lines.append(f"    {frame.f_code.co_filename}:{frame.f_lineno}:{frame.f_code.co_name}")
        frame = frame.f_back  # type: ignore[assignment]
    return "\n".join(lines)


def report(forward: list[str], again: list[str]) -> str:
    """Both runs side by side, for people."""
    same = next((i for i, (a, b) in enumerate(zip(forward, again, strict=False)) if a.split("\n")[0] != b.split("\n")[0]), None)
    first = min(len(forward), len(again)) if same is None else same

    def section(title: str, entries: list[str]) -> str:
        numbered = (f"({i + 1} of {len(entries)}) {text}" for i, text in enumerate(entries))
        return f"{title}\n" + "\n".join(numbered) + "\n"

    return (
        "An error happened while unpacking tensors; dumping logs of latest computation\nbecause you passed `debug=True` to "
        "`torch.utils.checkpoint.checkpoint()`.\n\n"
        + section("1. Values saved in the original forward, with the calls that led there:", forward)
        + "\n"
        + section("2. Values saved during recomputation:", again)
        + f"\nThe two runs agree in their first {first} saved values. The function did something else when it was run again: "
        "look for what depends on a global variable, on a counter, on time, or on random numbers that are not PyTorch's.\n"
    )
