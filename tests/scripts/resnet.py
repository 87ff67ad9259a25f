"""A small residual network on digits, warm restarts, momentum and weight decay, an average of the weights."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import digits, steps
from torch.optim.swa_utils import AveragedModel


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != planes:
            self.shortcut = nn.Sequential(nn.Conv2d(in_planes, planes, 1, stride=stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


class ResNet(nn.Module):
    def __init__(self, widths=(8, 16)):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.layer1 = BasicBlock(8, widths[0])
        self.layer2 = BasicBlock(widths[0], widths[1], 2)
        self.linear = nn.Linear(widths[1] * 4, 10)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.layer2(self.layer1(out))
        out = F.avg_pool2d(out, 4)
        return self.linear(out.view(out.size(0), -1))


def main():
    total = steps(10)
    torch.manual_seed(11)
    net = ResNet()
    average = AveragedModel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=5)
    images, labels = digits(16 * total)
    for step, (x, y) in enumerate(zip(images.split(16), labels.split(16))):
        loss = nn.CrossEntropyLoss()(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        average.update_parameters(net)
        print(step, loss.item())
    average.eval()
    print("average", F.cross_entropy(average(images[:16]), labels[:16]).item(), sum(p.numel() for p in net.parameters()))


if __name__ == "__main__":
    main()
