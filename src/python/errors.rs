//! Turns `Fault`s into PyTorch's exceptions. No other module does.

use crate::base::{Error, Fault, Guidance};
use crate::python::modes::anomaly;
use crate::python::objects::{to_object, tuple};
use crate::storage::reserve;
use pyo3::PyErrArguments;
use pyo3::exceptions::{
    PyIndexError, PyMemoryError, PyNotImplementedError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

/// `gradiron.OutOfMemoryError`, a RuntimeError that the Python side defines.
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
            Fault::Guided(guidance) => PyRuntimeError::new_err(GuidedText(guidance)),
            _ => PyRuntimeError::new_err(text),
        }
    }
}

/// The text of a guided error. The user's source lines are read only when Python asks for the text, so that
/// no file is read under a lock.
struct GuidedText(Guidance);

impl PyErrArguments for GuidedText {
    fn arguments(self, py: Python<'_>) -> Py<PyAny> {
        let text = self.0.render(|line| anomaly::source(py, line));
        PyString::new(py, &text).into_any().unbind()
    }
}

/// Makes the exception with Python's allocator only, from the memory that the reserve frees: nothing else
/// may be left.
pub fn out_of_memory(text: &str) -> PyErr {
    reserve::spend();
    let instance = |py: Python<'_>| match OUT_OF_MEMORY.get(py) {
        Some(class) => class.call1(py, tuple(py, [to_object(py, text)?])?),
        None => Ok(py.get_type::<PyMemoryError>().call0()?.unbind()),
    };
    Python::attach(|py| {
        // A panic may have left an exception set.
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

/// Wraps a Python exception so that it can pass through the core.
pub fn carry(error: PyErr) -> Error {
    Fault::Foreign(Box::new(error)).into()
}

/// Issues a warning of the core as a Python `UserWarning`.
pub fn warn(text: &str) -> crate::base::Result<()> {
    let tell = |py: Python<'_>| {
        let message = std::ffi::CString::new(text)?;
        PyErr::warn(py, &py.get_type::<pyo3::exceptions::PyUserWarning>(), &message, 1)
    };
    Python::attach(tell).map_err(carry)
}
