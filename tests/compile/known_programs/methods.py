"""Ways to train: averages, accumulation, mixed precision, schedules, distillation, loops by hand."""

import copy
import math

from library import T as torch

from .registry import example, program

nn, F, optim = torch.nn, torch.nn.functional, torch.optim


def mlp(inputs=8, outputs=3):
    return nn.Sequential(nn.Linear(inputs, 16), nn.ReLU(), nn.Linear(16, outputs))


def batch(n=8):
    return torch.randn(n, 8), torch.randint(0, 3, (n,))


@program()
def polynomial_by_hand(step, model):
    """The first program of PyTorch's tutorial: a sine by a polynomial of third order."""
    x = torch.linspace(-math.pi, math.pi, 200)
    y = torch.sin(x)
    a, b, c, d = (torch.randn((), requires_grad=True) for _ in range(4))
    learning_rate = 1e-6

    @step
    def train():
        y_pred = a + b * x + c * x**2 + d * x**3
        loss = (y_pred - y).pow(2).sum()
        loss.backward()
        with torch.no_grad():
            for p in (a, b, c, d):
                p -= learning_rate * p.grad
                p.grad = None
        return loss

    for _ in range(12):
        yield train()
    return a, b, c, d


@program()
def examples_demo(step, model):
    parts = example("demo")
    x, targets = parts.spirals()
    p = parts.parameters()
    speed = {name: torch.zeros_like(value) for name, value in p.items()}

    @step
    def train():
        logits = parts.network(p, x)
        loss = parts.cross_entropy(logits, targets)
        loss.backward()
        with torch.no_grad():
            for name, value in p.items():
                speed[name].mul_(0.9).add_(value.grad)
                value -= 0.1 * speed[name]
                value.grad = None
        return loss

    for _ in range(12):
        yield train()
    return (*p.values(),)


