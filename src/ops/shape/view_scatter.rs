//! Copies in which another tensor replaces a view: `select_scatter`, `slice_scatter`, `diagonal_scatter`.

use crate::base::views::may_overlap;
use crate::operator::bodies::carry;
use crate::operator::primitives::copies;
use crate::operator::primitives::view_part::{copy_of_whole, erase, put_part};
use crate::ops::prelude::*;
use crate::ops::shape::slices::{diagonal, select, slice};
use crate::tensor::Part;

/// A copy of `input`, in its layout, with `src` in place of a view of it.
fn scatter(input: &Tensor, src: &Tensor, view: impl FnOnce(&Layout) -> Result<Layout>) -> Result<Body> {
    let (own, src) = (input.body(), src.body());
    let apart = !may_overlap(&own.layout);
    let layout = if apart { own.layout.clone() } else { Layout::contiguous(own.shape()) };
    let part = Part { layout: view(&layout)?, dtype: own.dtype, whole: layout };
    let whole = copy_of_whole(&part, &own)?;
    carry(&part.of(&whole), &src)?;
    Ok(whole)
}

/// The batching rule. Each example is treated as contiguous.
fn scatter_samples(
    input: &Tensor,
    src: &Tensor,
    view: impl FnOnce(&Layout) -> Result<Layout>,
) -> Result<Tensor> {
    put_part(input, src, Part::in_dense(&input.body(), view(&Layout::contiguous(&input.shape()))?))
}

/// `grad` with zeros in the view that was replaced.
fn outside(grad: &Tensor, view: impl FnOnce(&Layout) -> Result<Layout>) -> Result<Tensor> {
    erase(grad, Part::in_dense(&grad.body(), view(&Layout::contiguous(&grad.shape()))?))
}

#[primitive(tangent = linear)]
impl SelectScatter {
    fn forward(input: &Tensor, src: &Tensor, dim: i64, index: i64) -> Result<Body> {
        scatter(input, src, |whole| whole.select(dim, index))
    }
    fn d_input(g: &Tensor, dim: i64, index: i64) -> Result<Tensor> {
        outside(g, |whole| whole.select(dim, index))
    }
    fn d_src(g: &Tensor, dim: i64, index: i64) -> Result<Tensor> {
        select(g, dim, index)
    }
    fn batch(_: &Batch, input: &Tensor, src: &Tensor, dim: i64, index: i64) -> Result<Tensor> {
        scatter_samples(input, src, |whole| whole.select(dim, index))
    }
}

#[primitive(tangent = linear)]
impl SliceScatter {
    fn forward(
        input: &Tensor,
        src: &Tensor,
        dim: i64,
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    ) -> Result<Body> {
        scatter(input, src, |whole| whole.slice(dim, start, end, step))
    }
    fn d_input(g: &Tensor, dim: i64, start: Option<i64>, end: Option<i64>, step: i64) -> Result<Tensor> {
        outside(g, |whole| whole.slice(dim, start, end, step))
    }
    fn d_src(g: &Tensor, dim: i64, start: Option<i64>, end: Option<i64>, step: i64) -> Result<Tensor> {
        slice(g, dim, start, end, step)
    }
    fn batch(
        _: &Batch,
        input: &Tensor,
        src: &Tensor,
        dim: i64,
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    ) -> Result<Tensor> {
        scatter_samples(input, src, |whole| whole.slice(dim, start, end, step))
    }
}

#[primitive(tangent = linear)]
impl DiagonalScatter {
    fn forward(input: &Tensor, src: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Body> {
        scatter(input, src, |whole| whole.diagonal(offset, dim1, dim2))
    }
    fn d_input(g: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
        outside(g, |whole| whole.diagonal(offset, dim1, dim2))
    }
    fn d_src(g: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
        diagonal(g, offset, dim1, dim2)
    }
    fn batch(_: &Batch, input: &Tensor, src: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
        scatter_samples(input, src, |whole| whole.diagonal(offset, dim1, dim2))
    }
}

/// Converts `src` to the dtype of `input`, and checks that it has the shape of the view that it replaces.
fn fitting(input: &Tensor, src: &Tensor, view: impl FnOnce(&Layout) -> Result<Layout>) -> Result<Tensor> {
    let place = view(&Layout::contiguous(&input.shape()))?;
    if src.shape() != place.shape {
        return Err(Error::runtime(format!(
            "expected src to have a size equal to the slice of self. src size = {:?}, slice size = {:?}",
            src.shape().as_slice(),
            place.shape.as_slice()
        )));
    }
    copies::to_device(&copies::to_dtype(src, input.dtype())?, input.device())
}

/// Return a copy of `input` in which one slice along a dimension is replaced by `src`.
///
/// Args:
///     src: the slice to embed, of the shape of `input.select(dim, index)`.
///     index: which slice.
///
/// Examples:
///     >>> torch.select_scatter(torch.zeros(2, 2), torch.ones(2), 0, 1)
///     tensor([[0., 0.],
///             [1., 1.]])
#[operator(
    function,
    method,
    sample = "view(lambda draw, shape: lambda x: x.select_scatter(x.select(0, 0) * 2, 0, 0), 1)"
)]
pub fn select_scatter(input: &Tensor, #[elsewhere] src: &Tensor, dim: i64, index: i64) -> Result<Tensor> {
    let src = fitting(input, src, |whole| whole.select(dim, index))?;
    SelectScatter::call(input, &src, dim, index)
}

/// Return a copy of `input` in which a range of slices along a dimension is replaced by `src`.
///
/// Args:
///     src: the slices to embed, of the shape of `input[start:end:step]` along `dim`.
///     start: index of the first slice; 0 if not given.
///     end: index after the last slice; the size of the dimension if not given.
///     step: step between the slices.
///
/// Examples:
///     >>> torch.slice_scatter(torch.zeros(4), torch.ones(2), start=1, end=3)
///     tensor([0., 1., 1., 0.])
#[operator(
    function,
    method,
    out(declared, called = "aten::slice_scatter"),
    sample = "view(lambda draw, shape: lambda x: x.slice_scatter(x[1:] * 2, 0, 1), 1)"
)]
pub fn slice_scatter(
    input: &Tensor,
    #[elsewhere] src: &Tensor,
    #[default(0)] dim: i64,
    start: Option<i64>,
    end: Option<i64>,
    #[default(1)] step: i64,
) -> Result<Tensor> {
    let src = fitting(input, src, |whole| whole.slice(dim, start, end, step))?;
    SliceScatter::call(input, &src, dim, start, end, step)
}

/// Return a copy of `input` in which a diagonal is replaced by `src`.
///
/// Args:
///     src: the diagonal to embed, of the shape of `input.diagonal(offset, dim1, dim2)`.
///     offset: which diagonal: 0 the main one, positive ones above it, negative ones below.
///     dim1, dim2: the two dimensions. Default: `0` and `1`
///
/// Examples:
///     >>> torch.diagonal_scatter(torch.zeros(2, 2), torch.ones(2))
///     tensor([[1., 0.],
///             [0., 1.]])
#[operator(
    function,
    method,
    sample = "view(lambda draw, shape: lambda x: x.diagonal_scatter(x.diagonal() * 2), 2)"
)]
pub fn diagonal_scatter(
    input: &Tensor,
    #[elsewhere] src: &Tensor,
    #[default(0)]
    #[strict]
    offset: i64,
    #[default(0)] dim1: i64,
    #[default(1)] dim2: i64,
) -> Result<Tensor> {
    let src = fitting(input, src, |whole| whole.diagonal(offset, dim1, dim2))?;
    DiagonalScatter::call(input, &src, offset, dim1, dim2)
}
