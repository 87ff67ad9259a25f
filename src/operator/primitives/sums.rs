//! Sums over dimensions, and functions that undo broadcasting and reductions in gradients.

use crate::base::{DType, Layout, Reduction, Result, dims_or_all};
use crate::operator::batch::Batch;
use crate::operator::bodies::{copy, drop_dims, kept_shape, of_pairs, reduce, with_shape};
use crate::operator::primitives::copies::to_dtype;
use crate::operator::primitives::views::{Expand, Unsqueeze, ints, reshape};
use crate::operator::row::Ints;
use crate::operator::row::grad_value::V;
use crate::tensor::{Body, Meta, Tensor};
use gradiron_macros::primitive;

/// The dtype of a sum: int64 for integers and bool.
pub fn sum_dtype(dtype: DType) -> DType {
    if dtype.is_differentiable() { dtype } else { DType::I64 }
}

/// Sums over `dim` (or all dimensions); the reduced dimensions are dropped unless `keepdim`.
fn summed(x: &Body, dim: Option<&[i64]>, keepdim: bool) -> Result<Body> {
    let dims = dims_or_all(dim, x.layout.ndim())?;
    let out = sum_over(x, &dims, sum_dtype(x.dtype))?;
    Ok(if keepdim { out } else { drop_dims(out, &dims) })
}

/// Sums over `dims`, keeping them as 1. Complex numbers are summed part by part.
pub fn sum_over(x: &Body, dims: &[usize], dtype: DType) -> Result<Body> {
    if !x.dtype.is_complex() {
        return reduce(Reduction::Sum, x, dims, dtype);
    }
    if dims.len() == x.layout.ndim() && x.numel() >= 4096 && x.layout.is_contiguous() {
        return sum_of_row(x).map(|sum| with_shape(sum, &kept_shape(x.shape(), dims)));
    }
    reduce(Reduction::Sum, &x.as_parts(), dims, x.dtype.to_real()).map(of_pairs)
}

/// The sum of a long contiguous row of complex numbers, arranged in columns that are wide enough for the real
/// kernel.
fn sum_of_row(x: &Body) -> Result<Body> {
    const WIDE: usize = 64;
    let parts = x.as_parts();
    let piece = |start: usize, rows: usize, columns: usize| {
        let layout = Layout::contiguous(&[rows, columns]);
        parts.with_layout(Layout { offset: parts.layout.offset + start, ..layout })
    };
    let (rows, rest) = (x.numel() / WIDE, x.numel() % WIDE);
    let columns = reduce(Reduction::Sum, &piece(0, rows, 2 * WIDE), &[0], parts.dtype)?;
    let sum = reduce(Reduction::Sum, &with_shape(columns, &[WIDE, 2]), &[0], parts.dtype)?;
    if rest == 0 {
        return Ok(of_pairs(sum));
    }
    let tail = reduce(Reduction::Sum, &piece(2 * rows * WIDE, rest, 2), &[0], parts.dtype)?;
    let both = Body::new(&[2, 2], parts.dtype, parts.device())?;
    for (at, part) in [&sum, &tail].into_iter().enumerate() {
        copy(&both.with_layout(both.layout.narrow(0, at as i64, 1)?), part)?;
    }
    reduce(Reduction::Sum, &both, &[0], parts.dtype).map(of_pairs)
}

#[primitive(tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl Sum {
    fn forward(input: &Tensor) -> Result<Body> {
        summed(&input.body(), None, false)
    }
    fn d_input(g: &Tensor, at: Meta) -> Result<Tensor> {
        to_dtype(&unreduce(g, &at.shape, None, false)?, at.dtype)
    }
    fn batch(b: &Batch, input: &Tensor) -> Result<Tensor> {
        let x = b.full(input)?;
        let x = if b.rank(&x) == 0 { Unsqueeze::call(&x, -1)? } else { x };
        let seen = (b.k()..x.ndim()).map(|d| d as i64).collect();
        Sum1::call(&x, seen, false).map(|t| b.wrap(t))
    }
}

#[primitive(batch = over(dim, keepdim), tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl Sum1 {
    fn forward(input: &Tensor, dim: Ints, keepdim: bool) -> Result<Body> {
        summed(&input.body(), Some(&dim), keepdim)
    }
    fn d_input(g: &Tensor, at: Meta, dim: Ints, keepdim: bool) -> Result<Tensor> {
        to_dtype(&unreduce(g, &at.shape, Some(&dim), keepdim)?, at.dtype)
    }
}

/// Undoes broadcasting: sums `t` to `shape`.
pub fn sum_to(t: &Tensor, shape: &[usize]) -> Result<Tensor> {
    if shape.is_empty() {
        return Sum::call(t);
    }
    let have = t.shape();
    if have.as_slice() == shape {
        return Ok(t.clone());
    }
    let lead = have.len().saturating_sub(shape.len());
    let dims: Ints = (0..have.len())
        .filter(|&i| i < lead || (shape[i - lead] == 1 && have[i] != 1))
        .map(|i| i as i64)
        .collect();
    let summed = if dims.is_empty() { t.clone() } else { Sum1::call(t, dims, true)? };
    reshape(&summed, shape)
}

/// Expands a reduction's gradient to `shape`.
pub fn unreduce(g: &Tensor, shape: &[usize], dims: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
    Expand::call(&with_kept_dims(g, shape.len(), dims, keepdim)?, ints(shape))
}

/// A reduction's result or gradient with the reduced dimensions inserted again, unless it broadcasts as it
/// is.
pub fn with_kept_dims(y: &Tensor, ndim: usize, dims: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
    let mut y = y.clone();
    if keepdim || y.ndim() == ndim || (y.ndim() == 0 && dims.is_none_or(<[i64]>::is_empty)) {
        return Ok(y);
    }
    let mut reduced = dims_or_all(dims, ndim)?;
    reduced.sort_unstable();
    for dim in reduced {
        y = Unsqueeze::call(&y, dim as i64)?;
    }
    Ok(y)
}

impl V {
    pub fn sum(self, dims: &[i64], keepdim: bool) -> V {
        self.then(|t| Sum1::call(&t, Ints::from_slice(dims), keepdim))
    }

    pub fn sum_to(self, shape: &[usize]) -> V {
        self.then(|t| sum_to(&t, shape))
    }

    /// Expands the gradient of a reduction to the shape of the operand.
    pub fn unreduce(self, at: &Meta, dims: &Option<Ints>, keepdim: bool) -> V {
        self.then(|t| unreduce(&t, &at.shape, dims.as_deref(), keepdim)).cast(at.dtype)
    }
}
