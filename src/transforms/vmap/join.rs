//! Rules of what takes or gives several tensors.

use crate::base::Result;
use crate::tensor::Tensor;
use crate::transforms::vmap::Batch;

/// Several results of one call on a batched tensor: `f` gets the physical tensor and how many dimensions lie in front.
pub fn cut(input: &Tensor, f: impl FnOnce(&Tensor, usize) -> Result<Vec<Tensor>>) -> Result<Vec<Tensor>> {
    let batch = Batch::of([input]);
    let made = f(input.physical(), batch.k())?;
    Ok(made.into_iter().map(|t| batch.wrap(t)).collect())
}
