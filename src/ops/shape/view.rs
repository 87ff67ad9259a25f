//! Views: new layouts over the same bytes. Their derivatives put a gradient back where it came from.

use crate::base::views::{checked_numel, infer_shape, may_overlap};
use crate::operator::inplace_view::become_view;
use crate::operator::prelude::*;
use crate::operator::view_part::embed;
use crate::tensor::{Derivative, Edge, Kind, Node, ViewRules, Viewing, any_requires_grad, mode};

/// The bytes of `source` under another layout, as a view without history.
pub fn seen(source: &Tensor, layout: Layout) -> Tensor {
    Tensor::view_of(source, source.body().with_layout(layout), None, Viewing::Plain, &RULES)
}

/// How histories of views are rewritten after an in-place write.
pub static RULES: ViewRules = ViewRules { regenerate, scatter: crate::operator::copy_slices::history, part };

/// The history of a view, anew: its layout read from its base.
fn regenerate(base: &Tensor, view: &Body) -> Option<Edge> {
    let edge = base.edge();
    let derivative = match mode::recorded(|| part(base, view)) {
        Ok(seen) if edge.is_some() => return seen.history(),
        Ok(_) => &OF_A_CONSTANT,
        // The base shows other memory by now, too little for the view.
        Err(_) => &OUT_OF_REACH,
    };
    let mut node = Node::draft(Kind::Op(derivative));
    node.edges.push(edge);
    node.params = Some(Box::new((view.layout.clone(), base.body().layout.clone())));
    node.outputs.push(view.meta());
    Some(Edge { node: Node::publish(node), output: 0 })
}

/// Of a view that had a history, when its base was detached and written.
static OF_A_CONSTANT: Derivative =
    Derivative { facts: None, name: "AsStridedBackward0", apply: |_| Ok(smallvec::smallvec![None]) };

/// Of a view that reaches beyond what its base shows by now.
static OUT_OF_REACH: Derivative = Derivative {
    facts: None,
    name: "AsStridedBackward0",
    apply: |step| {
        let (Some(g), true) = (step.grad(0), step.wants(0)) else { return Ok(smallvec::smallvec![None]) };
        let (view, base) = step.params::<(Layout, Layout)>()?;
        Ok(smallvec::smallvec![Some(through_storage(g, view, base)?)])
    },
};

/// What a view shows of a tensor that lies as its base does.
pub fn part(base: &Tensor, view: &Body) -> Result<Tensor> {
    let lazy = lazy_over(&base.body(), view);
    let mut shown = crate::ops::complex::seen_as(base, view.dtype)?;
    if lazy.has(Lazy::NEG) {
        shown = crate::ops::complex::_neg_view(&shown)?;
    }
    if !lazy.has(Lazy::CONJ) || shown.body().layout != view.layout {
        let (size, stride) = (sizes(&view.layout), strides(&view.layout));
        shown = as_strided(&shown, size, stride, Some(view.layout.offset as i64))?;
    }
    if lazy.has(Lazy::CONJ) { crate::ops::complex::conj(&shown) } else { Ok(shown) }
}

