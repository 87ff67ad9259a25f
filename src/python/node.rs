//! Nodes of the graph as Python objects, and the collector's walk over what only one tensor keeps alive.

use super::parse::result;
use super::tensor::{PyTensor, wrap};
use crate::ops::Out;
use crate::tensor::{Hook, Kind, Node, NodeRef, Saved, Tensor, When};
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};
use pyo3::{PyTypeInfo, ffi};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An operator of the graph: `grad_fn` of what it made.
#[pyclass(name = "Node", module = "gradiron.autograd.graph", frozen, weakref, dict, subclass)]
pub struct PyNode {
    pub node: NodeRef,
}

impl Drop for PyNode {
    fn drop(&mut self) {
        self.node.host.store(std::ptr::null_mut(), Ordering::Release);
    }
}

/// The Python object of a node: a Function's own context, or a view of the node that is the same while it lives.
pub fn node_object(py: Python<'_>, node: NodeRef) -> PyResult<Bound<'_, PyAny>> {
    if let Kind::Custom(custom) = &node.kind {
        // SAFETY: the node keeps its context alive.
        return Ok(unsafe { Bound::from_borrowed_ptr(py, custom.host().cast()) });
    }
    let host = node.host.load(Ordering::Acquire).cast::<ffi::PyObject>();
    // SAFETY: the pointer is cleared before its object goes, and we hold the interpreter.
    if !host.is_null() && unsafe { ffi::Py_REFCNT(host) } > 0 {
        // SAFETY: as above.
        return Ok(unsafe { Bound::from_borrowed_ptr(py, host) });
    }
    let object = allocate(py, node)?;
    object.get().node.host.store(object.as_ptr().cast(), Ordering::Release);
    Ok(object.into_any())
}

/// One class per kind of node, named after it: `type(y.grad_fn).__name__`.
static CLASSES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

fn class_of<'py>(py: Python<'py>, node: &Node) -> PyResult<Bound<'py, PyType>> {
    let classes = CLASSES.get_or_init(py, || PyDict::new(py).unbind()).bind(py);
    let name = node.name();
    if let Some(class) = classes.get_item(&name)? {
        return Ok(class.cast_into::<PyType>()?);
    }
    let bases = PyTuple::new(py, [PyNode::type_object(py)])?;
    let class = py.get_type::<PyType>().call1((&name, bases, PyDict::new(py)))?;
    classes.set_item(&name, &class)?;
    Ok(class.cast_into::<PyType>()?)
}

/// A node's object, of its own class. PyO3 makes objects of the base class only, so the first one shows where the value
/// lies, and the others are written there.
fn allocate(py: Python<'_>, node: NodeRef) -> PyResult<Bound<'_, PyNode>> {
    static PLACE: PyOnceLock<usize> = PyOnceLock::new();
    let place = *PLACE.get_or_try_init(py, || -> PyResult<usize> {
        let probe = Bound::new(py, PyNode { node: node.clone() })?;
        Ok(std::ptr::from_ref(probe.get()) as usize - probe.as_ptr() as usize)
    })?;
    let class = class_of(py, &node)?;
    // SAFETY: a subclass made by `type` has the base's layout first, zeroed; the value is written before anybody sees it.
    unsafe {
        let object = ffi::PyType_GenericAlloc(class.as_type_ptr(), 0);
        if object.is_null() {
            return Err(PyErr::fetch(py));
        }
        object.cast::<u8>().add(place).cast::<PyNode>().write(PyNode { node });
        Ok(Bound::from_owned_ptr(py, object).cast_into_unchecked())
    }
}

/// The graph's side of `grad_fn`, for nodes and for a Function's context.
pub fn next_functions<'py>(py: Python<'py>, node: &Node) -> PyResult<Bound<'py, PyTuple>> {
    let pairs = node
        .edges
        .iter()
        .map(|edge| match edge {
            Some(edge) => (node_object(py, edge.node.clone())?, edge.output).into_pyobject(py),
            None => (py.None(), 0u32).into_pyobject(py),
        })
        .collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, pairs)
}

