"""Compiled functions on the GPU: groups are shaders, launches are kept, and the values are those of the function as it is."""

import copy

import gradiron as torch
import pytest
from gradiron.nn import functional as F

from library import NO_GPU

pytestmark = pytest.mark.skipif(NO_GPU, reason="GRADIRON_TEST_NO_GPU is set")


def explained(compiled):
    return torch._dynamo.explain(compiled)


def close(made, expected, tolerance=2e-5):
    assert type(made) is type(expected)
    if isinstance(made, torch.Tensor):
        assert made.device == expected.device
        torch.testing.assert_close(made.cpu(), expected.cpu(), rtol=tolerance, atol=tolerance, equal_nan=True)
        assert made.requires_grad == expected.requires_grad and made.stride() == expected.stride()
    elif isinstance(made, (tuple, list)):
        for one, other in zip(made, expected, strict=True):
            close(one, other, tolerance)
    else:
        assert made == expected


def check(function, inputs, calls=5, tolerance=2e-5):
    """Call the function and its compiled form with the same arguments; return the compiled form."""
    compiled = torch.compile(function, fullgraph=True)
    for _ in range(calls):
        given = inputs()
        other = copy.deepcopy(given)
        close(compiled(*given), function(*other), tolerance)
        close(given, other, tolerance)
    assert explained(compiled).replays == calls - 2
    return compiled


def randn(*shape, **options):
    return torch.randn(shape, **options).to("cuda")


def launches(compiled):
    told = explained(compiled)
    return told.launch_count_apart, told.launch_count


# Counts.


def test_a_chain_with_its_backward_is_one_launch():
    def step(x):
        x = x.detach().requires_grad_()
        y = x
        for _ in range(5):
            y = (y * 1.5).sin()
        y.backward(torch.ones_like(y))
        return y.detach(), x.grad

    compiled = check(step, lambda: (randn(1000),))
    apart, together = launches(compiled)
    assert (apart, together) == (21, 1)
    assert f"launches on the GPU: 1, without groups {apart}" in str(explained(compiled))


def test_a_layer_norm_by_hand_is_few_launches():
    def step(x, weight, bias, g):
        x, weight, bias = (t.detach().requires_grad_() for t in (x, weight, bias))
        mean = x.mean(-1, keepdim=True)
        variance = ((x - mean) ** 2).mean(-1, keepdim=True)
        y = (x - mean) / torch.sqrt(variance + 1e-5) * weight + bias
        y.backward(g)
        return y.detach(), x.grad, weight.grad, bias.grad

    compiled = check(step, lambda: (randn(64, 128), randn(128), randn(128), randn(64, 128)), tolerance=1e-4)
    apart, together = launches(compiled)
    assert (apart, together) == (30, 2)


def training(model, x, y, loss_of):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def step(x, y):
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def check_training(make, x, y, loss_of, tolerance=1e-4):
    torch.manual_seed(0)
    model = make().to("cuda")
    other = copy.deepcopy(model)
    compiled = torch.compile(training(model, x, y, loss_of), fullgraph=True)
    step = training(other, x, y, loss_of)
    for _ in range(6):
        close(compiled(x, y), step(x, y), tolerance)
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        close(one, two, tolerance)
        close(one.grad, two.grad, tolerance)
    return compiled


def test_a_step_of_an_mlp_is_few_launches():
    def make():
        return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))

    compiled = check_training(make, randn(64, 32), randn(64, 1), F.mse_loss)
    apart, together = launches(compiled)
    assert (apart, together) == (20, 10)


class Block(torch.nn.Module):
    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads = heads
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.wide, self.narrow = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.first(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(F.gelu(self.wide(self.second(x))))


def test_a_block_of_a_transformer_is_few_launches():
    torch.manual_seed(0)
    block = Block().to("cuda")
    parameters = list(block.parameters())

    def step(x, g):
        x = x.detach().requires_grad_()
        y = block(x)
        return y.detach(), torch.autograd.grad(y, [x, *parameters], g)

    compiled = check(step, lambda: (randn(4, 16, 64), randn(4, 16, 64)), tolerance=2e-4)
    apart, together = launches(compiled)
    assert (apart, together) == (50, 39)


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop])
def test_an_optimizer_is_one_launch_for_several_parameters(kind):
    torch.manual_seed(0)
    parameters = [randn(k + 1, 3).requires_grad_() for k in range(3)]
    others = [p.detach().clone().requires_grad_() for p in parameters]
    optimizers = kind(parameters, lr=0.1), kind(others, lr=0.1)
    schedulers = [torch.optim.lr_scheduler.ExponentialLR(each, 0.5) for each in optimizers]

    def step():
        optimizers[0].step()

    compiled = torch.compile(step, fullgraph=True)
    for _ in range(6):
        for one, two in zip(parameters, others, strict=True):
            one.grad = randn(*one.shape)
            two.grad = one.grad.clone()
        compiled()
        optimizers[1].step()
        for each in schedulers:
            each.step()
        for one, two in zip(parameters, others, strict=True):
            close(one.detach(), two.detach())
    assert launches(compiled)[1] <= 2


