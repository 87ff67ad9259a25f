"""Sparse gradients of tables of vectors: their values beside PyTorch's, how they add up, who sees them and who goes by them."""

import copy
import gc
import weakref

import golden_file
import pytest
import sparse_grad_cases as cases
from hypothesis import given
from hypothesis import strategies as st

from library import IS_GRADIRON, NO_GPU, Square, T

F, nn = T.nn.functional, T.nn
RECORDED = golden_file.read("sparse_grads.json")
LOOKUPS = st.lists(st.integers(0, 4), max_size=7)


def summed(found):
    """The indices and values of a sparse gradient, as a dense table."""
    if len(found) != 2:
        return found
    rows = [[0.0] * 3 for _ in range(5)]
    for i, values in zip(found[0][0], found[1], strict=True):
        rows[i] = [a + b for a, b in zip(rows[i], values, strict=True)]
    return rows


def close(found, expected):
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            close(a, b)
    elif expected is None:
        assert found is None
    elif isinstance(expected, str):
        # Longer messages are PyTorch's, with its own advice.
        assert expected.startswith(found.split(" (got")[0])
    else:
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("key", RECORDED)
def test_as_recorded(key):
    found, expected = cases.attempt(lambda: dict(cases.all_cases())[key](T)), RECORDED[key]
    if key.startswith("sums"):
        # In which order the values of two gradients lie is PyTorch's own affair.
        assert (len(found) == 2) == (len(expected) == 2)
        found, expected = summed(found), summed(expected)
    close(found, expected)


def lookup(w, numbers, sparse=True, **options):
    return F.embedding(T.tensor(numbers, dtype=T.int64), w, sparse=sparse, **options)


@given(LOOKUPS, st.sampled_from([None, 0, 3, -1]), st.booleans())
def test_the_dense_gradient_is_the_same(numbers, padding, bags):
    """Made dense, a sparse gradient is the dense one, and the values of the sparse one are finite in number."""
    found = []
    for sparse in (True, False):
        w = cases.table(T)
        if bags:
            index, offsets = T.tensor(numbers, dtype=T.int64), T.tensor([0, len(numbers) // 2])
            y = F.embedding_bag(index, w, offsets, mode="sum", sparse=sparse, padding_idx=padding)
        else:
            y = lookup(w, numbers, sparse, padding_idx=padding)
        cases.weighted(T, y).backward()
        found.append(w.grad)
    sparse, dense = found
    assert sparse.is_sparse and not dense.is_sparse
    assert sparse._nnz() == sum(i != (padding % 5 if padding is not None else None) for i in numbers)
    assert sparse.shape == dense.shape and sparse.dtype == dense.dtype
    assert T.allclose(sparse.to_dense(), dense) and T.allclose(sparse.coalesce().to_dense(), dense)


@given(st.lists(st.tuples(LOOKUPS, st.booleans()), min_size=1, max_size=4), st.booleans())
def test_sums_are_sparse_while_all_parts_are(parts, together):
    w, v = cases.table(T), cases.table(T)
    losses = [cases.weighted(T, lookup(w, numbers, sparse)) for numbers, sparse in parts]
    for loss in [sum(losses)] if together else losses:
        loss.backward()
    sum(cases.weighted(T, lookup(v, numbers, False)) for numbers, _ in parts).backward()
    assert w.grad.is_sparse == all(sparse for _, sparse in parts)
    assert T.allclose(w.grad.to_dense(), v.grad)


@given(LOOKUPS.filter(len))
def test_derivatives_of_every_order(numbers):
    w = cases.table(T)
    (g,) = T.autograd.grad((lookup(w, numbers) ** 3).sum(), w, create_graph=True)
    assert g.is_sparse and g.requires_grad
    (gg,) = T.autograd.grad((g.to_dense() ** 2).sum(), w)
    v = cases.table(T)
    (h,) = T.autograd.grad((lookup(v, numbers, False) ** 3).sum(), v, create_graph=True)
    (hh,) = T.autograd.grad((h**2).sum(), v)
    assert T.allclose(g.to_dense(), h) and T.allclose(gg.to_dense(), hh)


def test_one_row_is_coalesced():
    for numbers in ([], [1], [1, 1]):
        w = cases.table(T)
        lookup(w, numbers).sum().backward()
        assert w.grad.is_coalesced() == (len(numbers) < 2)


def test_accumulates_in_place():
    w = cases.table(T)
    lookup(w, [1, 3]).sum().backward()
    first = w.grad
    lookup(w, [3]).sum().backward()
    assert w.grad is first and first._nnz() == 3
    lookup(w, [0], sparse=False).sum().backward()
    assert w.grad is not first and not w.grad.is_sparse
    dense = w.grad
    lookup(w, [0]).sum().backward()
    assert w.grad is dense and dense[0].tolist() == [2.0] * 3


def test_the_gradient_has_its_own_memory():
    w, index = cases.table(T), T.tensor([1, 3])
    F.embedding(index, w, sparse=True).sum().backward()
    index.fill_(0)
    assert w.grad._indices().tolist() == [[1, 3]]
    kept = []
    w.grad = None
    w.register_hook(kept.append)
    lookup(w, [2]).sum().backward()
    w.grad._values().zero_()
    assert kept[0]._values().tolist() == [[1.0] * 3]


def test_hooks_see_it():
    w, seen = cases.table(T), []
    w.register_hook(lambda g: seen.append(g.is_sparse) or g * 2)
    w.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad._nnz()))
    y = lookup(w, [1, 1])
    y.grad_fn.register_hook(lambda grads, _: seen.append(grads[0].layout))
    y.sum().backward()
    assert seen == [T.sparse_coo, True, 2] and w.grad.to_dense()[1].tolist() == [4.0] * 3
    w.register_hook(lambda g: g.to_dense())
    with pytest.raises(RuntimeError, match=r"was torch.sparse.DoubleTensor got torch.DoubleTensor"):
        lookup(w, [1]).sum().backward()


