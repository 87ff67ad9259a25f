//! Translates layouts and shapes of one example to the whole physical tensor.

use crate::base::{DType, Dims, Layout, Result};
use crate::operator::Ints;
use crate::operator::batch::Batch;
use crate::operator::primitives::views::{ints, reshape};
use crate::tensor::{Part, Tensor};

impl Batch {
    /// The layout over the whole tensor, from one over a contiguous example of `numel` elements.
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

    /// The part of the whole tensor, from a part of one example. The examples lie one after the other.
    pub fn placed(&self, place: &Part, dtype: DType) -> Part {
        let size = place.whole.end().next_multiple_of(2);
        Part {
            whole: self.place(&place.whole, size),
            dtype: place.dtype,
            layout: self.place(&place.layout, size * dtype.size() / place.dtype.size()),
        }
    }

    /// Reshapes `x` to `count` visible dimensions, for sizes of a user that are more than its dimensions: ones are
    /// inserted after the batch.
    pub fn widened(&self, x: &Tensor, count: usize) -> Result<Tensor> {
        let seen = Dims::from_slice(&x.shape()[self.k()..]);
        let mut shape = self.shape(&[]);
        shape.extend(std::iter::repeat_n(1, count.saturating_sub(seen.len())));
        shape.extend_from_slice(&seen);
        reshape(x, &shape)
    }

    pub fn lead(&self, rest: &[i64]) -> Ints {
        ints(&self.sizes).into_iter().chain(rest.iter().copied()).collect()
    }
}
