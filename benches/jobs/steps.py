"""Whole steps: forward, backward and the optimiser's step of well-known networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import Names, group

job = group("steps")


def training(T: Any, model: Any, optimizer: Any, loss: Callable[[], Any]) -> Names:
    model.train()

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return {"step": step}


def mlp(T: Any) -> Names:
    T.manual_seed(0)
    nn = T.nn
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    x, y = T.randn(64, 784), T.randint(0, 10, (64,))
    optimizer = T.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return training(T, model, optimizer, lambda: nn.functional.cross_entropy(model(x), y))


def lenet(T: Any) -> Names:
    T.manual_seed(0)
    nn = T.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )
    x, y = T.randn(64, 1, 28, 28), T.randint(0, 10, (64,))
    optimizer = T.optim.Adam(model.parameters())
    return training(T, model, optimizer, lambda: nn.functional.cross_entropy(model(x), y))


def resnet(T: Any) -> Names:
    """ResNet-18 as it is used for 32x32: without the pool at the start."""
    T.manual_seed(0)
    nn = T.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(after)
            self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(after)
            self.short = nn.Sequential()
            if stride != 1 or before != after:
                self.short = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

        def forward(self, x: Any) -> Any:
            y = nn.functional.relu(self.bn1(self.conv1(x)))
            return nn.functional.relu(self.bn2(self.conv2(y)) + self.short(x))

    sizes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
    model = nn.Sequential(
        nn.Conv2d(3, 64, 3, 1, 1, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        *[Block(*size) for size in sizes],
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(512, 10),
    )
    x, y = T.randn(16, 3, 32, 32), T.randint(0, 10, (16,))
    optimizer = T.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    return training(T, model, optimizer, lambda: nn.functional.cross_entropy(model(x), y))


def transformer(T: Any) -> Names:
    """Four layers of width 128, a character at a time."""
    T.manual_seed(0)
    nn = T.nn
    heads, width, length, batch, characters = 4, 128, 128, 8, 65

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.wide, self.back = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            parts = self.qkv(self.norm1(x)).split(width, dim=2)
            q, k, v = (part.view(batch, length, heads, width // heads).transpose(1, 2) for part in parts)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).contiguous().view(batch, length, width))
            return x + self.back(nn.functional.gelu(self.wide(self.norm2(x))))

    class Model(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(characters, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(4)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, characters, bias=False)

        def forward(self, x: Any) -> Any:
            return self.head(self.norm(self.blocks(self.tokens(x) + self.places(places))))

    places = T.arange(length)
    model = Model()
    x, y = T.randint(0, characters, (batch, length)), T.randint(0, characters, (batch, length))
    optimizer = T.optim.AdamW(model.parameters(), lr=1e-3)
    return training(T, model, optimizer, lambda: nn.functional.cross_entropy(model(x).view(-1, characters), y.view(-1)))


def lstm(T: Any) -> Names:
    T.manual_seed(0)
    nn = T.nn

    class Model(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.lstm, self.head = nn.Embedding(65, 128), nn.LSTM(128, 128, 2), nn.Linear(128, 65)

        def forward(self, x: Any) -> Any:
            return self.head(self.lstm(self.embedding(x))[0])

    model = Model()
    x, y = T.randint(0, 65, (64, 16)), T.randint(0, 65, (64, 16))
    optimizer = T.optim.Adam(model.parameters())
    return training(T, model, optimizer, lambda: nn.functional.cross_entropy(model(x).view(-1, 65), y.view(-1)))


def pinn(T: Any) -> Names:
    """Burgers' equation: the loss holds second derivatives, so the step has third ones."""
    T.manual_seed(0)
    nn = T.nn
    model = nn.Sequential(
        nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)
    )
    x, t = T.rand(512, 1).requires_grad_(), T.rand(512, 1).requires_grad_()
    optimizer = T.optim.Adam(model.parameters())

    def loss() -> Any:
        u = model(T.cat([x, t], 1))
        u_x, u_t = T.autograd.grad(u.sum(), (x, t), create_graph=True)
        (u_xx,) = T.autograd.grad(u_x.sum(), x, create_graph=True)
        return ((u_t + u * u_x - 0.01 * u_xx) ** 2).mean()

    return training(T, model, optimizer, loss)


job("MLP 784-256-128-10, batch 64, SGD", "step()", mlp, 1)
job("LeNet, batch 64, Adam", "step()", lenet, 1)
job("ResNet-18 on 32x32, batch 16, SGD", "step()", resnet, 1, slow=True)
job("transformer, 4 layers of width 128, 8x128, AdamW", "step()", transformer, 1)
job("LSTM, 2 layers of 128, 64x16, Adam", "step()", lstm, 1)
job("PINN of second order, 512 points, Adam", "step()", pinn, 1)
