"""Which outputs of a worker go elsewhere."""

from __future__ import annotations

import enum

__all__ = ["Std"]


class Std(enum.IntFlag):
    """Standard output, standard error, both or none."""

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = 3

    @classmethod
    def from_str(cls, text: str) -> Std | dict[int, Std]:
        """Reads "3", or "0:1,1:2": a number for each local rank."""
        if text.isdigit() and int(text) <= 3:
            return cls(int(text))
        chosen = {}
        for pair in text.split(","):
            rank, separator, number = pair.partition(":")
            if not (separator and rank.isdigit() and number.isdigit() and int(number) <= 3):
                raise ValueError(f"{text} does not match: <^[0123]$> or <^(\\d:[0123],)*(\\d:[0123])$>")
            chosen[int(rank)] = cls(int(number))
        return chosen


def of_rank(chosen: Std | dict[int, Std], rank: int) -> Std:
    """The choice for one local rank."""
    return chosen.get(rank, Std.NONE) if isinstance(chosen, dict) else chosen
