//! Views by sizes and strides, and what is told by them: the history of a view anew, and its part of a base.

use crate::base::views::{checked_numel, may_overlap};
use crate::operator::conj_neg::lazy_over;
use crate::operator::inplace_view::become_view;
use crate::operator::prelude::*;
use crate::operator::view_part::embed;
use crate::ops::shape::view::{dims_of, ints, reshaped};
use crate::tensor::{Edge, Node, ViewRules, mode};

/// How histories of views are rewritten after an in-place write.
pub static RULES: ViewRules = ViewRules { regenerate, scatter: crate::operator::copy_slices::history, part };

/// The history of a view, anew: its layout read from its base.
fn regenerate(base: &Tensor, view: &Body) -> Option<Edge> {
    let edge = base.edge();
    match mode::recorded(|| part(base, view)) {
        Ok(seen) if edge.is_some() => return seen.history(),
        // The base is a constant by now, or shows too little for the view: the node stays, and what can flows through it.
        _ => {}
    }
    let (layout, lies) = (&view.layout, base.body().layout.clone());
    let mut node = AsStrided::draft(sizes(layout), strides(layout), Some(layout.offset as i64), lies);
    node.edges.push(edge);
    node.outputs.push(view.meta());
    Some(Edge { node: Node::publish(node), output: 0 })
}

/// What a view shows of a tensor that lies as its base does.
pub fn part(base: &Tensor, view: &Body) -> Result<Tensor> {
    let conj_neg = lazy_over(&base.body(), view);
    let mut shown = crate::ops::complex::seen_as(base, view.dtype)?;
    if conj_neg.has(ConjNeg::NEG) {
        shown = crate::ops::complex::_neg_view(&shown)?;
    }
    if !conj_neg.has(ConjNeg::CONJ) || shown.body().layout != view.layout {
        let (size, stride) = (sizes(&view.layout), strides(&view.layout));
        shown = as_strided(&shown, size, stride, Some(view.layout.offset as i64))?;
    }
    if conj_neg.has(ConjNeg::CONJ) { crate::ops::complex::conj(&shown) } else { Ok(shown) }
}

/// The gradient of a tensor that lies as `lies` from that of a view of its storage: what both reach, at equal shares where
/// several elements lie at one place.
fn through_storage(g: &Tensor, view: &Layout, lies: &Layout) -> Result<Tensor> {
    let first = view.offset.min(lies.offset);
    let from_first = |layout: &Layout| Layout { offset: layout.offset - first, ..layout.clone() };
    let (view, lies) = (from_first(view), from_first(lies));
    let room = Dims::from_slice(&[view.end().max(lies.end())]);
    let mut storage = embed(g, room.clone(), view)?;
    if may_overlap(&lies) {
        let ones = crate::ops::creation::create::full(&lies.shape, Scalar::Int(1), g.dtype(), g.device())?;
        let shares = embed(&ones, room, lies.clone())?;
        storage = crate::ops::elementwise::arithmetic::div(
            &storage,
            &crate::ops::elementwise::arithmetic::maximum(&shares, 1.0)?,
        )?;
    }
    as_strided(&storage, sizes(&lies), strides(&lies), Some(lies.offset as i64))
}

pub(super) fn sizes(layout: &Layout) -> Ints {
    ints(&layout.shape)
}

pub(super) fn strides(layout: &Layout) -> Ints {
    ints(&layout.strides)
}

