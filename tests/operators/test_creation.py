"""Making tensors: from Python, filled, counted, like others, and the legacy constructors."""

import pickle

import numpy as np
import pytest

from library import DTYPES, T, assert_values, dtype, flat


def test_tensor_copies_what_it_is_given():
    data = [1.0, 2.0]
    x = T.tensor(data)
    data[0] = 9.0
    assert x.tolist() == [1.0, 2.0]
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        y = T.tensor(x)
    y[0] = 5.0
    assert x.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "data, shape",
    [
        (1, ()),
        ([1], (1,)),
        ([[1, 2], [3, 4]], (2, 2)),
        ([], (0,)),
        ([[], []], (2, 0)),
        (((1, 2), [3, 4]), (2, 2)),
        ([[[1.5]]], (1, 1, 1)),
        (range(4), (4,)),
        ([range(2), range(2)], (2, 2)),
    ],
)
def test_shapes_of_nested_data(data, shape):
    x = T.tensor(data)
    assert x.shape == shape and isinstance(x.shape, T.Size)


def test_tensor_of_tensors_and_numbers():
    assert T.tensor([T.tensor(1.0), T.tensor(2.0)]).tolist() == [1.0, 2.0]
    assert T.tensor([1, 2.5, True]).tolist() == [1.0, 2.5, 1.0]
    assert T.tensor(float("inf")).item() == float("inf")
    assert T.tensor(2**63 - 1).item() == 2**63 - 1 and T.tensor(-(2**63)).item() == -(2**63)


def test_numbers_that_are_like_ints_and_floats():
    class Index:
        def __index__(self):
            return 3

    assert T.zeros(Index()).shape == (3,)
    assert T.ones(T.tensor(2), 3).shape == (2, 3)


def test_as_tensor_shares_when_it_can():
    x = T.ones(2)
    assert T.as_tensor(x) is x
    assert T.as_tensor(x, dtype=T.float64).dtype is T.float64
    assert T.as_tensor([1, 2]).tolist() == [1, 2] and T.asarray(x) is x


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: T.zeros(2, 3, **k),
        lambda **k: T.zeros((2, 3), **k),
        lambda **k: T.zeros([2, 3], **k),
        lambda **k: T.zeros(T.Size([2, 3]), **k),
        lambda **k: T.zeros(size=(2, 3), **k),
        lambda **k: T.full((2, 3), 0, **{"dtype": T.float32, **k}),
        lambda **k: T.ones(2, 3, **k) * 0,
        lambda **k: T.zeros_like(T.ones(2, 3), **k),
        lambda **k: T.ones(2, 3).new_zeros(2, 3, **k),
        lambda **k: T.ones(1).new_full((2, 3), 0.0, **k),
    ],
)
def test_ways_to_make_zeros(make):
    x = make()
    assert x.shape == (2, 3) and x.dtype is T.float32 and x.tolist() == [[0.0] * 3] * 2
    assert make(dtype=T.float64).dtype is T.float64


@pytest.mark.parametrize("name", DTYPES)
def test_filled_in_every_dtype(name):
    kind = dtype(name)
    for x, value in [
        (T.zeros(3, dtype=kind), 0),
        (T.ones(3, dtype=kind), 1),
        (T.full((3,), 1, dtype=kind), 1),
        (T.empty(3, dtype=kind).fill_(1), 1),
        (T.zeros_like(T.ones(3, dtype=kind)), 0),
    ]:
        assert x.dtype is kind and x.tolist() == [value] * 3


def test_full_infers():
    assert T.full((1,), 1).dtype is T.int64 and T.full((1,), 1.0).dtype is T.float32 and T.full((1,), True).dtype is T.bool
    assert T.full((), 7).item() == 7 and T.full((2,), T.tensor(3.0)).tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    "args, expected",
    [
        ((5,), [0, 1, 2, 3, 4]),
        ((1, 4), [1, 2, 3]),
        ((1, 10, 3), [1, 4, 7]),
        ((5, 1, -2), [5, 3]),
        ((0,), []),
        ((2, 2), []),
        ((0.5, 2.0, 0.5), [0.5, 1.0, 1.5]),
        ((1.0, 2.0, 0.3), [1.0, 1.3, 1.6, 1.9]),
        ((3.0,), [0.0, 1.0, 2.0]),
        ((0, 1, 0.25), [0.0, 0.25, 0.5, 0.75]),
    ],
)
def test_arange(args, expected, device):
    x = T.arange(*args, device=device)
    assert_values(x, expected)
    assert x.dtype is (T.float32 if any(isinstance(a, float) for a in args) else T.int64)


