"""Whole training steps on the GPU: the CPU's losses and weights, one wait a step, and no more launches from step to step."""

import copy

import pytest

from library import NO_GPU, T, assert_values

pytestmark = [pytest.mark.gradiron, pytest.mark.skipif(NO_GPU, reason="GRADIRON_TEST_NO_GPU is set")]
nn = T.nn
F = T.nn.functional


class Convnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.norm = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.conv2 = nn.Conv2d(4, 8, 3, stride=2)
        self.out = nn.Linear(8, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv1(x))), 2)
        return self.out(F.adaptive_avg_pool2d(F.gelu(self.conv2(x)), 1).flatten(1))


class Residual(nn.Module):
    """A block of a ResNet that halves its picture, and one that keeps it."""

    def __init__(self):
        super().__init__()
        conv = lambda *size: nn.Sequential(nn.Conv2d(*size, bias=False), nn.BatchNorm2d(size[1]))
        self.first, self.out = conv(1, 4, 3, 1, 1), nn.Linear(8, 5)
        self.halves, self.short = nn.Sequential(conv(4, 8, 3, 2, 1), nn.ReLU(), conv(8, 8, 3, 1, 1)), conv(4, 8, 1, 2)
        self.keeps = nn.Sequential(conv(8, 8, 3, 1, 1), nn.ReLU(), conv(8, 8, 3, 1, 1))

    def forward(self, x):
        x = F.relu(self.first(x))
        x = F.relu(self.halves(x) + self.short(x))
        return self.out(F.adaptive_avg_pool2d(F.relu(self.keeps(x) + x), 1).flatten(1))


class Burgers(nn.Module):
    """What is left of Burgers' equation: second derivatives, so that a step has third ones."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 12), nn.Tanh(), nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 1))

    def forward(self, x):
        x = x.detach().requires_grad_()
        u = self.body(x)
        (first,) = T.autograd.grad(u.sum(), x, create_graph=True)
        (second,) = T.autograd.grad(first[:, 0].sum(), x, create_graph=True)
        return first[:, 1] + u[:, 0] * first[:, 0] - 0.01 * second[:, 0]


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(11, 8), nn.Parameter(T.zeros(6, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(8, 11)

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.size(1), device=x.device)
        return self.out(self.body(self.words(x) + self.places, mask=mask, is_causal=True)).flatten(0, 1)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.lstm, self.out = nn.Embedding(11, 6), nn.LSTM(6, 8, batch_first=True), nn.Linear(8, 11)

    def forward(self, x):
        return self.out(self.lstm(self.words(x))[0]).flatten(0, 1)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 4, 4, 2, 1), nn.GroupNorm(2, 4), nn.SiLU(), nn.Conv2d(4, 6, 4, 2, 1))
        self.up = nn.Sequential(
            nn.ConvTranspose2d(6, 4, 4, 2, 1), nn.LeakyReLU(0.1), nn.Upsample(scale_factor=2), nn.Conv2d(4, 1, 3, 1, 1)
        )

    def forward(self, x):
        return self.up(self.down(x))


def pictures():
    return T.rand(6, 1, 8, 8), T.randint(0, 5, (6,))


def texts():
    words = T.randint(0, 11, (4, 7))
    return words[:, :-1].contiguous(), words[:, 1:].flatten()


def points():
    return T.rand(32, 2), T.zeros(32)


def alone():
    x = T.rand(4, 1, 8, 8)
    return x, x


sgd = lambda ps: T.optim.SGD(ps, lr=0.05, momentum=0.9, nesterov=True)
# What has no gradient but rounding (the bias of keys) must not be scaled up to a step.
adamw = lambda ps: T.optim.AdamW(ps, lr=0.01, eps=1e-3)
CASES = {
    "convnet": (Convnet, pictures, F.cross_entropy, sgd),
    "residual": (Residual, pictures, F.cross_entropy, sgd),
    "burgers": (Burgers, points, F.mse_loss, lambda ps: T.optim.Adam(ps, lr=0.01)),
    "transformer": (Transformer, texts, F.cross_entropy, adamw),
    "recurrent": (Recurrent, texts, F.cross_entropy, adamw),
    "autoencoder": (Autoencoder, alone, F.mse_loss, lambda ps: T.optim.RMSprop(ps, lr=0.01)),
}


def trained(model, data, criterion, optimizer, steps=4):
    """The losses of a few steps, and what each took of the GPU: waits and launches."""
    optimizer = optimizer(model.parameters())
    losses, taken = [], []
    for i in range(steps):
        x, y = data[i]
        before = T._core._gpu.waits(), T.cuda.dispatches()
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        T.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        taken.append((T._core._gpu.waits() - before[0], T.cuda.dispatches() - before[1]))
    return losses, taken


@pytest.mark.parametrize("name", CASES)
def test_steps_are_those_of_the_cpu(name):
    make, draw, criterion, optimizer = CASES[name]
    T.manual_seed(0)
    model = make()
    there = copy.deepcopy(model).to("cuda")
    data = [draw() for _ in range(4)]
    losses, _ = trained(model, data, criterion, optimizer)
    seen, taken = trained(there, [(x.cuda(), y.cuda()) for x, y in data], criterion, optimizer)
    assert_values(T.tensor(seen), losses, 1e-4)
    for (path, here), other in zip(model.state_dict().items(), there.state_dict().values(), strict=True):
        assert other.is_cuda and T.allclose(other.cpu(), here, rtol=1e-3, atol=1e-4), path
    # Only `item` waits, and a step is the same work every time (the first makes the optimizer's state).
    assert [waits for waits, _ in taken] == [1] * 4, taken
    assert len({launches for _, launches in taken[1:]}) == 1, taken
