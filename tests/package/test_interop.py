"""To and from NumPy, DLPack, Python lists, copies and pickles."""

import copy
import pickle
import warnings

import pytest

from library import T, assert_values, dtype, leaf, python_ok, tensor

np = pytest.importorskip("numpy")
SHARED = "float32 float64 float16 int64 int32 int16 int8 uint8 bool".split()


@pytest.mark.parametrize("name", SHARED)
def test_numpy_both_ways_without_a_copy(name):
    a = np.array([[1, 0], [1, 1]], dtype=name)
    x = T.from_numpy(a)
    assert x.dtype is dtype(name) and x.tolist() == a.tolist() and x.data_ptr() == a.ctypes.data
    a[0, 0] = 0
    assert x[0, 0].item() == 0
    x[1] = 0
    assert a.tolist() == [[0, 0], [0, 0]]
    b = x.numpy()
    assert b.dtype == a.dtype and b.ctypes.data == x.data_ptr() and b.shape == (2, 2)


def test_strides_go_along():
    a = np.arange(24.0, dtype="float32").reshape(2, 3, 4)
    x = T.from_numpy(a.transpose(2, 0, 1)[1:, :, ::2])
    assert x.shape == (3, 2, 2) and x.stride() == (1, 12, 8) and x.tolist() == a.transpose(2, 0, 1)[1:, :, ::2].tolist()
    y = T.arange(6.0).reshape(2, 3).t().numpy()
    assert y.strides == (4, 12) and y.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert T.arange(6.0)[2:].numpy().tolist() == [2.0, 3.0, 4.0, 5.0]


def test_zero_dimensions_and_empties():
    assert T.tensor(2.5).numpy().shape == () and T.from_numpy(np.array(2.5)).shape == ()
    assert T.zeros(0, 3).numpy().shape == (0, 3) and T.from_numpy(np.zeros((2, 0))).shape == (2, 0)


def test_memory_outlives_its_maker():
    x = T.from_numpy(np.arange(1000.0))
    a = T.arange(1000.0).numpy()
    junk = [np.ones(1000) for _ in range(50)]
    assert x.sum().item() == a.sum() == 499500 and len(junk) == 50


def test_what_numpy_cannot_share():
    with pytest.raises(ValueError, match="strides? .* negative"):
        T.from_numpy(np.arange(3)[::-1])
    with pytest.raises(TypeError, match="can't convert np.ndarray of type numpy.object_"):
        T.from_numpy(np.array([None, 1], dtype=object))
    with pytest.raises(TypeError, match="expected np.ndarray"):
        T.from_numpy([1])
    with pytest.raises(TypeError, match="ScalarType BFloat16"):
        T.ones(1, dtype=T.bfloat16).numpy()
    with pytest.raises(RuntimeError, match="Can't call numpy.. on Tensor that requires grad"):
        leaf([1.0]).numpy()
    assert leaf([1.0]).numpy(force=True).tolist() == leaf([1.0]).detach().numpy().tolist() == [1.0]