/// What is to be done to the elements of a base to read those of a view of it.
pub fn lazy_over(base: &Body, view: &Body) -> Lazy {
    match base.dtype == view.dtype || !base.lazy.has(Lazy::CONJ) {
        true => base.lazy.then(view.lazy),
        // A view of parts is one of what the base is the conjugate of.
        false => Lazy::NOTHING,
    }
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

pub fn ints(dims: &[usize]) -> Ints {
    dims.iter().map(|&d| d as i64).collect()
}

fn sizes(layout: &Layout) -> Ints {
    ints(&layout.shape)
}

fn strides(layout: &Layout) -> Ints {
    ints(&layout.strides)
}

/// The user's sizes as dimensions.
pub fn dims_of(sizes: &[i64]) -> Result<Dims> {
    let dims = sizes
        .iter()
        .map(|&n| {
            usize::try_from(n).map_err(|_| {
                Error::runtime(format!("Trying to create tensor with negative dimension {n}: {sizes:?}"))
            })
        })
        .collect::<Result<Dims>>()?;
    checked_numel(&dims)?;
    Ok(dims)
}

/// Those dimensions of `shape` put in again that have size 1 and are `squeezed`.
fn unsqueezed(g: Tensor, shape: &[usize], squeezed: impl Fn(usize) -> bool) -> Result<Tensor> {
    let mut dims = (0..shape.len()).filter(|&d| shape[d] == 1 && squeezed(d));
    dims.try_fold(g, |g, d| unsqueeze(&g, d as i64))
}

/// The gradient of a dense tensor from that of the part of it that `view` shows.
pub fn put_back(g: &Tensor, at: Meta, view: impl FnOnce(&Layout) -> Result<Layout>) -> Result<Tensor> {
    let place = view(&Layout::contiguous(&at.shape))?;
    embed(g, at.shape, place)
}

/// The dimensions of a list, counted from the front.
fn wrapped(dims: &[i64], rank: usize) -> Result<Dims> {
    dims.iter().map(|&d| wrap_dim(d, rank)).collect()
}

/// The samples squeezed: their dimensions of size 1 that are `chosen`.
fn squeezed(b: &Batch, x: &Tensor, chosen: impl Fn(usize) -> bool) -> Result<Tensor> {
    let shape = x.shape();
    let dims: Ints =
        (b.k()..shape.len()).filter(|&d| shape[d] == 1 && chosen(d - b.k())).map(|d| d as i64).collect();
    if dims.is_empty() { alias(x) } else { squeeze_many(x, dims) }
}

#[primitive(tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl View {
    fn forward(input: &Tensor, shape: Dims) -> Result<Layout> {
        input.body().layout.view(&shape).ok_or_else(|| Error::runtime(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two \
             contiguous subspaces). Use .reshape(...) instead."
        ))
    }
    fn d_input(g: &Tensor, at: Meta) -> Result<Tensor> {
        reshaped(g, &at.shape)
    }
    fn batch(b: &Batch, input: &Tensor, shape: Dims) -> Result<Tensor> {
        View::call(&b.full(input)?, b.shape(&shape)).map(|t| b.wrap(t))
    }
}

/// The same of a tensor that is not contiguous, on the way of `reshape`.
#[primitive(tangent = linear)]
impl ReshapeAlias {
    fn forward(input: &Tensor, shape: Dims) -> Result<Layout> {
        input.body().layout.view(&shape).ok_or_else(|| Error::runtime("a reshape that is no view"))
    }
    fn d_input(g: &Tensor, at: Meta) -> Result<Tensor> {
        reshaped(g, &at.shape)
    }
    fn batch(b: &Batch, input: &Tensor, shape: Dims) -> Result<Tensor> {
        ReshapeAlias::call(&b.full(input)?, b.shape(&shape)).map(|t| b.wrap(t))
    }
}

#[primitive(copy, tangent = linear, batch = pointwise)]
impl Alias {
    fn forward(input: &Tensor) -> Result<Layout> {
        Ok(input.body().layout.clone())
    }
    fn d_input(g: Tensor) -> Tensor {
        g
    }
}

#[primitive(copy, tangent = linear, inplace = "TransposeBackward1")]
impl Transpose {
    fn forward(input: &Tensor, dim0: i64, dim1: i64) -> Result<Layout> {
        input.body().layout.transpose(dim0, dim1)
    }
    fn d_input(g: &Tensor, dim0: i64, dim1: i64) -> Result<Tensor> {
        transpose(g, dim0, dim1)
    }
    fn batch(b: &Batch, input: &Tensor, dim0: i64, dim1: i64) -> Result<Tensor> {
        let x = b.full(input)?;
        match b.rank(&x) {
            0 => alias(&x),
            n => transpose(&x, b.dim(dim0, n)?, b.dim(dim1, n)?),
        }
        .map(|t| b.wrap(t))
    }
}

