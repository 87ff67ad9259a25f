//! Watches which functions of Python run while a call is captured.

use crate::base::lock;
use gradiron_macros::pymethods;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::collections::HashMap;
use std::sync::Mutex;

/// Passes calls of Python functions on, those of a known code object not: `notice` is for `sys.setprofile`.
///
/// Args:
///     ask: called with the frame of a function that begins. If it returns true, the function's code object is known from
///         then on.
#[pyclass(frozen, name = "CallWatch", module = "gradiron._core")]
pub struct PyCallWatch {
    ask: Py<PyAny>,
    /// By address; they are held, so that no other code object gets one of these addresses.
    known: Mutex<HashMap<usize, Py<PyAny>>>,
}

#[pymethods]
impl PyCallWatch {
    #[new]
    fn new(ask: Py<PyAny>) -> PyCallWatch {
        PyCallWatch { ask, known: Mutex::default() }
    }

    /// Take an event of Python's profiler.
    ///
    /// Args:
    ///     frame: the frame in which it happens.
    ///     event: its name.
    ///     arg: what belongs to it; ignored.
    fn notice(
        &self,
        frame: &Bound<'_, PyAny>,
        event: &Bound<'_, PyString>,
        arg: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _ = arg;
        let py = frame.py();
        if !event.is(intern!(py, "call")) && event.to_str()? != "call" {
            return Ok(());
        }
        let code = frame.getattr(intern!(py, "f_code"))?;
        let address = code.as_ptr() as usize;
        if lock(&self.known).contains_key(&address) {
            return Ok(());
        }
        if self.ask.bind(py).call1((frame,))?.is_truthy()? {
            lock(&self.known).insert(address, code.unbind());
        }
        Ok(())
    }
}
