"""Equations, fields and other physics."""

import math

from library import T as torch

from .registry import HOST, example, program, script

nn, F, optim = torch.nn, torch.nn.functional, torch.optim


@program(model="'weight' of a dict differs from call to call")
def maml(step, model):
    parts = script("maml")
    net = model(nn.Sequential(nn.Linear(1, 12), nn.ReLU(), nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 1)))
    meta = optim.Adam(net.parameters(), lr=1e-2)
    functional_call = torch.func.functional_call

    @step
    def train(tasks):
        meta_loss = 0.0
        for x, y in tasks:
            weights = dict(net.named_parameters())
            for _ in range(2):
                inner = F.mse_loss(functional_call(net, weights, (x[:10],)), y[:10])
                grads = torch.autograd.grad(inner, list(weights.values()), create_graph=True)
                weights = {n: w - 0.01 * g for (n, w), g in zip(weights.items(), grads)}
            meta_loss = meta_loss + F.mse_loss(functional_call(net, weights, (x[10:],)), y[10:])
        meta.zero_grad()
        meta_loss.backward()
        meta.step()
        return meta_loss

    for _ in range(12):
        yield train([parts.wave() for _ in range(2)])
    return net


@program()
def maml_with_func(step, model):
    parts = script("maml")
    net = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))
    params = dict(net.named_parameters())
    opt = optim.Adam(net.parameters(), lr=1e-2)
    functional_call, grad, vmap = torch.func.functional_call, torch.func.grad, torch.func.vmap

    def inner_loss(params, x, y):
        return F.mse_loss(functional_call(net, params, (x,)), y)

    def outer_loss(x1, y1, x2, y2):
        grads = grad(inner_loss)(params, x1, y1)
        adapted = {k: params[k] - 0.1 * grads[k] for k in params}
        return inner_loss(adapted, x2, y2)

    @step
    def train(x, y):
        losses = vmap(outer_loss)(x[:, :10], y[:, :10], x[:, 10:], y[:, 10:])
        loss = losses.mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss

    for _ in range(12):
        waves = [parts.wave() for _ in range(3)]
        yield train(torch.stack([x for x, _ in waves]), torch.stack([y for _, y in waves]))
    return net


@program()
def neural_ode(step, model):
    """The adjoint method, a `Function` of its own."""
    parts = script("neural_ode")
    func = model(parts.ODEFunc())
    optimizer = optim.RMSprop(func.parameters(), lr=1e-3)
    t = torch.linspace(0.0, 0.5, 6)

    @step
    def train(y0, y):
        optimizer.zero_grad()
        pred = parts.OdeintAdjoint.apply(func, y0, t, *func.parameters())
        loss = torch.mean(torch.abs(pred - y))
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(12):
        yield train(torch.randn(8, 1, 2), torch.randn(6, 8, 1, 2))
    return func


@program()
def examples_neural_ode(step, model):
    parts = example("neural_ode")
    with torch.no_grad():
        true = parts.path(parts.Pendulum(), torch.tensor([[2.5, 0.0], [1.0, 1.5]]), 20)
    net = model(nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2)))
    optimizer = optim.Adam(net.parameters(), lr=1e-2)

    @step
    def train(pieces):
        loss = (parts.path(net, pieces[0], 5) - pieces).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(12):
        starts = torch.randint(0, 15, (4,)).tolist()
        yield train(torch.cat([true[start : start + 5] for start in starts], 1))
    return net


@program()
def pinn(step, model):
    net = script("pinn").PINN([2, 16, 16, 1])
    compiled = model(net)
    x0 = torch.linspace(-1, 1, 16).reshape(-1, 1)
    start, u0 = torch.cat([x0, torch.zeros_like(x0)], 1), -torch.sin(torch.pi * x0)
    x = (torch.rand(16, 1) * 2 - 1).requires_grad_()
    t = torch.rand(16, 1).requires_grad_()
    adam = optim.Adam(net.parameters(), lr=5e-3)

    @step
    def train():
        adam.zero_grad()
        loss = torch.mean((compiled(start) - u0) ** 2) + torch.mean(net.residual(x, t) ** 2)
        loss.backward()
        adam.step()
        return loss

    for _ in range(8):
        yield train()
    lbfgs = optim.LBFGS(net.parameters(), lr=0.5, max_iter=4, history_size=10, line_search_fn="strong_wolfe")

    @step
    def closure():
        lbfgs.zero_grad()
        loss = torch.mean((compiled(start) - u0) ** 2) + torch.mean(net.residual(x, t) ** 2)
        loss.backward()
        return loss

    for _ in range(2):
        yield lbfgs.step(closure)
    return net


