//! Rules of views and of what moves data for another shape.

use super::rules::{Rules, rules};
use super::{Batch, Ints};
use crate::base::{DType, Dims, Layout, Result};
use crate::ops::view as v;
use crate::ops::{Sizes, view::ints};
use crate::ops::{create, place, shape, spread, triangle};
use crate::tensor::{Part, Tensor};

impl Batch {
    /// A place in a dense sample as a place in all the dense samples.
    pub fn place(&self, place: &Layout, numel: usize) -> Layout {
        let mut stride = numel;
        let mut out = place.clone();
        for &size in self.sizes.iter().rev() {
            out.shape.insert(0, size);
            out.strides.insert(0, stride);
            stride *= size;
        }
        out
    }

    /// The same of a sample that lies in any way; all lie one after the other.
    fn placed(&self, place: &Part, dtype: DType) -> Part {
        let room = place.whole.end().next_multiple_of(2);
        Part {
            whole: self.place(&place.whole, room),
            dtype: place.dtype,
            lies: self.place(&place.lies, room * dtype.size() / place.dtype.size()),
        }
    }

    /// Sizes that the user gave, with the batch in front; those of a seen rank may be more than `x` has.
    fn widened(&self, x: &Tensor, count: usize) -> Result<Tensor> {
        let seen = Dims::from_slice(&x.shape()[self.k()..]);
        let mut shape = self.shape(&[]);
        shape.extend(std::iter::repeat_n(1, count.saturating_sub(seen.len())));
        shape.extend_from_slice(&seen);
        v::reshape(x, &shape)
    }

    fn lead(&self, rest: &[i64]) -> Ints {
        ints(&self.sizes).into_iter().chain(rest.iter().copied()).collect()
    }

    fn kept(&self) -> Ints {
        (0..self.k() as i64).collect()
    }
}

/// The storage read for every sample with the same sizes and strides, from each sample's own start.
fn strided(b: &Batch, x: &Tensor, size: &[i64], stride: &[i64], offset: Option<i64>) -> Result<Tensor> {
    let own = x.body().layout.strides.clone();
    let strides = ints(&own[..b.k()]).into_iter().chain(stride.iter().copied()).collect();
    v::strided(x, b.lead(size), strides, offset)
}

fn squeezed(b: &Batch, x: &Tensor, chosen: impl Fn(usize) -> bool) -> Result<Tensor> {
    let shape = x.shape();
    let dims: Ints = (b.k()..shape.len()).filter(|&d| shape[d] == 1 && chosen(d)).map(|d| d as i64).collect();
    if dims.is_empty() { v::alias(x) } else { v::squeeze_many(x, dims) }
}

fn expanded(b: &Batch, x: &Tensor, size: &[i64]) -> Result<Tensor> {
    let rank = b.rank(x);
    // The rule of the seen shape speaks first: its messages name what the function sees.
    Layout::contiguous(&x.shape()[b.k()..]).expand(size)?;
    if size.len() == rank {
        let own = x.shape();
        let sizes: Ints =
            size.iter().enumerate().map(|(i, &n)| if n == -1 { own[b.k() + i] as i64 } else { n }).collect();
        return v::expand(x, b.lead(&sizes));
    }
    let own = Dims::from_slice(&x.shape()[b.k()..]);
    let pad = size.len() - rank;
    let sizes: Ints =
        size.iter().enumerate().map(|(i, &n)| if n == -1 { own[i - pad] as i64 } else { n }).collect();
    v::expand(&b.widened(x, size.len())?, b.lead(&sizes))
}

fn rolled(b: &Batch, x: &Tensor, shifts: Ints, dims: Option<Ints>) -> Result<Tensor> {
    let dims = dims.unwrap_or_default();
    if dims.is_empty() && shifts.len() == 1 {
        let shape = x.shape();
        let line = v::reshape(x, &b.shape(&[shape[b.k()..].iter().product()]))?;
        return v::reshape(&shape::roll(&line, shifts, Some(smallvec::smallvec![b.k() as i64]))?, &shape);
    }
    let dims = b.dims(&dims, b.rank(x))?;
    shape::roll(x, shifts, Some(dims))
}

fn repeated(b: &Batch, x: &Tensor, repeats: &[i64]) -> Result<Tensor> {
    let mut all: Ints = smallvec::smallvec![1; b.k()];
    all.extend_from_slice(repeats);
    // Too few repeats are refused by the row itself.
    shape::repeat(
        &if repeats.len() > b.rank(x) { b.widened(x, repeats.len())? } else { x.clone() },
        Sizes(all),
    )
}

fn permuted(b: &Batch, x: &Tensor, dims: &[i64]) -> Result<Tensor> {
    Layout::contiguous(&x.shape()[b.k()..]).permute(dims)?;
    let mut order = b.kept();
    order.extend(b.dims(dims, b.rank(x))?);
    v::permute(x, order)
}

