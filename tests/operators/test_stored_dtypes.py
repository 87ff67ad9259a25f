"""Dtypes that are only stored, against PyTorch: unsigned integers, floats of one byte, complex numbers of halves."""

import base64
import copy
import io
import math
import pickle
import sys
import zipfile

import numpy as np
import pytest

from library import GOLDEN, NO_GPU, T

sys.path.insert(0, str(GOLDEN))
import golden_file
import stored_dtype_cases as cases

ASKED = golden_file.read("stored_dtypes.json.gz")
GOLDEN_ANSWERS = ASKED["answers"]
UNSIGNED = [name for name in cases.DTYPES if name.startswith("uint")]
FLOAT8 = [name for name in cases.DTYPES if name.startswith("float8")]


def refused(answer):
    return isinstance(answer, dict)


def close(found, expected):
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(close, found, expected))
    if isinstance(expected, float) and isinstance(found, (int, float)):
        return math.isclose(found, expected, rel_tol=2e-6)
    return found == expected


def wide(name, T):
    """The same numbers in a dtype that kernels compute in."""
    x, y = cases.operands(name, T)
    kind = T.complex128 if x.is_complex() else T.float64 if x.is_floating_point() else T.int64
    return x.to(kind), y.to(kind)


def as_wide(case, name, kind):
    """The answer of a program that converts to a wide dtype, and its result to the dtype `kind`."""
    x, y = wide(name, T)
    result = eval(case, {"T": T, "x": x, "y": y, "t": x.dtype})
    return cases.told(result.to(getattr(T, kind)) if isinstance(result, T.Tensor) else result, T)


# What PyTorch computes and gradiron refuses, by name.
REFUSED = {
    "uint16": [],
    "uint32": [],
    "uint64": [
        "T.maximum(x,y)",
        "T.minimum(x,y)",
        "T.fmax(x,y)",
        "x.clamp(1,2)",
        "x.clamp(min=y)",
        "x.relu()",
        "T.nn.functional.relu(x)",
        "x.clamp(-1, 5)",
    ],
    "float8_e4m3fn": [
        "x.index_put((T.tensor([0,2]),),y[:2],accumulate=True)",
        "x*y",
        "x.abs()",
        "x.view(2,2)@y.view(2,2)",
        "T.outer(x,y)",
        "T.nn.functional.linear(x.view(2,2),y.view(2,2))",
    ],
    "float8_e5m2": [
        "x.index_put((T.tensor([0,2]),),y[:2],accumulate=True)",
        "x*y",
        "x.abs()",
        "x.view(2,2)@y.view(2,2)",
        "T.outer(x,y)",
        "T.nn.functional.linear(x.view(2,2),y.view(2,2))",
    ],
    "complex32": [
        "x.index_add(0,T.tensor([0,2]),y[:2])",
        "x.index_put((T.tensor([0,2]),),y[:2],accumulate=True)",
        "T.allclose(x,y)",
        "T.isclose(x,y)",
        "x+y",
        "x-y",
        "x*y",
        "x+1",
        "x*2",
        "x+1.5",
        "-x",
        "x.abs()",
        "x.sgn()",
        "x.add_(1)",
        "x.mul_(2)",
        "x.add_(y)",
        "x.addcmul(x,y)",
        "T.outer(x,y)",
        "x.neg()",
        "T.diff(x)",
        "x.dist(y)",
        "x+T.tensor([1])",
        "x+T.tensor([1],dtype=T.uint8)",
        "x+T.tensor([1],dtype=T.int8)",
        "x+T.tensor(1)",
        "T.tensor([1,2,3,4])+x",
        "T.add(x,y,out=T.empty(4,dtype=t))",
        "T.rsub(x,1)",
        "1-x",
        "x * -1",
        "x * 70000",
        "x.neg() + 0",
    ],
}


@pytest.mark.parametrize("name", cases.DTYPES)
@pytest.mark.parametrize("case", cases.CASES)
def test_it_is_as_pytorch_says(case, name):
    expected, found = GOLDEN_ANSWERS[name][case], cases.answer(case, name, T)
    if not refused(expected) and not refused(found):
        assert close(found, expected)
    elif refused(expected) and refused(found):
        if not any("not implemented for" in answer["message"] for answer in (found, expected)):
            assert found == expected
    elif refused(found):
        assert case in REFUSED[name] and "not implemented for" in found["message"], found
    else:
        # PyTorch has no kernel: what is moved, compared or summed here are the same numbers.
        assert "not implemented for" in expected["message"], (found, expected)
        assert close(found, as_wide(case, name, found[0] if isinstance(found, list) else "")), found


