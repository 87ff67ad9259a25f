//! The backward of a write through a view, as a node in the graph of the base: the operator that wrote gets
//! the view's part of the gradient, and the gradient that it returns for the old values replaces that part.

use super::match_gradient::fit;
use crate::base::Result;
use crate::operator::inplace::copy_slices::{around, part};
use crate::operator::primitives::complex_views::with_conj_neg;
use crate::operator::primitives::view_part::check_part;
use crate::tensor::{CopySlices, Grads, NodeRef, Tensor, freed_error};

pub struct DeriveOptions {
    pub wanted: u64,
    pub retain_graph: bool,
    pub create_graph: bool,
}

pub fn derive(
    node: &NodeRef,
    written: &CopySlices,
    grads: &[Option<Tensor>],
    options: &DeriveOptions,
) -> Result<Grads> {
    let CopySlices { place, conj_neg, writer } = written;
    let Some(Some(grad)) = grads.first() else {
        node.saves().freed |= !options.retain_graph;
        return Ok(Grads::from_elem(None, node.edges.len()));
    };
    if node.saves().freed {
        return Err(freed_error(Some(node)));
    }
    check_part(place, grad.dtype())?;
    let inner = [Some(part(grad, place, *conj_neg)?)];
    let mut results = super::derive(writer, &inner, options.wanted, true, options.create_graph)?;
    results.resize(node.edges.len(), None);
    let before = match (results[0].take(), writer.edges.first()) {
        (Some(before), Some(Some(edge))) => Some(with_conj_neg(fit(writer, 0, edge, before)?, *conj_neg)?),
        _ => None,
    };
    if options.wanted & 1 == 1 {
        results[0] = Some(around(grad, place, before.as_ref())?);
    }
    if !options.retain_graph {
        // The writer belongs to this node, and is freed when the node first succeeds.
        writer.release();
        node.saves().freed = true;
    }
    Ok(results)
}
