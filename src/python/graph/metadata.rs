//! The graph as Python sees it, beside its nodes: gradient edges, what a node knows of its outputs, and the backward
//! that the calling thread is in.

use crate::arena::Id;
use crate::backward::graph_task;
use crate::base::Line;
use crate::python::errors;
use crate::python::function::apply::Ctx;
use crate::python::graph::collector;
use crate::python::graph::node;
use crate::python::graph::node::PyNode;
use crate::python::size::size_object;
use crate::python::tensor::methods::PyTensor;
use crate::python::types::{device_object, dtype_object};
use crate::tensor::{Edge, HostObject, Kind, Meta, Node, NodeRef, Tensor, node_hooks};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::ffi::c_void;
use std::sync::Arc;

/// The node behind a Python object: a node's own, or a Function's context.
pub fn node_of(object: &Bound<'_, PyAny>) -> Option<NodeRef> {
    match object.cast::<PyNode>() {
        Ok(node) => Some(node.get().node.clone()),
        Err(_) => object.cast::<Ctx>().ok().and_then(|ctx| Ctx::node(ctx)),
    }
}

/// A tensor, or a place in the graph: what gradients are asked of and for.
pub enum Place {
    Tensor(Tensor),
    Edge(Edge),
}

impl Place {
    /// Nothing for an object that is neither.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Place>> {
        if let Ok(tensor) = object.cast::<PyTensor>() {
            return Ok(Some(Place::Tensor(tensor.get().tensor.clone())));
        }
        let Ok(tuple) = object.cast::<PyTuple>() else { return Ok(None) };
        if tuple.is_exact_instance_of::<PyTuple>() || !object.hasattr("output_nr")? {
            return Ok(None);
        }
        let first = tuple.get_item(0)?;
        let Some(node) = node_of(&first) else {
            return Err(PyRuntimeError::new_err(format!(
                "GradientEdge's first object must be an autograd.graph.Node but got {}",
                first.get_type().name()?
            )));
        };
        let output: u32 = tuple.get_item(1)?.extract()?;
        if output as usize >= node.outputs.len() {
            return Err(PyRuntimeError::new_err(format!(
                "GradientEdge's second object is output {output}, but {} has {} outputs",
                node.name(),
                node.outputs.len()
            )));
        }
        Ok(Some(Place::Edge(Edge { node, output })))
    }

    /// Where its gradient flows to.
    pub fn edge(&self) -> Option<Edge> {
        match self {
            Place::Tensor(tensor) => tensor.edge(),
            Place::Edge(edge) => Some(edge.clone()),
        }
    }
    /// As [`Tensor::edge_for_hooks`]: for a place that gradients are asked for.
    pub fn edge_for_hooks(&self) -> Option<Edge> {
        match self {
            Place::Tensor(tensor) => tensor.edge_for_hooks(),
            Place::Edge(edge) => Some(edge.clone()),
        }
    }

    /// The place in words, and the line that made it.
    pub fn describe(&self) -> (String, Option<Line>) {
        match self {
            Place::Tensor(tensor) => tensor.describe(),
            Place::Edge(edge) => edge.node.describe(),
        }
    }

    pub fn meta(&self) -> Meta {
        match self {
            Place::Tensor(tensor) => tensor.body().meta(),
            Place::Edge(edge) => edge.node.outputs[edge.output as usize].clone(),
        }
    }
}

/// What a node expects of one gradient that it is given.
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

/// The dict that users keep at a node: the same one as long as the node lives.
pub fn metadata<'py>(py: Python<'py>, node: &Node) -> Bound<'py, PyDict> {
    let kept = node.hooks().metadata.clone();
    if let Some(found) = kept.as_ref().and_then(|m| m.as_any().downcast_ref::<Metadata>()) {
        return found.0.bind(py).clone();
    }
    let made = PyDict::new(py);
    if let Some(stack) = node.trace.as_ref().and_then(|trace| trace.stack.as_deref()) {
        // A traceback as Python's own functions give it: a text for each frame.
        let frames = stack.split("  File ").skip(1).map(|frame| format!("  File {frame}"));
        let list = pyo3::types::PyList::new(py, frames.collect::<Vec<_>>());
        // A new dictionary takes anything.
        let _ = list.and_then(|list| made.set_item("traceback_", list));
    }
    set_metadata(node, made.clone().unbind());
    made
}

/// Lets a node keep a user's notes.
pub fn set_metadata(node: &Node, notes: Py<PyDict>) {
    node.hooks().metadata = Some(Arc::new(Metadata(notes)));
}

/// The number of the backward that this thread is in, or -1.
#[pyfunction]
pub fn current_graph_task_id() -> i64 {
    graph_task::current().map_or(-1, |task| task.id as i64)
}

/// Whether the backward that this thread is in gives all leaves their `.grad`: it was asked for no `inputs`.
#[pyfunction]
pub fn is_whole_backward() -> bool {
    graph_task::current().is_none_or(|task| task.whole)
}

/// A node by name, for closures that hang on the node themselves and must not keep it.
#[pyclass(frozen, name = "NodeName", module = "gradiron._core")]
pub struct NodeName(Id<Node>);

/// The name of a node.
#[pyfunction]
pub fn node_name(node: &Bound<'_, PyAny>) -> PyResult<NodeName> {
    match node_of(node) {
        Some(node) => Ok(NodeName(node.id())),
        None => Err(PyTypeError::new_err("expected a node of the graph")),
    }
}

/// Whether the backward that this thread is in will run a node.
#[pyfunction]
pub fn will_execute(node: &NodeName) -> PyResult<bool> {
    let Some(task) = graph_task::current() else {
        return Err(PyRuntimeError::new_err(
            "_get_current_graph_task_exec_info should only be called during the backward pass",
        ));
    };
    match node.0.upgrade() {
        Some(node) => Ok(task.will_run(&node)?),
        None => Ok(false),
    }
}

/// Whether a leaf's first gradient is made to lie as the leaf does, in this thread.
#[pyfunction]
pub fn enforce_layouts(on: bool) {
    crate::backward::enforce_layouts(on);
}

/// Calls `hook(node)` with each node that this thread makes from now on.
#[pyfunction]
pub fn push_creation_hook(py: Python<'_>, hook: Py<PyAny>) -> PyResult<()> {
    if !hook.bind(py).is_callable() {
        return Err(PyTypeError::new_err(format!(
            "_push_node_creation_hook(): incompatible function arguments. The hook must be callable, but it is {}",
            hook.bind(py).get_type().name()?
        )));
    }
    collector::follow(py)?;
    node_hooks::push(Arc::new(move |node: &NodeRef| {
        let tell = |py: Python<'_>| {
            let returned = hook.bind(py).call1((node::node_object(py, node.clone())?,))?;
            if returned.is_none() {
                return Ok(());
            }
            let kind = returned.get_type().name()?;
            Err(PyRuntimeError::new_err(format!("node creation hook must return None, got {kind}")))
        };
        Python::attach(tell).map_err(errors::carry)
    }));
    Ok(())
}

/// Goes back to the hooks before the last one; raises what a hook raised where its operator could not.
#[pyfunction]
pub fn pop_creation_hook() -> PyResult<()> {
    Ok(node_hooks::pop()?)
}

/// Calls `callback()` when the backward that this thread is in has ended well.
#[pyfunction]
pub fn queue_callback(callback: Py<PyAny>) -> PyResult<()> {
    let call = move || Python::attach(|py| callback.call0(py).map(drop)).map_err(errors::carry);
    Ok(graph_task::queue(Box::new(call))?)
}
