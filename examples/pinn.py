"""A network that obeys an equation: u'' = -u with u(0) = 0 and u'(0) = 1. Nobody tells it that this is the sine."""

import gradiron as torch
from gradiron import nn
from training import Training


def derivative(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


def main() -> None:
    training = Training("pinn", 1500)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)).to(training.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, training.total)
    zero = torch.zeros(1, 1, device=training.device, requires_grad=True)
    for _ in training.steps():
        x = (2 * torch.pi * torch.rand(64, 1)).to(training.device).requires_grad_()
        u = model(x)
        equation = (derivative(derivative(u, x), x) + u).square().mean()
        start = model(zero)
        loss = equation + start.square().sum() + (derivative(start, zero) - 1).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        training.note(loss.item())
    x = torch.linspace(0, 2 * torch.pi, 100, device=training.device)[:, None]
    with torch.no_grad():
        print(f"it is {(model(x) - x.sin()).abs().max().item():.4f} away from the sine, at most")


if __name__ == "__main__":
    main()