# Values.


def test_expressions_of_many_kinds():
    def step(x, y, row, column, one, mask, whole):
        a = x * row + column - one
        b = torch.where(mask, a, y).relu() + mask * 2
        c = (b > 0.5) | mask
        d = whole // 3 + (whole > 4)
        return a, b.half(), c, d, (a.half() * 3).bfloat16() + row.bfloat16(), x.t() * 2, (x / y).square(), one * one + 1

    def inputs():
        mask, whole = randn(5, 8) > 0, torch.randint(-9, 9, (5, 8), device="cuda")
        return randn(5, 8), randn(5, 8), randn(8), randn(5, 1), randn(), mask, whole

    check(step, inputs, tolerance=1e-2)


def test_small_integers_wrap_between_instructions():
    def step(x, y, z, w):
        return (x + y) // 3, (z * z) // 7, (w - 100) * 3 // 2, (x * 2).float() * 0.5, (z * 300).to(torch.int8) // 2

    def inputs():
        numbers = {torch.uint8: [200, 100, 3], torch.int16: [300, -300, 9], torch.int8: [-100, 100, 5]}
        x, z, w = (torch.tensor(values, dtype=dtype, device="cuda") for dtype, values in numbers.items())
        return x, x.flip(0), z, w

    check(step, inputs)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (33, 5), (4, 3, 8), (2, 2, 2, 3, 4)])
def test_folds_of_rows_join_groups(shape):
    def step(x):
        dims = [-1] if x.dim() else []
        y = x.exp()
        z = y / (y.sum(dims, keepdim=True) + 1)
        centred = z - z.mean(dims, keepdim=True)
        top = centred.amax(dims, keepdim=True)
        return (centred / (top + 1)).square().sum(), top, z * 2, (z * z).mean()

    check(step, lambda: (randn(*shape),))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_folds_of_halves(dtype):
    def step(x):
        y = x * 2
        return y.sum(-1), (y - y.mean(-1, keepdim=True)).sum(0), y.amax(-1)

    check(step, lambda: (randn(6, 40).to(dtype),), tolerance=2e-2)


def test_second_derivatives():
    def step(x, w):
        x = x.detach().requires_grad_()
        y = ((x * w).tanh() * x).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        (h,) = torch.autograd.grad((g * g).sum(), x)
        return y.detach(), g.detach(), h

    check(step, lambda: (randn(20, 9), randn(9)), tolerance=1e-4)


def test_gradients_outside_of_a_compiled_module():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 9), torch.nn.Tanh(), torch.nn.Linear(9, 2)).to("cuda")
    other = copy.deepcopy(model)
    compiled = torch.compile(model, fullgraph=True)
    for _ in range(5):
        x = randn(7, 5)
        one, two = x.clone().requires_grad_(), x.clone().requires_grad_()
        for run, t in ((compiled, one), (other, two)):
            run(t).square().sum().backward()
        close(one.grad, two.grad, 1e-4)
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        close(p.grad, q.grad, 1e-4)


def test_writes_in_place_and_through_views():
    def step(x, y):
        x.mul_(2).add_(y)
        x[1:].sub_(1)
        x[:, 0] = 7
        z = x.t() + 1
        y.copy_(x)
        y.zero_()
        y.add_(z.t())
        return z, x.sum()

    check(step, lambda: (randn(4, 6), randn(4, 6)))


def test_a_value_for_each_row_is_written_in_place():
    def step(x, state):
        state.mul_(0.9).add_(x.mean(1), alpha=0.1)
        return (x - state[:, None]) * 2

    check(step, lambda: (randn(70, 12), randn(70)))


def test_random_numbers_are_drawn_anew():
    def step(x):
        return F.dropout(x, 0.5) * 2 + torch.rand(8, 9, device="cuda")

    compiled = torch.compile(step, fullgraph=True)
    x = randn(8, 9)
    made = []
    for run in (compiled, step):
        torch.manual_seed(3)
        made.append([run(x) for _ in range(5)])
    close(made[0], made[1])
    assert not torch.equal(made[0][3], made[0][4])


