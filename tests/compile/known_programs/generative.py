"""Models that make something: pictures, densities, energies."""

import math

from library import T as torch

from .registry import program, script

nn, F, optim = torch.nn, torch.nn.functional, torch.optim
common = script("common")


@program()
def vae(step, model):
    parts = script("vae")
    net = model(parts.VAE())
    optimizer = optim.Adam(net.parameters(), lr=1e-3)

    @step
    def train(data):
        optimizer.zero_grad()
        recon_batch, mu, logvar = net(data)
        loss = parts.loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        optimizer.step()
        return loss.item()

    train_loss = 0
    for _ in range(12):
        train_loss += train(common.digits(8)[0].clamp(0, 1))
        yield train_loss
    return net


@program()
def dcgan(step, model):
    parts = script("dcgan")
    generator, discriminator = parts.Generator(), parts.Discriminator()
    generator.apply(parts.weights_init)
    discriminator.apply(parts.weights_init)
    netG, netD = model(generator), model(discriminator)
    criterion = nn.BCELoss()
    real_label, fake_label = 1.0, 0.0
    optimizerD = optim.Adam(netD.parameters(), lr=0.0002, betas=(0.5, 0.999))
    optimizerG = optim.Adam(netG.parameters(), lr=0.0002, betas=(0.5, 0.999))

    @step
    def train(data):
        netD.zero_grad()
        batch_size = data.size(0)
        label = torch.full((batch_size,), real_label, dtype=data.dtype)
        output = netD(data)
        errD_real = criterion(output, label)
        errD_real.backward()
        D_x = output.mean().item()
        noise = torch.randn(batch_size, parts.NZ, 1, 1)
        fake = netG(noise)
        label.fill_(fake_label)
        output = netD(fake.detach())
        errD_fake = criterion(output, label)
        errD_fake.backward()
        errD = errD_real + errD_fake
        optimizerD.step()
        netG.zero_grad()
        label.fill_(real_label)
        output = netD(fake)
        errG = criterion(output, label)
        errG.backward()
        optimizerG.step()
        return errD.item(), errG.item(), D_x

    for _ in range(12):
        yield sum(train(common.digits(4)[0] * 2 - 1))
    return netG, netD


@program(step="it sets requires_grad of a tensor that is older than the call")
def wgan_gp(step, model):
    netG = model(nn.Sequential(nn.Linear(4, 16), nn.ReLU(True), nn.Linear(16, 2)))
    netD = model(nn.Sequential(nn.Linear(2, 16), nn.ReLU(True), nn.Linear(16, 1)))
    optimizerD = optim.Adam(netD.parameters(), lr=1e-3, betas=(0.5, 0.9))
    optimizerG = optim.Adam(netG.parameters(), lr=1e-3, betas=(0.5, 0.9))

    def gradient_penalty(real, fake):
        alpha = torch.rand(real.size(0), 1).expand(real.size())
        mixed = (alpha * real + (1 - alpha) * fake).detach().requires_grad_(True)
        out = netD(mixed)
        gradients = torch.autograd.grad(
            outputs=out, inputs=mixed, grad_outputs=torch.ones(out.size()), create_graph=True, retain_graph=True
        )[0]
        return ((gradients.norm(2, dim=1) - 1) ** 2).mean() * 0.1

    @step
    def train(batches):
        for p in netD.parameters():
            p.requires_grad = True
        for real in batches:
            optimizerD.zero_grad()
            fake = netG(torch.randn(real.size(0), 4)).detach()
            D_cost = netD(fake).mean() - netD(real).mean() + gradient_penalty(real, fake)
            D_cost.backward()
            optimizerD.step()
        for p in netD.parameters():
            p.requires_grad = False
        optimizerG.zero_grad()
        G_cost = -netD(netG(torch.randn(8, 4))).mean()
        G_cost.backward()
        optimizerG.step()
        return D_cost.detach(), G_cost.detach()

    for _ in range(12):
        D_cost, G_cost = train([torch.randn(8, 2) for _ in range(3)])
        yield D_cost + G_cost
    return netG, netD