/// The storage read with any sizes and strides; `lies` is the input's own layout.
#[primitive(copy, draft, tangent = linear, inplace = "AsStridedBackward1")]
impl AsStrided {
    fn forward(
        input: &Tensor,
        size: Ints,
        stride: Ints,
        storage_offset: Option<i64>,
        #[hidden] lies: Layout,
    ) -> Result<Layout> {
        let body = input.body();
        if size.len() != stride.len() {
            return Err(Error::runtime("mismatch in length of strides and shape"));
        }
        if stride.iter().any(|&s| s < 0) {
            return Err(Error::runtime(format!(
                "as_strided: Negative strides are not supported at the moment, got strides: {:?}",
                stride.as_slice()
            )));
        }
        if let Some(bad) = storage_offset.filter(|&o| o < 0) {
            return Err(Error::runtime(format!("Tensor: invalid storage offset {bad}")));
        }
        let layout = Layout {
            shape: dims_of(&size)?,
            strides: stride.iter().map(|&s| s as usize).collect(),
            offset: storage_offset.map_or(lies.offset, |o| o.max(0) as usize),
        };
        let room = body.storage.len() / body.dtype.size();
        let reach = layout.shape.iter().zip(&layout.strides).try_fold(layout.offset, |end, (&n, &s)| {
            n.checked_sub(1).map_or(Some(end), |steps| end.checked_add(steps.checked_mul(s)?))
        });
        if layout.numel() > 0 && reach.is_none_or(|end| end >= room) {
            return Err(Error::runtime(format!(
                "setStorage: sizes {:?}, strides {:?}, storage offset {}, and itemsize {} requiring a storage size of {} \
                 are out of bounds for storage of size {}",
                size.as_slice(),
                stride.as_slice(),
                layout.offset,
                body.dtype.size(),
                reach.map_or(0, |end| (end + 1) * body.dtype.size()),
                body.storage.len()
            )));
        }
        Ok(layout)
    }
    fn d_input(
        g: &Tensor,
        at: Meta,
        size: &Ints,
        stride: &Ints,
        storage_offset: Option<i64>,
        lies: &Layout,
    ) -> Result<Tensor> {
        unstrided(g, &at, size, stride, storage_offset, lies)
    }
    /// Every sample's storage is read with the same sizes and strides, from its own start.
    fn batch(
        b: &Batch,
        input: &Tensor,
        size: Ints,
        stride: Ints,
        storage_offset: Option<i64>,
        _lies: Layout,
    ) -> Result<Tensor> {
        let x = b.full(input)?;
        let own = x.body().layout.strides.clone();
        let strides = ints(&own[..b.k()]).into_iter().chain(stride.iter().copied()).collect();
        as_strided(&x, b.lead(&size), strides, storage_offset).map(|t| b.wrap(t))
    }
}

/// The gradient of a tensor that lies as `lies` from that of what was read of its storage with other sizes and strides.
pub fn unstrided(
    g: &Tensor,
    at: &Meta,
    size: &[i64],
    stride: &[i64],
    storage_offset: Option<i64>,
    lies: &Layout,
) -> Result<Tensor> {
    let view = Layout {
        shape: dims_of(size)?,
        strides: stride.iter().map(|&s| s as usize).collect(),
        offset: storage_offset.map_or(lies.offset, |o| o as usize),
    };
    // Of nothing at all it is zeros, which have no history.
    if view.numel() == 0 || at.shape.contains(&0) {
        return crate::ops::creation::create::zeros(&at.shape, g.dtype(), g.device());
    }
    if *lies != Layout::contiguous(&at.shape) || view.end() > checked_numel(&at.shape)? {
        return through_storage(g, &view, lies);
    }
    // Like what it is the gradient of, a view of a storage.
    let whole = embed(g, at.shape.clone(), view)?;
    reshaped(&whole, &whole.shape())
}

/// The storage read with any sizes and strides (a view).
#[operator(
    function,
    method,
    sample = "fixed([(3, 4)], lambda x: (x if x.is_contiguous() else x.contiguous()).as_strided((2, 3), (1, 2), 1))"
)]
pub fn as_strided(input: &Tensor, size: Ints, stride: Ints, storage_offset: Option<i64>) -> Result<Tensor> {
    let lies = input.body().layout.clone();
    AsStrided::call(input, size, stride, storage_offset, lies)
}

/// The storage read with any sizes and strides by the tensor itself.
#[inplace(as_strided)]
pub fn as_strided_(input: &Tensor, size: Ints, stride: Ints, storage_offset: Option<i64>) -> Result<()> {
    become_view(input, |x| as_strided(x, size, stride, storage_offset))
}
