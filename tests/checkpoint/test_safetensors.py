"""Files of the library safetensors, both ways."""

import json
import struct

import pytest

from library import NO_GPU, T

pytestmark = pytest.mark.gradiron
pytest.importorskip("safetensors")

DTYPES = (
    "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 uint16 uint32 uint64 float8_e4m3fn float8_e5m2"
).split()


def module():
    return T.utils.safetensors


def tensors():
    made = {name: (T.arange(6) % 5 - 1).to(getattr(T, name)).reshape(2, 3) for name in DTYPES}
    return {**made, "empty": T.zeros(0, 3), "number": T.tensor(2.5), "part": T.arange(9.0)[3:6]}


def same(found, made):
    assert set(found) == set(made)
    for name, tensor in made.items():
        assert (found[name].dtype, found[name].shape, found[name].tolist()) == (tensor.dtype, tensor.shape, tensor.tolist()), (
            name
        )


def test_round_trips(tmp_path):
    path = tmp_path / "x.safetensors"
    module().save_file(tensors(), path, metadata={"format": "pt"})
    same(module().load_file(path), tensors())
    same(module().load(path.read_bytes()), tensors())
    same(T.load(path), tensors())
    assert module().save(tensors(), {"format": "pt"}) == path.read_bytes()


def test_the_format_is_that_of_others(tmp_path):
    header = json.dumps({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "__metadata__": {"a": "b"}}).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<2f", 1, 2))
    assert module().load_file(path)["x"].tolist() == [1.0, 2.0]


def test_where_bytes_lie_badly(tmp_path):
    header = json.dumps(
        {
            "a": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]},
            "b": {"dtype": "F32", "shape": [1], "data_offsets": [3, 7]},
        }
    ).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\x01\x02\x03" + struct.pack("<f", 5))
    found = module().load_file(path)
    assert found["a"].tolist() == [1, 2, 3] and found["b"].tolist() == [5.0]


def test_what_is_refused(tmp_path):
    x = T.arange(6.0).reshape(2, 3)
    with pytest.raises(RuntimeError, match="Some tensors share memory"):
        module().save({"a": x, "b": x[0]})
    with pytest.raises(ValueError, match="You are trying to save a non contiguous tensor: `a` which is not allowed"):
        module().save({"a": x.t()})
    with pytest.raises(ValueError, match="Expected a dict of"):
        module().save([x])
    with pytest.raises(ValueError, match="Key `a` is invalid, expected torch.Tensor but received <class 'int'>"):
        module().save({"a": 1})
    with pytest.raises(RuntimeError, match="safetensors files do not hold tensors of torch.complex128"):
        module().save({"a": T.zeros(1, dtype=T.complex128)})
    module().save({"a": x[0], "b": x[1]})
    path = tmp_path / "x.safetensors"
    module().save_file({"a": x}, path)
    for where in ({"cpu": "cpu"}, lambda storage, location: storage):
        with pytest.raises(RuntimeError, match="map_location is not supported"):
            T.load(path, map_location=where)
    data = path.read_bytes()
    for broken in (b"", data[:5], data[:-1], data + b"x", b"\xff" * 8 + data[8:], data.replace(b"F32", b"F8 ")):
        path.write_bytes(broken)
        with pytest.raises(Exception, match="deserializing|safetensors|does not have"):
            module().load_file(path)


def test_written_as_a_whole(tmp_path):
    path = tmp_path / "x.safetensors"
    module().save_file({"a": T.ones(1)}, path)
    with pytest.raises(ValueError, match="Key"):
        module().save_file({"a": T.zeros(1), "b": 3}, path)
    assert module().load_file(path)["a"].tolist() == [1.0] and [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.skipif(NO_GPU, reason="needs a GPU")
def test_to_the_gpu_and_from_it(tmp_path):
    path = tmp_path / "x.safetensors"
    module().save_file({"a": T.arange(3.0, device="cuda")}, path)
    for where in ("cuda", "cuda:0"):
        found = module().load_file(path, device=where)["a"]
        assert found.device.type == "cuda" and found.tolist() == [0.0, 1.0, 2.0]
    assert T.load(path, map_location=T.device("cuda"))["a"].device.type == "cuda"


class Tied(T.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = T.nn.Parameter(T.arange(4.0).reshape(2, 2))
        self.b = self.a
        self.c = T.nn.Parameter(T.ones(1))


def test_modules(tmp_path):
    path = tmp_path / "x.safetensors"
    model = Tied()
    module().save_model(model, str(path))
    assert set(module().load_file(path)) == {"a", "c"}
    with T.no_grad():
        model.a.zero_()
    assert module().load_model(model, path) == ([], [])
    assert model.b.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    module().save_file({"a": T.zeros(2, 2), "d": T.ones(1)}, path)
    with pytest.raises(RuntimeError, match="Missing key"):
        module().load_model(model, path)
    assert module().load_model(model, path, strict=False) == (["c"], ["d"])
