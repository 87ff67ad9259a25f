//! Tensors, nodes, contexts and gradient edges as Python names places of the graph.

use crate::python::function::context::Ctx;
use crate::python::graph::node::{PyNode, node_object, view_object};
use crate::python::graph::tensor_or_edge::TensorOrEdge;
use crate::python::objects::ClassName;
use crate::python::wrapper::class::PyTensor;
use crate::tensor::{Edge, Kind, NodeRef};
use gradiron_macros::pyfunction;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Returns the node of a Python object: a `Node`, or a Function's context.
pub fn node_of(object: &Bound<'_, PyAny>) -> Option<NodeRef> {
    match object.cast::<PyNode>() {
        Ok(node) => Some(node.get().node.clone()),
        Err(_) => object.cast::<Ctx>().ok().and_then(|ctx| Ctx::node(ctx)),
    }
}

/// Reads a tensor or a `GradientEdge`; None for other objects.
pub fn place_of(object: &Bound<'_, PyAny>) -> PyResult<Option<TensorOrEdge>> {
    if let Ok(tensor) = object.cast::<PyTensor>() {
        return Ok(Some(TensorOrEdge::Tensor(tensor.get().tensor.clone())));
    }
    let Ok(tuple) = object.cast::<PyTuple>() else { return Ok(None) };
    if tuple.is_exact_instance_of::<PyTuple>() || !object.hasattr("output_nr")? {
        return Ok(None);
    }
    let first = tuple.get_item(0)?;
    let Some(node) = node_of(&first) else {
        return Err(PyRuntimeError::new_err(format!(
            "GradientEdge's first object must be an autograd.graph.Node but got {}",
            first.class_name()?
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
    Ok(Some(TensorOrEdge::Edge(Edge { node, output })))
}

/// Returns the (node, output) to which a tensor's gradient flows, and an object that keeps a Function's
/// node alive, since its context does not.
#[pyfunction]
pub fn gradient_edge<'py>(
    tensor: &Bound<'py, PyTensor>,
) -> PyResult<(Bound<'py, PyAny>, u32, Option<Bound<'py, PyAny>>)> {
    let py = tensor.py();
    match tensor.get().tensor.edge() {
        Some(Edge { node, output }) => {
            let own = matches!(node.kind, Kind::Custom(_));
            let keeper = own.then(|| view_object(py, node.clone())).transpose()?;
            Ok((node_object(py, node)?, output, keeper))
        }
        None => Err(PyRuntimeError::new_err(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients",
        )),
    }
}

/// Returns true if the tensor has an edge in the graph, as a result or as a leaf that accumulates.
#[pyfunction]
pub fn has_edge(tensor: &Bound<'_, PyTensor>) -> bool {
    tensor.get().tensor.edge().is_some()
}
