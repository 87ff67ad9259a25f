//! Roots and inputs of a backward: tensors or edges, and the reasons why one may not be in the graph.

use crate::base::{Guidance, Result, SourceLine};
use crate::storage::reserve;
use crate::tensor::{Edge, Meta, Tensor, mode};
use pyo3::prelude::*;

/// A root or an input of a backward.
pub enum TensorOrEdge {
    Tensor(Tensor),
    Edge(Edge),
}

impl TensorOrEdge {
    /// Returns the edge to which its gradient flows.
    pub fn edge(&self) -> Result<Option<Edge>> {
        match self {
            TensorOrEdge::Tensor(tensor) => tensor.edge_of_many(),
            TensorOrEdge::Edge(edge) => Ok(Some(edge.clone())),
        }
    }

    /// Like [`Tensor::edge_for_hooks`], for an input.
    pub fn edge_for_hooks(&self) -> Result<Option<Edge>> {
        reserve::check()?;
        Ok(match self {
            TensorOrEdge::Tensor(tensor) => tensor.edge_for_hooks(),
            TensorOrEdge::Edge(edge) => Some(edge.clone()),
        })
    }

    /// Describes it for messages, with the source line that created it.
    pub fn describe(&self) -> (String, Option<SourceLine>) {
        match self {
            TensorOrEdge::Tensor(tensor) => tensor.describe(),
            TensorOrEdge::Edge(edge) => edge.node.describe(),
        }
    }

    pub fn meta(&self) -> Meta {
        match self {
            TensorOrEdge::Tensor(tensor) => tensor.body().meta(),
            TensorOrEdge::Edge(edge) => edge.node.outputs[edge.output as usize].clone(),
        }
    }
}

/// Advises what to do about a tensor that is not in the graph.
pub fn unrecorded(place: &TensorOrEdge) -> &'static str {
    if !place.meta().dtype.is_float() {
        "compute it in a floating point dtype: integers and bools have no gradients"
    } else if !mode::grad_enabled() {
        "leave no_grad() before computing it: nothing is recorded there"
    } else {
        "call requires_grad_() on the inputs before computing it, and look for no_grad(), detach(), .data or a conversion \
         to integers on the way"
    }
}

/// Makes an error about a tensor, with where it was made and what to do.
pub fn guided(message: &str, label: &'static str, place: &TensorOrEdge, advice: String) -> PyErr {
    let (text, line) = place.describe();
    Guidance::new(message).note(label, text, line).advice(advice).done().into()
}

pub fn no_hook(tensor: &Tensor) -> PyErr {
    let place = TensorOrEdge::Tensor(tensor.clone());
    let message = "cannot register a hook on a tensor that doesn't require gradient";
    guided(message, "tensor", &place, unrecorded(&place).into())
}
