//! Roots and inputs of a backward: tensors or edges, and why one may have no history.

use crate::base::{Guidance, Line, Result};
use crate::storage::reserve;
use crate::tensor::{Edge, Meta, Tensor, mode};
use pyo3::prelude::*;

/// A tensor or an edge of the graph: a root or an input of a backward.
pub enum TensorOrEdge {
    Tensor(Tensor),
    Edge(Edge),
}

impl TensorOrEdge {
    /// Where its gradient flows to.
    pub fn edge(&self) -> Result<Option<Edge>> {
        match self {
            TensorOrEdge::Tensor(tensor) => tensor.edge_of_many(),
            TensorOrEdge::Edge(edge) => Ok(Some(edge.clone())),
        }
    }

    /// As [`Tensor::edge_for_hooks`], for an input.
    pub fn edge_for_hooks(&self) -> Result<Option<Edge>> {
        reserve::check()?;
        Ok(match self {
            TensorOrEdge::Tensor(tensor) => tensor.edge_for_hooks(),
            TensorOrEdge::Edge(edge) => Some(edge.clone()),
        })
    }

    /// Its description for messages, and the line of the program that made it.
    pub fn describe(&self) -> (String, Option<Line>) {
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

/// Why a tensor has no history.
pub fn unrecorded(place: &TensorOrEdge) -> &'static str {
    if !place.meta().dtype.is_float() {
        "compute it in a floating point dtype: integers and truth values have no gradients"
    } else if !mode::grad_enabled() {
        "leave no_grad() before computing it: nothing is recorded there"
    } else {
        "call requires_grad_() on the inputs before computing it, and look for no_grad(), detach(), .data or a conversion \
         to integers on the way"
    }
}

/// An error about a tensor, with what made it and what to do.
pub fn guided(message: &str, label: &'static str, place: &TensorOrEdge, advice: String) -> PyErr {
    let (text, line) = place.describe();
    Guidance::new(message).note(label, text, line).advice(advice).done().into()
}

pub fn no_hook(tensor: &Tensor) -> PyErr {
    let place = TensorOrEdge::Tensor(tensor.clone());
    let message = "cannot register a hook on a tensor that doesn't require gradient";
    guided(message, "tensor", &place, unrecorded(&place).into())
}
