"""`DistributedDataParallel` in a world of one rank, and what it refuses, in PyTorch's words."""

import gc
import importlib
import warnings
import weakref

import pytest

import library

T = library.T
dist = T.distributed
nn = T.nn
pytestmark = pytest.mark.filterwarnings("ignore:find_unused_parameters=True")


@pytest.fixture(scope="module", autouse=True)
def alone():
    """A world of this process."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def ddp(module, **options):
    return nn.parallel.DistributedDataParallel(module, **options)


def step(model, *inputs):
    model(T.ones(1, 2), *inputs).sum().backward()


class Two(nn.Module):
    """Uses `b` in the steps that `uses_b` says."""

    def __init__(self, uses_b=lambda step: False):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
        self.uses_b, self.step = uses_b, 0

    def forward(self, x):
        self.step += 1
        return self.b(self.a(x)) if self.uses_b(self.step) else self.a(x)


def test_a_world_of_one():
    layer = nn.Linear(2, 2)
    model = ddp(layer)
    for _ in range(3):
        model.zero_grad()
        step(model)
    assert layer.weight.grad.tolist() == [[1.0, 1.0]] * 2
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    assert "(module): Linear(in_features=2, out_features=2, bias=True)" in repr(model)


@pytest.mark.gradiron
def test_before_init_process_group():
    from library import python

    done = python("T.nn.parallel.DistributedDataParallel(T.nn.Linear(1, 1))")
    assert (
        "ValueError: Default process group has not been initialized, please make sure to call init_process_group."
        in done.stderr
    )


@pytest.mark.gradiron
def test_without_it_nothing_of_distributed_is_imported():
    from library import python

    done = python("import sys; T.nn.parallel.DataParallel; print([m for m in sys.modules if 'distributed' in m])")
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("make, options, error, message", [
    (lambda: nn.ReLU(), {}, RuntimeError, "is not needed when a module doesn't have any parameter that requires a gradient"),
    (lambda: nn.Linear(2, 2), {"device_ids": [0, 1]}, ValueError, "device_ids can only be None or contain a single element"),
    (lambda: nn.Linear(2, 2), {"device_ids": [0]}, ValueError, "device_ids and output_device arguments only work with"),
    (lambda: nn.LazyLinear(2), {}, RuntimeError, "Modules with uninitialized parameters can't be used with"),
    (lambda: nn.Linear(2, 2), {"delay_all_reduce_named_params": []}, ValueError, "need to be set at the same time"),
    (lambda: nn.Linear(2, 2), {"device_mesh": 1, "process_group": 1}, RuntimeError, "Cannot specify both process_group and device_mesh"),
])  # fmt: skip
def test_refused(make, options, error, message):
    with pytest.raises(error, match=message):
        ddp(make(), **options)


@pytest.mark.gradiron
def test_refused_by_gradiron():
    with pytest.raises(NotImplementedError, match="mixed_precision is not supported; use torch.autocast"):
        ddp(nn.Linear(2, 2), mixed_precision=object())
    with pytest.raises(RuntimeError, match="no sparse gradients: pass sparse=False to the embedding 0"):
        ddp(nn.Sequential(nn.Embedding(3, 2, sparse=True)))


@pytest.mark.parametrize("options, message", [
    ({"broadcast_buffers": False}, "`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead"),
    ({"broadcast_buffers": True, "forward_sync_buffers": True}, "Both `broadcast_buffers` and `forward_sync_buffers` were specified"),
    ({"check_reduction": True}, "The `check_reduction` argument in `DistributedDataParallel` module is deprecated"),
])  # fmt: skip
def test_deprecated_arguments(options, message):
    with pytest.warns(FutureWarning, match=message):
        ddp(nn.Linear(2, 2), **options)


def test_a_parameter_without_a_gradient():
    model = ddp(Two())
    step(model)
    with pytest.raises(RuntimeError) as raised:
        step(model)
    text = str(raised.value)
    assert text.startswith("Expected to have finished reduction in the prior iteration before starting a new one.")
    assert "find_unused_parameters=True" in text and "Parameter indices which did not receive grad for rank 0: 2 3" in text
    assert "TORCH_DISTRIBUTED_DEBUG to either INFO or DETAIL" in text
    with pytest.raises(RuntimeError, match="Expected to have finished reduction"):
        step(model)
    for options in ({"find_unused_parameters": True}, {"static_graph": True}):
        model = ddp(Two(), **options)
        for _ in range(3):
            step(model)
        assert model.module.b.weight.grad is None and model.module.a.weight.grad is not None


@pytest.mark.gradiron
def test_names_of_parameters_without_a_gradient(monkeypatch):
    model = ddp(Two())
    step(model)
    dist.set_debug_level(dist.DebugLevel.INFO)
    try:
        with pytest.raises(RuntimeError, match="did not receive grad for rank 0: b.weight, b.bias\n"):
            step(model)
    finally:
        dist.set_debug_level(dist.DebugLevel.OFF)


class Reused(nn.Module):
    """Two reentrant checkpoints of the same layer."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x):
        x = self.b(x)
        for _ in range(2):
            x = T.utils.checkpoint.checkpoint(self.a, x, use_reentrant=True)
        return x