def test_arange_keywords_and_dtypes():
    assert T.arange(start=1, end=7, step=2).tolist() == [1, 3, 5]
    assert T.arange(end=3).tolist() == T.arange(end=3, dtype=T.float32, device="cpu").tolist() == [0, 1, 2]
    assert T.arange(3, dtype=T.float64).tolist() == [0.0, 1.0, 2.0]
    assert T.arange(2, dtype=T.int8).dtype is T.int8
    assert T.arange(2**40, 2**40 + 2).tolist() == [2**40, 2**40 + 1]


@pytest.mark.parametrize(
    "args, expected",
    [
        ((0, 1, 5), [0.0, 0.25, 0.5, 0.75, 1.0]),
        ((3, 3, 2), [3.0, 3.0]),
        ((1, 0, 3), [1.0, 0.5, 0.0]),
        ((2, 9, 1), [2.0]),
        ((0, 1, 0), []),
    ],
)
def test_linspace(args, expected, device):
    assert_values(T.linspace(*args, device=device), expected)


def test_linspace_is_symmetric_and_exact_at_its_ends():
    x = T.linspace(-1, 1, 101)
    assert x[0].item() == -1 and x[-1].item() == 1
    assert_values(x + x.flip(0), [0.0] * 101, atol=1e-7)
    assert T.linspace(0, 10, 5, dtype=T.int64).tolist() == [0, 2, 5, 7, 10]
    assert_values(T.logspace(0, 3, 4), [1.0, 10.0, 100.0, 1000.0])


