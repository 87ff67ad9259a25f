//! View primitives that this module needs itself. The operators that users call (`view`, `expand`, `permute`,
//! `squeeze` and the like) are built on them.

use crate::base::views::checked_numel;
use crate::base::{Dims, Error, Layout, Result, wrap_dim};
use crate::operator::batch::Batch;
use crate::operator::primitives::copies::clone_dense;
use crate::operator::primitives::sums::sum_to;
use crate::operator::row::Ints;
use crate::operator::row::grad_value::V;
use crate::tensor::{Body, Meta, Tensor};
use gradiron_macros::primitive;

pub fn ints(dims: &[usize]) -> Ints {
    dims.iter().map(|&d| d as i64).collect()
}

/// Checks sizes that the user passed.
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

/// The view that `reshape` makes of a tensor that is not contiguous.
#[primitive(tangent = linear)]
impl ReshapeAlias {
    fn forward(input: &Tensor, shape: Dims) -> Result<Layout> {
        input
            .body()
            .layout
            .view(&shape)
            .ok_or_else(|| Error::runtime("this reshape needs a copy, not a view"))
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
        Permute::call(g, back)
    }
    fn batch(b: &Batch, input: &Tensor, dims: Ints) -> Result<Tensor> {
        let x = b.full(input)?;
        Layout::contiguous(&x.shape()[b.k()..]).permute(&dims)?;
        let mut order: Ints = (0..b.k() as i64).collect();
        order.extend(b.dims(&dims, b.rank(&x))?);
        Permute::call(&x, order).map(|t| b.wrap(t))
    }
}

#[primitive(copy, tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl Expand {
    fn forward(input: &Tensor, size: Ints) -> Result<Layout> {
        input.body().layout.expand(&size)
    }
    fn d_input(g: &Tensor, at: Meta) -> Result<Tensor> {
        sum_to(g, &at.shape)
    }
    fn batch(b: &Batch, input: &Tensor, size: Ints) -> Result<Tensor> {
        let x = b.full(input)?;
        let own = Dims::from_slice(&x.shape()[b.k()..]);
        // The visible shape is checked first, so that errors show the sizes that the function sees.
        Layout::contiguous(&own).expand(&size)?;
        let pad = size.len() - own.len();
        let kept = |(i, &n): (usize, &i64)| if n == -1 { own[i - pad] as i64 } else { n };
        let sizes: Ints = size.iter().enumerate().map(kept).collect();
        let x = if pad == 0 { x } else { b.widened(&x, size.len())? };
        Expand::call(&x, b.lead(&sizes)).map(|t| b.wrap(t))
    }
}

/// A new contiguous tensor with another shape. No other tensor may share its storage.
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

/// Inserts the squeezed dimensions again: those of size 1 for which `squeezed` is true.
fn unsqueezed(g: Tensor, shape: &[usize], squeezed: impl Fn(usize) -> bool) -> Result<Tensor> {
    let mut dims = (0..shape.len()).filter(|&d| shape[d] == 1 && squeezed(d));
    dims.try_fold(g, |g, d| Unsqueeze::call(&g, d as i64))
}

/// Converts dimensions that may be negative.
fn wrapped(dims: &[i64], rank: usize) -> Result<Dims> {
    dims.iter().map(|&d| wrap_dim(d, rank)).collect()
}

/// Squeezes the `chosen` dimensions of size 1 in each example.
fn squeezed(b: &Batch, x: &Tensor, chosen: impl Fn(usize) -> bool) -> Result<Tensor> {
    let shape = x.shape();
    let dims: Ints =
        (b.k()..shape.len()).filter(|&d| shape[d] == 1 && chosen(d - b.k())).map(|d| d as i64).collect();
    if dims.is_empty() { alias(x) } else { Squeeze2::call(x, dims) }
}

#[primitive(copy, tangent = linear, inplace = "UnsqueezeBackward1")]
impl Unsqueeze {
    fn forward(input: &Tensor, dim: i64) -> Result<Layout> {
        input.body().layout.unsqueeze(dim)
    }
    fn d_input(g: &Tensor, dim: i64) -> Result<Tensor> {
        Squeeze1::call(g, dim)
    }
    fn batch(b: &Batch, input: &Tensor, dim: i64) -> Result<Tensor> {
        let x = b.full(input)?;
        Unsqueeze::call(&x, b.dim(dim, b.rank(&x) + 1)?).map(|t| b.wrap(t))
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

/// Changes the shape: a view if strides allow, otherwise a copy.
pub fn reshape(input: &Tensor, shape: &[usize]) -> Result<Tensor> {
    if input.body().shape() == shape { Ok(input.clone()) } else { reshaped(input, shape) }
}

/// Like `reshape`, but always returns a new tensor, even for the same shape.
pub fn reshaped(input: &Tensor, shape: &[usize]) -> Result<Tensor> {
    let shape = Dims::from_slice(shape);
    let (contiguous, viewable) = {
        let layout = &input.body().layout;
        (layout.is_contiguous(), layout.view(&shape).is_some())
    };
    match viewable {
        true if contiguous => View::call(input, shape),
        true => ReshapeAlias::call(input, shape),
        false => UnsafeView::call(&clone_dense(input)?, shape),
    }
}

/// The tensor as a view of itself.
pub fn alias(input: &Tensor) -> Result<Tensor> {
    Alias::call(input)
}

/// A new contiguous tensor with another shape. No other tensor may share its storage.
pub fn unsafe_view(input: &Tensor, shape: Dims) -> Result<Tensor> {
    UnsafeView::call(input, shape)
}

impl V {
    pub fn reshape(self, shape: &[usize]) -> V {
        self.then(|t| reshape(&t, shape))
    }

    pub fn expand(self, shape: &[usize]) -> V {
        self.then(|t| Expand::call(&t, ints(shape)))
    }
}
