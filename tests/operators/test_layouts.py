"""What functions that make tensors do with `layout` and `memory_format`: no keyword is taken and forgotten."""

import warnings

import pytest

from library import T

warnings.filterwarnings("ignore", "Sparse", UserWarning)
pytestmark = pytest.mark.filterwarnings("ignore:Sparse:UserWarning")

X = T.ones(2, 3)

FILLED = {
    "ones": lambda **k: T.ones(2, 3, **k),
    "full": lambda **k: T.full((2, 3), 1.0, **k),
}
EMPTY = {
    "zeros": lambda **k: T.zeros(2, 3, **k),
    "empty": lambda **k: T.empty((2, 3), **k),
    "zeros_like": lambda **k: T.zeros_like(X, **k),
    "new_zeros": lambda **k: X.new_zeros((2, 3), **k),
    "new_empty": lambda **k: X.new_empty(2, 3, **k),
}
WRITTEN = {
    "empty_strided": (lambda **k: T.empty_strided((2, 3), (3, 1), **k), "empty_strided"),
    "rand": (lambda **k: T.rand(2, 3, **k), "uniform_"),
    "randn": (lambda **k: T.randn(2, 3, **k), "normal_"),
    "randint": (lambda **k: T.randint(0, 3, (2, 3), **k), "random_.from"),
    "randperm": (lambda **k: T.randperm(3, **k), "randperm.generator_out"),
    "arange": (lambda **k: T.arange(3, **k), "arange.start_out"),
    "linspace": (lambda **k: T.linspace(0, 1, 3, **k), "linspace.out"),
    "logspace": (lambda **k: T.logspace(0, 1, 3, **k), "logspace.out"),
    "eye": (lambda **k: T.eye(3, **k), "eye.m_out"),
    "tril_indices": (lambda **k: T.tril_indices(3, 3, **k), "tril_indices"),
    "normal": (lambda **k: T.normal(0.0, 1.0, (2, 3), **k), "normal_"),
    "ones_like": (lambda **k: T.ones_like(X, **k), "empty_strided"),
    "empty_like": (lambda **k: T.empty_like(X, **k), "empty_strided"),
    "full_like": (lambda **k: T.full_like(X, 1.0, **k), "empty_strided"),
    "rand_like": (lambda **k: T.rand_like(X, **k), "empty_strided"),
    "randint_like": (lambda **k: T.randint_like(X, 3, **k), "empty_strided"),
    "new_ones": (lambda **k: X.new_ones((2, 3), **k), "fill_.Scalar"),
    "new_full": (lambda **k: X.new_full((2, 3), 1.0, **k), "fill_.Scalar"),
    "new_empty_strided": (lambda **k: X.new_empty_strided((2, 3), (3, 1), **k), "empty_strided"),
    "fftfreq": (lambda **k: T.fft.fftfreq(3, **k), "arange.start_out"),
}


@pytest.mark.parametrize("name", EMPTY)
def test_nothing_but_zeros_is_sparse(name):
    made = EMPTY[name](layout=T.sparse_coo, dtype=T.float64, requires_grad=True)
    assert made.layout is T.sparse_coo and made.is_sparse and made.requires_grad
    assert made.shape == (2, 3) and made.dtype is T.float64
    assert (made._nnz(), made.sparse_dim(), made.dense_dim(), made.is_coalesced()) == (0, 2, 0, True)
    assert EMPTY[name](layout=T.strided).layout is T.strided
    rows = EMPTY[name](layout=T.sparse_csr)
    assert rows.layout is T.sparse_csr and rows.shape == (2, 3)
    if "zeros" in name:
        assert rows.crow_indices().tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", FILLED)
def test_what_is_filled_is_not_sparse(name):
    with pytest.raises(RuntimeError, match=r"full\(...\) is not implemented for sparse layout"):
        FILLED[name](layout=T.sparse_coo)