@program()
def average_of_weights(step, model):
    class EMA:
        def __init__(self, model, decay):
            self.model, self.decay = model, decay
            self.shadow = {}
            for name, param in model.named_parameters():
                if param.requires_grad:
                    self.shadow[name] = param.data.clone()

        def update(self):
            for name, param in self.model.named_parameters():
                if param.requires_grad:
                    assert name in self.shadow
                    new_average = (1.0 - self.decay) * param.data + self.decay * self.shadow[name]
                    self.shadow[name] = new_average.clone()

    net = mlp()
    ema = EMA(net, 0.99)
    compiled = model(net)
    optimizer = optim.Adam(net.parameters(), lr=1e-3)

    @step
    def train(x, y):
        loss = F.cross_entropy(compiled(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update()
        return loss

    for _ in range(12):
        yield train(*batch())
    return net, *ema.shadow.values()


@program()
def average_of_weights_in_place(step, model):
    net = mlp()
    shadow = copy.deepcopy(net).requires_grad_(False)
    compiled = model(net)
    optimizer = optim.Adam(net.parameters(), lr=1e-3)

    @torch.no_grad()
    def update_ema(ema_model, model, decay=0.99):
        ema_params, model_params = dict(ema_model.named_parameters()), dict(model.named_parameters())
        for name, param in model_params.items():
            ema_params[name].mul_(decay).add_(param.data, alpha=1 - decay)

    @step
    def train(x, y):
        loss = F.cross_entropy(compiled(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update_ema(shadow, net)
        return loss

    for _ in range(12):
        yield train(*batch())
    return net, shadow


@program()
def mixed_precision(step, model):
    net = model(mlp())
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")

    @step
    def train(x, y):
        optimizer.zero_grad()
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            output = net(x)
            loss = F.cross_entropy(output, y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss

    for _ in range(12):
        yield train(*batch())
    return net


@program(captures=3)
def gradient_accumulation(step, model):
    net = model(mlp())
    optimizer = optim.AdamW(net.parameters(), lr=1e-3)
    accumulation_steps = 4

    @step
    def train(x, y, last):
        loss = F.cross_entropy(net(x), y) / accumulation_steps
        loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
        return loss

    for i in range(20):
        yield train(*batch(), (i + 1) % accumulation_steps == 0)
    return net


@program()
def micro_batches(step, model):
    net = model(mlp())
    optimizer = optim.AdamW(net.parameters(), lr=1e-3)

    @step
    def train(xs, ys):
        optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for x, y in zip(xs.chunk(4), ys.chunk(4)):
            loss = F.cross_entropy(net(x), y) / 4
            loss.backward()
            total += loss.detach()
        optimizer.step()
        return total

    for _ in range(12):
        yield train(*batch(16))
    return net


@program()
def warm_up_and_cosine(step, model):
    net = model(mlp())
    optimizer = optim.AdamW(net.parameters(), lr=1e-3)
    warmup = optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=4)
    cosine = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)
    scheduler = optim.lr_scheduler.SequentialLR(optimizer, [warmup, cosine], milestones=[4])

    @step
    def train(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(12):
        yield train(*batch())
        scheduler.step()
    return net


@program()
def reduce_on_plateau(step, model):
    net = model(mlp())
    optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, "min", patience=1, factor=0.5)
    clock = optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.95**epoch)

    @step
    def train(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(12):
        loss = train(*batch())
        scheduler.step(loss)
        clock.step()
        yield loss
    return net


@program(captures=3)
def scheduler_in_the_step(step, model):
    net = model(mlp())
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)

    @step
    def train(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss

    for _ in range(12):
        yield train(*batch())
    return net


@program()
def knowledge_distillation(step, model):
    teacher, student = mlp().eval(), model(mlp())
    ce_loss = nn.CrossEntropyLoss()
    optimizer = optim.Adam(student.parameters(), lr=0.001)
    T, soft_target_loss_weight, ce_loss_weight = 2, 0.25, 0.75

    @step
    def train(inputs, labels):
        optimizer.zero_grad()
        with torch.no_grad():
            teacher_logits = teacher(inputs)
        student_logits = student(inputs)
        soft_targets = nn.functional.softmax(teacher_logits / T, dim=-1)
        soft_prob = nn.functional.log_softmax(student_logits / T, dim=-1)
        soft_targets_loss = torch.sum(soft_targets * (soft_targets.log() - soft_prob)) / soft_prob.size()[0] * (T**2)
        label_loss = ce_loss(student_logits, labels)
        loss = soft_target_loss_weight * soft_targets_loss + ce_loss_weight * label_loss
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(12):
        yield train(*batch())
    return student


@program()
def mixture_density_network(step, model):
    class MDN(nn.Module):
        def __init__(self, n_hidden, n_gaussians):
            super().__init__()
            self.z_h = nn.Sequential(nn.Linear(1, n_hidden), nn.Tanh())
            self.z_pi = nn.Linear(n_hidden, n_gaussians)
            self.z_mu = nn.Linear(n_hidden, n_gaussians)
            self.z_sigma = nn.Linear(n_hidden, n_gaussians)

        def forward(self, x):
            z_h = self.z_h(x)
            return F.softmax(self.z_pi(z_h), -1), self.z_mu(z_h), torch.exp(self.z_sigma(z_h))

    def mdn_loss_fn(pi, mu, sigma, y):
        m = torch.distributions.Normal(loc=mu, scale=sigma)
        loss = torch.exp(m.log_prob(y))
        loss = torch.sum(loss * pi, dim=1)
        return torch.mean(-torch.log(loss))

    net = model(MDN(16, 4))
    optimizer = optim.Adam(net.parameters())

    @step
    def train(x, y):
        pi, mu, sigma = net(x)
        loss = mdn_loss_fn(pi, mu, sigma, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(12):
        y = torch.randn(16, 1)
        yield train(torch.sin(2 * y) + 0.1 * torch.randn(16, 1), y)
    return net


@program(step="it sets data of a tensor that is older than the call")
def sharpness_aware(step, model):
    """SAM: to the worst point near by, and back."""

    class SAM(optim.Optimizer):
        def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
            super().__init__(params, dict(rho=rho, **kwargs))
            self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
            self.param_groups = self.base_optimizer.param_groups

        @torch.no_grad()
        def first_step(self, zero_grad=False):
            grad_norm = self._grad_norm()
            for group in self.param_groups:
                scale = group["rho"] / (grad_norm + 1e-12)
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    self.state[p]["old_p"] = p.data.clone()
                    e_w = p.grad * scale.to(p)
                    p.add_(e_w)
            if zero_grad:
                self.zero_grad()

        @torch.no_grad()
        def second_step(self, zero_grad=False):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    p.data = self.state[p]["old_p"]
            self.base_optimizer.step()
            if zero_grad:
                self.zero_grad()

        def _grad_norm(self):
            norms = [p.grad.norm(p=2) for group in self.param_groups for p in group["params"] if p.grad is not None]
            return torch.norm(torch.stack(norms), p=2)

    net = model(mlp())
    optimizer = SAM(net.parameters(), optim.SGD, lr=0.1, momentum=0.9)

    @step
    def train(x, y):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.first_step(zero_grad=True)
        F.cross_entropy(net(x), y).backward()
        optimizer.second_step(zero_grad=True)
        return loss

    for _ in range(12):
        yield train(*batch())
    return net


@program()
def a_loop_of_tutorials(step, model):
    """Counts, sums and prints, as most loops do, around a step that returns what it needs."""
    net = model(nn.Sequential(nn.Flatten(), nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)))
    loss_fn = nn.CrossEntropyLoss()
    optimizer = optim.SGD(net.parameters(), lr=1e-2)

    @step
    def train_step(X, y):
        pred = net(X)
        loss = loss_fn(pred, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss, (pred.argmax(1) == y).type(torch.float).sum().item()

    @step
    def test_step(X, y):
        with torch.no_grad():
            pred = net(X)
            return loss_fn(pred, y).item(), (pred.argmax(1) == y).type(torch.float).sum().item()

    for _ in range(3):
        net.train()
        for _ in range(4):
            loss, correct = train_step(*batch())
            yield loss + correct
        net.eval()
        test_loss = 0
        for _ in range(3):
            loss, correct = test_step(*batch())
            test_loss += loss
        yield test_loss
    return net