def test_a_parameter_that_is_ready_twice():
    with pytest.raises(RuntimeError, match="Expected to mark a variable ready only once") as raised:
        step(ddp(Reused()))
    assert "with name a." in str(raised.value) and "has been marked as ready twice" in str(raised.value)
    model = ddp(Reused(), static_graph=True)
    for _ in range(3):
        step(model)


def test_static_graphs_that_change():
    model = ddp(Two(lambda step: step > 1), static_graph=True)
    step(model)
    with pytest.raises(RuntimeError, match="Your training graph has changed in this iteration"):
        step(model)
    model = ddp(Two(lambda step: step == 1), static_graph=True)
    step(model)
    step(model)
    with pytest.raises(RuntimeError, match="one parameter is used in first iteration, but then got unused in the second"):
        step(model)


def test_set_static_graph():
    model = ddp(nn.Linear(2, 2))
    model._set_static_graph()
    assert model.static_graph
    with pytest.warns(UserWarning, match="You've set static_graph to be True, no need to set it again"):
        model._set_static_graph()
    step(model)
    late = ddp(nn.Linear(2, 2))
    step(late)
    with pytest.raises(RuntimeError, match="should be called before training loop starts"):
        late._set_static_graph()
    with pytest.warns(UserWarning, match="you do not need to set find_unused_parameters=true"):
        ddp(nn.Linear(2, 2), static_graph=True, find_unused_parameters=True)