@program()
def examples_pinn(step, model):
    derivative = example("pinn").derivative
    net = model(nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1)))
    optimizer = optim.Adam(net.parameters(), lr=5e-3)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
    zero = torch.zeros(1, 1, requires_grad=True)

    @step
    def train():
        x = (2 * torch.pi * torch.rand(16, 1)).requires_grad_()
        u = net(x)
        equation = (derivative(derivative(u, x), x) + u).square().mean()
        start = net(zero)
        loss = equation + start.square().sum() + (derivative(start, zero) - 1).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(12):
        yield train()
        scheduler.step()
    return net


@program(step="that the call made outlives it", model="leads to a leaf")
def siren(step, model):
    class SineLayer(nn.Module):
        def __init__(self, in_features, out_features, bias=True, is_first=False, omega_0=30):
            super().__init__()
            self.omega_0, self.is_first, self.in_features = omega_0, is_first, in_features
            self.linear = nn.Linear(in_features, out_features, bias=bias)
            self.init_weights()

        def init_weights(self):
            with torch.no_grad():
                if self.is_first:
                    self.linear.weight.uniform_(-1 / self.in_features, 1 / self.in_features)
                else:
                    bound = math.sqrt(6 / self.in_features) / self.omega_0
                    self.linear.weight.uniform_(-bound, bound)

        def forward(self, input):
            return torch.sin(self.omega_0 * self.linear(input))

    class Siren(nn.Module):
        def __init__(self, hidden=16):
            super().__init__()
            self.net = nn.Sequential(SineLayer(2, hidden, is_first=True), SineLayer(hidden, hidden), nn.Linear(hidden, 1))

        def forward(self, coords):
            coords = coords.clone().detach().requires_grad_(True)
            return self.net(coords), coords

    def gradient(y, x, grad_outputs=None):
        if grad_outputs is None:
            grad_outputs = torch.ones_like(y)
        return torch.autograd.grad(y, [x], grad_outputs=grad_outputs, create_graph=True)[0]

    def divergence(y, x):
        div = 0.0
        for i in range(y.shape[-1]):
            div += torch.autograd.grad(y[..., i], x, torch.ones_like(y[..., i]), create_graph=True)[0][..., i : i + 1]
        return div

    side = torch.linspace(-1, 1, 5)
    grid = torch.stack(torch.meshgrid(side, side, indexing="ij"), dim=-1).reshape(1, -1, 2)
    truth = torch.sin(3 * grid.sum(-1, keepdim=True))
    net = model(Siren())
    optim_ = optim.Adam(lr=1e-4, params=net.parameters())

    @step
    def train(model_input, ground_truth):
        output, coords = net(model_input)
        image_loss = ((output - ground_truth) ** 2).mean()
        laplace = divergence(gradient(output, coords), coords)
        loss = image_loss + 1e-6 * ((laplace + 18 * output) ** 2).mean()
        optim_.zero_grad()
        loss.backward()
        optim_.step()
        return loss

    for _ in range(10):
        yield train(grid, truth)
    return net


