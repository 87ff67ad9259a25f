//! Views: new layouts over the same bytes. Their derivatives put a gradient back where it came from.

use super::macros::{compose, ops};
use super::place::embed;
use super::row::{self, Arg, FromArg, Ints};
use super::value::V;
use crate::base::views::{checked_numel, infer_shape, may_overlap};
use crate::base::{Dims, Error, Layout, Lazy, Result, Scalar, wrap_dim};
use crate::tensor::{Body, Derivative, Edge, Kind, Meta, Node, Tensor, ViewRules, Viewing, mode};

/// The bytes of `source` under another layout, as a view without history.
pub fn seen(source: &Tensor, layout: Layout) -> Tensor {
    Tensor::view_of(source, source.body().with_layout(layout), None, Viewing::Plain, &RULES)
}

/// How histories of views are rewritten after an in-place write.
pub static RULES: ViewRules = ViewRules { regenerate, scatter: super::slices::history, part };

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
    let mut shown = super::complex::seen_as(base, view.dtype)?;
    if lazy.has(Lazy::NEG) {
        shown = super::complex::neg_view(&shown)?;
    }
    if !lazy.has(Lazy::CONJ) || shown.body().layout != view.layout {
        let (size, stride) = (sizes(&view.layout), strides(&view.layout));
        shown = strided(&shown, size, stride, Some(view.layout.offset as i64))?;
    }
    if lazy.has(Lazy::CONJ) { super::complex::conjugate(&shown) } else { Ok(shown) }
}

/// What is to be done to the elements of a base to read those of a view of it.
pub fn lazy_over(base: &Body, view: &Body) -> Lazy {
    match base.dtype == view.dtype || !base.lazy.has(Lazy::CONJ) {
        true => base.lazy.then(view.lazy),
        // A view of parts is one of what the base is the conjugate of.
        false => Lazy::NOTHING,
    }
}

/// The storage of `input` read with any sizes and strides.
pub fn strided(input: &Tensor, size: Ints, stride: Ints, storage_offset: Option<i64>) -> Result<Tensor> {
    let lies = input.body().layout.clone();
    strided_over(input, size, stride, storage_offset, lies)
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
        let ones = super::create::full(&lies.shape, Scalar::Int(1), g.dtype(), g.device())?;
        let shares = embed(&ones, room, lies.clone())?;
        storage = super::arithmetic::div(&storage, &super::arithmetic::maximum(&shares, 1.0)?)?;
    }
    strided(&storage, sizes(&lies), strides(&lies), Some(lies.offset as i64))
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
fn unsqueezed(g: V, shape: &[usize], squeezed: impl Fn(usize) -> bool) -> V {
    let dims = (0..shape.len()).filter(|&d| shape[d] == 1 && squeezed(d));
    dims.fold(g, |g, d| g.then(|t| unsqueeze(&t, d as i64)))
}

/// Where a view operator's result lies in a dense tensor of its input's shape: for its derivative.
fn in_dense(at: &Meta, view: impl FnOnce(&Layout) -> Result<Layout>) -> Result<Layout> {
    view(&Layout::contiguous(&at.shape))
}