@pytest.mark.parametrize("name", WRITTEN)
def test_what_would_be_written_is_refused(name):
    make, kernel = WRITTEN[name]
    with pytest.raises(NotImplementedError) as error:
        make(layout=T.sparse_coo)
    assert str(error.value).startswith(f"Could not run 'aten::{kernel}' with arguments from the 'SparseCPU' backend.")
    assert make(layout=T.strided).layout is T.strided


@pytest.mark.parametrize("name", ("hann_window", "bartlett_window", "kaiser_window"))
def test_windows_are_dense(name):
    with pytest.raises(RuntimeError, match=f"{name} is not implemented for sparse types, got: "):
        getattr(T, name)(4, layout=T.sparse_coo)
    with pytest.raises(TypeError):
        getattr(T, name)(4, layout="strided")


def test_one_number_is_dense_whatever_is_asked():
    assert T.scalar_tensor(3, layout=T.sparse_coo).layout is T.strided


@pytest.mark.parametrize("name", [*EMPTY, *FILLED, *WRITTEN])
def test_only_layouts_are_layouts(name):
    make = EMPTY.get(name) or FILLED.get(name) or WRITTEN[name][0]
    for wrong in ("strided", 3, T.float32, T.channels_last):
        with pytest.raises(TypeError):
            make(layout=wrong)


@pytest.mark.gradiron
@pytest.mark.parametrize("name", [*EMPTY, *FILLED, *WRITTEN])
def test_a_layout_that_is_not_there_is_told(name):
    make = EMPTY.get(name) or FILLED.get(name) or WRITTEN[name][0]
    with pytest.raises(NotImplementedError, match="gradiron has the layouts .* only, not torch.sparse_bsr"):
        make(layout=T.sparse_bsr)


def test_like_a_sparse_tensor():
    s = T.eye(3).to_sparse()
    assert T.zeros_like(s).layout is T.sparse_coo and T.empty_like(s)._nnz() == 0
    assert s.new_zeros(2, 3).layout is T.sparse_coo and s.new_empty((2,)).shape == (2,)
    for dense in (T.zeros_like, T.ones_like, T.rand_like):
        made = dense(s, layout=T.strided, dtype=T.float64)
        assert made.layout is T.strided and made.shape == (3, 3) and made.dtype is T.float64
    assert s.new_ones(2, 3, layout=T.strided).tolist() == [[1.0] * 3] * 2
    for filled in (lambda: T.ones_like(s), lambda: T.full_like(s, 2.0), lambda: s.new_ones(2), lambda: s.new_full((2,), 1.0)):
        with pytest.raises(NotImplementedError, match="Could not run 'aten::fill_.Scalar' with arguments from the 'SparseCPU'"):
            filled()
    with pytest.raises(NotImplementedError, match="Could not run 'aten::normal_'"):
        T.randn_like(s)
    with pytest.raises(RuntimeError, match="memory format option is only supported by strided tensors"):
        T.zeros_like(s, memory_format=T.contiguous_format)
    mixed = T.ones(2, 3, 4).to_sparse(2)
    assert (T.zeros_like(mixed).sparse_dim(), T.zeros_like(mixed).dense_dim()) == (2, 1)


def test_sparse_tensors_cannot_be_pinned():
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        T.zeros(2, 3, layout=T.sparse_coo, pin_memory=True)


def test_only_memory_formats_are_memory_formats():
    for call in (
        lambda: T.empty(2, 3, memory_format="channels_last"),
        lambda: T.zeros_like(X, memory_format="contiguous_format"),
        lambda: X.clone(memory_format="preserve_format"),
        lambda: X.contiguous(memory_format=T.strided),
    ):
        with pytest.raises(TypeError):
            call()


def test_a_resized_tensor_has_the_format():
    images = T.zeros(2, 3, 4, 5)
    assert T.zeros(0).resize_as_(images, memory_format=T.channels_last).stride() == (60, 1, 15, 3)
    last = images.contiguous(memory_format=T.channels_last)
    assert T.zeros(0).resize_as_(last, memory_format=T.preserve_format).stride() == (60, 1, 15, 3)
    assert T.zeros(0).resize_as_(last).stride() == (60, 20, 5, 1)