#[primitive(copy, node = "TBackward0", tangent = linear, inplace = "TBackward1")]
impl MatrixTranspose {
    fn forward(input: &Tensor) -> Result<Layout> {
        let body = input.body();
        match body.layout.ndim() {
            0 | 1 => Ok(body.layout.clone()),
            2 => body.layout.transpose(0, 1),
            n => Err(Error::runtime(format!("t() expects a tensor with <= 2 dimensions, but self is {n}D"))),
        }
    }
    fn d_input(g: &Tensor) -> Result<Tensor> {
        t(g)
    }
    fn batch(b: &Batch, input: &Tensor) -> Result<Tensor> {
        let x = b.full(input)?;
        match b.rank(&x) {
            0 | 1 => alias(&x),
            2 => transpose(&x, -2, -1),
            n => Err(Error::runtime(format!("t() expects a tensor with <= 2 dimensions, but self is {n}D"))),
        }
        .map(|t| b.wrap(t))
    }
}

#[primitive(copy, tangent = linear)]
impl Permute {
    fn forward(input: &Tensor, dims: Ints) -> Result<Layout> {
        input.body().layout.permute(&dims)
    }
    fn d_input(g: &Tensor, at: Meta, dims: &Ints) -> Result<Tensor> {
        let mut back: Ints = smallvec::smallvec![0; dims.len()];
        for (i, &d) in dims.iter().enumerate() {
            back[wrap_dim(d, at.shape.len())?] = i as i64;
        }
        permute(g, back)
    }
    fn batch(b: &Batch, input: &Tensor, dims: Ints) -> Result<Tensor> {
        let x = b.full(input)?;
        Layout::contiguous(&x.shape()[b.k()..]).permute(&dims)?;
        let mut order: Ints = (0..b.k() as i64).collect();
        order.extend(b.dims(&dims, b.rank(&x))?);
        permute(&x, order).map(|t| b.wrap(t))
    }
}

#[primitive(copy, tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl Expand {
    fn forward(input: &Tensor, size: Ints) -> Result<Layout> {
        input.body().layout.expand(&size)
    }
    fn d_input(g: V, at: Meta) -> V {
        g.sum_to(&at.shape)
    }
    fn batch(b: &Batch, input: &Tensor, size: Ints) -> Result<Tensor> {
        let x = b.full(input)?;
        let own = Dims::from_slice(&x.shape()[b.k()..]);
        // The rule of the seen shape speaks first: its messages name what the function sees.
        Layout::contiguous(&own).expand(&size)?;
        let pad = size.len() - own.len();
        let kept = |(i, &n): (usize, &i64)| if n == -1 { own[i - pad] as i64 } else { n };
        let sizes: Ints = size.iter().enumerate().map(kept).collect();
        let x = if pad == 0 { x } else { b.widened(&x, size.len())? };
        expand(&x, b.lead(&sizes)).map(|t| b.wrap(t))
    }
}

#[primitive(copy, tangent = linear, inplace = "UnsqueezeBackward1")]
impl Unsqueeze {
    fn forward(input: &Tensor, dim: i64) -> Result<Layout> {
        input.body().layout.unsqueeze(dim)
    }
    fn d_input(g: &Tensor, dim: i64) -> Result<Tensor> {
        squeeze_one(g, dim)
    }
    fn batch(b: &Batch, input: &Tensor, dim: i64) -> Result<Tensor> {
        let x = b.full(input)?;
        unsqueeze(&x, b.dim(dim, b.rank(&x) + 1)?).map(|t| b.wrap(t))
    }
}

#[primitive(copy, tangent = linear, inplace = "SqueezeBackward3", shows(self_sym_sizes = sizes(input)))]
impl Squeeze {
    fn forward(input: &Tensor) -> Result<Layout> {
        let layout = &input.body().layout;
        Ok(layout.squeeze(&(0..layout.ndim()).collect::<Dims>()))
    }
    fn d_input(g: Tensor, at: Meta) -> Result<Tensor> {
        unsqueezed(g, &at.shape, |_| true)
    }
    fn batch(b: &Batch, input: &Tensor) -> Result<Tensor> {
        squeezed(b, &b.full(input)?, |_| true).map(|t| b.wrap(t))
    }
}

