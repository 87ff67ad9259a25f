//! The number of threads that kernels use.

use crate::cpu::par;
use crate::python::types::type_name;
use gradiron_macros::pyfunction;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};

/// Returns the number of threads that a kernel may use.
#[pyfunction]
pub fn get_num_threads() -> usize {
    par::threads()
}

/// Sets the number of threads that a kernel may use. Results do not depend on it, not even in the last bit.
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
