//! Views of parts: slices, ranges, diagonals, windows.

use crate::operator::primitives::view_part::{Select, put_back};
use crate::ops::prelude::*;
use crate::ops::shape::squeeze::unsqueeze;

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

/// A view of `length` slices from `start` on, for internal use.
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

/// Return one slice along a dimension, without that dimension (a view).
///
/// Args:
///     dim: dimension to index.
///     index: which slice.
///
/// Examples:
///     >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 0, 1)
///     tensor([3, 4])
#[operator(
    function,
    method,
    int_args,
    sample = "view(lambda draw, shape: (lambda d: lambda x: x.select(d, shape[d] - 1))(dim_of(draw, shape)), 1)"
)]
pub fn select(input: &Tensor, dim: i64, index: i64) -> Result<Tensor> {
    Select::call(input, dim, index)
}

/// A view of every `step`-th slice from `start` to `end`.
pub fn slice(input: &Tensor, dim: i64, start: Option<i64>, end: Option<i64>, step: i64) -> Result<Tensor> {
    Slice::call(input, dim, start, end, step)
}

/// A view of `length` slices from `start` on.
pub fn narrow(input: &Tensor, dim: i64, start: i64, length: i64) -> Result<Tensor> {
    Narrow::call(input, dim, start, length)
}

/// Return the diagonal of two dimensions, as the last dimension of the result (a view).
///
/// Args:
///     offset: which diagonal: 0 the main one, positive ones above it, negative ones below.
///     dim1, dim2: the two dimensions. Default: `0` and `1`
///
/// Examples:
///     >>> torch.diagonal(torch.tensor([[1, 2], [3, 4]]))
///     tensor([1, 4])
#[operator(function, method, sample = "view(diagonal, 2)")]
pub fn diagonal(
    input: &Tensor,
    #[default(0)]
    #[strict]
    offset: i64,
    #[default(0)] dim1: i64,
    #[default(1)] dim2: i64,
) -> Result<Tensor> {
    Diagonal::call(input, offset, dim1, dim2)
}

/// Return sliding windows along a dimension; their elements are a new last dimension (a view).
///
/// Args:
///     dimension: dimension along which the window slides.
///     size: size of the window.
///     step: step between neighboring windows.
///
/// Examples:
///     >>> torch.arange(5).unfold(0, 3, 1)
///     tensor([[0, 1, 2],
///             [1, 2, 3],
///             [2, 3, 4]])
#[operator(method, sample = "view(window, 1)")]
pub fn unfold(input: &Tensor, dimension: i64, size: i64, step: i64) -> Result<Tensor> {
    Unfold::call(input, dimension, size, step)
}
