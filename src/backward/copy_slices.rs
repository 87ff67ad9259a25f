//! The turn of a base that was written through a view: the operator that wrote gets its part of the gradient, and what it
//! makes of that for the old values takes the part's place.

use super::match_gradient::fit;
use crate::base::Result;
use crate::operator::copy_slices::{around, part, turned};
use crate::tensor::{Grads, NodeRef, Slices, Tensor, freed_error};

/// What a derivative is to do.
pub struct How {
    pub wanted: u64,
    pub retain_graph: bool,
    pub create_graph: bool,
}

pub fn derive(node: &NodeRef, written: &Slices, grads: &[Option<Tensor>], how: &How) -> Result<Grads> {
    let Slices { place, lazy, writer } = written;
    let Some(Some(grad)) = grads.first() else {
        node.saves().freed |= !how.retain_graph;
        return Ok(Grads::from_elem(None, node.edges.len()));
    };
    if node.saves().freed {
        return Err(freed_error(Some(node)));
    }
    place.check(grad.dtype())?;
    let inner = [Some(part(grad, place, *lazy)?)];
    let mut results = super::derive(writer, &inner, how.wanted, true, how.create_graph)?;
    results.resize(node.edges.len(), None);
    let before = match (results[0].take(), writer.edges.first()) {
        (Some(before), Some(Some(edge))) => Some(turned(fit(writer, 0, edge, before)?, *lazy)?),
        _ => None,
    };
    if how.wanted & 1 == 1 {
        results[0] = Some(around(grad, place, before.as_ref())?);
    }
    if !how.retain_graph {
        // The writer belongs to this node, and goes with its first run that succeeds.
        writer.release();
        node.saves().freed = true;
    }
    Ok(results)
}
