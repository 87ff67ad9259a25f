"""Models to export, each with example inputs and the axes that may have another size."""

import math
from typing import NamedTuple

from library import T

nn, F = T.nn, T.nn.functional


class Model(NamedTuple):
    make: object
    inputs: object
    axes: dict = {0: "batch"}  # of every input


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), (2, 2))
        x = x.view(-1, x.shape[1:].numel())
        return F.log_softmax(self.fc3(F.relu(self.fc2(F.relu(self.fc1(x))))), dim=1)


class Block(nn.Module):
    def __init__(self, taken, given, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(taken, given, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(given, given, 3, 1, 1, bias=False)
        self.bn1, self.bn2, self.relu = nn.BatchNorm2d(given), nn.BatchNorm2d(given), nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or taken != given:
            self.downsample = nn.Sequential(nn.Conv2d(taken, given, 1, stride, bias=False), nn.BatchNorm2d(given))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += identity
        return self.relu(out)


class ResNet18(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1, self.relu, self.maxpool = nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        sizes = [width, width, 2 * width, 4 * width, 8 * width]
        self.layers = nn.Sequential(
            *(
                nn.Sequential(Block(taken, given, 1 if at == 0 else 2), Block(given, given, 1))
                for at, (taken, given) in enumerate(zip(sizes, sizes[1:], strict=False))
            )
        )
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(8 * width, 10)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(T.flatten(self.avgpool(self.layers(x)), 1))


class Inverted(nn.Module):
    def __init__(self, taken, given, stride, factor):
        super().__init__()
        wide = taken * factor
        self.same = stride == 1 and taken == given
        self.conv = nn.Sequential(
            nn.Conv2d(taken, wide, 1, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU6(inplace=True),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU6(inplace=True),
            nn.Conv2d(wide, given, 1, bias=False),
            nn.BatchNorm2d(given),
        )

    def forward(self, x):
        return x + self.conv(x) if self.same else self.conv(x)


class MobileNetV2(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU6(inplace=True),
            Inverted(8, 8, 1, 1),
            Inverted(8, 12, 2, 6),
            Inverted(12, 12, 1, 6),
            Inverted(12, 16, 2, 6),
        )
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(16, 10))

    def forward(self, x):
        return self.classifier(self.features(x).mean([2, 3]))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        block = lambda taken, given: nn.Sequential(nn.Conv2d(taken, given, 3, padding=1), nn.GroupNorm(2, given), nn.SiLU())
        self.down1, self.down2, self.middle = block(1, 4), block(4, 8), block(8, 8)
        self.up1, self.join1 = nn.ConvTranspose2d(8, 8, 2, 2), block(16, 4)
        self.join2, self.last = block(8, 4), nn.Conv2d(4, 2, 1)

    def forward(self, x):
        one = self.down1(x)
        two = self.down2(F.max_pool2d(one, 2))
        y = self.middle(F.avg_pool2d(two, 2))
        y = self.join1(T.cat([self.up1(y), two], dim=1))
        y = F.interpolate(y, size=one.shape[-2:], mode="bilinear", align_corners=False)
        return self.last(self.join2(T.cat([y, one], dim=1)))


class Attention(nn.Module):
    """Attention with heads of its own making."""

    def __init__(self, dim=16, heads=4, causal=False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        batch, length, dim = x.shape
        q, k, v = self.qkv(x).reshape(batch, length, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        x = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.proj(x.transpose(1, 2).reshape(batch, length, dim))


class ViT(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, 4, 4)
        self.cls, self.position = nn.Parameter(T.randn(1, 1, dim)), nn.Parameter(T.randn(1, 17, dim))
        self.blocks = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm1": nn.LayerNorm(dim),
                    "attention": Attention(dim),
                    "norm2": nn.LayerNorm(dim),
                    "mlp": nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)),
                }
            )
            for _ in range(2)
        )
        self.head = nn.Linear(dim, 5)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = T.cat([self.cls.expand(x.shape[0], -1, -1), x], dim=1) + self.position
        for block in self.blocks:
            x = x + block["attention"](block["norm1"](x))
            x = x + block["mlp"](block["norm2"](x))
        return self.head(x[:, 0])


class GPT(nn.Module):
    """Tokens to logits, with a causal mask of the length at hand."""

    def __init__(self, dim=16):
        super().__init__()
        self.token, self.position = nn.Embedding(20, dim), nn.Embedding(32, dim)
        self.attention = Attention(dim, 2, causal=True)
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, 20, bias=False)
        self.head.weight = self.token.weight

    def forward(self, tokens):
        x = self.token(tokens) + self.position(T.arange(tokens.size(1), device=tokens.device))
        return self.head(self.norm(x + self.attention(x)))


