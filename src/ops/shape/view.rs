//! Views: new layouts over the same storage.

use crate::base::views::infer_shape;
use crate::operator::call::results::PlainView;
use crate::operator::inplace::view::become_view;
use crate::operator::primitives::views::{Expand, Permute, View, alias, reshape, reshaped};
use crate::ops::prelude::*;
use crate::tensor::any_requires_grad;

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

/// A view of the bytes as elements of another dtype. If the element sizes differ, the last dimension grows or shrinks.
pub fn view_as_dtype(input: &Tensor, dtype: DType) -> Result<Tensor> {
    if let Some(batched) = input.as_batched() {
        return Ok(Tensor::batched(view_as_dtype(&batched.value, dtype)?, batched.levels.clone()));
    }
    let body = input.body();
    for (what, conj_neg) in
        [("conjugate view tensors", ConjNeg::CONJ), ("tensors with negative bit set", ConjNeg::NEG)]
    {
        if body.conj_neg.has(conj_neg) {
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

/// A fast path of `view`, the most frequent of these operators: for contiguous tensors without a graph it needs one pass over the
/// sizes.
fn as_shape(input: &Tensor, sizes: &[i64]) -> Option<Result<Tensor>> {
    if sizes.is_empty() {
        return None;
    }
    Some(match input.original_body().and_then(|body| body.layout.view_rows(sizes)) {
        Some(layout) if !any_requires_grad([input]) => Ok(layout.plain_view(input)),
        Some(layout) => View::call(input, layout.shape),
        None => infer_shape(sizes, input.numel()).and_then(|shape| View::call(input, shape)),
    })
}

/// Return a view of the same elements with another shape, or of the same memory with another data type.
///
/// Args:
///     size: the shape; one number may be -1, to be inferred.
///     dtype: if given instead, the data type that the bytes are read as.
///
/// Raises:
///     RuntimeError: if the strides do not allow a view with this shape; `reshape` copies then.
///
/// Examples:
///     >>> torch.arange(6).view(2, -1)
///     tensor([[0, 1, 2],
///             [3, 4, 5]])
///     >>> torch.tensor([1.0]).view(torch.int32)
///     tensor([1065353216], dtype=torch.int32)
#[operator(method, int_args = as_shape, sample = "view(lambda draw, shape: lambda x: x.contiguous().view(-1))")]
pub fn view(input: &Tensor, size: Sizes) -> Result<Tensor> {
    View::call(input, infer_shape(&size.0, input.numel())?)
}

/// Return a view of the bytes as elements of another dtype.
#[overload(view.dtype)]
pub fn view_of_dtype(input: &Tensor, dtype: DType) -> Result<Tensor> {
    if dtype == input.dtype() && !input.is_conj_or_neg() { alias(input) } else { view_as_dtype(input, dtype) }
}

/// Return the elements with another shape: a view where strides allow, else a copy.
///
/// Args:
///     shape: the new shape; one number may be -1, to be inferred.
///
/// Examples:
///     >>> torch.reshape(torch.arange(6), (2, 3))
///     tensor([[0, 1, 2],
///             [3, 4, 5]])
///     >>> torch.reshape(torch.tensor([[1, 2], [3, 4]]), (-1,))
///     tensor([1, 2, 3, 4])
#[operator(function, method, int_args, name = "reshape", sample = "view(reshaped)")]
pub fn reshape_to(input: &Tensor, shape: &[i64]) -> Result<Tensor> {
    reshaped(input, &infer_shape(shape, input.numel())?)
}

/// Swap two dimensions (a view).
///
/// Examples:
///     >>> torch.transpose(torch.tensor([[1, 2, 3], [4, 5, 6]]), 0, 1)
///     tensor([[1, 4],
///             [2, 5],
///             [3, 6]])
#[operator(function, method, int_args, sample = "two_dims(name)")]
pub fn transpose(input: &Tensor, dim0: i64, dim1: i64) -> Result<Tensor> {
    Transpose::call(input, dim0, dim1)
}

/// Swap two dimensions of the tensor itself.
#[inplace(transpose)]
pub fn transpose_(input: &Tensor, dim0: i64, dim1: i64) -> Result<()> {
    become_view(input, |x| transpose(x, dim0, dim1))
}

/// Swap two dimensions; the same as `torch.transpose` (a view).
///
/// Examples:
///     >>> torch.swapaxes(torch.zeros(2, 3), 0, 1).shape
///     torch.Size([3, 2])
#[operator(function, method, int_args, sample = "two_dims(name)")]
pub fn swapaxes(input: &Tensor, axis0: i64, axis1: i64) -> Result<Tensor> {
    transpose(input, axis0, axis1)
}

/// Swap two dimensions of the tensor itself (`transpose_`).
#[inplace(swapaxes)]
pub fn swapaxes_(input: &Tensor, axis0: i64, axis1: i64) -> Result<()> {
    transpose_(input, axis0, axis1)
}

/// Swap two dimensions; the same as `torch.transpose` (a view).
///
/// Examples:
///     >>> torch.swapdims(torch.zeros(2, 3), 0, 1).shape
///     torch.Size([3, 2])
#[operator(function, method, int_args, sample = "two_dims(name)")]
pub fn swapdims(input: &Tensor, dim0: i64, dim1: i64) -> Result<Tensor> {
    transpose(input, dim0, dim1)
}

/// Swap two dimensions of the tensor itself (`transpose_`).
#[inplace(swapdims)]
pub fn swapdims_(input: &Tensor, dim0: i64, dim1: i64) -> Result<()> {
    transpose_(input, dim0, dim1)
}

/// Transpose a matrix; vectors and single numbers stay as they are (a view).
///
/// Args:
///     input: a tensor with at most two dimensions.
///
/// Examples:
///     >>> torch.t(torch.tensor([[1, 2], [3, 4]]))
///     tensor([[1, 3],
///             [2, 4]])
#[operator(
    function,
    method,
    int_args,
    sample = "view(lambda draw, shape: lambda x: x.t(), shapes=st.sampled_from([(2, 3), (4,), (), (0, 2)]))"
)]
pub fn t(input: &Tensor) -> Result<Tensor> {
    MatrixTranspose::call(input)
}

/// Transpose the matrix itself.
#[inplace(t)]
pub fn t_(input: &Tensor) -> Result<()> {
    become_view(input, t)
}

/// Rearrange the dimensions of a tensor (a view).
///
/// Args:
///     dims: all dimensions in their new order.
///
/// Examples:
///     >>> torch.permute(torch.zeros(2, 3, 4), (2, 0, 1)).shape
///     torch.Size([4, 2, 3])
#[operator(function, method, int_args, sample = "view(permutation)")]
pub fn permute(input: &Tensor, #[strict] dims: Ints) -> Result<Tensor> {
    Permute::call(input, dims)
}

/// Expand dimensions of size 1 to larger sizes without copying (a view).
///
/// All elements of an expanded dimension are the same place in memory.
///
/// Args:
///     size: the shape; -1 keeps the size of a dimension, and new dimensions may stand in front.
///
/// Examples:
///     >>> torch.tensor([[1], [2]]).expand(-1, 3)
///     tensor([[1, 1, 1],
///             [2, 2, 2]])
#[operator(method, int_args, sample = "view(lambda draw, shape: lambda x: x.expand(2, *x.shape))")]
pub fn expand(input: &Tensor, #[strict] size: Ints) -> Result<Tensor> {
    Expand::call(input, size)
}

/// Flatten a range of dimensions into one: a view where possible, else a copy.
///
/// Args:
///     start_dim: first dimension to flatten.
///     end_dim: last dimension to flatten.
///
/// Examples:
///     >>> torch.flatten(torch.zeros(2, 3, 4), start_dim=1).shape
///     torch.Size([2, 12])
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