/// What a node saved: (name, tensor) pairs; freed values raise.
pub fn saved<'py>(py: Python<'py>, node: &NodeRef) -> PyResult<Bound<'py, PyList>> {
    let tensors = {
        let saves = node.saves();
        if saves.freed {
            return Err(crate::tensor::freed_error().into());
        }
        let unpack = |s: &Saved| -> PyResult<(String, Tensor)> {
            let name = match s.source {
                source if source >= Saved::OUTPUT => "result".into(),
                source => format!("input{source}"),
            };
            Ok((name, s.unpack(node)?))
        };
        saves.values.iter().map(unpack).collect::<PyResult<Vec<_>>>()?
    };
    let items = tensors
        .into_iter()
        .map(|(name, t)| (name, wrap(py, t)?).into_pyobject(py))
        .collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, items)
}

#[pymethods]
impl PyNode {
    /// The operator's name with `Backward` and a number.
    fn name(&self) -> String {
        self.node.full_name()
    }
    /// The nodes that the gradients go to, each with the number of its output.
    #[getter]
    fn next_functions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        next_functions(py, &self.node)
    }
    fn __repr__(slf: &Bound<'_, PyNode>) -> String {
        format!("<{} object at {:#x}>", slf.get().node.name(), slf.as_ptr() as usize)
    }
    /// The leaf that an AccumulateGrad adds to.
    #[getter]
    fn variable<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Kind::Leaf(leaf) = &self.node.kind else {
            return Err(pyo3::exceptions::PyAttributeError::new_err(format!(
                "'{}' object has no attribute 'variable'",
                self.node.name()
            )));
        };
        let tensor = match leaf.tensor.upgrade() {
            Some(tensor) => tensor,
            None => {
                let tensor = Tensor::new(leaf.body.clone());
                tensor.set_requires_grad(true)?;
                tensor
            }
        };
        result(py, Out::Tensor(tensor))
    }
    /// What the node keeps for its derivative, as pairs of a name and a tensor.
    fn saved<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        saved(py, &self.node)
    }
    fn _sequence_nr(&self) -> u64 {
        self.node.sequence
    }
    /// Calls `hook(grad_inputs, grad_outputs)` after the node's derivative.
    fn register_hook<'py>(&self, py: Python<'py>, hook: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        super::autograd::node_hook(py, &self.node, When::After, hook)
    }
    /// Calls `hook(grad_outputs)` before the node's derivative.
    fn register_prehook<'py>(&self, py: Python<'py>, hook: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        super::autograd::node_hook(py, &self.node, When::Before, hook)
    }
    /// `_saved_result`, `_saved_input0`, …
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        if let Some(wanted) = name.strip_prefix("_saved_") {
            for item in saved(py, &self.node)?.iter() {
                let (have, value): (String, Bound<'py, PyAny>) = item.extract()?;
                if have == wanted
                    || (wanted == "self" && have == "input0")
                    || (wanted == "other" && have == "input1")
                {
                    return Ok(value);
                }
            }
        }
        Err(pyo3::exceptions::PyAttributeError::new_err(format!(
            "'{}' object has no attribute '{name}'",
            self.node.name()
        )))
    }
}

/// Shows the collector the Python objects that hang on nodes which this tensor alone keeps alive.
pub fn traverse(tensor: &Tensor, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
    if tensor.handles() != 1 {
        return Ok(());
    }
    // The tensor itself and `.grad`'s own graph: each is entered only while one handle keeps it.
    let mut waiting: Vec<NodeRef> = Vec::new();
    let mut outcome = Ok(());
    let first = tensor.for_collector();
    if let Some(edge) = first.edge {
        waiting.push(edge);
    }
    if let Some(grad) = first.grad {
        // Two handles: the leaf's and ours.
        if grad.handles() == 2
            && let Some(edge) = grad.for_collector().edge
        {
            waiting.push(edge);
        }
    }
    while let Some(node) = waiting.pop() {
        // Two handles: the graph's and ours.
        if crate::arena::Ref::count(&node) != 2 {
            continue;
        }
        node.visit_hosts(&mut |object| {
            if outcome.is_ok() && !object.is_null() {
                // SAFETY: the node keeps the object alive, and the collector runs with the interpreter held.
                let object = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Py<PyAny>>(object) };
                outcome = visit.call(&object);
                std::mem::forget(object);
            }
        });
        waiting.extend(node.edges.iter().flatten().map(|e| e.node.clone()));
    }
    outcome
}

