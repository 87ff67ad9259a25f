//! A node's facts about its outputs, and the user's `metadata` dictionary.

use crate::python::size::size_object;
use crate::python::types::{device_object, dtype_object};
use crate::tensor::{HostObject, Kind, Meta, Node};
use gradiron_macros::pymethods;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::ffi::c_void;
use std::sync::Arc;

/// The shape, dtype and device that a node expects of an incoming gradient.
#[pyclass(name = "_InputMetadata", module = "gradiron.autograd.graph", frozen)]
pub struct InputMetadata(Meta);

#[pymethods]
impl InputMetadata {
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(dtype_object(py, self.0.dtype)?.into_any())
    }
    #[getter]
    fn device(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(device_object(py, self.0.device)?.into_any())
    }
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        size_object(py, &self.0.shape)
    }
    #[getter]
    fn is_nested_tensor(&self) -> bool {
        false
    }
    #[getter]
    fn is_cpp_nested_tensor(&self) -> bool {
        false
    }
}

pub fn input_metadata<'py>(py: Python<'py>, node: &Node) -> PyResult<Bound<'py, PyTuple>> {
    let custom = if let Kind::Custom(custom) = &node.kind { Some(custom) } else { None };
    let shown = |(i, meta): (usize, &Meta)| {
        let dtype = custom.and_then(|custom| custom.dtype(i)).unwrap_or(meta.dtype);
        InputMetadata(Meta { dtype, ..meta.clone() })
    };
    PyTuple::new(py, node.outputs.iter().enumerate().map(shown).collect::<Vec<_>>())
}

struct Metadata(Py<PyDict>);

impl HostObject for Metadata {
    fn host(&self) -> *mut c_void {
        self.0.as_ptr().cast()
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// Returns a node's `metadata`: always the same dictionary while the node lives.
pub fn metadata<'py>(py: Python<'py>, node: &Node) -> Bound<'py, PyDict> {
    let kept = node.hooks().metadata.clone();
    if let Some(found) = kept.as_ref().and_then(|m| m.as_any().downcast_ref::<Metadata>()) {
        return found.0.bind(py).clone();
    }
    let made = PyDict::new(py);
    if let Some(stack) = node.trace.as_ref().and_then(|trace| trace.stack.as_ref()?.text()) {
        // Formatted like Python's tracebacks: one string per frame.
        let frames = stack.split("  File ").skip(1).map(|frame| format!("  File {frame}"));
        let list = pyo3::types::PyList::new(py, frames.collect::<Vec<_>>());
        // Setting an item of a new dictionary cannot fail.
        let _ = list.and_then(|list| made.set_item("traceback_", list));
    }
    set_metadata(node, made.clone().unbind());
    made
}

/// Sets a node's `metadata`.
pub fn set_metadata(node: &Node, notes: Py<PyDict>) {
    node.hooks().metadata = Some(Arc::new(Metadata(notes)));
}