def test_retained_and_captured():
    w = cases.table(T)
    v = w.clone()
    v.retain_grad()
    y = lookup(v, [1, 3]).sum()
    assert T.autograd.grad(y, v, retain_graph=True)[0].is_sparse
    y.backward()
    # Both runs came to the retained gradient, one of them to the leaf.
    assert v.grad.is_sparse and v.grad.to_dense().equal(w.grad.to_dense() * 2)


@pytest.mark.gradiron
def test_operators_get_it_dense():
    """PyTorch has derivatives over sparse gradients for some operators, and fails at others."""
    for f in (lambda w: w * 2, lambda w: w.t().t(), lambda w: w[:], lambda w: w.float(), lambda w: w @ T.eye(3).double()):
        w, v = cases.table(T), cases.table(T)
        lookup(f(w), [1, 3, 1]).sum().backward()
        lookup(f(v), [1, 3, 1], sparse=False).sum().backward()
        assert not w.grad.is_sparse and w.grad.equal(v.grad)


def test_functions_give_and_take_it():
    class Through(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            assert g.is_sparse
            return g

    w = cases.table(T)
    lookup(Through.apply(w), [4]).sum().backward()
    assert w.grad.is_sparse and w.grad._indices().tolist() == [[4]]

    def rows_of(size):
        class Rows(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.size = size
                return x[:2].sum(0)

            @staticmethod
            def backward(ctx, g):
                values = T.ones(2, ctx.size[1], dtype=g.dtype) * g[0]
                return T.sparse_coo_tensor([[0, 1]], values, ctx.size)

        return Rows

    w = cases.table(T)
    rows_of((5, 3)).apply(w).sum().backward()
    assert w.grad.is_sparse and w.grad.to_dense().sum().item() == 6
    with pytest.raises(RuntimeError, match="shape"):
        rows_of((6, 3)).apply(cases.table(T)).sum().backward()
    # Under a differentiable operator the Function's own gradient comes to the operator.
    x = T.ones(5, 3, dtype=T.float64, requires_grad=True)
    rows_of((5, 3)).apply(Square.apply(x)).sum().backward()
    assert x.grad.to_dense()[0].tolist() == [2.0] * 3 and not x.grad.to_dense()[2:].any()


def test_roots_may_be_sparse():
    w = cases.table(T)
    w.clone().backward(T.eye(5, dtype=T.float64)[:, :3].to_sparse())
    assert w.grad.to_dense().tolist() == T.eye(5)[:, :3].tolist()


def test_grad_can_be_set():
    w, sparse = cases.table(T), T.eye(5, dtype=T.float64)[:, :3].to_sparse()
    w.grad = sparse
    assert w.grad is sparse
    for wrong, text in ((T.eye(5, dtype=T.float64).to_sparse(), "size"), (sparse.float(), "dtype")):
        with pytest.raises(RuntimeError, match=text):
            w.grad = wrong
    assert w.grad is sparse
    w.grad = None
    assert w.grad is None


def test_zero_grad_and_modules():
    table = nn.Embedding(5, 2, sparse=True)
    for clear in (table.zero_grad, T.optim.SGD(table.parameters()).zero_grad):
        table(T.tensor([1, 3])).sum().backward()
        clear(set_to_none=False)
        assert table.weight.grad.is_sparse and table.weight.grad._nnz() == 0
        clear()
        assert table.weight.grad is None
    table(T.tensor([1])).sum().backward()
    table.double()
    assert table.weight.grad.is_sparse and table.weight.grad._values().dtype == table.weight.grad.dtype == T.float64
    table(T.tensor([1])).sum().backward()
    assert table.weight.grad.to_dense()[1].tolist() == [2.0, 2.0]
    assert copy.deepcopy(table).weight.tolist() == table.weight.tolist()


@pytest.mark.gradiron
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_anomaly_mode_looks_at_the_values():
    class Spoilt(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g * float("nan")

    w = cases.table(T)
    with T.autograd.detect_anomaly(check_nan=True):
        lookup(w, [1]).sum().backward()
        with pytest.raises(RuntimeError, match="nan values in its 0th output"):
            lookup(Spoilt.apply(w), [1]).sum().backward()


def test_scaled_gradients_are_unscaled():
    w = cases.table(T)
    before, optimizer = w.tolist(), T.optim.SGD([w], lr=1.0)
    scaler = T.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(lookup(w, [1, 3, 1]).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert w.grad.is_sparse and w.grad._values().tolist() == [[1.0] * 3] * 3
    assert (T.tensor(before, dtype=T.float64) - w.detach()).sum(1).tolist() == [0, 6, 0, 3, 0]
    scaler.scale((lookup(w, [1]) * float("inf")).sum()).backward()
    kept = w.tolist()
    scaler.step(optimizer)
    assert w.tolist() == kept


@pytest.mark.filterwarnings("ignore")
def test_func_transforms():
    w = cases.table(T).detach()
    g = T.func.grad(lambda w: lookup(w, [1, 3]).sum())(w)
    assert g.to_dense()[1].tolist() == [1.0] * 3 and not g.to_dense()[0].any()
    y, dy = T.func.jvp(lambda w: lookup(w, [1, 3]), (w,), (w,))
    assert y.equal(dy)
    assert T.func.vmap(lambda i: F.embedding(i, w, sparse=True))(T.tensor([1, 3])).equal(w[[1, 3]])


@pytest.mark.gradiron
def test_compiled_steps_fall_back_to_plain_ones():
    """A capture cannot replay a gradient whose number of values differs from call to call; the steps run all the same."""

    def train(compiled):
        T.manual_seed(0)
        table = nn.Embedding(6, 2, sparse=True)
        head = nn.Linear(2, 1)
        optimizers = [T.optim.SparseAdam(table.parameters(), lr=0.1), T.optim.SGD(head.parameters(), lr=0.1)]

        def step(numbers):
            loss = head(table(numbers)).pow(2).mean()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
            return loss.detach()

        run = T.compile(step) if compiled else step
        return [run(T.tensor(numbers)).item() for numbers in ([1, 2], [1, 1], [5, 0], [2, 3], [1, 4])]

    assert train(True) == train(False)


@pytest.mark.gradiron
def test_compiled_losses_have_sparse_gradients():
    w = cases.table(T)
    loss = T.compile(lambda w, i: F.embedding(i, w, sparse=True).pow(2).sum())
    for numbers in ([1, 3], [0, 0], [2, 4]):
        w.grad = None
        loss(w, T.tensor(numbers)).backward()
        expected = cases.table(T)
        lookup(expected, numbers).pow(2).sum().backward()
        assert w.grad.is_sparse and w.grad.to_dense().equal(expected.grad.to_dense())


@pytest.mark.gradiron
def test_nothing_outlives_its_owners():
    w = cases.table(T)
    lookup(w, [1]).pow(3).sum().backward(create_graph=True)
    assert w.grad.is_sparse and w.grad.grad_fn is not None
    w.grad.note = w
    gone = weakref.ref(w)
    del w
    gc.collect()
    assert gone() is None


def test_sparse_adam_refuses():
    w = cases.table(T)
    lookup(w, [1], sparse=False).sum().backward()
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients, please consider Adam instead"):
        T.optim.SparseAdam([w]).step()
    for options, text in (
        ({"lr": 0.0}, "Invalid learning rate: 0.0"),
        ({"eps": 0.0}, "Invalid epsilon value: 0.0"),
        ({"betas": (0.5, 1.0)}, "Invalid beta parameter at index 1: 1.0"),
    ):
        with pytest.raises(ValueError, match=text):
            T.optim.SparseAdam([w], **options)
    with pytest.raises(ValueError, match=r"Sparse params at indices \[\[0, 1\]\]: SparseAdam requires dense parameter tensors"):
        T.optim.SparseAdam([{"params": [w, T.eye(2).to_sparse().requires_grad_()]}])


def test_sparse_adam_keeps_its_state():
    w = cases.table(T)
    optimizer = T.optim.SparseAdam([w], lr=0.1)
    lookup(w, [1, 3, 1]).sum().backward()
    optimizer.step()
    other = T.optim.SparseAdam([w])
    other.load_state_dict(optimizer.state_dict())
    assert other.state[w]["step"] == 1 and other.state[w]["exp_avg"].equal(optimizer.state[w]["exp_avg"])
    assert other.param_groups[0]["lr"] == 0.1


@pytest.mark.skipif(NO_GPU or not IS_GRADIRON, reason="without the GPU")
def test_on_the_gpu():
    w = cases.table(T, "float32").detach().cuda().requires_grad_()
    index = T.tensor([1, 3, 1]).cuda()
    optimizer = T.optim.SparseAdam([w], lr=0.1)
    F.embedding(index, w, sparse=True).sum().backward()
    F.embedding(index, w, sparse=True).sum().backward()
    assert w.grad.is_sparse and w.grad.device == w.device and w.grad._nnz() == 6
    assert w.grad.cpu().to_dense()[1].tolist() == [4.0] * 3
    before = w.detach().cpu()
    optimizer.step()
    assert (before - w.detach().cpu()).sum(1).tolist() == pytest.approx([0, 0.3, 0, 0.3, 0], abs=1e-5)


@pytest.mark.parametrize("wide", [1, 2])
@pytest.mark.parametrize("name, options", [("SGD", {}), ("SGD", {"momentum": 0.5}), ("Adagrad", {"lr_decay": 0.1})])
@pytest.mark.parametrize("rate", [0.1, "tensor"])
def test_steps_over_any_sparse_dimensions(name, options, rate, wide):
    """A gradient that is set by hand, with an element in two parts, moves a parameter as the dense one does."""

    def path(sparse):
        x = T.arange(6.0, dtype=T.float64).reshape(2, 3).requires_grad_()
        optimizer = getattr(T.optim, name)([x], lr=T.tensor(0.1) if rate == "tensor" else rate, **options)
        for _ in range(3):
            g = x.detach() * T.tensor([[1.0, 0, 1], [0, 0, 0]], dtype=T.float64)
            part = T.tensor([[0, 0, 0, 0], [0, 0, 2, 2]] if wide == 2 else [[0, 0]])
            values = (
                T.stack([g[0, 0] / 4, g[0, 0] * 3 / 4, g[0, 2] / 2, g[0, 2] / 2]) if wide == 2 else g[:1] / T.tensor([[2], [2]])
            )
            x.grad = T.sparse_coo_tensor(part, values, (2, 3), check_invariants=True) if sparse else g
            optimizer.step()
        return x.detach()

    assert T.allclose(path(True), path(False), rtol=1e-7)


@pytest.mark.gradiron
def test_bad_places_are_found():
    """Places outside of the tensor reach no memory: sums with dense gradients and updates raise an error."""

    class Outside(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum()

        @staticmethod
        def backward(ctx, g):
            return T.sparse_coo_tensor([[7]], T.ones(1, 3, dtype=T.float64), (5, 3))

    w = cases.table(T)
    Outside.apply(w).backward()
    with pytest.raises((RuntimeError, IndexError), match="out of"):
        w.sum().backward()
    with pytest.raises((RuntimeError, IndexError), match="out of"):
        T.optim.SGD([w], lr=0.1).step()