@program()
def ddpm(step, model):
    class SinusoidalPosEmb(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.dim = dim

        def forward(self, x):
            half = self.dim // 2
            emb = math.log(10000) / (half - 1)
            emb = torch.exp(torch.arange(half, device=x.device) * -emb)
            emb = x[:, None] * emb[None, :]
            return torch.cat((emb.sin(), emb.cos()), dim=-1)

    class Denoiser(nn.Module):
        def __init__(self):
            super().__init__()
            self.time_mlp = nn.Sequential(SinusoidalPosEmb(8), nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 16))
            self.first, self.norm = nn.Conv2d(1, 8, 3, padding=1), nn.GroupNorm(2, 8)
            self.last = nn.Conv2d(8, 1, 3, padding=1)

        def forward(self, x, t):
            scale, shift = self.time_mlp(t)[:, :, None, None].chunk(2, dim=1)
            return self.last(F.silu(self.norm(self.first(x)) * (scale + 1) + shift))

    steps = 50
    betas = torch.linspace(1e-4, 0.02, steps)
    alphas_cumprod = torch.cumprod(1.0 - betas, dim=0)
    sqrt_alphas_cumprod, sqrt_one_minus = torch.sqrt(alphas_cumprod), torch.sqrt(1.0 - alphas_cumprod)
    net = model(Denoiser())
    optimizer = optim.AdamW(net.parameters(), lr=1e-3)
    ema = {name: p.detach().clone() for name, p in net.named_parameters()}

    def extract(a, t, x_shape):
        out = a.gather(-1, t)
        return out.reshape(t.shape[0], *((1,) * (len(x_shape) - 1)))

    @step
    def train(x_start):
        t = torch.randint(0, steps, (x_start.shape[0],)).long()
        noise = torch.randn_like(x_start)
        x_t = extract(sqrt_alphas_cumprod, t, x_start.shape) * x_start + extract(sqrt_one_minus, t, x_start.shape) * noise
        loss = F.smooth_l1_loss(net(x_t, t), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for name, p in net.named_parameters():
                ema[name].mul_(0.995).add_(p, alpha=1 - 0.995)
        return loss.item()

    for _ in range(12):
        yield train(common.digits(4)[0] * 2 - 1)
    return net, *ema.values()


@program()
def real_nvp(step, model):
    class RealNVP(nn.Module):
        def __init__(self, nets, nett, mask, prior):
            super().__init__()
            self.prior = prior
            self.mask = nn.Parameter(mask, requires_grad=False)
            self.t = nn.ModuleList([nett() for _ in range(len(mask))])
            self.s = nn.ModuleList([nets() for _ in range(len(mask))])

        def f(self, x):
            log_det_J, z = x.new_zeros(x.shape[0]), x
            for i in reversed(range(len(self.t))):
                z_ = self.mask[i] * z
                s = self.s[i](z_) * (1 - self.mask[i])
                t = self.t[i](z_) * (1 - self.mask[i])
                z = (1 - self.mask[i]) * (z - t) * torch.exp(-s) + z_
                log_det_J -= s.sum(dim=1)
            return z, log_det_J

        def log_prob(self, x):
            z, logp = self.f(x)
            return self.prior.log_prob(z) + logp

        forward = log_prob

    nets = lambda: nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(), nn.Linear(16, 2), nn.Tanh())
    nett = lambda: nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(), nn.Linear(16, 2))
    masks = torch.tensor([[0.0, 1.0], [1.0, 0.0]] * 2)
    prior = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
    flow = model(RealNVP(nets, nett, masks, prior))
    optimizer = optim.Adam([p for p in flow.parameters() if p.requires_grad], lr=1e-4)

    @step
    def train(noisy_moons):
        loss = -flow(noisy_moons).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        return loss

    for _ in range(12):
        angle = math.pi * torch.rand(16)
        yield train(torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(16, 2))
    return flow


@program()
def energy_model(step, model):
    """An energy by contrastive divergence with Langevin dynamics."""
    net = model(nn.Sequential(nn.Linear(2, 16), nn.SiLU(), nn.Linear(16, 1)))
    optimizer = optim.Adam(net.parameters(), lr=1e-3)

    def langevin(x, steps=5, size=0.1):
        for _ in range(steps):
            x = x.detach().requires_grad_(True)
            energy = net(x).sum()
            (grad,) = torch.autograd.grad(energy, x)
            x = x - 0.5 * size * grad + math.sqrt(size) * torch.randn_like(x)
        return x.detach()

    @step
    def train(data):
        samples = langevin(torch.randn_like(data))
        optimizer.zero_grad()
        positive, negative = net(data), net(samples)
        loss = positive.mean() - negative.mean() + 1e-2 * (positive**2 + negative**2).mean()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(12):
        yield train(torch.randn(16, 2) * 0.5 + 1)
    return net


@program()
def hopfield(step, model):
    """A modern Hopfield network that learns what it stores."""

    class Hopfield(nn.Module):
        def __init__(self, size, stored, beta=4.0):
            super().__init__()
            self.memory = nn.Parameter(0.1 * torch.randn(stored, size))
            self.beta = beta

        def forward(self, state, iterations=3):
            for _ in range(iterations):
                state = torch.softmax(self.beta * state @ self.memory.t(), dim=-1) @ self.memory
            return state

        def energy(self, state):
            return -torch.logsumexp(self.beta * state @ self.memory.t(), -1) / self.beta + 0.5 * (state * state).sum(-1)

    net = Hopfield(8, 4)
    recall = model(net)
    optimizer = optim.SGD(net.parameters(), lr=0.5, momentum=0.9)

    @step
    def train(patterns):
        noisy = patterns * torch.where(torch.rand_like(patterns) < 0.1, -1.0, 1.0)
        loss = F.mse_loss(recall(noisy), patterns) + 0.01 * net.energy(patterns).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    patterns = torch.randn(4, 8).sign()
    for _ in range(12):
        yield train(patterns)
    return net


@program(captures=2)
def autoencoder_with_batches_of_odd_sizes(step, model):
    """The last batch of each epoch is smaller."""
    net = model(nn.Sequential(nn.Linear(16, 4), nn.ReLU(), nn.Linear(4, 16)))
    optimizer = optim.NAdam(net.parameters(), lr=1e-2)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(20, 16)), batch_size=8, shuffle=True)

    @step
    def train(batch):
        (x,) = batch
        loss = F.l1_loss(net(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(6):
        for batch in loader:
            yield train(batch)
    return net
