"""Every collective, with every dtype, layout and group, beside the same sum, maximum or move done in one process."""

import itertools

import pytest

import library

T = library.T
dist = T.distributed

KINDS = ["float32", "float64", "int32", "int64", "uint8", "int8", "float16", "bfloat16", "bool"]
SHAPES = {"vector": (5,), "matrix": (3, 4), "scalar": (), "empty": (0,), "view": (4, 6)}


def values_of(rank, kind, shape):
    """Small whole numbers, so that every dtype holds every sum."""
    dims = SHAPES[shape]
    count = 1
    for dim in dims:
        count *= dim
    flat = (T.arange(count) * 7 + rank * 3) % 5 - (0 if kind in ("uint8", "bool") else 2)
    made = flat.reshape(dims).to(library.dtype(kind))
    return made.t()[::2] if shape == "view" else made


def joined(op, kind, shape, ranks):
    """What a reduction gives, in float64."""
    stacked = T.stack([values_of(rank, kind, shape).double() for rank in ranks])
    if kind == "bool":
        return (stacked.amax(0) if op in ("SUM", "MAX") else stacked.amin(0)).bool()
    reduce = {
        "SUM": lambda: stacked.sum(0),
        "AVG": lambda: stacked.mean(0),
        "PRODUCT": lambda: stacked.prod(0),
        "MIN": lambda: stacked.amin(0),
        "MAX": lambda: stacked.amax(0),
    }[op]
    return reduce().to(library.dtype(kind))


def do_all_reduce(rank, cases, size):
    for kind, shape, op, later in cases:
        x = values_of(rank, kind, shape)
        version = x._version
        work = dist.all_reduce(x, getattr(dist.ReduceOp, op), async_op=later)
        if later:
            assert work.wait()
            assert work.is_completed()
        assert work is None or later
        expected = joined(op, kind, shape, range(size))
        assert T.equal(x, expected), (kind, shape, op, x, expected)
        assert x._version == version


@pytest.mark.parametrize("later", [False, True], ids=["sync", "async"])
def test_all_reduce(four, later):
    if not library.IS_GRADIRON:
        pytest.skip("gloo knows fewer dtypes")
    cases = [
        (kind, shape, op, later)
        for kind, shape, op in itertools.product(KINDS, SHAPES, ["SUM", "AVG", "PRODUCT", "MIN", "MAX"])
        if not (op == "AVG" and kind in ("int32", "int64", "uint8", "int8", "bool"))
    ]
    four.run(do_all_reduce, cases, 4)


def do_bits(rank):
    for op, start in itertools.product(["BAND", "BOR", "BXOR"], [12, 10]):
        x = T.tensor([start + rank, 7 * rank])
        dist.all_reduce(x, getattr(dist.ReduceOp, op))
        expected = [start, 0]
        for other in range(1, 4):
            for at, value in enumerate([start + other, 7 * other]):
                both = {"BAND": expected[at] & value, "BOR": expected[at] | value, "BXOR": expected[at] ^ value}
                expected[at] = both[op]
        assert x.tolist() == expected


def test_bits(four):
    four.run(do_bits)


