"""Tensors on device `meta`: sizes and types of every operator without its elements, and modules that get theirs later."""

import copy
import io
import pickle
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_gradients import KNOWN, floating

from library import T

# They read elements, or their gradients do.
REFUSED = ("masked_scatter", "masked_select", "linalg_matrix_exp", "matrix_exp")


def each(result):
    return [result] if isinstance(result, T.Tensor) else [t for part in result for t in each(part)]


def facts(result):
    return [(t.shape, t.dtype) for t in each(result)]


@pytest.mark.gradiron
@pytest.mark.parametrize("name, sampler", KNOWN)
@given(data=st.data())
@settings(max_examples=3)
def test_sizes_and_types_are_those_of_the_call(name, sampler, data):
    tensors, call = sampler(data.draw)
    expected = call(*tensors)
    there = [t.to("meta").requires_grad_(floating(t)) for t in tensors]
    try:
        with T.device("meta"):
            made = call(*there)
        ends = [t for t in each(made) if t.requires_grad]
        if ends:
            sum(t.abs().sum() for t in ends).backward()
    except (NotImplementedError, RuntimeError) as error:
        assert name in REFUSED and "meta tensor" in str(error)
        return
    assert facts(made) == facts(expected)
    assert all(t.is_meta for t in each(made))
    for t in there:
        assert t.grad is None or (t.grad.shape, t.grad.dtype, t.grad.is_meta) == (t.shape, t.dtype, True)


def test_what_it_says_of_itself():
    x = T.empty(2, 3, device="meta")
    assert (x.is_meta, x.is_cpu, x.is_cuda, x.get_device(), x.data_ptr()) == (True, False, False, -1, 0)
    assert (x.device, str(x.device), x.type()) == (T.device("meta"), "meta", "torch.meta.FloatTensor")
    assert repr(x) == "tensor(..., device='meta', size=(2, 3))"
    assert repr(x.long()) == "tensor(..., device='meta', size=(2, 3), dtype=torch.int64)"
    assert f"{x.sum()}" == "tensor(..., device='meta', size=())"
    assert repr(T.nn.Parameter(x)).endswith("tensor(..., device='meta', size=(2, 3), requires_grad=True)")
    assert x.untyped_storage().nbytes() == 24 and x.stride() == (3, 1) and x.t().contiguous().stride() == (2, 1)


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda x: x.tolist(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda x: x.cpu(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda x: T.ones(2, 3).copy_(x), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda x: x[0, 0].item(), RuntimeError, "Tensor.item() cannot be called on meta tensors"),
        (lambda x: bool(x.sum()), RuntimeError, "Tensor.item() cannot be called on meta tensors"),
        (lambda x: x.numpy(), TypeError, "can't convert meta device type tensor to numpy"),
        (lambda x: x + T.ones(2, 3), RuntimeError, "Tensor on device cpu is not on the expected device meta!"),
        (lambda x: T.cat([x, T.ones(2, 3)]), RuntimeError, "Tensor on device cpu is not on the expected device meta!"),
        (lambda x: T.ones(2, 3) + x, RuntimeError, "Tensor on device meta is not on the expected device cpu!"),
        (lambda x: T.ones(2, 3) + T.empty((), device="meta"), RuntimeError, "Tensor on device meta is not on the expected"),
        (lambda x: T.cat([T.ones(2, 3), x]), RuntimeError, "Tensor on device meta is not on the expected device cpu!"),
        (lambda x: T.mv(x, T.ones(3)), RuntimeError, "Tensor on device cpu is not on the expected device meta!"),
        (lambda x: x.nonzero(), NotImplementedError, ""),
        (lambda x: x[x > 0], NotImplementedError, ""),
        (lambda x: x.share_memory_(), RuntimeError, "_share_fd_: only available on CPU"),
    ],
)
def test_elements_that_nobody_has(call, kind, text):
    with pytest.raises(kind) as caught:
        call(T.empty(2, 3, device="meta"))
    assert str(caught.value).startswith(text)


def test_writes_and_numbers_are_taken():
    x = T.empty(2, 3, device="meta")
    assert x.copy_(T.ones(2, 3)) is x and x.fill_(2).is_meta and (x + T.tensor(1.0)).is_meta and T.ones(2).to("meta").is_meta
    assert x.resize_(4, 5).shape == (4, 5) and T.tensor([1.0], device="meta").is_meta
    T.manual_seed(0)
    expected = T.rand(1)
    T.manual_seed(0)
    T.nn.init.normal_(x)
    assert T.rand(1) == expected  # No number was drawn.


def test_copies_pickles_and_files():
    x = T.nn.Parameter(T.empty(3, 2, device="meta").t())
    file = io.BytesIO()
    T.save({"x": x}, file)
    file.seek(0)
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), T.load(file)["x"]):
        assert y.is_meta and isinstance(y, T.nn.Parameter) and (y.shape, y.stride()) == ((2, 3), (1, 2))
    file = io.BytesIO()
    T.save(T.ones(2), file)
    file.seek(0)
    assert T.load(file, map_location="meta").is_meta


def net():
    return T.nn.Sequential(T.nn.Conv2d(3, 4, 3), T.nn.BatchNorm2d(4), T.nn.Flatten(), T.nn.Linear(144, 2))


def test_modules_are_built_without_memory_and_get_it_later():
    real = net()
    with T.device("meta"):
        empty = net()
    assert all(t.is_meta for t in empty.state_dict().values())
    assert empty(T.ones(2, 3, 8, 8, device="meta")).shape == (2, 2)
    with pytest.raises(NotImplementedError, match=r"Please use torch.nn.Module.to_empty\(\) instead of torch.nn.Module.to"):
        empty.to("cpu")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        empty.load_state_dict(real.state_dict())
    assert str(told[0].message).startswith(
        "for 0.weight: copying from a non-meta parameter in the checkpoint to a meta parameter"
    )
    assigned = copy.deepcopy(empty)
    assigned.load_state_dict(real.state_dict(), assign=True)
    filled = empty.to_empty(device="cpu")
    filled.load_state_dict(real.state_dict())
    x = T.randn(2, 3, 8, 8)
    for module in (assigned, filled):
        assert all(p.requires_grad and not p.is_meta for p in module.parameters())
        assert T.equal(module.eval()(x), real.eval()(x))


def test_a_step_without_numbers():
    with T.device("meta"):
        module, x, y = net(), T.ones(2, 3, 8, 8), T.arange(2)
    for optimizer in (T.optim.SGD(module.parameters(), lr=0.1, momentum=0.9), T.optim.Adam(module.parameters())):
        optimizer.zero_grad()
        T.nn.functional.cross_entropy(module(x), y).backward()
        optimizer.step()
    assert all(p.is_meta and p.grad.shape == p.shape and p.grad.is_meta for p in module.parameters())
