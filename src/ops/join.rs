//! Several tensors made one, and one cut into several.

pub use super::cut::split_sizes;
use super::cut::{SPLIT_SIZES, UNBIND, cut_into, cut_whole, split_at, split_evenly, untied, views};
use super::kernel::{copy, on_host};
use super::macros::compose;
use super::row::{Arg, Ints, Several};
use super::shape::{at_least_2d, at_least_3d};
use super::tangent;
use super::view::ints;
use crate::base::{Dims, Error, Fault, MemoryFormat, Result, caution_once, wrap_dim};
use crate::tensor::{Body, Derivative, Edge, Grads, Recorder, Tensor, records};
use std::sync::atomic::AtomicBool;

/// Where each input lies along the joined dimension.
#[derive(Clone)]
pub struct Joined {
    pub dim: i64,
    pub lengths: Vec<usize>,
}

static CAT: Derivative = Derivative {
    facts: None,
    name: "CatBackward0",
    apply: |step| {
        let mut grads: Grads = smallvec::smallvec![None; step.node.edges.len()];
        let Some(g) = step.grad(0) else { return Ok(grads) };
        let joined = step.params::<Joined>()?;
        let mut start = 0;
        for (i, &length) in joined.lengths.iter().enumerate() {
            if step.wants(i) {
                let at = super::meta_of(step, i)?;
                grads[i] = Some(if at.shape.as_slice() == [0] {
                    // An empty vector joins anything, and has no part in it.
                    super::create::zeros(&[0], at.dtype, at.device)?
                } else {
                    let part = super::view::narrow(g, joined.dim, start, length as i64)?;
                    super::create::to_dtype(&part, at.dtype)?
                });
            }
            start += length as i64;
        }
        Ok(grads)
    },
};

static STACK: Derivative = Derivative {
    facts: None,
    name: "StackBackward0",
    apply: |step| {
        let mut grads: Grads = smallvec::smallvec![None; step.node.edges.len()];
        let Some(g) = step.grad(0) else { return Ok(grads) };
        let joined = step.params::<Joined>()?;
        for (i, grad) in grads.iter_mut().enumerate().filter(|(i, _)| step.wants(*i)) {
            let part = super::view::select(g, joined.dim, i as i64)?;
            *grad = Some(super::create::to_dtype(&part, super::meta_of(step, i)?.dtype)?);
        }
        Ok(grads)
    },
};

/// A new tensor with the parts one after the other along `dim`; a memory format that all have is the result's where `formats`.
fn join(shape: Dims, dim: usize, parts: &[Body], lengths: &[usize], formats: bool) -> Result<Body> {
    on_host(&parts.iter().collect::<Vec<_>>())?;
    let dtype = parts.iter().map(|p| p.dtype).reduce(|a, b| a.promote(b)).unwrap_or(parts[0].dtype);
    let mut out = Body::new(&shape, dtype, parts[0].device())?;
    let format = MemoryFormat::suggested(&parts[0].layout);
    if formats
        && format != MemoryFormat::Contiguous
        && parts.iter().all(|p| MemoryFormat::suggested(&p.layout) == format)
    {
        out.layout = format.layout(&out.layout)?;
    }
    let mut start = 0;
    for (part, &length) in parts.iter().zip(lengths) {
        let place = out.layout.slice(dim as i64, Some(start), Some(start + length as i64), 1)?;
        if length > 0 {
            copy(&out.with_layout(place), part)?;
        }
        start += length as i64;
    }
    Ok(out)
}

fn record(derivative: &'static Derivative, tensors: &[Tensor], out: Body, joined: Joined) -> Result<Tensor> {
    let edge = (records(tensors)? && out.dtype.is_differentiable()).then(|| {
        let mut recorder = Recorder::new(derivative);
        for t in tensors {
            recorder.input(Some(t));
        }
        recorder.params(Box::new(joined));
        Edge { node: recorder.publish(&[&out]), output: 0 }
    });
    Ok(Tensor::made_by(out, edge))
}