ops! { "view";
    /// The same elements under another shape.
    [hidden, linear] fn view_as_shape(input; shape: Dims) -> y {
        let body = input.body();
        body.layout.view(&shape).ok_or_else(|| Error::runtime(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two \
             contiguous subspaces). Use .reshape(...) instead."
        ))
    }
    input: |g, at| g.then(|t| reshaped(&t, &at.shape));
    /// The same of a tensor that is not contiguous.
    [hidden, linear] fn reshape_alias(input; shape: Dims) -> y {
        let body = input.body();
        body.layout.view(&shape).ok_or_else(|| Error::runtime("a reshape that is no view"))
    }
    input: |g, at| g.then(|t| reshaped(&t, &at.shape));
    /// The same tensor, as a view.
    [hidden, linear] fn alias(input) -> y { Ok(input.body().layout.clone()) }
    input: |g| g;
    /// Swap two dimensions (a view).
    [linear] fn transpose(input; dim0: i64, dim1: i64) -> y { input.body().layout.transpose(dim0, dim1) }
    input: |g, dim0, dim1| g.transpose(dim0, dim1);
    /// Swap the dimensions of a matrix (a view).
    [linear] fn t(input) -> y {
        let body = input.body();
        match body.layout.ndim() {
            0 | 1 => Ok(body.layout.clone()),
            2 => body.layout.transpose(0, 1),
            n => Err(Error::runtime(format!("t() expects a tensor with <= 2 dimensions, but self is {n}D"))),
        }
    }
    input: |g| g.then(|g| t(&g));
    /// Dimensions in another order (a view).
    [linear] fn permute(input; dims: Ints) -> y { input.body().layout.permute(&dims) }
    input: |g, dims, at| {
        let mut back: Ints = smallvec::smallvec![0; dims.len()];
        for (i, &d) in dims.iter().enumerate() {
            back[wrap_dim(d, at.shape.len())?] = i as i64;
        }
        g.then(|t| permute(&t, back))
    };
    /// Dimensions of size 1 stretched without a copy (a view).
    [no_function, linear] fn expand(input; size: Ints) -> y { input.body().layout.expand(&size) }
    input: |g, at| g.sum_to(&at.shape);
    /// A dimension of size 1 put in (a view).
    [linear] fn unsqueeze(input; dim: i64) -> y { input.body().layout.unsqueeze(dim) }
    input: |g, dim| g.then(|t| squeeze_one(&t, dim));
    /// All dimensions of size 1 taken out (a view).
    [hidden, linear] fn squeeze_all(input) -> y {
        let layout = &input.body().layout;
        Ok(layout.squeeze(&(0..layout.ndim()).collect::<Dims>()))
    }
    input: |g, at| unsqueezed(g, &at.shape, |_| true);
    /// One dimension of size 1 taken out (a view).
    [hidden, linear] fn squeeze_one(input; dim: i64) -> y {
        let layout = &input.body().layout;
        Ok(layout.squeeze(&[wrap_dim(dim, layout.ndim())?]))
    }
    input: |g, at, dim| {
        let dim = wrap_dim(dim, at.shape.len())?;
        unsqueezed(g, &at.shape, |d| d == dim)
    };
    /// Dimensions of size 1 taken out (a view).
    [hidden, linear] fn squeeze_many(input; dim: Ints) -> y {
        let layout = &input.body().layout;
        Ok(layout.squeeze(&dim.iter().map(|&d| wrap_dim(d, layout.ndim())).collect::<Result<Dims>>()?))
    }
    input: |g, at, dim| {
        let dims = dim.iter().map(|&d| wrap_dim(d, at.shape.len())).collect::<Result<Dims>>()?;
        unsqueezed(g, &at.shape, |d| dims.contains(&d))
    };
    /// A fresh dense tensor under another shape; nobody else sees it under its own.
    [hidden, linear] fn unsafe_view(input; shape: Dims) -> y {
        let body = input.body();
        let layout = Layout { offset: body.layout.offset, ..Layout::contiguous(&shape) };
        Ok(body.with_layout(layout))
    }
    input: |g, at| g.then(|t| reshaped(&t, &at.shape));
    /// One slice across a dimension (a view).
    [linear] fn select(input; dim: i64, index: i64) -> y { input.body().layout.select(dim, index) }
    input: |g, at, dim, index| {
        let place = in_dense(&at, |l| l.select(dim, index))?;
        g.then(|t| embed(&t, at.shape, place))
    };
    /// Every `step`-th slice from `start` to `end` (a view).
    [hidden, linear] fn slice(input; dim: i64, start: Option<i64>, end: Option<i64>, step: i64) -> y {
        input.body().layout.slice(dim, start, end, step)
    }
    input: |g, at, dim, start, end, step| {
        let place = in_dense(&at, |l| l.slice(dim, start, end, step))?;
        g.then(|t| embed(&t, at.shape, place))
    };
    /// `length` slices from `start` on (a view).
    [hidden, linear] fn narrow(input; dim: i64, start: i64, length: i64) -> y { input.body().layout.narrow(dim, start, length) }
    input: |g, at, dim, start, length| {
        let place = in_dense(&at, |l| l.narrow(dim, start, length))?;
        g.then(|t| embed(&t, at.shape, place))
    };
    /// The diagonal of two dimensions, as the last one (a view).
    [linear] fn diagonal(input; offset: i64 = 0, dim1: i64 = 0, dim2: i64 = 1) -> y { input.body().layout.diagonal(offset, dim1, dim2) }
    input: |g, at, offset, dim1, dim2| {
        let place = in_dense(&at, |l| l.diagonal(offset, dim1, dim2))?;
        g.then(|t| embed(&t, at.shape, place))
    };
    /// Sliding windows along a dimension (a view).
    [no_function, linear] fn unfold(input; dimension: i64, size: i64, step: i64) -> y { input.body().layout.unfold(dimension, size, step) }
    input: |g, at, dimension, size, step| {
        let place = in_dense(&at, |l| l.unfold(dimension, size, step))?;
        g.then(|t| embed(&t, at.shape, place))
    };
    /// The storage read with any sizes and strides (a view); `lies` is the input's own layout.
    [hidden, linear] fn strided_over(input; size: Ints, stride: Ints, storage_offset: Option<i64>, lies: Layout) -> y {
        let body = input.body();
        if size.len() != stride.len() {
            return Err(Error::runtime("mismatch in length of strides and shape"));
        }
        if stride.iter().any(|&s| s < 0) {
            return Err(Error::runtime(format!(
                "as_strided: Negative strides are not supported at the moment, got strides: {:?}", stride.as_slice()
            )));
        }
        if let Some(bad) = storage_offset.filter(|&o| o < 0) {
            return Err(Error::runtime(format!("Tensor: invalid storage offset {bad}")));
        }
        let layout = Layout {
            shape: dims_of(&size)?,
            strides: stride.iter().map(|&s| s as usize).collect(),
            offset: storage_offset.map_or(body.layout.offset, |o| o.max(0) as usize),
        };
        let room = body.storage.len() / body.dtype.size();
        let reach = layout.shape.iter().zip(&layout.strides).try_fold(layout.offset, |end, (&n, &s)| {
            n.checked_sub(1).map_or(Some(end), |steps| end.checked_add(steps.checked_mul(s)?))
        });
        if layout.numel() > 0 && reach.is_none_or(|end| end >= room) {
            return Err(Error::runtime(format!(
                "setStorage: sizes {:?}, strides {:?}, storage offset {}, and itemsize {} requiring a storage size of {} \
                 are out of bounds for storage of size {}",
                size.as_slice(), stride.as_slice(), layout.offset, body.dtype.size(),
                reach.map_or(0, |end| (end + 1) * body.dtype.size()), body.storage.len()
            )));
        }
        Ok(layout)
    }
    input: |g, at, size, stride, storage_offset, lies| g.then(|t| unstrided(&t, &at, &size, &stride, storage_offset, &lies));
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
        return super::create::zeros(&at.shape, g.dtype(), g.device());
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
        true if contiguous => view_as_shape(input, shape),
        true => reshape_alias(input, shape),
        false => unsafe_view(&super::create::clone_dense(input)?, shape),
    }
}

