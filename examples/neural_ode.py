"""A neural differential equation learns how a pendulum with friction moves, from pieces of its path."""

import gradiron as torch
from gradiron import nn
from training import Training

STEP = 0.1


def runge_kutta(speed: torch.nn.Module, state: torch.Tensor) -> torch.Tensor:
    """The state a step later."""
    k1 = speed(state)
    k2 = speed(state + STEP / 2 * k1)
    k3 = speed(state + STEP / 2 * k2)
    k4 = speed(state + STEP * k3)
    return state + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def path(speed: torch.nn.Module, state: torch.Tensor, count: int) -> torch.Tensor:
    states = [state]
    for _ in range(count - 1):
        states.append(runge_kutta(speed, states[-1]))
    return torch.stack(states)


class Pendulum(nn.Module):
    """What is to be learned: angle and speed of a pendulum."""

    def forward(self, state: torch.Tensor) -> torch.Tensor:
        angle, speed = state.unbind(-1)
        return torch.stack([speed, -torch.sin(angle) - 0.2 * speed], -1)


def main() -> None:
    training = Training("neural_ode", 400)
    torch.manual_seed(0)
    with torch.no_grad():
        true = path(Pendulum(), torch.tensor([[2.5, 0.0], [1.0, 1.5]]), 100).to(training.device)
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2)).to(training.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in training.steps():
        starts = torch.randint(0, 90, (16,)).tolist()
        pieces = torch.cat([true[start : start + 10] for start in starts], 1)
        loss = (path(model, pieces[0], 10) - pieces).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        training.note(loss.item())
    with torch.no_grad():
        error = (path(model, true[0], 100) - true).abs().mean().item()
    print(f"over the whole path the learned pendulum is {error:.3f} away from the true one, on average")


if __name__ == "__main__":
    main()
