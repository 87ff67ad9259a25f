"""A vision transformer: patches by a strided convolution, a class token, torch's encoder layers, label smoothing."""

import torch
import torch.nn as nn
from common import digits, steps


class ViT(nn.Module):
    def __init__(self, size=16, patch=4, classes=10, dim=32, depth=2, heads=4):
        super().__init__()
        self.patches = nn.Conv2d(1, dim, kernel_size=patch, stride=patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.empty(1, (size // patch) ** 2 + 1, dim).normal_(std=0.02))
        layer = nn.TransformerEncoderLayer(
            dim, heads, dim * 2, dropout=0.1, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, norm=nn.LayerNorm(dim), enable_nested_tensor=False)
        self.head = nn.Linear(dim, classes)
        nn.init.trunc_normal_(self.head.weight, std=0.02)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.size(0), -1, -1), x], dim=1) + self.pos
        return self.head(self.encoder(x)[:, 0])


def main():
    total = steps(12)
    torch.manual_seed(0)
    model = ViT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=total + 1)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    images, labels = digits(32 * total)
    for step, (x, y) in enumerate(zip(images.split(32), labels.split(32))):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        print(step, loss.item(), scheduler.get_last_lr()[0])
    model.eval()
    with torch.inference_mode():
        print("test", criterion(model(images[:32]), labels[:32]).item())


if __name__ == "__main__":
    main()