/// The tensors one after the other along `dim`.
pub fn cat_all(tensors: &[Tensor], dim: i64) -> Result<Tensor> {
    // An empty vector joins anything, as it always could.
    let skipped = |t: &Tensor| t.shape().as_slice() == [0];
    let Some(first) = tensors.iter().find(|t| !skipped(t)).or(tensors.first()) else {
        return Err(Error::value("torch.cat(): expected a non-empty list of Tensors"));
    };
    if let Some(i) = tensors.iter().position(|t| t.ndim() == 0) {
        return Err(Error::runtime(format!(
            "zero-dimensional tensor (at position {i}) cannot be concatenated"
        )));
    }
    let mut shape = first.shape();
    // Where all are such, `dim` counts for nothing.
    let dim = if skipped(first) { 0 } else { dim };
    let at = wrap_dim(dim, shape.len())?;
    shape[at] = 0;
    let mut lengths = Vec::with_capacity(tensors.len());
    for (i, t) in tensors.iter().enumerate() {
        let own = t.shape();
        if skipped(t) && shape.len() != 1 {
            lengths.push(0);
            continue;
        }
        if own.len() != shape.len() {
            return Err(Error::runtime(format!(
                "Tensors must have same number of dimensions: got {} and {}",
                shape.len(),
                own.len()
            )));
        }
        if let Some(d) = (0..own.len()).find(|&d| d != at && own[d] != shape[d]) {
            return Err(Error::runtime(format!(
                "Sizes of tensors must match except in dimension {at}. Expected size {} but got size {} for tensor number \
                 {i} in the list.",
                shape[d], own[d]
            )));
        }
        shape[at] += own[at];
        lengths.push(own[at]);
    }
    if tensors.iter().any(Tensor::is_batched) {
        return super::batch::cat(tensors, shape.len(), at as i64);
    }
    let parts: Vec<Body> = tensors.iter().map(|t| t.body().clone()).collect();
    let out = join(shape, at, &parts, &lengths, true)?;
    let made = record(&CAT, tensors, out, Joined { dim, lengths })?;
    tangent::joined(made, tensors, &|xs| cat_all(xs, dim))
}

/// The tensors as slices across a new dimension.
pub fn stack_all(tensors: &[Tensor], dim: i64) -> Result<Tensor> {
    let Some(first) = tensors.first() else {
        return Err(Error::runtime("stack expects a non-empty TensorList"));
    };
    let mut shape = first.shape();
    let at = wrap_dim(dim, shape.len() + 1)?;
    if let Some((i, t)) = tensors.iter().enumerate().find(|(_, t)| t.shape() != shape) {
        return Err(Error::runtime(format!(
            "stack expects each tensor to be equal size, but got {:?} at entry 0 and {:?} at entry {i}",
            shape.as_slice(),
            t.shape().as_slice()
        )));
    }
    if tensors.iter().any(Tensor::is_batched) {
        return super::batch::stack(tensors, shape.len(), at as i64);
    }
    shape.insert(at, tensors.len());
    let raised = |t: &Tensor| -> Result<Body> {
        let body = t.body();
        Ok(body.with_layout(body.layout.unsqueeze(at as i64)?))
    };
    let parts = tensors.iter().map(raised).collect::<Result<Vec<_>>>()?;
    let lengths = vec![1; tensors.len()];
    let out = join(shape, at, &parts, &lengths, false)?;
    let made = record(&STACK, tensors, out, Joined { dim, lengths })?;
    tangent::joined(made, tensors, &|xs| stack_all(xs, dim))
}

fn some(name: &str, tensors: Vec<Tensor>) -> Result<Vec<Tensor>> {
    if tensors.is_empty() {
        return Err(Error::runtime(format!("{name} expects a non-empty TensorList")));
    }
    Ok(tensors)
}

fn each(tensors: Vec<Tensor>, f: impl Fn(Tensor) -> Result<Tensor>) -> Result<Vec<Tensor>> {
    tensors.into_iter().map(f).collect()
}