@program(step=HOST)
def nerf(step, model):
    class NeRF(nn.Module):
        def __init__(self, filter_size=16, num_encoding_functions=4):
            super().__init__()
            self.layer1 = nn.Linear(3 + 3 * 2 * num_encoding_functions, filter_size)
            self.layer2 = nn.Linear(filter_size, filter_size)
            self.layer3 = nn.Linear(filter_size, 4)

        def forward(self, x):
            x = F.relu(self.layer1(x))
            x = F.relu(self.layer2(x))
            return self.layer3(x)

    def positional_encoding(tensor, num_encoding_functions=4):
        encoding = [tensor]
        frequency_bands = 2.0 ** torch.linspace(0.0, num_encoding_functions - 1, num_encoding_functions)
        for freq in frequency_bands:
            for func in [torch.sin, torch.cos]:
                encoding.append(func(tensor * freq))
        return torch.cat(encoding, dim=-1)

    def cumprod_exclusive(tensor):
        cumprod = torch.cumprod(tensor, -1)
        cumprod = torch.roll(cumprod, 1, -1)
        cumprod[..., 0] = 1.0
        return cumprod

    def render(net, origins, directions, near=2.0, far=6.0, samples=8):
        depth = torch.linspace(near, far, samples).expand(origins.shape[0], samples)
        depth = depth + torch.rand(origins.shape[0], samples) * (far - near) / samples
        points = origins[..., None, :] + directions[..., None, :] * depth[..., :, None]
        flat = positional_encoding(points.reshape(-1, 3))
        field = torch.cat([net(flat[i : i + 16]) for i in range(0, flat.shape[0], 16)], dim=0).reshape(*points.shape[:-1], 4)
        sigma, rgb = F.relu(field[..., 3]), torch.sigmoid(field[..., :3])
        dists = torch.cat((depth[..., 1:] - depth[..., :-1], torch.tensor([1e10]).expand(depth[..., :1].shape)), dim=-1)
        alpha = 1.0 - torch.exp(-sigma * dists)
        weights = alpha * cumprod_exclusive(1.0 - alpha + 1e-10)
        return (weights[..., None] * rgb).sum(dim=-2)

    net = model(NeRF())
    optimizer = optim.Adam(net.parameters(), lr=5e-3)

    @step
    def train(origins, directions, target):
        loss = F.mse_loss(render(net, origins, directions), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return -10.0 * torch.log10(loss)

    for _ in range(12):
        yield train(torch.randn(4, 3), torch.randn(4, 3), torch.rand(4, 3))
    return net


@program()
def neural_ode_with_odeint(step, model):
    """Runge-Kutta steps through which the gradient flows, times among the arguments."""

    class ODEFunc(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
            for m in self.net.modules():
                if isinstance(m, nn.Linear):
                    nn.init.normal_(m.weight, mean=0, std=0.1)
                    nn.init.constant_(m.bias, val=0)

        def forward(self, t, y):
            return self.net(y**3)

    func = model(ODEFunc())
    optimizer = optim.RMSprop(func.parameters(), lr=1e-3)
    odeint = script("neural_ode").odeint

    @step
    def train(batch_y0, batch_t, batch_y):
        optimizer.zero_grad()
        pred_y = odeint(func, batch_y0, batch_t)
        loss = torch.mean(torch.abs(pred_y - batch_y))
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(12):
        yield train(torch.randn(4, 1, 2), torch.linspace(0.0, 1.0, 5), torch.randn(5, 4, 1, 2))
    return func


@program(model="a node of ATanBackward")
def spiking_network(step, model):
    """Leaky neurons that fire, with the arctangent's derivative in place of the step's."""

    class ATan(torch.autograd.Function):
        @staticmethod
        def forward(ctx, mem):
            spk = (mem > 0).float()
            ctx.save_for_backward(mem)
            return spk

        @staticmethod
        def backward(ctx, grad_output):
            (mem,) = ctx.saved_tensors
            return 1 / (1 + (torch.pi * mem).pow_(2)) * grad_output

    class Leaky(nn.Module):
        def __init__(self, beta, threshold=1.0):
            super().__init__()
            self.beta, self.threshold, self.spike = beta, threshold, ATan.apply

        def forward(self, input_, mem):
            reset = (mem > self.threshold).float().detach()
            mem = self.beta * mem + input_ - reset * self.threshold
            return self.spike(mem - self.threshold), mem

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.lif1 = nn.Linear(8, 16), Leaky(beta=0.95)
            self.fc2, self.lif2 = nn.Linear(16, 3), Leaky(beta=0.95)

        def forward(self, x, steps=6):
            mem1, mem2 = torch.zeros(x.size(0), 16), torch.zeros(x.size(0), 3)
            spk2_rec, mem2_rec = [], []
            for _ in range(steps):
                spk1, mem1 = self.lif1(self.fc1(x), mem1)
                spk2, mem2 = self.lif2(self.fc2(spk1), mem2)
                spk2_rec.append(spk2)
                mem2_rec.append(mem2)
            return torch.stack(spk2_rec, dim=0), torch.stack(mem2_rec, dim=0)

    net = model(Net())
    loss_fn = nn.CrossEntropyLoss()
    optimizer = optim.Adam(net.parameters(), lr=5e-3, betas=(0.9, 0.999))

    @step
    def train(data, targets):
        net.train()
        spk_rec, mem_rec = net(data)
        loss_val = torch.zeros((1), dtype=torch.float)
        for s in range(6):
            loss_val += loss_fn(mem_rec[s], targets)
        optimizer.zero_grad()
        loss_val.backward()
        optimizer.step()
        return loss_val.item(), spk_rec.sum().item()

    for _ in range(12):
        loss, count = train(3 * torch.rand(8, 8), torch.randint(0, 3, (8,)))
        yield loss + count
    return net
