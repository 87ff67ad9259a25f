//! `as_strided`, and its use to make views again: the edge of a view, and the part of a base that it covers.

use crate::base::views::{checked_numel, may_overlap};
use crate::base::{ConjNeg, Dims, Error, Layout, Result};
use crate::operator::batch::Batch;
use crate::operator::bodies::conj_neg::{conj_neg_over, values};
use crate::operator::bodies::parts;
use crate::operator::pointwise::{Expr, Input, compute_type, execute, loops};
use crate::operator::primitives::complex_views::{NegView, conj, seen_as};
use crate::operator::primitives::constant;
use crate::operator::primitives::view_part::embed;
use crate::operator::primitives::views::{dims_of, ints, reshaped};
use crate::operator::row::Ints;
use crate::tensor::{Body, Edge, Meta, Node, Tensor, ViewFunc, mode};
use gradiron_macros::primitive;

/// Makes any view again, by its sizes and strides.
pub static VIEW_FUNC: ViewFunc = ViewFunc { history, values: part };

/// The edge of a view, made again from its base.
fn history(base: &Tensor, view: &Body) -> Option<Edge> {
    let edge = base.edge();
    match mode::recorded(|| part(base, view)) {
        Ok(seen) if edge.is_some() => return seen.history(),
        // The base is a constant by now, or is too small for the view: the view keeps a node, through which
        // gradients flow if they can.
        _ => {}
    }
    let (layout, input_layout) = (&view.layout, base.body().layout.clone());
    let mut node = AsStrided::draft(sizes(layout), strides(layout), Some(layout.offset as i64), input_layout);
    node.edges.push(edge);
    node.outputs.push(view.meta());
    Some(Edge { node: Node::publish(node), output: 0 })
}

/// The same view of a tensor with the layout of its base.
pub fn part(base: &Tensor, view: &Body) -> Result<Tensor> {
    let conj_neg = conj_neg_over(&base.body(), view);
    let mut shown = seen_as(base, view.dtype)?;
    if conj_neg.has(ConjNeg::NEG) {
        shown = NegView::call(&shown)?;
    }
    if !conj_neg.has(ConjNeg::CONJ) || shown.body().layout != view.layout {
        let (size, stride) = (sizes(&view.layout), strides(&view.layout));
        shown = as_strided(&shown, size, stride, Some(view.layout.offset as i64))?;
    }
    if conj_neg.has(ConjNeg::CONJ) { conj(&shown) } else { Ok(shown) }
}

/// The gradient of a tensor with this layout, from that of a `view` of its storage. If several of its
/// elements share memory, each gets an equal part.
fn through_storage(g: &Tensor, view: &Layout, input_layout: &Layout) -> Result<Tensor> {
    let first = view.offset.min(input_layout.offset);
    let from_first = |layout: &Layout| Layout { offset: layout.offset - first, ..layout.clone() };
    let (view, input_layout) = (from_first(view), from_first(input_layout));
    let size = Dims::from_slice(&[view.end().max(input_layout.end())]);
    let mut storage = embed(g, size.clone(), view)?;
    if may_overlap(&input_layout) {
        let ones = constant::ones(&input_layout.shape, g.dtype().to_real(), g.device())?;
        storage = DivideByCount::call(&storage, &embed(&ones, size, input_layout.clone())?)?;
    }
    as_strided(&storage, sizes(&input_layout), strides(&input_layout), Some(input_layout.offset as i64))
}

fn sizes(layout: &Layout) -> Ints {
    ints(&layout.shape)
}

fn strides(layout: &Layout) -> Ints {
    ints(&layout.strides)
}

/// Divides each element by the number of elements that share it.
static DIVIDE_BY_COUNT: Expr = Expr {
    key: "share",
    inputs: &["x", "count"],
    wgsl: "x / maximum(count, 1.0)",
    loops: loops!(Float; (x, count,) x / maximum(count, 1.0)),
    #[cfg(feature = "gpu")]
    by_parts: None,
    of_parts: None,
};