def test_memory_is_found_again():
    def step(x, y):
        return (x + y).sin() * x

    compiled = check(step, lambda: (randn(40), randn(40)), calls=4)
    x, y = randn(40), randn(80)
    for arguments in ((x, x), (x, y[:40]), (x, y[40:]), (y[4:44], x), (x, y[40:]), (x, y[40:]), (x, x)):
        close(compiled(*arguments), step(*arguments))
    first = compiled(x, y[:40])
    second = compiled(y[:40], x)
    close(first, step(x, y[:40]))
    close(second, step(y[:40], x))


def test_results_have_memory_of_their_own_and_arguments_are_let_go():
    def step(x):
        return x * 2 + 1

    compiled = torch.compile(step, fullgraph=True)
    kept = [compiled(torch.full((1000,), float(k), device="cuda")) for k in range(6)]
    for k, y in enumerate(kept):
        assert (y == 2 * k + 1).all()
    del kept, y
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    for _ in range(5):
        compiled(torch.ones(1000, device="cuda"))
    assert torch.cuda.memory_allocated() == before


def test_more_tensors_than_a_shader_binds():
    def step(*tensors):
        total = tensors[0]
        for t in tensors[1:]:
            total = total * 0.5 + t
        return total, [t * total for t in tensors]

    compiled = check(step, lambda: tuple(randn(30) for _ in range(40)))
    apart, together = launches(compiled)
    assert 1 < together < apart // 2


def test_more_rows_than_a_shader_binds():
    def step(state, *tensors):
        made = []
        for t in tensors:
            state.mul_(0.5).add_(t.mean(1))
            made.append(t - state[:, None])
        return made

    compiled = check(step, lambda: (randn(70), *(randn(70, 12) for _ in range(30))))
    apart, together = launches(compiled)
    assert 1 < together < apart // 4


def test_between_the_devices():
    def step(x):
        y = (x * 2 + 1).to("cuda")
        z = ((y + 1) * y).cpu()
        return z * 2, y

    check(step, lambda: (torch.randn(5),))


def test_a_number_of_the_host_beside_tensors_of_the_gpu():
    def step(x, one):
        return (x * one + one) * 2

    check(step, lambda: (randn(9), torch.randn(())))


def test_constants_are_numbers():
    def step(x):
        y = torch.zeros(3, 4, device="cuda") + 2
        y[1] = 5
        return x * y + torch.ones(4, device="cuda"), torch.full((3, 4), 2.0, device="cuda") * 3

    check(step, lambda: (randn(3, 4),))


def test_decisions_read_the_gpu():
    def step(x):
        y = x * 2 + 1
        if y.sum() > 0:
            return y.sin()
        return y.cos() + 1

    compiled = torch.compile(step, fullgraph=True)
    signs = [1, 1, 1, -1, -1, 1, -1, 1]
    for sign in signs:
        x = torch.full((4,), 3.0 * sign, device="cuda")
        close(compiled(x), step(x))
    assert explained(compiled).replays >= 3


def test_reasons_are_those_of_the_host():
    def step(x):
        return x * 2 if x.tolist()[0] > 0 else x

    compiled = torch.compile(step)
    for _ in range(3):
        x = randn(4)
        close(compiled(x), step(x))
    assert explained(compiled).break_reasons


def test_errors_name_the_operator():
    def step(x, index):
        return x[index] * 2

    compiled = torch.compile(step, fullgraph=True)
    good, bad = torch.tensor([0, 2], device="cuda"), torch.tensor([0, 9], device="cuda")
    x = randn(3)
    for _ in range(4):
        close(compiled(x, good), step(x, good))
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        compiled(x, bad).cpu()
    close(compiled(x, good), step(x, good))


def test_a_graph_by_hand_is_fused():
    x, y = randn(50), torch.empty(50, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y.copy_(((x * 2 + 1).sin() * x).exp())
        total = y.sum()
    for _ in range(3):
        x.copy_(randn(50))
        graph.replay()
        close(y, ((x * 2 + 1).sin() * x).exp())
        close(total, y.sum())


def test_numbers_that_differ_from_call_to_call():
    class Net:
        def __init__(self):
            self.h, self.count = torch.zeros(3, 5, device="cuda"), 0

        def go(self, x, t):
            self.count += 1
            self.h = torch.tanh(self.h * 0.5 + x * t)
            return self.h / self.count - t

    one, other = Net(), Net()
    compiled = torch.compile(other.go, fullgraph=True)
    for k in range(9):
        x = torch.arange(15.0, device="cuda").reshape(3, 5) * k
        close(compiled(x, 0.3 * k), one.go(x, 0.3 * k))
        close((other.h, other.count), (one.h, one.count))
    assert explained(compiled).graph_count == 1 and explained(compiled).replays >= 5
