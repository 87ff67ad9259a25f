//! Storages as bytes, for copies and pickles; tensors as instances of subclasses.

use crate::base::views::checked_numel;
use crate::base::{DType, Device, Dims, Layout};
use crate::operator::primitives::{copies, detached, views};
use crate::python::call::run::running;
use crate::python::sequences::ListArg;
use crate::python::types::PyDType;
use crate::python::wrapper::class::{AsIs, PyTensor, register, wrap};
use crate::tensor::{Body, Tensor};
use gradiron_macros::pyfunction;
use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

/// Makes a tensor over the memory of another with its own layout; the version counter of the other does not
/// count its writes.
#[pyfunction]
pub fn storage_view<'py>(
    owner: &Bound<'py, PyTensor>,
    dtype: &Bound<'py, PyDType>,
    offset: usize,
    shape: ListArg<usize>,
    strides: ListArg<usize>,
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

/// Resizes the storage of a tensor, for all tensors that share it.
#[pyfunction]
pub fn resize_storage(tensor: &Bound<'_, PyTensor>, bytes: i64) -> PyResult<()> {
    let bytes = usize::try_from(bytes).map_err(|_| {
        PyRuntimeError::new_err(format!("a storage cannot have a negative number of bytes, but got {bytes}"))
    })?;
    Ok(crate::operator::bodies::resize_storage(&tensor.get().tensor.body(), bytes)?)
}

/// Returns true if the storage can be resized.
#[pyfunction]
pub fn is_resizable(tensor: &Bound<'_, PyTensor>) -> bool {
    tensor.get().tensor.body().storage.is_resizable()
}

/// Moves a tensor's storage to the memory of another, for all tensors that share it.
#[pyfunction]
pub fn move_storage(tensor: &Bound<'_, PyTensor>, target: &Bound<'_, PyTensor>) -> PyResult<()> {
    Ok(tensor.get().tensor.body().storage.move_to(&target.get().tensor.body().storage)?)
}

/// Returns the elements of a tensor, in order, as bytes.
#[pyfunction]
pub fn to_bytes<'py>(tensor: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyBytes>> {
    let py = tensor.py();
    let source = tensor.get().tensor.clone();
    let dense = running(py, true, || {
        let host = copies::to_device(&detached::shallow(&source), Device::Cpu)?;
        crate::operator::bodies::duplicate(&host.body())
    })?;
    let len = dense.numel() * dense.dtype.size();
    let view = dense.host_of_any_dtype()?;
    PyBytes::new_with(py, len, |target| {
        if len > 0 {
            // SAFETY: a contiguous body holds `len` bytes, and so does the target.
            unsafe { std::ptr::copy_nonoverlapping(view.ptr, target.as_mut_ptr(), len) };
        }
        Ok(())
    })
}

/// Makes a vector of bytes with its own memory.
#[pyfunction]
pub fn from_bytes<'py>(bytes: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyAny>> {
    let source = bytes.as_bytes();
    let body = Body::new(&[source.len()], DType::U8, Device::Cpu)?;
    if !source.is_empty() {
        let view = body.host()?;
        // SAFETY: the body was allocated for this many bytes, and nobody else has it.
        unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), view.ptr, source.len()) };
    }
    wrap(bytes.py(), Tensor::new(body))
}

/// Continues the CRC-32 checksum `before` with the bytes of a contiguous tensor.
#[pyfunction]
pub fn crc32(bytes: &Bound<'_, PyTensor>, before: u32) -> PyResult<u32> {
    let body = bytes.get().tensor.body();
    if !body.layout.is_contiguous() {
        return Err(PyValueError::new_err("crc32() needs a contiguous tensor: call contiguous() first"));
    }
    let (view, len) = (body.host_of_any_dtype()?, body.layout.numel() * body.dtype.size());
    if len == 0 {
        return Ok(before);
    }
    // SAFETY: a contiguous body holds `len` bytes, and nobody writes them meanwhile: this thread holds the
    // interpreter's lock.
    let all = unsafe { std::slice::from_raw_parts(view.ptr, len) };
    let mut sum = crc32fast::Hasher::new_with_initial(before);
    sum.update(all);
    Ok(sum.finalize())
}

/// Makes an instance of `class` for the tensor.
fn make_instance<'py>(class: &Bound<'py, PyAny>, tensor: Tensor) -> PyResult<Bound<'py, PyTensor>> {
    let py = class.py();
    let base = PyTensor::type_object(py);
    if !class.cast::<PyType>().is_ok_and(|c| c.is_subclass(&base).unwrap_or(false)) {
        return Err(PyTypeError::new_err("cls must be a type (not an instance) deriving from Tensor"));
    }
    // Calls the base's `__new__`, as the subclass's own may be what called us.
    let made = base.call_method1(intern!(py, "__new__"), (class, AsIs(tensor)))?.cast_into::<PyTensor>()?;
    register(made.clone());
    Ok(made)
}

/// Makes a leaf of a subclass: `_make_subclass(cls, data, requires_grad)`.
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
    let made = make_instance(class, detached::shallow(&data.get().tensor))?;
    made.get().tensor.set_requires_grad(requires_grad)?;
    Ok(made.into_any())
}

/// `tensor.as_subclass(cls)`: the same tensor under another class. Nobody else holds a `fresh` tensor.
#[pyfunction]
#[pyo3(signature = (tensor, class, fresh = false))]
pub fn as_subclass<'py>(
    tensor: &Bound<'py, PyTensor>,
    class: &Bound<'py, PyAny>,
    fresh: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let tensor = &tensor.get().tensor;
    // In-place writes to either tensor must be recorded for the other.
    let followed = !fresh || tensor.as_view().is_some() || tensor.requires_grad() || tensor.is_special();
    let tensor = if followed { views::alias(tensor)? } else { detached::shallow(tensor) };
    Ok(make_instance(class, tensor)?.into_any())
}