#[primitive(copy, tangent = linear, inplace = "SqueezeBackward4", shows(self_sym_sizes = sizes(input)))]
impl Squeeze1 {
    fn forward(input: &Tensor, dim: i64) -> Result<Layout> {
        let layout = &input.body().layout;
        Ok(layout.squeeze(&[wrap_dim(dim, layout.ndim())?]))
    }
    fn d_input(g: Tensor, at: Meta, dim: i64) -> Result<Tensor> {
        let dim = wrap_dim(dim, at.shape.len())?;
        unsqueezed(g, &at.shape, |d| d == dim)
    }
    fn batch(b: &Batch, input: &Tensor, dim: i64) -> Result<Tensor> {
        let x = b.full(input)?;
        let dim = wrap_dim(dim, b.rank(&x))?;
        squeezed(b, &x, |d| d == dim).map(|t| b.wrap(t))
    }
}

#[primitive(copy, tangent = linear, inplace = "SqueezeBackward5", shows(self_sym_sizes = sizes(input)))]
impl Squeeze2 {
    fn forward(input: &Tensor, dim: Ints) -> Result<Layout> {
        let layout = &input.body().layout;
        Ok(layout.squeeze(&wrapped(&dim, layout.ndim())?))
    }
    fn d_input(g: Tensor, at: Meta, dim: &Ints) -> Result<Tensor> {
        let dims = wrapped(dim, at.shape.len())?;
        unsqueezed(g, &at.shape, |d| dims.contains(&d))
    }
    fn batch(b: &Batch, input: &Tensor, dim: Ints) -> Result<Tensor> {
        let x = b.full(input)?;
        let dims = wrapped(&dim, b.rank(&x))?;
        squeezed(b, &x, |d| dims.contains(&d)).map(|t| b.wrap(t))
    }
}

/// A fresh dense tensor under another shape; nobody else sees it under its own.
#[primitive(tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl UnsafeView {
    fn forward(input: &Tensor, shape: Dims) -> Result<Body> {
        let body = input.body();
        let layout = Layout { offset: body.layout.offset, ..Layout::contiguous(&shape) };
        Ok(body.with_layout(layout))
    }
    fn d_input(g: &Tensor, at: Meta) -> Result<Tensor> {
        reshaped(g, &at.shape)
    }
    fn batch(b: &Batch, input: &Tensor, shape: Dims) -> Result<Tensor> {
        reshape(&b.full(input)?, &b.shape(&shape)).map(|t| b.wrap(t))
    }
}

#[primitive(copy, tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl Select {
    fn forward(input: &Tensor, dim: i64, index: i64) -> Result<Layout> {
        input.body().layout.select(dim, index)
    }
    fn d_input(g: &Tensor, at: Meta, dim: i64, index: i64) -> Result<Tensor> {
        put_back(g, at, |l| l.select(dim, index))
    }
    fn batch(b: &Batch, input: &Tensor, dim: i64, index: i64) -> Result<Tensor> {
        let x = b.full(input)?;
        select(&x, b.dim(dim, b.rank(&x))?, index).map(|t| b.wrap(t))
    }
}

#[primitive(copy, tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl Slice {
    fn forward(input: &Tensor, dim: i64, start: Option<i64>, end: Option<i64>, step: i64) -> Result<Layout> {
        input.body().layout.slice(dim, start, end, step)
    }
    fn d_input(
        g: &Tensor,
        at: Meta,
        dim: i64,
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    ) -> Result<Tensor> {
        put_back(g, at, |l| l.slice(dim, start, end, step))
    }
    fn batch(
        b: &Batch,
        input: &Tensor,
        dim: i64,
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    ) -> Result<Tensor> {
        let x = b.full(input)?;
        slice(&x, b.dim(dim, b.rank(&x))?, start, end, step).map(|t| b.wrap(t))
    }
}