@pytest.mark.gradiron
def test_what_is_refused_is_listed():
    for name, listed in REFUSED.items():
        refusals = [
            case for case in cases.CASES if refused(cases.answer(case, name, T)) and not refused(GOLDEN_ANSWERS[name][case])
        ]
        assert refusals == listed


def same(found, made):
    return (found.dtype, found.shape, found.tolist()) == (made.dtype, made.shape, made.tolist())


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("name", cases.DTYPES)
def test_pytorch_files_are_read(name, weights_only):
    found = T.load(io.BytesIO(base64.b64decode(ASKED["files"][name])), weights_only=weights_only)
    x, _ = cases.operands(name, T)
    assert same(found["x"], x) and same(found["part"], x[1:3])
    assert found["part"].data_ptr() == found["x"].data_ptr() + x.element_size()
    assert ("parameter" in found) == (not name.startswith("uint"))
    if "parameter" in found:
        assert type(found["parameter"]) is T.nn.Parameter and same(found["parameter"], x)


@pytest.mark.parametrize("name", cases.DTYPES)
def test_files_are_those_of_pytorch(name):
    ours, theirs = (zipfile.ZipFile(io.BytesIO(data)) for data in (cases.file(name, T), base64.b64decode(ASKED["files"][name])))
    ours, theirs = ([(e.filename, e.file_size, part.read(e)) for e in part.infolist()] for part in (ours, theirs))
    assert ours[:-1] == theirs[:-1]  # The last record is a number of the file's own.


@pytest.mark.gradiron
@pytest.mark.parametrize("name", cases.DTYPES)
def test_copies_and_pickles(name):
    x, _ = cases.operands(name, T)
    for made in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert same(made, x)
    assert pickle.loads(pickle.dumps(x.dtype)) is x.dtype


@pytest.mark.parametrize("name", UNSIGNED)
def test_memory_is_shared_with_numpy(name):
    array = np.array([[1, 2], [3, np.iinfo(name).max]], dtype=name)
    x = T.from_numpy(array.T)
    assert x.dtype is getattr(T, name) and x.tolist() == array.T.tolist()
    x[0, 0] = 7
    assert array[0, 0] == 7 and (x.numpy() == array.T).all() and x.numpy().dtype == array.dtype
    assert same(T.tensor(array), x.T) and same(T.asarray(array[1:]), x.T[1:])


@pytest.mark.parametrize("name", cases.DTYPES)
def test_memory_is_shared_by_dlpack(name):
    x, _ = cases.operands(name, T)
    other = T.from_dlpack(x)
    other[0] = 2
    assert same(other, x) and other.data_ptr() == x.data_ptr()


@pytest.mark.parametrize("name", cases.DTYPES)
def test_memory_of_a_buffer_is_shared(name):
    memory = bytearray(bytes(cases.operands(name, T)[0].view(T.uint8).tolist()))
    x = T.frombuffer(memory, dtype=getattr(T, name))
    assert same(x, cases.operands(name, T)[0])
    x[0] = 2
    assert memory == bytes(x.view(T.uint8).tolist())


@pytest.mark.parametrize("name", cases.DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (5,), (33, 7), (3, 40, 11), (0, 4)])
def test_layouts_and_sizes(name, shape):
    dtype = getattr(T, name)
    values = T.arange(math.prod(shape)).reshape(shape) % 9
    x = values.to(dtype)
    turned = x.movedim(0, -1) if shape else x
    expected = values.movedim(0, -1) if shape else values
    for made in (
        turned,
        turned.contiguous(),
        turned.clone(),
        T.empty(turned.shape, dtype=dtype).copy_(turned),
        turned.to(T.float32),
    ):
        assert made.to(T.int64).tolist() == expected.tolist()
    if shape:
        assert T.cat([turned, turned]).to(T.int64).tolist() == T.cat([expected, expected]).tolist()
    assert (x == x).all() and not (x != x).any()


@pytest.mark.parametrize("name", FLOAT8)
def test_every_byte_survives(name):
    x = T.arange(256, dtype=T.uint8).view(getattr(T, name))
    for kind in (T.float32, T.float64, T.bfloat16):
        back = x.to(kind).to(x.dtype)
        assert back.view(T.uint8)[~x.isnan()].tolist() == x.view(T.uint8)[~x.isnan()].tolist()
        assert back.isnan().tolist() == x.isnan().tolist()


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "complex32"])
def test_gradients_pass_conversions(name):
    x = T.tensor([0.5, 2.0, 3.0], requires_grad=True)
    stored = x.to(getattr(T, name))
    assert stored.requires_grad and stored.grad_fn is not None
    (stored.to(T.complex64 if stored.is_complex() else T.float32).real * T.tensor([1.0, 2.0, 4.0])).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 4.0]
    leaf = T.ones(2, dtype=getattr(T, name), requires_grad=True)
    leaf.to(T.complex64 if leaf.is_complex() else T.float32).sum().abs().backward()
    assert leaf.grad.dtype is leaf.dtype and leaf.grad.tolist() == [1, 1]


