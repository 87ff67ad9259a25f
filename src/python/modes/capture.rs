//! Captures of kernels, for `torch.cuda.CUDAGraph`.

use crate::capture::{Capture, Captured};
use crate::python::modes::anomaly;
use crate::python::objects::ToObject;
use crate::storage::access;
use gradiron_macros::{pyfunction, pymethods};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::cell::RefCell;

thread_local! {
    static CAPTURE: RefCell<Option<Capture>> = const { RefCell::new(None) };
}

/// Begins to capture the kernels of this thread. Unless `runs`, only replays run them.
#[pyfunction]
pub fn begin_capture(runs: bool) -> PyResult<()> {
    anomaly::install();
    let capture = Capture::begin(runs)?;
    CAPTURE.set(Some(capture));
    Ok(())
}

/// Ends this thread's capture.
#[pyfunction]
pub fn end_capture() -> PyResult<PyCaptured> {
    Ok(PyCaptured(take()?.end()?))
}

/// This thread's capture, which its owner ends.
pub fn take() -> PyResult<Capture> {
    CAPTURE.take().ok_or_else(|| PyRuntimeError::new_err("this thread is not capturing"))
}

/// Ends this thread's capture, if there is one, and discards it.
#[pyfunction]
pub fn discard_capture() {
    drop(CAPTURE.take());
}

/// Return whether this thread is capturing.
#[pyfunction]
pub fn is_capturing() -> bool {
    access::captures()
}

/// Captured kernels.
#[pyclass(frozen, name = "Captured", module = "gradiron._core")]
pub struct PyCaptured(Captured);

#[pymethods]
impl PyCaptured {
    /// Run all kernels again.
    fn replay(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.0.replay())?)
    }

    /// The number of kernels.
    #[getter]
    fn kernels(&self) -> ToObject<usize> {
        ToObject(self.0.kernels())
    }

    /// The bytes of memory that only these kernels reach.
    #[getter]
    fn bytes(&self) -> ToObject<usize> {
        ToObject(self.0.bytes())
    }

    /// The number of kernels and groups that a replay runs.
    #[getter]
    fn units(&self) -> ToObject<usize> {
        ToObject(self.0.units())
    }

    /// The launches on the GPU of the last replay.
    #[getter]
    fn launches(&self) -> ToObject<u64> {
        ToObject(self.0.launches())
    }

    /// The number of groups.
    #[getter]
    fn groups(&self) -> ToObject<usize> {
        ToObject(self.0.counts().groups)
    }

    /// The number of instructions in all groups.
    #[getter]
    fn instructions(&self) -> ToObject<usize> {
        ToObject(self.0.counts().instructions)
    }

    /// The bytes that a replay reads and writes.
    #[getter]
    fn traffic(&self) -> ToObject<usize> {
        ToObject(self.0.counts().bytes)
    }

    /// The bytes that kernels would read and write without groups.
    #[getter]
    fn bytes_apart(&self) -> ToObject<usize> {
        ToObject(self.0.counts().bytes_apart)
    }
}