/// `length` slices from `start` on, for operators on their way.
#[primitive(tangent = linear)]
impl Narrow {
    fn forward(input: &Tensor, dim: i64, start: i64, length: i64) -> Result<Layout> {
        input.body().layout.narrow(dim, start, length)
    }
    fn d_input(g: &Tensor, at: Meta, dim: i64, start: i64, length: i64) -> Result<Tensor> {
        put_back(g, at, |l| l.narrow(dim, start, length))
    }
    fn batch(b: &Batch, input: &Tensor, dim: i64, start: i64, length: i64) -> Result<Tensor> {
        let x = b.full(input)?;
        narrow(&x, b.dim(dim, b.rank(&x))?, start, length).map(|t| b.wrap(t))
    }
}

#[primitive(copy, tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl Diagonal {
    fn forward(input: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Layout> {
        input.body().layout.diagonal(offset, dim1, dim2)
    }
    fn d_input(g: &Tensor, at: Meta, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
        put_back(g, at, |l| l.diagonal(offset, dim1, dim2))
    }
    fn batch(b: &Batch, input: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
        let x = b.full(input)?;
        let rank = b.rank(&x);
        diagonal(&x, offset, b.dim(dim1, rank)?, b.dim(dim2, rank)?).map(|t| b.wrap(t))
    }
}

#[primitive(copy, tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl Unfold {
    fn forward(input: &Tensor, dimension: i64, size: i64, step: i64) -> Result<Layout> {
        input.body().layout.unfold(dimension, size, step)
    }
    fn d_input(g: &Tensor, at: Meta, dimension: i64, size: i64, step: i64) -> Result<Tensor> {
        put_back(g, at, |l| l.unfold(dimension, size, step))
    }
    fn batch(b: &Batch, input: &Tensor, dimension: i64, size: i64, step: i64) -> Result<Tensor> {
        let (x, k) = (b.full(input)?, b.k() as i64);
        match b.rank(&x) {
            0 => select(&unfold(&unsqueeze(&x, -1)?, k, size, step)?, k, 0),
            n => unfold(&x, b.dim(dimension, n)?, size, step),
        }
        .map(|t| b.wrap(t))
    }
}

/// The storage read with any sizes and strides; `lies` is the input's own layout.
#[primitive(copy, tangent = linear, inplace = "AsStridedBackward1")]
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

/// The same elements under another shape: a view where strides allow, else a copy.
pub fn reshape(input: &Tensor, shape: &[usize]) -> Result<Tensor> {
    if input.body().shape() == shape { Ok(input.clone()) } else { reshaped(input, shape) }
}

/// The same, never the tensor itself.
pub fn reshaped(input: &Tensor, shape: &[usize]) -> Result<Tensor> {
    let shape = Dims::from_slice(shape);
    let (contiguous, viewable) = {
        let layout = &input.body().layout;
        (layout.is_contiguous(), layout.view(&shape).is_some())
    };
    match viewable {
        true if contiguous => View::call(input, shape),
        true => ReshapeAlias::call(input, shape),
        false => UnsafeView::call(&crate::ops::creation::create::clone_dense(input)?, shape),
    }
}

/// Dimensions of size 1 taken out: all, or those named (a view).
pub fn squeeze(input: &Tensor, dim: Option<Ints>) -> Result<Tensor> {
    match dim {
        None => squeeze_all(input),
        Some(dims) if dims.len() == 1 => squeeze_one(input, dims[0]),
        Some(dims) => squeeze_many(input, dims),
    }
}

