//! Faults become PyTorch's exceptions here, and nowhere else.

use crate::base::{Error, Fault, Guidance};
use crate::python::modes::anomaly;
use crate::python::objects::{made, tuple};
use crate::storage::reserve;
use pyo3::PyErrArguments;
use pyo3::exceptions::{
    PyIndexError, PyMemoryError, PyNotImplementedError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

/// `gradiron.OutOfMemoryError`, a RuntimeError; made on the Python side.
pub static OUT_OF_MEMORY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

pyo3::create_exception!(
    gradiron._core,
    _LinAlgError,
    PyRuntimeError,
    "An error of linear algebra: a matrix that has no inverse or no factorization.

Examples:
    >>> torch.linalg.inv(torch.zeros(2, 2))
    Traceback (most recent call last):
        ...
    gradiron._core._LinAlgError: linalg.inv: The diagonal element 1 is zero, the inversion could not be completed because the \
     input matrix is singular."
);

impl From<Error> for PyErr {
    #[cold]
    fn from(error: Error) -> PyErr {
        let text = error.to_string();
        match error.into_fault() {
            Fault::Foreign(inner) => match inner.downcast::<PyErr>() {
                Ok(original) => *original,
                Err(_) => PyRuntimeError::new_err(text),
            },
            Fault::DimRange { .. } | Fault::Index(_) | Fault::Beyond { along: false, .. } => {
                PyIndexError::new_err(text)
            }
            Fault::Value(_) => PyValueError::new_err(text),
            Fault::Type(_) | Fault::Unordered(_) => PyTypeError::new_err(text),
            Fault::LinAlg(_) => _LinAlgError::new_err(text),
            Fault::NotImplemented(_) | Fault::NoShader { .. } => PyNotImplementedError::new_err(text),
            Fault::NoKernel { .. } | Fault::NoKernelOf { .. } | Fault::NoComplex(_) => {
                PyNotImplementedError::new_err(text)
            }
            Fault::OutOfMemory { .. } => out_of_memory(&text),
            Fault::Guided(guidance) => PyRuntimeError::new_err(Told(guidance)),
            _ => PyRuntimeError::new_err(text),
        }
    }
}

/// A guided error's text, with the user's lines read only when Python wants it: files are not read under locks.
struct Told(Guidance);

impl PyErrArguments for Told {
    fn arguments(self, py: Python<'_>) -> Py<PyAny> {
        let text = self.0.render(|line| anomaly::source(py, line));
        PyString::new(py, &text).into_any().unbind()
    }
}

/// Made by Python alone, of what the reserve held: there may be no memory for it.
pub fn out_of_memory(text: &str) -> PyErr {
    reserve::spend();
    let instance = |py: Python<'_>| match OUT_OF_MEMORY.get(py) {
        Some(class) => class.call1(py, tuple(py, [made(py, text)?])?),
        None => Ok(py.get_type::<PyMemoryError>().call0()?.unbind()),
    };
    Python::attach(|py| {
        // A panic may have left an exception behind.
        drop(PyErr::take(py));
        instance(py).map_or_else(|error| error, |made| PyErr::from_value(made.into_bound(py)))
    })
}

impl From<PyErr> for Error {
    #[cold]
    fn from(error: PyErr) -> Error {
        carry(error)
    }
}

/// An exception on its way through the core.
pub fn carry(error: PyErr) -> Error {
    Fault::Foreign(Box::new(error)).into()
}

/// Tells a user what the core warns of.
pub fn warn(text: &str) -> crate::base::Result<()> {
    let tell = |py: Python<'_>| {
        let message = std::ffi::CString::new(text)?;
        PyErr::warn(py, &py.get_type::<pyo3::exceptions::PyUserWarning>(), &message, 1)
    };
    Python::attach(tell).map_err(carry)
}
