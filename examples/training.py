"""What the examples share: the options, a line of progress, and a picture of the loss."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from pathlib import Path

WIDTH, HEIGHT, EDGE = 640, 360, 48


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
        path.write_text(picture(self.name, self.losses), encoding="utf-8")
        print(f"the loss is drawn in {path}")

    def note(self, loss: float) -> None:
        self.losses.append(loss)


def picture(title: str, losses: list[float]) -> str:
    """A curve as SVG: every loss thinly, their running mean boldly."""
    known = [loss for loss in losses if math.isfinite(loss)] or [0.0]
    low, high = min(known), max(known)
    spread = high - low or 1.0

    def line(values: list[float], style: str) -> str:
        across = (WIDTH - 2 * EDGE) / max(1, len(values) - 1)
        places = (
            f"{EDGE + i * across:.1f},{HEIGHT - EDGE - (v - low) / spread * (HEIGHT - 2 * EDGE):.1f}"
            for i, v in enumerate(values)
            if math.isfinite(v)
        )
        return f'<polyline fill="none" {style} points="{" ".join(places)}"/>'

    smooth, mean = [], known[0]
    for loss in losses:
        mean = 0.9 * mean + 0.1 * (loss if math.isfinite(loss) else mean)
        smooth.append(mean)
    marks = "".join(
        f'<text x="{EDGE - 6}" y="{HEIGHT - EDGE - part * (HEIGHT - 2 * EDGE) + 4:.0f}" text-anchor="end">'
        f"{low + part * spread:.3g}</text>"
        for part in (0.0, 0.5, 1.0)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="white"/>'
        f'<text x="{WIDTH / 2}" y="24" text-anchor="middle" font-size="15">{title}: the loss in {len(losses)} steps</text>'
        f'<path d="M{EDGE} {EDGE}V{HEIGHT - EDGE}H{WIDTH - EDGE}" stroke="#888" fill="none"/>{marks}'
        + line(losses, 'stroke="#9bc4e2" stroke-width="1"')
        + line(smooth, 'stroke="#1f6fab" stroke-width="2"')
        + "</svg>\n"
    )
