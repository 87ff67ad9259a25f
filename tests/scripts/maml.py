"""Model-agnostic meta-learning of sine waves: gradients of gradients, by functional_call and by hand."""

import math
from collections import OrderedDict

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import steps
from torch.func import functional_call


def wave():
    amplitude, phase = torch.empty(1).uniform_(0.1, 5.0), torch.empty(1).uniform_(0, math.pi)
    x = torch.empty(20, 1).uniform_(-5, 5)
    return x, amplitude * torch.sin(x + phase)


def main():
    total = steps(20)
    torch.manual_seed(3)
    net = nn.Sequential(
        OrderedDict(
            [
                ("l1", nn.Linear(1, 24)),
                ("relu1", nn.ReLU()),
                ("l2", nn.Linear(24, 24)),
                ("relu2", nn.ReLU()),
                ("l3", nn.Linear(24, 1)),
            ]
        )
    )
    meta = torch.optim.Adam(net.parameters(), lr=1e-2)
    for step in range(total):
        meta_loss = 0.0
        for _ in range(4):
            x, y = wave()
            weights = dict(net.named_parameters())
            for _ in range(2):
                inner = F.mse_loss(functional_call(net, weights, (x[:10],)), y[:10])
                grads = torch.autograd.grad(inner, list(weights.values()), create_graph=True)
                weights = {n: w - 0.01 * g for (n, w), g in zip(weights.items(), grads)}
            meta_loss = meta_loss + F.mse_loss(functional_call(net, weights, (x[10:],)), y[10:])
        meta.zero_grad()
        meta_loss.backward()
        meta.step()
        print(step, meta_loss.item() / 4)


if __name__ == "__main__":
    main()
