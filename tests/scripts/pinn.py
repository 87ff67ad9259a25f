"""A network that obeys Burgers' equation: second derivatives in the loss, Adam first and LBFGS after."""

import torch
import torch.nn as nn
from common import steps


class PINN(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.linears = nn.ModuleList([nn.Linear(a, b) for a, b in zip(layers[:-1], layers[1:])])
        for m in self.linears:
            nn.init.xavier_normal_(m.weight.data, gain=1.0)
            nn.init.zeros_(m.bias.data)

    def forward(self, x):
        for m in self.linears[:-1]:
            x = torch.tanh(m(x))
        return self.linears[-1](x)

    def residual(self, x, t):
        u = self(torch.cat([x, t], dim=1))
        u_t = torch.autograd.grad(u, t, torch.ones_like(u), retain_graph=True, create_graph=True)[0]
        u_x = torch.autograd.grad(u, x, torch.ones_like(u), retain_graph=True, create_graph=True)[0]
        u_xx = torch.autograd.grad(u_x, x, torch.ones_like(u_x), retain_graph=True, create_graph=True)[0]
        return u_t + u * u_x - (0.01 / torch.pi) * u_xx


def main():
    total = steps(16)
    torch.manual_seed(1234)
    net = PINN([2, 16, 16, 1])
    x0 = torch.linspace(-1, 1, 32).reshape(-1, 1)
    start, u0 = torch.cat([x0, torch.zeros_like(x0)], 1), -torch.sin(torch.pi * x0)
    x = (torch.rand(64, 1) * 2 - 1).requires_grad_()
    t = torch.rand(64, 1).requires_grad_()

    def loss_of():
        return torch.mean((net(start) - u0) ** 2) + torch.mean(net.residual(x, t) ** 2)

    adam = torch.optim.Adam(net.parameters(), lr=5e-3)
    for step in range(total // 2):
        adam.zero_grad()
        loss = loss_of()
        loss.backward()
        adam.step()
        print(step, loss.item())
    lbfgs = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=4, history_size=10, line_search_fn="strong_wolfe")

    def closure():
        lbfgs.zero_grad()
        loss = loss_of()
        loss.backward()
        return loss

    for step in range(total // 2, total):
        print(step, lbfgs.step(closure).item())


if __name__ == "__main__":
    main()
