"""What a user writes, for mypy and pyright. (PyTorch's own stubs take every call but those that shall be refused.)"""

# pyright: reportUnnecessaryTypeIgnoreComment=error, reportUnusedExpression=false

from __future__ import annotations

from typing import Any

import gradiron as torch
import gradiron.nn.functional as F
from gradiron import Tensor, nn, optim
from gradiron.utils.data import DataLoader, Dataset, TensorDataset


def sizes(x: Tensor, shape: tuple[int, int]) -> None:
    torch.zeros(2, 3), torch.zeros((2, 3)), torch.zeros(shape), torch.zeros([2, 3], dtype=torch.float64, device="cpu")
    torch.ones(2, 3), torch.empty(2, 3, device=x.device), torch.rand(2), torch.randn(2, 3, requires_grad=True)
    torch.full((2, 3), 1.0), torch.full(x.shape, 0), torch.eye(3), torch.zeros(*shape), torch.zeros(x.size(0), x.shape[1])
    torch.randint(0, 10, (2, 3)), torch.randint(10, (2,)), torch.randperm(4), torch.arange(4), torch.arange(0, 1, 0.1)
    torch.linspace(0, 1, 5), torch.normal(0.0, 1.0, (2, 3)), torch.normal(x, 1.0), torch.rand(())
    x.view(2, 3), x.view((2, 3)), x.view(-1), x.view(x.size(0), -1), x.view(torch.int32), x.view(*shape), x.view(x.shape)
    (
        x.reshape(2, 3),
        x.reshape((2, 3)),
        x.reshape(-1),
        torch.reshape(x, (2, 3)),
        x.expand(2, -1),
        x.repeat(2, 2),
        x.repeat((2, 2)),
    )
    x.permute(0, 1), x.permute((0, 1)), torch.permute(x, (1, 0)), x.flip(0), x.flip(0, 1), x.flip([0]), torch.flip(x, [0])
    x.new_zeros(2, 3), x.new_zeros((2, 3)), x.new_ones(2), x.new_empty(2, 3), x.new_full((2,), 1.0), x.new_tensor([1.0])
    x.tile(2, 2), x.movedim(0, 1), x.transpose(0, 1), x.t(), x.unsqueeze(0), x.squeeze(), x.squeeze(0), x.squeeze((0, 1))
    n: int = x.size(0)
    s: torch.Size = x.size()
    m: int = x.shape[0] + x.ndim + len(x) + x.numel() + x.dim()
    a, b = x.shape
    print(n, s, m, a, b, torch.Size([2, 3]).numel(), x.size(dim=1), x.size(-1))


def reductions(x: Tensor) -> Tensor:
    x.sum(), x.sum(0), x.sum(dim=1, keepdim=True), x.sum((0, 1)), x.sum(-1, True), x.sum(dim=[0, 1]), torch.sum(x, 1)
    x.mean(dim=-1, keepdim=True), x.mean(), x.mean((0, 1)), torch.mean(x, dim=0, keepdim=True)
    (
        x.std(),
        x.std(0),
        x.std(dim=1, unbiased=False),
        x.std(0, keepdim=True),
        x.var(dim=1, unbiased=False, keepdim=True),
        x.std(False),
    )
    x.norm(), x.norm(2), x.norm(p=2, dim=1), torch.norm(x), x.prod(), x.prod(1), x.any(), x.all(dim=1), x.any(1, keepdim=True)
    top: Tensor = x.max(dim=1).values
    values, indices = x.max(1)
    y: Tensor = values + indices
    (
        x.max(),
        x.max(y),
        torch.max(x, 1)[1],
        torch.max(x),
        torch.max(x, y),
        x.min(dim=1, keepdim=True).indices,
        torch.min(x, dim=1).values,
    )
    (
        x.topk(2).values,
        x.topk(2, dim=1)[0],
        x.sort(descending=True).indices,
        x.median(),
        x.median(dim=0).values,
        x.kthvalue(1).values,
    )
    (
        x.argmax(),
        x.argmax(1),
        x.argmax(dim=1, keepdim=True),
        torch.argmax(x, dim=1),
        x.cumsum(0),
        x.logsumexp(1),
        torch.logsumexp(x, dim=(0, 1)),
    )
    u, w, v = torch.linalg.svd(x)
    q, r = torch.linalg.qr(x)
    parts = x.split(2), x.split([1, 1], dim=1), x.chunk(2, dim=-1), torch.split(x, 2), x.unbind(0), torch.chunk(x, 2)
    for part in x.split(1):
        part.sum()
    first, second = x.chunk(2, 1)
    hits = int((x.argmax(1) == y).sum().item())
    total = (x > 0).float().mean() + (x < 1).sum() + (x == y).float().sum() + u.sum() + w.sum() + v.sum() + q.sum() + r.sum()
    print(hits, parts, first, second)
    return top + total