/// The same bytes as elements of another dtype; the last dimension grows or shrinks when their sizes differ.
pub fn view_as_dtype(input: &Tensor, dtype: DType) -> Result<Tensor> {
    if let Some(batched) = input.as_batched() {
        return Ok(Tensor::batched(view_as_dtype(&batched.value, dtype)?, batched.levels.clone()));
    }
    let body = input.body();
    for (what, lazy) in [("conjugate view tensors", Lazy::CONJ), ("tensors with negative bit set", Lazy::NEG)]
    {
        if body.lazy.has(lazy) {
            return Err(Error::runtime(format!(
                "torch.Tensor.view is not supported for {what} when converting to a different dtype."
            )));
        }
    }
    let (old, new) = (body.dtype.size(), dtype.size());
    let mut layout = body.layout.clone();
    let last = layout.ndim().wrapping_sub(1);
    if old != new {
        if layout.ndim() == 0 {
            return Err(Error::runtime(format!(
                "self.dim() cannot be 0 to view {} as {} (different element sizes)",
                body.dtype.scalar_name(),
                dtype.scalar_name()
            )));
        }
        if layout.strides[last] != 1 {
            return Err(Error::runtime(format!(
                "self.stride(-1) must be 1 to view {} as {} (different element sizes), but got {}",
                body.dtype.scalar_name(),
                dtype.scalar_name(),
                layout.strides[last]
            )));
        }
    }
    if old > new {
        let ratio = old / new;
        layout.shape[last] *= ratio;
        layout.offset *= ratio;
        layout.strides[..last].iter_mut().for_each(|s| *s *= ratio);
    } else if old < new {
        let ratio = new / old;
        let whole = |n: usize| n.is_multiple_of(ratio);
        if !whole(layout.shape[last]) {
            return Err(Error::runtime(format!(
                "self.size(-1) must be divisible by {ratio} to view {} as {} (different element sizes), but got {}",
                body.dtype.scalar_name(),
                dtype.scalar_name(),
                layout.shape[last]
            )));
        }
        if !whole(layout.offset) || !layout.strides[..last].iter().all(|&s| whole(s)) {
            return Err(Error::runtime(format!(
                "self.storage_offset() and self.stride() must be divisible by {ratio} to view {} as {} (different element sizes)",
                body.dtype.scalar_name(),
                dtype.scalar_name()
            )));
        }
        layout.shape[last] /= ratio;
        layout.offset /= ratio;
        layout.strides[..last].iter_mut().for_each(|s| *s /= ratio);
    }
    Ok(Tensor::new(Body::plain(body.storage.clone(), layout, dtype)))
}

/// The tensor as a view of itself.
pub fn alias(input: &Tensor) -> Result<Tensor> {
    Alias::call(input)
}

/// A view is the most frequent of these, and mostly of dense rows: no history, no plan, one pass over the sizes.
fn as_shape(input: &Tensor, sizes: &[i64]) -> Option<Result<Tensor>> {
    if sizes.is_empty() {
        return None;
    }
    Some(match input.birth_body().and_then(|body| body.layout.view_rows(sizes)) {
        Some(layout) if !any_requires_grad([input]) => Ok(seen(input, layout)),
        Some(layout) => View::call(input, layout.shape),
        None => infer_shape(sizes, input.numel()).and_then(|shape| View::call(input, shape)),
    })
}

/// The same elements under another shape (a view, or an error).
#[operator(method, short = as_shape, sample = "view(lambda draw, shape: lambda x: x.contiguous().view(-1))")]
pub fn view(input: &Tensor, size: Sizes) -> Result<Tensor> {
    View::call(input, infer_shape(&size.0, input.numel())?)
}

/// The same bytes as elements of another dtype (a view).
#[overload(view.dtype)]
pub fn view_of_dtype(input: &Tensor, dtype: DType) -> Result<Tensor> {
    if dtype == input.dtype() && !input.is_lazy() { alias(input) } else { view_as_dtype(input, dtype) }
}

/// The same elements under another shape; a copy only where it must be.
#[operator(function, method, short, name = "reshape", sample = "view(reshaped)")]
pub fn reshape_to(input: &Tensor, shape: &[i64]) -> Result<Tensor> {
    reshaped(input, &infer_shape(shape, input.numel())?)
}

/// Swap two dimensions (a view).
#[operator(function, method, short, sample = "two_dims(name)")]
pub fn transpose(input: &Tensor, dim0: i64, dim1: i64) -> Result<Tensor> {
    Transpose::call(input, dim0, dim1)
}