def do_moves(rank, kind, shape):
    size = 4
    mine = values_of(rank, kind, shape)
    every = [values_of(r, kind, shape) for r in range(size)]

    for root in (0, 2):
        x = mine.clone() if shape != "view" else values_of(rank, kind, shape)
        dist.broadcast(x, root)
        assert T.equal(x, every[root])

        parts = [T.zeros_like(mine) for _ in range(size)] if rank == root else None
        dist.gather(mine, parts, dst=root)
        if rank == root:
            assert all(T.equal(part, other) for part, other in zip(parts, every, strict=True))

        x = T.zeros_like(mine)
        dist.scatter(x, every if rank == root else None, src=root)
        assert T.equal(x, mine)

    parts = [T.zeros_like(mine) for _ in range(size)]
    dist.all_gather(parts, mine)
    assert all(T.equal(part, other) for part, other in zip(parts, every, strict=True))

    whole = T.zeros(size * mine.numel(), dtype=mine.dtype)
    dist.all_gather_into_tensor(whole, mine.reshape(-1))
    assert T.equal(whole, T.cat([x.reshape(-1) for x in every]))

    outs = [T.zeros_like(mine) for _ in range(size)]
    dist.all_to_all(outs, [mine.clone() if other % 2 else mine for other in range(size)])
    assert all(T.equal(part, other) for part, other in zip(outs, every, strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_moves(four, kind, shape):
    if not library.IS_GRADIRON:
        pytest.skip("gloo knows fewer dtypes and layouts")
    four.run(do_moves, kind, shape)


def do_reduce_scatter(rank, kind):
    size = 4
    dtype = library.dtype(kind)
    inputs = [T.full((2, 3), rank + other, dtype=dtype) for other in range(size)]
    out = T.zeros(2, 3, dtype=dtype)
    dist.reduce_scatter(out, inputs)
    assert T.equal(out, T.full((2, 3), 6 + 4 * rank, dtype=dtype))

    out = T.zeros(2, dtype=dtype)
    dist.reduce_scatter_tensor(out, T.arange(8).to(dtype) + rank)
    assert T.equal(out, (T.arange(8).to(dtype) * 4 + 6)[2 * rank : 2 * rank + 2])


@pytest.mark.parametrize("kind", ["float32", "float64", "int64", "bfloat16"])
def test_reduce_scatter(four, kind):
    if not library.IS_GRADIRON and kind == "bfloat16":
        pytest.skip("gloo does not know it")
    four.run(do_reduce_scatter, kind)


def do_all_to_all_single(rank):
    size = 4
    out = T.zeros(size, 2)
    dist.all_to_all_single(out, T.arange(8.0).reshape(4, 2) + 100 * rank)
    assert T.equal(out, T.stack([T.arange(8.0).reshape(4, 2)[rank] + 100 * other for other in range(size)]))

    send = [other + 1 for other in range(size)]
    receive = [rank + 1] * size
    out = T.zeros(sum(receive), dtype=T.int64)
    dist.all_to_all_single(out, T.full((sum(send),), rank), receive, send)
    assert out.tolist() == [other for other in range(size) for _ in range(rank + 1)]


def test_all_to_all_single(four):
    four.run(do_all_to_all_single)


def do_reduce(rank):
    for root, op in itertools.product(range(4), ["SUM", "MAX", "AVG"]):
        x = T.tensor([float(rank), 1.0])
        dist.reduce(x, root, getattr(dist.ReduceOp, op))
        if rank == root:
            assert x.tolist() == {"SUM": [6, 4], "MAX": [3, 1], "AVG": [1.5, 1]}[op]


def test_reduce(four):
    if not library.IS_GRADIRON:
        pytest.skip("gloo has no average for reduce")
    four.run(do_reduce)


def do_complex(rank):
    x = T.tensor([1 + 2j, 3 - 1j]) * (rank + 1)
    dist.all_reduce(x)
    assert T.equal(x, T.tensor([1 + 2j, 3 - 1j]) * 10)
    x = (T.tensor([1 + 2j]) * (rank + 1)).conj()
    dist.all_reduce(x)
    assert T.equal(x, T.tensor([10 - 20j]))
    with pytest.raises(ValueError, match=r"all_reduce does not support .*MAX on complex tensors"):
        dist.all_reduce(T.ones(2, dtype=T.complex64), dist.ReduceOp.MAX)


def test_complex(four):
    if not library.IS_GRADIRON:
        pytest.skip("gloo takes no conjugate views")
    four.run(do_complex)


def do_long(rank, count):
    x = T.arange(count, dtype=T.float32) % 1000 + rank
    dist.all_reduce(x)
    assert T.equal(x, (T.arange(count, dtype=T.float32) % 1000) * 4 + 6)
    x = T.arange(count) if rank == 1 else T.zeros(count, dtype=T.int64)
    dist.broadcast(x, 1)
    assert T.equal(x, T.arange(count))
    parts = T.zeros(4, count, dtype=T.int16)
    dist.all_gather_into_tensor(parts, T.full((count,), rank, dtype=T.int16))
    assert all((parts[other] == other).all() for other in range(4))


def test_long_messages_go_in_pieces(four):
    four.run(do_long, 3_000_001)


def do_mixed(rank, count):
    """Short operations asked for while the pieces of long ones wait keep their order on every rank."""
    long = [T.full((count,), float(rank + at)) for at in range(3)]
    works = []
    short = []
    for at, x in enumerate(long):
        works.append(dist.all_reduce(x, async_op=True))
        y = T.tensor([rank * 10 + at])
        works.append(dist.all_reduce(y, async_op=True))
        short.append(y)
    for work in reversed(works):
        work.wait()
    for at in range(3):
        assert (long[at] == 6 + 4 * at).all()
        assert short[at].item() == 60 + 4 * at


def test_order_of_pieces(four):
    four.run(do_mixed, 5_000_000)


def do_bitwise(rank):
    T.manual_seed(rank)
    x = T.randn(100_003)
    first = x.clone()
    dist.all_reduce(first)
    again = x.clone()
    dist.all_reduce(again)
    assert T.equal(first, again)
    parts = [T.zeros_like(first) for _ in range(4)]
    dist.all_gather(parts, first)
    assert all(T.equal(parts[0], part) for part in parts)


def test_bits_are_equal_on_all_ranks_and_from_call_to_call(four):
    four.run(do_bitwise)


def do_messages(rank):
    if rank == 0:
        for peer in (1, 2, 3):
            dist.send(T.full((3,), float(peer)), peer, tag=peer)
        got = T.zeros(2)
        senders = sorted(dist.recv(got) for _ in range(3))
        assert senders == [1, 2, 3]
    else:
        x = T.zeros(3)
        assert dist.recv(x, 0, tag=rank) == 0
        assert T.equal(x, T.full((3,), float(rank)))
        dist.send(T.tensor([rank, 1.0]), 0)
    right, left = (rank + 1) % 4, (rank - 1) % 4
    out, into = T.full((4,), rank), T.zeros(4, dtype=T.int64)
    ops = [dist.P2POp(dist.isend, out, right, tag=9), dist.P2POp(dist.irecv, into, left, tag=9)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert T.equal(into, T.full((4,), left))
    strided = T.zeros(4, 2)
    if rank == 1:
        dist.send(T.arange(8.0).reshape(2, 4).t(), 3)
    if rank == 3:
        dist.recv(strided, 1)
        assert T.equal(strided, T.arange(8.0).reshape(2, 4).t())


def test_messages(four):
    four.run(do_messages)


def do_tags(rank):
    """Tags tell messages apart, in any order."""
    if rank == 0:
        works = [dist.isend(T.tensor([float(tag)]), 1, tag=tag) for tag in range(5)]
        for work in works:
            work.wait()
    elif rank == 1:
        for tag in (3, 0, 4, 1, 2):
            x = T.zeros(1)
            dist.recv(x, 0, tag=tag)
            assert x.item() == tag
    dist.barrier()


def test_tags(four):
    four.run(do_tags)


def do_groups(rank):
    evens, odds = dist.new_group([0, 2]), dist.new_group([1, 3])
    mine, other = (evens, odds) if rank % 2 == 0 else (odds, evens)
    assert other == dist.GroupMember.NON_GROUP_MEMBER
    x = T.tensor([float(rank)])
    dist.all_reduce(x, group=mine)
    assert x.item() == (2 if rank % 2 == 0 else 4)
    assert dist.get_rank(mine) == rank // 2
    assert dist.get_world_size(mine) == 2
    assert dist.get_rank(other) == -1
    assert dist.get_process_group_ranks(mine) == [rank % 2, rank % 2 + 2]
    assert dist.get_global_rank(mine, 1) == rank % 2 + 2
    assert dist.get_group_rank(mine, rank) == rank // 2
    x = T.tensor([float(rank)])
    dist.broadcast(x, src=rank % 2 + 2, group=mine)
    assert x.item() == rank % 2 + 2
    dist.broadcast(x, group_src=0, group=mine)
    with pytest.warns(UserWarning, match="does not belong to the given group"):
        assert dist.all_reduce(x, group=other) is None
    dist.barrier(group=mine)
    dist.destroy_process_group(mine)
    with pytest.raises(ValueError, match="is not initialized in the world group map"):
        dist.get_backend(mine)
    pair, pairs = dist.new_subgroups(2)
    assert len(pairs) == 2
    x = T.tensor([1.0 + rank])
    dist.all_reduce(x, group=pair)
    assert x.item() == (3 if rank < 2 else 7)


def test_groups(four):
    four.run(do_groups)


def do_objects(rank):
    gathered = [None] * 4
    dist.all_gather_object(gathered, {"rank": rank, "text": "x" * rank * 100})
    assert [g["rank"] for g in gathered] == [0, 1, 2, 3]
    assert [len(g["text"]) for g in gathered] == [0, 100, 200, 300]
    objects = [T.arange(3), "two", {3: None}] if rank == 1 else [None] * 3
    dist.broadcast_object_list(objects, src=1)
    assert T.equal(objects[0], T.arange(3)) and objects[1:] == ["two", {3: None}]
    parts = [None] * 4 if rank == 2 else None
    dist.gather_object(rank * "a", parts, dst=2)
    if rank == 2:
        assert parts == ["", "a", "aa", "aaa"]
    out = [None]
    dist.scatter_object_list(out, [10, "b", None, (1, 2)] if rank == 0 else None, src=0)
    assert out[0] == [10, "b", None, (1, 2)][rank]
    if rank == 3:
        dist.send_object_list(["hello", 3], 0)
    if rank == 0:
        got = [None, None]
        assert dist.recv_object_list(got, 3) == 3
        assert got == ["hello", 3]


def test_objects(four):
    four.run(do_objects)


def do_barriers(rank):
    dist.barrier()
    work = dist.barrier(async_op=True)
    work.wait()
    dist.monitored_barrier()


def test_barriers(four):
    four.run(do_barriers)


def do_coalesced(rank):
    tensors = [T.full((n,), float(rank)) for n in (1, 5, 2)]
    with dist._coalescing_manager():
        for x in tensors:
            dist.all_reduce(x)
    assert all((x == 6).all() for x in tensors)
    dist.all_reduce_coalesced(tensors)
    assert all((x == 24).all() for x in tensors)
    mixed = [T.tensor([1.0 + rank]), T.tensor([complex(1, rank)])]
    dist.all_reduce_coalesced(mixed)
    assert [x.item() for x in mixed] == [10, complex(4, 6)]


def test_coalesced(four):
    four.run(do_coalesced)


def do_leaf(rank):
    x = T.ones(3, requires_grad=True)
    dist.all_reduce(x)
    assert x.requires_grad and x.is_leaf
    assert x.tolist() == [4, 4, 4]


def test_a_leaf_that_requires_gradients_is_reduced_in_place(four):
    four.run(do_leaf)


def do_future(rank):
    x = T.tensor([float(rank)])
    work = dist.all_reduce(x, async_op=True)
    seen = work.get_future().then(lambda f: f.value()[0] * 2)
    assert seen.wait().item() == 12
    assert work.result()[0].item() == 6
    assert work.is_success()
    parts = [T.zeros(1) for _ in range(4)]
    gathered = dist.all_gather(parts, T.tensor([rank + 1.0]), async_op=True).get_future().wait()
    assert [part.item() for part in gathered] == [1, 2, 3, 4]
    into = parts if rank == 1 else None
    gathered = dist.gather(T.tensor([rank + 2.0]), into, dst=1, async_op=True).get_future().wait()
    assert rank != 1 or [part.item() for part in gathered] == [2, 3, 4, 5]
    x = T.tensor([float(rank)])
    dist.group.WORLD.broadcast(x, root=2).wait()
    dist.group.WORLD.reduce(x, root=3).wait()
    assert rank != 3 or x.item() == 8


def test_futures(four):
    four.run(do_future)
