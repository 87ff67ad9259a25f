//! `squeeze` and `unsqueeze`, which remove and insert dimensions of size 1.

use crate::operator::inplace::view::become_view;
use crate::operator::inplace::write::count_write;
use crate::operator::primitives::views::{Squeeze, Squeeze1, Squeeze2, Unsqueeze};
use crate::ops::prelude::*;
use crate::tensor::any_requires_grad;

/// Removes dimensions of size 1: all, or those listed. Returns a view.
pub fn squeeze(input: &Tensor, dim: Option<Ints>) -> Result<Tensor> {
    match dim {
        None => squeeze_all(input),
        Some(dims) if dims.len() == 1 => squeeze_one(input, dims[0]),
        Some(dims) => squeeze_many(input, dims),
    }
}

/// Insert a dimension of size 1 (a view).
///
/// Args:
///     dim: place of the new dimension in the result.
///
/// Examples:
///     >>> torch.unsqueeze(torch.tensor([1, 2]), 1)
///     tensor([[1],
///             [2]])
#[operator(
    function,
    method,
    int_args,
    sample = "view(lambda draw, shape: (lambda d: lambda x: x.unsqueeze(d))(draw(st.integers(-len(shape) - 1, len(shape)))))"
)]
pub fn unsqueeze(input: &Tensor, dim: i64) -> Result<Tensor> {
    Unsqueeze::call(input, dim)
}

/// Insert a dimension of size 1 into the tensor itself.
#[inplace(unsqueeze)]
pub fn unsqueeze_(input: &Tensor, dim: i64) -> Result<()> {
    become_view(input, |x| unsqueeze(x, dim))
}

fn squeeze_by_ints(input: &Tensor, dims: &[i64]) -> Option<Result<Tensor>> {
    match *dims {
        [] => Some(squeeze_all(input)),
        [dim] => Some(squeeze_one(input, dim)),
        _ => None,
    }
}

/// Remove dimensions of size 1: all of them, or those given (a view).
///
/// Args:
///     dim: dimension or dimensions to remove; those of other sizes stay.
///
/// Examples:
///     >>> x = torch.zeros(2, 1, 2, 1)
///     >>> torch.squeeze(x).shape, torch.squeeze(x, 1).shape
///     (torch.Size([2, 2]), torch.Size([2, 2, 1]))
#[operator(
    function,
    method,
    name = "squeeze",
    int_args = squeeze_by_ints,
    sample = "view(lambda draw, shape: draw(st.sampled_from([lambda x: x.squeeze(), lambda x: x.squeeze(0)])), 1)"
)]
pub fn squeeze_all(input: &Tensor) -> Result<Tensor> {
    Squeeze::call(input)
}

/// Remove one dimension of size 1 (a view).
#[overload(squeeze_all.dim)]
pub fn squeeze_one(input: &Tensor, dim: i64) -> Result<Tensor> {
    Squeeze1::call(input, dim)
}

/// Remove the given dimensions of size 1 (a view).
#[overload(squeeze_all.dims)]
pub fn squeeze_many(input: &Tensor, dim: Ints) -> Result<Tensor> {
    Squeeze2::call(input, dim)
}

/// Remove dimensions of size 1 from the tensor itself: all of them, or those given.
#[inplace(squeeze_all)]
pub fn squeeze_(input: &Tensor) -> Result<()> {
    become_view(input, squeeze_all)
}

/// Remove one dimension of size 1 from the tensor itself.
#[overload(squeeze_.dim)]
pub fn squeeze_one_(input: &Tensor, dim: i64) -> Result<()> {
    become_view(input, |x| squeeze_one(x, dim))
}

/// Remove the given dimensions of size 1 from the tensor itself.
#[overload(squeeze_.dims)]
pub fn squeeze_many_(input: &Tensor, dim: Ints) -> Result<()> {
    become_view(input, |x| squeeze_many(x, dim))
}

/// The only row of a product, as a vector. The matrix is not shared yet, so it is squeezed in place.
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
    count_write(&row);
    Ok(Tensor::of(row, None))
}
