"""Operands on two devices: every operator refuses them, but for what PyTorch lets go along."""

import os
import subprocess
import sys

import pytest

from library import NAME, NO_GPU, T

pytestmark = [pytest.mark.gradiron, pytest.mark.skipif(NO_GPU, reason="GRADIRON_TEST_NO_GPU is set")]

F = T.nn.functional
LISTS = {"Tensors", "Several"}
TENSORS = {"Tensor", "Operand"} | LISTS


def f(*shape):
    return T.rand(*shape) + 0.1


def i(*values):
    return T.tensor(values)


MASK = T.tensor([True, False, True])
MATRICES = (f(2, 3), f(3, 2))
ROWS = i([0, 2], [1, 0])
# What a recurrent layer is told after its weights.
LAYER = (True, 1, 0.0, False, False, False)


def weights(gates):
    return (f(4 * gates, 3), f(4 * gates, 4), f(4 * gates), f(4 * gates))


# The arguments of rows whose operands are not just any vectors.
CALLS = {
    "bitwise_and": (i(1, 2), i(3, 4)),
    "bitwise_or": (i(1, 2), i(3, 4)),
    "bitwise_xor": (i(1, 2), i(3, 4)),
    "bitwise_left_shift": (i(1, 2), i(3, 4)),
    "bitwise_right_shift": (i(1, 2), i(3, 4)),
    "where": (MASK, f(3), f(3)),
    "diff": (f(3), 1, -1, f(1), f(1)),
    "gather": (f(2, 3), 1, ROWS),
    "index_select": (f(3), 0, i(2, 0)),
    "take": (f(3), i(2, 0)),
    "take_along_dim": (f(2, 3), ROWS, 1),
    "scatter": (f(2, 3), 1, ROWS, f(2, 2)),
    "scatter_add": (f(2, 3), 1, ROWS, f(2, 2)),
    "scatter_reduce": (f(2, 3), 1, ROWS, f(2, 2), "sum"),
    "index_add": (f(3), 0, i(2, 0), f(2)),
    "index_copy": (f(3), 0, i(2, 0), f(2)),
    "index_reduce": (f(3), 0, i(2, 0), f(2), "mean"),
    "searchsorted": (f(3), f(3)),
    "index_fill": (f(3), 0, i(2, 0), T.tensor(5.0)),
    "index_put": (f(3), (i(2, 0),), f(2)),
    "masked_fill": (f(3), MASK, T.tensor(5.0)),
    "masked_scatter": (f(3), MASK, f(3)),
    "masked_select": (f(3), MASK),
    "put": (f(3), i(2, 0), f(2)),
    "select_scatter": (f(2, 3), f(3), 0, 1),
    "slice_scatter": (f(3), f(2), 0, 1),
    "diagonal_scatter": (f(2, 2), f(2)),
    "repeat_interleave": (f(3), i(2, 0, 1)),
    "bmm": (f(2, 2, 3), f(2, 3, 2)),
    "mm": MATRICES,
    "matmul": MATRICES,
    "baddbmm": (f(2, 2, 2), f(2, 2, 3), f(2, 3, 2)),
    "mv": (f(2, 3), f(3)),
    "addmv": (f(2), f(2, 3), f(3)),
    "addmm": (f(2, 2), *MATRICES),
    "addbmm": (f(2, 2), f(2, 2, 3), f(2, 3, 2)),
    "addr": (f(2, 3), f(2), f(3)),
    "chain_matmul": MATRICES,
    "bilinear": (f(4, 2), f(4, 3), f(5, 2, 3), f(5)),
    "tensordot": (f(2, 3), f(3, 2), 1),
    "einsum": ("ij,jk->ik", *MATRICES),
    "dstack": ((f(3), f(3)),),
    "nll_loss": (f(2, 3), i(2, 0), f(3)),
    "cross_entropy": (f(2, 3), i(2, 0), f(3)),
    "binary_cross_entropy": (f(3) / 2, f(3) / 2, f(3)),
    "binary_cross_entropy_with_logits": (f(3), f(3), f(3), None, None, "mean", f(3)),
    "mse_loss": (f(3), f(3), None, None, "mean", f(3)),
    "l1_loss": (f(3), f(3), None, None, "mean", f(3)),
    "huber_loss": (f(3), f(3), "mean", 1.0, f(3)),
    "linear": (f(2, 3), f(4, 3), f(4)),
    "layer_norm": (f(2, 3), (3,), f(3), f(3)),
    "embedding": (f(5, 3), i(0, 1)),
    "embedding_bag": (f(5, 3), i(0, 1, 1), i(0, 2), False, 0, False, f(3)),
    "embedding_renorm_": (f(5, 3), i(0, 1), 1.0, 2.0),
    "normal": (f(3), f(3)),
    "linspace": (T.tensor(0.0), T.tensor(1.0), 3),
    "logspace": (T.tensor(0.0), T.tensor(1.0), 3),
    "fill": (f(3), T.tensor(5.0)),
    "ldexp": (f(3), i(1, 2, 3)),
    "special_polynomial": (f(3), f(3), "legendre_polynomial_p"),
    "gcd": (i(1, 2), i(3, 4)),
    "lcm": (i(1, 2), i(3, 4)),
    "bincount": (i(1, 2), f(2)),
    "quantile": (f(3), T.tensor(0.5)),
    "nanquantile": (f(3), T.tensor(0.5)),
    "cholesky_solve": (f(2, 2), f(2, 2)),
    "triangular_solve": (f(2, 2), f(2, 2)),
    "linalg_solve": (f(2, 2), f(2, 2)),
    "linalg_solve_ex": (f(2, 2), f(2, 2)),
    "linalg_solve_triangular": (f(2, 2), f(2, 2), True),
    "linalg_lu_solve": (f(2, 2), T.tensor([1, 2], dtype=T.int32), f(2, 2)),
    "linalg_ldl_solve": (f(2, 2), T.tensor([1, 2], dtype=T.int32), f(2, 2)),
    "lu_solve": (f(2, 2), f(2, 2), T.tensor([1, 2], dtype=T.int32)),
    "lu_unpack": (f(2, 2), T.tensor([1, 2], dtype=T.int32)),
    "linalg_householder_product": (f(3, 3), f(3)),
    "orgqr": (f(3, 3), f(3)),
    "ormqr": (f(3, 3), f(3), f(3, 3)),
    "linalg_lstsq": (f(3, 3), f(3, 3)),
    "linalg_matmul": MATRICES,
    "linalg_multi_dot": (MATRICES,),
    "linalg_tensorsolve": (f(3, 3), f(3)),
    "polar": (f(3), f(3)),
    "ctc_loss": (f(3, 1, 4), i([1, 2]), (3,), (2,)),
    "rnn_tanh": (f(2, 1, 3), f(1, 1, 4), weights(1), *LAYER),
    "rnn_relu": (f(2, 1, 3), f(1, 1, 4), weights(1), *LAYER),
    "gru": (f(2, 1, 3), f(1, 1, 4), weights(3), *LAYER),
    "lstm": (f(2, 1, 3), (f(1, 1, 4), f(1, 1, 4)), weights(4), *LAYER),
    "lstm_cell": (f(2, 3), (f(2, 4), f(2, 4)), *weights(4)),
    "cov": (f(2, 3), 1, i(1, 2, 3), f(3)),
    "narrow": (f(3), 0, T.tensor(1), 1),
    "batch_norm": (f(2, 3), f(3), f(3), f(3), f(3), False, 0.1, 1e-5, False),
    "native_batch_norm": (f(2, 3), f(3), f(3), f(3), f(3), False, 0.1, 1e-5),
    "instance_norm": (f(2, 3, 4), f(3), f(3), f(3), f(3), True, 0.1, 1e-5, False),
    "group_norm": (f(2, 4, 3), 2, f(4), f(4)),
    "native_layer_norm": (f(2, 3), (3,), f(3), f(3), 1e-5),
    "rms_norm": (f(2, 3), (3,), f(3)),
    "convolution": (f(1, 2, 4), f(3, 2, 2), f(3), (1,), (0,), (1,), False, (0,), 1),
    "grid_sampler": (f(1, 2, 3, 3), f(1, 2, 2, 2), 0, 0, False),
    "multi_margin_loss": (f(2, 3), i(0, 2), 1, 1.0, f(3)),
    "max_unpool2d": (f(1, 2, 2), i([[0, 1], [2, 3]]), (2, 2)),
    "max_unpool3d": (f(1, 1, 2, 2), i([[[0, 1], [2, 3]]]), (1, 2, 2), (1, 1, 1), (0, 0, 0)),
    "fractional_max_pool2d": (f(1, 2, 4, 4), (2, 2), (2, 2), None, False, f(1, 2, 2)),
    "fractional_max_pool3d": (f(1, 2, 4, 4, 4), (2, 2, 2), (2, 2, 2), None, False, f(1, 2, 3)),
}
# Shapes and numbers may come from anywhere, and what is copied too.
FREE = {
    *("expand_as view_as reshape_as type_as is_same_size is_set_to broadcast_tensors narrow".split()),
    *("linspace logspace fill select_scatter slice_scatter diagonal_scatter".split()),
}
# (row, operand): may lie on the CPU while the others are on the GPU, or the other way round as well.
ALONG = {("index_put", 1), ("masked_fill", 2)}
# Arguments at the end that have to be named.
KEYWORD = {
    "max": ("other",),
    "min": ("other",),
    "cov": ("correction", "fweights", "aweights"),
    "linalg_solve_triangular": ("upper",),
}
# Its indices have to be on the CPU, whatever they cut.
ON_HOST = {"tensor_split"}


