"""What the examples share: the options, a line of progress, and a picture of the loss."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

from gradiron import viz


class Training:
    """Counts steps, prints how the loss goes, and draws it at the end into `demo-output/`."""

    def __init__(self, name: str, steps: int) -> None:
        parser = argparse.ArgumentParser()
        parser.add_argument("--steps", type=int, default=steps, help=f"how many steps to train (default: {steps})")
        parser.add_argument("--device", default="cpu", help="cpu (default) or cuda")
        options = parser.parse_args()
        self.name, self.device = name, options.device
        self.total = max(1, options.steps)
        self.losses: list[float] = []

    def steps(self) -> Iterator[int]:
        """The steps' numbers, with a line of progress now and then; the picture follows the last."""
        begin = time.perf_counter()
        every = max(1, self.total // 20)
        for step in range(self.total):
            yield step
            if step % every == 0 or step + 1 == self.total:
                passed = time.perf_counter() - begin
                bar = "#" * round(20 * (step + 1) / self.total)
                print(f"step {step + 1:5} of {self.total} [{bar:20}] loss {self.losses[-1]:.4f}  {passed:5.1f} s", flush=True)
        path = Path("demo-output") / f"{self.name}.svg"
        path.parent.mkdir(exist_ok=True)
        viz.loss(self.losses, title=f"{self.name}: the loss").svg(path)
        print(f"the loss is drawn in {path}")

    def note(self, loss: float) -> None:
        self.losses.append(loss)