class Rotary(nn.Module):
    """Rotary positions, RMS normalization and gated layers, as recent language models have them."""

    def __init__(self, dim=16):
        super().__init__()
        self.norm, self.gate, self.up, self.down = (
            nn.RMSNorm(dim),
            nn.Linear(dim, 24, bias=False),
            nn.Linear(dim, 24, bias=False),
            nn.Linear(24, dim, bias=False),
        )
        self.register_buffer("frequencies", 1 / 100 ** (T.arange(0, dim, 2) / dim), persistent=False)

    def forward(self, x):
        angles = T.arange(x.shape[1])[:, None] * self.frequencies
        cos, sin = T.cat([angles.cos()] * 2, -1), T.cat([angles.sin()] * 2, -1)
        first, second = x.chunk(2, dim=-1)
        x = x * cos + T.cat([-second, first], -1) * sin
        y = self.norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(16), enable_nested_tensor=False)

    def forward(self, x, padding):
        return self.encoder(x, src_key_padding_mask=padding)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 4, 32, batch_first=True), 2)

    def forward(self, x, memory):
        mask = T.full((x.size(1), x.size(1)), -math.inf).triu(1)
        return self.decoder(x, memory, tgt_mask=mask)


class Classifier(nn.Module):
    """An LSTM whose last hidden state is classified."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 8, padding_idx=0)
        self.lstm, self.fc = nn.LSTM(8, 6, 2, bidirectional=True, batch_first=True, dropout=0.1), nn.Linear(12, 3)

    def forward(self, tokens):
        _, (hidden, _) = self.lstm(self.embedding(tokens))
        return self.fc(T.cat([hidden[-2], hidden[-1]], dim=1))


class Seq2Seq(nn.Module):
    """A GRU that goes on from the state of another."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder, self.fc = nn.GRU(4, 6, 2), nn.GRU(5, 6, 2), nn.Linear(6, 2)

    def forward(self, x, y):
        _, state = self.encoder(x)
        out, state = self.decoder(y, state)
        return self.fc(out), state


class Cells(nn.Module):
    """Recurrent cells, step by step."""

    def __init__(self):
        super().__init__()
        self.lstm, self.gru, self.rnn = nn.LSTMCell(3, 4), nn.GRUCell(4, 4), nn.RNNCell(4, 4)

    def forward(self, x):
        h = c = g = r = x.new_zeros(x.size(0), 4)
        for step in x.unbind(1):
            h, c = self.lstm(step, (h, c))
            g = self.gru(h, g)
            r = self.rnn(g, r)
        return h, c, g, r


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Linear(6, 4), nn.Sequential(nn.Linear(2, 6), nn.Sigmoid())

    def forward(self, x, noise):
        mean, log_variance = self.encode(x).chunk(2, dim=-1)
        return {"x": self.decode(mean + noise * (0.5 * log_variance).exp()), "mean": mean, "unused": None}


