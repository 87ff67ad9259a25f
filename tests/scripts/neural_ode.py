"""A neural ODE: the adjoint method as a custom Function around Runge-Kutta steps, on a spiral."""

import torch
import torch.nn as nn
from common import steps


class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        return self.net(y**3)


def rk4(func, y, t, dt):
    k1 = func(t, y)
    k2 = func(t + dt / 2, y + dt / 2 * k1)
    k3 = func(t + dt / 2, y + dt / 2 * k2)
    k4 = func(t + dt, y + dt * k3)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def odeint(func, y0, t):
    ys = [y0]
    for a, b in zip(t[:-1], t[1:]):
        ys.append(rk4(func, ys[-1], a, b - a))
    return torch.stack(ys)


class OdeintAdjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, func, y0, t, *params):
        ctx.func = func
        with torch.no_grad():
            ys = odeint(func, y0, t)
        ctx.save_for_backward(t, ys, *params)
        return ys

    @staticmethod
    def backward(ctx, grad):
        func, (t, ys, *params) = ctx.func, ctx.saved_tensors
        a = torch.zeros_like(grad[0])
        gp = [torch.zeros_like(p) for p in params]
        for i in range(len(t) - 1, 0, -1):
            a = a + grad[i]
            with torch.enable_grad():
                y = ys[i - 1].detach().requires_grad_(True)
                end = rk4(func, y, t[i - 1], t[i] - t[i - 1])
                a, *more = torch.autograd.grad(end, (y, *params), a, allow_unused=True)
            gp = [p if m is None else p + m for p, m in zip(gp, more)]
        return (None, a + grad[0], None, *gp)


def main():
    total = steps(20)
    torch.manual_seed(0)
    true_y0 = torch.tensor([[2.0, 0.0]])
    t = torch.linspace(0.0, 5.0, 51)
    true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])

    class Lambda(nn.Module):
        def forward(self, t, y):
            return torch.mm(y**3, true_A)

    with torch.no_grad():
        true_y = odeint(Lambda(), true_y0, t)
    func = ODEFunc()
    optimizer = torch.optim.RMSprop(func.parameters(), lr=1e-3)
    for step in range(total):
        s = torch.from_numpy(__import__("numpy").arange(0, 8)) + torch.randint(0, 38, (1,))
        y0, bt = true_y[s], t[:6]
        y = torch.stack([true_y[s + i] for i in range(6)], dim=0)
        optimizer.zero_grad()
        pred = OdeintAdjoint.apply(func, y0, bt, *func.parameters())
        loss = torch.mean(torch.abs(pred - y))
        loss.backward()
        optimizer.step()
        print(step, loss.item())


if __name__ == "__main__":
    main()
