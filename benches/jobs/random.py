"""Random numbers, from few to many."""

from __future__ import annotations

from typing import Any

from . import Names, group

job = group("random")


def seeded(T: Any) -> Names:
    T.manual_seed(0)
    return {"T": T}


for n in (1000, 100_000, 1_000_000):
    for call in ("rand({})", "rand({}, dtype=T.float64)", "randn({})", "randperm({})", "randint(0, 1000, ({},))"):
        statement = f"T.{call.format(n)}"
        job(statement.removeprefix("T."), statement, seeded)
