"""Trains a small network to tell two spirals apart, then draws the graph of its loss.

The network is written by hand, with tensors and autograd only. Run it with PyTorch, too: replace the first import.
"""

import math
import sys
import time
from itertools import pairwise
from pathlib import Path

import gradiron as torch

OUTPUT = Path("demo-output")
POINTS = 120  # per spiral
HIDDEN = 24
STEPS = 400


def spirals() -> tuple[torch.Tensor, torch.Tensor]:
    """Two interleaved arms with a little noise: inputs of shape (n, 2), targets of 0 or 1."""
    turn = torch.linspace(0.25, 1.0, POINTS)
    points, labels = [], []
    for arm in (0, 1):
        angle = turn * 3 * math.pi + arm * math.pi + 0.05 * torch.randn(POINTS)
        points.append(torch.stack([turn * angle.cos(), turn * angle.sin()], dim=1))
        labels.append(torch.full((POINTS, 1), float(arm)))
    return torch.cat(points), torch.cat(labels)


def parameters() -> dict[str, torch.Tensor]:
    """Weights drawn so that every layer passes on about the spread that it gets."""
    sizes = [2, HIDDEN, HIDDEN, 1]
    made = {}
    for layer, (before, after) in enumerate(pairwise(sizes), start=1):
        made[f"w{layer}"] = (torch.randn(before, after) * math.sqrt(2 / before)).requires_grad_()
        made[f"b{layer}"] = torch.zeros(after, requires_grad=True)
    return made


def network(p: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    hidden = torch.tanh(x * 4 @ p["w1"] + p["b1"])
    hidden = torch.relu(hidden @ p["w2"] + p["b2"])
    return hidden @ p["w3"] + p["b3"]


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Of a yes-or-no answer; written so that no exponential overflows."""
    return (logits.clamp(min=0) - logits * targets + torch.log1p(torch.exp(-logits.abs()))).mean()


def train(p: dict[str, torch.Tensor], x: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    speed = {name: torch.zeros_like(value) for name, value in p.items()}
    start = time.perf_counter()
    for step in range(STEPS + 1):
        logits = network(p, x)
        loss = cross_entropy(logits, targets)
        loss.backward()
        with torch.no_grad():
            for name, value in p.items():
                speed[name].mul_(0.9).add_(value.grad)
                value -= 0.1 * speed[name]
                value.grad = None
        if step % 40 == 0:
            right = ((logits > 0) == (targets > 0.5)).float().mean().item()
            bar = "#" * round(40 * min(loss.item(), 1.0))
            print(f"step {step:4d}  loss {loss.item():.4f}  {100 * right:5.1f} % right  {bar}", flush=True)
    print(f"{1e3 * (time.perf_counter() - start) / STEPS:.2f} ms a step")
    return loss


def picture(p: dict[str, torch.Tensor]) -> str:
    """What the network says over the plane: # where it sees the one arm, . where the other."""
    rows, columns = 21, 47
    down = torch.linspace(1.1, -1.1, rows).reshape(rows, 1).expand(rows, columns)
    across = torch.linspace(-1.1, 1.1, columns).expand(rows, columns)
    with torch.no_grad():
        answer = network(p, torch.stack([across, down], dim=2).reshape(-1, 2)).reshape(rows, columns)
    return "\n".join("".join("#" if v > 0 else "." for v in row) for row in answer.tolist())


def main() -> int:
    torch.manual_seed(1)
    x, targets = spirals()
    p = parameters()
    loss = train(p, x, targets)
    print(picture(p))
    if not loss.item() < 0.2:
        print("the loss did not fall", file=sys.stderr)
        return 1

    OUTPUT.mkdir(exist_ok=True)
    drawing = torch.viz.graph(cross_entropy(network(p, x), targets), names=p)
    drawing.svg(OUTPUT / "graph.svg")
    print(f"the graph of the loss: {OUTPUT / 'graph.svg'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
