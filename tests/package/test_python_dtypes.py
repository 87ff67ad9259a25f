"""Python's float, int, bool and complex stand for dtypes wherever one is taken."""

import numpy as np
import pytest

from library import T

KINDS = [(float, T.float64), (int, T.int64), (bool, T.bool), (complex, T.complex128)]
x = T.ones(2)

CALLS = {
    "zeros": lambda d: T.zeros(2, dtype=d),
    "ones": lambda d: T.ones((2,), dtype=d),
    "full": lambda d: T.full((2,), 1, dtype=d),
    "empty": lambda d: T.empty(2, dtype=d),
    "empty_strided": lambda d: T.empty_strided((2,), (1,), dtype=d),
    "eye": lambda d: T.eye(2, dtype=d),
    "zeros_like": lambda d: T.zeros_like(x, dtype=d),
    "full_like": lambda d: T.full_like(x, 1, dtype=d),
    "new_zeros": lambda d: x.new_zeros(2, dtype=d),
    "new_tensor": lambda d: x.new_tensor([1], dtype=d),
    "new_full": lambda d: x.new_full((2,), 1, dtype=d),
    "tensor": lambda d: T.tensor([1], dtype=d),
    "as_tensor": lambda d: T.as_tensor([1], dtype=d),
    "as_tensor of a tensor": lambda d: T.as_tensor(x, dtype=d),
    "as_tensor of an array": lambda d: T.as_tensor(np.ones(1), dtype=d),
    "asarray": lambda d: T.asarray([1], dtype=d),
    "scalar_tensor": lambda d: T.scalar_tensor(1, dtype=d),
    "frombuffer": lambda d: T.frombuffer(bytearray(16), dtype=d),
    "to": lambda d: x.to(d),
    "to(dtype=)": lambda d: x.to(dtype=d),
    "to(device, dtype)": lambda d: x.to("cpu", d),
    "to(device, dtype=)": lambda d: x.to("cpu", dtype=d),
    "to(dtype, copy=)": lambda d: x.to(d, copy=True),
    "sum": lambda d: x.sum(dtype=d),
    "sum(dim)": lambda d: x.sum(0, dtype=d),
    "prod": lambda d: x.prod(dtype=d),
    "promote_types": lambda d: T.zeros(1, dtype=T.promote_types(d, d)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_type_is_a_dtype(name):
    for given, kind in KINDS:
        if (name, given) != ("eye", complex):
            assert CALLS[name](given).dtype == kind


def test_in_functions_of_floats():
    nn = T.nn.functional
    for result in (
        T.softmax(x, 0, dtype=float),
        x.softmax(0, float),
        nn.softmax(x, 0, dtype=float),
        nn.log_softmax(x, 0, dtype=float),
        x.mean(dtype=float),
        T.rand(2, dtype=float),
        T.linspace(0, 1, 3, dtype=float),
        T.randint(3, (2,), dtype=float),
        T.arange(3, dtype=float),
    ):
        assert result.dtype == T.float64
    assert T.arange(0.5, 3, dtype=int).dtype == T.randperm(3, dtype=int).dtype == T.int64


def test_as_another_view():
    assert T.ones(2, dtype=T.float64).view(int).dtype == T.int64
    assert T.ones(4).view(dtype=float).shape == (2,)
    with pytest.raises(TypeError):
        T.zeros(float)


def test_limits_and_rules():
    assert T.finfo(float).bits == 64 and T.iinfo(int).max == 2**63 - 1 and T.finfo(complex).bits == 64
    assert T.can_cast(int, float) and not T.can_cast(float, int)
    with pytest.raises(TypeError, match="finfo\\(\\): argument 'type' \\(position 1\\) must be torch.dtype, not type"):
        T.finfo(str)


def test_where_only_a_dtype_will_do():
    with pytest.raises(TypeError, match="invalid dtype object: only floating-point types are supported as the default type"):
        T.set_default_dtype(float)
    with pytest.raises(ValueError, match="invalid type: 'float'"):
        x.type(float)
    with pytest.raises(RuntimeError, match="grad_dtype must be a torch.dtype or None"):
        T.ones(2, requires_grad=True).grad_dtype = float


@pytest.mark.parametrize("other", [str, object, type("Float", (float,), {}), np.float32, 1.0, "float32"])
def test_other_types_are_refused(other):
    kind = type(other).__name__
    for name, call in (
        ("zeros", lambda: T.zeros(2, dtype=other)),
        ("tensor", lambda: T.tensor([1], dtype=other)),
        ("as_tensor", lambda: T.as_tensor([1], dtype=other)),
        ("as_tensor", lambda: T.as_tensor(x, dtype=other)),
        ("asarray", lambda: T.asarray([1], dtype=other)),
        ("new_tensor", lambda: x.new_tensor([1], dtype=other)),
        ("frombuffer", lambda: T.frombuffer(bytearray(8), dtype=other)),
    ):
        with pytest.raises(TypeError, match=f"^{name}\\(\\): argument 'dtype' must be torch.dtype, not {kind}"):
            call()


def test_to_takes_what_comes_first():
    double = T.ones(1, dtype=T.float64)
    for result in (x.to(double), x.to(tensor=double), x.to("cpu", T.float64, False, True), x.to(None, T.float64)):
        assert result.dtype == T.float64
    assert x.to() is x and x.to(None) is x and x.to(device="cpu", dtype=T.float32) is x and x.to(copy=True) is not x
    for wrong, given in (
        (lambda: x.to(T.float64, "cpu"), "torch.dtype, str"),
        (lambda: x.to(T.float64, device="cpu"), "torch.dtype, device=str"),
        (lambda: x.to(T.float64, dtype=T.float64), "torch.dtype, dtype=torch.dtype"),
        (lambda: x.to(double, T.float32), "Tensor, torch.dtype"),
        (lambda: x.to("cpu", True), "str, bool"),
        (lambda: x.to("cpu", T.float64, copy=1), "str, torch.dtype, copy=int"),
        (lambda: x.to(T.channels_last), "torch.memory_format"),
        (lambda: x.to(str), "type"),
        (lambda: x.to(foo=1), "foo=int, "),
    ):
        with pytest.raises(TypeError, match=f"to\\(\\) received an invalid combination of arguments - got \\({given}\\)"):
            wrong()
    with pytest.raises(TypeError, match="to\\(\\) takes from 0 to 4 positional arguments but 5 were given"):
        x.to("cpu", T.float64, True, True, True)
