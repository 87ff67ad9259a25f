"""Compiled functions run pointwise kernels in groups, with the bits of the kernels one by one."""

import gradiron as torch
import pytest
from gradiron.nn import functional as F


def explained(compiled):
    return torch._dynamo.explain(compiled)


def test_numbers_as_tensors_are_one_group_without_memory():
    def gradient(x):
        x = x.detach().requires_grad_()
        y = x
        for _ in range(50):
            y = y * x
        return torch.autograd.grad(y, x)[0]

    compiled = torch.compile(gradient, fullgraph=True)
    for k in range(5):
        x = torch.tensor(1 + k / 100)
        assert torch.equal(compiled(x), gradient(x))
    told = explained(compiled)
    assert told.op_count > 50 and (told.unit_count, told.group_count, told.bytes) == (1, 1, 0)


@pytest.mark.parametrize("numel", [1, 7, 1000, 50_000])
def test_a_chain_with_its_backward_passes_over_memory_a_few_times(numel):
    def step(x):
        x = x.detach().requires_grad_()
        y = ((x * 2 + 1).sigmoid() * x - 0.5).tanh() * 3
        loss = (y * y).sum()
        loss.backward()
        return loss.detach(), x.grad

    compiled = torch.compile(step, fullgraph=True)
    for _ in range(4):
        x = torch.randn(numel)
        for made, expected in zip(compiled(x), step(x), strict=True):
            assert torch.equal(made, expected)
    told = explained(compiled)
    assert told.op_count > 15 and told.unit_count <= 4
    assert 2 * told.traffic < told.traffic_apart
    assert f"{told.group_count} of them groups" in str(told)


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop])
def test_training_gives_the_same_parameters(kind):
    def train(wrap):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(5, 9), torch.nn.Tanh(), torch.nn.Linear(9, 1))
        optimizer = kind(model.parameters(), lr=0.01)
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

        def step(x):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
            loss.backward()
            optimizer.step()
            return loss.detach()

        run = wrap(step)
        losses = []
        for _ in range(8):
            losses.append(run(torch.randn(6, 5)))
            scheduler.step()
        return losses + [p.detach() for p in model.parameters()], run

    expected, _ = train(lambda step: step)
    made, compiled = train(torch.compile)
    assert explained(compiled).replays >= 5
    assert all(map(torch.equal, made, expected))
