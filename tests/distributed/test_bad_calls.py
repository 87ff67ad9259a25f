"""Bad calls get PyTorch's errors, before anything is sent. One rank is enough."""

import datetime
import re
import warnings

import pytest

import library

T = library.T
dist = T.distributed

NOT_INITIALIZED = "Default process group has not been initialized, please make sure to call init_process_group."


@pytest.fixture
def alone():
    """A world of one rank."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


@pytest.mark.parametrize(
    "call",
    [
        lambda: dist.all_reduce(T.ones(2)),
        lambda: dist.barrier(),
        lambda: dist.get_rank(),
        lambda: dist.get_world_size(),
        lambda: dist.get_backend(),
        lambda: dist.new_group([0]),
        lambda: dist.broadcast_object_list([1]),
    ],
)
def test_before_the_start(call):
    assert not dist.is_initialized()
    with pytest.raises(ValueError, match=re.escape(NOT_INITIALIZED)):
        call()


def test_destroy_before_the_start():
    with pytest.raises(AssertionError, match="Process group cannot be None"):
        dist.destroy_process_group()


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({}, ValueError, "environment variable RANK expected, but not set"),
        ({"init_method": "env://", "store": dist.HashStore()}, AssertionError, "Cannot specify both init_method and store."),
        ({"store": dist.HashStore()}, AssertionError, "world_size must be positive if using store"),
        ({"store": dist.HashStore(), "world_size": 1}, AssertionError, "rank must be non-negative if using store"),
        ({"timeout": 5}, TypeError, "Expected timeout argument to be of type datetime.timedelta, got 5"),
        ({"backend": "foo"}, AssertionError, "Unknown backend type foo"),
        ({"backend": "ucc"}, RuntimeError, "Distributed package doesn't have UCC built in"),
        ({"init_method": "tcp://127.0.0.1:70000", "rank": 0, "world_size": 1}, ValueError, "Port out of range 0-65535"),
        ({"init_method": "tcp://127.0.0.1:29599", "world_size": 1}, ValueError, "rank parameter missing"),
        ({"init_method": "foo://x", "rank": 0, "world_size": 1}, RuntimeError, "No rendezvous handler for foo://"),
    ],
)
def test_a_start_that_cannot_be(options, kind, says, monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    if options.get("backend") in ("foo", "ucc") or "timeout" in options:
        options = {"store": dist.HashStore(), "rank": 0, "world_size": 1, **options}
    with warnings.catch_warnings(), pytest.raises(kind, match=re.escape(says)):
        warnings.simplefilter("ignore")
        dist.init_process_group(**{"backend": "gloo", **options})
    assert not dist.is_initialized()


def test_a_rank_that_is_no_number(monkeypatch):
    monkeypatch.setenv("RANK", "x")
    with pytest.raises(ValueError, match="invalid literal for int"):
        dist.init_process_group("gloo")


def test_twice(alone):
    with pytest.raises(ValueError, match="trying to initialize the default process group twice!"):
        dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())


CALLS = [
    (lambda: dist.all_reduce([1]), TypeError, "Invalid function argument. Expected parameter `tensor` of type torch.Tensor"),
    (
        lambda: dist.all_gather([1], T.ones(1)),
        TypeError,
        "Invalid function argument. Expected parameter `tensor_list` of type List[torch.Tensor]",
    ),
    (
        lambda: dist.all_gather(T.ones(1), T.ones(1)),
        TypeError,
        "Invalid function argument. Expected parameter `tensor_list` of type List[torch.Tensor]",
    ),
    (
        lambda: dist.all_gather([T.ones(1)], T.ones(1).double()),
        ValueError,
        "Invalid usage of tensors with different dtypesFound torch.float32 and  torch.float64",
    ),
    (lambda: dist.all_gather([T.ones(2)], T.ones(1)), RuntimeError, "invalid tensor size at index 0 (expected (1), got (2))"),
    (lambda: dist.all_gather([T.ones(2)] * 2, T.ones(2)), RuntimeError, "allgather: "),
    (lambda: dist.all_gather_into_tensor(T.ones(3), T.ones(2)), RuntimeError, "size"),
    (lambda: dist.broadcast(T.ones(2)), ValueError, "Must specify global_rank or group_rank"),
    (lambda: dist.broadcast(T.ones(2), 9), RuntimeError, "broadcast: invalid root rank: 9"),
    (lambda: dist.broadcast(T.ones(2), 0, group_src=0), ValueError, "Can't specify both group_rank and global_rank"),
    (lambda: dist.reduce(T.ones(2)), ValueError, "Must specify global_rank or group_rank"),
    (lambda: dist.scatter(T.ones(2), None, 0), ValueError, "Argument ``scatter_list`` must be specified on source rank."),
    (
        lambda: dist.scatter(T.ones(2), [T.ones(3)], 0),
        RuntimeError,
        "scatter: invalid tensor size at index 0 (expected (2), got (3))",
    ),
    (lambda: dist.gather(T.ones(2), None, 0), ValueError, "Argument ``gather_list`` must be specified on destination rank."),
    (lambda: dist.gather(T.ones(2), [], 0), ValueError, "Argument ``gather_list`` must be specified on destination rank."),
    (lambda: dist.all_reduce(T.ones(2), op="sum"), TypeError, "incompatible function arguments"),
    (
        lambda: dist.all_reduce(T.ones(2).int(), op=dist.ReduceOp.AVG),
        RuntimeError,
        "result type Float can't be cast to the desired output type Int",
    ),
    (
        lambda: dist.all_reduce(T.ones(2), op=dist.ReduceOp.BAND),
        RuntimeError,
        "Cannot use ReduceOp.BAND with non-integral dtype",
    ),
    (
        lambda: dist.all_reduce(T.ones(2, dtype=T.complex64), op=dist.ReduceOp.MAX),
        ValueError,
        "MAX on complex tensors",
    ),
    (
        lambda: dist.send(T.ones(2), 0),
        ValueError,
        "Invalid destination rank: destination rank should not be the same as the rank of the current process.",
    ),
    (
        lambda: dist.all_to_all_single(T.ones(2), T.ones(2), [1], [2]),
        RuntimeError,
        "Split sizes doesn't match total dim 0 size",
    ),
    (
        lambda: dist.reduce_scatter(T.ones(2), T.ones(3)),
        TypeError,
        "Invalid function argument. Expected parameter `input_list` of type List[torch.Tensor]",
    ),
    (lambda: dist.P2POp(dist.all_reduce, T.ones(2), 0), ValueError, "Invalid ``op``. Expected ``op`` to be of type"),
    (lambda: dist.batch_isend_irecv([1]), ValueError, "Invalid ``p2p_op_list``. Each op is expected to to be of type"),
    (lambda: dist.batch_isend_irecv([]), IndexError, "list index out of range"),
    (
        lambda: dist.new_group([0, 1]),
        ValueError,
        "the new group's world size should be less or equal to the world size set by init_process_group",
    ),
    (lambda: dist.new_group(timeout=3), TypeError, "Expected timeout argument to be of type datetime.timedelta, got 3"),
    (lambda: dist.barrier(device_ids=1), TypeError, "device_ids type should be List[int]"),
    (lambda: dist.all_gather_object([], 1), IndexError, "list assignment index out of range"),
    (
        lambda: dist.scatter_object_list([], [1], 0),
        ValueError,
        "Expected argument scatter_object_output_list to be a list of size at least 1.",
    ),
    (lambda: dist.gather_object(1, None, 0), ValueError, "Argument ``gather_list`` must be specified on destination rank."),
    (lambda: dist.Backend(3), ValueError, "Backend constructor parameter must be string-ish"),
    (lambda: dist.get_node_local_rank(), RuntimeError, "LOCAL_RANK is not in the environment."),
]


@pytest.mark.parametrize("at", range(len(CALLS)))
def test_bad_calls(alone, at, monkeypatch):
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    call, kind, says = CALLS[at]
    with warnings.catch_warnings(), pytest.raises(kind, match=re.escape(says)):
        warnings.simplefilter("ignore")
        call()


@pytest.mark.gradiron
@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: T.ones(2, device="meta"), "a tensor on the device meta has no elements to send"),
        (lambda: T.ones(2).to_sparse(), "unsupported layout torch.sparse_coo"),
        (lambda: T.ones(2).to(T.float8_e4m3fn) if hasattr(T, "float8_e4m3fn") else None, "Invalid scalar type"),
    ],
)
def test_tensors_that_cannot_travel(alone, make, says):
    try:
        x = make()
    except (RuntimeError, NotImplementedError, TypeError):
        pytest.skip("no such tensors")
    with pytest.raises((RuntimeError, TypeError), match=re.escape(says)):
        dist.all_reduce(x)


def test_a_destroyed_group(alone):
    group = dist.group.WORLD
    dist.destroy_process_group()
    with pytest.raises(ValueError, match="is not initialized in the world group map"):
        dist.get_backend(group)


def test_one_rank_needs_no_engine(alone):
    x = T.tensor([1.0, 2.0])
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX):
        dist.all_reduce(x, op)
    assert x.tolist() == [1, 2]
    parts = [T.zeros(2)]
    dist.all_gather(parts, x)
    assert parts[0].tolist() == [1, 2]
    out = T.zeros(2)
    dist.reduce_scatter(out, [x])
    assert out.tolist() == [1, 2]
    dist.all_to_all_single(out, x * 3)
    assert out.tolist() == [3, 6]
    objects = [None]
    dist.all_gather_object(objects, "one")
    assert objects == ["one"]
    dist.monitored_barrier()
    dist.barrier()
    assert dist.get_world_size() == 1 and dist.get_rank() == 0 and dist.get_backend() == "gloo"
    work = dist.all_reduce(x, async_op=True)
    assert work.wait() and work.is_completed()
    with pytest.raises(RuntimeError, match="sourceRank"):
        work.source_rank()


def test_timeouts_are_durations():
    assert dist.default_pg_timeout == datetime.timedelta(minutes=30)


def test_names():
    assert dist.is_available()
    assert str(dist.ReduceOp.SUM) == "RedOpType.SUM"
    assert repr(dist.ReduceOp.SUM) == "<RedOpType.SUM: 0>"
    assert isinstance(dist.ReduceOp.SUM, dist.ReduceOp)
    assert dist.ReduceOp(dist.ReduceOp.SUM) == dist.ReduceOp.SUM
    assert dist.Backend("GLOO") == "gloo" == dist.Backend.GLOO
    assert not dist.is_ucc_available()


def of_the_second_tensor(options):
    options.rootTensor = 1
    return options


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda group, x: group.broadcast([x], of_the_second_tensor(dist.BroadcastOptions())),
            "broadcast: invalid root tensor: 1",
        ),
        (lambda group, x: group.reduce([x], of_the_second_tensor(dist.ReduceOptions())), "reduce: invalid root tensor: 1"),
        (
            lambda group, x: group.allgather([[x], [x]], [x]),
            "allgather: requires input/output tensor lists to have the same length",
        ),
        (
            lambda group, x: group.gather([], [x]),
            "gather: requires a single-element output list containing a list with 1 tensors.",
        ),
        (
            lambda group, x: group.scatter([x], []),
            "scatter: requires a single-element input list containing a list with 1 tensors.",
        ),
        (
            lambda group, x: group.allreduce_coalesced([x, x.double()]),
            "allreduce_coalesced: tensors must all have the same type",
        ),
        (
            lambda group, x: group.allgather_coalesced([[]], [x]),
            "allgather_coalesced: invalid output size: (expected length 1, got 0)",
        ),
    ],
)
def test_calls_of_a_group(alone, call, says):
    with pytest.raises(RuntimeError, match=re.escape(says)):
        call(dist.group.WORLD, T.ones(1))
