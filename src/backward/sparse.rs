//! Sums, copies and conversions of gradients that may be sparse.

use crate::base::{DType, Result};
use crate::operator::pointwise::apply_inplace;
use crate::operator::primitives::addition;
use crate::operator::primitives::copies::{self, clone_dense};
use crate::tensor::{CooParts, Tensor};

/// The tensor itself if it is dense, otherwise a dense one with its elements.
pub fn to_dense(t: &Tensor) -> Result<Tensor> {
    t.coo_parts().map_or_else(|| Ok(t.clone()), |parts| (parts.func.to_dense)(&parts, &t.shape()))
}

/// The sum of two tensors. It is sparse if both are.
pub fn add(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    match (a.coo_parts(), b.coo_parts()) {
        (None, None) => addition::add(a, b),
        (Some(parts), Some(more)) => Tensor::sparse(&a.shape(), (parts.func.join)(&parts, &more)?),
        _ => addition::add(&to_dense(a)?, &to_dense(b)?),
    }
}

/// Adds `more` to `sum` in place. A sparse `sum` takes only a sparse `more`.
pub fn add_in_place(sum: &Tensor, more: &Tensor) -> Result<()> {
    if let (Some(parts), Some(more)) = (sum.coo_parts(), more.coo_parts()) {
        sum.set_coo_parts((parts.func.join)(&parts, &more)?);
        return Ok(());
    }
    apply_inplace(&addition::add::ROW, sum, &[sum.into(), (&to_dense(more)?).into()])
}

/// A copy in new memory.
pub fn copy(t: &Tensor) -> Result<Tensor> {
    let Some(parts) = t.coo_parts() else { return clone_dense(t) };
    let (indices, values) = (clone_dense(&parts.indices)?, clone_dense(&parts.values)?);
    Tensor::sparse(&t.shape(), CooParts { indices, values, ..parts })
}

/// The tensor itself if it has that dtype, otherwise a converted copy.
pub fn to_dtype(t: &Tensor, dtype: DType) -> Result<Tensor> {
    let Some(parts) = t.coo_parts().filter(|_| t.dtype() != dtype) else { return copies::to_dtype(t, dtype) };
    let values = copies::to_dtype(&parts.values, dtype)?;
    Tensor::sparse(&t.shape(), CooParts { values, ..parts })
}
