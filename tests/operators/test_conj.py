"""Conjugates and opposites that are made when they are read: `x.conj()` is a view, and so is `x.conj().imag`. Nothing is
computed, writes go through, histories follow, and every operator sees the values."""

import copy
import pickle

import numpy as np
import pytest

from library import T

# What PyTorch says of its own parts when they are loaded.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit")
C64, C128 = T.complex64, T.complex128
DATA = [[1 + 2j, 3 - 1j, 2 + 0.5j], [-1 + 0.25j, 0.5 - 2j, 1 + 1j]]


def make(device="cpu", grad=False, dtype=C64):
    return T.tensor(DATA, dtype=dtype, device=device, requires_grad=grad)


def conjugates():
    return [[z.conjugate() for z in row] for row in DATA]


def chain(t):
    """The names of the nodes along first edges."""
    names, node = [], t.grad_fn
    while node is not None:
        names.append(node.name().removesuffix("Backward0").removeprefix("torch::autograd::"))
        node = node.next_functions[0][0] if node.next_functions else None
    return names


def close(got, want, tolerance=1e-5):
    got, want = (t.detach().cpu().resolve_conj().resolve_neg() for t in (got, want))
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=tolerance, atol=tolerance)


# --- what they are ---


def test_a_conjugate_is_a_view(device):
    x = make(device)
    c = x.conj()
    assert c.is_conj() and not c.is_neg() and not x.is_conj()
    assert c._is_view() and c._base is x and c._version == x._version == 0
    assert c.stride() == x.stride() and c.data_ptr() == x.data_ptr()
    assert c.tolist() == conjugates() and c[0, 1].item() == 3 + 1j
    assert c.conj()._is_view() and not c.conj().is_conj() and c.conj().tolist() == DATA
    assert T.is_conj(c) and T.conj(x).is_conj()


def test_real_tensors_are_their_own_conjugates(device):
    x = T.ones(2, 2, device=device)
    assert x.conj() is x and T.conj(x) is x and not x.conj().is_conj()
    assert x.resolve_conj() is x and x.resolve_neg() is x
    assert not x.mH.is_conj() and not x.adjoint().is_conj()


def test_parts_of_a_conjugate_are_views(device):
    x = make(device)
    re, im = x.conj().real, x.conj().imag
    assert im.is_neg() and not im.is_conj() and im._base is x and im.stride() == (6, 2)
    assert not re.is_neg() and re._base is x
    assert im.tolist() == [[-z.imag for z in row] for row in DATA] and re.tolist() == x.real.tolist()
    assert not x.conj().conj().imag.is_neg() and not x.imag.is_neg()
    assert T.is_neg(im) and T.imag(x.conj()).is_neg()


def test_transposed_conjugates(device):
    x = make(device)
    for turned in (x.mH, x.H, x.adjoint(), T.adjoint(x)):
        assert turned.is_conj() and turned.shape == (3, 2) and turned.data_ptr() == x.data_ptr()
        assert turned.tolist() == T.tensor(conjugates()).t().tolist()
    assert not x.mH.mH.is_conj() and x.mH.mH.tolist() == DATA


