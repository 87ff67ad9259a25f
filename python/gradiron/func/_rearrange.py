"""`rearrange`, with patterns in the notation of einops such as `"b (h w) c -> b c h w"`."""

from __future__ import annotations

import keyword
import math
import re
import warnings
from collections.abc import Sequence

from .. import _core
from .._core import Tensor

DOTS = "…"
Group = list[str]


class DimensionBindError(Exception):
    """Raised for sizes that do not fit a pattern."""


def rearrange(tensor: Tensor | Sequence[Tensor], pattern: str, **axes_lengths: int) -> Tensor:
    """Reorder, split and merge dimensions as a pattern in the notation of einops says.

    Args:
        tensor: tensor, or a sequence of tensors to stack first.
        pattern: names of the dimensions before and after `->`; parentheses group merged ones, `...` stands for the
            rest.
        axes_lengths: sizes of named dimensions that cannot be inferred.

    Examples:
        >>> torch.func.rearrange(torch.ones(2, 12, 5), "b (h w) c -> b c h w", h=3).shape
        torch.Size([2, 5, 3, 4])
    """
    x = tensor if isinstance(tensor, Tensor) else _core.stack(tensor)
    left = _checked(pattern, axes_lengths)
    if x.dim() == 0:
        return x
    left, right = (_groups(side) for side in _spelled_out(pattern, left, x.dim()).split("->"))
    names = [name for group in left for name in group]
    sizes = _sizes(left, list(x.shape), names, axes_lengths)
    apart = x.reshape([sizes[name] for name in names])
    wanted = [name for group in right for name in group]
    turned = apart.permute([names.index(name) for name in wanted])
    return turned.reshape([math.prod(sizes[name] for name in group) for group in right])


def _checked(pattern: str, lengths: dict[str, int]) -> list[Group]:
    """The dimensions on the left of a pattern that says something."""
    parts = pattern.split("->")
    if len(parts) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    left, right = (_groups(part) for part in parts)
    before, after = ({name for group in side for name in group} for side in (left, right))
    if DOTS in after and DOTS not in before:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if re.search(r"\([^)]*\.\.\.", parts[0]):
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    if before != after:
        raise ValueError(f"Identifiers only on one side of rearrange expression (should be on both): {before ^ after}")
    if unknown := lengths.keys() - before:
        raise ValueError(f"Identifiers not found in rearrange expression: {unknown}")
    for length in lengths.values():
        if not isinstance(length, int):
            raise TypeError(f"rearrange axis lengths must be integers, got: {type(length)}")
    return left


def _groups(text: str) -> list[Group]:
    """The dimensions of one side, each of which is a list of names; that of a 1 is empty."""
    if "." in text:
        if "..." not in text:
            raise ValueError("Expression may contain dots only inside ellipsis (...)")
        if text.count("...") != 1 or text.count(".") != 3:
            raise ValueError("Expression may contain dots only inside ellipsis (...); only one ellipsis for tensor ")
    groups: list[Group] = []
    within: Group | None = None
    seen: set[str] = set()
    for word in _words(text.replace("...", DOTS)):
        if word == "(":
            if within is not None:
                raise ValueError("Axis composition is one-level (brackets inside brackets not allowed)")
            within = []
        elif word == ")":
            if within is None:
                raise ValueError("Brackets are not balanced")
            groups.append(within)
            within = None
        else:
            name = _name(word, seen)
            if within is None:
                groups.append(name)
            else:
                within += name
    if within is not None:
        raise ValueError(f"Imbalanced parentheses in expression: '{text}'")
    return groups


def _words(text: str) -> list[str]:
    """Names, numbers and brackets."""
    for bracket in "()":
        text = text.replace(bracket, f" {bracket} ")
    for character in text:
        if not (character.isspace() or character in f"()_{DOTS}" or character.isalnum()):
            raise ValueError(f"Unknown character '{character}'")
    return text.split()


def _name(word: str, seen: set[str]) -> Group:
    """A name, or nothing for the number 1."""
    if word.isdecimal():
        if int(word) != 1:
            raise ValueError("rearrange only supports unnamed axes of size 1")
        return []
    if word in seen:
        raise ValueError(f"Indexing expression contains duplicate dimension '{word}'")
    if not word.startswith(DOTS):
        if not word.isidentifier():
            raise ValueError(f"Invalid axis identifier: {word}\nnot a valid python identifier")
        if word[0] == "_" or word[-1] == "_":
            raise ValueError(f"Invalid axis identifier: {word}\naxis name should should not start or end with underscore")
        if keyword.iskeyword(word):
            message = f"It is discouraged to use axes names that are keywords: {word}"
            warnings.warn(message, RuntimeWarning, stacklevel=5)
    seen.add(word)
    return [word]


def _spelled_out(pattern: str, left: list[Group], ndim: int) -> str:
    """The pattern with a name for each dimension that `...` stands for."""
    dotted = [DOTS] in left
    named = len(left) - dotted
    if named > ndim or (named < ndim and not dotted):
        what = "less than or equal to" if dotted else "equal to"
        raise ValueError(
            f"Number of dimensions in pattern ({named}) must be {what} the number of dimensions in the tensor ({ndim})"
        )
    return pattern.replace("...", DOTS).replace(DOTS, " ".join(f"{DOTS}{i}" for i in range(ndim - named)))


def _sizes(left: list[Group], shape: list[int], names: list[str], lengths: dict[str, int]) -> dict[str, int]:
    """How long each named dimension is."""
    sizes = {name: length for name, length in lengths.items() if length >= 0}
    for group, size in zip(left, shape, strict=True):
        labels = [f"d{names.index(name)}" for name in group]
        open_ones = [name for name in group if name not in sizes]
        known = math.prod(sizes[name] for name in group if name in sizes)
        if len(open_ones) > 1:
            first, second = (f"d{names.index(name)}" for name in open_ones[:2])
            raise DimensionBindError(f"cannot infer the sizes of two dimensions at once {first} and {second}")
        if not open_ones:
            if known != size:
                pack = f"({', '.join(labels)}{',' if len(labels) == 1 else ''})"
                raise DimensionBindError(
                    f"Dimension sizes to do not match ({size} != {known}) when matching dimension pack {pack}"
                )
        elif size % known:
            have = tuple(sizes.get(name, "?") for name in group)
            raise DimensionBindError(f"inferred dimension does not evenly fit into larger dimension: {size} vs {have}")
        else:
            sizes[open_ones[0]] = size // known
    return sizes