/// Swap two dimensions of the tensor itself.
#[inplace(transpose)]
pub fn transpose_(input: &Tensor, dim0: i64, dim1: i64) -> Result<()> {
    become_view(input, |x| transpose(x, dim0, dim1))
}

/// Swap two dimensions (a view; `transpose`).
#[operator(function, method, short, sample = "two_dims(name)")]
pub fn swapaxes(input: &Tensor, axis0: i64, axis1: i64) -> Result<Tensor> {
    transpose(input, axis0, axis1)
}

/// Swap two dimensions of the tensor itself (`transpose_`).
#[inplace(swapaxes)]
pub fn swapaxes_(input: &Tensor, axis0: i64, axis1: i64) -> Result<()> {
    transpose_(input, axis0, axis1)
}

/// Swap two dimensions (a view; `transpose`).
#[operator(function, method, short, sample = "two_dims(name)")]
pub fn swapdims(input: &Tensor, dim0: i64, dim1: i64) -> Result<Tensor> {
    transpose(input, dim0, dim1)
}

/// Swap two dimensions of the tensor itself (`transpose_`).
#[inplace(swapdims)]
pub fn swapdims_(input: &Tensor, dim0: i64, dim1: i64) -> Result<()> {
    transpose_(input, dim0, dim1)
}

/// Swap the dimensions of a matrix (a view).
#[operator(
    function,
    method,
    short,
    sample = "view(lambda draw, shape: lambda x: x.t(), shapes=st.sampled_from([(2, 3), (4,), (), (0, 2)]))"
)]
pub fn t(input: &Tensor) -> Result<Tensor> {
    MatrixTranspose::call(input)
}

/// Swap the dimensions of the matrix itself.
#[inplace(t)]
pub fn t_(input: &Tensor) -> Result<()> {
    become_view(input, t)
}

/// Dimensions in another order (a view).
#[operator(function, method, short, sample = "view(permutation)")]
pub fn permute(input: &Tensor, dims: Ints) -> Result<Tensor> {
    Permute::call(input, dims)
}

/// Dimensions of size 1 stretched without a copy (a view).
#[operator(method, short, sample = "view(lambda draw, shape: lambda x: x.expand(2, *x.shape))")]
pub fn expand(input: &Tensor, size: Ints) -> Result<Tensor> {
    Expand::call(input, size)
}

/// A dimension of size 1 put in (a view).
#[operator(
    function,
    method,
    short,
    sample = "view(lambda draw, shape: (lambda d: lambda x: x.unsqueeze(d))(draw(st.integers(-len(shape) - 1, len(shape)))))"
)]
pub fn unsqueeze(input: &Tensor, dim: i64) -> Result<Tensor> {
    Unsqueeze::call(input, dim)
}

/// A dimension of size 1 put into the tensor itself.
#[inplace(unsqueeze)]
pub fn unsqueeze_(input: &Tensor, dim: i64) -> Result<()> {
    become_view(input, |x| unsqueeze(x, dim))
}

fn squeeze_short(input: &Tensor, dims: &[i64]) -> Option<Result<Tensor>> {
    match *dims {
        [] => Some(squeeze_all(input)),
        [dim] => Some(squeeze_one(input, dim)),
        _ => None,
    }
}

/// Dimensions of size 1 taken out: all, or those named (a view).
#[operator(
    function,
    method,
    name = "squeeze",
    short = squeeze_short,
    sample = "view(lambda draw, shape: draw(st.sampled_from([lambda x: x.squeeze(), lambda x: x.squeeze(0)])), 1)"
)]
pub fn squeeze_all(input: &Tensor) -> Result<Tensor> {
    Squeeze::call(input)
}

/// One dimension of size 1 taken out (a view).
#[overload(squeeze_all.dim)]
pub fn squeeze_one(input: &Tensor, dim: i64) -> Result<Tensor> {
    Squeeze1::call(input, dim)
}

/// Dimensions of size 1 taken out (a view).
#[overload(squeeze_all.dims)]
pub fn squeeze_many(input: &Tensor, dim: Ints) -> Result<Tensor> {
    Squeeze2::call(input, dim)
}