compose! { "join";
    /// The tensors one after the other along a dimension.
    [no_method, out] fn cat(tensors: Vec<Tensor>, dim: i64 = 0) -> Tensor { cat_all(&tensors, dim) }
    /// The tensors one after the other along a dimension (`cat`).
    [no_method, out] fn concat(tensors: Vec<Tensor>, dim: i64 = 0) -> Tensor { cat_all(&tensors, dim) }
    /// The tensors one after the other along a dimension (`cat`).
    [no_method, out] fn concatenate(tensors: Vec<Tensor>, dim: i64 = 0) -> Tensor { cat_all(&tensors, dim) }
    /// The tensors as slices across a new dimension.
    [no_method, out] fn stack(tensors: Vec<Tensor>, dim: i64 = 0) -> Tensor { stack_all(&tensors, dim) }
    /// The tensors side by side: along the columns, vectors end to end.
    [no_method, out] fn hstack(tensors: Vec<Tensor>) -> Tensor {
        let tensors = each(some("hstack", tensors)?, |t| if t.ndim() == 0 { super::view::reshape(&t, &[1]) } else { Ok(t) })?;
        let dim = i64::from(tensors.first().is_some_and(|t| t.ndim() > 1));
        cat_all(&tensors, dim)
    }
    /// The tensors on top of each other: along the rows.
    [no_method, out] fn vstack(tensors: Vec<Tensor>) -> Tensor { cat_all(&each(some("vstack", tensors)?, at_least_2d)?, 0) }
    /// The tensors on top of each other (`vstack`).
    [no_method, out] fn row_stack(tensors: Vec<Tensor>) -> Tensor { vstack(tensors) }
    /// The tensors behind each other: along the third dimension.
    [no_method, out] fn dstack(tensors: Vec<Tensor>) -> Tensor { cat_all(&each(some("dstack", tensors)?, at_least_3d)?, 2) }
    /// The tensors as columns.
    [no_method, out] fn column_stack(tensors: Vec<Tensor>) -> Tensor {
        let column = |t: Tensor| if t.ndim() <= 1 { super::view::reshape(&t, &[t.numel(), 1]) } else { Ok(t) };
        cat_all(&each(some("column_stack", tensors)?, column)?, 1)
    }
    /// Views of parts along a dimension: of this size, or of these sizes.
    fn split(tensor: Tensor, split_size_or_sections: Arg, dim: i64 = 0) -> Vec<Tensor> {
        match &split_size_or_sections {
            Arg::Int(size) => split_evenly(&tensor, *size, dim),
            Arg::Ints(sizes) => split_sizes(&tensor, sizes, dim),
            _ => Err(Error::type_error(
                "split(): argument 'split_size_or_sections' (position 1) must be int or tuple of ints",
            )),
        }
    }
    /// So many views of nearly equal parts along a dimension; fewer when it is short.
    fn chunk(input: Tensor, chunks: i64, dim: i64 = 0) -> Vec<Tensor> {
        if input.ndim() == 0 {
            return Err(Error::runtime("chunk expects at least a 1-dimensional tensor"));
        }
        if chunks <= 0 {
            return Err(Error::runtime(format!("chunk expects `chunks` to be greater than 0, got: {chunks}")));
        }
        let total = input.shape()[wrap_dim(dim, input.ndim())?];
        if total == 0 {
            let at = wrap_dim(dim, input.ndim())?;
            return split_at(&SPLIT_SIZES, &input, vec![0; chunks as usize], at);
        }
        split_evenly(&input, total.div_ceil(chunks as usize) as i64, dim)
    }
    /// The parts of `chunk` with no tie to each other: each may be written in place, and only one of them should be used.
    fn unsafe_chunk(input: Tensor, chunks: i64, dim: i64 = 0) -> Vec<Tensor> { untied(|| chunk(input, chunks, dim)) }
    /// The parts of `split`, see `unsafe_chunk`.
    fn unsafe_split(tensor: Tensor, split_size: Arg, dim: i64 = 0) -> Vec<Tensor> { untied(|| split(tensor, split_size, dim)) }
    /// Views of parts of the given sizes along a dimension.
    fn split_with_sizes(input: Tensor, split_sizes: Ints, dim: i64 = 0) -> Vec<Tensor> { super::cut::split_sizes(&input, &split_sizes, dim) }
    /// A view of every slice across a dimension.
    fn unbind(input: Tensor, dim: i64 = 0) -> Vec<Tensor> {
        if input.ndim() == 0 {
            return Err(Fault::Index("Dimension specified as 0 but tensor has no dimensions".into()).into());
        }
        let at = wrap_dim(dim, input.ndim())?;
        if input.is_batched() {
            return super::batch::cut(&input, |value, k| unbind(value.clone(), (at + k) as i64));
        }
        let layout = input.body().layout.clone();
        let count = layout.shape[at];
        let layouts = (0..count as i64).map(|i| layout.select(at as i64, i)).collect::<Result<Vec<_>>>()?;
        views(&UNBIND, &input, &layouts, &Joined { dim: at as i64, lengths: vec![1; count] })
    }
    /// Views of nearly equal parts, or of the parts between these indices.
    fn tensor_split(input: Tensor, indices_or_sections: Arg, dim: i64 = 0) -> Vec<Tensor> {
        cut_into(&input, &indices_or_sections, dim)
    }
    /// `tensor_split` along the columns.
    fn hsplit(input: Tensor, indices_or_sections: Arg) -> Vec<Tensor> {
        cut_whole("hsplit", &input, &indices_or_sections, 1, usize::from(input.ndim() > 1))
    }
    /// `tensor_split` along the rows.
    fn vsplit(input: Tensor, indices_or_sections: Arg) -> Vec<Tensor> {
        cut_whole("vsplit", &input, &indices_or_sections, 2, 0)
    }
    /// `tensor_split` along the third dimension.
    fn dsplit(input: Tensor, indices_or_sections: Arg) -> Vec<Tensor> {
        cut_whole("dsplit", &input, &indices_or_sections, 3, 2)
    }
    /// A view with at least one dimension.
    [no_method] fn atleast_1d(input: Tensor) -> Tensor {
        if input.ndim() == 0 { super::view::reshape(&input, &[1]) } else { Ok(input) }
    }
    /// A view with at least two dimensions.
    [no_method] fn atleast_2d(input: Tensor) -> Tensor { at_least_2d(input) }
    /// A view with at least three dimensions.
    [no_method] fn atleast_3d(input: Tensor) -> Tensor { at_least_3d(input) }
    /// The tensors stretched to the shape that all of them broadcast to: views, or those themselves that have it.
    [no_method] fn broadcast_tensors(tensors: Several) -> Vec<Tensor> {
        let mut shape = Dims::new();
        for t in &tensors.0 {
            shape = crate::base::broadcast(&shape, &t.shape())?;
        }
        each(tensors.0, |t| if t.shape() == shape { Ok(t) } else { super::view::expand(&t, ints(&shape)) })
    }
    /// Coordinates of a grid: each vector stretched along a dimension of its own (views).
    [no_method] fn meshgrid(tensors: Several, indexing: Option<String> = None) -> Vec<Tensor> {
        let first = tensors.0.first().ok_or_else(|| Error::runtime("meshgrid expects a non-empty TensorList"))?;
        if let Some(t) = tensors.0.iter().find(|t| t.ndim() > 1) {
            return Err(Error::runtime(format!(
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {:?}", t.shape().as_slice()
            )));
        }
        if tensors.0.iter().any(|t| t.dtype() != first.dtype()) {
            return Err(Error::runtime("torch.meshgrid expects all tensors to have the same dtype"));
        }
        let swap = match indexing.as_deref() {
            None => {
                static TOLD: AtomicBool = AtomicBool::new(false);
                caution_once(&TOLD, "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.")?;
                false
            }
            Some("ij") => false,
            Some("xy") => tensors.0.len() > 1,
            Some(other) => {
                return Err(Error::runtime(format!(
                    "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: {other}"
                )));
            }
        };
        let mut order: Vec<usize> = (0..tensors.0.len()).collect();
        if swap {
            order.swap(0, 1);
        }
        let shape: Ints = order.iter().map(|&i| tensors.0[i].numel() as i64).collect();
        let place = |(i, t): (usize, Tensor)| {
            let mut own: Dims = smallvec::smallvec![1; shape.len()];
            let at = order.iter().position(|&o| o == i).unwrap_or(i);
            own[at] = t.numel();
            super::view::expand(&super::view::reshaped(&t, &own)?, shape.clone())
        };
        tensors.0.into_iter().enumerate().map(place).collect()
    }
}