VIEWS = {
    "index": lambda t: t[0],
    "slice": lambda t: t[1:, ::2],
    "view": lambda t: t.view(3, 2),
    "reshape": lambda t: t.reshape(6),
    "flatten": lambda t: t.flatten(),
    "unsqueeze": lambda t: t.unsqueeze(0),
    "t": lambda t: t.t(),
    "permute": lambda t: t.permute(1, 0),
    "expand": lambda t: t.expand(2, 2, 3),
    "diagonal": lambda t: t.diagonal(),
    "unfold": lambda t: t.unfold(1, 2, 1),
    "as_strided": lambda t: t.as_strided((2, 2), (1, 2)),
    "detach": lambda t: t.detach(),
    "unbind": lambda t: t.unbind(0)[1],
    "split": lambda t: t.split(2, 1)[0],
    "contiguous": lambda t: t.contiguous(),
    "data": lambda t: t.data,
    "same dtype": lambda t: t.to(t.dtype),
    "positive": lambda t: t.positive(),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_hand_it_on(name, device):
    x = make(device)
    seen = VIEWS[name](x.conj())
    assert seen.is_conj() and seen.data_ptr() in range(x.data_ptr(), x.data_ptr() + 48)
    assert seen.tolist() == VIEWS[name](T.tensor(conjugates())).tolist()


COPIES = {
    "clone": lambda t: t.clone(),
    "of a stretched one": lambda t: t.expand(2, 2, 3).contiguous(),
    "reshape": lambda t: t.t().reshape(6),
    "resolve_conj": lambda t: t.resolve_conj(),
    "conj_physical": lambda t: t.conj().conj_physical(),
    "index": lambda t: t[[1, 0]],
    "where": lambda t: t[t.abs() > 1],
    "negative": lambda t: -t,
    "sum": lambda t: t * 1 + 0,
    "cat": lambda t: T.cat([t, t]),
    "copy": lambda t: t.to(t.device, copy=True),
    "zeros_like": lambda t: T.zeros_like(t) + t,
    "roll": lambda t: t.roll(1, 0),
    "gather": lambda t: t.gather(1, T.tensor([[2, 0], [1, 1]], device=t.device)),
    "index_select": lambda t: t.index_select(1, T.tensor([2, 0], device=t.device)),
    "cumsum": lambda t: t.cumsum(1),
    "stack": lambda t: T.stack([t, t.conj()]),
    "where of a mask": lambda t: T.where(t.real > 1, t, t.conj()),
    "repeat": lambda t: t.repeat(2, 1),
    "flip": lambda t: t.flip(0),
    "tril": lambda t: t.tril(),
    "masked_fill": lambda t: t.masked_fill(t.real > 1, 5j),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies_have_values(name, device):
    t = make(device).conj()
    got = COPIES[name](t)
    assert not got.is_conj() and not got.is_neg()
    close(got, COPIES[name](T.tensor(conjugates(), dtype=C64, device=device)))


def test_resolving_what_is_resolved_is_nothing(device):
    x = make(device)
    assert x.resolve_conj() is x and x.resolve_neg() is x
    c, n = x.conj(), x.conj().imag
    assert c.resolve_neg() is c and n.resolve_conj() is n and n.conj() is n and n.contiguous() is not n
    assert not n.resolve_neg().is_neg() and n.resolve_neg().tolist() == n.tolist()


def test_opposites_of_anything(device):
    x = make(device)
    n = T._neg_view(x)
    assert n.is_neg() and n._base is x and n.tolist() == (-x).tolist()
    assert n.conj().is_neg() and n.conj().is_conj() and n.conj().tolist() == (-x).conj().tolist()
    assert T.view_as_real(n).is_neg() and T.view_as_real(n).tolist() == T.view_as_real(-x).tolist()
    assert n.imag.is_neg() and not n.conj().imag.is_neg() and n.conj().imag.tolist() == x.imag.tolist()


# --- operators ---

OPERATORS = {
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "sub a number": lambda a, b: a - (2 - 1j),
    "rsub": lambda a, b: 3j - b,
    "exp": lambda a, b: a.exp(),
    "abs": lambda a, b: a.abs(),
    "angle": lambda a, b: b.angle(),
    "sgn": lambda a, b: a.sgn(),
    "sum": lambda a, b: (a + b).sum(0),
    "mean": lambda a, b: a.mean(1),
    "norm": lambda a, b: a.norm(),
    "matmul": lambda a, b: a @ b.t(),
    "mH": lambda a, b: a @ b.mH,
    "mv": lambda a, b: T.mv(a, b[0]),
    "dot": lambda a, b: T.dot(a[0], b[1]),
    "vdot": lambda a, b: T.vdot(a[0], b[1]),
    "outer": lambda a, b: T.outer(a[0], b[1]),
    "inner": lambda a, b: T.inner(a, b),
    "bmm": lambda a, b: T.bmm(a.expand(2, 2, 3), b.mT.expand(2, 3, 2)),
    "addmm": lambda a, b: T.addmm(a[:, :2], a, b.t()),
    "einsum": lambda a, b: T.einsum("ij,kj->ik", a, b),
    "where": lambda a, b: T.where(a.real > b.real, a, b),
    "lerp": lambda a, b: T.lerp(a, b, 0.3),
    "addcmul": lambda a, b: T.addcmul(a, b, b),
    "eq": lambda a, b: (a == a.resolve_conj()) & (a != b),
    "real": lambda a, b: a.real * b.imag,
    "imag": lambda a, b: a.imag.exp() + b.imag,
    "largest part": lambda a, b: a.imag.max(1)[0] + T.maximum(a.imag, b.real).sum(1),
    "sorted part": lambda a, b: a.imag.sort(1)[0],
    "softmax of a part": lambda a, b: a.imag.softmax(1),
    "complex": lambda a, b: T.complex(a.imag, b.real),
    "cumprod": lambda a, b: a.cumprod(1),
    "prod": lambda a, b: a.prod(1),
    "view_as_real": lambda a, b: T.view_as_real(a.resolve_conj()),
    "scatter": lambda a, b: a.scatter(1, T.tensor([[0, 2, 1], [2, 0, 1]], device=a.device), b),
    "index_put": lambda a, b: a.index_put((T.tensor([1], device=a.device),), b[0]),
    "index_add": lambda a, b: a.index_add(0, T.tensor([1, 0], device=a.device), b),
}
HARDLY_ON_THE_GPU = ("sorted part", "cumprod")


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_see_the_values(name, device):
    """Values, and gradients of conjugates like those of what they stand for."""
    if device == "cuda" and name in HARDLY_ON_THE_GPU:
        pytest.skip("no such shader for these")
    f = OPERATORS[name]
    seen = []
    for lazily in (True, False):
        x = make(device, grad=True)
        y = (make(device) * (0.5 - 1j)).requires_grad_()
        a, b = (t.conj() if lazily else t.conj().resolve_conj() for t in (x, y))
        assert a.is_conj() == lazily
        out = f(a, b)
        loss = out.abs().sum() if out.dtype != T.bool else None
        grads = [g for g in T.autograd.grad(loss, (x, y), allow_unused=True) if g is not None] if loss is not None else []
        seen.append([out, *grads])
    assert len(seen[0]) == len(seen[1])
    for lazy, plain in zip(*seen):
        close(lazy, plain)


def test_whole_numbers_and_predicates(device):
    c = make(device).conj()
    assert (c == T.tensor(conjugates(), device=device)).all().item() and T.equal(c, c.clone())
    assert not c.isnan().any() and c.isfinite().all() and (c != 0).all()
    assert T.allclose(c, c.clone()) and c.numel() == 6


# --- writes ---


def test_writes_reach_the_base_conjugated(device):
    x = make(device)
    c = x.conj()
    c[0, 0] = 5j
    assert x[0, 0].item() == -5j and c[0, 0].item() == 5j and x._version == c._version == 1
    c.mul_(2)
    assert x[0, 1].item() == 6 - 2j and c.is_conj()
    c.fill_(1 + 1j)
    assert x[1, 1].item() == 1 - 1j
    c.copy_(make(device))
    assert x.tolist() == conjugates()
    c.copy_(x)
    assert x.tolist() == DATA
    c.zero_()
    assert (x == 0).all()


def test_writes_to_the_base_are_seen(device):
    x = make(device)
    c, n = x.conj(), x.conj().imag
    x.mul_(2j)
    assert c.tolist() == x.conj().resolve_conj().tolist() and n.tolist() == (-x.imag).tolist()


def test_a_tensor_and_its_conjugate_in_one_write(device):
    x = make(device)
    x.mul_(x.conj())
    close(x, T.tensor([[z * z.conjugate() for z in row] for row in DATA], dtype=C64))
    x = make(device)
    x.conj().add_(x)
    close(x, T.tensor([[z + z.conjugate() for z in row] for row in DATA], dtype=C64))


def test_writes_through_parts(device):
    x = make(device)
    x.conj().imag.mul_(3)
    close(x.imag, make().imag * 3)
    x.conj().imag[0] = 7.0
    assert x.imag[0].tolist() == [-7, -7, -7]
    x.conj().imag = x.real
    close(x.imag, -x.real)


INPLACE = {
    "mul_": lambda t, o: t.mul_(o),
    "add_": lambda t, o: t.add_(o, alpha=2),
    "exp_": lambda t, o: t.exp_(),
    "neg_": lambda t, o: t.neg_(),
    "conj_physical_": lambda t, o: t.conj_physical_(),
    "copy_": lambda t, o: t.copy_(o),
    "fill_": lambda t, o: t.fill_(2 - 1j),
    "zero_": lambda t, o: t.zero_(),
    "masked_fill_": lambda t, o: t.masked_fill_(T.tensor([True, False, True], device=t.device), 1j),
    "index": lambda t, o: t.__setitem__(0, o[0]),
    "advanced": lambda t, o: t.__setitem__(T.tensor([1], device=t.device), o[:1]),
    "index_add_": lambda t, o: t.index_add_(0, T.tensor([1, 0], device=t.device), o),
    "scatter_": lambda t, o: t.scatter_(1, T.tensor([[0, 2, 1], [2, 0, 1]], device=t.device), o),
    "addmm_": lambda t, o: t[:, :2].addmm_(o, o.t()),
    "lerp_": lambda t, o: t.lerp_(o, 0.25),
}


@pytest.mark.parametrize("recorded", [False, True], ids=["bare", "recorded"])
@pytest.mark.parametrize("name", INPLACE)
def test_in_place(name, recorded, device):
    """A write to a conjugate is what the same write to its values is."""
    seen = []
    for lazily in (True, False):
        x, other = make(device, grad=recorded), (make(device) * 0.5j).requires_grad_(recorded)
        base = x.clone()
        target = base.conj() if lazily else base.conj().resolve_conj()
        INPLACE[name](target, other.conj())
        assert target.is_conj() == lazily
        if lazily:
            close(base, target.conj())
        grads = []
        if recorded:
            grads = T.autograd.grad((target * (1 + 2j)).abs().sum(), (x, other), allow_unused=True)
            grads = [T.zeros_like(x) if g is None else g for g in grads]
        seen.append([target, *grads])
    for lazy, plain in zip(*seen):
        close(lazy, plain)


def test_out(device):
    x, out = make(device), T.zeros(2, 3, dtype=C64, device=device)
    place = out.conj()
    T.mul(x, 2, out=place)
    close(out, (x * 2).conj())
    empty = T.zeros(0, dtype=C64, device=device).conj()
    T.mul(x, 2, out=empty)
    assert empty.is_conj()
    close(empty, x * 2)


def test_random_numbers_go_where_they_belong():
    out = T.zeros(100, dtype=C128)
    n = out.conj().imag
    n.uniform_(1, 2)
    assert (n >= 1).all() and (out.imag <= -1).all() and (out.real == 0).all()


# --- histories ---


def test_names_of_nodes(device):
    x = make(device, grad=True)
    assert chain(x.conj()) == ["Conj", "AccumulateGrad"]
    assert chain(x.conj().imag) == ["Select", "NegView", "ViewAsReal", "Conj", "Conj", "AccumulateGrad"]
    assert chain(x.mH) == ["Conj", "Transpose", "AccumulateGrad"]
    assert chain(x.conj().resolve_conj()) == ["Clone", "Conj", "AccumulateGrad"]
    assert chain(x.conj().clone()) == ["Clone", "Conj", "AccumulateGrad"]
    product = x.conj() * x
    assert [f.name() for f, _ in product.grad_fn.next_functions] == ["ConjBackward0", "torch::autograd::AccumulateGrad"]
    assert product.grad_fn._saved_self.is_conj() and not product.grad_fn._saved_other.is_conj()


def test_histories_of_writes(device):
    x = make(device, grad=True)
    base = x.clone()
    c = base.conj()
    c.mul_(2)
    assert chain(base) == ["CopySlices", "Clone", "AccumulateGrad"] and chain(c)[:2] == ["Conj", "CopySlices"]
    base = x.clone()
    c = base.conj()
    base.mul_(3)
    assert chain(c) == ["Conj", "Mul", "Clone", "AccumulateGrad"]
    base = x.clone()
    turned = base.mH
    base.mul_(3)
    assert chain(turned) == ["Conj", "AsStrided", "Mul", "Clone", "AccumulateGrad"]
    (g,) = T.autograd.grad(turned.sum().abs(), x)
    (h,) = T.autograd.grad((x * 3).sum().abs(), x)
    close(g, h)


def test_gradients_of_writes_through_parts(device):
    x = make(device, grad=True)
    base = x.clone()
    part = base.conj().imag
    part.mul_(3)
    base.mul_(1j)
    (g,) = T.autograd.grad((base * base).abs().sum() + part.sum(), x)
    y = make(device, grad=True)
    plain = T.complex(y.real, y.imag * 3) * 1j
    (h,) = T.autograd.grad((plain * plain).abs().sum() - plain.imag.sum(), y)
    close(g, h)


def test_views_renewed_after_a_write_to_the_base_differentiate(device):
    x = make(device, grad=True)
    base = x.clone()
    part = base.conj()[0].imag
    base.mul_(2 - 1j)
    (g,) = T.autograd.grad((part * part).sum(), x)
    y = make(device, grad=True)
    (h,) = T.autograd.grad(((y * (2 - 1j)).imag[0] ** 2).sum(), y)
    close(g, h)


def test_second_derivatives():
    x = make(grad=True, dtype=C128)

    def f(x):
        base = x * 1
        c = base.conj()
        c[0].mul_(x[1])
        return (base * c.mH.mT + x.conj().imag.exp() * c).sum(0)

    assert T.autograd.gradcheck(f, (x,)) and T.autograd.gradgradcheck(f, (x,))


def test_a_changed_conjugate_is_noticed(device):
    x = make(device, grad=True)
    base = x.clone()
    product = base.conj() * base.conj()
    base.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().abs().backward()
    base = x.clone()
    part = base.conj().imag
    product = part * part
    base.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_leaves_are_not_written(device):
    x = make(device, grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        x.conj().mul_(2)
    leaf = make(device).conj().requires_grad_()
    assert leaf.is_leaf and leaf.is_conj()
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad is being used in an in-place"):
        leaf.mul_(2)
    (leaf * 2j).sum().abs().backward()
    assert leaf.grad.shape == leaf.shape and not leaf.grad.is_conj()


def test_gradients_may_be_conjugates(device):
    x, y = make(device, grad=True), make(device)
    (g,) = T.autograd.grad(x.conj(), x, T.ones_like(y))
    assert g.is_conj() and g.tolist() == T.ones(2, 3, dtype=C64).tolist()
    (g,) = T.autograd.grad(x.clone(), x, y.conj())
    assert g.is_conj() and g.tolist() == conjugates()
    (x.conj() * y).sum().abs().backward()
    assert x.grad.is_conj() and not x.grad._is_view()
    before = x.grad.clone()
    (x.conj() * y).sum().abs().backward()
    close(x.grad, before * 2)
    x.grad = None
    x.clone().backward(y.conj())
    assert not x.grad.is_conj() and x.grad.tolist() == conjugates()


def test_gradients_of_real_leaves_that_are_opposites(device):
    x = T.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    g = T.tensor([1 + 2j, 3 - 1j, 2 + 0.5j], device=device).conj().imag
    for times in (1, 2):
        (x * 1).backward(g)
        assert x.grad.tolist() == [-2 * times, times, -0.5 * times]
    x.grad = g.clone()
    x.backward(g)
    assert x.grad.tolist() == [-4, 2, -1]
    x.grad = None
    (x * x).backward(g)
    assert x.grad.tolist() == [-4, 4, -3]
    x.grad = None
    T.complex(x, x * 2).backward(T.tensor([1 + 2j, 3 - 1j, 2 + 0.5j], device=device).conj())
    assert x.grad.tolist() == [-3, 5, 1]


def test_hooks_and_functions_see_them(device):
    seen = []

    class Through(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            seen.append((x.is_conj(), g.is_conj()))
            return g

    x = make(device, grad=True)
    c = x.conj()
    c.register_hook(lambda g: seen.append(g.is_conj()))
    c.retain_grad()
    Through.apply(c).conj().sum().abs().backward()
    assert seen == [(True, True), True] and not c.grad.is_conj()
    close(x.grad, c.grad.conj())


def test_saved_values_can_be_packed(device):
    x = make(device, grad=True)
    with T.autograd.graph.saved_tensors_hooks(lambda t: (t.is_conj(), t.cpu()), lambda p: p[1].to(device)):
        out = x.conj() * x.conj()
    out.sum().abs().backward()
    y = make(device, grad=True)
    (y * y).sum().abs().backward()
    close(x.grad, y.grad)


def test_no_grad_and_inference(device):
    x = make(device, grad=True)
    with T.no_grad():
        c = x.conj()
    assert c.is_conj() and c._is_view() and c.grad_fn is None
    with T.inference_mode():
        z = make(device)
        assert z.conj().is_conj() and not z.conj()._is_view() and z.conj().tolist() == conjugates()


# --- forward mode, vmap ---


def test_tangents():
    x, t = make(dtype=C128), make(dtype=C128) * 1j
    for f in (
        lambda x: x.conj(),
        lambda x: x.conj() * x,
        lambda x: x.mH @ x,
        lambda x: x.conj().imag,
        lambda x: x.clone().conj().mul_(x),
    ):
        value, tangent = T.func.jvp(f, (x,), (t,))
        step = 1e-6
        close(value, f(x), 1e-12)
        close(tangent, (f(x + t * step) - f(x - t * step)) / (2 * step), 1e-7)


def test_dual_numbers():
    fa = __import__(f"{T.__name__}.autograd.forward_ad", fromlist=["x"])
    x = make()
    with fa.dual_level():
        c = fa.make_dual(x, x * 2).conj()
        primal, tangent = fa.unpack_dual(c)
        assert primal.is_conj() and tangent.is_conj() and tangent.tolist() == (x * 2).conj().tolist()


def test_vmap():
    x = make(dtype=C128)
    seen = []

    def f(row):
        seen.append(row.conj().is_conj())
        return row.conj() * row + row.conj().real.exp()

    out = T.func.vmap(f)(x)
    assert seen == [True]
    close(out, T.stack([f(row) for row in x]), 1e-12)
    assert T.func.vmap(lambda row: row.conj())(x).is_conj()
    grads = T.func.vmap(T.func.grad(lambda row: (row.conj() * row * row).sum().abs()))(x)
    close(grads, T.stack([T.func.grad(lambda row: (row.conj() * row * row).sum().abs())(row) for row in x]), 1e-12)
    close(T.func.vmap(lambda row: row.sum())(x.conj()), x.conj().sum(1), 1e-12)


@pytest.mark.gradiron
def test_vmap_over_opposites():
    x = make(dtype=C128)
    seen = []

    def f(row):
        seen.append(row.conj().imag.is_neg())
        return row.conj().imag.exp()

    close(T.func.vmap(f)(x), x.conj().imag.exp(), 1e-12)
    assert seen == [True]
    assert T.func.vmap(lambda row: row.conj().imag)(x).is_neg()


# --- to the outside ---


def test_what_cannot_be_shared_says_so():
    x = make()
    c, n = x.conj(), x.conj().imag
    with pytest.raises(RuntimeError, match=r"conjugate bit set. Use tensor.resolve_conj\(\).numpy\(\) instead"):
        c.numpy()
    with pytest.raises(RuntimeError, match=r"negative bit set. Use tensor.resolve_neg\(\).numpy\(\) instead"):
        n.numpy()
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        np.asarray(c)
    assert c.numpy(force=True).tolist() == conjugates() and n.numpy(force=True).tolist() == n.tolist()
    with pytest.raises(BufferError, match="Can't export tensors with the conjugate bit set"):
        c.__dlpack__()
    with pytest.raises(RuntimeError, match="view_as_real doesn't work on unresolved conjugated tensors"):
        T.view_as_real(c)
    with pytest.raises(RuntimeError, match="view is not supported for conjugate view tensors when converting"):
        c.view(T.float32)
    with pytest.raises(RuntimeError, match="view is not supported for tensors with negative bit set when converting"):
        n.view(T.int32)


def test_printing(device):
    x = make(device)
    place = ", device='cuda:0'" if device == "cuda" else ""
    assert repr(x[0].conj()) == f"tensor([1.-2.0000j, 3.+1.0000j, 2.-0.5000j]{place})"
    assert repr(x[0].conj().imag) == f"tensor([-2.0000,  1.0000, -0.5000]{place})"


def test_numbers():
    x = make()
    c, n = x.conj(), x.conj().imag
    assert complex(c[0, 0]) == 1 - 2j and float(n[0, 0]) == -2 and n[0, 1].item() == 1
    assert bool(c[0, 0]) and [float(v) for v in n[0]] == [-2, 1, -0.5]
    assert format(n[0, 0], ".1f") == "-2.0" and T.tensor([c[0, 0], 1]).tolist() == [1 - 2j, 1]


def test_copies_of_the_host_language():
    c = make().conj()
    for lazy in (c, c.imag):
        copied = copy.deepcopy(lazy)
        assert not copied.is_conj() and not copied.is_neg() and copied.tolist() == lazy.tolist()
        again = pickle.loads(pickle.dumps(lazy))
        assert (again.is_conj(), again.is_neg()) == (lazy.is_conj(), lazy.is_neg()) and again.tolist() == lazy.tolist()
        assert again.is_leaf and not again.requires_grad


def test_other_memory_is_read_the_same_way():
    x = make()
    c = T.zeros(2, 3, dtype=C64).conj()
    c.set_(x)
    assert c.is_conj() and c.tolist() == conjugates()
    y = make()
    y.data = x.conj()
    assert y.is_conj() and y.tolist() == conjugates()
    z = make().conj()
    z.data = x
    assert not z.is_conj() and z.tolist() == DATA


def test_other_dtypes():
    c = make().conj()
    assert not c.to(C128).is_conj() and c.to(C128).tolist() == conjugates() and c.imag.double().tolist() == c.imag.tolist()
    assert T.zeros(2, 3, dtype=C128).conj().copy_(c).tolist() == conjugates()


def test_between_devices(device):
    c = make(device).conj()
    for moved in (c.cpu(), c.to(device, C64, copy=True), c.cpu().to(device)):
        assert moved.tolist() == conjugates()
    assert c.imag.cpu().tolist() == c.imag.tolist()
    here = make("cpu").conj()
    target = T.zeros(2, 3, dtype=C64, device=device).conj()
    target.copy_(here)
    assert target.tolist() == conjugates() and target.conj().tolist() == DATA


def test_large_ones():
    """Beyond what one thread or one tile does."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((300, 401)) + 1j * rng.standard_normal((300, 401))
    x = T.from_numpy(values.copy())
    np.testing.assert_array_equal(x.mH.clone().numpy(), values.conj().T)
    np.testing.assert_allclose((x.mH @ x).numpy(), values.conj().T @ values, rtol=1e-10)
    np.testing.assert_array_equal((x.conj().imag + x.imag).numpy(), 0)
    x.mH.mul_(2)
    np.testing.assert_array_equal(x.numpy(), 2 * values)


def test_no_operator_stumbles():
    """Every function of one tensor or two gives for a conjugate what it gives for its values."""
    strange = ("normal", "bernoulli", "multinomial", "is_", "view_as_real", "resolve_conj")
    checked = 0
    for name in dir(T):
        function = getattr(T, name)
        if not callable(getattr(T.Tensor, name, None)) or name.endswith("_") or any(s in name for s in strange):
            continue
        for count in (1, 2):
            lazy = [make(dtype=C128).conj() for _ in range(count)]
            plain = [t.resolve_conj() for t in lazy]
            try:
                want = function(*plain)
            except Exception:
                continue
            if not isinstance(want, T.Tensor):
                continue
            got = function(*lazy)
            np.testing.assert_allclose(got.numpy(force=True), want.numpy(force=True), rtol=1e-12, err_msg=name)
            checked += 1
    assert checked > 80


# --- what reads elements by a kernel of its own ---


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.argsort(),
        lambda x: x.unique(),
        lambda x: x.nonzero(),
        T.argwhere,
        lambda x: x.topk(2).indices,
        lambda x: T.normal(0.0, x),
        lambda x: T.normal(x, 1.0),
        lambda x: T.multinomial(x, 2),
        lambda x: T.multinomial(x, 4, replacement=True),
    ],
)
def test_what_reads_elements_sees_opposites(read, device):
    opposite = T.complex(T.zeros(3), T.tensor([-3.0, -1.0, -2.0])).to(device).conj().imag
    assert opposite.is_neg() and opposite.tolist() == [3.0, 1.0, 2.0]
    found = []
    for x in (opposite, opposite.resolve_neg()):
        T.manual_seed(5)
        found.append(read(x).tolist())
    assert found[0] == found[1]


def test_gradients_of_formulas_see_opposites(device):
    x = T.tensor([0.5, 2.0, -1.0], device=device, requires_grad=True)
    opposite = T.complex(T.zeros(3), T.tensor([-3.0, -1.0, 2.0])).to(device).conj().imag
    (x * opposite + T.maximum(x, opposite) + (x * 2 - opposite).abs()).sum().backward()
    plain = x.detach().clone().requires_grad_()
    other = opposite.resolve_neg()
    (plain * other + T.maximum(plain, other) + (plain * 2 - other).abs()).sum().backward()
    assert x.grad.tolist() == plain.grad.tolist()