/// `DIVIDE_BY_COUNT` as an operator; `count` is real.
#[primitive(node = "DivBackward0", tangent = linear)]
impl DivideByCount {
    fn forward(input: &Tensor, #[constant] count: &Tensor) -> Result<Body> {
        let (x, count) = (values(&input.body())?, count.body());
        let out = Body::new(x.shape(), x.dtype, x.device())?;
        let divide = |out: &Body, x: &Body| {
            let count = count.with_layout(count.layout.broadcast_to(x.shape()));
            execute(
                DIVIDE_BY_COUNT.key,
                &DIVIDE_BY_COUNT,
                compute_type(x.dtype),
                out,
                &[Input::Body(x), Input::Body(&count)],
            )
        };
        if x.dtype.is_complex() {
            let (out, x) = (parts(&out)?, parts(&x)?);
            out.iter().zip(&x).try_for_each(|(out, x)| divide(out, x))?;
        } else {
            divide(&out, &x)?;
        }
        Ok(out)
    }
    fn d_input(g: &Tensor, count: &Tensor) -> Result<Tensor> {
        DivideByCount::call(g, count)
    }
    fn batch(b: &Batch, input: &Tensor, count: &Tensor) -> Result<Tensor> {
        DivideByCount::call(&b.full(input)?, &b.full(count)?).map(|t| b.wrap(t))
    }
}

/// The storage read with any sizes and strides.
#[primitive(copy, draft, tangent = linear, inplace = "AsStridedBackward1")]
impl AsStrided {
    fn forward(
        input: &Tensor,
        size: Ints,
        stride: Ints,
        storage_offset: Option<i64>,
        #[hidden] input_layout: Layout,
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
            offset: storage_offset.map_or(input_layout.offset, |o| o.max(0) as usize),
        };
        let count = body.storage.len() / body.dtype.size();
        let reach = layout.shape.iter().zip(&layout.strides).try_fold(layout.offset, |end, (&n, &s)| {
            n.checked_sub(1).map_or(Some(end), |steps| end.checked_add(steps.checked_mul(s)?))
        });
        if layout.numel() > 0 && reach.is_none_or(|end| end >= count) {
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
        input_layout: &Layout,
    ) -> Result<Tensor> {
        unstrided(g, &at, size, stride, storage_offset, input_layout)
    }
    /// Reads the storage of every example with the same sizes and strides, from the example's own start.
    fn batch(
        b: &Batch,
        input: &Tensor,
        size: Ints,
        stride: Ints,
        storage_offset: Option<i64>,
        _input_layout: Layout,
    ) -> Result<Tensor> {
        let x = b.full(input)?;
        let own = x.body().layout.strides.clone();
        let strides = ints(&own[..b.k()]).into_iter().chain(stride.iter().copied()).collect();
        as_strided(&x, b.lead(&size), strides, storage_offset).map(|t| b.wrap(t))
    }
}

/// The gradient of the input of `as_strided`, which had `input_layout`.
pub fn unstrided(
    g: &Tensor,
    at: &Meta,
    size: &[i64],
    stride: &[i64],
    storage_offset: Option<i64>,
    input_layout: &Layout,
) -> Result<Tensor> {
    let view = Layout {
        shape: dims_of(size)?,
        strides: stride.iter().map(|&s| s as usize).collect(),
        offset: storage_offset.map_or(input_layout.offset, |o| o as usize),
    };
    // The gradient of an empty view is zeros, without an edge.
    if view.numel() == 0 || at.shape.contains(&0) {
        return constant::zeros(&at.shape, g.dtype(), g.device());
    }
    if *input_layout != Layout::contiguous(&at.shape) || view.end() > checked_numel(&at.shape)? {
        return through_storage(g, &view, input_layout);
    }
    // A view, like the tensor that it is the gradient of.
    let whole = embed(g, at.shape.clone(), view)?;
    reshaped(&whole, &whole.shape())
}

/// The storage read with any sizes and strides.
pub fn as_strided(input: &Tensor, size: Ints, stride: Ints, storage_offset: Option<i64>) -> Result<Tensor> {
    let input_layout = input.body().layout.clone();
    AsStrided::call(input, size, stride, storage_offset, input_layout)
}