def test_unrecorded_code_may_look_at_tensors_that_want_gradients():
    x = T.ones(2, requires_grad=True)

    class Twice(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return T.from_numpy(x.numpy() * 2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    Twice.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with T.no_grad():
        assert np.asarray(x).tolist() == x.numpy().tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="on Tensor that requires grad"):
        x.numpy()


def test_read_only_arrays_are_copied_or_warned_about():
    a = np.arange(3.0)
    a.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        assert T.from_numpy(a).tolist() == [0.0, 1.0, 2.0]


def test_numpy_functions_accept_tensors():
    x = T.tensor([1.0, 2.0, 3.0])
    assert np.asarray(x).tolist() == [1.0, 2.0, 3.0] and np.asarray(x).dtype == np.float32
    assert np.asarray(x, dtype="float64").dtype == np.float64
    assert float(np.sum(x.numpy())) == 6.0 and np.allclose(x, [1, 2, 3])


@pytest.mark.gradiron
def test_array_copies_on_request():
    x = T.ones(2)
    a = np.array(x)
    a[0] = 5
    assert x.tolist() == [1.0, 1.0] and np.array(x, copy=False).ctypes.data == x.data_ptr()


def test_tensors_accept_arrays_and_numpy_numbers():
    a = np.array([1.0, 2.0], dtype=np.float32)
    assert_values(T.tensor(a), [1.0, 2.0])
    assert T.tensor(a).data_ptr() != a.ctypes.data and T.as_tensor(a).data_ptr() == a.ctypes.data
    assert T.tensor(np.float64(2.5)).dtype is T.float64 and T.tensor(np.int32(3)).dtype is T.int32
    assert T.tensor([np.float32(1.5), 2]).tolist() == [1.5, 2.0] and T.tensor(np.bool_(True)).dtype is T.bool
    x = T.ones(2)
    assert_values(x * np.float32(2.0), [2.0, 2.0])
    assert x[np.int64(1)].item() == 1 and x[np.array([0, 1])].tolist() == [1.0, 1.0]
    assert T.zeros(np.int64(2)).shape == (2,)
    assert T.zeros(2, 2)[np.array([[True, False], [False, True]])].shape == (2,)


def test_dlpack_to_numpy():
    x = T.arange(6.0).reshape(2, 3)
    a = np.from_dlpack(x)
    assert a.tolist() == x.tolist() and a.ctypes.data == x.data_ptr()
    x[0, 0] = 9
    assert a[0, 0] == 9


def test_a_numpy_number_keeps_its_value():
    """Its memory is a copy, made for who asks."""
    kept = [T.as_tensor(np.float64(value)) for value in range(4)]
    other = [np.array(5.0) for _ in range(4)]
    assert [x.item() for x in kept] == [0.0, 1.0, 2.0, 3.0] and len(other) == 4


@pytest.mark.parametrize("name", ["float32", "float64", "int64", "int32", "uint8", "bool", "float16"])
def test_dlpack_from_numpy(name):
    a = np.array([[1, 0, 1], [0, 1, 1]], dtype=name)
    x = T.from_dlpack(a.T)
    assert x.dtype is dtype(name) and x.tolist() == a.T.tolist() and x.data_ptr() == a.ctypes.data and x.stride() == (1, 3)


def test_dlpack_between_tensors():
    x = T.arange(4.0)
    y = T.from_dlpack(x)
    z = T.utils.dlpack.from_dlpack(T.utils.dlpack.to_dlpack(x))
    assert x.data_ptr() == y.data_ptr() == z.data_ptr()
    assert x.__dlpack_device__()[1] in (0, None) and int(x.__dlpack_device__()[0]) == 1
    with pytest.raises((RuntimeError, BufferError), match="require.? grad"):
        leaf([1.0]).__dlpack__()


def test_a_capsule_is_consumed_once():
    capsule = T.utils.dlpack.to_dlpack(T.ones(2))
    T.from_dlpack(capsule)
    with pytest.raises((RuntimeError, ValueError), match="capsule|consumed"):
        T.from_dlpack(capsule)


def test_a_capsule_that_nobody_takes_is_freed():
    python_ok("for _ in range(2000):\n    c = T.utils.dlpack.to_dlpack(T.ones(1000))\n    del c")


def test_tolist(device):
    assert tensor([[1, 2], [3, 4]], "int64", device).t().tolist() == [[1, 3], [2, 4]]
    assert T.tensor(3.5, device=device).tolist() == 3.5 and T.zeros(2, 0, device=device).tolist() == [[], []]
    assert leaf([1.0, 2.0], device).tolist() == [1.0, 2.0]


def test_the_gpu_gives_its_numbers_only_when_asked(device):
    x = T.ones(2, device=device)
    if device == "cuda":
        with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu"):
            x.numpy()
    assert x.cpu().numpy().tolist() == [1.0, 1.0]


def test_deepcopy_and_copy():
    x = leaf([1.0, 2.0])
    x.grad = T.ones(2)
    y = copy.deepcopy(x)
    assert y is not x and y.requires_grad and y.is_leaf and y.tolist() == x.tolist() and y.data_ptr() != x.data_ptr()
    assert y.grad.tolist() == [1.0, 1.0]
    z = copy.copy(x)
    assert z.data_ptr() == x.data_ptr()
    both = copy.deepcopy({"a": x, "b": x})
    assert both["a"] is both["b"]


def test_deepcopy_keeps_shared_memory_shared():
    x = T.arange(6.0).reshape(2, 3)
    a, b = copy.deepcopy([x, x[1]])
    b[0] = 99.0
    assert a[1, 0].item() == 99.0 and x[1, 0].item() == 3.0


@pytest.mark.parametrize("name", SHARED + ["bfloat16"])
def test_pickle(name):
    x = tensor([[1, 0], [0, 1]], name).t()
    y = pickle.loads(pickle.dumps(x))
    assert y.dtype is x.dtype and y.tolist() == x.tolist() and y.stride() == x.stride()
    w = pickle.loads(pickle.dumps(leaf([1.0])))
    assert w.requires_grad and w.is_leaf


@pytest.mark.gradiron
def test_pickle_keeps_shared_memory_shared():
    x = T.arange(6.0)
    a, b = pickle.loads(pickle.dumps([x, x[2:].reshape(2, 2)]))
    b[0, 0] = 99.0
    assert a.tolist() == [0.0, 1.0, 99.0, 3.0, 4.0, 5.0] and x[2].item() == 2.0


class Reading(T.Tensor):
    pass


def test_subclasses_and_attributes_are_kept():
    p = pickle.loads(pickle.dumps(T.nn.Parameter(T.ones(2))))
    q = copy.deepcopy(p)
    assert type(p) is type(q) is T.nn.Parameter and p.requires_grad and q.requires_grad and q.data_ptr() != p.data_ptr()
    x = T.ones(2).as_subclass(Reading)
    x.unit = "m"
    y = pickle.loads(pickle.dumps(x))
    assert type(y) is Reading and y.unit == "m" and y.tolist() == [1.0, 1.0]
    z = leaf([1.0, 2.0])
    z.as_subclass(Reading).sum().backward()
    assert z.grad.tolist() == [1.0, 1.0]


def test_copies_on_each_device(device):
    x = leaf([[1.0, 2.0], [3.0, 4.0]], device)
    a, b = copy.deepcopy(x), pickle.loads(pickle.dumps(x))
    assert a.tolist() == b.tolist() == x.tolist() and a.device == b.device == x.device
    with T.no_grad():
        x.zero_()
    assert a.sum().item() == b.sum().item() == 10.0


@pytest.mark.gradiron
def test_a_forged_pickle_cannot_reach_beyond_its_bytes():
    build, (storage, kind, *_) = T.ones(2).__reduce_ex__(4)
    for offset, shape, strides in ((1, (2,), (1,)), (0, (3,), (1,)), (0, (2,), (2,)), (0, (2**62, 4), (1, 1)), (0, (2,), ())):
        with pytest.raises(ValueError, match="beyond the storage"):
            build(storage, kind, offset, shape, strides, False)


def test_pickle_of_small_objects():
    for thing in (T.float32, T.Size([2, 3]), T.device("cpu"), T.device("cuda", 0)):
        assert pickle.loads(pickle.dumps(thing)) == thing
    assert pickle.loads(pickle.dumps(T.int8)) is T.int8


def test_the_buffer_protocol_of_storage():
    x = T.tensor([1.0, 2.0])
    assert x.untyped_storage().nbytes() == 8 and x[1:].untyped_storage().data_ptr() == x.data_ptr()
    y = T.frombuffer(bytearray(b"\x00\x00\x80\x3f\x00\x00\x00\x40"), dtype=T.float32)
    assert y.tolist() == [1.0, 2.0]


def test_buffers_that_hold_no_such_vector():
    for buffer, options, message in (
        ([1], {}, "object does not implement Python buffer protocol"),
        (bytearray(), {}, r"both buffer length \(0\) and count \(-1\) must not be 0"),
        (bytearray(4), {"count": 0}, r"both buffer length \(4\) and count \(0\) must not be 0"),
        (bytearray(4), {"offset": 4}, r"offset \(4 bytes\) must be non-negative and no greater than buffer length"),
        (bytearray(4), {"count": 2, "offset": 3}, r"must not be greater than actual buffer length \(4 bytes\)"),
    ):
        with pytest.raises(ValueError, match=message):
            T.frombuffer(buffer, dtype=T.int8, **options)


def test_asarray_of_a_capsule():
    x = T.tensor([1.0, 2.0])
    shared, copied = T.asarray(x.__dlpack__(), copy=False), T.asarray(x.__dlpack__(), copy=True)
    x[0] = 3
    assert (shared.tolist(), copied.tolist()) == ([3.0, 2.0], [1.0, 2.0])
    assert T.asarray(x.__dlpack__(), dtype=T.int64).tolist() == [3, 2]
    with pytest.raises(ValueError, match="can't alias tensor with dtype 'Float' into dtype 'Double'"):
        T.asarray(x.__dlpack__(), dtype=T.float64, copy=False)


def test_scalars_of_numpy_share_nothing():
    assert T.asarray(np.float32(2)).item() == 2.0 and T.asarray(np.ones(()), copy=False).item() == 1.0
    with pytest.raises(RuntimeError, match="can't alias NumPy scalars"):
        T.asarray(np.float32(2), copy=False)


def test_operators_with_numpy_on_the_left():
    a, x = np.array([1.0, 2.0], dtype=np.float32), T.tensor([3.0, 4.0])
    assert_values(np.float32(2) * x, [6.0, 8.0])
    assert (a + x.numpy()).tolist() == [4.0, 6.0]


class Shown:
    """Not of NumPy, but with the same interface, as other libraries' arrays have; by a dict only."""

    def __init__(self, array, **changes):
        self.array = array
        self.__array_interface__ = array.__array_interface__ | changes


def test_other_arrays_by_their_interface():
    array = np.arange(6, dtype="int32").reshape(2, 3)
    x = T.as_tensor(array.T)
    assert x.stride() == (1, 3)
    assert x.tolist() == [[0, 3], [1, 4], [2, 5]]
    for odd, error in ((np.arange(3, dtype=">i4"), ValueError), (np.array(["a"]), TypeError)):
        with pytest.raises(error, match="numpy array has byte order|can't convert np.ndarray of type numpy.str_"):
            T.from_numpy(odd)
    if T.__name__ == "gradiron":
        x = T.from_numpy(Shown(array))
        array[0, 0] = 7
        assert x.tolist() == [[7, 1, 2], [3, 4, 5]]
        with pytest.raises(ValueError, match="byte order"):
            T.from_numpy(Shown(array, typestr=">i4"))


def test_a_parameters_copy_has_no_gradient():
    p = T.nn.Parameter(T.arange(6.0).view(2, 3).t())
    (p * 2).sum().backward()
    p.note = 1
    q, r = copy.deepcopy([p, p])
    assert q is r and q.grad is None and not hasattr(q, "note")
    assert q.tolist() == p.tolist() and q.stride() == p.stride()
    assert copy.deepcopy(T.nn.Parameter(T.ones(1), requires_grad=False)).requires_grad is False
    x = leaf([1.0])
    (x * 2).sum().backward()
    assert copy.deepcopy(x).grad.tolist() == [2.0]


def test_hooks_left_out_of_a_pickle_are_told():
    x = leaf([1.0])
    handle = x.register_hook(lambda g: g)
    with pytest.warns(UserWarning, match="backward hook .* on tensor will not be serialized"):
        assert pickle.loads(pickle.dumps(x)).tolist() == [1.0]
    handle.remove()
    x.register_hook(T.utils.hooks.unserializable_hook(lambda g: g))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.dumps(x)


@pytest.mark.gradiron
def test_classes_that_operators_would_not_ask_are_refused():
    class Asks(T.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args)

    class Heir(Asks):
        def __new__(cls, x):
            return super().__new__(cls, x)

    x = T.ones(2)
    for cls in (Asks, Heir):
        for make in (cls, lambda x, cls=cls: x.as_subclass(cls), lambda x, cls=cls: T.Tensor._make_subclass(cls, x)):
            with pytest.raises(NotImplementedError, match=f"{cls.__name__} defines __torch_dispatch__"):
                make(x)


def test_an_instance_of_a_class_of_tensors():
    class Mine(T.Tensor):
        pass

    x = T.ones(2, requires_grad=True)
    made = T.Tensor._make_subclass(Mine, x)
    assert type(made) is Mine and not made.requires_grad and made.data_ptr() == x.data_ptr()
    assert T.Tensor._make_subclass(Mine, x, True).requires_grad
    with pytest.raises(TypeError, match="Creating a Tensor subclass from a class that does not inherit from Tensor"):
        T.Tensor._make_subclass(int, x)
    with pytest.raises(TypeError, match="argument 'data' .position 2. must be Tensor, not int"):
        T.Tensor._make_subclass(Mine, 3)


@pytest.mark.filterwarnings("ignore:__array_wrap__:DeprecationWarning")
def test_numpy_functions_of_tensors_give_tensors():
    np = pytest.importorskip("numpy")
    x, n = T.tensor([1.0, 4.0]), np.array([2.0, 3.0])
    for found, expected in [
        (np.sqrt(x), [1.0, 2.0]),
        (np.add(x, x), [2.0, 8.0]),
        (np.multiply(2, x), [2.0, 8.0]),
        (x * n, [2.0, 12.0]),
        (np.maximum(x, n), [2.0, 4.0]),
        (np.greater(x, 2), [0, 1]),
        (np.sqrt(x[1]), 2.0),
    ]:
        assert isinstance(found, T.Tensor)
        assert found.tolist() == expected
    assert np.sqrt(x).dtype == T.float32
    assert (x * n).dtype == T.float64
    assert np.greater(x, 2).dtype == T.uint8
    assert all(isinstance(part, T.Tensor) for part in np.divmod(x, 2))


def test_functions_of_python_over_elements():
    x = T.tensor([1.0, 4.0])
    assert x.clone().map_(x, lambda a, b: a + b).tolist() == [2.0, 8.0]
    assert x.clone().map2_(x, x, lambda a, b, c: a + b * c).tolist() == [2.0, 20.0]
    with pytest.raises(RuntimeError, match="must match the existing size"):
        x.clone().map_(T.ones(3), lambda a, b: a)
    with pytest.raises(RuntimeError, match=r"Can't call map_\(\) on Variable that requires grad"):
        x.requires_grad_().map_(x, lambda a, b: a)


@pytest.mark.gradiron
def test_a_sum_of_more_than_there_is_room_for():
    with pytest.raises(MemoryError):
        T.sym_sum(range(2**62))


def test_numbers_that_are_known():
    assert (T.sym_int(-2.7), T.sym_float(3), T.sym_not(True), T.sym_sqrt(4), T.sym_sum([1, 2])) == (-2, 3.0, False, 2.0, 3)
    assert [type(n) for n in (T.sym_max(2, 3), T.sym_max(2, 3.0), T.sym_min(2, 3.0))] == [int, float, float]
    assert T.sym_ite(True, 1, 2) == 1
    assert T.get_device(T.ones(1)) == -1
    assert not T.is_distributed(T.ones(1))