def rows():
    for row in T._core.rows():
        if row["name"] in ON_HOST:
            continue
        kinds = [kind for _, kind, *_ in row["params"]]
        if sum(kind in TENSORS for kind in kinds) > 1 or LISTS & set(kinds) or row["name"] in KEYWORD:
            yield row["name"], row


def arguments(name, row):
    if name == "where" and not row["function"]:
        return (f(3), MASK, f(3))
    if name in CALLS:
        return CALLS[name]
    if name in KEYWORD:
        return (f(3), f(3))
    kinds = [kind for _, kind, *_ in row["params"]]
    if "Tensors" in kinds:
        return ((f(3), f(3)),)
    if "Several" in kinds:
        return (f(3), f(3))
    wanted = [kind for kind in kinds if kind in TENSORS]
    assert kinds[: len(wanted)] == wanted, f"{name} needs an entry in CALLS"
    return tuple(f(3) for _ in wanted)


def move(argument, device):
    if isinstance(argument, tuple):
        return tuple(move(a, device) for a in argument)
    return argument.to(device) if T.is_tensor(argument) else argument


def has_tensors(argument):
    return any(map(has_tensors, argument)) if isinstance(argument, tuple) else T.is_tensor(argument)


def caller(name, row):
    if row["nn"]:
        return getattr(F, name)
    if row["function"]:
        return getattr(T, name, None) or getattr(T._core, name)
    return getattr(T.Tensor, name if row["method"] else f"{name}_")


