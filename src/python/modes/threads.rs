//! The number of threads that kernels use.

use crate::cpu::par;
use crate::python::types::type_name;
use gradiron_macros::pyfunction;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};

/// Return the number of threads that computations on the CPU may use.
///
/// Examples:
///     >>> torch.get_num_threads() >= 1
///     True
#[pyfunction]
pub fn get_num_threads() -> usize {
    par::threads()
}

/// Set the number of threads that computations on the CPU may use.
///
/// Results do not depend on it, not even in their last bit.
///
/// Args:
///     n: number of threads, at least 1.
///
/// Examples:
///     >>> torch.set_num_threads(torch.get_num_threads())
#[pyfunction]
pub fn set_num_threads(n: &Bound<'_, PyAny>) -> PyResult<()> {
    if !n.is_instance_of::<PyInt>() || n.is_instance_of::<PyBool>() {
        let given = type_name(n);
        return Err(PyRuntimeError::new_err(format!("set_num_threads expects an int, but got {given}")));
    }
    match n.extract::<i32>().map_err(|_| PyValueError::new_err("Overflow when unpacking long"))? {
        n if n > 0 => par::set_threads(n as usize),
        _ => return Err(PyRuntimeError::new_err("set_num_threads expects a positive integer")),
    }
    Ok(())
}
