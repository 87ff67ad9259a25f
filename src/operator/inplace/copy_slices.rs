//! A write through a view, in the graph of its base. It is one node: the gradient of the written part goes
//! through the operator that wrote, and the gradient of the rest goes to the base unchanged.

use crate::base::{ConjNeg, Result};
use crate::operator::bodies::conj_neg::conj_neg_over;
use crate::operator::bodies::overlap::refuse_expanded;
use crate::operator::primitives::complex_views::with_conj_neg;
use crate::operator::primitives::view_part::{check_part, erase, put_part, read_part};
use crate::tensor::{Body, CopySlices, Derivative, Edge, Grads, Kind, Meta, Node, Part, Tensor};
use std::sync::Arc;

/// The new edge of `base` after `value` was written into the part that `view` covers; `old` is the view's
/// edge before the write.
pub fn history(base: &Tensor, view: &Body, value: Edge, old: Option<&Edge>) -> Edge {
    let meta = Meta { shape: base.shape(), dtype: base.dtype(), device: base.device() };
    let place = Part::between(&base.body(), view);
    let conj_neg = conj_neg_over(&base.body(), view);
    let edge = base.edge();
    let mut node = if continues(&value, old, edge.is_some()) {
        let mut node = Node::draft(Kind::CopySlices(Box::new(CopySlices {
            place,
            conj_neg,
            writer: value.node.clone(),
        })));
        node.edges = std::iter::once(edge).chain(value.node.edges.iter().skip(1).cloned()).collect();
        node
    } else {
        let mut node = Node::draft(Kind::Op(&COPY_SLICES));
        node.edges = smallvec::smallvec![edge, Some(value)];
        node.params = Some(Arc::new((place, conj_neg)));
        node
    };
    node.outputs.push(meta);
    Edge { node: Node::publish(node), output: 0 }
}

/// True if the first input of the writing node is the view's old value. Then the base's old edge can take
/// that place.
fn continues(value: &Edge, old: Option<&Edge>, base_wants: bool) -> bool {
    match (value.node.edges.first(), old) {
        (Some(Some(first)), Some(old)) => first.node.ptr_eq(&old.node) && first.output == old.output,
        (Some(None), None) => !base_wants,
        _ => false,
    }
}

/// For a write composed of several operators: its last node is an ordinary input.
static COPY_SLICES: Derivative = Derivative {
    facts: None,
    flops: None,
    name: CopySlices::NAME,
    apply: |step| {
        let mut grads: Grads = smallvec::smallvec![None, None];
        let (Some(g), (place, conj_neg)) = (step.grad(0), step.params::<(Part, ConjNeg)>()?) else {
            return Ok(grads);
        };
        // The operator that wrote may be freed together with its graph, so its saved values must be alive.
        step.check_alive()?;
        check_part(place, g.dtype())?;
        if step.wants(0) {
            grads[0] = Some(around(g, place, None)?);
        }
        if step.wants(1) {
            grads[1] = Some(part(g, place, *conj_neg)?);
        }
        Ok(grads)
    },
};

/// The gradient of the part that was written.
pub fn part(g: &Tensor, place: &Part, conj_neg: ConjNeg) -> Result<Tensor> {
    with_conj_neg(read_part(g, place.clone())?, conj_neg)
}

/// The gradient of the base before the write, with `inner` in the written part, or zeros.
pub fn around(g: &Tensor, place: &Part, inner: Option<&Tensor>) -> Result<Tensor> {
    if place.layout.is_expanded() {
        return Err(refuse_expanded());
    }
    match inner {
        Some(inner) => put_part(g, inner, place.clone()),
        None => erase(g, place.clone()),
    }
}
