"""Modules that can be traced, each with an example of its inputs."""

from library import T

F = T.nn.functional


torch = T  # the name that rewritten source uses


def asserting():
    """A function with an assertion. It stands here since pytest rewrites those of test files."""

    def asserts(x):
        assert x.sum() > 0, "negative"
        return x

    return asserts


class Residual(T.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = T.nn.Sequential(T.nn.Conv2d(3, 3, 3, padding=1), T.nn.BatchNorm2d(3), T.nn.ReLU())
        self.scale = T.nn.Parameter(T.rand(1))
        self.register_buffer("shift", T.rand(1))

    def forward(self, x):
        return x + self.scale * self.inner(x) - self.shift


class Attention(T.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = T.nn.Linear(8, 24)
        self.norm = T.nn.LayerNorm(8)

    def forward(self, x, mask=None, *, scale: float = 0.5):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        scores = (q @ k.transpose(-2, -1)) * scale
        return F.softmax(scores, dim=-1) @ v


class Nested(T.nn.Module):
    def forward(self, pair, names):
        left, right = pair
        return {"sum": left + right, "rest": [names["a"].t(), (left - right)[0, 1:], names["a"].shape[0]]}


class Tables(T.nn.Module):
    """Indices of tensors that are no proxies, writes, constants, and gradiron's functions that are written in Python."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", T.arange(12.0).reshape(4, 3))
        self.offset = T.ones(3)

    def forward(self, index, x):
        rows = self.table[index] + self.offset
        wide = F.interpolate(x, scale_factor=2.0, mode="nearest")
        pooled = F.max_pool2d(F.pad(wide, (1, 1)), 2)
        return T.cat([rows, F.embedding(index, self.table)]), pooled, T.relu_(x - 0.5), T.full((2,), 3.0) + T.sum(x)


def models():
    """Pairs of a module and its arguments."""
    T.manual_seed(0)
    image = T.rand(2, 3, 4, 4)
    yield T.nn.Sequential(T.nn.Linear(4, 8), T.nn.GELU(), T.nn.Dropout(0.0), T.nn.Linear(8, 2)), (T.rand(5, 4),)
    yield Residual().eval(), (image,)
    yield Attention(), (T.rand(2, 5, 8),)
    yield Nested(), ((T.rand(2, 3), T.rand(2, 3)), {"a": T.rand(4, 2)})
    yield Tables(), (T.tensor([2, 0, 3]), image)
    yield T.nn.Sequential(T.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)), (T.rand(2, 5, 8),)
    yield T.nn.Sequential(T.nn.Embedding(7, 4), T.nn.LSTM(4, 3, batch_first=True)), (T.tensor([[1, 2], [3, 4]]),)


MODELS = ["mlp", "residual", "attention", "nested", "tables", "transformer", "lstm"]


def model(name):
    return list(models())[MODELS.index(name)]