pub const PHYSICAL: Rules = rules! { physical b;
    view::view_as_shape(x; shape) => v::view_as_shape(x, b.shape(&shape));
    view::reshape_alias(x; shape) => v::reshape_alias(x, b.shape(&shape));
    view::unsafe_view(x; shape) => v::reshape(x, &b.shape(&shape));
    view::alias(x) => v::alias(x);
    view::transpose(x; dim0, dim1) => match b.rank(x) {
        0 => v::alias(x),
        n => v::transpose(x, b.dim(dim0, n)?, b.dim(dim1, n)?),
    };
    view::t(x) => match b.rank(x) {
        0 | 1 => v::alias(x),
        2 => v::transpose(x, -2, -1),
        n => Err(crate::base::Error::runtime(format!("t() expects a tensor with <= 2 dimensions, but self is {n}D"))),
    };
    view::permute(x; dims) => permuted(b, x, &dims);
    view::expand(x; size) => expanded(b, x, &size);
    spread::spread_out(x; dim, size, level) => spread::spread_out(x, dim + b.k() as i64, size, level);
    view::unsqueeze(x; dim) => v::unsqueeze(x, b.dim(dim, b.rank(x) + 1)?);
    view::squeeze_all(x) => squeezed(b, x, |_| true);
    view::squeeze_one(x; dim) => { let d = b.dim(dim, b.rank(x))?; squeezed(b, x, |at| at as i64 == d) };
    view::squeeze_many(x; dims) => { let dims = b.dims(&dims, b.rank(x))?; squeezed(b, x, |at| dims.contains(&(at as i64))) };
    view::select(x; dim, index) => v::select(x, b.dim(dim, b.rank(x))?, index);
    view::slice(x; dim, start, end, step) => v::slice(x, b.dim(dim, b.rank(x))?, start, end, step);
    view::narrow(x; dim, start, length) => v::narrow(x, b.dim(dim, b.rank(x))?, start, length);
    view::diagonal(x; offset, dim1, dim2) => v::diagonal(x, offset, b.dim(dim1, b.rank(x))?, b.dim(dim2, b.rank(x))?);
    view::unfold(x; dimension, size, step) => match b.rank(x) {
        0 => v::unfold(&v::unsqueeze(x, -1)?, b.k() as i64, size, step).and_then(|t| v::select(&t, b.k() as i64, 0)),
        n => v::unfold(x, b.dim(dimension, n)?, size, step),
    };
    view::strided_over(x; size, stride, offset, _lies) => strided(b, x, &size, &stride, offset);
    place::embed(x; shape, place) => {
        let numel = shape.iter().product();
        place::embed(x, b.shape(&shape), b.place(&place, numel))
    };
    place::read_part(x; place) => place::read_part(x, b.placed(&place, x.dtype()));
    place::erase(x; place) => place::erase(x, b.placed(&place, x.dtype()));
    place::put_part(x, y; place) => place::put_part(x, y, b.placed(&place, x.dtype()));
    create::clone_dense(x) => create::clone_dense(x);
    create::copied(x) => create::copied(x);
    create::convert(x; dtype) => create::convert(x, dtype);
    create::transfer(x; device) => create::transfer(x, device);
    shape::clone_as_it_lies(x) => shape::clone_as_it_lies(x);
    shape::flip(x; dims) => shape::flip(x, Sizes(b.dims(&dims.0, b.rank(x))?));
    shape::roll(x; shifts, dims) => rolled(b, x, shifts, dims);
    shape::repeat(x; repeats) => repeated(b, x, &repeats.0);
    triangle::tril(x; diagonal) => seen_matrix(b, x, "tril").and_then(|x| triangle::tril(&x, diagonal));
    triangle::triu(x; diagonal) => seen_matrix(b, x, "triu").and_then(|x| triangle::triu(&x, diagonal));
    triangle::diag_embed(x; offset, dim1, dim2) => {
        let rank = b.rank(x) + 1;
        triangle::diag_embed(x, offset, b.dim(dim1, rank)?, b.dim(dim2, rank)?)
    };
};

fn seen_matrix(b: &Batch, x: &Tensor, name: &str) -> Result<Tensor> {
    if b.rank(x) < 2 {
        return Err(crate::base::Error::runtime(format!(
            "{name}: input tensor must have at least 2 dimensions"
        )));
    }
    Ok(x.clone())
}

pub const SEEN: Rules = rules! { seen b;
    shape::rot90(x; k, dims) => shape::turned(x, k, &dims);
    triangle::trace(x) => crate::ops::reduce::Sum::call(&v::diagonal(x, 0, 0, 1)?);
};
