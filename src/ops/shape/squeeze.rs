//! Dimensions of size 1, put in and taken out.

use crate::operator::inplace_view::become_view;
use crate::operator::prelude::*;
use crate::ops::shape::view::alias;
use crate::tensor::any_requires_grad;

/// Those dimensions of `shape` put in again that have size 1 and are `squeezed`.
fn unsqueezed(g: Tensor, shape: &[usize], squeezed: impl Fn(usize) -> bool) -> Result<Tensor> {
    let mut dims = (0..shape.len()).filter(|&d| shape[d] == 1 && squeezed(d));
    dims.try_fold(g, |g, d| unsqueeze(&g, d as i64))
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

/// Dimensions of size 1 taken out: all, or those named (a view).
pub fn squeeze(input: &Tensor, dim: Option<Ints>) -> Result<Tensor> {
    match dim {
        None => squeeze_all(input),
        Some(dims) if dims.len() == 1 => squeeze_one(input, dims[0]),
        Some(dims) => squeeze_many(input, dims),
    }
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