def test_eye(device):
    assert_values(T.eye(2, device=device), [[1.0, 0.0], [0.0, 1.0]])
    assert_values(T.eye(2, 3), [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert T.eye(3, 1, dtype=T.int64).tolist() == [[1], [0], [0]] and T.eye(0).shape == (0, 0)


def test_like_family_keeps_dtype_and_layout(device):
    x = T.ones(2, 3, device=device).t()
    for make in (T.zeros_like, T.ones_like, T.empty_like, T.rand_like, T.randn_like):
        y = make(x)
        assert y.shape == (3, 2) and y.dtype is x.dtype and y.device == x.device and y.stride() == x.stride()
    assert T.full_like(x, 5).tolist() == [[5.0, 5.0]] * 3
    assert T.zeros_like(x, dtype=T.int64).dtype is T.int64
    assert T.ones_like(x[:, :1].expand(3, 4)).is_contiguous() is not None
    y = T.randint_like(x, 3, 7)
    assert y.dtype is x.dtype and 3 <= y.min().item() and y.max().item() < 7


def test_new_family_keeps_dtype_and_device(device):
    x = T.ones(1, dtype=T.float32, device=device)
    for y in (x.new_zeros(2, 3), x.new_ones((2, 3)), x.new_empty([2, 3]), x.new_full((2, 3), 1)):
        assert y.shape == (2, 3) and y.dtype is x.dtype and y.device == x.device
    z = x.new_tensor([1, 2])
    assert z.dtype is x.dtype and z.device == x.device
    assert T.ones(1, dtype=T.int8).new_zeros(2).dtype is T.int8
    assert x.new_zeros(2, dtype=T.int64).dtype is T.int64
    assert x.new_ones(2, requires_grad=True).requires_grad


def test_requires_grad_at_birth():
    for x in (
        T.zeros(1, requires_grad=True),
        T.tensor(1.0, requires_grad=True),
        T.full((1,), 1.0, requires_grad=True),
        T.arange(2.0, requires_grad=True),
        T.linspace(0, 1, 2, requires_grad=True),
        T.eye(2, requires_grad=True),
        T.ones_like(T.ones(1), requires_grad=True),
        T.empty(1, requires_grad=True),
    ):
        assert x.requires_grad and x.is_leaf


LEGACY = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "LongTensor": "int64",
    "IntTensor": "int32",
    "ShortTensor": "int16",
    "CharTensor": "int8",
    "ByteTensor": "uint8",
    "BoolTensor": "bool",
}


@pytest.mark.parametrize("name, kind", LEGACY.items())
def test_legacy_constructors(name, kind):
    make = getattr(T, name)
    x = make([1, 0])
    assert x.dtype is dtype(kind) and x.tolist() == [1, 0] and isinstance(x, T.Tensor)
    assert isinstance(x, make) and make([[1], [0]]).shape == (2, 1)
    assert make(2, 3).shape == (2, 3) and make(T.Size([4])).shape == (4,) and make().numel() == 0


def test_the_tensor_class_makes_default_tensors():
    assert T.Tensor([1, 2]).dtype is T.float32 and T.Tensor([[1], [2]]).shape == (2, 1)
    assert T.Tensor(2, 3).shape == (2, 3) and T.Tensor().shape == (0,)
    assert not isinstance(T.ones(1, dtype=T.int64), T.FloatTensor)


def test_size():
    size = T.ones(2, 3).shape
    assert size == (2, 3) and size == T.Size([2, 3]) and repr(size) == "torch.Size([2, 3])" and size.numel() == 6
    assert isinstance(size, tuple) and hash(size) == hash((2, 3)) and list(size) == [2, 3] and size[0] == 2
    assert isinstance(size[:1], T.Size) and isinstance(size + (4,), T.Size) and isinstance(size * 2, T.Size)
    assert T.ones(2, 3).size() == size and T.ones(2, 3).size(1) == T.ones(2, 3).size(-1) == 3
    assert T.Size() == () and len(T.ones(()).shape) == 0 and T.ones(4, 5).size(dim=0) == 4
    assert size[-1] == 3 and size[::-1] == (3, 2) and pickle.loads(pickle.dumps(size)) == size
    for shape in [(), (1,), (0,), (0, 1), (1, 0), (2, 3, 4), (2, 3, 4, 1), (1, 2, 3, 4, 5)] * 2:
        assert T.zeros(shape).shape == shape and T.zeros(shape).shape[:-1] == shape[:-1]
    for wrong, error in [(2, IndexError), (-3, IndexError), ("a", TypeError), (1.0, TypeError)]:
        with pytest.raises(error):
            size[wrong]


@pytest.mark.parametrize("given", [3.5, None, 1j, [0]])
def test_a_device_is_named_or_numbered(given):
    with pytest.raises(TypeError, match=r"^device\(\) received an invalid combination of arguments - got \("):
        T.device(given)


def test_device_numbers():
    assert T.device(1) == T.device("cuda:1")
    with pytest.raises(RuntimeError, match="^Device index must not be negative"):
        T.device(-1)


def test_device_objects():
    cpu = T.device("cpu")
    assert str(cpu) == "cpu" and repr(cpu) == "device(type='cpu')" and cpu.type == "cpu" and cpu.index is None
    gpu = T.device("cuda", 0)
    assert str(gpu) == "cuda:0" and repr(gpu) == "device(type='cuda', index=0)" and gpu == T.device("cuda:0") and gpu.index == 0
    assert T.device("cuda") != gpu and T.device(cpu) == cpu and T.device(type="cpu") == cpu
    assert hash(cpu) == hash(T.device("cpu")) and cpu != "cpu" and T.ones(1).device == cpu
    assert {cpu: 1}[T.device("cpu")] == 1


def test_numbered_cpus():
    first = T.device("cpu:0")
    assert (str(first), repr(first), first.index) == ("cpu:0", "device(type='cpu', index=0)", 0)
    assert first == T.device("cpu", 0) == T.device(first) == pickle.loads(pickle.dumps(first)) and first != T.device("cpu")
    assert str(T.ones(1, device=first).device) == "cpu" and T.ones(1).device != first
    with pytest.raises(
        RuntimeError, match="^type \\(string\\) must not include an index because index was passed explicitly: cpu:0"
    ):
        T.device("cpu:0", 0)
    with pytest.raises(RuntimeError, match="^Device index must not be negative"):
        T.device("cpu", -1)


def test_attributes(device):
    x = T.zeros(2, 3, device=device)
    assert (x.ndim, x.dim(), x.numel(), x.nelement(), x.stride(), x.storage_offset()) == (2, 2, 6, 6, (3, 1), 0)
    assert x.stride(0) == 3 and x.stride(-1) == 1 and len(x) == 2 and x.is_contiguous() and not x.t().is_contiguous()
    assert x.layout is T.strided and not x.is_sparse and x.device.type == device and x.is_cuda == (device == "cuda")
    assert x[1:].storage_offset() == 3 and x[1:].data_ptr() - x.data_ptr() in (12, 0)
    assert T.is_tensor(x) and not T.is_tensor(1) and T.numel(x) == 6


def test_item_and_truth(device):
    assert T.tensor(3, device=device).item() == 3 and T.tensor([[2.5]], device=device).item() == 2.5
    assert type(T.tensor(True, device=device).item()) is bool
    assert (
        float(T.tensor(2, device=device)) == 2.0 and int(T.tensor(2.9, device=device)) == 2 and bool(T.tensor([0.0])) is False
    )
    assert complex(T.tensor(2.0)) == 2 + 0j and [10, 20, 30][T.tensor(1)] == 20 and f"{T.tensor(2.5):.2f}" == "2.50"
    assert round(T.tensor(2.567).item(), 1) == 2.6 and list(range(T.tensor(3))) == [0, 1, 2]


def test_iteration_and_containment(device):
    x = T.tensor([[1, 2], [3, 4]], device=device)
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    a, b = x
    assert b.tolist() == [3, 4] and 3 in x and 7 not in x
    assert [v.item() for v in reversed(x[0])] == [2, 1]


def test_hash_and_identity():
    a, b = T.ones(2), T.ones(2)
    assert len({a, b, a}) == 2 and hash(a) == hash(a) == id(a)
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        b in [a]


def test_comparison_with_none_and_others():
    x = T.ones(2)
    assert (x == None) is False and (x != None) is True and (x == "a") is False  # noqa: E711


def test_subclasses_of_numbers_are_accepted():
    class Celsius(float):
        pass

    assert (T.ones(1) * Celsius(2.0)).item() == 2.0


def test_large_and_empty():
    assert T.zeros(0, 5).numel() == 0 and T.zeros(3, 0, 2).tolist() == [[], [], []]
    x = T.zeros(1000, 1000)
    assert x.sum().item() == 0.0 and flat(x[999])[-1] == 0.0


def test_many_dimensions(device):
    x = T.arange(2.0**9, device=device).reshape([2] * 9)
    assert x.dim() == 9 and x.permute(*reversed(range(9))).contiguous().sum().item() == x.sum().item()
    assert (x + x.transpose(0, 8)).shape == x.shape
    assert x[1, 0, 1, 0, 1, 0, 1, 0, 1].item() == 0b101010101


# --- tensors and arrays in lists ---


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy")
@pytest.mark.parametrize(
    ("data", "kind", "values"),
    [
        (lambda: [T.tensor(1), T.tensor(2.5)], "float32", [1.0, 2.5]),
        (lambda: [T.tensor([4.0]), T.tensor([[5.0]])], "float32", [4.0, 5.0]),
        (lambda: [[T.tensor(3.0), 1], [2, T.tensor(True)]], "float32", [[3.0, 1.0], [2.0, 1.0]]),
        (lambda: [[1, 2], T.tensor([1.5, 2.5])], "float32", [[1.0, 2.0], [1.5, 2.5]]),
        (lambda: [[1, 2], T.ones(2, 1)], "float32", [[1.0, 2.0], [1.0, 1.0]]),
        (lambda: [[[1, 2]], T.ones(1, 2, dtype=T.float64)], "float64", [[[1.0, 2.0]], [[1.0, 1.0]]]),
        (lambda: [[T.ones(1, requires_grad=True).detach()]], "float32", [[1.0]]),
        (lambda: [np.float64(1), 2.5], "float64", [1.0, 2.5]),
        (lambda: [1.5, np.float64(1)], "float64", [1.5, 1.0]),
        (lambda: [np.float32(1), np.float64(2)], "float64", [1.0, 2.0]),
        (lambda: [np.int32(1), np.int32(2)], "int32", [1, 2]),
        (lambda: [np.int32(1), 2], "int64", [1, 2]),
        (lambda: [np.bool_(True), np.bool_(False)], "bool", [True, False]),
        (lambda: [[1, 2], np.array([1.5, 2.5])], "float64", [[1.0, 2.0], [1.5, 2.5]]),
    ],
)
def test_tensors_in_lists_count_as_numbers(data, kind, values):
    made = T.tensor(data())
    assert made.dtype == getattr(T, kind) and made.tolist() == values and not made.requires_grad


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy")
@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (lambda: [T.ones(2)], ValueError, "only one element tensors can be converted to Python scalars"),
        (lambda: [[T.ones(2)], [T.ones(1)]], ValueError, "only one element tensors can be converted to Python scalars"),
        (lambda: [T.zeros(0)], ValueError, "only one element tensors can be converted to Python scalars"),
        (lambda: [1, T.ones(2)], ValueError, "only one element tensors can be converted to Python scalars"),
        (lambda: [[1, 2], T.ones(3)], ValueError, r"expected sequence of length 2 at dim 1 \(got 3\)"),
        (lambda: [1, np.ones(1)], TypeError, "only 0-dimensional arrays can be converted to Python scalars"),
        (lambda: [T.tensor(3.0), [1]], TypeError, "must be real number, not list"),
        (lambda: [1, (2,)], TypeError, "'tuple' object cannot be interpreted as an integer"),
        (lambda: [[1, 2], 3], TypeError, "not a sequence"),
        (lambda: {}, RuntimeError, "Could not infer dtype of dict"),
        (lambda: [{"a": 1}], RuntimeError, "Could not infer dtype of dict"),
        (lambda: [[1], {}], RuntimeError, "Could not infer dtype of dict"),
        (lambda: [b"x"], TypeError, r"new\(\): invalid data type 'bytes'"),
    ],
)
def test_what_cannot_be_in_lists(data, error, message):
    with pytest.raises(error, match=message):
        T.tensor(data())