/// Dimensions of size 1 taken out of the tensor itself: all, or those named.
#[inplace(squeeze_all)]
pub fn squeeze_(input: &Tensor) -> Result<()> {
    become_view(input, squeeze_all)
}

/// One dimension of size 1 taken out of the tensor itself.
#[overload(squeeze_.dim)]
pub fn squeeze_one_(input: &Tensor, dim: i64) -> Result<()> {
    become_view(input, |x| squeeze_one(x, dim))
}

/// Dimensions of size 1 taken out of the tensor itself.
#[overload(squeeze_.dims)]
pub fn squeeze_many_(input: &Tensor, dim: Ints) -> Result<()> {
    become_view(input, |x| squeeze_many(x, dim))
}

/// What a product made of one row, which nobody else holds yet, as a vector: squeezed in place.
pub fn first_row(matrix: Tensor) -> Result<Tensor> {
    if matrix.is_special() {
        squeeze_one_(&matrix, 0)?;
        return Ok(matrix);
    }
    if any_requires_grad([&matrix]) {
        squeeze_one_(&matrix, 0)?;
        let body = matrix.body().clone();
        return Ok(Tensor::of(body, matrix.history()));
    }
    let body = matrix.body();
    let row = body.with_layout(body.layout.squeeze(&[0]));
    row.storage.bump();
    Ok(Tensor::of(row, None))
}

/// A fresh dense tensor under another shape; nobody else sees it under its own.
pub fn unsafe_view(input: &Tensor, shape: Dims) -> Result<Tensor> {
    UnsafeView::call(input, shape)
}

/// One slice across a dimension (a view).
#[operator(
    function,
    method,
    short,
    sample = "view(lambda draw, shape: (lambda d: lambda x: x.select(d, shape[d] - 1))(dim_of(draw, shape)), 1)"
)]
pub fn select(input: &Tensor, dim: i64, index: i64) -> Result<Tensor> {
    Select::call(input, dim, index)
}

/// Every `step`-th slice from `start` to `end` (a view).
pub fn slice(input: &Tensor, dim: i64, start: Option<i64>, end: Option<i64>, step: i64) -> Result<Tensor> {
    Slice::call(input, dim, start, end, step)
}

/// `length` slices from `start` on (a view).
pub fn narrow(input: &Tensor, dim: i64, start: i64, length: i64) -> Result<Tensor> {
    Narrow::call(input, dim, start, length)
}

/// The diagonal of two dimensions, as the last one (a view).
#[operator(function, method, sample = "view(diagonal, 2)")]
pub fn diagonal(
    input: &Tensor,
    #[default(0)] offset: i64,
    #[default(0)] dim1: i64,
    #[default(1)] dim2: i64,
) -> Result<Tensor> {
    Diagonal::call(input, offset, dim1, dim2)
}

/// Sliding windows along a dimension (a view).
#[operator(method, sample = "view(window, 1)")]
pub fn unfold(input: &Tensor, dimension: i64, size: i64, step: i64) -> Result<Tensor> {
    Unfold::call(input, dimension, size, step)
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

/// Dimensions `start_dim` to `end_dim` made one.
#[operator(function, method, composite, sample = "view(lambda draw, shape: lambda x: x.flatten())")]
pub fn flatten(input: &Tensor, #[default(0)] start_dim: i64, #[default(-1)] end_dim: i64) -> Result<Tensor> {
    let shape = input.shape();
    let (a, b) = (wrap_dim(start_dim, shape.len())?, wrap_dim(end_dim, shape.len())?);
    if a > b {
        return Err(Error::runtime("flatten() has invalid args: start_dim cannot come after end_dim"));
    }
    if shape.is_empty() {
        return reshape(input, &[1]);
    }
    let mut flat = Dims::from_slice(&shape[..a]);
    flat.push(shape[a..=b].iter().product());
    flat.extend_from_slice(&shape[b + 1..]);
    reshape(input, &flat)
}