/// As the method: sizes of which one may be -1.
pub fn reshape_to(input: &Tensor, sizes: &[i64]) -> Result<Tensor> {
    reshaped(input, &infer_shape(sizes, input.numel())?)
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
pub fn view_as_dtype(input: &Tensor, dtype: crate::base::DType) -> Result<Tensor> {
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

mod more {
    use super::*;
    compose! { "view";
        /// The same elements under another shape (a view, or an error).
        [no_function] fn view(input: Tensor, size: Seen) -> Tensor {
            match size {
                Seen::Shape(size) => view_as_shape(&input, infer_shape(&size, input.numel())?),
                Seen::DType(dtype) if dtype == input.dtype() && !input.is_lazy() => alias(&input),
                Seen::DType(dtype) => view_as_dtype(&input, dtype),
            }
        }
        /// Dimensions of size 1 taken out: all, or those named (a view).
        fn squeeze_(input: Tensor, dim: Option<Arg> = None) -> Tensor {
            match dim {
                None => squeeze_all(&input),
                Some(Arg::Int(dim)) => squeeze_one(&input, dim),
                Some(Arg::Ints(dims)) => squeeze_many(&input, dims),
                Some(_) => Err(Error::type_error("squeeze(): argument 'dim' must be int or tuple of ints")),
            }
        }
        /// The same elements under another shape; a copy only where it must be.
        fn reshape_(input: Tensor, shape: Ints) -> Tensor {
            reshape_to(&input, &shape)
        }
        /// The storage read with any sizes and strides (a view).
        fn as_strided(input: Tensor, size: Ints, stride: Ints, storage_offset: Option<i64> = None) -> Tensor {
            strided(&input, size, stride, storage_offset)
        }
        /// Dimensions `start_dim` to `end_dim` made one.
        fn flatten(input: Tensor, start_dim: i64 = 0, end_dim: i64 = -1) -> Tensor {
            let shape = input.shape();
            let (a, b) = (wrap_dim(start_dim, shape.len())?, wrap_dim(end_dim, shape.len())?);
            if a > b {
                return Err(Error::runtime("flatten() has invalid args: start_dim cannot come after end_dim"));
            }
            if shape.is_empty() {
                return super::reshape(&input, &[1]);
            }
            let mut flat = Dims::from_slice(&shape[..a]);
            flat.push(shape[a..=b].iter().product());
            flat.extend_from_slice(&shape[b + 1..]);
            super::reshape(&input, &flat)
        }
    }
}

/// What `view` takes: sizes, or a dtype.
#[derive(Clone)]
pub enum Seen {
    Shape(Ints),
    DType(crate::base::DType),
}

impl FromArg for Seen {
    const KIND: row::Kind = row::Kind::Sizes;
    fn from_arg(arg: &Arg) -> Option<Seen> {
        match arg {
            Arg::DType(dtype) => Some(Seen::DType(*dtype)),
            other => Ints::from_arg(other).map(Seen::Shape),
        }
    }
    super::row::kept_whole!();
}

pub use more::{COMPOSED, as_strided, flatten, squeeze_};
