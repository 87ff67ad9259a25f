//! A write through a view, in the history of its base. One node stands for it: the gradient of what was written goes
//! through the operator that wrote, the gradient of the rest passes by.

use super::arithmetic::neg;
use super::complex::{back_to, seen_as};
use super::place::{erase, put_part, read_part};
use super::pointwise::check_writable;
use super::unary::conj_physical;
use super::view::lazy_over;
use crate::base::{DType, Dims, Layout, Lazy, Result};
use crate::tensor::{Body, Derivative, Edge, Grads, Kind, Meta, Node, Slices, Tensor};

/// The history of `base` after `value` was written into the part that `view` is; `old` is what led to that part before.
pub fn history(base: &Tensor, view: &Body, value: Edge, old: Option<&Edge>) -> Edge {
    let meta = Meta { shape: base.shape(), dtype: base.dtype(), device: base.device() };
    let own =
        if let Kind::Custom(custom) = &value.node.kind { custom.dtype(value.output as usize) } else { None };
    let written = || value.node.outputs.get(value.output as usize).map(|written| written.dtype);
    let dtype = own.or_else(written).unwrap_or(meta.dtype);
    let layout = relative(base, &view.layout, dtype);
    let lazy = lazy_over(&base.body(), view);
    let edge = base.edge();
    let mut node = if continues(&value, old, edge.is_some()) {
        let mut node =
            Node::draft(Kind::Slices(Box::new(Slices { layout, dtype, lazy, writer: value.node.clone() })));
        node.edges = std::iter::once(edge).chain(value.node.edges.iter().skip(1).cloned()).collect();
        node
    } else {
        let mut node = Node::draft(Kind::Op(&COPY_SLICES));
        node.edges = smallvec::smallvec![edge, Some(value)];
        node.params = Some(Box::new((layout, dtype, lazy)));
        node
    };
    node.outputs.push(meta);
    Edge { node: Node::publish(node), output: 0 }
}

/// Whether the node that wrote takes what was there before as its first input: then the base's old history can take the
/// place of that.
fn continues(value: &Edge, old: Option<&Edge>, base_wants: bool) -> bool {
    match (value.node.edges.first(), old) {
        (Some(Some(first)), Some(old)) => first.node.ptr_eq(&old.node) && first.output == old.output,
        (Some(None), None) => !base_wants,
        _ => false,
    }
}

/// For an operator that was put together of several: its last node is an input like any other.
static COPY_SLICES: Derivative = Derivative {
    name: Slices::NAME,
    apply: |step| {
        let mut grads: Grads = smallvec::smallvec![None, None];
        let (Some(g), (layout, dtype, lazy)) = (step.grad(0), step.params::<(Layout, DType, Lazy)>()?) else {
            return Ok(grads);
        };
        // The written operator's derivative belongs to it, and goes with it.
        step.check_alive()?;
        if step.wants(0) {
            grads[0] = Some(around(g, layout, *dtype, None)?);
        }
        if step.wants(1) {
            grads[1] = Some(part(g, layout, *dtype, *lazy)?);
        }
        Ok(grads)
    },
};

/// The gradient of the part that was written.
pub fn part(g: &Tensor, layout: &Layout, dtype: DType, lazy: Lazy) -> Result<Tensor> {
    turned(read_part(&seen_as(g, dtype)?, layout.clone())?, lazy)
}

/// The gradient of elements from that of what they are read as, and back.
pub fn turned(g: Tensor, lazy: Lazy) -> Result<Tensor> {
    let g = if lazy.has(Lazy::CONJ) { conj_physical(&g)? } else { g };
    if lazy.has(Lazy::NEG) { neg(&g) } else { Ok(g) }
}

/// The gradient of the base before the write: of the part `inner`, or none.
pub fn around(g: &Tensor, layout: &Layout, dtype: DType, inner: Option<&Tensor>) -> Result<Tensor> {
    let seen = seen_as(g, dtype)?;
    check_writable(&seen.body().with_layout(layout.clone()))?;
    if layout.numel() > 0 {
        super::scatter::within(layout, seen.dtype().size(), seen.numel() * seen.dtype().size())?;
    }
    let whole = match inner {
        Some(inner) => put_part(&seen, inner, layout.clone())?,
        None => erase(&seen, layout.clone())?,
    };
    back_to(whole, g.dtype(), &g.shape())
}

/// A view's layout as it would lie over a dense copy of its base.
fn relative(base: &Tensor, layout: &Layout, dtype: DType) -> Layout {
    let mut body = base.body().clone();
    if dtype != body.dtype && body.dtype.is_complex() {
        body = body.as_parts();
    }
    if dtype != body.dtype && dtype.is_complex() && body.layout != Layout::contiguous(body.shape()) {
        // In whole numbers: found among the parts, whose pairs stay together.
        let parts = relative(base, &layout.as_parts(), body.dtype);
        return Layout {
            shape: layout.shape.clone(),
            strides: parts.strides[..layout.ndim()].iter().map(|s| s / 2).collect(),
            offset: parts.offset / 2,
        };
    }
    let dense = Layout::contiguous(body.shape());
    if body.layout == dense {
        return layout.clone();
    }
    // The base is not dense itself: find each stride and the offset among the base's own.
    let mut out = Layout { shape: layout.shape.clone(), strides: Dims::new(), offset: 0 };
    let locate = |mut distance: usize| {
        let mut order: Vec<usize> = (0..body.layout.ndim()).filter(|&d| body.layout.strides[d] > 0).collect();
        order.sort_unstable_by_key(|&d| std::cmp::Reverse(body.layout.strides[d]));
        let mut place = 0;
        for d in order {
            place += distance / body.layout.strides[d] * dense.strides[d];
            distance %= body.layout.strides[d];
        }
        place
    };
    out.offset = locate(layout.offset.saturating_sub(body.layout.offset));
    out.strides = layout.strides.iter().map(|&s| locate(s)).collect();
    out
}