@pytest.mark.parametrize("name", UNSIGNED)
def test_unsigned_integers_have_no_gradients(name):
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype can require gradients"):
        T.ones(2, dtype=getattr(T, name)).requires_grad_()


def test_conjugates_of_halves():
    x = T.tensor([1 + 2j, 3 - 1j], dtype=T.complex32)
    lazy = x.conj()
    assert lazy.is_conj() and lazy.tolist() == [1 - 2j, 3 + 1j] and lazy.resolve_conj().tolist() == [1 - 2j, 3 + 1j]
    assert lazy.imag.tolist() == [-2.0, 1.0] and lazy.to(T.complex64).tolist() == [1 - 2j, 3 + 1j]
    assert T.view_as_complex(T.view_as_real(x)).data_ptr() == x.data_ptr()
    x.real = 5
    assert x.tolist() == [5 + 2j, 5 - 1j]
    assert T.complex(T.ones(2).half(), T.zeros(2).half()).dtype is T.complex32


@pytest.mark.gradiron
@pytest.mark.parametrize("name", cases.DTYPES)
def test_a_captured_program_gives_the_same(name):
    x, y = cases.operands(name, T)
    dtype = x.dtype

    def program(x, y, wide):
        return T.where(x == y, x, y), T.cat([x, y]).flip(0), x.to(T.complex64).real * 2, (wide * 1.5 + 1).to(dtype)[[2, 0]]

    compiled = T.compile(program)
    for shift in range(4):
        wide = T.arange(4.0) + shift
        for found, expected in zip(compiled(x.roll(shift), y, wide), program(x.roll(shift), y, wide)):
            assert same(found, expected)


@pytest.mark.gradiron
@pytest.mark.skipif(NO_GPU, reason="there is no GPU")
@pytest.mark.parametrize("name", cases.DTYPES)
def test_the_gpu_moves_and_refuses_the_rest(name):
    x, y = (t.cuda() for t in cases.operands(name, T))
    here = cases.operands(name, T)[0]
    index = T.tensor([2, 0], device="cuda")
    assert same(x.cpu(), here) and same(x[index].cpu(), here[[2, 0]]) and same(x[1:].clone().cpu(), here[1:])
    assert same(T.cat([x, x]).cpu(), T.cat([here, here])) and same(T.full_like(x, 2).cpu(), T.full_like(here, 2))
    assert x[2].item() == here[2].item() and x.tolist() == here.tolist()
    wide = x.cpu().to(T.complex64 if x.is_complex() else T.float32)
    assert same(here.to("cuda", wide.dtype).cpu(), wide) and same(
        wide.to("cuda", x.dtype).cpu(), here.to(wide.dtype).to(x.dtype)
    )
    assert same(wide.cuda().zero_().copy_(here).cpu(), wide) and same(T.zeros_like(wide).copy_(x), wide)
    assert same(T.zeros_like(here).copy_(wide.cuda()), wide.to(x.dtype)) and same(
        T.zeros_like(x).copy_(wide).cpu(), wide.to(x.dtype)
    )
    if name == "complex32":  # its parts are float16
        assert same(x.to(T.float32).cpu(), here.to(T.float32)) and same((x == y).cpu(), here == y.cpu())
        return
    for call in (lambda: x.to(T.float32), lambda: x == y, lambda: T.ones(2, device="cuda").to(x.dtype)):
        with pytest.raises(NotImplementedError, match="on the GPU"):
            call()


@pytest.mark.gradiron
@pytest.mark.parametrize("name", cases.DTYPES)
def test_refusals_name_the_operator(name):
    x, _ = cases.operands(name, T)
    kind = x.type().removeprefix("torch.").removesuffix("Tensor")
    for call, op in (
        (lambda: T.sub(x, x), "sub_cpu"),
        (lambda: x.new_ones(2, 2).inverse(), "inverse|linalg"),
        (lambda: x.cummax(0), "cummax"),
        (lambda: T.arange(3, dtype=x.dtype), "arange"),
    ):
        with pytest.raises(NotImplementedError, match=rf"{op}.*({kind}|floating point)"):
            call()
