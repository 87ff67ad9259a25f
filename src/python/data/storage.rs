//! Storages as bytes, for copies and pickles; tensors as instances of subclasses.

use crate::base::views::checked_numel;
use crate::base::{DType, Device, Dims, Layout};
use crate::operator::{copies, detached, views};
use crate::python::call::run::running;
use crate::python::sequences::Listed;
use crate::python::types::PyDType;
use crate::python::wrapper::class::{AsIs, PyTensor, register, wrap};
use crate::tensor::{Body, Tensor};
use gradiron_macros::pyfunction;
use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

/// A tensor over the memory of another, under a layout of its own; writes through it are not seen by the other.
#[pyfunction]
pub fn storage_view<'py>(
    owner: &Bound<'py, PyTensor>,
    dtype: &Bound<'py, PyDType>,
    offset: usize,
    shape: Listed<usize>,
    strides: Listed<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let dtype = dtype.get().0;
    let storage = owner.get().tensor.body().storage.alias();
    let layout = Layout { shape: Dims::from_vec(shape.0), strides: Dims::from_vec(strides.0), offset };
    let fits = layout.shape.len() == layout.strides.len()
        && checked_numel(&layout.shape).is_ok()
        && layout.bytes(dtype).is_some_and(|n| n <= storage.len());
    if !fits {
        return Err(PyValueError::new_err("the sizes and strides reach beyond the storage"));
    }
    wrap(owner.py(), Tensor::new(Body::plain(storage, layout, dtype)))
}

/// Makes the bytes under a tensor fewer or more, for all who share them.
#[pyfunction]
pub fn resize_storage(tensor: &Bound<'_, PyTensor>, bytes: i64) -> PyResult<()> {
    let bytes = usize::try_from(bytes).map_err(|_| {
        PyRuntimeError::new_err(format!("a storage cannot have a negative number of bytes, but got {bytes}"))
    })?;
    Ok(crate::operator::kernel::resize_storage(&tensor.get().tensor.body(), bytes)?)
}

/// Whether the storage can be resized.
#[pyfunction]
pub fn is_resizable(tensor: &Bound<'_, PyTensor>) -> bool {
    tensor.get().tensor.body().storage.is_resizable()
}

/// A tensor's bytes lie in the memory of another from now on, for all who share them.
#[pyfunction]
pub fn move_storage(tensor: &Bound<'_, PyTensor>, target: &Bound<'_, PyTensor>) -> PyResult<()> {
    Ok(tensor.get().tensor.body().storage.move_to(&target.get().tensor.body().storage)?)
}

/// The elements of a tensor in host memory, in their order, as bytes.
#[pyfunction]
pub fn to_bytes<'py>(tensor: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyBytes>> {
    let py = tensor.py();
    let source = tensor.get().tensor.clone();
    let dense = running(py, true, || {
        let host = copies::to_device(&detached::shallow(&source), Device::Cpu)?;
        crate::operator::kernel::duplicate(&host.body())
    })?;
    let len = dense.numel() * dense.dtype.size();
    let view = dense.host()?;
    PyBytes::new_with(py, len, |target| {
        if len > 0 {
            // SAFETY: a dense body holds `len` bytes, and the target is as long.
            unsafe { std::ptr::copy_nonoverlapping(view.ptr, target.as_mut_ptr(), len) };
        }
        Ok(())
    })
}

/// A vector of bytes with memory of its own.
#[pyfunction]
pub fn from_bytes<'py>(bytes: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyAny>> {
    let source = bytes.as_bytes();
    let body = Body::new(&[source.len()], DType::U8, Device::Cpu)?;
    if !source.is_empty() {
        let view = body.host()?;
        // SAFETY: the body was made for as many bytes, and nobody else knows it.
        unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), view.ptr, source.len()) };
    }
    wrap(bytes.py(), Tensor::new(body))
}

/// The checksum of zip files, of the bytes of a contiguous tensor behind those that `before` is the checksum of.
#[pyfunction]
pub fn crc32(bytes: &Bound<'_, PyTensor>, before: u32) -> PyResult<u32> {
    let body = bytes.get().tensor.body();
    if !body.layout.is_contiguous() {
        return Err(PyValueError::new_err("a checksum is of contiguous bytes"));
    }
    let (view, len) = (body.host()?, body.layout.numel() * body.dtype.size());
    if len == 0 {
        return Ok(before);
    }
    // SAFETY: a contiguous body holds `len` bytes, which nobody writes meanwhile: the GIL is held.
    let all = unsafe { std::slice::from_raw_parts(view.ptr, len) };
    let mut sum = crc32fast::Hasher::new_with_initial(before);
    sum.update(all);
    Ok(sum.finalize())
}

/// An instance of `class` that stands for the tensor.
fn instance<'py>(class: &Bound<'py, PyAny>, tensor: Tensor) -> PyResult<Bound<'py, PyTensor>> {
    let py = class.py();
    let base = PyTensor::type_object(py);
    if !class.cast::<PyType>().is_ok_and(|c| c.is_subclass(&base).unwrap_or(false)) {
        return Err(PyTypeError::new_err("cls must be a type (not an instance) deriving from Tensor"));
    }
    // The base's constructor, as the subclass's own may have called us.
    let made = base.call_method1(intern!(py, "__new__"), (class, AsIs(tensor)))?.cast_into::<PyTensor>()?;
    register(made.clone());
    Ok(made)
}

/// A leaf of a subclass: `_make_subclass(cls, data, requires_grad)`.
#[pyfunction]
pub fn make_subclass<'py>(
    class: &Bound<'py, PyAny>,
    data: &Bound<'py, PyTensor>,
    requires_grad: bool,
) -> PyResult<Bound<'py, PyAny>> {
    if requires_grad && !data.get().tensor.dtype().is_differentiable() {
        return Err(PyRuntimeError::new_err(
            "Only Tensors of floating point and complex dtype can require gradients",
        ));
    }
    let made = instance(class, detached::shallow(&data.get().tensor))?;
    made.get().tensor.set_requires_grad(requires_grad)?;
    Ok(made.into_any())
}

/// `tensor.as_subclass(cls)`: the same values and history under another class. A `fresh` tensor is one that nobody else holds.
#[pyfunction]
#[pyo3(signature = (tensor, class, fresh = false))]
pub fn as_subclass<'py>(
    tensor: &Bound<'py, PyTensor>,
    class: &Bound<'py, PyAny>,
    fresh: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let tensor = &tensor.get().tensor;
    // What is written to the one is seen in the history of the other.
    let followed = !fresh || tensor.as_view().is_some() || tensor.requires_grad() || tensor.is_special();
    let tensor = if followed { views::alias(tensor)? } else { detached::shallow(tensor) };
    Ok(instance(class, tensor)?.into_any())
}