def first_tensor(out):
    while not T.is_tensor(out):
        if not isinstance(out, (tuple, list)):
            return None
        out = out[0]
    return out


def forms(name, row, args):
    """The ways to call a row: as a function or method, in place, and with `out=`."""
    call = caller(name, row)
    words = KEYWORD.get(name, ())
    yield name, lambda *a: call(*a[: len(a) - len(words)], **dict(zip(words, a[len(a) - len(words) :])))
    if row["inplace"]:
        yield f"{name}_", lambda *a: getattr(a[0], f"{name}_")(*a[1:])


@pytest.mark.parametrize("name, row", list(rows()), ids=lambda x: x if isinstance(x, str) else "")
def test_every_row_asks_where_its_operands_are(name, row):
    args = arguments(name, row)
    places = [at for at, a in enumerate(args) if has_tensors(a)]
    wrong = []
    for label, call in forms(name, row, args):
        home = [at for at in places if not (isinstance(args[at], tuple) and len(places) == 1)]
        patterns = [({at: "cpu"}, "cuda") for at in home] + [({at: "cuda"}, "cpu") for at in home]
        mixed = [[move(a, away.get(at, rest)) for at, a in enumerate(args)] for away, rest in patterns if len(places) > 1]
        labels = [p for p in patterns if len(places) > 1]
        for at in places:  # one list whose tensors lie here and there
            if isinstance(args[at], tuple) and len(args[at]) > 1:
                mixed.append([*args[:at], (args[at][0].cuda(), *args[at][1:]), *args[at + 1 :]])
                labels.append(({at: "half"}, "cpu"))
        for given, (away, rest) in zip(mixed, labels):
            (at,) = away
            target = given[0].clone() if T.is_tensor(given[0]) else given[0]
            allowed = name in FREE or (name, at) == ("index_fill", 3) or (rest == "cuda" and (name, at) in ALONG)
            try:
                out = first_tensor(call(target, *given[1:]))
            except RuntimeError as error:
                text = str(error)
                refused = "same device" in text or "indices should be either on cpu" in text
                if allowed or not refused:
                    wrong.append(f"{label} {away} among {rest}: {text}")
                continue
            if not allowed:
                wrong.append(f"{label} {away} among {rest}: accepted, gives {out if out is None else out.device}")
    assert wrong == []


