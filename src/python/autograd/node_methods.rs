//! The methods and attributes of nodes in Python.

use crate::base::try_alloc;
use crate::operator::Out;
use crate::python::call::run::result;
use crate::python::graph::hooks;
use crate::python::graph::metadata;
use crate::python::graph::node::{PyNode, next_functions};
use crate::python::objects::tuple;
use crate::python::saved::values;
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::python::wrapper::collector::{self, Start};
use crate::tensor::{Kind, Node, When, any_hosted};
use gradiron_macros::pymethods;
use pyo3::exceptions::PyAttributeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

#[pymethods]
impl PyNode {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The collector may traverse an object before its value is written; until then it is all zeros.
        // SAFETY: a handle is one pointer; reading it as a number is always defined here.
        let empty = unsafe { std::ptr::from_ref(&self.node).cast::<usize>().read() } == 0;
        if !any_hosted() || empty || collector::traverse(&Start::node(self, &self.node), &visit)? {
            return Ok(());
        }
        collector::traverse_nodes(std::iter::once((&self.node, 1)), &visit)
    }
    fn __clear__(&self) {
        collector::clear(&Start::node(self, &self.node));
    }
    /// Returns the operator's name with `Backward` and a number.
    fn name(&self) -> String {
        self.node.full_name()
    }
    /// The nodes to which the gradients flow, each with the number of its output.
    #[getter]
    fn next_functions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        next_functions(py, &self.node)
    }
    /// Computes the gradients of the node's inputs from those of its outputs.
    #[pyo3(signature = (*grads))]
    fn __call__<'py>(&self, grads: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = grads.py();
        let expected = self.node.outputs.len();
        if grads.len() != expected {
            let message = format!("expected {expected} arguments, got {} instead", grads.len());
            return Err(pyo3::exceptions::PyTypeError::new_err(message));
        }
        let read = |(i, grad): (usize, Bound<'py, PyAny>)| match grad.cast::<PyTensor>() {
            Ok(tensor) => Ok(Some(tensor.get().tensor.clone())),
            Err(_) if grad.is_none() => Ok(None),
            Err(_) => Err(pyo3::exceptions::PyTypeError::new_err(format!("argument {i} is not a Variable"))),
        };
        let grads = grads.iter().enumerate().map(read).collect::<PyResult<_>>()?;
        let made = py.detach(|| crate::backward::call(&self.node, grads))?;
        let made = made.into_iter().map(|grad| match grad {
            Some(grad) => wrap(py, grad),
            None => Ok(py.None().into_bound(py)),
        });
        let made = made.collect::<PyResult<Vec<_>>>()?;
        match made.as_slice() {
            [only] => Ok(only.clone()),
            _ => Ok(tuple(py, made)?.into_any()),
        }
    }
    fn __repr__(slf: &Bound<'_, PyNode>) -> String {
        format!("<{} object at {:#x}>", slf.get().node.name(), slf.as_ptr() as usize)
    }
    /// The leaf into which an AccumulateGrad node accumulates.
    #[getter]
    fn variable<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Kind::Leaf(leaf) = &self.node.kind else {
            return Err(no_attribute(&self.node, "variable"));
        };
        result(py, Out::Tensor(leaf.tensor_again(&self.node)))
    }
    /// Returns the tensors that the node saved, as pairs of name and tensor.
    fn saved<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        values::saved(py, &self.node)
    }
    fn _sequence_nr(&self) -> u64 {
        // PyTorch orders leaves after all other nodes.
        if self.node.is_leaf() { u64::MAX } else { self.node.sequence }
    }
    /// Calls `hook(grad_inputs, grad_outputs)` after the node's derivative.
    fn register_hook<'py>(&self, py: Python<'py>, hook: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        hooks::node_hook(py, &self.node, When::After, hook)
    }
    /// Calls `hook(grad_outputs)` before the node's derivative.
    fn register_prehook<'py>(&self, py: Python<'py>, hook: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        hooks::node_hook(py, &self.node, When::Before, hook)
    }
    fn _register_hook_dict(&self, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        hooks::copy_tensor_hooks(Some(&self.node), tensor)
    }
    /// A dictionary for the user's own data, kept as long as the node.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        Ok(metadata::metadata(py, &self.node))
    }
    #[getter]
    fn _input_metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        metadata::input_metadata(py, &self.node)
    }
    #[getter]
    fn requires_grad(&self) -> bool {
        true
    }
    fn __setattr__(slf: &Bound<'_, PyNode>, name: &str, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(unwritable(slf, name))
    }
    fn __delattr__(slf: &Bound<'_, PyNode>, name: &str) -> PyResult<()> {
        Err(unwritable(slf, name))
    }
    fn __dir__(slf: &Bound<'_, PyNode>) -> PyResult<Vec<String>> {
        let own: Vec<String> = slf.py().get_type::<PyAny>().call_method1("__dir__", (slf,))?.extract()?;
        let hidden = |name: &String| name == "variable" && !slf.get().node.is_leaf();
        let mut names: Vec<String> = own.into_iter().filter(|name| !hidden(name)).collect();
        names.extend(values::attributes(&slf.get().node));
        Ok(names)
    }
    /// `_saved_self`, `_raw_saved_self`, …
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        try_alloc::check_text(name.len())?;
        match values::attribute(py, &self.node, name)? {
            Some(value) => Ok(value),
            None => Err(no_attribute(&self.node, name)),
        }
    }
}

fn no_attribute(node: &Node, name: &str) -> PyErr {
    PyAttributeError::new_err(format!("'{}' object has no attribute '{name}'", node.name()))
}

/// The error for setting an attribute of a node.
fn unwritable(slf: &Bound<'_, PyNode>, name: &str) -> PyErr {
    if let Err(error) = try_alloc::check_text(name.len()) {
        return error.into();
    }
    match slf.getattr(name) {
        Err(error) if error.is_instance_of::<PyAttributeError>(slf.py()) => error,
        _ => PyAttributeError::new_err(format!(
            "attribute '{name}' of '{}' objects is not writable",
            slf.get().node.name()
        )),
    }
}
