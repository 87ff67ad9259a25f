"""Bad calls, one line of Python each (`;` separates steps). `make_errors.py` records what PyTorch raises for them."""

import re
import warnings

SETUP = """
f = T.ones(2, 3); i = T.arange(6).reshape(2, 3); b = i > 2; v = T.arange(3.0); s = T.tensor(2.0)
g = T.ones(2, 3, requires_grad=True); h = g * 2; w = T.ones(3, requires_grad=True)
def raiser(*_): raise KeyError('mine')
"""

CASES = {
    "creation": """
T.zeros(-1)
T.zeros(2, -3)
T.zeros('a')
T.zeros(2.5)
T.ones((2, 'x'))
T.empty(2**40, 2**40)
T.empty(10**18, dtype=T.int8)
T.full((2,), 'x')
T.full((-2,), 1.0)
T.tensor([[1, 2], [3]])
T.tensor('abc')
T.tensor([1, 'a'])
T.tensor([1, None])
T.tensor(None)
T.tensor()
T.tensor([1, 2], requires_grad=True)
T.tensor(300, dtype=T.uint8)
T.tensor([2**70])
T.tensor([1.0], dtype='float32')
T.tensor([1.0], device='nope')
T.tensor([1.0], device='cpu:x')
T.device('gibberish')
T.device('')
T.device('cuda0')
T.device('cpu-1')
T.ones(2).to('float32')
T.device('cuda:-1')
T.arange(0, 5, -1)
T.arange(5, 0)
T.arange(0, 5, 0)
T.arange(float('inf'))
T.arange(float('nan'))
T.linspace(0, 1, -1)
T.eye(-1)
T.eye(2, -1)
T.zeros(3, dtype=T.int64, requires_grad=True)
T.rand(2, dtype=T.int64)
T.randn(3, dtype=T.int32)
T.randint(5, 5, (2,))
T.randint(5, 2, (2,))
T.randperm(-1)
T.normal(0.0, -1.0, (2,))
T.bernoulli(T.tensor([1.5]))
T.bernoulli(T.tensor([1, 0]))
v.uniform_(2.0, 1.0)
i.uniform_()
i.normal_()
v.normal_(0.0, -1.0)
v.random_(5, 5)
v.bernoulli_(1.5)
T.manual_seed('a')
T.set_default_dtype(T.int64)
T.set_default_dtype('float32')
T.from_numpy([1, 2])
T.as_tensor('x')
T.zeros_like(3)
f.new_zeros('a')
T.FloatTensor('a')
T.Size([1, 'a'])
T.Size(3)
""",
    "views": """
f.view(4, 2)
f.view(-1, -1)
f.view(-1, 4)
f.view(-2, 3)
f.view('a')
f.t().view(6)
f.reshape(5)
f.reshape(-1, 4)
f.reshape(-1, -1)
T.zeros(0, 3).view(-1, 0)
f.transpose(0, 2)
f.transpose(0)
T.ones(2, 2, 2).t()
f.permute(0)
f.permute(0, 0)
f.permute(0, 1, 2)
f.permute(0, 5)
f.expand(3, 3)
f.expand(3)
f.expand(-1, 2, 3)
f.squeeze(2)
f.unsqueeze(4)
f.unsqueeze(-4)
f.select(0, 5)
f.select(3, 0)
s.select(0, 0)
f.narrow(0, 1, 5)
f.narrow(0, 5, 1)
f.narrow(0, 0, -1)
f.chunk(0)
f.chunk(-1)
s.chunk(2)
f.split(-1)
f.split([1, 2])
f.split(0, 1)
s.split(1)
f.unbind(2)
s.unbind()
f.diagonal(0, 0, 0)
v.diagonal()
f.diagonal(0, 0, 3)
f.as_strided((2, 3), (1,))
f.as_strided((2, 3), (-1, 1))
f.as_strided((3, 3), (3, 1))
f.as_strided((2,), (1,), -1)
f.unfold(0, 3, 1)
f.unfold(0, 1, 0)
f.unfold(2, 1, 1)
f.unfold(0, -1, 1)
f.flatten(1, 0)
f.flatten(0, 2)
f.unflatten(1, (2, 2))
f.unflatten(1, ())
f.movedim(0, 2)
f.movedim((0, 1), (0,))
f.movedim((0, 0), (0, 1))
f.swapaxes(0, 2)
f.broadcast_to((3, 3))
T.broadcast_tensors(f, T.ones(4))
f.expand_as(T.ones(4))
f.view_as(v)
f.flip(0, 0)
f.flip(2)
f.roll(1, 2)
f.roll((1, 2), 0)
f.repeat(2)
f.repeat(-1, 2)
v.repeat_interleave(-1)
v.repeat_interleave(T.tensor([1, 2]))
""",
    "indexing": """
f[2]
f[-3]
f[0, 3]
f[0, 0, 0]
s[0]
f['a']
f[1.5]
f[::-1]
f[::0]
f[0:1.5]
f[T.tensor([2])]
f[T.tensor([0, -3])]
f[:, T.tensor([0, 3])]
f[T.tensor([True, False, True])]
f[T.tensor([[True, False]])]
f[T.tensor([0.5])]
f[T.tensor([0, 1]), T.tensor([0, 1, 2])]
f[[0, 5]]
f[3] = 1.0
f[0] = 'x'
f[0] = T.ones(4)
f[0] = [1.0, 2.0]
f[T.tensor([0, 1])] = T.ones(3, 3)
f[T.tensor([5])] = 1.0
f[b] = T.ones(2)
f[T.tensor([0.5])] = 1.0
del f[0]
len(s)
iter(s)
f.index_select(0, T.tensor([2]))
f.index_select(0, T.tensor([[0]]))
f.index_select(0, T.tensor([0.0]))
f.index_select(2, T.tensor([0]))
f.index_select(0, 1)
f.gather(0, T.tensor([0]))
f.gather(0, T.tensor([[5]]))
f.gather(1, T.tensor([[0.0]]))
f.gather(2, T.tensor([[0]]))
f.gather(0, T.zeros(2, 4, dtype=T.int64))
f.scatter(0, T.tensor([[5]]), 1.0)
f.scatter(0, T.tensor([0]), 1.0)
f.scatter(0, T.tensor([[0, 1]]), T.ones(1, 1))
f.scatter(0, T.tensor([[0.0]]), 1.0)
f.scatter_add(0, T.tensor([[5]]), T.ones(1, 1))
f.scatter_add(0, T.tensor([[0]]), T.ones(1, 1, dtype=T.float64))
f.index_add(0, T.tensor([0, 1]), T.ones(3, 3))
f.index_add(0, T.tensor([4]), T.ones(1, 3))
f.index_fill(0, T.tensor([4]), 1.0)
f.index_fill(0, T.tensor([0.0]), 1.0)
f.masked_fill(i, 1.0)
f.masked_fill(b, T.ones(2))
f.masked_fill(T.ones(4, dtype=T.bool), 1.0)
f.masked_select(i)
f.masked_select(T.ones(4, dtype=T.bool))
f.take(T.tensor([6]))
f.take(T.tensor([0.0]))
T.cat([])
T.cat([f, v])
T.cat([f, T.ones(3, 2)])
T.cat([f, f], 2)
T.cat(f)
T.cat([f, 1])
T.stack([])
T.stack([f, v])
T.stack([f, f], 4)
T.hstack([])
T.vstack([f, T.ones(2, 4)])
f.topk(4)
f.topk(-1)
f.topk(1, 2)
f.sort(2)
f.kthvalue(4)
f.kthvalue(0)
v.tril()
""",
    "operators": """
f + T.ones(4)
f + T.ones(3, 2)
f + 'a'
f + None
f + [1, 2]
'a' + f
T.add(f)
T.add(f, f, f)
T.add(f, f, alpha='x')
T.add(i, i, alpha=0.5)
T.add(f, f, beta=1)
f.add()
f.exp(1)
T.exp('a')
T.exp()
T.exp(3.0)
T.nope
f.nope
f.nope = 1; del f.nope; f.nope
f - b
b - b
-b
b + T.ones(4)
i.add_(0.5)
i.mul_(f)
i.div_(2)
i.exp_()
b.add_(1)
f.add_(T.ones(2, 2, 3))
v.add_(f)
v.expand(2, 3).add_(1)
i / 0; i // 0
i % 0
i.fmod(0)
i ** -1
T.pow(2, 3)
T.pow(T.tensor([2]), T.tensor([-1])).add_('a')
f.div(2, rounding_mode='up')
f & f
f | 1
~f
f << 'a'
T.bitwise_and(f, f)
T.clamp(f)
f.clamp('a')
f.clamp(min=T.ones(4))
T.where(f, f, f)
T.where(b, f, T.ones(4))
T.lerp(f, f, 'a')
T.lerp(f, i, 0.5)
T.addcmul(f, f)
T.addcdiv(i, i, i)
T.maximum(f, 'a')
T.fmax(f)
f.round(decimals='a')
i.round(decimals=1)
T.heaviside(f, i)
T.isclose(f, i)
T.allclose(f, T.ones(2, 3, dtype=T.float64))
T.equal(f, 3)
T.nan_to_num('a')
T.exp(f, out=T.empty(2, 3, dtype=T.int64))
T.exp(f, out=3)
T.exp(g, out=T.empty(2, 3))
T.add(f, f, out=g)
f.sum(2)
f.sum((0, 0))
f.sum('a')
f.sum(dtype='x')
f.mean(3)
i.mean()
b.mean()
f.prod((0, 1))
T.max(f, 0, 1, 2)
f.max(2)
T.zeros(0).max()
T.zeros(0).argmax()
T.zeros(0, 2).max(0)
T.zeros(0, 2).amax(0)
T.zeros(0).amax()
f.argmax(2)
f.all(2)
i.norm()
f.norm(dim=2)
f.norm('x')
i.var()
f.std(3)
f.logsumexp(2)
f.cumsum()
f.cumsum(2)
f.cumprod('a')
f.softmax(2)
T.softmax(i, 0)
f.softmax()
i.log_softmax(0)
f.aminmax(dim=2)
""",
    "linear algebra": """
f @ f
f @ T.ones(4)
f @ 3
f @ s
s @ s
T.mm(f, f)
T.mm(f, v)
T.mm(f, T.ones(3, 2, dtype=T.float64))
T.mm(f, i.t())
T.mm(f, T.ones(3, 2, 2))
T.bmm(f, f)
T.bmm(T.ones(2, 2, 3), T.ones(2, 2, 3))
T.bmm(T.ones(2, 2, 3), T.ones(3, 3, 2))
T.mv(f, f)
T.mv(f, T.ones(2))
T.dot(v, f)
T.dot(v, T.ones(2))
T.dot(v, T.ones(3, dtype=T.float64))
T.outer(f, v)
T.inner(f, T.ones(2))
T.addmm(T.ones(4), f, T.ones(3, 2))
T.addmm(f, f, f)
T.addmv(T.ones(4), f, v)
T.baddbmm(T.ones(4), T.ones(1, 2, 3), T.ones(1, 3, 2))
T.matmul(T.ones(2, 3, 4), T.ones(3, 4, 2))
T.einsum('ij,jk', f, f)
T.einsum('ij,jk->il', f, f.t())
T.einsum('ij', f, f)
T.einsum('ijk', f)
T.einsum('i1', f)
T.einsum('ii->ii', f)
""",
    "autograd": """
f.backward()
f.sum().backward()
h.backward()
h.backward(T.ones(4))
h.backward(T.ones(3))
h.backward('a')
y = (g * g).sum(); y.backward(); y.backward()
y = g.exp().sum(); y.backward(); y.backward()
y = (g * g).sum(); T.autograd.grad(y, g); T.autograd.grad(y, g)
T.autograd.grad(h, g)
T.autograd.grad(h.sum(), f)
T.autograd.grad(h.sum(), w)
T.autograd.grad(h.sum(), [])
T.autograd.grad(f, g)
T.autograd.grad(h.sum(), g, grad_outputs=T.ones(4))
T.autograd.grad(h, g, T.ones(2))
T.autograd.grad([h.sum(), h.sum()], g, [T.ones(())])
h.sum().backward(inputs=[])
h.sum().backward(inputs=[T.ones(2)])
h.sum().backward(inputs=[h.detach()])
g.add_(1)
g.mul_(g)
g[0] = 1.0
g[0, 0].zero_()
g.view(6).add_(1)
g.zero_()
g.copy_(f)
g.t_()
a = g * 1; c = a * a; a.add_(1); c.sum().backward()
a = g * 1; c = a.exp(); c.mul_(2); c.sum().backward()
a = g.clone(); c = a @ a.t(); a[0, 0] = 5.0; c.sum().backward()
a = f.clone(); c = (w * a).sum(); a.add_(1); c.backward()
a = w.sigmoid(); a.add_(1); a.sum().backward()
a = g * 1; c, d = a.unbind(0); c.add_(1)
a = g * 1; c = a.chunk(2)[0]; c.mul_(2)
h.requires_grad_(False)
h.requires_grad = False
i.requires_grad_()
i.requires_grad = True
b.requires_grad_()
f.requires_grad = 'a'
f.grad = T.ones(2)
f.grad = T.ones(2, 3, dtype=T.float64)
f.grad = 'a'
g.grad_fn = None
g.is_leaf = True
f.retain_grad()
f.register_hook(print)
g.register_hook(lambda t: 'x'); (g * 2).sum().backward()
g.register_hook(lambda t: t[0]); (g * 2).sum().backward()
g.register_hook(raiser); (g * 2).sum().backward()
h.register_hook(lambda t: T.ones(5)); h.sum().backward()
h.numpy()
g.numpy()
h.__array__()
h.deepcopy_me
import copy; copy.deepcopy(h)
T.set_grad_enabled('a')
list(h.unbind(0))[0].detach_()
h.data.requires_grad_().add_(1)
""",
    "kernels": """
T.abs(b)
b.ceil()
b.floor()
b.trunc()
b.round()
i.frac()
b.fmod(b)
b.remainder(b)
b // b
T.div(b, b, rounding_mode='trunc')
T.hypot(i, i)
T.logaddexp(i, i)
b ** b
b << b
f << f
i.round(decimals=1)
i.round(decimals=0)
T.nn.functional.elu(i)
T.nn.functional.silu(i)
T.nn.functional.leaky_relu(i)
T.nn.functional.softplus(i)
T.nn.functional.logsigmoid(i)
b.kthvalue(1)
T.var_mean(i)
T.std_mean(i)
+b
b.geometric_(0.5)
i.exponential_()
i.cauchy_()
T.dot(v, v.double()[:2])
T.view_as_complex(T.ones(2, 2).to(T.complex64))
""",
    "written in place": """
x = T.ones(3, 1); x **= v
x = T.arange(3).reshape(3, 1); x <<= T.arange(3)
x = T.arange(3).reshape(3, 1); x >>= T.arange(3)
x = T.ones(3, 1).bool(); x.fmod_(T.ones(3).bool())
x = T.ones(3, 1).to(T.complex64); x.atan2_(v.to(T.complex64))
T.ones(2).to(T.complex64).abs_()
T.ones(1).addmm_(f, f.t())
T.ones(1).addmv_(f, v)
T.ones(1).baddbmm_(T.ones(2, 2, 2), T.ones(2, 2, 2))
x = T.ones(3, requires_grad=True); x **= 2
x = T.ones(3); x **= 'a'
T.nn.functional.elu(w, inplace=True)
T.nn.functional.silu(w, inplace=True)
T.nn.functional.relu(w, inplace=True)
T.nn.functional.leaky_relu(w, inplace=True)
""",
    "small words": """
T.ones(2, 0).aminmax(dim=1)
T.ones(1, 2).masked_scatter(T.ones(1, 2), v)
T.ones(2, 2, 2).trace()
T.ones(1).reshape(0, -1)
T.ones(1).view(0, -1)
T.empty(0).reshape(0, -1)
T.multinomial(T.ones(2 ** 24 + 1), 3)
T.einsum('i')
T.einsum()
T.einsum(v, [60])
T.einsum(v)
T.atleast_1d([3])
T.eq(2, v)
T.max(2, v)
T.linspace(0, 3, 1.0)
T.fmod(2, v)
""",
    "conversion": """
f.item()
T.zeros(0).item()
int(f)
float(f)
bool(f)
bool(T.zeros(0))
complex(f)
range(10)[f]
[1, 2][v]
[1, 2][s]
range(3)[T.tensor(5)]
f.to('nope')
f.to(T.float32, 'x')
f.type('nope')
f.type(T.nope)
f.get_device('a')
f.copy_(T.ones(4))
f.copy_('a')
f.fill_('a')
f.fill_(T.ones(2))
f.zero_(1)
f.size(2)
f.size('a')
f.stride(2)
f.dim(1)
f.shape = (3, 2)
f.dtype = T.int64
f.data = 3
f.tolist(1)
f.is_contiguous(3)
T.result_type('a', 1)
T.can_cast(1, 2)
T.promote_types(f, f)
f < 'a'
f == 'a'; f > None
'a' in f
None in f
T.finfo(T.int64)
T.iinfo(T.float32)
T.is_tensor()
T.numel(3)
len(T.tensor(1))
T.broadcast_shapes((2,), (3,))
T.broadcast_shapes((-2,), (3,))
setattr(f, 'T', 1)
T.is_floating_point(3)
""",
    "networks": """
T.nn.Linear(3, 2)(T.ones(2, 4))
T.nn.Linear(3, 2)(i)
T.nn.Linear(3, 2)(f.double())
T.nn.Linear(3, 2)(f[None].half())
T.nn.Linear(3, 2)(v.bfloat16())
T.nn.Linear(3, 2, bias=False)(f.double())
T.addmm(f, f.double(), T.ones(3, 3))
T.addmm(f, f.double(), f)
f.addmm_(f, T.ones(3, 3).double())
T.nn.Conv1d(3, 4, 1)(f[..., None].double())
T.nn.Conv2d(3, 4, 1)(T.ones(1, 3, 2, 2).double())
T.nn.Conv2d(3, 4, 1)(T.ones(1, 3, 2, 2).long())
T.nn.Conv2d(3, 4, 1)(T.ones(3, 2, 2).half())
T.nn.Conv2d(3, 4, 1, bias=False)(T.ones(1, 3, 2, 2).double())
T.nn.Conv2d(3, 4, 3)(T.ones(2, 1, 8, 8))
T.nn.Conv2d(3, 4, 5)(T.ones(2, 3, 3, 3))
T.nn.Conv2d(3, 4, 3)(T.ones(8, 8))
T.nn.ConvTranspose2d(3, 4, 1)(T.ones(1, 3, 2, 2).double())
T.nn.functional.conv1d(T.ones(1, 1, 3), T.ones(1, 1, 0))
T.nn.functional.conv2d(T.ones(1, 1, 3, 3), T.ones(1, 1, 0, 2))
T.nn.functional.conv3d(T.ones(1, 1, 3, 3, 3), T.ones(1, 1, 2, 0, 2))
T.nn.functional.conv_transpose2d(T.ones(1, 1, 3, 3), T.ones(1, 1, 2, 0))
T.nn.BatchNorm1d(3)(T.ones(1, 3))
T.nn.BatchNorm1d(3)(i)
T.nn.BatchNorm2d(3)(f)
T.nn.LayerNorm(3)(f.double())
T.nn.LayerNorm(3)(i)
T.nn.LayerNorm(4)(f)
T.nn.GroupNorm(1, 3)(i)
T.nn.GroupNorm(1, 3)(f.double())
T.nn.GroupNorm(2, 3)
T.nn.GRUCell(3, 4)(f.double())
T.nn.LSTMCell(3, 4)(i)
T.nn.LSTMCell(3, 4)(f, (T.ones(2, 4), T.ones(2, 5)))
T.nn.LSTM(3, 4)(f.double())
T.nn.LSTM(3, 4)(T.ones(2, 5, 4))
T.nn.LSTM(3, 4)(T.ones(2, 5, 3), (T.ones(1, 4, 4), T.ones(1, 5, 4)))
T.nn.MultiheadAttention(4, 2)(*[T.ones(2, 3, 4).double()] * 3)
T.nn.MultiheadAttention(4, 2)(T.ones(2, 3, 5), T.ones(2, 3, 4), T.ones(2, 3, 4))
T.nn.functional.scaled_dot_product_attention(f[None].double(), f[None], f[None])
T.nn.functional.scaled_dot_product_attention(f[None].half(), f[None], f[None])
T.nn.functional.scaled_dot_product_attention(f[None], f[None], f[None], attn_mask=T.ones(2, 2).long())
T.nn.functional.bilinear(f.double(), f, T.ones(2, 3, 3))
T.nn.functional.bilinear(f, f, T.ones(2, 3, 3), T.ones(2).double())
T.nn.functional.bilinear(f, T.ones(2, 4), T.ones(2, 3, 3))
T.nn.functional.bilinear(T.ones(2, 4), f, T.ones(2, 3, 3))
T.nn.functional.bilinear(f, T.ones(3, 3), T.ones(2, 3, 3))
T.nn.functional.bilinear(f, f[None], T.ones(2, 3, 3))
T.nn.functional.bilinear(f, f, T.ones(2, 3, 3), T.ones(3))
f.mean(dtype=T.int64)
f.mean(0, dtype=T.bool)
i.mean()
T.nn.Embedding(3, 4)(f)
T.nn.Embedding(3, 4)(T.tensor([0, 5]))
T.nn.functional.cross_entropy(f, T.tensor([0, 5]))
T.nn.functional.cross_entropy(f, T.tensor([0, 1, 2]))
T.nn.functional.cross_entropy(f, T.tensor([0.0, 1.0]))
T.nn.functional.cross_entropy(i, T.tensor([0, 1]))
T.nn.functional.mse_loss(f, T.ones(2))
T.nn.functional.mse_loss(i, i)
T.nn.functional.binary_cross_entropy(f * 5, f)
T.nn.functional.binary_cross_entropy(f, T.ones(2))
T.nn.functional.binary_cross_entropy(f, f.long())
T.nn.functional.binary_cross_entropy_with_logits(f, v)
T.func.functional_call(T.nn.Linear(3, 2), {'in_features': f}, f)
T.func.functional_call(T.nn.Linear(3, 2), {'weight': 3}, f)
T.func.functional_call(T.nn.Linear(3, 2), {'foo': f}, f, strict=True)
T.nn.Linear(3, 2).load_state_dict({})
T.nn.Linear(3, 2).load_state_dict({'weight': f, 'bias': v})
T.optim.SGD([], lr=0.1)
T.optim.SGD([h], lr=0.1)
T.optim.SGD([g], lr=-1.0)
T.optim.Adam([g], betas=(1.0, 2.0))
T.utils.data.TensorDataset(f, v)
list(T.utils.data.DataLoader([1, 2, 3], batch_size=0))
list(T.utils.data.DataLoader([f, v], batch_size=2))
list(T.utils.data.DataLoader([object()]))
list(T.utils.data.DataLoader([], shuffle=True))
""",
}


def source(group):
    return [line for line in CASES[group].strip().splitlines() if line]


def outcome(code, library):
    """What one bad call raises: the names of its exception's bases, nearest first, and its message."""
    space = {"T": library}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(SETUP, space)
        try:
            exec(code, space)
        except Exception as error:
            return [c.__name__ for c in type(error).__mro__[:-2]], str(error)
    return None, None


def first_sentence(message):
    """The part of a message that must agree: no hints, no list of signatures, no names of internals."""
    memory = re.search(r"you tried to allocate \d+ bytes", message)
    if memory:
        return memory[0]
    line = (
        message.split("\n")[0].split(" (Triggered internally")[0].split("  (Could this")[0].split(", but expected ")[0].strip()
    )
    line = re.split(r"[.!?]\s+(?=[A-Z])", line, maxsplit=1)[0].rstrip(".!?: ")
    for pattern, plain in INTERNALS.items():
        line = re.sub(pattern, plain, line)
    return line


INTERNALS = {
    r"torch\._C\.TensorBase|TensorBase": "Tensor",
    r"Expected one of .* device type": "Expected one of ... device type",
    r"module '\w+'": "module",
}