def arithmetic(x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    torch.cat([x, y]), torch.cat((x, y), dim=1), torch.stack([x, y], 0), torch.cat([x, y], -1), torch.stack((x, y), dim=0)
    (
        torch.where(mask, x, y),
        torch.where(mask, x, 0.0),
        x.masked_fill(mask, float("-inf")),
        x.masked_fill(mask == 0, -1e9),
        x[mask],
    )
    (
        x.clamp(0, 1),
        x.clamp(min=0),
        torch.clamp(x, -1.0, 1.0),
        x.clamp_(min=1e-8),
        x.pow(2),
        x**2,
        2**x,
        x / 2,
        1 - x,
        -x,
        x @ y,
        x // 2,
        x % 2,
    )
    (
        torch.einsum("ij,jk->ik", x, y),
        torch.matmul(x, y),
        torch.bmm(x, y),
        x.mm(y),
        torch.meshgrid(x, y, indexing="ij"),
        torch.outer(x, y),
    )
    (
        torch.allclose(x, y),
        torch.equal(x, y),
        x.add_(y, alpha=2),
        x.mul_(2),
        torch.add(x, y, alpha=2),
        torch.lerp(x, y, 0.5),
        x.zero_(),
        x.fill_(0),
    )
    (
        x.gather(1, y),
        x.scatter_(1, y, 1.0),
        x.scatter_add_(0, y, x),
        x.index_select(0, y),
        torch.gather(x, 1, y),
        x.scatter(1, y, x),
    )
    (
        x.to("cpu"),
        x.to(torch.float64),
        x.to(y),
        x.to(x.device, non_blocking=True),
        x.float(),
        x.long(),
        x.cpu(),
        x.cuda(),
        x.double(),
        x.type(torch.long),
    )
    (
        x.detach().numpy(),
        x.tolist(),
        x.item(),
        x.clone(),
        x.contiguous(),
        x.data,
        x.requires_grad_(),
        x.detach_(),
        x.bool(),
        x.type_as(y),
        x.half(),
    )
    (
        x.normal_(0, 0.02),
        x.uniform_(-1, 1),
        x.bernoulli_(0.5),
        x.copy_(y),
        x.triu(1),
        torch.tril(torch.ones(2, 2)),
        torch.tensor([1.0, 2.0]),
        torch.tensor(3),
    )
    (
        x[0],
        x[:, 1:],
        x[..., None],
        x[0, 1],
        x.T,
        x.mT,
        torch.sigmoid(x),
        torch.tanh(x),
        x.exp().log(),
        torch.zeros_like(x),
        torch.ones_like(x),
    )
    (
        torch.multinomial(x, num_samples=1),
        torch.bernoulli(x),
        torch.from_numpy(x.numpy()),
        torch.as_tensor([1]),
        torch.roll(x, 1, 0),
        x.roll((1, 1), (0, 1)),
    )
    (
        torch.softmax(x, dim=-1),
        x.softmax(-1),
        x.log_softmax(dim=1),
        x.unfold(0, 2, 1),
        x.flatten(1),
        torch.flatten(x, 1),
        x.nonzero(),
        x.abs().sqrt(),
    )
    x[0] = 1
    x[mask] = y
    x += y
    x -= 0.1 * y
    x *= 2
    if x.grad is not None:
        x.grad.zero_()
    return x.view(-1) + y


class Net(nn.Module):
    scale: Tensor

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, kernel_size=(3, 3), stride=2, bias=False)
        self.norm, self.drop = nn.BatchNorm2d(width), nn.Dropout(0.1)
        self.body = nn.Sequential(nn.Linear(2, 3), nn.ReLU(inplace=True), nn.LayerNorm(3), nn.GELU())
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])
        self.rnn = nn.LSTM(3, 4, num_layers=2, batch_first=True)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.embedding = nn.Embedding(10, 4)
        self.weight = nn.Parameter(torch.randn(2, 3))
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x: Tensor, hidden: tuple[Tensor, Tensor] | None = None) -> Tensor:
        x = F.relu(self.norm(self.conv(x)))
        x = F.max_pool2d(x, 2)
        x = F.avg_pool2d(x, (2, 2), stride=2)
        x = x.view(x.size(0), -1)
        x = F.dropout(x, 0.5, training=self.training)
        for layer in self.layers:
            x = layer(x)
        out, (h, c) = self.rnn(x, hidden)
        out, _ = self.attention(out, out, out, need_weights=False)
        y: Tensor = F.log_softmax(self.body(out) * self.scale + F.linear(x, self.weight), dim=1) + h[-1] + c[-1]
        return y