@pytest.mark.filterwarnings("ignore:torch.asarray")
def test_asarray_and_histories():
    x = T.ones(3, requires_grad=True)
    y = x * 2
    assert T.asarray(y) is y and T.asarray(y, requires_grad=True) is y
    assert T.asarray(y, copy=True).grad_fn.name() == "CloneBackward0"
    cut = T.asarray(y, requires_grad=False)
    assert not cut.requires_grad and cut.data_ptr() == y.data_ptr() and y.requires_grad
    assert not T.asarray(y, dtype=T.float64, requires_grad=False).requires_grad
    assert T.asarray(x, requires_grad=False) is x and not x.requires_grad


@pytest.mark.parametrize(
    "call, sentence",
    [
        (lambda: T.asarray([1, 2], copy=False), "can't alias arbitrary sequence into a tensor."),
        (lambda: T.asarray(1.5, copy=False), "can't alias arbitrary sequence into a tensor."),
        (
            lambda: T.asarray(T.ones(1), dtype=T.float64, copy=False),
            "can't alias tensor with dtype 'Float' into dtype 'Double'.",
        ),
        (lambda: T.asarray(T.ones(1), device="cuda", copy=False), "can't alias tensor from device 'cpu' to 'cuda"),
    ],
)
def test_asarray_without_a_copy(call, sentence):
    with pytest.raises(ValueError, match=sentence.replace(".", "[.]")):
        call()
    x = T.ones(2)
    assert T.asarray(x, copy=False) is x