@pytest.mark.gradiron
def test_a_search_that_finds_nothing_says_so():
    model = ddp(nn.Linear(2, 2), find_unused_parameters=True)
    with pytest.warns(UserWarning, match="did not find any unused parameters in the forward pass"):
        step(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(model)
    assert model._get_ddp_logging_data()["can_set_static_graph"]
    changing = ddp(Two(lambda step: step % 2 == 0), find_unused_parameters=True)
    for _ in range(3):
        step(changing)
    assert not changing._get_ddp_logging_data()["can_set_static_graph"]


def test_a_graph_that_is_kept():
    model = ddp(nn.Linear(2, 2))
    loss = model(T.ones(1, 2)).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    step(model)
    assert model.module.weight.grad.tolist() == [[3.0, 3.0]] * 2


def test_autograd_grad_does_not_reduce():
    model = ddp(nn.Linear(2, 2))
    (grad,) = T.autograd.grad(model(T.ones(1, 2)).sum(), [model.module.weight])
    assert grad.tolist() == [[1.0, 1.0]] * 2 and model.module.weight.grad is None
    step(model)
    assert model.module.weight.grad.tolist() == [[1.0, 1.0]] * 2


@pytest.mark.gradiron
def test_gradients_of_gradients():
    layer = nn.Linear(2, 1, bias=False)
    model = ddp(layer)
    with pytest.warns(UserWarning, match="create_graph=True is not well-supported"):
        (model(T.ones(1, 2)) ** 2).sum().backward(create_graph=True)
    (second,) = T.autograd.grad(layer.weight.grad.sum(), [layer.weight])
    assert second.tolist() == [[4.0, 4.0]]


def test_no_sync_keeps_gradients_in_the_process():
    model = ddp(nn.Linear(2, 2))
    with model.no_sync():
        assert not model.require_backward_grad_sync
        step(model)
    assert model.require_backward_grad_sync
    assert model.module.weight.grad._base is None
    step(model)
    assert model.module.weight.grad.tolist() == [[2.0, 2.0]] * 2


def test_the_reducer_has_a_name():
    core = importlib.import_module(f"{library.NAME}._C._distributed_c10d")
    assert core is T._C._distributed_c10d
    assert isinstance(ddp(nn.Linear(2, 2)).reducer, core.Reducer) and core.GradBucket is dist.GradBucket


@pytest.mark.gradiron
def test_without_its_wrapper_a_module_is_as_before():
    layer = nn.Linear(2, 2)
    model = ddp(layer)
    gone = weakref.ref(model.reducer)
    del model
    assert gone() is None or (gc.collect() and gone() is None)
    layer(T.ones(1, 2)).sum().backward()
    assert layer.weight.grad._base is None


def test_only_the_default_group_can_be_pickled():
    import pickle

    model = ddp(nn.Linear(2, 2), process_group=dist.new_group([0]))
    with pytest.raises(
        RuntimeError, match="DDP Pickling/Unpickling are only supported when using DDP with the default process group"
    ):
        pickle.dumps(model)


class Mesh:
    """As much of a device mesh as is asked for its group."""

    def __init__(self, ndim):
        self.ndim = ndim

    def get_group(self, mesh_dim):
        assert mesh_dim == 0
        return dist.group.WORLD


@pytest.mark.gradiron
def test_meshes():
    assert ddp(nn.Linear(2, 2), device_mesh=Mesh(1)).process_group is dist.group.WORLD
    with pytest.raises(RuntimeError, match="Only 1D device mesh is supported, but got"):
        ddp(nn.Linear(2, 2), device_mesh=Mesh(2))


# Ranks that differ.


def wrap_layer(rank, kind):
    kinds = {
        "sizes": lambda: nn.Linear(2, 2 + (rank == 2)),
        "dtypes": lambda: nn.Linear(2, 2, dtype=T.float64 if rank == 2 else T.float32),
        "count": lambda: nn.Linear(2, 2, bias=rank != 2),
        "strides": lambda: nn.Conv2d(2, 2, 2).to(memory_format=T.channels_last if rank == 2 else T.contiguous_format),
    }
    nn.parallel.DistributedDataParallel(kinds[kind]())


@pytest.mark.gradiron
@pytest.mark.parametrize("kind, on_the_rank, elsewhere", [
    ("sizes", "[2]: params[0] (weight) in this process with sizes [3, 2] appears not to match sizes of the same param in process 0",
     "params[0] (weight) with sizes [2, 2] does not match that of process 2"),
    ("dtypes", "torch.float64 here", "does not match that of process 2"),
    ("strides", "Sizes, strides and dtypes", "does not match that of process 2"),
    ("count", "DDP expects same model across all ranks, but Rank 2 has 1 params, while rank 0 has inconsistent 2 params.",
     "DDP expects same model across all ranks, but Rank 2 has 1 params"),
])  # fmt: skip
def test_ranks_with_different_modules(four, kind, on_the_rank, elsewhere):
    kinds, values = four.outcomes(wrap_layer, kind)
    assert kinds == ["raised"] * 4
    for rank, (error, text, _) in enumerate(values):
        assert error == "RuntimeError" and (on_the_rank if rank == 2 else elsewhere) in text
