//! Operators on several tensors: concatenating, stacking, broadcasting, and unbinding into slices.

use crate::base::{try_alloc, warn_once};
use crate::operator::primitives::join::{Stack, join, join_small};
use crate::operator::primitives::views::{self, ints};
use crate::operator::primitives::{constant, copies};
use crate::ops::prelude::*;
use crate::ops::shape::{slices, squeeze, view};
use std::sync::atomic::AtomicBool;

fn some<'a>(name: &str, tensors: &'a [Tensor]) -> Result<&'a [Tensor]> {
    if tensors.is_empty() {
        return Err(Error::runtime(format!("{name} expects a non-empty TensorList")));
    }
    Ok(tensors)
}

fn each(tensors: &[Tensor], f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Vec<Tensor>> {
    try_alloc::collect(tensors.iter().map(f))
}

/// True for empty vectors, which can be concatenated with tensors of any shape, for compatibility with PyTorch.
fn is_skipped(t: &Tensor) -> bool {
    t.shape().as_slice() == [0]
}

/// Checks that the tensors fit together. Returns the wrapped dimension and the length of each part along it.
fn parts_along(tensors: &[Tensor], dim: i64) -> Result<(i64, Vec<usize>)> {
    let Some(first) = tensors.iter().find(|t| !is_skipped(t)).or(tensors.first()) else {
        return Err(Error::value("torch.cat(): expected a non-empty list of Tensors"));
    };
    if let Some(i) = tensors.iter().position(|t| t.ndim() == 0) {
        return Err(Error::runtime(format!(
            "zero-dimensional tensor (at position {i}) cannot be concatenated"
        )));
    }
    let mut shape = first.shape();
    // If all are empty vectors, `dim` is not used.
    let dim = if is_skipped(first) { 0 } else { dim };
    let at = wrap_dim(dim, shape.len())?;
    shape[at] = 0;
    let mut lengths = try_alloc::with_capacity(tensors.len())?;
    for (i, t) in tensors.iter().enumerate() {
        let own = t.shape();
        if is_skipped(t) && shape.len() != 1 {
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
    Ok((dim, lengths))
}

#[primitive(tangent = linear)]
impl Cat {
    fn forward(tensors: &[Tensor], dim: i64, #[hidden] lengths: &[usize]) -> Result<Body> {
        let mut shape = tensors.iter().find(|t| !is_skipped(t)).unwrap_or(&tensors[0]).shape();
        let at = wrap_dim(dim, shape.len())?;
        shape[at] = lengths.iter().sum();
        if let Some(joined) = join_small(&shape, at, tensors)? {
            return Ok(joined);
        }
        let parts: Vec<Body> = try_alloc::collect(tensors.iter().map(|t| Ok(t.body().clone())))?;
        join(shape, at, &parts, lengths, true)
    }
    fn d_tensors(
        g: &Tensor,
        at: Vec<Option<Meta>>,
        wants: Vec<bool>,
        dim: i64,
        lengths: &[usize],
    ) -> Result<Vec<Option<Tensor>>> {
        let mut start = 0;
        let mut part = |(i, at): (usize, Option<Meta>)| -> Result<Option<Tensor>> {
            let (from, length) = (start, lengths[i] as i64);
            start += length;
            let Some(at) = at.filter(|_| wants[i]) else { return Ok(None) };
            if at.shape.as_slice() == [0] {
                return constant::zeros(&[0], at.dtype, at.device).map(Some);
            }
            copies::to_dtype(&slices::narrow(g, dim, from, length)?, at.dtype).map(Some)
        };
        at.into_iter().enumerate().map(&mut part).collect()
    }
    fn batch(b: &Batch, tensors: &[Tensor], dim: i64, _lengths: &[usize]) -> Result<Tensor> {
        // With batch dimensions an empty vector is no longer one-dimensional, so it would not join the others.
        let rank = tensors.iter().find(|t| !is_skipped(t)).map_or(1, Tensor::ndim);
        let real = tensors.iter().filter(|t| rank == 1 || !is_skipped(t));
        let full = real.map(|t| b.full(t)).collect::<Result<Vec<_>>>()?;
        cat(&full, b.dim(dim, rank)?).map(|t| b.wrap(t))
    }
}

#[primitive(copy, batch = along(dim), tangent = linear)]
impl Unbind {
    fn forward(input: &Tensor, dim: i64) -> Result<Vec<Layout>> {
        let layout = input.body().layout.clone();
        let count = layout.shape[wrap_dim(dim, layout.ndim())?];
        try_alloc::check_list(count)?;
        try_alloc::collect((0..count as i64).map(|i| layout.select(dim, i)))
    }
    fn d_input(g: Vec<Option<Tensor>>, at: Meta, dim: i64) -> Result<Tensor> {
        let mut shape = at.shape.clone();
        shape.remove(wrap_dim(dim, at.shape.len())?);
        let zeros = |shape: &[usize]| constant::zeros(shape, at.dtype, at.device);
        let parts = try_alloc::collect(g.into_iter().map(|g| g.map_or_else(|| zeros(&shape), Ok)))?;
        if parts.is_empty() { zeros(&at.shape) } else { stack(&parts, dim) }
    }
}

/// Concatenate tensors along an existing dimension.
///
/// Args:
///     tensors: tensors with the same shape, except along `dim`.
///     dim: dimension along which to join.
///
/// Examples:
///     >>> torch.cat([torch.zeros(2, 3), torch.ones(1, 3)]).shape
///     torch.Size([3, 3])
///     >>> torch.cat([torch.tensor([1, 2]), torch.tensor([3])])
///     tensor([1, 2, 3])
#[operator(function, out(promoted, resizes), autocast = widest, sample = "joined(name, True)")]
pub fn cat(tensors: &[Tensor], #[default(0)] dim: i64) -> Result<Tensor> {
    let (dim, lengths) = parts_along(tensors, dim)?;
    Cat::call(tensors, dim, &lengths)
}

/// Concatenate tensors along an existing dimension; the same as `torch.cat`.
///
/// Args:
///     tensors: tensors with the same shape, except along `dim`.
///     dim: dimension along which to join.
///
/// Examples:
///     >>> torch.concat([torch.tensor([1, 2]), torch.tensor([3])])
///     tensor([1, 2, 3])
#[operator(function, out(promoted, resizes), autocast = widest, sample = "joined(name, True)")]
pub fn concat(tensors: &[Tensor], #[default(0)] dim: i64) -> Result<Tensor> {
    cat(tensors, dim)
}

/// Concatenate tensors along an existing dimension; the same as `torch.cat`.
///
/// Args:
///     tensors: tensors with the same shape, except along `dim`.
///     dim: dimension along which to join.
///
/// Examples:
///     >>> torch.concatenate([torch.tensor([1, 2]), torch.tensor([3])])
///     tensor([1, 2, 3])
#[operator(function, out, autocast = widest, sample = "joined(name, True)")]
pub fn concatenate(tensors: &[Tensor], #[default(0)] dim: i64) -> Result<Tensor> {
    cat(tensors, dim)
}

/// Stack tensors of the same shape along a new dimension.
///
/// Args:
///     dim: place of the new dimension in the result.
///
/// Examples:
///     >>> torch.stack([torch.tensor([1, 2]), torch.tensor([3, 4])], dim=1)
///     tensor([[1, 3],
///             [2, 4]])
#[operator(function, out(promoted, resizes), autocast = widest, sample = "joined(name, True)")]
pub fn stack(tensors: &[Tensor], #[default(0)] dim: i64) -> Result<Tensor> {
    let Some(first) = tensors.first() else {
        return Err(Error::runtime("stack expects a non-empty TensorList"));
    };
    let shape = first.shape();
    wrap_dim(dim, shape.len() + 1)?;
    if let Some((i, t)) = tensors.iter().enumerate().find(|(_, t)| t.shape() != shape) {
        return Err(Error::runtime(format!(
            "stack expects each tensor to be equal size, but got {:?} at entry 0 and {:?} at entry {i}",
            shape.as_slice(),
            t.shape().as_slice()
        )));
    }
    Stack::call(tensors, dim)
}

/// Stack tensors horizontally: along the second dimension, vectors along the first.
///
/// Examples:
///     >>> torch.hstack([torch.tensor([1, 2]), torch.tensor([3])])
///     tensor([1, 2, 3])
#[operator(function, out(promoted, resizes, called = "cat"), sample = "joined(name, False)")]
pub fn hstack(tensors: &[Tensor]) -> Result<Tensor> {
    let one = |t: &Tensor| if t.ndim() == 0 { views::reshape(t, &[1]) } else { Ok(t.clone()) };
    let tensors = each(some("hstack", tensors)?, one)?;
    let dim = i64::from(tensors.first().is_some_and(|t| t.ndim() > 1));
    cat(&tensors, dim)
}

/// Stack tensors vertically: along the first dimension, with vectors as rows.
///
/// Examples:
///     >>> torch.vstack([torch.tensor([1, 2]), torch.tensor([3, 4])])
///     tensor([[1, 2],
///             [3, 4]])
#[operator(function, out(promoted, resizes, called = "cat"), sample = "joined(name, False)")]
pub fn vstack(tensors: &[Tensor]) -> Result<Tensor> {
    cat(&each(some("vstack", tensors)?, atleast_2d)?, 0)
}

/// Stack tensors vertically; the same as `torch.vstack`.
///
/// Examples:
///     >>> torch.row_stack([torch.tensor([1, 2]), torch.tensor([3, 4])])
///     tensor([[1, 2],
///             [3, 4]])
#[operator(function, out(promoted, resizes, called = "cat"), sample = "joined(name, False)")]
pub fn row_stack(tensors: &[Tensor]) -> Result<Tensor> {
    vstack(tensors)
}

/// Stack tensors depthwise: along the third dimension.
///
/// Examples:
///     >>> torch.dstack([torch.tensor([1, 2]), torch.tensor([3, 4])])
///     tensor([[[1, 3],
///              [2, 4]]])
#[operator(function, out(promoted, resizes, called = "cat"), sample = "joined(name, False)")]
pub fn dstack(tensors: &[Tensor]) -> Result<Tensor> {
    cat(&each(some("dstack", tensors)?, atleast_3d)?, 2)
}

/// Stack tensors horizontally, with vectors as columns.
///
/// Examples:
///     >>> torch.column_stack([torch.tensor([1, 2]), torch.tensor([3, 4])])
///     tensor([[1, 3],
///             [2, 4]])
#[operator(function, out(promoted, resizes, called = "cat"), sample = "joined(name, False)")]
pub fn column_stack(tensors: &[Tensor]) -> Result<Tensor> {
    let column = |t: &Tensor| if t.ndim() <= 1 { views::reshape(t, &[t.numel(), 1]) } else { Ok(t.clone()) };
    cat(&each(some("column_stack", tensors)?, column)?, 1)
}

/// Rejects tensors without dimensions, which have no slices.
pub fn check_unbind(input: &Tensor) -> Result<()> {
    if input.ndim() > 0 {
        return Ok(());
    }
    Err(Error::index("Dimension specified as 0 but tensor has no dimensions"))
}

/// Split a tensor into all its slices along a dimension, without that dimension (views).
///
/// Args:
///     dim: dimension to remove.
///
/// Returns:
///     A tuple with a tensor for each index of `dim`.
///
/// Examples:
///     >>> torch.unbind(torch.tensor([[1, 2], [3, 4]]))
///     (tensor([1, 2]), tensor([3, 4]))
#[operator(
    function,
    method,
    sample = "view(lambda draw, shape: (lambda d: lambda x: x.unbind(d))(dim_of(draw, shape)), 1)"
)]
pub fn unbind(input: &Tensor, #[default(0)] dim: i64) -> Result<Vec<Tensor>> {
    check_unbind(input)?;
    Unbind::call(input, dim)
}

/// Return the tensor with at least one dimension.
///
/// Examples:
///     >>> torch.atleast_1d(torch.tensor(5))
///     tensor([5])
#[operator(function, sample = "view(lambda draw, shape: T.atleast_1d)")]
pub fn atleast_1d(input: &Tensor) -> Result<Tensor> {
    if input.ndim() == 0 { views::reshape(input, &[1]) } else { Ok(input.clone()) }
}

/// Return the tensor with at least two dimensions; a vector becomes a row.
///
/// Examples:
///     >>> torch.atleast_2d(torch.tensor([1, 2]))
///     tensor([[1, 2]])
#[operator(function, sample = "view(lambda draw, shape: T.atleast_2d)")]
pub fn atleast_2d(input: &Tensor) -> Result<Tensor> {
    match input.ndim() {
        0 => views::reshape(input, &[1, 1]),
        1 => squeeze::unsqueeze(input, 0),
        _ => Ok(input.clone()),
    }
}

/// Return the tensor with at least three dimensions; a matrix gets a last dimension of size 1.
///
/// Examples:
///     >>> torch.atleast_3d(torch.tensor([[1, 2]])).shape
///     torch.Size([1, 2, 1])
#[operator(function, sample = "view(lambda draw, shape: T.atleast_3d)")]
pub fn atleast_3d(input: &Tensor) -> Result<Tensor> {
    match input.ndim() {
        0 => views::reshape(input, &[1, 1, 1]),
        1 => squeeze::unsqueeze(&squeeze::unsqueeze(input, 0)?, -1),
        2 => squeeze::unsqueeze(input, -1),
        _ => Ok(input.clone()),
    }
}

/// Broadcast tensors to their common shape (views).
///
/// Raises:
///     RuntimeError: if the shapes cannot be broadcast.
///
/// Examples:
///     >>> a, b = torch.broadcast_tensors(torch.tensor([[1], [2]]), torch.tensor([3, 4, 5]))
///     >>> a.shape, b.shape
///     (torch.Size([2, 3]), torch.Size([2, 3]))
#[operator(function, sample = "fixed([(3,), (2, 1)], lambda a, b: T.broadcast_tensors(a, b))")]
pub fn broadcast_tensors(#[elsewhere] tensors: Several) -> Result<Vec<Tensor>> {
    let mut shape = Dims::new();
    for t in &tensors.0 {
        shape = crate::base::broadcast(&shape, &t.shape())?;
    }
    each(&tensors.0, |t| if t.shape() == shape { Ok(t.clone()) } else { view::expand(t, ints(&shape)) })
}

/// Build the coordinates of a grid from a vector for each axis (views).
///
/// Args:
///     tensors: vectors or single numbers: the coordinates along each axis.
///     indexing: `"ij"`: the first vector runs along the first dimension; `"xy"`: along the second. `"ij"` if not given.
///
/// Returns:
///     A tuple with a tensor for each axis, each of the shape of the grid.
///
/// Examples:
///     >>> x, y = torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3, 4, 5]), indexing="ij")
///     >>> x
///     tensor([[1, 1, 1],
///             [2, 2, 2]])
///     >>> y
///     tensor([[3, 4, 5],
///             [3, 4, 5]])
#[operator(function, sample = "fixed([(2,), (3,)], lambda a, b: T.meshgrid(a, b, indexing='xy'))")]
pub fn meshgrid(tensors: Several, indexing: Option<String>) -> Result<Vec<Tensor>> {
    let first = tensors.0.first().ok_or_else(|| Error::runtime("meshgrid expects a non-empty TensorList"))?;
    if let Some(t) = tensors.0.iter().find(|t| t.ndim() > 1) {
        return Err(Error::runtime(format!(
            "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {:?}",
            t.shape().as_slice()
        )));
    }
    if tensors.0.iter().any(|t| t.dtype() != first.dtype()) {
        return Err(Error::runtime("torch.meshgrid expects all tensors to have the same dtype"));
    }
    // There are as many views as tensors, and each has as many dimensions; check the memory for the sizes and strides.
    try_alloc::check(tensors.0.len().saturating_mul(tensors.0.len()), 64)?;
    let swap = match indexing.as_deref() {
        None => {
            static TOLD: AtomicBool = AtomicBool::new(false);
            warn_once(
                &TOLD,
                "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
            )?;
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
        view::expand(&views::reshaped(&t, &own)?, shape.clone())
    };
    tensors.0.into_iter().enumerate().map(place).collect()
}