def test_linspace_of_halves():
    """Computed in float32, between bounds that are halves."""
    assert T.linspace(-3.3, 7.7, 6, dtype=T.float16).tolist() == [
        -3.30078125,
        -1.1005859375,
        1.099609375,
        3.298828125,
        5.5,
        7.69921875,
    ]
    assert T.linspace(-3.3, 7.7, 6, dtype=T.bfloat16).tolist() == [-3.296875, -1.1015625, 1.09375, 3.296875, 5.5, 7.6875]


@pytest.mark.parametrize(
    "call, sentence",
    [
        (lambda: T.linspace(0, 1, 3, dtype=T.bool), "\"linspace_cpu\" not implemented for 'Bool'"),
        (lambda: T.logspace(0, 1, 3, dtype=T.bool), "\"logspace_cpu\" not implemented for 'Bool'"),
        (lambda: T.tril_indices(2, 2, dtype=T.float32), "\"tril_indices\" not implemented for 'Float'"),
        (lambda: T.triu_indices(2, 2, dtype=T.int16), "\"triu_indices\" not implemented for 'Short'"),
    ],
)
def test_dtypes_without_a_kernel(call, sentence):
    with pytest.raises(NotImplementedError, match=sentence):
        call()
    assert T.linspace(0, 1, 1, dtype=T.bool).tolist() == [False]