/// A Python callable as a hook.
pub struct PyHook {
    pub callable: Py<PyAny>,
    pub when: When,
}

impl Hook for PyHook {
    fn call(
        &self,
        inputs: &[Option<Tensor>],
        outputs: &[Option<Tensor>],
    ) -> crate::base::Result<Option<crate::tensor::Grads>> {
        Python::attach(|py| self.invoke(py, inputs, outputs)).map_err(super::errors::carry)
    }
    fn host(&self) -> *mut std::ffi::c_void {
        self.callable.as_ptr().cast()
    }
}

impl PyHook {
    fn invoke(
        &self,
        py: Python<'_>,
        inputs: &[Option<Tensor>],
        outputs: &[Option<Tensor>],
    ) -> PyResult<Option<crate::tensor::Grads>> {
        let object = |t: &Option<Tensor>| match t {
            Some(t) => wrap(py, t.clone()),
            None => Ok(py.None().into_bound(py)),
        };
        let list =
            |ts: &[Option<Tensor>]| PyTuple::new(py, ts.iter().map(object).collect::<PyResult<Vec<_>>>()?);
        let returned = match self.when {
            When::Output(_) | When::Accumulated => self.callable.bind(py).call1((object(&inputs[0])?,))?,
            When::Before => self.callable.bind(py).call1((list(outputs)?,))?,
            When::After => self.callable.bind(py).call1((list(inputs)?, list(outputs)?))?,
        };
        if returned.is_none() || self.when == When::Accumulated {
            return Ok(None);
        }
        let before = if self.when == When::Before { outputs } else { inputs };
        let values: Vec<Bound<'_, PyAny>> = match returned.cast::<PyTuple>() {
            Ok(tuple) if !matches!(self.when, When::Output(_)) => tuple.iter().collect(),
            _ => vec![returned],
        };
        if values.len() != before.len() {
            return Err(PyRuntimeError::new_err(format!(
                "hook has returned an incorrect number of values (got {}, but expected {})",
                values.len(),
                before.len()
            )));
        }
        let mut out = crate::tensor::Grads::new();
        for (value, old) in values.iter().zip(before) {
            out.push(check(value, old.as_ref(), self.callable.bind(py))?);
        }
        Ok(Some(out))
    }
}

/// A hook's replacement must be what it replaces.
fn check(
    value: &Bound<'_, PyAny>,
    old: Option<&Tensor>,
    hook: &Bound<'_, PyAny>,
) -> PyResult<Option<Tensor>> {
    if value.is_none() {
        return Ok(None);
    }
    let Ok(new) = value.cast::<PyTensor>() else {
        return Err(pyo3::exceptions::PyTypeError::new_err(format!(
            "expected Variable, but hook returned '{}'",
            value.get_type().name()?
        )));
    };
    let new = new.get().tensor.clone();
    let name = || hook.getattr("__name__").map_or_else(|_| "<unknown>".into(), |n| n.to_string());
    if let Some(old) = old {
        if new.dtype() != old.dtype() {
            return Err(PyRuntimeError::new_err(format!(
                "hook '{}' has changed the type of value (was {} got {})",
                name(),
                crate::tensor::type_string(old.dtype(), old.device()),
                crate::tensor::type_string(new.dtype(), new.device())
            )));
        }
        if new.shape() != old.shape() {
            return Err(PyRuntimeError::new_err(format!("hook '{}' has changed the size of value", name())));
        }
    }
    Ok(Some(new))
}

/// Hangs a Python callable on a node.
pub fn hang(node: &NodeRef, when: When, callable: Py<PyAny>) -> u64 {
    node.add_hook(when, Arc::new(PyHook { callable, when }))
}
