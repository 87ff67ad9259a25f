"""Tensors print as PyTorch prints them: text recorded from PyTorch by golden/make_print.py."""

from collections.abc import Iterator
from typing import Any

import golden_file
import pytest

from library import T

CASES: list[dict[str, Any]] = golden_file.read("print.json")


@pytest.fixture(autouse=True)
def usual_options() -> Iterator[None]:
    T.set_printoptions(profile="default")
    yield
    T.set_printoptions(profile="default")


def build(case: dict[str, Any]) -> T.Tensor:
    dtype = getattr(T, case["dtype"])
    if "range" in case:
        return T.arange(case["range"]).to(dtype).reshape(case["shape"])
    x = T.tensor(case["values"], dtype=dtype).reshape(case["shape"])
    if then := case.get("then"):
        x.requires_grad_()
        x = x if then == "requires_grad_" else getattr(x, then)()
    return x


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['dtype']}-{'x'.join(map(str, case['shape']))}")
def test_prints_as_pytorch(case: dict[str, Any]) -> None:
    T.set_printoptions(**case.get("options", {}))
    assert repr(build(case)) == case["text"]


def test_default_dtype_decides_what_is_silent() -> None:
    x = T.tensor([1.5], dtype=T.float64)
    assert repr(x) == "tensor([1.5000], dtype=torch.float64)"
    T.set_default_dtype(T.float64)
    try:
        assert repr(x) == "tensor([1.5000])"
        assert repr(x.to(T.float32)) == "tensor([1.5000], dtype=torch.float32)"
    finally:
        T.set_default_dtype(T.float32)


def test_printing_leaves_no_trace() -> None:
    x = T.ones(3, requires_grad=True)
    y = x * 2
    assert str(y) == repr(y) == "tensor([2., 2., 2.], grad_fn=<MulBackward0>)"
    y.sum().backward()
    assert repr(x.grad) == "tensor([2., 2., 2.])"


def test_format_of_a_scalar_tensor() -> None:
    x = T.tensor(3.14159)
    assert f"{x:.2f}" == "3.14"
    assert f"{T.tensor(7):>4d}" == "   7"
    assert f"{T.tensor(2.5, requires_grad=True)}" == "2.5"
    assert f"{T.tensor([1, 2])}" == "tensor([1, 2])"
    with pytest.raises(TypeError):
        format(T.tensor([1, 2]), ".2f")


def test_a_subclass_prints_its_name() -> None:
    class Reading(T.Tensor):
        pass

    assert repr(T.tensor([1.0, 2.0]).as_subclass(Reading)) == "Reading([1., 2.])"


def test_printoptions_are_restored() -> None:
    x = T.tensor([0.123456])
    with T._tensor_str.printoptions(precision=2):
        assert repr(x) == "tensor([0.12])"
    assert repr(x) == "tensor([0.1235])"
