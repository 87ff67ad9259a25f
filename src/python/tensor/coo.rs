//! The parts of sparse tensors, for Python's class `CooTensor`.

use crate::base::DType;
use crate::operator::primitives::views::dims_of;
use crate::ops::sparse::COO;
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::tensor::{CooParts, Tensor};
use gradiron_macros::pyfunction;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// The parts of a sparse tensor of that shape.
fn parts(
    indices: &Bound<'_, PyTensor>,
    values: &Bound<'_, PyTensor>,
    shape: &[usize],
    is_coalesced: bool,
) -> PyResult<CooParts> {
    let (places, held) = (indices.get().tensor.shape(), values.get().tensor.shape());
    let fits = match (&places[..], &held[..]) {
        (&[wide, count], [values, rest @ ..]) => count == *values && shape.get(wide..) == Some(rest),
        _ => false,
    };
    if !fits || indices.get().tensor.dtype() != DType::I64 {
        return Err(PyValueError::new_err(format!(
            "indices of shape {places:?} and values of shape {held:?} make no sparse tensor of shape {shape:?}"
        )));
    }
    Ok(CooParts {
        indices: indices.get().tensor.clone(),
        values: values.get().tensor.clone(),
        is_coalesced,
        func: &COO,
    })
}

/// Makes a sparse tensor.
#[pyfunction]
pub fn make_coo<'py>(
    indices: &Bound<'py, PyTensor>,
    values: &Bound<'py, PyTensor>,
    size: Vec<i64>,
    is_coalesced: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let size = dims_of(&size)?;
    wrap(indices.py(), Tensor::sparse(&size, parts(indices, values, &size, is_coalesced)?)?)
}

/// Returns the indices and values of a sparse tensor, and whether it is coalesced.
#[pyfunction]
pub fn coo_parts<'py>(
    tensor: &Bound<'py, PyTensor>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, bool)> {
    let Some(CooParts { indices, values, is_coalesced, .. }) = tensor.get().tensor.coo_parts() else {
        return Err(PyTypeError::new_err("coo_parts() needs a sparse tensor in coordinate format"));
    };
    let py = tensor.py();
    Ok((wrap(py, indices)?, wrap(py, values)?, is_coalesced))
}

/// Changes a sparse tensor in place.
#[pyfunction]
pub fn set_coo_parts(
    tensor: &Bound<'_, PyTensor>,
    indices: &Bound<'_, PyTensor>,
    values: &Bound<'_, PyTensor>,
    is_coalesced: bool,
) -> PyResult<()> {
    let tensor = &tensor.get().tensor;
    tensor.set_coo_parts(parts(indices, values, &tensor.shape(), is_coalesced)?);
    Ok(())
}
