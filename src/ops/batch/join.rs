//! Rules of what takes or gives several tensors.

use super::Batch;
use crate::base::Result;
use crate::ops::view;
use crate::tensor::Tensor;

/// Several results of one call on a batched tensor: `f` gets the physical tensor and how many dimensions lie in front.
pub fn cut(input: &Tensor, f: impl FnOnce(&Tensor, usize) -> Result<Vec<Tensor>>) -> Result<Vec<Tensor>> {
    let batch = Batch::of([input]);
    let made = f(input.physical(), batch.k())?;
    Ok(made.into_iter().map(|t| batch.wrap(t)).collect())
}

/// [`cut`] for what goes along one dimension; samples without dimensions are taken as vectors of one.
pub fn picked(
    input: &Tensor,
    dim: i64,
    f: impl FnOnce(&Tensor, i64) -> Result<Vec<Tensor>>,
) -> Result<Vec<Tensor>> {
    let rank = input.ndim();
    let at = crate::base::wrap_dim(dim, rank)?;
    cut(input, |value, k| {
        if rank > 0 {
            return f(value, (at + k) as i64);
        }
        let shape = value.shape();
        let made = f(&view::unsqueeze(value, -1)?, k as i64)?;
        made.iter().map(|t| view::reshape(t, &shape)).collect()
    })
}
