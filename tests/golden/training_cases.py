"""Small programs that train; make_nn.py records the losses that PyTorch reaches after the same seed."""

PROGRAMS = {}


def program(fn):
    PROGRAMS[fn.__name__] = fn
    return fn


def steps(model, optimizer, batch, loss, count=20):
    losses = []
    for _ in range(count):
        x, y = batch()
        optimizer.zero_grad()
        value = loss(model(x), y)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


@program
def regression(T):
    model = T.nn.Sequential(T.nn.Linear(4, 16), T.nn.Tanh(), T.nn.Linear(16, 1))
    batch = lambda: (x := T.randn(32, 4), x.sin().sum(1, keepdim=True))
    return steps(model, T.optim.SGD(model.parameters(), 0.05, momentum=0.9), batch, T.nn.MSELoss())


@program
def classifier_with_dropout(T):
    model = T.nn.Sequential(T.nn.Linear(6, 24), T.nn.ReLU(), T.nn.Dropout(0.3), T.nn.LayerNorm(24), T.nn.Linear(24, 3))
    batch = lambda: (x := T.randn(48, 6), x[:, :3].argmax(1))
    return steps(model, T.optim.AdamW(model.parameters(), 1e-2), batch, T.nn.CrossEntropyLoss(label_smoothing=0.1))


@program
def clipped_and_normed(T):
    hidden = T.nn.utils.parametrizations.weight_norm(T.nn.Linear(8, 8))
    out = T.nn.utils.parametrizations.spectral_norm(T.nn.Linear(8, 1))
    model = T.nn.Sequential(hidden, T.nn.GELU(), out)
    optimizer = T.optim.Adam(model.parameters(), 1e-2)
    optimizer.register_step_pre_hook(lambda *_: T.nn.utils.clip_grad_norm_(model.parameters(), 0.5) and None)
    return steps(model, optimizer, lambda: (x := T.randn(16, 8), x.pow(2).mean(1, keepdim=True)), T.nn.SmoothL1Loss())


@program
def attention_by_weights(T):
    class Model(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = T.nn.MultiheadAttention(8, 2, batch_first=True)
            self.norm = T.nn.LayerNorm(8)
            self.head = T.nn.Linear(8, 2)

        def forward(self, x):
            return self.head(self.norm(x + self.attention(x, x, x)[0]).mean(1))

    model = Model()
    batch = lambda: (x := T.randn(16, 5, 8), (x.sum((1, 2)) > 0).long())
    return steps(model, T.optim.Adam(model.parameters(), 5e-3), batch, T.nn.CrossEntropyLoss())


@program
def convolutional(T):
    nn = T.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2),
    )  # fmt: skip
    batch = lambda: (x := T.randn(8, 1, 8, 8), (x.mean((1, 2, 3)) > 0).long())
    return steps(model, T.optim.SGD(model.parameters(), 0.1, momentum=0.9), batch, nn.CrossEntropyLoss(), 10)


@program
def recurrent(T):
    class Model(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = T.nn.Embedding(10, 6)
            self.lstm = T.nn.LSTM(6, 8, batch_first=True)
            self.head = T.nn.Linear(8, 10)

        def forward(self, x):
            return self.head(self.lstm(self.table(x))[0]).flatten(0, 1)

    model = Model()
    batch = lambda: (x := T.randint(10, (4, 7)), x.roll(1, 1).flatten())
    return steps(model, T.optim.RMSprop(model.parameters(), 1e-2), batch, T.nn.CrossEntropyLoss(), 10)


@program
def transformer(T):
    nn = T.nn
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
    model = nn.Sequential(nn.Linear(3, 8), nn.TransformerEncoder(layer, 2), nn.Linear(8, 3))
    batch = lambda: (x := T.randn(4, 6, 3), x.cumsum(1))
    return steps(model, T.optim.AdamW(model.parameters(), 3e-3), batch, nn.MSELoss(), 10)


def losses(T, name):
    T.manual_seed(0)
    return PROGRAMS[name](T)
