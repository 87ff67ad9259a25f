"""Pictures brought close where they show the same digit: shared convolutions, a contrastive and a triplet loss."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import digits, steps


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.ReflectionPad2d(1),
            nn.Conv2d(1, 4, kernel_size=3),
            nn.ReLU(inplace=True),
            nn.BatchNorm2d(4),
            nn.AvgPool2d(2),
            nn.ReflectionPad2d(1),
            nn.Conv2d(4, 8, kernel_size=3),
            nn.PReLU(),
            nn.GroupNorm(2, 8),
            nn.AdaptiveAvgPool2d(4),
        )
        self.fc = nn.Sequential(nn.Linear(8 * 16, 32), nn.SiLU(), nn.Linear(32, 5))

    def forward_once(self, x):
        return self.fc(self.cnn(x).view(x.size(0), -1))

    def forward(self, *inputs):
        return [self.forward_once(x) for x in inputs]


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=2.0):
        super().__init__()
        self.margin = margin

    def forward(self, a, b, label):
        distance = F.pairwise_distance(a, b, keepdim=True)
        near = (1 - label) * torch.pow(distance, 2)
        far = label * torch.pow(torch.clamp(self.margin - distance, min=0.0), 2)
        return torch.mean(near + far)


def main():
    total = steps(12)
    torch.manual_seed(7)
    net, contrastive, triplet = SiameseNetwork(), ContrastiveLoss(), nn.TripletMarginLoss(margin=1.0)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, nesterov=True)
    images, labels = digits(32 * total)
    for step, (x, y) in enumerate(zip(images.split(32), labels.split(32))):
        a, b, c = net(x, x.roll(1, 0), x.roll(2, 0))
        label = (y != y.roll(1, 0)).float().unsqueeze(1)
        loss = contrastive(a, b, label) + 0.1 * triplet(a, b, c)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


if __name__ == "__main__":
    main()