class Numbers(Dataset[tuple[Tensor, int]]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.zeros(2), index


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (grad,) = grads
        x: Tensor = ctx.saved_tensors[0]
        return grad * 3 * x * x


@torch.no_grad()
def evaluate(model: nn.Module, loader: DataLoader[Any]) -> float:
    model.eval()
    total = 0.0
    for xb, yb in loader:
        total += F.cross_entropy(model(xb), yb).item()
    return total / len(loader)


def train() -> None:
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x, y = torch.randn(8, 2), torch.randint(0, 2, (8,))
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True, num_workers=0, drop_last=True)
    m = nn.Linear(2, 3).to(device)
    out: Tensor = nn.Linear(2, 3)(x)
    net = Net().to(device)
    opt = optim.Adam(m.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    sgd = torch.optim.SGD([{"params": m.parameters(), "lr": 0.1}], lr=0.1, momentum=0.9)
    adamw = torch.optim.AdamW(net.parameters())
    schedule = optim.lr_scheduler.CosineAnnealingLR(opt, T_max=10)
    criterion = nn.CrossEntropyLoss()
    loss = torch.tensor(0.0)
    for epoch in range(2):
        for xb, yb in loader:
            opt.zero_grad(set_to_none=True)
            loss = criterion(m(xb.to(device)), yb.to(device))
            loss.backward()
            nn.utils.clip_grad_norm_(m.parameters(), 1.0)
            opt.step()
        schedule.step()
        print(epoch, f"{loss.item():.3f}", evaluate(m, loader), schedule.get_last_lr()[0], opt.param_groups[0]["lr"])
    with torch.no_grad(), torch.autograd.set_detect_anomaly(False):
        Cube.apply(x).sum()
    (g,) = torch.autograd.grad(out.sum(), m.weight, create_graph=True)
    torch.save({"model": m.state_dict(), "opt": opt.state_dict()}, "x.pt")
    state = torch.load("x.pt", map_location=device)
    m.load_state_dict(state["model"])
    sgd.zero_grad()
    adamw.step()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        m(x)
    n = sum(p.numel() for p in m.parameters() if p.requires_grad)
    for name, p in m.named_parameters():
        nn.init.xavier_uniform_(p)
        print(name, p.shape, n, g.norm().item(), p.grad)
    item, k = Numbers()[0]
    print(item.sum(), k + 1)
    nn.init.normal_(m.weight, mean=0.0, std=0.02)
    nn.init.zeros_(m.bias)
    generator = torch.Generator().manual_seed(0)
    torch.randn(2, generator=generator)
    (
        F.scaled_dot_product_attention(x, x, x, is_causal=True),
        F.pad(x, (0, 1)),
        F.one_hot(y, num_classes=3),
        F.mse_loss(x, x, reduction="sum"),
    )
    (
        F.interpolate(x, scale_factor=2, mode="nearest"),
        F.softmax(x, dim=-1),
        F.gelu(x),
        F.binary_cross_entropy_with_logits(x, x),
        F.normalize(x, dim=-1),
    )
    torch.func.vmap(torch.sin)(x), torch.fft.fft(x), torch.distributions.Normal(0.0, 1.0).log_prob(x).sum()


def refused(x: Tensor) -> None:
    torch.zeros("2")  # type: ignore[arg-type]
    torch.zeros(2, 3.5)  # type: ignore[call-overload]
    x.view([1.5])  # type: ignore[list-item]
    x.max(dim=1).places  # type: ignore[attr-defined]
    x.mean(keepdim="yes")  # type: ignore[arg-type]
    torch.cat(1)  # type: ignore[arg-type]
    x.shape.total()  # type: ignore[attr-defined]
    torch.sigmiod(x)  # type: ignore[attr-defined]
    F.cross_entropy(x)  # type: ignore[call-arg]
    F.max_pool2d(x, 2, return_indices=True).sum()  # type: ignore[attr-defined]
    optim.Adamw([x])  # type: ignore[attr-defined]
    nn.Linaer(2, 3)  # type: ignore[attr-defined]
    nn.utils.clip_gradients  # type: ignore[attr-defined]
    x.item().upper()  # type: ignore[union-attr]
    x.tolist().upper()  # type: ignore[attr-defined]
    x.numpy().upper()  # type: ignore[attr-defined]
    nn.Linear(2, 3).state_dict().upper()  # type: ignore[attr-defined]