def elementwise():
    names = {name for name, row in rows() if row["family"] in ("pointwise", "compare")}
    return sorted(names - FREE - {"diff", "equal", "float_power"})


@pytest.mark.parametrize("name", elementwise())
def test_a_number_on_the_cpu_goes_along(name):
    row = next(row for other, row in rows() if other == name)
    args = [a for a in arguments(name, row) if T.is_tensor(a)][:3]
    if name == "where":
        args = args[1:]
    call = caller(name, row) if name != "where" else lambda x, y: T.where(x > 0.5, x, y)
    if name in KEYWORD:
        call = lambda x, y: caller(name, row)(x, other=y)  # noqa: E731
    args[-1] = args[-1].reshape(-1)[0].clone()
    expected = call(*args)
    got = call(*[a.cuda() for a in args[:-1]], args[-1])
    assert T.is_tensor(got) is T.is_tensor(expected)
    if T.is_tensor(got):
        assert got.is_cuda and T.allclose(got.cpu().double(), expected.double(), rtol=1e-4)
    with pytest.raises(RuntimeError, match="same device"):
        call(*args[:-1], args[-1].reshape(1).cuda())


def test_a_number_on_the_gpu_does_not():
    x, number = T.ones(3), T.tensor(2.0, device="cuda")
    for call in (lambda: x + number, lambda: number * x, lambda: x.masked_fill(x > 0, number)):
        with pytest.raises(RuntimeError, match="same device"):
            call()


def test_what_cuts_lies_on_the_cpu():
    for x in (T.arange(3.0), T.arange(3.0, device="cuda")):
        assert [part.tolist() for part in x.tensor_split(i(1, 2))] == [[0.0], [1.0], [2.0]]
        with pytest.raises(
            RuntimeError, match="tensor_split expected tensor_indices_or_sections to be on cpu, but it's on cuda:0"
        ):
            x.tensor_split(i(1, 2).cuda())


def test_what_is_assigned():
    x = T.zeros(3, device="cuda")
    x[i(0, 2)] = T.tensor(5.0)
    x[1:2] = T.tensor([7.0])
    assert x.tolist() == [5.0, 7.0, 5.0]
    with pytest.raises(RuntimeError, match="same device"):
        x[i(0, 2)] = T.ones(2)
    with pytest.raises(RuntimeError, match="same device"):
        x[MASK] = T.ones(2)
    with pytest.raises(RuntimeError, match="indices should be either on cpu or on the same device"):
        T.ones(3)[MASK.cuda()]
    assert x.tolist() == [5.0, 7.0, 5.0] and x[MASK].tolist() == [5.0, 5.0]


def test_what_is_written_to():
    for target, x in ((T.empty(3), T.ones(3, device="cuda")), (T.empty(3, device="cuda"), T.ones(3))):
        for call in (lambda: T.exp(x, out=target), lambda: T.cumsum(x, 0, out=target), lambda: T.cat([x], out=target)):
            with pytest.raises(RuntimeError, match="same device"):
                call()


def test_the_operand_is_named():
    a, b = T.ones(2, 2, device="cuda"), T.ones(2, 2)
    told = "got mat2 is on cpu, different from other tensors on cuda:0 .when checking argument in method wrapper_CUDA_addmm"
    with pytest.raises(RuntimeError, match=told):
        T.addmm(a, a, b)


def test_times_of_events():
    start, end = T.cuda.Event(enable_timing=True), T.cuda.Event(enable_timing=True)
    with pytest.raises(ValueError, match="Both events must be recorded"):
        start.elapsed_time(end)
    start.record()
    x = T.ones(300, 300, device="cuda")
    for _ in range(5):
        x = x @ x * 1e-3
    end.record()
    assert start.elapsed_time(end) > 0
    with pytest.raises(ValueError, match="enable_timing=True"):
        start.elapsed_time(T.cuda.Event())


def test_mps_is_there_where_its_name_works():
    assert T.backends.mps.is_available() and T.backends.mps.is_built() and T.mps.is_available()
    assert str(T.ones(1, device="mps").device) == "mps:0"


def test_looking_for_a_gpu_prints_nothing():
    code = f"import {NAME} as torch; torch.cuda.is_available()"
    env = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr
