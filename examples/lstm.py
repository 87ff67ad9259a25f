"""An LSTM learns to go on with waves of its own pitch: it reads the beginning of one and foretells the rest."""

import gradiron as torch
from gradiron import nn
from gradiron.nn import functional as F
from training import Training


class Foretell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, 32, num_layers=2, batch_first=True)
        self.value = nn.Linear(32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.lstm(x)
        return self.value(hidden)


def waves(count: int, device: str) -> torch.Tensor:
    """Sums of two sines, 49 values of each."""
    at = torch.arange(49.0)[None, :, None]
    pitch, phase = 0.1 + 0.3 * torch.rand(2, count, 1, 1), 6.3 * torch.rand(2, count, 1, 1)
    return (0.5 * torch.sin(pitch * at + phase)).sum(0).to(device)


def main() -> None:
    training = Training("lstm", 300)
    torch.manual_seed(0)
    model = Foretell().to(training.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in training.steps():
        wave = waves(32, training.device)
        loss = F.mse_loss(model(wave[:, :-1]), wave[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        training.note(loss.item())
    with torch.no_grad():
        wave = waves(1, training.device)
        error = (model(wave[:, :-1]) - wave[:, 1:]).abs()[0, 10:].mean().item()
    print(f"the next value is foretold to {error:.3f}, of waves between -1 and 1")


if __name__ == "__main__":
    main()