class Graph(nn.Module):
    """Messages along edges, added up at their ends."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, edges):
        source, target = edges[0], edges[1]
        messages = self.fc(x)[source]
        total = T.zeros_like(x).index_add(0, target, messages)
        count = x.new_zeros(x.size(0)).scatter_add(0, target, T.ones_like(target, dtype=x.dtype))
        return total / count.clamp(min=1)[:, None]


class Windows(nn.Module):
    """Shifted windows: parts of an image rolled, cut, and written into."""

    def forward(self, x):
        batch, height, width, channels = x.shape
        x = T.roll(x, shifts=(-1, -1), dims=(1, 2))
        x = x.view(batch, height // 2, 2, width // 2, 2, channels)
        windows = x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, 4, channels)
        windows[:, 0] = 0
        windows[:, 1:3, 1] *= 2
        return windows, F.normalize(windows, dim=-1) @ windows.mT


class Sampler(nn.Module):
    def forward(self, x, grid):
        return F.grid_sample(x, grid, align_corners=False), F.grid_sample(x, grid, "nearest", "border", align_corners=True)


class Pyramid(nn.Module):
    """Pooling and resizing of all kinds."""

    def forward(self, x):
        parts = [F.adaptive_avg_pool2d(x, size) for size in (1, 2, 3, 4)]
        parts = [F.interpolate(part, size=x.shape[2:], mode=mode) for part, mode in zip(parts, MODES, strict=True)]
        return T.cat([*parts, F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2)], dim=1), F.unfold(x, 3, padding=1)


MODES = ("nearest", "bilinear", "bicubic", "nearest-exact")


def image(*size):
    return lambda: (T.randn(2, *size),)


def tokens(length, count=20):
    return lambda: (T.randint(1, count, (2, length)),)


def sequential(*layers):
    return lambda: nn.Sequential(*(layer() for layer in layers))


BOTH = {0: "batch", 1: "length"}
MODELS = {
    "mlp": Model(sequential(lambda: nn.Linear(4, 8), nn.ReLU, nn.Dropout, lambda: nn.Linear(8, 3)), image(4)),
    "lenet": Model(LeNet, image(1, 28, 28)),
    "resnet18": Model(ResNet18, image(3, 32, 32)),
    "mobilenetv2": Model(MobileNetV2, image(3, 32, 32)),
    "unet": Model(UNet, image(1, 8, 8), {0: "batch", 2: "height", 3: "width"}),
    "attention": Model(Attention, image(5, 16), BOTH),
    "multihead attention": Model(
        lambda: nn.MultiheadAttention(16, 4, batch_first=True), lambda: tuple(T.randn(3, 2, 5, 16)), BOTH
    ),
    "vit": Model(ViT, image(3, 16, 16)),
    "gpt": Model(GPT, tokens(5), BOTH),
    "rotary": Model(Rotary, image(5, 16), BOTH),
    "encoder": Model(Encoder, lambda: (T.randn(2, 5, 16), T.tensor([[False] * 5, [False] * 4 + [True]])), BOTH),
    "decoder": Model(Decoder, lambda: (T.randn(2, 5, 16), T.randn(2, 5, 16)), BOTH),
    "transformer": Model(
        lambda: nn.Transformer(8, 2, 1, 1, 16, batch_first=True), lambda: (T.randn(2, 5, 8), T.randn(2, 5, 8)), BOTH
    ),
    "lstm classifier": Model(Classifier, tokens(5, 30), BOTH),
    "lstm": Model(lambda: nn.LSTM(3, 4, 2, bidirectional=True), lambda: (T.randn(5, 2, 3),), {0: "length", 1: "batch"}),
    "gru seq2seq": Model(Seq2Seq, lambda: (T.randn(5, 2, 4), T.randn(5, 2, 5)), {0: "length", 1: "batch"}),
    "rnn": Model(lambda: nn.RNN(3, 4, nonlinearity="relu", bias=False, batch_first=True), image(5, 3), BOTH),
    "cells": Model(Cells, image(3, 3)),
    "vae": Model(VAE, lambda: (T.randn(2, 6), T.randn(2, 2))),
    "graph": Model(Graph, lambda: (T.randn(4, 4), T.tensor([[0, 1, 2], [1, 2, 1]])), {}),
    "windows": Model(Windows, image(4, 4, 3)),
    "sampler": Model(Sampler, lambda: (T.randn(2, 3, 6, 6), T.rand(2, 4, 4, 2) * 2 - 1)),
    "pyramid": Model(Pyramid, image(4, 8, 8)),
    "conv1d": Model(
        sequential(lambda: nn.Conv1d(2, 4, 3, padding="same", dilation=2), nn.GELU, lambda: nn.AvgPool1d(2)),
        image(2, 8),
        {0: "batch", 2: "length"},
    ),
    "conv3d": Model(
        sequential(lambda: nn.Conv3d(1, 2, 3, padding=1), lambda: nn.BatchNorm3d(2), lambda: nn.MaxPool3d(2)),
        image(1, 4, 4, 4),
    ),
    "generator": Model(
        sequential(
            lambda: nn.Unflatten(1, (4, 2, 2)),
            lambda: nn.ConvTranspose2d(4, 4, 3, 2, 1, output_padding=1),
            lambda: nn.InstanceNorm2d(4, affine=True),
            lambda: nn.LeakyReLU(0.2),
            lambda: nn.Upsample(scale_factor=2, mode="bilinear"),
            nn.Tanh,
        ),
        image(16),
    ),
    "activations": Model(
        sequential(
            nn.ELU, nn.SELU, nn.CELU, nn.SiLU, nn.Mish, nn.Hardswish, nn.Hardsigmoid, nn.Softplus, nn.PReLU, nn.LogSigmoid,
            nn.Tanhshrink, nn.Softshrink, nn.Hardshrink, nn.Hardtanh, nn.ReLU6, nn.Softsign, lambda: nn.GELU("tanh"),
            lambda: nn.Threshold(0.1, 20.0), lambda: nn.RReLU(), lambda: nn.GLU(-1),
        ),
        image(3, 8),
    ),
    "normalizations": Model(
        sequential(
            lambda: nn.BatchNorm2d(4), lambda: nn.GroupNorm(2, 4), lambda: nn.InstanceNorm2d(4),
            lambda: nn.LocalResponseNorm(3), lambda: nn.LayerNorm(5), lambda: nn.RMSNorm((5, 5)),
        ),
        image(4, 5, 5),
    ),
    "pads": Model(
        sequential(
            lambda: nn.ZeroPad2d(1), lambda: nn.ReflectionPad2d((1, 2, 0, 1)), lambda: nn.ReplicationPad2d(1),
            lambda: nn.CircularPad2d(2), lambda: nn.ConstantPad2d((-1, 0, 1, -2), 3.0),
            lambda: nn.Conv2d(3, 2, 3, padding=1, padding_mode="reflect"),
        ),
        image(3, 4, 4),
    ),
    "embedding bag": Model(lambda: nn.EmbeddingBag(20, 4, mode="mean"), tokens(3)),
    "weight norm": Model(
        lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), nn.Bilinear(3, 3, 2))[0], image(4)
    ),
}  # fmt: skip
