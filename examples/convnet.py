"""A small convolutional network learns to read digits, which are drawn here: nothing is downloaded."""

import gradiron as torch
from gradiron import nn
from gradiron.nn import functional as F
from training import Training

# Five rows of four dots for each digit.
FONT = "69996 26227 69168 e161e 99f11 f8e1e 68e96 f1244 69696 69716".split()


def digits(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Noisy pictures of 14 by 14 dots, and which digit each is."""
    rows = [[[int(line, 16) >> bit & 1 for bit in (3, 2, 1, 0)] for line in digit] for digit in FONT]
    glyphs = torch.tensor(rows, dtype=torch.float32).repeat_interleave(2, 1).repeat_interleave(2, 2)
    labels = torch.randint(0, 10, (count,))
    images = 0.4 * torch.randn(count, 1, 14, 14)
    places = torch.stack([torch.randint(0, 4, (count,)), torch.randint(0, 6, (count,))], 1)
    for i, (y, x) in enumerate(places.tolist()):
        images[i, 0, y : y + 10, x : x + 8] += glyphs[labels[i]]
    return images, labels


def main() -> None:
    training = Training("convnet", 300)
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(3),
        nn.Flatten(),
        nn.Linear(144, 10),
    ).to(training.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in training.steps():
        images, labels = (t.to(training.device) for t in digits(64))
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        training.note(loss.item())
    model.eval()
    with torch.no_grad():
        images, labels = (t.to(training.device) for t in digits(500))
        right = (model(images).argmax(1) == labels).sum().item()
    print(f"{right} of 500 new digits are read rightly")


if __name__ == "__main__":
    main()