def test_rows_between_complex_numbers():
    row = T.linspace(1 + 1j, 2, 3)
    assert row.dtype == T.complex64 and row.tolist() == [1 + 1j, 1.5 + 0.5j, 2 + 0j]
    assert T.linspace(0, 1j, 3, dtype=T.complex128).tolist() == [0j, 0.5j, 1j]
    assert T.linspace(4.5, -1.25, 2, dtype=T.complex64).tolist() == [4.5 + 0j, -1.25 + 0j]
    assert T.logspace(0.5, 1, 1, 4, dtype=T.complex128).tolist() == [2 + 0j]
    assert T.logspace(1j, 1, 1).dtype == T.complex64
    assert abs(T.logspace(0, 1j, 2, dtype=T.complex128)[1].item() - 10**1j) < 1e-12
    for make in (T.linspace, T.logspace):
        with pytest.raises(
            RuntimeError, match=r"inferred dtype c10::complex<float> can't be safely cast to passed dtype Float"
        ):
            make(0, 1j, 3, dtype=T.float32)
    with pytest.raises(RuntimeError, match="value cannot be converted to type double without overflow"):
        T.arange(0, 1j)


def test_a_tensor_of_a_tensor_goes_on_with_its_history():
    x = T.ones(2, requires_grad=True)
    y = T.Tensor(x)
    assert y is not x and y.data_ptr() == x.data_ptr() and y._is_view()
    (y * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    "args, named, error",
    [
        (([1, 2],), {"requires_grad": True}, r"invalid combination of arguments - got \(list, requires_grad=bool\)"),
        (([1, 2],), {"dtype": T.float64}, r"invalid combination of arguments - got \(list, dtype=torch.dtype\)"),
        ((True,), {}, r"data must be a sequence \(got bool\)"),
        ((None,), {}, r"data must be a sequence \(got NoneType\)"),
    ],
)
def test_what_the_class_is_not_made_of(args, named, error):
    with pytest.raises(TypeError, match=error):
        T.Tensor(*args, **named)


def test_new():
    x = T.tensor([1.0, 2.0], dtype=T.float64, requires_grad=True)
    for made, shape in ((x.new(), (0,)), (x.new(2, 3), (2, 3)), (x.new(T.Size([4])), (4,)), (x.new(size=(1, 2)), (1, 2))):
        assert made.shape == shape and made.dtype is T.float64 and not made.requires_grad
    assert x.new([3, 4.5]).tolist() == x.new((3, 4.5), device="cpu").tolist() == [3.0, 4.5]
    assert x.long().new([1.5]).tolist() == [1] and (x > 1).new([2, 0]).tolist() == [True, False]
    same = x.new(x)
    assert same.data_ptr() == x.data_ptr() and same.grad_fn.name() == "AliasBackward0"
    assert type(T.nn.Parameter(T.ones(1)).new([1.0])) is T.Tensor
    for number in (T.tensor(3), T.tensor(3.0)):
        assert T.Tensor(number).item() == 3 and number.new(number).shape == ()
    for wrong in (2.5, "a", None, True):
        with pytest.raises(TypeError, match=r"new\(\): (data must be a sequence|invalid data type 'str')"):
            x.new(wrong)
    with pytest.raises(TypeError, match="^expected "):
        x.new(T.tensor([1]))
    with pytest.raises(TypeError, match=r"new\(\) received an invalid combination of arguments - got \(list, dtype=") as error:
        x.new([1], dtype=T.int32)
    assert "dtype" in str(error.value)
    with pytest.raises(RuntimeError, match="legacy constructor expects device type: cpu but device type: cuda was passed"):
        x.new(2, device="cuda")


@pytest.mark.parametrize("kind", ["int64", "uint8", "bool"])
def test_a_tensor_of_floats_is_no_whole_number(kind):
    kind = getattr(T, kind)
    for number in (T.tensor(1.5), T.tensor([1.5]), T.tensor(1j)):
        with pytest.raises(TypeError, match="^only integer tensors of a single element can be converted to an index"):
            T.tensor([1, number], dtype=kind)
    assert T.tensor([T.tensor(1), T.tensor([True]), 1.5], dtype=kind).tolist() == [1, 1, 1]
    assert T.tensor([T.tensor(1.5), 2]).tolist() == [1.5, 2.0]
    with pytest.raises(RuntimeError, match="^value cannot be converted to type double without overflow"):
        T.tensor([T.tensor(1j)], dtype=T.float64)


def test_bounds_of_whole_ranges_are_whole():
    assert T.linspace(4.3, 0, 5, dtype=T.int64).tolist() == [4, 3, 2, 1, 0]
    assert T.linspace(T.tensor(-2.7), 8.9, 7, dtype=T.int32).tolist() == [-2, 0, 1, 3, 4, 6, 8]
    assert T.logspace(2, 1.2, 2, dtype=T.int64).tolist() == [100, 10]
    assert T.logspace(0.5, 3.7, 5, dtype=T.int64).tolist() == [1, 5, 31, 177, 1000]
