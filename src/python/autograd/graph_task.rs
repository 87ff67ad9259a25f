//! The backward that the calling thread runs, and hooks on the creation of nodes.

use crate::arena::Id;
use crate::backward::graph_task;
use crate::python::autograd::gradient_edge::node_of;
use crate::python::errors;
use crate::python::graph::node;
use crate::python::objects::ClassName;
use crate::python::wrapper::collector;
use crate::tensor::{Node, NodeRef, node_hooks};
use gradiron_macros::pyfunction;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use std::sync::Arc;

/// Returns the number of the running backward of this thread, or -1.
#[pyfunction]
pub fn current_graph_task_id() -> i64 {
    graph_task::current().map_or(-1, |task| task.id as i64)
}

/// Returns true if the running backward of this thread accumulates into all leaves: it was called without
/// `inputs`.
#[pyfunction]
pub fn is_whole_backward() -> bool {
    graph_task::current().is_none_or(|task| task.whole)
}

/// A node's id, for closures that the node holds and that must not keep it alive.
#[pyclass(frozen, name = "NodeName", module = "gradiron._core")]
pub struct NodeName(Id<Node>);

/// Returns the id of a node.
#[pyfunction]
pub fn node_name(node: &Bound<'_, PyAny>) -> PyResult<NodeName> {
    match node_of(node) {
        Some(node) => Ok(NodeName(node.id())),
        None => Err(PyTypeError::new_err("expected a node of the graph")),
    }
}

/// Returns true if the running backward of this thread will execute a node.
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

/// Sets whether a leaf's first gradient gets the strides of the leaf, in this thread.
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
            hook.bind(py).class_name()?
        )));
    }
    collector::follow(py)?;
    node_hooks::push(Arc::new(move |node: &NodeRef| {
        let tell = |py: Python<'_>| {
            let returned = hook.bind(py).call1((node::node_object(py, node.clone())?,))?;
            if returned.is_none() {
                return Ok(());
            }
            let kind = returned.class_name()?;
            Err(PyRuntimeError::new_err(format!("node creation hook must return None, got {kind}")))
        };
        Python::attach(tell).map_err(errors::carry)
    }));
    Ok(())
}

/// Removes the innermost creation hook; raises the error of a hook if its operator could not.
#[pyfunction]
pub fn pop_creation_hook() -> PyResult<()> {
    Ok(node_hooks::pop()?)
}

/// Calls `callback()` after the running backward of this thread ends without an error.
#[pyfunction]
pub fn queue_callback(callback: Py<PyAny>) -> PyResult<()> {
    let call = move || Python::attach(|py| callback.call0(py).map(drop)).map_err(errors::carry);
    Ok(graph_task::queue(Box::new(call))?)
}
